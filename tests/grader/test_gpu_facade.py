"""What a worker may do with the judge's simulated GPU, and how places on it travel. No process is started here."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from characters import CHARACTERS
from unrolled import simgpu
from unrolled.checks.gpu import Stray, connected
from unrolled.simgpu.command import InvalidCommandError, OutOfMemoryError, View
from unrolled.simgpu.machine import LocalMachine
from unrolled_grader.box import gpu, wire
from unrolled_grader.box.gpu import Facade
from unrolled_grader.box.wire import WireError
from unrolled_grader.box.worker import RemoteMachine


@pytest.fixture
def machine() -> LocalMachine:
    return LocalMachine("T4")


@pytest.fixture
def facade(machine: LocalMachine) -> Facade:
    return Facade(machine)  # type: ignore[arg-type]


def place(buffer: int, size: int = 4) -> View:
    return View(buffer, 0, (size,), (4,), "float32")


def test_a_worker_reaches_its_own_and_what_it_was_given(facade: Facade, machine: LocalMachine) -> None:
    with connected(machine):
        given, hidden = simgpu.ones(4, "f4"), simgpu.ones(4, "f4")
        facade.give(given)
        own = facade.do("allocate", 16)
        facade.do("launch", "add", [given.as_view(), 1], [place(own)], {}, 0)
        assert np.frombuffer(facade.do("download", place(own), 0).tobytes(), "f4").tolist() == [2, 2, 2, 2]
        out_of_reach = hidden.as_view()
        for command in (
            ("download", out_of_reach, 0),
            ("upload", out_of_reach, np.zeros(16, np.uint8), 0, True),
            ("launch", "copy", [out_of_reach], [place(own)], {}, 0),
            ("launch", "copy", [place(own)], [out_of_reach], {}, 0),
        ):
            with pytest.raises(InvalidCommandError, match="does not exist"):
                facade.do(*command)
        with pytest.raises(InvalidCommandError, match="of a buffer with 16"):
            facade.do("download", place(own, 5), 0)


def test_it_frees_its_own_alone(facade: Facade, machine: LocalMachine) -> None:
    with connected(machine):
        given = simgpu.ones(4, "f4")
        facade.give(given)
        own = facade.do("allocate", 16)
        facade.do("clock", freed=[own, given.as_view().buffer, 999, -1])
        assert simgpu.asnumpy(given).tolist() == [1, 1, 1, 1]
        with pytest.raises(InvalidCommandError, match="does not exist"):
            facade.do("download", place(own), 0)


def test_traces_and_events_of_the_judge_are_not_its(facade: Facade, machine: LocalMachine) -> None:
    event, number = machine.record(), machine.start_trace()
    for command in (("stop_trace", number), ("elapsed", event, event), ("wait", event, None), ("stop_trace", True)):
        with pytest.raises(InvalidCommandError):
            facade.do(*command)
    own = facade.do("start_trace")
    first, last = facade.do("record", 0), facade.do("record", 0)
    assert facade.do("elapsed", first, last) >= 0
    assert json.loads(facade.do("stop_trace", own))
    assert machine.stop_trace(number).launches == []


@pytest.mark.parametrize(
    "command",
    [
        "use",
        "free",
        "free_all",
        "reset_peak",
        "close",
        "profile",
        "_call",
        "__class__",
        "machine",
        "check",
        "",
        None,
        5,
    ],
)
def test_nothing_else_is_a_command(command: Any, facade: Facade) -> None:
    with pytest.raises(InvalidCommandError, match="there is no command"):
        facade.do(command)


def test_limits(facade: Facade, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutOfMemoryError, match="while a check runs"):
        facade.do("allocate", gpu.MEMORY + 1)
    buffer = facade.do("allocate", gpu.MEMORY)
    with pytest.raises(OutOfMemoryError):
        facade.do("allocate", 1)
    facade.do("clock", freed=[buffer])
    small = facade.do("allocate", 4)
    wide = View(small, 0, (2**13, 2**13), (0, 0), "float32")
    with pytest.raises(InvalidCommandError, match="are fetched at a time"):
        facade.do("download", wide, 0)
    facade.array(wide)
    with pytest.raises(InvalidCommandError, match="bytes at a time"):
        facade.array(wide)
    facade.begin()
    facade.array(wide)
    facade.begin()
    for _ in range(gpu.ARRAYS):
        facade.array(place(small, 1))
    with pytest.raises(InvalidCommandError, match="arrays at a time"):
        facade.array(place(small, 1))
    with pytest.raises(InvalidCommandError, match="characters"):
        facade.do("launch", "fill", [1], [place(small, 1)], {"x": "x" * gpu.LAUNCH}, 0)
    monkeypatch.setattr(gpu, "COMMANDS", 8)
    facade.do("clock")
    with pytest.raises(InvalidCommandError, match="more than 8 commands"):
        facade.do("clock")


def test_errors_that_could_tell_values_come_to_an_end(facade: Facade) -> None:
    """A command that fails for some values says one bit of them. A hundred bits a call are no data."""
    for _ in range(gpu.FAILURES):
        with pytest.raises(InvalidCommandError, match="does not exist"):
            facade.do("download", place(7), 0)
    with pytest.raises(InvalidCommandError, match="in one call failed"):
        facade.do("clock")


@pytest.mark.parametrize("argument", [object(), {1: 2}, b"x", {1, 2}, Stray()])
def test_what_is_no_plain_data_goes_no_further(argument: Any, facade: Facade) -> None:
    own = facade.do("allocate", 4)
    with pytest.raises(InvalidCommandError):
        facade.do("launch", "fill", [argument], [place(own, 1)], {}, 0)
    with pytest.raises(InvalidCommandError):
        facade.do("launch", "fill", [1], [place(own, 1)], {"x": argument}, 0)


# From the worker's side


def test_the_front_end_works_through_questions(facade: Facade) -> None:
    def ask(number: int, method: str, positional: Any, named: Any) -> dict[str, Any]:
        assert (number, method) == (3, "do")
        try:
            return {"value": facade.do(*positional, **named)}
        except Exception as error:
            return {"refused": f"{type(error).__name__}: {error}"}

    with connected(RemoteMachine(ask, 3, "T4")):
        x = simgpu.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
        assert simgpu.asnumpy(x @ x.T + 1j).tolist() == [[5 + 1j, 14 + 1j], [14 + 1j, 50 + 1j]]
        with simgpu.cuda.Stream(), pytest.raises(MemoryError, match="Out of memory"):
            simgpu.empty(2**40)
        with pytest.raises(ValueError, match="does not exist"):
            simgpu.asnumpy(simgpu.ndarray.from_view(place(99)))
        assert simgpu.clock() > 0
        assert simgpu.get_default_memory_pool().used_bytes() > 0


# On the wire

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(CHARACTERS, max_size=8),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(CHARACTERS, max_size=8), inner, max_size=3),
    max_leaves=20,
)
WHOLE = st.integers(-3, 2**70)
NEAR = st.tuples(
    WHOLE, WHOLE, st.lists(WHOLE, max_size=4), st.lists(WHOLE, max_size=4), st.sampled_from(["float32", "O", "V99"])
).map(list)


def nothing(offset: int, size: int) -> bytearray:
    return bytearray(size)


def test_a_place_comes_back_as_it_was() -> None:
    view = View(3, 8, (2, 5), (20, -4), "float32")
    coded = json.loads(json.dumps(wire.encode({"x": [view]}, lambda array: 0)))
    assert wire.decode(coded, nothing, gpu=lambda found: found) == {"x": [view]}
    with pytest.raises(WireError):
        wire.decode(coded, nothing)


def test_arrays_of_another_gpu_are_strays() -> None:
    array = simgpu.ones(3)
    assert wire.encode(array, lambda array: 0) == {"object": "ndarray"}
    coded = wire.encode((array,), lambda array: 0, lambda value: Stray() if value is array else None)
    (found,) = wire.decode(coded, nothing)
    assert isinstance(found, Stray)


@given(JSON | NEAR)
@settings(max_examples=300, deadline=None)
def test_what_is_no_place_is_an_error_or_refused(content: Any) -> None:
    facade = Facade(LocalMachine("T4"))  # type: ignore[arg-type]

    def array(view: View) -> Any:
        with pytest.raises(InvalidCommandError):
            facade.array(view)

    with suppress(WireError):
        wire.decode({"gpu": content}, nothing, gpu=array)
