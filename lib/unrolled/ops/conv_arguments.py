"""What every convolution does with its arguments first, whatever its method."""

from __future__ import annotations

from unrolled.device import Array
from unrolled.ops.arguments import IntOrPair, as_floats, check_arrays, check_axes, check_shape, check_weight
from unrolled.ops.windows import Windows


def forward_arguments(
    x: Array, weight: Array, bias: Array | None, stride: IntOrPair, padding: IntOrPair
) -> tuple[Array, Array, Array | None, Windows]:
    """Return x (N, C, H, W), weight (O, C, KH, KW) and bias (O,) in one float dtype, and the windows.

    Raises ValueError for shapes that do not fit, a stride below 1, a window larger than the padded input.
    """
    check_arrays(x=x, weight=weight, bias=bias)
    check_weight(x, "N, C, H, W", weight, "O, C, KH, KW", "channels")
    if bias is None:
        x, weight = as_floats(x, weight)
    else:
        check_shape("bias", bias, weight.shape[:1], f"weight {weight.shape}")
        x, weight, bias = as_floats(x, weight, bias)
    return x, weight, bias, _windows(x, weight, stride, padding)


def backward_arguments(
    grad: Array, x: Array, weight: Array, stride: IntOrPair, padding: IntOrPair
) -> tuple[Array, Array, Array, Windows]:
    """Return grad (N, O, OH, OW), x and weight in one float dtype, and the windows. Raises ValueError as above."""
    check_arrays(grad=grad, x=x, weight=weight)
    check_axes("grad", grad, "N, O, OH, OW")
    check_weight(x, "N, C, H, W", weight, "O, C, KH, KW", "channels")
    grad, x, weight = as_floats(grad, x, weight)
    windows = _windows(x, weight, stride, padding)
    expected = (len(x), len(weight), *windows.output_size)
    check_shape("grad", grad, expected, f"x {x.shape} and weight {weight.shape}")
    return grad, x, weight, windows


def _windows(x: Array, weight: Array, stride: IntOrPair, padding: IntOrPair) -> Windows:
    window, image = f"weight has shape {weight.shape}", f"x of shape {x.shape}"
    return Windows.over(x.shape[2:], weight.shape[2:], stride, padding, window=window, image=image)
