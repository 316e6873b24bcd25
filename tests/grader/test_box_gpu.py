"""What a worker may do with the judge's simulated GPU, by the messages it sends. No process is started here."""

import gc
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from characters import JSON
from unrolled import simgpu
from unrolled.checks.gpu import Stray, connected
from unrolled.simgpu import jit
from unrolled.simgpu.command import InvalidCommandError, KernelOrder, OutOfMemoryError, View
from unrolled.simgpu.machine import LocalMachine
from unrolled.simgpu.process import Link, serve
from unrolled_grader.box import gpu, wire
from unrolled_grader.box.gpu import Facade
from unrolled_grader.box.wire import WireError
from unrolled_grader.box.worker import RemoteMachine

WHOLE = st.integers(-3, 2**70)
PLACES = st.tuples(
    WHOLE, WHOLE, st.lists(WHOLE, max_size=4), st.lists(WHOLE, max_size=4), st.sampled_from(["float32", "O", "V99"])
).map(list)
ONE = "def one(y):\n    y[0] = 1.0\n"
FAR = "def k(y):\n    y[4] = 1.0"
PLUS_ONE = "def add(x):\n    i = jit.grid(1)\n    if i < 4:\n        x[i] += 1\n"


class Front(RemoteMachine):
    """A worker's end of the conversation with a facade."""

    def __init__(self, facade: Facade) -> None:
        super().__init__(lambda number, method, given, named: {"value": facade.do(*given, **named)}, 3, "T4")

    def do(self, name: str, *arguments: Any) -> Any:
        """Say what no method says."""
        return self._ask(name, *arguments)[0]


@pytest.fixture
def machine() -> LocalMachine:
    return LocalMachine("T4")


@pytest.fixture
def facade(machine: LocalMachine) -> Facade:
    return Facade(machine)  # type: ignore[arg-type]


@pytest.fixture
def front(facade: Facade) -> Front:
    return Front(facade)


def place(buffer: int, size: int = 4) -> View:
    return View(buffer, 0, (size,), (4,), "float32")


def order(*arguments: Any, source: str = ONE, block: int = 1, **constants: Any) -> KernelOrder:
    program = {"source": source, "first_line": 1, "constants": {"jit": {"name": "jit"}, **constants}}
    return KernelOrder(program, arguments, (1, 1, 1), (block, 1, 1))


def numbers(front: Front, view: View) -> list[float]:
    found: list[float] = np.frombuffer(front.download(view), "f4").tolist()
    return found


def refused(says: str, command: Callable[..., Any], *arguments: Any) -> None:
    with pytest.raises(InvalidCommandError, match=says):
        command(*arguments)


def test_a_worker_reaches_its_own_and_what_it_was_given(facade: Facade, front: Front, machine: LocalMachine) -> None:
    with connected(machine):
        given_, hidden = simgpu.ones(4, "f4"), simgpu.ones(4, "f4").as_view()
        facade.give(given_)
        own = place(front.allocate(16))
        front.launch("add", [given_.as_view(), 1], [own])
        assert numbers(front, own) == [2, 2, 2, 2]
        refused("does not exist", front.download, hidden)
        refused("does not exist", front.upload, hidden, bytes(16))
        for operands in (([hidden], [own]), ([own], [hidden])):
            refused("does not exist", front.launch, "copy", *operands)
        for kernel in (order(hidden), order(own, hidden, source="def k(y, x):\n    y[0] = x[0]")):
            refused("does not exist", front.run_kernel, kernel)
        for beyond in (place(own.buffer, 5), replace(own, offset=4)):
            refused("of a buffer with 16", front.download, beyond)
            refused("of a buffer with 16", front.run_kernel, order(beyond))
        front.run_kernel(order(replace(given_.as_view(), offset=4, shape=(3,)), source="def k(y):\n    y[0] = 5.0"))
        assert given_.get().tolist() == [1, 5, 1, 1]


def test_it_frees_its_own_alone(facade: Facade, front: Front, machine: LocalMachine) -> None:
    with connected(machine):
        given_ = simgpu.ones(4, "f4")
        facade.give(given_)
        own = front.allocate(16)
        for buffer in (own, given_.as_view().buffer, 999, -1):
            front.free(buffer)
        front.clock()
        assert simgpu.asnumpy(given_).tolist() == [1, 1, 1, 1]
        refused("does not exist", front.download, place(own))


def test_traces_and_events_of_the_judge_are_not_its(front: Front, machine: LocalMachine) -> None:
    event, number = machine.record(), machine.start_trace()
    for command in (("stop_trace", number), ("elapsed", event, event), ("wait", event, None), ("stop_trace", True)):
        with pytest.raises(InvalidCommandError):
            front.do(*command)
    own = front.start_trace()
    first, last = front.record(), front.record()
    assert front.elapsed(first, last) >= 0
    assert front.stop_trace(own).launches == []
    assert machine.stop_trace(number).launches == []


@pytest.mark.parametrize(
    "command", ["use", "free", "free_all", "close", "profile", "_call", "__class__", "machine", "do", "", None, 5]
)
def test_nothing_else_is_a_command(command: Any, front: Front) -> None:
    refused("there is no command", front.do, command)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (5, "no text"),
        ("x" * 10**7, "more than 1,000,000 characters"),
        ("[1]", "there is no command None"),
        ("nul", "Expecting value"),
        ("[" * 100_000, "recursion"),
        ('{"call": ' + "9" * 5000 + "}", "5,000 digits"),
    ],
    ids=range(6),
)
def test_what_is_no_message_is_answered_with_an_error(text: Any, says: str, facade: Facade) -> None:
    answer = json.loads(facade.do(text, None)[0])
    assert says in answer["message"]
    assert facade._failures == 1


def test_limits(facade: Facade, front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutOfMemoryError, match="while a check runs"):
        front.allocate(gpu.MEMORY + 1)
    buffer = front.allocate(gpu.MEMORY)
    with pytest.raises(OutOfMemoryError):
        front.allocate(1)
    front.free(buffer)
    front.clock()
    small = front.allocate(4)
    wide = View(small, 0, (2**13, 2**13), (0, 0), "float32")
    refused("are fetched at a time", front.download, wide)
    facade.array(wide)
    refused("bytes at a time", facade.array, wide)
    facade.begin()
    for _ in range(gpu.ARRAYS):
        facade.array(place(small, 1))
    refused("arrays at a time", facade.array, place(small, 1))
    refused("of more than 1,000,000 characters", front.launch, "fill", [1], [place(small, 1)], {"x": "x" * gpu.COMMAND})
    long = order(place(small, 1), source=ONE + "#" * gpu.KERNEL)
    refused("a kernel of more than 200,000 characters", front.run_kernel, long)
    monkeypatch.setattr(gpu, "COMMANDS", 9)
    front.clock()
    refused("more than 9 commands", front.clock)


def test_errors_that_could_tell_values_come_to_an_end(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that fails for some values says one bit of them, a kernel's fault an index. Some bits are no data."""
    monkeypatch.setattr(gpu, "FAILURES", 6)
    view = place(front.allocate(16))
    for _ in range(3):
        refused("does not exist", front.download, place(7))
        with pytest.raises(jit.KernelFault, match="out of bounds"):
            front.run_kernel(order(view, source=FAR))
    refused("in one call failed", front.clock)


def test_a_report_and_a_fault_are_the_machines(front: Front) -> None:
    view = place(front.allocate(16))
    report = front.run_kernel(order(view))
    assert report is not None
    assert report.lines[0].writes == 1
    graph = captured(front, lambda: front.run_kernel(order(view, source=FAR), 130))
    for run in (lambda: front.run_kernel(order(view, source=FAR)), lambda: front.launch_graph(graph)):
        with pytest.raises(jit.KernelFault) as caught:
            run()
        assert caught.value.fault.index == (4,)


# Graphs


def captured(front: Front, command: Callable[[], Any]) -> int:
    front.begin_capture(130)
    command()
    return front.end_capture(130)


def test_a_worker_launches_its_own_graphs_alone(front: Front, machine: LocalMachine) -> None:
    x = place(front.allocate(16))
    machine.begin_capture(140)
    hidden = machine.end_capture(140)
    own = captured(front, lambda: front.launch("fill", [3], [x], {}, 130))
    front.launch_graph(own)
    assert numbers(front, x) == [3, 3, 3, 3]
    for graph in (hidden, own - 1, True, None, "x"):
        for command in ("launch_graph", "upload_graph"):
            refused("does not exist", front.do, command, graph, 0)
    for graph in (own, hidden):
        front.free(graph)
    front.clock()
    refused("does not exist", front.launch_graph, own)
    machine.launch_graph(hidden)


def test_a_worker_cannot_leave_the_capture_of_the_judge(front: Front, machine: LocalMachine) -> None:
    with connected(machine) as cp:
        stream = cp.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            for command in (("end_capture", 0), ("end_capture", stream.number), ("begin_capture", 0, None)):
                refused("which is the judge's", front.do, *command)
            front.launch("fill", [1], [View(front.allocate(0), 0, (0,), (4,), "float32")])
            assert front.is_capturing(0)
            stream.end_capture().launch()


def test_lines_of_reports_have_an_end_also_those_of_graphs(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "LINES", 5)
    x = place(front.allocate(16))
    front.launch("fill", [0], [x])
    own = captured(front, lambda: front.run_kernel(order(x, source=PLUS_ONE, block=32), 130))
    for _ in range(2):
        front.launch_graph(own)
    refused("more than 5 lines of kernels in one call", front.launch_graph, own)
    refused("more than 5 lines of kernels in one call", front.run_kernel, order(x))
    assert numbers(front, x) == [2, 2, 2, 2]


# On the wire


def nothing(offset: int, size: int) -> bytearray:
    return bytearray(size)


def test_a_place_comes_back_as_it_was_and_one_of_another_gpu_is_a_stray() -> None:
    view = View(3, 8, (2, 5), (20, -4), "float32")
    coded = json.loads(json.dumps(wire.encode({"x": [view]}, lambda array: 0)))
    assert wire.decode(coded, nothing, gpu=lambda found: found) == {"x": [view]}
    with pytest.raises(WireError):
        wire.decode(coded, nothing)
    array = simgpu.ones(3)
    assert wire.encode(array, lambda array: 0) == {"object": "ndarray"}
    stray = lambda value: Stray() if value is array else None  # noqa: E731
    (found,) = wire.decode(wire.encode([array], lambda array: 0, stray), nothing)
    assert isinstance(found, Stray)


@given(JSON | PLACES)
@settings(max_examples=300, deadline=None)
def test_what_is_no_place_is_an_error_or_refused(content: Any) -> None:
    facade = Facade(LocalMachine("T4"))  # type: ignore[arg-type]

    def array(view: View) -> Any:
        with pytest.raises(InvalidCommandError):
            facade.array(view)

    with suppress(WireError):
        wire.decode({"gpu": content}, nothing, gpu=array)


# What no front end sends


@pytest.fixture(scope="module")
def link() -> Iterator[Link]:
    """A machine at the other end of a socket, as the judge's is."""
    here, there = socket.socketpair()
    thread = threading.Thread(target=serve, args=(there, "T4", 2**24), daemon=True)
    thread.start()
    with here:
        yield Link(here)
    thread.join(60)


CONSTANTS = st.sampled_from([{"name": "jit"}, {"type": "float32"}, {"number": 3}])
OWN = {"view": [1, 0, [4], [4], "float32"]}
VALID: dict[str, Any] = {
    "program": order(source="def k(y, a):\n    y[a] = 1.0").program,
    "arguments": [OWN, ["int32", 3]],
    "grid": [1, 1, 1],
    "block": [1, 1, 1],
    "shared": 0,
    "stream": 0,
}
NUMBERS = st.tuples(st.sampled_from(["int32", "float32", "bool", "O"]), st.integers(-5, 70) | st.floats()).map(list)
OTHERS = {
    "program": st.fixed_dictionaries(
        {"source": st.just("def k(y, a):\n    y[a]"), "first_line": JSON, "constants": JSON}
    )
    | st.dictionaries(st.sampled_from(["a", "y", "jit"]), CONSTANTS | JSON).map(lambda names: order(**names).program),
    "arguments": st.lists(PLACES.map(lambda view: {"view": view}) | NUMBERS | JSON, min_size=2, max_size=2),
    "grid": st.lists(st.integers(-1, 2**64), min_size=3, max_size=3),
    "block": st.lists(st.sampled_from([-1, 1, 2, 33, 2000]), min_size=3, max_size=3),
}


def given_to(link: Link, parts: dict[str, Any]) -> Any:
    """What comes of an order; the machine goes on, whatever the worker is told."""
    link.use("T4")
    front = Front(Facade(link))  # type: ignore[arg-type]
    front.allocate(16)
    outcome = None
    with suppress(Exception):
        outcome = front.do("run_kernel", *parts.values())
    assert len(front.download(place(1))) == 16
    return outcome


def test_the_valid_order_is_taken(link: Link) -> None:
    assert "report" in given_to(link, VALID)


@given(st.data(), st.sampled_from([*VALID]))
@settings(max_examples=150, deadline=None)
def test_no_order_brings_the_machine_down(link: Link, data: st.DataObject, name: str) -> None:
    given_to(link, {**VALID, name: data.draw(OTHERS.get(name, JSON) | JSON)})


def alive() -> int:
    """Return how many objects of the simulated GPU and nodes of syntax trees there are, once garbage is collected."""
    gc.collect()
    makers = (each if isinstance(each, FunctionType) else type(each) for each in gc.get_objects())
    return sum(str(maker.__module__).startswith(("unrolled.simgpu", "ast")) for maker in makers)


def test_many_kernels_leave_nothing_behind(front: Front) -> None:
    view = place(front.allocate(16))

    for number in range(140):
        if number == 40:
            before = alive()
        front.run_kernel(order(view, source=f"def k{number}(y):\n    v{number} = {number}.5\n    y[0] = v{number}\n"))
    assert alive() - before < 100  # each kernel has several; bytes would count what other threads do
