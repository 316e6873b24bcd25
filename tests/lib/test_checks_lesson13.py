"""Training against the clock: an accuracy that follows how hard the images are, then a tier by the time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unrolled.checks.compare import Mismatch, Remark
from unrolled.checks.exercises.l13_capstone import against_the_clock
from unrolled.checks.exercises.l13_capstone.against_the_clock import compare, least

PARAMETERS = np.zeros(3, np.float32)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function from both medians and both seconds to what the comparison says; accuracies are given, not measured."""

    def judge(own: float, recipes: float, seconds: float = 1.0, theirs: float = 1.0) -> Mismatch | Remark | None:
        shares = iter([[0.5, own, 1.0], [recipes] * 3])
        monkeypatch.setattr(against_the_clock, "accuracies", lambda parameters, inputs: next(shares))
        return compare([(PARAMETERS, seconds)] * 3, [(PARAMETERS, theirs)] * 3, {})

    return judge


def test_98_percent_are_asked_but_for_two_images_of_400() -> None:
    assert least(1.0) == least(against_the_clock.USUAL) == pytest.approx(0.975)
    assert round(400 * (against_the_clock.ASKED - least(1.0)), 6) == 2


def test_where_the_recipe_has_less_so_much_less_is_asked(judged: Any) -> None:
    assert least(against_the_clock.USUAL - 0.01) == pytest.approx(least(1.0) - 0.01)
    assert isinstance(judged(0.9675, recipes=0.98), Remark)
    assert isinstance(judged(0.9675, recipes=0.985), Mismatch)


def test_what_is_nearly_98_percent_passes_and_what_is_not_does_not(judged: Any) -> None:
    assert isinstance(judged(0.9775, recipes=0.99), Remark)
    found = judged(0.9725, recipes=0.99)
    assert isinstance(found, Mismatch)
    assert "The median is 97.25%; about 98% are asked, on these images at least 97.50%" in found.lines[0]
    assert "not far enough" in found.lines[1]


@pytest.mark.parametrize(
    ("seconds", "tier", "times"),
    [
        (0.5, "gold", "2.00"),
        (0.66, "gold", "1.52"),
        (0.9, "silver", "1.11"),
        (1.1, "bronze", "0.91"),
        (2, "bronze", "0.50"),
    ],
)
def test_a_right_answer_reads_its_tier_and_where_each_begins(
    judged: Any, seconds: float, tier: str, times: str
) -> None:
    found = judged(0.99, recipes=0.99, seconds=seconds)
    assert isinstance(found, Remark)
    assert found.ratio == pytest.approx(1 / seconds)
    assert found.lines[1].startswith(f"{tier}: {times} times as fast as the recipe")
    assert found.lines[1].endswith("Bronze from 0.5, silver from 1, gold from 1.5")


def test_more_than_twice_the_recipes_seconds_is_too_slow(judged: Any) -> None:
    found = judged(0.99, recipes=0.99, seconds=2.1)
    assert isinstance(found, Mismatch)
    assert "2.1 times the recipe's seconds; at most 2 times are asked" in found.lines[0]
