"""Max-pooling of x (N, C, H, W), and the way back."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.device import Array, array_module
from unrolled.ops.arguments import IntOrPair, check_axes, check_shape
from unrolled.ops.windows import Windows


def max_pool2d_loops(
    x: Array, kernel_size: IntOrPair, stride: IntOrPair | None = None, padding: IntOrPair = 0
) -> Array:
    """Max-pool with a loop over every axis: the definition, and the slowest way."""
    windows = _windows(x, kernel_size, stride, padding)
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
    """The largest pixel in each window of x (N, C, H, W): (N, C, OH, OW), dtype as x; NaN counts as largest.

    stride is kernel_size unless given; smaller strides overlap. Padding never wins, and must be smaller than the
    kernel, so that every window sees a pixel. Raises ValueError otherwise and where the window does not fit.
    """
    windows = _windows(x, kernel_size, stride, padding)
    module = array_module(x)
    y = module.full((*x.shape[:2], *windows.output_size), _lowest(x.dtype), dtype=x.dtype)
    for _, _, outputs, inputs in windows.offsets():
        y[outputs] = module.maximum(y[outputs], x[inputs])
    return y


def max_pool2d_backward(
    grad: Array, x: Array, kernel_size: IntOrPair, stride: IntOrPair | None = None, padding: IntOrPair = 0
) -> Array:
    """Send grad (N, C, OH, OW) back to where each maximum came from: grad_x (N, C, H, W), dtype as grad.

    Of equal maxima the first in row-major order gets all of it; where windows overlap, what arrives adds up.
    """
    module = array_module(grad, x)
    windows = _windows(x, kernel_size, stride, padding)
    check_shape("grad", grad, (*x.shape[:2], *windows.output_size), f"x {x.shape}")
    largest = max_pool2d(x, *(windows.kernel_size, windows.stride, windows.padding))
    waiting = module.full(largest.shape, True, dtype=bool)
    grad_x = module.zeros(x.shape, dtype=grad.dtype)
    for _, _, outputs, inputs in windows.offsets():
        pixel = x[inputs]
        here = waiting[outputs] & ((pixel == largest[outputs]) | (pixel != pixel))
        waiting[outputs] &= ~here
        grad_x[inputs] += module.where(here, grad[outputs], 0)
    return grad_x


def _windows(x: Array, kernel_size: IntOrPair, stride: IntOrPair | None, padding: IntOrPair) -> Windows:
    check_axes("x", x, "N, C, H, W")
    h, w = x.shape[2:]
    stride = kernel_size if stride is None else stride
    windows = Windows.over((h, w), kernel_size, stride, padding, image=f"x of shape {x.shape}")
    if any(p >= k for p, k in zip(windows.padding, windows.kernel_size, strict=True)):
        raise ValueError(
            f"padding {windows.padding} must be smaller than kernel_size {windows.kernel_size}: "
            "a window in the corner would see no pixel"
        )
    return windows


def _lowest(dtype: Any) -> Any:
    """A value that no pixel is below."""
    if dtype.kind == "f":
        return -float("inf")
    return np.iinfo(dtype).min if dtype.kind in "iu" else False
