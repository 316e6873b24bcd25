"""Windows with gaps (dilation), which variants of exercises ask for and `ops` does not have: references, mistakes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l02_convolution import windows
from unrolled.checks.exercises.l02_convolution.windows import Size
from unrolled.checks.mistakes import Function, Mistake, converted, given, result
from unrolled.device import Array

Sizes = tuple[int, ...]


def output_size(size: Sizes, kernel_size: Sizes, stride: int = 1, padding: int = 0, dilation: int = 1) -> Size:
    """(OH, OW): where a window fits whose pixels lie `dilation` apart, so that it spans dilation * (K - 1) + 1."""
    return ops.conv2d_output_size((size[0], size[1]), reach(kernel_size, dilation), stride, padding)


def reach(kernel_size: Sizes, dilation: int = 1) -> Size:
    """The rows and columns that such a window spans."""
    height, width = (dilation * (k - 1) + 1 for k in kernel_size)
    return height, width


def spread(weight: Array, rows: int, columns: int) -> Array:
    """weight (O, C, KH, KW) with zeros between its numbers, so that they lie so many rows and columns apart."""
    o, c, kh, kw = weight.shape
    wide = np.zeros((o, c, rows * (kh - 1) + 1, columns * (kw - 1) + 1), weight.dtype)
    wide[:, :, ::rows, ::columns] = weight
    return wide


def conv2d(
    x: Array, weight: Array, bias: Array | None = None, stride: int = 1, padding: int = 0, dilation: int = 1
) -> Array:
    """Convolve x (N, C, H, W) with weight (O, C, KH, KW) whose numbers lie on pixels `dilation` apart."""
    return ops.conv2d(x, spread(weight, dilation, dilation), bias, stride, padding)


def column_axes(x_shape: Sizes, kernel_size: Sizes, stride: int, padding: int, dilation: int = 1) -> Sizes:
    """C, KH, KW, N, OH, OW: the sizes of all axes of columns."""
    return (x_shape[1], *kernel_size, x_shape[0], *output_size(x_shape[2:], kernel_size, stride, padding, dilation))


def col2im_dilated(
    columns: Array,
    x_shape: Sizes,
    kernel_size: Sizes,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    *,
    step: int | None = None,
    gap: int | None = None,
    overwrite: bool = False,
    backwards: bool = False,
) -> Array:
    """`ops.col2im` for windows whose pixels lie `dilation` apart: (N, C, H, W). columns is (C*KH*KW, N*OH*OW).

    Mistakes put the columns back with another `step` from window to window, or `gap` from place to place inside one.
    With `overwrite`, the last one to come stays. That is the last window, where the places are visited `backwards`.
    """
    (h, w), six = x_shape[2:], columns.reshape(column_axes(x_shape, kernel_size, stride, padding, dilation))
    step, gap, (oh, ow) = step or stride, gap or dilation, six.shape[4:]
    x = np.zeros((*x_shape[:2], h + 2 * padding, w + 2 * padding), columns.dtype)
    places = list(np.ndindex(*kernel_size))
    for i, j in reversed(places) if backwards else places:
        top, left = i * gap, j * gap
        pixels = x[:, :, top : top + step * oh : step, left : left + step * ow : step]
        values = six[:, i, j].swapaxes(0, 1)
        pixels[...] = values if overwrite else pixels + values
    return x[:, :, padding : padding + h, padding : padding + w]


def col2im_dilated_loops(
    columns: Array, x_shape: Sizes, kernel_size: Sizes, stride: int = 1, padding: int = 0, dilation: int = 1
) -> Array:
    """`col2im_dilated` window by window. The definition, and slow."""
    (h, w), (c, kh, kw, *places) = x_shape[2:], column_axes(x_shape, kernel_size, stride, padding, dilation)
    x = np.zeros((*x_shape[:2], h + 2 * padding, w + 2 * padding), columns.dtype)
    for at, (image, row, column) in enumerate(np.ndindex(*places)):
        top, left = row * stride, column * stride
        pixels = x[image, :, top : top + dilation * kh : dilation, left : left + dilation * kw : dilation]
        pixels += columns[:, at].reshape(c, kh, kw)
    return x[:, :, padding : padding + h, padding : padding + w]


def _reaching(says: str, span: Callable[[int, int], int]) -> Mistake:
    """The mistake of the usual formula with another reach of the window: span(kernel, dilation)."""

    def wrong(size: Size, kernel_size: Size, stride: int = 1, padding: int = 0, dilation: int = 1) -> Size:
        axes = zip(size, kernel_size, strict=True)
        height, width = ((s + 2 * padding - span(k, dilation)) // stride + 1 for s, k in axes)
        return height, width

    return Mistake(says, wrong)


def _windows(rows: Callable[[int], int], columns: Callable[[int], int]) -> Function:
    """Other distances between the pixels of a window, in as many places as there should be."""

    def wrong(y: Array, x: Array, weight: Array, bias: Array | None, stride: int, padding: int, dilation: int) -> Array:
        there = ops.conv2d(x, spread(weight, rows(dilation), columns(dilation)), bias, stride, padding)
        return there[:, :, : y.shape[2], : y.shape[3]]

    return wrong


def _too_few(y: Array, x: Array, weight: Array, stride: int, padding: int, dilation: int) -> Array:
    kh, kw = weight.shape[2:]
    oh, ow = ops.conv2d_output_size(x.shape[2:], (dilation * kh, dilation * kw), stride, padding)
    return y[:, :, :oh, :ow]


FROM_PIXEL_TO_PIXEL = "dilation counts from pixel to pixel: 1 is no gap at all, 2 leaves one pixel out"
# Mistakes about gaps, and after them those in the formula without gaps, made with the right reach.
SIZE_MISTAKES = (
    _reaching("the dilation seems to be missing: the window reaches further than its kernel", lambda k, d: k),
    _reaching(
        "k pixels have k - 1 steps between them: the window reaches over dilation * (k - 1) + 1 pixels",
        lambda k, d: d * k,
    ),
    _reaching("one is missing in the reach: the first pixel counts, too", lambda k, d: d * (k - 1)),
    _reaching(FROM_PIXEL_TO_PIXEL, lambda k, d: k + (k - 1) * d),
    _reaching("there is a gap between any two numbers of the kernel, not one in all", lambda k, d: k + d - 1),
    *(converted(mistake, ops.conv2d_output_size, kernel_size=reach) for mistake in windows.SIZE_MISTAKES),
)

CONVOLUTION_MISTAKES = (
    given("the dilation is missing: the pixels under the kernel lie dilation apart", dilation=1),
    result(
        "the window is as large as it should be, but its pixels lie side by side: they are i * dilation rows and "
        "j * dilation columns from its corner",
        _windows(lambda d: 1, lambda d: 1),
    ),
    result("the gaps count for columns, too: j * dilation", _windows(lambda d: d, lambda d: 1)),
    result("the gaps count for rows, too: i * dilation", _windows(lambda d: 1, lambda d: d)),
    result("the last places are missing: the window reaches over dilation * (k - 1) + 1 pixels", _too_few),
    given(FROM_PIXEL_TO_PIXEL, dilation=lambda dilation: dilation + 1),
    *windows.CONVOLUTION_MISTAKES,
)
