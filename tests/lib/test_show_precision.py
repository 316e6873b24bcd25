"""Pictures of faster and smaller arithmetic: F(2, 3), the map of methods, the systolic array, floats, clipping."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.show.matrices import Array
from unrolled.show.precision import Format, Values
from unrolled.show.winograd import filtered

SIZES = st.integers(1, 4)


@given(SIZES, SIZES, SIZES, st.integers(0, 99))
def test_a_cell_multiplies_what_its_neighbours_had_a_step_before(n: int, k: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = Array(rng.normal(size=(n, k)), rng.normal(size=(k, m)))
    sums = np.zeros((n, m))
    for step in range(1, found.steps + 1):
        before, now = found.pairs(step - 1), found.pairs(step)
        for (row, column), (a, b) in now.items():
            assert column == 0 or before[row, column - 1][0] == a
            assert row == 0 or before[row - 1, column][1] == b
            sums[row, column] += a * b
        assert np.allclose(sums, found.sums(step))
    assert [found.pairs(step) for step in (0, found.steps + 1)] == [{}, {}]


@given(st.floats(-7e4, 7e4, allow_nan=False), st.booleans())
def test_numbers_are_stored_as_numpy_stores_them(value: float, small: bool) -> None:
    value = value * 1e-9 if small else value
    with np.errstate(over="ignore"):
        assert Format(5, 10).stored(value) == float(np.float16(value))
        assert Format(8, 23).stored(value) == float(np.float32(value))


def test_the_errors_of_clipping_add_up_and_the_best_limit_is_the_best() -> None:
    found = Values(np.random.default_rng(0).standard_t(3, 4000), 7)
    for limit in found.limits:
        scale = limit / 7
        stored = np.clip(np.rint(found.values / scale), -7, 7) * scale
        assert sum(found.errors(limit)) == pytest.approx(float(np.mean((found.values - stored) ** 2)))
    assert found.errors(found.limits[-1])[1] == 0
    assert sum(found.errors(found.best)) == min(sum(found.errors(limit)) for limit in found.limits)
    assert found.best < found.limits[-1]


NUMBERS = st.floats(-100, 100, width=32)


@given(st.lists(NUMBERS, min_size=4, max_size=4), st.lists(NUMBERS, min_size=3, max_size=3))
def test_four_products_give_the_two_results(pixels: list[float], weights: list[float]) -> None:
    found = filtered(np.array(pixels), np.array(weights))
    assert found["products"].shape == (4,)
    assert np.allclose(found["results"], np.correlate(pixels, weights, "valid"), atol=1e-8)
