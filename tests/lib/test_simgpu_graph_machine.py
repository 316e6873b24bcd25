"""Graphs of the simulated GPU beyond CuPy's rules: times, traces, kernels, a machine elsewhere."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from simgpu_commands import empty, get, put, start

from unrolled import kernels, show, simgpu
from unrolled.show.timeline import course_of
from unrolled.simgpu import jit
from unrolled.simgpu.chrome import HOST_ROW, chrome_events
from unrolled.simgpu.command import CUDARuntimeError, InvalidCommandError, KernelOrder, Machine, View
from unrolled.simgpu.lockstep.faults import CUDADriverError, KernelFault
from unrolled.simgpu.machine import LocalMachine
from unrolled.simgpu.trace import Launch, Trace

STREAM = 130
HALVE = {
    "source": "def halve(x, by):\n    i = jit.grid(1)\n    if i < 12:\n        x[i // 4, i % 4] *= by\n",
    "first_line": 3,
    "constants": {"jit": {"name": "jit"}},
}


@pytest.fixture(autouse=True)
def fresh() -> None:
    simgpu.reset()


def halved(x: View, threads: int = 32) -> KernelOrder:
    return KernelOrder(HALVE, [x, ("float32", 0.5)], (2, 1, 1), (threads, 1, 1))


def session(machine: Machine) -> tuple[list[Any], Trace, list[str]]:
    """Captures and launches of all kinds: values, the trace, and what was refused."""
    x, y, total = put(machine, np.ones((3, 4), "f4")), empty(machine, (3, 4)), empty(machine, (3,))
    number, said, found = machine.start_trace(), [], []
    machine.begin_capture(STREAM)
    machine.launch("multiply", [x, 4], [y], {}, STREAM)
    fork = machine.record(STREAM)
    machine.wait(fork, 140)
    machine.launch("sum", [y], [total], {"axis": (1,)}, 140)
    assert machine.run_kernel(halved(y), STREAM) is None
    join = machine.record(140)
    machine.wait(join, STREAM)
    graph = machine.end_capture(STREAM)
    machine.upload_graph(graph, 1)
    for value in (1, 2):
        machine.launch("fill", [value], [x])
        machine.synchronize()
        assert machine.launch_graph(graph, 1) > 1
        machine.synchronize()
        found += [get(machine, y), get(machine, total)]
    for refused in (
        lambda: machine.wait(fork, None),
        lambda: machine.elapsed(fork, join),
        lambda: machine.wait(fork, 0),
        lambda: machine.launch_graph(graph - 1, 0),
        lambda: machine.begin_capture(0),
        lambda: machine.begin_capture(STREAM, 7),
        lambda: machine.end_capture(5),
    ):
        with pytest.raises((CUDARuntimeError, InvalidCommandError, RuntimeError)) as error:
            refused()
        said.append(str(error.value))
    machine.free(graph)
    with pytest.raises(InvalidCommandError, match="does not exist"):
        machine.launch_graph(graph, 0)
    return found, machine.stop_trace(number), said


def test_values_of_a_session() -> None:
    (y, total, again, twice), trace, said = session(LocalMachine())
    for found, expected in ((y, 2), (total, 16), (again, 4), (twice, 32)):
        assert (found == expected).all()
    assert [graph.kernels for graph in trace.graphs] == [3, 3]
    assert len(trace.kernels) == 2
    assert "cudaErrorCapturedEvent" in said[0]
    assert "cudaErrorIllegalState" in said[-1]


def test_a_machine_in_another_process_does_the_same() -> None:
    values, trace, said = session(LocalMachine())
    with start() as link:
        there, traced, told = session(link)
    assert [x.tolist() for x in there] == [x.tolist() for x in values]
    assert (told, traced.graphs[0].kernels, len(traced.launches)) == (said, 3, len(trace.launches))
    assert [(one.op, one.start, one.graph) for one in traced.launches] == [
        (one.op, one.start, one.graph) for one in trace.launches
    ]


def test_a_fault_of_a_captured_kernel_comes_at_the_launch_with_its_line() -> None:
    with start() as link:
        for machine in (LocalMachine(), link):
            x = put(machine, np.ones((2, 4), "f4"))
            machine.begin_capture(STREAM)
            with pytest.raises(CUDADriverError):
                machine.run_kernel(halved(x, 2048), STREAM)
            with pytest.raises(TypeError):
                machine.run_kernel(KernelOrder(HALVE, [x], (1, 1, 1), (32, 1, 1)), STREAM)
            machine.run_kernel(halved(x), STREAM)
            graph, number = machine.end_capture(STREAM), machine.start_trace()
            with pytest.raises(KernelFault, match="out of bounds") as error:
                machine.launch_graph(graph)
            assert error.value.fault.line == 6
            assert [fault.kind for fault in machine.stop_trace(number).faults] == ["out of bounds"]


def test_a_bad_command_is_refused_at_the_capture() -> None:
    machine = LocalMachine()
    x, y = put(machine, np.ones(4, "f4")), empty(machine, (3,))
    machine.begin_capture(STREAM)
    with pytest.raises(ValueError, match="shape"):
        machine.launch("add", [x, x], [y], {}, STREAM)
    with pytest.raises(InvalidCommandError, match="op is"):
        machine.launch("ad", [x, x], [x], {}, STREAM)
    machine.launch("add", [x, 1], [x], {}, STREAM)
    graph = machine.end_capture(STREAM)
    machine.launch_graph(graph)
    assert get(machine, x).tolist() == [2, 2, 2, 2]


# times


def steps(launches: int) -> tuple[Trace, Trace]:
    """So many kernels on a stream, eager and as a graph."""
    x, stream, traces = simgpu.zeros(8), simgpu.cuda.Stream(non_blocking=True), []

    def eager() -> None:
        for _ in range(launches):
            x.__iadd__(1)

    with stream:
        stream.begin_capture()
        eager()
        graph = stream.end_capture()
        for run in (eager, graph.launch):
            with simgpu.trace() as trace:
                run()
            traces.append(trace)
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
    assert [one.graph for one in graphed.launches] == [launch.number] * 10
    assert all(one.call == 0 and one.issued == launch.issued for one in graphed.launches)
    ends = [one.end for one in graphed.launches]
    assert [one.start for one in graphed.launches] == [launch.start, *ends[:-1]]
    assert ends[-1] == launch.end
    shorter = [one.seconds - other.seconds for one, other in zip(eager.launches, graphed.launches, strict=True)]
    assert shorter == pytest.approx([profile.graph_gain] * 10)
    assert graphed.seconds < eager.seconds / 3  # what the host does between kernels is what the GPU waits for
    assert (graphed.bytes, graphed.flops) == (eager.bytes, eager.flops)


def test_lanes_of_a_graph_run_side_by_side_and_other_streams_wait_for_all_of_it() -> None:
    x, y = simgpu.zeros(8), simgpu.zeros(8)
    first, second = (simgpu.cuda.Stream(non_blocking=True) for _ in range(2))
    with first:
        first.begin_capture()
        second.wait_event(first.record())
        x += 1
        with second:
            y += 1
        first.wait_event(second.record())
        graph = first.end_capture()
        with simgpu.trace() as trace:
            graph.launch()
            x += 1
    one, other, after = trace.launches
    assert one.start == other.start
    assert one.stream != other.stream
    assert after.start >= max(one.end, other.end)


def test_what_waits_in_a_graph_starts_when_that_is_done_which_it_waits_for() -> None:
    x, y, wide = simgpu.zeros(8), simgpu.zeros(8), simgpu.zeros(10**6)
    first, second = (simgpu.cuda.Stream(non_blocking=True) for _ in range(2))
    with first:
        first.begin_capture()
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
    one, long, beside, joined = trace.launches
    assert long.start == one.end == beside.start
    assert joined.start == long.end > beside.end


def test_a_host_that_waits_for_a_captured_event_makes_the_capture_invalid() -> None:
    stream = simgpu.cuda.Stream(non_blocking=True)
    stream.begin_capture()
    with pytest.raises(CUDARuntimeError, match="cudaErrorCapturedEvent"):
        stream.record().synchronize()
    with pytest.raises(CUDARuntimeError, match="cudaErrorStreamCaptureInvalidated"):
        stream.end_capture()


def test_a_trace_with_graphs_goes_through_json() -> None:
    trace = steps(2)[1]
    assert Trace.from_json(trace.to_json()) == trace
    assert isinstance(trace.launches[0], Launch)


def test_eager_and_graph_are_drawn_on_one_axis_of_time() -> None:
    eager, graphed = steps(10)
    alt = show.launches({"eager": eager, "graph": graphed}, start="graph").alt
    assert "graph: 1 launch, " in alt
    assert "eager 10 launches, " in alt
    course = course_of(graphed)
    assert [piece.op for piece in course.pieces if piece.kind == "call"] == ["graph"]
    (row,) = {piece.row for piece in course.pieces if piece.kind == "kernel"}
    starts = [piece.start + graphed.start for piece in course.pieces if piece.row == row]
    assert starts == pytest.approx([one.start for one in graphed.launches])
    assert course.span == pytest.approx(graphed.seconds)


def test_perfetto_shows_one_call_and_all_kernels() -> None:
    graphed = steps(10)[1]
    events = [event for event in chrome_events(graphed) if event["ph"] == "X"]
    on_host = [event["name"] for event in events if event["tid"] == HOST_ROW and not event["name"].startswith("wait")]
    assert on_host == ["graph"]
    assert [event["name"] for event in events if event["tid"] != HOST_ROW] == ["add"] * 10


def test_a_graph_in_a_capture_becomes_part_of_it() -> None:
    x, stream = simgpu.zeros(2), simgpu.cuda.Stream(non_blocking=True)
    graphs = []
    with stream:
        stream.begin_capture()
        x += 1
        graphs.append(stream.end_capture())
        stream.begin_capture()
        for _ in range(3):
            graphs[0].launch()
        x *= 2
        graphs.append(stream.end_capture())
        assert x.tolist() == [0, 0]
        graphs[1].launch()
    assert x.tolist() == [6, 6]
    with stream:
        stream.begin_capture()
        graphs[0].launch()
        graphs[:] = [stream.end_capture()]
    del x
    gc.collect()
    other = simgpu.zeros(2)  # in other memory: the graph that lives still writes there
    graphs[0].launch()
    assert other.tolist() == [0, 0]


# the library's kernels, and those of a program


def test_the_librarys_products_call_cublas_and_its_other_kernels_are_captured() -> None:
    x, y, out = simgpu.ones((4, 4), "f4"), simgpu.zeros((4, 4), "f4"), simgpu.zeros((4, 4), "f4")
    stream = simgpu.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        with pytest.raises(NotImplementedError, match="cuBLAS"):
            kernels.product([x[None], x[None]], [out[None]], kernels.PLAIN)
        kernels.relu([x], [y])
        graph = stream.end_capture()
        graph.launch()
    assert y.sum() == 16


def test_whole_numbers_are_multiplied_without_cublas() -> None:
    x, out = simgpu.arange(4).reshape(2, 2), simgpu.zeros((2, 2), np.int64)
    stream = simgpu.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        simgpu.matmul(x, x, out=out)
        stream.end_capture().launch()
    assert out.tolist() == [[2, 3], [6, 11]]


@jit.rawkernel()
def count_kernel(x: Any) -> None:
    x[jit.grid(1)] += 1


def test_a_captured_kernel_has_no_report_until_it_runs() -> None:
    x, stream = simgpu.zeros(32, "f4"), simgpu.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        count_kernel[1, 32](x)
        assert count_kernel.report is None
        graph = stream.end_capture()
        with simgpu.trace() as trace:
            for _ in range(2):
                graph.launch()
    assert x.tolist() == [2] * 32
    assert [report.name for report in trace.kernels] == ["count_kernel"] * 2
