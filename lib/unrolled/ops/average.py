"""Average-pooling of x (N, C, H, W), and the backward pass."""

from __future__ import annotations

from math import prod

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.ops.allocation import empty
from unrolled.ops.arguments import NCHW, IntOrPair, as_floats, check_array, check_arrays, check_shape, rounds_once
from unrolled.ops.pool import pooling_windows


@rounds_once
def avg_pool2d(x: Array, kernel_size: IntOrPair, stride: IntOrPair | None = None, padding: IntOrPair = 0) -> Array:
    """Return the mean of each window of x (N, C, H, W): (N, C, OH, OW). Padding counts as zeros, as PyTorch's default.

    stride is kernel_size unless given; padding must be smaller than the kernel. Raises ValueError otherwise and where
    the window does not fit.
    """
    check_arrays(x=x)
    windows = pooling_windows(x.shape, kernel_size, stride, padding)
    (x,) = as_floats(x)
    if kernels.take(x):
        y = empty(x, "the output of avg_pool2d", (*x.shape[:2], *windows.output_size))
        kernels.avg_pool((x,), (y,), windows.constants())
        return y
    rows, columns = windows.slides()
    padded = windows.pad(x)
    # The sum of a window is the sum of its rows' sums: k + k additions instead of k * k.
    in_row = sum(padded[..., column] for column in columns)
    return sum(in_row[..., row, :] for row in rows) * (1 / prod(windows.kernel_size))


@rounds_once
def avg_pool2d_backward(
    grad: Array, x_shape: NCHW, kernel_size: IntOrPair, stride: IntOrPair | None = None, padding: IntOrPair = 0
) -> Array:
    """Share grad (N, C, OH, OW) equally among the pixels of each window: grad_x of x_shape (N, C, H, W).

    Where windows overlap, the shares add up. What falls on the padding is lost. Raises ValueError for shapes that do
    not fit.
    """
    if len(x_shape) != 4:
        raise ValueError(f"x_shape is {tuple(x_shape)}; expected 4 sizes (N, C, H, W)")
    windows = pooling_windows(x_shape, kernel_size, stride, padding, image=f"x_shape {tuple(x_shape)}")
    check_array("grad", grad)
    check_shape("grad", grad, (*x_shape[:2], *windows.output_size), f"x_shape {tuple(x_shape)}")
    (grad,) = as_floats(grad)
    if kernels.take(grad):
        grad_x = empty(grad, "the gradient by x", tuple(x_shape))
        kernels.avg_pool_backward((grad,), (grad_x,), windows.constants())
        return grad_x
    (h, w), (ph, pw) = windows.size, windows.padding
    rows, columns = windows.slides()
    module = array_module(grad)
    in_row = module.zeros((*x_shape[:2], h + 2 * ph, grad.shape[3]), dtype=grad.dtype)
    for row in rows:
        in_row[..., row, :] += grad
    in_row *= 1 / prod(windows.kernel_size)
    grad_x = module.zeros((*x_shape[:2], h, w + 2 * pw), dtype=grad.dtype)
    for column in columns:
        grad_x[..., column] += in_row[..., ph : ph + h, :]
    return grad_x[..., pw : pw + w]
