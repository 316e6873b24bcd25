"""A step of dynamic loss scaling: gradients in float16 that carry a scale, and what becomes of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.mistakes import Mistake, result
from unrolled.checks.spec import Inputs
from unrolled.device import Array

Step = tuple[Any, float, int]
SHAPE = "return gradients, scale, good_steps"


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
        return Mismatch((f"a {type(got).__name__} came back: {SHAPE}",))
    if (got[0] is None) != (expected[0] is None):
        skipped = "one of these is infinite or NaN: the step is to be skipped, so None is expected"
        what = skipped if expected[0] is None else "these are finite, each of them: no None is expected"
        return Mismatch((f"gradients: {what}",))
    if expected[0] is not None and (found := mismatch(got[0], expected[0], 1e-6)):
        return Mismatch((f"gradients: {found.lines[0]}", *found.lines[1:]), found.got, found.expected)
    for name, value, wanted in zip(("scale", "good_steps"), got[1:], expected[1:], strict=True):
        if found := mismatch(value, wanted, 1e-9):
            return Mismatch((f"{name}: {found.lines[0]}", *found.lines[1:]))
    return None


def finite(rng: np.random.Generator) -> Inputs:
    """Draw a step without overflow."""
    gradients = rng.standard_normal((3, 4)).astype(np.float16)
    return {"gradients": gradients, "scale": 1024.0, "good_steps": 3, "every": 10}


def overflowed(value: float) -> Any:
    """Return a draw of gradients of which one is not finite."""

    def draw(rng: np.random.Generator) -> Inputs:
        drawn = finite(rng)
        drawn["gradients"][1, 2] = value
        return {**drawn, "scale": 1.0, "good_steps": 9}

    return draw


def tiny(rng: np.random.Generator) -> Inputs:
    """Draw gradients that are 0 in float16 without their scale."""
    gradients = (rng.uniform(0.5, 1, (2, 5)) * 1e-3).astype(np.float16)
    return {"gradients": gradients, "scale": 65536.0, "good_steps": 0, "every": 4}


def large(rng: np.random.Generator) -> Inputs:
    """Draw finite gradients whose sum float16 does not hold, and the smallest whole scale."""
    gradients = (6e4 * np.ones((2, 3)) - rng.uniform(0, 1e3, (2, 3))).astype(np.float16)
    return {"gradients": gradients, "scale": 1.0, "good_steps": 1, "every": 9}


def doubling(rng: np.random.Generator) -> Inputs:
    """Draw the last of some good steps in a row."""
    return {**finite(rng), "scale": 256.0, "good_steps": 6, "every": 7}


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
