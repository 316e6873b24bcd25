"""benchmarks/twins_random.py: the simulated GPU against itself differs nowhere, planted faults are found and shrunk."""

import time
from types import ModuleType

import pytest

from unrolled import simgpu

NOT_DRAWN = {"ElementwiseKernel", "newaxis", "dtype", "floating", "integer", "bool_", "intp", "inf", "nan"}
"""CuPy takes CUDA text for the first; the others are NumPy's own objects."""


@pytest.fixture
def twins(program):
    """The search as a module."""
    return program("twins_random")


def twin(name, **changed):
    """The simulated GPU once more, with other functions in place of some."""
    module = ModuleType(name)
    module.__dict__.update(vars(simgpu) | {"__name__": name} | changed)
    return module


def test_the_simulated_gpu_does_not_differ_from_itself(twins):
    for chunk in range(4):
        found = twins.search(1, chunk, 5, ["unrolled.simgpu"] * 2, time.time() + 60)
        assert (found.differences, found.programs, found.gone) == ([], twins.CHUNK, False)


def float_sum(x, *args, **options):
    return simgpu.sum(x, *args, **options).astype("float64")


def key_error(*args, **options):
    try:
        return simgpu.reshape(*args, **options)
    except ValueError as error:
        raise KeyError from error


FAULTS = [
    ("maximum", simgpu.minimum, "value", 2),
    ("sum", float_sum, "dtype", 2),
    ("reshape", key_error, "error ValueError, KeyError", 2),
    ("sort", simgpu.copy, "value", 2),
    ("exp", simgpu.expm1, "value", 2),
    ("squeeze", simgpu.copy, "shape", 2),
]


@pytest.mark.parametrize(("name", "fault", "kind", "lines"), FAULTS, ids=[name for name, *_ in FAULTS])
def test_a_planted_fault_is_found_with_a_small_program(twins, monkeypatch, name, fault, kind, lines):
    monkeypatch.setitem(__import__("sys").modules, "faulty", twin("faulty", **{name: fault}))
    op = {"squeeze": "axes"}.get(name, name)
    chosen, chance = twins.Palette([op, "add"], ["float64", "int32"]), twins.Random(3)
    names = ["unrolled.simgpu", "faulty"]
    modules = [simgpu, twins.importlib.import_module("faulty")]
    drawn = (twins.run(twins.twins_programs.program(chance, chosen), modules) for _ in range(300))
    difference = next(d for d in drawn if d and d.kind.startswith(kind))
    small = twins.shrunk(difference, names, 2.0, time.time() + 60)
    assert twins.run(small, modules).key == difference.key
    assert (len(small), difference.op) == (lines, op)
    assert len(twins.twins_programs.text(small)) < 160
