"""Convolution by transforms: through frequencies, and by Winograd's F(2x2, 3x3), and in tiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.domain import edge_size
from unrolled.checks.mistakes import Mistake, alone, given
from unrolled.checks.spec import Draw, Function, Inputs, draw_all, normal, normals
from unrolled.device import Array, array_module
from unrolled.ops.winograd import PIXELS, RESULTS, WEIGHTS

TILE = 2  # results of a tile, each way
MATRICES = 3  # B.T, G and A.T, which may go to the GPU
Kept = tuple[Array, Array, Array]


def matrices(x: Array) -> Kept:
    """Return B.T, G and A.T where x lies, in its dtype."""
    module = array_module(x)
    b, g, a = (module.asarray(np.array(rows[TILE], x.dtype)) for rows in (PIXELS, WEIGHTS, RESULTS))
    return b, g, a


# through frequencies


def by_fft(
    x: Array,
    weight: Array,
    bias: Array,
    padding: int = 0,
    *,
    wraps: bool = False,
    even: bool = False,
    crop: bool = True,
    begins: Callable[[int, int], int] | None = None,
) -> Array:
    """Return the convolution (N, O, OH, OW) of x (N, C, H, W), weight (O, C, KH, KW), bias (O,), by real transforms.

    Mistakes are transforms that are too short, so that it `wraps` round; a way back that takes the images to have an
    `even` width; no crop; and a first result elsewhere than at kernel - 1 - padding: at begins(kernel, padding).
    """
    module = array_module(x)
    sizes, kernel = x.shape[2:], weight.shape[2:]
    lengths = [size if wraps else size + k - 1 for size, k in zip(sizes, kernel, strict=True)]
    pixels = module.fft.rfft2(x, lengths).transpose(2, 3, 0, 1)
    weights = module.fft.rfft2(weight[:, :, ::-1, ::-1], lengths).transpose(2, 3, 1, 0)
    whole = module.fft.irfft2(module.matmul(pixels, weights).transpose(2, 3, 0, 1), None if even else lengths)
    starts = [begins(k, padding) if begins else k - 1 - padding for k in kernel]
    outputs = [size + 2 * padding - k + 1 for size, k in zip(sizes, kernel, strict=True)]
    rows, columns = (slice(start, start + size) for start, size in zip(starts, outputs, strict=True))
    return (whole[:, :, rows, columns] if crop else whole) + bias[:, None, None]


ONE_CHANNEL = "only the first channel counts: the results are sums over all of them"
BOTH = "weight[:, :, ::-1, ::-1] turns both"

FFT_MISTAKES = (
    given("the weight is not flipped: a product of spectra flips it", weight=lambda weight: weight[:, :, ::-1, ::-1]),
    given(f"only the rows of the weight are flipped: {BOTH}", weight=lambda weight: weight[:, :, :, ::-1]),
    given(f"only the columns of the weight are flipped: {BOTH}", weight=lambda weight: weight[:, :, ::-1]),
    given(
        "the transform is circular, and too short here: what leaves at one end comes in at the other. "
        "Lengths of size + kernel - 1 leave room",
        wraps=True,
    ),
    given("the results of all windows come back: crop them to those that are asked, (OH, OW)", crop=False),
    given(ONE_CHANNEL, x=lambda x: alone(x, slice(None), 0)),
    given("irfft2 needs the lengths, too: else it makes an even number of columns, and here they are odd", even=True),
    *(
        Mistake(
            "the crop begins at the wrong place: the first result lies at row and column kernel - 1 - padding",
            partial(by_fft, begins=begins),
        )
        for begins in (
            lambda kernel, padding: 0,
            lambda kernel, padding: padding,
            lambda kernel, padding: kernel - padding,
            lambda kernel, padding: kernel - 1,
            lambda kernel, padding: (kernel - 1) // 2,
        )
    ),
    given("the bias is missing", bias=lambda bias: 0 * bias),
    given("the padding is missing", padding=0),
    given("rows and columns of the weight are turned", weight=lambda weight: weight.swapaxes(2, 3)),
)


def layer(n: int, c: int, size: int, o: int, kernel: int, padding: int = 0) -> Inputs:
    """Return draws of what a convolution takes."""
    return {**arrays((n, c, size, size), (o, c, kernel, kernel)), "padding": padding}


def arrays(x: tuple[int, ...], weight: tuple[int, ...]) -> dict[str, Draw]:
    """Return draws of x and weight of these shapes, and of a bias."""
    return {"x": normal(*x), "weight": normal(*weight), "bias": normal(weight[0])}


def any_layer(rng: np.random.Generator, kernel: tuple[int, int] | None = None, usual: int = 0) -> Inputs:
    """Draw a convolution of any size with padding less than its kernel, which may be left out where it is the usual."""
    n, c, o = (edge_size(rng, 3) for _ in range(3))
    kernel = kernel or (edge_size(rng, 5), edge_size(rng, 5))
    padding = edge_size(rng, min(kernel) - 1, 0)
    size = [edge_size(rng, 9, max(1, k - 2 * padding)) for k in kernel]
    left_out = padding == usual and rng.random() < 0.5
    return draw_all(arrays((n, c, *size), (o, c, *kernel)), rng) | ({} if left_out else {"padding": padding})


def direct_flops(inputs: Inputs) -> float:
    """Return the operations of the direct convolution: a multiplication and an addition for each weight and result."""
    (n, _, *size), padding = inputs["x"].shape, inputs["padding"]
    kernel = inputs["weight"].shape[2:]
    outputs = prod(each + 2 * padding - k + 1 for each, k in zip(size, kernel, strict=True))
    return 2.0 * int(n * outputs * inputs["weight"].size)


# by Winograd's F(2x2, 3x3)


def both_sides(matrix: Array, x: Array) -> Array:
    """Return the product from the left, and with the transposed from the right."""
    return matrix @ x @ matrix.T


def transforms(
    tiles: Array, weight: Array, products: Array, *, pixels: Function = both_sides, others: Function = both_sides
) -> Kept:
    """Return tiles (..., 4, 4) and weight (O, C, 3, 3) transformed, both (..., 4, 4), and products (..., 2, 2).

    Mistakes multiply otherwise: pixels(B.T, tiles), others(G, weight) and others(A.T, products).
    """
    b, g, a = matrices(tiles)
    return pixels(b, tiles), others(g, weight), others(a, products)


TRANSFORM_MISTAKES = (
    Mistake(
        "the matrix of the pixels is given as B.T: B_T from the left, B_T.T from the right",
        partial(transforms, pixels=lambda b, tiles: b.T @ tiles @ b),
    ),
    Mistake(
        "from the right the matrix is turned: B_T @ tiles @ B_T.T",
        partial(transforms, pixels=lambda b, tiles: b @ tiles @ b),
    ),
    Mistake(
        "only rows are transformed: the transpose from the right does the columns",
        partial(transforms, pixels=np.matmul, others=np.matmul),
    ),
    Mistake(
        "only columns are transformed: the matrix from the left does the rows",
        partial(transforms, pixels=lambda b, x: x @ b.T, others=lambda matrix, x: x @ matrix.T),
    ),
)


def any_tiles(rng: np.random.Generator) -> Inputs:
    """Draw tiles, weights and products, with up to two axes before their last two."""
    before = [[edge_size(rng, 3) for _ in range(rng.integers(0, 3))] for _ in range(3)]
    return normals(rng, tiles=(*before[0], 4, 4), weight=(*before[1], 3, 3), products=(*before[2], 4, 4))


def cut(x: Array, padding: int) -> Array:
    """Return tiles (N, C, TH, TW, 4, 4) of x (N, C, H, W), which overlap by 2; zeros beyond the edges."""
    module = array_module(x)
    results = [size + 2 * padding - 2 for size in x.shape[2:]]
    around = [(padding, padding + -size % TILE) for size in results]
    padded = module.pad(x, ((0, 0), (0, 0), *around))
    windows = module.lib.stride_tricks.sliding_window_view(padded, (TILE + 2, TILE + 2), axis=(2, 3))
    return windows[:, :, ::TILE, ::TILE]


def by_winograd(
    x: Array,
    weight: Array,
    bias: Array,
    padding: int = 1,
    *,
    places: tuple[int, ...] = (4, 5),
    order: tuple[int, ...] = (0, 1, 2, 4, 3, 5),
    crop: bool = True,
) -> Array:
    """Return the convolution (N, O, OH, OW) with 3 x 3 kernels: 16 products of (O, C) with (C, tiles).

    Mistakes do not bring the `places` of tiles first, or turn them, join tiles (N, O, TH, TW, 2, 2) in another order of
    axes, or keep what reaches beyond the results.
    """
    b, g, a = matrices(x)
    tiles, weights = b @ cut(x, padding) @ b.T, g @ weight @ g.T
    (n, c, th, tw), o = tiles.shape[:4], len(weight)
    if places:
        tiles, weights = tiles.transpose(*places, 1, 0, 2, 3), weights.transpose(2, 3, 0, 1)
    products = weights.reshape(16, o, c) @ tiles.reshape(16, c, n * th * tw)
    results = a @ products.reshape(4, 4, o, n, th, tw).transpose(3, 2, 4, 5, 0, 1) @ a.T
    y = results.transpose(order).reshape(n, o, 2 * th, 2 * tw) + bias[:, None, None]
    height, width = (size + 2 * padding - 2 for size in x.shape[2:])
    return y[:, :, :height, :width] if crop else y


TOGETHER = "the axes of tiles and places are mixed: bring them to (N, O, TH, 2, TW, 2) before you reshape"

WINOGRAD_MISTAKES = (
    given(
        "the weight is flipped: only the way through frequencies needs that",
        weight=lambda weight: weight[:, :, ::-1, ::-1],
    ),
    given("the bias is missing", bias=lambda bias: 0 * bias),
    given("rows and columns of the weight are turned", weight=lambda weight: weight.swapaxes(2, 3)),
    given("rows and columns inside of a tile of results are turned", order=(0, 1, 2, 5, 3, 4)),
    given(TOGETHER, order=(0, 1, 2, 3, 4, 5)),
    given(TOGETHER, order=(0, 1, 4, 2, 5, 3)),
    given(
        "reshape keeps the order of the values: transpose the 4 x 4 places of tiles and weights to the front first",
        places=(),
    ),
    given("rows and columns are turned in the tiles of pixels, and not in those of weights", places=(5, 4)),
    given(ONE_CHANNEL, x=lambda x: alone(x, slice(None), 0)),
    given("of an odd size the last tile reaches beyond the results: crop to (OH, OW)", crop=False),
)


class SmallTransform:
    """Convolves a tile of at most `most` x `most` pixels with its kernel, in full: k - 1 rows and columns more."""

    def __init__(self, kernel: Array, most: int) -> None:
        self.kernel, self.most = kernel, most
        self.sizes: list[tuple[int, ...]] = []

    def __call__(self, tile: Array) -> Array:
        self.sizes.append(tile.shape)
        return full(tile, self.kernel)


def full(image: Array, kernel: Array) -> Array:
    """Return the full convolution (H + KH - 1, W + KW - 1) of an image (H, W): each pixel adds a flipped kernel."""
    y = np.zeros([size + k - 1 for size, k in zip(image.shape, kernel.shape, strict=True)], image.dtype)
    height, width = image.shape
    for i, row in enumerate(kernel):
        for j, value in enumerate(row):
            y[i : i + height, j : j + width] += value * image
    return y


def overlap_add(
    image: Array, kernel: int, step: int, convolve: Function, *, adds: bool = True, whole: bool = True
) -> Array:
    """Return the full convolution (H + kernel - 1, W + kernel - 1) of an image (H, W), from step x step pixels each.

    Mistakes are results put over each other, where nothing `adds`, and results of a tile that are not `whole`.
    """
    y = np.zeros([size + kernel - 1 for size in image.shape], image.dtype)
    for top in range(0, image.shape[0], step):
        for left in range(0, image.shape[1], step):
            tile = image[top : top + step, left : left + step]
            part = convolve(tile)
            height, width = part.shape if whole else tile.shape
            place = y[top : top + height, left : left + width]
            place[...] = part[:height, :width] + (place if adds else 0)
    return y


def tiled(rng: np.random.Generator, height: int, width: int, kernel: int, step: int) -> Inputs:
    """Draw an image, and a kernel in a transform for tiles of step x step pixels."""
    arrays = normals(rng, image=(height, width), weights=(kernel, kernel))
    convolve = SmallTransform(arrays["weights"], step)
    return {"image": arrays["image"], "kernel": kernel, "step": step, "convolve": convolve}


def any_image(rng: np.random.Generator) -> Inputs:
    """Draw an image, a kernel and a step of any sizes."""
    height, width, kernel, step = (edge_size(rng, most) for most in (9, 9, 5, 6))
    return tiled(rng, height, width, kernel, step)


def in_small_tiles(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Judge the values, and that no tile was larger than the transform."""
    sizes, step = inputs["convolve"].sizes, inputs["step"]
    found = mismatch(got, expected, 1e-4)
    if large := [size for size in sizes if max(size, default=0) > step]:
        line = f"you gave convolve a tile of {large[0]}; its transform has room for {step} x {step} (step)"
        return Mismatch((line, *(found.lines if found else ("the values are right",))))
    most = prod(-(-size // step) for size in inputs["image"].shape)  # so many tiles cover the image
    if found is None and len(sizes) > most:
        return Mismatch((f"right, but in {len(sizes)} tiles: {most} of step x step pixels cover the image",))
    return found
