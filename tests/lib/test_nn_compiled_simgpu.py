"""Compiled steps on the simulated GPU: the launches of the real one, computed by NumPy."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import numpy as np
import pytest
from compiled_cases import IMAGE, NETWORKS, OPTIMIZERS, agree, check_dropout, dropping, samples

from unrolled import nn, simgpu
from unrolled.device import to_host
from unrolled.nn.compiler import cuda, plans
from unrolled.nn.compiler.stages import Convolution, stages_of


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("batch", [4, 20])
def test_networks(name: str, batch: int) -> None:
    agree(simgpu, NETWORKS[name], nn.SGD, batch, 3 * batch + 1)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str) -> None:
    agree(simgpu, NETWORKS["source A's"], OPTIMIZERS[name], 4, 25)


def test_more_classes_than_the_fused_head_has() -> None:
    agree(simgpu, NETWORKS["dense layers alone"], nn.SGD, 6, 20)
    assert plans.head(stages_of(NETWORKS["dense layers alone"]().build(IMAGE))[-1], 6, True, True) is None  # type: ignore[arg-type]


def test_more_steps_than_a_graph_has() -> None:
    agree(simgpu, NETWORKS["one layer"], nn.Adam, 1, 70)


def test_a_graph_of_64_steps_is_one_of_six_calls_of_the_host() -> None:
    """As docs/gpu.md says, which counts those of an epoch of MNIST at batch 8."""
    images, labels, order = (simgpu.asarray(values) for values in samples(3 * cuda.STEPS, 10))
    steps = nn.compiled(NETWORKS["source A's"]().build(IMAGE, simgpu), nn.Adam(), 1)
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


def test_an_optimizer_that_forgets_between_epochs() -> None:
    images, labels, order = samples(8, 3)
    network, optimizer = NETWORKS["one layer"]().build(IMAGE, simgpu), nn.Adam()
    steps, start = nn.compiled(network, optimizer, 4), network.parameters.copy()
    there = simgpu.asarray(images), simgpu.asarray(labels), order
    first = to_host(steps.epoch(*there))
    optimizer.reset()
    network.parameters[...] = start
    np.testing.assert_array_equal(to_host(steps.epoch(*there)), first)


def test_labels_that_are_no_whole_numbers_are_named() -> None:
    images, labels, order = samples(8, 3)
    steps = nn.compiled(NETWORKS["one layer"]().build(IMAGE, simgpu), nn.Adam(), 4)
    with pytest.raises(ValueError, match="labels are float32; expected integers"):
        steps.epoch(simgpu.asarray(images), simgpu.asarray(labels.astype(np.float32)), order)


def test_what_is_too_large_is_left_to_the_eager_path() -> None:
    network = nn.Sequential(nn.Conv2d(2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2)).build((1, 120, 120), simgpu)
    assert "too large for shared memory" in str(nn.compiled(network, nn.SGD(), 2).reason)
    pooled = nn.Sequential(nn.Conv2d(2, 3), nn.MaxPool2d(16), nn.Flatten(), nn.Linear(2)).build((1, 40, 40), simgpu)
    assert "more than 255 places" in str(nn.compiled(pooled, nn.SGD(), 2).reason)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("batch", [1, 8, 100, 2000])
def test_plans_share_out_all_of_the_work_within_the_limits_of_a_block(name: str, batch: int) -> None:
    for stage in stages_of(NETWORKS[name]().build(IMAGE)):
        if isinstance(stage, Convolution):
            plan, weights = plans.convolution(stage, batch), plans.convolution_weights(stage, batch)
            assert plan["each"] * plan["groups"] * plan["shares"] == plan["o"]
            assert plan["block"] * plan["slices"] >= plan["yh"] * plan["yw"] * plan["groups"]
            assert max(plan["block"], weights["block"]) <= 1024
            assert weights["c"] % weights["part"] == 0
            assert weights["split"] <= batch * weights["slices"]


def test_dropout() -> None:
    check_dropout(simgpu)


def test_where_no_dropout_can_stand() -> None:
    for layers in ([nn.Dropout(0.5), nn.Flatten(), nn.Linear(3)], [nn.Flatten(), nn.Linear(3), nn.Dropout(0.5)]):
        network = nn.Sequential(*layers).build(IMAGE, simgpu)
        assert nn.compiled(network, nn.SGD(), 2).reason is not None
    assert "Dropout" in str(nn.compiled(dropping(0.5).build(IMAGE), nn.SGD(), 2).reason)
