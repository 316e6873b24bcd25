"""What holds for all of `ops.precision`: untouched inputs, any layout, arrays of its own, NumPy or a named refusal.

These operations choose dtypes, so `test_ops_contract.py`, where float32 stays float32, is not for them.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from unrolled import ops, simgpu
from unrolled.ops import precision

RNG = np.random.default_rng(11)
X, WEIGHT = (RNG.normal(size=shape).astype(np.float32) for shape in ((5, 70), (4, 70)))
Q, R = (RNG.integers(-127, 128, shape).astype(np.int8) for shape in ((3, 6), (6, 2)))
SCALE = np.float32(0.03)
SIGNS = precision.pack_signs(X)

CALLS: dict[str, Any] = {
    "to_half": ((X,), precision.to_half, "float16"),
    "int8_scale": ((X,), lambda x: precision.int8_scale(x, 0, 99), "float32"),
    "quantize_int8": ((X,), lambda x: precision.quantize_int8(x, SCALE), "int8"),
    "dequantize_int8": ((Q,), lambda q: precision.dequantize_int8(q, SCALE), "float32"),
    "clipped_share": ((X,), lambda x: np.array(precision.clipped_share(x, SCALE)), "float64"),
    "int8_matmul": ((Q, R), precision.int8_matmul, "int32"),
    "magnitude_mask": ((X,), lambda x: precision.magnitude_mask(x, 0.5), "float32"),
    "binarize": ((X,), precision.binarize, "float32"),
    "straight_through": ((X, X[::-1].copy()), precision.straight_through, "float32"),
    "pack_signs": ((X,), precision.pack_signs, "uint64"),
    "binary_matmul": ((SIGNS, SIGNS[:2]), lambda a, b: precision.binary_matmul(a, b, 70), "int32"),
    "sparse": ((WEIGHT,), lambda weight: precision.sparse(weight).toarray(), "float32"),
    "sparse_matmul": ((X,), lambda x: precision.sparse_matmul(x, precision.sparse(WEIGHT)), "float32"),
}
every_call = pytest.mark.parametrize(("arrays", "function", "dtype"), CALLS.values(), ids=CALLS.keys())


def test_it_is_a_part_of_ops_and_no_operation_is_missing_here() -> None:
    assert ops.precision is precision
    functions = {name for name in precision.__all__ if inspect.isfunction(getattr(precision, name))}
    assert set(CALLS) == functions - {"bfloat16", "next_loss_scale"}
    assert all(getattr(precision, name).__doc__ for name in functions)


@every_call
def test_results_have_their_dtype_and_inputs_stay_as_they_are(arrays: Any, function: Any, dtype: str) -> None:
    if "sparse" in str(function.__code__.co_names):
        pytest.importorskip("scipy")
    copies = [x.copy() for x in arrays]
    for copy in copies:
        copy.flags.writeable = False
    result = function(*copies)
    assert result.dtype == dtype
    for copy, original in zip(copies, arrays, strict=True):
        np.testing.assert_array_equal(copy, original)
        assert not np.shares_memory(result, copy)


@every_call
def test_any_memory_layout_gives_the_same(arrays: Any, function: Any, dtype: str) -> None:
    if "sparse" in str(function.__code__.co_names):
        pytest.importorskip("scipy")
    strided = [np.repeat(x, 2, axis=1)[::-1, ::2][::-1] for x in arrays]
    strided = [np.asfortranarray(x) if number % 2 else x for number, x in enumerate(strided)]
    np.testing.assert_allclose(function(*strided), function(*arrays), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("arrays", "function", "dtype"), [call for name, call in CALLS.items() if name != "int8_matmul"]
)
def test_arrays_of_the_simulated_gpu_are_refused_by_name(arrays: Any, function: Any, dtype: str) -> None:
    with pytest.raises(TypeError, match=r"runs in NumPy, but .* the simulated GPU"):
        function(*(simgpu.asarray(x) for x in arrays))


@pytest.mark.parametrize("shape", [(5, 7, 3), (16, 32, 16), (0, 3, 2), (3, 0, 2)])
def test_int8_products_on_a_gpu_are_exact_whatever_their_sides(shape: tuple[int, int, int]) -> None:
    n, k, m = shape
    a, b = (RNG.integers(-128, 128, size).astype(np.int8) for size in ((n, k), (k, m)))
    y = precision.int8_matmul(simgpu.asarray(a), simgpu.asarray(b))
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y.get(), a.astype(np.int64) @ b.astype(np.int64))
