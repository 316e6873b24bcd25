"""A ladder split by cause: factors by cause, words, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from unrolled import show
from unrolled.show.causes import factors

RUNGS: list[dict[str, Any]] = [
    {"label": "loops", "seconds": 1800.0},
    {"label": "a GPU", "seconds": 100.0, "cause": "hardware"},
    {"label": "one fix", "seconds": 50.0, "cause": "code"},
    {"label": "a graph", "seconds": 10.0, "cause": "code"},
]


def test_rungs_of_one_cause_multiply() -> None:
    assert factors(RUNGS) == pytest.approx({"hardware": 18, "code": 10})


def test_the_words_tell_every_rung_and_every_cause() -> None:
    said = str(show.causes(RUNGS, "an epoch"))
    for words in ("an epoch. loops 30 min", "100 s, 18 times by hardware", "10 s, 5 times by code", "code 10 times"):
        assert words in said, said


def test_nothing_is_cut_off_and_the_causes_stand_below_the_axis() -> None:
    long = [*RUNGS, {"label": "another", "seconds": 0.0123, "cause": "several"}]
    figure = show.causes(long, "an epoch").figure
    figure.canvas.draw()
    box = figure.get_tightbbox()
    assert box.x0 >= 0
    assert box.x1 <= figure.get_figwidth()
    (legend,), (axes,) = figure.legends, figure.axes
    assert legend.get_window_extent().y1 < axes.xaxis.label.get_window_extent().y0


@pytest.mark.parametrize(
    ("rungs", "words"),
    [
        (RUNGS[:1], "expected at least two"),
        ([RUNGS[0], {"label": "x", "seconds": 0.0, "cause": "code"}], "'x' must be above 0"),
        ([RUNGS[0], {"label": "x", "seconds": 1.0}], "cause of rung 'x' is None; expected code, batch"),
    ],
)
def test_what_cannot_be_drawn_is_named(rungs: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        show.causes(rungs)
