"""Weights that are left out, and weights of one bit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from math import floor
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.domain import edge_size
from unrolled.checks.mistakes import Function, Mistake, given, result
from unrolled.checks.spec import Compare, Draw, Inputs, draw_all, normals
from unrolled.device import Array
from unrolled.ops import precision

WORD = 64
ONES = 2**WORD - 1


def prune(weight: Array, fraction: float, updates: list[Array], late: Array | None = None) -> Array:
    """Return the weights with the smallest magnitudes at 0, of equal ones where `late` is lowest, after updates."""
    return masked(weight, kept(weight, fraction, late), updates)


def kept(weight: Array, fraction: float, late: Array | None = None) -> Array:
    """Return 1 for each weight that stays, 0 for the floor(fraction * size) smallest magnitudes."""
    sizes, mask = np.abs(weight).ravel(), np.ones(weight.size, weight.dtype)
    order = np.lexsort((sizes if late is None else late.ravel(), sizes))
    mask[order[: floor(fraction * weight.size)]] = 0
    return mask.reshape(weight.shape)


def whichever_goes(pruned: Callable[..., Array], there: Callable[[Array], Array]) -> Compare:
    """Return a comparison with `pruned`, where of equal ones those go that went in a result; the others are `there`."""

    def judge(got: Any, expected: Array, inputs: Inputs) -> Mismatch | None:
        if isinstance(got, np.ndarray) and got.shape == expected.shape and not np.array_equal(got, expected):
            unpruned = updated(inputs["weight"], inputs["updates"])  # an update may take it to 0, too
            expected = pruned(**inputs, late=2 * there(got) + ~there(unpruned))
        return mismatch(got, expected, 1e-4, inputs)

    return judge


def masked(weight: Array, mask: Array, updates: list[Array]) -> Array:
    """Return the weights with a mask on them, after updates and after each."""
    for update in updates:
        weight = (weight - update) * mask
    return weight * mask


def any_pruning(rng: np.random.Generator, fewest: int = 1, most: int = 4) -> Inputs:
    """Draw weights with so many axes, at times whole, a share, at times 0 or 1, and updates.

    The first update may take some to 0.
    """
    shape = [edge_size(rng, 5) for _ in range(rng.integers(fewest, most + 1))]
    weight, *updates = rng.standard_normal((1 + edge_size(rng, 3, 0), *shape)).astype(np.float32)
    weight = np.round(weight) if rng.random() < 0.4 else weight  # many have equal magnitudes
    if updates:
        updates[0] = np.where(rng.random(shape) < 0.3, weight, updates[0])
    return {"weight": weight, "fraction": float(np.clip(rng.uniform(-0.15, 1.15), 0, 1)), "updates": updates}


def one_update(rng: np.random.Generator, fraction: float, *shape: int) -> Inputs:
    """Draw weights of this shape and an update."""
    weight, update = rng.standard_normal((2, *shape)).astype(np.float32)
    return {"weight": weight, "fraction": fraction, "updates": [update]}


def nearly_equal(rng: np.random.Generator, *shape: int) -> Inputs:
    """Draw weights that differ in their last digits, half of which go, and an update."""
    inputs = one_update(rng, 0.5, *shape)
    sizes = 1 + rng.integers(8) / 8 + 2.0**-22 * rng.permutation(inputs["weight"].size)
    return inputs | {"weight": np.copysign(sizes.reshape(shape), inputs["weight"]).astype(np.float32)}


def updated(weight: Array, updates: list[Array]) -> Array:
    """Return the weights after updates."""
    for update in updates:
        weight = weight - update
    return weight


PRUNE_MISTAKES = (
    Mistake(
        "what was pruned grows again in an update: multiply by the mask after each",
        lambda weight, fraction, updates: updated(prune(weight, fraction, []), updates),
    ),
    Mistake(
        "a weight that an update takes to 0 was not pruned: make the mask once, before the first update",
        lambda weight, fraction, updates: reduce(
            lambda w, update: w - update * (w != 0), updates, prune(weight, fraction, [])
        ),
    ),
    Mistake(
        "the mask is that of the weights before the first update",
        lambda weight, fraction, updates: prune(updated(weight, updates), fraction, []),
    ),
    Mistake(
        "which weights go is decided once, and not again after each update",
        lambda weight, fraction, updates: reduce(
            lambda w, update: prune(w - update, fraction, []), updates, prune(weight, fraction, [])
        ),
    ),
    Mistake(
        "the smallest magnitudes go, and not the largest",
        lambda weight, fraction, updates: masked(weight, 1 - kept(weight, 1 - fraction), updates),
    ),
    Mistake(
        "small is what lies near 0: np.abs(weight)",
        lambda weight, fraction, updates: masked(weight, kept(weight - weight.min(), fraction), updates),
    ),
    Mistake(
        "a threshold takes all equal ones: int(fraction * weight.size) places go, the first of np.argsort",
        lambda weight, fraction, updates: masked(
            weight, np.abs(weight) > np.abs(weight).max(initial=-1, where=kept(weight, fraction) == 0), updates
        ),
    ),
    Mistake(
        "magnitudes that are nearly equal are not equal: compare them as they are, not rounded",
        lambda weight, fraction, updates: masked(weight, kept(np.round(weight, 4), fraction), updates),
    ),
    given("an update is subtracted, and not added", updates=lambda updates: [-update for update in updates]),
    given(
        "int(fraction * weight.size) weights go, and the others stay",
        fraction=lambda weight, fraction: 1 - (floor(fraction * weight.size) - 0.5) / weight.size,
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


def any_signs(rng: np.random.Generator) -> Inputs:
    """Draw packed signs with any number in a row, often whole words or one sign more, or more than 16 bits count."""
    if rng.random() < 0.1:
        return {"a": np.full((1, 547), ONES, np.uint64), "b": np.zeros((1, 547), np.uint64), "k": 35_000}
    k = 64 * edge_size(rng, 3, 0) + int(rng.choice([0, 1, int(rng.integers(64))]))
    found = draw_all(signs(edge_size(rng, 6), edge_size(rng, 6), max(k, 1)), rng)
    found["a"][rng.random(len(found["a"])) < 0.2] = 0
    return different_beyond(found) if rng.random() < 0.5 else found


def different_beyond(inputs: Inputs) -> Inputs:
    """Return these signs, in which all bits beyond the k-th differ between a and b."""
    if rest := inputs["k"] % 64:
        last = np.uint64((1 << rest) - 1)
        inputs["a"][:, -1] |= ~last
        inputs["b"][:, -1] &= last
    return inputs


def _words(*shape: int) -> Draw:
    return Draw(lambda rng: rng.integers(0, 2**WORD, shape, dtype=np.uint64))


def by_words(
    a: Array, b: Array, k: int, *, last: Function = lambda rest: 2**rest - 1, all_words: bool = False
) -> Array:
    """Return the products (N, M), int32, of k signs in each row of a (N, W) and b (M, W).

    Mistakes have a last word of which other bits than last(k % 64 or 64) count; or of all others no more than that.
    """
    words = np.full(a.shape[1], ONES, np.uint64)
    words[slice(None) if all_words else -1] = last(k % WORD or WORD)
    differ = np.bitwise_count((a[:, None] ^ b) & words)
    return np.asarray(k - 2 * differ.sum(axis=2, dtype=np.int32), np.int32)


def _counted(says: str, last: Function) -> Mistake:
    return Mistake(says, partial(by_words, last=last))


FEW_BITS = "8 bits count to 255, and 16 to 32,767: .sum(axis=1, dtype=np.int32)"
BINARY_MISTAKES = (
    _counted("bits beyond the k-th are anything, and must not count", lambda rest: ONES),
    result(
        "a sign that differs takes 2 away: the 1 that is missing, and the -1 that is there", lambda y, k: (k + y) // 2
    ),
    _counted("where k % 64 is 0 the last word is full: all of its bits count", lambda rest: 2 ** (rest % WORD) - 1),
    _counted(
        "the first sign lies in the lowest bit: of the last word the k % 64 lowest count",
        lambda rest: 2**WORD - 2 ** (WORD - rest),
    ),
    Mistake("only the last word has bits left over: all bits of the others count", partial(by_words, all_words=True)),
    result(FEW_BITS, lambda y, k: k - (k - y) % 512),
    result(FEW_BITS, lambda y: y % 256),
    result(FEW_BITS, lambda y, k: k - 2 * ((k - y) // 2).astype(np.int16).astype(np.int32)),
    result(
        "below 0 unsigned numbers wrap round, and the counts are such: .sum(axis=1, dtype=np.int32)",
        lambda y: y.astype(np.uint64),
    ),
)


# straight through


def straight_through(
    grad: Array,
    x: Array,
    weight: Array,
    *,
    sign: Function = precision.binarize,
    size: Function = np.abs,
    to_x: float = 1,
    to_weight: float = 1,
) -> tuple[Array, Array]:
    """Return the gradients by x (N, K) and weight (M, K) of sign(x) @ sign(weight).T, (N, M), straight through.

    Mistakes have other signs, or let a gradient through where x or weight lies beyond 1, up to another number or size.
    """
    return grad @ sign(weight) * (size(x) <= to_x), grad.T @ sign(x) * (size(weight) <= to_weight)


def any_layer(rng: np.random.Generator) -> Inputs:
    """Draw a binary layer's inputs and weights, on both sides of 1 and some of them 0, and a gradient."""
    n, m, k = (edge_size(rng, 6) for _ in range(3))
    x, weight, grad = normals(rng, x=(n, k), weight=(m, k), grad=(n, m)).values()
    x[rng.random(x.shape) < 0.1] = 0  # as what a ReLU stopped
    weight[rng.random(weight.shape) < 0.1] = 0
    return {"grad": grad, "x": 1.5 * x, "weight": 1.5 * weight}


def _signed(says: str, sign: Callable[[Array], Array]) -> Mistake:
    return Mistake(says, partial(straight_through, sign=sign))


STRAIGHT_MISTAKES = (
    _signed("the forward pass multiplied signs: their product's gradient has signs, too", lambda x: x),
    given("beyond 1 nothing passes: (np.abs(x) <= 1)", to_x=np.inf, to_weight=np.inf),
    given("beyond 1 nothing passes, of weight either: (np.abs(weight) <= 1)", to_weight=np.inf),
    given("beyond 1 nothing passes, of x either: (np.abs(x) <= 1)", to_x=np.inf),
    Mistake("below -1 nothing passes either: np.abs", partial(straight_through, size=np.asarray)),
    _signed("0 counts as negative: its sign is -1", lambda x: np.where(x >= 0, np.float32(1), np.float32(-1))),
    _signed("0 counts as negative: its sign is -1, and np.sign gives 0", np.sign),
)
