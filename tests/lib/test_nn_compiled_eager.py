"""Steps that have no compiled program run eagerly, with a reason."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiled_cases import IMAGE, NETWORKS, OVERLAPPING, Make, dropping, eager, made, of, samples, there
from strict_arrays import strict

from unrolled import nn, ops, simgpu
from unrolled.device import to_host


class Square(nn.Layer):
    """Rows (N, 16) as images (N, 1, 4, 4)."""

    def build(self, shape: Any) -> Any:
        return (1, 4, 4)


class Doubled(nn.Sequential):
    """Its scores are twice as large."""

    def forward(self, x: Any, training: bool = False) -> Any:
        return super().forward(x, training) * 2


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


def plain() -> nn.Sequential:
    return of(nn.Conv2d(4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12), nn.ReLU(), nn.Linear(10))


def own_pass(on_layer: bool) -> nn.Sequential:
    network = made("one layer")
    changed: Any = network.layers[1] if on_layer else network
    changed.forward = changed.forward
    return network


EAGER: dict[str, tuple[Make, Callable[[], nn.Optimizer], Any, str]] = {
    "a mean over the batch": (lambda: of(nn.BatchNorm2d(), nn.Flatten(), nn.Linear(3)), nn.SGD, np, "BatchNorm2d"),
    "pruned": (lambda: plain().prune(0.5), nn.Adam, np, "PrunedConv2d"),
    "float64": (lambda: of(nn.Flatten(), nn.Linear(10), dtype=np.float64), nn.Adam, np, "float64"),
    "a pass of its class": (lambda: Doubled(nn.Flatten(), nn.Linear(3)).build(IMAGE), nn.SGD, np, "Doubled has a forw"),
    "a pass of its own": (lambda: own_pass(False), nn.SGD, np, "Sequential has a forward of its own"),
    "a layer's own pass": (lambda: own_pass(True), nn.SGD, np, "Linear(3) was given a forward of its own"),
    **{name: (NETWORKS[name], nn.SGD, np, "the windows of MaxPool2d overlap or are padded") for name in OVERLAPPING},
    "a rule of one's own": (NETWORKS["one layer"], lambda: Signs(0.1), simgpu, "Signs has no kernel for a GPU"),
    "a step of one's own": (NETWORKS["one layer"], lambda: Counting(0.1), simgpu, "Counting has no kernel for a GPU"),
    "another library": (NETWORKS["one layer"], nn.Adam, strict, "have no kernels"),
}


@pytest.mark.parametrize(("make", "rule", "module", "reason"), EAGER.values(), ids=EAGER.keys())
def test_what_no_program_has_runs_eagerly_with_a_reason(make: Make, rule: Any, module: Any, reason: str) -> None:
    images, labels, order = samples(10, 3)
    network, twin, optimizer = make(), make(), rule()
    image = network.build(IMAGE, module).input_shape if network.input_shape is None else network.input_shape
    twin.build(image or ())
    data = images.reshape(len(images), *(image or ())), labels
    steps = nn.compiled(network, optimizer, 4)
    assert reason in str(steps.reason)
    losses = to_host(steps.epoch(*there(module, *data), order))
    np.testing.assert_allclose(losses, eager(twin, rule(), 4, (*data, order)), rtol=1e-5 if module is not np else 0)
    assert optimizer.steps == getattr(optimizer, "calls", 3) == 3
    for layer in twin.layers:
        layer.forget()
    np.testing.assert_allclose(to_host(network.parameters), twin.parameters, rtol=1e-4 if module is not np else 0)
    np.testing.assert_array_equal(to_host(network.state), twin.state)


def ending(*layers: nn.Layer, size: int = 12, **options: Any) -> nn.Sequential:
    """These layers before a dense one, on the simulated GPU."""
    return of(*layers, nn.Flatten(), nn.Linear(2), image=(1, size, size), module=simgpu, **options)


REASONS: dict[str, tuple[Make, str]] = {
    "another loss": (lambda: ending(loss=ops.mean_squared_error), "the loss is not ops.softmax_cross_entropy"),
    "float16": (lambda: plain().half(), "Half"),
    "a layer of one's own": (lambda: ending(nn.Flatten(), nn.Linear(16), Square(), nn.Conv2d(2, 3)), "Square"),
    "dropout on the host": (lambda: dropping(0.5).build(IMAGE), "Dropout"),
    "dropout first": (lambda: ending(nn.Dropout(0.5)), "Dropout"),
    "dropout last": (lambda: of(nn.Flatten(), nn.Linear(3), nn.Dropout(0.5), module=simgpu), "the last layer is not L"),
    "a large image": (lambda: ending(nn.Conv2d(2, 3), nn.ReLU(), size=120), "too large for shared memory"),
    "a large window": (lambda: ending(nn.Conv2d(2, 3), nn.MaxPool2d(16), size=40), "more than 255 places"),
}


@pytest.mark.parametrize(("make", "reason"), REASONS.values(), ids=REASONS.keys())
def test_why_there_is_no_program(make: Make, reason: str) -> None:
    assert reason in str(nn.compiled(make(), nn.SGD(), 2).reason)
