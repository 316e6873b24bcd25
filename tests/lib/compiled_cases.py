"""Networks and trainings for the tests of compiled steps on a GPU, simulated or real."""

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled import nn
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
OVERLAPPING = "windows that overlap and leave out", "three convolutions"
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


def dropping(rate: float) -> nn.Sequential:
    """A network with dropouts after a convolution and after a dense layer."""
    return nn.Sequential(
        *(nn.Conv2d(6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(rate), nn.Flatten()),
        *(nn.Linear(40), nn.ReLU(), nn.Dropout(rate), nn.Linear(10)),
    )


def made(name: str, module: Any = np) -> nn.Sequential:
    return NETWORKS[name]().build(IMAGE, module)


def there(module: Any, *arrays: Any) -> list[Any]:
    """Copies of arrays of the host as the module's."""
    return [module.asarray(array.copy()) for array in arrays]


def of(*layers: nn.Layer, image: tuple[int, ...] = IMAGE, module: Any = np, **options: Any) -> nn.Sequential:
    return nn.Sequential(*layers, **options).build(image, module)
