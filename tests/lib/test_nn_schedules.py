"""Schedules: the factor at known epochs."""

from __future__ import annotations

from typing import Any

import pytest

from unrolled.nn.schedules import cosine_decay, exponential_decay, step_decay, warmup


def factors(schedule: Any, epochs: int) -> list[float]:
    return [schedule(epoch) for epoch in range(epochs)]


def test_step_decay_halves_now_and_then() -> None:
    assert factors(step_decay(2), 6) == [1, 1, 0.5, 0.5, 0.25, 0.25]
    assert factors(step_decay(3, 0.1), 4) == pytest.approx([1, 1, 1, 0.1])


def test_exponential_decay_shrinks_every_epoch() -> None:
    assert factors(exponential_decay(0.9), 4) == pytest.approx([1, 0.9, 0.81, 0.729])


def test_cosine_decay_goes_from_1_to_its_end_and_stays() -> None:
    assert factors(cosine_decay(4), 6) == pytest.approx([1, 0.853553, 0.5, 0.146447, 0, 0], abs=1e-6)
    assert factors(cosine_decay(2, final=0.2), 4) == pytest.approx([1, 0.6, 0.2, 0.2])


def test_cosine_decay_is_that_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    peer = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=7, eta_min=0.1)
    schedule = cosine_decay(7, final=0.1)
    for epoch in range(8):
        assert schedule(epoch) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-6)
        optimizer.step()
        peer.step()


def test_warmup_rises_then_follows() -> None:
    assert factors(warmup(3), 6) == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])
    assert factors(warmup(1, step_decay(1)), 4) == pytest.approx([0.5, 1, 0.5, 0.25])
    assert factors(warmup(0, step_decay(1)), 2) == pytest.approx([1, 0.5])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: step_decay(0), "every is 0; expected at least 1"),
        (lambda: step_decay(2, 0), "factor is 0; expected above 0 and at most 1"),
        (lambda: step_decay(2, 1.5), "factor is 1.5; expected"),
        (lambda: exponential_decay(-0.5), "factor is -0.5; expected"),
        (lambda: exponential_decay(float("nan")), "factor is nan; expected"),
        (lambda: cosine_decay(0), "epochs is 0; expected at least 1"),
        (lambda: cosine_decay(3, -0.1), "final is -0.1; expected 0 to 1"),
        (lambda: cosine_decay(3, 2), "final is 2; expected 0 to 1"),
        (lambda: warmup(-1), "epochs is -1; expected at least 0"),
    ],
)
def test_options_out_of_range_are_named(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_warmup_is_followed_by_a_schedule_only() -> None:
    with pytest.raises(TypeError, match=r"then is 0\.5; expected a schedule"):
        warmup(2, 0.5)  # type: ignore[arg-type]
