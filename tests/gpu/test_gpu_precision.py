"""Smaller numbers on a real GPU: float16 networks, int8 products, sparse products, training in float16."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unrolled import data, device, nn, ops

cp: Any = pytest.importorskip("cupy", reason='CuPy is not installed: pip install -e ".[gpu]"')
RNG = np.random.default_rng(4)
IMAGES = RNG.normal(size=(33, 2, 12, 11)).astype(np.float32)


def made() -> nn.Sequential:
    layers = nn.Conv2d(5, 3, stride=(2, 1), padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(17), nn.ReLU(), nn.Linear(4)).build((2, 12, 11), cp)


def test_a_float16_network_gives_the_same_scores() -> None:
    network = made()
    x = cp.asarray(IMAGES)
    expected = network.scores(x)
    found = network.half().scores(x)
    assert found.dtype == np.float32
    assert float(abs(found - expected).max()) < 1e-2 * float(abs(expected).max())
    y = network.half().layers[0].forward(x)
    assert y.dtype == np.float16
    labels = cp.asarray(RNG.integers(0, 4, 33))
    loss = network.half().evaluate(data.Dataset(x, labels)).loss
    assert loss == pytest.approx(network.evaluate(data.Dataset(x, labels)).loss, rel=1e-2)


@pytest.mark.parametrize("shape", [(5, 7, 3), (64, 256, 32), (100, 1030, 17), (0, 3, 2), (3, 0, 2)])
def test_int8_products_are_exact(shape: tuple[int, int, int]) -> None:
    n, k, m = shape
    a, b = (RNG.integers(-128, 128, size).astype(np.int8) for size in ((n, k), (k, m)))
    y = ops.precision.int8_matmul(cp.asarray(a), cp.asarray(b))
    assert y.dtype == np.int32
    np.testing.assert_array_equal(device.to_host(y), a.astype(np.int64) @ b.astype(np.int64))


def test_float16_training_learns_as_on_the_host() -> None:
    train, test = data.digits().split()
    network = nn.Sequential(nn.Flatten(), nn.Linear(30), nn.ReLU(), nn.Linear(10))
    on_gpu = data.Dataset(cp.asarray(train.images), cp.asarray(train.labels))
    history = network.fit(on_gpu, epochs=4, precision="float16", progress=False)
    assert len(history.loss_scale) == 4 * -(-len(train) // 32)
    assert network.evaluate(data.Dataset(cp.asarray(test.images), cp.asarray(test.labels))).accuracy > 0.8
