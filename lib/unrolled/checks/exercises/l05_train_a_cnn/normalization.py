"""Batch normalization in training as a pure function, and the usual mistakes in it."""

from __future__ import annotations

import numpy as np

from unrolled.checks.mistakes import given, result
from unrolled.checks.spec import Inputs
from unrolled.device import Array


def normalized(
    x: Array,
    gamma: Array,
    beta: Array,
    epsilon: float = 1e-5,
    *,
    over: tuple[int, ...] = (0, 2, 3),
    fewer: int = 0,
    outside: float = 0.0,
    power: float = 0.5,
    centred: bool = True,
    brackets: bool = True,
    flat_moments: bool = False,
    flat_parameters: bool = False,
) -> Array:
    """Return gamma * (x - mean) / sqrt(variance + epsilon) + beta, by the mean and variance of each channel of x.

    Mistakes are `over` other axes, by `fewer` values, with an epsilon `outside` of the root, with another power, not
    `centred`, or without `brackets`, so that the mean alone is divided.
    What is `flat`, (C,), goes along the columns: a ValueError, unless there are as many.
    """
    mean, variance = x.mean(axis=over, keepdims=True), x.var(axis=over, ddof=fewer, keepdims=True)
    if flat_moments:
        mean, variance = mean.ravel(), variance.ravel()
    if not flat_parameters:
        gamma, beta = gamma[:, None, None], beta[:, None, None]
    root = (variance + epsilon) ** power + outside
    return gamma * ((x - mean * centred) / root if brackets else x - mean / root) + beta


def any_batch(rng: np.random.Generator) -> Inputs:
    """Draw a batch of any size, not centred, gamma and beta for its channels, and an epsilon that shows."""
    n, c, h, w = (int(size) for size in rng.integers(2, 6, 4))
    x, scales = rng.normal(1, 2, (n, c, h, w)).astype(np.float32), rng.normal(0, 1, (2, c)).astype(np.float32)
    return {"x": x, "gamma": scales[0], "beta": scales[1], "epsilon": float(rng.uniform(0.1, 1))}


MISTAKES = (
    given(
        "the mean and the variance are over images only: a channel has one of each, over positions as well", over=(0,)
    ),
    given("each image is normalized by itself: the mean is over all images of the batch, axes (0, 2, 3)", over=(2, 3)),
    given("axis 1 is that of the channels: the mean is over all the others, axes (0, 2, 3)", over=(1,)),
    given("the mean is over the channels, too: each channel has its own, over the axes (0, 2, 3)", over=(0, 1, 2, 3)),
    given("you divide by the variance: take its square root", power=1.0),
    given("epsilon is outside of the root: it is added to the variance", epsilon=0.0, outside=lambda epsilon: epsilon),
    given("epsilon is missing: add it to the variance, before the root", epsilon=0.0),
    given("the variance divides by one value fewer: here it is the plain mean of the squares", fewer=1),
    given(
        "gamma and beta are exchanged: gamma multiplies, beta is added",
        gamma=lambda beta: beta,
        beta=lambda gamma: gamma,
    ),
    given(
        "gamma and beta are missing: gamma * x_hat + beta",
        gamma=lambda gamma: 0 * gamma + 1,
        beta=lambda beta: 0 * beta,
    ),
    given(
        "this is the mean of x**2: the variance is that of (x - mean)**2",
        epsilon=lambda x, epsilon: epsilon + x.mean(axis=(0, 2, 3), keepdims=True) ** 2,
    ),
    given("gamma is missing: it multiplies x_hat", gamma=lambda gamma: 0 * gamma + 1),
    given("beta is missing: add it at the end", beta=lambda beta: 0 * beta),
    given(
        "gamma and beta go along the columns: with gamma[:, None, None] they go along the channels",
        flat_parameters=True,
    ),
    given("mean and variance go along the columns: keepdims=True keeps the channels", flat_moments=True),
    result("beta goes along the columns: beta[:, None, None]", lambda y, beta: y - beta[:, None, None] + beta),
    result(
        "beta is multiplied by gamma: add it after, gamma * x_hat + beta",
        lambda y, gamma, beta: y + ((gamma - 1) * beta)[:, None, None],
    ),
    given("only the mean is divided: put x - mean in brackets", brackets=False),
    given(
        "all four go along the columns: keepdims=True for mean and variance, [:, None, None] for the others",
        flat_moments=True,
        flat_parameters=True,
    ),
    given("the mean is not subtracted", centred=False),
)
