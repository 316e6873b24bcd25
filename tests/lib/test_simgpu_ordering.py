"""Races between streams: programs that race, each of which is named, and programs that do not, without an alarm."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial, reduce
from itertools import product
from operator import or_
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled import ops, simgpu
from unrolled.ops.lstm import forms
from unrolled.simgpu import cuda, jit, ordering
from unrolled.simgpu.command import StreamRaceError
from unrolled.simgpu.ordering import MOST

cp: Any = simgpu
HOST = np.ones((8, 8), np.float32)


@jit.rawkernel()
def doubled(x: Any, first: Any, last: Any) -> None:
    i = jit.grid(1)
    if i >= first and i < last:
        x[i] += x[i]


@jit.rawkernel()
def copied(x: Any, out: Any, last: Any) -> None:
    i = jit.grid(1)
    if i < last:
        out[i] = x[i]


@jit.rawkernel()
def counted(x: Any) -> None:
    jit.atomic_add(x, 0, np.float32(1))


WRITES: dict[str, Callable[[Any], Any]] = {
    "fill": lambda x: x.fill(1),
    "in place": lambda x: x.__iadd__(1),
    "assignment": lambda x: x.__setitem__(slice(2, 4), 3),
    "upload": lambda x: x.set(HOST),
    "kernel": lambda x: doubled[2, 32](x.ravel(), 0, 64),
}
READS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(),
    "download": lambda x: x.get(),  # the host waits, so nothing races with it that comes later
    "kernel": lambda x: copied[2, 32](x.ravel(), cp.empty(64, "f4"), 64),
}
CONFLICTS = [(WRITES[one], WRITES[other]) for one in WRITES for other in ("fill", "upload", "kernel")]
CONFLICTS += [(write, read) for write in WRITES.values() for read in READS.values()]
CONFLICTS += [(READS[one], write) for one in ("sum", "kernel") for write in WRITES.values()]

Streams = list[Any]
MISSING: dict[str, Callable[[Any, Any, Any], Any]] = {
    "nothing": lambda first, second, third: None,
    "an event that nobody waits for": lambda first, second, third: first.record(),
    "a wait of the first": lambda first, second, third: first.wait_event(second.record()),
    "a wait for a third stream": lambda first, second, third: second.wait_event(third.record()),
    "a wait of a third stream": lambda first, second, third: third.wait_event(first.record()),
    "a host that waits for a third": lambda first, second, third: third.synchronize(),
    "a trace that begins": lambda first, second, third: cp.trace().__enter__(),
}
ENOUGH: dict[str, Callable[[Any, Any, Any], Any]] = {
    "an event": lambda first, second, third: second.wait_event(first.record()),
    "an event by way of a third stream": lambda first, second, third: (
        third.wait_event(first.record()),
        second.wait_event(third.record()),
    ),
    "a host that waits for the event": lambda first, second, third: first.record().synchronize(),
    "a host that waits for the stream": lambda first, second, third: first.synchronize(),
    "a host that waits for the device": lambda first, second, third: cuda.Device().synchronize(),
    "a download behind it": lambda first, second, third: on(first, lambda x: x.get(), cp.empty(1)),
    "an event that the host has seen": lambda first, second, third: seen(first.record(), third),
}
APART = ["default, side", "side, default", "side, other side", "blocking, other blocking", "blocking, side"]
APART += ["side, blocking"]
IN_ORDER = ["default, blocking", "blocking, default", "side, side"]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    simgpu.reset()
    yield
    simgpu.reset()


def named(pair: str) -> Streams:
    """Two streams by name, and a third one that nothing else orders."""
    side, blocking = (lambda: cuda.Stream(non_blocking=True)), cuda.Stream
    found = {"default": cuda.Stream.null, "side": side(), "other side": side()}
    found |= {"blocking": blocking(), "other blocking": blocking()}
    return [found[name] for name in pair.split(", ")] + [side()]


def on(stream: Any, act: Callable[[Any], Any], x: Any) -> Any:
    with stream:
        return act(x)


def seen(event: Any, third: Any) -> None:
    while not event.done:
        third.record()  # the host's clock goes on with each call


def array() -> Any:
    """An array that the device is done with, on memory that it is done with."""
    cuda.Device().synchronize()
    x = cp.zeros((8, 8), np.float32)
    cuda.Device().synchronize()
    return x


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("pair", APART)
def test_a_race_is_named_by_both_lines_and_both_streams(pair: str, missing: str) -> None:
    first, second, third = named(pair)
    for one, other in CONFLICTS[APART.index(pair) % 3 :: 3]:
        x = array()
        with cp.trace() as trace:
            done = on(first, one, x)
            MISSING[missing](first, second, third)
            with pytest.raises(StreamRaceError) as caught:
                on(second, other, x)
        del done
        (fault,) = trace.faults
        assert (fault.kind, fault.line) == ("race between streams", other.__code__.co_firstlineno)
        assert str(caught.value) == str(fault)
        assert fault.other_line == one.__code__.co_firstlineno
        names = [f"stream {stream.number}" if stream.number else "the default stream" for stream in (first, second)]
        here, there = fault.text.split(" what ")
        assert f" on {names[1]} " in here
        assert f" on {names[0]} " in there
        assert f"a wait_event on {names[1]}, for an event that {names[0]} records" in there


@pytest.mark.parametrize(
    ("pair", "enough"), [*product(APART, ENOUGH.values()), *product(IN_ORDER, [*ENOUGH.values(), MISSING["nothing"]])]
)
def test_an_order_is_enough(pair: str, enough: Callable[[Any, Any, Any], Any]) -> None:
    first, second, third = named(pair)
    for one, other in CONFLICTS[::3]:
        x = array()
        done = on(first, one, x)
        enough(first, second, third)
        on(second, other, x)
        del done


PARTS: dict[str, tuple[Any, Any, Any]] = {  # what one stream writes, and what another one may touch, and may not
    "rows": np.s_[:4, 4:, 3:],
    "columns": (np.s_[:, :4], np.s_[:, 4:], np.s_[:, 3:]),
    "every other row": np.s_[::2, 1::2, 1:],
    "every other value": (np.s_[::2, ::2], np.s_[::2, 1::2], np.s_[::2, ::3]),
    "rows from the last on": np.s_[7:3:-1, :4, :5],
    "a row": (2, np.s_[3:, 3], np.s_[:, 3]),
    "all": np.s_[:, :0, :1],
    "rows by their numbers": ([0, 2], [1, 3], [2, 3]),
    "rows and their numbers": ([5, 6], np.s_[:5], np.s_[6:]),
}
MORE: dict[str, tuple[bool, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "kernels": (False, lambda x: doubled[2, 32](x, 0, 32), lambda x: doubled[2, 32](x, 32, 64)),
    "kernels that meet": (True, lambda x: doubled[2, 32](x, 0, 33), lambda x: doubled[2, 32](x, 32, 64)),
    "a kernel that reads": (False, lambda x: x[32:].fill(1), lambda x: copied[2, 32](x, cp.empty(64, "f4"), 32)),
    "a kernel that reads more": (True, lambda x: x[32:].fill(1), lambda x: copied[2, 32](x, cp.empty(64, "f4"), 33)),
    "atomic operations": (False, lambda x: counted[1, 32](x), lambda x: counted[1, 32](x)),
    "an atomic operation and another": (True, lambda x: counted[1, 32](x), lambda x: doubled[2, 32](x, 0, 64)),
    "added to": (False, lambda x: cp.add.at(x, [0], 1), lambda x: cp.add.at(x, [0], 1)),
    "added to, and read": (True, lambda x: cp.add.at(x, [0], 1), lambda x: x[:2].sum()),
    "values in a loop": (False, lambda x: [x[i : i + 1].fill(1) for i in range(4)], lambda x: x[4:].sum()),
    "values in a loop, and one": (True, lambda x: [x[i : i + 1].fill(1) for i in range(4)], lambda x: x[2:].sum()),
    "bytes of a value": (False, lambda x: x.view("i2")[::2].fill(1), lambda x: x.view("i2")[1::2].sum()),
    "columns in a loop": (False, lambda x: [x[i::8].fill(1) for i in range(2)], lambda x: x[2::8].sum()),
    "written, then read": (True, lambda x: (x.fill(1), x.sum()), lambda x: x.sum()),
    "reads": (False, lambda x: x.sum(), lambda x: x.get()),
    "random numbers": (False, lambda x: cp.random.random(3), lambda x: cp.random.random(3)),
}


def both(one: Callable[[Any], Any], other: Callable[[Any], Any], races: bool, flat: bool = False) -> None:
    """Run two programs on two streams, with no order between."""
    x = array().ravel() if flat else array()
    first, second, _ = named("side, other side")
    done = [on(first, one, x)]
    with pytest.raises(StreamRaceError) if races else nullcontext():
        done.append(on(second, other, x))


@pytest.mark.parametrize("name", PARTS)
def test_bytes_decide(name: str) -> None:
    written, apart, meets = PARTS[name]
    for key, races in ((apart, False), (meets, True)):
        both(lambda x: x.__setitem__(written, 1), lambda x, key=key: x.__setitem__(key, 2), races)
        both(lambda x: x.__setitem__(written, 1), lambda x, key=key: x[key].sum(), races)
        both(lambda x: x[written].sum(), lambda x, key=key: x.__setitem__(key, 2), races)


@pytest.mark.parametrize("name", MORE)
def test_what_is_done_decides(name: str) -> None:
    races, one, other = MORE[name]
    both(one, other, races, flat=True)


def graph_of(program: Callable[[], Any], stream: Any) -> Any:
    with stream:
        stream.begin_capture()
        program()
        return stream.end_capture()


def beside_in_a_graph(joined: bool) -> None:
    """A fork in a graph, whose other branch reads what the first goes on to write."""
    x, out = array(), array()
    first, second, _ = named("side, other side")

    def program() -> None:
        x.__iadd__(1)
        second.wait_event(first.record())
        on(second, lambda x: cp.multiply(x, 2, out=out), x)
        if joined:
            first.wait_event(second.record())
        x.__iadd__(1)
        first.wait_event(second.record())

    graph = graph_of(program, first)
    for _ in range(2):
        graph.launch(first)


def graph_beside(ordered: bool, one: Callable[[Any, Any], Any], other: Callable[[Any, Any], Any]) -> None:
    """Two streams, at least one of which launches a graph."""
    x = array()
    first, second, _ = named("side, other side")
    graph = graph_of(lambda: x.__iadd__(1), first)
    done = [on(first, lambda x: one(x, graph), x)]
    if ordered:
        second.wait_event(first.record())
    done.append(on(second, lambda x: other(x, graph), x))


def memory_given_out_again(ordered: bool) -> None:
    x = array()
    side, null, _ = named("side, default")
    done = on(side, lambda x: x.sum(), x)
    if ordered:
        null.wait_event(side.record())
    del x
    done, _ = cp.ones((8, 8), np.float32), done


def default_stream_between(ordered: bool) -> None:
    """A blocking stream waits for what the default stream has waited for, and for nothing that came later."""
    x, y = array(), array()
    first, second, _ = named("blocking, other blocking")
    for early in (True, False):
        if early is ordered:
            on(first, lambda x: x.fill(1), x)
        if early:
            on(first, lambda y: y.fill(1), y)
            y.fill(2)
    on(second, lambda x: x.sum(), x)


def an_event_recorded_again(ordered: bool) -> None:
    """A wait is for the newest record of an event before it."""
    x, event = array(), cuda.Event()
    first, second, _ = named("side, other side")
    first.record(event)
    on(first, lambda x: x.fill(1), x)
    if ordered:
        first.record(event)
    second.wait_event(event)
    on(second, lambda x: x.sum(), x)


def double_buffers(ordered: bool) -> None:
    """A stream fills one of two buffers while another computes on the other one."""
    buffers, total = [array(), array()], array()
    copies, work, _ = named("side, other side")
    free = [work.record(), work.record()]
    for i in range(6):
        if ordered:
            copies.wait_event(free[i % 2])
        on(copies, lambda x: x.set(HOST), buffers[i % 2])
        work.wait_event(copies.record())
        on(work, lambda x: cp.add(total, x, out=total), buffers[i % 2])
        free[i % 2] = work.record()
    work.synchronize()
    assert total[0, 0] == 6


def first_touched_long_ago(ordered: bool) -> None:
    """Many accesses to other parts lie between, but not as many as are kept."""
    x, first = array().ravel(), cuda.Stream(non_blocking=True)
    second = cuda.Stream(non_blocking=True)
    with first:
        for i in range(0, min(64, 2 * MOST), 2):
            x[i : i + 1].fill(1)
    with second:
        x[1 if ordered else 0 :: 64].fill(2)


GRAPHED: list[Callable[[Any, Any], Any]] = [lambda x, graph: graph.launch(), lambda x, graph: x.sum()]
PROGRAMS: list[Any] = [partial(graph_beside, one=GRAPHED[i], other=GRAPHED[k]) for i, k in ((0, 0), (0, 1), (1, 0))]
PROGRAMS += [beside_in_a_graph, memory_given_out_again, an_event_recorded_again, double_buffers]
PROGRAMS += [default_stream_between, first_touched_long_ago]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_with_and_without_their_order(program: Any) -> None:
    program(True)
    simgpu.reset()
    with pytest.raises(StreamRaceError) as caught:
        program(False)
    assert ("of an array that is gone" in str(caught.value)) is (program is memory_given_out_again)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["read", "write", "record", "wait", "host waits", "synchronize", "synchronize all"]),
        st.sampled_from([0, 1, 2, 128, 129]),
        st.integers(0, 8),
        st.integers(1, 4),
    ),
    max_size=60,
)


@settings(max_examples=300)
@given(STEPS)
def test_a_race_is_where_no_path_leads_from_one_access_to_the_other(steps: list[tuple[str, int, int, int]]) -> None:
    order, history = ordering.Order(), ordering.History()
    before: list[int] = []  # for each thing that is done, a bit for each that comes before it
    last: dict[int, int] = {}
    events: list[tuple[ordering.Clock, int]] = [({}, 0)]
    accesses: list[tuple[int, ordering.Touch]] = []
    host = 0

    def node(stream: int, more: int = 0) -> int:
        """Put one more thing on a stream, and return the bits of all up to it."""
        waits = [s for s in last if s == stream or (0 in (s, stream) and max(s, stream) < 128)]
        before.append(reduce(or_, (before[last[s]] | 1 << last[s] for s in waits), host | more))
        last[stream] = len(before) - 1
        return before[-1] | 1 << last[stream]

    for act, stream, low, length in steps:
        clock, event = events[-1 - low % len(events)]
        if act in ("read", "write"):
            touch, done = ordering.Touch(history, 1, act, low, low + length), node(stream)
            races = any(not done >> number & 1 and ordering.conflict(old, touch) for number, old in accesses)
            assert bool(ordering.enter(order, stream, lambda touch=touch: [touch], act, None)) is races
            if races:
                return
            accesses.append((last[stream], touch))
        elif act == "wait":
            ordering.wait(order, clock, stream)
            node(stream, event)
        elif act == "host waits":
            ordering.wait(order, clock, None)
            host |= event
        elif act == "synchronize all":
            ordering.wait_for_all(order)
            host = (1 << len(before)) - 1
        else:
            events.append((ordering.record(order, stream), node(stream)))
            if act == "synchronize":
                ordering.wait(order, events[-1][0], None)
                host |= events[-1][1]


def test_memory_of_another_stream_counts_as_new() -> None:
    side, x = cuda.Stream(non_blocking=True), array()
    with side:
        y = x + 1
    del y
    assert cp.ones((8, 8), np.float32).sum() == 64


@pytest.mark.parametrize("method", ["follow", "join"])
def test_a_side_stream_of_the_library_that_does_not_wait_is_named(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, *weights = (cp.ones(shape, np.float32) for shape in ((3, 2, 5), (16, 5), (16, 4), (16,)))
    ops.lstm(x, [ops.LSTMWeights(*weights)], form="streams")
    monkeypatch.setattr(forms.Beside, method, lambda self: None)
    with pytest.raises(StreamRaceError, match=r"`.*` on .*stream.* what `.*` on .*stream"):
        ops.lstm(x, [ops.LSTMWeights(*weights)], form="streams")
