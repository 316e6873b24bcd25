"""compare in this process: inputs, threads, garbage. The speed of the functions decides nothing here."""

import gc
import random
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
import threadpoolctl

from unrolled import timing
from unrolled.timing import blocks, compare, comparing
from unrolled.timing.blocks import WarmUp
from unrolled.timing.verdict import conclude

NOTHING = conclude([], [], 2)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 0.1 ms, so that these tests take no time."""
    monkeypatch.setattr(comparing, "MIN_BLOCK", 1e-4)


def make(rng: np.random.Generator) -> dict[str, Any]:
    return {"x": rng.random(8)}


def raced(candidate: Any = lambda x: None, baseline: Any = lambda x: None, inputs: Any = make, **options: Any) -> Any:
    return compare(candidate, baseline, inputs=inputs, at_least=2, **options)


def test_compare_announces_itself_before_anything_runs() -> None:
    events: list[str] = []
    call = lambda x: events.append("call")  # noqa: E731
    raced(call, call, announce=events.append)
    assert events[0] == "Measuring speed: less than a second as a rule, 12 s at most."


def test_both_sides_walk_through_all_inputs_and_keep_their_place() -> None:
    sides: tuple[list[int], list[int]] = [], []
    raced(*(lambda x, side=side: side.append(x) for side in sides), inputs=[{"x": i} for i in range(20)])
    del sides[1][0]  # the call that finds the device
    for side in sides:
        assert len(side) > 20
        assert side == [i % 20 for i in range(len(side))]


def test_sixteen_inputs_are_made_from_the_seed() -> None:
    def seen(seed: int) -> list[bytes]:
        values: dict[bytes, None] = {}
        raced(lambda x: values.setdefault(x.tobytes()), seed=seed)
        return list(values)

    first = seen(1)
    assert len(first) == 16
    assert seen(1) == first != seen(2)
    with pytest.raises(ValueError, match="15 dictionaries; expected at least 16"):
        raced(inputs=[{"x": 1}] * 15)


def test_one_blas_thread_while_timing() -> None:
    def pools() -> list[int]:
        return [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]

    before, during = pools(), []
    verdict = raced(lambda x: during.append(max(pools())))
    assert {*during} == {1}
    assert verdict.threads == "1 thread"
    assert pools() == before


def test_a_library_loaded_while_timing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    pools = [{"user_api": "blas", "num_threads": 1}]
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: pools)
    assert raced().threads == "1 thread"

    def loads_another(x: Any) -> None:
        pools[:] = [*pools[:1], {"user_api": "blas", "num_threads": 2}]

    verdict = raced(loads_another)
    assert verdict.threads == "threads uncontrolled"
    assert "Threads uncontrolled" in str(verdict)
    pools.clear()
    assert raced().threads == "threads uncontrolled"


def test_no_garbage_collection_inside_a_block_and_all_restored() -> None:
    inside: list[bool] = []
    timer = blocks.block_timer(lambda x: inside.append(gc.isenabled()), [{"x": 1}])
    timer(3)
    assert inside == [False] * 3
    assert gc.isenabled()
    gc.disable()
    try:
        timer(1)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_error_comes_through_and_leaves_everything_as_it_was() -> None:
    calls, before = iter([None, None]), threadpoolctl.threadpool_info()
    with pytest.raises(StopIteration):
        raced(lambda x: next(calls))
    assert gc.isenabled()
    assert threadpoolctl.threadpool_info() == before


def test_on_the_host_cpu_time_may_be_a_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {}
    monkeypatch.setattr(comparing, "compare_blocks", lambda *args, **kwargs: options.update(kwargs) or NOTHING)
    raced(lambda x: x, lambda x: [x, "text", None])
    assert options["cpu_witness"] == ("pass",)
    assert options["warm"] == WarmUp(calls=2, seconds=0.0)


def test_cpu_seconds_count_this_process_and_its_children() -> None:
    start = blocks.cpu_seconds()
    random.Random(0).randbytes(10**6)
    own = time.process_time()  # before the next line, so that this process alone could only count less there
    here = blocks.cpu_seconds()
    subprocess.run([sys.executable, "-c", "sum(range(10**6))"], check=True)
    assert start < here
    assert blocks.cpu_seconds() - here > time.process_time() - own


@pytest.mark.parametrize(("name", "value"), [("NBGRADER_EXECUTION", "autograde"), ("UNROLLED_GRADING", "1")])
def test_a_notebook_that_is_graded_measures_with_one_call(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    calls: list[int] = []
    assert timing.measure(lambda x: calls.append(x), {"x": 1}).calls == len(calls) == 1
    monkeypatch.delenv(name)
    timing.measure(lambda x: calls.append(x), {"x": 1}, budget=0.3)
    assert len(calls) > 2
