"""All operations on a real GPU against NumPy: the contract's cases, random geometries, every kernel, memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from ops_cases import Geometry, geometries, pooling_geometries
from test_ops_contract import Call, every_call

from unrolled import ops
from unrolled.device import to_host

cp: Any = pytest.importorskip("cupy", reason='CuPy is not installed: pip install -e ".[gpu]"')


def on_gpu(function: Any, *arguments: Any) -> tuple[Any, ...]:
    """What a function gives on the GPU, back on the host; fails if a result has left the GPU by itself."""
    there = [cp.asarray(x) if isinstance(x, np.ndarray) else x for x in arguments]
    result = function(*there)
    results = result if isinstance(result, tuple) else (result,)
    assert all(x is None or isinstance(x, cp.ndarray) for x in results)
    return tuple(None if x is None else to_host(x) for x in results)


def close(found: Any, expected: Any, tolerance: float) -> None:
    assert (found.dtype, found.shape) == (np.asarray(expected).dtype, np.shape(expected))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@every_call
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 2e-5), ("float64", 1e-12), ("float16", 5e-3), ("int64", 2e-5)]
)
def test_as_on_the_host(call: Call, dtype: str, tolerance: float) -> None:
    arrays = tuple(x.astype(dtype) for x in call.arrays)
    if dtype == "float16" and call.function.__name__.startswith("fft_"):
        with pytest.raises(ValueError, match="is float16"):
            call(*map(cp.asarray, arrays))
        return
    results = call(*map(cp.asarray, arrays))
    for result, expected in zip(results, call(*arrays), strict=True):
        assert isinstance(result, cp.ndarray)
        if call.function.__name__ == "dropout":  # CuPy draws other numbers
            expected = to_host(result)
        close(to_host(result), expected, tolerance)


@every_call
def test_host_and_device_arrays_do_not_mix(call: Call) -> None:
    if len(call.arrays) > 1:
        with pytest.raises(TypeError, match="Unsupported type"):
            call(cp.asarray(call.arrays[0]), *call.arrays[1:])


def same(function: Any, *arguments: Any, tolerance: float = 1e-12) -> Any:
    """Return what the function gives on the host; fail unless the GPU gives the same."""
    expected = function(*arguments)
    several = expected if isinstance(expected, tuple) else (expected,)
    for found, wanted in zip(on_gpu(function, *arguments), several, strict=True):
        close(found, wanted, tolerance)
    return expected


@settings(max_examples=12, deadline=None)
@given(geometries())
def test_convolution(g: Geometry) -> None:
    x, weight, bias = g.arrays()
    y = same(ops.conv2d, x, weight, bias, g.stride, g.padding, tolerance=1e-10)
    same(ops.conv2d_backward, y, x, weight, g.stride, g.padding, tolerance=1e-9)
    columns = same(ops.im2col, x, *g[4:7], tolerance=0)
    same(ops.col2im, columns, x.shape, *g[4:7])


@settings(max_examples=12, deadline=None)
@given(pooling_geometries())
def test_pooling(g: Geometry) -> None:
    x = np.random.default_rng(g.seed).choice(np.array([0.0, -0.0, 1.0, np.nan, -np.inf]), (g.n, g.c, *g.size))
    y, indices = same(ops.max_pool2d_with_indices, x, *g[4:7], tolerance=0)
    grad = np.random.default_rng(1).normal(size=y.shape)
    same(ops.max_pool2d_backward, grad, x, *g[4:7])
    same(ops.max_unpool2d, grad, indices, g.size)
    same(ops.avg_pool2d_backward, grad, x.shape, *g[4:7])


@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (70_000, 2), (1, 5000)])
def test_loss_of_any_size(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=shape) * 9, rng.integers(0, shape[1], shape[0])
    for found, expected in zip(
        on_gpu(ops.softmax_cross_entropy, scores, labels), ops.softmax_cross_entropy(scores, labels), strict=True
    ):
        close(found, expected, 1e-10)
    labels[0] = shape[1]
    assert np.isnan(on_gpu(ops.softmax_cross_entropy, scores, labels)[0])


def test_many_images_take_several_calls_of_cublas() -> None:
    x, weight = np.random.default_rng(0).normal(size=(70_000, 1, 2, 2)), np.ones((2, 1, 2, 2))
    close(on_gpu(ops.conv2d, x, weight)[0], ops.conv2d(x, weight), 1e-12)


def test_the_same_call_gives_the_same_bits() -> None:
    x = cp.random.default_rng(0).random((64, 3, 20, 20), dtype="float32")
    weight = cp.random.default_rng(1).random((8, 3, 3, 3), dtype="float32")
    y = ops.conv2d(x, weight)
    first, second = (ops.conv2d_backward(y, x, weight) for _ in range(2))
    assert all((a == b).all() for a, b in zip(first, second, strict=True))
    pooled, where = ops.max_pool2d_with_indices(x, 4, 2)
    windows = ops.pool.pooling_windows(x.shape, 4, 2, 0)
    assert (ops.max_unpool2d(pooled, where, 20, windows) == ops.max_unpool2d(pooled, where, 20, windows)).all()


def test_no_memory_names_the_array_its_size_and_a_smaller_batch() -> None:
    pool = cp.get_default_memory_pool()
    pool.free_all_blocks()
    x, weight = cp.zeros((512, 3, 32, 32), "float32"), cp.zeros((16, 3, 5, 5), "float32")
    pool.set_limit(size=pool.total_bytes() + 50_000_000)
    try:
        with pytest.raises(
            MemoryError, match=r"columns of im2col, \(512, 75, 784\) of float32, 120 MB; try a batch of 256"
        ):
            ops.conv2d(x, weight)
    finally:
        pool.set_limit(size=0)
