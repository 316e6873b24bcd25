"""Fewer and smaller numbers: float16, int8, pruned and binary, each against plain NumPy in int64 or float64."""

import inspect
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled import simgpu
from unrolled.ops import precision
from unrolled.ops.precision import LossScale
from unrolled.ops.precision.int8_products import BLOCK, LONGEST

quick = settings(max_examples=25, deadline=None)
sizes, seeds = st.integers(0, 9), st.integers(0, 99)


def floats(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def int8(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


X, WEIGHT, Q, R = floats(1, 5, 70), floats(2, 4, 70), int8(3, 3, 6), int8(4, 6, 2)
SCALE = np.float32(0.03)
SIGNS = precision.pack_signs(X)

CALLS: dict[str, Any] = {
    "to_half": ((X,), precision.to_half, "float16"),
    "int8_scale": ((X,), lambda x: precision.int8_scale(x, 0, 99), "float32"),
    "quantize_int8": ((X,), lambda x: precision.quantize_int8(x, SCALE), "int8"),
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


def test_no_operation_is_missing_here() -> None:
    functions = {name for name in precision.__all__ if inspect.isfunction(getattr(precision, name))}
    assert set(CALLS) == functions - {"bfloat16", "next_loss_scale"}


@every_call
def test_results_have_their_dtype_whatever_the_layout_and_inputs_stay_as_they_are(
    arrays: Any, function: Any, dtype: str
) -> None:
    """These operations choose dtypes, so `test_ops_contract.py`, where float32 stays float32, is not for them."""
    if "sparse" in str(function.__code__.co_names):
        pytest.importorskip("scipy", reason="SciPy comes with the extra `dev`")
    copies = [x.copy() for x in arrays]
    strided = [np.repeat(x, 2, axis=1)[::-1, ::2][::-1] for x in arrays]
    strided = [np.asfortranarray(x) if number % 2 else x for number, x in enumerate(strided)]
    for copy in copies:
        copy.flags.writeable = False
    result = function(*copies)
    assert result.dtype == dtype
    np.testing.assert_allclose(function(*strided), result, rtol=1e-5, atol=1e-6)
    for copy, original in zip(copies, arrays, strict=True):
        np.testing.assert_array_equal(copy, original)
        assert not np.shares_memory(result, copy)


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"int8_matmul"}))
def test_the_simulated_gpu_is_refused_by_name(name: str) -> None:
    arrays, function, _ = CALLS[name]
    with pytest.raises(TypeError, match=r"(int8|_|[a-z])+ runs in NumPy, but .* the simulated GPU"):
        function(*(simgpu.asarray(x) for x in arrays))


@quick
@given(sizes, st.sampled_from([0, 1, 7, 32, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5]), sizes, seeds)
def test_int8_products_are_bit_exact_and_on_a_gpu_too(n: int, k: int, m: int, seed: int) -> None:
    a, b = int8(seed, n, k), int8(seed + 1, k, m)
    expected = a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(precision.int8_matmul(a, b), expected.astype(np.int32), strict=True)
    if 0 < k <= 32:
        np.testing.assert_array_equal(precision.int8_matmul(simgpu.asarray(a), simgpu.asarray(b)).get(), expected)


def test_int8_products_are_exact_where_sums_are_largest() -> None:
    """Odd products beyond 2^24, which one float32 sum would round."""
    k = 3 * BLOCK
    a = np.full((1, k), -127, np.int8)
    a[0, 0] = -126
    assert precision.int8_matmul(a, a.T)[0, 0] == 127**2 * (k - 1) + 126**2
    lowest = np.full((1, LONGEST), -128, np.int8)
    assert precision.int8_matmul(lowest, lowest.T)[0, 0] == 2**14 * LONGEST


def test_half_keeps_infinity_and_nan() -> None:
    np.testing.assert_array_equal(precision.to_half(np.array([np.inf, np.nan])), [np.inf, np.nan])


def test_the_loss_scale_is_halved_by_overflow_and_doubled_by_good_steps() -> None:
    state = precision.next_loss_scale(LossScale(8.0, 1), finite=False, every=2)
    assert state == (4.0, 0)
    state = precision.next_loss_scale(state, finite=True, every=2)
    assert state == (4.0, 1)
    assert precision.next_loss_scale(state, finite=True, every=2) == (8.0, 0)
    assert precision.next_loss_scale(LossScale(1.0), finite=False).scale == 1
    assert precision.next_loss_scale(LossScale(2.0**24), finite=True, every=1).scale == 2.0**24


@quick
@given(st.integers(1, 9), st.integers(1, 9), seeds, st.sampled_from([None, 0, 1]), st.floats(1e-3, 1e3))
def test_int8_is_within_half_a_scale_and_keeps_zero(n: int, m: int, seed: int, axis: Any, size: float) -> None:
    x = floats(seed, n, m) * np.float32(size)
    x[0, 0] = 0
    scale = precision.int8_scale(x, axis)
    q = precision.quantize_int8(x, scale)
    assert q.dtype == np.int8
    assert q[0, 0] == 0
    assert scale.shape == {None: (), 0: (n, 1), 1: (1, m)}[axis]
    error = np.abs(q * scale.astype(np.float64) - x)
    assert (error <= scale / 2 * (1 + 1e-4)).all()
    assert precision.clipped_share(x, scale) == 0
    assert np.abs(q).max() == 127 or not x.any()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: precision.to_half(np.array([1, -70000.0])), r"x has values up to 70000; float16 ends at 65504"),
        (lambda: precision.sparse_matmul(floats(0, 2, 3), []), r"weight is a list; expected what sparse\(weight"),
        (lambda: precision.int8_scale(floats(0, 0)), r"x has shape \(0,\); expected values to calibrate with"),
        (lambda: precision.int8_scale(np.array([np.inf])), "all of them finite"),
        (lambda: precision.int8_scale(floats(0, 3), axis=1), "axis is 1; x has 1 axes"),
        (lambda: precision.int8_scale(floats(0, 3), percentile=0), "percentile is 0; expected above 0"),
        (lambda: precision.quantize_int8(np.array([np.nan]), np.float32(1)), "x has NaN"),
        (lambda: precision.quantize_int8(floats(0, 3), np.float32(0)), "scale is 0.0; expected finite numbers above 0"),
        (lambda: precision.magnitude_mask(floats(0, 3), 1.0), "fraction is 1.0; expected at least 0 and below 1"),
        (lambda: precision.pack_signs(floats(0, 3)), r"x has shape \(3,\); expected 2 axes"),
        (lambda: precision.sparse(floats(0, 3)), r"weight has shape \(3,\); expected 2 axes"),
        (lambda: precision.int8_matmul(int8(0, 2, 3), int8(0, 2, 3)), "K = 2, but a has shape"),
        (lambda: precision.int8_matmul(int8(0, 1, LONGEST + 1), int8(0, LONGEST + 1, 1)), "expected at most 131071"),
    ],
)
def test_wrong_values_are_named(call: Any, words: str) -> None:
    with pytest.raises((ValueError, OverflowError, TypeError), match=words):
        call()


@quick
@given(st.integers(1, 40), st.floats(0, 0.99), seeds)
def test_a_mask_drops_the_smallest(size: int, fraction: float, seed: int) -> None:
    weight = floats(seed, size)
    mask = precision.magnitude_mask(weight, fraction)
    assert (mask == 0).sum() == int(fraction * size)
    assert np.abs(weight[mask == 0]).max(initial=0) <= np.abs(weight[mask == 1]).min()


@quick
@given(sizes, st.integers(1, 9), st.integers(1, 9), seeds)
def test_sparse_products_are_dense_ones(n: int, k: int, m: int, seed: int) -> None:
    pytest.importorskip("scipy", reason="SciPy comes with the extra `dev`")
    x, weight = floats(seed, n, k), floats(seed + 1, m, k)
    weight *= precision.magnitude_mask(weight, 0.7)
    held = precision.sparse(weight)
    assert held.nnz == np.count_nonzero(weight)
    y = precision.sparse_matmul(x, held)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, x.astype(np.float64) @ weight.T, rtol=1e-4, atol=1e-5)


def test_sparse_products_name_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ImportError, match=r"need scipy.sparse, which is not installed: pip install scipy"):
        precision.sparse(floats(0, 2, 3))


@quick
@given(st.integers(0, 40), st.sampled_from([0, 1, 63, 64, 65, 200, 256]), st.sampled_from([0, 1, 5, 4100]), seeds)
def test_binary_products_are_those_of_signs(n: int, k: int, m: int, seed: int) -> None:
    a, b = floats(seed, n, k), floats(seed + 1, m, k)
    signs = [np.where(x > 0, 1, -1).astype(np.int64).reshape(x.shape) for x in (a, b)]
    packed = precision.pack_signs(a), precision.pack_signs(b)
    if k % 64:
        packed[1][:, -1] |= np.uint64(1 << 63)  # bits after the last value do not count
    y = precision.binary_matmul(*packed, k)
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, signs[0] @ signs[1].T)
    np.testing.assert_array_equal(precision.binarize(a), signs[0])


def test_gradients_pass_straight_through_where_the_sign_can_change() -> None:
    x, grad = np.array([-2, -1, 0, 1, 1.5]), np.arange(1, 6.0)
    np.testing.assert_array_equal(precision.straight_through(grad, x), [0, 2, 3, 4, 0])
