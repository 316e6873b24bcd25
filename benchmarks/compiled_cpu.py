"""Compiled training steps on the CPU beside PyTorch and our eager path, and the seconds to 98 % on MNIST.

    python benchmarks/compiled_cpu.py [--quick] [--json benchmarks/results/compiled_cpu.json] [--threads 2]

Source A's network with Adam, in float32. Each side is a process of its own that keeps its freed memory; they take
turns, and their losses and gradients are compared before anything is timed. `ratio` is ours / PyTorch, `ratio_eager`
ours / our eager path; both are medians of paired rounds. Only ours gathers its batches: the others find them made.

The training needs MNIST (`unrolled data fetch mnist`, or UNROLLED_DATA); --quick leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import common
import twins
from cpu import limit_threads
from networks import SOURCE_A, TRAINING, Case, training_row
from unrolled import data, nn

AIMS = {8: (0.33, 0.6), 128: (0.55, None)}  # by batch: ratio to PyTorch, ratio to the eager path
IMAGES = 1600  # of one timed call
TO_TARGET_S = 20.0


def make(side: str, case: Case, number: int, threads: int) -> tuple[common.Step, common.Step]:
    """Return a function that does so many training steps of one side, and one that does a single step."""
    if side != "compiled":
        return twins.make(side, case, number, threads)
    limit_threads(threads)
    images, labels = map(np.concatenate, zip(*case.batches(), strict=True))
    steps = nn.compiled(case.build(), case.optimizer(), case.batch)
    if steps.reason:
        raise ValueError(f"batch {case.batch} is not compiled: {steps.reason}")
    order = np.resize(np.arange(len(images)), number * case.batch)
    return lambda: steps.epoch(images, labels, order), lambda: steps.epoch(images, labels, order[: case.batch])


def check(case: Case) -> None:
    """Raise unless all sides find the same: the eager path and PyTorch in a step, ours and the eager path in many."""
    twins.check(case)
    eager, steps = case.stepper(), nn.compiled(case.build(), case.optimizer(), case.batch)
    for images, labels in case.batches()[:5]:
        loss, _ = eager(images, labels)
        np.testing.assert_allclose(steps.step(images, labels), loss, rtol=common.TOLERANCE, err_msg=case.name)


def step_row(batch: int, chosen: Any) -> dict[str, Any]:
    """Measure one training step by all three sides."""
    (at_most, at_most_eager), case, steps = AIMS[batch], SOURCE_A[batch], max(8, IMAGES // batch)
    steps = max(4, steps // 8) if chosen.quick else steps
    check(case)
    names = {"compiled": "compiled", "eager": "ours", "peer": "peer"}
    sides = {side: (known, case, steps, chosen.threads) for side, known in names.items()}
    times, others, _ = common.each_apart(make, sides, *common.rounds(chosen.quick), kept=True)
    found, eager = (common.compared(times, "compiled", side) for side in ("peer", "eager"))
    row = {"name": f"compiled step, batch {batch}", "ours_s": found["ours_s"] / steps, "peer": "PyTorch"}
    row |= {"peer_s": found["peer_s"] / steps, "eager_s": eager["peer_s"] / steps, "ratio": found["ratio"]}
    aims = {"at_most": at_most, "ratio_eager": eager["ratio"], "at_most_eager": at_most_eager}
    return {**row, **aims, "others": round(others, 2)}


def rows(chosen: Any) -> Iterator[common.Row]:
    """Measure the steps, and the training unless --quick is given."""
    yield from (step_row(batch, chosen) for batch in AIMS)
    if not chosen.quick:
        limit_threads(chosen.threads)
        absent = common.absent("mnist")
        yield {"name": TRAINING, "absent": absent} if absent else training_row(*data.mnist(), TO_TARGET_S)


if __name__ == "__main__":
    common.run(__doc__, rows)
