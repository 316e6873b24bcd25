"""Pictures of many ranks: the ring all-reduce, the pipeline, scaling curves, and messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn import Drawn
from pictures import IN_TURN, slots

from unrolled import show
from unrolled.parallel.pipeline import bubble
from unrolled.show.ranks import Ring
from unrolled.show.scaling import Model, efficiency
from unrolled.show.schedules import BACKWARD, FORWARD, Pipeline
from unrolled.show.schedules import WRONG as TOO_EARLY
from unrolled.show.style import PALE, RED

# the ring


@pytest.mark.parametrize("size", range(2, 9))
def test_a_ring_adds_up_real_numbers(size: int) -> None:
    """Powers of two: their sum says which ranks are in it, and a rank that is added twice shows."""
    ring, values = Ring(size), np.repeat(2 ** np.arange(size), size).reshape(size, size)
    assert ring.rounds == 2 * (size - 1)
    for number in range(ring.rounds + 1):
        before = values.copy()
        for rank, chunk in ring.moves(number):
            to = (rank + 1) % size
            values[to, chunk] = before[rank, chunk] + (values[to, chunk] if number < size else 0)
        held = [[sum(2**rank for rank in cell) for cell in row] for row in ring.after(number)]
        assert held == values.tolist()
        assert len(ring.moves(number)) == (size if number else 0)  # a chunk of each rank
    assert (values == 2**size - 1).all()
    assert ring.carried(ring.rounds) * size == 2 * (size - 1)


# the pipeline


FILLED = slots("F0 F1 F2 -  -  B0 B1 B2", "-  F0 F1 F2 B0 B1 B2")
BROKEN = {
    "same slot": (slots("F0 - B0", "F0 B0"), [(1, 0)], "stage 1 does F0 in slot 0, before F0 of stage 0"),
    "backward first": (slots("B0 F0"), [(0, 0)], "stage 0 does B0 in slot 0, before F0 of stage 0"),
    "not back yet": (
        slots("F0 - B0", "- F0 B0"),
        [(0, 2)],
        "stage 0 does B0 in slot 2, before B0 of stage 1",
    ),
    "neither": (
        slots("B0 F0 - B0", "- - F0 B0"),
        [(0, 0), (0, 3)],
        "B0 in slot 0, before F0 of stage 0 and B0 of stage 1; 1 more slot",
    ),
    "again": (slots("F0 F0 B0"), [(0, 1)], "stage 0 does F0 in slot 1 again"),
    "left out": (slots("F0 F1 - B0 B1", "- F0 B0"), [(0, 4)], "before B1 of stage 1; 2 passes never done"),
}


def wrong_places(plan: Pipeline) -> list[tuple[int, int]]:
    return [(stage, slot) for slot in range(len(plan.slots)) for stage, _ in plan.wrong(slot)]


def test_both_ways_through_a_pipeline_are_right_and_hold_what_they_hold() -> None:
    for schedule, held in ((FILLED, [3, 3]), (IN_TURN, [2, 1])):
        plan = Pipeline.of(schedule)
        assert (wrong_places(plan), plan.never, plan.most_activations) == ([], 0, held)
        assert (plan.stages, plan.micro_batches, len(plan.slots), plan.fewest) == (2, 3, 8, 8)
        assert bubble(plan.rows) == pytest.approx(1 / (3 + 1))  # (p - 1) / (m + p - 1)
    forward = Pipeline.of(slots("F0 F1", "- F0 F1"))
    assert (forward.never, forward.fewest, forward.most_activations) == (0, 3, [2, 2])


@pytest.mark.parametrize(("schedule", "wrong", "words"), BROKEN.values(), ids=BROKEN)
def test_what_comes_too_early_or_again_in_a_pipeline_is_found(schedule: Any, wrong: Any, words: str) -> None:
    assert wrong_places(Pipeline.of(schedule)) == wrong
    assert f"{words}." in show.pipeline(schedule).alt


def test_a_pipeline_is_drawn_as_it_is(drawn: Drawn) -> None:
    drawn.at(show.pipeline(IN_TURN))
    colours = [colour for _, colour in drawn.fills]
    assert [colours.count(colour) - 1 for colour in (FORWARD, BACKWARD, PALE)] == [6, 6, 4]  # -1: the legend
    assert not drawn.hatches
    lefts = {colour: [box[0] for box, its in drawn.fills if its == colour][:-1] for colour in (FORWARD, BACKWARD)}
    slot = lefts[FORWARD][1] - lefts[FORWARD][0]  # micro-batches 0 and 1 of stage 0 stand side by side
    first = [round((left - lefts[FORWARD][0]) / slot) for left in lefts[BACKWARD]]
    assert sorted(first) == [2, 3, 4, 5, 6, 7]
    drawn.at(show.pipeline(BROKEN["again"][0]))
    assert sum(colour == TOO_EARLY for _, colour in drawn.fills) == 2
    assert [colour for _, colour in drawn.hatches] == [RED, RED]


# strong and weak scaling


def test_a_step_computes_and_then_reduces_its_gradient() -> None:
    model = Model(compute=0.08, gradient=4e6, alpha=1e-3, beta=1e-8)
    assert model.step(1, "strong") == model.step(1, "weak") == 0.08
    reduced = 2 * 3 * (1e-3 + 1e-8 * 4e6 / 4)  # 2 (p - 1) (alpha + beta n / p)
    assert model.step(4, "strong") == pytest.approx(0.02 + reduced)
    assert model.step(4, "weak") == pytest.approx(0.08 + reduced)
    assert efficiency(0.08, 0.04, 4, "strong") == pytest.approx(0.5)
    assert efficiency(0.08, 0.1, 4, "weak") == pytest.approx(0.8)
    assert model.efficiency(4, "weak") == pytest.approx(0.08 / (0.08 + reduced))
