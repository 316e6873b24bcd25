"""Compiled steps, on the host and on the simulated GPU, are those of the eager path.

What has no program is in test_nn_compiled_eager.py, what goes wrong in test_nn_compiled_wrong.py. Steps with a real GPU
are in tests/gpu/test_gpu_compiled.py.
"""

import tracemalloc
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from compiled_cases import (
    IMAGE,
    NETWORKS,
    OPTIMIZERS,
    OVERLAPPING,
    Make,
    agree,
    dropping,
    made,
    samples,
    there,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled import kernels, nn, simgpu
from unrolled.device import to_host
from unrolled.nn.compiler import convolving, cuda

CLASSES = 4


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
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak_bytes

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
