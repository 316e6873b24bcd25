"""The simulated GPU's machine: results are NumPy's, no view reaches beyond its buffer, and bad commands raise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from simgpu_commands import empty, get, put, view_of

from unrolled.simgpu import operations
from unrolled.simgpu.command import InvalidCommandError, View
from unrolled.simgpu.machine import LocalMachine, MachineLimits

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
    expected = host.copy()
    if op == "add":
        machine.launch("add", [early, backwards], [late])
        expected[2:] = host[:8] + host[7::-1]
    elif op == "fused":
        steps = [["add", [["in", 0], ["in", 1]], None]]
        machine.launch("fused", [early, backwards], [late], {"steps": steps, "results": [["step", 0]]})
        expected[2:] = host[:8] + host[7::-1]
    elif op == "copy":
        machine.launch("copy", [early], [late])
        expected[2:] = host[:8]
    else:
        machine.launch("setitem", [early, put(machine, np.arange(7, -1, -1))], [late], {"axes": [0]})
        expected[2:] = host[7::-1]
    np.testing.assert_array_equal(get(machine, x), expected)


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


@given(views)
@settings(max_examples=400, deadline=None)
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
        places = np.add.outer(
            sum(
                (
                    np.arange(n).reshape((-1,) + (1,) * (len(view.shape) - axis - 1)) * s
                    for axis, (n, s) in enumerate(zip(view.shape, view.strides, strict=True))
                ),
                start=np.zeros(view.shape, int) + view.offset,
            ),
            np.arange(np.dtype(view.dtype).itemsize),
        )
        assert got == bytes(places.astype(np.uint8).tobytes())  # the byte at each place says where it lies
        assert not places.size or 0 <= places.min() <= places.max() < 64
        machine.launch("fill", [1], [view])
    assert get(machine, guards[0]).tobytes() == get(machine, guards[2]).tobytes() == b"\xff" * 64


def bad(**changes: Any) -> View:
    return View(**({"buffer": 1, "offset": 0, "shape": (4,), "strides": (4,), "dtype": "float32"} | changes))


@pytest.mark.parametrize(
    "view",
    [
        bad(buffer=9),
        bad(buffer=True),
        bad(buffer=[1]),
        bad(shape=(5,)),
        bad(offset=1),
        bad(offset=0.0),
        bad(shape=(4, 1)),
        bad(shape=[4]),
        bad(dtype="object"),
        bad(dtype=["float32"]),
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


GOOD = bad()
ROW = bad(shape=(1, 4), strides=(16, 4))
COLUMN = bad(shape=(4, 1), strides=(4, 4))


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "options"),
    [
        ("system", [], [GOOD], {}),
        ("add", [GOOD], [GOOD], {}),
        ("add", [GOOD, "4"], [GOOD], {}),
        ("add", [GOOD, np.float64(1)], [GOOD], {}),
        ("power", [10**100, 10**100], [GOOD], {}),
        ("add", [ROW, COLUMN], [GOOD], {}),
        ("add", [GOOD, 1], [GOOD], {"casting": "evil"}),
        ("add", [GOOD, 1], [GOOD], {"dtype": "object"}),
        ("add", [GOOD, 1], [GOOD], {"signature": ["float32"]}),
        ("sum", [GOOD], [GOOD], {"axis": None}),
        ("sum", [GOOD], [GOOD], {"axis": 7}),
        ("matmul", [GOOD, ROW], [GOOD], {}),
        ("einsum", [GOOD], [GOOD], {"subscripts": "ij->i"}),
        ("einsum", [GOOD], [GOOD], {}),
        ("getitem", [GOOD, GOOD], [GOOD], {"axes": [0]}),
        ("getitem", [GOOD, 0], [GOOD], {"axes": [4]}),
        ("getitem", [GOOD, 0], [GOOD], {}),
        ("setitem", [1.0, 0, 0], [GOOD], {"axes": [0, 0]}),
        ("tril", [GOOD], [GOOD], {}),
        ("concatenate", [GOOD, GOOD], [GOOD], {}),
        ("arange", [], [GOOD], {"start": "0", "step": 1}),
        ("random", [], [GOOD, GOOD], {"method": "random"}),
        ("random", [], [GOOD, GOOD], {"method": "__init__"}),
        ("fused", [GOOD], [GOOD], {"steps": [["eval", ["1"], None]], "results": [["step", 0]]}),
        ("fused", [GOOD], [GOOD], {"steps": [["power", [10**100, 10**100], None]], "results": [["step", 0]]}),
        ("fused", [GOOD], [GOOD], {"steps": [["add", [["step", 0], 1], None]], "results": [["step", 0]]}),
        ("fused", [GOOD], [GOOD], {"steps": [["negative", [["in", 0]], None]] * 100, "results": [["step", 0]]}),
        ("kernel", [GOOD], [GOOD], {"name": "no such kernel"}),
        ("kernel", [GOOD], [GOOD], {}),
    ],
)
def test_a_bad_command_raises_and_changes_nothing(
    op: str, inputs: list[Any], outputs: list[Any], options: dict[str, Any]
) -> None:
    machine = LocalMachine("T4")
    before = put(machine, X[0])
    clock = machine.clock()
    with pytest.raises((ValueError, TypeError)):
        machine.launch(op, inputs, outputs, options)
    assert machine.clock() == clock
    np.testing.assert_array_equal(get(machine, before), X[0])


def test_what_would_take_too_long_is_refused_before_it_begins() -> None:
    machine = LocalMachine("T4", limits=MachineLimits(elements=1000, flops=10_000, operands=4))
    machine.allocate(64)
    wide = View(1, 0, (1000,), (0,), "float32")
    square = View(1, 0, (30, 30), (0, 0), "float32")
    for op, inputs, outputs, options in (
        ("matmul", [square, square], [square], {}),
        ("einsum", [wide, square], [wide], {"subscripts": "a,bc->a"}),
        ("getitem", [wide, View(1, 0, (1000,), (0,), "int64"), 0], [wide], {"axes": [0]}),
        ("setitem", [1.0, View(1, 0, (500,), (0,), "int64")], [View(1, 0, (2, 500), (0, 0), "int8")], {"axes": [0]}),
        ("concatenate", [wide] * 5, [wide], {}),
        ("exp", [View(1, 0, (1001,), (0,), "float32")], [wide], {}),
    ):
        with pytest.raises(InvalidCommandError):
            machine.launch(op, inputs, outputs, options)


def test_the_pool_keeps_blocks_for_arrays_of_the_same_size() -> None:
    machine = LocalMachine("T4")
    first = machine.allocate(1000)
    assert machine.memory() == {"used": 1024, "total": 1024, "peak": 1024, "capacity": machine.memory()["capacity"]}
    second = machine.allocate(1)
    machine.free(first)
    machine.free(first)
    machine.free(999)
    assert [machine.memory()[key] for key in ("used", "total", "peak")] == [512, 1536, 1536]
    machine.allocate(1024)
    assert machine.memory()["total"] == 1536
    machine.free(second)
    machine.free_all()
    machine.reset_peak()
    assert [machine.memory()[key] for key in ("used", "total", "peak")] == [1024, 1024, 1024]


def test_a_gpu_has_no_more_memory_than_its_profile() -> None:
    machine = LocalMachine("A100", memory_limit=10**15)
    assert machine.memory()["capacity"] == 40 * 10**9


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
