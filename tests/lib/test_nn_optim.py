"""Optimizers: the steps of PyTorch's, rates, schedules, memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from unrolled.nn import optim
from unrolled.nn.optim import SGD, AdaDelta, AdaGrad, Adam, Optimizer, RMSProp
from unrolled.nn.schedules import cosine_decay, warmup

MAKERS: dict[str, Callable[..., Optimizer]] = {
    "SGD": SGD,
    "momentum": lambda **options: SGD(momentum=0.9, **options),
    "Nesterov": lambda **options: SGD(momentum=0.9, nesterov=True, **options),
    "AdaGrad": AdaGrad,
    "RMSProp": RMSProp,
    "AdaDelta": AdaDelta,
    "Adam": Adam,
}
every = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())

DECAY, MOMENTUM = {"weight_decay": 0.3}, {"lr": 0.1, "momentum": 0.8}
PEERS = [
    (SGD(0.1), "SGD", {"lr": 0.1}),
    (SGD(0.1, **DECAY), "SGD", {"lr": 0.1, **DECAY}),
    (SGD(0.1, momentum=0.8), "SGD", MOMENTUM),
    (SGD(0.1, 0.8, **DECAY), "SGD", MOMENTUM | DECAY),
    (SGD(0.1, 0.8, nesterov=True), "SGD", {**MOMENTUM, "nesterov": True}),
    (SGD(0.1, 0.8, nesterov=True, **DECAY), "SGD", {**MOMENTUM, **DECAY, "nesterov": True}),
    (AdaGrad(), "Adagrad", {}),
    (AdaGrad(0.2, 1e-3, **DECAY), "Adagrad", {"lr": 0.2, "eps": 1e-3, **DECAY}),
    (RMSProp(), "RMSprop", {"lr": 0.001}),
    (RMSProp(0.1, 0.7, 1e-2, **DECAY), "RMSprop", {"lr": 0.1, "alpha": 0.7, "eps": 1e-2, **DECAY}),
    (AdaDelta(), "Adadelta", {"lr": 1.0, "rho": 0.95}),
    (AdaDelta(0.5, 0.8, 1e-2, **DECAY), "Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-2, **DECAY}),
    (Adam(), "Adam", {}),
    (Adam(0.1, 0.7, 0.8, 1e-2, **DECAY), "Adam", {"lr": 0.1, "betas": (0.7, 0.8), "eps": 1e-2, **DECAY}),
]


def gradients(size: int, steps: int, dtype: Any = np.float32) -> list[Any]:
    """Of very different sizes, some of them 0."""
    rng = np.random.default_rng(2)
    size_of_each = 10 ** rng.uniform(-5, 1, size)
    size_of_each[::7] = 0
    return [(rng.normal(size=size) * size_of_each).astype(dtype) for _ in range(steps)]


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 1e-12)])
@pytest.mark.parametrize(("ours", "name", "options"), PEERS, ids=[repr(peer[0]) for peer in PEERS])
def test_ten_steps_of_pytorch(
    ours: Optimizer, name: str, options: dict[str, Any], dtype: Any, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    monkeypatch.setattr(optim, "PIECE", 400)  # three pieces, the last one shorter
    ours.reset()
    parameters = np.random.default_rng(1).normal(size=1000).astype(dtype)
    tensor = torch.tensor(parameters, requires_grad=True)
    theirs = getattr(torch.optim, name)([tensor], **options)
    for gradient in gradients(1000, 10, dtype):
        ours.step(parameters, gradient)
        tensor.grad = torch.tensor(gradient)
        theirs.step()
    assert parameters.dtype == dtype
    np.testing.assert_allclose(parameters, tensor.detach(), rtol=tolerance, atol=tolerance)


@every
def test_the_learning_rate_may_change_between_steps(make: Callable[..., Optimizer]) -> None:
    changed, scaled = make(learning_rate=0.5), make(learning_rate=0.5)
    a, b = np.ones(3), np.ones(3)
    for step, gradient in enumerate(gradients(3, 4, np.float64)):
        changed.learning_rate = 0.5 / (step + 1)
        changed.step(a, gradient)
        scaled.step(b, gradient, rate=1 / (step + 1))
    np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("name", ["momentum", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"])
@pytest.mark.parametrize(("first", "then"), [(1e-3, 0), (1e-21, 1e-21), (0, 0)])
def test_gradients_that_die_out_leave_no_subnormal_numbers(name: str, first: float, then: float) -> None:
    """Such numbers are below float32's smallest normal one; a CPU is ten times slower with them."""
    ours, parameters = MAKERS[name](), np.ones(2, np.float32)
    for step in range(1500):
        ours.step(parameters, np.full(2, then if step else first, np.float32))
    smallest = np.finfo(np.float32).tiny
    for array in ours._memory:
        assert (np.abs(array) >= smallest).all()


@pytest.mark.parametrize(
    ("schedule", "factors"),
    [
        (cosine_decay(4), [1, 0.853553, 0.5, 0.146447, 0, 0]),
        (warmup(3), [0.25, 0.5, 0.75, 1, 1, 1]),
        (warmup(1, lambda epoch: 0.5**epoch), [0.5, 1, 0.5, 0.25]),
        (warmup(0, lambda epoch: 0.5**epoch), [1, 0.5]),
    ],
)
def test_factors_by_epoch(schedule: Any, factors: list[float]) -> None:
    assert [schedule(epoch) for epoch in range(len(factors))] == pytest.approx(factors, abs=1e-6)
