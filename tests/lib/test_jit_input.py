"""Bad input to the compiler and to a launch: CuPy's own kind of error, with the line; nothing is ever executed."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
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


def test_both_ways_to_launch() -> None:
    y, x = arrays()
    compiled = kernel(COPY, jit, cp)
    compiled((1,), (8,), (y, x))
    np.testing.assert_array_equal(y.get(), np.ones(8))
    compiled[(1, 1), (4, 1, 1)](x, y)
    assert compiled.__name__ == "copy"
    assert compiled.report.threads == 4


def test_arrays_of_other_types_are_compiled_for_anew() -> None:
    compiled = kernel(COPY, jit, cp)
    for dtype in ("f", "d", "i", "B", "e", "?", "q"):
        y, x = cp.zeros(8, dtype), cp.ones(8, dtype)
        compiled[1, 8](y, x)
        assert y.get().tolist() == [1] * 8
    with pytest.raises(TypeError, match="Cannot cast from 'float64' to int32"):
        compiled[1, 8](cp.zeros(8, "i"), cp.ones(8, "d"))
    with pytest.raises(TypeError, match=r"line \d+: dtype is complex64|dtype is complex64"):
        compiled[1, 8](cp.zeros(8, "F"), cp.ones(8, "F"))


@pytest.mark.parametrize("argument", [np.zeros(8, "f"), "text", None, [1, 2], 1j, {}], ids=str)
def test_arguments_that_are_no_arrays_of_the_device(argument: Any) -> None:
    with pytest.raises(TypeError, match="takes arrays of the simulated GPU and numbers"):
        kernel(COPY, jit, cp)[1, 8](arrays()[0], argument)


@pytest.mark.parametrize(("grid", "threads"), [(0, 8), (1, 0), (1, 1025), (-1, 8), ((1, 70000), 8), (1, (1, 1, 65))])
def test_sizes_that_no_gpu_takes(grid: Any, threads: Any) -> None:
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_INVALID_VALUE"):
        kernel(COPY, jit, cp)[grid, threads](*arrays())


@pytest.mark.parametrize(("grid", "threads"), [("a", 8), (1.5, 8), (1, (1, 1, 1, 1)), (1, ())])
def test_sizes_that_are_no_sizes(grid: Any, threads: Any) -> None:
    with pytest.raises(TypeError, match="expected one to three whole numbers"):
        kernel(COPY, jit, cp)[grid, threads](*arrays())


def test_too_many_threads_for_this_machine() -> None:
    with pytest.raises(ValueError, match="threads in one launch"):
        kernel(COPY, jit, cp)[2**20, 1024](*arrays())


def test_a_kernel_without_source() -> None:
    namespace: dict[str, Any] = {"jit": jit}
    exec("@jit.rawkernel()\ndef hidden(y):\n    pass\n", namespace)
    with pytest.raises(OSError, match="cannot be found"):
        namespace["hidden"][1, 1](arrays()[0])
    exec(compile("def typed(y):\n    pass\n", "<stdin>", "exec"), namespace)
    with pytest.raises(RuntimeError, match="cannot be found"):
        jit.rawkernel()(namespace["typed"])[1, 1](arrays()[0])
    with pytest.raises(TypeError, match="cannot be found"):
        jit.rawkernel()(len)[1, 1](arrays()[0])
    with pytest.raises(ValueError, match="lambda"):
        jit.rawkernel()(lambda y: None)[1, 1](arrays()[0])
    with pytest.raises(ValueError, match="made of a function"):
        RawKernel(3)  # type: ignore[arg-type]


def test_a_nested_kernel_sees_the_names_around_it() -> None:
    width = 4

    @jit.rawkernel()
    def inner(y: Any) -> None:
        y[jit.threadIdx.x] = width

    y, _ = arrays()
    inner[1, 8](y)
    assert y.get().tolist() == [4.0] * 8


def test_a_name_of_jit_means_nothing_outside_of_a_kernel() -> None:
    with pytest.raises(RuntimeError, match="in a kernel only"):
        jit.syncthreads()
    with pytest.raises(TypeError, match="device=True"):
        kernel("@jit.rawkernel(device=True)\ndef inner(x):\n    return x\n", jit, cp)[1, 1](1)


RECURSION = "@jit.rawkernel(device=True)\ndef again(n):\n    return again(n)\n\n@jit.rawkernel()\ndef kernel(y):\n"


def test_kernels_that_call_kernels() -> None:
    with pytest.raises(ValueError, match="calls itself"):
        kernel(RECURSION + "    y[0] = again(3)\n", jit, cp)[1, 1](arrays()[0])
    with pytest.raises(TypeError, match="device=True"):
        kernel(RECURSION.replace("device=True", "") + "    again(3)\n", jit, cp)[1, 1](arrays()[0])


def program(source: str, **constants: Any) -> dict[str, Any]:
    return {"source": source, "first_line": 1, "constants": {"jit": {"name": "jit"}, **constants}}


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


@pytest.mark.parametrize("name", HUGE)
def test_source_from_strangers_is_refused_within_limits(name: str) -> None:
    machine = LocalMachine()
    with pytest.raises((ValueError, TypeError, SyntaxError, OverflowError, NotImplementedError)) as caught:
        machine.run_kernel(KernelOrder(program(HUGE[name]), [("float32", 1.0)], (1, 1, 1), (1, 1, 1)))
    assert len(str(caught.value)) < 25_000


@pytest.mark.parametrize(
    "data",
    [None, [], {}, {"source": 3}, {"source": "def k(): pass", "first_line": 1, "constants": []}]
    + [program("def k(y):\n    y", a=a) for a in (None, 3, {"number": "1"}, {"scalar": ["object", 1]}, {"tuple": 3})]
    + [
        program("def k(y):\n    y", a={"type": "object"}),
        program("def k(y):\n    y", a={"tuple": [{"tuple": []}] * 9}),
    ],
)
def test_data_that_is_no_program(data: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        LocalMachine().run_kernel(KernelOrder(data, [("float32", 1.0), ("int32", 2)], (1, 1, 1), (1, 1, 1)))


def test_nothing_of_a_kernel_is_executed() -> None:
    for line in ("__import__('os').system('true')", "(1).__class__", "jit.__class__", "y.__init__()", "eval('1')"):
        source = f"def k(y):\n    {line}\n"
        names = {"eval": {"name": "builtins.eval"}, "__import__": {"name": "builtins.__import__"}}
        with pytest.raises((TypeError, AttributeError, NameError)):
            LocalMachine().run_kernel(KernelOrder(program(source, **names), [("int32", 1)], (1, 1, 1), (1, 1, 1)))


def test_what_is_called_counts_at_each_call() -> None:
    """A kernel of 5,000 parts that is called fifty times would be compiled fifty times."""
    long = {"source": "def f(x):\n" + "    x = x + 1\n" * 300 + "    return x\n", "first_line": 1, "constants": {}}
    called = {"kernel": long, "device": True, "called": "f"}
    for times, works in ((1, True), (3, False)):
        order = KernelOrder(
            program("def k(y):\n" + "    y = f(y)\n" * times, f=called), [("int32", 1)], (1, 1, 1), (1, 1, 1)
        )
        with (
            nullcontext()
            if works
            else pytest.raises(ValueError, match="in f, line 2: a kernel with more than 5,000 parts")
        ):
            LocalMachine().run_kernel(order)


def test_long_names_and_lines_are_cut() -> None:
    machine, name = LocalMachine(), "a" * 3000
    source = f"def {name}({name}):\n    {name}[9] = 1.0  # {name}\n"
    y = View(machine.allocate(32), 0, (8,), (4,), "float32")
    with pytest.raises(KernelFault) as caught:
        machine.run_kernel(KernelOrder(program(source), [y], (1, 1, 1), (1, 1, 1)))
    assert len(str(caught.value)) < 1000
    report = machine.run_kernel(KernelOrder(program(source.replace("9", "0")), [y], (1, 1, 1), (1, 1, 1)))
    assert len(str(report.to_plain())) < 1500


def test_a_fault_leaves_the_machine_usable() -> None:
    y, x = arrays()
    with pytest.raises(KernelFault):
        kernel("def k(y, x):\n    y[8] = x[0]\n", jit, cp)[1, 1](y, x)
    kernel(COPY, jit, cp)[1, 8](y, x)
    assert y.get().tolist() == [1.0] * 8


def test_a_fault_travels() -> None:
    with pytest.raises(CUDADriverError) as caught:
        kernel(COPY, jit, cp)[0, 8](*arrays())
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), again.fault, str(again)) == (CUDADriverError, caught.value.fault, str(caught.value))


def test_a_hungry_loop_ends() -> None:
    source = "def k(y, x):\n    i = cp.int32(jit.threadIdx.x)\n    for a in range(2000000000):\n        i += 1\n"
    with pytest.raises(KernelFault, match="endless loop"):
        kernel(source, jit, cp)[4096, 1024](*arrays())
