"""Attention as the formula reads: loops, and two products with a softmax between them that keep all T x S weights."""

from __future__ import annotations

from math import sqrt

from unrolled.device import Array, array_module
from unrolled.ops import products
from unrolled.ops.activation import softmax_backward
from unrolled.ops.arguments import as_floats, check_arrays, check_shape, rounds_once
from unrolled.ops.attention.mask import check, mask_of


@rounds_once
def attention_loops(q: Array, k: Array, v: Array, lengths: Array | None = None, causal: bool = False) -> Array:
    """Attend with a loop over every axis: the definition, and the slowest way. See `attention`."""
    check(q, k, v, lengths, causal)
    q, k, v = as_floats(q, k, v)
    module, (n, h, t, d) = array_module(q), q.shape
    y = module.zeros(q.shape, dtype=q.dtype)
    for sample in range(n):
        for head in range(h):
            for query in range(t):
                weights: list[Array] = []
                for key in range(query + 1 if causal else k.shape[2]):
                    if lengths is not None and key >= lengths[sample]:
                        break
                    score = 0.0
                    for i in range(d):
                        score = score + q[sample, head, query, i] * k[sample, head, key, i]
                    weights.append(score / sqrt(d))
                largest = max(weights, default=0.0)
                weights = [module.exp(score - largest) for score in weights]
                total = sum(weights)
                for key, weight in enumerate(weights):
                    for i in range(d):
                        y[sample, head, query, i] += weight / total * v[sample, head, key, i]
    return y


@rounds_once
def attention_weights(q: Array, k: Array, lengths: Array | None = None, causal: bool = False) -> Array:
    """Return softmax of q @ k transposed / sqrt(D) over the keys: (N, H, T, S), for q (N, H, T, D), k (N, H, S, D).

    Raises ValueError as `attention` does.
    """
    check(q, k, k, lengths, causal)
    q, k = as_floats(q, k)
    module, (n, h, t, d), s = array_module(q), q.shape, k.shape[2]
    weights = products.matmul((q * (1 / sqrt(d))).reshape(n * h, t, d), k.reshape(n * h, s, d))
    mask_of(q, k, lengths, causal).hide(weights, slice(0, n * h), slice(0, t), slice(0, s))
    largest = weights.max(axis=-1, keepdims=True)
    weights -= module.where(largest == -float("inf"), 0, largest)
    module.exp(weights, out=weights)
    total = weights.sum(axis=-1, keepdims=True)
    weights /= module.where(total == 0, 1, total)
    return weights.reshape(n, h, t, s)


@rounds_once
def attention_plain(q: Array, k: Array, v: Array, lengths: Array | None = None, causal: bool = False) -> Array:
    """Attend by two products, with all weights (N, H, T, S) between them. See `attention`."""
    check(q, k, v, lengths, causal)
    q, k, v = as_floats(q, k, v)
    (n, h, t, d), s = q.shape, k.shape[2]
    weights = attention_weights(q, k, lengths, causal).reshape(n * h, t, s)
    return products.plain_matmul(weights, v.reshape(n * h, s, d)).reshape(q.shape)


@rounds_once
def attention_plain_backward(grad: Array, q: Array, k: Array, v: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return the gradients by q, k and v from grad (N, H, T, D), that by the output, and from `attention_weights`."""
    check(q, k, v, None, False)
    check_arrays(grad=grad, weights=weights)
    check_shape("grad", grad, q.shape, f"q {q.shape}")
    (n, h, t, d), s = q.shape, k.shape[2]
    check_shape("weights", weights, (n, h, t, s), f"q {q.shape} and k {k.shape}")
    shapes = q.shape, k.shape, v.shape
    grad, q, k, v, weights = (x.reshape(n * h, *x.shape[2:]) for x in as_floats(grad, q, k, v, weights))
    by_scores = softmax_backward(products.matmul(grad, v), weights)
    by_scores *= 1 / sqrt(d)
    by_q, by_k = products.plain_matmul(by_scores, k), products.matmul_of_columns(by_scores, q)
    found = by_q, by_k, products.matmul_of_columns(weights, grad)
    by_q, by_k, by_v = (x.reshape(shape) for x, shape in zip(found, shapes, strict=True))
    return by_q, by_k, by_v
