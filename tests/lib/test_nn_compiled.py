"""Compiled steps, on the host and on the simulated GPU: those of the eager path; what has no program; what goes wrong.

Steps with a real GPU are in tests/gpu/test_gpu_compiled.py.
"""

import tracemalloc
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from compiled_cases import IMAGE, NETWORKS, OPTIMIZERS, Make, agree, dropping, eager, samples
from hypothesis import given, settings
from hypothesis import strategies as st
from strict_arrays import strict

from unrolled import kernels, nn, ops, simgpu
from unrolled.device import to_host
from unrolled.nn.compiler import convolving, cuda

OVERLAPPING = "windows that overlap and leave out", "three convolutions"
CLASSES = 4


@pytest.fixture(params=[np, simgpu], ids=["host", "simgpu"])
def module(request: pytest.FixtureRequest) -> Any:
    """Where a program runs. On a real GPU, tests/gpu has fixtures of its own for this and the next."""
    return request.param


@pytest.fixture
def gpu() -> Any:
    return simgpu


def made(name: str, module: Any = np) -> nn.Sequential:
    return NETWORKS[name]().build(IMAGE, module)


def there(module: Any, *arrays: Any) -> list[Any]:
    """Copies of arrays of the host as the module's."""
    return [module.asarray(array.copy()) for array in arrays]


# The steps are those of the eager path


AGREE: dict[str, tuple[Any, Make, Callable[[], nn.Optimizer], int, int]] = {
    **{f"host, {name}": (np, NETWORKS[name], nn.SGD, 17, 52) for name in NETWORKS if name not in OVERLAPPING},
    **{f"simgpu, {name}, {n}": (simgpu, NETWORKS[name], nn.SGD, n, 3 * n + 1) for name in NETWORKS for n in (4, 20)},
    **{f"simgpu, {name}": (simgpu, NETWORKS["source A's"], OPTIMIZERS[name], 4, 25) for name in OPTIMIZERS},
    "simgpu, more steps than a graph has": (simgpu, NETWORKS["one layer"], nn.Adam, 1, 70),
}


@pytest.mark.parametrize(("module", "make", "optimizer", "batch", "size"), AGREE.values(), ids=AGREE.keys())
def test_two_epochs_are_the_eager_ones(module: Any, make: Make, optimizer: Any, batch: int, size: int) -> None:
    """The last batch of an epoch is smaller, but where a batch is one sample or divides the set."""
    agree(module, make, optimizer, batch, size)


pairs = st.integers(1, 3) | st.tuples(st.integers(1, 3), st.integers(1, 3))
borders = st.integers(0, 2) | st.tuples(st.integers(0, 2), st.integers(0, 2))


@st.composite
def convolutions(draw: Any) -> list[nn.Layer]:
    """A convolution with ReLU and max-pooling, with one of them, or with none; in either order."""
    layer = nn.Conv2d(draw(st.integers(1, 4)), draw(pairs), stride=draw(pairs), padding=draw(borders))
    after = draw(st.permutations([nn.ReLU(), nn.MaxPool2d(draw(pairs))]))
    return [layer, *after[: draw(st.integers(0, 2))]]


@st.composite
def networks(draw: Any) -> nn.Sequential:
    """Up to two convolutions and a dense layer, then the scores."""
    layers = [layer for part in draw(st.lists(convolutions(), max_size=2)) for layer in part]
    hidden = draw(st.sampled_from([[], [nn.Linear(5)], [nn.Linear(5), nn.ReLU()]]))
    return nn.Sequential(*layers, nn.Flatten(), *hidden, nn.Linear(CLASSES), seed=draw(st.integers(0, 9)))


@settings(deadline=None, max_examples=150)
@given(
    networks(),
    st.tuples(st.integers(1, 3), st.integers(3, 13), st.integers(3, 13)),
    st.sampled_from([1, 2, 7, 16, 19, 40]),
    st.sampled_from(sorted(OPTIMIZERS)),
    st.sampled_from([1, convolving.BLOCK_BYTES]),
    st.sampled_from([2, convolving.FEW]),
)
def test_gradients_are_eager_ones(
    network: nn.Sequential, image: tuple[int, int, int], batch: int, name: str, block: int, few: int
) -> None:
    """Step by step from equal parameters, since an optimizer may make much of a gradient's rounding.

    The convolutions in one block and in many, of a row and up to 16 samples; with phases as filters and without.
    """
    try:
        network.build(image)
    except ValueError:  # images too small for it
        return
    rng = np.random.default_rng(0)
    optimizer, twin = OPTIMIZERS[name](), OPTIMIZERS[name]()
    with patch.multiple(convolving, BLOCK_BYTES=block, FEW=few):
        steps = nn.compiled(network, optimizer, batch)
    assert steps.reason is None
    for _ in range(3):
        images = rng.standard_normal((batch, *image), dtype=np.float32)
        labels, before = rng.integers(0, CLASSES, batch), network.parameters.copy()
        loss, after = steps.step(images, labels), network.parameters.copy()
        found = network.gradients.copy()
        network.parameters[...] = before
        np.testing.assert_allclose(loss, network.loss_and_scores(images, labels)[0], rtol=1e-5, atol=1e-6)
        most = np.abs(network.gradients).max()
        np.testing.assert_allclose(found, network.gradients, rtol=1e-4, atol=1e-5 * max(1, most))
        twin.step(before, found)
        np.testing.assert_array_equal(after, before)
        network.parameters[...] = after


def test_single_steps_are_the_epoch_and_the_same_bits_every_time() -> None:
    images, labels, order = samples(24, 10)
    one, many = (made("source B's") for _ in range(2))
    steps = nn.compiled(one, nn.Adam(), 8)
    losses = [steps.step(images[order[at : at + 8]], labels[order[at : at + 8]]) for at in (0, 8, 16)]
    np.testing.assert_array_equal(losses, nn.compiled(many, nn.Adam(), 8).epoch(images, labels, order))
    np.testing.assert_array_equal(one.parameters, many.parameters)


def test_an_epoch_takes_no_more_memory_than_a_few_steps() -> None:
    """But for the losses and what `_Before` keeps; a step of this network makes 0.3 MB of values."""
    images, labels, order = samples(1280, 10)
    steps = nn.compiled(made("source A's"), nn.SGD(), 16)

    def peak(count: int) -> int:
        tracemalloc.start()
        steps.epoch(images, labels, order[:count])
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return taken

    peak(32)
    assert peak(1280) < peak(32) + 10e6  # other threads of this process count too; 78 steps more would take 23 MB


def test_a_graph_of_64_steps_is_one_of_six_calls_of_the_host() -> None:
    """As docs/gpu.md says, which counts those of an epoch of MNIST at batch 8."""
    images, labels, order = there(simgpu, *samples(3 * cuda.STEPS, 10))
    steps = nn.compiled(made("source A's", simgpu), nn.Adam(), 1)
    steps.epoch(images, labels, order)
    calls = []
    for count in (1, 2, 3):
        with simgpu.trace() as trace:
            steps.epoch(images, labels, order[: count * cuda.STEPS])
        assert [graph.kernels for graph in trace.graphs] == count * [6 * cuda.STEPS]
        calls.append(len(trace.host_launches))
    assert list(np.diff(calls)) == [6, 6]
    launches = ceil(60_000 // 8 / cuda.STEPS)
    text = (Path(__file__).parents[2] / "docs/gpu.md").read_text(encoding="utf-8")
    assert f"captures up to {cuda.STEPS} training steps" in text
    assert f"7,500 steps are {launches} launches of a graph, and {6 * launches} calls of the host" in text


def test_an_optimizer_that_forgets_between_epochs_has_new_memory_in_the_graphs(gpu: Any) -> None:
    data = there(gpu, *samples(8, 3))
    network, optimizer = made("one layer", gpu), nn.Adam()
    steps, start = nn.compiled(network, optimizer, 4), network.parameters.copy()
    first, second, third = (to_host(steps.epoch(*data)) for _ in range(3))
    optimizer.reset()
    network.parameters[...] = start
    np.testing.assert_array_equal(to_host(steps.epoch(*data)), first)
    np.testing.assert_array_equal(to_host(steps.epoch(*data)), second)
    assert (third != first).any()


def dropped(module: Any, rate: float, seed: int, step: int, shape: tuple[int, ...]) -> Any:
    """What the dropout of a step does to ones."""
    ones, out = module.ones(shape, dtype=np.float32), module.empty(shape, dtype=np.float32)
    given = ones, ones, module.asarray(np.array([step]))
    kernels.dropout_of_step(given, (out,), kernels.constants(masked=False), rate=rate, seed=float(seed))
    return to_host(out)


def test_dropout_on_a_gpu(gpu: Any) -> None:
    """Numbers depend on seed, step and place; about so many are dropped; a step's gradients are of what it kept."""
    one = dropped(gpu, 0.3, 5, 0, (400, 500))
    assert abs((one == 0).mean() - 0.3) < 0.005
    np.testing.assert_allclose(one[one > 0], 1 / 0.7, rtol=1e-6)
    np.testing.assert_array_equal(one, dropped(gpu, 0.3, 5, 0, (400, 500)))
    for seed, step in ((6, 0), (5, 1)):
        both = (one == 0) & (dropped(gpu, 0.3, seed, step, (400, 500)) == 0)
        assert abs(both.mean() - 0.09) < 0.005
    images, labels, _ = samples(60, 10)
    network, other = dropping(0.4).build(IMAGE, gpu), dropping(0.4).build(IMAGE)
    other.parameters[...] = to_host(network.parameters)
    steps = nn.compiled(network, nn.SGD(0.0), 60)
    assert steps.reason is None
    loss = float(to_host(steps.step(*there(gpu, images, labels))))
    for number, layer in enumerate(other.layers):
        if isinstance(layer, nn.Dropout):
            mask = dropped(gpu, 0.4, layer.seed, 0, (60, 6, 5, 5) if number < 5 else (60, 40))
            layer.forward = lambda x, training=False, mask=mask: x * mask  # type: ignore[method-assign, misc]
            layer.backward = lambda grad, mask=mask: grad * mask  # type: ignore[method-assign, misc]
    assert abs(loss - float(other.loss_and_scores(images, labels)[0])) < 1e-5
    np.testing.assert_allclose(to_host(network.gradients), other.gradients, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint64"])
def test_labels_of_any_whole_numbers_are_the_same(module: Any, dtype: str) -> None:
    """Places in a batch's scores are counted, and do not fit into the smallest."""
    (images, labels, order), losses = samples(200, 3), []
    for kind in ("int64", dtype):
        steps = nn.compiled(made("one layer", module), nn.SGD(0.1), 200)
        losses.append(to_host(steps.epoch(*there(module, images, labels.astype(kind)), order)))
    np.testing.assert_array_equal(*losses)


# What no program has runs eagerly, with a reason


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


def of(*layers: nn.Layer, image: tuple[int, ...] = IMAGE, module: Any = np, **options: Any) -> nn.Sequential:
    return nn.Sequential(*layers, **options).build(image, module)


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


# What goes wrong is named, and leaves network and optimizer as they were


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
    step, taken = cuda.GraphProgram._step, []

    def interrupted(self: Any, slot: int) -> None:
        taken.append(slot)
        if slot == 2:
            raise KeyboardInterrupt
        step(self, slot)

    with monkeypatch.context() as patch:
        patch.setattr(cuda.GraphProgram, "_step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            steps.epoch(*data)
    assert taken == [0, 1, 2]
    assert float(gpu.ones(3).sum()) == 3
    assert steps.optimizer.steps == alike.optimizer.steps
    np.testing.assert_array_equal(to_host(steps.epoch(*data)), to_host(alike.epoch(*data)))
