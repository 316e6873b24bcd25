"""The ways of a convolution on a real GPU: each gives what gemm gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops_cases import Geometry

from unrolled import ops

cp: Any = pytest.importorskip("cupy", reason='CuPy is not installed: pip install -e ".[gpu]"')


def difference(found: Any, expected: Any) -> float:
    """Of the largest value; of 1 where all is smaller, as where all is zero."""
    assert isinstance(found, cp.ndarray)
    assert (found.dtype, found.shape) == (np.float32, expected.shape)
    return float(abs(found - expected).max() / max(1.0, float(abs(expected).max()))) if found.size else 0.0


def arrays(g: Geometry) -> tuple[Any, ...]:
    return tuple(cp.asarray(array.astype(np.float32)) for array in g.arrays())


@pytest.mark.parametrize("method", ["fft", "winograd", "auto"])
@pytest.mark.parametrize(("channels", "size"), [(3, 40), (64, 14), (16, 70)])
def test_other_methods_give_what_gemm_gives(method: str, channels: int, size: int) -> None:
    x, weight, bias = arrays(Geometry(5, channels, 8, (size, size + 1), (3, 3), (1, 1), (1, 1), 0))
    y = ops.conv2d(x, weight, bias, padding=1)
    assert difference(ops.conv2d(x, weight, bias, padding=1, method=method), y) < 1e-4
    expected = ops.conv2d_backward(y, x, weight, padding=1)
    for ours, other in zip(ops.conv2d_backward(y, x, weight, padding=1, method=method), expected, strict=True):
        assert difference(ours, other) < 1e-4
