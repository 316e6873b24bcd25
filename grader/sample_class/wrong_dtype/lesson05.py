"""float64, because np.sqrt of a Python number is a float64 of NumPy's, and astype(float) is float64."""

import numpy as np


def minibatches(images, labels, batch_size, seed):
    order = np.random.default_rng(seed).permutation(len(images))
    for start in range(0, len(images), batch_size):
        chosen = order[start : start + batch_size]
        yield images[chosen].astype(float), labels[chosen]


def adam_step(parameters, gradient, m, v, t, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8):
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    correction = np.sqrt(1 - beta2**t) / (1 - beta1**t)
    return parameters - learning_rate * correction * m / (np.sqrt(v) + epsilon), m, v
