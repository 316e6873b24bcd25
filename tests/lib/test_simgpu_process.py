"""The simulated GPU in a process of its own: the same results and times, and an end to whoever does not keep to it."""

import contextlib
import gc
import json
import socket
import struct
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simgpu_commands import HALVE, empty, get, halved, put, serving, start

from unrolled.simgpu import process
from unrolled.simgpu.command import InvalidCommandError, Machine, OutOfMemoryError, View
from unrolled.simgpu.limits import MachineLimits
from unrolled.simgpu.lockstep.faults import CUDADriverError, KernelFault, OperatorError, UnsupportedError
from unrolled.simgpu.machine import LocalMachine
from unrolled.simgpu.process import Link, LinkError


def session(machine: Machine) -> tuple[list[bytes], Any, list[Any]]:
    """A bit of everything: bytes that came down, the trace, and numbers."""
    number = machine.start_trace()
    x = put(machine, np.linspace(-2, 2, 12, dtype="float32").reshape(3, 4))
    y, total, state = empty(machine, (4, 3)), empty(machine, (3,)), empty(machine, (6,), "uint64")
    transposed = View(x.buffer, 0, (4, 3), (4, 16), "float32")
    machine.launch("exp", [transposed], [y])
    machine.launch("multiply", [y, float("nan")], [y], {}, 1)
    machine.wait(machine.record(1), 2)
    machine.launch("where", [True, transposed, 1.5], [y], {}, 2)
    first = machine.record(2)
    machine.wait(first, 1)
    machine.launch("sum", [y], [total], {"axis": (0,)})
    machine.launch("add", [total, float("inf")], [total], None, 3)
    machine.launch("random.seed", [], [state], {"seed": [1, 2**70]})
    machine.launch("random", [], [total, state], {"method": "random", "arguments": {"dtype": "float32"}})
    waves = empty(machine, (3,), "complex64")
    machine.launch("multiply", [total, 2 - 1j], [waves])
    report = machine.run_kernel(halved(x))
    with contextlib.suppress(KernelFault):
        machine.run_kernel(halved(x, (2, 2, 1)), 1)
    machine.wait(first, None)
    last = machine.record()
    machine.upload(x, bytes(48), stream=1, blocking=False)
    machine.synchronize(1)
    machine.free(y.buffer)
    machine.free(12345)
    machine.synchronize()
    downs = [machine.download(view) for view in (x, total, state, waves)]
    machine.free_all()
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


def test_errors_come_back_as_they_are_and_the_next_call_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    with start() as link:
        x, y = put(link, np.ones(3)), put(link, np.ones(2))
        for op, inputs, error, words in (
            ("system", [x], InvalidCommandError, "none of that name"),
            ("bitwise_and", [x, x], TypeError, ""),
            ("add", [x, y], ValueError, "broadcast"),
            ("add", [x, "1"], InvalidCommandError, ""),
            ("add", [x, np.float32(1)], TypeError, ""),  # no JSON: it never left
        ):
            with pytest.raises(error, match=words or None):
                link.launch(op, inputs, [x])
        np.testing.assert_array_equal(get(link, x), np.ones(3))
        monkeypatch.setattr(process, "MESSAGE_LIMIT", 1000)
        with pytest.raises(InvalidCommandError, match="too long"):
            link.launch("sum", [1.0] * 1000, [])
        assert link.clock() > 0


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
    raised = []
    with start() as link:
        for machine in (link, LocalMachine(), LocalMachine()):
            x = put(machine, np.ones((3, 4), "float32"))
            with pytest.raises(kind) as caught:
                machine.run_kernel(halved(x, (1, 1, 1), source=f"def k(x, by):\n    {line}\n"))
            raised.append((type(caught.value), str(caught.value)[:1900], vars(caught.value)))
    assert raised[0] == raised[1] == raised[2]


def test_a_launch_that_cuda_refuses_is_told_as_such() -> None:
    with start() as link, pytest.raises(CUDADriverError, match="CUDA_ERROR_INVALID_VALUE") as caught:
        link.run_kernel(halved(put(link, np.ones((3, 4), "float32")), (0, 1, 1)))
    assert caught.value.fault.kind == "threads"


def test_the_seed_decides_the_order_of_blocks_and_no_report_tells_the_next() -> None:
    def seeds(seed: int) -> list[int]:
        link.use("T4", seed)
        x = put(link, np.ones((3, 4), "float32"))
        return [link.run_kernel(halved(x)).seed for _ in range(3)]

    with start() as link:
        first, again, other = seeds(5), seeds(5), seeds(6)
    assert first == again
    assert len({*first, *other}) == 6
    assert first[1] - first[0] != first[2] - first[1]


def test_a_serving_machine_keeps_less_for_a_kernel() -> None:
    program = {"source": "def k(x, by):\n    x[0] = cp.int8(1)\n", "constants": {"cp": {"name": "cupy"}}}
    with start() as link:
        wide = View(link.allocate(2**24 + 1), 0, (2**24 + 1,), (1,), "int8")
        with pytest.raises(ValueError, match="writes 16,777,217 values of arrays; at most 16,777,216"):
            link.run_kernel(halved(wide, **program))


class Garbage:
    """An array that is freed by the garbage collector, at any time."""

    def __init__(self, link: Link) -> None:
        self.link, self.buffer, self.itself = link, link.allocate(512), self

    def __del__(self) -> None:
        self.link.free(self.buffer)


def test_finalizers_may_free_in_the_middle_of_a_call() -> None:
    with start() as link:
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
    with start() as link:
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


TOO_LONG = [(2**32 - 1, 0), (process.MESSAGE_LIMIT + 1, 0), (2, 2**32 - 1), (2, 100_001)]  # of 100,000 bytes


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
        *(struct.pack("!II", *lengths) for lengths in TOO_LONG),
    ],
    ids=lambda stream: repr(stream[:24]),
)
def test_what_is_no_message_ends_the_serving_and_what_is_too_long_is_not_waited_for(stream: bytes) -> None:
    with serving(memory_limit=100_000) as (connection, thread):
        connection.sendall(stream)
        if len(stream) > 8:
            connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):  # it has left without reading all
            assert connection.recv(100) == b""
        thread.join(120)
        assert not thread.is_alive()


def launching(*arguments: Any) -> dict[str, Any]:
    return {"call": "launch", "arguments": ["add", *arguments]}


def running(**changes: Any) -> dict[str, Any]:
    """An order of a kernel, with something wrong."""
    order = {"kernel": HALVE, "arguments": [VIEW, ["float32", 1]], "blocks": [1] * 3, "threads": [1] * 3}
    return {"call": "run_kernel", "arguments": [*(order | {"shared": 0, "stream": 0} | changes).values()]}


VIEW = {"view": [1, 0, [2], [4], "float32"]}
BAD_CALLS = {
    **{name: [[]] for name in ("__init__", "_pool", "limits", "launch", "download", "run_kernel")},
    "clock": [{"a": 1}, [1]],
    "allocate": [["1"], [True], [10**30]],
    "download": [[], [5], [{"view": [1, 0, 2, [4], "float32"]}], [{"view": [1, 0, [[2]], [4], "float32"]}]],
    "upload": [[VIEW]],
    "stop_trace": [[{}], [0]],
    "use": [[5], ["H100"]],
    "wait": [[0, 0]],
    "elapsed": [[-1, 0]],
}


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"call": ["clock"], "arguments": []},
        *({"call": call, "arguments": arguments} for call, several in BAD_CALLS.items() for arguments in several),
        launching(VIEW, [VIEW], {}, 0),
        launching([VIEW, 1], [1], {}, 0),
        launching([VIEW, 1], [VIEW], [], 0),
        launching([VIEW, 1], [VIEW], {}, -1),
        launching([VIEW, 1], [VIEW], {}, 10**9),
        launching([VIEW, {"view": []}], [VIEW], {}, 0),
        launching([VIEW, {"complex": [1, 2]}], [VIEW], {}, 0),
        {"call": "launch", "arguments": [["add"], [VIEW, 1], [VIEW], {}, 0]},
        {"call": "run_kernel", "arguments": running()["arguments"][:-1]},
        running(arguments=VIEW),
        running(arguments=[VIEW, 1]),
        running(arguments=[VIEW, ["float32", [1]]]),
        *(running(blocks=blocks) for blocks in ([1, 1], [1, 1, True], [1, 1, 2**62])),
        running(shared=0.0),
        running(stream=-1),
    ],
    ids=lambda message: json.dumps(message)[:60],
)
def test_a_bad_call_is_answered_with_an_error_and_the_next_one_with_its_value(message: Any) -> None:
    with serving(memory_limit=100_000) as (connection, _):
        link = Link(connection)
        put(link, np.zeros(2, "float32"))
        connection.sendall(packed(message))
        size, data = struct.unpack("!II", connection.recv(8, socket.MSG_WAITALL))
        assert "error" in json.loads(connection.recv(size, socket.MSG_WAITALL))
        assert not data
        assert link.memory()["used"] == 512


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


@settings(max_examples=300)
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
def test_no_launch_brings_the_serving_down(op: str, inputs: list[Any], options: dict[str, Any]) -> None:
    machine = LocalMachine("T4", memory_limit=100_000, limits=MachineLimits(elements=1000, flops=10**6))
    put(machine, np.zeros(2, "float32"))
    message = {"call": "launch", "arguments": [op, inputs, [VIEW], options, 0]}
    with contextlib.suppress(ValueError, TypeError, MemoryError):
        process.answer(machine, message, b"")
    assert len(get(machine, View(1, 0, (2,), (4,), "float32"))) == 2
