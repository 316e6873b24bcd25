"""Whole trainings beside PyTorch's, from the same first weights: loss by loss; and clipping."""

from typing import Any

import numpy as np
import pytest

from unrolled import data, nn, simgpu
from unrolled.nn.training import clip

RNG = np.random.default_rng(0)
IMAGES = data.Dataset(RNG.random((40, 2, 12, 12), dtype=np.float32), RNG.integers(0, 10, 40))
TRAIN = data.Dataset(RNG.random((24, 5, 6), dtype=np.float32), RNG.integers(0, 10, 24))
NAMES = {"gamma": "weight", "beta": "bias"}


def torch() -> Any:
    """PyTorch, which other processes that look for tests need not load."""
    return pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")


def convolutions(**options: Any) -> nn.Sequential:
    return nn.Sequential(
        *(nn.Conv2d(6, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(), nn.MaxPool2d(3, stride=2)),
        *(nn.Conv2d(8, 3, stride=2), nn.LeakyReLU()),
        *(nn.AvgPool2d(2, stride=1), nn.Flatten(), nn.Linear(20), nn.Tanh(), nn.Linear(10)),
        **options,
    ).build((2, 12, 12))


def their_convolutions() -> Any:
    return torch().nn.Sequential(
        *(torch().nn.Conv2d(2, 6, 3, padding=1), torch().nn.ReLU(), torch().nn.BatchNorm2d(6)),
        *(torch().nn.MaxPool2d(3, stride=2), torch().nn.Conv2d(6, 8, 3, stride=2), torch().nn.LeakyReLU()),
        torch().nn.AvgPool2d(2, stride=1),
        *(torch().nn.Flatten(), torch().nn.Linear(8, 20), torch().nn.Tanh(), torch().nn.Linear(20, 10)),
    )


def recurrent(**options: Any) -> nn.Sequential:
    network = nn.Sequential(nn.LSTM(7, 2, return_sequences=True), nn.LSTM(4), nn.Linear(10), **options)
    return network.build((5, 6))


def their_recurrent() -> Any:
    theirs = torch().nn
    layers = theirs.LSTM(6, 7, 2, batch_first=True), theirs.LSTM(7, 4, batch_first=True), theirs.Linear(4, 10)

    class Recurrent(theirs.Module):
        def forward(self, x: Any) -> Any:
            first, second, third = self.children()
            return third(second(first(x)[0])[0][:, -1])

    network = Recurrent()
    for number, layer in enumerate(layers):
        network.add_module(str(number), layer)
    return network


def attentive(**options: Any) -> nn.Sequential:
    layers = nn.Attention(3), nn.ReLU(), nn.Attention(2, causal=True), nn.Flatten(), nn.Linear(10)
    return nn.Sequential(*layers, **options).build((5, 6))


def their_attentive() -> Any:
    theirs = torch().nn
    unseen = torch().ones(5, 5, dtype=torch().bool).triu(1)

    class Attending(theirs.MultiheadAttention):
        def forward(self, x: Any) -> Any:
            causal = self.num_heads == 2
            return super().forward(x, x, x, attn_mask=unseen if causal else None, need_weights=False)[0]

    layers = Attending(6, 3, batch_first=True), theirs.ReLU(), Attending(6, 2, batch_first=True)
    return theirs.Sequential(*layers, theirs.Flatten(), theirs.Linear(30, 10))


def named(network: nn.Sequential) -> dict[str, Any]:
    """The parameters and running averages by PyTorch's names."""
    found = {}
    for number, layer in enumerate(network.layers):
        found |= {f"{number}.{NAMES.get(name, name)}": value for name, value in layer.parameters.items()}
        averages = zip(("running_mean", "running_var"), layer.state.values(), strict=False)
        found |= {f"{number}.{name}": value for name, value in averages}
    return found


SGD = {"momentum": 0.9, "weight_decay": 1e-3}
TRAININGS = {
    "SGD": (convolutions, their_convolutions, IMAGES, nn.SGD(0.1, **SGD), ("SGD", {"lr": 0.1, **SGD}), None),
    "Adam": (convolutions, their_convolutions, IMAGES, nn.Adam(0.003), ("Adam", {"lr": 0.003}), None),
    "AdaDelta": (
        convolutions,
        their_convolutions,
        IMAGES,
        nn.AdaDelta(1.0),
        ("Adadelta", {"lr": 1, "rho": 0.95}),
        None,
    ),
    "attention": (attentive, their_attentive, TRAIN, nn.SGD(0.1, **SGD), ("SGD", {"lr": 0.1, **SGD}), None),
    "LSTM": (recurrent, their_recurrent, TRAIN, nn.Adam(0.01), ("Adam", {"lr": 0.01}), None),
    "LSTM, clipped": (recurrent, their_recurrent, TRAIN, nn.Adam(0.01), ("Adam", {"lr": 0.01}), 0.05),
}


@pytest.mark.parametrize(("ours", "theirs", "train", "optimizer", "peer", "norm"), TRAININGS.values(), ids=TRAININGS)
def test_a_training_is_pytorchs_loss_by_loss(
    ours: Any, theirs: Any, train: data.Dataset, optimizer: nn.Optimizer, peer: Any, norm: float | None
) -> None:
    network, layers, expected = ours(), theirs(), []
    layers.load_state_dict({name: torch().tensor(value) for name, value in named(network).items()}, strict=False)
    update = getattr(torch().optim, peer[0])(layers.parameters(), **peer[1])
    for epoch in range(4):
        for x, labels in data.minibatches(train, 8, (0, epoch)):
            update.zero_grad()
            loss = torch().nn.functional.cross_entropy(layers(torch().from_numpy(x)), torch().from_numpy(labels))
            loss.backward()
            if norm:
                torch().nn.utils.clip_grad_norm_(layers.parameters(), norm)
            update.step()
            expected.append(loss.item())
    history = network.fit(train, epochs=4, batch_size=8, optimizer=optimizer, clip_norm=norm, progress=False)
    tolerance = 1e-5 if ours is recurrent else 1e-3
    np.testing.assert_allclose(history.step_loss, expected, rtol=tolerance)
    state = {name: value.numpy() for name, value in layers.state_dict().items() if "num_batches" not in name}
    assert state.keys() == named(network).keys()
    for name, value in named(network).items():
        np.testing.assert_allclose(value, state[name], rtol=1e-3, atol=2e-3 if ours is convolutions else 1e-4)
    other = ours(seed=1)
    for name, value in named(other).items():  # and back: PyTorch's into ours
        value[...] = state[name]
    with torch().no_grad():
        scores = layers.eval()(torch().from_numpy(train.images)).numpy()
    for each in (network, other):
        np.testing.assert_allclose(each.scores(train.images), scores, atol=2e-3)


def test_on_the_gpu_nothing_is_waited_for() -> None:
    network = nn.Sequential(nn.LSTM(64), nn.Linear(10)).build((5, 6), simgpu)
    twin = nn.Sequential(nn.LSTM(64), nn.Linear(10)).build((5, 6))
    there = data.Dataset(simgpu.asarray(TRAIN.images), simgpu.asarray(TRAIN.labels))
    with simgpu.trace() as trace:
        loss, _ = network.loss_and_scores(there.images, there.labels)
        clip(network.gradients, 0.1)
    assert {"lstm_persistent", "lstm_persistent_backward"} <= {launch.op for launch in trace.launches}
    assert not trace.synchronizations
    assert not trace.transfers
    expected, _ = twin.loss_and_scores(TRAIN.images, TRAIN.labels)
    np.testing.assert_allclose(loss.get(), expected, rtol=1e-5)
    clip(twin.gradients, 0.1)
    np.testing.assert_allclose(np.sqrt((twin.gradients**2).sum()), 0.1, rtol=1e-3)
    np.testing.assert_allclose(network.gradients.get(), twin.gradients, atol=1e-6)


@pytest.mark.parametrize(("values", "most"), [([3.0, np.nan, 4.0], 1), ([0.3, 0.4], 0.6), ([0.0, 0.0], 1)])
def test_short_gradients_stay_and_all_beside_a_nan_so_that_it_can_be_found(values: list[float], most: float) -> None:
    gradients = np.array(values, np.float32)
    clip(gradients, most)
    np.testing.assert_array_equal(gradients, np.array(values, np.float32))
