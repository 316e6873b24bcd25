"""Schedules of a pipeline: any valid one, as short as can be, and the memory that it takes. Usual wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, shortened
from unrolled.checks.spec import Inputs
from unrolled.parallel import gpipe
from unrolled.parallel.pipeline import activations, alternating, faults, placed

Slots = list[list[Any]]
ONE_LIST = "all rows are the same: [[None] * n] * p is one list, p times; [[None] * n for _ in range(p)] makes p lists"
SHAPE = 'expected a list for each stage, its slots ("F", i), ("B", i) or None'


def reference(stages: int, micro_batches: int) -> Slots:
    """Return the schedule with all forward passes first."""
    return gpipe(stages, micro_batches)


def judge(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Say what is wrong with a schedule, or how many slots it has too many."""
    stages, micro_batches = inputs["stages"], inputs["micro_batches"]
    if isinstance(schedule := _read(got), Mismatch):
        return schedule
    if wrong := faults(schedule, stages, micro_batches):
        if _one_list(schedule, micro_batches):
            return Mismatch((wrong[0], ONE_LIST))
        return Mismatch((wrong[0], *(("and more like it",) if len(wrong) > 1 else ())))
    slots, most = max(map(len, schedule)), 2 * (micro_batches + stages - 1)
    if slots > most:
        return Mismatch(
            (
                f"the schedule is valid, but takes {slots} slots: 2 (m + p - 1) are {most}",
                "a stage waits where it could work: each pass can begin in the slot after the one that it needs",
            )
        )
    return None


def judge_memory(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """As `judge`; and stage s of p may hold the activations of at most p - s micro-batches."""
    if wrong := judge(got, expected, inputs):
        return wrong
    schedule, stages = _read(got), inputs["stages"]
    for stage, held in enumerate([] if isinstance(schedule, Mismatch) else activations(schedule)):
        if held > stages - stage:
            return Mismatch(
                (
                    f"valid and short, but stage {stage} holds the activations of {held} micro-batches",
                    f"p - s are {stages - stage}: let backward passes begin earlier, or forward passes later",
                )
            )
    return None


def any_size(rng: np.random.Generator) -> Inputs:
    """Draw stages and more micro-batches than that."""
    stages = int(rng.integers(2, 9))
    return {"stages": stages, "micro_batches": stages + int(rng.integers(1, 25))}


def _read(got: Any) -> Slots | Mismatch:
    """The schedule, its slots tuples or None; what is wrong with what is none."""
    if not isinstance(got, list | tuple) or not all(isinstance(row, list | tuple) for row in got):
        return Mismatch((SHAPE,))
    for stage, row in enumerate(got):
        for number, slot in enumerate(row):
            if slot is not None and not _is_pass(slot):
                return Mismatch((SHAPE, f"stage {stage} has {_shown(slot)} in slot {number}; i is a whole number"))
    return [[None if slot is None else (str(slot[0]), int(slot[1])) for slot in row] for row in got]


def _one_list(schedule: Slots, micro_batches: int) -> bool:
    """Whether the rows may be one list that all stages wrote into: then it lost passes, or has some twice.

    The judge gets copies of the rows, so it cannot ask whether they are the same object.
    """
    first, *others = schedule
    passes = [slot for slot in first if slot is not None]
    alike = bool(others and passes) and all(row == first for row in others)
    return alike and not len(passes) == len(set(passes)) == 2 * micro_batches


def _is_pass(slot: Any) -> bool:
    if not isinstance(slot, list | tuple) or len(slot) != 2:
        return False
    whole = isinstance(slot[1], int | np.integer) and not isinstance(slot[1], bool)
    return whole and isinstance(slot[0], str) and slot[0] in ("F", "B")


def _shown(slot: Any) -> str:
    return shortened(repr(slot) if isinstance(slot, str) else slot, 60)


# usual mistakes


def at_once(stages: int, micro_batches: int) -> Slots:
    """Return passes that begin in all stages at the same time."""
    row = [(kind, i) for kind in "FB" for i in range(micro_batches)]
    return [list(row) for _ in range(stages)]


def back_from_the_first(stages: int, micro_batches: int) -> Slots:
    """Return backward passes that go the way of the forward passes."""
    half = micro_batches + stages - 1
    return _filled(stages, micro_batches, lambda stage: half + stage)


def back_too_early(stages: int, micro_batches: int) -> Slots:
    """Return backward passes that begin in slot m, where the last stage still has forward passes to do."""
    return _filled(stages, micro_batches, lambda stage: micro_batches + stages - 1 - stage)


def one_by_one(stages: int, micro_batches: int) -> Slots:
    """Return passes of a micro-batch that begin when the micro-batch before is through."""
    rows: Slots = [[None] * (2 * stages * micro_batches) for _ in range(stages)]
    for stage, row in enumerate(rows):
        for i in range(micro_batches):
            row[2 * stages * i + stage] = ("F", i)
            row[2 * stages * (i + 1) - 1 - stage] = ("B", i)
    return rows


def forward_first(stages: int, micro_batches: int) -> Slots:
    """Return all forward passes before all backward passes, both from the first micro-batch on."""
    return _filled(stages, micro_batches, lambda stage: micro_batches + 2 * (stages - 1) - stage)


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


def one_too_few(stages: int, micro_batches: int) -> Slots:
    """Return what 1F1B gives if stage s begins with p - s - 1 forward passes, one at the least."""
    first = [max(1, stages - stage - 1) for stage in range(stages)]
    return placed([alternating(min(count, micro_batches), micro_batches) for count in first])


def _filled(stages: int, micro_batches: int, back: Any) -> Slots:
    """Forward pass i in slot s + i of stage s, backward pass i in slot back(s) + i."""
    rows: Slots = [[None] * (2 * (micro_batches + stages - 1)) for _ in range(stages)]
    for stage, row in enumerate(rows):
        for i in range(micro_batches):
            row[stage + i] = ("F", i)
            row[back(stage) + i] = ("B", i)
    return rows
