"""`journal.mine`: a learner's function goes on once its check has passed, in this notebook and in later ones."""

import functools
import itertools
import json
import linecache

import numpy as np
import pytest

from unrolled import check, device, journal, simgpu
from unrolled.journal import own
from unrolled.simgpu import jit

AMDAHL = """
import math
PARTS = 2
half = lambda x: x / PARTS
def rest(fraction):
    return 1 - fraction
def amdahl_speedup(fraction, factor):
    return 1 / (rest(fraction) + fraction / factor)
"""
KERNEL = """
@jit.rawkernel(device=True)
def same(value):
    return value * ONE
@jit.rawkernel()
def row_sum_kernel(x, y, columns):
    partial = jit.shared_memory(cp.float32, THREADS)
    t, row = cp.int32(jit.threadIdx.x), cp.int32(jit.blockIdx.x)
    total = cp.float32(0)
    for column in range(t, columns, THREADS):
        total += same(x[row, column])
    partial[t] = total
    jit.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            partial[t] += partial[t + half]
        jit.syncthreads()
        half //= 2
    if t == 0:
        y[row] = partial[0]
launched = row_sum_kernel
def row_sum(x):
    y = device.array_module(x).empty(len(x), x.dtype)
    launched[len(x), THREADS](x, y, x.shape[1])
    return y
"""
KERNEL_NAMES = {"device": device, "cp": simgpu, "jit": jit, "THREADS": 128, "ONE": 1}
SIMPLE = "def amdahl_speedup(fraction, factor):\n    return 1 / (1 - fraction + fraction / factor)\n"
numbers = itertools.count()


@pytest.fixture(autouse=True)
def _journal(home):
    own._passed.clear()
    yield
    own._passed.clear()


def cell(source, **names):
    """The names that a notebook's cell defines, with a source that can be found again."""
    file = f"<cell {next(numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space = {"__name__": "__main__", "np": np, "functools": functools, **names}
    exec(compile(source, file, "exec"), space)
    return space


def other_notebook():
    """As after a restart: what this kernel remembers is gone."""
    own._passed.clear()


def in_another_notebook(source, capsys, name="amdahl_speedup", **names):
    """What a later notebook gets for a function that passed here, and what is printed."""
    getattr(check, name)(cell(source, **names)[name])
    other_notebook()
    capsys.readouterr()
    function = journal.mine(name)
    return function, capsys.readouterr().out


def test_an_untouched_notebook_gets_the_library(capsys):
    ink, amdahl = journal.mine("ink", "amdahl_speedup")
    assert capsys.readouterr().out == "ink: library, amdahl_speedup: library\n"
    assert not own.is_yours(ink)
    assert amdahl(0.5, 2) == pytest.approx(4 / 3)


def test_another_notebook_defines_it_again_with_what_it_needs(capsys):
    function, printed = in_another_notebook(AMDAHL, capsys)
    assert printed == "amdahl_speedup: yours\n"
    assert own.is_yours(function)
    assert function(0.5, 2) == pytest.approx(4 / 3)
    assert "half" not in json.loads(journal.path().read_text())["checks"]["amdahl_speedup"]["source"]
    other_notebook()
    check.amdahl_speedup(function)  # a function that came from the journal can be kept again
    other_notebook()
    assert own.is_yours(journal.mine("amdahl_speedup"))


INDENTED = SIMPLE.replace("1 -", "whole -").replace("\n", "\n    ")
LAMBDA = "amdahl_speedup = lambda fraction, factor: 1 / (1 - fraction + fraction / factor)\n"
CACHED = SIMPLE.replace("amdahl_speedup", "plain") + "amdahl_speedup = functools.cache(plain)\n"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (f"WHOLE = np.ones(1)\n{SIMPLE.replace('1 -', 'WHOLE[0] -')}", "it uses WHOLE of its notebook"),
        (
            f"def outer():\n    whole = 1\n    {INDENTED}return amdahl_speedup\namdahl_speedup = outer()\n",
            "amdahl_speedup is made inside of another function",
        ),
        (LAMBDA, "made inside of another"),
        (f"{CACHED}amdahl_speedup.__name__ = 'amdahl_speedup'\n", "was decorated apart from its definition"),
    ],
)
def test_what_cannot_be_written_down_stays_in_its_notebook(source, reason, capsys):
    here = cell(source)["amdahl_speedup"]
    check.amdahl_speedup(here)
    assert own.is_yours(journal.mine("amdahl_speedup"))
    function, printed = in_another_notebook(source, capsys)
    assert not own.is_yours(function)
    assert reason in printed


BOUND = {
    "its own names": "    _, whole = factor, 1\n    one = whole\n",
    "constants and NumPy": "    one = float(np.float64(CONSTANT[1]))\n",
    "a nested function": "    def whole():\n        return 1\n    one = whole()\n",
    "what a nested function takes from around it": "    whole = 1\n    one = (lambda: whole)()\n",
    "a parameter of a nested function": "    def same(whole):\n        return whole\n    one = same(1)\n",
    "a comprehension's variable": "    one = [whole for whole in (1,)][0]\n",
    "the target of for": "    for whole in (1,):\n        one = whole\n",
    "the target of with": "    import contextlib\n    with contextlib.nullcontext(1) as whole:\n        one = whole\n",
    "an import": "    import math as whole\n    one = whole.cos(0)\n",
    "an error": "    try:\n        raise ValueError\n    except ValueError as whole:\n        one = len([whole])\n",
    "a class": "    class whole:\n        value = 1\n    one = whole.value\n",
}


FREE = {
    "in a nested function": "    def take():\n        return WHOLE[0]\n    one = take()\n",
    "local in another function": "    one = WHOLE[0]\n    def other():\n        WHOLE = 1\n        return WHOLE\n",
    "local in a comprehension": "    one = [WHOLE[0] for WHOLE in (WHOLE,)][0]\n",
}


@pytest.mark.parametrize("name", [*BOUND, *FREE])
def test_what_a_function_takes_from_its_notebook_is_found_wherever_it_does_and_nothing_else(name, capsys):
    body = BOUND.get(name) or FREE[name]
    source = SIMPLE.replace("    return", f"{body}    return").replace("1 -", "one -")
    names = dict.fromkeys(("whole", "WHOLE", "_", "fraction"), np.ones(1))
    function, printed = in_another_notebook(f"CONSTANT = (1, 1)\n{source}", capsys, **names)
    assert own.is_yours(function) is (name in BOUND)
    assert printed == "amdahl_speedup: yours\n" if name in BOUND else "it uses WHOLE of its notebook" in printed


def test_kernels_come_along_and_compile_for_the_machine_they_come_to(capsys, monkeypatch):
    monkeypatch.setattr(device, "gpu", lambda: simgpu)
    monkeypatch.setattr(device, "jit", lambda: jit)
    function, printed = in_another_notebook(KERNEL, capsys, "row_sum", **KERNEL_NAMES)
    assert printed == "row_sum: yours\n"
    assert own.is_yours(function)
    rows = np.arange(600, dtype=np.float32).reshape(2, 300)
    np.testing.assert_allclose(device.to_host(function(simgpu.asarray(rows))), rows.sum(1))
    assert function.__globals__["launched"].report.total.write_sectors == 2
    source = journal.read()["checks"]["row_sum"]["source"]
    assert "simgpu" not in source  # a machine with a GPU takes that


def test_a_kernel_that_passed_by_itself_comes_along(capsys):
    source = "@jit.rawkernel()\ndef add_kernel(x, y, out, n):\n    i = jit.grid(1)\n    if i < n:\n"
    kernel, printed = in_another_notebook(f"{source}        out[i] = x[i] + y[i]\n", capsys, "add_kernel", jit=jit)
    assert printed == "add_kernel: yours\n"
    x = simgpu.ones(5, np.float32)
    out = simgpu.empty_like(x)
    kernel[1, 32](x, x, out, 5)
    np.testing.assert_array_equal(device.to_host(out), np.full(5, 2))


def test_a_function_that_passed_is_used_until_a_worse_version_fails(capsys):
    own_one = cell(SIMPLE)["amdahl_speedup"]
    check.amdahl_speedup(own_one)
    capsys.readouterr()
    assert journal.mine("amdahl_speedup") is own_one
    assert capsys.readouterr().out == "amdahl_speedup: yours\n"
    check.amdahl_speedup(lambda fraction, factor: 1.0)
    capsys.readouterr()
    assert not own.is_yours(journal.mine("amdahl_speedup"))
    assert capsys.readouterr().out == "amdahl_speedup: library, since your last version failed\n"


@pytest.mark.parametrize(
    "source", ["def amdahl_speedup(fraction, factor):\n    return 1.0\n", "def (", "1 / 0", "x = 1\n"]
)
def test_a_source_that_does_not_pass_its_check_again_is_not_used(source, capsys):
    check.amdahl_speedup(cell(SIMPLE)["amdahl_speedup"])
    other_notebook()
    record = journal.read()
    record["checks"]["amdahl_speedup"]["source"] = source
    journal.path().write_text(json.dumps(record))
    capsys.readouterr()
    assert not own.is_yours(journal.mine("amdahl_speedup"))
    assert capsys.readouterr().out.startswith("amdahl_speedup: library, since yours")


def test_a_name_without_a_check_is_named():
    with pytest.raises(ValueError, match="no check named 'conv2d_gem'; did you mean 'conv2d_gemm'"):
        journal.mine("conv2d_gem")


def test_a_rung_says_whose_code_it_is():
    check.amdahl_speedup(cell(SIMPLE)["amdahl_speedup"])
    ink, amdahl = journal.mine("ink", "amdahl_speedup")
    journal.rung("mine", "a law", 2.0, 1, made_of=[amdahl])
    journal.rung("both", "a law", 1.0, 1, made_of=[ink, amdahl])
    journal.rung("theirs", "a law", 3.0, 1, made_of=[ink])
    assert {name: rung.get("code") for name, rung in journal.read()["rungs"].items()} == {
        "mine": "your code",
        "both": "partly your code",
        "theirs": None,
    }
