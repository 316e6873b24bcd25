"""The way back: what it is given, of any size, and what goes wrong on it."""

from __future__ import annotations

from math import sqrt

import numpy as np

from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l14_attention import forms
from unrolled.checks.exercises.l14_attention.draws import any_heads, far
from unrolled.checks.mistakes import Function, Mistake, given, result
from unrolled.checks.spec import Inputs, normal, normals
from unrolled.device import Array


def any_gradient(rng: np.random.Generator) -> Inputs:
    """Draw what the backward pass is given, for q, k and v of any size."""
    drawn = any_heads(rng, least=1, steep=False)
    drawn.pop("causal", None)
    return with_gradient(drawn | {"block": edge_size(rng, 10)}, rng)


def with_gradient(inputs: Inputs, rng: np.random.Generator) -> Inputs:
    """Return the inputs with a gradient by the output, the output, and the logarithms of the sums."""
    q, k, v = (inputs[name] for name in "qkv")
    scores = q @ k.swapaxes(1, 2) / np.float32(sqrt(q.shape[2]))
    largest = scores.max(axis=2)
    logsumexp = largest + np.log(np.exp(scores - largest[:, :, None]).sum(axis=2))
    return {"grad": normal(*q.shape).make(rng), **inputs, "y": forms.plain(q, k, v), "logsumexp": logsumexp}


def sized(rng: np.random.Generator, shape: tuple[int, ...] = (2, 40, 5), block: int = 3) -> Inputs:
    """Draw what the backward pass is given, with scores of which exp is infinite in float32."""
    return with_gradient(far(normals(rng, q=shape, k=shape, v=shape), 130) | {"block": block}, rng)


def _last_block(
    grad: Array, q: Array, k: Array, v: Array, y: Array, logsumexp: Array, block: int
) -> tuple[Array, Array, Array]:
    _, by_k, by_v = forms.backward(grad, q, k, v, y, logsumexp, block)
    last = slice((k.shape[1] - 1) // block * block, None)
    return forms.backward(grad, q, k[:, last], v[:, last], y, logsumexp, q.shape[1])[0], by_k, by_v


def _by(says: str, weights: Function) -> Mistake:
    """Return the mistake of weights(scores, logsumexp (H, T, 1)) in place of the softmax."""

    def wrong(
        grad: Array, q: Array, k: Array, v: Array, y: Array, logsumexp: Array, block: int
    ) -> tuple[Array, Array, Array]:
        scale = 1 / sqrt(q.shape[2])
        found = weights(q @ k.swapaxes(1, 2) * scale, logsumexp[:, :, None])
        by_scores = found * (grad @ v.swapaxes(1, 2) - (grad * y).sum(axis=2, keepdims=True)) * scale
        return by_scores @ k, by_scores.swapaxes(1, 2) @ q, found.swapaxes(1, 2) @ grad

    return Mistake(says, wrong)


MISTAKES = (
    given("inner is missing: the softmax subtracts grad * y, summed along D", y=lambda y: 0 * y),
    result(
        "the division by the root of D is missing on the way back",
        lambda grads, q: (*(grad * np.float32(sqrt(q.shape[2])) for grad in grads[:2]), grads[2]),
    ),
    _by("a weight is exp(score - logsumexp): the exponential is missing", lambda scores, known: scores - known),
    _by("a weight is exp(score - logsumexp), not the other way round", lambda scores, known: np.exp(known - scores)),
    _by("logsumexp is missing: a weight is exp(score - logsumexp)", lambda scores, known: np.exp(scores)),
    result("the gradients by q and k are exchanged", lambda grads: (grads[1], grads[0], grads[2])),
    Mistake("the gradient by q is that of the last block alone: every block adds to it", _last_block),
)
