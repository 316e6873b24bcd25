"""Answers to lesson 08: the solutions' kernels, what learners make of them, and slow ones."""

from __future__ import annotations

from typing import Any

from answers import Mutant, solution

LESSON = "08_kernels"


def changed(exercise: str, *changes: tuple[str, str]) -> Any:
    return solution(LESSON, exercise, *changes)


MUTANTS = {
    "add_kernel": [
        Mutant(
            changed("add_kernel", ("jit.grid(1)", "jit.threadIdx.x * jit.gridDim.x + jit.blockIdx.x")),
            "a warp takes the fewest sectors where neighbouring threads touch neighbouring values",
        ),
    ],
    "shift_kernel": [
        Mutant(
            changed("shift_kernel", ("    jit.syncthreads()\n    if i < n:\n", "        jit.syncthreads()\n")),
            "every thread of a block has to come to its barrier",
        ),
        Mutant(
            changed("shift_kernel", ("shared[t - 1]", "x[i - 1]")),
            "of global memory, at most",
        ),
    ],
    "transpose_tiled": [
        Mutant(
            changed("transpose_tiled", ("WIDTH, THREADS = 32, 33", "WIDTH, THREADS = 32, 32")),
            "rows of a tile that are one value longer lie in other banks",
        ),
        Mutant(
            changed("transpose_tiled", ("    jit.syncthreads()", "    jit.syncwarp()")),
            "jit.syncthreads() between the two orders the threads",
        ),
    ],
    "row_sum": [
        Mutant(
            changed(
                "row_sum",
                (
                    "            partial[t] += partial[t + half]\n        jit.syncthreads()",
                    "            partial[t] += partial[t + half]\n        jit.syncwarp()",
                ),
            ),
            "race: thread",
        ),
        Mutant(
            changed(
                "row_sum", ("        jit.syncthreads()\n        half", "            jit.syncthreads()\n        half")
            ),
            "every thread of a block has to come to its barrier",
        ),
        Mutant(
            changed("row_sum", ("    partial[t] = total\n", "    if t < columns:\n        partial[t] = total\n")),
            "a thread that writes it, and then a barrier",
        ),
    ],
    "fused_bias_relu_pool": [
        Mutant(
            changed(
                "fused_bias_relu_pool",
                (
                    "        for k in range(4):",
                    "        for k in range(4):\n"
                    "            place += cp.int32(x[image, channel, 2 * row + k // 2, 2 * column + k % 2]) * 0\n"
                    "        for k in range(4):",
                ),
            ),
            "of global memory, at most",
        )
    ],
    "matmul_tiled": [
        Mutant(
            changed("matmul_tiled", ("left[j * TILE + p]", "a[min(row, m - 1), min(start + p, k - 1)]")),
            "of global memory, at most",
        ),
    ],
}

HONEST = {  # tiles by more threads or with more room between rows, and sums by fewer threads or by more
    "transpose_tiled": [
        changed("transpose_tiled", ("TILE, 8)", "TILE, 16)")),
        changed("transpose_tiled", ("32, 33, 256", "32, 37, 256")),
    ],
    "row_sum": [changed("row_sum", ("32, 33, 256", "32, 33, 64")), changed("row_sum", ("32, 33, 256", "32, 33, 512"))],
}

WALK = "    for column in range(t, columns, THREADS):\n        total += x[row, column]\n"
STRIDE = "    column = t\n    while column < columns:\n        total += x[row, column]\n        column += THREADS\n"
WINDOW = (
    "        for k in range(4):\n            r, c = 2 * row + k // 2, 2 * column + k % 2\n"
    "            value = max(x[image, channel, r, c] + bias[channel], cp.float32(0))\n"
    "            if value > largest:\n                largest, place = value, r * w + c\n"
)
PLACES = ("a", "r", "c", "0"), ("b", "r", "c + 1", "1"), ("d", "r + 1", "c", "w"), ("e", "r + 1", "c + 1", "w + 1")
READS = [f"{name} = x[image, channel, {row}, {column}] + p" for name, row, column, _ in PLACES]
TAKES = "".join(
    f"\n        if max({name}, cp.float32(0)) > largest:\n            largest = max({name}, cp.float32(0))\n"
    f"            place = r * w + c + {place}"
    for name, _, _, place in PLACES
)


def fused(*reads: str) -> Any:
    """The solution with these lines in place of the loop over a window."""
    lines = "\n        ".join(
        ("largest, place = cp.float32(-1), 0", "r, c, p = 2 * row, 2 * column, bias[channel]", *reads)
    )
    return changed("fused_bias_relu_pool", ("largest, place = cp.float32(-1), 0\n" + WINDOW, lines + TAKES + "\n"))


RIGHT = {  # other guards, other places for a sum, other walks, and four reads on one line, on two or on four
    "add_kernel": [
        changed("add_kernel", ("    if i < n:\n        out", "    if i >= n:\n        return\n    out")),
        changed("add_kernel", ("jit.grid(1)", "jit.blockIdx.x * jit.blockDim.x + jit.threadIdx.x")),
        changed("add_kernel", ("out[i] = x[i] + y[i]", "s = x[i]\n        s += y[i]\n        out[i] = s")),
        changed("add_kernel", ("i < n", "i < out.shape[0]")),
    ],
    "shift_kernel": [
        changed("shift_kernel", ("THREADS)\n", "THREADS + 1)\n"), ("d[t] =", "d[t + 1] ="), ("d[t - 1]", "d[t]")),
        changed("shift_kernel", ("shared[t] =", "shared[(t + 1) % THREADS] ="), ("shared[t - 1]", "shared[t]")),
        changed(
            "shift_kernel",
            ("    if i < n:\n        if t", "    if i >= n:\n        return\n    if True:\n        if t"),
        ),
        changed("shift_kernel", ("if t == 0:", "if not t:")),
    ],
    "transpose_tiled": [
        changed(
            "transpose_tiled",
            ("[(j + k) * WIDTH + i]", "[i * WIDTH + j + k]"),
            ("tile[i * WIDTH + j + k]\n", "tile[(j + k) * WIDTH + i]\n"),
        ),
        changed(
            "transpose_tiled",
            ("k in range(0, TILE, 8):\n        if top", "m in range(4):\n        k = 8 * m\n        if top"),
        ),
    ],
    "row_sum": [
        changed("row_sum", (WALK, STRIDE)),
        changed(
            "row_sum",
            ("    half = THREADS // 2\n    while half > 0:", "    for k in range(8):\n        half = 128 >> k"),
            ("        half //= 2\n", ""),
        ),
        changed(
            "row_sum", ("partial[t] += partial[t + half]", "total += partial[t + half]\n            partial[t] = total")
        ),
    ],
    "fused_bias_relu_pool": [
        fused(*READS),
        fused(READS[0], READS[2], READS[1], READS[3]),
        fused(*(f"{first}; {then}" for first, then in (READS[:2], READS[2:]))),
        fused("; ".join(READS)),
        changed(
            "fused_bias_relu_pool",
            (
                "value = max(x[image, channel, r, c] + bias[channel], cp.float32(0))",
                "value = x[image, channel, r, c] + bias[channel]\n            if value < 0:\n"
                "                value = cp.float32(0)",
            ),
        ),
    ],
    "matmul_tiled": [
        changed("matmul_tiled", ("right[j * TILE + i] = 0", "right[j * TILE + i] = cp.float32(0)")),
        changed(
            "matmul_tiled",
            ("start in range(0, k, TILE):", "s in range((k + TILE - 1) // TILE):\n        start = s * TILE"),
        ),
        changed(
            "matmul_tiled",
            (
                "total += left[j * TILE + p] * right[p * TILE + i]",
                "total = total + right[p * TILE + i] * left[j * TILE + p]",
            ),
        ),
        changed("matmul_tiled", ("for p in range(TILE):", "for p in range(min(TILE, k - start)):")),
        changed(
            "matmul_tiled",
            ("    if row < m and column < n:\n        c", "    if row >= m or column >= n:\n        return\n    c"),
        ),
    ],
}
