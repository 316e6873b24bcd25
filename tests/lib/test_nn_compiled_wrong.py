"""What goes wrong in compiled steps is named, and leaves network and optimizer as they were."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_cases import IMAGE, OPTIMIZERS, Make, dropping, made, of, samples, there

from unrolled import nn, ops, simgpu
from unrolled.device import to_host
from unrolled.nn.compiler import cuda


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


def test_a_parameter_that_was_not_finite_before_is_of_step_one(module: Any) -> None:
    network, optimizer = made("one layer", module), nn.SGD(0.0)
    network.parameters[-1] = np.inf
    with pytest.raises(nn.NonFiniteError, match=r"step 1: .*'bias' of 1: .*that it began with"):
        nn.compiled(network, optimizer, 4).epoch(*there(module, *samples(40, 2)))
    assert optimizer.steps == 0


@pytest.mark.parametrize("name", ["Adam", "momentum"])
def test_an_optimizer_has_the_memory_of_before_the_bad_step(module: Any, name: str, tmp_path: Path) -> None:
    """Its memory comes from a file, and lies on the host until the first step."""
    images, labels, order = samples(40, 3)
    before, loaded, twin = (OPTIMIZERS[name]() for _ in range(3))
    network, other = made("one layer", module), made("one layer", module)
    good = there(module, images, labels)
    nn.compiled(made("one layer", module), before, 4).epoch(*good, order)
    before.save(tmp_path / "optimizer.npz")
    nn.compiled(other, twin.load(tmp_path / "optimizer.npz"), 4).epoch(*good, order[:20])
    images[order[21]] = np.nan
    with pytest.raises(nn.NonFiniteError, match=r"step 6: .*'images' of the input"):
        nn.compiled(network, loaded.load(tmp_path / "optimizer.npz"), 4).epoch(*there(module, images, labels), order)
    assert loaded.steps == twin.steps == 15
    left = [network.parameters, *loaded.prepare(network.parameters)]
    for one, two in zip(left, [other.parameters, *twin.prepare(other.parameters)], strict=True):
        np.testing.assert_array_equal(to_host(one), to_host(two))


def undropped() -> nn.Sequential:
    """A network with a dropout that runs eagerly everywhere: no program has a Tanh."""
    return nn.Sequential(nn.Flatten(), nn.Linear(20), nn.Tanh(), nn.Dropout(0.5), nn.Linear(10))


@pytest.mark.parametrize(("make", "bad"), [(undropped, 40), (lambda: dropping(0.5), 48)], ids=["eager", "last batch"])
def test_dropouts_draw_the_same_in_the_second_run_and_go_on_from_there(module: Any, make: Make, bad: int) -> None:
    """A bad sample at that place in the order leaves a network that goes on as one that did not see it.

    On a GPU the program drops by seed and step; the smaller last batch of an epoch draws.
    """
    images, labels, order = samples(52, 10)
    good = there(module, images, labels)
    images[order[bad]] = np.nan
    network, twin = (make().build(IMAGE, module) for _ in range(2))
    steps, alike = (nn.compiled(each, nn.SGD(0.1), 8) for each in (network, twin))
    for each in (steps, alike):
        each.epoch(*good, order[:16])
    with pytest.raises(nn.NonFiniteError, match=f"step {bad // 8 + 1}"):
        steps.epoch(*there(module, images, labels), order)
    alike.epoch(*good, order[:bad])
    np.testing.assert_array_equal(to_host(network.parameters), to_host(twin.parameters))
    np.testing.assert_array_equal(to_host(steps.epoch(*good, order)), to_host(alike.epoch(*good, order)))


def test_state_is_as_before_the_bad_step() -> None:
    """Looking for what is not finite runs forward passes, which move the averages of batch normalization."""
    network = of(nn.Conv2d(2, 3), nn.BatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.Linear(3))
    images, labels, order = samples(8, 3)
    images[order[0]], before = np.nan, network.state.copy()
    with pytest.raises(nn.NonFiniteError, match="step 1"):
        nn.compiled(network, nn.SGD(), 4).epoch(images, labels, order)
    np.testing.assert_array_equal(network.state, before)


def other_device(network: nn.Sequential) -> None:
    network._parameters = simgpu.asarray(to_host(network._parameters).view(np.ndarray))
    network._gradients = simgpu.asarray(network._gradients)
    network._share()


CHANGES: dict[str, Callable[[Any], None]] = {
    "features of layer 1": lambda network: setattr(network.layers[1], "features", 7),
    "loss": lambda network: setattr(network, "loss", ops.mean_squared_error),
    "layer 1 is": lambda network: setattr(network, "layers", (network.layers[0], nn.Linear(3))),
    "parameters": lambda network: setattr(network, "_parameters", network._parameters.copy()),
    "gradients|parameters": other_device,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_network_that_changed_is_named(name: str) -> None:
    network = made("one layer")
    steps, before = nn.compiled(network, nn.SGD(), 4), to_host(network.parameters).copy()
    CHANGES[name](network)
    with pytest.raises(ValueError, match=f"({name}).*compile it again"):
        steps.epoch(*samples(8, 3))
    np.testing.assert_array_equal(to_host(network.parameters), before)


def test_methods_and_seeds_that_change_are_named(gpu: Any) -> None:
    network = dropping(0.5).build(IMAGE, gpu)
    data = there(gpu, *samples(8, 10))
    number, layer = next((k, each) for k, each in enumerate(network.layers) if isinstance(each, nn.Dropout))
    steps = nn.compiled(network, nn.SGD(), 4)
    layer.seed += 1
    with pytest.raises(ValueError, match=f"seed of layer {number} is another than when the network was compiled"):
        steps.epoch(*data)
    layer.seed -= 1
    steps.epoch(*data)
    steps.optimizer.step = lambda *_: None  # type: ignore[method-assign, assignment]
    with pytest.raises(ValueError, match="step of the optimizer is another than"):
        steps.epoch(*data)


def test_a_step_takes_one_batch_at_most(module: Any) -> None:
    images, labels, _ = samples(24, 3)
    network = made("one layer", module)
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
@pytest.mark.parametrize(("at", "step"), [(5, 2), (9, 3)])
def test_a_label_that_is_no_class_is_named_on_a_gpu(gpu: Any, label: int, at: int, step: int) -> None:
    """In a whole batch or in the last one; the rate has nothing to do with it."""
    images, labels, order = samples(10, 3)
    labels[order[at]] = label
    network = made("one layer", gpu)
    with pytest.raises(nn.NonFiniteError, match=f"step {step}: labels holds {label}; expected 0 to 2") as stopped:
        nn.compiled(network, nn.Adam(), 4).epoch(*there(gpu, images, labels), order)
    assert (stopped.value.layer, stopped.value.array) == ("the input", "labels")
    assert "Look at the labels" in str(stopped.value)
    assert "rate" not in str(stopped.value)
    assert np.isfinite(to_host(network.parameters)).all()


@pytest.mark.parametrize(
    "make", [lambda: made("source A's"), lambda: undropped().build(IMAGE)], ids=["a program", "eager"]
)
@pytest.mark.parametrize(("label", "at"), [(10, 5), (-1, 24)])
def test_a_label_that_is_no_class_changes_nothing_on_the_host(make: Make, label: int, at: int) -> None:
    images, labels, order = samples(25, 10)
    labels[order[at]] = label
    network, optimizer = make(), nn.Adam()
    before = network.parameters.copy()
    with pytest.raises(ValueError, match=f"labels holds {label}; expected 0 to 9"):
        nn.compiled(network, optimizer, 4).epoch(images, labels, order)
    np.testing.assert_array_equal(network.parameters, before)
    assert optimizer.steps == 0


@pytest.mark.parametrize(
    ("order", "rate", "says"),
    [
        ([0.0, 1.0], 1, r"order is float64 \(2,\); expected whole numbers"),
        ([], 1, "at least one"),
        (None, 1, r"order is object \(\); expected whole numbers"),
        (np.eye(2, dtype=int), 1, r"order is int64 \(2, 2\)"),
        ([True, False], 1, "order is bool"),
        ([0, 8], 1, "order names samples 0 to 8; expected 0 to 7"),
        ([-1], 1, "order names samples -1 to -1"),
        ([0], None, "rate is None; expected a number"),
        ([0], "a", "rate is 'a'; expected a number"),
    ],
)
def test_an_order_or_a_rate_that_is_none_is_named(order: Any, rate: Any, says: str) -> None:
    images, labels, _ = samples(8, 3)
    optimizer = nn.Adam()
    with pytest.raises(ValueError if rate == 1 else TypeError, match=says):
        nn.compiled(made("one layer"), optimizer, 4).epoch(images, labels, order, rate=rate)
    assert optimizer.steps == 0


@pytest.mark.parametrize("epochs", [0, 1], ids=["while it compiles", "while it captures"])
def test_an_interrupted_epoch_leaves_a_device_that_works(
    gpu: Any, epochs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device works on, network and optimizer are as they were before it."""
    data = there(gpu, *samples(40, 3))
    pairs = [(made("one layer", gpu), nn.Adam()) for _ in range(2)]
    steps, alike = (nn.compiled(network, optimizer, 4) for network, optimizer in pairs)
    for _ in range(epochs):
        for each in (steps, alike):
            each.epoch(*data)
    step, slots = cuda.GraphProgram._step, []

    def interrupted(self: Any, slot: int) -> None:
        slots.append(slot)
        if slot == 2:
            raise KeyboardInterrupt
        step(self, slot)

    with monkeypatch.context() as patch:
        patch.setattr(cuda.GraphProgram, "_step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            steps.epoch(*data)
    assert slots == [0, 1, 2]
    assert float(gpu.ones(3).sum()) == 3
    assert steps.optimizer.steps == alike.optimizer.steps
    np.testing.assert_array_equal(to_host(steps.epoch(*data)), to_host(alike.epoch(*data)))
