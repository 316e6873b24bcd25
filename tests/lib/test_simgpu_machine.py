"""The simulated GPU's machine: NumPy's results, no view beyond its buffer, bad commands; its timeline and traces."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from simgpu_commands import empty, get, put, view_of

from unrolled.simgpu import operations
from unrolled.simgpu.chrome import chrome_events
from unrolled.simgpu.command import InvalidCommandError, View
from unrolled.simgpu.limits import MachineLimits
from unrolled.simgpu.machine import LocalMachine
from unrolled.simgpu.timeline import Timeline
from unrolled.simgpu.trace import Launch, Synchronization, Trace, Transfer, covered

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4)).astype("float32")


@pytest.mark.parametrize("name", sorted(operations.UFUNCS))
def test_every_ufunc_gives_what_numpy_gives(name: str) -> None:
    ufunc = operations.UFUNCS[name]
    hosts = [np.array([[1, 2, 3], [4, 5, 7]], "int32"), np.array([2, 1, 3], "int32")][: ufunc.nin]
    try:
        with np.errstate(all="ignore"):
            expected = ufunc(*hosts)
    except TypeError:  # of dates, or of floats alone
        pytest.skip(f"{name} takes no int32")
    expected = expected if isinstance(expected, tuple) else (expected,)
    machine = LocalMachine("T4")
    outputs = [empty(machine, part.shape, part.dtype.name) for part in expected]
    machine.launch(name, [put(machine, x) for x in hosts], outputs)
    for out, part in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(get(machine, out), part, strict=True)


@pytest.mark.parametrize("op", ["add", "copy", "fused", "setitem"])
def test_an_output_that_overlaps_an_input_gets_what_a_copy_would_have_given(op: str) -> None:
    machine, host = LocalMachine("T4"), np.arange(10, dtype="float64")
    x = put(machine, host)
    early, late = View(x.buffer, 0, (8,), (8,), "float64"), View(x.buffer, 16, (8,), (8,), "float64")
    backwards = View(x.buffer, 7 * 8, (8,), (-8,), "float64")
    fused = {"steps": [["add", [["in", 0], ["in", 1]], None]], "results": [["step", 0]]}
    inputs, options, expected = {
        "add": ([early, backwards], {}, host[:8] + host[7::-1]),
        "fused": ([early, backwards], fused, host[:8] + host[7::-1]),
        "copy": ([early], {}, host[:8]),
        "setitem": ([early, put(machine, np.arange(7, -1, -1))], {"axes": [0]}, host[7::-1]),
    }[op]
    machine.launch(op, inputs, [late], options)
    np.testing.assert_array_equal(get(machine, x), [*host[:2], *expected])


def test_nothing_that_is_raised_depends_on_values() -> None:
    machine = LocalMachine("T4")
    wild = put(machine, np.array([2**62, -(2**62), -1]))
    x, out = put(machine, np.arange(4.0)), empty(machine, (3,), "float64")
    machine.launch("getitem", [x, wild], [out], {"axes": [0]})
    np.testing.assert_array_equal(get(machine, out), [0, 0, 3])
    places = empty(machine, (2,), "int64")
    machine.launch("nonzero", [put(machine, np.zeros(5))], [places])
    machine.launch("nonzero", [put(machine, np.ones(5))], [places])
    np.testing.assert_array_equal(get(machine, places), [0, 1])
    found = empty(machine, (5,), "int64")
    bases, powers = put(machine, np.array([-1, 1, 2, 0, -1])), put(machine, np.array([-3, -2, -1, -1, -2]))
    machine.launch("power", [bases, powers], [found])
    np.testing.assert_array_equal(get(machine, found), [-1, 1, 0, 0, 1])


integers = st.one_of(st.integers(-12, 40), st.integers(-(2**66), 2**66))
views = st.builds(
    lambda offset, axes, dtype: View(2, offset, tuple(n for n, _ in axes), tuple(s for _, s in axes), dtype),
    integers,
    st.lists(st.tuples(st.one_of(st.integers(-1, 5), integers), integers), max_size=4),
    st.sampled_from(["int8", "float32", "complex128", "<f8"]),
)


@settings(max_examples=400)
@given(views)
@example(View(2, 0, (8,), (8,), "float64"))
@example(View(2, 57, (1,), (8,), "float64"))
@example(View(2, -1, (1,), (1,), "int8"))
@example(View(2, 0, (0, 2**62), (1, 1), "int8"))
def test_no_view_reads_or_writes_outside_its_buffer(view: View) -> None:
    machine = LocalMachine("T4", limits=MachineLimits(elements=10_000))
    guards = [put(machine, np.full(64, 255, "uint8")) for _ in range(3)]
    machine.launch("fill", [0], [guards[1]])
    inside = bytes(range(64))
    machine.upload(guards[1], inside)
    try:
        got = machine.download(view)
    except InvalidCommandError:
        pass
    else:
        places = np.array(view.offset)
        for n, step in zip((*view.shape, np.dtype(view.dtype).itemsize), (*view.strides, 1), strict=True):
            places = places[..., None] + np.arange(n) * step
        assert got == places.astype(np.uint8).tobytes()  # the byte at each place says where it lies
        assert not places.size or 0 <= places.min() <= places.max() < 64
        machine.launch("fill", [1], [view])
    assert get(machine, guards[0]).tobytes() == get(machine, guards[2]).tobytes() == b"\xff" * 64


def bad(**changes: Any) -> View:
    return View(**({"buffer": 1, "offset": 0, "shape": (4,), "strides": (4,), "dtype": "float32"} | changes))


@pytest.mark.parametrize(
    "view",
    [
        *(bad(buffer=buffer) for buffer in (9, True, [1])),
        *(bad(shape=shape) for shape in ((5,), (4, 1), [4])),
        *(bad(offset=offset) for offset in (1, 0.0)),
        *(bad(dtype=dtype) for dtype in ("object", ["float32"])),
        bad(shape=(1,) * 40, strides=(4,) * 40),
        bad(shape=(10**12,), strides=(0,)),
    ],
    ids=repr,
)
def test_a_view_that_cannot_be_is_refused(view: View) -> None:
    machine = LocalMachine("T4")
    put(machine, X[0])
    with pytest.raises(InvalidCommandError):
        machine.download(view)
    with pytest.raises(InvalidCommandError):
        machine.launch("fill", [1], [view])


GOOD, ROW, COLUMN = bad(), bad(shape=(1, 4), strides=(16, 4)), bad(shape=(4, 1), strides=(4, 4))


def fusing(*steps: Any) -> tuple[str, list[Any], dict[str, Any]]:
    return "fused", [GOOD], {"steps": [*steps], "results": [["step", 0]]}


@pytest.mark.parametrize(
    ("op", "inputs", "options"),
    [
        ("system", [], {}),
        ("power", [10**100, 10**100], {}),
        *(("add", inputs, {}) for inputs in ([GOOD], [GOOD, "4"], [GOOD, np.float64(1)], [ROW, COLUMN])),
        *(
            ("add", [GOOD, 1], o)
            for o in ({"casting": "evil"}, {"signature": ["float32"]}, {"signature": ["object"] * 3})
        ),
        *(("sum", [GOOD], {"axis": axis}) for axis in (None, 7)),
        ("matmul", [GOOD, ROW], {}),
        *(("einsum", [GOOD], options) for options in ({"subscripts": "ij->i"}, {})),
        ("getitem", [GOOD, GOOD], {"axes": [0]}),
        *(("getitem", [GOOD, 0], options) for options in ({"axes": [4]}, {})),
        ("setitem", [1.0, 0, 0], {"axes": [0, 0]}),
        ("tril", [GOOD], {}),
        ("concatenate", [GOOD, GOOD], {}),
        ("arange", [], {"start": "0", "step": 1}),
        *(("random", [], {"method": method}) for method in ("random", "__init__")),
        fusing(["eval", ["1"], None]),
        fusing(["power", [10**100, 10**100], None]),
        fusing(["add", [["step", 0], 1], None]),
        fusing(*[["negative", [["in", 0]], None]] * 100),
        *(("kernel", [GOOD], options) for options in ({"name": "no such kernel"}, {})),
    ],
)
def test_a_bad_command_raises_and_changes_nothing(op: str, inputs: list[Any], options: dict[str, Any]) -> None:
    machine = LocalMachine("T4")
    before = put(machine, X[0])
    clock = machine.clock()
    with pytest.raises((ValueError, TypeError)):
        machine.launch(op, inputs, [GOOD] * (2 if op == "random" else 1), options)
    assert machine.clock() == clock
    np.testing.assert_array_equal(get(machine, before), X[0])


def test_what_would_take_too_long_is_refused_before_it_begins() -> None:
    machine = LocalMachine("T4", limits=MachineLimits(elements=1000, flops=10_000, operands=4))
    machine.allocate(64)

    def repeated(*shape: int, dtype: str = "float32") -> View:
        return View(1, 0, shape, (0,) * len(shape), dtype)

    wide, square = repeated(1000), repeated(30, 30)
    for op, inputs, output, options in (
        ("matmul", [square, square], square, {}),
        ("einsum", [wide, square], wide, {"subscripts": "a,bc->a"}),
        ("getitem", [wide, repeated(1000, dtype="int64"), 0], wide, {"axes": [0]}),
        ("setitem", [1.0, repeated(500, dtype="int64")], repeated(2, 500, dtype="int8"), {"axes": [0]}),
        ("concatenate", [wide] * 5, wide, {}),
        ("exp", [repeated(1001)], wide, {}),
    ):
        with pytest.raises(InvalidCommandError):
            machine.launch(op, inputs, [output], options)


def test_the_pool_keeps_blocks_for_arrays_of_the_same_size() -> None:
    def sizes() -> list[int]:
        return [machine.memory()[key] for key in ("used", "total")]

    machine = LocalMachine("T4")
    first = machine.allocate(1000)
    assert machine.memory().keys() == {"used", "total", "capacity"}
    assert sizes() == [1024, 1024]
    second = machine.allocate(1)
    for buffer in (first, first, 999):
        machine.free(buffer)
    assert sizes() == [512, 1536]
    machine.allocate(1024)
    assert machine.memory()["total"] == 1536
    machine.free(second)
    machine.free_all()
    assert sizes() == [1024, 1024]
    assert LocalMachine("A100", memory_limit=10**15).memory()["capacity"] == 40 * 10**9, "no more than the profile's"


def test_upload_and_download_keep_to_any_strides() -> None:
    machine = LocalMachine("T4")
    whole = put(machine, np.zeros((4, 6), "int16"))
    part = View(whole.buffer, 22, (2, 3), (12, -4), "int16")
    machine.upload(part, np.array([[1, 2, 3], [4, 5, 6]], "int16").tobytes())
    expected = np.zeros((4, 6), "int16")
    expected.reshape(-1)[[11, 9, 7, 17, 15, 13]] = [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(get(machine, whole), expected)
    np.testing.assert_array_equal(get(machine, part), [[1, 2, 3], [4, 5, 6]])
    with pytest.raises(InvalidCommandError):
        machine.upload(part, b"123")
    assert view_of(expected, whole.buffer) == whole


LARGE = (1000, 1000)


def launches(machine: LocalMachine, view: View, count: int, stream: int = 0) -> None:
    for _ in range(count):
        machine.launch("exp", [view], [view], {}, stream)


actions = st.lists(
    st.one_of(
        st.tuples(st.just("launch"), st.integers(0, 3), st.sampled_from([10, 1000, 10**5])),
        st.tuples(st.sampled_from(["upload", "enqueue", "download"]), st.integers(0, 3), st.sampled_from([10, 10**5])),
        st.tuples(st.just("synchronize"), st.sampled_from([None, 0, 1, 2]), st.just(0)),
        st.tuples(st.sampled_from(["record", "hold"]), st.integers(0, 3), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=150)
@given(actions)
def test_laws_of_time(steps: list[tuple[str, Any, int]]) -> None:
    machine = LocalMachine("H200")
    buffers = [machine.allocate(4 * 10**5) for _ in range(4)]  # one for each stream: no two of them race
    number = machine.start_trace()
    events: list[int] = []
    ends: dict[int, float] = {}
    clock = machine.clock()
    for action, stream, size in steps:
        view = View(buffers[stream or 0], 0, (size,), (4,), "float32")
        if action == "launch":
            machine.launch("add", [view, 1], [view], {}, stream)
        elif action in ("upload", "enqueue"):
            machine.upload(view, bytes(4 * size), stream, blocking=action == "upload")
        elif action == "download":
            machine.download(view, stream)
        elif action == "synchronize":
            machine.synchronize(stream)
        elif action == "record":
            events.append(machine.record(stream))
        elif events:
            machine.wait(events[-1], stream)
        assert machine.clock() >= clock
        clock = machine.clock()
    trace = machine.stop_trace(number)
    work = sorted([*trace.launches, *trace.transfers], key=lambda event: event.issued)
    default_end = 0.0
    for event in work:
        assert event.issued + event.call <= event.start < event.end  # never before the host has asked
        assert event.start >= ends.get(event.stream, 0.0)  # a stream is in order
        assert event.start >= (max(ends.values(), default=0.0) if event.stream == 0 else default_end)
        ends[event.stream] = event.end
        default_end = event.end if event.stream == 0 else default_end
    for transfer in trace.transfers:
        later = [event.issued for event in work if event.issued > transfer.issued]
        assert not transfer.blocking or all(issued >= transfer.end for issued in later)
    for wait in trace.synchronizations:
        assert wait.start <= wait.end <= trace.end
    machine.synchronize()
    assert machine.clock() >= max([event.end for event in work], default=0.0)
    assert 0 <= trace.waiting <= trace.end - trace.start
    assert trace.host_seconds >= -1e-12
    assert -1e-12 <= trace.idle <= trace.seconds
    assert trace.seconds >= trace.device_seconds - 1e-12


def test_latencies_of_two_streams_overlap() -> None:
    timeline = Timeline()
    assert timeline.enqueue(1, 5.0, 1.0, "compute") == (0.0, 5.0)
    assert timeline.enqueue(2, 5.0, 1.0, "compute") == (0.0, 5.0)
    assert timeline.enqueue(3, 5.0, 5.0, "compute") == (0.0, 7.0)  # the engine has 2 s of others' work
    assert timeline.enqueue(4, 5.0, 5.0, "to host") == (0.0, 5.0)  # an engine of its own
    assert timeline.enqueue(0, 1.0, 1.0, "compute") == (7.0, 8.0)  # the default stream waits for all
    assert timeline.enqueue(4, 1.0, 0.0, "compute") == (8.0, 9.0)  # and all for it


def test_events_order_streams_and_measure_time() -> None:
    machine = LocalMachine("T4")
    view, other = empty(machine, LARGE), empty(machine, (10,))
    machine.synchronize()
    first = machine.record(1)
    launches(machine, view, 3, stream=1)
    last, number = machine.record(1), machine.start_trace()
    machine.wait(last, 2)
    launches(machine, other, 1, stream=2)
    with pytest.raises(RuntimeError, match="not ready"):
        machine.elapsed(first, last)
    before = machine.clock()
    machine.wait(last, None)
    trace = machine.stop_trace(number)
    assert trace.launches[0].start >= trace.synchronizations[0].end > before
    assert trace.synchronizations[0].cause == "event"
    assert machine.elapsed(first, last) == -machine.elapsed(last, first) > 0
    for unknown in (lambda: machine.elapsed(first, 77), lambda: machine.record(256)):
        with pytest.raises(InvalidCommandError):
            unknown()


def known_trace() -> Trace:
    machine = LocalMachine("H200")
    x = put(machine, [[1.0, 2.0], [3.0, 4.0]])
    number = machine.start_trace()
    y = empty(machine, (2, 2), "float64")
    machine.launch("add", [x, 1.0], [y])
    machine.launch("add", [x, x], [y], {}, 1)
    machine.launch("exp", [y], [y])
    machine.upload(x, bytes(32), blocking=False)
    get(machine, y)
    machine.free(y.buffer)
    machine.synchronize()
    return machine.stop_trace(number)


def test_the_sums_are_those_of_the_events() -> None:
    trace = known_trace()
    assert [event.op for event in trace.launches] == ["add", "add", "exp"]
    assert [event.bytes_read for event in trace.launches] == [32, 64, 32]
    assert [event.bytes_written for event in trace.launches] == [32] * 3
    assert trace.bytes == 32 + 64 + 32 + 3 * 32
    assert trace.flops == sum(event.flops for event in trace.launches) > 3 * 4
    assert sum(event.nbytes for event in trace.transfers) == 64
    assert [(event.direction, event.blocking) for event in trace.transfers] == [("to device", False), ("to host", True)]
    assert sum(event.nbytes for event in trace.allocations if not event.freed) == 32
    assert [event.freed for event in trace.allocations] == [False, True]
    assert len(trace.synchronizations) == 1  # a download counts once: as a transfer
    assert len(trace) == 3 + 2 + 2 + 1
    by_op = trace.by_op()
    assert {op: sums.launches for op, sums in by_op.items()} == {"add": 2, "exp": 1}
    seconds = sum(event.seconds for event in trace.launches)
    for name, of_all in (("seconds", seconds), ("bytes", trace.bytes), ("flops", trace.flops)):
        assert sum(getattr(sums, name) for sums in by_op.values()) == pytest.approx(of_all)
    assert (trace.launches[0].shape, trace.launches[0].dtype) == ((2, 2), "float64")


def test_waiting_is_all_of_the_hosts_time_that_it_does_not_work() -> None:
    machine = LocalMachine("T4")
    view = empty(machine, LARGE)
    machine.synchronize()
    number = machine.start_trace()
    launches(machine, view, 4)
    machine.download(view)
    launches(machine, view, 2)
    machine.synchronize()
    trace = machine.stop_trace(number)
    host = machine.profile.host
    assert trace.host_seconds == pytest.approx(6 * host["ufunc"] + host["download"] + host["synchronize"])
    assert trace.seconds == pytest.approx(trace.host_seconds + trace.waiting)


def test_a_trace_holds_what_happened_while_it_was_open() -> None:
    machine = LocalMachine("T4", limits=MachineLimits(events=5, traces=2))
    view = empty(machine, (3,))
    outer = machine.start_trace()
    launches(machine, view, 1)
    inner = machine.start_trace()
    with pytest.raises(InvalidCommandError, match="2 open traces"):
        machine.start_trace()
    launches(machine, view, 2)
    assert len(machine.stop_trace(inner).launches) == 2
    assert len(machine.stop_trace(outer).launches) == 3
    with pytest.raises(InvalidCommandError):
        machine.stop_trace(outer)
    full = machine.start_trace()
    launches(machine, view, 5)
    with pytest.raises(InvalidCommandError, match="more than 5 events"):
        launches(machine, view, 1)
    assert len(machine.stop_trace(full)) == 5


def test_where_names_the_line_that_called() -> None:
    machine = LocalMachine("T4")
    view, number = empty(machine, (3,)), machine.start_trace()
    line = test_where_names_the_line_that_called.__code__.co_firstlineno + 4
    machine.launch("exp", [view], [view])
    machine.download(view)
    trace = machine.stop_trace(number)
    assert [event.where for event in (*trace.launches, *trace.transfers)] == [f"{__file__}:{line + n}" for n in (0, 1)]


def test_json_and_back_is_the_same_trace() -> None:
    trace = known_trace()
    assert Trace.from_json(trace.to_json()) == trace
    assert json.loads(trace.to_json())["profile"] == "H200"


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", "null", '{"format": 1}', "[" * 100_000),
        known_trace().to_json().replace('"op"', '"ob"', 1),
        known_trace().to_json().replace('"end"', '"and"'),
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_trace_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no trace"):
        Trace.from_json(text)


def test_time_that_intervals_cover() -> None:
    assert covered([]) == 0
    assert covered([(0, 1), (3, 5), (4, 6), (4, 4.5)]) == 4


def test_chrome_events_have_a_row_for_the_host_and_one_for_each_stream() -> None:
    launch = Launch("add", 1, 1.0, 0.1, 1.2, 1.5, 8, 4, 1, (1,), "float32", "net.py:3")
    transfer = Transfer("to host", 8, 0, 2.0, 0.1, 2.1, 2.4, True, "get", None)
    wait = Synchronization(1.1, 1.5, "synchronize")
    events = chrome_events(Trace("T4", 1.0, 3.0, 3.0, [launch], [transfer], [], [wait]))
    names = {(e["tid"], e["args"]["name"]) for e in events if e["ph"] == "M"}
    assert names == {(0, "T4 (modelled)"), (1, "host"), (2, "stream 0"), (3, "stream 1")}
    drawn = [(e["tid"], e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    assert drawn == [
        (1, "add", 0.0, 1e5),
        (1, "wait: synchronize", 1e5, 4e5),
        (3, "add", 2e5, 3e5),
        (1, "copy to host", 1e6, 4e5),
        (2, "copy to host", 1.1e6, 3e5),
    ]
    json.dumps(events)
    device = next(e for e in events if e["ph"] == "X" and e["tid"] == 3)
    assert device["args"]["where"] == "net.py:3"
    assert device["args"]["bytes_read"] == 8
