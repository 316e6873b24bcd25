"""Networks and optimizers that no program expresses run eagerly with a reason; what is compiled gives the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiled_cases import IMAGE, NETWORKS, OPTIMIZERS, agree, eager, samples
from strict_arrays import strict

from unrolled import nn, simgpu
from unrolled.device import to_host

Make = Callable[[], nn.Sequential]


def plain() -> nn.Sequential:
    layers = nn.Conv2d(4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12), nn.ReLU(), nn.Linear(10)
    return nn.Sequential(*layers).build(IMAGE)


def normalized() -> nn.Sequential:
    layers = nn.Conv2d(4, 3), nn.BatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.Linear(10)
    return nn.Sequential(*layers).build(IMAGE)


def recurrent() -> nn.Sequential:
    return nn.Sequential(nn.LSTM(6), nn.Linear(10)).build((12, 36))


def double() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(10), dtype=np.float64).build(IMAGE)


EAGER: dict[str, Make] = {
    "PrunedConv2d": lambda: plain().prune(0.5),
    "BinaryLinear": lambda: plain().binarize(),
    "BatchNorm2d": normalized,
    "LSTM": recurrent,
    "float64": double,
}


@pytest.mark.parametrize("name", EAGER)
def test_what_no_program_has_runs_eagerly_with_a_reason(name: str) -> None:
    images, labels, order = samples(10, 10)
    network, twin = EAGER[name](), EAGER[name]()
    data = images.reshape(len(images), *(network.input_shape or ())), labels, order
    steps = nn.compiled(network, nn.Adam(), 4)
    assert name in str(steps.reason)
    np.testing.assert_array_equal(steps.epoch(*data), eager(twin, nn.Adam(), 4, data))
    for layer in twin.layers:
        layer.forget()
    np.testing.assert_array_equal(network.parameters, twin.parameters)
    np.testing.assert_array_equal(network.state, twin.state)


@pytest.mark.parametrize("name", ["Adam", "momentum"])
def test_a_pruned_network_keeps_its_zeros(name: str) -> None:
    network = plain().prune(0.6)
    masks = [(layer, layer.state["mask"]) for layer in network.layers if "mask" in layer.state]
    nn.compiled(network, OPTIMIZERS[name](), 4).epoch(*samples(20, 10))
    assert len(masks) == 3
    for layer, mask in masks:
        weight = layer.parameters["weight"]
        assert not weight[mask == 0].any()
        assert (mask == 0).any()
        assert weight[mask == 1].all()


@pytest.mark.parametrize("smaller", [nn.Sequential.half, lambda network: network.quantize(samples(8, 10)[0])])
def test_what_cannot_be_trained_says_so(smaller: Callable[[nn.Sequential], nn.Sequential]) -> None:
    steps = nn.compiled(smaller(plain()), nn.SGD(), 4)
    assert steps.reason is not None
    with pytest.raises(TypeError, match="has no backward pass: train the network first"):
        steps.epoch(*samples(8, 10))


@pytest.mark.parametrize("module", [np, simgpu], ids=["host", "simgpu"])
@pytest.mark.parametrize("method", ["fft", "winograd", "auto"])
def test_a_convolution_by_another_method_is_compiled_to_the_same_values(method: str, module: Any) -> None:
    def made() -> nn.Sequential:
        layers = nn.Conv2d(4, 3, method=method), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(10)
        return nn.Sequential(*layers)

    agree(module, made, nn.SGD, 4, 12)


class Doubled(nn.Sequential):
    """Its scores are twice as large."""

    def forward(self, x: Any, training: bool = False) -> Any:
        return super().forward(x, training) * 2


def test_a_network_with_passes_of_its_own_runs_them() -> None:
    network, twin = (Doubled(nn.Flatten(), nn.Linear(3)).build(IMAGE) for _ in range(2))
    steps, data = nn.compiled(network, nn.SGD(), 4), samples(8, 3)
    assert steps.reason == "Doubled has a forward of its own"
    np.testing.assert_array_equal(steps.epoch(*data), eager(twin, nn.SGD(), 4, data))


class Signs(nn.Optimizer):
    """A rule of one's own: only the sign of a gradient counts. It has no kernel."""

    def _move(self, module: Any, rate: float, g: Any, scratch: Any, *memory: Any) -> Any:
        return module.multiply(module.sign(g), rate, out=scratch)


class Counting(nn.SGD):
    """A step of one's own around a rule that has a kernel."""

    calls = 0

    def step(self, parameters: Any, gradients: Any, rate: float = 1.0) -> None:
        self.calls += 1
        super().step(parameters, gradients, rate)


@pytest.mark.parametrize("kind", [Signs, Counting])
def test_an_optimizer_of_ones_own_runs_eagerly_on_a_gpu(kind: type[nn.Optimizer]) -> None:
    images, labels, order = samples(10, 3)
    network, twin = NETWORKS["one layer"]().build(IMAGE, simgpu), NETWORKS["one layer"]().build(IMAGE)
    optimizer = kind(0.1)
    steps = nn.compiled(network, optimizer, 4)
    assert steps.reason == f"{kind.__name__} has no kernel for a GPU"
    losses = to_host(steps.epoch(simgpu.asarray(images), simgpu.asarray(labels), order))
    np.testing.assert_allclose(losses, eager(twin, kind(0.1), 4, (images, labels, order)), rtol=1e-5)
    assert optimizer.steps == 3
    assert getattr(optimizer, "calls", 3) == 3


def test_another_array_library_runs_eagerly() -> None:
    images, labels, order = samples(10, 3)
    network, twin = NETWORKS["one layer"]().build(IMAGE, strict), NETWORKS["one layer"]().build(IMAGE)
    steps = nn.compiled(network, nn.Adam(), 4)
    assert "have no kernels" in str(steps.reason)
    losses = to_host(steps.epoch(strict.asarray(images), strict.asarray(labels), order))
    np.testing.assert_allclose(losses, eager(twin, nn.Adam(), 4, (images, labels, order)), rtol=1e-5)
