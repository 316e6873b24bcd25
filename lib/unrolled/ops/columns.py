"""Patches as columns, and back: `im2col` and `col2im`."""

from __future__ import annotations

from math import prod

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.ops.allocation import empty
from unrolled.ops.arguments import NCHW, IntOrPair, check_array, check_axes, check_shape, rounds_once
from unrolled.ops.windows import Windows


def im2col(x: Array, kernel_size: IntOrPair, stride: IntOrPair = 1, padding: IntOrPair = 0) -> Array:
    """Return every window of x (N, C, H, W) as a column: (C * KH * KW, N * OH * OW), dtype as x.

    Rows run over (C, KH, KW), columns over (N, OH, OW). The padding is zeros.
    Raises ValueError where the window does not fit.
    """
    check_array("x", x)
    check_axes("x", x, "N, C, H, W")
    n, c, h, w = x.shape
    windows = Windows.over((h, w), kernel_size, stride, padding, image=f"x of shape {x.shape}")
    if kernels.take(x):
        by_image = empty(x, "the columns of im2col", (n, c * prod(windows.kernel_size), prod(windows.output_size)))
        kernels.im2col((x,), (by_image,), windows.constants(c))
        return by_image.transpose(1, 0, 2).reshape(by_image.shape[1], n * by_image.shape[2])
    columns = array_module(x).zeros((c, *windows.kernel_size, n, *windows.output_size), dtype=x.dtype)
    by_channel = x.transpose(1, 0, 2, 3)
    for i, j, outputs, inputs in windows.offsets():
        columns[:, i, j][outputs] = by_channel[inputs]
    return columns.reshape(c * prod(windows.kernel_size), n * prod(windows.output_size))


@rounds_once
def col2im(
    columns: Array, x_shape: NCHW, kernel_size: IntOrPair, stride: IntOrPair = 1, padding: IntOrPair = 0
) -> Array:
    """Add every column back where `im2col` took it from: an array of x_shape (N, C, H, W), dtype as columns.

    This is the transpose of `im2col`, not its inverse: a pixel gets the sum over all windows that cover it.
    Raises ValueError if columns is not (C * KH * KW, N * OH * OW) for this x_shape.
    """
    windows = _checked(columns, x_shape, kernel_size, stride, padding)
    (n, c, h, w), (kh, kw), (oh, ow) = x_shape, windows.kernel_size, windows.output_size
    if kernels.take(columns):
        x = empty(columns, "the result of col2im", (n, c, h, w))
        by_image = columns.reshape(c * kh * kw, n, oh * ow).transpose(1, 0, 2)
        kernels.col2im((by_image,), (x,), windows.constants(c))
        return x
    columns = columns.reshape(c, kh, kw, n, oh, ow)
    x = array_module(columns).zeros((n, c, h, w), dtype=columns.dtype)
    by_channel = x.transpose(1, 0, 2, 3)
    for i, j, outputs, inputs in windows.offsets():
        by_channel[inputs] += columns[:, i, j][outputs]
    return x


@rounds_once
def col2im_loops(
    columns: Array, x_shape: NCHW, kernel_size: IntOrPair, stride: IntOrPair = 1, padding: IntOrPair = 0
) -> Array:
    """Compute `col2im` with loops: add each column, folded, where its window stands. The definition, and slow."""
    windows = _checked(columns, x_shape, kernel_size, stride, padding)
    (n, c, h, w), (kh, kw), (oh, ow) = x_shape, windows.kernel_size, windows.output_size
    (sh, sw), (ph, pw) = windows.stride, windows.padding
    padded = array_module(columns).zeros((n, c, h + 2 * ph, w + 2 * pw), dtype=columns.dtype)
    at = 0
    for image in range(n):
        for top in range(0, oh * sh, sh):
            for left in range(0, ow * sw, sw):
                padded[image, :, top : top + kh, left : left + kw] += columns[:, at].reshape(c, kh, kw)
                at += 1
    return padded[:, :, ph : ph + h, pw : pw + w].copy()


def _checked(columns: Array, x_shape: NCHW, kernel_size: IntOrPair, stride: IntOrPair, padding: IntOrPair) -> Windows:
    if len(x_shape) != 4:
        raise ValueError(f"x_shape is {tuple(x_shape)}; expected 4 sizes (N, C, H, W)")
    n, c, h, w = x_shape
    windows = Windows.over((h, w), kernel_size, stride, padding, image=f"x_shape {tuple(x_shape)}")
    expected = c * prod(windows.kernel_size), n * prod(windows.output_size)
    check_array("columns", columns)
    check_shape("columns", columns, expected, f"x_shape {tuple(x_shape)}")
    return windows
