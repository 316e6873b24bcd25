"""Sorting, Amdahl's law, and the gradient by trying, against gradients known exactly."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

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


@given(arrays.arrays(np.float64, arrays.array_shapes(min_dims=0, min_side=0, max_side=4), elements=st.floats(-3, 3)))
def test_gradient_of_sines(x: Any) -> None:
    gradient = ops.numeric_gradient(lambda x: np.sin(x).sum(), x)
    assert gradient.shape == x.shape
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(gradient, np.cos(x), atol=1e-8)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e3, 1e8])
def test_values_of_any_size_are_moved_by_enough(size: float) -> None:
    x = size * np.array([1.0, -2.0, 3.0])
    np.testing.assert_allclose(ops.numeric_gradient(lambda x: (x * x).sum(), x), 2 * x, rtol=1e-5, atol=1e-9)


def test_x_never_changes_and_what_the_function_does_to_its_argument_does_not_matter() -> None:
    x = np.array([1.0, 2.0])
    x.flags.writeable = False

    def careless(argument: Any) -> Any:
        assert (x == [1, 2]).all()
        argument *= argument
        return argument.sum()

    np.testing.assert_allclose(ops.numeric_gradient(careless, x), [2, 4], rtol=1e-8)


@pytest.mark.parametrize("step", [0, -1e-5, float("nan"), float("inf")])
def test_a_step_that_is_none_is_named(step: float) -> None:
    with pytest.raises(ValueError, match=f"step is {step}; expected a positive number"):
        ops.numeric_gradient(np.sum, np.ones(2), step)


def test_a_function_of_many_numbers_is_named() -> None:
    with pytest.raises(ValueError, match=r"function gave an array of shape \(2,\); expected one number"):
        ops.numeric_gradient(lambda x: 2 * x, np.ones(2))
