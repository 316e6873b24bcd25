"""Pictures of faster convolutions: F(2, 3) step by step, and the map of where one method overtakes another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled import show
from unrolled.show.crossover import _mapped
from unrolled.show.winograd import Filtering

ROWS = [{"kernel": k, "size": size, "faster": k * k / 30 * size / 32} for size in (64, 32) for k in (3, 5, 7)]
NUMBERS = st.floats(-100, 100, width=32)


@given(st.lists(NUMBERS, min_size=4, max_size=4), st.lists(NUMBERS, min_size=3, max_size=3))
def test_four_products_give_the_two_results(pixels: list[float], weights: list[float]) -> None:
    found = Filtering(np.array(pixels), np.array(weights))
    assert found.products.shape == (4,)
    assert np.allclose(found.results, np.correlate(pixels, weights, "valid"), atol=1e-8)


def test_each_step_says_what_is_there_and_no_more() -> None:
    explorer = show.winograd_1d([1, 2, 4, 3], [2, 1, -1])
    texts = [explorer.at(step=step).alt for step in range(5)]
    assert "y0 = 1 · 2 + 2 · 1 + 4 · (−1) = 0" in texts[0]
    assert "y1 = 2 · 2 + 4 · 1 + 3 · (−1) = 5: 6 products" in texts[0]
    assert "sums of pixels −3, 6, 2, −1." in texts[1]
    assert "sums of weights 2, 1, 0, −1." in texts[2]
    assert "products −6, 6, 0, 1." in texts[3]
    assert texts[4].endswith("results 0, 5.")
    assert not any("products −6" in text for text in texts[:3])
    assert explorer.alt == texts[4]


@pytest.mark.parametrize(
    ("pixels", "weights", "message"),
    [
        ([1, 2, 3], [1, 2, 3], r"pixels must be 4 finite numbers, got \[1.0, 2.0, 3.0\]"),
        ([1, 2, 3, 4], [[1, 2, 3]], "weights must be 3 finite numbers"),
        ([1, 2, 3, np.nan], [1, 2, 3], "pixels must be 4 finite numbers"),
    ],
)
def test_what_is_no_row_of_pixels_or_weights_is_refused(pixels: Any, weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        show.winograd_1d(pixels, weights)


def test_the_map_has_a_row_a_size_and_a_column_a_kernel() -> None:
    sizes, kernels, values = _mapped([*ROWS[:2], *ROWS[3:]])
    assert (sizes, kernels) == ([32, 64], [3, 5, 7])
    assert np.isnan(values[1, 2])  # which was not measured
    assert values[0].tolist() == pytest.approx([9 / 30, 25 / 30, 49 / 30])


def test_the_map_in_words() -> None:
    picture = show.crossover(ROWS)
    assert "measured here, 6 pairs of sizes" in picture.alt
    assert "images of 32: faster with kernels of 7" in picture.alt
    assert "images of 64: faster with kernels of 5, 7" in picture.alt
    assert picture.alt.endswith("at most 3.27 times.")
    slower = [{**row, "faster": 0.1} for row in ROWS]
    both = show.crossover(ROWS, recorded=("recorded", slower))
    assert "recorded, 6 pairs of sizes: images of 32: never faster; images of 64: never faster" in both.alt


@pytest.mark.parametrize("rows", [[], [{"kernel": 3, "size": 8, "faster": 0}]])
def test_a_map_of_nothing_is_refused(rows: Any) -> None:
    with pytest.raises(ValueError, match="rows must hold kernel, size and faster above 0"):
        show.crossover(rows)
