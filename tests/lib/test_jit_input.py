"""Bad input to the compiler and to a launch: CuPy's own kind of error, with the line; nothing is ever executed."""

import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
from jit_programs import kernel

from unrolled import device
from unrolled import simgpu as cp
from unrolled.simgpu import jit
from unrolled.simgpu.command import KernelOrder, View
from unrolled.simgpu.jit import CUDADriverError, KernelFault, RawKernel
from unrolled.simgpu.machine import LocalMachine

COPY = "def copy(y, x):\n    i = jit.grid(1)\n    if i < x.size:\n        y[i] = x[i]\n"


def arrays(size: int = 8) -> tuple[Any, Any]:
    return cp.zeros(size, "f"), cp.ones(size, "f")


@pytest.mark.usefixtures("_without_gpu")
def test_the_device_has_a_jit() -> None:
    assert device.jit() is jit
    names = "rawkernel grid gridsize threadIdx blockIdx blockDim gridDim syncthreads syncwarp shared_memory laneid"
    names += " atomic_add atomic_max atomic_min atomic_cas shfl_sync shfl_down_sync shfl_up_sync shfl_xor_sync"
    assert all(hasattr(jit, name) for name in f"{names} warpsize range".split())


def test_both_ways_to_launch_and_arrays_of_other_types() -> None:
    compiled = kernel(COPY, jit, cp)
    for dtype in ("f", "d", "i", "B", "e", "?", "q"):
        y, x = cp.zeros(8, dtype), cp.ones(8, dtype)
        compiled((1,), (8,), (y, x))
        assert y.get().tolist() == [1] * 8
    compiled[(1, 1), (4, 1, 1)](x, y)
    assert (compiled.__name__, compiled.report.threads) == ("copy", 4)


def test_a_nested_kernel_sees_the_names_around_it() -> None:
    width = 4

    @jit.rawkernel()
    def inner(y: Any) -> None:
        y[jit.threadIdx.x] = width

    y, _ = arrays()
    inner[1, 8](y)
    assert y.get().tolist() == [4.0] * 8


def without_source(source: str, file: str) -> Any:
    namespace: dict[str, Any] = {"jit": jit}
    exec(compile(source, file, "exec"), namespace)
    return namespace["typed"]


def launched(compiled: Any, *arguments: Any, grid: Any = 1, threads: Any = 1) -> Any:
    """A launch. What is called makes an array then, not at the import: a test before may reset the GPU."""
    made = arguments or (partial(cp.zeros, 8, "f"),)
    return lambda: compiled[grid, threads](*(x() if callable(x) else x for x in made))


def copied(*arguments: Any, grid: Any = 1, threads: Any = 8) -> Any:
    made = arguments or (partial(cp.zeros, 8, "f"), partial(cp.ones, 8, "f"))
    return launched(kernel(COPY, jit, cp), *made, grid=grid, threads=threads)


INNER = "@jit.rawkernel(device=True)\ndef inner(x):\n    return x\n"
RECURSION = "@jit.rawkernel(device=True)\ndef again(n):\n    return again(n)\n\n@jit.rawkernel()\ndef kernel(y):\n"
HUNGRY = "def k(y, x):\n    i = cp.int32(jit.threadIdx.x)\n    for a in range(2000000000):\n        i += 1\n"
NO_ARRAYS = (np.zeros(8, "f"), "text", None, [1, 2], 1j, {})
NO_GPU_TAKES = ((0, 8), (1, 0), (1, 1025), (-1, 8), ((1, 70000), 8), (1, (1, 1, 65)))
NO_SIZES = (("a", 8), (1.5, 8), (1, (1, 1, 1, 1)), (1, ()))
REFUSED = [
    *(
        (copied(partial(cp.zeros, 8, "f"), x), TypeError, "takes arrays of the simulated GPU and numbers")
        for x in NO_ARRAYS
    ),
    *((copied(grid=g, threads=t), CUDADriverError, "CUDA_ERROR_INVALID_VALUE") for g, t in NO_GPU_TAKES),
    *((copied(grid=g, threads=t), TypeError, "expected one to three whole numbers") for g, t in NO_SIZES),
    (copied(grid=2**20, threads=1024), ValueError, "threads in one launch"),
    (copied(partial(cp.zeros, 8, "i"), partial(cp.ones, 8, "d")), TypeError, "Cannot cast from 'float64' to int32"),
    (copied(partial(cp.zeros, 8, "F"), partial(cp.ones, 8, "F")), TypeError, "dtype is complex64"),
    (
        launched(kernel(HUNGRY, jit, cp), *[partial(cp.ones, 8, "f")] * 2, grid=4096, threads=1024),
        KernelFault,
        "endless loop",
    ),
    (launched(without_source("@jit.rawkernel()\ndef typed(y):\n    pass\n", "<string>")), OSError, "cannot be found"),
    (
        launched(jit.rawkernel()(without_source("def typed(y):\n    pass\n", "<stdin>"))),
        RuntimeError,
        "cannot be found",
    ),
    (launched(jit.rawkernel()(len)), TypeError, "cannot be found"),
    (launched(jit.rawkernel()(lambda y: None)), ValueError, "lambda"),
    (lambda: RawKernel(3), ValueError, "made of a function"),  # type: ignore[arg-type]
    (jit.syncthreads, RuntimeError, "in a kernel only"),
    (launched(kernel(INNER, jit, cp), 1), TypeError, "device=True"),
    (launched(kernel(RECURSION + "    y[0] = again(3)\n", jit, cp)), ValueError, "calls itself"),
    (launched(kernel(RECURSION.replace("device=True", "") + "    again(3)\n", jit, cp)), TypeError, "device=True"),
]


@pytest.mark.parametrize(("call", "kind", "words"), REFUSED)
def test_what_is_refused(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


def program(source: str, **constants: Any) -> dict[str, Any]:
    return {"source": source, "first_line": 1, "constants": {"jit": {"name": "jit"}, **constants}}


def run(program: Any, *arguments: Any, machine: LocalMachine | None = None) -> Any:
    """Run a program by one thread, as whoever sends it to a machine does."""
    order = KernelOrder(program, [*arguments], (1, 1, 1), (1, 1, 1))
    return (machine or LocalMachine()).run_kernel(order)


HUGE: dict[str, str] = {
    "long": "def k(y):\n" + "    y[0] = 1.0\n" * 2000,
    "many parts": "def k(y):\n" + "    y[0]=1.0+1.0+1.0\n" * 700,
    "deep in brackets": "def k(y):\n    y[0] = " + "(" * 150 + "1" + ")" * 150,
    "a long sum": "def k(y):\n    y[0] = " + "+".join(["y[0]"] * 1000),
    "deep in signs": "def k(y):\n    y[0] = " + "-" * 5000 + "1",
    "deep in branches": "def k(y):\n" + "".join(" " * n + "if y[0] > 1:\n" for n in range(1, 99)) + " " * 99 + "pass",
    "a huge power": "def k(y):\n    y[0] = 9**9**9",
    "a huge shift": "def k(y):\n    y[0] = 1 << 10**9",
    "a huge product": "def k(y):\n    y[0] = 10**38 * 10**38 * 10**38",
    "a wide number": "def k(y):\n    y[0] = 0x" + "f" * 19_000 + " ** 128",
    "wide variables": "def k(y):\n" + "".join(f"    a{n} = ({'y,' * 60})\n" for n in range(4)),
    "a huge text": "def k(y):\n    a = 'a' * 10**9",
    "no function": "y = 1",
    "two": "def k(y):\n    pass\ndef l(y):\n    pass",
    "a lambda": "lambda y: 0",
    "null": "def k(y):\n    \0",
    "no Python": "def k(y:",
    "nothing": "",
    "asynchronous": "async def k(y):\n    pass",
    "break": "def k(y):\n    break",
}
EVIL = ("__import__('os').system('true')", "(1).__class__", "jit.__class__", "y.__init__()", "eval('1')")
BUILTINS = {name: {"name": f"builtins.{name}"} for name in ("eval", "__import__")}
CONSTANTS: list[Any] = [None, 3, {"number": "1"}, {"scalar": ["object", 1]}, {"tuple": 3}, {"type": "object"}]
DEEP: Any = {"tuple": []}
for _ in range(5):
    DEEP = {"tuple": [DEEP]}
PROGRAMS: dict[str, Any] = {
    **{name: program(source) for name, source in HUGE.items()},
    **{line: program(f"def k(y):\n    {line}\n", **BUILTINS) for line in EVIL},
    **{f"a = {a}": program("def k(y):\n    y", a=a) for a in (*CONSTANTS, DEEP)},
    **{str(data): data for data in (None, [], {}, {"source": 3})},
    "no constants": {"source": "def k(): pass", "first_line": 1, "constants": []},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_from_strangers_are_refused_within_limits_and_nothing_is_executed(name: str) -> None:
    errors = ValueError, TypeError, SyntaxError, OverflowError, NotImplementedError, AttributeError, NameError
    with pytest.raises(errors) as caught:
        run(PROGRAMS[name], ("float32", 1.0))
    assert len(str(caught.value)) < 25_000


def test_what_is_called_counts_at_each_call() -> None:
    """A kernel of 5,000 parts that is called fifty times would be compiled fifty times."""
    long = {"source": "def f(x):\n" + "    x = x + 1\n" * 300 + "    return x\n", "first_line": 1, "constants": {}}
    called = {"kernel": long, "device": True, "called": "f"}
    run(program("def k(y):\n    y = f(y)\n", f=called), ("int32", 1))
    with pytest.raises(ValueError, match="in f, line 2: a kernel with more than 5,000 parts"):
        run(program("def k(y):\n" + "    y = f(y)\n" * 3, f=called), ("int32", 1))


def test_long_names_and_lines_are_cut() -> None:
    machine, name = LocalMachine(), "a" * 3000
    source = f"def {name}({name}):\n    {name}[9] = 1.0  # {name}\n"
    y = View(machine.allocate(32), 0, (8,), (4,), "float32")
    with pytest.raises(KernelFault) as caught:
        run(program(source), y, machine=machine)
    assert len(str(caught.value)) < 1000
    assert len(str(run(program(source.replace("9", "0")), y, machine=machine).to_plain())) < 1500


def test_a_fault_leaves_the_machine_usable_and_travels() -> None:
    y, x = arrays()
    with pytest.raises(KernelFault) as caught:
        kernel("def k(y, x):\n    y[8] = x[0]\n", jit, cp)[1, 1](y, x)
    kernel(COPY, jit, cp)[1, 8](y, x)
    assert y.get().tolist() == [1.0] * 8
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), again.fault, str(again)) == (KernelFault, caught.value.fault, str(caught.value))
