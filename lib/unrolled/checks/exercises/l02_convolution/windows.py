"""Usual mistakes with sliding windows: their sizes, a convolution in loops or as a product, columns of windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from unrolled import ops
from unrolled.checks.mistakes import Function, Mistake, alone, given, only, result
from unrolled.device import Array

Size = tuple[int, int]
Shape = tuple[int, int, int, int]
Stride = int | tuple[int, int]


def _sizes(says: str, formula: Callable[[int, int, int, int], int]) -> Mistake:
    """A mistake in the formula, applied along each axis: formula(size, kernel, stride, padding)."""
    return Mistake(
        says,
        lambda size, kernel_size, stride=1, padding=0: tuple(
            formula(s, k, stride, padding) for s, k in zip(size, kernel_size, strict=True)
        ),
    )


SIZE_MISTAKES = (
    _sizes("divide by the stride before you add 1", lambda s, k, t, p: (s + 2 * p - k + 1) // t),
    _sizes("the padding seems to be missing", lambda s, k, t, p: (s - k) // t + 1),
    _sizes("padding counts twice: it is added at both ends", lambda s, k, t, p: (s + p - k) // t + 1),
    _sizes("you rounded: part of a step does not count", lambda s, k, t, p: round((s + 2 * p - k) / t) + 1),
    _sizes("the stride seems to be missing", lambda s, k, t, p: s + 2 * p - k + 1),
    _sizes("you rounded up: part of a step does not count", lambda s, k, t, p: -(-(s + 2 * p - k) // t) + 1),
    _sizes("one is missing: count the positions, not the steps", lambda s, k, t, p: (s + 2 * p - k) // t),
    _sizes(
        "// comes before + and -: put the sum in brackets, (…) // stride", lambda s, k, t, p: s + 2 * p - k // t + 1
    ),
    _sizes("padding makes the image larger: add it", lambda s, k, t, p: (s - 2 * p - k) // t + 1),
    given("OW needs the width of the kernel, kernel_size[1]", kernel_size=lambda kernel_size: kernel_size[:1] * 2),
    given("OH needs the height of the kernel, kernel_size[0]", kernel_size=lambda kernel_size: kernel_size[1:] * 2),
    given("OW needs the width of the image, size[1]", size=lambda size: size[:1] * 2),
    given("OH needs the height of the image, size[0]", size=lambda size: size[1:] * 2),
)


def _each(bias: Array | None) -> Any:
    """The bias as it joins an output (N, O, OH, OW)."""
    return 0 if bias is None else bias[:, None, None]


def padded(x: Array, padding: int, mode: Literal["constant", "edge"] = "constant") -> Array:
    """x with zeros, or its edge repeated, on all four sides."""
    return np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), mode)


ONE_OUTPUT = "only the first output is written: is `return` inside a loop?"
ONE_IMAGE = "only the first image is computed: is `return` inside a loop?"
STRIDE = "the stride is missing: window (row, column) begins at (row * stride, column * stride)"
TURNED = "your windows are turned by 180 degrees: read them as they lie in the image"
O_FIRST = "yours has O before N: "


def as_many(y: Array, stride: Stride) -> Array:
    """What y (…, OH, OW), made with stride 1, has in as many places as there should be with this stride."""
    rows, columns = stride if isinstance(stride, tuple) else (stride, stride)
    return y[..., : -(-y.shape[-2] // rows), : -(-y.shape[-1] // columns)]


def _last_product(weight: Array) -> Array:
    """weight with zeros everywhere but at its last place: what `=` leaves of a sum."""
    return alone(weight, slice(None), -1, -1, -1)


def _as_if_without_padding(y: Array, x: Array, weight: Array, stride: Stride) -> Array:
    """Return as much of y as there would be without padding."""
    oh, ow = ops.conv2d_output_size(x.shape[2:], weight.shape[2:], stride)
    return y[:, :, :oh, :ow]


ALL_PADDED = (
    "np.pad(x, padding) pads images and channels, too: a pair for each axis, ((0, 0), (0, 0), (padding, padding), "
    "(padding, padding))"
)
SAME_IMAGE = "every image is made of the first one: use x[image], with the image of the loop"
OVERWRITTEN = "only the last product is left: = overwrites the sum, += adds to it"
ONE_SHORT = (
    "the last {} is never written: does a loop end one too early, or is `return` inside it? np.empty leaves there what "
    "was in memory"
)

UNWRITTEN = (  # parts of y (N, …, OH, OW)
    result(ONE_SHORT.format("row"), lambda y: only(y, ..., slice(-1), slice(None))),
    result(ONE_SHORT.format("column"), lambda y: only(y, ..., slice(-1))),
    result("only the first image is computed: is `return` inside a loop?", lambda y: only(y, 0)),
)

CONVOLUTION_MISTAKES = (
    result(ONE_OUTPUT, lambda y: alone(y, 0, 0, 0, 0)),
    result(SAME_IMAGE, lambda y: np.repeat(y[:1], len(y), axis=0)),
    given(
        "your kernel is turned by 180 degrees: this course, like deep learning, does not flip it",
        weight=lambda weight: weight[:, :, ::-1, ::-1],
    ),
    given("your kernel is mirrored, left to right", weight=lambda weight: weight[:, :, :, ::-1]),
    given("your kernel is mirrored, top to bottom", weight=lambda weight: weight[:, :, ::-1]),
    given(
        "your kernel is transposed: did i and j swap? weight.T swaps them, too: make rows first, weight.reshape(O, -1)",
        weight=lambda weight: weight.swapaxes(2, 3),
    ),
    given("the bias is missing: each filter adds its own number", bias=None),
    result("the bias is subtracted: add it", lambda y, bias: y - 2 * _each(bias)),
    result(
        "the bias is added once a channel: add it once an output",
        lambda y, weight, bias: y + (weight.shape[1] - 1) * _each(bias),
    ),
    result(
        "the bias is added with each product: add it once an output",
        lambda y, weight, bias: y + (weight[0].size - 1) * _each(bias),
    ),
    given(STRIDE, stride=1),
    given("the stride counts for columns, too", stride=lambda stride: (stride, 1)),
    given("the stride counts for rows, too", stride=lambda stride: (1, stride)),
    Mistake(STRIDE, given={"stride": 1}, result=as_many),
    Mistake(
        "the stride counts for columns, too: column * stride",
        given={"stride": lambda stride: (stride, 1)},
        result=lambda y, stride: as_many(y, (1, stride)),
    ),
    Mistake(
        "the stride counts for rows, too: row * stride",
        given={"stride": lambda stride: (1, stride)},
        result=lambda y, stride: as_many(y, (stride, 1)),
    ),
    given(OVERWRITTEN, weight=_last_product, bias=None),
    given(OVERWRITTEN, weight=_last_product),
    given("the padding is missing: put zeros on all four sides of each image first", padding=0),
    given(ALL_PADDED, x=lambda x, padding: np.pad(x, padding)[:, : x.shape[1]], padding=0),
    result("OH and OW are those of the padded image: conv2d_output_size needs padding, too", _as_if_without_padding),
    given("the padding repeats the edge: pad with zeros", x=partial(padded, mode="edge"), padding=0),
    given(
        "each channel has weights of its own: weight[filter, channel], with the channel of the loop",
        weight=lambda weight: np.repeat(weight[:, :1], weight.shape[1], axis=1),
    ),
    given("only the first channel counts: add up over all", x=lambda x: x[:, :1], weight=lambda weight: weight[:, :1]),
    given(
        "only the last channel counts: do not start again at 0",
        x=lambda x: x[:, -1:],
        weight=lambda weight: weight[:, -1:],
    ),
    result(
        O_FIRST + "reshape to (O, N, OH, OW) first, then swap the first two axes",
        lambda y: y.swapaxes(0, 1).reshape(y.shape),
    ),
    result(O_FIRST + "swap the first two axes at the end", lambda y: y.swapaxes(0, 1)),
    given(
        "your filters are mixed up: weight.reshape(C*KH*KW, O) tears them apart; reshape to (O, C*KH*KW), then turn it",
        weight=lambda weight: weight.reshape(weight[0].size, len(weight)).T.reshape(weight.shape),
    ),
    *UNWRITTEN,
    result("only the first filter is used: each makes a channel of y", lambda y: only(y, 0, 0)),
)


def column_axes(x_shape: Shape, kernel_size: Size, stride: int, padding: int) -> tuple[int, ...]:
    """C, KH, KW, N, OH, OW: the sizes of all axes of columns."""
    n, c, h, w = x_shape
    return (c, *kernel_size, n, *ops.conv2d_output_size((h, w), kernel_size, stride, padding))


def _columns(change: Callable[[Array], Array]) -> Function:
    """Columns made of the windows with every axis apart, (C, KH, KW, N, OH, OW), as `change` leaves them."""
    return lambda y, x, kernel_size, stride, padding: change(
        y.reshape(column_axes(x.shape, kernel_size, stride, padding))
    ).reshape(y.shape)


def _order(says: str, *axes: int) -> Mistake:
    """The mistake of columns whose axes, (C, KH, KW, N, OH, OW), go in this order."""
    return result(says, _columns(lambda six: six.transpose(axes)))


def _one_apart(y: Array, x: Array, kernel_size: Size, stride: int, padding: int) -> Array:
    """As many windows as there should be, which begin one pixel apart; y are all of these."""
    return as_many(y.reshape(column_axes(x.shape, kernel_size, 1, padding)), stride).reshape(len(y), -1)


def _of_first_image(y: Array, x: Array) -> Array:
    """The columns of the first image; anything in the others."""
    return only(y, slice(None), slice(y.shape[1] // len(x)))


IN_A_LOOP = "is `return` inside a loop?"
ONE_APART = Mistake(STRIDE, given={"stride": 1}, result=_one_apart)

COLUMN_MISTAKES = (
    result(SAME_IMAGE, lambda y, x: np.tile(y[:, : y.shape[1] // len(x)], (1, len(x)))),
    given(ALL_PADDED, x=lambda x, padding: np.pad(x, padding), padding=0),
    _order(
        "your axes go (N, C, KH, KW, OH, OW): N belongs behind KW, (C, KH, KW, N, OH, OW), before the reshape to rows "
        "and columns",
        *(3, 0, 1, 2, 4, 5),
    ),
    result(f"only the first column is written: {IN_A_LOOP}", lambda y: alone(y, slice(None), 0)),
    result(f"only the first row is written: {IN_A_LOOP}", lambda y: alone(y, 0)),
    # Column by column inside a window or from window to window: in the first case both give the same.
    result(
        "out of order: go row by row, inside a window and from window to window",
        _columns(lambda six: six.swapaxes(1, 2)),
    ),
    result("each of your rows is a window: windows stand in columns, so transpose", lambda y: y.T),
    result("one window a row, reshaped, is not one window a column: transpose", lambda y: y.T.reshape(y.shape)),
    _order("rows out of order: they go (C, KH, KW); yours go (KH, KW, C)", 1, 2, 0, 3, 4, 5),
    _order("columns out of order: they go (N, OH, OW); yours go (OH, OW, N)", 0, 1, 2, 4, 5, 3),
    result(TURNED, _columns(lambda six: six[:, ::-1, ::-1])),
    given(STRIDE, stride=1),
    ONE_APART,
    given("the padding is missing: put zeros on all four sides before you cut the windows", padding=0),
    result(
        "every window is written into the first column: the counter of columns never advances",
        lambda y: only(np.repeat(y[:, -1:], y.shape[1], axis=1), slice(None), 0),
    ),
    result(ONE_SHORT.format("column"), lambda y: only(y, slice(None), slice(-1))),
    result(
        "the images are written over each other: the counter of columns starts again at 0 in each",
        lambda y, x: _of_first_image(np.roll(y, y.shape[1] // len(x), axis=1), x),
    ),
    result("only the first image is unrolled: is `return` inside a loop?", _of_first_image),
    result(
        "only the first row of windows is unrolled: is `return` inside a loop?",
        lambda y, x, kernel_size, stride, padding: only(
            y, slice(None), slice(column_axes(x.shape, kernel_size, stride, padding)[-1])
        ),
    ),
    result(
        "only the first column is right: is `return` inside a loop (np.empty leaves in the others what was in memory), "
        "or do the others come from the wrong pixels, or stand in the wrong place?",
        lambda y: only(y, slice(None), 0),
    ),
)


def im2col_loops(x: Array, kernel_size: Size, stride: int = 1, padding: int = 0) -> Array:
    """Unroll as `ops.im2col` does, window by window: the solution of `im2col`, and the baseline of the fast one."""
    (n, c), (kh, kw) = x.shape[:2], kernel_size
    oh, ow = ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding)
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    columns = np.empty((c * kh * kw, n * oh * ow), dtype=x.dtype)
    for at, (image, row, column) in enumerate(np.ndindex(n, oh, ow)):
        top, left = row * stride, column * stride
        columns[:, at] = x[image, :, top : top + kh, left : left + kw].reshape(-1)
    return columns


def _torn(six: Array) -> Array:
    """The columns of which each place, (C, N, OH, OW), is what a reshape of (N, C, OH, OW) gives."""
    c, kh, kw, n, oh, ow = six.shape
    return six.transpose(1, 2, 3, 0, 4, 5).reshape(kh, kw, c, n, oh, ow).transpose(2, 0, 1, 3, 4, 5)


NOT_STEPPING = (
    "your slices do not step: windows have place (i, j) at i, i + stride, ..., so i : i + OH * stride : stride"
)

FAST_MISTAKES = (
    result(
        "images and channels are mixed up: a slice of x is (N, C, OH, OW); swap its first two axes, do not reshape",
        _columns(_torn),
    ),
    result(
        "every place holds the corner of the windows: its slice begins at i and j",
        _columns(lambda six: np.broadcast_to(six[:, :1, :1], six.shape)),
    ),
    *(replace(mistake, says=NOT_STEPPING) if mistake is ONE_APART else mistake for mistake in COLUMN_MISTAKES),
    result("only the first place is written: is `return` inside a loop?", lambda y: only(y, 0)),
)
