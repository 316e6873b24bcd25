"""A step of dynamic loss scaling: gradients in float16 that carry a scale, and what becomes of both."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, first_mismatch
from unrolled.checks.mistakes import Mistake, result
from unrolled.checks.spec import Draw, Drawing, Inputs, draw_all, normal
from unrolled.device import Array

Step = tuple[Any, float, int]


def loss_scale_step(gradients: Array, scale: float, good_steps: int, every: int) -> Step:
    """Return the gradients in float32 without their scale, None after an overflow, and the next scale and count."""
    if not np.isfinite(gradients).all():
        return None, scale / 2, 0
    good_steps += 1
    found = gradients.astype(np.float32) / np.float32(scale)
    return (found, scale * 2, 0) if good_steps == every else (found, scale, good_steps)


def judge(got: Any, expected: Step, inputs: Inputs) -> Mismatch | None:
    """Say which of the three is wrong."""
    if not isinstance(got, tuple) or len(got) != 3:
        return Mismatch.of(f"a {type(got).__name__} came back: return gradients, scale, good_steps")
    if (got[0] is None) != (expected[0] is None):
        skipped = "one of these is infinite or NaN: the step is to be skipped, so None is expected"
        what = skipped if expected[0] is None else "these are finite, each of them: no None is expected"
        return Mismatch.of(f"gradients: {what}")
    gradients, *numbers = zip(("gradients", "scale", "good_steps"), got, expected, strict=True)
    return first_mismatch([gradients] if expected[0] is not None else [], 1e-6) or first_mismatch(numbers, 1e-9)


def a_step(gradients: Draw, scale: float, good_steps: int, every: int) -> Drawing:
    """Return what draws a step with such gradients."""
    return partial(draw_all, {"gradients": gradients, "scale": scale, "good_steps": good_steps, "every": every})


def with_one(value: float) -> Draw:
    """Return a draw of gradients of which one is this value."""
    return Draw(lambda rng: np.where(np.arange(12).reshape(3, 4) == 6, np.float16(value), FINITE.make(rng)))


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


MISTAKES = (
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
        "counting begins again where the scale changes: good_steps is 0 then",
        lambda y, scale, good_steps: y if y[1] == scale else (y[0], y[1], good_steps + 1),
    ),
)
