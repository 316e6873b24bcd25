"""Batch normalization: what it does to mean and variance, PyTorch's values, and the way back."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_cases import agrees_with_torch

from unrolled import ops


def drawn(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(3, 2, shape)


shapes = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), st.integers(2, 5))


@settings(max_examples=30, deadline=None)
@given(shape=shapes, seed=st.integers(0, 99), epsilon=st.sampled_from([1e-5, 0.1]))
def test_both_passes_are_those_of_torch(shape: Any, seed: int, epsilon: float) -> None:
    torch = pytest.importorskip("torch")
    x = drawn(seed, *shape)
    gamma, beta, mean, variance = np.abs(drawn(seed + 1, 4, shape[1]))
    agrees_with_torch(
        lambda f, x, gamma, beta: f.batch_norm(x, None, None, gamma, beta, training=True, eps=epsilon),
        [x, gamma, beta],
        lambda *arrays: ops.batch_norm2d(*arrays, epsilon=epsilon),
        lambda grad: ops.batch_norm2d_backward(grad, x, gamma, epsilon=epsilon),
        tolerance=1e-7,
    )
    expected = torch.nn.functional.batch_norm(*map(torch.tensor, (x, mean, variance, gamma, beta)), eps=epsilon)
    found = ops.batch_norm2d(x, gamma, beta, mean, variance, epsilon=epsilon)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-9)


def test_the_variance_survives_a_large_mean() -> None:
    x = (1000 + drawn(3, 8, 2, 9, 9)).astype(np.float32)  # the mean of squares less the square of means would lose it
    np.testing.assert_allclose(ops.batch_statistics(x)[1], x.astype(np.float64).var(axis=(0, 2, 3)), rtol=1e-3)


X, C = np.ones((2, 3, 4, 4)), np.ones(3)
WRONG = {
    "x has shape (2, 3); expected 4 axes (N, C, H, W)": lambda: ops.batch_norm2d(np.ones((2, 3)), C, C),
    "gamma has shape (2,); expected (3,) to fit x (2, 3, 4, 4)": lambda: ops.batch_norm2d(X, C[:2], C),
    "beta has shape (1, 3); expected (3,) to fit x (2, 3, 4, 4)": lambda: ops.batch_norm2d(X, C, C[None]),
    "variance has shape (2,); expected (3,)": lambda: ops.batch_norm2d(X, C, C, C, C[:2]),
    "variance is missing: give mean and variance, or neither": lambda: ops.batch_norm2d(X, C, C, C),
    "x has shape (0, 3, 4, 4): the mean of no values": lambda: ops.batch_norm2d(X[:0], C, C),
    "grad has shape (2, 3, 4); expected (2, 3, 4, 4)": lambda: ops.batch_norm2d_backward(X[..., 0], X, C),
}


@pytest.mark.parametrize(("words", "call"), WRONG.items(), ids=WRONG.keys())
def test_what_does_not_fit_is_named(words: str, call: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        call()
