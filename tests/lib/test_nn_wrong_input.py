"""What people type who come from elsewhere, and arrays and sizes that are none: each gets a sentence that names it."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest

from unrolled import nn, ops
from unrolled import simgpu as cp
from unrolled.data import Dataset

RNG = np.random.default_rng(0)
X, WEIGHT, BIAS = (RNG.normal(size=shape).astype(np.float32) for shape in ((4, 2, 6, 6), (3, 2, 3, 3), (3,)))
LABELS = np.array([0, 1, 2, 2])
TRAIN = Dataset(X, LABELS)


def network(**options: Any) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 3), nn.BatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.Linear(3), **options)


def built() -> nn.Sequential:
    return network().build((2, 6, 6))


def masked() -> Any:
    return np.ma.masked_less(X, 0)


def fit(**options: Any) -> Any:
    return network().fit(TRAIN, progress=False, **options)


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    # from PyTorch and Keras
    "Conv2d(1, 10, 3)": (lambda: nn.Conv2d(1, 10, 3), TypeError, "is nn.Conv2d(10, 3) here"),
    "Conv2d(in_channels=1)": (lambda: nn.Conv2d(in_channels=1), TypeError, "in_channels: leave it out"),
    "Linear(784, 10)": (lambda: nn.Linear(784, 10), TypeError, "is nn.Linear(10) here"),
    "Linear(out_features=10)": (lambda: nn.Linear(out_features=10), TypeError, "features is the name here"),
    "LSTM(28, 64, 2)": (lambda: nn.LSTM(28, 64, 2), TypeError, "is nn.LSTM(64, 2) here"),
    "LSTM(28, 64)": (
        lambda: nn.Sequential(nn.LSTM(28, 64)).build((5, 28)),
        ValueError,
        "num_layers is 64; expected at most 16: nn.LSTM(28, 64) of PyTorch is nn.LSTM(64) here",
    ),
    "LSTM(batch_first=True)": (lambda: nn.LSTM(8, batch_first=True), TypeError, "batches are (N, T, D)"),
    "LSTM of images": (
        lambda: nn.Sequential(nn.LSTM(8)).build((1, 28, 28)),
        ValueError,
        "takes sequences (T, D), got samples of shape (1, 28, 28): images[:, 0] reads each image row by row",
    ),
    "LSTM(8.5)": (lambda: nn.Sequential(nn.LSTM(8.5)).build((5, 3)), TypeError, "hidden_size is 8.5"),
    "clip_norm=0": (lambda: fit(clip_norm=0), ValueError, "clip_norm is 0; expected a norm above 0"),
    "clip_norm='1'": (lambda: fit(clip_norm="1"), TypeError, "clip_norm is '1'; expected a number"),
    "BatchNorm2d(10)": (lambda: nn.BatchNorm2d(10), TypeError, "is nn.BatchNorm2d() here"),
    "ReLU(inplace=True)": (lambda: nn.ReLU(inplace=True), TypeError, "inplace: leave it out"),
    "Adam(lr=1)": (lambda: nn.Adam(lr=1), TypeError, "learning_rate is the name here"),
    "Adam(parameters)": (lambda: nn.Adam(built().parameters), TypeError, "an optimizer holds no parameters"),
    "zero_grad()": (lambda: nn.SGD().zero_grad(), AttributeError, "each backward pass writes the gradients anew"),
    "model(x)": (lambda: network()(X), TypeError, "scores(images) uses it"),
    "layer(x)": (lambda: nn.ReLU()(X), TypeError, "layer.forward(x)"),
    "model.parameters()": (lambda: built().parameters(), TypeError, "parameters is an array (P,), no method"),
    "model.to('cuda')": (lambda: network().to("cuda"), AttributeError, "lives where its first batch lives"),
    "model.state_dict()": (lambda: network().state_dict(), AttributeError, "use save(path) and load(path)"),
    "model.eval()": (lambda: network().eval(), AttributeError, "forward(x, training=True) trains"),
    "model.compile()": (lambda: network().compile(), AttributeError, "the optimizer into fit"),
    "Sequential([...])": (lambda: nn.Sequential([nn.ReLU()]), TypeError, "layers stand side by side"),
    "fit(images, labels)": (lambda: network().fit(X, LABELS), TypeError, "fit(data.Dataset(images, labels))"),
    # arrays that are none, or hold no real numbers
    "x a list": (lambda: ops.conv2d(X.tolist(), WEIGHT), TypeError, "x is a list; expected an array"),
    "a matrix": (lambda: ops.affine(X[0, 0].view(np.matrix), X[0, 0], X[0, 0, 0]), TypeError, "x is a matrix"),
    "a masked array": (lambda: ops.max_pool2d(masked(), 2), TypeError, "x is a MaskedArray"),
    "an object array": (lambda: ops.conv2d(X.astype(object), WEIGHT), ValueError, "x is object; expected real numbers"),
    "a complex array": (lambda: ops.relu(X.astype(complex)), ValueError, "x is complex128; expected real numbers"),
    "strings": (lambda: ops.affine(np.array([["1"]]), X[0, 0], X[0, 0, 0]), ValueError, "x is <U1"),
    "a list into a network": (lambda: network().forward(X.tolist()), TypeError, "x is a list"),
    "lists in a data set": (lambda: network().fit(Dataset(X.tolist(), LABELS)), TypeError, "train.images is a list"),
    "a step with a list": (lambda: nn.SGD().step([1.0], np.ones(1)), TypeError, "parameters is a list"),
    "an unknown method": (
        lambda: ops.conv2d(X, WEIGHT, method="direct"),
        ValueError,
        "method is 'direct'; expected one of gemm, fft, winograd, cudnn, auto",
    ),
    # sizes that are none
    "a fractional stride": (lambda: ops.conv2d(X, WEIGHT, stride=1.5), TypeError, "stride is 1.5; expected an int"),
    "a stride of True": (lambda: ops.conv2d(X, WEIGHT, stride=True), TypeError, "stride is True; expected an int"),
    "Linear(10.5)": (lambda: nn.Sequential(nn.Linear(10.5)).build((3,)), TypeError, "features is 10.5"),
    "build((28.5,))": (lambda: network().build((2, 6, 6.5)), TypeError, "a size of input_shape is 6.5"),
    "build(784)": (lambda: network().build(784), TypeError, "input_shape is 784; expected sizes without N"),
    "batch_size=2.5": (lambda: fit(batch_size=2.5), TypeError, "batch_size is 2.5; expected a whole number"),
    # float16, and what would only show after an epoch, or never
    "a network in float16": (lambda: network(dtype=np.float16), ValueError, "lesson 11 brings"),
    "a step in float16": (lambda: nn.SGD().step(*np.ones((2, 3), "f2")), ValueError, "lesson 11 brings"),
    "validation of another shape": (
        lambda: fit(validation=Dataset(X[:, :, 1:], LABELS)),
        ValueError,
        "validation: x has shape (1, 2, 5, 6)",
    ),
    "validation labels out of range": (
        lambda: fit(validation=Dataset(X, LABELS + 1)),
        ValueError,
        "validation: labels holds 3; expected 0 to 2",
    ),
    "validation labels of floats": (
        lambda: fit(validation=Dataset(X, LABELS * 1.0)),
        ValueError,
        "validation: labels are float64",
    ),
    "a parameter of another shape": (
        lambda: built().layers[0].parameters.update(weight=np.ones(3)),
        ValueError,
        "weight has shape (3,); expected (3, 2, 3, 3) to fit the layer",
    ),
    "a parameter that is not there": (
        lambda: built().layers[0].parameters.__setitem__("wieght", WEIGHT),
        LookupError,
        "this layer has no 'wieght': expected one of weight, bias",
    ),
    "a layer without a network": (lambda: nn.Linear(3).forward(X[0, 0]), LookupError, "this layer has no 'weight'"),
}


@pytest.mark.parametrize(("call", "kind", "words"), WRONG.values(), ids=WRONG.keys())
def test_wrong_input_is_named(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=re.escape(words)):
        call()


COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x))}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
@pytest.mark.parametrize("module", [np, cp], ids=["numpy", "simgpu"])
def test_a_copied_network_goes_on_learning_as_the_first_one_does(copied: Any, module: Any) -> None:
    train = Dataset(module.asarray(X), module.asarray(LABELS))
    net, optimizer = network(), nn.Adam()
    net.fit(train, epochs=1, optimizer=optimizer, progress=False)
    other, resumed = copied(net), copied(optimizer)
    assert other.layers[0].network is other
    for each, rule in ((net, optimizer), (other, resumed)):
        before = each.parameters.copy()
        each.fit(train, epochs=2, optimizer=rule, progress=False)
        assert not (each.parameters == before).all()
    for name in ("parameters", "state"):
        assert (getattr(net, name) == getattr(other, name)).all()
    other.parameters[...] = 0
    assert (other.layers[0].parameters["weight"] == 0).all()
    assert not (net.parameters == 0).all()
    assert (other.scores(train.images) == 0).all()


def test_an_assigned_parameter_is_copied_into_the_network() -> None:
    net = built()
    layer = net.layers[0]
    layer.parameters["weight"] = WEIGHT
    np.testing.assert_array_equal(net.parameters[: WEIGHT.size], WEIGHT.ravel())
    layer.parameters = {"bias": BIAS}
    np.testing.assert_array_equal(net.parameters[WEIGHT.size : WEIGHT.size + 3], BIAS)
    before = layer.parameters["weight"].copy()
    net.fit(TRAIN, epochs=1, progress=False)
    assert (layer.parameters["weight"] != before).any()
