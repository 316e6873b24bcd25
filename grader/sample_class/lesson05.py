"""Lesson 05: in what a student of the sample class differs from the solution, a class a student."""

import numpy as np

from unrolled import ops


class off_by_one:
    """Loops that end one step early: without the first layer, without the last batch; steps counted from 0."""

    sequential_backward = {"reversed(layers)": "reversed(layers[1:])"}
    minibatches = {"range(0, len(images), batch_size)": "range(0, len(images) - batch_size + 1, batch_size)"}
    adam_step = {"beta1**t": "beta1 ** (t + 1)", "beta2**t": "beta2 ** (t + 1)"}


class another_way:
    """Right, by other ways: folded functions, split orders, one formula, and no network at all."""

    def sequential_forward(layers, x, training=False):
        from functools import reduce

        return reduce(lambda batch, layer: layer.forward(batch, training), layers, x)

    def sequential_backward(layers, grad):
        return grad if not layers else sequential_backward(layers[:-1], layers[-1].backward(grad))

    def minibatches(images, labels, batch_size, seed):
        order = np.argsort(np.random.default_rng(seed).random(len(images)))
        parts = np.split(order, range(batch_size, len(images), batch_size))
        return [(images[part], labels[part]) for part in parts]

    def momentum_step(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
        new = np.add(gradient, weight_decay * parameters) + np.multiply(velocity, momentum)
        return np.subtract(parameters, learning_rate * new), new

    def adam_step(parameters, gradient, m, v, t, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8):
        m = m + (1 - beta1) * (gradient - m)
        v = v + (1 - beta2) * (gradient * gradient - v)
        rate = learning_rate * (1 - beta2**t) ** 0.5 / (1 - beta1**t)
        return parameters - rate * m / (np.sqrt(v) + epsilon * (1 - beta2**t) ** 0.5), m, v

    def evaluate(forward, images, labels, batch_size):
        parts = [forward(images[start : start + batch_size]) for start in range(0, len(images), batch_size)]
        scores = np.concatenate(parts)
        loss, _ = ops.softmax_cross_entropy(scores, labels)
        return float(loss), float(np.mean(np.argmax(scores, axis=1) == labels))

    def train(images, labels, test_images, seed):
        known, asked = images.reshape(len(images), -1), test_images.reshape(len(test_images), -1)
        distances = (known**2).sum(axis=1) - 2 * asked @ known.T
        return labels[distances.argmin(axis=1)]

    def batch_norm2d(x, gamma, beta, epsilon=1e-5):
        rows = x.swapaxes(0, 1).reshape(len(gamma), -1)
        mean, square = rows.mean(axis=1), (rows.astype(float) ** 2).mean(axis=1)
        scale = (gamma / np.sqrt(square - mean.astype(float) ** 2 + epsilon)).astype(x.dtype)
        return np.einsum("nchw,c->nchw", x, scale) + (beta - mean * scale)[:, np.newaxis, np.newaxis]
