"""Attention that never keeps its T x S weights: a block of scores at a time, and a softmax with running sums.

A softmax needs the largest score of a row, and a sum over the row. Both can be found in one pass (Milakov and
Gimelshein, 2018, arXiv:1805.02867): where a block brings a larger score, what the sums hold so far is multiplied by
exp(old - new). The output is such a sum, too, so the values are added up in the same pass, and a block of scores can go
as soon as it is there (Rabe and Staats, 2021, arXiv:2112.05682). What is kept for the backward pass is one number a
row, the logarithm of the sum of exponentials. With it any block of weights is computed again when its gradient is
asked for (Dao and others, 2022, arXiv:2205.14135).

Arrays are (B, T, D), with a head of a sample each along B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf, prod, sqrt
from typing import TypeVar

import numpy as np

from unrolled.device import Array, Module, array_module
from unrolled.ops import products, threads
from unrolled.ops.attention.mask import Mask

CPU_BYTES, CPU_KEYS = 512 << 10, 1024  # of a block's scores, for each thread: half of a second-level cache
GPU_BYTES, GPU_KEYS = 64 << 20, 4096  # a launch takes the host some 30 us, so blocks are large
P = TypeVar("P")
Part = tuple[slice, slice]  # heads, and queries of each


def forward(q: Array, k: Array, v: Array, mask: Mask) -> tuple[Array, Array]:
    """Return y (B, T, D) and the logarithms of the rows' sums of exponentials (B, T), inf for a row without keys."""
    module, (b, t, _) = array_module(q), q.shape
    y, logsumexp = module.zeros(q.shape, dtype=q.dtype), module.empty((b, t, 1), dtype=q.dtype)
    heads, rows, keys = _sizes(module, q, k)

    def work(parts: Iterator[Part]) -> None:
        room = module.empty(heads * rows * keys, dtype=q.dtype)
        for part in parts:
            logsumexp[part] = _rows(q[part], k[part[0]], v[part[0]], y[part], mask, part, keys, room)

    _share(module, work, [(of, to) for of in _slices(b, heads) for to in _slices(t, rows)])
    return y, logsumexp.reshape(b, t)


def _rows(q: Array, k: Array, v: Array, y: Array, mask: Mask, part: Part, keys: int, room: Array) -> Array:
    """Write the output of a part's queries to y, which is 0, and return the logarithms of their sums."""
    module, (b, t, d) = array_module(q), q.shape
    q = q * (1 / sqrt(d))  # fewer values than there are scores
    total = module.zeros((b, t, 1), dtype=q.dtype)
    largest = total + float(np.finfo(q.dtype).min) / 2  # finite: -inf less -inf would be NaN
    for columns in _slices(mask.stop(*part, k.shape[1]), keys):
        scores = products.matmul(q, k[:, columns], out=_shaped(room, b, t, columns.stop - columns.start))
        mask.hide(scores, *part, columns)
        before, largest = largest, module.maximum(largest, scores.max(axis=-1, keepdims=True))
        scores -= largest
        weights = module.exp(scores, out=scores)
        faded = module.exp(before - largest)  # what the sums so far are worth
        total *= faded
        total += weights.sum(axis=-1, keepdims=True)
        y *= faded
        y += products.plain_matmul(weights, v[:, columns])
    some = module.maximum(total, 1)  # the largest score alone adds 1; only the sum over no keys is less
    y /= some
    return module.where(total == 0, inf, largest + module.log(some))


def backward(
    grad: Array, q: Array, k: Array, v: Array, y: Array, logsumexp: Array, mask: Mask
) -> tuple[Array, Array, Array]:
    """Return the gradients by q, k and v, from that by y.

    With weights P: grad_v = P.T @ grad, and the gradient by the scores is P * (grad @ v.T - sum of grad * y a row).
    """
    module, (b, t, d), s = array_module(q), q.shape, k.shape[1]
    q = q * (1 / sqrt(d))
    grad_q, grad_k, grad_v = (module.zeros(x.shape, dtype=q.dtype) for x in (q, k, v))
    inner, logsumexp = (grad * y).sum(axis=-1, keepdims=True), logsumexp.reshape(b, t, 1)
    heads, rows, keys = _sizes(module, q, k)

    def work(parts: Iterator[slice]) -> None:
        rooms = [module.empty(heads * rows * keys, dtype=q.dtype) for _ in range(2)]
        for of in parts:
            for to in _slices(t, rows):
                for columns in _slices(mask.stop(of, to, s), keys):
                    add((of, to), (of, columns), *rooms)

    def add(queries: Part, some: Part, room: Array, other: Array) -> None:
        shape = [part.stop - part.start for part in (*queries, some[1])]
        weights = products.matmul(q[queries], k[some], out=_shaped(room, *shape))
        mask.hide(weights, *queries, some[1])
        weights -= logsumexp[queries]
        module.exp(weights, out=weights)
        grad_v[some] += products.matmul_of_columns(weights, grad[queries])
        by_scores = products.matmul(grad[queries], v[some], out=_shaped(other, *shape))
        by_scores -= inner[queries]
        by_scores *= weights
        grad_q[queries] += products.plain_matmul(by_scores, k[some])
        grad_k[some] += products.matmul_of_columns(by_scores, q[queries])

    _share(module, work, _slices(b, heads))
    grad_q *= 1 / sqrt(d)
    return grad_q, grad_k, grad_v


def _sizes(module: Module, q: Array, k: Array) -> tuple[int, int, int]:
    """How many heads, queries of each and keys a block of scores has."""
    (b, t, _), s = q.shape, k.shape[1]
    most, most_keys = (CPU_BYTES, CPU_KEYS) if module is np else (GPU_BYTES, GPU_KEYS)
    scores, keys = most // q.dtype.itemsize, min(s, most_keys)
    rows = max(1, min(t, scores // keys))
    return max(1, min(b, scores // (rows * keys))), rows, keys


def _slices(size: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def _shaped(room: Array, *shape: int) -> Array:
    """The first values of `room` in a shape, in one piece."""
    return room[: prod(shape)].reshape(shape)


def _share(module: Module, work: Callable[[Iterator[P]], None], parts: list[P]) -> None:
    """Do all parts: on threads on the CPU, one after the other on a GPU."""
    if module is np:
        threads.share(work, parts)
    else:
        work(iter(parts))
