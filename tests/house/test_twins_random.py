"""benchmarks/twins_random.py: the simulated GPU against itself differs nowhere; planted faults are found and shrunk."""

import re
import sys
import time
from types import ModuleType

import numpy as np
import pytest

from unrolled import simgpu
from unrolled.simgpu.functions import UFUNCS
from unrolled.simgpu.lockstep.arithmetic import FUNCTIONS
from unrolled.simgpu.lockstep.builtins import KNOWN
from unrolled.simgpu.reductions import REDUCTIONS
from unrolled.simgpu.views import VIEWS

_KINDS = "float16 float32 float64 complex64 complex128 int8 int16 int32 int64 uint8 uint16 uint32 uint64"
NOT_DRAWN = {"dtype", "newaxis", "bool_", "intp", "inf", "nan", *_KINDS.split()}
"""NumPy's own objects: dtypes are drawn by their names."""
NOT_IN_KERNELS = {"blockDim", "blockIdx", "gridDim"}
"""One block does not tell them apart."""


LARGEST = np.finfo(float).max


@pytest.fixture
def twins(program):
    """The search as a module."""
    return program("twins_random")


def test_the_simulated_gpu_does_not_differ_from_itself(twins):
    for chunk in range(4):
        found = twins.search(1, chunk, 10, ["unrolled.simgpu"] * 2, time.time() + 600)
        assert (found.differences, found.programs) == ([], twins.CHUNK)


def test_what_differs_on_purpose_has_its_reason(twins):
    program = (twins.Line("a = cp.arange(5)"), twins.Line("a[1:] = a[:-1]", "overlap"))
    found = twins.run(program, [np, simgpu])
    assert (found.kind, found.reason) == ("error none, RuntimeError", next(iter(twins.EXPECTED)))


def test_what_is_near_the_largest_number_may_be_infinity(twins):
    exact, near = twins.Line("", "negative"), twins.Line("", "hypot", "ulps")
    for found, line, how in [(LARGEST, near, ""), (LARGEST, exact, "value"), (LARGEST / 2, near, "value")]:
        assert twins.parted([np.array([np.inf])], [np.array([found])], line, []) == how
    assert twins.parted([np.array([-np.inf])], [np.array([LARGEST])], near, []) == "value"


def test_nothing_that_the_front_end_has_is_left_out(twins):
    rows, kernels = twins.twins_programs.ROWS, twins.twins_programs.KERNEL
    words = {*rows, *re.findall(r"cp[.](\w+)", " ".join(text for _, texts in rows.values() for text in texts))}
    assert {*UFUNCS, *REDUCTIONS, *VIEWS, *" ".join(simgpu._NAMES.values()).split()} - words == NOT_DRAWN
    parts = set(re.findall(r"\w+", " ".join(text for texts in kernels.values() for text in texts)))
    assert KNOWN - parts == NOT_IN_KERNELS
    assert FUNCTIONS.keys() - parts == set()


def float_sum(x, *args, **options):
    return simgpu.sum(x, *args, **options).astype("float64")


def key_error(*args, **options):
    try:
        return simgpu.concatenate(*args, **options)
    except TypeError as error:
        raise KeyError from error


def one_more(*args, **options):
    return simgpu.asarray(*args, **options) + 1


FAULTS = [
    ("asarray", "input", one_more, "value"),
    ("maximum", "maximum", simgpu.minimum, "value"),
    ("exp", "exp", simgpu.expm1, "value"),
    ("sum", "sum", float_sum, "dtype int64, float64"),
    ("squeeze", "axes", simgpu.copy, "shape"),
    ("concatenate", "concatenate", key_error, "error TypeError, KeyError"),
]


@pytest.mark.parametrize(("name", "op", "fault", "kind"), FAULTS, ids=[name for name, *_ in FAULTS])
def test_a_planted_fault_is_found_with_a_small_program(twins, monkeypatch, name, op, fault, kind):
    faulty = ModuleType("faulty")
    faulty.__dict__.update(vars(simgpu) | {"__name__": "faulty", name: fault})
    monkeypatch.setitem(sys.modules, "faulty", faulty)
    names, chance = ["unrolled.simgpu", "faulty"], twins.Random(3)
    chosen = twins.Palette([name for name in (op, "add") if name != "input"], ["float64", "int32"])
    drawn = (twins.run(twins.twins_programs.program(chance, chosen), [simgpu, faulty]) for _ in range(400))
    difference = next(found for found in drawn if found and found.kind == kind)
    small = twins.shrunk(difference, names, time.time() + 600).program
    assert twins.run(small, [simgpu, faulty]).key == difference.key
    assert (difference.op, len(small)) == (op, 1 if op == "input" else 2)
    assert len(twins.twins_programs.text(small)) < 160
