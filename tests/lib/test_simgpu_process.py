"""The simulated GPU in a process of its own: the same results and times, and an end to whoever does not keep to it."""

from __future__ import annotations

import contextlib
import gc
import json
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simgpu_commands import empty, get, put, start

from unrolled.simgpu import process
from unrolled.simgpu.command import InvalidCommandError, KernelOrder, Machine, OutOfMemoryError, View
from unrolled.simgpu.lockstep.faults import CUDADriverError, KernelFault, OperatorError, UnsupportedError
from unrolled.simgpu.machine import LocalMachine, MachineLimits
from unrolled.simgpu.process import Link, LinkError, serve

KERNEL = {
    "source": "def halve(x, by):\n    i = jit.grid(1)\n    if i < 12:\n        x[i // 4, i % 4] *= by\n",
    "first_line": 3,
    "constants": {"jit": {"name": "jit"}},
}


@contextlib.contextmanager
def serving(**words: Any) -> Iterator[tuple[socket.socket, threading.Thread]]:
    """A socket whose other end is served, by a thread of this process."""
    here, there = socket.socketpair()
    here.settimeout(120)

    def run() -> None:
        with there:
            serve(there, **words)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    with here:
        yield here, thread
    thread.join(120)
    assert not thread.is_alive()


def session(machine: Machine) -> tuple[list[bytes], Any, list[Any]]:
    """A bit of everything: bytes that came down, the trace, and numbers."""
    number = machine.start_trace()
    x = put(machine, np.linspace(-2, 2, 12, dtype="float32").reshape(3, 4))
    y, total, state = empty(machine, (4, 3)), empty(machine, (3,)), empty(machine, (6,), "uint64")
    transposed = View(x.buffer, 0, (4, 3), (4, 16), "float32")
    machine.launch("exp", [transposed], [y])
    machine.launch("multiply", [y, float("nan")], [y], {}, 1)
    machine.launch("where", [True, transposed, 1.5], [y], {}, 2)
    first = machine.record(2)
    machine.wait(first, 1)
    machine.launch("sum", [y], [total], {"axis": (0,)})
    machine.launch("add", [total, float("inf")], [total], None, 3)
    machine.launch("random.seed", [], [state], {"seed": [1, 2**70]})
    machine.launch("random", [], [total, state], {"method": "random", "arguments": {"dtype": "float32"}})
    waves = empty(machine, (3,), "complex64")
    machine.launch("multiply", [total, 2 - 1j], [waves])
    report = machine.run_kernel(KernelOrder(KERNEL, [x, ("float32", 0.5)], (2, 1, 1), (32, 1, 1)))
    with contextlib.suppress(KernelFault):
        machine.run_kernel(KernelOrder(KERNEL, [x, ("float32", 0.5)], (2, 1, 1), (2, 2, 1)), 1)
    machine.wait(first, None)
    last = machine.record()
    machine.upload(x, bytes(48), stream=1, blocking=False)
    machine.synchronize(1)
    machine.free(y.buffer)
    machine.free(12345)
    machine.synchronize()
    downs = [machine.download(view) for view in (x, total, state, waves)]
    machine.free_all()
    machine.reset_peak()
    numbers = [machine.elapsed(first, last), machine.clock(), machine.memory(), machine.profile.name, report]
    return downs, machine.stop_trace(number), numbers


def bare(trace: Any) -> Any:
    """A trace without the lines that called: they are known only in the same process."""
    data = json.loads(trace.to_json())
    for events in data.values():
        for event in events if isinstance(events, list) else []:
            event.pop("where", None)
            event.pop("cause", None)
    return data


def test_a_machine_elsewhere_gives_what_a_local_one_gives_bit_for_bit() -> None:
    downs, trace, numbers = session(LocalMachine("A100"))
    with start("A100") as link:
        there = session(link)
    assert there[0] == downs
    assert bare(there[1]) == bare(trace)
    assert there[2] == numbers


def test_its_memory_is_limited_and_who_hung_up_has_no_machine() -> None:
    with start("T4", memory_limit=10_000) as link:
        assert link.memory()["capacity"] == 10_000
        with pytest.raises(OutOfMemoryError, match="limit set to: 10,000"):
            link.allocate(20_000)
    with pytest.raises(LinkError, match="is gone"):
        link.clock()


def test_errors_come_back_as_they_are_and_the_next_call_is_answered() -> None:
    with serving() as (connection, _):
        link = Link(connection)
        x = put(link, np.ones(3))
        with pytest.raises(InvalidCommandError, match="none of that name"):
            link.launch("system", [x], [x])
        with pytest.raises(TypeError):
            link.launch("bitwise_and", [x, x], [x])
        with pytest.raises(ValueError, match="broadcast"):
            link.launch("add", [x, put(link, np.ones(2))], [x])
        with pytest.raises(InvalidCommandError):
            link.launch("add", [x, "1"], [x])  # type: ignore[list-item]
        with pytest.raises(TypeError):
            link.launch("add", [x, np.float32(1)], [x])  # no JSON: it never left
        np.testing.assert_array_equal(get(link, x), np.ones(3))


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        (UnsupportedError, "a = b = 1"),
        (OperatorError, "x @ x"),
        (TypeError, "a = 1.0 / x"),
        (ValueError, "raise x"),
        (NameError, "y"),
        (AttributeError, "jit.nothing"),
        (IndexError, "a = (1, 2)[5]"),
        (OverflowError, "a = 2**999"),
        (ZeroDivisionError, "a = 1 // 0"),
        (SyntaxError, "a ="),
        (AssertionError, "assert 0"),
        (KernelFault, "x[3, 0] = 1.0"),
    ],
)
def test_what_the_compiler_refuses_comes_back_as_it_was_raised(kind: type[Exception], line: str) -> None:
    there, here = LocalMachine(), LocalMachine()
    program = {**KERNEL, "source": f"def k(x):\n    {line}\n"}
    with serving() as (connection, _):
        raised = []
        for machine in (Link(connection), there, here):
            order = KernelOrder(program, [put(machine, np.ones((3, 4), "float32"))], (1, 1, 1), (1, 1, 1))
            with pytest.raises(kind) as caught:
                machine.run_kernel(order)
            raised.append((type(caught.value), str(caught.value)[:1900], vars(caught.value)))
    assert raised[0] == raised[1] == raised[2]


def test_a_launch_that_cuda_refuses_is_told_as_such() -> None:
    with serving() as (connection, _):
        link = Link(connection)
        order = KernelOrder(KERNEL, [put(link, np.ones((3, 4), "float32")), ("float32", 1)], (1, 1, 1), (0, 1, 1))
        with pytest.raises(CUDADriverError, match="CUDA_ERROR_INVALID_VALUE") as caught:
            link.run_kernel(order)
    assert caught.value.fault.kind == "threads"


def test_the_seed_decides_the_order_of_blocks_and_no_report_tells_the_next() -> None:
    def seeds(seed: int) -> list[int]:
        link.use("T4", seed)
        x = put(link, np.ones((3, 4), "float32"))
        order = KernelOrder(KERNEL, [x, ("float32", 0.5)], (2, 1, 1), (32, 1, 1))
        return [link.run_kernel(order).seed for _ in range(3)]

    with serving() as (connection, _):
        link = Link(connection)
        first, again, other = seeds(5), seeds(5), seeds(6)
    assert first == again
    assert len({*first, *other}) == 6
    assert first[1] - first[0] != first[2] - first[1]


def test_a_serving_machine_keeps_less_for_a_kernel() -> None:
    with serving() as (connection, _):
        link = Link(connection)
        wide = View(link.allocate(2**24 + 1), 0, (2**24 + 1,), (1,), "int8")
        program = {**KERNEL, "source": "def k(x):\n    x[0] = cp.int8(1)\n"}
        program["constants"] = {"cp": {"name": "cupy"}}
        with pytest.raises(ValueError, match="writes 16,777,217 values of arrays; at most 16,777,216"):
            link.run_kernel(KernelOrder(program, [wide], (1, 1, 1), (1, 1, 1)))


class Garbage:
    """An array that is freed by the garbage collector, at any time."""

    def __init__(self, link: Link) -> None:
        self.link, self.buffer, self.itself = link, link.allocate(512), self

    def __del__(self) -> None:
        self.link.free(self.buffer)


def test_finalizers_may_free_in_the_middle_of_a_call() -> None:
    with serving() as (connection, _):
        link = Link(connection)
        threshold = gc.get_threshold()
        gc.set_threshold(1)
        try:
            for _ in range(50):
                Garbage(link)
        finally:
            gc.set_threshold(*threshold)
        gc.collect()
        assert link.memory()["used"] == 0


def test_another_profile_is_a_fresh_machine() -> None:
    with serving() as (connection, _):
        link = Link(connection)
        buffer = link.allocate(1000)
        assert link.use("H200").name == "H200" == link.profile.name
        assert (link.clock(), link.memory()["used"]) == (0, 0)
        with pytest.raises(InvalidCommandError):
            link.download(View(buffer, 0, (1,), (1,), "int8"))
        with pytest.raises(ValueError, match="expected one of T4"):
            link.use("H100")


def test_a_link_whose_other_side_is_too_slow_is_dead_from_then_on() -> None:
    here, there = socket.socketpair()
    with here, there:
        threading.Thread(target=lambda: there.sendall(packed({"value": "T4"})), daemon=True).start()
        link = Link(here)
        here.settimeout(0.05)
        with pytest.raises(TimeoutError):
            link.clock()
        there.sendall(packed({"value": 5}))  # too late: it must not answer another call
        with pytest.raises(LinkError):
            link.record()


def packed(message: Any, data: bytes = b"") -> bytes:
    text = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack("!II", len(text), len(data)) + text + data


@pytest.mark.parametrize(
    "stream",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        packed(b"\xff\xfe"),
        packed(b"[1, 2]"),
        packed(b"nul"),
        packed(b"[" * 10_000),
        packed(b'{"call": ' + b"9" * 2_000 + b"}"),
        struct.pack("!II", 100, 0) + b"{",
    ],
    ids=lambda stream: repr(stream[:24]),
)
def test_what_is_no_message_ends_the_serving(stream: bytes) -> None:
    with serving(memory_limit=100_000) as (connection, thread):
        connection.sendall(stream)
        connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):  # it has left without reading all
            assert connection.recv(100) == b""
        thread.join(120)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    "lengths",
    [(2**32 - 1, 0), (process.MESSAGE_LIMIT + 1, 0), (2, 2**32 - 1), (2, 100_001)],  # the machine has 100,000 bytes
)
def test_a_message_that_is_announced_too_long_is_not_waited_for(lengths: tuple[int, int]) -> None:
    with serving(memory_limit=100_000) as (connection, thread):
        connection.sendall(struct.pack("!II", *lengths))
        assert connection.recv(100) == b""
        thread.join(120)
        assert not thread.is_alive()


def answer_to(connection: socket.socket, message: Any) -> dict[str, Any]:
    connection.sendall(packed(message))
    size, data = struct.unpack("!II", connection.recv(8, socket.MSG_WAITALL))
    answer: dict[str, Any] = json.loads(connection.recv(size, socket.MSG_WAITALL))
    assert not data
    return answer


VIEW = {"view": [1, 0, [2], [4], "float32"]}


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"call": "__init__", "arguments": []},
        {"call": "_pool", "arguments": []},
        {"call": "limits", "arguments": []},
        {"call": ["clock"], "arguments": []},
        {"call": "clock", "arguments": {"a": 1}},
        {"call": "clock", "arguments": [1]},
        {"call": "allocate", "arguments": ["1"]},
        {"call": "allocate", "arguments": [True]},
        {"call": "allocate", "arguments": [10**30]},
        {"call": "launch", "arguments": []},
        {"call": "launch", "arguments": ["add", VIEW, [VIEW], {}, 0]},
        {"call": "launch", "arguments": ["add", [VIEW, 1], [1], {}, 0]},
        {"call": "launch", "arguments": ["add", [VIEW, 1], [VIEW], [], 0]},
        {"call": "launch", "arguments": ["add", [VIEW, 1], [VIEW], {}, -1]},
        {"call": "launch", "arguments": ["add", [VIEW, 1], [VIEW], {}, 10**9]},
        {"call": "launch", "arguments": [["add"], [VIEW, 1], [VIEW], {}, 0]},
        {"call": "launch", "arguments": ["add", [VIEW, {"view": []}], [VIEW], {}, 0]},
        {"call": "launch", "arguments": ["add", [VIEW, {"complex": [1, 2]}], [VIEW], {}, 0]},
        {"call": "download", "arguments": []},
        {"call": "download", "arguments": [5]},
        {"call": "download", "arguments": [{"view": [1, 0, 2, [4], "float32"]}]},
        {"call": "download", "arguments": [{"view": [1, 0, [[2]], [4], "float32"]}]},
        {"call": "upload", "arguments": [VIEW]},
        {"call": "run_kernel", "arguments": []},
        {"call": "run_kernel", "arguments": [KERNEL, [VIEW], [1, 1, 1], [1, 1, 1], 0]},
        {"call": "run_kernel", "arguments": [KERNEL, VIEW, [1, 1, 1], [1, 1, 1], 0, 0]},
        {"call": "run_kernel", "arguments": [KERNEL, [VIEW, 1], [1, 1, 1], [1, 1, 1], 0, 0]},
        {"call": "run_kernel", "arguments": [KERNEL, [VIEW, ["float32", [1]]], [1, 1, 1], [1, 1, 1], 0, 0]},
        {"call": "run_kernel", "arguments": [KERNEL, [VIEW, ["float32", 1]], [1, 1], [1, 1, 1], 0, 0]},
        {"call": "run_kernel", "arguments": [KERNEL, [VIEW, ["float32", 1]], [1, 1, True], [1, 1, 1], 0, 0]},
        {"call": "run_kernel", "arguments": [KERNEL, [VIEW, ["float32", 1]], [1, 1, 2**62], [1, 1, 1], 0, 0]},
        {"call": "run_kernel", "arguments": [KERNEL, [VIEW, ["float32", 1]], [1, 1, 1], [1, 1, 1], 0.0, 0]},
        {"call": "run_kernel", "arguments": [KERNEL, [VIEW, ["float32", 1]], [1, 1, 1], [1, 1, 1], 0, -1]},
        {"call": "stop_trace", "arguments": [{}]},
        {"call": "stop_trace", "arguments": [0]},
        {"call": "use", "arguments": [5]},
        {"call": "use", "arguments": ["H100"]},
        {"call": "wait", "arguments": [0, 0]},
        {"call": "elapsed", "arguments": [-1, 0]},
    ],
    ids=lambda message: json.dumps(message)[:60],
)
def test_a_bad_call_is_answered_with_an_error_and_the_next_one_with_its_value(message: Any) -> None:
    with serving(memory_limit=100_000) as (connection, _):
        link = Link(connection)
        put(link, np.zeros(2, "float32"))
        assert "error" in answer_to(connection, message)
        assert answer_to(connection, {"call": "memory", "arguments": []})["value"]["used"] == 512


plain = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-5, 2**70), st.floats(), st.sampled_from(["add", "sum", "float32"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(["view", "axes", "axis"]), inner)
    ),
    max_leaves=8,
)
ops = st.sampled_from(["add", "sum", "getitem", "setitem", "add.at", "fused", "random", "einsum", "matmul", "arange"])


@given(
    op=ops,
    inputs=st.lists(st.one_of(st.just(VIEW), plain), max_size=3),
    options=st.dictionaries(
        st.sampled_from(
            ["axes", "axis", "steps", "results", "method", "arguments", "subscripts", "start", "step", "dtype"]
        ),
        plain,
    ),
)
@settings(max_examples=300, deadline=None)
def test_no_launch_brings_the_serving_down(op: str, inputs: list[Any], options: dict[str, Any]) -> None:
    machine = LocalMachine("T4", memory_limit=100_000, limits=MachineLimits(elements=1000, flops=10**6))
    put(machine, np.zeros(2, "float32"))
    message = {"call": "launch", "arguments": [op, inputs, [VIEW], options, 0]}
    with contextlib.suppress(ValueError, TypeError, MemoryError):
        process.answer(machine, message, b"")
    assert len(get(machine, View(1, 0, (2,), (4,), "float32"))) == 2


def test_a_command_that_is_too_long_to_send_leaves_the_link_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as (connection, _):
        link = Link(connection)
        monkeypatch.setattr(process, "MESSAGE_LIMIT", 1000)
        with pytest.raises(InvalidCommandError, match="too long"):
            link.launch("sum", [1.0] * 1000, [])
        assert link.clock() == 0
