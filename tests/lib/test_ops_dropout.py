"""Dropout: what the mask holds, how often, the same for the same seed, and the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from ops_cases import Call

from unrolled import device, ops


def drop(x: Any) -> Any:
    """`ops.dropout` with a generator of x's module, as it demands."""
    return ops.dropout(x, 0.4, device.array_module(x).random.default_rng(1))


drop.__name__ = "dropout"

SAMPLES = np.random.default_rng(7).normal(size=(5, 7)).astype(np.float32)
CALLS = {
    "dropout": Call(drop, (SAMPLES,)),
    "dropout_backward": Call(ops.dropout_backward, (SAMPLES, SAMPLES)),
}
"""For `test_ops_contract.py`."""


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@settings(max_examples=40, deadline=None)
@given(
    x=arrays.arrays(
        np.float32, arrays.array_shapes(min_dims=0), elements=st.floats(-1e3, 1e3, width=32) | st.just(np.nan)
    ),
    rate=st.floats(0, 0.99),
    seed=st.integers(0, 99),
)
def test_a_value_is_0_or_scaled_as_the_mask_says(x: Any, rate: float, seed: int) -> None:
    y, mask = ops.dropout(x, rate, generator(seed))
    assert np.shape(y) == np.shape(mask) == x.shape
    assert set(np.unique(mask)) <= {np.float32(0), np.float32(1 / (1 - rate))}
    np.testing.assert_array_equal(y, x * mask)
    np.testing.assert_array_equal(ops.dropout_backward(x, mask), y)  # the same product back and forth


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_share_that_is_dropped_and_the_mean_that_stays(rate: float, dtype: Any) -> None:
    n = 40_000
    y, mask = ops.dropout(np.ones(n, dtype), rate, generator(3))
    deviation = (rate * (1 - rate) / n) ** 0.5
    assert abs((mask == 0).mean() - rate) < 4 * deviation
    assert abs(y.mean() - 1) < 4 * deviation / (1 - rate)


def test_the_same_seed_gives_the_same_mask_in_any_dtype_and_the_next_draw_another() -> None:
    x, rng = np.ones(100, np.float32), generator(4)
    first, second = ops.dropout(x, 0.5, rng)[1], ops.dropout(x, 0.5, rng)[1]
    assert (first != second).any()
    np.testing.assert_array_equal(ops.dropout(x.astype(np.float64), 0.5, generator(4))[1], first)


@pytest.mark.parametrize("rate", [-0.1, 1, 50, float("nan")])
def test_a_rate_out_of_range_is_named(rate: float) -> None:
    with pytest.raises(ValueError, match=f"rate is {rate}; expected 0 or more and below 1"):
        ops.dropout(np.ones(3), rate, generator())


@pytest.mark.parametrize("rng", [0, None])
def test_a_seed_is_no_generator(rng: Any) -> None:
    with pytest.raises(TypeError, match=f"rng is {rng}; expected a random generator"):
        ops.dropout(np.ones(3), 0.5, rng)


def test_a_grad_that_does_not_fit_is_named_with_both_shapes() -> None:
    with pytest.raises(ValueError, match=r"grad has shape \(3,\); expected \(2, 3\) to fit mask \(2, 3\)"):
        ops.dropout_backward(np.ones(3), np.ones((2, 3)))
