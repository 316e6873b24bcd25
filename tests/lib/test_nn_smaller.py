"""Smaller networks: they give nearly the same scores, are saved and loaded, and the pruned and binary ones train.

And training in 16 bits: it learns as float32 does; loss scaling cures underflow and overflow.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unrolled import data, nn, ops, simgpu
from unrolled.nn.smaller_layers import BinaryLinear, PrunedConv2d, PrunedLinear
from unrolled.ops.precision import LossScale

RNG = np.random.default_rng(5)
IMAGES = RNG.normal(size=(40, 2, 6, 5)).astype(np.float32)
SET = data.Dataset(IMAGES, RNG.integers(0, 4, 40))
WAYS = {
    "half": lambda network: network.half(),
    "quantize": lambda network: network.quantize(IMAGES),
    "prune": lambda network: network.prune(0.5),
    "binarize": lambda network: network.binarize(),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


def made(seed: int = 0) -> nn.Sequential:
    layers = nn.Conv2d(3, 3, stride=(2, 1), padding=1), nn.BatchNorm2d(), nn.ReLU(), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(8), nn.ReLU(), nn.Linear(4), seed=seed).build((2, 6, 5))


@every_way
def test_a_smaller_network_is_used_saved_and_loaded(way: Any, tmp_path: Path) -> None:
    network = made()
    network.fit(SET, epochs=1, progress=False)  # running averages that differ from the first ones
    before = network.parameters.copy()
    small = way(network)
    np.testing.assert_array_equal(network.parameters, before)
    small.save(tmp_path / "small.npz")
    again = way(made(seed=1)).load(tmp_path / "small.npz")
    np.testing.assert_array_equal(again.scores(IMAGES), small.scores(IMAGES))
    assert small.evaluate(SET) == again.evaluate(SET)
    np.testing.assert_array_equal(small.predict(IMAGES), small.scores(IMAGES).argmax(axis=1))
    with pytest.raises(ValueError, match="does not fit this network"):
        (made().quantize(IMAGES) if way is WAYS["half"] else made().half()).load(tmp_path / "small.npz")


@pytest.mark.parametrize(("name", "most", "dtype"), [("half", 2e-3, "float16"), ("quantize", 0.05, "int8")])
def test_weights_take_fewer_bytes_and_scores_hardly_change(name: str, most: float, dtype: str) -> None:
    network = made()
    expected, small = network.scores(IMAGES), WAYS[name](network)
    found = small.scores(IMAGES)
    assert [layer.constants["weight"].dtype for layer in small.layers if layer.constants] == [dtype] * 3
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() <= most * np.abs(expected).max()
    assert (found != expected).any()


def test_int8_is_the_product_of_what_it_dequantizes() -> None:
    network = made()
    layer = network.quantize(IMAGES).layers[0]
    own = layer.constants
    x = ops.precision.quantize_int8(IMAGES, own["input_scale"]) * own["input_scale"]
    weight = own["weight"] * own["weight_scale"].astype(np.float64)[:, None, None, None]
    expected = ops.conv2d(x.astype(np.float64), weight, own["bias"].astype(np.float64), (2, 1), 1)
    np.testing.assert_allclose(layer.forward(IMAGES), expected, rtol=1e-4, atol=1e-5)
    assert layer.clipped == 0, "the share outside of its calibration"  # type: ignore[attr-defined]
    layer.forward(IMAGES * 100)
    assert layer.clipped > 0.9  # type: ignore[attr-defined]


def test_the_smallest_weights_of_all_layers_are_pruned_and_stay_zero_whatever_an_optimizer_remembers() -> None:
    network, optimizer = made(), nn.Adam(0.01)
    network.fit(SET, epochs=2, optimizer=optimizer, progress=False)
    small = network.prune(0.8)
    before = small.parameters.copy()
    small.fit(SET, epochs=1, optimizer=optimizer, progress=False)  # its momentum is not 0
    assert (small.parameters != before).any()
    weights = [x.parameters["weight"] for x in small.layers if isinstance(x, (PrunedLinear, PrunedConv2d))]
    assert len(weights) == 3
    size = sum(weight.size for weight in weights)
    assert sum(map(np.count_nonzero, weights)) == size - int(0.8 * size)
    network.layers[0].parameters["weight"] = np.full((3, 2, 3, 3), 100, np.float32)
    small = network.prune(0.8)
    assert (small.layers[0].parameters["weight"] == 100).all()
    assert small.layers[6].state["mask"].mean() < 0.9


def test_a_binary_layer_computes_with_signs_and_learns() -> None:
    small = made().binarize()
    kinds = [type(layer) for layer in small.layers]
    assert kinds.count(BinaryLinear) == 1
    assert kinds[-1] is nn.Linear
    layer, x = small.layers[4], RNG.normal(size=(3, small.layers[4].parameters["weight"].shape[1])).astype(np.float32)
    weight = layer.parameters["weight"].astype(np.float64)
    expected = np.where(x > 0, 1, -1) @ (np.where(weight > 0, 1, -1) * np.abs(weight).mean(axis=1, keepdims=True)).T
    np.testing.assert_allclose(layer.forward(x), expected, rtol=1e-5, atol=1e-5)
    history = small.fit(SET, epochs=30, optimizer=nn.Adam(0.01), progress=False)
    assert history.loss[-1] < history.loss[0] / 2


def test_gradients_of_a_binary_layer_pass_straight_through() -> None:
    """As if the signs were what they are, where values and weights are within 1."""
    network = nn.Sequential(nn.Linear(3), nn.Linear(4), nn.Linear(2), seed=1).build((5,)).binarize()
    layer = network.layers[1]
    layer.parameters["weight"][0, 0] = 2  # too far to turn
    x, grad = np.array([[0.5, -3, -0.2]], np.float32), RNG.normal(size=(1, 4)).astype(np.float32)
    layer.forward(x, training=True)
    weight = layer.parameters["weight"]
    scaled = grad * np.abs(weight).mean(axis=1)
    by_x = scaled @ np.sign(weight)
    by_x[0, 1] = 0
    np.testing.assert_allclose(layer.backward(grad), by_x, rtol=1e-5)
    by_weight = scaled.T @ np.sign(x)
    by_weight *= np.abs(weight) <= 1
    np.testing.assert_allclose(layer.gradients["weight"], by_weight, rtol=1e-5)
    np.testing.assert_allclose(layer.gradients["bias"], grad[0])


def test_half_on_a_gpu_stores_float16_and_gives_the_same_scores() -> None:
    layers = nn.Conv2d(3, 3, stride=(2, 1), padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    network = nn.Sequential(*layers, nn.Linear(8), nn.ReLU(), nn.Linear(4)).build((2, 6, 5), simgpu)
    small, x = network.half(), simgpu.asarray(IMAGES)
    expected, found = network.scores(x).get(), small.scores(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.get(), expected, atol=5e-3 * np.abs(expected).max())
    assert (found.get() != expected).any()
    for layer in small.layers[:-1]:
        x = layer.forward(x)
        assert x.dtype == np.float16
    alone = nn.Sequential(nn.Conv2d(2, 3), nn.Flatten()).build((2, 6, 5), simgpu)
    assert alone.half().scores(simgpu.asarray(IMAGES)).dtype == np.float32


# Training in 16 bits


TRAIN, TEST = data.digits().split()
POINTS = data.Dataset(RNG.normal(size=(32, 5)).astype(np.float32), RNG.integers(0, 3, 32))


def dense(seed: int = 0, loss: Any = ops.softmax_cross_entropy) -> nn.Sequential:
    return nn.Sequential(nn.Linear(8), nn.ReLU(), nn.Linear(3), seed=seed, loss=loss)


def fitted(network: nn.Sequential, **options: Any) -> nn.History:
    return network.fit(POINTS, batch_size=32, progress=False, **({"epochs": 1} | options))


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_it_learns_digits_as_float32_does(precision: str) -> None:
    if precision == "bfloat16":
        pytest.importorskip("ml_dtypes", reason="bfloat16 on the host comes with ml_dtypes, which no extra brings")
    found = []
    for kind in ("float32", precision):
        network = nn.Sequential(nn.Conv2d(4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(10))
        network.fit(TRAIN, epochs=3, precision=kind, progress=False)
        found.append(network.evaluate(TEST).accuracy)
    assert found[1] == pytest.approx(found[0], abs=0.02)
    assert found[1] > 0.9


def test_the_weights_stay_float32_and_move_by_less_than_float16_sees() -> None:
    network = dense().build((5,))
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
    lost, cured, exact = (dense(loss=scaled(1e-8)) for _ in range(3))
    fitted(lost, precision="float16", loss_scale=LossScale(1.0))
    assert not lost.gradients.any()
    fitted(cured, precision="float16", loss_scale=LossScale(2.0**20))
    fitted(exact)
    np.testing.assert_allclose(cured.gradients, exact.gradients, rtol=0.02, atol=exact.gradients.max() * 0.01)


def test_overflow_skips_the_step_and_halves_and_good_steps_double() -> None:
    network = dense(loss=scaled(100)).build((5,))
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
    history = fitted(dense(), precision="float16", loss_scale=LossScale(8.0, 1999), epochs=3)
    assert (history.loss_scale, history.skipped) == ([8.0, 16.0, 16.0], 0)


def test_bfloat16_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ImportError, match="pip install ml_dtypes"):
        fitted(dense(), precision="bfloat16")


def test_values_beyond_float16_name_the_layer() -> None:
    large = data.Dataset(np.full((4, 5), 1e5, np.float32), np.zeros(4, np.int64))
    with pytest.raises(OverflowError, match=r"the input: gives values up to 100000; float16 ends at 65504"):
        dense().fit(large, epochs=1, precision="float16", progress=False)
    network = dense().build((5,))
    network.layers[0].parameters["weight"] = np.full((8, 5), 1e4, np.float32)
    before = network.parameters.copy()
    some = data.Dataset(np.full((4, 5), 10, np.float32), np.zeros(4, np.int64))
    with pytest.raises(OverflowError, match=r"layer 0, Linear\(8\): gives values up to 500000"):
        network.fit(some, epochs=1, precision="float16", progress=False)
    np.testing.assert_array_equal(network.parameters, before)
    network.layers[0].parameters["weight"] = np.full((8, 5), 1e5, np.float32)
    with pytest.raises(OverflowError, match=r"layer 0, Linear\(8\): weight is beyond float16"):
        network.fit(some, epochs=1, precision="float16", progress=False)
