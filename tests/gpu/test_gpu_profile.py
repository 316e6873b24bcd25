"""Timing and profiles on a real GPU: events wait for the device, spans do not, and a step's parts explain it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unrolled import nn, profile, timing

cp: Any = pytest.importorskip("cupy", reason='CuPy is not installed: pip install -e ".[gpu]"')

CYCLES = 20_000_000  # about 10 ms at 2 GHz: far longer than it takes to launch
SPIN = r"""
extern "C" __global__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
}
"""


@pytest.fixture(scope="module")
def spin() -> Any:
    kernel = cp.RawKernel(SPIN, "spin")
    kernel((1,), (1,), (np.int64(1),))  # compiled now, not while something is timed

    def work(x: Any) -> Any:
        kernel((1,), (1,), (np.int64(CYCLES),))
        return x

    return work


def test_a_span_takes_the_devices_time_and_does_not_wait_for_it(spin: Any) -> None:
    with profile.recording(cp, name="step") as p:
        for _ in range(3):
            with p.span("spin"):
                spin(None)
    assert p.where.startswith("measured, NVIDIA")
    node = p.at("spin")
    assert node.calls == 3
    assert node.seconds > 10 * node.host_seconds
    assert p.explained > 0.9


def test_small_work_is_launch_bound() -> None:
    x = cp.zeros(16, cp.float32)
    with profile.recording(cp) as p, p.span("small"):
        for _ in range(200):
            x += 1
    assert "launch-bound" in str(p)


def test_measure_and_compare_wait_for_the_device(spin: Any) -> None:
    x = cp.zeros(1)
    measured = timing.measure(spin, {"x": x}, budget=0.1)
    with profile.recording(cp) as p:
        spin(x)
    assert measured.seconds == pytest.approx(p.seconds, rel=0.5)
    assert measured.device == ""


def test_work_on_another_stream_counts(spin: Any) -> None:
    stream = cp.cuda.Stream(non_blocking=True)

    def elsewhere(x: Any) -> Any:
        with stream:
            return spin(x)

    x = cp.zeros(1)
    here, there = (timing.measure(function, {"x": x}, budget=0.1).seconds for function in (spin, elsewhere))
    assert there == pytest.approx(here, rel=0.5)


def test_a_step_by_layer(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images, labels = cp.asarray(rng.random((8, 1, 28, 28), dtype=np.float32)), cp.asarray(rng.integers(0, 10, 8))
    net = nn.Sequential(nn.Conv2d(10, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(10))
    p = profile.step(net, images, labels)
    print(p)  # `pytest -s` shows what a step and its spans cost here
    assert [part.name for part in p.root.parts] == ["forward", "loss", "backward", "update"]
    assert p.seconds == pytest.approx(sum(part.seconds for part in p.root.parts) + p.remainder)
    assert p.explained > 0.5
    events = json.loads(p.chrome_trace(tmp_path / "trace.json").read_text())["traceEvents"]
    assert {event["pid"] for event in events} == {1, 2}
