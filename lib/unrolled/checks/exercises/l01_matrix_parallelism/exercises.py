"""Lesson 01, matrix parallelism: what its exercises ask."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.domain import any_arrays, edge_size
from unrolled.checks.mistakes import Function, Mistake, given, only, result
from unrolled.checks.spec import Draw, Inputs, Rung, Spec, Speed, case, normal, random_case
from unrolled.device import Array

DENSE = "a dense layer 784 to 10, forward only"
SQUARES = {"a": normal(64, 64), "b": normal(64, 64)}
LINE = 64  # bytes of a cache line


def array(*rows: Any) -> Array:
    """Return these rows as an array of float32."""
    return np.array(rows, np.float32)


def triple_loops(a: Array, b: Array) -> Array:
    """Return a (N, K) times b (K, M), number by number. On lists: single numbers of an array would cost far more."""
    dtype, a, b = a.dtype, a.tolist(), b.tolist()
    y = [[0.0] * len(b[0]) for _ in a]
    for i in range(len(a)):
        for j in range(len(b[0])):
            for k in range(len(b)):
                y[i][j] += a[i][k] * b[k][j]
    return np.array(y, dtype)


def _layer(n: int, d: int, m: int) -> dict[str, Draw]:
    """Draw x (N, D), weight (M, D) and bias (M,)."""
    return {"x": normal(n, d), "weight": normal(m, d), "bias": normal(m)}


def lines_along(shape: tuple[int, ...], strides: tuple[int, ...], axis: int) -> int:
    """Return how many cache lines a walk along one axis touches, from the start of a line on."""
    return len({step * strides[axis] // LINE for step in range(shape[axis])})


def _any_lists(rng: np.random.Generator) -> Inputs:
    """Draw two sorted lists of whole numbers or fractions, a few or many of them alike."""
    top, step = int(rng.integers(1, 30)), rng.choice([1, 0.25])
    drawn = (rng.integers(-top, top + 1, edge_size(rng, 25, low=0)) * step for _ in range(2))
    return {name: sorted(items.tolist()) for name, items in zip("ab", drawn, strict=True)}


def _any_product(rng: np.random.Generator) -> Inputs:
    n, k, m = (edge_size(rng, 9) for _ in range(3))
    return any_arrays(rng, a=(n, k), b=(k, m))


def _any_view(rng: np.random.Generator) -> Inputs:
    """Draw shape and strides of an array, its axes in any order, of which every so manieth number is seen."""
    shape = [edge_size(rng, 100) for _ in range(rng.integers(1, 4))]
    strides, step = [0] * len(shape), int(rng.choice([1, 2, 4, 8]))
    for axis in rng.permutation(len(shape)).tolist():
        strides[axis] = step * int(rng.choice([0, 1, 1, 1, 2, 12]))  # 0: one number again and again
        step = max(step, strides[axis] * shape[axis])
    return {"shape": tuple(shape), "strides": tuple(strides), "axis": int(rng.integers(0, len(shape)))}


def _any_batch(rng: np.random.Generator) -> Inputs:
    n, d, m = (edge_size(rng, 9) for _ in range(3))
    return any_arrays(rng, x=(n, d), weight=(m, d), bias=(m,))


def _any_speedup(rng: np.random.Generator) -> Inputs:
    fractions, factors = (0, 1, rng.random()), (1, 2, int(rng.integers(3, 1000)), 10 ** rng.uniform(-2, 6))
    return {"fraction": fractions[rng.integers(0, 3)], "factor": factors[rng.integers(0, 4)]}


_NO_REST: dict[str, Function] = {  # what a merge takes of each before the other runs out; of equals first a's
    "a": lambda a, b: [item for item in a if b and item <= b[-1]],
    "b": lambda a, b: [item for item in b if a and item < a[-1]],
}


merge = Spec(
    reference=ops.merge,
    cases=[
        case("[1, 4, 6] and [2, 3, 9]", a=[1, 4, 6], b=[2, 3, 9]),
        case("the rest of a is left over", a=[2, 7, 8, 9], b=[1, 3]),
        case("numbers that occur more than once", a=[1, 2, 2, 5], b=[2, 5, 5]),
        case("a is empty", a=[], b=[3, 8]),
        case("b is empty", a=[4], b=[]),
        case("both are empty", a=[], b=[]),
        case("negative, zero, fractions, huge", a=[-3.5, 0.0, 0.25, 1e12], b=[-7.0, -0.5, 0.0, 0.5]),
    ],
    domain=random_case("any two sorted lists", _any_lists),
    mistakes=[
        given("your loop ends when one list runs out: what is left of the other still has to be appended", **_NO_REST),
        given("what is left of a when b runs out still has to be appended", a=_NO_REST["a"]),
        Mistake(
            "one position cannot serve both lists: step forward only in the list you took from",
            lambda a, b: [*chain(*map(sorted, zip(a, b, strict=False))), *a[len(b) :], *b[len(a) :]],
        ),
        Mistake(
            "what is left begins at the positions reached, a[i:] and b[j:]: you append both lists as a whole",
            lambda a, b: ops.merge(*(until(a, b) for until in _NO_REST.values())) + a + b,
        ),
        Mistake("the second list stands behind the first: take the smaller of the two front items", lambda a, b: a + b),
        result("the order is falling: take the smaller of the two front items, not the larger", lambda y: y[::-1]),
        Mistake(
            "of two equal front items one is lost: take one, and leave the other for the next step",
            lambda a, b: sorted((Counter(a) | Counter(b)).elements()),
        ),
        result("numbers that occur more than once are kept only once", lambda y: sorted(set(y))),
    ],
    points=2,
    hints=(
        "Both lists are sorted, so the smallest number that is left is at the front of one of them. "
        "Take it, step forward in that list only, and repeat. When one list has run out, the rest of the other is "
        "already in order.",
        "Keep two positions, i in a and j in b, both 0 at first. While i < len(a) and j < len(b), append a[i] or b[j] "
        "to a new list and add 1 to that position. Afterwards append a[i:] and b[j:]; one of them is empty. "
        "The result has len(a) + len(b) items.",
        "while i < len(a) and j < len(b):\n"
        "    if b[j] < a[i]: merged.append(b[j]); j += 1\n"
        "    else: (the same with a and i)\n"
        "return merged + a[i:] + b[j:]",
    ),
)

matmul_rows = Spec(
    reference=ops.matmul_rows,
    cases=[
        case("the product worked by hand", a=array([1, 2, 3], [4, 5, 6]), b=array([1, 2], [0, 1], [3, 1])),
        case("(5, 3) times (3, 7)", a=normal(5, 3), b=normal(3, 7)),
    ],
    domain=random_case("matrices of any sizes", _any_product),
    mistakes=[
        result("this is only the first row: does `return` stand inside the loop?", lambda y: y[0]),
        result("this is only the last row: each row needs a place of its own, y[i] = …", lambda y: y[-1]),
        result("all rows are the same one: use a[i], with the i of the loop", lambda y: np.tile(y[0], (len(y), 1))),
        result(
            "only the first row is written: does the loop end one too early, or does `return` stand inside the loop?",
            lambda y: only(y, 0),
        ),
        result(
            "every row is the sum of all: give each a place of its own, y[i] = …",
            lambda y: np.tile(y.sum(axis=0), (len(y), 1)),
        ),
        result("rows and columns of the result are exchanged: its row i is made of row i of a", lambda y: y.T),
    ],
    points=2,
    speed=Speed(
        triple_loops,
        SQUARES,
        at_least=50,
        against="three plain loops over lists",
        advice="a call of NumPy has its price before it computes anything: a[i] @ b makes one call for each row, a dot "
        "product for each entry makes 64 times as many",
    ),
    rung=Rung("dense layer, row by row", DENSE, {"a": normal(1000, 784), "b": normal(784, 10)}, images=1000),
    hints=(
        "Row i of the result needs only row i of a, and all of b. NumPy multiplies a vector by a matrix in one call: "
        "`vector @ matrix`. So one loop over the rows is left.",
        "a is (N, K), b is (K, M), so a[i] is (K,) and a[i] @ b is (M,): exactly row i of the result. "
        "Make room for (N, M) before the loop, with the dtype of a: np.empty((N, M), dtype=a.dtype).",
        "y = np.empty((a.shape[0], b.shape[1]), dtype=a.dtype)\n"
        "for i in range(len(a)):\n"
        "    y[i] = (row i of a) @ (all of b)\n"
        "return y",
    ),
)

lines_touched = Spec(
    reference=lines_along,
    cases=[
        case("a row of 40 float32", shape=(5, 40), strides=(160, 4), axis=1),
        case("a column of 5 numbers, far apart", shape=(5, 40), strides=(160, 4), axis=0),
        case("a column of 5 numbers, closer together", shape=(5, 6), strides=(24, 4), axis=0),
        case("every 12th number: the last line is touched at its start", shape=(10, 3), strides=(512, 48), axis=1),
        case("the largest matrix by rows", shape=(4000, 4000), strides=(16000, 4), axis=1),
        case("the largest matrix by columns", shape=(4000, 4000), strides=(16000, 4), axis=0),
        case("images (N, C, H, W), along the rows", shape=(32, 1, 28, 28), strides=(3136, 3136, 112, 4), axis=2),
        case("a stride of 0: one number again and again", shape=(50, 3), strides=(0, 4), axis=0),
    ],
    domain=random_case("any view of an array", _any_view),
    mistakes=[
        Mistake(
            "these are the numbers that are visited: neighbours can share a line, and it counts once",
            lambda shape, strides, axis: shape[axis],
        ),
        Mistake(
            "% 64 is the place inside a line: the line itself is the address // 64",
            lambda shape, strides, axis: len({step * strides[axis] % LINE for step in range(shape[axis])}),
        ),
        given(
            "the stride is missing: from one step to the next it is strides[axis] bytes, not 1",
            strides=lambda strides: (1,) * len(strides),
        ),
        given("this is a walk along the other axis", axis=lambda axis, shape: len(shape) - 1 - axis),
        given(
            "strides are bytes already, and a line has 64 of them: neither multiply them by 4, nor divide by 16",
            strides=lambda strides: tuple(4 * stride for stride in strides),
        ),
        Mistake(
            "this counts every line between the first and the last number: a long step leaves lines out",
            lambda shape, strides, axis: (shape[axis] - 1) * strides[axis] // LINE + 1,
        ),
        Mistake(
            "this divides all bytes by 64, rounded up: a long step leaves lines out, "
            "and behind the last number nothing is touched",
            lambda shape, strides, axis: -(-shape[axis] * strides[axis] // LINE),
        ),
        Mistake(
            "the walk ends at the last number, (shape[axis] - 1) * strides[axis], not one step behind it",
            lambda shape, strides, axis: min(shape[axis], -(-shape[axis] * strides[axis] // LINE)),
        ),
        Mistake(
            "a line that is only partly used is missing: it is fetched as a whole all the same",
            lambda shape, strides, axis: shape[axis] * strides[axis] // LINE,
        ),
        Mistake(
            "these are the lines of the whole array: the walk goes along one axis",
            lambda shape, strides, axis: -(-int(np.prod(shape)) * min(strides) // LINE),
        ),
    ],
    points=2,
    tolerance=0,
    hints=(
        "Write down the addresses of the first few numbers of the walk, in bytes from where it starts. "
        "Which of them lie in the first 64 bytes, which in the next 64?",
        "Step i stands at the address i * strides[axis], with i from 0 to shape[axis] - 1. "
        "Line 0 holds the addresses 0 to 63, line 1 those from 64 to 127, and so on. Count the different lines.",
        "lines = set()\n"
        "for i in range(shape[axis]):\n"
        "    lines.add(the line of the address i * strides[axis])\n"
        "return len(lines)",
    ),
)

batch_affine = Spec(
    reference=ops.affine,
    cases=[
        case(
            "two samples by hand", x=array([1, 2, 0], [0, 1, 3]), weight=array([1, 0, 1], [2, 1, 0]), bias=array(10, 20)
        ),
        case("5 samples, 4 numbers to 3", **_layer(5, 4, 3)),
        case("as many outputs as inputs", **_layer(6, 4, 4)),
    ],
    domain=random_case("any batch and layer", _any_batch),
    mistakes=[
        result("the bias is missing: add it to every row of the product", lambda y, bias: y - bias),
        result(
            "the bias is added along the wrong axis: bias (M,) lines up with the last axis of (N, M) by itself, "
            "so add it as it is",
            lambda y, bias: y - bias + bias[:, None],
        ),
        given(
            "a reshape does not turn the weight: it fills the new rows with what comes next. weight.T turns it",
            weight=lambda weight: weight.reshape(weight.shape[::-1]).T,
        ),
        result("the bias is multiplied: add it", lambda y, bias: (y - bias) * bias),
        result("rows and columns of the result are exchanged: a row of it belongs to a sample", lambda y: y.T),
        result(
            "rows and columns of the product are exchanged: a row of it belongs to a sample, so it is x @ weight.T",
            lambda y, bias: (y - bias).T + bias,
        ),
        result("the bias is subtracted: add it", lambda y, bias: y - 2 * bias),
        result("this is only the first sample", lambda y: y[0]),
        result("this is only the last sample", lambda y: y[-1]),
    ],
    points=2,
    speed=Speed(
        ops.affine_one_by_one,
        _layer(6000, 64, 10),
        at_least=10,
        against="one sample at a time",
        advice="a call of NumPy has its price before it computes anything: one product takes all samples at once",
        loops=False,
    ),
    rung=Rung("dense layer, one product", DENSE, _layer(1000, 784, 10), images=1000),
    hints=(
        "A row of x is a sample, a row of weight belongs to an output. Every entry of the result is one dot product of "
        "the one with the other, and all of them together are one matrix product.",
        "x is (N, D), weight is (M, D). For (N, D) @ (D, M) the weight must be turned: weight.T is (D, M). "
        "The product is (N, M); bias (M,) is added to each of its rows when you write +.",
        "return x @ (weight, turned) + bias",
    ),
)

amdahl_speedup = Spec(
    reference=ops.amdahl_speedup,
    cases=[
        case("80 % of the time, 3 times as fast", fraction=0.8, factor=3),
        case("half of the time, twice as fast", fraction=0.5, factor=2),
        case("90 % of the time, 2.5 times as fast", fraction=0.9, factor=2.5),
        case("80 % of the time, a million times as fast", fraction=0.8, factor=1_000_000),
        case("none of it", fraction=0, factor=100),
        case("all of it", fraction=1, factor=8),
        case("half of the time, and it got slower", fraction=0.5, factor=0.5),
    ],
    domain=random_case("any fraction and factor", _any_speedup),
    mistakes=[
        result(
            "this is the new time as a share of the old one; the speedup is old time / new time, 1 divided by it",
            lambda y: 1 / y,
        ),
        Mistake(
            "this averages the speedups; what adds up is time: (1 - fraction) stays, fraction shrinks",
            lambda fraction, factor: (1 - fraction) + fraction * factor,
        ),
        given(
            "the two parts are swapped: `fraction` is the part that becomes faster",
            fraction=lambda fraction: 1 - fraction,
        ),
        Mistake(
            "this is the limit for an infinite factor: the part that became faster still takes fraction / factor",
            lambda fraction, factor: 1 / (1 - fraction),
        ),
        given(
            "the part that becomes faster takes less time: divide fraction by factor", factor=lambda factor: 1 / factor
        ),
        Mistake(
            "1 is divided by the first part alone: the whole new time belongs in brackets, 1 / (… + …)",
            lambda fraction, factor: 1 / (1 - fraction) + fraction / factor,
        ),
        Mistake(
            "this is the factor itself: only `fraction` of the time shrinks by it", lambda fraction, factor: factor
        ),
        Mistake(
            "the part that stays the same is missing: it takes 1 - fraction", lambda fraction, factor: factor / fraction
        ),
    ],
    points=2,
    tolerance=1e-6,
    hints=(
        "Call the old time 1. Part of it stays as it was, the other part shrinks. "
        "Add up the new time first, then ask how often it fits into the old one.",
        "The part that stays takes 1 - fraction. The part that became faster took fraction and now takes "
        "fraction / factor. The speedup is old time / new time, a plain number: 0.5 and 2 give 1.333.",
        "new_time = (what stays) + (what shrank, divided by factor)\nreturn 1 / new_time",
    ),
)
