"""Answers to lesson 08: the solutions' kernels, what learners make of them, and slow ones."""

from __future__ import annotations

from typing import Any

from answers import Mutant, solution

LESSON = "08_kernels"


def changed(exercise: str, *changes: tuple[str, str]) -> Any:
    return solution(LESSON, exercise, *changes)


MUTANTS = {
    "add_kernel": [
        Mutant(changed("add_kernel", ("if i < n:", "if i <= n:")), "reads x[6]; its shape is (6,)"),
        Mutant(
            changed("add_kernel", ("    if i < n:\n        out", "    if n > 0:\n        out")),
            "out of bounds",
        ),
        Mutant(
            changed("add_kernel", ("jit.grid(1)", "jit.threadIdx.x * jit.gridDim.x + jit.blockIdx.x")),
            "a warp takes the fewest sectors where neighbouring threads touch neighbouring values",
        ),
    ],
    "transpose_tiled": [
        Mutant(
            changed("transpose_tiled", ("WIDTH, THREADS = 32, 33", "WIDTH, THREADS = 32, 32")),
            "rows of a tile that are one value longer lie in other banks",
        ),
        Mutant(changed("transpose_tiled", ("    jit.syncthreads()\n", "")), "> y[left"),
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
        Mutant(changed("fused_bias_relu_pool", ("if i < size", "if size > 0")), "out of bounds"),
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
        ),
    ],
    "matmul_tiled": [
        Mutant(
            changed(
                "matmul_tiled",
                (
                    "            total += left[j * TILE + p] * right[p * TILE + i]\n        jit.syncthreads()",
                    "            total += left[j * TILE + p] * right[p * TILE + i]",
                ),
            ),
            "race: thread",
        ),
        Mutant(changed("matmul_tiled", ("        jit.syncthreads()\n        for p", "        for p")), "race: thread"),
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
    "row_sum": [
        changed("row_sum", ("32, 33, 256", "32, 33, 64")),
        changed("row_sum", ("32, 33, 256", "32, 33, 512")),
    ],
}
