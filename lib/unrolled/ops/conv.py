"""Convolution (what deep learning calls so: cross-correlation), from plain loops to one matrix product.

The forward passes take x (N, C, H, W), weight (O, C, KH, KW) and bias (O,) or None, and return (N, O, OH, OW).
"""

from __future__ import annotations

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.ops import batches, blocks, methods
from unrolled.ops.arguments import IntOrPair, rounds_once
from unrolled.ops.conv_arguments import backward_arguments, forward_arguments
from unrolled.ops.windows import Windows


def conv2d_output_size(
    size: IntOrPair, kernel_size: IntOrPair, stride: IntOrPair = 1, padding: IntOrPair = 0
) -> tuple[int, int]:
    """Return (OH, OW), each (size + 2 * padding - kernel_size) // stride + 1. Raises ValueError as `conv2d` does."""
    return Windows.over(size, kernel_size, stride, padding).output_size


@rounds_once
def conv2d_loops(
    x: Array, weight: Array, bias: Array | None = None, stride: IntOrPair = 1, padding: IntOrPair = 0
) -> Array:
    """Convolve with a loop over every axis: the definition, and the slowest way."""
    x, weight, bias, windows = forward_arguments(x, weight, bias, stride, padding)
    (n, c), o = x.shape[:2], len(weight)
    (kh, kw), (oh, ow), (sh, sw) = windows.kernel_size, windows.output_size, windows.stride
    padded = windows.pad(x)
    y = array_module(x).zeros((n, o, oh, ow), dtype=x.dtype)
    for image in range(n):
        for filter_ in range(o):
            for row in range(oh):
                for column in range(ow):
                    total = 0.0 if bias is None else bias[filter_]
                    for channel in range(c):
                        for i in range(kh):
                            for j in range(kw):
                                pixel = padded[image, channel, row * sh + i, column * sw + j]
                                total = total + pixel * weight[filter_, channel, i, j]
                    y[image, filter_, row, column] = total
    return y


@rounds_once
def conv2d_positions(
    x: Array, weight: Array, bias: Array | None = None, stride: IntOrPair = 1, padding: IntOrPair = 0
) -> Array:
    """Convolve with a loop over output positions and one small product at each: (N, C*KH*KW) times (C*KH*KW, O)."""
    x, weight, bias, windows = forward_arguments(x, weight, bias, stride, padding)
    n, o = len(x), len(weight)
    (kh, kw), (oh, ow), (sh, sw) = windows.kernel_size, windows.output_size, windows.stride
    padded = windows.pad(x)
    rows = weight.reshape(o, x.shape[1] * kh * kw).T
    y = array_module(x).zeros((n, o, oh, ow), dtype=x.dtype)
    for row in range(oh):
        for column in range(ow):
            window = padded[:, :, row * sh : row * sh + kh, column * sw : column * sw + kw]
            y[:, :, row, column] = window.reshape(n, len(rows)) @ rows
    return y if bias is None else y + bias[:, None, None]


def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: IntOrPair = 1,
    padding: IntOrPair = 0,
    *,
    method: str = "gemm",
) -> Array:
    """Convolve x (N, C, H, W) with weight (O, C, KH, KW), add bias (O,): (N, O, OH, OW).

    method "gemm": one matrix product with columns as from `im2col`, a few images at a time: `unrolled.ops.blocks` shows
    how. On a GPU all images at once: `unrolled.ops.batches`. "fft" and "winograd": as `fft_conv2d` and
    `winograd_conv2d`. "cudnn": NVIDIA's library, float32 on a GPU (`unrolled.ops.cudnn`). "auto": what was measured to
    be the fastest for such sizes (`unrolled.ops.methods`), never cudnn.
    float32 in, float32 out; integers count as float32, one float64 makes all float64. Inputs are not changed.
    Raises ValueError for shapes that do not fit, a stride below 1, a window larger than the padded input, a method that
    is unknown or does not take such kernels or arrays; ImportError for "cudnn" where it is not installed.
    """
    x, weight, bias, windows = forward_arguments(x, weight, bias, stride, padding)
    if method != "gemm" and (way := methods.module_for(method, x, weight, windows)):
        return way.forward(x, weight, bias, windows)
    forward = batches.forward if kernels.take(x, weight, bias) else blocks.forward
    return forward(x, weight, bias, windows)


def half_conv2d(x: Array, weight: Array, bias: Array, stride: IntOrPair = 1, padding: IntOrPair = 0) -> Array:
    """Convolve float16 arrays on a GPU: columns in float16, products by tensor cores, summed in float32.

    Raises TypeError for other arrays.
    """
    x, weight, same, windows = forward_arguments(x, weight, bias, stride, padding)
    if same is None or not all(kernels.take_half(each) for each in (x, weight, same)):
        raise TypeError(f"x is {x.dtype} and weight {weight.dtype}; expected float16 on a GPU")
    return batches.half_forward(x, weight, same, windows)


@rounds_once
def conv2d_backward(
    grad: Array,
    x: Array,
    weight: Array,
    stride: IntOrPair = 1,
    padding: IntOrPair = 0,
    *,
    method: str = "gemm",
    input_gradient: bool = True,
    out: tuple[Array, Array] | None = None,
) -> tuple[Array | None, Array, Array]:
    """Return (grad_x, grad_weight, grad_bias) from grad (N, O, OH, OW), the gradient of the loss by conv2d's output.

    With y = W @ columns: grad_W = grad @ columns.T, and grad_columns = W.T @ grad goes back as in `col2im`.
    The first layer of a network needs no grad_x: without `input_gradient` it is None, and half of the work is saved.
    `out` are arrays for grad_weight and grad_bias, of the common dtype and in C order.
    method: as in `conv2d`.
    Raises ValueError for shapes that do not fit, and for a method as `conv2d` does.
    """
    grad, x, weight, windows = backward_arguments(grad, x, weight, stride, padding)
    way = None if method == "gemm" else methods.module_for(method, x, weight, windows)
    if way is None and kernels.take(grad, x, weight):
        return batches.backward(grad, x, weight, windows, input_gradient, out)
    grad_x, grad_weight, grad_bias = (way or blocks).backward(grad, x, weight, windows, input_gradient)
    if out is None:
        return grad_x, grad_weight, grad_bias
    out[0][...], out[1][...] = grad_weight, grad_bias
    return grad_x, *out
