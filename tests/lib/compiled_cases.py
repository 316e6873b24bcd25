"""Networks and trainings for the tests of compiled steps on a GPU, simulated or real."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled import kernels, nn
from unrolled.device import to_host

Make = Callable[[], nn.Sequential]
IMAGE = (3, 12, 12)
NETWORKS: dict[str, Make] = {
    "source A's": lambda: nn.Sequential(
        *(nn.Conv2d(10, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(30), nn.ReLU(), nn.Linear(10)),
    ),
    "source B's": lambda: nn.Sequential(
        *(nn.Conv2d(20, 5), nn.MaxPool2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(300), nn.ReLU(), nn.Linear(10))
    ),
    "windows that overlap and leave out": lambda: nn.Sequential(
        *(nn.Conv2d(6, (3, 2), stride=(1, 2), padding=1), nn.MaxPool2d(3, stride=2, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(10)),
    ),
    "three convolutions": lambda: nn.Sequential(
        *(nn.Conv2d(6, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 3), nn.ReLU(), nn.MaxPool2d(3, stride=1)),
        *(nn.Conv2d(18, 1), nn.Flatten(), nn.Linear(20), nn.Linear(12)),
    ),
    "a filter of 49 places": lambda: nn.Sequential(nn.Conv2d(3, 7), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(5)),
    "dense layers alone": lambda: nn.Sequential(nn.Flatten(), nn.Linear(70), nn.ReLU(), nn.Linear(40)),
    "one layer": lambda: nn.Sequential(nn.Flatten(), nn.Linear(3)),
}
OPTIMIZERS: dict[str, Callable[[], nn.Optimizer]] = {
    "SGD": lambda: nn.SGD(0.05),
    "momentum": lambda: nn.SGD(0.02, momentum=0.9, weight_decay=1e-3),
    "Nesterov": lambda: nn.SGD(0.02, momentum=0.9, nesterov=True),
    "AdaGrad": nn.AdaGrad,
    "RMSProp": nn.RMSProp,
    "AdaDelta": nn.AdaDelta,
    "Adam": lambda: nn.Adam(weight_decay=1e-3),
}


def samples(size: int, classes: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Return images (size, *IMAGE), labels and an order of all of them."""
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((size, *IMAGE), dtype=np.float32)
    return images, rng.integers(0, classes, size), rng.permutation(size)


def eager(network: nn.Sequential, optimizer: nn.Optimizer, batch: int, data: Any, rate: float = 1.0) -> list[float]:
    """Train as `Compiled.epoch` does, one layer after the other; return the losses."""
    images, labels, order = data
    losses = []
    for at in range(0, len(order), batch):
        chosen = order[at : at + batch]
        losses.append(float(network.loss_and_scores(images[chosen], labels[chosen])[0]))
        optimizer.step(network.parameters, network.gradients, rate)
    return losses


def agree(module: Any, make: Make, optimizer: Callable[[], nn.Optimizer], batch: int, size: int) -> None:
    """Train two epochs on `module` and, eagerly, on the CPU; the second has another rate."""
    classes = make().build(IMAGE).layers[-1].features  # type: ignore[attr-defined]
    data = samples(size, classes)
    there = tuple(map(module.asarray, data))
    network, other, first, second = make().build(IMAGE, module), make().build(IMAGE), optimizer(), optimizer()
    steps = nn.compiled(network, first, batch)
    assert steps.reason is None
    for rate in (1.0, 0.5):
        losses = to_host(steps.epoch(*there, rate=rate))
        np.testing.assert_allclose(losses, eager(other, second, batch, data, rate), rtol=2e-4, atol=1e-5)
    assert first.steps == second.steps
    np.testing.assert_allclose(to_host(network.parameters), other.parameters, rtol=1e-3, atol=2e-4)
    np.testing.assert_allclose(to_host(network.gradients), other.gradients, rtol=1e-2, atol=2e-4)


def dying(step: int, module: Any) -> tuple[nn.Sequential, Any]:
    """A network, and data for 12 steps of 4, for SGD(12): one step pushes a bias to -inf, and no loss shows it.

    Unit 0 sleeps but for black images, which wake it a little, and scores follow it by a huge weight. They alone are of
    class 1, so their gradient takes the bias away; behind the ReLU the unit is dead then, as it was for other images.
    """
    network = nn.Sequential(nn.Flatten(), nn.Linear(4), nn.ReLU(), nn.Linear(3)).build((1, 2, 2), module)
    hidden, scores = network.layers[1].parameters, network.layers[3].parameters
    hidden["weight"][0], hidden["bias"][0] = -1, 2e-38  # above the smallest normal number: a GPU may take less for 0
    scores["weight"][:, 0], scores["weight"][1, 0] = 3e37, -3e37
    rng = np.random.default_rng(0)
    images, labels = rng.uniform(0.1, 1, (48, 1, 2, 2)).astype(np.float32), 2 * rng.integers(0, 2, 48)
    black = slice(4 * (step - 1), 4 * step)
    images[black], labels[black] = 0, 1
    return network, (module.asarray(images), module.asarray(labels), np.arange(48))


def dropping(rate: float) -> nn.Sequential:
    """A network with dropouts after a convolution and after a dense layer."""
    return nn.Sequential(
        *(nn.Conv2d(6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(rate), nn.Flatten()),
        *(nn.Linear(40), nn.ReLU(), nn.Dropout(rate), nn.Linear(10)),
    )


def dropped(module: Any, rate: float, seed: int, step: int, shape: tuple[int, ...]) -> Any:
    """What the dropout of a step does to ones."""
    ones, out = module.ones(shape, dtype=np.float32), module.empty(shape, dtype=np.float32)
    number = module.asarray(np.array([step]))
    options = kernels.constants(masked=False)
    kernels.dropout_of_step((ones, ones, number), (out,), options, rate=rate, seed=float(seed))
    return to_host(out)


def check_dropout(module: Any) -> None:
    """Numbers depend on seed, step and place; about so many are dropped; a step's gradients are of what it kept."""
    one = dropped(module, 0.3, 5, 0, (400, 500))
    assert abs((one == 0).mean() - 0.3) < 0.005
    np.testing.assert_allclose(one[one > 0], 1 / 0.7, rtol=1e-6)
    np.testing.assert_array_equal(one, dropped(module, 0.3, 5, 0, (400, 500)))
    for seed, step in ((6, 0), (5, 1)):
        both = (one == 0) & (dropped(module, 0.3, seed, step, (400, 500)) == 0)
        assert abs(both.mean() - 0.09) < 0.005
    images, labels, _ = samples(60, 10)
    network = dropping(0.4).build(IMAGE, module)
    start = network.parameters.copy()
    steps = nn.compiled(network, nn.SGD(0.0), 60)
    assert steps.reason is None
    loss = float(to_host(steps.step(module.asarray(images), module.asarray(labels))))
    other = dropping(0.4).build(IMAGE)
    for number, layer in enumerate(other.layers):
        if isinstance(layer, nn.Dropout):
            mask = dropped(module, 0.4, layer.seed, 0, (60, 6, 5, 5) if number < 5 else (60, 40))
            layer.forward = lambda x, training=False, mask=mask: x * mask  # type: ignore[method-assign, misc]
            layer.backward = lambda grad, mask=mask: grad * mask  # type: ignore[method-assign, misc]
    other.parameters[...] = to_host(start)
    assert abs(loss - float(other.loss_and_scores(images, labels)[0])) < 1e-5
    np.testing.assert_allclose(to_host(network.gradients), other.gradients, rtol=1e-4, atol=1e-6)
