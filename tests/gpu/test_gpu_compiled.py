"""Compiled steps on a real GPU: equal to the eager path, the same every time, and what goes wrong is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled_cases import IMAGE, NETWORKS, OPTIMIZERS, agree, dropping, samples
from test_nn_compiled import (  # noqa: F401, these run here once more, on what the fixtures below give
    test_an_optimizer_that_forgets_between_epochs_has_new_memory_in_the_graphs,
    test_dropout_on_a_gpu,
    test_labels_of_any_whole_numbers_are_the_same,
)
from test_nn_compiled_wrong import (  # noqa: F401, these, too
    test_a_label_that_is_no_class_is_named_on_a_gpu,
    test_a_parameter_that_no_loss_shows_is_found_and_its_step_named,
    test_a_parameter_that_was_not_finite_before_is_of_step_one,
    test_an_interrupted_epoch_leaves_a_device_that_works,
    test_an_optimizer_has_the_memory_of_before_the_bad_step,
    test_dropouts_draw_the_same_in_the_second_run_and_go_on_from_there,
    test_methods_and_seeds_that_change_are_named,
)

from unrolled import nn
from unrolled.device import to_host

cp: Any = pytest.importorskip("cupy", reason='CuPy is not installed: pip install -e ".[gpu]"')


@pytest.fixture(name="gpu")
def _gpu() -> Any:
    return cp


@pytest.fixture(name="module")
def _module() -> Any:
    return cp


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


def test_dropout_drops_others_at_each_step_and_the_same_in_another_run() -> None:
    images, labels, _ = samples(8, 10)
    order = np.tile(np.arange(8), 5)

    def losses() -> Any:
        steps = nn.compiled(dropping(0.5).build(IMAGE, cp), nn.SGD(0.0), 8)
        return np.concatenate([to_host(steps.epoch(cp.asarray(images), cp.asarray(labels), order)) for _ in range(2)])

    first = losses()
    assert len(np.unique(first)) == 10
    np.testing.assert_array_equal(first, losses())


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
