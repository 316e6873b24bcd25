"""Dynamic loss scaling (Micikevicius and others, 2018, arXiv:1710.03740): gradients that float16 would lose.

Small gradients are 0 in float16. So the loss is multiplied by a scale, which all gradients then carry, and the float32
gradients are divided by it before the update.
"""

from __future__ import annotations

from typing import NamedTuple

from unrolled.ops.arguments import check_whole

LEAST, MOST = 1.0, 2.0**24


class LossScale(NamedTuple):
    """The scale, and how many steps since it changed had finite gradients."""

    scale: float = 2.0**15
    good_steps: int = 0


def next_loss_scale(state: LossScale, finite: bool, every: int = 2000) -> LossScale:
    """Return the state after a step whose gradients were all finite, or not; the latter's update is to be skipped.

    Overflow halves the scale; `every` good steps on end double it. It stays within 1 and 2^24.
    """
    check_whole("every", every)
    if not finite:
        return LossScale(max(LEAST, state.scale / 2), 0)
    if state.good_steps + 1 < every:
        return LossScale(state.scale, state.good_steps + 1)
    return LossScale(min(MOST, state.scale * 2), 0)
