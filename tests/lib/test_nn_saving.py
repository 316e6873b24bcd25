"""Parameters in a file and back; files that are broken, foreign or of another network."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

from unrolled import nn
from unrolled.data import Dataset

SHAPE = (1, 8, 8)


def network(features=5, seed=0):
    return nn.Sequential(nn.Conv2d(2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(features), seed=seed)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "network.npz"
    network(seed=7).build(SHAPE).save(path)
    return path


@pytest.mark.parametrize("build", [True, False])
def test_a_network_comes_back_as_it_was(saved, build):
    other = network(seed=1)
    if build:
        other.build(SHAPE)
    assert other.load(saved) is other
    np.testing.assert_array_equal(other.parameters, network(seed=7).build(SHAPE).parameters)
    assert other.forward(np.zeros((2, *SHAPE), np.float32)).shape == (2, 5)


def test_the_file_keeps_the_name_it_was_given(tmp_path):
    network().build(SHAPE).save(tmp_path / "weights")
    assert [file.name for file in tmp_path.iterdir()] == ["weights"]


def test_it_holds_arrays_and_no_pickle(saved):
    with np.load(saved, allow_pickle=False) as file:
        assert {"0.weight", "0.bias", "3.weight", "3.bias"} < set(file.files)


def test_nothing_to_save_before_there_are_parameters(tmp_path):
    with pytest.raises(ValueError, match="no parameters yet"):
        network().save(tmp_path / "network.npz")


def refused(path, other, says):
    """The error names the file, and the network stays as it was."""
    before = other.parameters.copy()
    with pytest.raises(ValueError, match=f"{re.escape(str(path))}.*{says}"):
        other.load(path)
    np.testing.assert_array_equal(other.parameters, before)


@pytest.mark.parametrize("build", [True, False])
@pytest.mark.parametrize(
    ("other", "says"),
    [
        (lambda: network(6), r"3.weight is float32 \(5, 72\) in it, the network's is float32 \(6, 72\)"),
        (lambda: nn.Sequential(nn.Flatten(), nn.Linear(5)), "it has 4 layers, the network has 2"),
        (lambda: nn.Sequential(nn.Linear(8), nn.ReLU(), nn.Flatten(), nn.Linear(5)), ""),
    ],
)
def test_another_network_is_refused(saved, other, says, build):
    target = other()
    if build and says:
        target.build(SHAPE)
    refused(saved, target, says)


def test_another_input_shape_is_refused(saved):
    refused(saved, network().build((1, 9, 9)), r"its input shape is \(1, 8, 8\), the network's is \(1, 9, 9\)")


class Bomb:
    def __reduce__(self):
        return (open, ("exploded", "w"))


def test_foreign_and_broken_files_are_refused(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = saved.read_bytes()
    contents = {
        "empty": b"",
        "text": b"3.weight = 1",
        "truncated": whole[: len(whole) // 2],
        "pickle": pickle.dumps(Bomb()),
    }
    for name, content in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        refused(path, network().build(SHAPE), "not a file of a network's parameters")
    np.savez(tmp_path / "objects.npz", input_shape=SHAPE, layers=1, **{"0.weight": np.array([Bomb()], object)})
    np.savez(tmp_path / "foreign.npz", x=np.zeros(3))
    np.save(tmp_path / "single.npy", np.zeros(3))
    for name in ("objects.npz", "foreign.npz", "single.npy"):
        refused(tmp_path / name, network().build(SHAPE), "not a file of a network's parameters")
    assert not (tmp_path / "exploded").exists()


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        network().load(tmp_path / "nothing.npz")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere to write network.npz into"):
        network().build(SHAPE).save(tmp_path / "nowhere" / "network.npz")


def test_a_failed_save_leaves_the_older_file(saved, monkeypatch):
    before = saved.read_bytes()
    monkeypatch.setattr(np, "savez", lambda file, **arrays: (file.write(b"half"), 1 / 0))
    with pytest.raises(ZeroDivisionError):
        network(seed=9).build(SHAPE).save(saved)
    assert saved.read_bytes() == before
    assert [file.name for file in saved.parent.iterdir()] == [saved.name]


def test_running_averages_are_saved_loaded_and_restored_with_the_parameters(tmp_path):
    rng = np.random.default_rng(0)
    train = Dataset(rng.normal(2, 3, (24, *SHAPE)).astype(np.float32), rng.integers(0, 5, 24))

    def normalized():
        return nn.Sequential(nn.Conv2d(2, 3), nn.BatchNorm2d(), nn.Flatten(), nn.Linear(5))

    ours, other, states = normalized(), normalized(), []
    history = ours.fit(
        train,
        epochs=4,
        validation=train,
        optimizer=nn.SGD(2.0),
        early_stop=nn.EarlyStop(patience=2),
        callbacks=[lambda network, history: states.append(network.state.copy())],
        progress=False,
    )
    best = int(np.argmin(history.validation_loss))
    assert best + 1 < len(states)
    np.testing.assert_array_equal(ours.state, states[best])
    ours.save(tmp_path / "n.npz")
    np.testing.assert_array_equal(other.load(tmp_path / "n.npz").state, ours.state)
    np.testing.assert_array_equal(other.scores(train.images), ours.scores(train.images))
    with pytest.raises(ValueError, match=r"layer 1 has \['beta', 'gamma', 'mean', 'variance'\]"):
        nn.Sequential(nn.Conv2d(2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(5)).load(tmp_path / "n.npz")
