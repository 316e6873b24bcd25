"""Losses: one number that says how wrong the answers are, and its gradient by them."""

from __future__ import annotations

from math import nan, prod

import numpy as np

from unrolled import kernels
from unrolled.device import Array, Module
from unrolled.ops.arguments import as_floats, check_arrays, check_axes, check_shape, rounds_once


@rounds_once
def softmax_cross_entropy(scores: Array, labels: Array) -> tuple[Array, Array]:
    """Return the loss of scores (N, M) for labels (N,), and its gradient by the scores (N, M).

    The loss is -log of the probability that softmax gives to the label, mean over N. Labels are integers from 0 to
    M - 1, one a sample. The gradient is (softmax - one-hot) / N (Bishop, Pattern Recognition and Machine Learning,
    4.3.4). The loss is a 0-d value of the scores' dtype and stays where they are. The logarithm is taken of the sum,
    never of a probability, so that no probability of 0 can make it NaN; where the score of the label is -inf, the loss
    is infinity.

    Raises ValueError for shapes that do not fit, no samples, labels that are no integers, and labels out of range. The
    range is checked for NumPy arrays only, because a look at the values would wait for a GPU: there, the loss is NaN.
    """
    module = check_arrays(scores=scores, labels=labels)
    _check(scores, labels)
    (scores,) = as_floats(scores)
    n, m = scores.shape
    if kernels.take(scores):
        return _fused(module, scores, labels if labels.dtype.char == "l" else labels.astype("int64", copy=False))
    shifted = scores - scores.max(axis=1, keepdims=True)
    grad = module.exp(shifted)
    sums = grad.sum(axis=1)
    chosen = (module.arange(n), labels)
    losses = module.log(sums) - shifted[chosen]
    if module is not np:
        losses = module.where((labels >= 0) & (labels < m), losses, nan)
    sums *= n
    grad /= sums.reshape(n, 1)
    grad[chosen] -= 1 / n
    return losses.mean(), grad


def _fused(module: Module, scores: Array, labels: Array) -> tuple[Array, Array]:
    """`softmax_cross_entropy` in two launches."""
    grad, losses = (module.empty(shape, dtype=scores.dtype) for shape in (scores.shape, scores.shape[:1]))
    loss = module.empty((), dtype=scores.dtype)
    kernels.softmax_cross_entropy((scores, labels), (losses, grad), kernels.constants(m=scores.shape[1]))
    kernels.mean((losses,), (loss,))
    return loss, grad


@rounds_once
def mean_squared_error(predictions: Array, targets: Array) -> tuple[Array, Array]:
    """Return the mean of (predictions - targets)^2 over all values, and its gradient by the predictions.

    The gradient is 2 * (predictions - targets) / number of values. Any shape, the same for both: nothing is broadcast.
    The loss is a 0-d value that stays where the arrays are. Raises ValueError if the shapes differ or hold no values.
    """
    check_arrays(predictions=predictions, targets=targets)
    check_shape("targets", targets, predictions.shape, f"predictions {predictions.shape}")
    count = prod(predictions.shape)
    if not count:
        raise ValueError(f"predictions has shape {predictions.shape}: the mean of no values is undefined")
    predictions, targets = as_floats(predictions, targets)
    grad = predictions - targets
    loss = (grad * grad).mean()
    grad *= 2 / count
    return loss, grad


def _check(scores: Array, labels: Array) -> None:
    check_axes("scores", scores, "N, M")
    n, m = scores.shape
    check_shape("labels", labels, (n,), f"scores {scores.shape}")
    if labels.dtype.kind not in "iu":
        raise ValueError(f"labels are {labels.dtype}; expected integers, one class a sample")
    if not n or not m:
        raise ValueError(f"scores has shape {scores.shape}; expected at least one sample and one class")
    if isinstance(labels, np.ndarray):
        least, most = labels.min(), labels.max()
        if least < 0 or most >= m:
            wrong = least if least < 0 else most
            raise ValueError(f"labels holds {wrong}; expected 0 to {m - 1} for scores of shape {scores.shape}")
