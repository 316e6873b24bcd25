"""Wrong and imperfect answers to lesson 14, and right ones of other styles."""

from math import sqrt

import numpy as np

from answers import Mutant, in_place, result_of
from unrolled import device

# attention_counts


def counted_by_shapes(n, heads, t, d):
    return n * heads * (t * (2 * d) * t + t * (2 * t) * d), np.zeros(0, np.float32).itemsize * n * heads * t**2


def counted_by_heads(n, heads, t, d):
    return sum(4 * t * t * d for _ in range(n * heads)), sum(4 * t * t for _ in range(n * heads))


# attention_loops


def query_by_query(q, k, v, causal=False):
    y = np.zeros_like(q)
    for t, query in enumerate(q):
        stop = t + 1 if causal else len(k)
        scores = k[:stop] @ query / sqrt(len(query))
        weights = np.exp(scores - scores.max())
        y[t] = weights @ v[:stop] / weights.sum()
    return y


def in_float64(q, k, v, causal=False):
    scores = q.astype(np.float64) @ k.T / np.sqrt(q.shape[1])
    scores = scores - 1e9 * np.triu(np.ones_like(scores), 1) * causal
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights @ v / weights.sum(axis=1, keepdims=True)).astype(q.dtype)


def key_by_key(q, k, v, causal=False):
    """Sums over keys, from the last to the first, corrected where a larger score comes."""
    y, total, largest = np.zeros_like(q), np.zeros(len(q)), np.full(len(q), -np.inf)
    for key in reversed(range(len(k))):
        for row in range(key if causal else 0, len(q)):
            score = float(q[row] @ k[key]) / sqrt(q.shape[1])
            new = max(largest[row], score)
            faded, weight = np.exp(largest[row] - new), np.exp(score - new)
            total[row] = total[row] * faded + weight
            y[row] = y[row] * faded + weight * v[key]
            largest[row] = new
    return y / total[:, None].astype(q.dtype)


def not_divided(q, k, v, causal=False):
    weights = np.exp(q @ k.T / sqrt(q.shape[1]))
    return (weights * np.tri(len(q)) if causal else weights) @ v


# attention_plain


def by_einsum(q, k, v, causal=False):
    scores = np.einsum("htd,hsd->hts", q, k) / sqrt(q.shape[2])
    if causal:
        scores = scores + np.triu(np.full(scores.shape[1:], -np.inf), 1)
    scores -= scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores)
    return np.einsum("hts,hsd->htd", weights / weights.sum(axis=-1, keepdims=True), v).astype(q.dtype)


def head_by_head(q, k, v, causal=False):
    return np.stack([_head(*each, causal) for each in zip(q, k, v, strict=True)])


def _head(q, k, v, causal):
    scores = (q / np.float32(sqrt(q.shape[1]))) @ k.T
    scores[np.triu_indices(len(q), 1)] = -np.inf if causal else scores[np.triu_indices(len(q), 1)]
    weights = np.exp(scores - scores.max(axis=1)[:, None])
    return weights @ v / weights.sum(axis=1)[:, None]


def without_largest(q, k, v, causal=False):
    scores = q @ k.swapaxes(1, 2) / sqrt(q.shape[2])
    weights = np.exp(scores) * (np.tri(q.shape[1]) if causal else 1)
    return (weights / weights.sum(axis=2, keepdims=True) @ v).astype(q.dtype)


# online_softmax


def both_corrected(scores, largest, total):
    """The block's own sum first, and then both are brought to the larger of the two."""
    own = np.max(scores, axis=-1)
    new = np.maximum(largest, own)
    block = np.sum(np.exp(scores - own[:, None]), axis=-1)
    return new, np.exp(largest - new) * total + np.exp(own - new) * block


def score_by_score(scores, largest, total):
    for score in scores.T:
        new = np.maximum(largest, score)
        total = total * np.exp(largest - new) + np.exp(score - new)
        largest = new
    return largest, total


def row_by_row(scores, largest, total):
    found = []
    for row, old, sum_so_far in zip(scores, largest, total, strict=True):
        new = max(old, *row)
        found.append((new, sum_so_far * np.exp(old - new) + sum(np.exp(score - new) for score in row)))
    return tuple(np.array(each, scores.dtype) for each in zip(*found, strict=True))


def joined(scores, largest, total):
    """As if the sum so far were one score more."""
    with np.errstate(divide="ignore"):
        everything = np.concatenate((scores, (largest + np.log(total))[:, None]), axis=1)
    new = np.maximum(largest, scores.max(axis=1))
    return [new, np.exp(everything - new[:, None]).sum(axis=1)]


def undone(scores, largest, total):
    """The sum so far without its largest: infinite."""
    new = np.maximum(largest, scores.max(axis=1))
    return new, (total * np.exp(largest) + np.exp(scores).sum(axis=1)) / np.exp(new)


# attention_blocks and attention_backward


def blocks_of_keys(q, k, v, block, causal=False):
    """All queries that may look, at one block of keys after the other."""
    xp, (h, t, d) = device.array_module(q), q.shape
    q = q / np.float32(sqrt(d))
    y, total = xp.zeros_like(q), xp.zeros((h, t, 1), q.dtype)
    largest = xp.full((h, t, 1), -np.inf, q.dtype)
    for start in range(0, t, block):
        stop, first = min(start + block, t), start if causal else 0
        scores = q[:, first:] @ k[:, start:stop].swapaxes(1, 2)
        if causal:
            scores = xp.where(xp.arange(start, stop) <= xp.arange(first, t)[:, None], scores, -np.inf)
        new = xp.maximum(largest[:, first:], scores.max(axis=2, keepdims=True))
        faded, weights = xp.exp(largest[:, first:] - new), xp.exp(scores - new)
        total[:, first:] = total[:, first:] * faded + weights.sum(axis=2, keepdims=True)
        y[:, first:] = y[:, first:] * faded + weights @ v[:, start:stop]
        largest[:, first:] = new
    return y / total


def sums_of_values_and_ones(q, k, v, block, causal=False):
    """The values have a column of ones, whose sum is the total; keys come backwards."""
    xp, (h, t, d) = device.array_module(q), q.shape
    v = xp.concatenate((v, xp.ones((h, t, 1), q.dtype)), axis=2)
    found = []
    for first in range(0, t, block):
        last = min(first + block, t)
        sums, largest = xp.zeros((h, last - first, d + 1), q.dtype), xp.full((h, last - first), -1e30, q.dtype)
        for start in reversed(range(0, last if causal else t, block)):
            scores = q[:, first:last] @ k[:, start : start + block].transpose(0, 2, 1) * np.float32(d**-0.5)
            if causal and start == first:
                hidden = xp.arange(last - first) > xp.arange(last - first)[:, None]
                scores = xp.where(hidden, np.float32(-1e30), scores)
            new = xp.maximum(largest, scores.max(axis=-1))
            weights = xp.exp(scores - new[:, :, None])
            sums = sums * xp.exp(largest - new)[:, :, None] + weights @ v[:, start : start + block]
            largest = new
        found.append(sums[:, :, :d] / sums[:, :, d:])
    return xp.concatenate(found, axis=1)


def masked_everywhere(q, k, v, block, causal=False, skip=True):
    """Every block is masked, and divided by the root of D."""
    xp, t = device.array_module(q), q.shape[1]
    y = xp.zeros_like(q)
    for first in range(0, t, block):
        last = min(first + block, t)
        largest = total = sums = None
        for start in range(0, last if causal and skip else t, block):
            stop = min(start + block, t)
            scores = q[:, first:last] @ k[:, start:stop].swapaxes(1, 2) / np.float32(sqrt(q.shape[2]))
            if causal:
                seen = xp.arange(start, stop) <= xp.arange(first, last)[:, None]
                scores = xp.where(seen, scores, -np.inf)
            own = scores.max(axis=2, keepdims=True)
            new = own if largest is None else xp.maximum(largest, own)
            weights = xp.exp(scores - new)
            part, mixed = weights.sum(axis=2, keepdims=True), weights @ v[:, start:stop]
            if largest is not None:
                faded = xp.exp(largest - new)
                part, mixed = part + total * faded, mixed + sums * faded
            largest, total, sums = new, part, mixed
        y[:, first:last] = sums / total
    return y


def nothing_left_out(q, k, v, block, causal=False):
    return masked_everywhere(q, k, v, block, causal, skip=False)


def rows_at_once(q, k, v, block, causal=False):
    """A block of queries beside all keys that one of them may see: larger arrays, and not T x T."""
    xp, t = device.array_module(q), q.shape[1]
    y = xp.empty_like(q)
    for start in range(0, t, block):
        stop = min(start + block, t)
        end = stop if causal else t
        scores = q[:, start:stop] @ k[:, :end].swapaxes(1, 2) / np.float32(sqrt(q.shape[2]))
        if causal:
            scores = xp.where(xp.arange(end) <= xp.arange(start, stop)[:, None], scores, -np.inf)
        weights = xp.exp(scores - scores.max(axis=2, keepdims=True))
        y[:, start:stop] = weights @ v[:, :end] / weights.sum(axis=2, keepdims=True)
    return y


def a_quarter_by_a_quarter(q, k, v, block, causal=False):
    return masked_everywhere(q, k, v, max(block, -(-q.shape[1] // 4)), causal)


def all_scores_kept(q, k, v, block, causal=False):
    """Small blocks in a list, and the softmax when all are there."""
    xp, t = device.array_module(q), q.shape[1]
    places = xp.arange(t)
    blocks = []
    for start in range(0, t, block):
        scores = q @ k[:, start : start + block].swapaxes(1, 2) / np.float32(sqrt(q.shape[2]))
        seen = places[start : start + block] <= places[:, None]
        blocks.append(xp.where(seen, scores, -np.inf) if causal else scores)
    largest = blocks[0].max(axis=2, keepdims=True)
    for scores in blocks[1:]:
        largest = xp.maximum(largest, scores.max(axis=2, keepdims=True))
    weights = [xp.exp(scores - largest) for scores in blocks]
    sums = sum(each @ v[:, block * i : block * (i + 1)] for i, each in enumerate(weights))
    return sums / sum(each.sum(axis=2, keepdims=True) for each in weights)


def one_by_one(q, k, v, block, causal=False):
    return masked_everywhere(q, k, v, 1, causal)


def whole_backward(grad, q, k, v, y, logsumexp, block):
    xp, scale = device.array_module(q), 1 / sqrt(q.shape[2])
    weights = xp.exp(q @ k.swapaxes(1, 2) * scale - logsumexp[:, :, None])
    by_scores = weights * (grad @ v.swapaxes(1, 2) - (grad * y).sum(axis=2, keepdims=True)) * scale
    return by_scores @ k, by_scores.swapaxes(1, 2) @ q, weights.swapaxes(1, 2) @ grad


def by_blocks_of_queries(grad, q, k, v, y, logsumexp, block):
    xp, scale = device.array_module(q), np.float32(1 / sqrt(q.shape[2]))
    by_q, by_k, by_v = xp.empty_like(q), xp.zeros_like(k), xp.zeros_like(v)
    for start in range(0, q.shape[1], block):
        own = slice(start, start + block)
        weights = xp.exp(scale * (q[:, own] @ k.swapaxes(1, 2)) - logsumexp[:, own, None])
        inner = (grad[:, own] * y[:, own]).sum(axis=-1)[..., None]
        by_scores = weights * (grad[:, own] @ v.swapaxes(1, 2) - inner)
        by_q[:, own] = by_scores @ k * scale
        by_k += by_scores.swapaxes(1, 2) @ q[:, own] * scale
        by_v += weights.swapaxes(1, 2) @ grad[:, own]
    return [by_q, by_k, by_v]


KERNEL = "attention_kernel"

MUTANTS = {
    "attention_counts": [Mutant(result_of("attention_counts", lambda y: (y[0], y[1] * 2)), "expected")],
    "attention_loops": [Mutant(not_divided, "values differ")],
    "attention_plain": [Mutant(without_largest, "nan")],
    "online_softmax": [Mutant(undone, "nan")],
    "attention_blocks": [
        Mutant(nothing_left_out, "operations, at most"),
        Mutant(a_quarter_by_a_quarter, "an array of 676 bytes, at most 655 allowed (for blocks as large as asked)"),
        Mutant(all_scores_kept, "bytes at a time"),
        Mutant(one_by_one, "launches, at most 450 allowed (for blocks as large as asked)"),
    ],
    "attention_backward": [Mutant(whole_backward, "an array of 18,496 bytes")],
    KERNEL: [
        Mutant(
            in_place(
                KERNEL,
                (
                    "        jit.syncthreads()\n        if row < n and start + i < n:",
                    "        jit.syncwarp()\n        if row < n and start + i < n:",
                ),
            )[0],
            "race: thread",
        ),
        Mutant(in_place(KERNEL, ("keys[i * WIDTH + p]", "k[start + i, p]"))[0], "of global memory, at most"),
        Mutant(in_place(KERNEL, ("WIDTH, LOW = 32, 8, 32, 33", "WIDTH, LOW = 32, 8, 32, 32"))[0], "bank"),
    ],
}

ALL_AT_ONCE = """\
            there, before = min(TILE, n - start), largest
            for p in range(there):
                largest = max(largest, scores[j * TILE + p])
            faded = cp.exp(before - largest)
            total *= faded
            mixed *= faded
            for p in range(there):
                weight = cp.exp(scores[j * TILE + p] - largest)
                total += weight
                mixed += weight * values[p * WIDE + i]
"""
ONE_BY_ONE = """\
            for p in range(min(TILE, n - start)):
                before = largest
                largest = max(before, scores[j * TILE + p])
                faded, weight = cp.exp(before - largest), cp.exp(scores[j * TILE + p] - largest)
                total = total * faded + weight
                mixed = mixed * faded + weight * values[p * WIDE + i]
"""

HONEST = {  # the kernel with more queries a block, or a correction for each score
    "attention_blocks": [masked_everywhere, sums_of_values_and_ones],
    KERNEL: in_place(KERNEL, ("WIDTH, LOW = 32, 8, 32, 33", "WIDTH, LOW = 32, 16, 32, 33"), (ALL_AT_ONCE, ONE_BY_ONE)),
}

RIGHT = {
    "attention_counts": [
        counted_by_shapes,
        counted_by_heads,
        lambda n, heads, t, d: (2 * 2 * n * heads * d * t**2, n * heads * t * t * 4),
        lambda n, heads, t, d: [4 * n * heads * d * t * t, 4 * t * n * t * heads],
        lambda n, heads, t, d: (int(np.prod([4, n, heads, t, t, d])), int(np.prod([4, n, heads, t, t]))),
    ],
    "attention_loops": [
        query_by_query,
        in_float64,
        key_by_key,
        *in_place("attention_loops", ("weight * v[key, i]", "v[key, i] * weight"), (" / sqrt(d)", " * d**-0.5")),
    ],
    "attention_plain": [
        by_einsum,
        head_by_head,
        *in_place(
            "attention_plain",
            (" / sqrt(d)", " * d**-0.5"),
            ("scores.max(axis=2, keepdims=True)", "scores.max(-1)[..., None]"),
            ("np.arange(t) <= np.arange(t)[:, None]", "np.tri(t, dtype=bool)"),
        ),
    ],
    "online_softmax": [
        both_corrected,
        score_by_score,
        row_by_row,
        joined,
        *in_place("online_softmax", ("total * np.exp(largest - new)", "np.exp(largest - new) * total")),
    ],
    "attention_blocks": [
        blocks_of_keys,
        rows_at_once,
        *in_place(
            "attention_blocks",
            ("largest, total, sums = -np.inf", "largest, total, sums = -1e30"),
            ("range(0, first + 1 if causal else t, block)", "range(0, (first if causal else t - 1) + 1, block)"),
        ),
    ],
    "attention_backward": [
        by_blocks_of_queries,
        *in_place(
            "attention_backward",
            ("some = slice(start, start + block)", "some = slice(start, min(start + block, len(q[0])))"),
            (".sum(axis=2, keepdims=True)", ".sum(axis=-1)[:, :, None]"),
            ("k[:, some].swapaxes(1, 2)", "k[:, some].transpose(0, 2, 1)"),
            ("by_q += by_scores @ k[:, some]", "by_q = by_q + by_scores @ k[:, some]"),
        ),
    ],
    KERNEL: in_place(
        KERNEL,
        ("for start in range(0, n, TILE):", "for tile in range((n + TILE - 1) // TILE):\n        start = tile * TILE"),
        ("WIDTH, LOW = 32, 8, 32, 33", "WIDTH, LOW = 32, 8, 32, 37"),
        ("total *= faded\n            mixed *= faded", "mixed *= faded\n            total *= faded"),
        (
            "for p in range(there):\n                weight",
            "for p in range(min(TILE, n - start)):\n                weight",
        ),
    ),
}
