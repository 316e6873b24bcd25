"""Attention in every form of the lesson: loops, two products, blocks of keys, and the way back."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np

from unrolled import device
from unrolled.device import Array


def counts(n: int, heads: int, t: int, d: int) -> tuple[int, int]:
    """Return the operations of both products, and the bytes of all (T, T) matrices in float32."""
    return 4 * n * heads * t * t * d, 4 * n * heads * t * t


def loops(q: Array, k: Array, v: Array, causal: bool = False) -> Array:
    """Attend with loops: q, k, v (T, D) to (T, D)."""
    t, d = q.shape
    y = np.zeros_like(q)
    for row in range(t):
        keys = range(row + 1 if causal else t)
        scores = [sum(q[row, i] * k[key, i] for i in range(d)) / sqrt(d) for key in keys]
        largest = max(scores)
        weights = [exp(score - largest) for score in scores]
        total = sum(weights)
        for i in range(d):
            y[row, i] = sum(weight * v[key, i] for key, weight in enumerate(weights)) / total
    return y


def plain(q: Array, k: Array, v: Array, causal: bool = False) -> Array:
    """Attend by two products: q, k, v (H, T, D) to (H, T, D). The matrix between them is (H, T, T)."""
    t, d = q.shape[1:]
    scores = q @ k.swapaxes(1, 2) / sqrt(d)
    if causal:
        scores = np.where(np.arange(t) <= np.arange(t)[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    return weights @ v


def plain_for_blocks(q: Array, k: Array, v: Array, block: int, causal: bool = False) -> Array:
    """Attend as `plain` does, in one block: the baseline on the CPU, and the same values elsewhere."""
    return plain(q, k, v, causal) if device.array_module(q) is np else blocks(q, k, v, q.shape[1], causal)


def next_sums(scores: Array, largest: Array, total: Array) -> tuple[Array, Array]:
    """Return the largest score (T,) and the sum of exponentials (T,), with the next block of scores (T, B)."""
    new = np.maximum(largest, scores.max(axis=1))
    return new, total * np.exp(largest - new) + np.exp(scores - new[:, None]).sum(axis=1)


def blocks(q: Array, k: Array, v: Array, block: int, causal: bool = False) -> Array:
    """Attend by blocks of queries and keys: q, k, v (H, T, D) to (H, T, D), and no array of T x T."""
    xp, (t, d) = device.array_module(q), q.shape[1:]
    y = xp.empty_like(q)
    for first in range(0, t, block):
        rows = q[:, first : first + block] / sqrt(d)
        largest, total, sums = -np.inf, 0, 0
        for start in range(0, first + 1 if causal else t, block):
            scores = rows @ k[:, start : start + block].swapaxes(1, 2)
            if causal and start == first:
                places = xp.arange(rows.shape[1])
                scores = xp.where(places <= places[:, None], scores, -np.inf)
            new = xp.maximum(largest, scores.max(axis=2, keepdims=True))
            faded, weights = xp.exp(largest - new), xp.exp(scores - new)
            total = total * faded + weights.sum(axis=2, keepdims=True)
            sums = sums * faded + weights @ v[:, start : start + block]
            largest = new
        y[:, first : first + block] = sums / total
    return y


def backward(
    grad: Array, q: Array, k: Array, v: Array, y: Array, logsumexp: Array, block: int
) -> tuple[Array, Array, Array]:
    """Return the gradients by q, k and v (H, T, D) from that by y; logsumexp is (H, T)."""
    xp, scale = device.array_module(q), 1 / sqrt(q.shape[2])
    by_q, by_k, by_v = xp.zeros_like(q), xp.zeros_like(k), xp.zeros_like(v)
    inner = (grad * y).sum(axis=2, keepdims=True)
    for start in range(0, q.shape[1], block):
        some = slice(start, start + block)
        weights = xp.exp(q @ k[:, some].swapaxes(1, 2) * scale - logsumexp[:, :, None])
        by_scores = weights * (grad @ v[:, some].swapaxes(1, 2) - inner) * scale
        by_q += by_scores @ k[:, some]
        by_k[:, some] = by_scores.swapaxes(1, 2) @ q
        by_v[:, some] = weights.swapaxes(1, 2) @ grad
    return by_q, by_k, by_v
