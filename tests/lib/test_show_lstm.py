"""unrolled.show: the pictures of lesson 09 draw what the cell computes, what traces hold and what schedules say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from drawn import Drawn
from pictures import DIAGONALS, RECORD
from pictures import forms as traces

from unrolled import ops, show
from unrolled.show.graph import BIAS, CELL_STEPS, WEIGHT_HH, WEIGHT_IH, C, Cell, H, X, worked_cell
from unrolled.show.ladder import PUBLISHED, gains, largest_gain, steps_of
from unrolled.show.schedules import FIRING, Layers
from unrolled.show.schedules import WRONG as TOO_EARLY
from unrolled.show.style import BLUE, ORANGE, RED, SKY
from unrolled.show.timeline import FORMS_LEFT, RIGHT, Form

EXAMPLE = tuple(np.array(values, float) for values in (X, H, C, WEIGHT_IH, WEIGHT_HH, BIAS))


# the cell


@pytest.mark.parametrize(("inputs", "units"), [(2, 2), (4, 3), (1, 1)])
def test_the_cell_in_the_picture_computes_what_the_library_does(inputs: int, units: int) -> None:
    rng = np.random.default_rng(0)
    shapes = (inputs,), (units,), (units,), (4 * units, inputs), (4 * units, units), (4 * units,)
    given = [rng.standard_normal(shape) for shape in shapes]
    x, h, c, *parameters = given
    right_h, right_c = ops.lstm_step(x[None], h[None], c[None], *parameters)
    values = Cell(*given).values
    np.testing.assert_allclose(values["h"], right_h[0])
    np.testing.assert_allclose(values["c"], right_c[0])
    np.testing.assert_allclose(values["sums"].ravel(), x @ parameters[0].T + h @ parameters[1].T + parameters[2])


def _cell(inputs: int, units: int) -> Cell:
    size = 4 * units
    return Cell(np.ones(inputs), *(np.ones(units),) * 2, np.ones((size, inputs)), np.ones((size, units)), np.ones(size))


def test_the_cell_in_words() -> None:
    lines = [worked_cell(Cell(*EXAMPLE), step) for step in range(len(CELL_STEPS))]
    assert lines[1].endswith("1 × (−2) + (−0.5) × 1 + 0.5 × (−1) + 0.2 × 0 + (−0.5) = −3.5")
    assert lines[2] == "First value: sigmoid(−3.5) = 0.03"
    assert lines[4] == "First value: tanh(0.95) = 0.74"
    assert lines[7] == "First value: 0.88 × tanh(0.81) = 0.59"
    assert worked_cell(_cell(4, 3), 1).startswith("First value: 1 × 1 + ")
    long = Cell(*(np.full_like(values, -0.25) for values in vars(_cell(4, 3)).values()))
    assert worked_cell(long, 1) == "First value: 7 products and a bias = 0.19"


# launches


def test_a_form_says_how_long_it_takes_and_how_busy_the_gpu_is() -> None:
    many, few = (Form.of(trace) for trace in traces().values())
    assert (many.launches, few.launches) == (8, 2)
    assert (many.span, few.span) == pytest.approx((1.65e-4, 6e-5))
    assert (many.busy, few.busy) == pytest.approx((6e-5, 4e-5))  # two streams at once count once


def test_launches_stand_where_their_time_is(drawn: Drawn) -> None:
    """The host's calls, the products and the others of the chosen form, each with a look of its own."""
    drawn.at(show.launches(traces(), start="fused"))
    by_colour = {look: [box for box, colour in drawn.fills if colour == look] for look in (BLUE, ORANGE, SKY)}
    inch = (RIGHT - FORMS_LEFT) / 1.65e-4
    assert [box[0] for box in by_colour[BLUE][:2]] == pytest.approx([FORMS_LEFT, FORMS_LEFT + 2e-5 * inch])
    product, other = by_colour[ORANGE][0], by_colour[SKY][0]
    assert (product[0], product[2]) == pytest.approx((FORMS_LEFT + 2e-5 * inch, 4e-5 * inch))
    assert (other[0], other[2]) == pytest.approx((FORMS_LEFT + 4e-5 * inch, 2e-5 * inch))
    assert other[3] < product[3]  # told apart without colours
    assert other[1] > product[1] + product[3]  # a row of its own for the second stream
    assert {"host", "stream 0", "stream 7"} <= set(drawn.texts)


# the wavefront


def plan(schedule: Any) -> Layers:
    return Layers.of(schedule, 3, 4)


def broken() -> Iterator[tuple[str, list[list[tuple[int, int]]], list[list[tuple[int, int]]]]]:
    """Wrong schedules, with the cells that are wrong in each slot."""
    yield "same slot", [[(0, 0), (1, 0)], [(0, 1), (1, 1)]], [[(1, 0)], [(1, 1)]]
    yield "backward", [[(1, 1)], [(0, 1), (1, 0)], [(0, 0)]], [[(1, 1)], [(0, 1), (1, 0)], []]
    yield "twice", [[(0, 0)], [(0, 0), (0, 1)], [(0, 1)]], [[], [(0, 0)], [(0, 1)]]
    yield "twice at once", [[(0, 0), (0, 0)]], [[(0, 0)]]
    yield "step skipped", [[(0, 0)], [(0, 2)]], [[], [(0, 2)]]


def test_diagonals_are_right_and_so_is_one_cell_at_a_time() -> None:
    one = [[(layer, step)] for layer in range(3) for step in range(4)]
    for schedule in (DIAGONALS, one):
        assert not any(plan(schedule).wrong(slot) for slot in range(len(schedule)))
        assert plan(schedule).never == 0
        assert show.wavefront(schedule, 3, 4).alt.endswith("Every cell fires once, after what it needs.")


@pytest.mark.parametrize(("schedule", "wrong"), [case[1:] for case in broken()], ids=[case[0] for case in broken()])
def test_cells_that_fire_too_early_or_again_are_found(schedule: Any, wrong: Any) -> None:
    found = plan(schedule)
    assert [found.wrong(slot) for slot in range(len(schedule))] == wrong
    assert "after what it needs." not in show.wavefront(schedule, 3, 4).alt


def test_a_slot_is_drawn_as_it_is(drawn: Drawn) -> None:
    """Cells firing and done, an arrow from each that is needed, and what is wrong marked."""
    explorer = show.wavefront(DIAGONALS, 3, 4)
    for slot, (firing, arrows) in enumerate(((1, 0), (2, 2), (3, 4), (3, 5), (2, 4), (1, 2))):
        drawn.at(explorer, slot=slot)
        assert sum(colour == FIRING for _, colour in drawn.fills) == firing + 1  # and the legend's
        assert sum(colour == BLUE for _, colour in drawn.lines) == 2 * (arrows + 1)  # each with its head
        assert len(drawn.hatches) == 1
    drawn.at(show.wavefront([[(0, 0), (1, 0)]], 2, 1), slot=0)
    assert sum(colour == TOO_EARLY for _, colour in drawn.fills) == 2
    assert sum(colour == RED for _, colour in drawn.lines) == 2 * 2
    (box, _), _ = drawn.hatches
    assert box in [box for box, colour in drawn.fills if colour == TOO_EARLY]


# the rungs


def test_the_published_ladder_is_as_it_was_published() -> None:
    steps = steps_of("published", PUBLISHED)
    assert [step.gflops for step in steps] == [349, 724, 994, 1942, 2199, 2290, 3898]
    for step in steps:  # some of its factors are rounded, others cut off
        assert (step.gflops or 0) / 349 == pytest.approx(step.factor, abs=0.1)
    assert largest_gain(steps) == "combined"
    assert "wavefront" not in gains(steps)


def test_the_largest_gain_is_of_one_rung_over_the_one_before() -> None:
    steps = steps_of("recorded", RECORD)
    assert gains(steps) == pytest.approx({"combined": 2, "streams": 0.8, "persistent": 12.5})
    assert largest_gain(steps) == "persistent"
    assert largest_gain(steps_of("slower", {"naive": 1.0, "combined": 2.0})) == ""


def test_a_peak_that_the_caller_knows_gives_the_share_of_it() -> None:
    steps = steps_of("a", [{"name": "naive", "gflops": 50}, {"name": "fused", "gflops": 100}], peak=200)
    assert [(step.factor, step.of_peak) for step in steps] == [(1, 0.25), (2, 0.5)]
    assert [step.of_peak for step in steps_of("recorded", RECORD, peak=1)] == [0.01, 0.02, 0.016, 0.2]
