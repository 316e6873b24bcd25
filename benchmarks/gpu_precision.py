"""Smaller numbers on a real GPU: products of matrices, and of a matrix and a vector, beside float32.

    python benchmarks/gpu_precision.py [--quick] [--json lib/unrolled/records/gpu_precision.json] [--only vectors]

The matrices are square. float32 is cuBLAS's, and TF32 is off but for its own row. TF32, bfloat16 and FP8 (E4M3) are
PyTorch's calls of cuBLAS. With a vector, int8 and int4 weights are unpacked by lesson 11's kernel. `bytes` is what the
matrices take, each once, and `flops` are those of the full product. Times are of interleaved blocks between CUDA
events; `ratio` is float32 / ours, the median of the pairs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import cupy as cp
import numpy as np
import torch

import common
import gpu_common
import gpu_kernel_sources as sources
from common import Row, Step
from unrolled.ops import precision

MATRICES = {"float32": 12, "float16": 6, "int8": 6, "sparse, 90 % zeros": 8.8, "TF32": 12, "bfloat16": 6, "FP8": 4}
"""Bytes of both factors and the result, by n^2."""
MATRIX = {"float32": 4, "float16": 2, "int8": 1, "int4": 0.5}


def product_rows(n: int) -> list[Row]:
    """Return a row for each kind of product of n x n matrices."""
    rng = cp.random.default_rng(0)
    x, y = (rng.standard_normal((n, n), dtype=cp.float32) for _ in range(2))
    a, b = x.astype(cp.float16), y.astype(cp.float16)
    p, q = (cp.clip(cp.rint(40 * each), -127, 127).astype(cp.int8) for each in (x, y))
    mask = cp.asarray(rng.random((n, n)) < 0.1, cp.float32)
    sparse = precision.sparse(y * mask)
    kinds = {
        "float16": lambda: cp.matmul(a, b),
        "int8": lambda: precision.int8_matmul(p, q),
        "sparse, 90 % zeros": lambda: precision.sparse_matmul(x, sparse),
        **torch_products(x, y),
    }
    calls = 40 if n < 4096 else 5
    rows = []
    for kind, ours in kinds.items():
        found = beside(ours, lambda: cp.matmul(x, y), calls)
        rows.append({"name": f"matmul {kind} {n}", "peer": "float32", **found})
        rows[-1] |= {"flops": 2 * n**3, "bytes": MATRICES[kind] * n**2}
    return with_peer(rows, MATRICES["float32"] * n**2)


def torch_products(x: Any, y: Any) -> dict[str, Step]:
    """Return those products of two matrices that CuPy does not have."""
    a, b = torch.from_dlpack(x), torch.from_dlpack(y)
    halves, eighths = ([each.to(kind) for each in (a, b)] for kind in (torch.bfloat16, torch.float8_e4m3fn))
    eighths[1] = eighths[1].t().contiguous().t()  # cuBLAS reads both along K
    one = torch.ones((), device="cuda")

    def tf32() -> Any:
        torch.backends.cuda.matmul.allow_tf32 = True
        return a @ b

    def fp8() -> Any:
        return torch._scaled_mm(eighths[0], eighths[1], scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

    return {"TF32": tf32, "bfloat16": lambda: halves[0] @ halves[1], "FP8": fp8}


def vector_rows(n: int) -> list[Row]:
    """Return a row for each kind of product of an (n, n) matrix and a vector."""
    rng = cp.random.default_rng(0)
    weight = rng.integers(-7, 8, (n, n)).astype(cp.int8)
    x, full = rng.standard_normal(n, dtype=cp.float32), weight.astype(cp.float32)
    half, x_half = full.astype(cp.float16), x.astype(cp.float16)
    kinds: dict[str, Step] = {"float16": lambda: half @ x_half}
    for bits in (8, 4):
        kinds[f"int{bits}"] = unpacking(weight, x, bits, full @ x)
    rows = []
    for kind, ours in kinds.items():
        found = beside(ours, lambda: full @ x, 20)
        rows.append({"name": f"matvec {kind} {n}", "peer": "float32", **found})
        rows[-1] |= {"flops": 2 * n**2, "bytes": MATRIX[kind] * n**2}
    return with_peer(rows, MATRIX["float32"] * n**2)


def with_peer(rows: list[Row], size: float) -> list[Row]:
    """Return the rows after one of float32, as it was measured beside the first."""
    first = rows[0]
    name = first["name"].replace("float16", "float32")
    return [{"name": name, "ours_s": first["peer_s"], "flops": first["flops"], "bytes": size}, *rows]


def unpacking(weight: Any, x: Any, bits: int, expected: Any) -> Step:
    """Return the step that multiplies int8 weights (N, K), in words of so many bits each, with x (K,), checked."""
    per, rows = 32 // bits, len(weight)
    words = sum((weight[:, part::per].astype(cp.int32) & (2**bits - 1)) << (bits * part) for part in range(per))
    lesson = sources.of_lesson("matvec_kernel", "11_smaller_numbers")
    kernel = sources.compiled(lesson, sources.jit, cp, {"BITS": bits})
    y, width = cp.empty(rows, cp.float32), np.int32(words.shape[1])
    arguments = words.ravel(), x.reshape(-1, per).T.ravel(), cp.ones(rows, cp.float32), y, width
    step = partial(kernel, (rows // 8,), (256,), arguments)
    step()
    common.check(f"int{bits}", y, expected)
    return step


def beside(ours: Step, peer: Step, calls: int) -> Mapping[str, float]:
    """Return the seconds of both, and how many times as fast as its peer ours is."""
    times = gpu_common.side_by_side({"ours": ours, "peer": peer}, calls, 9)
    return common.compared(times) | {"ratio": common.compared(times, "peer", "ours")["ratio"]}


def all_products(chosen: Any) -> list[Row]:
    """Measure the products of each size; a size that fails leaves its error as a row."""
    sizes = (1024,) if chosen.quick else (1024, 4096, 8192)
    return [row for n in sizes for row in gpu_common.guarded(f"products {n}", partial(product_rows, n))]


SECTIONS = {"products": all_products, "vectors": lambda chosen: vector_rows(2048 if chosen.quick else 16384)}


if __name__ == "__main__":
    sys.exit(gpu_common.run(__doc__, SECTIONS))
