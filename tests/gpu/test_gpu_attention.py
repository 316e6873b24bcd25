"""Attention on a real GPU: the kernel with each number of queries a thread, beside float64; the way back; memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unrolled import kernels, ops

cp: Any = pytest.importorskip("cupy", reason='CuPy is not installed: pip install -e ".[gpu]"')

TOLERANCES = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-10}


def arrays(t: int, s: int, d: int, dtype: str) -> list[Any]:
    """Gradient by the output, q, k, v and lengths, of which the first is 0."""
    rng = np.random.default_rng(t + d)
    return [*(rng.normal(size=(3, 2, size, d)).astype(dtype) for size in (t, t, s, s)), np.array([0, s, max(1, s - 9)])]


def close(found: Any, expected: Any, dtype: str) -> None:
    assert found.dtype == dtype
    np.testing.assert_allclose(found.get(), expected, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(
    ("t", "s", "d"), [(1, 1, 1), (5, 90, 24), (130, 257, 64), (257, 130, 65), (300, 300, 128), (65, 70, 136)]
)
def test_forward_and_backward(t: int, s: int, d: int, dtype: str, causal: bool) -> None:
    grad, q, k, v, lengths = arrays(t, t if causal else s, d, dtype)
    wide = [x.astype("float64") for x in (grad, q, k, v)]
    y, logsumexp = ops.attention_with_logsumexp(*wide[1:], lengths, causal)
    expected = y, *ops.attention_backward(*wide, y, logsumexp, lengths, causal)
    grad, q, k, v, lengths = map(cp.asarray, (grad, q, k, v, lengths))
    found, kept = ops.attention_with_logsumexp(q, k, v, lengths, causal)
    np.testing.assert_allclose(kept.get(), logsumexp, rtol=1e-5, atol=1e-5)
    backward = ops.attention_backward(grad, q, k, v, found, kept, lengths, causal)
    for one, other in zip((found, *backward), expected, strict=True):
        close(one, other, dtype)


@pytest.mark.parametrize(("d", "rows"), [(40, 1), (40, 2), (40, 4), (40, 8), (128, 1), (128, 2), (128, 4)])
def test_every_number_of_queries_a_thread(d: int, rows: int) -> None:
    _, q, k, v, lengths = arrays(150, 150, d, "float32")
    expected = ops.attention(*(x.astype("float64") for x in (q, k, v)), lengths, True)
    y, logsumexp = cp.full(q.shape, np.nan, dtype="float32"), cp.empty(q.shape[:3], dtype="float32")
    constants = kernels.constants(d=d, heads=2, causal=True, rows=rows)
    kernels.attention([cp.asarray(x) for x in (q, k, v, lengths)], (y, logsumexp), constants, queries=150.0, keys=150.0)
    close(y, expected, "float32")


def test_no_memory_beyond_a_fiftieth_of_the_weights() -> None:
    q = cp.random.default_rng(0).random((4, 16, 2048, 64), dtype="float32")
    pool = cp.get_default_memory_pool()
    ops.attention(q, q, q)
    pool.free_all_blocks()
    before = pool.total_bytes()
    y = ops.attention(q, q, q)
    assert pool.total_bytes() - before - y.nbytes <= 64 * 2048**2 * 4 / 50
