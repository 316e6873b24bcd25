"""A small convolutional network for images of digits: convolution, ReLU, max-pooling, dense layer.

It answers in two ways, with the fast operations of `unrolled.ops` and with their plain loops, so that a lesson can race
one against the other on the same weights.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled import ops
from unrolled.data import Dataset
from unrolled.device import Array

CLASSES = 10
POOL = 2
WIDTH = 0.05  # standard deviation of the first weights


@dataclass(frozen=True)
class DigitNetwork:
    """Weights of conv O filters 3x3 with padding 1, ReLU, max-pool 2, affine to 10 scores.

    filters (O, C, 3, 3), filter_bias (O,), weight (10, O * H/2 * W/2), bias (10,), for images (N, C, H, W).
    """

    filters: Array
    filter_bias: Array
    weight: Array
    bias: Array

    def scores(self, images: Array) -> Array:
        """One score a class: (N, 10)."""
        return self.forward(images)[-1]

    def predict(self, images: Array) -> Array:
        """The class with the highest score: (N,) integers."""
        return self.scores(images).argmax(axis=1)

    def predict_with_loops(self, images: Array) -> Array:
        """The same answers from plain loops over every axis: thousands of times slower, fit for a few images."""
        hidden = ops.relu(ops.conv2d_loops(images, self.filters, self.filter_bias, padding=1))
        pooled = ops.max_pool2d_loops(hidden, POOL)
        scores = ops.matmul_loops(pooled.reshape(len(images), -1), self.weight.T) + self.bias
        return scores.argmax(axis=1)

    def accuracy(self, dataset: Dataset) -> float:
        """The share of right predictions, 0 to 1."""
        return float((self.predict(dataset.images) == dataset.labels).mean())

    def forward(self, images: Array) -> tuple[Array, Array, Array]:
        """What every layer gives, as the way back needs it: (convolved, pooled, scores)."""
        convolved = ops.conv2d(images, self.filters, self.filter_bias, padding=1)
        pooled = ops.max_pool2d(ops.relu(convolved), POOL)
        return convolved, pooled, ops.affine(pooled.reshape(len(images), -1), self.weight, self.bias)

    def gradients(self, images: Array, labels: Array) -> tuple[float, DigitNetwork]:
        """The mean loss over a batch, and its gradient by every weight, in the form of a network."""
        convolved, pooled, scores = self.forward(images)
        loss, grad = softmax_cross_entropy(scores, labels)
        grad, weight, bias = ops.affine_backward(grad, pooled.reshape(len(images), -1), self.weight)
        grad = ops.max_pool2d_backward(grad.reshape(pooled.shape), ops.relu(convolved), POOL)
        grad = ops.relu_backward(grad, convolved)
        _, filters, filter_bias = ops.conv2d_backward(grad, images, self.filters, padding=1)
        return loss, DigitNetwork(filters, filter_bias, weight, bias)


def train(
    dataset: Dataset,
    *,
    filters: int = 4,
    epochs: int = 5,
    batch_size: int = 16,
    learning_rate: float = 0.1,
    seed: int = 0,
) -> DigitNetwork:
    """Train a network from random weights by plain stochastic gradient descent. The same seed gives the same network.

    Images must be of even height and width. On the 1,500 digits it takes 1-2 s and reaches about 95 % on the others.
    """
    rng = np.random.default_rng(seed)
    network = _initial(rng, filters, dataset.images.shape[1:])
    for epoch in range(epochs):
        rate = learning_rate * (1 - epoch / epochs)  # smaller steps towards the end: a steadier result
        order = rng.permutation(len(dataset))
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            _, gradient = network.gradients(dataset.images[batch], dataset.labels[batch])
            network = _step(network, gradient, rate)
    return network


def softmax_cross_entropy(scores: Array, labels: Array) -> tuple[float, Array]:
    """Mean cross entropy of softmax(scores (N, M)) against integer labels (N,), and its gradient by the scores.

    The gradient is (softmax - one-hot) / N. The largest score is subtracted first, so that exp cannot overflow.
    """
    rows = np.arange(len(scores))
    shifted = scores - scores.max(axis=1, keepdims=True)
    log_softmax = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    grad = np.exp(log_softmax)
    grad[rows, labels] -= 1
    return float(-log_softmax[rows, labels].mean()), grad / len(scores)


def _initial(rng: np.random.Generator, filters: int, image_shape: tuple[int, ...]) -> DigitNetwork:
    channels, height, width = image_shape
    if height % POOL or width % POOL:
        raise ValueError(f"images are {height} x {width}; expected an even height and width")
    features = filters * (height // POOL) * (width // POOL)
    return DigitNetwork(
        _normal(rng, filters, channels, 3, 3),
        np.zeros(filters, np.float32),
        _normal(rng, CLASSES, features),
        np.zeros(CLASSES, np.float32),
    )


def _normal(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.normal(0, WIDTH, shape).astype(np.float32)


def _step(network: DigitNetwork, gradient: DigitNetwork, learning_rate: float) -> DigitNetwork:
    """Every weight a step against its gradient."""
    moved: dict[str, Any] = {
        field.name: getattr(network, field.name) - learning_rate * getattr(gradient, field.name)
        for field in fields(DigitNetwork)
    }
    return DigitNetwork(**moved)
