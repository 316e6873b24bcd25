"""Average-pooling of x (N, C, H, W), and the way back."""

from __future__ import annotations

from math import prod

from unrolled.device import Array, array_module
from unrolled.ops.arguments import IntOrPair, as_floats, check_axes, check_shape
from unrolled.ops.pool import pooling_windows


def avg_pool2d(x: Array, kernel_size: IntOrPair, stride: IntOrPair | None = None, padding: IntOrPair = 0) -> Array:
    """The mean of each window of x (N, C, H, W): (N, C, OH, OW). Padding counts as zeros, as by default in PyTorch.

    stride is kernel_size unless given; padding must be smaller than the kernel. Raises ValueError otherwise and where
    the window does not fit.
    """
    check_axes("x", x, "N, C, H, W")
    windows = pooling_windows(x.shape, kernel_size, stride, padding)
    (x,) = as_floats(x)
    y = array_module(x).zeros((*x.shape[:2], *windows.output_size), dtype=x.dtype)
    for _, _, outputs, inputs in windows.offsets():
        y[outputs] += x[inputs]
    y *= 1 / prod(windows.kernel_size)
    return y


def avg_pool2d_backward(
    grad: Array,
    x_shape: tuple[int, int, int, int],
    kernel_size: IntOrPair,
    stride: IntOrPair | None = None,
    padding: IntOrPair = 0,
) -> Array:
    """Share grad (N, C, OH, OW) equally among the pixels of each window: grad_x of x_shape (N, C, H, W).

    Where windows overlap, the shares add up. What falls on the padding is lost.
    """
    if len(x_shape) != 4:
        raise ValueError(f"x_shape is {tuple(x_shape)}; expected 4 sizes (N, C, H, W)")
    windows = pooling_windows(x_shape, kernel_size, stride, padding, image=f"x_shape {tuple(x_shape)}")
    check_shape("grad", grad, (*x_shape[:2], *windows.output_size), f"x_shape {tuple(x_shape)}")
    (grad,) = as_floats(grad)
    share = grad * (1 / prod(windows.kernel_size))
    grad_x = array_module(grad).zeros(x_shape, dtype=grad.dtype)
    for _, _, outputs, inputs in windows.offsets():
        grad_x[inputs] += share[outputs]
    return grad_x
