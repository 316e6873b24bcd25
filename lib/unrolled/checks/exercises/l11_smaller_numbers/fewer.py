"""Weights that are left out, and weights of one bit."""

from __future__ import annotations

from collections.abc import Callable
from math import floor

import numpy as np

from unrolled.checks.mistakes import Function, Mistake, given, result
from unrolled.checks.spec import Draw, Inputs, draw_all
from unrolled.device import Array
from unrolled.ops import precision

WORD = 64
ONES = 2**WORD - 1


def prune(weight: Array, fraction: float, updates: list[Array]) -> Array:
    """Return the weights with the smallest magnitudes at 0, after updates that leave these at 0."""
    return masked(weight, kept(weight, fraction), updates)


def kept(weight: Array, fraction: float) -> Array:
    """Return 1 for each weight that stays, 0 for the floor(fraction * size) smallest magnitudes."""
    mask = np.ones(weight.size, weight.dtype)
    mask[np.argsort(np.abs(weight), axis=None)[: floor(fraction * weight.size)]] = 0
    return mask.reshape(weight.shape)


def masked(weight: Array, mask: Array, updates: list[Array]) -> Array:
    """Return the weights with a mask on them, after updates and after each."""
    for update in updates:
        weight = (weight - update) * mask
    return weight * mask


def any_pruning(rng: np.random.Generator) -> Inputs:
    """Draw a layer's weights and some updates."""
    o, k, count = (int(each) for each in rng.integers((2, 3, 1), (6, 9, 4)))
    arrays = [rng.standard_normal((o, k)).astype(np.float32) for _ in range(count + 1)]
    return {"weight": arrays[0], "fraction": float(rng.uniform(0.3, 0.9)), "updates": arrays[1:]}


def uneven_pruning(rng: np.random.Generator) -> Inputs:
    """Draw filters (2, 1, 3, 3) and an update; the share is 13.86 of 18 weights, of which 13 go."""
    weight, update = rng.standard_normal((2, 2, 1, 3, 3)).astype(np.float32)
    return {"weight": weight, "fraction": 0.77, "updates": [update]}


def updated(weight: Array, updates: list[Array]) -> Array:
    """Return the weights after updates."""
    for update in updates:
        weight = weight - update
    return weight


def _masked_anew(weight: Array, fraction: float, updates: list[Array]) -> Array:
    for update in [0, *updates]:
        weight = prune(weight - update, fraction, [])
    return weight


PRUNE_MISTAKES = (
    Mistake(
        "what was pruned grows again in an update: multiply by the mask after each",
        lambda weight, fraction, updates: updated(prune(weight, fraction, []), updates),
    ),
    Mistake(
        "the mask is that of the weights before the first update",
        lambda weight, fraction, updates: prune(updated(weight, updates), fraction, []),
    ),
    Mistake("which weights go is decided once, and not again after each update", _masked_anew),
    Mistake(
        "the smallest magnitudes go, and not the largest",
        lambda weight, fraction, updates: masked(weight, 1 - kept(weight, 1 - fraction), updates),
    ),
    Mistake(
        "small is what lies near 0: np.abs(weight)",
        lambda weight, fraction, updates: masked(weight, kept(weight - weight.min(), fraction), updates),
    ),
    given(
        "int cuts off: one weight fewer goes than by rounding",  # half a weight more: a quotient may fall short
        fraction=lambda weight, fraction: (round(fraction * weight.size) + 0.5) / weight.size,
    ),
    Mistake(
        "the smallest magnitudes go before the first update, too",
        lambda weight, fraction, updates: prune(weight, fraction, updates) if updates else weight.copy(),
    ),
)


# one bit


def unpacked(a: Array, b: Array, k: int) -> Array:
    """Return the same from a number for each sign: NumPy has no BLAS for whole numbers."""
    x, y = (np.where(bits_of(words, k), np.int32(1), np.int32(-1)) for words in (a, b))
    return x @ y.T


def bits_of(words: Array, k: int) -> Array:
    """Return the first k bits of each row of words (N, W)."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little")[:, :k]


def signs(n: int, m: int, k: int) -> Inputs:
    """Return draws of packed signs a and b, with k values in a row; what lies beyond the k-th is anything."""
    words = -(-k // WORD)
    return {"a": _words(n, words), "b": _words(m, words), "k": k}


def _words(*shape: int) -> Draw:
    return Draw(lambda rng: rng.integers(0, 2**WORD, shape, dtype=np.uint64))


def any_signs(rng: np.random.Generator) -> Inputs:
    """Draw signs of any number."""
    n, m, k = (int(each) for each in rng.integers((1, 1, 1), (7, 7, 300)))
    return draw_all(signs(n, m, k), rng)


def _counted(says: str, last: Callable[[int], int], all_words: bool = False) -> Mistake:
    """Return the mistake of a last word of which the bits last(k % 64) count; of the others all bits, or the same."""

    def wrong(a: Array, b: Array, k: int) -> Array:
        words = np.full(a.shape[1], ONES, np.uint64)
        words[slice(None) if all_words else -1] = last(k % WORD)
        differ = np.bitwise_count((a[:, None] ^ b) & words)
        return np.asarray(k - 2 * differ.sum(axis=2, dtype=np.int32), np.int32)

    return Mistake(says, wrong)


BINARY_MISTAKES = (
    _counted("bits beyond the k-th are anything, and must not count", lambda rest: ONES),
    result(
        "a sign that differs takes 2 away: the 1 that is missing, and the -1 that is there", lambda y, k: (k + y) // 2
    ),
    _counted("where k % 64 is 0 the last word is full: all of its bits count", lambda rest: (1 << rest) - 1),
    _counted(
        "the first sign lies in the lowest bit: of the last word the k % 64 lowest count",
        lambda rest: 2**WORD - 2 ** (WORD - rest) if rest else ONES,
    ),
    _counted(
        "only the last word has bits left over: all bits of the others count",
        lambda rest: (1 << rest) - 1 if rest else ONES,
        all_words=True,
    ),
    result(
        "below 0 unsigned numbers wrap round, and the counts are such: .sum(axis=1, dtype=np.int32)",
        lambda y: y.astype(np.uint64),
    ),
)


# straight through


def straight_through(grad: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    """Return the gradients by x (N, K) and weight (M, K) of sign(x) @ sign(weight).T, (N, M), straight through."""
    by_x, by_weight = _by_signs(precision.binarize)(grad, x, weight)
    return by_x, by_weight


def _by_signs(sign: Callable[[Array], Array], stop_x: bool = True, stop_weight: bool = True) -> Function:
    """Return what gives both gradients, with signs by this function, and what lies beyond 1 stopped or not."""

    def gradients(grad: Array, x: Array, weight: Array) -> tuple[Array, Array]:
        by_x, by_weight = grad @ sign(weight), grad.T @ sign(x)
        return (
            precision.straight_through(by_x, x) if stop_x else by_x,
            precision.straight_through(by_weight, weight) if stop_weight else by_weight,
        )

    return gradients


def any_layer(rng: np.random.Generator) -> Inputs:
    """Draw a binary layer's inputs and weights, on both sides of 1, and a gradient."""
    n, m, k = (int(each) for each in rng.integers(2, 7, 3))
    x, weight, grad = (rng.standard_normal(shape).astype(np.float32) for shape in ((n, k), (m, k), (n, m)))
    x[0, 0] = weight[1, 1] = 0  # as what a ReLU stopped
    return {"grad": grad, "x": 1.5 * x, "weight": 1.5 * weight}


STRAIGHT_MISTAKES = (
    Mistake("the forward pass multiplied signs: their product's gradient has signs, too", _by_signs(lambda x: x)),
    Mistake(
        "beyond 1 nothing passes: (np.abs(x) <= 1)", _by_signs(precision.binarize, stop_x=False, stop_weight=False)
    ),
    Mistake(
        "beyond 1 nothing passes, of weight either: (np.abs(weight) <= 1)",
        _by_signs(precision.binarize, stop_weight=False),
    ),
    Mistake("beyond 1 nothing passes, of x either: (np.abs(x) <= 1)", _by_signs(precision.binarize, stop_x=False)),
    Mistake(
        "0 counts as negative: its sign is -1", _by_signs(lambda x: np.where(x >= 0, np.float32(1), np.float32(-1)))
    ),
    Mistake("0 counts as negative: its sign is -1, and np.sign gives 0", _by_signs(np.sign)),
)
