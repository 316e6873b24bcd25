"""Schedules of a pipeline: any valid one, as short as can be, and the memory that it takes. Usual wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, shortened
from unrolled.checks.domain import edge_size
from unrolled.checks.mistakes import Mistake
from unrolled.checks.spec import Inputs
from unrolled.parallel import gpipe
from unrolled.parallel.pipeline import activations, alternating, faults, placed

Slots = list[list[Any]]
ONE_LIST = "all rows are the same: [[None] * n] * p is one list, p times; [[None] * n for _ in range(p)] makes p lists"
SHAPE = 'expected a list for each stage, its slots ("F", i), ("B", i) or None'


def judge(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Say what is wrong with a schedule, or how many slots it has too many."""
    stages, micro_batches = inputs["stages"], inputs["micro_batches"]
    if isinstance(schedule := _read(got), Mismatch):
        return schedule
    if wrong := faults(schedule, stages, micro_batches):
        if _one_list(schedule, micro_batches):
            return Mismatch((wrong[0], ONE_LIST))
        few = f"micro-batches are 0 to {micro_batches - 1}: no stage has more than these to begin with, min(p - s, m)"
        there_is_not = (few,) if "which there is not" in wrong[0] else ()
        return Mismatch((wrong[0], *there_is_not, *(("and more like it",) if len(wrong) > 1 else ())))
    slots, most = max(map(len, schedule)), 2 * (micro_batches + stages - 1)
    if slots > most:
        return Mismatch.of(
            f"the schedule is valid, but takes {slots} slots: 2 (m + p - 1) are {most}",
            "a stage waits where it could work: each pass can begin in the slot after the one that it needs",
        )
    return None


def judge_memory(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """As `judge`; and stage s of p may hold the activations of at most p - s micro-batches."""
    if wrong := judge(got, expected, inputs):
        return wrong
    schedule, stages = _read(got), inputs["stages"]
    for stage, held in enumerate([] if isinstance(schedule, Mismatch) else activations(schedule)):
        if held > stages - stage:
            return Mismatch.of(
                f"valid and short, but stage {stage} holds the activations of {held} micro-batches",
                f"p - s are {stages - stage}: let backward passes begin earlier, or forward passes later",
            )
    return None


def any_size(rng: np.random.Generator) -> Inputs:
    """Draw stages and micro-batches: any of the two may be more."""
    return {"stages": edge_size(rng, 8), "micro_batches": edge_size(rng, 24)}


def _read(got: Any) -> Slots | Mismatch:
    """The schedule, its slots tuples or None; what is wrong with what is none."""
    if not isinstance(got, list | tuple) or not all(isinstance(row, list | tuple) for row in got):
        return Mismatch((SHAPE,))
    for stage, row in enumerate(got):
        for number, slot in enumerate(row):
            if slot is not None and not _is_pass(slot):
                shown = shortened(repr(slot) if isinstance(slot, str) else slot, 60)
                return Mismatch.of(SHAPE, f"stage {stage} has {shown} in slot {number}; i is a whole number")
    return [[None if slot is None else (str(slot[0]), int(slot[1])) for slot in row] for row in got]


def _one_list(schedule: Slots, micro_batches: int) -> bool:
    """Whether the rows may be one list that all stages wrote into: then it lost passes, or has some twice.

    The judge gets copies of the rows, so it cannot ask whether they are the same object.
    """
    first, *others = schedule or [[]]
    passes = [slot for slot in first if slot is not None]
    alike = bool(others and passes) and all(row == first for row in others)
    return alike and not len(passes) == len(set(passes)) == 2 * micro_batches


def _is_pass(slot: Any) -> bool:
    if not isinstance(slot, list | tuple) or len(slot) != 2:
        return False
    whole = isinstance(slot[1], int | np.integer) and not isinstance(slot[1], bool)
    return whole and isinstance(slot[0], str) and slot[0] in ("F", "B")


def at_once(stages: int, micro_batches: int) -> Slots:
    """Return passes that begin in all stages at the same time."""
    row = [(kind, i) for kind in "FB" for i in range(micro_batches)]
    return [list(row) for _ in range(stages)]


def _filled(says: str, back: Callable[[int, int, int], int], alone: bool = False) -> Mistake:
    """Return the mistake of forward pass i in slot s + i of stage s, and backward pass i in slot back(s, p, m) + i.

    With each micro-batch `alone`, it has 2 p slots to itself.
    """

    def schedule(stages: int, micro_batches: int) -> Slots:
        every = 2 * stages if alone else 1
        slots = every * micro_batches if alone else 2 * (micro_batches + stages - 1)
        rows: Slots = [[None] * slots for _ in range(stages)]
        for stage, row in enumerate(rows):
            for i in range(micro_batches):
                row[stage + every * i] = ("F", i)
                row[back(stage, stages, micro_batches) + every * i] = ("B", i)
        return rows

    return Mistake(says, schedule)


MISTAKES = (
    Mistake("your stages all begin at once: micro-batch i reaches stage s only in slot s + i", at_once),
    _filled("your way back begins in the first stage: it must begin in the last one", lambda s, p, m: m + p - 1 + s),
    _filled(
        "backward passes begin in slot m, when the last stage has forward passes to do until slot m + p - 2",
        lambda s, p, m: m + p - 1 - s,
    ),
    _filled(
        "each micro-batch waits until the one before is through: begin it one slot after the one before",
        lambda s, p, m: 2 * p - 1 - s,
        alone=True,
    ),
)


def same_on_each_stage(stages: int, micro_batches: int) -> Slots:
    """Return the schedule of stages that do what they can, backward passes first, and hold p micro-batches at most."""
    rows: Slots = [[] for _ in range(stages)]
    done: set[tuple[int, str, int]] = set()
    while len(done) < 2 * stages * micro_batches:
        begun = [_next_pass(done, stage, stages, micro_batches) for stage in range(stages)]
        for stage, piece in enumerate(begun):
            rows[stage].append(piece)
        done |= {(stage, *piece) for stage, piece in enumerate(begun) if piece is not None}
    return rows


def _next_pass(done: set[tuple[int, str, int]], stage: int, stages: int, micro_batches: int) -> tuple[str, int] | None:
    forward, back = (sum((stage, kind, i) in done for i in range(micro_batches)) for kind in "FB")
    if back < forward and (stage == stages - 1 or (stage + 1, "B", back) in done):
        return "B", back
    free = forward < micro_batches and forward - back < stages
    return ("F", forward) if free and (stage == 0 or (stage - 1, "F", forward) in done) else None


def _one_too_few(stages: int, micro_batches: int) -> Slots:
    """Return what 1F1B gives if stage s begins with p - s - 1 forward passes, one at the least."""
    first = [max(1, stages - stage - 1) for stage in range(stages)]
    return placed([alternating(min(count, micro_batches), micro_batches) for count in first])


FORWARD_FIRST = "all forward passes come first, so that each stage holds all m"

LEAN_MISTAKES = (
    Mistake(FORWARD_FIRST, gpipe),
    _filled(FORWARD_FIRST, lambda s, p, m: m + 2 * (p - 1) - s),
    Mistake(
        "each stage holds up to p micro-batches: stage s needs p - s, since its way to the last stage is shorter",
        same_on_each_stage,
    ),
    Mistake(
        "too few forward passes come before the first backward pass: stage s needs p - s, or it has to wait",
        _one_too_few,
    ),
)
