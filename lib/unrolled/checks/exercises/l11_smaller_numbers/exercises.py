"""Lesson 11: training in float16, whole numbers of 8 bits, weights left out, and weights of one bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, first_mismatch
from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l01_matrix_parallelism.exercises import array
from unrolled.checks.exercises.l04_backprop.gradients import named
from unrolled.checks.exercises.l11_smaller_numbers import fewer, integers
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Draw, Drawing, Inputs, Spec, Speed, case, draw_all, normal, random_case
from unrolled.device import Array
from unrolled.ops import precision

Step = tuple[Any, float, int]


def scaled_step(gradients: Array, scale: float, good_steps: int, every: int) -> Step:
    """Return the gradients in float32 without their scale, None after an overflow, and the next scale and count."""
    if not np.isfinite(gradients).all():
        return None, scale / 2, 0
    good_steps += 1
    found = gradients.astype(np.float32) / np.float32(scale)
    return (found, scale * 2, 0) if good_steps == every else (found, scale, good_steps)


def judge_step(got: Any, expected: Step, inputs: Inputs) -> Mismatch | None:
    """Say which of the three is wrong."""
    if not isinstance(got, (tuple, list)) or len(got) != 3:
        return Mismatch.of(f"a {type(got).__name__} came back: return gradients, scale, good_steps")
    if (got[0] is None) != (expected[0] is None):
        skipped = "one of these is infinite or NaN: the step is to be skipped, so None is expected"
        what = skipped if expected[0] is None else "these are finite, each of them: no None is expected"
        return Mismatch.of(f"gradients: {what}")
    gradients, *numbers = zip(("gradients", "scale", "good_steps"), got, expected, strict=True)
    if found := first_mismatch([gradients] if expected[0] is not None else [], 1e-6):
        return found
    found = first_mismatch(numbers, 1e-9)
    return found and replace(found, lines=(*found.lines, _next_scale(expected, inputs)))


def _next_scale(expected: Step, inputs: Inputs) -> str:
    """What the scale was, what it should be, and why."""
    good = f"good step {inputs['good_steps'] + 1} of {inputs['every']} {'leaves' if expected[2] else 'doubles'} it"
    why = "a skipped step halves it" if expected[0] is None else good
    return f"the scale was {inputs['scale']:g}, and {why}: {expected[1]:g}, and good_steps is {expected[2]}"


def a_step(gradients: Draw, scale: float, good_steps: int, every: int) -> Drawing:
    """Return what draws a step with such gradients."""
    return partial(draw_all, {"gradients": gradients, "scale": scale, "good_steps": good_steps, "every": every})


def with_one(value: float) -> Draw:
    """Return a draw of gradients of which one is this value."""
    return Draw(lambda rng: np.where(np.arange(12).reshape(3, 4) == 6, np.float16(value), FINITE.make(rng)))


def any_step(rng: np.random.Generator) -> Inputs:
    """Draw gradients of any size, of which one is not finite in a half of draws. No scale would fall below 1."""
    shape = [edge_size(rng, 4) for _ in range(rng.integers(1, 3))]
    gradients = np.clip(rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 6), -6e4, 6e4).astype(np.float16)
    if rng.random() < 0.5:
        gradients.flat[rng.integers(gradients.size)] = rng.choice([np.inf, -np.inf, np.nan])
    every = edge_size(rng, 8)
    good = every - 1 if rng.random() < 0.5 else int(rng.integers(every))
    return {"gradients": gradients, "scale": 2.0 ** int(rng.integers(1, 40)), "good_steps": good, "every": every}


FINITE = normal(3, 4, dtype=np.float16)
TINY = Draw(lambda rng: (rng.uniform(0.5, 1, (2, 5)) * 1e-3).astype(np.float16))
"""These are 0 in float16 without their scale."""
LARGE = Draw(lambda rng: (6e4 * np.ones((2, 3)) - rng.uniform(0, 1e3, (2, 3))).astype(np.float16))
"""Their sum float16 does not hold."""


def _gradients(says: str, change: Callable[[Array, float, float], Array]) -> Mistake:
    """Return the mistake of `change(gradients, scale, next scale)` for the gradients, where all are finite."""

    def changed(y: Step, gradients: Array, scale: float) -> Step:
        found, after, count = y
        with np.errstate(all="ignore"):
            return None if found is None else change(gradients, scale, after), after, count

    return result(says, changed)


SCALING_MISTAKES = (
    _gradients(
        "the scale is taken away in float16, where small gradients become 0",
        lambda gradients, scale, after: (gradients / np.float16(min(scale, 65504))).astype(np.float32),
    ),
    _gradients(
        "the gradients still carry the scale: divide by it",
        lambda gradients, scale, after: gradients.astype(np.float32),
    ),
    _gradients(
        "these gradients carry the scale of this step, not that of the next one",
        lambda gradients, scale, after: gradients.astype(np.float32) / np.float32(after),
    ),
    result(
        "counting begins again where the scale doubles or halves: good_steps is 0 then",
        lambda y, scale, good_steps: y if y[1] == scale else (y[0], y[1], good_steps + 1),
    ),
    given("this step counts, too: of `every` good steps in a row it may be the last", every=lambda every: every + 1),
    result(
        "a step that is skipped ends the row of good ones: good_steps is 0 then",
        lambda y, good_steps: y if y[0] is not None else (*y[:2], good_steps),
    ),
    result("nothing ends the scale from above: it doubles", lambda y: (y[0], min(y[1], 2.0**24), y[2])),
)


loss_scale_step = Spec(
    reference=scaled_step,
    cases=[
        random_case("finite gradients", a_step(FINITE, 1024.0, 3, every=10)),
        random_case("one is infinite", a_step(with_one(np.inf), 8.0, 9, every=10)),
        random_case("one is infinite, below 0", a_step(with_one(-np.inf), 8.0, 9, every=10)),
        random_case("one is the largest that is finite", a_step(with_one(65504), 8.0, 3, every=10)),
        random_case("one is NaN", a_step(with_one(np.nan), 8.0, 9, every=10)),
        random_case("the last of some good steps, a large scale", a_step(FINITE, 2.0**40, 6, every=7)),
        random_case("tiny gradients", a_step(TINY, 65536.0, 0, every=4)),
        random_case("each good step doubles", a_step(FINITE, 4.0, 0, every=1)),
        random_case("large ones, whose sum is too large", a_step(LARGE, 1.0, 1, every=9)),
    ],
    domain=random_case("any gradients", any_step),
    points=2,
    hints=(
        "Two things can have happened. Either some gradient is not finite: then this step is lost, and the scale was "
        "too large. Or all are: then they count, without their scale.",
        "np.isfinite(gradients).all() tells. Make float32 of the gradients before you divide: small numbers are what "
        "float16 cannot hold. After `every` good steps in a row the scale doubles, and counting begins again.",
        "if not np.isfinite(gradients).all():\n"
        "    return None, ..., 0\n"
        "found = gradients.astype(np.float32) / ...\n"
        "if good_steps + 1 == every:\n"
        "    return found, ..., 0\n"
        "return found, scale, ...",
    ),
    mistakes=SCALING_MISTAKES,
    compare=judge_step,
    tolerance=1e-6,
)

quantize_int8 = Spec(
    reference=integers.quantize_int8,
    cases=[
        case("two channels by hand", x=array([0, 1, -2, 0.5], [0, 100, -254, 254]), limit=array(2, 254)),
        random_case("some beyond the limit", integers.clipped),
        case("a channel of zeros beside another", x=array([0, 0, 0], [0.5, -1, 0.25]), limit=array(0, 1)),
        case("far beyond the limit", x=array([1e30, -1e30, 1e10, 0.5], [-1e30, 1, 3e9, -3e9]), limit=array(1, 2)),
        case("a limit of 0, and small values", x=array([0.25, -0.25], [1, 0.5]), limit=array(0, 1)),
    ],
    domain=random_case("any values", integers.any_values),
    points=2,
    hints=(
        "A step of a channel's scale is its limit divided by 127, so that the limit itself becomes 127. Each value is "
        "then a whole number of steps, rounded.",
        "scale = limit / 127, and 1 where limit is 0, or you divide by 0. For x of any number of axes the scale needs "
        "shape (C, 1, ...). Clip to -127 and 127 before you make int8 of it: else what is larger wraps round.",
        "scale = np.where(limit > 0, limit / 127, 1).astype(np.float32)\n"
        "steps = np.rint(x / scale.reshape(...))\n"
        "return np.clip(steps, ...).astype(np.int8), scale",
    ),
    mistakes=integers.QUANTIZE_MISTAKES,
    compare=integers.judge,
)

int8_matmul = Spec(
    reference=precision.int8_matmul,
    cases=[
        case(
            "by hand",
            a=np.array([[100, 100], [1, 1], [-128, 3]], np.int8),
            b=np.array([[100, -128], [100, 1]], np.int8),
        ),
        # These sums leave what float32 counts exactly.
        random_case("large sums", partial(draw_all, integers.factors(2, 1501, 3, least=100))),
    ],
    domain=random_case("any sizes", integers.any_factors),
    points=1,
    hints=(
        "A product of two int8 needs up to 15 bits, and a sum of many of them more. NumPy keeps the type of what goes "
        "in.",
        "Give the factors a type that has room for the sums before you multiply: int32.",
        "return a.astype(...) @ b.astype(...)",
    ),
    mistakes=integers.PRODUCT_MISTAKES,
    tolerance=0,
)

prune = Spec(
    reference=fewer.prune,
    cases=[
        case(
            "four weights, half of them",
            weight=array([3, -1], [0.5, -4]),
            fraction=0.5,
            updates=[array([3, 1], [1, 1]), array([1, 1], [1, 1])],
        ),
        # The share is 13.86 of 18 weights, of which 13 go.
        random_case("filters, and a share that does not come out even", fewer.one_update, 0.77, 1, 3, 3, 2),
        case("equal magnitudes", weight=array([1, -1], [1, 2]), fraction=0.5, updates=[array([3, 1], [2, 1])]),
        random_case("nearly equal magnitudes", fewer.nearly_equal, 3, 4, 1, 1),
        case("no update", weight=normal(2, 3), fraction=0.5, updates=[]),
        case(
            "none goes, some are 0", weight=array([0, -1], [0.5, 0]), fraction=0.0, updates=[array([3, 1], [1, 2])] * 5
        ),
    ],
    new=True,
    compare=fewer.whichever_goes(fewer.prune, lambda x: x != 0),
    domain=random_case("any weights and updates", fewer.any_pruning),
    points=2,
    hints=(
        "Which weights go is decided once, before the first update. After each update they are set to 0 again.",
        "np.argsort(np.abs(weight), axis=None) gives the places of the flat weights, the smallest magnitude first; "
        "int(fraction * weight.size) of them go. Keep a mask of ones and zeros, and multiply by it.",
        "mask = np.ones(weight.size, weight.dtype)\n"
        "mask[np.argsort(...)[: int(...)]] = 0\n"
        "mask = mask.reshape(weight.shape)\n"
        "for update in updates:\n"
        "    weight = (weight - update) * ...",
    ),
    mistakes=fewer.PRUNE_MISTAKES,
)

binary_matmul = Spec(
    reference=fewer.by_words,
    cases=[
        case("one word each", **fewer.signs(2, 3, 64)),
        case("three words each", **fewer.signs(4, 2, 192)),
        case("a last word with any bits left over", **fewer.signs(3, 2, 70)),
        random_case(
            "a last word that is not full",
            lambda rng: fewer.different_beyond(draw_all(fewer.signs(3, 3, 70), rng)),
        ),
    ],
    domain=random_case("any number of signs", fewer.any_signs),
    points=2,
    hints=(
        "Two signs give 1 if they agree, else -1. With d signs that differ among k the sum is k - 2 * d. Which bits "
        "differ is what xor says.",
        "a[row] ^ b compares one row with all rows of b: (M, W). np.bitwise_count counts the bits of each word. Bits "
        "beyond the k-th are anything: `&` with a last word that has k % 64 ones leaves them out.",
        "last = np.uint64((1 << k % 64) - 1)  # where k % 64 is not 0\n"
        "for row in range(len(a)):\n"
        "    differ = a[row] ^ b\n"
        "    differ[:, -1] &= last\n"
        "    y[row] = k - 2 * np.bitwise_count(differ).sum(...)",
    ),
    mistakes=fewer.BINARY_MISTAKES,
    tolerance=0,
    speed=Speed(
        baseline=fewer.unpacked,
        inputs=fewer.signs(72, 72, 4096),
        at_least=3,
        against="an int32 for each sign, 72 x 4,096 by 4,096 x 72",
        advice="compare a row with all rows of b at once: few calls, each of many words",
    ),
)

straight_through = Spec(
    reference=fewer.straight_through,
    cases=[
        case(
            "by hand",
            grad=array([1, 2], [3, 1]),
            x=array([2, 0, -2], [0.5, -0.5, 2]),
            weight=array([3, 0.5, -0.5], [0, -0.5, -2]),
        ),
        case("three samples", grad=normal(3, 4), x=normal(3, 3), weight=normal(4, 3)),
    ],
    domain=random_case("any layer", fewer.any_layer),
    points=2,
    hints=(
        "The forward pass multiplied signs. So its gradients are those of a product of signs. Then each passes through "
        "its own sign: as it is where the value lies between -1 and 1, and 0 beyond.",
        "By sign(x) it is grad @ sign(weight), by sign(weight) grad.T @ sign(x). A mask np.abs(x) <= 1 stops what lies "
        "beyond.",
        "by_x = (grad @ signs of weight) * (np.abs(x) <= 1)\nby_weight = the same with x and weight exchanged",
    ),
    mistakes=fewer.STRAIGHT_MISTAKES,
    compare=named("the gradient by x", "the gradient by weight"),
)
