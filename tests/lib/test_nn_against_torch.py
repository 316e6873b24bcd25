"""Whole trainings beside PyTorch's, from the same first weights: loss by loss."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled import data, nn

torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")

RNG = np.random.default_rng(0)
TRAIN = data.Dataset(RNG.random((40, 2, 12, 12), dtype=np.float32), RNG.integers(0, 10, 40))
TORCH = {"gamma": "weight", "beta": "bias"}


def ours():
    return nn.Sequential(
        *(nn.Conv2d(6, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(), nn.MaxPool2d(3, stride=2)),
        *(nn.Conv2d(8, 3, stride=2), nn.LeakyReLU()),
        *(nn.AvgPool2d(2, stride=1), nn.Flatten(), nn.Linear(20), nn.Tanh(), nn.Linear(10)),
    ).build((2, 12, 12))


def theirs(network):
    """The same network in PyTorch, with the same weights."""
    layers = torch.nn.Sequential(
        *(torch.nn.Conv2d(2, 6, 3, padding=1), torch.nn.ReLU(), torch.nn.BatchNorm2d(6)),
        *(torch.nn.MaxPool2d(3, stride=2), torch.nn.Conv2d(6, 8, 3, stride=2), torch.nn.LeakyReLU()),
        torch.nn.AvgPool2d(2, stride=1),
        *(torch.nn.Flatten(), torch.nn.Linear(8, 20), torch.nn.Tanh(), torch.nn.Linear(20, 10)),
    )
    with torch.no_grad():
        for layer, peer in zip(network.layers, layers, strict=True):
            for name, value in layer.parameters.items():
                getattr(peer, TORCH.get(name, name)).copy_(torch.from_numpy(value))
    return layers


@pytest.mark.parametrize(
    ("optimizer", "peer"),
    [
        (nn.SGD(0.1, momentum=0.9, weight_decay=1e-3), ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-3})),
        (nn.Adam(0.003), ("Adam", {"lr": 0.003})),
        (nn.AdaDelta(1.0), ("Adadelta", {"lr": 1.0, "rho": 0.95})),
    ],
    ids=["SGD", "Adam", "AdaDelta"],
)
def test_the_same_losses_step_by_step(optimizer, peer):
    network = ours()
    layers = theirs(network)
    name, options = peer
    update = getattr(torch.optim, name)(layers.parameters(), **options)
    expected = []
    for epoch in range(4):
        for images, labels in data.minibatches(TRAIN, 16, (0, epoch)):
            update.zero_grad()
            loss = torch.nn.functional.cross_entropy(layers(torch.from_numpy(images)), torch.from_numpy(labels))
            loss.backward()
            update.step()
            expected.append(loss.item())
    history = network.fit(TRAIN, epochs=4, batch_size=16, optimizer=optimizer, progress=False)
    np.testing.assert_allclose(history.step_loss, expected, rtol=1e-3)
    averages = layers[2].running_mean, layers[2].running_var
    for name, expected in zip(("mean", "variance"), averages, strict=True):
        np.testing.assert_allclose(network.layers[2].state[name], expected.numpy(), rtol=1e-3)
    with torch.no_grad():
        scores = layers.eval()(torch.from_numpy(TRAIN.images)).numpy()
    np.testing.assert_allclose(network.scores(TRAIN.images), scores, atol=2e-3)
