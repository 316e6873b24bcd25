"""Schedules: the factor at known epochs."""

from __future__ import annotations

from typing import Any

import pytest

from unrolled.nn.schedules import cosine_decay, exponential_decay, step_decay, warmup


@pytest.mark.parametrize(
    ("schedule", "factors"),
    [
        (step_decay(2), [1, 1, 0.5, 0.5, 0.25, 0.25]),
        (step_decay(3, 0.1), [1, 1, 1, 0.1]),
        (exponential_decay(0.9), [1, 0.9, 0.81, 0.729]),
        (cosine_decay(4), [1, 0.853553, 0.5, 0.146447, 0, 0]),
        (cosine_decay(2, final=0.2), [1, 0.6, 0.2, 0.2]),
        (warmup(3), [0.25, 0.5, 0.75, 1, 1, 1]),
        (warmup(1, step_decay(1)), [0.5, 1, 0.5, 0.25]),
        (warmup(0, step_decay(1)), [1, 0.5]),
    ],
)
def test_factors_by_epoch(schedule: Any, factors: list[float]) -> None:
    assert [schedule(epoch) for epoch in range(len(factors))] == pytest.approx(factors, abs=1e-6)
