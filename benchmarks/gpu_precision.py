"""Smaller numbers on a real GPU: products in float16, int8 and with 90 % zeros, beside float32.

    python benchmarks/gpu_precision.py [--quick] [--json lib/unrolled/records/gpu_precision.json]

The matrices are square. TF32 is off. Times are of interleaved blocks between CUDA events; `ratio` is float32 / ours,
the median of the pairs.
"""

from __future__ import annotations

import cupy as cp

import common
import gpu_common
from common import Row
from unrolled.ops import precision


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
    }
    calls = 40 if n < 4096 else 5
    rows = []
    for kind, ours in kinds.items():
        times = gpu_common.side_by_side({"ours": ours, "peer": lambda: cp.matmul(x, y)}, calls, 9)
        found = common.compared(times) | {"ratio": common.compared(times, "peer", "ours")["ratio"]}
        row = {"section": "products", "name": f"matmul {kind} {n}", "peer": "float32", **found}
        rows.append(row | {"tera_operations_s": 2 * n**3 / found["ours_s"] / 1e12})
    return rows


def main() -> None:
    """Measure the products; each size's failure is a row."""
    chosen = common.options(__doc__)
    sizes = {f"products {n}": n for n in ((1024,) if chosen.quick else (1024, 4096, 8192))}
    chosen.only = list(sizes)
    gpu_common.measured(chosen, lambda name, rows: product_rows(sizes[name]))


if __name__ == "__main__":
    main()
