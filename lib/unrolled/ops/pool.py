"""Max-pooling of x (N, C, H, W): the largest pixels, and where they were."""

from __future__ import annotations

from functools import reduce

import numpy as np

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.ops import maxima
from unrolled.ops.allocation import empty
from unrolled.ops.arguments import IntOrPair, check_arrays
from unrolled.ops.windows import Windows


def max_pool2d_loops(
    x: Array, kernel_size: IntOrPair, stride: IntOrPair | None = None, padding: IntOrPair = 0
) -> Array:
    """Max-pool with a loop over every axis: the definition, and the slowest way."""
    check_arrays(x=x)
    windows = pooling_windows(x.shape, kernel_size, stride, padding)
    (n, c, h, w), (oh, ow) = x.shape, windows.output_size
    (kh, kw), (sh, sw), (ph, pw) = windows.kernel_size, windows.stride, windows.padding
    y = array_module(x).empty((n, c, oh, ow), dtype=x.dtype)
    for image in range(n):
        for channel in range(c):
            for row in range(oh):
                for column in range(ow):
                    largest = None
                    for i in range(max(0, row * sh - ph), min(h, row * sh - ph + kh)):
                        for j in range(max(0, column * sw - pw), min(w, column * sw - pw + kw)):
                            pixel = x[image, channel, i, j]
                            if largest is None or pixel > largest or pixel != pixel:
                                largest = pixel
                    y[image, channel, row, column] = largest
    return y


def max_pool2d(x: Array, kernel_size: IntOrPair, stride: IntOrPair | None = None, padding: IntOrPair = 0) -> Array:
    """Return the largest pixel in each window of x (N, C, H, W): (N, C, OH, OW), dtype as x; NaN counts as largest.

    stride is kernel_size unless given; smaller strides overlap. Padding never wins, and must be smaller than the
    kernel, so that every window sees a pixel. Raises ValueError otherwise and where the window does not fit.
    """
    check_arrays(x=x)
    windows = pooling_windows(x.shape, kernel_size, stride, padding)
    if kernels.take(x) or kernels.take_half(x):
        y = empty(x, "the output of max_pool2d", (*x.shape[:2], *windows.output_size))
        kernels.max_pool((x,), (y,), windows.constants())
        return y
    module = array_module(x)
    rows, columns = windows.slides()
    padded = windows.pad(x, maxima.lowest(x.dtype))
    # The largest of a window is the largest of its rows' largest: k + k comparisons instead of k * k.
    in_row = reduce(module.maximum, [padded[..., column] for column in columns])
    y = reduce(module.maximum, [in_row[..., row, :] for row in rows])
    return y if windows.kernel_size != (1, 1) else y.astype(x.dtype)  # a window of one pixel left a view of x


def max_pool2d_with_indices(
    x: Array, kernel_size: IntOrPair, stride: IntOrPair | None = None, padding: IntOrPair = 0
) -> tuple[Array, Array]:
    """Return (`max_pool2d`, `max_pool2d_indices`), found together.

    With the indices, `max_unpool2d` is the backward pass. `unrolled.ops.maxima` says how it gets fast.
    """
    check_arrays(x=x)
    windows = pooling_windows(x.shape, kernel_size, stride, padding)
    if kernels.take(x):
        shape = (*x.shape[:2], *windows.output_size)
        y, indices = empty(x, "the output of max_pool2d", shape), empty(x, "the indices of max_pool2d", shape, "int64")
        kernels.max_pool_with_indices((x,), (y, indices), windows.constants())
        return y, indices
    module = array_module(x)
    y, indices = maxima.find(x, windows)
    nan = y != y
    if module is not np or nan.any():  # elsewhere the question would wait for the device, so it is not asked
        _, first_nan = maxima.find(x != x, windows)
        indices = module.where(nan, first_nan, indices)
    return y, indices


def max_pool2d_indices(
    x: Array, kernel_size: IntOrPair, stride: IntOrPair | None = None, padding: IntOrPair = 0
) -> Array:
    """Return where the largest pixel of each window lies in its image: row * W + column, int64 (N, C, OH, OW).

    Of equal maxima it is the first in row-major order; the first NaN, if there is one. Arguments as for `max_pool2d`.
    """
    return max_pool2d_with_indices(x, kernel_size, stride, padding)[1]


def pooling_windows(
    shape: tuple[int, ...], kernel_size: IntOrPair, stride: IntOrPair | None, padding: IntOrPair, image: str = ""
) -> Windows:
    """Return the windows of a pooling over x of shape (N, C, H, W), checked; a stride of None is kernel_size.

    Raises ValueError as `max_pool2d` says; `image` are the caller's words for x in the message.
    """
    if len(shape) != 4:
        raise ValueError(f"x has shape {shape}; expected 4 axes (N, C, H, W)")
    _, _, h, w = shape
    stride = kernel_size if stride is None else stride
    windows = Windows.over((h, w), kernel_size, stride, padding, image=image or f"x of shape {shape}")
    if any(p >= k for p, k in zip(windows.padding, windows.kernel_size, strict=True)):
        raise ValueError(
            f"padding {windows.padding} must be smaller than kernel_size {windows.kernel_size}: "
            "a window in the corner would see no pixel"
        )
    return windows
