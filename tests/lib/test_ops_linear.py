"""affine beside PyTorch, and the matrix products by hand beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_cases import agrees_with_torch

from unrolled import ops

RNG = np.random.default_rng(3)
X, WEIGHT, BIAS = RNG.normal(size=(5, 4)), RNG.normal(size=(3, 4)), RNG.normal(size=3)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 64), st.integers(1, 30), st.integers(1, 10), st.sampled_from([ops.affine, ops.affine_one_by_one]))
def test_affine_and_its_gradients_are_pytorchs(n: int, d: int, m: int, affine: Any) -> None:
    x, weight, bias = (np.random.default_rng(n).normal(size=shape) for shape in ((n, d), (m, d), (m,)))
    agrees_with_torch(
        lambda functional, *tensors: functional.linear(*tensors),
        [x, weight, bias],
        affine,
        lambda grad: ops.affine_backward(grad, x, weight),
    )


@pytest.mark.parametrize("product", [ops.matmul_loops, ops.matmul_rows])
@pytest.mark.parametrize(("n", "k", "m"), [(1, 1, 1), (3, 4, 2), (2, 0, 3), (5, 1, 4)])
def test_matrix_products(product: Any, n: int, k: int, m: int) -> None:
    a, b = RNG.normal(size=(n, k)), RNG.normal(size=(k, m))
    np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-12, atol=1e-12)


def test_errors_name_the_argument_and_both_shapes() -> None:
    for affine in (ops.affine, ops.affine_one_by_one):
        with pytest.raises(ValueError, match=r"weight has shape \(3, 5\).*x has shape \(5, 4\)"):
            affine(X, np.zeros((3, 5)), BIAS)
        with pytest.raises(ValueError, match=r"bias has shape \(4,\); expected \(3,\) to fit weight \(3, 4\)"):
            affine(X, WEIGHT, np.zeros(4))
        with pytest.raises(ValueError, match=r"x has shape \(4,\); expected 2 axes \(N, D\)"):
            affine(X[0], WEIGHT, BIAS)
    with pytest.raises(ValueError, match=r"grad has shape \(5, 4\); expected \(5, 3\) to fit x \(5, 4\)"):
        ops.affine_backward(X, X, WEIGHT)
    for product in (ops.matmul_loops, ops.matmul_rows):
        with pytest.raises(ValueError, match=r"b has shape \(3, 4\) with K = 3.*a has shape \(5, 4\) with K = 4"):
            product(X, WEIGHT)
        with pytest.raises(ValueError, match=r"a has shape \(4,\); expected 2 axes"):
            product(X[0], WEIGHT)
