"""Parameters in a file and back; files that are broken, foreign or of another network."""

import io
import pickle
import re
import tracemalloc
import zipfile

import numpy as np
import pytest

from unrolled import nn
from unrolled.data import Dataset

SHAPE = (1, 8, 8)
FOREIGN = "not a file of a network's parameters"


def network(features=5, seed=0):
    return nn.Sequential(nn.Conv2d(2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(features), seed=seed)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "weights"
    network(seed=7).build(SHAPE).save(path)
    return path


@pytest.mark.parametrize("build", [True, False])
def test_a_network_comes_back_as_it_was(saved, build):
    assert [file.name for file in saved.parent.iterdir()] == [saved.name]
    with np.load(saved, allow_pickle=False) as file:
        assert {"0.weight", "0.bias", "3.weight", "3.bias"} < set(file.files)
    other = network(seed=1)
    if build:
        other.build(SHAPE)
    assert other.load(saved) is other
    np.testing.assert_array_equal(other.parameters, network(seed=7).build(SHAPE).parameters)
    assert other.forward(np.zeros((2, *SHAPE), np.float32)).shape == (2, 5)


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
        (lambda: network().build((1, 9, 9)), r"its input shape is \(1, 8, 8\), the network's is \(1, 9, 9\)"),
    ],
)
def test_another_network_is_refused(saved, other, says, build):
    target = other()
    if build and says and target.input_shape is None:
        target.build(SHAPE)
    refused(saved, target, says)


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
        (tmp_path / name).write_bytes(content)
    np.savez("objects.npz", input_shape=SHAPE, layers=1, **{"0.weight": np.array([Bomb()], object)})
    np.savez("foreign.npz", x=np.zeros(3))
    np.save("single.npy", np.zeros(3))
    for name in (*contents, "objects.npz", "foreign.npz", "single.npy"):
        refused(tmp_path / name, network().build(SHAPE), FOREIGN)
    assert not (tmp_path / "exploded").exists()
    with pytest.raises(FileNotFoundError):
        network().load(tmp_path / "nothing.npz")
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
    noted = [lambda network, history: states.append(network.state.copy())]
    options = {"validation": train, "optimizer": nn.SGD(2.0), "early_stop": nn.EarlyStop(patience=2)}
    history = ours.fit(train, epochs=4, callbacks=noted, progress=False, **options)
    best = int(np.argmin(history.validation_loss))
    assert best + 1 < len(states)
    np.testing.assert_array_equal(ours.state, states[best])
    ours.save(tmp_path / "n.npz")
    np.testing.assert_array_equal(other.load(tmp_path / "n.npz").state, ours.state)
    np.testing.assert_array_equal(other.scores(train.images), ours.scores(train.images))
    with pytest.raises(ValueError, match=r"layer 1 has \['beta', 'gamma', 'mean', 'variance'\]"):
        nn.Sequential(nn.Conv2d(2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(5)).load(tmp_path / "n.npz")


HUGE = 5 * 10**9  # float32: 20 GB


def array(shape, values=None):
    """A file of an array that claims any shape; without values there is no data behind it."""
    content = b"" if values is None else np.array(values, "<i8").tobytes()
    buffer = io.BytesIO()
    header = {"descr": "<f4" if values is None else "<i8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + content


def test_a_small_file_that_claims_20_gb_is_refused_before_anything_is_made(tmp_path):
    claims = {
        "crafted": {"input_shape": array((1,), [HUGE]), "layers": array((), 1), "0.weight": array((1, HUGE))},
        "many": {"input_shape": array((1,), [3]), "layers": array((), HUGE)},
        "bomb": {"0.weight": array((1000, 1000)) + bytes(4_000_000)},
    }
    claims["crafted"]["0.bias"] = array((1,))
    tracemalloc.start()
    try:
        for name, files in claims.items():
            path = tmp_path / f"{name}.npz"
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if name == "bomb" else zipfile.ZIP_STORED) as file:
                for member, content in files.items():
                    file.writestr(f"{member}.npy", content)
            assert path.stat().st_size < 10_000
            tracemalloc.reset_peak()
            says = f"it has {HUGE} layers, the network has 1" if name == "many" else FOREIGN
            refused(path, nn.Sequential(nn.Linear(1)), says)
            assert tracemalloc.get_traced_memory()[1] < 1e9  # other threads of this process count too
    finally:
        tracemalloc.stop()


def training_set():
    rng = np.random.default_rng(3)
    return Dataset(rng.random((20, *SHAPE), dtype=np.float32), rng.integers(0, 5, 20))


RULES = [nn.SGD, lambda: nn.SGD(momentum=0.9), nn.AdaGrad, nn.RMSProp, nn.AdaDelta, lambda: nn.Adam(weight_decay=0.1)]


@pytest.mark.parametrize("make", RULES)
def test_a_training_that_was_saved_goes_on_as_if_nothing_had_been(make, tmp_path):
    whole, rule = network(), make()
    for seed in (0, 1):
        whole.fit(training_set(), epochs=1, optimizer=rule, seed=seed, progress=False)
    first, rule = network(), make()
    first.fit(training_set(), epochs=1, optimizer=rule, seed=0, progress=False)
    first.save(tmp_path / "network.npz")
    rule.save(tmp_path / "rule.npz")
    second, resumed = network().load(tmp_path / "network.npz"), make().load(tmp_path / "rule.npz")
    second.fit(training_set(), epochs=1, optimizer=resumed, seed=1, progress=False)
    np.testing.assert_array_equal(second.parameters, whole.parameters)
    assert resumed.steps == 2


def test_an_optimizers_file_that_does_not_fit_is_named(saved, tmp_path):
    path, rule = tmp_path / "adam.npz", nn.Adam()
    with pytest.raises(ValueError, match="no state yet"):
        rule.save(path)
    network().fit(training_set(), epochs=1, optimizer=rule, progress=False)
    rule.save(path)
    with pytest.raises(ValueError, match=r"adam\.npz does not fit this optimizer: it is of Adam with 2 memories"):
        nn.AdaDelta().load(path)
    with pytest.raises(ValueError, match="not a file of an optimizer's state"):
        nn.Adam().load(saved)
    with pytest.raises(ValueError, match=FOREIGN):
        network().load(path)
    with pytest.raises(ValueError, match=r"the memory that was loaded is float32 \(\d+,\), the parameters are float32"):
        network(6).fit(training_set(), epochs=1, optimizer=nn.Adam().load(path), progress=False)
    loaded = nn.Adam().load(path)
    loaded.reset()
    network(6).fit(training_set(), epochs=1, optimizer=loaded, progress=False)
