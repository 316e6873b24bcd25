"""The variant of lesson 08: the largest value of each row, found in a tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unrolled.checks.exercises.l08_kernels import exercises, naive
from unrolled.checks.exercises.l08_kernels.vectors import THREADS
from unrolled.checks.mistakes import Mistake, result
from unrolled.checks.spec import gpu_case, normal, variant
from unrolled.device import Array


def row_maxima(x: Array) -> Array:
    """Return the largest value of each row of x (rows, columns)."""
    return x.max(axis=1)


BELOW = np.repeat(np.array([[-1], [-2], [-3]], np.float32), THREADS, axis=1)

MAXIMA = replace(
    exercises.SUMMED,  # each of up to 32 warps may fetch a first value to begin with
    bytes_read=lambda inputs: exercises.SECTORS * inputs["x"].nbytes + 32 * 4 * len(inputs["x"]),
)

assert exercises.row_sum.speed is not None

row_sum_maximum = variant(
    exercises.row_sum,
    reference=row_maxima,
    cases=[
        gpu_case("rows as long as a block, all below 0", MAXIMA, x=BELOW),
        gpu_case("rows shorter than a block: 40 values", replace(MAXIMA, working=0), x=normal(5, 40)),
        gpu_case("rows longer than a block: 1,000 values", MAXIMA, x=normal(3, 1000)),
    ],
    hints=(
        "A block takes a row. First each thread finds the largest of what is its own, walking along the row in steps "
        "of a whole block; then the 256 values become 128, 64, 32, and at last one.",
        "A thread without a column of its own needs a value, too, and one that is larger than none: x[row, 0] does. "
        "Then half = 128, 64, ..., 1: threads below half keep the larger of partial[t] and partial[t + half]. Between "
        "two rounds every thread of the block waits.",
        "largest = x[row, 0]\n"
        "for column in range(t, columns, THREADS):\n"
        "    largest = max(largest, x[row, column])\n"
        "... partial[t] = largest, and a barrier; then the tree, with max in place of +",
    ),
    mistakes=(
        result("your maximum starts at 0: values below 0 never win", lambda y: np.maximum(y, 0)),
        Mistake(
            "only the first 256 values of a row are looked at: rows may be longer than a block",
            lambda x: x[:, :THREADS].max(axis=1),
        ),
        Mistake("these are the sums of the rows: the largest value is asked", lambda x: x.sum(axis=1)),
        Mistake("these are the smallest values: the largest are asked", lambda x: x.min(axis=1)),
        Mistake(
            "this is what the first thread found: the others' values have to be compared with it",
            lambda x: x[:, ::THREADS].max(axis=1),
        ),
    ),
    speed=replace(exercises.row_sum.speed, baseline=naive.row_max),
)
