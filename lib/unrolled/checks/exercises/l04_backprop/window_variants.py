"""Variants of lesson 04 for windows: `col2im` with a dilation, the way back through a convolution in NHWC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l02_convolution.dilation import Sizes, output_size
from unrolled.checks.exercises.l02_convolution.nhwc import pad
from unrolled.checks.exercises.l04_backprop.dense_gradients import MEAN_TWICE
from unrolled.checks.exercises.l04_backprop.gradients import with_item
from unrolled.checks.exercises.l04_backprop.window_gradients import COL2IM_MISTAKES, any_windows
from unrolled.checks.spec import Function, Inputs, Mistake
from unrolled.device import Array

# col2im_dilated


def any_dilated_columns(rng: np.random.Generator) -> Inputs:
    kernel_size = tuple(int(k) for k in rng.integers(1, 4, 2))
    stride, padding, dilation = int(rng.integers(1, 4)), int(rng.integers(0, 3)), int(rng.integers(1, 4))
    spans = (dilation * (k - 1) + 1 for k in kernel_size)
    h, w = (int(max(1, span - 2 * padding) + rng.integers(0, 6)) for span in spans)
    n, c = (int(count) for count in rng.integers(1, 4, 2))
    oh, ow = output_size((h, w), kernel_size, stride, padding, dilation)
    columns = rng.standard_normal((c * kernel_size[0] * kernel_size[1], n * oh * ow)).astype(np.float32)
    return {
        "columns": columns,
        "x_shape": (n, c, h, w),
        "kernel_size": kernel_size,
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
    }


def _without_gaps(
    columns: Array, x_shape: Sizes, kernel_size: Sizes, stride: int = 1, padding: int = 0, dilation: int = 1
) -> Array:
    """As many windows as there are with the dilation, and none inside of them."""
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = output_size((h, w), kernel_size, stride, padding, dilation)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), columns.dtype)
    six = columns.reshape(c, kh, kw, n, oh, ow)
    for i, j in np.ndindex(kh, kw):
        x[:, :, i : i + stride * oh : stride, j : j + stride * ow : stride] += six[:, i, j].swapaxes(0, 1)
    return x[:, :, padding : padding + h, padding : padding + w]


DILATED_MISTAKES = (
    Mistake(
        "the dilation is missing: place (i, j) of a window lies i * dilation rows and j * dilation columns into it",
        _without_gaps,
    ),
    *COL2IM_MISTAKES,
)


# conv2d_backward_nhwc


def nhwc_backward(
    grad: Array, x: Array, weight: Array, stride: int = 1, padding: int = 0
) -> tuple[Array, Array, Array]:
    """The way back through a convolution whose images are (N, H, W, C) and whose weight is (KH, KW, C, O)."""
    return _channels_last(ops.conv2d_backward(*_channels_first(grad, x, weight), stride, padding))


def _channels_first(grad: Array, x: Array, weight: Array) -> tuple[Array, Array, Array]:
    first = grad.transpose(0, 3, 1, 2), x.transpose(0, 3, 1, 2), weight.transpose(3, 2, 0, 1)
    return tuple(np.ascontiguousarray(array) for array in first)  # type: ignore[return-value]


def _channels_last(items: Any) -> tuple[Array, Array, Array]:
    grad_x, grad_weight, grad_bias = items
    return grad_x.transpose(0, 2, 3, 1), grad_weight.transpose(2, 3, 1, 0), grad_bias


def any_convolution_nhwc(rng: np.random.Generator) -> Inputs:
    windows = any_windows(rng)
    (n, c, h, w), kernel_size = windows.pop("x_shape"), windows.pop("kernel_size")
    o = int(rng.integers(1, 5))
    shapes = {
        "grad": (n, *ops.conv2d_output_size((h, w), kernel_size, **windows), o),
        "x": (n, h, w, c),
        "weight": (*kernel_size, c, o),
    }
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()} | windows


def _in_convolution(index: int, change: Callable[..., Any]) -> Function:
    """A mistake in one item: change(item, grad, x, weight, stride, padding)."""

    def changed(item: Array, grad: Array, x: Array, weight: Array, stride: int = 1, padding: int = 0) -> Any:
        return change(item, grad, x, weight, stride, padding)

    return with_item(nhwc_backward, index, changed)


def _overwriting(grad: Array, x: Array, weight: Array, stride: int = 1, padding: int = 0) -> Any:
    (n, h, w, c), (kh, kw), (oh, ow) = x.shape, weight.shape[:2], grad.shape[1:3]
    padded = np.zeros((n, h + 2 * padding, w + 2 * padding, c), x.dtype)
    for i, j in np.ndindex(kh, kw):
        padded[:, i : i + stride * oh : stride, j : j + stride * ow : stride] = grad @ weight[i, j].T
    _, grad_weight, grad_bias = nhwc_backward(grad, x, weight, stride, padding)
    return padded[:, padding : padding + h, padding : padding + w], grad_weight, grad_bias


def _mean_over_batch(grad: Array, x: Array, **inputs: Any) -> Any:
    grad_x, grad_weight, grad_bias = nhwc_backward(grad, x, **inputs)
    return grad_x, grad_weight / len(x), grad_bias / len(x)


def _reshaped(array: Array, *axes: int) -> Array:
    """The array with its axes as they are, and their sizes taken in another order."""
    return array.reshape([array.shape[axis] for axis in axes])


def _read_as_nchw(grad: Array, x: Array, weight: Array, stride: int = 1, padding: int = 0) -> Any:
    """Reshaped to the other layout where axes had to be moved."""
    first = _reshaped(grad, 0, 3, 1, 2), _reshaped(x, 0, 3, 1, 2), _reshaped(weight, 3, 2, 0, 1)
    grad_x, grad_weight, grad_bias = ops.conv2d_backward(*first, stride, padding)
    assert grad_x is not None
    return grad_x.reshape(x.shape), grad_weight.reshape(weight.shape), grad_bias


NHWC_MISTAKES = (
    Mistake(
        "a reshape does not swap axes: from NHWC to NCHW it takes transpose(0, 3, 1, 2), and for a weight "
        "transpose(3, 2, 0, 1)",
        _read_as_nchw,
    ),
    Mistake(
        "grad_x is (N, C, H, W) in yours, and grad_weight (O, C, KH, KW): each has the layout of what it belongs to",
        lambda grad, x, weight, **given: ops.conv2d_backward(*_channels_first(grad, x, weight), **given),
    ),
    Mistake(
        "grad_x is overwritten where windows overlap: add with += what lies there already",
        _overwriting,
    ),
    Mistake(
        "grad_x has the border of zeros still: cut the padding off, it is as large as x",
        _in_convolution(0, lambda r, g, x, w, s, p: nhwc_backward(g, pad(x, p), w, s, 0)[0]),
    ),
    Mistake("the stride is missing", lambda **inputs: nhwc_backward(**inputs | {"stride": 1})),
    Mistake(
        "grad_x is made with the kernel turned by 180 degrees: place (i, j) goes back to where it came from",
        _in_convolution(0, lambda r, g, x, w, s, p: nhwc_backward(g, x, w[::-1, ::-1], s, p)[0]),
    ),
    Mistake("grad_weight is turned by 180 degrees", _in_convolution(1, lambda r, g, x, w, s, p: r[::-1, ::-1])),
    Mistake(
        "grad_weight is (KH, KW, O, C): it is (KH, KW, C, O), as weight is",
        _in_convolution(1, lambda r, g, x, w, s, p: r.swapaxes(2, 3)),
    ),
    Mistake(
        "grad_weight is a matrix still: give it the shape of weight",
        _in_convolution(1, lambda r, g, x, w, s, p: r.reshape(-1, r.shape[3])),
    ),
    Mistake(
        "grad_bias is the mean over images and positions: add up",
        _in_convolution(2, lambda r, g, x, w, s, p: g.mean((0, 1, 2))),
    ),
    Mistake(
        "grad_bias is summed over the images only: sum over N, OH and OW",
        _in_convolution(2, lambda r, g, x, w, s, p: g.sum(0)),
    ),
    Mistake(
        "grad_bias is summed over the positions only: sum over N, OH and OW",
        _in_convolution(2, lambda r, g, x, w, s, p: g.sum((1, 2))),
    ),
    Mistake(
        "grad_bias is summed as in NCHW: here the filters are the last axis, so sum over axes 0, 1 and 2",
        _in_convolution(2, lambda r, g, x, w, s, p: g.sum((0, 2, 3))),
    ),
    Mistake(MEAN_TWICE, _mean_over_batch),
    Mistake(
        "the order is grad_x, grad_weight, grad_bias",
        lambda **inputs: tuple(nhwc_backward(**inputs)[at] for at in (1, 0, 2)),
    ),
)
