"""Lesson 14: attention from loops to a kernel, and what each form keeps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l04_backprop.gradients import named
from unrolled.checks.exercises.l14_attention import draws, forms, gradients, naive, tiles
from unrolled.checks.exercises.l14_attention.tiles import TILES, WIDE
from unrolled.checks.mistakes import Mistake, alone, given, result
from unrolled.checks.spec import Budget, Inputs, Spec, Speed, case, gpu_case, normal, random_case, random_gpu_case
from unrolled.device import Array


def _rows(y: Array) -> Array:
    return y[..., ::-1, :]


def _of(values: Any) -> Array:
    return np.array(values, np.float32)


def _over_queries(q: Array, k: Array, v: Array, causal: bool = False) -> Array:
    """Attend with weights that add up to 1 for each key."""
    scores = q @ k.swapaxes(-1, -2) / np.float32(sqrt(q.shape[-1]))
    if causal:
        scores = np.where(np.tri(q.shape[-2], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-2, keepdims=True))
    return weights / weights.sum(axis=-2, keepdims=True) @ v


MISTAKES = (
    given("the scores are not divided: by the square root of D", q=lambda q: q * np.float32(sqrt(q.shape[-1]))),
    given("the scores are divided by D: by its square root", q=lambda q: q / np.float32(sqrt(q.shape[-1]))),
    given("the scores are multiplied by the root of D: divide", q=lambda q: q * np.float32(q.shape[-1])),
    given("queries and keys are exchanged: row t of the scores belongs to query t", q=lambda k: k, k=lambda q: q),
    given("causal changes nothing here: query t may look at keys 0 to t alone", causal=False),
    given("this is causal always: only where the argument says so", causal=True),
    Mistake(
        "the mask is the wrong way round: query t may look at keys 0 to t, not at those from t on",
        given={name: partial(lambda name, **known: _rows(known[name]), name) for name in "qkv"},
        result=_rows,
    ),
    result("the first query alone is done", lambda y: alone(y, ..., slice(1), slice(None))),
)

attention_counts = Spec(
    reference=forms.counts,
    cases=[
        case("two keys, three numbers", n=1, heads=1, t=2, d=3),
        case("what is timed below", n=1, heads=8, t=2048, d=64),
    ],
    domain=random_case(
        "any size",
        lambda rng: (
            {name: edge_size(rng, 9) for name in ("n", "heads")}
            | {"t": int(rng.integers(1, 3000)), "d": edge_size(rng, 128)}
        ),
    ),
    points=1,
    tolerance=0,
    hints=(
        "Each head of each sample has two products, and between them a matrix with a row for each query and a column "
        "for each key.",
        "A product of (a, b) with (b, c) takes a * b * c multiplications and as many additions. The first one is "
        "(T, D) times (D, T), the second (T, T) times (T, D). A number of float32 has 4 bytes.",
        "matrices = n * heads\nreturn matrices * 2 * ..., matrices * 4 * ...",
    ),
    mistakes=(
        result(
            "half of the operations: there are two products, and a multiplication and an addition are two operations",
            lambda y: (y[0] // 2, y[1]),
        ),
        result("the matrix holds numbers of 4 bytes each", lambda y: (y[0], y[1] // 4)),
        given("every sample has its own matrices: n is missing", n=1),
        given("every head has its own matrix: heads is missing", heads=1),
        result("operations come first, then bytes", lambda y: y[::-1]),
    ),
)

THREE = {
    "q": np.array([[0, 0], [4, 0], [0, 4]], np.float32),
    "k": np.array([[1, 0], [0, 1], [1, 1]], np.float32),
    "v": np.array([[1, 0], [0, 2], [3, 3]], np.float32),
}

attention_loops = Spec(
    reference=forms.loops,
    cases=[
        case("three queries, the first of which finds all keys alike", **THREE),
        case("the same, causal: the first sees one key", **THREE, causal=True),
        case("seven queries", **draws.heads(7, 4)),
        case("seven queries of one number", **draws.heads(7, 1)),
        case("scores of thousands, causal", **THREE | {"q": _of([[-4, -2], [4, 0], [0, 4]]) * 1000}, causal=True),
    ],
    domain=random_case("any size", partial(draws.any_heads, steep=False)),
    points=2,
    hints=(
        "For one query: a score with each key that it may look at, then the softmax of these scores, then the mean of "
        "the values by these weights.",
        "The score of query t and key s is the sum of q[t, i] * k[s, i], divided by the square root of D. Causal "
        "query t has the keys 0 to t: t + 1 of them.",
        "for row in range(t):\n"
        "    scores = [... for key in range(row + 1 if causal else t)]\n"
        "    weights = [exp(score - max(scores)) for score in scores]\n"
        "    ... y[row, i] += weight / total * v[key, i]",
    ),
    mistakes=(*MISTAKES, Mistake("the weights of a query add up to 1: divide by the sum of its own", _over_queries)),
)

attention_plain = Spec(
    reference=forms.plain,
    cases=[
        case("three queries", **{name: x[None] for name, x in THREE.items()}),
        case("the same, causal", **{name: x[None] for name, x in THREE.items()}, causal=True),
        case("two heads", **draws.heads(2, 9, 5)),
        case("two heads of one number", **draws.heads(2, 9, 1)),
        random_case("scores of many hundreds, causal", lambda rng: draws.steep(rng, 2, 9, 5) | {"causal": True}),
        case("1,500 queries, for which loops take too long", **draws.heads(1, 1500, 16)),
    ],
    domain=random_case("any size, also with large scores", partial(draws.any_heads, least=1)),
    points=2,
    tolerance=1e-3,
    hints=(
        "Both loops over queries and keys become a product of matrices, for all heads at once; the loop over i is "
        "inside of it.",
        "q @ k.swapaxes(1, 2) is (H, T, T), with a row for each query. The softmax goes along axis 2. What a query may "
        "not look at gets a score of -inf before the softmax: its weight is 0 then. With places = np.arange(T), "
        "places <= places[:, None] is True where it may look.",
        "scores = q @ ... / sqrt(d)\n"
        "if causal: scores = np.where(places <= places[:, None], scores, -np.inf)\n"
        "weights = np.exp(scores - ...)\n"
        "... divide, and multiply with v",
    ),
    mistakes=(*MISTAKES, Mistake("the softmax goes over the keys: axis 2, the last one", _over_queries)),
)


def _sums(scores: Array, shift: Array) -> Array:
    return np.exp(scores - shift[:, None]).sum(axis=1)


def _largest(scores: Array, largest: Array) -> Array:
    return np.maximum(largest, scores.max(axis=1))


online_softmax = Spec(
    reference=forms.next_sums,
    cases=[
        case("the first block", scores=_of([[1, 3], [-200, -202]]), largest=_of([-np.inf] * 2), total=_of([0, 0])),
        case("the largest stays", scores=_of([[1, 2]]), largest=_of([3]), total=_of([1.5])),
        case("a larger one comes", scores=_of([[1, 5]]), largest=_of([3]), total=_of([1.5])),
        case(
            "four rows of nine scores", scores=normal(4, 9), largest=normal(4), total=np.arange(1, 5, dtype=np.float32)
        ),
        case("scores of 20,000", scores=_of([[20000, 19999, 20001]]), largest=_of([19998]), total=_of([2])),
    ],
    domain=random_case("any block", draws.any_block),
    points=2,
    hints=(
        "The sum so far was made with the largest score so far. Where a larger one comes, every term of it has to "
        "shrink by the same factor, so the sum does.",
        "exp(x - new) is exp(x - old) * exp(old - new). The new largest is that of old and block; total * "
        "exp(old - new) is what the sum so far is worth, and the block adds its own exponentials, made with new.",
        "new = np.maximum(largest, scores.max(axis=1))\nreturn new, total * np.exp(...) + np.exp(...).sum(axis=1)",
    ),
    mistakes=(
        Mistake(
            "the sum so far was made with the old largest: multiply it by exp(old - new)",
            lambda scores, largest, total: (n := _largest(scores, largest), total + _sums(scores, n)),
        ),
        Mistake(
            "the factor is upside down: exp(old - new), which is never above 1",
            lambda scores, largest, total: (
                n := _largest(scores, largest),
                total * np.exp(n - largest) + _sums(scores, n),
            ),
        ),
        Mistake(
            "the largest is that of this block alone: it has to be the larger of old and new",
            lambda scores, largest, total: forms.next_sums(
                scores, scores.max(axis=1), total * np.exp(largest - scores.max(axis=1))
            ),
        ),
        Mistake(
            "the exponentials of the block are made with the old largest: make them with the new one",
            lambda scores, largest, total: (
                n := _largest(scores, largest),
                total * np.exp(largest - n) + _sums(scores, largest),
            ),
        ),
        result("what went before has no part in the sum", lambda y, scores: (y[0], _sums(scores, y[0]))),
        result("the largest comes first, then the sum", lambda y: y[::-1]),
    ),
)


def wide(inputs: Inputs) -> float:
    """Return the bytes of the largest array that blocks need, in float32: all queries beside a block of keys."""
    heads, t, d = inputs["q"].shape
    return float(4 * heads * t * max(inputs["block"], d))


SMALL = Budget(
    largest=lambda inputs: 1.05 * wide(inputs),  # less than a quarter of queries beside a quarter of keys
    held=lambda inputs: 10 * wide(inputs),  # less than all scores
    because="for blocks as large as asked",
)
STEPS = 30  # launches for each block of keys beside one of queries: half as many do
SKIPPING = replace(
    SMALL,
    launches=15 * STEPS,
    flops=lambda inputs: 1.5 * forms.counts(1, *inputs["q"].shape)[0],  # all blocks take 1.8, those that are seen 1.2
)


def _whole_queries(y: Array, block: int) -> Array:
    return alone(y, ..., slice(y.shape[1] // block * block), slice(None))


def _whole_keys(q: Array, k: Array, v: Array, block: int, causal: bool = False) -> Array:
    whole = np.s_[:, : q.shape[1] // block * block]
    y = forms.plain(q, k[whole], v[whole])
    y[whole] = forms.plain(q[whole], k[whole], v[whole], causal)
    return y


BLOCK, T, D = 256, 2048, 32  # what is timed

attention_blocks = Spec(
    reference=forms.blocks,
    numbers={"queries": T},
    cases=[
        case("three queries, one at a time", **{name: x[None] for name, x in THREE.items()}, block=1),
        case("the same, causal", **{name: x[None] for name, x in THREE.items()}, block=1, causal=True),
        case("130 queries, 32 at a time", **draws.heads(2, 130, 5), block=32),
        case("130 queries, causal", **draws.heads(2, 130, 5), block=32, causal=True),
        gpu_case("44 queries, 10 at a time, causal, counted", SKIPPING, **draws.heads(1, 44, 8), block=10, causal=True),
        gpu_case("52 queries of one number, 3 at a time, all memory counted", SMALL, **draws.heads(1, 52, 1), block=3),
        random_case(
            "scores of many hundreds, two keys at a time",
            lambda rng: draws.steep(rng, 2, 9, 5) | {"block": 2, "causal": True},
        ),
    ],
    domain=random_case("any size of sequence and block, also with large scores", draws.any_blocks),
    points=3,
    tolerance=1e-3,
    hints=(
        "A block of queries goes past all keys, a block at a time, and keeps three things of what went by: the "
        "largest score, the sum of exponentials, and the sum of exponentials times values. Both sums fade.",
        "largest and total are (H, rows, 1), sums is (H, rows, D). At the end y is sums / total. With causal, the keys "
        "of blocks behind the queries' own are not looked at, and only the block on the diagonal needs a mask.",
        "for first in range(0, t, block):\n"
        "    ... largest, total, sums of nothing\n"
        "    for start in range(0, first + 1 if causal else t, block):\n"
        "        scores = rows @ k[:, start : start + block].swapaxes(1, 2)\n"
        "        ... as in online_softmax, and sums = sums * faded + weights @ v[...]\n"
        "    y[:, first : first + block] = sums / total",
    ),
    mistakes=(
        *MISTAKES,
        result("the last queries are missing: the last block may be smaller", _whole_queries),
        Mistake("the last keys are missing: the last block may be smaller", _whole_keys),
        result("the last queries and keys are missing: the last block may be smaller", _whole_queries, _whole_keys),
    ),
    speed=Speed(
        baseline=forms.plain_for_blocks,
        inputs={**draws.heads(1, T, D), "block": BLOCK, "causal": True},
        at_least=1.6,
        points=2,
        against="two products with all weights between them, causal",
        advice="a causal block behind the queries' own holds nothing: leave it out, and mask the diagonal's alone",
        loops=False,
    ),
)

NAMES = "grad_q", "grad_k", "grad_v"

attention_backward = Spec(
    reference=forms.backward,
    cases=[
        random_case("40 queries, 3 at a time", gradients.sized),
        random_gpu_case(
            "68 queries of two numbers, 4 at a time, all memory counted",
            partial(gradients.sized, shape=(1, 68, 2), block=4),
            replace(SMALL, launches=17 * STEPS),
        ),
    ],
    domain=random_case("any size", gradients.any_gradient),
    points=3,
    compare=named(*NAMES, least=lambda inputs: 1.0),
    hints=(
        "The weights of a block are not kept, and need not be: exp(score - logsumexp) is the weight, without any "
        "running sum. Then go back through product, softmax and product, as in lesson 04.",
        "By v: weights transposed times grad. By the weights: grad times v transposed. By the scores: weights * (that "
        "- inner), where inner is (grad * y) summed along D, one number a row. By q and k: two products more, and the "
        "division by the root of D once.",
        "for start in range(0, t, block):\n"
        "    weights = xp.exp(q @ ... / sqrt(d) - logsumexp[:, :, None])\n"
        "    by_scores = weights * (grad @ ... - inner)\n"
        "    by_q += ...\n"
        "    by_k[:, some], by_v[:, some] = ...",
    ),
    mistakes=gradients.MISTAKES,
)

attention_kernel = Spec(
    reference=tiles.single,
    cases=[
        gpu_case("six queries: one block, and a tile that is not full", TILES, **draws.heads(6, WIDE)),
        gpu_case("44 queries: a full tile and one that is not", TILES, **draws.heads(44, WIDE)),
        random_gpu_case("40 queries, scores of many hundreds", lambda rng: draws.steep(rng, 40, WIDE), TILES),
    ],
    domain=random_gpu_case("any length", tiles.any_sequence, replace(TILES, working=0)),
    points=4,
    tolerance=1e-3,
    hints=(
        "A tile of keys and values comes in, a barrier, then every thread makes one score, a barrier, then every "
        "thread brings its own sums up to date, and a barrier before the next tile.",
        "Thread (i, j) has two roles. For the scores it is query j and key i of the tile: 32 products of queries[j * "
        "WIDE + p] and keys[i * WIDTH + p]. For the sums it is query j and column i of the values: it goes along the "
        "scores of its row, all of them, and keeps largest, total and one sum.",
        "jit.syncthreads()\n"
        "... scores[j * TILE + i], if row and key are there; a barrier\n"
        "before = largest\n"
        "... largest is the larger of itself and this row's scores, of keys that are there\n"
        "total *= cp.exp(before - largest)\n"
        "... the same for mixed, then add the tile's part to both; a barrier",
    ),
    mistakes=(*tiles.MISTAKES, *MISTAKES[:3]),
    speed=Speed(
        baseline=naive.attention,
        inputs=draws.heads(T, WIDE),
        at_least=2,
        against=f"a thread for each number of y and no shared memory, {T:,} queries",
        gpu=True,
        advice="each score is made once, by one thread, from a tile in shared memory",
    ),
)
