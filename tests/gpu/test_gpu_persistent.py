"""The kernels that go through all steps of an LSTM in one launch, beside NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unrolled import kernels

cp: Any = pytest.importorskip("cupy", reason='CuPy is not installed: pip install -e ".[gpu]"')

# (steps, samples, hidden): part of a block's samples, one step, several row groups, more samples than one launch takes
SIZES = [(1, 1, 64), (3, 5, 64), (6, 37, 192), (12, 64, 512), (4, 150, 512), (7, 2200, 64)]


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.get(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("steps", "n", "hidden"), SIZES)
def test_forward_and_backward(steps: int, n: int, hidden: int) -> None:
    rng = np.random.default_rng(steps)
    shapes = {"sums": (steps, n, 4 * hidden), "cells": (steps, n, hidden), "state": (n, hidden)}

    def normal(*shape: int, scale: float = 1.0) -> Any:
        return rng.normal(scale=scale, size=shape)

    weight, bias = normal(4 * hidden, hidden, scale=hidden**-0.5), normal(4 * hidden)
    forward = [normal(*shapes["sums"]), weight, bias, normal(*shapes["state"]), normal(*shapes["state"])]
    outputs = [np.empty(shapes[name]) for name in ("cells", "cells", "sums")]
    options = kernels.constants(hidden=hidden)
    kernels.lstm_persistent.numpy(forward, outputs, options)
    found = [cp.full(x.shape, np.nan, dtype="float32") for x in outputs]
    assert kernels.persists(found[0], hidden)
    kernels.lstm_persistent([cp.asarray(x, dtype="float32") for x in forward], found, options)
    for there, expected in zip(found, outputs, strict=True):
        close(there, expected)

    _, cells, gates = outputs
    grads = [normal(*shapes["cells"]), cells, gates, weight, forward[-1]]
    grads += [normal(*shapes["state"]), normal(*shapes["state"])]
    expected_grads = [np.empty(shapes[name]) for name in ("sums", "state", "state")]
    kernels.lstm_persistent_backward.numpy(grads, expected_grads, options)
    found = [cp.full(x.shape, np.nan, dtype="float32") for x in expected_grads]
    kernels.lstm_persistent_backward([cp.asarray(x, dtype="float32") for x in grads], found, options)
    for there, expected in zip(found, expected_grads, strict=True):
        close(there, expected)


def test_what_does_not_fit() -> None:
    x = cp.zeros(1, dtype="float32")
    assert not kernels.persists(x, 100)
    assert not kernels.persists(x, 576)
    assert not kernels.persists(x.astype("float64"), 64)
