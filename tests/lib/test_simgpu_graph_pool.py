"""The memory of graphs on the simulated GPU: what the pool gives in a capture, what a graph holds, and the limits."""

from __future__ import annotations

import gc

import pytest

from unrolled import simgpu
from unrolled.simgpu import captures
from unrolled.simgpu.command import CUDARuntimeError, InvalidCommandError, OutOfMemoryError


@pytest.fixture(autouse=True)
def fresh() -> None:
    simgpu.reset()


def test_by_itself_the_pool_does_not_grow_in_a_capture_but_gives_what_it_has() -> None:
    stream = simgpu.cuda.Stream(non_blocking=True)
    del_me = simgpu.empty(5000)
    stream.begin_capture()
    with pytest.raises(CUDARuntimeError, match="cudaErrorStreamCaptureUnsupported"):
        simgpu.empty(5000)
    with pytest.raises(CUDARuntimeError, match="cudaErrorStreamCaptureInvalidated"):
        stream.end_capture()
    del del_me
    stream.begin_capture()
    with simgpu.cuda.Stream(non_blocking=True):  # on any stream
        assert simgpu.empty(5000).size == 5000
    stream.end_capture()


def test_arrays_made_in_a_capture_are_told_apart() -> None:
    stream, x = simgpu.cuda.Stream(non_blocking=True), simgpu.ones(1000)
    made = x * 2
    del made
    with simgpu.trace() as trace, stream:
        stream.begin_capture()
        made = x * 2
        graph = stream.end_capture()
        graph.launch()
        other = x * 3
    assert [event.captured for event in trace.allocations if not event.freed] == [True, False]
    assert (made[0], other[0]) == (2, 3)


def test_no_array_gets_the_memory_of_a_living_graph() -> None:
    pool = simgpu.get_default_memory_pool()
    stream, out = simgpu.cuda.Stream(non_blocking=True), simgpu.empty(1000)
    x, warm = simgpu.ones(1000), simgpu.empty(1000)
    del warm
    with stream:
        stream.begin_capture()
        simgpu.add(x * 2, 1, out=out)  # x * 2 is freed, but the graph writes it at each launch
        graph = stream.end_capture()
    del x
    used, total = pool.used_bytes(), pool.total_bytes()
    others = [simgpu.full(1000, 7.0) for _ in range(4)]
    for _ in range(3):
        graph.launch()
        assert out[0] == 3
        assert all(bool((other == 7).all()) for other in others)
    del others
    pool.free_all_blocks()
    assert (pool.used_bytes(), pool.total_bytes()) == (used, total)
    graph.launch()
    del graph
    gc.collect()
    assert pool.total_bytes() == total  # the graph's blocks are free now
    pool.free_all_blocks()
    assert pool.total_bytes() == pool.used_bytes() == used


def test_a_capture_that_fails_gives_its_memory_back() -> None:
    pool, stream, x = simgpu.get_default_memory_pool(), simgpu.cuda.Stream(non_blocking=True), simgpu.ones(1000)
    with stream:
        stream.begin_capture()
        x += 1
        with pytest.raises(CUDARuntimeError):
            stream.synchronize()
        with pytest.raises(CUDARuntimeError):
            stream.end_capture()
    del x
    assert (pool.used_bytes(), pool.free_bytes()) == (0, 8192)
    x = simgpu.ones(1000)
    assert (x.size, pool.total_bytes()) == (1000, 8192)


def test_there_is_an_end_to_nodes_and_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "NODES", 3)
    monkeypatch.setattr(captures, "GRAPHS", 2)
    stream, x = simgpu.cuda.Stream(non_blocking=True), simgpu.ones(2)
    with stream:
        stream.begin_capture()
        for _ in range(3):
            x += 1
        with pytest.raises(InvalidCommandError, match="more than 3 nodes"):
            x.__iadd__(1)
        graphs = [stream.end_capture()]
        stream.begin_capture()
        graphs.append(stream.end_capture())
        stream.begin_capture()
        with pytest.raises(InvalidCommandError, match="more than 2 graphs"):
            stream.end_capture()
        del graphs
        gc.collect()
        stream.begin_capture()
        stream.end_capture().launch()


def test_out_of_memory_in_a_relaxed_capture_is_no_error_of_the_capture() -> None:
    stream = simgpu.cuda.Stream(non_blocking=True)
    stream.begin_capture(simgpu.cuda.runtime.streamCaptureModeRelaxed)
    with pytest.raises(OutOfMemoryError):
        simgpu.empty(10**12)
    stream.end_capture()
