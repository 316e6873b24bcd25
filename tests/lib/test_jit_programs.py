"""Programs that the simulated compiler accepts or refuses, as cupyx.jit does: tests/gpu runs the same on a GPU.

And correct kernels in unusual forms: no alarm, and the result that NumPy gives.
"""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from jit_programs import ACCEPTED, REFUSED, Program, kernel

from unrolled import simgpu as cp
from unrolled.simgpu import jit

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
    return Legal("\n".join(["def kernel(y, x):", *(f"    {line}" for line in lines)]), expected, **more)


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
