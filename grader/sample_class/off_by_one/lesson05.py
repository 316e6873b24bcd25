"""Loops that end one step early: without the first layer, without the last batch; steps counted from 0."""

import numpy as np


def sequential_backward(layers, grad):
    for index in range(len(layers) - 1, 0, -1):
        grad = layers[index].backward(grad)
    return grad


def minibatches(images, labels, batch_size, seed):
    order = np.random.default_rng(seed).permutation(len(images))
    for number in range(len(images) // batch_size):
        chosen = order[number * batch_size : (number + 1) * batch_size]
        yield images[chosen], labels[chosen]


def adam_step(parameters, gradient, m, v, t, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8):
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    m_hat, v_hat = m / (1 - beta1 ** (t + 1)), v / (1 - beta2 ** (t + 1))
    return parameters - learning_rate * m_hat / (np.sqrt(v_hat) + epsilon), m, v
