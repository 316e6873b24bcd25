"""The kernels of lesson 08, rung by rung, for gpu_kernels.py: what `cupyx.jit` and the simulated GPU compile.

Those that the lesson has itself come from its file; but for the fused one, which here takes flat arrays and so less
time. All are plain functions: `compiled` makes a kernel of one, for either compiler.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Mapping
from typing import Any

from common import ROOT
from unrolled import device

cp, jit = device.gpu(), device.jit()
TILE, WIDTH = 32, 33  # rows of a tile, and values of one row in shared memory: a column then lies in 32 banks
ROWS = 8  # of threads, for a tile of 32 rows
THREADS = 256
WARP, WARPS = 32, 8


def of_lesson(name: str, lesson: str = "08_kernels") -> Any:
    """Return a kernel of a lesson, with its solution, as a plain function. Its constants are those of this file."""
    file = ROOT / "lessons" / f"{lesson}.py"
    body = ast.parse(file.read_text(encoding="utf-8")).body
    (found,) = (node for node in body if isinstance(node, ast.FunctionDef) and node.name == name)
    found.decorator_list = []
    made: dict[str, Any] = {}
    exec(compile(ast.Module([found], []), file, "exec"), globals(), made)
    return made[name]


add, transpose_naive, transpose_tiled, row_sum_tree, matmul_tiled = map(
    of_lesson, ("add_kernel", "transpose_naive", "transpose_kernel", "row_sum_kernel", "matmul_kernel")
)


def compiled(function: Callable[..., Any], compiler: Any, arrays: Any, constants: Mapping[str, int]) -> Any:
    """Return the kernel that a compiler, cupyx.jit or simgpu.jit, makes of a function; arrays: CuPy or simgpu.

    constants: other values for constants of this file.
    """
    names = {**function.__globals__, "jit": compiler, "cp": arrays, **constants}
    return compiler.rawkernel()(types.FunctionType(function.__code__, names, function.__name__))


def row_sum_thread(x, y):
    row = cp.int32(jit.grid(1))
    if row < x.shape[0]:
        total = cp.float32(0)
        for column in range(x.shape[1]):
            total += x[row, column]
        y[row] = total


def row_sum_shuffles(x, y):
    t = cp.int32(jit.threadIdx.x)
    row = cp.int32(jit.blockIdx.x)
    partial = jit.shared_memory(cp.float32, WARPS)
    total = cp.float32(0)
    for column in range(t, x.shape[1], THREADS):
        total += x[row, column]
    for k in range(5):
        total += jit.shfl_xor_sync(0xFFFFFFFF, total, 1 << k)
    if t % WARP == 0:
        partial[t // WARP] = total
    jit.syncthreads()
    if t < WARP:
        total = partial[t % WARPS]
        for k in range(3):
            total += jit.shfl_xor_sync(0xFFFFFFFF, total, 1 << k)
        if t == 0:
            y[row] = total


def bias_relu_pool(x, bias, y, places, size, channels, h, w):
    i = cp.int32(jit.grid(1))
    if i < size:
        column = i % (w // 2)
        row = i // (w // 2) % (h // 2)
        plane = i // ((w // 2) * (h // 2))
        shift = bias[plane % channels]
        largest = cp.float32(-1)
        place = cp.int32(0)
        for k in range(4):
            at = cp.int32((2 * row + k // 2) * w + 2 * column + k % 2)
            value = max(x[plane * h * w + at] + shift, cp.float32(0))
            if value > largest:
                largest = value
                place = at
        y[i] = largest
        places[i] = place


def bias_alone(x, bias, out, size, channels, area):
    i = cp.int32(jit.grid(1))
    if i < size:
        out[i] = x[i] + bias[i // area % channels]


def relu_alone(x, out, size):
    i = jit.grid(1)
    if i < size:
        out[i] = max(x[i], cp.float32(0))


def pool_alone(x, y, places, size, h, w):
    i = cp.int32(jit.grid(1))
    if i < size:
        column = i % (w // 2)
        row = i // (w // 2) % (h // 2)
        start = i // ((w // 2) * (h // 2)) * h * w
        place = cp.int32(2 * row * w + 2 * column)
        largest = x[start + place]
        for k in range(1, 4):
            at = cp.int32((2 * row + k // 2) * w + 2 * column + k % 2)
            if x[start + at] > largest:
                largest = x[start + at]
                place = at
        y[i] = largest
        places[i] = place


def matmul_naive(a, b, c):
    column, row = jit.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        total = cp.float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total
