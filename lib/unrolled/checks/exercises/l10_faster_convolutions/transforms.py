"""Convolution by transforms: through frequencies, and by Winograd's F(2x2, 3x3), as a learner writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from unrolled.checks.mistakes import Mistake
from unrolled.checks.spec import Draw, Inputs, filters, images, normal, vector
from unrolled.device import Array, array_module
from unrolled.ops.winograd import PIXELS, RESULTS, WEIGHTS

MATRICES = 3  # B.T, G and A.T, which may go to the GPU
Kept = tuple[Array, Array, Array]
Begins = Callable[[int, int], int]


def matrices(x: Array, tile: int = 2) -> Kept:
    """Return B.T, G and A.T where x lies, in its dtype."""
    module = array_module(x)
    b, g, a = (module.asarray(np.array(rows[tile], x.dtype)) for rows in (PIXELS, WEIGHTS, RESULTS))
    return b, g, a


# through frequencies


def by_fft(x: Array, weight: Array, bias: Array, padding: int = 0) -> Array:
    """Return the convolution (N, O, OH, OW) of x (N, C, H, W), weight (O, C, KH, KW), bias (O,), by real transforms."""
    return through_frequencies(x, weight[:, :, ::-1, ::-1], bias, padding)


def through_frequencies(
    x: Array, flipped: Array, bias: Array, padding: int = 0, wraps: bool = False, begins: Begins | None = None
) -> Array:
    """Return the convolution with weights that are flipped already; wrapping round where transforms are too short.

    begins: where the first result lies in what comes back, from kernel and padding, if not at kernel - 1 - padding.
    """
    module = array_module(x)
    kernel, sizes = flipped.shape[2:], x.shape[2:]
    lengths = [size if wraps else size + k - 1 for size, k in zip(sizes, kernel, strict=True)]
    whole = module.fft.irfft2(_waves(x, flipped, lengths), lengths)
    return _cropped(whole, sizes, kernel, padding, begins) + bias[:, None, None]


def without_lengths(x: Array, flipped: Array, bias: Array, padding: int = 0) -> Array:
    """Return what comes out where the way back takes the images to have an even width."""
    module = array_module(x)
    kernel, sizes = flipped.shape[2:], x.shape[2:]
    lengths = [size + k - 1 for size, k in zip(sizes, kernel, strict=True)]
    whole = module.fft.irfft2(_waves(x, flipped, lengths))
    return _cropped(whole, sizes, kernel, padding) + bias[:, None, None]


def _waves(x: Array, flipped: Array, lengths: Sequence[int]) -> Array:
    """The waves of the results, (N, O, LH, LW // 2 + 1), summed over channels."""
    module = array_module(x)
    pixels = module.fft.rfft2(x, lengths).transpose(2, 3, 0, 1)
    weights = module.fft.rfft2(flipped, lengths).transpose(2, 3, 1, 0)
    return module.matmul(pixels, weights).transpose(2, 3, 0, 1)


def _cropped(
    whole: Array, sizes: Sequence[int], kernel: Sequence[int], padding: int, begins: Begins | None = None
) -> Array:
    """The results that are asked for."""
    starts = [begins(k, padding) if begins else k - 1 - padding for k in kernel]
    outputs = [size + 2 * padding - k + 1 for size, k in zip(sizes, kernel, strict=True)]
    rows, columns = (slice(start, start + size) for start, size in zip(starts, outputs, strict=True))
    return whole[:, :, rows, columns]


def wrong_ways(turned: Callable[[Array], Array]) -> tuple[Mistake, ...]:
    """Return usual mistakes on the way through frequencies, for weights that `turned` makes ready for it."""

    def shifted(begins: Begins) -> Mistake:
        words = "the crop begins at the wrong place: the first result lies at row and column kernel - 1 - padding"
        return Mistake(
            words,
            lambda x, weight, bias, padding: through_frequencies(x, turned(weight), bias, padding, begins=begins),
        )

    return (
        Mistake(
            "the transform is circular, and too short here: what leaves at one end comes in at the other. "
            "Lengths of size + kernel - 1 leave room",
            lambda x, weight, bias, padding: through_frequencies(x, turned(weight), bias, padding, wraps=True),
        ),
        Mistake(
            "irfft2 needs the lengths, too: else it makes an even number of columns, and here they are odd",
            lambda x, weight, bias, padding: without_lengths(x, turned(weight), bias, padding),
        ),
        *map(
            shifted,
            (
                lambda kernel, padding: 0,
                lambda kernel, padding: padding,
                lambda kernel, padding: kernel - padding,
                lambda kernel, padding: kernel - 1,
                lambda kernel, padding: (kernel - 1) // 2,
            ),
        ),
    )


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
    height, width = (size + 2 * padding - 2 for size in x.shape[2:])
    return uncropped(x, weight, bias, padding)[:, :, :height, :width]


def uncropped(x: Array, weight: Array, bias: Array, padding: int = 1, places_first: bool = True) -> Array:
    """Return the convolution with all results of the last tiles; mixed up where places do not come first."""
    return joined(result_tiles(x, weight, padding, places_first)) + bias[:, None, None]


def result_tiles(x: Array, weight: Array, padding: int, places_first: bool = True) -> Array:
    """Return the tiles of results, (N, O, TH, TW, 2, 2)."""
    b, g, a = matrices(x)
    tiles, weights = b @ cut(x, padding) @ b.T, g @ weight @ g.T
    (n, c, th, tw), o = tiles.shape[:4], len(weight)
    if places_first:
        tiles, weights = tiles.transpose(4, 5, 1, 0, 2, 3), weights.transpose(2, 3, 0, 1)
    products = weights.reshape(16, o, c) @ tiles.reshape(16, c, n * th * tw)
    return a @ products.reshape(4, 4, o, n, th, tw).transpose(3, 2, 4, 5, 0, 1) @ a.T


def joined(tiles: Array, order: tuple[int, ...] = (0, 1, 2, 4, 3, 5)) -> Array:
    """Return images (N, O, 2 TH, 2 TW) of tiles (N, O, TH, TW, 2, 2)."""
    n, o, th, tw = tiles.shape[:4]
    return tiles.transpose(order).reshape(n, o, 2 * th, 2 * tw)


def tiles_mixed(order: tuple[int, ...]) -> Callable[..., Array]:
    """Return the convolution whose tiles come together in another order of axes."""

    def wrong(x: Array, weight: Array, bias: Array, padding: int) -> Array:
        height, width = (size + 2 * padding - 2 for size in x.shape[2:])
        y = joined(result_tiles(x, weight, padding), order)
        return y[:, :, :height, :width] + bias[:, None, None]

    return wrong


def places_last(x: Array, weight: Array, bias: Array, padding: int = 1) -> Array:
    """Return what comes out where the 16 places of a tile are not brought to the front."""
    height, width = (size + 2 * padding - 2 for size in x.shape[2:])
    return uncropped(x, weight, bias, padding, places_first=False)[:, :, :height, :width]
