"""`attention` and its backward pass: which way they go is a matter of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.ops.arguments import HALF, as_floats, check_arrays, check_shape
from unrolled.ops.attention import online
from unrolled.ops.attention.mask import check, mask_of


def attention(q: Array, k: Array, v: Array, lengths: Array | None = None, causal: bool = False) -> Array:
    """Return softmax(q @ k transposed / sqrt(D)) @ v, for q (N, H, T, D), k and v (N, H, S, D): (N, H, T, D).

    N samples, H heads, T queries and S keys of D values. `lengths` (N,) are integers: a sample's keys from there on
    count for nothing. `causal`: query t looks at keys 0 to t alone; T and S are the same then. A query that may look at
    no key gets 0, and has gradients of 0.

    No array of T x S values is made (`unrolled.ops.attention.online`). On a GPU it is one launch for float32 and
    float16, up to D = 128. float32 in, float32 out; integers count as float32, one float64 makes all float64; float16
    is computed in float32 and rounded once. Inputs are not changed.
    Raises ValueError for shapes that do not fit, no keys, lengths that are no integers or beyond S; a GPU's lengths are
    not looked at.
    """
    return attention_with_logsumexp(q, k, v, lengths, causal)[0]


def attention_with_logsumexp(
    q: Array, k: Array, v: Array, lengths: Array | None = None, causal: bool = False
) -> tuple[Array, Array]:
    """Return what `attention` does, and what its backward pass needs besides.

    That is, for each query, the logarithm of the sum of the scores' exponentials (N, H, T), in float32 or float64; inf
    for a query that may look at no key.
    """
    check(q, k, v, lengths, causal)
    q, k, v = as_floats(q, k, v)
    constants = kernels.attention_constants(q, causal)
    if constants is not None:
        module, t, s = array_module(q), q.shape[2], k.shape[2]
        many = module.full(len(q), s, dtype="int64") if lengths is None else lengths.astype("int64", copy=False)
        y, logsumexp = module.empty(q.shape, dtype=q.dtype), module.empty(q.shape[:3], dtype="float32")
        kernels.attention((q, k, v, many), (y, logsumexp), constants, queries=float(t), keys=float(s))
        return y, logsumexp
    y, logsumexp = online.forward(_by_head(q), _by_head(k), _by_head(v), mask_of(q, k, lengths, causal))
    return _rounded(y, q), logsumexp.reshape(q.shape[:3])


def attention_backward(
    grad: Array,
    q: Array,
    k: Array,
    v: Array,
    y: Array,
    logsumexp: Array,
    lengths: Array | None = None,
    causal: bool = False,
) -> tuple[Array, Array, Array]:
    """Return the gradients by q, k and v from grad (N, H, T, D), the gradient of the loss by the output y.

    y and logsumexp are those of `attention_with_logsumexp` for the same q, k, v, lengths and causal: blocks of weights
    are computed again from them. dtypes are as in `attention`; logsumexp's own does not count.
    Raises ValueError as `attention` does.
    """
    check(q, k, v, lengths, causal)
    check_arrays(grad=grad, y=y, logsumexp=logsumexp)
    check_shape("grad", grad, q.shape, f"q {q.shape}")
    check_shape("y", y, q.shape, f"q {q.shape}")
    check_shape("logsumexp", logsumexp, q.shape[:3], f"q {q.shape}")
    grad, q, k, v, y = as_floats(grad, q, k, v, y)
    kept = _by_head(y), logsumexp.astype(_wide(q), copy=False)
    mask = mask_of(q, k, lengths, causal)
    grad_q, grad_k, grad_v = online.backward(_by_head(grad), _by_head(q), _by_head(k), _by_head(v), *kept, mask)
    return _rounded(grad_q, q), _rounded(grad_k, k), _rounded(grad_v, v)


def _by_head(x: Array) -> Array:
    """x with one axis for samples and heads, in the dtype that is computed in."""
    n, h, *rest = x.shape
    return x.reshape(n * h, *rest).astype(_wide(x), copy=False)


def _rounded(x: Array, like: Array) -> Array:
    return x.reshape(like.shape).astype(like.dtype, copy=False)


def _wide(x: Array) -> Any:
    return np.dtype("float32") if x.dtype == HALF else x.dtype
