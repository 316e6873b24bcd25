"""How max-pooling gets fast: the largest pixel of every window and where it lies, a few images at a time.

The plain way compares every pixel of a k x k window with the largest so far and remembers where that one was: k * k
comparisons over arrays that travel to main memory and back. Four changes, none to the result:

1. Rows first, windows then. The largest pixel of a window is the largest of its rows' largest: k comparisons along the
   rows, then k down the columns, instead of k * k. The first maximum in row-major order is found on the way: it lies in
   the first row that has it, and there in the first column.
2. A block of images at a time, small enough that the cache holds all of it, in buffers that serve every block.
3. Images last: (H, W, images). Every step from pixel to pixel is then the same for a whole run of neighbouring numbers,
   however small the windows and their stride are.
4. Where a maximum lies is kept as its distance from the first pixel of the window, counted in pixels of the image,
   i * W + j: mostly a single byte. Every further candidate lies farther. So the winner's distance is the largest among
   the distances of those that took the lead, a maximum again, and cheaper than a choice by mask.

The backward pass needs no windows at all: one addition at the places that were found (`max_unpool2d`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from threading import get_ident
from typing import Any

import numpy as np

from unrolled.device import Array, Module, array_module
from unrolled.ops import threads
from unrolled.ops.blocks import parts_of
from unrolled.ops.windows import Windows

BLOCK_BYTES = 256 << 10  # images of one block; all its buffers take about three times as much

IMAGES_LAST = (1, 2, 0)
IMAGES_FIRST = (2, 0, 1)


def find(x: Array, windows: Windows) -> tuple[Array, Array]:
    """Return the largest pixel of each window of x (N, C, H, W), dtype as x, and its place row * W + column, int64.

    Both are (N, C, OH, OW). Of equal maxima the first in row-major order. Where a window has a NaN the pixel is NaN and
    its place is wrong.
    """
    module = array_module(x)
    images = x.reshape(prod(x.shape[:2]), *windows.size)
    shape = (len(images), *windows.output_size)
    y, indices = module.empty(shape, dtype=x.dtype), module.empty(shape, dtype="int64")

    def work(parts: Iterator[slice]) -> None:
        for part in parts:
            _block(module, part.stop - part.start, x.dtype, windows).find(images[part], y[part], indices[part])

    image_bytes = prod(windows.size) * x.dtype.itemsize
    threads.share(work, parts_of(module, len(images), image_bytes, BLOCK_BYTES, most=BLOCK_BYTES))
    pooled = (*x.shape[:2], *windows.output_size)
    return y.reshape(pooled), indices.reshape(pooled)


class _Block:
    """Buffers for some images, and the views of them through which the windows slide."""

    def __init__(self, module: Module, images: int, dtype: Any, windows: Windows) -> None:
        (h, w), (oh, ow) = windows.size, windows.output_size
        (kh, kw), (sh, sw), (ph, pw) = windows.kernel_size, windows.stride, windows.padding
        distance = np.min_scalar_type((kh - 1) * w + kw - 1)
        padded = module.full((h + 2 * ph, w + 2 * pw, images), lowest(dtype), dtype=dtype)
        self._image = padded[ph : ph + h, pw : pw + w]
        self._rows, columns = windows.slides()
        self._columns = [padded[:, column] for column in columns]
        self._in_row = _Leader(module, (h + 2 * ph, ow, images), dtype, distance)
        self._in_window = _Leader(module, (oh, ow, images), dtype, distance)
        self._width = w
        top, left = sh * module.arange(oh).reshape(oh, 1) - ph, sw * module.arange(ow) - pw
        self._corner = top * w + left
        self._nearest = None  # the distance of the first pixel that is no padding
        if ph or pw:
            nearest = module.maximum(0 - top, 0) * w + module.maximum(0 - left, 0)
            self._nearest = nearest.astype(distance).reshape(oh, ow, 1)

    def find(self, x: Array, y: Array, indices: Array) -> None:
        """`find` for x (images, H, W), into y and indices (images, OH, OW)."""
        module = array_module(x)
        self._image[...] = x.transpose(IMAGES_LAST)
        largest, distances = self._in_row.among(self._columns, [0] * len(self._columns), 1)
        largest, distances = self._in_window.among(
            [largest[row] for row in self._rows], [distances[row] for row in self._rows], self._width
        )
        if self._nearest is not None:  # a window all of the lowest value has no leader but its corner
            module.maximum(distances, self._nearest, out=distances)
        y[...] = largest.transpose(IMAGES_FIRST)
        module.add(distances.transpose(IMAGES_FIRST), self._corner, out=indices)


class _Leader:
    """Of several arrays, at every place: the largest value, and the distance of the first that has it."""

    def __init__(self, module: Module, shape: tuple[int, ...], dtype: Any, distance: Any) -> None:
        self._largest = module.empty(shape, dtype=dtype)
        self._distances, self._distance = (module.empty(shape, dtype=distance) for _ in range(2))
        self._leads = module.empty(shape, dtype=bool)

    def among(self, values: Sequence[Array], distances: Sequence[Any], step: int) -> tuple[Array, Array]:
        """`step` is the distance from one array to the next, `distances` those inside of each: arrays or numbers."""
        module, largest = array_module(values[0]), values[0]
        self._distances[...] = distances[0]
        for number in range(1, len(values)):
            module.greater(values[number], largest, out=self._leads)
            module.maximum(values[number], largest, out=self._largest)
            largest = self._largest
            self._distance[...] = distances[number] + number * step
            self._distance *= self._leads.view("uint8")
            module.maximum(self._distances, self._distance, out=self._distances)
        return largest, self._distances


def lowest(dtype: Any) -> Any:
    """Return a value that no pixel of this dtype is below."""
    if dtype.kind == "f":
        return -float("inf")
    return np.iinfo(dtype).min if dtype.kind in "iu" else False


def _block(module: Module, images: int, dtype: Any, windows: Windows) -> _Block:
    """A block of this size: in NumPy, unless it is large, the one that this thread has used before."""
    if module is np and images * prod(windows.size) * dtype.itemsize <= BLOCK_BYTES:
        return _kept_block(get_ident(), images, dtype, windows)
    return _Block(module, images, dtype, windows)


@lru_cache(maxsize=32)
def _kept_block(thread: int, images: int, dtype: Any, windows: Windows) -> _Block:
    """A block for each thread, kept for the next call: fresh memory costs a small batch more than the search in it."""
    return _Block(np, images, dtype, windows)
