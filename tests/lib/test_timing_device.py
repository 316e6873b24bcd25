"""Timing on a device: events, synchronizations, warm-up, and that modelled times say so. On a GPU of paper."""

import itertools
import math
from collections.abc import Callable
from typing import Any
from unittest import mock

import fake_gpu
import pytest
from fake_gpu import FakeGpu, OnDevice

from unrolled.timing import Verdict, compare, comparing, measure, measuring
from unrolled.timing.blocks import WarmUp, block_timer
from unrolled.timing.verdict import conclude

X = {"x": OnDevice()}


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    return fake_gpu.register(monkeypatch, simulated=False)


BLOCK_OF_TWO = ["synchronize", "record", "launch", "launch", "synchronize", "record", "wait"]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    return fake_gpu.register(monkeypatch, simulated=True)


def kernel(gpu: FakeGpu, work: float, host: float = 1e-5) -> Callable[..., Any]:
    def call(x: Any) -> OnDevice:
        gpu.launch(host, work)
        return OnDevice()

    return call


def test_a_block_takes_as_long_as_the_device_not_as_the_calls(gpu: FakeGpu) -> None:
    timer = block_timer(kernel(gpu, work=0.5, host=0.001), [X], gpu)
    assert timer(2).wall == pytest.approx(1.001)
    assert gpu.log == BLOCK_OF_TWO
    gpu.launch(0.001, 50.0)  # work from before does not count
    block = timer(1)
    assert block.wall == pytest.approx(0.501)
    assert math.isnan(block.cpu), "CPU time says nothing of a GPU"
    assert not math.isnan(block_timer(lambda x: x, [X])(1).cpu)


@pytest.mark.parametrize("where", ["inputs", "result", "nested"])
@pytest.mark.parametrize(
    ("simulated", "warm", "shortest"), [(False, WarmUp(10, 0.5), 0.01), (True, WarmUp(2, 0.0), 0.001)]
)
def test_the_device_is_found_and_warmed_up(
    where: str, simulated: bool, warm: WarmUp, shortest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = fake_gpu.register(monkeypatch, simulated)
    x = {"inputs": OnDevice(), "result": 1, "nested": [1, (OnDevice(),)]}[where]
    made: Callable[..., Any] = lambda x: OnDevice() if where == "result" else None  # noqa: E731
    compare_blocks = mock.Mock(return_value=conclude([], [], 2))
    monkeypatch.setattr(comparing, "compare_blocks", compare_blocks)
    compare(kernel(gpu, 0.1), made, inputs=[{"x": x}] * 16, at_least=2)
    (candidate, *_), options = compare_blocks.call_args
    candidate(2)
    assert gpu.log == BLOCK_OF_TWO
    assert (options["warm"], options["cpu_witness"], options["shortest"]) == (warm, (), shortest)


@pytest.mark.parametrize(("work", "outcome"), [(1e-4, "pass"), (9e-4, "fail")])
def test_a_comparison_in_modelled_time(model: FakeGpu, work: float, outcome: str) -> None:
    verdict = compare(kernel(model, work), kernel(model, 1e-3), inputs=[X] * 16, at_least=5)
    assert (verdict.outcome, verdict.device) == (outcome, "modelled, paper")
    assert verdict.ratio == pytest.approx(1e-3 / work, rel=0.05)
    assert verdict.low == pytest.approx(verdict.high)
    assert str(verdict).endswith(" Times: modelled, paper.")
    data = verdict.to_dict()
    assert str(Verdict.from_dict(data)) == str(verdict)
    del data["device"]  # a record from before
    assert Verdict.from_dict(data).device == ""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, gpu: FakeGpu) -> FakeGpu:
    """The wall clock of `measure` is that of the GPU's host, plus a little for each look at it."""
    ticks = itertools.count()
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: gpu.host + 1e-7 * next(ticks))
    return gpu


@pytest.mark.parametrize(
    ("slow_host", "slow_work"),
    [(0.0, 0.0), (30.0, 0.0), (0.0, 0.01)],
    ids=["at once", "compiling at first", "a slow clock for 0.4 s"],
)
def test_measuring_a_device_waits_for_it_and_for_its_warm_up(
    clock: FakeGpu, slow_host: float, slow_work: float
) -> None:
    first = iter([slow_host or 1e-5])

    def call(x: Any) -> None:
        clock.launch(next(first, 1e-5), slow_work if slow_work and clock.host < 0.4 else 0.002)

    measured = measure(call, X, budget=0.1 if slow_work else 0.5)
    assert [measured.seconds, measured.high] == pytest.approx([0.002, 0.002], rel=0.01)
    assert measured.calls >= 10
    assert measured.device == ""
    assert str(measured).endswith(" calls)")


def test_modelled_times_are_told_and_not_repeated(model: FakeGpu) -> None:
    measured = measure(kernel(model, work=2e-4), X)
    assert measured.seconds == pytest.approx(2e-4, rel=0.05)
    assert len(measured.blocks) == 1
    assert str(measured).endswith("; modelled, paper)")
    assert model.log.count("launch") == 1 + 2 + 1 + 5


@pytest.mark.parametrize("budget", [0.0, 0.5])
def test_modelled_times_do_not_depend_on_real_ones(model: FakeGpu, monkeypatch: Any, budget: float) -> None:
    """A call takes 3 µs of the model's time, but 0.1 s of the learner's: 16 calls are enough."""
    now = [0.0]

    def call(x: OnDevice) -> None:
        now[0] += 0.1
        model.launch(1e-6, 2e-6)

    monkeypatch.setattr(measuring.time, "perf_counter", lambda: now[0])
    measured = measure(call, X, budget=budget)
    assert measured.calls == 16
    assert measured.seconds == pytest.approx(2e-6, rel=0.05)


def test_where_a_notebook_is_graded_a_gpu_is_not_warmed_up(clock: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "is_graded", lambda: True)
    measure(kernel(clock, work=0.02), X)
    assert clock.log.count("launch") <= 4


def test_the_words_of_a_duration() -> None:
    words = [measuring.duration(seconds) for seconds in (0.99999999, 1.5e-3, 0.9999e-3, 2e-9, 2e-15, 0.0)]
    assert words == ["1 s", "1.5 ms", "1 ms", "2 ns", "0 ns", "0 ns"]
