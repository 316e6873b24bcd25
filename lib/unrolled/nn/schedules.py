"""Schedules: by which factor the learning rate is multiplied in an epoch (0, 1, 2 ...)."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, pi
from typing import TypeAlias

from unrolled.ops.arguments import check_whole

Schedule: TypeAlias = Callable[[int], float]
"""A function from the epoch, counted from 0, to the factor."""


def cosine_decay(epochs: int) -> Schedule:
    """Return a schedule from 1 in epoch 0 down to 0 in epoch `epochs` and after, along half a cosine.

    Source: Loshchilov and Hutter, 2017. With epochs as in `fit`, the last epoch still moves: it has index epochs - 1.
    Raises ValueError unless epochs >= 1.
    """
    check_whole("epochs", epochs)
    return lambda epoch: (1 + cos(pi * min(epoch, epochs) / epochs)) / 2


def warmup(epochs: int, then: Schedule | None = None) -> Schedule:
    """Return a schedule that rises to 1 in equal steps, 1 / (epochs + 1) first, then follows `then` from its epoch 0.

    Without `then` it stays at 1. Small first steps, while the gradients are wild (Goyal et al., 2017,
    arXiv:1706.02677). Raises ValueError unless epochs >= 0, TypeError for a `then` that is no function.
    """
    check_whole("epochs", epochs, 0)
    if then is not None and not callable(then):
        raise TypeError(f"then is {then!r}; expected a schedule, such as cosine_decay(10)")

    def factor(epoch: int) -> float:
        if epoch < epochs:
            return (epoch + 1) / (epochs + 1)
        return 1.0 if then is None else then(epoch - epochs)

    return factor
