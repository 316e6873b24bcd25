"""What a worker may have the judge's simulated GPU do with a kernel of its own. No process is started here."""

from __future__ import annotations

import gc
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_gpu_facade import JSON, NEAR, nothing

from characters import CHARACTERS
from unrolled import simgpu
from unrolled.checks.gpu import connected
from unrolled.simgpu import jit
from unrolled.simgpu.command import InvalidCommandError, View
from unrolled.simgpu.machine import LocalMachine
from unrolled.simgpu.process import Link, serve
from unrolled_grader.box import gpu, wire
from unrolled_grader.box.gpu import Facade
from unrolled_grader.box.worker import RemoteMachine


@pytest.fixture(scope="module")
def link() -> Iterator[Link]:
    """A machine at the other end of a socket, as the judge's is."""
    here, there = socket.socketpair()
    thread = threading.Thread(target=serve, args=(there, "T4", 2**24), daemon=True)
    thread.start()
    here.settimeout(20)
    with here:
        yield Link(here)
    thread.join(20)


@pytest.fixture
def facade(link: Link) -> Facade:
    link.use("T4")
    return Facade(link)  # type: ignore[arg-type]


ONE = "def one(y):\n    y[0] = 1.0\n"


def order(*arguments: Any, source: str = ONE, **constants: Any) -> tuple[Any, ...]:
    program = {"source": source, "first_line": 1, "constants": {"jit": {"name": "jit"}, **constants}}
    return "run_kernel", program, list(arguments), [1, 1, 1], [1, 1, 1], 0, 0


def test_a_kernel_reaches_what_the_worker_may_reach_and_nothing_else(facade: Facade, link: Link) -> None:
    with connected(link):
        given_, hidden = simgpu.zeros(4, "f4"), simgpu.zeros(4, "f4")
        place = facade.give(given_)
        facade.do(*order(place))
        facade.do(*order(replace(place, offset=4, shape=(3,))))
        assert given_.get().tolist() == [1, 1, 0, 0]
        for view in (hidden.as_view(), replace(place, offset=4), replace(place, buffer=99)):
            with pytest.raises(InvalidCommandError):
                facade.do(*order(view))
            with pytest.raises(InvalidCommandError):
                facade.do(*order(place, view, source="def k(y, x):\n    y[0] = x[0]"))
        assert hidden.get().tolist() == [0] * 4


def test_a_report_and_a_fault_come_as_text(facade: Facade) -> None:
    buffer = facade.do("allocate", 16)
    view = View(buffer, 0, (4,), (4,), "float32")
    assert json.loads(facade.do(*order(view)))["report"]["lines"][0]["writes"] == 1
    told = json.loads(facade.do(*order(view, source="def k(y):\n    y[4] = 1.0")))
    assert told["fault"]["index"] == [4]
    assert told["refused"] is False


def test_faults_count_as_failures(facade: Facade, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tells an index, which may be a number of the judge's."""
    monkeypatch.setattr(gpu, "FAILURES", 3)
    view = View(facade.do("allocate", 16), 0, (4,), (4,), "float32")
    for _ in range(3):
        facade.do(*order(view, source="def k(y):\n    y[4] = 1.0"))
    with pytest.raises(InvalidCommandError, match="in one call failed"):
        facade.do(*order(view))


def test_what_is_reported_in_a_call_has_an_end(facade: Facade, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "LINES", 50)
    view = View(facade.do("allocate", 16), 0, (4,), (4,), "float32")
    for _ in range(6):
        facade.do(*order(view, source="def k(y):\n" + "    y[0] = 1.0\n" * 8))
    with pytest.raises(InvalidCommandError, match="more than 50 lines of kernels in one call"):
        facade.do(*order(view))


def alive() -> int:
    """Return how many objects of the simulated GPU and nodes of syntax trees there are, once garbage is collected."""
    gc.collect()
    makers = (each if isinstance(each, FunctionType) else type(each) for each in gc.get_objects())
    return sum(str(maker.__module__).startswith(("unrolled.simgpu", "ast")) for maker in makers)


def test_many_kernels_leave_nothing_behind() -> None:
    facade = Facade(LocalMachine("T4"))  # type: ignore[arg-type]
    view = View(facade.do("allocate", 16), 0, (4,), (4,), "float32")

    def run(numbers: range) -> None:
        for number in numbers:
            facade.do(*order(view, source=f"def k{number}(y):\n    v{number} = {number}.5\n    y[0] = v{number}\n"))

    run(range(40))
    before = alive()
    run(range(40, 140))
    assert alive() - before < 100  # each kernel has several; bytes would count what other threads do


# From the worker's side


@jit.rawkernel()
def scaled(y: Any, x: Any, by: Any) -> None:
    i = jit.grid(1)  # type: ignore[attr-defined]
    if i < x.size:
        y[i] = x[i] * by


@jit.rawkernel()
def far(y: Any) -> None:
    y[y.size] = 0.0


@jit.rawkernel()
def refused(y: Any) -> None:
    y = [1 for i in y]


def test_the_front_end_works_through_questions(facade: Facade) -> None:
    def ask(number: int, method: str, positional: Any, named: Any) -> dict[str, Any]:
        coded = json.loads(json.dumps(wire.encode([list(positional), dict(named)], nothing_put)))
        positional, named = wire.decode(coded, nothing, gpu=lambda view: view)
        try:
            return {"value": facade.do(*positional, **named)}
        except Exception as error:
            return {"refused": f"{type(error).__name__}: {error}"}

    with connected(RemoteMachine(ask, 3, "T4")):
        x, y = simgpu.ones(70, "f4"), simgpu.zeros(70, "f4")
        scaled[3, 32](y, x, np.float32(2.5))
        assert simgpu.clock() > 0
        assert scaled.report is not None
        assert (scaled.report.blocks, scaled.report.total.read_sectors) == (3, 9)
        with pytest.raises(jit.KernelFault, match="out of bounds") as caught:
            far[1, 1](y)
        assert caught.value.fault.index == (70,)
        with pytest.raises(jit.CUDADriverError):
            far[0, 1](y)
        with pytest.raises(ValueError, match="a comprehension has no meaning"):
            refused[1, 1](y)


def nothing_put(array: Any) -> int:
    return 0


# What no front end sends

LINES = """\
def k(y):
def k(y, a):
    y[0] = 1.0
    y[a] = y[a + 1]
    while y[0] < 9:
        y[0] += 1
    for i in range(a):
        jit.syncthreads()
    s = jit.shared_memory(cp.float32, a)
    s[0] = a
    if y[0]:
        return
    a = (a, a)
    jit.atomic_add(y, 0, a)"""
LINE = st.sampled_from(LINES.splitlines()) | st.text(CHARACTERS, max_size=20)
SOURCES = st.lists(LINE, max_size=5).map(lambda lines: "\n".join(["def k(y, a):", *lines]))
CONSTANTS = st.sampled_from([{"name": "jit"}, {"type": "float32"}, {"number": 3}])
VALID: dict[str, Any] = {
    "program": order(source="def k(y, a):\n    y[a] = 1.0")[1],
    "arguments": [View(1, 0, (4,), (4,), "float32"), ["int32", 3]],
    "grid": [1, 1, 1],
    "block": [2, 1, 1],
    "shared": 0,
    "stream": 0,
}
PLACES = NEAR.map(lambda content: suppressed(lambda: wire.decode({"gpu": content}, nothing, gpu=lambda view: view)))
NUMBERS = st.tuples(st.sampled_from(["int32", "float32", "bool", "O"]), st.integers(-5, 70) | st.floats()).map(list)
OTHERS = {
    "program": st.fixed_dictionaries(
        {"source": st.just("def k(y, a):\n    y[a]"), "first_line": JSON, "constants": JSON}
    )
    | st.dictionaries(st.sampled_from(["a", "y", "jit"]), CONSTANTS | JSON).map(lambda names: order(**names)[1]),
    "arguments": st.lists(PLACES | NUMBERS | JSON, min_size=2, max_size=2),
    "grid": st.lists(st.integers(-1, 2**64), min_size=3, max_size=3),
    "block": st.lists(st.sampled_from([-1, 1, 2, 33, 2000]), min_size=3, max_size=3),
}


def suppressed(make: Any) -> Any:
    with suppress(wire.WireError):
        return make()


def survives(link: Link, **order: Any) -> None:
    """Give the order and see that the machine goes on, whatever the worker is told."""
    link.use("T4")
    facade = Facade(link)  # type: ignore[arg-type]
    facade.do("allocate", 16)
    with suppress(Exception):
        facade.do("run_kernel", *order.values())
    assert len(facade.do("download", View(1, 0, (4,), (4,), "float32"), 0)) == 16


def test_the_valid_order_is_taken(facade: Facade) -> None:
    facade.do("allocate", 16)
    assert "report" in facade.do("run_kernel", *(VALID | {"block": [1, 1, 1]}).values())


@given(st.data(), st.sampled_from([*VALID]))
@settings(max_examples=150, deadline=None)
def test_no_order_brings_the_machine_down(link: Link, data: st.DataObject, name: str) -> None:
    survives(link, **{**VALID, name: data.draw(OTHERS.get(name, JSON) | JSON)})


@given(SOURCES)
@settings(max_examples=150, deadline=None)
def test_no_source_brings_the_machine_down(link: Link, source: str) -> None:
    names = {"cp": {"name": "cupy"}, "range": {"name": "builtins.range"}}
    survives(link, **{**VALID, "program": order(source=source, **names)[1]})
