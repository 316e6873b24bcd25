"""Weights that are left out, and weights of one bit."""

from __future__ import annotations

from math import floor

import numpy as np

from unrolled import ops
from unrolled.checks.spec import Draw, Inputs
from unrolled.device import Array

WORD = 64
ONES = 2**WORD - 1


def prune(weight: Array, fraction: float, updates: list[Array]) -> Array:
    """Return the weights with the smallest magnitudes at 0, after updates that leave these at 0."""
    mask = kept(weight, fraction)
    for update in updates:
        weight = (weight - update) * mask
    return weight * mask


def kept(weight: Array, fraction: float) -> Array:
    """Return 1 for each weight that stays, 0 for the floor(fraction * size) smallest magnitudes."""
    mask = np.ones(weight.size, weight.dtype)
    mask[np.argsort(np.abs(weight), axis=None)[: floor(fraction * weight.size)]] = 0
    return mask.reshape(weight.shape)


def any_pruning(rng: np.random.Generator) -> Inputs:
    """Draw a layer's weights and some updates."""
    o, k, count = (int(each) for each in rng.integers((2, 3, 1), (6, 9, 4)))
    arrays = [rng.standard_normal((o, k)).astype(np.float32) for _ in range(count + 1)]
    return {"weight": arrays[0], "fraction": float(rng.uniform(0.3, 0.9)), "updates": arrays[1:]}


def uneven_pruning(rng: np.random.Generator) -> Inputs:
    """Draw filters (2, 1, 3, 3) and an update; the share is 13.86 of 18 weights, of which 13 go."""
    weight, update = rng.standard_normal((2, 2, 1, 3, 3)).astype(np.float32)
    return {"weight": weight, "fraction": 0.77, "updates": [update]}


def rounded(weight: Array, fraction: float, updates: list[Array]) -> Array:
    """Return the weights where the number of those that go is rounded to the nearest."""
    most = round(fraction * weight.size)
    return prune(weight, (most + 0.5) / weight.size, updates)  # half a weight more: a quotient may fall short


def masked_in_updates(weight: Array, fraction: float, updates: list[Array]) -> Array:
    """Return the weights where the mask is first used after an update."""
    return prune(weight, fraction, updates) if updates else weight.copy()


def masked_once(weight: Array, fraction: float, updates: list[Array]) -> Array:
    """Return the weights where what was pruned grows again."""
    weight = weight * kept(weight, fraction)
    for update in updates:
        weight = weight - update
    return weight


def masked_at_the_end(weight: Array, fraction: float, updates: list[Array]) -> Array:
    """Return the weights where the mask is that of the last ones."""
    for update in updates:
        weight = weight - update
    return weight * kept(weight, fraction)


def largest_first(weight: Array, fraction: float, updates: list[Array]) -> Array:
    """Return the weights where the largest magnitudes go."""
    mask = 1 - kept(weight, 1 - fraction)
    for update in updates:
        weight = (weight - update) * mask
    return weight * mask


def by_value(weight: Array, fraction: float, updates: list[Array]) -> Array:
    """Return the weights where the smallest values go, the most negative first."""
    mask = np.ones(weight.size, weight.dtype)
    mask[np.argsort(weight, axis=None)[: floor(fraction * weight.size)]] = 0
    mask = mask.reshape(weight.shape)
    for update in updates:
        weight = (weight - update) * mask
    return weight * mask


# one bit


def binary_matmul(a: Array, b: Array, k: int) -> Array:
    """Return products of signs a (N, W) and b (M, W), packed in words of 64, with k values in a row: (N, M) int32."""
    words = np.full(a.shape[1], ONES, np.uint64)
    if k % WORD:
        words[-1] = (1 << k % WORD) - 1
    y = np.empty((len(a), len(b)), np.int32)
    for row, signs in enumerate(a):
        y[row] = k - 2 * np.bitwise_count((signs ^ b) & words).sum(axis=1, dtype=np.int32)
    return y


def unpacked(a: Array, b: Array, k: int) -> Array:
    """Return the same from a number for each sign: NumPy has no BLAS for whole numbers."""
    x, y = (np.where(bits_of(words, k), np.int32(1), np.int32(-1)) for words in (a, b))
    return x @ y.T


def bits_of(words: Array, k: int) -> Array:
    """Return the first k bits of each row of words (N, W)."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little")[:, :k]


def signs(n: int, m: int, k: int) -> Inputs:
    """Return draws of packed signs a and b, with k values in a row; what lies beyond the k-th is anything."""
    words = -(-k // WORD)
    return {"a": _words(n, words), "b": _words(m, words), "k": k}


def _words(*shape: int) -> Draw:
    return Draw(lambda rng: rng.integers(0, 2**WORD, shape, dtype=np.uint64))


def any_signs(rng: np.random.Generator) -> Inputs:
    """Draw signs of any number."""
    n, m, k = (int(each) for each in rng.integers((1, 1, 1), (7, 7, 300)))
    drawn = signs(n, m, k)
    return {**drawn, "a": drawn["a"].make(rng), "b": drawn["b"].make(rng)}


def counted(a: Array, b: Array, k: int, words: Array) -> Array:
    """Return the products where the bits of these words (W,) count, be they the right ones or not."""
    differ = np.bitwise_count((a[:, None] ^ b) & words)
    return np.asarray(k - 2 * differ.sum(axis=2, dtype=np.int32), np.int32)


def with_the_tail(a: Array, b: Array, k: int) -> Array:
    """Return the products where bits beyond the k-th count."""
    return counted(a, b, k, np.full(a.shape[1], ONES, np.uint64))


def without_a_full_word(a: Array, b: Array, k: int) -> Array:
    """Return the products where the mask of the last word is empty if that word is full."""
    words = np.full(a.shape[1], ONES, np.uint64)
    words[-1] = (1 << k % WORD) - 1
    return counted(a, b, k, words)


def from_the_highest_bit(a: Array, b: Array, k: int) -> Array:
    """Return the products where the first sign is taken to lie in the highest bit."""
    words = np.full(a.shape[1], ONES, np.uint64)
    if k % WORD:
        words[-1] = 2**WORD - 2 ** (WORD - k % WORD)
    return counted(a, b, k, words)


def masked_in_each_word(a: Array, b: Array, k: int) -> Array:
    """Return the products where each word is cut to as many bits as the last one."""
    return counted(a, b, k, np.full(a.shape[1], (1 << k % WORD) - 1 if k % WORD else ONES, np.uint64))


def once(a: Array, b: Array, k: int) -> Array:
    """Return k less the number of signs that differ, once."""
    return (k + binary_matmul(a, b, k)) // 2


# straight through


def straight_through(grad: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    """Return the gradients by x (N, K) and weight (M, K) of sign(x) @ sign(weight).T, (N, M), straight through."""
    by_x, by_weight = grad @ ops.precision.binarize(weight), grad.T @ ops.precision.binarize(x)
    return by_x * (np.abs(x) <= 1), by_weight * (np.abs(weight) <= 1)


def any_layer(rng: np.random.Generator) -> Inputs:
    """Draw a binary layer's inputs and weights, on both sides of 1, and a gradient."""
    n, m, k = (int(each) for each in rng.integers(2, 7, 3))
    x, weight, grad = (rng.standard_normal(shape).astype(np.float32) for shape in ((n, k), (m, k), (n, m)))
    x[0, 0] = weight[1, 1] = 0  # as what a ReLU stopped
    return {"grad": grad, "x": 1.5 * x, "weight": 1.5 * weight}


def of_the_values(grad: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    """Return the gradients of x @ weight.T."""
    return (grad @ weight) * (np.abs(x) <= 1), (grad.T @ x) * (np.abs(weight) <= 1)


def zero_is_positive(grad: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    """Return the gradients where the sign of 0 is 1."""
    x_signs, weight_signs = (np.where(values >= 0, np.float32(1), np.float32(-1)) for values in (x, weight))
    return (grad @ weight_signs) * (np.abs(x) <= 1), (grad.T @ x_signs) * (np.abs(weight) <= 1)


def zero_is_zero(grad: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    """Return the gradients where the sign of 0 is 0."""
    return (grad @ np.sign(weight)) * (np.abs(x) <= 1), (grad.T @ np.sign(x)) * (np.abs(weight) <= 1)


def masked_anew(weight: Array, fraction: float, updates: list[Array]) -> Array:
    """Return the weights where each update is followed by a mask of its own."""
    weight = weight * kept(weight, fraction)
    for update in updates:
        weight = weight - update
        weight = weight * kept(weight, fraction)
    return weight


def not_stopped(grad: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    """Return the gradients that pass for values beyond 1, too."""
    return grad @ ops.precision.binarize(weight), grad.T @ ops.precision.binarize(x)


def x_stopped_alone(grad: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    """Return the gradients where weights beyond 1 are not stopped."""
    return straight_through(grad, x, weight)[0], not_stopped(grad, x, weight)[1]


def weight_stopped_alone(grad: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    """Return the gradients where values of x beyond 1 are not stopped."""
    return not_stopped(grad, x, weight)[0], straight_through(grad, x, weight)[1]
