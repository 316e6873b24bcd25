"""affine, relu and the matrix products by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops_cases import numeric_gradient

from unrolled import ops

RNG = np.random.default_rng(3)
X, WEIGHT, BIAS = RNG.normal(size=(5, 4)), RNG.normal(size=(3, 4)), RNG.normal(size=3)


@pytest.mark.parametrize("affine", [ops.affine, ops.affine_one_by_one])
def test_affine_by_hand(affine: Any) -> None:
    y = affine(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [3.0, 4.0], [1.0, 1.0]]), np.array([0, 1, 2]))
    assert y.tolist() == [[1, 12, 5], [0, 5, 3]]


def test_one_by_one_agrees() -> None:
    np.testing.assert_allclose(ops.affine_one_by_one(X, WEIGHT, BIAS), ops.affine(X, WEIGHT, BIAS), rtol=1e-12)


def test_affine_backward_is_the_numeric_gradient() -> None:
    grad = RNG.normal(size=(5, 3))
    expected = (
        numeric_gradient(lambda v: ops.affine(v, WEIGHT, BIAS), X, grad),
        numeric_gradient(lambda v: ops.affine(X, v, BIAS), WEIGHT, grad),
        numeric_gradient(lambda v: ops.affine(X, WEIGHT, v), BIAS, grad),
    )
    for gradient, numeric in zip(ops.affine_backward(grad, X, WEIGHT), expected, strict=True):
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-8)


def test_relu_cuts_at_zero_and_lets_the_gradient_pass_above_it_only() -> None:
    x = np.array([-2.0, -0.0, 0.0, 3.0, np.inf, -np.inf])
    assert ops.relu(x).tolist() == [0, 0, 0, 3, np.inf, 0]
    assert ops.relu_backward(np.ones(6), x).tolist() == [0, 0, 0, 1, 1, 0]
    assert np.isnan(ops.relu(np.array([np.nan]))).all()


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
    with pytest.raises(ValueError, match=r"grad has shape \(3,\); expected \(5,\) to fit x \(5,\)"):
        ops.relu_backward(np.ones(3), np.ones(5))
    for product in (ops.matmul_loops, ops.matmul_rows):
        with pytest.raises(ValueError, match=r"b has shape \(3, 4\) with K = 3.*a has shape \(5, 4\) with K = 4"):
            product(X, WEIGHT)
        with pytest.raises(ValueError, match=r"a has shape \(4,\); expected 2 axes"):
            product(X[0], WEIGHT)
