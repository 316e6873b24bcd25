"""Convolution by transforms: through frequencies, and by Winograd's F(2x2, 3x3), as a learner writes them."""

from __future__ import annotations

from math import prod

import numpy as np

from unrolled.checks.spec import Draw, Inputs, filters, images, normal, vector
from unrolled.device import Array, array_module
from unrolled.ops.winograd import PIXELS, RESULTS, WEIGHTS

MATRICES = 3  # B.T, G and A.T, which may go to the GPU
Kept = tuple[Array, Array, Array]


def matrices(x: Array, tile: int = 2) -> Kept:
    """Return B.T, G and A.T where x lies, in its dtype."""
    module = array_module(x)
    b, g, a = (module.asarray(np.array(rows[tile], x.dtype)) for rows in (PIXELS, WEIGHTS, RESULTS))
    return b, g, a


# through frequencies


def by_fft(x: Array, weight: Array, bias: Array, padding: int = 0) -> Array:
    """Return the convolution (N, O, OH, OW) of x (N, C, H, W), weight (O, C, KH, KW), bias (O,), by real transforms."""
    return through_frequencies(x, weight[:, :, ::-1, ::-1], bias, padding)


def through_frequencies(x: Array, flipped: Array, bias: Array, padding: int = 0, wraps: bool = False) -> Array:
    """Return the convolution with weights that are flipped already; wrapping round where transforms are too short."""
    module = array_module(x)
    kernel, sizes = flipped.shape[2:], x.shape[2:]
    starts = [k - 1 - padding for k in kernel]
    outputs = [size + 2 * padding - k + 1 for size, k in zip(sizes, kernel, strict=True)]
    lengths = [size if wraps else size + k - 1 for size, k in zip(sizes, kernel, strict=True)]
    pixels = module.fft.rfft2(x, lengths).transpose(2, 3, 0, 1)
    weights = module.fft.rfft2(flipped, lengths).transpose(2, 3, 1, 0)
    whole = module.fft.irfft2(module.matmul(pixels, weights).transpose(2, 3, 0, 1), lengths)
    rows, columns = (slice(start, start + size) for start, size in zip(starts, outputs, strict=True))
    return whole[:, :, rows, columns] + bias[:, None, None]


def layer(n: int, c: int, size: int, o: int, kernel: int, padding: int = 0) -> Inputs:
    """Return draws of what a convolution takes."""
    return {**arrays(n, c, size, size, o, kernel), "padding": padding}


def arrays(n: int, c: int, height: int, width: int, o: int, kernel: int) -> dict[str, Draw]:
    """Return draws of x, weight and bias."""
    return {"x": images(n, c, height, width), "weight": filters(o, c, kernel, kernel), "bias": vector(o)}


def oblong() -> Inputs:
    """Return draws of images that are wider than high, and of kernels that are higher than wide."""
    return {"x": images(2, 2, 6, 13), "weight": filters(3, 2, 5, 2), "bias": vector(3), "padding": 1}


def any_layer(rng: np.random.Generator) -> Inputs:
    """Draw a convolution of any size, with a kernel up to 7 x 7 and padding less than that."""
    n, c, o, kernel = (int(each) for each in rng.integers((1, 1, 1, 2), (4, 4, 5, 8)))
    height, width = (int(each) for each in kernel + rng.integers(0, 12, 2))
    drawn = arrays(n, c, height, width, o, kernel)
    return {**{name: draw.make(rng) for name, draw in drawn.items()}, "padding": int(rng.integers(0, kernel))}


def any_layer_of_3(rng: np.random.Generator) -> Inputs:
    """Draw a convolution of any size with 3 x 3 kernels."""
    n, c, o, height, width = (int(each) for each in rng.integers((1, 1, 1, 3, 3), (4, 5, 5, 12, 12)))
    drawn = arrays(n, c, height, width, o, 3)
    return {**{name: draw.make(rng) for name, draw in drawn.items()}, "padding": int(rng.integers(0, 3))}


def direct_flops(inputs: Inputs) -> float:
    """Return the operations of the direct convolution: a multiplication and an addition for each weight and result."""
    (n, _, *size), padding = inputs["x"].shape, inputs["padding"]
    kernel = inputs["weight"].shape[2:]
    outputs = prod(each + 2 * padding - k + 1 for each, k in zip(size, kernel, strict=True))
    return 2.0 * int(n * outputs * inputs["weight"].size)


# by Winograd's F(2x2, 3x3)


def transforms(tiles: Array, weight: Array, products: Array) -> Kept:
    """Return tiles (..., 4, 4) and weight (O, C, 3, 3) transformed, both (..., 4, 4), and products (..., 2, 2)."""
    b, g, a = matrices(tiles)
    return b @ tiles @ b.T, g @ weight @ g.T, a @ products @ a.T


def any_tiles(rng: np.random.Generator) -> Inputs:
    """Draw some tiles, weights and products."""
    n, c, o = (int(each) for each in rng.integers(1, 4, 3))
    drawn = {"tiles": normal(n, c, 2, 3, 4, 4), "weight": normal(o, c, 3, 3), "products": normal(n, o, 2, 3, 4, 4)}
    return {name: draw.make(rng) for name, draw in drawn.items()}


def cut(x: Array, padding: int, tile: int = 2) -> Array:
    """Return tiles (N, C, TH, TW, tile + 2, tile + 2) of x (N, C, H, W), which overlap by 2; zeros beyond the edges."""
    module = array_module(x)
    results = [size + 2 * padding - 2 for size in x.shape[2:]]
    around = [(padding, padding + -size % tile) for size in results]
    padded = module.pad(x, ((0, 0), (0, 0), *around))
    windows = module.lib.stride_tricks.sliding_window_view(padded, (tile + 2, tile + 2), axis=(2, 3))
    return windows[:, :, ::tile, ::tile]


def by_winograd(x: Array, weight: Array, bias: Array, padding: int = 1) -> Array:
    """Return the convolution (N, O, OH, OW) with 3 x 3 kernels: 16 products of (O, C) with (C, tiles)."""
    b, g, a = matrices(x)
    tiles = cut(x, padding)
    (n, c, th, tw), o = tiles.shape[:4], len(weight)
    pixels = (b @ tiles @ b.T).transpose(4, 5, 1, 0, 2, 3).reshape(16, c, n * th * tw)
    weights = (g @ weight @ g.T).transpose(2, 3, 0, 1).reshape(16, o, c)
    products = (weights @ pixels).reshape(4, 4, o, n, th, tw).transpose(3, 2, 4, 5, 0, 1)
    y = (a @ products @ a.T).transpose(0, 1, 2, 4, 3, 5).reshape(n, o, 2 * th, 2 * tw)
    height, width = (size + 2 * padding - 2 for size in x.shape[2:])
    return y[:, :, :height, :width] + bias[:, None, None]
