"""Pictures of smaller numbers: the systolic array, the ruler of floats, clipping, and the front of precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled import show
from unrolled.show.clipping import Values
from unrolled.show.float_ruler import Format
from unrolled.show.precision_front import marks_of
from unrolled.show.systolic_array import Array

SIZES = st.integers(1, 4)
ROWS = [
    {"name": "float32", "accuracy": 0.98, "bytes": 4000, "seconds": 0.02},
    {"name": "binary", "accuracy": 0.95, "bytes": 125, "seconds": 0.01},
]


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


def test_a_cell_begins_a_step_after_its_neighbours() -> None:
    found = Array(np.ones((3, 2)), np.ones((2, 3)))
    assert found.done(1).tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert found.done(2).tolist() == [[2, 1, 0], [1, 0, 0], [0, 0, 0]]
    explorer = show.systolic_array([[1, 2], [3, 4]], [[5, 6], [7, 8]])
    alt = explorer.at(step=2).alt
    assert "step 2 of 4. 3 cells at work now; 4 of 8 products done. Sums: 19, 6; 15, 0." in alt
    assert alt.endswith("Multiplied now: 2 × 7, 1 × 6 and 3 × 5.")


@pytest.mark.parametrize(("a", "b"), [([[1, 2]], [[1, 2]]), ([1, 2], [[1], [2]]), (np.ones((5, 1)), [[1]])])
def test_what_no_array_takes_is_refused(a: Any, b: Any) -> None:
    with pytest.raises(ValueError, match="a and b must"):
        show.systolic_array(a, b)


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
    alt = show.float_ruler().alt
    assert alt.startswith("float16: 5 bits of exponent and 10 of fraction.")
    assert "1e-08 is stored as 0" in alt
    assert "70000 is stored as infinity" in alt
    assert show.float_ruler().at(exponent=8, fraction=7).alt.startswith("bfloat16")
    with pytest.raises(ValueError, match="exponent must be 2 to 8 and fraction 1 to 23, got 9 and 10"):
        show.float_ruler(exponent=9)


def test_the_errors_of_clipping_add_up_and_the_best_limit_is_the_best() -> None:
    found = Values(np.random.default_rng(0).standard_t(3, 4000), 7)
    for limit in found.limits:
        scale = limit / 7
        stored = np.clip(np.rint(found.values / scale), -7, 7) * scale
        assert sum(found.errors(limit)) == pytest.approx(float(np.mean((found.values - stored) ** 2)))
    assert found.errors(found.limits[-1])[1] == 0
    assert sum(found.errors(found.best)) == min(sum(found.errors(limit)) for limit in found.limits)
    assert found.best < found.limits[-1]
    explorer = show.clipping(found.values, bits=4)
    assert explorer.start == {"limit": found.limits[-1]}
    assert f"The best limit is {found.best:.3g}" in explorer.alt
    assert "4,000 values" in explorer.alt


@pytest.mark.parametrize(
    ("values", "bits", "message"),
    [([1, 1], 8, "not all the same"), ([1, np.nan], 8, "must be finite"), ([1, 2], 9, "bits must be 2 to 8, got 9")],
)
def test_values_that_cannot_be_clipped_are_refused(values: Any, bits: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        show.clipping(values, bits)


def test_the_front_in_words() -> None:
    alt = show.precision_front(ROWS, "Digits").alt
    assert alt == "Digits. float32: 98 % right, 4 kB, 20 ms; binary: 95 % right, 125 B, 10 ms."
    for rows in ([], [{**ROWS[0], "accuracy": 98}], [{**ROWS[0], "bytes": 0}]):
        with pytest.raises(ValueError, match="rows must hold"):
            show.precision_front(rows)


def test_a_form_keeps_its_mark_in_the_next_picture() -> None:
    earlier = [{"name": name} for name in ("float32", "int8", "pruned")]
    later = [{"name": name} for name in ("float32", "float32, one more epoch", "pruned, one more epoch", "bfloat16")]
    assert marks_of(earlier) == [0, 1, 2]
    assert marks_of(later, earlier) == [0, 3, 2, 4]
