"""Convolution with gaps in its window (dilation): references and usual mistakes of variants of lesson 02."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l02_convolution.dilation import places
from unrolled.checks.spec import Function, Mistake
from unrolled.device import Array

Size = tuple[int, int]


def output_size(size: Size, kernel_size: Size, stride: int = 1, padding: int = 0, dilation: int = 1) -> Size:
    """(OH, OW) for a window whose pixels lie `dilation` apart."""
    return places(size, kernel_size, stride, padding, dilation)


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


# Output size


def sizes(formula: Callable[[int, int, int, int, int], int]) -> Function:
    """A mistake along each axis: formula(size, kernel, stride, padding, dilation)."""

    def wrong(size: Size, kernel_size: Size, stride: int = 1, padding: int = 0, dilation: int = 1) -> Size:
        height, width = (formula(s, k, stride, padding, dilation) for s, k in zip(size, kernel_size, strict=True))
        return height, width

    return wrong


def _reaching(reach: Callable[[int, int], int]) -> Function:
    """The usual formula with another reach of the window: reach(kernel, dilation)."""
    return sizes(lambda s, k, t, p, d: (s + 2 * p - reach(k, d)) // t + 1)


def _with_reach(function: Function) -> Function:
    """A mistake in the formula without gaps, made with the right reach."""

    def wrong(size: Size, kernel_size: Size, stride: int = 1, padding: int = 0, dilation: int = 1) -> Size:
        height, width = (dilation * (k - 1) + 1 for k in kernel_size)
        result: Size = function(size, (height, width), stride, padding)
        return result

    return wrong


def size_mistakes(mistakes: Sequence[Mistake]) -> tuple[Mistake, ...]:
    """Mistakes about gaps, and after them those in the formula without gaps."""
    return (
        Mistake("the dilation seems to be missing: the window reaches further than its kernel",
                _reaching(lambda k, d: k)),
        Mistake("k pixels have k - 1 steps between them: the window reaches over dilation * (k - 1) + 1 pixels",
                _reaching(lambda k, d: d * k)),
        Mistake("one is missing in the reach: the first pixel counts, too", _reaching(lambda k, d: d * (k - 1))),
        Mistake("dilation counts from pixel to pixel: 1 is no gap at all, 2 leaves one pixel out",
                _reaching(lambda k, d: k + (k - 1) * d)),
        Mistake("there is a gap between any two numbers of the kernel, not one in all",
                _reaching(lambda k, d: k + d - 1)),
        *(Mistake(mistake.says, _with_reach(mistake.function)) for mistake in mistakes),
    )  # fmt: skip


# Convolution


def _windows(rows: Callable[[int], int], columns: Callable[[int], int]) -> Function:
    """Other distances between the pixels of a window, in as many places as there should be."""

    def wrong(x: Array, weight: Array, bias: Any = None, stride: int = 1, padding: int = 0, dilation: int = 1) -> Array:
        oh, ow = output_size(x.shape[2:], weight.shape[2:], stride, padding, dilation)
        y = ops.conv2d(x, spread(weight, rows(dilation), columns(dilation)), bias, stride, padding)
        return np.ascontiguousarray(y[:, :, :oh, :ow])

    return wrong


def _without_gaps(
    x: Array, weight: Array, bias: Any = None, stride: int = 1, padding: int = 0, dilation: int = 1
) -> Array:
    return ops.conv2d(x, weight, bias, stride, padding)


def _too_few(x: Array, weight: Array, bias: Any = None, stride: int = 1, padding: int = 0, dilation: int = 1) -> Array:
    reach = tuple(dilation * k for k in weight.shape[2:])
    oh, ow = ops.conv2d_output_size(x.shape[2:], reach, stride, padding)
    return np.ascontiguousarray(conv2d(x, weight, bias, stride, padding, dilation)[:, :, :oh, :ow])


def _wider_gaps(
    x: Array, weight: Array, bias: Any = None, stride: int = 1, padding: int = 0, dilation: int = 1
) -> Array:
    return conv2d(x, weight, bias, stride, padding, dilation + 1)


def _bias_with_each_product(
    x: Array, weight: Array, bias: Any = None, stride: int = 1, padding: int = 0, dilation: int = 1
) -> Array:
    more = None if bias is None else weight[0].size * bias
    return conv2d(x, weight, more, stride, padding, dilation)


def _between(function: Function) -> Function:
    def wrong(x: Array, weight: Array, bias: Any = None, stride: int = 1, padding: int = 0, dilation: int = 1) -> Array:
        y: Array = function(x, spread(weight, dilation, dilation), bias, stride, padding)
        return y

    return wrong


def convolution_mistakes(mistakes: Sequence[Mistake]) -> tuple[Mistake, ...]:
    """Mistakes about gaps, and after them those in a convolution without gaps."""
    return (
        Mistake("the dilation is missing: the pixels under the kernel lie dilation apart", _without_gaps),
        Mistake(
            "the window is as large as it should be, but its pixels lie side by side: they are i * dilation rows and "
            "j * dilation columns from its corner",
            _windows(lambda d: 1, lambda d: 1),
        ),
        Mistake("the gaps count for columns, too: j * dilation", _windows(lambda d: d, lambda d: 1)),
        Mistake("the gaps count for rows, too: i * dilation", _windows(lambda d: 1, lambda d: d)),
        Mistake("the last places are missing: the window reaches over dilation * (k - 1) + 1 pixels", _too_few),
        Mistake("dilation counts from pixel to pixel: 1 is no gap at all, 2 leaves one pixel out", _wider_gaps),
        Mistake("the bias is added with each product: add it once an output", _bias_with_each_product),
        *(Mistake(mistake.says, _between(mistake.function)) for mistake in mistakes),
    )
