"""The dense (affine) layer, y = x @ weight.T + bias, and a matrix product without the library's."""

from __future__ import annotations

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.ops.allocation import empty
from unrolled.ops.arguments import as_floats, check_arrays, check_axes, check_shape, check_weight, rounds_once


@rounds_once
def matmul_loops(a: Array, b: Array) -> Array:
    """Return a (N, K) times b (K, M), from three plain loops: (N, M). float32 in, float32 out.

    Integers count as float32. Raises ValueError for shapes that do not fit.
    """
    a, b = _factors(a, b)
    y = array_module(a).empty((a.shape[0], b.shape[1]), dtype=a.dtype)
    for row in range(a.shape[0]):
        for column in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total = total + a[row, k] * b[k, column]
            y[row, column] = total
    return y


@rounds_once
def matmul_rows(a: Array, b: Array) -> Array:
    """Return a (N, K) times b (K, M), one row of the result at a time: each row is independent of the others."""
    a, b = _factors(a, b)
    y = array_module(a).empty((a.shape[0], b.shape[1]), dtype=a.dtype)
    for row in range(a.shape[0]):
        y[row] = a[row] @ b
    return y


@rounds_once
def affine(x: Array, weight: Array, bias: Array) -> Array:
    """Return x (N, D) times the transpose of weight (M, D) plus bias (M,): (N, M).

    float32 in, float32 out; integers count as float32. Raises ValueError for shapes that do not fit.
    """
    x, weight, bias = _arguments(x, weight, bias)
    if kernels.take(x, weight, bias):
        y = empty(x, "the output of affine", (len(x), len(weight)))
        kernels.product((x, weight), (y,), kernels.TURN_B)
        kernels.add_row((bias,), (y,), kernels.constants(columns=len(weight)))
        return y
    y = x @ weight.T
    y += bias
    return y


@rounds_once
def affine_one_by_one(x: Array, weight: Array, bias: Array) -> Array:
    """Compute `affine` one sample at a time: what batching replaces."""
    x, weight, bias = _arguments(x, weight, bias)
    y = array_module(x).empty((len(x), len(weight)), dtype=x.dtype)
    for row in range(len(x)):
        y[row] = weight @ x[row] + bias
    return y


@rounds_once
def affine_backward(
    grad: Array, x: Array, weight: Array, *, input_gradient: bool = True, out: tuple[Array, Array] | None = None
) -> tuple[Array | None, Array, Array]:
    """Return grad_x (N, D) = grad @ weight, grad_weight (M, D) = grad.T @ x, grad_bias (M,) = sums of grad (N, M).

    The first layer of a network needs no grad_x: without `input_gradient` it is None. `out` are arrays for grad_weight
    and grad_bias, of the common dtype and in C order: the weight's is the largest gradient of most networks.
    Raises ValueError for shapes that do not fit.
    """
    check_arrays(grad=grad, x=x, weight=weight)
    check_weight(x, "N, D", weight, "M, D", "features")
    check_shape("grad", grad, (len(x), len(weight)), f"x {x.shape} and weight {weight.shape}")
    grad, x, weight = as_floats(grad, x, weight)
    if kernels.take(grad, x, weight):
        return _backward_on_kernels(grad, x, weight, input_gradient, out)
    grad_x = grad @ weight if input_gradient else None
    if out is None:
        return grad_x, grad.T @ x, grad.sum(axis=0)
    array_module(grad).matmul(grad.T, x, out=out[0])
    out[1][...] = grad.sum(axis=0)
    return grad_x, *out


def _backward_on_kernels(
    grad: Array, x: Array, weight: Array, input_gradient: bool, out: tuple[Array, Array] | None
) -> tuple[Array | None, Array, Array]:
    """`affine_backward` in three launches."""
    n, m = grad.shape
    if out is None or not n:
        out = out or (array_module(x).empty(weight.shape, dtype=x.dtype), array_module(x).empty(m, dtype=x.dtype))
        out[0][...], out[1][...] = 0, 0
    kernels.product((grad, x), (out[0],), kernels.TURN_A)
    kernels.sum_first_axis((grad,), (out[1],), kernels.constants(columns=m))
    if not input_gradient:
        return None, *out
    grad_x = empty(x, "the gradient by x", x.shape)
    kernels.product((grad, weight), (grad_x,), kernels.PLAIN)
    return grad_x, *out


def _arguments(x: Array, weight: Array, bias: Array) -> tuple[Array, ...]:
    check_arrays(x=x, weight=weight, bias=bias)
    check_weight(x, "N, D", weight, "M, D", "features")
    check_shape("bias", bias, weight.shape[:1], f"weight {weight.shape}")
    return as_floats(x, weight, bias)


def _factors(a: Array, b: Array) -> tuple[Array, ...]:
    check_arrays(a=a, b=b)
    check_axes("a", a, "N, K")
    check_axes("b", b, "K, M")
    if a.shape[1] != b.shape[0]:
        raise ValueError(
            f"b has shape {b.shape} with K = {b.shape[0]}, but a has shape {a.shape} with K = {a.shape[1]}"
        )
    return as_floats(a, b)
