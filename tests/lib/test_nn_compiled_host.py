"""Compiled steps on the CPU: those of the eager path to the rounding of float32, and what goes wrong is named."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from compiled_cases import IMAGE, NETWORKS, OPTIMIZERS, agree, dropping, eager, samples
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled import nn

EAGER = {
    "windows that overlap and leave out": "the windows of MaxPool2d overlap or are padded",
    "three convolutions": "the windows of MaxPool2d overlap or are padded",
}
CLASSES = 4


@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in EAGER])
@pytest.mark.parametrize("batch", [1, 4, 16, 17, 40])
def test_networks(name: str, batch: int) -> None:
    """Two epochs; the last batch is smaller but where there is one sample a batch."""
    agree(np, NETWORKS[name], nn.SGD, batch, 3 * batch + (batch > 1))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str) -> None:
    agree(np, NETWORKS["source A's"], OPTIMIZERS[name], 4, 25)


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


def built(network: nn.Sequential, image: tuple[int, int, int]) -> nn.Sequential | None:
    """The network for such images, None if they are too small for it."""
    try:
        return network.build(image)
    except ValueError:
        return None


@settings(deadline=None, max_examples=150)
@given(
    networks(),
    st.tuples(st.integers(1, 3), st.integers(3, 13), st.integers(3, 13)),
    st.sampled_from([1, 2, 7, 16, 19]),
    st.sampled_from(sorted(OPTIMIZERS)),
)
def test_gradients_are_the_eager_ones_and_the_optimizer_follows_them(
    network: nn.Sequential, image: tuple[int, int, int], batch: int, name: str
) -> None:
    """Step by step from equal parameters, since an optimizer may make much of a gradient's rounding."""
    if built(network, image) is None:
        return
    rng = np.random.default_rng(0)
    optimizer, twin = OPTIMIZERS[name](), OPTIMIZERS[name]()
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


def test_single_steps_are_the_epoch() -> None:
    images, labels, order = samples(24, 10)
    one, many = (NETWORKS["source A's"]().build(IMAGE) for _ in range(2))
    steps = nn.compiled(one, nn.Adam(), 8)
    losses = [steps.step(images[order[at : at + 8]], labels[order[at : at + 8]]) for at in (0, 8, 16)]
    np.testing.assert_array_equal(losses, nn.compiled(many, nn.Adam(), 8).epoch(images, labels, order))


def test_the_same_bits_every_time() -> None:
    def trained() -> tuple[Any, Any]:
        network = NETWORKS["source B's"]().build(IMAGE)
        steps = nn.compiled(network, nn.Adam(), 20)
        return [steps.epoch(*samples(60, 10)) for _ in range(2)], network.parameters

    (losses, parameters), (others, twins) = trained(), trained()
    np.testing.assert_array_equal(losses, others)
    np.testing.assert_array_equal(parameters, twins)


def test_an_epoch_takes_no_more_memory_than_a_few_steps() -> None:
    """But for the losses and what `_Before` keeps; a step of this network makes 0.3 MB of values."""
    images, labels, order = samples(640, 10)
    steps = nn.compiled(NETWORKS["source A's"]().build(IMAGE), nn.SGD(), 16)

    def peak(count: int) -> int:
        tracemalloc.start()
        steps.epoch(images, labels, order[:count])
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return taken

    peak(32)
    assert peak(640) < peak(32) + 40_000


@pytest.mark.parametrize(("label", "at"), [(10, 5), (-1, 24)])
def test_labels_that_are_no_classes_are_named_before_anything_changes(label: int, at: int) -> None:
    images, labels, order = samples(25, 10)
    labels[order[at]] = label
    network, optimizer = NETWORKS["source A's"]().build(IMAGE), nn.Adam()
    before = network.parameters.copy()
    with pytest.raises(ValueError, match=f"labels holds {label}; expected 0 to 9"):
        nn.compiled(network, optimizer, 4).epoch(images, labels, order)
    np.testing.assert_array_equal(network.parameters, before)
    assert optimizer.steps == 0


def test_a_value_that_is_not_finite_is_found_at_the_end_and_its_step_named() -> None:
    images, labels, order = samples(24, 10)
    good = order[:12]
    images[order[13], 0, 3, 3] = np.nan
    network, other = (NETWORKS["source A's"]().build(IMAGE) for _ in range(2))
    with pytest.raises(nn.NonFiniteError, match="step 4"):
        nn.compiled(network, nn.Adam(), 4).epoch(images, labels, order)
    eager(other, nn.Adam(), 4, (images, labels, good))
    np.testing.assert_allclose(network.parameters, other.parameters, rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("name", EAGER)
def test_windows_that_overlap_run_eagerly(name: str) -> None:
    network, other = NETWORKS[name]().build(IMAGE), NETWORKS[name]().build(IMAGE)
    steps, data = nn.compiled(network, nn.SGD(0.1), 4), samples(10, 10)
    assert steps.reason == EAGER[name]
    np.testing.assert_array_equal(steps.epoch(*data), eager(other, nn.SGD(0.1), 4, data))
    np.testing.assert_array_equal(network.parameters, other.parameters)


class Square(nn.Layer):
    """Rows (N, 16) as images (N, 1, 4, 4)."""

    def build(self, shape: Any) -> Any:
        return (1, 4, 4)


def test_what_no_program_has_is_named() -> None:
    back = nn.Sequential(nn.Flatten(), nn.Linear(16), Square(), nn.Conv2d(2, 3), nn.Flatten(), nn.Linear(3))
    assert "Square" in str(nn.compiled(back.build(IMAGE), nn.SGD(), 2).reason)
    assert "Dropout" in str(nn.compiled(dropping(0.5).build(IMAGE), nn.SGD(), 2).reason)
