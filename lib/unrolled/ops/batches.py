"""How `conv2d` gets fast on a GPU: all images at once, in few launches.

Launching a kernel costs the host some microseconds, whatever the kernel does, so a step with few of them is fast. Three
changes against the plain way (im2col, one product, transpose), none to the result:

1. Columns of each image for themselves: (N, K, L) with K = C * KH * KW and L = OH * OW. A batch of products, one for
   each image, then gives (N, O, L), which is the result as it should lie: nothing is transposed.
2. A row of ones below the columns has the bias as its weight, as in `unrolled.ops.blocks`.
3. The weight's gradient is a sum over all places of all images: (O, N * L) times (N * L, K), a tiny result from very
   long rows, which keeps few multiprocessors of a GPU busy. So it is N products at once, and one sum over them.
"""

from __future__ import annotations

from math import prod

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.kernels.half import WIDTH
from unrolled.ops.allocation import empty
from unrolled.ops.windows import Windows


def forward(x: Array, weight: Array, bias: Array | None, windows: Windows) -> Array:
    """Return the result of `conv2d` for arguments that are checked and share one dtype."""
    n, o = len(x), len(weight)
    columns = _columns(x, weight, windows, ones=bias is not None)
    y = empty(x, "the output of conv2d", (n, o, columns.shape[2]))
    kernels.product((_filters(weight, bias), columns), (y,), kernels.PLAIN)
    return y.reshape(n, o, *windows.output_size)


def half_forward(x: Array, weight: Array, bias: Array, windows: Windows) -> Array:
    """Return the result of `half_conv2d` for float16 arrays that are checked."""
    (n, c), o, places = x.shape[:2], len(weight), prod(windows.output_size)
    k = prod(weight.shape[1:])
    rows = -(-(k + 1) // WIDTH) * WIDTH
    columns = empty(x, "the columns of im2col", (n, rows, places))
    kernels.im2col_wide((x,), (columns,), kernels.constants(**windows.constants(c), rows=rows))
    filters = array_module(x).empty((o, rows), dtype=x.dtype)
    kernels.filters_wide((weight, bias), (filters,), kernels.constants(k=k, rows=rows))
    y = empty(x, "the output of half_conv2d", (n, o, places))
    kernels.product((filters, columns), (y,), kernels.PLAIN)
    return y.reshape(n, o, *windows.output_size)


def backward(
    grad: Array, x: Array, weight: Array, windows: Windows, input_gradient: bool, out: tuple[Array, Array] | None = None
) -> tuple[Array | None, Array, Array]:
    """Return the result of `conv2d_backward` for arguments that are checked and share one dtype; in `out`, if given."""
    module, (n, o), places = array_module(x), grad.shape[:2], prod(windows.output_size)
    grad = grad.reshape(n, o, places)
    columns = _columns(x, weight, windows, ones=True)
    k = columns.shape[1] - 1
    each = empty(x, "the weight gradients of all images", (n, o, k + 1))
    kernels.product((grad, columns), (each,), kernels.TURN_B)
    if out is None:
        new = module.empty if n else module.zeros
        out = new(weight.shape, dtype=x.dtype), new(o, dtype=x.dtype)
    elif not n:
        out[0][...], out[1][...] = 0, 0
    kernels.sum_filters((each,), out, kernels.constants(k=k, columns=o * (k + 1)))
    if not input_gradient:
        return None, *out
    del columns  # its memory serves the gradient of the columns
    grad_columns = empty(x, "the gradient of the columns", (n, k, places))
    kernels.product((weight.reshape(o, k), grad), (grad_columns,), kernels.TURN_A)
    grad_x = empty(x, "the gradient by x", x.shape)
    kernels.col2im((grad_columns,), (grad_x,), windows.constants(x.shape[1]))
    return grad_x, *out


def _columns(x: Array, weight: Array, windows: Windows, ones: bool) -> Array:
    """im2col for each image (N, K, L), with a last row of ones if asked."""
    _, c, kh, kw = weight.shape
    oh, ow = windows.output_size
    columns = empty(x, "the columns of im2col", (len(x), c * kh * kw + ones, oh * ow))
    kernels.im2col((x,), (columns,), windows.constants(c, ones))
    return columns


def _filters(weight: Array, bias: Array | None) -> Array:
    """Each filter as a row, its bias last if there is one."""
    o, k = len(weight), prod(weight.shape[1:])
    if bias is None:
        return weight.reshape(o, k)
    rows = array_module(weight).empty((o, k + 1), dtype=weight.dtype)
    kernels.filters((weight, bias), (rows,), kernels.constants(k=k))
    return rows
