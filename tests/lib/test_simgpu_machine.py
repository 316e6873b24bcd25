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
        *(("add", [GOOD, 1], o) for o in ({"casting": "evil"}, {"dtype": "object"}, {"signature": ["float32"]})),
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
        return [machine.memory()[key] for key in ("used", "total", "peak")]

    machine = LocalMachine("T4")
    first = machine.allocate(1000)
    assert machine.memory().keys() == {"used", "total", "peak", "capacity"}
    assert sizes() == [1024, 1024, 1024]
    second = machine.allocate(1)
    for buffer in (first, first, 999):
        machine.free(buffer)
    assert sizes() == [512, 1536, 1536]
    machine.allocate(1024)
    assert machine.memory()["total"] == 1536
    machine.free(second)
    machine.free_all()
    machine.reset_peak()
    assert sizes() == [1024, 1024, 1024]
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
