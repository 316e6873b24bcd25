"""Convolution by FFT: its tiles and lengths, and the dtype that it refuses; `test_ops_conv.py` has its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops_cases import Call

from unrolled import ops


def floats(*shape: int) -> Any:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


X, WEIGHT, BIAS = floats(2, 3, 6, 5), floats(4, 3, 3, 2), floats(4)
GRAD = floats(2, 4, 3, 8)
LONG, LONG_WEIGHT = floats(1, 1, 3, 90), floats(2, 1, 2, 3)
CALLS = {
    "fft_conv2d": Call(ops.fft_conv2d, (X, WEIGHT, BIAS), ((2, 1), (1, 2))),
    "fft_conv2d, no bias": Call(ops.fft_conv2d, (X, WEIGHT)),
    "fft_conv2d, tiles": Call(ops.fft_conv2d, (LONG, LONG_WEIGHT)),
    "fft_conv2d_backward": Call(ops.fft_conv2d_backward, (GRAD, X, WEIGHT), ((2, 1), (1, 2))),
    "fft_conv2d_backward, tiles": Call(ops.fft_conv2d_backward, (floats(1, 2, 2, 88), LONG, LONG_WEIGHT)),
}
"""For `test_ops_contract.py`."""


def test_float16_is_refused_by_name() -> None:
    grad, x, weight = (a.astype(np.float16) for a in (GRAD, X, WEIGHT))
    with pytest.raises(ValueError, match="x is float16; expected float32 or float64"):
        ops.fft_conv2d(x, weight)
    with pytest.raises(ValueError, match="x is float16; expected float32 or float64"):
        ops.fft_conv2d_backward(grad, x, weight, (2, 1), (1, 2))
