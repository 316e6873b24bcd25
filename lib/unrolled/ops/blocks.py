"""How `conv2d` gets fast: im2col for a few images at a time, in buffers that stay in the cache.

The simple version writes all columns at once. For 100 images of 3 x 32 x 32 and a kernel of 5 x 5 that is 24 MB, which
travel to main memory and back before the product can start. Four changes, none to the result:

1. A block of 8 images at a time. Its columns (about 2 MB) are written, multiplied and overwritten while the cache still
   holds them, and the same buffers serve every block: no new memory, no page faults.
2. Images last: (C, H, W, N) instead of (N, C, H, W). One row of a shifted image is then OW * N neighbouring numbers,
   copied in one go; with N first it would be only OW.
3. The padding is part of the buffer. Its zeros are written once.
4. A last row of ones below the columns, with the bias as its weight. The product then adds the bias, and the product
   that gives the gradient by the weight gives the one by the bias too: two passes over the results less.

What is left besides the products is to write columns, twice, and to add them up again. `benchmarks/cpu.py` has the
products alone beside PyTorch: saving copies gets no further than these.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from threading import Lock
from typing import TypeVar

import numpy as np

from unrolled.device import Array, Module, array_module
from unrolled.ops import threads
from unrolled.ops.windows import Windows

T = TypeVar("T")
BLOCK_BYTES = 2 << 20  # columns of one block: about the size of a second-level cache
BLOCK_IMAGES = 8  # more make longer runs, but the images' values then lie too far apart to share cache lines

IMAGES_LAST = (1, 2, 3, 0)
IMAGES_FIRST = (3, 0, 1, 2)


class Block:
    """Buffers for `images` images and everything that a convolution makes of them."""

    def __init__(self, module: Module, images: int, weight: Array, windows: Windows) -> None:
        o, c, kh, kw = weight.shape
        (h, w), (oh, ow) = windows.size, windows.output_size
        (sh, sw), (ph, pw) = windows.stride, windows.padding
        self.padded = module.zeros((c, h + 2 * ph, w + 2 * pw, images), dtype=weight.dtype)
        self.image = self.padded[:, ph : ph + h, pw : pw + w]
        rows, places = c * kh * kw, oh * ow * images
        self.columns_and_ones = module.empty((rows + 1, places), dtype=weight.dtype)
        self.columns_and_ones[rows] = 1
        self.columns = self.columns_and_ones[:rows]
        columns = self.columns.reshape(c, kh, kw, oh, ow, images)
        self.output = module.empty((o, oh, ow, images), dtype=weight.dtype)
        self.outputs = self.output.reshape(o, places)
        bottom, right = sh * (oh - 1) + 1, sw * (ow - 1) + 1
        self._shifts = [
            (columns[:, i, j], self.padded[:, i : i + bottom : sh, j : j + right : sw])
            for i in range(kh)
            for j in range(kw)
        ]

    def unroll(self, x: Array) -> None:
        """Write the windows of x (N, C, H, W) to `columns` (C * KH * KW, OH * OW * N), as im2col does."""
        self.image[...] = x.transpose(IMAGES_LAST)
        for column, pixels in self._shifts:
            column[...] = pixels

    def fold(self, x: Array) -> None:
        """Add `columns` up where they came from, as col2im does, and write the sums to x (N, C, H, W).

        The padding is zeros again afterwards.
        """
        self.padded[...] = 0
        for column, pixels in self._shifts:
            pixels += column
        x[...] = self.image.transpose(IMAGES_FIRST)
        self.padded[...] = 0


def forward(x: Array, weight: Array, bias: Array | None, windows: Windows) -> Array:
    """Return the result of `conv2d` for arguments that are checked and share one dtype."""
    module = array_module(x)
    filters = _filters(module, weight, bias)
    y = module.empty((len(x), len(weight), *windows.output_size), dtype=x.dtype)

    def work(parts: Iterator[slice]) -> None:
        for part, block in with_blocks(parts, lambda images: Block(module, images, weight, windows)):
            block.unroll(x[part])
            module.matmul(filters, block.columns_and_ones, out=block.outputs)
            y[part] = block.output.transpose(IMAGES_FIRST)

    threads.share(work, _parts(module, len(x), weight, windows))
    return y


def backward(
    grad: Array, x: Array, weight: Array, windows: Windows, input_gradient: bool
) -> tuple[Array | None, Array, Array]:
    """Return the result of `conv2d_backward` for arguments that are checked and share one dtype."""
    module = array_module(x)
    filters = _filters(module, weight, None)
    grad_x = module.empty(x.shape, dtype=x.dtype) if input_gradient else None
    parts = _parts(module, len(x), weight, windows)
    total = _Total(module.zeros(filters.T.shape, dtype=x.dtype), parts)

    def work(parts: Iterator[slice]) -> None:
        for part, block in with_blocks(parts, lambda images: Block(module, images, weight, windows)):
            block.output[...] = grad[part].transpose(IMAGES_LAST)
            block.unroll(x[part])
            # BLAS takes (K, L) @ (L, O) faster than its transpose: the long axis of the columns is read as it lies.
            total.add(part, module.matmul(block.columns_and_ones, block.outputs.T))
            if grad_x is not None:
                module.matmul(filters[:, :-1].T, block.outputs, out=block.columns)
                block.fold(grad_x[part])

    threads.share(work, parts)
    return grad_x, total.sum[:-1].T.reshape(weight.shape), total.sum[-1]


class _Total:
    """A sum over the blocks that adds them in their order, whichever thread has its own ready first.

    So the number of threads changes no bit of it.
    """

    def __init__(self, zeros: Array, parts: Sequence[slice]) -> None:
        self.sum = zeros
        self._order, self._ready, self._lock = deque(parts), dict[int, Array](), Lock()

    def add(self, part: slice, value: Array) -> None:
        """Add the value of a block, as soon as those before it are there."""
        with self._lock:
            self._ready[part.start] = value
            while self._order and self._order[0].start in self._ready:
                self.sum += self._ready.pop(self._order.popleft().start)


def _filters(module: Module, weight: Array, bias: Array | None) -> Array:
    """Each filter as a row, its bias last: (O, C * KH * KW + 1)."""
    o, *shape = weight.shape
    filters = module.empty((o, prod(shape) + 1), dtype=weight.dtype)
    filters[:, :-1] = weight.reshape(o, prod(shape))
    filters[:, -1] = 0 if bias is None else bias
    return filters


def _parts(module: Module, n: int, weight: Array, windows: Windows) -> list[slice]:
    """Slices of n images, a block each."""
    return parts_of(module, n, prod(weight.shape[1:]) * prod(windows.output_size) * weight.dtype.itemsize)


def parts_of(
    module: Module, n: int, image_bytes: int = 0, block_bytes: int = BLOCK_BYTES, most: int = BLOCK_IMAGES
) -> list[slice]:
    """Return slices of n images, a block each; only the last can be smaller. On a GPU one block takes all."""
    images = max(1, min(most, block_bytes // max(1, image_bytes))) if module is np else max(1, n)
    return [slice(start, min(start + images, n)) for start in range(0, n, images)]


def with_blocks(parts: Iterable[slice], block_of: Callable[[int], T]) -> Iterator[tuple[slice, T]]:
    """Yield each slice with a block of its size, from block_of(images): the same one for as long as the size stays."""
    images = 0
    for part in parts:
        if part.stop - part.start != images:
            images = part.stop - part.start
            block = block_of(images)
        yield part, block
