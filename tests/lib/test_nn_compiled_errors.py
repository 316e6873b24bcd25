"""What goes wrong with compiled steps is named, and leaves network and optimizer as they were; on both programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiled_cases import IMAGE, NETWORKS, OPTIMIZERS, check_interrupted, dropping, dying, eager, samples

from unrolled import nn, ops, simgpu
from unrolled.device import to_host

MODULES = pytest.mark.parametrize("module", [np, simgpu], ids=["host", "simgpu"])


def one_layer(module: Any = np) -> nn.Sequential:
    return NETWORKS["one layer"]().build(IMAGE, module)


def there(module: Any, *arrays: Any) -> list[Any]:
    """Copies of arrays of the host as the module's."""
    return [module.asarray(array.copy()) for array in arrays]


@MODULES
@pytest.mark.parametrize(("step", "steps"), [(1, 12), (2, 12), (7, 12), (12, 12), (7, 7)])
def test_a_parameter_that_no_loss_shows_is_found_and_its_step_named(module: Any, step: int, steps: int) -> None:
    """What is left is what the steps before give."""
    network, (images, labels, order) = dying(step, module)
    optimizer, twin = nn.SGD(12.0), dying(step, module)[0]
    with pytest.raises(nn.NonFiniteError) as stopped:
        nn.compiled(network, optimizer, 4).epoch(images, labels, order[: 4 * steps])
    assert (stopped.value.step, stopped.value.layer, stopped.value.array) == (step, "1: Linear(4)", "bias")
    assert optimizer.steps == step - 1
    if step > 1:
        nn.compiled(twin, nn.SGD(12.0), 4).epoch(images, labels, order[: 4 * (step - 1)])
    np.testing.assert_array_equal(to_host(network.parameters), to_host(twin.parameters))
    assert np.isfinite(to_host(network.parameters)).all()


@MODULES
def test_a_parameter_that_was_not_finite_before_is_of_step_one(module: Any) -> None:
    network, optimizer = one_layer(module), nn.SGD(0.0)
    network.parameters[-1] = np.inf
    with pytest.raises(nn.NonFiniteError, match=r"step 1: .*'bias' of 1: .*that it began with"):
        nn.compiled(network, optimizer, 4).epoch(*there(module, *samples(40, 2)))
    assert optimizer.steps == 0


@MODULES
@pytest.mark.parametrize("name", ["Adam", "momentum", "SGD"])
def test_an_optimizer_has_the_memory_of_before_the_bad_step(module: Any, name: str, tmp_path: Any) -> None:
    """Its memory comes from a file, and lies on the host until the first step."""
    images, labels, order = samples(40, 3)
    before, loaded, twin = (OPTIMIZERS[name]() for _ in range(3))
    network, other = one_layer(module), one_layer(module)
    good = there(module, images, labels)
    nn.compiled(one_layer(module), before, 4).epoch(*good, order)
    before.save(tmp_path / "optimizer.npz")
    nn.compiled(other, twin.load(tmp_path / "optimizer.npz"), 4).epoch(*good, order[:20])
    images[order[21]] = np.nan
    with pytest.raises(nn.NonFiniteError, match=r"step 6: .*'images' of the input"):
        nn.compiled(network, loaded.load(tmp_path / "optimizer.npz"), 4).epoch(*there(module, images, labels), order)
    assert loaded.steps == twin.steps == 15
    for one, two in zip(
        [network.parameters, *loaded.prepare(network.parameters)],
        [other.parameters, *twin.prepare(other.parameters)],
        strict=True,
    ):
        np.testing.assert_array_equal(to_host(one), to_host(two))


def undropped(module: Any) -> nn.Sequential:
    """A network with a dropout that runs eagerly everywhere: no program has a Tanh."""
    layers = nn.Flatten(), nn.Linear(20), nn.Tanh(), nn.Dropout(0.5), nn.Linear(10)
    return nn.Sequential(*layers).build(IMAGE, module)


@MODULES
def test_dropouts_draw_the_same_in_the_second_run_and_go_on_from_there(module: Any) -> None:
    images, labels, order = samples(48, 10)
    good = there(module, images, labels)
    images[order[40]] = np.nan
    bad = there(module, images, labels)
    network, twin = undropped(module), undropped(module)
    steps, alike = (nn.compiled(each, nn.SGD(0.1), 8) for each in (network, twin))
    for each in (steps, alike):
        each.epoch(*good, order[:16])
    with pytest.raises(nn.NonFiniteError, match="step 6"):
        steps.epoch(*bad, order)
    alike.epoch(*good, order[:40])
    np.testing.assert_array_equal(to_host(network.parameters), to_host(twin.parameters))
    np.testing.assert_array_equal(to_host(steps.epoch(*good, order)), to_host(alike.epoch(*good, order)))


def test_dropouts_of_a_smaller_last_batch_draw_the_same_after_a_bad_one() -> None:
    """On a GPU the program drops by seed and step; the rest of an epoch draws."""
    images, labels, order = samples(20, 10)
    good = there(simgpu, images, labels)
    images[order[19]] = np.nan
    networks = [dropping(0.5).build(IMAGE, simgpu) for _ in range(2)]
    steps, alike = (nn.compiled(network, nn.SGD(0.1), 8) for network in networks)
    with pytest.raises(nn.NonFiniteError, match="step 3"):
        steps.epoch(*there(simgpu, images, labels), order)
    alike.epoch(*good, order[:16])
    np.testing.assert_array_equal(to_host(steps.epoch(*good, order)), to_host(alike.epoch(*good, order)))


def test_state_is_as_before_the_bad_step() -> None:
    """Looking for what is not finite runs forward passes, which move the averages of batch normalization."""
    layers = nn.Conv2d(2, 3), nn.BatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.Linear(3)
    network = nn.Sequential(*layers).build(IMAGE)
    images, labels, order = samples(8, 3)
    images[order[0]], before = np.nan, network.state.copy()
    with pytest.raises(nn.NonFiniteError, match="step 1"):
        nn.compiled(network, nn.SGD(), 4).epoch(images, labels, order)
    np.testing.assert_array_equal(network.state, before)


def other_layers(network: nn.Sequential) -> None:
    network.layers = (network.layers[0], nn.Linear(3))


def more_layers(network: nn.Sequential) -> None:
    network.layers = (*network.layers, nn.ReLU())


def other_array(network: nn.Sequential) -> None:
    network._parameters = network._parameters.copy()


def other_device(network: nn.Sequential) -> None:
    network._parameters = simgpu.asarray(to_host(network._parameters).view(np.ndarray))
    network._gradients = simgpu.asarray(network._gradients)
    network._share()


CHANGES: dict[str, Callable[[nn.Sequential], None]] = {
    "features of layer 1": lambda network: setattr(network.layers[1], "features", 7),
    "loss": lambda network: setattr(network, "loss", ops.mean_squared_error),
    "dtype": lambda network: setattr(network, "dtype", np.dtype(np.float64)),
    "layer 1 is": other_layers,
    "layer 2": more_layers,
    "parameters": other_array,
    "gradients|parameters": other_device,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_network_that_changed_is_named(name: str) -> None:
    network = one_layer()
    steps, before = nn.compiled(network, nn.SGD(), 4), to_host(network.parameters).copy()
    CHANGES[name](network)
    with pytest.raises(ValueError, match=f"({name}).*compile it again"):
        steps.epoch(*samples(8, 3))
    np.testing.assert_array_equal(to_host(network.parameters), before)


def test_an_option_that_reads_the_same_is_no_change() -> None:
    network = NETWORKS["windows that overlap and leave out"]().build(IMAGE)
    steps = nn.compiled(network, nn.SGD(), 4)
    vars(network.layers[0])["stride"] = tuple([1, 2])  # noqa: C409, another object
    steps.epoch(*samples(8, 10))


@pytest.mark.parametrize("name", ["network", "optimizer", "batch"])
def test_what_was_compiled_cannot_be_exchanged(name: str) -> None:
    steps = nn.compiled(one_layer(), nn.SGD(), 4)
    with pytest.raises(AttributeError):
        setattr(steps, name, getattr(steps, name))


@MODULES
def test_a_step_takes_one_batch_at_most(module: Any) -> None:
    images, labels, _ = samples(24, 3)
    network = one_layer(module)
    steps, before = nn.compiled(network, nn.SGD(), 8), to_host(network.parameters).copy()
    with pytest.raises(ValueError, match="images has 24 samples, the batch is 8"):
        steps.step(*there(module, images, labels))
    np.testing.assert_array_equal(to_host(network.parameters), before)
    assert steps.step(*there(module, images[:5], labels[:5])).shape == ()
    with pytest.raises(ValueError, match=r"order is .*expected whole numbers"):
        steps.step(*there(module, images[:0], labels[:0]))
    with pytest.raises(TypeError, match="images is a list; expected an array"):
        steps.step([1, 2], labels)


@pytest.mark.parametrize("label", [77, -1])
def test_a_label_that_is_no_class_is_named_on_a_gpu(label: int) -> None:
    """In a whole batch or in the last one; the rate has nothing to do with it."""
    for at, step in ((5, 2), (9, 3)):
        images, labels, order = samples(10, 3)
        labels[order[at]] = label
        network = one_layer(simgpu)
        with pytest.raises(nn.NonFiniteError, match=f"step {step}: labels holds {label}; expected 0 to 2") as stopped:
            nn.compiled(network, nn.Adam(), 4).epoch(*there(simgpu, images, labels), order)
        assert (stopped.value.layer, stopped.value.array) == ("the input", "labels")
        assert "Look at the labels" in str(stopped.value)
        assert "rate" not in str(stopped.value)
        assert np.isfinite(to_host(network.parameters)).all()


def test_a_label_that_is_no_class_changes_nothing_in_steps_from_python() -> None:
    network, optimizer = undropped(np), nn.Adam()
    images, labels, order = samples(24, 10)
    labels[order[20]], before = 10, network.parameters.copy()
    with pytest.raises(ValueError, match="labels holds 10; expected 0 to 9"):
        nn.compiled(network, optimizer, 8).epoch(images, labels, order)
    np.testing.assert_array_equal(network.parameters, before)
    assert optimizer.steps == 0


@MODULES
def test_an_order_may_be_a_list(module: Any) -> None:
    images, labels, order = samples(10, 3)
    data = there(module, images, labels)
    losses = [nn.compiled(one_layer(module), nn.SGD(), 4).epoch(*data, each) for each in (order, order.tolist())]
    np.testing.assert_array_equal(*map(to_host, losses))


@pytest.mark.parametrize(
    ("order", "says"),
    [
        ([0.0, 1.0], r"order is float64 \(2,\); expected whole numbers"),
        ([], "at least one"),
        (None, r"order is object \(\); expected whole numbers"),
        (np.eye(2, dtype=int), r"order is int64 \(2, 2\)"),
        ([True, False], "order is bool"),
        ([0, 8], "order names samples 0 to 8; expected 0 to 7"),
        ([-1], "order names samples -1 to -1"),
    ],
)
def test_an_order_that_names_no_samples_is_named(order: Any, says: str) -> None:
    images, labels, _ = samples(8, 3)
    with pytest.raises(ValueError, match=says):
        nn.compiled(one_layer(), nn.SGD(), 4).epoch(images, labels, order)


def test_targets_of_another_loss_run_eagerly() -> None:
    def made() -> nn.Sequential:
        return nn.Sequential(nn.Flatten(), nn.Linear(2), loss=ops.mean_squared_error).build(IMAGE)

    images, _, order = samples(10, 3)
    targets = np.random.default_rng(0).random((10, 2), dtype=np.float32)
    network, twin = made(), made()
    steps = nn.compiled(network, nn.SGD(), 4)
    assert steps.reason == "the loss is not ops.softmax_cross_entropy"
    np.testing.assert_array_equal(
        steps.epoch(images, targets, order), eager(twin, nn.SGD(), 4, (images, targets, order))
    )


def test_steps_that_fall_apart_warn_by_their_error_alone(recwarn: Any) -> None:
    with pytest.raises(nn.NonFiniteError):
        nn.compiled(NETWORKS["three convolutions"]().build(IMAGE), nn.SGD(1e30), 4).epoch(*samples(40, 10))
    assert not recwarn.list


@MODULES
@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint64"])
def test_labels_of_any_whole_numbers_are_the_same(module: Any, dtype: str) -> None:
    """Places in a batch's scores are counted, and do not fit into the smallest."""
    (images, labels, order), losses = samples(200, 3), []
    for kind in ("int64", dtype):
        steps = nn.compiled(one_layer(module), nn.SGD(0.1), 200)
        losses.append(to_host(steps.epoch(*there(module, images, labels.astype(kind)), order)))
    np.testing.assert_array_equal(*losses)


@pytest.mark.parametrize("epochs", [0, 1], ids=["while it compiles", "while it captures"])
def test_an_interrupted_epoch_leaves_a_device_that_works(epochs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check_interrupted(simgpu, epochs, monkeypatch)


def test_a_method_of_a_layers_own_runs_eagerly() -> None:
    network = one_layer()
    network.layers[1].forward = network.layers[1].forward  # type: ignore[method-assign]
    assert nn.compiled(network, nn.SGD(), 4).reason == "Linear(3) was given a forward of its own"
    network = one_layer()
    network.forward = network.forward  # type: ignore[method-assign]
    assert nn.compiled(network, nn.SGD(), 4).reason == "Sequential has a forward of its own"


def test_methods_and_seeds_that_change_are_named() -> None:
    network = dropping(0.5).build(IMAGE, simgpu)
    data = there(simgpu, *samples(8, 10))
    number = next(number for number, layer in enumerate(network.layers) if isinstance(layer, nn.Dropout))
    seed = network.layers[number].seed  # type: ignore[attr-defined]
    steps = nn.compiled(network, nn.SGD(), 4)
    network.layers[number].seed = seed + 1  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=f"seed of layer {number} is another than when the network was compiled"):
        steps.epoch(*data)
    network.layers[number].seed = seed  # type: ignore[attr-defined]
    steps.epoch(*data)
    steps.optimizer.step = lambda *_: None  # type: ignore[method-assign, assignment]
    with pytest.raises(ValueError, match="step of the optimizer is another than"):
        steps.epoch(*data)


@pytest.mark.parametrize("rate", [None, "a"])
def test_a_rate_that_is_no_number_is_named(rate: Any) -> None:
    optimizer = nn.Adam()
    with pytest.raises(TypeError, match=f"rate is {rate!r}; expected a number"):
        nn.compiled(one_layer(), optimizer, 4).epoch(*samples(8, 3), rate=rate)
    assert optimizer.steps == 0
