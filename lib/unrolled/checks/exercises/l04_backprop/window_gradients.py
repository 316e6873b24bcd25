"""The way back through windows: col2im, convolution, pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.domain import any_arrays, edge_size
from unrolled.checks.exercises.l02_convolution.exercises import random_sizes
from unrolled.checks.exercises.l02_convolution.windows import STRIDE, Shape, Size, column_axes
from unrolled.checks.exercises.l03_pooling import unpooling
from unrolled.checks.exercises.l04_backprop.dense_gradients import MEAN_TWICE, WEIGHT_FIRST
from unrolled.checks.exercises.l04_backprop.gradients import in_bias, in_weight, in_x
from unrolled.checks.mistakes import Function, Mistake, given, result
from unrolled.checks.spec import Inputs
from unrolled.device import Array


def _any_windows(rng: np.random.Generator) -> Inputs:
    """Draw x_shape, kernel_size, stride and padding that fit."""
    windows = random_sizes(rng, kernels=3, room=6)
    return {"x_shape": (edge_size(rng, 3), edge_size(rng, 3), *windows.pop("size")), **windows}


def any_columns(rng: np.random.Generator) -> Inputs:
    """Draw columns (C*KH*KW, N*OH*OW) and their windows."""
    windows = _any_windows(rng)
    c, kh, kw, n, oh, ow = column_axes(**windows)
    return any_arrays(rng, columns=(c * kh * kw, n * oh * ow)) | windows


def put_back(
    columns: Array,
    x_shape: Shape,
    kernel_size: Size,
    stride: int = 1,
    padding: int = 0,
    *,
    step: int | None = None,
    overwrite: bool = False,
    backwards: bool = False,
) -> Array:
    """Return what `ops.col2im` does, made in a wrong way: with another `step` from window to window, or overwritten.

    With `overwrite`, the last value to come stays. That is the last window's, where places are visited `backwards`.
    """
    (h, w), six = x_shape[2:], columns.reshape(column_axes(x_shape, kernel_size, stride, padding))
    step, (oh, ow) = step or stride, six.shape[4:]
    x = np.zeros((*x_shape[:2], h + 2 * padding, w + 2 * padding), columns.dtype)
    places = list(np.ndindex(*kernel_size))
    for i, j in reversed(places) if backwards else places:
        pixels = x[:, :, i : i + step * oh : step, j : j + step * ow : step]
        values = six[:, i, j].swapaxes(0, 1)
        pixels[...] = values if overwrite else pixels + values
    return x[:, :, padding : padding + h, padding : padding + w]


def _six_axes(says: str, change: Callable[[Array], Array]) -> Mistake:
    """Return the mistake of columns, with all axes apart (C, KH, KW, N, OH, OW), as `change` leaves them."""
    return given(
        says, columns=lambda columns, **windows: change(columns.reshape(column_axes(**windows))).reshape(columns.shape)
    )


def _read_as(says: str, *axes: int) -> Mistake:
    """Return the mistake of columns read in another order: `axes` is what (C, KH, KW, N, OH, OW) were taken for."""
    return _six_axes(
        says, lambda six: six.reshape([six.shape[axis] for axis in axes]).transpose([axes.index(i) for i in range(6)])
    )


def _reshaped_in_place(six: Array) -> Array:
    """Return the columns of which each place (C, N, OH, OW), transposed, is what a reshape to (N, C, OH, OW) gives."""
    c, kh, kw, n, oh, ow = six.shape
    return six.transpose(1, 2, 0, 3, 4, 5).reshape(kh, kw, n, c, oh, ow).transpose(3, 0, 1, 2, 4, 5)


OVERWRITES = "values are overwritten where windows overlap: add with += what lies there already"
UNCUT: dict[str, Any] = {  # what col2im is given where the padding stays
    "x_shape": lambda x_shape, padding: (*x_shape[:2], x_shape[2] + 2 * padding, x_shape[3] + 2 * padding),
    "padding": 0,
}

COL2IM_MISTAKES = (
    given(OVERWRITES, put_back, overwrite=True, backwards=True),
    given(OVERWRITES, put_back, overwrite=True),
    Mistake(
        "with padding 0, the slice padding : -padding is empty: crop with padding : padding + H",
        given=UNCUT,
        result=lambda x, padding: x[:, :, padding:-padding, padding:-padding],
    ),
    given("the padding is still there: x_shape is the image without it", **UNCUT),
    Mistake(
        "cropped at the wrong place: the image begins at row and column `padding`",
        given=UNCUT,
        result=lambda x, x_shape: x[:, :, : x_shape[2], : x_shape[3]],
    ),
    result(
        "this is the mean over the windows that cover a pixel: add up",
        lambda y, columns, **windows: y / np.maximum(ops.col2im(np.ones_like(columns), **windows), 1),
    ),
    _six_axes(
        "at place (i, j) the values are (C, N, OH, OW), and a reshape to (N, C, OH, OW) mixes images and channels: "
        "swap these two axes, swapaxes(0, 1)",
        _reshaped_in_place,
    ),
    given(STRIDE, put_back, step=1),
    _six_axes("windows are turned by 180 degrees", lambda six: six[:, ::-1, ::-1]),
    _six_axes(
        "every image is made of the columns of the first: the counter of columns goes on from image to image",
        lambda six: np.broadcast_to(six[:, :, :, :1], six.shape),
    ),
    Mistake(
        "padding : H ends too early: crop with padding : padding + H",
        given=UNCUT,
        result=lambda x, x_shape, padding: x[:, :, padding : x_shape[2], padding : x_shape[3]],
    ),
    _read_as("the rows of columns are read as (KH, KW, C): they go channel by channel, (C, KH, KW)", 1, 2, 0, 3, 4, 5),
    _read_as("the rows of columns are read as (C, KW, KH): each window was flattened row by row", 0, 2, 1, 3, 4, 5),
    _read_as("the axes are read as (N, C, KH, KW): they go (C, KH, KW), then (N, OH, OW)", 3, 0, 1, 2, 4, 5),
    _read_as("the columns are read as (OH, OW, N): they come image by image, (N, OH, OW)", 0, 1, 2, 4, 5, 3),
    _read_as("the columns are read as (N, OW, OH): the window moves row by row, (N, OH, OW)", 0, 1, 2, 3, 5, 4),
)


def any_convolution(rng: np.random.Generator) -> Inputs:
    """Draw grad (N, O, OH, OW), x (N, C, H, W), weight (O, C, KH, KW), stride and padding."""
    windows = _any_windows(rng)
    (n, c, *size), kernel_size = windows.pop("x_shape"), windows.pop("kernel_size")
    o = edge_size(rng, 4)
    there = ops.conv2d_output_size(size, kernel_size, **windows)
    return any_arrays(rng, grad=(n, o, *there), weight=(o, c, *kernel_size), x=(n, c, *size)) | windows


def _reread(*axes: int) -> Callable[[Array], Array]:
    """Return what grad is taken for if its axes, in this order, become rows (O, N*OH*OW)."""

    def change(grad: Array) -> Array:
        n, o, *size = grad.shape
        return grad.transpose(axes).reshape(o, n, *size).swapaxes(0, 1)

    return change


def _with_weight(says: str, change: Callable[[Array], Array]) -> Mistake:
    """Return the mistake of a grad_x that is made with this change of weight."""
    return in_x(
        says,
        lambda _, grad, x, weight, stride, padding: ops.conv2d_backward(grad, x, change(weight), stride, padding)[0],
    )


AT_ONCE = _reread(0, 1, 2, 3)
POSITIONS_FIRST = "the rows of grad go (N, OH, OW), as the columns do: swapaxes(0, 1), and no more, before the reshape"
OVER_FILTERS = "grad_bias is summed over the filters: one number a filter, summed over N, OH and OW"
MIXED = (
    "grad (N, O, OH, OW) was reshaped to (O, N*OH*OW) at once, which mixes images and filters: swap the first two "
    "axes, then reshape"
)
CONVOLUTION_MISTAKES = (
    given(MIXED, grad=AT_ONCE),
    Mistake(MIXED, given={"grad": AT_ONCE}, result=lambda y, grad: (y[0], y[1], grad.sum(axis=(0, 2, 3)))),
    _with_weight(
        "grad_x is made with the kernel turned by 180 degrees: col2im puts it back the way it came",
        lambda weight: weight[:, :, ::-1, ::-1],
    ),
    given(POSITIONS_FIRST, grad=_reread(1, 2, 3, 0)),
    given(POSITIONS_FIRST, grad=_reread(3, 2, 1, 0)),
    _with_weight(
        "weight.reshape(C*KH*KW, O) tears the filters apart: make a row of each, weight.reshape(O, -1), then transpose",
        lambda weight: weight.reshape(-1, len(weight)).T.reshape(weight.shape),
    ),
    _with_weight(
        "weight.T turns all four axes around, (KW, KH, C, O): make it a matrix first, with a filter in each row, "
        "weight.reshape(O, -1).T",
        lambda weight: weight.T.reshape(-1, len(weight)).T.reshape(weight.shape),
    ),
    in_weight(
        "columns @ rows.T is grad_weight as (C*KH*KW, O), and a reshape does not turn it around: rows @ columns.T is "
        "(O, C*KH*KW), as weight is",
        lambda grad_weight: grad_weight.reshape(len(grad_weight), -1).T.reshape(grad_weight.shape),
    ),
    in_weight("grad_weight is turned by 180 degrees", lambda grad_weight: grad_weight[:, :, ::-1, ::-1]),
    in_bias("grad_bias is the mean over images and positions: add up", lambda _, grad: grad.mean(axis=(0, 2, 3))),
    in_bias("grad_bias is summed over the images only: sum over N, OH and OW", lambda _, grad: grad.sum(axis=0)),
    in_bias(
        "grad_bias is summed over the positions only: sum over N, OH and OW", lambda _, grad: grad.sum(axis=(2, 3))
    ),
    MEAN_TWICE,
    WEIGHT_FIRST,
    in_bias(OVER_FILTERS, lambda _, grad: grad.sum(axis=(1, 2, 3))),
    in_bias(OVER_FILTERS, lambda _, grad: grad.sum(axis=1).ravel()),
    in_weight(
        "grad_weight is a matrix still: give it the shape of weight",
        lambda grad_weight: grad_weight.reshape(len(grad_weight), -1),
    ),
)


def any_pooling(rng: np.random.Generator) -> Inputs:
    """Draw images, half of them after a ReLU, and windows that may overlap or leave pixels out."""
    k = edge_size(rng, 9)
    stride = None if rng.random() < 0.3 else edge_size(rng, k + 1)
    options: Inputs = {"kernel_size": k, "stride": stride, "padding": int(rng.integers(0, k // 2 + 1))}
    x = any_arrays(rng, x=(edge_size(rng, 3), edge_size(rng, 3), *(k + rng.integers(0, 6, 2)).tolist()))["x"]
    x = np.maximum(x, 0) if rng.random() < 0.5 else x
    grad = rng.integers(-32, 33, ops.max_pool2d(x, **options).shape) / 8  # their sums are exact
    grad *= 2.0**200 if x.dtype == np.float64 else 1  # and beyond float32
    return {"grad": grad.astype(x.dtype), "x": x, **options}


def _shared(says: str, unpool: Function) -> Mistake:
    """Return the mistake of another rule for who gets what of a window's gradient."""
    return Mistake(says, lambda grad, **others: unpool(grad, **others))


POOLING_MISTAKES = (
    given(
        "the maxima are put back, not the gradient: the place comes from x, the value from grad", grad=ops.max_pool2d
    ),
    _shared("every tied maximum gets the whole gradient: of equal ones, only the first does", unpooling.to_each),
    _shared("tied maxima share the gradient: of equal ones, the first gets all of it", unpooling.in_parts),
    _shared("of equal maxima yours takes the last: take the first", unpooling.to_last),
    _shared(
        "every pixel of a window gets the whole gradient: only the largest had a say in the output",
        unpooling.to_every_pixel,
    ),
    _shared(
        "the gradient is spread evenly, as for average pooling: here, the largest pixel gets all of it",
        unpooling.shared_by(lambda largest: np.ones_like(largest) / len(largest)),
    ),
    _shared(
        "where windows overlap, gradients that meet on a pixel are overwritten: they add up", unpooling.overwritten
    ),
)
