"""Wrong and imperfect answers to the variants of lesson 08: the right kernels of the lesson, changed."""

from __future__ import annotations

from typing import Any

from unrolled.checks.exercises.l08_kernels import naive

from .lesson08 import SOURCES, wrong

SOURCES["add_kernel_backwards"] = SOURCES["add_kernel"].replace("jit.grid(1)", "cp.int32(jit.grid(1))")
SOURCES["add_kernel_backwards"] = SOURCES["add_kernel_backwards"].replace("y[i]", "y[n - 1 - i]")
SOURCES["transpose_tiled_other_diagonal"] = SOURCES["transpose_tiled"].replace(
    "y[left + j + k, top + i] =", "y[columns - 1 - left - j - k, rows - 1 - top - i] ="
)
SOURCES["row_sum_maximum"] = (
    SOURCES["row_sum"]
    .replace("total = cp.float32(0)", "total = x[row, 0]")
    .replace("total += x[row, column]", "total = max(total, x[row, column])")
    .replace("partial[t] += partial[t + half]", "partial[t] = max(partial[t], partial[t + half])")
)
SOURCES["fused_bias_relu_pool_average"] = """
@jit.rawkernel()
def kernel(x, bias, y, size, channels, oh, ow):
    i = cp.int32(jit.grid(1))
    if i < size:
        image, channel = i // (channels * oh * ow), i // (oh * ow) % channels
        row, column = i // ow % oh, i % ow
        total = cp.float32(0)
        for k in range(4):
            total += max(x[image, channel, 2 * row + k // 2, 2 * column + k % 2] + bias[channel], cp.float32(0))
        y[image, channel, row, column] = cp.float32(0.25) * total

def answer(x, bias):
    n, channels, h, w = x.shape
    y = cp.empty((n, channels, h // 2, w // 2), x.dtype)
    kernel[(y.size + THREADS - 1) // THREADS, THREADS](x, bias, y, y.size, channels, h // 2, w // 2)
    return y
"""


def _right(exercise: str, *changes: tuple[str, str]) -> Any:
    return wrong(exercise, "", *changes).function


PIXEL = "x[image, channel, 2 * row + k // 2, 2 * column + k % 2]"
FAR = "y[columns - 1 - left - j - k, rows - 1 - top - i]"

MUTANTS = {
    "add_kernel_backwards": [
        wrong("add_kernel_backwards", "y is read from its beginning", ("y[n - 1 - i]", "y[i]")),
        wrong("add_kernel_backwards", "the whole result is the wrong way round", ("out[i]", "out[n - 1 - i]")),
        wrong("add_kernel_backwards", "y is missing", (" + y[n - 1 - i]", "")),
        wrong("add_kernel_backwards", "reads y[6]", ("y[n - 1 - i]", "y[n - i]")),
        wrong("add_kernel_backwards", "the last value is missing", ("i < n", "i < n - 1")),
    ],
    "transpose_tiled_other_diagonal": [
        wrong("transpose_tiled_other_diagonal", "the usual transpose", (FAR, "y[left + j + k, top + i]")),
        wrong(
            "transpose_tiled_other_diagonal",
            "the rows of y are in the opposite",
            (FAR, "y[left + j + k, rows - 1 - top - i]"),
        ),
        wrong(
            "transpose_tiled_other_diagonal",
            "the columns of y are in the opposite",
            (FAR, "y[columns - 1 - left - j - k, top + i]"),
        ),
        wrong("transpose_tiled_other_diagonal", "bank conflicts", ("32, 33, 256", "32, 32, 256")),
        wrong(
            "transpose_tiled_other_diagonal", "out of bounds", (FAR, "y[columns - left - j - k, rows - 1 - top - i]")
        ),
    ],
    "row_sum_maximum": [
        wrong("row_sum_maximum", "your maximum starts at 0", ("total = x[row, 0]", "total = cp.float32(0)")),
        wrong(
            "row_sum_maximum",
            "only the first 256 values",
            ("range(t, columns, THREADS)", "range(t, min(THREADS, columns), THREADS)"),
        ),
        wrong("row_sum_maximum", "these are the smallest values", ("max(", "min(")),
        wrong("row_sum_maximum", "what the first thread found", ("while half > 0", "while half > 1000")),
        wrong(
            "row_sum_maximum", "race: thread", ("partial[t + half])\n        jit.syncthreads()", "partial[t + half])")
        ),
    ],
    "fused_bias_relu_pool_average": [
        wrong("fused_bias_relu_pool_average", "the sums of the windows", ("cp.float32(0.25) * total", "total")),
        wrong(
            "fused_bias_relu_pool_average",
            "the ReLU comes after the mean",
            (f"max({PIXEL} + bias[channel], cp.float32(0))", f"{PIXEL} + bias[channel]"),
            ("cp.float32(0.25) * total", "max(cp.float32(0.25) * total, cp.float32(0))"),
        ),
        wrong(
            "fused_bias_relu_pool_average",
            "the ReLU is missing",
            (f"max({PIXEL} + bias[channel], cp.float32(0))", f"{PIXEL} + bias[channel]"),
        ),
        wrong("fused_bias_relu_pool_average", "the bias is missing", (" + bias[channel]", "")),
    ],
}


def mirror_by_16(x: Any) -> Any:
    """With blocks of 16 rows of threads."""
    return MIRRORED_BY_16(x)


def mirror_with_a_wide_tile(x: Any) -> Any:
    return MIRRORED_WIDE(x)


def maxima_by_small_blocks(x: Any) -> Any:
    return MAXIMA_BY_64(x)


def maxima_by_large_blocks(x: Any) -> Any:
    return MAXIMA_BY_512(x)


MIRRORED_BY_16 = _right("transpose_tiled_other_diagonal", ("TILE, 8)", "TILE, 16)"))
MIRRORED_WIDE = _right("transpose_tiled_other_diagonal", ("32, 33, 256", "32, 37, 256"))
MAXIMA_BY_64 = _right("row_sum_maximum", ("32, 33, 256", "32, 33, 64"))
MAXIMA_BY_512 = _right("row_sum_maximum", ("32, 33, 256", "32, 33, 512"))


def mirror_value_by_value(x: Any) -> Any:
    return naive.transpose_other_way(x)


def maxima_row_by_row(x: Any) -> Any:
    return naive.row_max(x)


HONEST = {
    "transpose_tiled_other_diagonal": [mirror_by_16, mirror_with_a_wide_tile],
    "row_sum_maximum": [maxima_by_small_blocks, maxima_by_large_blocks],
}
LOOP = {"transpose_tiled_other_diagonal": mirror_value_by_value, "row_sum_maximum": maxima_row_by_row}
