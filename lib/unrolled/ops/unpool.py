"""Max-unpooling: put values back where the maxima of a max-pooling came from. Values that meet on a pixel add up."""

from __future__ import annotations

import numpy as np

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.ops.allocation import empty
from unrolled.ops.arguments import IntOrPair, check_arrays, check_axes, check_shape, pair, rounds_once
from unrolled.ops.pool import max_pool2d, max_pool2d_indices, pooling_windows
from unrolled.ops.windows import Windows


@rounds_once
def max_unpool2d_loops(
    values: Array, x: Array, kernel_size: IntOrPair, stride: IntOrPair | None = None, padding: IntOrPair = 0
) -> Array:
    """Compute `max_unpool2d_mask` with a loop over every axis: the definition, and the slowest way."""
    windows = _checked(values, x, kernel_size, stride, padding)
    (n, c, h, w), (oh, ow) = x.shape, windows.output_size
    (kh, kw), (sh, sw), (ph, pw) = windows.kernel_size, windows.stride, windows.padding
    result = array_module(values, x).zeros(x.shape, dtype=values.dtype)
    for image in range(n):
        for channel in range(c):
            for row in range(oh):
                for column in range(ow):
                    largest, place = None, (0, 0)
                    for i in range(max(0, row * sh - ph), min(h, row * sh - ph + kh)):
                        for j in range(max(0, column * sw - pw), min(w, column * sw - pw + kw)):
                            pixel = x[image, channel, i, j]
                            nan_first = pixel != pixel and largest == largest
                            if largest is None or pixel > largest or nan_first:
                                largest, place = pixel, (i, j)
                    result[image, channel, place[0], place[1]] += values[image, channel, row, column]
    return result


@rounds_once
def max_unpool2d_mask(
    values: Array, x: Array, kernel_size: IntOrPair, stride: IntOrPair | None = None, padding: IntOrPair = 0
) -> Array:
    """Put values (N, C, OH, OW) where the maxima of x (N, C, H, W) are: (N, C, H, W), dtype as values; 0 elsewhere.

    By masks: for each place inside the window, a mask of the windows whose maximum lies there. Of equal maxima the
    first in row-major order gets the value; where windows overlap, values add up. Other arguments as for `max_pool2d`.
    Raises ValueError if values is not of the shape that `max_pool2d` gives.
    """
    windows = _checked(values, x, kernel_size, stride, padding)
    module = array_module(values, x)
    largest = max_pool2d(x, windows.kernel_size, windows.stride, windows.padding)
    waiting = module.full(largest.shape, True, dtype=bool)
    result = module.zeros(x.shape, dtype=values.dtype)
    for _, _, outputs, inputs in windows.offsets():
        pixel = x[inputs]
        here = waiting[outputs] & ((pixel == largest[outputs]) | (pixel != pixel))
        waiting[outputs] &= ~here
        result[inputs] += module.where(here, values[outputs], 0)
    return result


@rounds_once
def max_unpool2d(values: Array, indices: Array, size: IntOrPair, windows: Windows | None = None) -> Array:
    """Put values (N, C, OH, OW) at indices (the same shape) of images of size (H, W): (N, C, H, W), 0 elsewhere.

    An index is row * W + column, as `max_pool2d_indices` gives them. Values that share an index add up. dtype as
    values. Raises ValueError for shapes that differ and (for NumPy arrays) indices outside of the image, TypeError for
    indices that are no integers.

    `windows` are those that `max_pool2d_indices` looked through, if the indices come from there. With them a GPU can
    gather: each pixel looks for its values, instead of each value writing, one by one where they meet.
    """
    module = check_arrays(values=values, indices=indices)
    check_axes("values", values, "N, C, OH, OW")
    check_shape("indices", indices, values.shape, f"values {tuple(values.shape)}")
    if indices.dtype.kind not in "iu":
        raise TypeError(f"indices are {indices.dtype}; expected integers")
    h, w = pair("size", size)
    if module is np and indices.size and not 0 <= indices.min() <= indices.max() < h * w:
        raise ValueError(f"indices run from {indices.min()} to {indices.max()}; expected 0 to {h * w - 1} in {h} x {w}")
    n, c = values.shape[:2]
    if windows is not None and kernels.take(values):
        check_shape("values", values, (n, c, *windows.output_size), f"windows over {windows.size}")
        result = empty(values, "the result of max_unpool2d", (n, c, h, w))
        indices = indices if indices.dtype.char == "l" else indices.astype("int64", copy=False)
        kernels.max_unpool((values, indices), (result,), windows.constants())
        return result
    result = module.zeros((n, c, h, w), dtype=values.dtype)
    first_pixels = module.arange(n * c, dtype="int64").reshape(n, c, 1, 1) * (h * w)
    places = indices.astype("int64", copy=False) + first_pixels
    module.add.at(result.reshape(-1), places.reshape(-1), values.reshape(-1))
    return result


@rounds_once
def max_pool2d_backward(
    grad: Array, x: Array, kernel_size: IntOrPair, stride: IntOrPair | None = None, padding: IntOrPair = 0
) -> Array:
    """Send grad (N, C, OH, OW) back to where each maximum came from: grad_x (N, C, H, W), dtype as grad.

    Of equal maxima the first in row-major order gets all of it; where windows overlap, what arrives adds up.
    """
    windows = _checked(grad, x, kernel_size, stride, padding, name="grad")
    return max_unpool2d(grad, max_pool2d_indices(x, kernel_size, stride, padding), x.shape[2:], windows)


def _checked(
    values: Array, x: Array, kernel_size: IntOrPair, stride: IntOrPair | None, padding: IntOrPair, name: str = "values"
) -> Windows:
    check_arrays(**{name: values, "x": x})
    windows = pooling_windows(x.shape, kernel_size, stride, padding)
    check_shape(name, values, (*x.shape[:2], *windows.output_size), f"x {x.shape}")
    return windows
