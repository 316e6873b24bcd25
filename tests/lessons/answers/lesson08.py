"""Answers to lesson 08: right kernels, what learners make of them, and slow ones. All as source, as kernels are."""

from __future__ import annotations

from typing import Any

import kernel_specs
from answers import Mutant
from unrolled import ops
from unrolled.checks.exercises.l08_kernels import naive

HEAD = "import numpy as np\nfrom unrolled import simgpu as cp\nfrom unrolled.simgpu import jit\n"
SIZES = "TILE, WIDTH, THREADS = 32, 33, 256\n"

ADD = """
@jit.rawkernel()
def answer(x, y, out, n):
    i = jit.grid(1)
    if i < n:
        out[i] = x[i] + y[i]
"""

TRANSPOSE = """
@jit.rawkernel()
def kernel(x, y, rows, columns):
    tile = jit.shared_memory(cp.float32, TILE * WIDTH)
    i, j = cp.int32(jit.threadIdx.x), cp.int32(jit.threadIdx.y)
    top, left = cp.int32(jit.blockIdx.y) * TILE, cp.int32(jit.blockIdx.x) * TILE
    for k in range(0, TILE, 8):
        if top + j + k < rows and left + i < columns:
            tile[(j + k) * WIDTH + i] = x[top + j + k, left + i]
    jit.syncthreads()
    for k in range(0, TILE, 8):
        if left + j + k < columns and top + i < rows:
            y[left + j + k, top + i] = tile[i * WIDTH + j + k]

def answer(x):
    rows, columns = x.shape
    y = cp.empty((columns, rows), x.dtype)
    blocks = (columns + TILE - 1) // TILE, (rows + TILE - 1) // TILE
    kernel[blocks, (TILE, 8)](x, y, rows, columns)
    return y
"""

SUM = """
@jit.rawkernel()
def kernel(x, y, columns):
    partial = jit.shared_memory(cp.float32, THREADS)
    t, row = cp.int32(jit.threadIdx.x), cp.int32(jit.blockIdx.x)
    total = cp.float32(0)
    for column in range(t, columns, THREADS):
        total += x[row, column]
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

def answer(x):
    y = cp.empty(len(x), x.dtype)
    kernel[len(x), THREADS](x, y, x.shape[1])
    return y
"""

FUSED = """
@jit.rawkernel()
def kernel(x, bias, y, places, size, channels, oh, ow, w):
    i = cp.int32(jit.grid(1))
    if i < size:
        image, channel = i // (channels * oh * ow), i // (oh * ow) % channels
        row, column = i // ow % oh, i % ow
        largest, place = cp.float32(-1), 0
        for k in range(4):
            r, c = 2 * row + k // 2, 2 * column + k % 2
            value = max(x[image, channel, r, c] + bias[channel], cp.float32(0))
            if value > largest:
                largest, place = value, r * w + c
        y[image, channel, row, column] = largest
        places[image, channel, row, column] = place

def answer(x, bias):
    n, channels, h, w = x.shape
    oh, ow = h // 2, w // 2
    y, places = cp.empty((n, channels, oh, ow), x.dtype), cp.empty((n, channels, oh, ow), cp.int64)
    blocks = (y.size + THREADS - 1) // THREADS
    kernel[blocks, THREADS](x, bias, y, places, y.size, channels, oh, ow, w)
    return y, places
"""

READ_TWICE = """\
        for k in range(4):
            place += cp.int32(x[image, channel, 2 * row + k // 2, 2 * column + k % 2]) * 0
        for k in range(4):"""

PRODUCT = """
@jit.rawkernel()
def kernel(a, b, c, m, n, k):
    left = jit.shared_memory(cp.float32, TILE * TILE)
    right = jit.shared_memory(cp.float32, TILE * TILE)
    i, j = cp.int32(jit.threadIdx.x), cp.int32(jit.threadIdx.y)
    row, column = cp.int32(jit.blockIdx.y) * TILE + j, cp.int32(jit.blockIdx.x) * TILE + i
    total = cp.float32(0)
    for start in range(0, k, TILE):
        left[j * TILE + i] = 0
        right[j * TILE + i] = 0
        if row < m and start + i < k:
            left[j * TILE + i] = a[row, start + i]
        if start + j < k and column < n:
            right[j * TILE + i] = b[start + j, column]
        jit.syncthreads()
        for p in range(TILE):
            total += left[j * TILE + p] * right[p * TILE + i]
        jit.syncthreads()
    if row < m and column < n:
        c[row, column] = total

def answer(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = cp.empty((m, n), a.dtype)
    kernel[((n + TILE - 1) // TILE, (m + TILE - 1) // TILE), (TILE, TILE)](a, b, c, m, n, k)
    return c
"""

SOURCES = {
    "add_kernel": ADD,
    "transpose_tiled": TRANSPOSE,
    "row_sum": SUM,
    "fused_bias_relu_pool": FUSED,
    "matmul_tiled": PRODUCT,
}


def right(exercise: str) -> Any:
    return kernel_specs.answer(HEAD + SIZES + SOURCES[exercise])


def wrong(exercise: str, says: str, *changes: tuple[str, str]) -> Mutant:
    """The right answer with these words in place of others, and what the check has to say to it."""
    source = HEAD + SIZES + SOURCES[exercise]
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    return Mutant(kernel_specs.answer(source), says)


def _of(exercise: str, *mutants: tuple[Any, ...]) -> list[Mutant]:
    return [wrong(exercise, *mutant) for mutant in mutants]


MUTANTS = {
    "add_kernel": _of(
        "add_kernel",
        ("reads x[6]; its shape is (6,)", ("if i < n:", "if i <= n:")),
        ("out of bounds", ("    if i < n:\n        out", "    if n > 0:\n        out")),
        ("the first block is done", ("jit.grid(1)", "jit.threadIdx.x")),
        ("the last value is missing", ("if i < n:", "if i < n - 1:")),
        ("y is missing", ("x[i] + y[i]", "x[i]")),
        ("nothing was written", ("        out[i] = x[i] + y[i]", "        value = x[i] + y[i]")),
        (
            "a warp takes the fewest sectors where neighbouring threads touch neighbouring values",
            ("jit.grid(1)", "jit.threadIdx.x * jit.gridDim.x + jit.blockIdx.x"),
        ),
    ),
    "transpose_tiled": [
        *_of(
            "transpose_tiled",
            ("rows of a tile that are one value longer lie in other banks", ("32, 33, 256", "32, 32, 256")),
            ("> y[left", ("    jit.syncthreads()\n", "")),
            ("out of bounds", ("if top + j + k < rows and left + i < columns:", "if rows > 0:")),
            (
                "before any thread of the block has written it",
                ("if left + j + k < columns and top + i < rows:", "if top + i >= 0:"),
            ),
            ("it is not turned", ("tile[i * WIDTH + j + k]", "tile[(j + k) * WIDTH + i]")),
            (
                "only the first 8 rows of each tile",
                ("range(0, TILE, 8):\n        if left", "range(0, 8, 8):\n        if left"),
            ),
            ("jit.syncthreads() between the two orders the threads", ("    jit.syncthreads()", "    jit.syncwarp()")),
            (
                "no launch of a kernel of your own",
                ("    rows, columns = x.shape", "    return x.T.copy()\n    rows, columns = x.shape"),
            ),
        ),
    ],
    "row_sum": _of(
        "row_sum",
        (
            "race: thread",
            (
                "            partial[t] += partial[t + half]\n        jit.syncthreads()",
                "            partial[t] += partial[t + half]\n        jit.syncwarp()",
            ),
        ),
        (
            "every thread of a block has to come to its barrier",
            ("        jit.syncthreads()\n        half", "            jit.syncthreads()\n        half"),
        ),
        (
            "only the first 256 values",
            ("range(t, columns, THREADS)", "range(t, THREADS, THREADS)"),
            ("total += x[row, column]", "if column < columns:\n            total += x[row, column]"),
        ),
        ("this is the first thread's own sum", ("while half > 0", "while half > 1000")),
        ("half = 1, is missing", ("while half > 0", "while half > 1")),
        (
            "neighbouring threads touch neighbouring values",
            ("range(t, columns, THREADS)", "range(t * 4, min(columns, t * 4 + 4))"),
        ),
        ("out of bounds", ("range(t, columns, THREADS)", "range(t, columns + THREADS, THREADS)")),
        (
            "a thread that writes it, and then a barrier",
            ("    partial[t] = total\n", "    if t < columns:\n        partial[t] = total\n"),
        ),
    ),
    "fused_bias_relu_pool": [
        *_of(
            "fused_bias_relu_pool",
            ("the last of equal maxima wins", ("if value > largest", "if value >= largest")),
            (
                "the ReLU is missing",
                (
                    "max(x[image, channel, r, c] + bias[channel], cp.float32(0))",
                    "x[image, channel, r, c] + bias[channel]",
                ),
                ("cp.float32(-1)", "cp.float32(-1000)"),
            ),
            ("the bias is missing", (" + bias[channel]", "")),
            ("the routing says which of four places", ("place = value, r * w + c", "place = value, k")),
            ("out of bounds", ("if i < size", "if size > 0")),
            (
                "of global memory, at most",
                (
                    "        for k in range(4):",
                    READ_TWICE,
                ),
            ),
        ),
        Mutant(
            lambda x, bias: ops.max_pool2d_with_indices(ops.relu(x + bias.reshape(-1, 1, 1)), 2),
            "no launch of a kernel of your own",
        ),
    ],
    "matmul_tiled": _of(
        "matmul_tiled",
        (
            "race: thread",
            (
                "            total += left[j * TILE + p] * right[p * TILE + i]\n        jit.syncthreads()",
                "            total += left[j * TILE + p] * right[p * TILE + i]",
            ),
        ),
        ("race: thread", ("        jit.syncthreads()\n        for p", "        for p")),
        ("only the first 32 of K", ("range(0, k, TILE)", "range(0, TILE, TILE)")),
        (
            "only the last tile of K",
            ("        left[j * TILE + i] = 0\n", "        total = cp.float32(0)\n        left[j * TILE + i] = 0\n"),
        ),
        ("only whole tiles of K", ("range(0, k, TILE)", "range(0, k // TILE * TILE, TILE)")),
        ("of global memory, at most", ("left[j * TILE + p]", "a[min(row, m - 1), min(start + p, k - 1)]")),
    ),
}


def transpose_by_halves(x: Any) -> Any:
    """With blocks of 16 rows of threads: right, and not the best size."""
    return TRANSPOSED_BY_16(x)


def transpose_with_a_wide_tile(x: Any) -> Any:
    """With rows of 37 values in the tile."""
    return TRANSPOSED_WIDE(x)


def sums_by_small_blocks(x: Any) -> Any:
    """With 64 threads for a row."""
    return SUMMED_BY_64(x)


def sums_by_large_blocks(x: Any) -> Any:
    return SUMMED_BY_512(x)


def _variation(exercise: str, *changes: tuple[str, str]) -> Any:
    return wrong(exercise, "", *changes).function


TRANSPOSED_BY_16 = _variation("transpose_tiled", ("TILE, 8)", "TILE, 16)"))
TRANSPOSED_WIDE = _variation("transpose_tiled", ("32, 33, 256", "32, 37, 256"))
SUMMED_BY_64 = _variation("row_sum", ("32, 33, 256", "32, 33, 64"))
SUMMED_BY_512 = _variation("row_sum", ("32, 33, 256", "32, 33, 512"))


def transpose_value_by_value(x: Any) -> Any:
    return naive.transpose(x)


def sums_row_by_row(x: Any) -> Any:
    return naive.row_sum(x)


HONEST = {
    "transpose_tiled": [transpose_by_halves, transpose_with_a_wide_tile],
    "row_sum": [sums_by_small_blocks, sums_by_large_blocks],
}
LOOP = {"transpose_tiled": transpose_value_by_value, "row_sum": sums_row_by_row}
