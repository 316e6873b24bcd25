"""Mistakes of what goes back through windows: col2im, convolution, pooling; and random arguments for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l02_convolution.dilation import col2im_dilated, output_size, padded_back
from unrolled.checks.exercises.l04_backprop.dense_gradients import MEAN_TWICE
from unrolled.checks.exercises.l04_backprop.gradients import with_item
from unrolled.checks.spec import Function, Inputs, Mistake
from unrolled.device import Array

# col2im


def any_windows(rng: np.random.Generator) -> dict[str, Any]:
    """x_shape, kernel_size, stride and padding that fit."""
    kernel_size = tuple(int(k) for k in rng.integers(1, 4, 2))
    stride, padding = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    h, w = (int(max(1, k - 2 * padding) + rng.integers(0, 6)) for k in kernel_size)
    n, c = (int(count) for count in rng.integers(1, 4, 2))
    return {"x_shape": (n, c, h, w), "kernel_size": kernel_size, "stride": stride, "padding": padding}


def any_columns(rng: np.random.Generator) -> Inputs:
    windows = any_windows(rng)
    shape = ops.im2col(np.zeros(windows["x_shape"]), *list(windows.values())[1:]).shape
    return {"columns": rng.standard_normal(shape).astype(np.float32), **windows}


def _after_folding(crop: Callable[[Array, int, int, int], Array], overwrite: bool = False) -> Function:
    """A mistake in what becomes of the padded image: crop(padded, padding, h, w)."""

    def wrong(
        columns: Array, x_shape: Any, kernel_size: Any, stride: int = 1, padding: int = 0, dilation: int = 1
    ) -> Array:
        padded = padded_back(columns, x_shape, kernel_size, stride, padding, dilation, overwrite)
        return np.ascontiguousarray(crop(padded, padding, *x_shape[2:]))

    return wrong


def _cropped(padded: Array, p: int, h: int, w: int) -> Array:
    return padded[:, :, p : p + h, p : p + w]


def _rearranged_columns(arrange: Callable[[Array], Array], *axes: int) -> Function:
    """A mistake in how the columns were read: `axes` is the order that (C, KH, KW, N, OH, OW) was taken for."""

    def wrong(
        columns: Array, x_shape: Any, kernel_size: Any, stride: int = 1, padding: int = 0, dilation: int = 1
    ) -> Array:
        six = (x_shape[1], *kernel_size, x_shape[0], *output_size(x_shape[2:], kernel_size, stride, padding, dilation))
        taken = columns.reshape([six[axis] for axis in axes]).transpose(np.argsort(axes))
        mixed = arrange(taken).reshape(columns.shape)
        return col2im_dilated(mixed, x_shape, kernel_size, stride, padding, dilation)

    return wrong


def _mean_of_windows(columns: Array, **windows: Any) -> Array:
    total, count = (col2im_dilated(values, **windows) for values in (columns, np.ones_like(columns)))
    return total / np.maximum(count, 1)


def _stride_one(
    columns: Array, x_shape: Any, kernel_size: Any, stride: int = 1, padding: int = 0, dilation: int = 1
) -> Array:
    """Windows placed side by side, whatever the stride."""
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), columns.dtype)
    oh, ow = output_size((h, w), kernel_size, stride, padding, dilation)
    for at, (image, row, column) in enumerate(np.ndindex(n, oh, ow)):
        x[image, :, row : row + dilation * kh : dilation, column : column + dilation * kw : dilation] += columns[
            :, at
        ].reshape(c, kh, kw)
    return x[:, :, padding : padding + h, padding : padding + w]


def _overwritten_by_places(
    columns: Array, x_shape: Any, kernel_size: Any, stride: int = 1, padding: int = 0, dilation: int = 1
) -> Array:
    """Place by place in the window, and the last one to come stays."""
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = output_size((h, w), kernel_size, stride, padding, dilation)
    six = columns.reshape(c, kh, kw, n, oh, ow)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), columns.dtype)
    for i, j in np.ndindex(kh, kw):
        top, left = i * dilation, j * dilation
        x[:, :, top : top + stride * oh : stride, left : left + stride * ow : stride] = six[:, i, j].swapaxes(0, 1)
    return x[:, :, padding : padding + h, padding : padding + w]


def _same(taken: Array) -> Array:
    return taken


OVERWRITES = "values are overwritten where windows overlap: add with += what lies there already"

# For windows with a dilation as well.
COL2IM_MISTAKES = (
    Mistake(OVERWRITES, _after_folding(_cropped, overwrite=True)),
    Mistake(OVERWRITES, _overwritten_by_places),
    Mistake(
        "with padding 0, the slice padding : -padding is empty: crop with padding : padding + H",
        _after_folding(lambda x, p, h, w: x[:, :, p:-p, p:-p]),
    ),
    Mistake("the padding is still there: x_shape is the image without it", _after_folding(lambda x, p, h, w: x)),
    Mistake(
        "cropped at the wrong place: the image begins at row and column `padding`",
        _after_folding(lambda x, p, h, w: x[:, :, :h, :w]),
    ),
    Mistake("this is the mean over the windows that cover a pixel: add up", _mean_of_windows),
    Mistake("the stride is missing: window (row, column) begins at (row * stride, column * stride)", _stride_one),
    Mistake("windows are turned by 180 degrees", _rearranged_columns(lambda six: six[:, ::-1, ::-1], 0, 1, 2, 3, 4, 5)),
    Mistake(
        "the rows of columns are read as (KH, KW, C): they go channel by channel, (C, KH, KW)",
        _rearranged_columns(_same, 1, 2, 0, 3, 4, 5),
    ),
    Mistake(
        "the rows of columns are read as (C, KW, KH): each window was flattened row by row",
        _rearranged_columns(_same, 0, 2, 1, 3, 4, 5),
    ),
    Mistake(
        "the axes are read as (N, C, KH, KW): they go (C, KH, KW), then (N, OH, OW)",
        _rearranged_columns(_same, 3, 0, 1, 2, 4, 5),
    ),
    Mistake(
        "the columns are read as (OH, OW, N): they come image by image, (N, OH, OW)",
        _rearranged_columns(_same, 0, 1, 2, 4, 5, 3),
    ),
    Mistake(
        "the columns are read as (N, OW, OH): the window moves row by row, (N, OH, OW)",
        _rearranged_columns(_same, 0, 1, 2, 3, 5, 4),
    ),
)


# conv2d_backward


def any_convolution(rng: np.random.Generator) -> Inputs:
    windows = any_windows(rng)
    (n, c, h, w), kernel_size = windows.pop("x_shape"), windows.pop("kernel_size")
    o = int(rng.integers(1, 5))
    shapes = {
        "grad": (n, o, *ops.conv2d_output_size((h, w), kernel_size, **windows)),
        "x": (n, c, h, w),
        "weight": (o, c, *kernel_size),
    }
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()} | windows


def _in_convolution(index: int, change: Callable[..., Any]) -> Function:
    """A mistake in one item: change(item, grad, x, weight, stride, padding)."""

    def changed(item: Array, grad: Array, x: Array, weight: Array, stride: int = 1, padding: int = 0) -> Any:
        return change(item, grad, x, weight, stride, padding)

    return with_item(ops.conv2d_backward, index, changed)


def _with_grad(change: Callable[[Array], Array]) -> Function:
    """A mistake in how grad became a matrix: `change(grad)` is what was used in its place."""

    def wrong(grad: Array, **inputs: Any) -> Any:
        return ops.conv2d_backward(np.ascontiguousarray(change(grad)), **inputs)

    return wrong


def _reshaped_at_once(grad: Array) -> Array:
    n, o, *size = grad.shape
    return grad.reshape(o, n, *size).swapaxes(0, 1)


def _mixed_but_for_the_bias(grad: Array, **inputs: Any) -> Any:
    return (*_with_grad(_reshaped_at_once)(grad=grad, **inputs)[:2], grad.sum(axis=(0, 2, 3)))


def _with_options(**options: int) -> Function:
    return lambda **inputs: ops.conv2d_backward(**inputs | options)


def _mean_over_batch(grad: Array, x: Array, **inputs: Any) -> Any:
    grad_x, grad_weight, grad_bias = ops.conv2d_backward(grad, x, **inputs)
    return grad_x, grad_weight / len(x), grad_bias / len(x)


MIXED = (
    "grad (N, O, OH, OW) was reshaped to (O, N*OH*OW) at once, which mixes images and filters: swap the first two "
    "axes, then reshape"
)
CONVOLUTION_MISTAKES = (
    Mistake(MIXED, _with_grad(_reshaped_at_once)),
    Mistake(MIXED, _mixed_but_for_the_bias),
    Mistake("the stride is missing", _with_options(stride=1)),
    Mistake(
        "grad_x is made with the kernel turned by 180 degrees: col2im puts it back the way it came",
        _in_convolution(
            0,
            lambda r, g, x, w, s, p: ops.conv2d_backward(g, x, w[:, :, ::-1, ::-1], s, p)[0],
        ),
    ),
    Mistake("grad_weight is turned by 180 degrees", _in_convolution(1, lambda r, g, x, w, s, p: r[:, :, ::-1, ::-1])),
    Mistake(
        "grad_bias is the mean over images and positions: add up",
        _in_convolution(2, lambda r, g, x, w, s, p: g.mean((0, 2, 3))),
    ),
    Mistake(
        "grad_bias is summed over the images only: sum over N, OH and OW",
        _in_convolution(2, lambda r, g, x, w, s, p: g.sum(0)),
    ),
    Mistake(
        "grad_bias is summed over the positions only: sum over N, OH and OW",
        _in_convolution(2, lambda r, g, x, w, s, p: g.sum((2, 3))),
    ),
    Mistake(
        "grad_bias is summed over the filters: one number a filter, summed over N, OH and OW",
        _in_convolution(2, lambda r, g, x, w, s, p: g.sum((1, 2, 3))),
    ),
    Mistake(
        MEAN_TWICE,
        _mean_over_batch,
    ),
    Mistake(
        "grad_weight is a matrix still: give it the shape of weight",
        _in_convolution(1, lambda r, g, x, w, s, p: r.reshape(len(r), -1)),
    ),
    Mistake(
        "the order is grad_x, grad_weight, grad_bias",
        lambda **inputs: tuple(ops.conv2d_backward(**inputs)[at] for at in (1, 0, 2)),
    ),
)


# max_pool2d_backward


def any_pooling(rng: np.random.Generator) -> Inputs:
    """Images with many ties, windows that may overlap."""
    kernel_size = int(rng.integers(2, 4))
    options = {
        "kernel_size": kernel_size,
        "stride": int(rng.integers(1, kernel_size + 1)),
        "padding": int(rng.integers(0, 2)),
    }
    shape = tuple(int(size) for size in (*rng.integers(1, 4, 2), *(kernel_size + rng.integers(0, 5, 2))))
    x = np.maximum(rng.standard_normal(shape), 0).astype(np.float32)
    return {"grad": rng.standard_normal(ops.max_pool2d(x, **options).shape).astype(np.float32), "x": x, **options}


def _shares(tie: Callable[[Array, Array, Array], Array]) -> Function:
    """Another rule for who gets what: tie(window (k*k, N*C*OH*OW), its maximum, grad) for each window, added up."""

    def wrong(grad: Array, x: Array, kernel_size: int, stride: int | None = None, padding: int = 0) -> Array:
        stride = kernel_size if stride is None else stride
        n, c, h, w = x.shape
        lowest = np.float32(x.min() - 1)
        flat = x.reshape(n * c, 1, h, w) - lowest  # above 0, so that padding never wins
        columns = ops.im2col(flat, kernel_size, stride, padding)
        shares = tie(columns, columns.max(axis=0), grad.reshape(1, -1)).astype(grad.dtype)
        return ops.col2im(shares, flat.shape, kernel_size, stride, padding).reshape(x.shape)

    return wrong


def _first_only(columns: Array, largest: Array, grad: Array) -> Array:
    return (np.arange(len(columns))[:, None] == columns.argmax(axis=0)) * grad


def _last_only(columns: Array, largest: Array, grad: Array) -> Array:
    last = len(columns) - 1 - columns[::-1].argmax(axis=0)
    return (np.arange(len(columns))[:, None] == last) * grad


def _overwriting(grad: Array, x: Array, kernel_size: int, stride: int | None = None, padding: int = 0) -> Array:
    indices = ops.max_pool2d_indices(x, kernel_size, stride, padding)
    n, c, h, w = x.shape
    result = np.zeros((n, c, h * w), grad.dtype)
    np.put_along_axis(result, indices.reshape(n, c, -1), grad.reshape(n, c, -1), axis=2)
    return result.reshape(x.shape)


def _unpooled_maxima(grad: Array, x: Array, kernel_size: int, stride: int | None = None, padding: int = 0) -> Array:
    return ops.max_pool2d_backward(ops.max_pool2d(x, kernel_size, stride, padding), x, kernel_size, stride, padding)


def _pooling_options(**options: Any) -> Function:
    return lambda **inputs: ops.max_pool2d_backward(**inputs | options)


POOLING_MISTAKES = (
    Mistake("the maxima are put back, not the gradient: the place comes from x, the value from grad", _unpooled_maxima),
    Mistake(
        "every tied maximum gets the whole gradient: of equal ones, only the first does",
        _shares(lambda columns, largest, grad: (columns == largest) * grad),
    ),
    Mistake(
        "tied maxima share the gradient: of equal ones, the first gets all of it",
        _shares(lambda columns, largest, grad: (columns == largest) * grad / (columns == largest).sum(axis=0)),
    ),
    Mistake("of equal maxima yours takes the last: take the first", _shares(_last_only)),
    Mistake(
        "every pixel of a window gets the whole gradient: only the largest had a say in the output",
        _shares(lambda columns, largest, grad: np.ones_like(columns) * grad),
    ),
    Mistake(
        "the gradient is spread evenly, as for average pooling: here, the largest pixel gets all of it",
        _shares(lambda columns, largest, grad: np.ones_like(columns) * grad / len(columns)),
    ),
    Mistake("where windows overlap, gradients that meet on a pixel are overwritten: they add up", _overwriting),
    Mistake("the stride is missing", _pooling_options(stride=None)),
    Mistake("the padding is missing", _pooling_options(padding=0)),
)
