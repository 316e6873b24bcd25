"""Lesson 11: training in float16, whole numbers of 8 bits, weights left out, and weights of one bit."""

from __future__ import annotations

import numpy as np

from unrolled import nn, ops
from unrolled.checks.exercises.l04_backprop.gradients import named
from unrolled.checks.exercises.l11_smaller_numbers import fewer, integers, scaling
from unrolled.checks.mistakes import Mistake, result
from unrolled.checks.spec import Spec, Speed, case, random_case

# loss_scale_step

loss_scale_step = Spec(
    reference=scaling.loss_scale_step,
    answers=(ops.precision.next_loss_scale,),
    cases=[
        random_case("finite gradients", scaling.finite),
        random_case("one is infinite", scaling.overflowed(np.inf)),
        random_case("one is infinite, and negative", scaling.overflowed(-np.inf)),
        random_case("one is NaN", scaling.overflowed(np.nan)),
        random_case("the last of some good steps", scaling.doubling),
        random_case("tiny gradients", scaling.tiny),
        random_case("large ones, whose sum is too large", scaling.large),
    ],
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
    mistakes=(
        Mistake("the scale is taken away in float16, where small gradients become 0", scaling.divided_in_float16),
        Mistake("the gradients still carry the scale: divide by it", scaling.with_the_scale),
        Mistake("these gradients carry the scale of this step, not that of the next one", scaling.with_the_next_scale),
        Mistake("counting begins again where the scale changes: good_steps is 0 then", scaling.never_back),
    ),
    compare=scaling.judge,
    tolerance=1e-6,
)


# quantize_int8

quantize_int8 = Spec(
    reference=integers.quantize_int8,
    answers=(ops.precision.quantize_int8, ops.precision.int8_scale),
    cases=[
        case(
            "two channels by hand",
            x=np.array([[0, 1, -2, 0.5], [0, 100, -254, 254]], np.float32),
            limit=np.array([2, 254], np.float32),
        ),
        random_case("filters, each to its largest", integers.any_weights),
        random_case("some beyond the limit", integers.clipped),
        case(
            "a channel of zeros beside another",
            x=np.array([[0, 0, 0], [0.5, -1, 0.25]], np.float32),
            limit=np.array([0, 1], np.float32),
        ),
    ],
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
    mistakes=(
        Mistake("what lies beyond the limit wraps round: clip before you make int8 of it", integers.wrapped),
        Mistake("the numbers are cut off: round to the nearest", integers.cut_off),
        Mistake("each channel has a scale of its own", integers.of_one_scale),
        Mistake("the scale follows from limit, and not from the largest magnitude in x", integers.of_the_largest),
    ),
    compare=integers.judge,
)


# int8_matmul

int8_matmul = Spec(
    reference=integers.int8_matmul,
    answers=(ops.precision.int8_matmul,),
    cases=[
        case(
            "by hand",
            a=np.array([[100, 100], [1, -2]], np.int8),
            b=np.array([[100, 1], [100, -1]], np.int8),
        ),
        random_case("any sizes", integers.any_factors),
        random_case("large sums", integers.large_factors),
    ],
    points=1,
    hints=(
        "A product of two int8 needs up to 15 bits, and a sum of many of them more. NumPy keeps the type of what goes "
        "in.",
        "Give the factors a type that has room for the sums before you multiply: int32.",
        "return a.astype(...) @ b.astype(...)",
    ),
    mistakes=(
        Mistake("sums of int8 wrap round at 128: NumPy keeps the type of the factors", integers.wrapping),
        Mistake("sums of 16 bits wrap round at 32,768", integers.in_int16),
        Mistake("float32 counts to 2^24 exactly, and no further", integers.in_float32),
        result("the result is int32", lambda y: y.astype(np.int64)),
    ),
    tolerance=0,
)


# prune

prune = Spec(
    reference=fewer.prune,
    answers=(ops.precision.magnitude_mask, nn.Sequential.prune),
    cases=[
        case(
            "four weights, half of them",
            weight=np.array([[3, -1], [0.5, -4]], np.float32),
            fraction=0.5,
            updates=[np.array([[1, 1], [1, 1]], np.float32)],
        ),
        random_case("any layer", fewer.any_pruning),
        random_case("filters, and a share that does not come out even", fewer.uneven_pruning),
        case("no update", weight=np.array([[3, -1], [0.5, -4]], np.float32), fraction=0.5, updates=[]),
    ],
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
    mistakes=(
        Mistake("what was pruned grows again in an update: multiply by the mask after each", fewer.masked_once),
        Mistake("the mask is that of the weights before the first update", fewer.masked_at_the_end),
        Mistake("which weights go is decided once, and not again after each update", fewer.masked_anew),
        Mistake("the smallest magnitudes go, and not the largest", fewer.largest_first),
        Mistake("small is what lies near 0: np.abs(weight)", fewer.by_value),
        Mistake("int cuts off: one weight fewer goes than by rounding", fewer.rounded),
        Mistake("the smallest magnitudes go before the first update, too", fewer.masked_in_updates),
    ),
)


# binary_matmul

binary_matmul = Spec(
    reference=fewer.binary_matmul,
    answers=(ops.precision.binary_matmul,),
    cases=[
        case("one word each", **fewer.signs(2, 3, 64)),
        case("three words each", **fewer.signs(4, 2, 192)),
        case("a last word that is not full", **fewer.signs(3, 3, 70)),
        random_case("any number of signs", fewer.any_signs),
    ],
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
    mistakes=(
        Mistake("bits beyond the k-th are anything, and must not count", fewer.with_the_tail),
        Mistake("a sign that differs takes 2 away: the 1 that is missing, and the -1 that is there", fewer.once),
        Mistake("where k % 64 is 0 the last word is full: all of its bits count", fewer.without_a_full_word),
        Mistake(
            "the first sign lies in the lowest bit: of the last word the k % 64 lowest count",
            fewer.from_the_highest_bit,
        ),
        Mistake("only the last word has bits left over: all bits of the others count", fewer.masked_in_each_word),
        result(
            "below 0 unsigned numbers wrap round, and the counts are such: .sum(axis=1, dtype=np.int32)",
            lambda y: y.astype(np.uint64),
        ),
    ),
    tolerance=0,
    speed=Speed(
        baseline=fewer.unpacked,
        inputs=fewer.signs(72, 72, 4096),
        at_least=3,
        points=1,
        against="an int32 for each sign, 72 x 4,096 by 4,096 x 72",
        advice="compare a row with all rows of b at once: few calls, each of many words",
    ),
)


# straight_through

straight_through = Spec(
    reference=fewer.straight_through,
    answers=(ops.precision.straight_through, nn.Sequential.binarize),
    cases=[random_case("a layer", fewer.any_layer), random_case("another layer", fewer.any_layer)],
    points=2,
    hints=(
        "The forward pass multiplied signs. So its gradients are those of a product of signs. Then each passes through "
        "its own sign: as it is where the value lies between -1 and 1, and 0 beyond.",
        "By sign(x) it is grad @ sign(weight), by sign(weight) grad.T @ sign(x). A mask np.abs(x) <= 1 stops what lies "
        "beyond.",
        "by_x = (grad @ signs of weight) * (np.abs(x) <= 1)\nby_weight = the same with x and weight exchanged",
    ),
    mistakes=(
        Mistake("the forward pass multiplied signs: their product's gradient has signs, too", fewer.of_the_values),
        Mistake("beyond 1 nothing passes: (np.abs(x) <= 1)", fewer.not_stopped),
        Mistake("beyond 1 nothing passes, of weight either: (np.abs(weight) <= 1)", fewer.x_stopped_alone),
        Mistake("beyond 1 nothing passes, of x either: (np.abs(x) <= 1)", fewer.weight_stopped_alone),
        Mistake("0 counts as negative: its sign is -1", fewer.zero_is_positive),
        Mistake("0 counts as negative: its sign is -1, and np.sign gives 0", fewer.zero_is_zero),
    ),
    compare=named("the gradient by x", "the gradient by weight"),
)
