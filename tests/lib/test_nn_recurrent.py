"""`nn.LSTM` and clipping beside PyTorch: a whole training, files, and a GPU that is not waited for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unrolled import data, nn, simgpu
from unrolled.nn.clipping import clip

torch: Any = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")

RNG = np.random.default_rng(0)
TRAIN = data.Dataset(RNG.random((24, 5, 6), dtype=np.float32), RNG.integers(0, 10, 24))


def ours(**options: Any) -> nn.Sequential:
    network = nn.Sequential(nn.LSTM(7, 2, return_sequences=True), nn.LSTM(4), nn.Linear(10), **options)
    return network.build((5, 6))


class Theirs(torch.nn.Module):
    """The same network, whose state has the same names."""

    def __init__(self, network: nn.Sequential) -> None:
        super().__init__()
        layers = torch.nn.LSTM(6, 7, 2, batch_first=True), torch.nn.LSTM(7, 4, batch_first=True), torch.nn.Linear(4, 10)
        for number, layer in enumerate(layers):
            self.add_module(str(number), layer)
        self.load_state_dict({name: torch.from_numpy(value) for name, value in named(network).items()})

    def forward(self, x: Any) -> Any:
        first, second, third = self.children()
        return third(second(first(x)[0])[0][:, -1])


def named(network: nn.Sequential) -> dict[str, Any]:
    """The parameters by PyTorch's names."""
    return {f"{k}.{name}": x.copy() for k, layer in enumerate(network.layers) for name, x in layer.parameters.items()}


@pytest.mark.parametrize("clip_norm", [None, 0.05])
def test_a_training_is_pytorchs_loss_by_loss(clip_norm: float | None) -> None:
    network = ours()
    layers = Theirs(network)
    update = torch.optim.Adam(layers.parameters(), lr=0.01)
    expected = []
    for epoch in range(3):
        for x, labels in data.minibatches(TRAIN, 8, (0, epoch)):
            update.zero_grad()
            loss = torch.nn.functional.cross_entropy(layers(torch.from_numpy(x)), torch.from_numpy(labels))
            loss.backward()
            if clip_norm:
                torch.nn.utils.clip_grad_norm_(layers.parameters(), clip_norm)
            update.step()
            expected.append(loss.item())
    options = {"epochs": 3, "batch_size": 8, "optimizer": nn.Adam(0.01), "progress": False}
    history = network.fit(TRAIN, clip_norm=clip_norm, **options)
    np.testing.assert_allclose(history.step_loss, expected, rtol=1e-5)
    state = {name: value.numpy() for name, value in layers.state_dict().items()}
    assert state.keys() == named(network).keys()
    for name, value in named(network).items():
        np.testing.assert_allclose(value, state[name], atol=1e-4)
    other = ours(seed=1)
    for name, value in state.items():  # and back: PyTorch's into ours
        number, _, parameter = name.partition(".")
        other.layers[int(number)].parameters[parameter] = value
    np.testing.assert_allclose(other.scores(TRAIN.images), network.scores(TRAIN.images), atol=1e-4)


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
