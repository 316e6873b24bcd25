"""unrolled.profile and unrolled.timing on the simulated GPU: the same code as on CuPy, times of its model alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unrolled import nn, profile, show, simgpu, timing
from unrolled.show.timeline import course_of, reading

RNG = np.random.default_rng(0)
IMAGES, LABELS = RNG.random((4, 1, 8, 8), dtype=np.float32), RNG.integers(0, 3, 4)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    simgpu.use("T4")
    yield
    simgpu.use("T4")


def a_step() -> profile.Profile:
    net = nn.Sequential(nn.Conv2d(2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3))
    return profile.step(net, simgpu.asarray(IMAGES), simgpu.asarray(LABELS))


def matmul(x: Any) -> Any:
    return x @ x


def test_a_step_in_modelled_time_is_the_same_each_time() -> None:
    first = a_step()
    simgpu.use("T4")
    second = a_step()
    assert first.tree == second.tree
    assert first.where == "modelled, T4"
    assert "Launch-bound: launching" in str(first)
    assert first.explained > 0.8
    assert first.bare is not None
    assert first.overhead > 0


def test_waits_and_copies_that_set_the_pace_are_named() -> None:
    def centred(x: Any) -> Any:
        for i in range(len(x)):
            x[i] -= float(x[i].mean())

    profiled = profile.statements(centred, simgpu.ones((8, 4), simgpu.float32))
    parts = profiled.host_parts
    assert parts is not None
    assert parts["copying"] > 8 * simgpu.profile().link_latency
    stops = 100 * (parts["waiting"] + parts["copying"]) / sum(parts.values())
    assert f"the GPU waited for it. {stops:.0f} % of that is waits and copies: launching" in str(profiled)


def test_a_comparison_is_modelled_and_says_so() -> None:
    def rows(x: Any) -> Any:
        return [x[i] + 1 for i in range(16)]

    inputs = [{"x": simgpu.ones((16, 16))}] * 16
    verdict = timing.compare(lambda x: x + 1, rows, inputs=inputs, at_least=4)
    assert verdict.outcome == "pass"
    assert str(verdict).endswith("Times: modelled, T4.")


def test_spans_and_launches_share_a_trace_for_perfetto(tmp_path: Path) -> None:
    x = simgpu.ones((64, 64))
    with simgpu.trace() as trace, profile.recording(simgpu, name="step") as p, p.span("product"):
        matmul(x)
    path = p.chrome_trace(tmp_path / "trace.json", trace)
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    assert {event["pid"] for event in events} == {0, 1, 2}
    (kernel,) = (event for event in events if event["name"] == "matmul" and event["tid"] != 1)
    (span,) = (event for event in events if event["name"] == "product" and event["pid"] == 2)
    assert span["ts"] <= kernel["ts"]
    assert kernel["ts"] + kernel["dur"] <= span["ts"] + span["dur"] + 1e-3  # µs, rounded


def test_the_clock_that_lies() -> None:
    x = simgpu.ones((768, 768), simgpu.float32)
    for _ in range(3):
        x = matmul(x)  # from here on, memory comes from the pool
    with simgpu.trace() as trace:
        for _ in range(8):
            x = matmul(x)
    course = course_of(trace)
    clock, true = reading(course, len(course.stops) - 1, wait=False)
    assert clock < true / 2
    assert true == pytest.approx(trace.seconds)
    assert "(modelled, T4)" in show.timeline(trace).alt


def test_kernels_of_a_trace_lie_under_the_roof() -> None:
    x = simgpu.ones((256, 256), simgpu.float32)
    with simgpu.trace() as trace:
        y = matmul(x) + 1
        simgpu.exp(y)
    gpu = simgpu.profile()
    alt = show.roofline(gpu.float32, gpu.bandwidth, kernels=trace, where="modelled, T4").alt
    assert "matmul: " in alt
    for op, sums in trace.by_op().items():
        assert sums.flops <= gpu.float32 * sums.seconds, op
        assert sums.bytes <= gpu.bandwidth * sums.seconds * 1.001, op


def test_ceilings_of_the_model_are_near_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing.measuring, "COPY_BYTES", 2**24)
    gpu = simgpu.profile()
    assert timing.copy_bandwidth(module=simgpu) == pytest.approx(gpu.bandwidth, rel=0.2)
    assert 0.2 * gpu.float32 < timing.matmul_peak(module=simgpu, size=512) <= gpu.float32
