"""The kernels of lesson 08, rung by rung, for gpu_kernels.py: what `cupyx.jit` and the simulated GPU compile.

They are plain functions here. `compiled` makes a kernel of one, for either compiler.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

from unrolled import device

cp, jit = device.gpu(), device.jit()
TILE = 32
ROWS = 8  # of threads, for a tile of 32 rows
WORDS, PADDED = TILE * TILE, TILE * (TILE + 1)
PITCH = TILE + 1  # from one row of a tile to the next: a column then lies in 32 banks; with TILE it lies in one
THREADS, HALF = 256, 128
WARP, WARPS = 32, 8


def compiled(function: Callable[..., Any], compiler: Any, arrays: Any, constants: Mapping[str, int]) -> Any:
    """Return the kernel that a compiler, cupyx.jit or simgpu.jit, makes of a function; arrays: CuPy or simgpu.

    constants: other values for constants of this file.
    """
    names = {**function.__globals__, "jit": compiler, "cp": arrays, **constants}
    return compiler.rawkernel()(types.FunctionType(function.__code__, names, function.__name__))


def add(x, y, out, n):
    i = jit.grid(1)
    if i < n:
        out[i] = x[i] + y[i]


def transpose_naive(x, y):
    j, i = jit.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        y[j, i] = x[i, j]


def transpose_tiled(x, y):
    tile = jit.shared_memory(cp.float32, PADDED)
    i = cp.int32(jit.threadIdx.x)
    j = cp.int32(jit.threadIdx.y)
    left = cp.int32(jit.blockIdx.x) * TILE
    top = cp.int32(jit.blockIdx.y) * TILE
    for k in range(0, TILE, ROWS):
        if top + j + k < x.shape[0] and left + i < x.shape[1]:
            tile[(j + k) * PITCH + i] = x[top + j + k, left + i]
    jit.syncthreads()
    for k in range(0, TILE, ROWS):
        if left + j + k < x.shape[1] and top + i < x.shape[0]:
            y[left + j + k, top + i] = tile[i * PITCH + j + k]


def row_sum_thread(x, y):
    row = cp.int32(jit.grid(1))
    if row < x.shape[0]:
        total = cp.float32(0)
        for column in range(x.shape[1]):
            total += x[row, column]
        y[row] = total


def row_sum_tree(x, y):
    t = cp.int32(jit.threadIdx.x)
    row = cp.int32(jit.blockIdx.x)
    partial = jit.shared_memory(cp.float32, THREADS)
    total = cp.float32(0)
    for column in range(t, x.shape[1], THREADS):
        total += x[row, column]
    partial[t] = total
    jit.syncthreads()
    half = HALF
    while half > 0:
        if t < half:
            partial[t] += partial[t + half]
        jit.syncthreads()
        half //= 2
    if t == 0:
        y[row] = partial[0]


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


def matmul_tiled(a, b, c):
    left = jit.shared_memory(cp.float32, WORDS)
    right = jit.shared_memory(cp.float32, WORDS)
    i = cp.int32(jit.threadIdx.x)
    j = cp.int32(jit.threadIdx.y)
    column = cp.int32(jit.blockIdx.x) * TILE + i
    row = cp.int32(jit.blockIdx.y) * TILE + j
    total = cp.float32(0)
    for start in range(0, a.shape[1], TILE):
        left[j * TILE + i] = cp.float32(0)
        right[j * TILE + i] = cp.float32(0)
        if row < a.shape[0] and start + i < a.shape[1]:
            left[j * TILE + i] = a[row, start + i]
        if start + j < b.shape[0] and column < b.shape[1]:
            right[j * TILE + i] = b[start + j, column]
        jit.syncthreads()
        for k in range(TILE):
            total += left[j * TILE + k] * right[k * TILE + i]
        jit.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total
