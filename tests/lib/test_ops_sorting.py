"""Sorting and Amdahl's law."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled import ops

numbers = st.lists(st.one_of(st.integers(-9, 9), st.floats(allow_nan=False)))


@given(numbers, numbers)
def test_merge(a: list[float], b: list[float]) -> None:
    a, b = sorted(a), sorted(b)
    first, second = a.copy(), b.copy()
    assert ops.merge(a, b) == sorted(a + b)
    assert (a, b) == (first, second)


def test_of_equal_values_those_of_the_first_list_come_first() -> None:
    assert list(map(type, ops.merge([1, 2], [1.0, 2.0]))) == [int, float, int, float]


@pytest.mark.parametrize("sort", [ops.merge_sort, ops.bubble_sort])
@given(values=numbers)
def test_sorting_gives_a_sorted_copy(sort: Any, values: list[float]) -> None:
    before = values.copy()
    result = sort(values)
    assert result == sorted(values)
    assert values == before
    assert result is not values


@pytest.mark.parametrize(
    ("fraction", "factor", "speedup"),
    [(0.5, 2, 4 / 3), (0.9, math.inf, 10), (0, 100, 1), (1, 8, 8), (0.936, 34, 10.92)],
)
def test_amdahl(fraction: float, factor: float, speedup: float) -> None:
    assert ops.amdahl_speedup(fraction, factor) == pytest.approx(speedup, rel=1e-3)


@pytest.mark.parametrize(
    ("fraction", "factor", "name"), [(-0.1, 2, "fraction"), (1.1, 2, "fraction"), (0.5, 0, "factor")]
)
def test_amdahl_refuses_what_is_no_fraction_and_no_factor(fraction: float, factor: float, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is "):
        ops.amdahl_speedup(fraction, factor)
