"""Variants of the exercises of lesson 08: another order, the other diagonal, maxima in a tree, means in one pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l08_kernels import exercises, fusion, naive
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Budget, Inputs, Spec, Speed, gpu_case, normal, random_gpu_case, variant
from unrolled.device import Array, array_module


def _speed(spec: Spec, **changes: Any) -> Speed:
    assert spec.speed is not None
    return replace(spec.speed, **changes)


def added_backwards(x: Array, y: Array, out: Array, n: int) -> Array:
    """Return x plus y from its end; the parameters are the kernel's."""
    return x + y[::-1]


def _launched(kernel: Any, inputs: Inputs) -> Array:
    """As in the exercise; the reference is called as it is."""
    if kernel is added_backwards:
        return kernel(inputs["x"], inputs["y"], inputs["x"], inputs["x"].size)
    return exercises.launched(kernel, inputs)


def _any_vectors(rng: np.random.Generator) -> Inputs:
    n = 8 * int(rng.integers(33, 120)) + 4
    return {name: rng.standard_normal(n).astype(np.float32) for name in ("x", "y")}


BACKWARDS = Budget(own=1, read_sectors=1.3, written_sectors=fusion.SECTORS)  # y may end inside of a sector

add_kernel_backwards = variant(
    exercises.add_kernel,
    reference=added_backwards,
    call=_launched,
    cases=[
        gpu_case("six values", x=np.arange(6, dtype=np.float32), y=np.array([10, 20, 30, 40, 50, 60], np.float32)),
        gpu_case("512 values: two whole blocks", BACKWARDS, x=normal(512), y=normal(512)),
        gpu_case("1,000 values: the last block has threads to spare", BACKWARDS, x=normal(1000), y=normal(1000)),
        random_gpu_case("any number of values", _any_vectors, BACKWARDS),
    ],
    hints=(
        "Every thread runs the same lines. Thread 0 takes the first value of x and the last of y.",
        "jit.grid(1) is the thread's number in the whole launch. The last value has index n - 1, so thread i finds its "
        "value of y at n - 1 - i. A thread beyond the last value has to do nothing.",
        "i = cp.int32(jit.grid(1))\nif i < n:\n    ... x[i] and y[n - 1 - i], to place i of out",
    ),
    mistakes=(
        given("y is read from its beginning: the last value of y belongs to the first of x", y=lambda y: y[::-1]),
        result("the whole result is the wrong way round: x is read from its beginning", lambda out: out[::-1]),
        given("y is missing: out[i] is the sum of both", y=lambda y: 0 * y),
        result("the last value is missing: the guard is i < n", lambda out: np.r_[out[:-1], np.float32(0)]),
    ),
)


def mirrored(x: Array) -> Array:
    """Return x (rows, columns) mirrored at its other diagonal: (columns, rows)."""
    return array_module(x).ascontiguousarray(x[::-1, ::-1].T)


transpose_tiled_other_diagonal = variant(
    exercises.transpose_tiled,
    reference=mirrored,
    answers=(naive.transpose, naive.transpose_other_way),
    hints=(
        "Both ways neighbouring threads touch neighbouring values: a tile is read row by row and written row by row. "
        "What belongs where is counted from the far corner of x.",
        "Read the tile as it lies: x[top + j + k, left + i] to place (j + k, i). After the barrier, place (i, j + k) "
        "of the tile belongs to y[columns - 1 - left - j - k, rows - 1 - top - i]. A row of the tile has WIDTH values.",
        "for k in range(0, TILE, 8):\n"
        "    if top + j + k < rows and left + i < columns:\n"
        "        tile[(j + k) * WIDTH + i] = x[...]\n"
        "jit.syncthreads()\n"
        "... the same loop: y[columns - 1 - left - j - k, ...] = tile[...]",
    ),
    mistakes=(
        result("that is the usual transpose: here the last row of x becomes the first column", lambda y: y[::-1, ::-1]),
        result("the rows of y are in the opposite order", lambda y: y[::-1]),
        result("the columns of y are in the opposite order", lambda y: y[:, ::-1]),
    ),
    speed=_speed(exercises.transpose_tiled, baseline=naive.transpose_other_way),
)


def row_maxima(x: Array) -> Array:
    """Return the largest value of each row of x (rows, columns)."""
    return x.max(axis=1)


BELOW = np.repeat(np.array([[-1], [-2], [-3]], np.float32), exercises.THREADS, axis=1)

MAXIMA = replace(
    exercises.SUMMED,  # each of up to 32 warps may fetch a first value to begin with
    bytes_read=lambda inputs: fusion.SECTORS * inputs["x"].nbytes + 32 * 32 * len(inputs["x"]),
)

row_sum_maximum = variant(
    exercises.row_sum,
    reference=row_maxima,
    answers=(naive.row_max,),
    cases=[
        gpu_case("rows as long as a block, all below 0", MAXIMA, x=BELOW),
        *(replace(case, budget=MAXIMA) for case in exercises.row_sum.cases[1:]),
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
            lambda x: x[:, : exercises.THREADS].max(axis=1),
        ),
        Mistake("these are the sums of the rows: the largest value is asked", lambda x: x.sum(axis=1)),
        Mistake("these are the smallest values: the largest are asked", lambda x: x.min(axis=1)),
        Mistake(
            "this is what the first thread found: the others' values have to be compared with it",
            lambda x: x[:, :: exercises.THREADS].max(axis=1),
        ),
    ),
    speed=_speed(exercises.row_sum, baseline=naive.row_max),
)


def bias_relu_mean(x: Array, bias: Array) -> Array:
    """Return the mean of each window of relu(x + bias), for windows of 2 x 2 side by side."""
    return ops.avg_pool2d(ops.relu(x + bias.reshape(-1, 1, 1)), fusion.POOLED)


def _means(inputs: Inputs) -> float:
    n, c, h, w = inputs["x"].shape
    return fusion.SECTORS * float(4 * n * c * (h // 2) * (w // 2))


MEANS = replace(fusion.FUSED, bytes_written=_means)

fused_bias_relu_pool_average = variant(
    exercises.fused_bias_relu_pool,
    reference=bias_relu_mean,
    answers=(ops.avg_pool2d, ops.relu),
    cases=[replace(case, budget=case.budget and MEANS) for case in exercises.fused_bias_relu_pool.cases],
    hints=(
        "A thread for each window: it reads its four pixels once, adds up in a variable of its own, and writes one "
        "number. What lies between the three operations never leaves the thread.",
        "Place k of the window is row 2 * row + k // 2, column 2 * column + k % 2. What each place gives is "
        "max(pixel + bias, 0), and the mean of four is their sum times 0.25.",
        "total = cp.float32(0)\n"
        "for k in range(4):\n"
        "    r, c = 2 * row + k // 2, 2 * column + k % 2\n"
        "    total += ... the pixel with its bias, or 0\n"
        "y[image, channel, row, column] = ...",
    ),
    mistakes=(
        result("these are the sums of the windows: the mean of four is asked", lambda y: 4 * y),
        Mistake(
            "the ReLU comes after the mean: it belongs to each pixel",
            lambda x, bias: ops.relu(ops.avg_pool2d(x + bias.reshape(-1, 1, 1), 2)),
        ),
        Mistake(
            "the ReLU is missing: what is below 0 becomes 0",
            lambda x, bias: ops.avg_pool2d(x + bias.reshape(-1, 1, 1), 2),
        ),
        Mistake("the bias is missing", lambda x, bias: ops.avg_pool2d(ops.relu(x), 2)),
    ),
)
