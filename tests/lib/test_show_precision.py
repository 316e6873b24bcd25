"""Pictures of faster and smaller arithmetic: F(2, 3), the map of methods, the systolic array, floats, clipping."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import CROSSING as ROWS

from unrolled.show.clipping import Values
from unrolled.show.crossover import _mapped
from unrolled.show.float_ruler import Format
from unrolled.show.precision_front import marks_of
from unrolled.show.systolic_array import Array
from unrolled.show.winograd import Filtering

SIZES = st.integers(1, 4)


@given(SIZES, SIZES, SIZES, st.integers(0, 99))
def test_an_array_ends_with_the_product_after_its_steps(n: int, k: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = Array(rng.normal(size=(n, k)), rng.normal(size=(k, m)))
    assert np.allclose(found.sums(found.steps), found.a @ found.b)
    assert (found.done(found.steps) == k).all()
    assert (found.done(found.steps - 1) < k).any()
    pairs = [int(found.done(step).sum()) for step in range(found.steps + 1)]
    assert pairs[0] == 0
    assert max(np.diff(pairs)) <= n * m  # a pair a cell and step


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


def test_a_format_reaches_as_far_as_numpy_says() -> None:
    half, info = Format(5, 10), np.finfo(np.float16)
    known = (info.max, info.tiny, info.smallest_subnormal, info.eps)
    assert (half.largest, half.normal, half.smallest, half.step) == known


def test_the_errors_of_clipping_add_up_and_the_best_limit_is_the_best() -> None:
    found = Values(np.random.default_rng(0).standard_t(3, 4000), 7)
    for limit in found.limits:
        scale = limit / 7
        stored = np.clip(np.rint(found.values / scale), -7, 7) * scale
        assert sum(found.errors(limit)) == pytest.approx(float(np.mean((found.values - stored) ** 2)))
    assert found.errors(found.limits[-1])[1] == 0
    assert sum(found.errors(found.best)) == min(sum(found.errors(limit)) for limit in found.limits)
    assert found.best < found.limits[-1]


def test_a_form_keeps_its_mark_in_the_next_picture() -> None:
    earlier = [{"name": name} for name in ("float32", "int8", "pruned")]
    later = [{"name": name} for name in ("float32", "float32, one more epoch", "pruned, one more epoch", "bfloat16")]
    assert marks_of(earlier) == [0, 1, 2]
    assert marks_of(later, earlier) == [0, 3, 2, 4]


NUMBERS = st.floats(-100, 100, width=32)


@given(st.lists(NUMBERS, min_size=4, max_size=4), st.lists(NUMBERS, min_size=3, max_size=3))
def test_four_products_give_the_two_results(pixels: list[float], weights: list[float]) -> None:
    found = Filtering(np.array(pixels), np.array(weights))
    assert found.products.shape == (4,)
    assert np.allclose(found.results, np.correlate(pixels, weights, "valid"), atol=1e-8)


def test_the_map_has_a_row_a_size_and_a_column_a_kernel() -> None:
    sizes, kernels, values = _mapped([*ROWS[:2], *ROWS[3:]])
    assert (sizes, kernels) == ([32, 64], [3, 5, 7])
    assert np.isnan(values[1, 2])  # which was not measured
    assert values[0].tolist() == pytest.approx([9 / 30, 25 / 30, 49 / 30])
