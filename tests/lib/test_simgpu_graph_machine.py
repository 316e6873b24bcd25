"""Graphs of the simulated GPU beyond CuPy's rules: times, traces, kernels, memory, a machine elsewhere."""

import gc
from typing import Any

import numpy as np
import pytest
from simgpu_commands import HALVE, empty, get, halved, put, start
from test_simgpu_graphs import capturing, graph_of, refused, stream_of

from unrolled import kernels, simgpu
from unrolled.simgpu import captures, jit
from unrolled.simgpu.chrome import HOST_ROW, chrome_events
from unrolled.simgpu.command import CUDARuntimeError, InvalidCommandError, KernelOrder, Machine
from unrolled.simgpu.lockstep.faults import CUDADriverError, KernelFault
from unrolled.simgpu.machine import LocalMachine
from unrolled.simgpu.trace import Trace

STREAM = 130


@pytest.fixture(autouse=True)
def fresh() -> None:
    simgpu.reset()


def session(machine: Machine) -> tuple[list[Any], Trace, list[str]]:
    """Captures and launches of all kinds: values, the trace, and what was refused."""
    x, y, total = put(machine, np.ones((3, 4), "f4")), empty(machine, (3, 4)), empty(machine, (3,))
    number, refusals, found = machine.start_trace(), [], []
    machine.begin_capture(STREAM)
    machine.launch("multiply", [x, 4], [y], {}, STREAM)
    fork = machine.record(STREAM)
    machine.wait(fork, 140)
    machine.launch("sum", [y], [total], {"axis": (1,)}, 140)
    join = machine.record(140)
    machine.wait(join, STREAM)
    assert machine.run_kernel(halved(y), STREAM) is None
    graph = machine.end_capture(STREAM)
    machine.upload_graph(graph, 1)
    for value in (1, 2):
        machine.launch("fill", [value], [x])
        machine.synchronize()
        assert machine.launch_graph(graph, 1) > 1
        machine.synchronize()
        found += [get(machine, y), get(machine, total)]
    for wrong in (
        lambda: machine.wait(fork, None),
        lambda: machine.elapsed(fork, join),
        lambda: machine.wait(fork, 0),
        lambda: machine.launch_graph(graph - 1, 0),
        lambda: machine.begin_capture(0),
        lambda: machine.begin_capture(STREAM, 7),
        lambda: machine.end_capture(5),
    ):
        with pytest.raises((CUDARuntimeError, InvalidCommandError, RuntimeError)) as error:
            wrong()
        refusals.append(str(error.value))
    machine.free(graph)
    with pytest.raises(InvalidCommandError, match="does not exist"):
        machine.launch_graph(graph, 0)
    return found, machine.stop_trace(number), refusals


def test_a_machine_in_another_process_does_the_same() -> None:
    values, trace, refusals = session(LocalMachine())
    for found, expected in zip(values, (2, 16, 4, 32), strict=True):
        assert (found == expected).all()
    assert [graph.kernels for graph in trace.graphs] == [3, 3]
    assert len(trace.kernels) == 2
    assert "cudaErrorCapturedEvent" in refusals[0]
    assert "cudaErrorIllegalState" in refusals[-1]
    with start() as link:
        there, traced, refusals_there = session(link)
    assert [x.tolist() for x in there] == [x.tolist() for x in values]
    assert (refusals_there, traced.graphs[0].kernels) == (refusals, 3)
    locally, elsewhere = ([(one.op, one.start, one.graph) for one in each.launches] for each in (trace, traced))
    assert locally == elsewhere


def test_a_fault_of_a_captured_kernel_comes_at_the_launch_with_its_line_and_a_bad_command_at_the_capture() -> None:
    with start() as link:
        for machine in (LocalMachine(), link):
            x, y = put(machine, np.ones((2, 4), "f4")), empty(machine, (3,))
            machine.begin_capture(STREAM)
            with pytest.raises(CUDADriverError):
                machine.run_kernel(halved(x, (2048, 1, 1)), STREAM)
            with pytest.raises(TypeError):
                machine.run_kernel(KernelOrder(HALVE, [x], (1, 1, 1), (32, 1, 1)), STREAM)
            with pytest.raises(ValueError, match="shape"):
                machine.launch("add", [x, x], [y], {}, STREAM)
            with pytest.raises(InvalidCommandError, match="op is"):
                machine.launch("ad", [x, x], [x], {}, STREAM)
            machine.launch("add", [x, 1], [x], {}, STREAM)
            machine.run_kernel(halved(x), STREAM)
            graph, number = machine.end_capture(STREAM), machine.start_trace()
            with pytest.raises(KernelFault, match="out of bounds") as fault:
                machine.launch_graph(graph)
            assert fault.value.fault.line == 6
            assert [fault.kind for fault in machine.stop_trace(number).faults] == ["out of bounds"]
            assert get(machine, x).max() == 2


def steps(launches: int) -> tuple[Trace, Trace]:
    """So many kernels on a stream, eager and as a graph."""
    x, stream, traces = simgpu.zeros(8), stream_of(), []

    def eager() -> None:
        for _ in range(launches):
            x.__iadd__(1)

    graph = graph_of(eager, stream, warm=False)
    with stream:
        for run in (eager, graph.launch):
            with simgpu.trace() as trace:
                run()
            traces.append(trace)
    stream.synchronize()
    assert x.tolist() == [2 * launches] * 8
    return traces[0], traces[1]


def test_a_graph_is_one_launch_of_the_host_and_its_kernels_run_back_to_back() -> None:
    eager, graphed = steps(10)
    profile = simgpu.profile()
    assert len(eager.host_launches) == 10
    assert eager.graphs == []
    (launch,) = graphed.host_launches
    assert launch is graphed.graphs[0]
    assert (launch.kernels, launch.call) == (10, profile.host["graph"])
    assert graphed.host_parts["launching"] == pytest.approx(profile.host["graph"])
    assert {(one.graph, one.call, one.issued) for one in graphed.launches} == {(launch.number, 0, launch.issued)}
    ends = [one.end for one in graphed.launches]
    assert [one.start for one in graphed.launches] == [launch.start, *ends[:-1]]
    assert ends[-1] == launch.end
    shorter = [one.seconds - other.seconds for one, other in zip(eager.launches, graphed.launches, strict=True)]
    assert shorter == pytest.approx([profile.graph_gain] * 10)
    assert graphed.seconds < eager.seconds / 3  # what the host does between kernels is what the GPU waits for
    assert (graphed.bytes, graphed.flops) == (eager.bytes, eager.flops)
    assert Trace.from_json(graphed.to_json()) == graphed
    events = [event for event in chrome_events(graphed) if event["ph"] == "X"]
    on_host = [event["name"] for event in events if event["tid"] == HOST_ROW and not event["name"].startswith("wait")]
    assert on_host == ["graph"]
    assert [event["name"] for event in events if event["tid"] != HOST_ROW] == ["add"] * 10


def test_lanes_of_a_graph_run_side_by_side_and_wait_for_each_other_and_other_streams_for_all_of_it() -> None:
    x, y, wide, second = simgpu.zeros(8), simgpu.zeros(8), simgpu.zeros(10**6), stream_of()
    with capturing() as first:
        x += 1
        second.wait_event(first.record())
        with second:
            wide += 1
        y += 1
        first.wait_event(second.record())
        y += 1
        graph = first.end_capture()
        with simgpu.trace() as trace:
            graph.launch()
            x += 1
    one, long, beside, joined, after = trace.launches
    assert long.start == one.end == beside.start
    assert long.stream != beside.stream
    assert joined.start == long.end > beside.end
    assert after.start >= joined.end


def test_a_graph_in_a_capture_becomes_part_of_it() -> None:
    arrays = [simgpu.zeros(2)]
    graphs = [graph_of(lambda: arrays[0].__iadd__(1), warm=False)]

    def program() -> None:
        for _ in range(3):
            graphs[0].launch()
        arrays[0].__imul__(2)

    whole = graph_of(program, warm=False)
    assert arrays[0].tolist() == [0, 0]
    whole.launch()
    assert arrays[0].tolist() == [6, 6]
    outer = graph_of(graphs[0].launch, warm=False)
    del whole
    graphs.clear()
    arrays.clear()
    gc.collect()
    other = simgpu.zeros(2)  # in other memory: the graph that lives still writes there
    outer.launch()
    assert other.tolist() == [0, 0]


def test_the_librarys_products_call_cublas_and_all_others_are_captured() -> None:
    x, y, out = simgpu.ones((4, 4), "f4"), simgpu.zeros((4, 4), "f4"), simgpu.zeros((4, 4), "f4")
    whole, product = simgpu.arange(4).reshape(2, 2), simgpu.zeros((2, 2), np.int64)

    def program() -> None:
        with pytest.raises(NotImplementedError, match="cuBLAS"):
            kernels.product([x[None], x[None]], [out[None]], kernels.PLAIN)
        kernels.relu([x], [y])
        simgpu.matmul(whole, whole, out=product)

    graph_of(program, warm=False).launch()
    assert y.sum() == 16
    assert product.tolist() == [[2, 3], [6, 11]]


@jit.rawkernel()
def count_kernel(x: Any) -> None:
    x[jit.grid(1)] += 1


def test_a_captured_kernel_has_no_report_until_it_runs() -> None:
    x = simgpu.zeros(32, "f4")
    graph = graph_of(lambda: count_kernel[1, 32](x), warm=False)
    assert count_kernel.report is None
    with simgpu.trace() as trace:
        graph.launch()
        graph.launch()
    assert x.tolist() == [2] * 32
    assert [report.name for report in trace.kernels] == ["count_kernel"] * 2


def test_by_itself_the_pool_does_not_grow_in_a_capture_but_gives_what_it_has() -> None:
    del_me = simgpu.empty(5000)
    with capturing() as stream:
        with refused("StreamCaptureUnsupported"):
            simgpu.empty(5000)
        with refused("StreamCaptureInvalidated"):
            stream.end_capture()
        del del_me
        stream.begin_capture()
        with stream_of():  # on any stream
            assert simgpu.empty(5000).size == 5000
        stream.end_capture()


def test_arrays_made_in_a_capture_are_told_apart() -> None:
    x = simgpu.ones(1000)
    made = x * 2
    del made
    with simgpu.trace() as trace, capturing() as stream:
        made = x * 2
        graph = stream.end_capture()
        graph.launch()
        other = x * 3
    stream.synchronize()
    assert [event.captured for event in trace.allocations if not event.freed] == [True, False]
    assert (made[0], other[0]) == (2, 3)


def test_no_array_gets_the_memory_of_a_living_graph() -> None:
    pool = simgpu.get_default_memory_pool()
    x, out, warm = simgpu.ones(1000), simgpu.empty(1000), simgpu.empty(1000)
    del warm
    with capturing() as stream:
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
    pool, x = simgpu.get_default_memory_pool(), simgpu.ones(1000)
    with capturing() as stream:
        x += 1
        for fails in (stream.synchronize, stream.end_capture):
            with pytest.raises(CUDARuntimeError):
                fails()
    del x
    assert (pool.used_bytes(), pool.free_bytes()) == (0, 8192)
    x = simgpu.ones(1000)
    assert (x.size, pool.total_bytes()) == (1000, 8192)


def test_there_is_an_end_to_nodes_and_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "NODES", 3)
    monkeypatch.setattr(captures, "GRAPHS", 2)
    x = simgpu.ones(2)
    with capturing() as stream:
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
