"""unrolled.show: the pictures of lesson 08 count what the simulated GPU counts for a kernel that does the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from jit_programs import kernel

from unrolled import simgpu as cp
from unrolled.show.kernels import Access, with_barriers, without_barriers, words_of
from unrolled.simgpu import jit

VALUES = np.array([3, 1, 4, 1, 5, 9, 2, 6], float)


def report(source: str, *arrays: Any, threads: int) -> Any:
    compiled = kernel(source, jit, cp)
    compiled[1, threads](*map(cp.asarray, arrays))
    return compiled.report


def read(index: str, threads: int, dtype: str = "f") -> Any:
    """What the simulated GPU counts where thread i reads x[index]."""
    source = f"def kernel(y, x):\n    i = cp.int32(jit.threadIdx.x)\n    y[i] = x[{index}]\n"
    return report(source, np.zeros(threads, dtype), np.zeros(64 * threads, dtype), threads=threads).total


# warps


@pytest.mark.parametrize("dtype", ["f", "d", "B"])
@pytest.mark.parametrize("index", ["i", "i + 1", "2 * i", "32 * i", "31 - i % 32", "i // 4", "i * 37 % 64", "0"])
def test_a_warps_sectors_are_those_that_the_simulated_gpu_counts(index: str, dtype: str) -> None:
    places = np.array([[eval(index) for i in range(32 * warp, 32 * warp + 32)] for warp in range(3)])
    access = Access(places, np.dtype(dtype).itemsize)
    total = read(index, 96, dtype)
    assert sum(len(access.shares(warp)) for warp in range(3)) == total.read_sectors
    assert sum(access.fewest(warp) for warp in range(3)) == total.read_ideal


# banks


@pytest.mark.parametrize("word", ["t", "32 * t", "33 * t", "2 * t", "t // 2", "0", "(t * 7) % 64", "t % 4 * 32 + t"])
def test_passes_are_those_that_the_simulated_gpu_counts(word: str) -> None:
    source = (
        "def kernel(y):\n    t = cp.int32(jit.threadIdx.x)\n    s = jit.shared_memory(cp.float32, 1152)\n"
        "    for k in range(t, 1152, 32):\n        s[k] = 0.0\n"
        f"    jit.syncthreads()\n    y[t] = s[{word}]\n"
    )
    lines = report(source, np.zeros(32, "f"), threads=32).lines
    line = next(line for line in lines if line.code.startswith("y[t]"))
    wanted = words_of(word, eval(f"lambda t: {word}"))
    assert (wanted.passes, wanted.passes - 1) == (line.shared_passes, line.bank_conflicts)


# barriers

LOOP = """
def kernel(y, x):
    t = cp.int32(jit.threadIdx.x)
    s = jit.shared_memory(cp.float32, 8)
    s[t] = x[t]
    jit.syncthreads()
    half = 4
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        half //= 2
        BARRIER
    if t == 0:
        y[0] = s[0]
"""


def test_the_tree_is_the_kernels_and_without_a_barrier_the_kernel_races() -> None:
    y, x = cp.zeros(1, "f"), cp.asarray(VALUES.astype("f"))
    compiled = kernel(LOOP.replace("BARRIER", "jit.syncthreads()"), jit, cp)
    compiled[1, 8](y, x)
    tree = with_barriers(VALUES)
    assert tree.result == y.get()[0] == VALUES.sum()
    assert compiled.report.barriers == 1 + len(tree.steps)
    with pytest.raises(jit.KernelFault, match="race"):
        kernel(LOOP.replace("BARRIER", "pass"), jit, cp)[1, 8](y, x)


@pytest.mark.parametrize("count", [4, 8, 16])
def test_without_barriers_every_addition_is_done_and_the_sum_is_wrong(count: int) -> None:
    values = 2.0 ** np.arange(count)
    ordered, hasty = with_barriers(values), without_barriers(values)
    assert ordered.result == values.sum() != hasty.result
    assert len(ordered.steps) == len(hasty.steps)
    adds = [{(add.thread, add.other) for step in tree.steps for add in step} for tree in (ordered, hasty)]
    assert adds[0] == adds[1]
    assert not any(add.late for step in ordered.steps for add in step)
