"""Compiled steps on a real GPU: equal to the eager path, the same every time, and what goes wrong is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled_cases import (
    IMAGE,
    NETWORKS,
    OPTIMIZERS,
    agree,
    check_dropout,
    check_interrupted,
    dropping,
    dying,
    eager,
    samples,
)

from unrolled import nn
from unrolled.device import to_host

cp: Any = pytest.importorskip("cupy", reason='CuPy is not installed: pip install -e ".[gpu]"')


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("batch", [1, 4, 16, 17, 50, 300])
def test_networks(name: str, batch: int) -> None:
    """The first epoch compiles, the second replays graphs; the last batch is smaller."""
    agree(cp, NETWORKS[name], nn.SGD, batch, 3 * batch + (batch > 1))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str) -> None:
    agree(cp, NETWORKS["source A's"], OPTIMIZERS[name], 4, 25)


def test_gradients_of_a_large_batch() -> None:
    """Those of float64 on the CPU. Nothing switches here: where two values are all but equal, rounding chooses."""
    images, labels, order = samples(1024, 10)

    def make() -> nn.Sequential:
        return nn.Sequential(nn.Flatten(), nn.Linear(200), nn.Linear(10))

    network, other = make().build(IMAGE, cp), make()
    other.dtype = np.dtype(np.float64)
    other.build(IMAGE)
    other.loss_and_scores(images.astype(np.float64), labels)
    nn.compiled(network, nn.SGD(0.0), 1024).epoch(cp.asarray(images), cp.asarray(labels), order)
    error = np.linalg.norm(to_host(network.gradients) - other.gradients) / np.linalg.norm(other.gradients)
    assert error < 2e-6


@pytest.mark.parametrize("batch", [8, 128])
def test_the_same_bits_every_time(batch: int) -> None:
    data = tuple(map(cp.asarray, samples(6 * batch, 10)))

    def trained() -> Any:
        network = NETWORKS["source B's"]().build(IMAGE, cp)
        steps = nn.compiled(network, nn.Adam(), batch)
        return [to_host(steps.epoch(*data)) for _ in range(3)], to_host(network.parameters)

    (losses, parameters), (others, twins) = trained(), trained()
    np.testing.assert_array_equal(losses, others)
    np.testing.assert_array_equal(parameters, twins)


def test_single_steps_are_the_epoch() -> None:
    images, labels, order = map(cp.asarray, samples(24, 10))
    one, many = (NETWORKS["source A's"]().build(IMAGE, cp) for _ in range(2))
    steps = nn.compiled(one, nn.Adam(), 8)
    losses = [float(steps.step(images[order[at : at + 8]], labels[order[at : at + 8]])) for at in (0, 8, 16)]
    np.testing.assert_array_equal(losses, to_host(nn.compiled(many, nn.Adam(), 8).epoch(images, labels, order)))


def test_an_optimizer_that_forgets_has_new_memory_in_the_graphs() -> None:
    images, labels, order = samples(40, 10)
    network, optimizer = NETWORKS["source A's"]().build(IMAGE, cp), nn.Adam()
    steps, start = nn.compiled(network, optimizer, 8), to_host(network.parameters)
    there = cp.asarray(images), cp.asarray(labels), order
    for _ in range(3):
        losses = to_host(steps.epoch(*there))
    optimizer.reset()
    network.parameters[...] = cp.asarray(start)
    again = to_host(steps.epoch(*there))
    other = NETWORKS["source A's"]().build(IMAGE)
    np.testing.assert_allclose(again, eager(other, nn.Adam(), 8, (images, labels, order)), rtol=2e-4)
    assert (again != losses).any()


def test_a_label_that_is_no_class_is_named_with_its_step_and_its_value() -> None:
    images, labels, order = samples(200, 10)
    labels[order[100]] = 12
    network = NETWORKS["source A's"]().build(IMAGE, cp)
    steps = nn.compiled(network, nn.Adam(), 8)
    with pytest.raises(nn.NonFiniteError, match="step 13: labels holds 12; expected 0 to 9"):
        steps.epoch(cp.asarray(images), cp.asarray(labels), order)
    assert bool(cp.isfinite(network.parameters).all())


def test_images_that_are_not_finite_are_named() -> None:
    images, labels, order = samples(64, 10)
    images[order[20]] = np.nan
    network = NETWORKS["source B's"]().build(IMAGE, cp)
    with pytest.raises(nn.NonFiniteError, match=r"step 3: .*'images' of the input"):
        nn.compiled(network, nn.SGD(), 8).epoch(cp.asarray(images), cp.asarray(labels), order)


@pytest.mark.parametrize(("step", "steps"), [(1, 12), (7, 12), (12, 12)])
def test_a_parameter_that_no_loss_shows_is_found_and_its_step_named(step: int, steps: int) -> None:
    network, (images, labels, order) = dying(step, cp)
    optimizer, twin = nn.SGD(12.0), dying(step, cp)[0]
    with pytest.raises(nn.NonFiniteError, match=f"step {step}: .*'bias' of 1: Linear"):
        nn.compiled(network, optimizer, 4).epoch(images, labels, order[: 4 * steps])
    assert optimizer.steps == step - 1
    if step > 1:
        nn.compiled(twin, nn.SGD(12.0), 4).epoch(images, labels, order[: 4 * (step - 1)])
    np.testing.assert_array_equal(to_host(network.parameters), to_host(twin.parameters))


def test_a_loaded_optimizer_has_its_memory_back_after_a_bad_step(tmp_path: Any) -> None:
    images, labels, order = samples(64, 10)
    good = cp.asarray(images), cp.asarray(labels)
    before, loaded = nn.Adam(), nn.Adam()
    network = NETWORKS["source A's"]().build(IMAGE, cp)
    nn.compiled(network, before, 8).epoch(*good, order)
    before.save(tmp_path / "optimizer.npz")
    kept = [to_host(memory) for memory in before.prepare(network.parameters)]
    images[order[3]] = np.nan
    with pytest.raises(nn.NonFiniteError, match=r"step 1: .*'images'"):
        nn.compiled(network, loaded.load(tmp_path / "optimizer.npz"), 8).epoch(cp.asarray(images), good[1], order)
    for memory, expected in zip(loaded.prepare(network.parameters), kept, strict=True):
        np.testing.assert_array_equal(to_host(memory), expected)
    assert loaded.steps == 8


def test_dropouts_draw_the_same_in_the_second_run_and_go_on_from_there() -> None:
    """Eagerly: no program has a Tanh. CuPy's generators have their state on the device."""

    def made() -> nn.Sequential:
        layers = nn.Flatten(), nn.Linear(20), nn.Tanh(), nn.Dropout(0.5), nn.Linear(10)
        return nn.Sequential(*layers).build(IMAGE, cp)

    images, labels, order = samples(48, 10)
    good = cp.asarray(images), cp.asarray(labels)
    images[order[40]] = np.nan
    network, twin = made(), made()
    steps, alike = (nn.compiled(each, nn.SGD(0.1), 8) for each in (network, twin))
    for each in (steps, alike):
        each.epoch(*good, order[:16])
    with pytest.raises(nn.NonFiniteError, match="step 6"):
        steps.epoch(cp.asarray(images), good[1], order)
    alike.epoch(*good, order[:40])
    np.testing.assert_array_equal(to_host(network.parameters), to_host(twin.parameters))
    np.testing.assert_array_equal(to_host(steps.epoch(*good, order)), to_host(alike.epoch(*good, order)))


def test_dropout() -> None:
    check_dropout(cp)


def test_dropout_drops_others_at_each_step_and_the_same_in_another_run() -> None:
    images, labels, _ = samples(8, 10)
    order = np.tile(np.arange(8), 5)

    def losses() -> Any:
        steps = nn.compiled(dropping(0.5).build(IMAGE, cp), nn.SGD(0.0), 8)
        return np.concatenate([to_host(steps.epoch(cp.asarray(images), cp.asarray(labels), order)) for _ in range(2)])

    first = losses()
    assert len(np.unique(first)) == 10
    np.testing.assert_array_equal(first, losses())


def test_what_no_program_has_runs_eagerly_with_the_reason() -> None:
    images, labels, order = samples(20, 10)
    network = nn.Sequential(nn.Flatten(), nn.Linear(20), nn.Tanh(), nn.Linear(10)).build(IMAGE, cp)
    twin = nn.Sequential(nn.Flatten(), nn.Linear(20), nn.Tanh(), nn.Linear(10)).build(IMAGE, cp)
    steps = nn.compiled(network, nn.Adam(), 8)
    assert "Tanh" in str(steps.reason)
    there = cp.asarray(images), cp.asarray(labels), order
    np.testing.assert_array_equal(to_host(steps.epoch(*there)), eager(twin, nn.Adam(), 8, there))


def test_a_network_that_changed_is_named() -> None:
    images, labels, order = samples(8, 10)
    network = NETWORKS["source A's"]().build(IMAGE, cp)
    steps = nn.compiled(network, nn.Adam(), 8)
    network.layers[0].stride = 2  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="compile it again"):
        steps.epoch(cp.asarray(images), cp.asarray(labels), order)


@pytest.mark.parametrize("epochs", [0, 1], ids=["while it compiles", "while it captures"])
def test_an_interrupted_epoch_leaves_a_device_that_works(epochs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check_interrupted(cp, epochs, monkeypatch)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint64"])
def test_labels_of_any_whole_numbers_are_the_same(dtype: str) -> None:
    (images, labels, order), losses = samples(200, 3), []
    for kind in ("int64", dtype):
        steps = nn.compiled(NETWORKS["one layer"]().build(IMAGE, cp), nn.SGD(0.1), 200)
        losses.append(to_host(steps.epoch(cp.asarray(images), cp.asarray(labels.astype(kind)), order)))
    np.testing.assert_array_equal(*losses)


def test_64_steps_are_one_launch_of_a_graph() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch's profiler sees every CUDA call of the process")
    images, labels, order = map(cp.asarray, samples(64 * 8 * 3, 10))
    steps = nn.compiled(NETWORKS["source A's"]().build(IMAGE, cp), nn.Adam(), 8)
    steps.epoch(images, labels, order)
    activities = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[activities.CPU, activities.CUDA]) as profile:
        steps.epoch(images, labels, order)
    names = [event.name for event in profile.events()]
    assert sum("GraphLaunch" in name for name in names) == 3
    assert sum("LaunchKernel" in name for name in names) < 40  # 192 steps would be some 1,200
