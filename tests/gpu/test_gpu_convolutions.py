"""The ways of a convolution on a real GPU: each gives what gemm gives, cuDNN where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from ops_cases import Geometry, geometries

from unrolled import ops
from unrolled.ops import cudnn
from unrolled.ops.windows import Windows

cp: Any = pytest.importorskip("cupy", reason='CuPy is not installed: pip install -e ".[gpu]"')


def difference(found: Any, expected: Any) -> float:
    """Of the largest value; of 1 where all is smaller, as where all is zero."""
    assert isinstance(found, cp.ndarray)
    assert (found.dtype, found.shape) == (np.float32, expected.shape)
    return float(abs(found - expected).max() / max(1.0, float(abs(expected).max()))) if found.size else 0.0


def arrays(g: Geometry) -> tuple[Any, ...]:
    return tuple(cp.asarray(array.astype(np.float32)) for array in g.arrays())


@pytest.fixture(scope="module")
def _cudnn() -> None:
    try:
        cudnn.frontend()
    except ImportError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("_cudnn")
@settings(max_examples=20, deadline=None)
@given(geometries())
def test_cudnn_gives_what_gemm_gives(g: Geometry) -> None:
    x, weight, bias = arrays(g)
    y = ops.conv2d(x, weight, bias, g.stride, g.padding)
    assert difference(ops.conv2d(x, weight, bias, g.stride, g.padding, method="cudnn"), y) < 1e-4
    expected = ops.conv2d_backward(y, x, weight, g.stride, g.padding)
    found = ops.conv2d_backward(y, x, weight, g.stride, g.padding, method="cudnn")
    for ours, other in zip(found, expected, strict=True):
        assert difference(ours, other) < 1e-4


@pytest.mark.usefixtures("_cudnn")
def test_cudnn_rounds_factors_only_if_asked() -> None:
    rng = cp.random.default_rng(0)
    x = rng.standard_normal((8, 64, 28, 28), dtype="float32")
    weight = rng.standard_normal((64, 64, 3, 3), dtype="float32")
    windows = Windows.over((28, 28), 3, 1, 1)
    exact = ops.conv2d(x.astype("float64"), weight.astype("float64"), padding=1)
    as_it_is, rounded = (cudnn.forward(x, weight, None, windows, tf32) for tf32 in (False, True))
    assert float(abs(as_it_is - exact).max() / abs(exact).max()) < 1e-5
    assert float(abs(rounded - exact).max() / abs(exact).max()) < 1e-2


@pytest.mark.usefixtures("_cudnn")
def test_cudnn_runs_on_the_current_stream_and_in_any_layout() -> None:
    x = cp.random.default_rng(0).standard_normal((6, 5, 3, 2), dtype="float32").T
    weight = cp.random.default_rng(1).standard_normal((3, 3, 3, 4), dtype="float32").T
    expected = ops.conv2d(x, weight)
    stream = cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    with stream:
        found = ops.conv2d(x, weight, method="cudnn")
    stream.synchronize()
    assert difference(found, expected) < 1e-5


@pytest.mark.parametrize("method", ["fft", "winograd", "auto"])
@pytest.mark.parametrize(("channels", "size"), [(3, 40), (64, 14), (16, 70)])
def test_other_methods_give_what_gemm_gives(method: str, channels: int, size: int) -> None:
    x, weight, bias = arrays(Geometry(5, channels, 8, (size, size + 1), (3, 3), (1, 1), (1, 1), 0))
    y = ops.conv2d(x, weight, bias, padding=1)
    assert difference(ops.conv2d(x, weight, bias, padding=1, method=method), y) < 1e-4
    expected = ops.conv2d_backward(y, x, weight, padding=1)
    for ours, other in zip(ops.conv2d_backward(y, x, weight, padding=1, method=method), expected, strict=True):
        assert difference(ours, other) < 1e-4
