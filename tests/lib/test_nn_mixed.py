"""Training in 16 bits: it learns as float32 does, loss scaling cures underflow and overflow, bad input is named."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from unrolled import data, nn, ops
from unrolled.ops.precision import LossScale

TRAIN, TEST = data.digits().split()
RNG = np.random.default_rng(2)
SET = data.Dataset(RNG.normal(size=(32, 5)).astype(np.float32), RNG.integers(0, 3, 32))


def made(seed: int = 0, loss: Any = ops.softmax_cross_entropy) -> nn.Sequential:
    return nn.Sequential(nn.Linear(8), nn.ReLU(), nn.Linear(3), seed=seed, loss=loss)


def fitted(network: nn.Sequential, **options: Any) -> nn.History:
    return network.fit(SET, batch_size=32, progress=False, **({"epochs": 1} | options))


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_it_learns_digits_as_float32_does(precision: str) -> None:
    if precision == "bfloat16":
        pytest.importorskip("ml_dtypes")
    found = []
    for kind in ("float32", precision):
        network = nn.Sequential(nn.Conv2d(4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(10))
        network.fit(TRAIN, epochs=3, precision=kind, progress=False)
        found.append(network.evaluate(TEST).accuracy)
    assert found[1] == pytest.approx(found[0], abs=0.02)
    assert found[1] > 0.9


def test_the_weights_stay_float32_and_move_by_less_than_float16_sees() -> None:
    network = made().build((5,))
    network.parameters[...] = 1.0
    fitted(network, precision="float16", optimizer=nn.SGD(1e-6))
    moved = np.abs(network.parameters - 1)
    assert network.parameters.dtype == np.float32
    assert 0 < moved.max() < 2.0**-12


def scaled(factor: float) -> Any:
    """A loss whose gradients float16 holds only if they are scaled by a larger or a smaller factor."""

    def loss(scores: Any, labels: Any) -> Any:
        found, grad = ops.softmax_cross_entropy(scores, labels)
        return found, grad * np.float32(factor)

    return loss


def test_the_scale_cures_underflow_and_is_taken_out_again() -> None:
    lost, cured, exact = (made(loss=scaled(1e-8)) for _ in range(3))
    fitted(lost, precision="float16", loss_scale=LossScale(1.0))
    assert not lost.gradients.any()
    fitted(cured, precision="float16", loss_scale=LossScale(2.0**20))
    fitted(exact)
    np.testing.assert_allclose(cured.gradients, exact.gradients, rtol=0.02, atol=exact.gradients.max() * 0.01)


def test_overflow_skips_the_step_and_halves_and_good_steps_double() -> None:
    network = made(loss=scaled(100)).build((5,))
    before = network.parameters.copy()
    history = fitted(network, precision="float16", loss_scale=LossScale(2.0**24))
    np.testing.assert_array_equal(network.parameters, before)
    assert (history.skipped, history.loss_scale) == (1, [2.0**24])
    history = fitted(network, precision="float16", loss_scale=LossScale(2.0**24), epochs=30)
    assert history.skipped == history.loss_scale.count(2.0**24) + sum(
        b < a for a, b in zip(history.loss_scale[1:], history.loss_scale[2:], strict=False)
    )
    assert history.loss_scale[-1] < 2.0**24
    assert (network.parameters != before).any()
    assert "steps skipped, last loss scale" in str(history)
    history = fitted(made(), precision="float16", loss_scale=LossScale(8.0, 1999), epochs=3)
    assert (history.loss_scale, history.skipped) == ([8.0, 16.0, 16.0], 0)


def test_bfloat16_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ImportError, match="pip install ml_dtypes"):
        fitted(made(), precision="bfloat16")


def test_values_beyond_float16_name_the_layer() -> None:
    large = data.Dataset(np.full((4, 5), 1e5, np.float32), np.zeros(4, np.int64))
    with pytest.raises(OverflowError, match=r"the input: gives values up to 100000; float16 ends at 65504"):
        made().fit(large, epochs=1, precision="float16", progress=False)
    network = made().build((5,))
    network.layers[0].parameters["weight"] = np.full((8, 5), 1e4, np.float32)
    before = network.parameters.copy()
    some = data.Dataset(np.full((4, 5), 10, np.float32), np.zeros(4, np.int64))
    with pytest.raises(OverflowError, match=r"layer 0, Linear\(8\): gives values up to 500000"):
        network.fit(some, epochs=1, precision="float16", progress=False)
    np.testing.assert_array_equal(network.parameters, before)
    network.layers[0].parameters["weight"] = np.full((8, 5), 1e5, np.float32)
    with pytest.raises(OverflowError, match=r"layer 0, Linear\(8\): weight is beyond float16"):
        network.fit(some, epochs=1, precision="float16", progress=False)
