"""Programs that the simulated compiler accepts or refuses, as cupyx.jit does: tests/gpu runs the same on a GPU.

And correct kernels in unusual forms: no alarm, and the result that NumPy gives. And planted faults: each is named by its
kind and by the line that is marked `# here`.
"""

# ruff: noqa: E501

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from jit_programs import ACCEPTED, REFUSED, Program, body, kernel

from unrolled import simgpu as cp
from unrolled.simgpu import current, jit
from unrolled.simgpu.jit import CUDADriverError, KernelFault
from unrolled.simgpu.limits import MachineLimits
from unrolled.simgpu.lockstep.state import RunLimits

ROWS, COLUMNS = 37, 53


@dataclass(frozen=True)
class Legal:
    source: str
    expected: Callable[[Any], Any]
    grid: Any = 1
    threads: Any = 64
    size: Any = 64
    given: Any = 64


def legal(*lines: str, expected: Callable[[Any], Any], **more: Any) -> Legal:
    return Legal(body(*lines), expected, **more)


T = "t = cp.int32(jit.threadIdx.x)"
S = "s = jit.shared_memory(cp.float32, 64)"
TREE = (T, S, "s[t] = x[t]", "jit.syncthreads()")
BY_2 = {"grid": (2, 5), "threads": (32, 8), "size": (COLUMNS, ROWS), "given": (ROWS, COLUMNS)}
LEGAL = {
    "a grid-stride loop": legal("for i in range(jit.grid(1), x.shape[0], jit.gridsize(1)):", "    y[i] = x[i] + 1.0", expected=lambda x: x + 1, grid=3, threads=40, size=1000, given=1000),
    "threads that are no whole warps": legal("i = jit.grid(1)", "if i < x.size:", "    y[i] = -x[i]", expected=lambda x: -x, grid=4, threads=19),
    "whole blocks return before a barrier": legal("if jit.blockIdx.x > 0:", "    return", *TREE, "y[t] = s[63 - t]", expected=lambda x: x[::-1], grid=5),
    "a barrier in a branch of whole blocks": legal(T, S, "if jit.blockIdx.x == 1:", "    s[t] = x[t]", "    jit.syncthreads()", "    y[t] = s[63 - t]", expected=lambda x: x[::-1], grid=3),
    "a barrier in an even loop": legal(*TREE, "for k in range(3):", "    v = s[(t + 1) % 64]", "    jit.syncthreads()", "    s[t] = v", "    jit.syncthreads()", "y[t] = s[t]", expected=lambda x: np.roll(x, -3)),
    "a scan with two barriers": legal(*TREE, "d = 1", "while d < 64:", "    v = cp.float32(0)", "    if t >= d:", "        v = s[t - d]", "    jit.syncthreads()", "    s[t] += v", "    jit.syncthreads()", "    d *= 2", "y[t] = s[t]", expected=np.cumsum),
    "a device function that waits": Legal("@jit.rawkernel(device=True)\ndef flip(s, t, v):\n    s[t] = v\n    jit.syncthreads()\n    return s[63 - t]\n\n@jit.rawkernel()\ndef kernel(y, x):\n    t = cp.int32(jit.threadIdx.x)\n    s = jit.shared_memory(cp.float32, 64)\n    y[t] = flip(s, t, x[t])\n", lambda x: x[::-1]),
    "a tree": legal(*TREE, "k = 32", "while k > 0:", "    if t < k:", "        s[t] += s[t + k]", "    jit.syncthreads()", "    k //= 2", "if t == 0:", "    y[0] = s[0]", expected=lambda x: np.r_[x.sum(), np.zeros(63)]),
    "a tree that ends with warps": legal(*TREE, "if t < 32:", "    s[t] += s[t + 32]", "    jit.syncwarp()", "    k = 16", "    while k > 0:", "        if t < k:", "            s[t] += s[t + k]", "        jit.syncwarp()", "        k //= 2", "    if t == 0:", "        y[0] = s[0]", expected=lambda x: np.r_[x.sum(), np.zeros(63)]),
    "a sum by shuffles": legal(T, "v = x[t]", "for k in range(5):", "    v += jit.shfl_xor_sync(0xffffffff, v, 1 << k)", "y[t] = v", expected=lambda x: np.repeat(x.reshape(2, 32).sum(1), 32)),
    "all write the same value": legal(T, "if x[t] > 5.0:", "    y[0] = 1.0", expected=lambda x: np.r_[1, np.zeros(63)]),
    "all threads hold one value in shared memory": legal(T, S, "s[0] = x[0]", "jit.syncthreads()", "y[t] = s[0]", expected=lambda x: 0 * x + x[0]),
    "in place": legal(T, "x[t] = 2 * x[t]", "y[t] = x[t]", expected=lambda x: 2 * x),
    "global memory between barriers": legal(T, "y[t] = x[t]", "jit.syncthreads()", "v = y[63 - t]", "jit.syncthreads()", "y[t] = v", expected=lambda x: x[::-1]),
    "double buffering": legal(T, "s = jit.shared_memory(cp.float32, 128)", "s[t] = x[t]", "jit.syncthreads()", "for k in range(4):", "    s[(k + 1) % 2 * 64 + t] = s[k % 2 * 64 + (t + 1) % 64]", "    jit.syncthreads()", "y[t] = s[t]", expected=lambda x: np.roll(x, -4)),
    "shared memory of the launch's size": Legal("def kernel(y, x):\n    t = jit.threadIdx.x\n    s = jit.shared_memory(cp.float32, None)\n    s[t] = x[t]\n    jit.syncthreads()\n    y[t] = s[63 - cp.int32(t)]", lambda x: x[::-1]),
    "48 KB": legal(T, "s = jit.shared_memory(cp.float32, 48 * 256)", "s[t * 192] = x[t]", "jit.syncthreads()", "y[t] = s[(63 - t) * 192]", expected=lambda x: x[::-1]),
    "1,024 threads": legal("i = jit.grid(1)", "y[i] = x[i]", expected=lambda x: x, threads=1024, size=2048, given=2048, grid=2),
    "three axes": legal("i, j, k = jit.grid(3)", "y[(k * jit.blockDim.y + j) * jit.blockDim.x + i] = x[i + 4 * (j + 4 * k)]", expected=lambda x: x, threads=(4, 4, 4)),
    "a histogram by atomics": legal(T, "jit.atomic_add(y, cp.int32(x[t]) % 4, 1.0)", expected=lambda x: np.r_[np.bincount(x.astype(int) % 4), np.zeros(60)]),
    "places by a counter": legal(T, "k = jit.atomic_add(x, 0, 1.0)", "y[cp.int32(k)] = 1.0", expected=lambda x: np.ones(64), given=1),
    "a lock that one thread of a block takes": legal("if jit.threadIdx.x == 0:", "    while jit.atomic_cas(lock, 0, 0, 1) != 0:", "        pass", "    jit.atomic_add(y, 0, 1.0)", "    jit.atomic_exch(lock, 0, 0)", expected=lambda x: np.r_[6, np.zeros(63)], grid=6),
    "a guard behind and": legal(T, "if t > 0 and x[t - 1] > 10.0 and t < 63 and x[t + 1] < 50.0:", "    y[t] = 1.0", expected=lambda x: np.r_[0, (x[:-2] > 10) & (x[2:] < 50), 0]),
    "a variable used where it was set": legal(T, "if t > 9:", "    v = x[t]", "if t > 20:", "    y[t] = v", expected=lambda x: np.where(np.arange(64) > 20, x, 0)),
    "a transpose": Legal("def kernel(y, x):\n    s = jit.shared_memory(cp.float32, 32 * 33)\n    tx = cp.int32(jit.threadIdx.x)\n    ty = cp.int32(jit.threadIdx.y)\n    bx = cp.int32(jit.blockIdx.x) * 32\n    by = cp.int32(jit.blockIdx.y) * 32\n    for k in range(0, 32, 8):\n        if by + ty + k < x.shape[0] and bx + tx < x.shape[1]:\n            s[(ty + k) * 33 + tx] = x[by + ty + k, bx + tx]\n    jit.syncthreads()\n    for k in range(0, 32, 8):\n        if bx + ty + k < x.shape[1] and by + tx < x.shape[0]:\n            y[bx + ty + k, by + tx] = s[tx * 33 + ty + k]", lambda x: x.T, **BY_2),
    "an index of a part": legal("i = cp.int32(jit.threadIdx.x)", "for j in range(y.shape[1]):", "    row = y[i]", "    row[j] = x[j, i]", expected=lambda x: x.T, threads=COLUMNS, size=(COLUMNS, ROWS), given=(ROWS, COLUMNS)),
    "a kernel that does nothing": legal("pass", expected=lambda x: 0 * x),
    "unsigned arithmetic that comes back": legal("t = jit.threadIdx.x", "y[t] = x[t - 1 + 1]", expected=lambda x: x),
}  # fmt: skip


@pytest.mark.parametrize("name", LEGAL)
def test_no_alarm(name: str) -> None:
    found, waits = LEGAL[name], "lock" in name
    x = np.arange(np.prod(found.given), dtype="f").reshape(found.given)
    y = cp.zeros(found.size, "f")
    source = found.source.replace("(y, x)", "(y, x, lock)") if waits else found.source
    options = {"shared_mem": 256} if "launch's size" in name else {}
    arguments = [y, cp.asarray(x), *([cp.zeros(1, "i")] if waits else [])]
    kernel(source, jit, cp)[found.grid, found.threads](*arguments, **options)
    np.testing.assert_allclose(y.get(), found.expected(x), rtol=1e-5)


@pytest.mark.parametrize(("program", "expected"), ACCEPTED, ids=[program.name for program, _ in ACCEPTED])
def test_accepted(program: Program, expected: Any) -> None:
    found = program.run(jit, cp)
    given = np.asarray(expected).astype(found.dtype)
    np.testing.assert_allclose(found[: given.size], given, rtol=1e-6)


@pytest.mark.parametrize("program", REFUSED, ids=[program.name for program in REFUSED])
def test_refused(program: Program) -> None:
    with pytest.raises(program.refused) as caught:
        program.run(jit, cp)
    assert program.words in str(caught.value)
    assert "line " in str(caught.value)
    assert "\n> " in str(caught.value)  # the line is marked


BOUNDS, RACE, UNWRITTEN, BARRIER = "out of bounds", "race", "read before written", "barrier"
SHARED, THREADS, ENDLESS, SHUFFLE, UNSET = "shared memory", "threads", "endless loop", "shuffle", "unset variable"


@dataclass(frozen=True)
class Fault:
    kind: str
    source: str
    thread: Any = None
    block: Any = None
    index: Any = None
    grid: Any = 1
    threads: Any = 64
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


def fault(kind: str, *lines: str, parameters: str = "y, x", **more: Any) -> Fault:
    return Fault(kind, body(*lines, parameters=parameters), **more)


FAULTS = {
    # bounds: y and x have 64 values
    "no guard": fault(BOUNDS, "i = jit.grid(1)", "y[i] = 1.0  # here", grid=2, threads=48, block=(1, 0, 0), thread=(16, 0, 0), index=(64,)),
    "guard with <=": fault(BOUNDS, "i = jit.grid(1)", "if i <= 64:", "    y[i] = 1.0  # here", threads=96, index=(64,)),
    "unsigned below 0": fault(BOUNDS, "t = jit.threadIdx.x", "y[t] = x[t - 1]  # here", thread=(0, 0, 0), index=(2**32 - 1,)),
    "beyond a row, within the array": fault(BOUNDS, T, "y[t] = m[0, t]  # here", parameters="y, m", index=(0, 4), arguments=(np.zeros((16, 4), "f"),)),
    "a row that is none": fault(BOUNDS, T, "row = m[t]  # here", "y[t] = row[0]", parameters="y, m", index=(16,), arguments=(np.zeros((16, 4), "f"),)),
    "an atomic operation": fault(BOUNDS, T, "jit.atomic_add(y, t * 2, 1.0)  # here", thread=(32, 0, 0), index=(64,)),
    "in a loop's condition": fault(BOUNDS, T, "k = t", "while x[k] > 0.0:  # here", "    k += 1", index=(64,)),
    "shared memory": fault(BOUNDS, T, S, "s[t * 2] = 1.0  # here", thread=(32, 0, 0), index=(64,)),
    "shared memory by a pointer": fault(BOUNDS, T, S, "p = s + 1", "p[t] = 1.0  # here", thread=(63, 0, 0), index=(64,)),
    "nothing there": fault(BOUNDS, "y[0] = m[0]  # here", parameters="y, m", arguments=(np.zeros(0, "f"),), index=(0,)),
    "in a device function": Fault(BOUNDS, "@jit.rawkernel(device=True)\ndef inner(x, i):\n    return x[i]  # here\n\n@jit.rawkernel()\ndef kernel(y, x):\n    y[0] = inner(x, 70)\n", index=(70,)),
    # races
    "no barrier": fault(RACE, T, S, "s[t] = x[t]", "y[t] = s[63 - t]  # here"),
    "a transpose in place": fault(RACE, "i, j = jit.grid(2)", "y[8 * j + i] = y[8 * i + j] + 1.0  # here", threads=(8, 8)),
    "a pointer beside its array": fault(RACE, T, S, "p = s + 1", "s[t] = x[t]", "jit.syncthreads()", "if t < 63:", "    p[t] = s[t]  # here"),
    "all write to one": fault(RACE, T, "y[0] = x[t]  # here", index=(0,)),
    "a tree, the last steps by one warp": fault(RACE, T, S, "s[t] = x[t]", "jit.syncthreads()", "if t < 32:", "    s[t] += s[t + 32]", "    s[t] += s[(t + 16) % 32]  # here"),
    "a warp's barrier for two warps": fault(RACE, T, S, "s[t] = x[t]", "jit.syncwarp()", "y[t] = s[(t + 32) % 64]  # here"),
    "blocks write to one": fault(RACE, T, "y[t] = jit.blockIdx.x  # here", grid=2),
    "a block reads what another wrote": fault(RACE, "i = cp.int32(jit.grid(1))", "y[i] = 1.0", "jit.syncthreads()", "x[i] = y[63 - i]  # here", grid=2, threads=32),
    "an atomic sum is read": fault(RACE, T, "jit.atomic_add(y, 0, x[t])", "x[t] = y[0]  # here"),
    "an atomic sum is set": fault(RACE, T, S, "s[t] = 0.0", "jit.atomic_add(s, 0, 1.0)  # here"),
    "two views of one array": fault(RACE, T, "a[t] = b[t]  # here", parameters="y, a, b", arguments=("overlap",)),
    # shared memory that nobody wrote
    "never written": fault(UNWRITTEN, T, S, "y[t] = s[t]  # here"),
    "half of it written": fault(UNWRITTEN, T, S, "if t < 32:", "    s[t] = x[t]", "jit.syncthreads()", "y[t] = s[t]  # here", thread=(32, 0, 0), index=(32,)),
    "a sum that begins with nothing": fault(UNWRITTEN, T, S, "s[t] += x[t]  # here"),
    "atomics on nothing": fault(UNWRITTEN, T, S, "jit.atomic_add(s, 0, 1.0)  # here", index=(0,)),
    "another block's": fault(UNWRITTEN, T, S, "if jit.blockIdx.x == 0:", "    s[t] = x[t]", "y[t] = s[t]  # here", grid=2, block=(1, 0, 0)),
    # barriers
    "a barrier in a branch": fault(BARRIER, T, "if t < 32:", "    jit.syncthreads()  # here", thread=(32, 0, 0)),
    "a return before it": fault(BARRIER, T, "if t > 60:", "    return", "jit.syncthreads()  # here", thread=(61, 0, 0)),
    "a barrier in a loop of uneven turns": fault(BARRIER, T, "for k in range(t):", "    jit.syncthreads()  # here"),
    "a barrier in a device function": Fault(BARRIER, "@jit.rawkernel(device=True)\ndef wait():\n    jit.syncthreads()  # here\n\n@jit.rawkernel()\ndef kernel(y, x):\n    if jit.threadIdx.x < 3:\n        wait()\n", thread=(3, 0, 0)),
    "half a warp": fault(BARRIER, T, "if t % 32 < 16:", "    jit.syncwarp()  # here", thread=(16, 0, 0)),
    # sizes, loops, and what C leaves undefined
    "1,025 threads": fault(THREADS, "y[0] = 1.0", threads=1025),
    "no blocks": fault(THREADS, "y[0] = 1.0", grid=0),
    "49 KB": fault(SHARED, "s = jit.shared_memory(cp.float32, 49 * 256)  # here", "s[0] = 1.0"),
    "two that are too much": fault(SHARED, "s = jit.shared_memory(cp.float64, 4096)", "r = jit.shared_memory(cp.float64, 4096)  # here"),
    "49 KB by the launch": fault(SHARED, "s = jit.shared_memory(cp.float32, None)  # here", options={"shared_mem": 49 * 1024}),
    "while True": fault(ENDLESS, "while True:  # here", "    pass", threads=1),
    "never there": fault(ENDLESS, T, "k = t", "while k != 100:  # here", "    k += 2", thread=(1, 0, 0)),
    "a step of 0": fault(ENDLESS, "for k in range(0, 5, 0):  # here", "    pass", threads=1),
    "loops of different lengths": fault(SHUFFLE, T, "v = x[t]", "for k in range(t % 3):", "    v += jit.shfl_xor_sync(0xffffffff, v, 1)  # here"),
    "a lane that left": fault(SHUFFLE, T, "if t < 16:", "    y[t] = jit.shfl_down_sync(0xffffffff, x[t], 8)  # here", thread=(16, 0, 0)),
    "a lane that is none": fault(SHUFFLE, T, "y[t] = jit.shfl_down_sync(0xffffffff, x[t], 8)  # here", threads=24, thread=(16, 0, 0)),
    "set in a branch only": fault(UNSET, T, "if t > 5:", "    v = 1.0", "y[t] = v  # here", thread=(0, 0, 0)),
}  # fmt: skip


def arguments(found: Fault) -> list[Any]:
    if found.arguments and isinstance(found.arguments[0], str):
        whole = cp.zeros(65, "f")
        return [cp.zeros(1, "f"), whole[:64], whole[1:]]
    y, x = cp.zeros(64, "f"), cp.asarray(np.arange(1, 65, dtype="f"))
    return [y, *map(cp.asarray, found.arguments)] if found.arguments else [y, x]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name: str) -> None:
    found = FAULTS[name]
    compiled = kernel(found.source, jit, cp)
    for _ in range(3 if found.kind == RACE else 1):  # each launch draws another order, and finds the race
        with pytest.raises(KernelFault, match=found.kind) as caught:
            compiled[found.grid, found.threads](*arguments(found), **found.options)
    reported = caught.value.fault
    assert reported.kind == found.kind, reported
    if "# here" in found.source:
        assert "# here" in reported.code, reported
        assert f"line {reported.line}: {reported.kind}" in str(caught.value)
    for what in ("thread", "block", "index"):
        assert getattr(found, what) in (None, getattr(reported, what)), reported
    if found.kind in (THREADS, SHARED):
        assert isinstance(caught.value, CUDADriverError)
        assert "CUDA_ERROR_INVALID_VALUE" in str(caught.value)


def test_an_endless_loop_around_memory_is_given_up_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current.machine(), "limits", MachineLimits(kernels=RunLimits(steps=1000)))
    turns = cp.zeros(1, "i")
    with pytest.raises(KernelFault, match="endless loop"):
        kernel("def kernel(turns):\n    while True:\n        turns[0] += 1\n", jit, cp)[1, 1](turns)
    assert int(turns[0]) < 1000 / 8
