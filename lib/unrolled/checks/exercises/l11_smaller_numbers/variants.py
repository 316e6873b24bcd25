"""Variants of the exercises of lesson 11: a bolder step down, channels last, rows by rows, whole filters, agreement."""

from __future__ import annotations

from dataclasses import replace
from math import floor

import numpy as np

from unrolled.checks.compare import Mismatch
from unrolled.checks.exercises.l11_smaller_numbers import exercises, fewer, integers, scaling
from unrolled.checks.mistakes import Mistake, result
from unrolled.checks.spec import Inputs, Spec, case, random_case, variant
from unrolled.device import Array

# a quarter of the scale after an overflow


def quarter_step(gradients: Array, scale: float, good_steps: int, every: int) -> scaling.Step:
    """Return what `loss_scale_step` does, with a quarter of the scale after an overflow."""
    found, after, count = scaling.loss_scale_step(gradients, scale, good_steps, every)
    return (found, scale / 4, 0) if found is None else (found, after, count)


loss_scale_step_quarter = variant(
    exercises.loss_scale_step,
    reference=quarter_step,
    mistakes=(
        Mistake("after an overflow a quarter of the scale is left, and not half of it", scaling.loss_scale_step),
        *exercises.loss_scale_step.mistakes,
    ),
)


# channels last


def quantize_last(x: Array, limit: Array) -> tuple[Array, Array]:
    """Return x (..., C) in int8, and the scale (C,) of each channel."""
    q, scale = integers.quantize_int8(np.moveaxis(x, -1, 0), limit)
    return np.moveaxis(q, 0, -1), scale


def _last(inputs: Inputs) -> Inputs:
    return {**inputs, "x": np.ascontiguousarray(np.moveaxis(inputs["x"], 0, -1))}


def _judge_last(got: object, expected: tuple[Array, Array], inputs: Inputs) -> Mismatch | None:
    """Judge with the channels first, where it is a pair of arrays."""
    first = {**inputs, "x": np.moveaxis(inputs["x"], -1, 0)}
    if isinstance(got, tuple) and len(got) == 2 and isinstance(got[0], np.ndarray) and got[0].ndim:
        got = (np.moveaxis(got[0], -1, 0), got[1])
    return integers.judge(got, (np.moveaxis(expected[0], -1, 0), expected[1]), first)


def _turned(wrong: Mistake) -> Mistake:
    """The mistake of the exercise, with channels last."""
    function = wrong.function
    assert function is not None

    def last(x: Array, limit: Array) -> tuple[Array, Array]:
        q, scale = function(np.moveaxis(x, -1, 0), limit)
        return np.moveaxis(q, 0, -1), scale

    return Mistake(wrong.says, last)


quantize_int8_last = variant(
    exercises.quantize_int8,
    reference=quantize_last,
    cases=[
        case(
            "two channels by hand",
            x=np.array([[0, 0], [1, 100], [-2, -254], [0.5, 254]], np.float32),
            limit=np.array([2, 254], np.float32),
        ),
        random_case("filters, each to its largest", lambda rng: _last(integers.any_weights(rng))),
        random_case("some beyond the limit", lambda rng: _last(integers.clipped(rng))),
        case(
            "a channel of zeros beside another",
            x=np.array([[0, 0.5], [0, -1], [0, 0.25]], np.float32),
            limit=np.array([0, 1], np.float32),
        ),
    ],
    hints=(
        exercises.quantize_int8.hints[0],
        "scale = limit / 127, and 1 where limit is 0, or you divide by 0. Channels are the last axis, so the scale "
        "fits as it is. Clip to -127 and 127 before you make int8 of it: else what is larger wraps round.",
        "scale = np.where(limit > 0, limit / 127, 1).astype(np.float32)\n"
        "steps = np.rint(x / ...)\n"
        "return np.clip(steps, ...).astype(np.int8), scale",
    ),
    mistakes=tuple(_turned(mistake) for mistake in exercises.quantize_int8.mistakes),
    compare=_judge_last,
)


# both factors row by row


def turned_product(a: Array, b: Array) -> Array:
    """Return a (N, K) times b (M, K) turned, (N, M), in int32."""
    return integers.int8_matmul(a, b.T)


def _turned_b(inputs: Inputs) -> Inputs:
    return {**inputs, "b": np.ascontiguousarray(inputs["b"].T)}


int8_matmul_turned = variant(
    exercises.int8_matmul,
    reference=turned_product,
    cases=[
        case("by hand", a=np.array([[100, 100], [1, -2]], np.int8), b=np.array([[100, 100], [1, -1]], np.int8)),
        random_case("any sizes", lambda rng: _turned_b(integers.any_factors(rng))),
        random_case("large sums", lambda rng: _turned_b(integers.large_factors(rng))),
    ],
    hints=(*exercises.int8_matmul.hints[:2], "return a.astype(...) @ b.T.astype(...)"),
    mistakes=(
        Mistake("sums of int8 wrap round at 128: NumPy keeps the type", lambda a, b: integers.wrapping(a, b.T)),
        Mistake("sums of 16 bits wrap round at 32,768", lambda a, b: integers.in_int16(a, b.T)),
        Mistake("float32 counts to 2^24 exactly, and no further", lambda a, b: integers.in_float32(a, b.T)),
    ),
)


# whole filters


def prune_rows(weight: Array, fraction: float, updates: list[Array]) -> Array:
    """Return the weights (O, K) with the rows of the smallest sums of magnitudes at 0, after updates."""
    mask = np.ones(len(weight), weight.dtype)
    mask[np.argsort(np.abs(weight).sum(axis=1))[: floor(fraction * len(weight))]] = 0
    for update in updates:
        weight = (weight - update) * mask[:, None]
    return weight * mask[:, None]


def _grown_again(weight: Array, fraction: float, updates: list[Array]) -> Array:
    weight = prune_rows(weight, fraction, [])
    for update in updates:
        weight = weight - update
    return weight


def _of_the_last(weight: Array, fraction: float, updates: list[Array]) -> Array:
    for update in updates:
        weight = weight - update
    return prune_rows(weight, fraction, [])


def _by_sums(weight: Array, fraction: float, updates: list[Array]) -> Array:
    mask = np.ones(len(weight), weight.dtype)
    mask[np.argsort(weight.sum(axis=1))[: floor(fraction * len(weight))]] = 0
    for update in updates:
        weight = (weight - update) * mask[:, None]
    return weight * mask[:, None]


def _five_filters(rng: np.random.Generator) -> Inputs:
    """Draw a layer of which 3.75 rows are to go: 3 do."""
    weight, update = rng.standard_normal((2, 5, 4)).astype(np.float32)
    return {"weight": weight, "fraction": 0.75, "updates": [update]}


def _rounded_rows(weight: Array, fraction: float, updates: list[Array]) -> Array:
    return prune_rows(weight, (round(fraction * len(weight)) + 0.5) / len(weight), updates)


prune_filters = variant(
    exercises.prune,
    reference=prune_rows,
    cases=[
        case(
            "four filters, half of them",
            weight=np.array([[3, -1], [0.5, -0.5], [-4, -4], [1, 1]], np.float32),
            fraction=0.5,
            updates=[np.array([[3, -1], [-5, 5], [1, 1], [1, 1]], np.float32)],
        ),
        random_case("any layer", fewer.any_pruning),
        random_case("five filters, and a share that does not come out even", _five_filters),
        case(
            "no update",
            weight=np.array([[3, -1], [0.5, -0.5], [-4, -4], [1, 1]], np.float32),
            fraction=0.5,
            updates=[],
        ),
    ],
    hints=(
        exercises.prune.hints[0],
        "np.argsort(np.abs(weight).sum(axis=1)) gives the rows, the smallest first; int(fraction * len(weight)) of "
        "them go. Keep a mask of ones and zeros, (O, 1), and multiply by it.",
        "mask = np.ones((len(weight), 1), weight.dtype)\n"
        "mask[np.argsort(...)[: int(...)]] = 0\n"
        "for update in updates:\n"
        "    weight = (weight - update) * ...",
    ),
    mistakes=(
        Mistake("what was pruned grows again in an update: multiply by the mask after each", _grown_again),
        Mistake("the mask is that of the weights before the first update", _of_the_last),
        Mistake("a row is small if its magnitudes are: np.abs(weight)", _by_sums),
        Mistake("whole rows go, and not single weights", fewer.prune),
        Mistake("int cuts off: one row fewer goes than by rounding", _rounded_rows),
    ),
)


# how many signs agree


def agreement(a: Array, b: Array, k: int) -> Array:
    """Return how many of k signs agree, (N, M) int32, for packed signs a (N, W) and b (M, W)."""
    return (k + fewer.binary_matmul(a, b, k)) // 2


def unpacked_agreement(a: Array, b: Array, k: int) -> Array:
    """Return the same from a number for each sign."""
    return (k + fewer.unpacked(a, b, k)) // 2


def _packed(spec: Spec) -> Spec:
    assert spec.speed is not None
    return replace(spec, speed=replace(spec.speed, baseline=unpacked_agreement))


def _agreeing(y: Array, k: int) -> Array:
    return (k + y) // 2


_OF_MASKS = (fewer.with_the_tail, fewer.without_a_full_word, fewer.from_the_highest_bit, fewer.masked_in_each_word)
_MASKS = [mistake for mistake in exercises.binary_matmul.mistakes if mistake.function in _OF_MASKS]

binary_matmul_agreement = variant(
    _packed(exercises.binary_matmul),
    reference=agreement,
    hints=(
        "Which bits differ is what xor says. The others agree: k less those that differ.",
        exercises.binary_matmul.hints[1],
        exercises.binary_matmul.hints[2].replace("k - 2 * np.bitwise_count", "k - np.bitwise_count"),
    ),
    mistakes=(
        *(result(mistake.says, _agreeing, mistake.function) for mistake in _MASKS),
        Mistake("this is the product of the signs: the number of those that agree is asked", fewer.binary_matmul),
        result("this is how many differ: the others agree", lambda y, k: k - y),
    ),
)
