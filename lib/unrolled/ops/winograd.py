"""Convolution with 3 x 3 kernels in fewer multiplications: Winograd's minimal filtering.

F(m x m, 3 x 3) computes a tile of m x m results from (m + 2) x (m + 2) pixels. Pixels and weights are transformed,
multiplied value by value, and the products transformed back: 16 multiplications for 4 results instead of 36 with m = 2,
36 for 16 instead of 144 with m = 4. The matrices, and the step to matrix products (the sum over channels makes of each
of the 16 or 36 values one product of (O, C) with (C, tiles)), are those of A. Lavin and S. Gray, "Fast algorithms for
convolutional neural networks", 2015, arXiv:1509.09308, sections 4.1 to 4.3; the idea is S. Winograd's, 1980.

The larger the tile, the larger the numbers in the matrices, and the more of a result's digits are lost. But the fewer
are the products, and so are the values to transform for each result. With the small tile, cutting, transforming and
writing back take longer than what is left of the products: fewer multiplications are not as much less time.

How it gets fast here: a transform B.T d B of all tiles at once is one matrix product, of the Kronecker product of B.T
with itself. Tiles are cut as `unrolled.ops.blocks` cuts windows, some images at a time and images last. The pixels lie
sorted by their place in a tile, so that each copy reads neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from unrolled.device import Array, Module, array_module
from unrolled.kernels.columns import meet
from unrolled.ops.arguments import IntOrPair, rounds_once
from unrolled.ops.blocks import IMAGES_FIRST, IMAGES_LAST, parts_of, with_blocks
from unrolled.ops.conv_arguments import backward_arguments, forward_arguments
from unrolled.ops.windows import Windows

Rows = tuple[tuple[float, ...], ...]

PIXELS: dict[int, Rows] = {
    2: ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    4: (
        (4, 0, -5, 0, 1, 0),
        (0, -4, -4, 1, 1, 0),
        (0, 4, -4, -1, 1, 0),
        (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
}
"""B.T by the size of the tile (Lavin and Gray): what pixels are multiplied by."""
WEIGHTS: dict[int, Rows] = {
    2: ((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
    4: (
        (1 / 4, 0, 0),
        (-1 / 6, -1 / 6, -1 / 6),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6),
        (0, 0, 1),
    ),
}
"""G: what weights are multiplied by."""
RESULTS: dict[int, Rows] = {
    2: ((1, 1, 1, 0), (0, 1, -1, -1)),
    4: ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
}
"""A.T: what products are multiplied by."""


@rounds_once
def winograd_conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: IntOrPair = 1,
    padding: IntOrPair = 0,
    *,
    tile: int = 2,
) -> Array:
    """Convolve as `conv2d` does, by Winograd's F(tile x tile, 3 x 3): (N, O, OH, OW).

    tile: 2 or 4. float32 in, float32 out, computed in float32; with tile = 4 the error is some ten times larger.
    Raises ValueError as `conv2d` does, for kernels other than 3 x 3, strides other than 1 and other tiles.
    """
    x, weight, bias, windows = forward_arguments(x, weight, bias, stride, padding)
    check(windows, tile)
    return forward(x, weight, bias, windows, tile)


@rounds_once
def winograd_conv2d_backward(
    grad: Array,
    x: Array,
    weight: Array,
    stride: IntOrPair = 1,
    padding: IntOrPair = 0,
    *,
    tile: int = 2,
    input_gradient: bool = True,
) -> tuple[Array | None, Array, Array]:
    """Return (grad_x, grad_weight, grad_bias) as `conv2d_backward` does, by the transposes of Winograd's matrices.

    Raises ValueError as `winograd_conv2d` does, and for a grad that does not fit.
    """
    grad, x, weight, windows = backward_arguments(grad, x, weight, stride, padding)
    check(windows, tile)
    return backward(grad, x, weight, windows, input_gradient, tile)


def check(windows: Windows, tile: int = 2) -> None:
    """Raise ValueError unless kernels are 3 x 3, the stride is 1, and the tile is 2 or 4."""
    other = "; the methods gemm and fft take any"
    if windows.kernel_size != (3, 3):
        raise ValueError(f"weight has kernels of {windows.kernel_size}; expected (3, 3) for Winograd's method{other}")
    if windows.stride != (1, 1):
        raise ValueError(f"stride is {windows.stride}; expected 1 for Winograd's method{other}")
    if tile not in PIXELS:
        raise ValueError(f"tile is {tile!r}; expected 2 or 4")


class Block:
    """Buffers for the tiles of some images. With T = tile + 2 and P = TH * TW * N tiles:

    `patches` (T * T, C, P) are pixels as they are, `pixels` the same transformed, `products` (T * T, O, P) and
    `results` (tile * tile, O, P) what becomes of them. `parts[i, j][:, row, column]` is the padded pixel
    (row * tile + i, column * tile + j): what stands at one place of neighbouring tiles lies side by side.
    """

    def __init__(self, module: Module, images: int, weight: Array, windows: Windows, tile: int) -> None:
        (o, c), (th, tw), side = weight.shape[:2], _tiles(windows, tile), tile + 2
        self.parts = module.zeros((tile, tile, c, th + 1, tw + 1, images), dtype=weight.dtype)
        self.patches = module.empty((side**2, c, th * tw * images), dtype=weight.dtype)
        self.pixels = module.empty(self.patches.shape, dtype=weight.dtype)
        self.products = module.empty((side**2, o, th * tw * images), dtype=weight.dtype)
        self.results = module.empty((tile**2, o, th * tw * images), dtype=weight.dtype)
        patches = self.patches.reshape(side, side, c, th, tw, images)
        results = self.results.reshape(tile, tile, o, th, tw, images)
        rows, columns = (
            [meet(size, tiles + 1, tile, place - padding) for place in range(tile)]
            for size, padding, tiles in zip(windows.size, windows.padding, (th, tw), strict=True)
        )
        self._images, self._patches, self._results = [], [], []
        for i in range(side):
            for j in range(side):
                (down, row), (right, column) = divmod(i, tile), divmod(j, tile)
                part = self.parts[row, column]
                self._patches.append((patches[i, j], part[:, down : down + th, right : right + tw]))
                if i < tile and j < tile:
                    self._images.append((part[:, rows[i][0], columns[j][0]], (..., rows[i][1], columns[j][1])))
                    oh, ow = (len(range(k, size, tile)) for k, size in zip((i, j), windows.output_size, strict=True))
                    strided = slice(i, None, tile), slice(j, None, tile)
                    self._results.append((results[i, j][:, :oh, :ow], (..., *strided)))

    def cut(self, x: Array) -> None:
        """Write the tiles of x (N, C, H, W) to `patches`."""
        for part, pixels in self._images:
            part[...] = x[pixels].transpose(IMAGES_LAST)
        for patch, part in self._patches:
            patch[...] = part

    def fold(self, x: Array) -> None:
        """Add `patches` up where they came from, and write the sums to x (N, C, H, W). The padding is zeros again."""
        self.parts[...] = 0
        for patch, part in self._patches:
            part += patch
        for part, pixels in self._images:
            x[pixels] = part.transpose(IMAGES_FIRST)
        self.parts[...] = 0

    def give(self, y: Array) -> None:
        """Write `results` to y (N, O, OH, OW)."""
        for result, places in self._results:
            y[places] = result.transpose(IMAGES_FIRST)

    def take(self, grad: Array) -> None:
        """Write grad (N, O, OH, OW) to `results`, zeros where a tile reaches beyond it."""
        self.results[...] = 0
        for result, places in self._results:
            result[...] = grad[places].transpose(IMAGES_LAST)


def forward(x: Array, weight: Array, bias: Array | None, windows: Windows, tile: int = 2) -> Array:
    """Return the result of `winograd_conv2d` for arguments that are checked and share one dtype."""
    module = array_module(x)
    for_pixels, for_results = (_matrix(module, rows[tile], x.dtype) for rows in (PIXELS, RESULTS))
    filters = _filters(module, weight, tile)
    y = module.empty((len(x), len(weight), *windows.output_size), dtype=x.dtype)
    for part, block in _blocks(module, len(x), weight, windows, tile):
        block.cut(x[part])
        module.matmul(for_pixels, _flat(block.patches), out=_flat(block.pixels))
        module.matmul(filters, block.pixels, out=block.products)
        module.matmul(for_results, _flat(block.products), out=_flat(block.results))
        if bias is not None:
            block.results += bias[:, None]
        block.give(y[part])
    return y


def backward(
    grad: Array, x: Array, weight: Array, windows: Windows, input_gradient: bool, tile: int = 2
) -> tuple[Array | None, Array, Array]:
    """Return the result of `winograd_conv2d_backward` for arguments that are checked and share one dtype.

    Each product of the way there gives two on the way back, as in `unrolled.ops.affine_backward`.
    """
    module, (o, c) = array_module(x), weight.shape[:2]
    for_pixels, for_weights, for_results = (_matrix(module, rows[tile], x.dtype) for rows in (PIXELS, WEIGHTS, RESULTS))
    filters = _filters(module, weight, tile)
    grad_filters = module.zeros(filters.shape, dtype=x.dtype)
    grad_x = module.empty(x.shape, dtype=x.dtype) if input_gradient else None
    for part, block in _blocks(module, len(x), weight, windows, tile):
        block.cut(x[part])
        module.matmul(for_pixels, _flat(block.patches), out=_flat(block.pixels))
        block.take(grad[part])
        module.matmul(for_results.T, _flat(block.results), out=_flat(block.products))
        grad_filters += module.matmul(block.products, block.pixels.transpose(0, 2, 1))
        if grad_x is not None:
            module.matmul(filters.transpose(0, 2, 1), block.products, out=block.pixels)
            module.matmul(for_pixels.T, _flat(block.pixels), out=_flat(block.patches))
            block.fold(grad_x[part])
    grad_weight = module.matmul(for_weights.T, _flat(grad_filters)).T.reshape(o, c, 3, 3)
    return grad_x, grad_weight.copy(), grad.sum(axis=(0, 2, 3))


def _filters(module: Module, weight: Array, tile: int) -> Array:
    """The weights, transformed: (T * T, O, C)."""
    o, c = weight.shape[:2]
    rows = module.matmul(_matrix(module, WEIGHTS[tile], weight.dtype), weight.reshape(o * c, 9).T)
    return rows.reshape(len(rows), o, c)


def _matrix(module: Module, rows: Rows, dtype: object) -> Array:
    """The Kronecker product of a matrix with itself: it transforms rows and columns of a flat tile at once.

    It is written on the device, value by value, since nothing moves there by itself.
    """
    single = module.zeros((len(rows), len(rows[0])), dtype=dtype)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            if value:
                single[i, j] = value
    return (single[:, None, :, None] * single[:, None, :]).reshape(len(rows) ** 2, len(rows[0]) ** 2)


def _flat(x: Array) -> Array:
    """A matrix (K, L) of an array (K, ...), on the same memory."""
    return x.reshape(len(x), prod(x.shape[1:]))


def _tiles(windows: Windows, tile: int) -> tuple[int, int]:
    th, tw = (-(-size // tile) for size in windows.output_size)
    return th, tw


def _blocks(module: Module, n: int, weight: Array, windows: Windows, tile: int) -> Iterator[tuple[slice, Block]]:
    """Slices of n images, each with a block of its size."""
    image_bytes = (tile + 2) ** 2 * prod(_tiles(windows, tile)) * weight.shape[1] * weight.dtype.itemsize
    parts = parts_of(module, n, image_bytes)
    return with_blocks(parts, lambda images: Block(module, images, weight, windows, tile))
