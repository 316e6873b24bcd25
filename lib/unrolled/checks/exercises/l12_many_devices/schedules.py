"""Schedules of a pipeline: any valid one, as short as can be, and the memory that it takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch
from unrolled.checks.spec import Inputs
from unrolled.parallel import gpipe
from unrolled.parallel.pipeline import activations, faults

Slots = list[list[Any]]
SHAPE = 'expected a list for each stage, its slots ("F", i), ("B", i) or None'


def reference(stages: int, micro_batches: int) -> Slots:
    """Return the schedule with all forward passes first."""
    return gpipe(stages, micro_batches)


def judge(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Say what is wrong with a schedule, or how many slots it has too many."""
    stages, micro_batches = inputs["stages"], inputs["micro_batches"]
    schedule = _read(got)
    if schedule is None:
        return Mismatch((SHAPE,))
    if wrong := faults(schedule, stages, micro_batches):
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
    """As `judge`; and no stage may hold the activations of more micro-batches than there are stages."""
    if wrong := judge(got, expected, inputs):
        return wrong
    stages = inputs["stages"]
    for stage, held in enumerate(activations(_read(got) or [])):
        if held > stages:
            return Mismatch(
                (
                    f"valid and short, but stage {stage} holds the activations of {held} micro-batches",
                    f"at most {stages} are allowed, one for each stage: let backward passes begin earlier",
                )
            )
    return None


def any_size(rng: np.random.Generator) -> Inputs:
    """Draw stages and more micro-batches than that."""
    stages = int(rng.integers(2, 9))
    return {"stages": stages, "micro_batches": stages + int(rng.integers(1, 25))}


def _read(got: Any) -> Slots | None:
    """The schedule, its slots tuples or None; None for what is none."""
    if not isinstance(got, list | tuple) or not all(isinstance(row, list | tuple) for row in got):
        return None
    schedule: Slots = []
    for row in got:
        schedule.append([])
        for slot in row:
            if slot is None:
                schedule[-1].append(None)
            elif isinstance(slot, list | tuple) and len(slot) == 2 and slot[0] in ("F", "B"):
                schedule[-1].append((slot[0], int(slot[1])))
            else:
                return None
    return schedule
