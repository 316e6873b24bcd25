"""The end of a network in one launch or two: the last dense layer, softmax, cross entropy, and the way back."""

from __future__ import annotations

import numpy as np

from unrolled.kernels.kernel import Arrays, Kernel, Options, of_blocks, source
from unrolled.kernels.loss import softmax_cross_entropy


def _head(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (x, weight, bias, labels), (all_losses, all_grads, grad_x, *sums) = inputs, outputs
    with np.errstate(all="ignore"):
        scores = x @ weight.T + bias
        losses, grad = np.empty(len(x), x.dtype), np.empty_like(scores)
        softmax_cross_entropy.numpy((scores, labels), (losses, grad), options)
        if options["inputs"]:
            grad_x[...] = grad @ weight * (x > 0) if options["masked"] else grad @ weight
    if options["blocks"] == 1:
        loss, grad_weight, grad_bias = sums
        _head_weights((grad, x, losses), (grad_weight, grad_bias, loss), options)
    else:
        all_losses[...], all_grads[...] = losses, grad


def _head_weights(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (grad, x, losses), (grad_weight, grad_bias, loss) = inputs, outputs
    grad_weight[...] = grad.T @ x
    grad_bias[...] = grad.sum(axis=0)
    loss[...] = losses.mean()


head = Kernel(
    "head",
    source("head"),
    _head,
    lambda inputs, outputs, options: 4 * inputs[0].shape[0] * int(inputs[1].size),
    threads=of_blocks,
)
"""x (N, D), weight (M, D), bias, labels (N,) to losses (N,) and the gradients by scores (N, M) and x; M is at most 32.

With one block the mean loss (1,) and the gradients by weight and bias take the place of losses and scores'; else
`head_weights` finds these.
"""
head_weights = Kernel(
    "head_weights",
    source("head_weights"),
    _head_weights,
    lambda inputs, outputs, options: 2 * int(inputs[0].size) * inputs[1].shape[1],
    threads=lambda size, options: (options["d"] // 32 + 1) * options["block"],
)
"""The gradient by the scores (N, M), x (N, D) and losses (N,) to the gradients by weight and bias and the mean loss."""
