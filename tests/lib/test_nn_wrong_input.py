"""What people type who come from elsewhere, and arrays and sizes that are none: each gets a sentence that names it."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from unrolled import nn, ops
from unrolled import simgpu as cp
from unrolled.data import Dataset
from unrolled.nn.schedules import cosine_decay, warmup
from unrolled.ops.precision import LossScale

RNG = np.random.default_rng(0)
X, WEIGHT, BIAS = (RNG.normal(size=shape).astype(np.float32) for shape in ((4, 2, 6, 6), (3, 2, 3, 3), (3,)))
LABELS = np.array([0, 1, 2, 2])
TRAIN, EMPTY = Dataset(X, LABELS), Dataset(X[:0], LABELS[:0])


def network(**options: Any) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 3), nn.BatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.Linear(3), **options)


def built() -> nn.Sequential:
    return network().build((2, 6, 6))


def small(*layers: nn.Layer, module: Any = np) -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), *layers).build((2, 6, 6), module)


def of(layer: nn.Layer, *shape: int) -> nn.Sequential:
    return nn.Sequential(layer).build(shape)


def beyond_float16() -> nn.Sequential:
    net = built()
    net.layers[4].parameters["weight"][0, 0] = 1e5
    return net


def fit(train: Any = TRAIN, **options: Any) -> Any:
    return network().fit(train, progress=False, **options)


def step(parameters: Any, gradients: Any, dtype: str = "f4") -> None:
    nn.Adam().step(np.ones(parameters, dtype), np.ones(gradients, "f4"))


ROW, EARLY = X[0, 0], nn.EarlyStop()
WRONG: dict[type[Exception], list[tuple[Any, str]]] = {
    TypeError: [
        # from PyTorch and Keras
        (lambda: nn.Conv2d(1, 10, 3), "is nn.Conv2d(10, 3) here"),
        (lambda: nn.Conv2d(in_channels=1), "in_channels: leave it out"),
        (lambda: nn.Linear(784, 10), "is nn.Linear(10) here"),
        (lambda: nn.Linear(out_features=10), "features is the name here"),
        (lambda: nn.LSTM(28, 64, 2), "is nn.LSTM(64, 2) here"),
        (lambda: nn.Attention(28, 4), "is nn.Attention(4)"),
        (lambda: nn.Attention(num_heads=4), "heads is the name here"),
        (lambda: of(nn.Attention(2, causal=1), 5, 4), "causal is 1; expected True or False"),
        (lambda: nn.LSTM(8, batch_first=True), "batches are (N, T, D)"),
        (lambda: nn.BatchNorm2d(10), "is nn.BatchNorm2d() here"),
        (lambda: nn.ReLU(inplace=True), "inplace: leave it out"),
        (lambda: nn.Adam(lr=1), "learning_rate is the name here"),
        (lambda: nn.Adam(built().parameters), "an optimizer holds no parameters"),
        (lambda: network()(X), "scores(images) uses it"),
        (lambda: nn.ReLU()(X), "layer.forward(x)"),
        (lambda: nn.Sequential([nn.ReLU()]), "layers stand side by side"),
        (lambda: network().fit(X, LABELS), "fit(data.Dataset(images, labels))"),
        # arrays and data sets that are none
        (lambda: ops.conv2d(X.tolist(), WEIGHT), "x is a list; expected an array"),
        (lambda: ops.affine(ROW.view(np.matrix), ROW, ROW[0]), "x is a matrix"),
        (lambda: ops.max_pool2d(np.ma.masked_less(X, 0), 2), "x is a MaskedArray"),
        (lambda: network().forward(X.tolist()), "x is a list"),
        (lambda: fit(Dataset(X.tolist(), LABELS)), "train.images is a list"),
        (lambda: nn.SGD().step([1.0], np.ones(1)), "parameters is a list"),
        (lambda: fit((X, LABELS)), "train is a tuple; expected data.Dataset(images, labels)"),
        (lambda: network().evaluate((X, LABELS)), "dataset is a tuple"),
        # sizes that are none
        (lambda: ops.conv2d(X, WEIGHT, stride=1.5), "stride is 1.5; expected an int"),
        (lambda: ops.conv2d(X, WEIGHT, stride=True), "stride is True; expected an int"),
        (lambda: of(nn.Linear(10.5), 3), "features is 10.5"),
        (lambda: of(nn.LSTM(8.5), 5, 3), "hidden_size is 8.5"),
        (lambda: network().build((2, 6, 6.5)), "a size of input_shape is 6.5"),
        (lambda: network().build(784), "input_shape is 784; expected sizes without N"),
        (lambda: fit(batch_size=2.5), "batch_size is 2.5; expected a whole number"),
        # options of another kind
        (lambda: fit(clip_norm="1"), "clip_norm is '1'; expected a number"),
        (lambda: fit(optimizer=nn.Adam), "Adam'>; expected an object such as nn.Adam()"),
        (lambda: fit(early_stop=3), "early_stop is 3"),
        (lambda: fit(schedule=0.1), "schedule and callbacks are functions, got 0.1"),
        (lambda: fit(callbacks=["print"]), "schedule and callbacks are functions, got 'print'"),
        (lambda: fit(precision="float16", loss_scale=8), "loss_scale is 8; expected where to begin"),
        (lambda: warmup(2, 0.5), "then is 0.5; expected a schedule"),
        (lambda: nn.Sequential(nn.ReLU), "ReLU'>; expected a layer"),
        (lambda: nn.Sequential(nn.ReLU(), loss="mse"), "loss is 'mse'; expected a function"),
        # what smaller networks cannot do
        (lambda: built().half().fit(TRAIN), "Half(Linear(3)) has no backward pass: train the network first"),
        (lambda: small(nn.Linear(2), module=cp).quantize(cp.asarray(X)), "smaller networks run in NumPy"),
    ],
    AttributeError: [
        (lambda: nn.SGD().zero_grad(), "each backward pass writes the gradients anew"),
        (lambda: network().to("cuda"), "lives where its first batch lives"),
        (lambda: network().state_dict(), "use save(path) and load(path)"),
        (lambda: network().eval(), "forward(x, training=True) trains"),
        (lambda: network().compile(), "the optimizer into fit"),
    ],
    LookupError: [
        (lambda: built().layers[0].parameters.update(wieght=WEIGHT), "has no 'wieght': expected one of weight, bias"),
        (lambda: nn.Linear(3).forward(ROW), "this layer has no 'weight'"),
    ],
    OverflowError: [
        (lambda: beyond_float16().half(), "layer 4, Linear(3): x has values up to 100000; float16 ends at 65504")
    ],
    ValueError: [
        # layers
        (lambda: of(nn.LSTM(28, 64), 5, 28), "64; expected at most 16: nn.LSTM(28, 64) of PyTorch is nn.LSTM(64) here"),
        (
            lambda: of(nn.LSTM(8), 1, 28, 28),
            "got samples of shape (1, 28, 28): images[:, 0] reads each image row by row",
        ),
        (lambda: of(nn.Attention(2), 1, 28, 28), "images[:, 0] has an image's rows as steps"),
        (lambda: of(nn.Attention(3), 5, 28), "E a multiple of heads, got samples (5, 28)"),
        (lambda: of(nn.Linear(4), 1, 28, 28), "put Flatten() before it"),
        (lambda: of(nn.Linear(0), 4), "features is 0"),
        (lambda: of(nn.Conv2d(4, 3), 784), "layer 0, Conv2d(4, 3): Conv2d(4, 3) takes images (C, H, W)"),
        (lambda: of(nn.Conv2d(0, 3), 1, 8, 8), "filters is 0"),
        (lambda: of(nn.Conv2d(4, 9), 1, 8, 8), "window is larger"),
        (lambda: of(nn.Conv2d(4, 3, stride=0), 1, 8, 8), "stride is 0"),
        (lambda: of(nn.MaxPool2d(9), 1, 8, 8), "window is larger"),
        (lambda: of(nn.MaxPool2d(2), 8), "takes images (C, H, W), got samples of shape (8,)"),
        (lambda: of(nn.BatchNorm2d(), 7), "takes images"),
        (lambda: of(nn.BatchNorm2d(momentum=0), 2, 6, 6), "momentum is 0"),
        (lambda: of(nn.BatchNorm2d(momentum=99), 2, 6, 6), "momentum is 99"),
        (lambda: of(nn.BatchNorm2d(epsilon=0), 2, 6, 6), "epsilon"),
        (lambda: network().forward(X[:1, :, :3, :3], training=True), "training needs at least two values a channel"),
        (lambda: of(nn.Dropout(1.0), 8), "rate is 1.0"),
        (lambda: of(nn.Dropout(-0.1), 8), "rate is -0.1"),
        (lambda: built().layers[0].parameters.update(weight=BIAS), "has shape (3,); expected (3, 2, 3, 3) to fit the"),
        # networks
        (lambda: nn.Sequential(), "at least one layer"),
        (lambda: nn.Sequential(*[nn.ReLU()] * 2), "stands twice"),
        (lambda: nn.Sequential(nn.ReLU(), dtype=int), "dtype is int64"),
        (lambda: network(dtype=np.float16), "lesson 11 brings"),
        (lambda: network().forward(np.zeros(10)), "expected a batch"),
        (lambda: built().build((2, 5, 5)), "built for (2, 6, 6)"),
        (lambda: built().forward(X[0]), "for one sample, x[None]"),
        (lambda: network().summary(), "no shapes yet"),
        (lambda: small(nn.Linear(1)).predict(X), "no classes to choose from"),
        (lambda: network().predict(X, batch_size=0), "batch_size is 0"),
        (lambda: network().evaluate(TRAIN, batch_size=-1), "batch_size is -1"),
        (lambda: network().evaluate(EMPTY), "dataset is empty"),
        (lambda: network().half(), "no parameters yet: train it or build it first"),
        (lambda: built().quantize(X[:0]), "calibration has shape (0, 2, 6, 6); expected at least one image"),
        (lambda: built().prune(1), "fraction is 1; expected at least 0 and below 1"),
        (lambda: small(nn.ReLU()).prune(0.5), "no dense or convolution layer to prune"),
        (lambda: small(nn.Linear(2)).binarize(), "no dense layer between"),
        # trainings
        (lambda: fit(EMPTY), "train is empty: its images have shape (0, 2, 6, 6)"),
        (lambda: fit(Dataset(X, LABELS[:2])), "train has images (4, 2, 6, 6) but labels (2,)"),
        (lambda: fit(Dataset(X, LABELS + 1)), "labels holds 3"),
        (lambda: fit(batch_size=0), "batch_size is 0"),
        (lambda: fit(epochs=-1), "epochs is -1"),
        (lambda: fit(clip_norm=0), "clip_norm is 0; expected a norm above 0"),
        (lambda: fit(early_stop=EARLY), "fit needs validation"),
        (lambda: nn.EarlyStop(patience=0), "patience is 0"),
        (lambda: fit(validation=EMPTY), "validation is empty"),
        (lambda: fit(validation=Dataset(X[:, :, 1:], LABELS)), "validation: x has shape (1, 2, 5, 6)"),
        (lambda: fit(validation=Dataset(X, LABELS + 1)), "validation: labels holds 3; expected 0 to 2"),
        (lambda: fit(validation=Dataset(X, LABELS * 1.0)), "validation: labels are float64"),
        (lambda: fit(precision="half"), "precision is 'half'; expected one of float32, float16, bfloat16"),
        (lambda: fit(loss_scale=LossScale()), "only float16 has a loss scale"),
        # optimizers and schedules
        (lambda: nn.SGD(-0.1), "learning_rate is -0.1; expected at least 0"),
        (lambda: nn.SGD(float("nan")), "learning_rate is nan; expected at least 0"),
        (lambda: nn.Adam(float("inf")), "learning_rate is inf; expected at least 0"),
        (lambda: nn.Adam(weight_decay=-1), "weight_decay is -1; expected at least 0"),
        (lambda: nn.SGD(momentum=1), "momentum is 1; expected at least 0 and below 1"),
        (lambda: nn.SGD(nesterov=True), "nesterov is True and momentum 0"),
        (lambda: nn.RMSProp(decay=1), "decay is 1; expected at least 0 and below 1"),
        (lambda: nn.AdaDelta(decay=-1), "decay is -1; expected at least 0 and below 1"),
        (lambda: nn.Adam(beta1=1), "beta1 is 1; expected at least 0 and below 1"),
        (lambda: nn.Adam(beta2=1.5), "beta2 is 1.5; expected at least 0 and below 1"),
        (lambda: nn.Adam(epsilon=0), "epsilon is 0; expected at least"),
        (lambda: nn.AdaGrad(epsilon=0), "epsilon is 0; expected at least"),
        (lambda: step(3, 4), "parameters has shape (3,), gradients (4,); expected (P,) for both"),
        (lambda: step(3, 1), "parameters has shape (3,), gradients (1,); expected (P,) for both"),
        (lambda: step((2, 3), (2, 3)), "parameters has shape (2, 3), gradients (2, 3); expected (P,) for both"),
        (lambda: step((), ()), "parameters has shape (), gradients (); expected (P,) for both"),
        (lambda: step(3, 3, "i8"), "the dtype of parameters is int64; expected float32 or float64"),
        (lambda: step(3, 3, "f2"), "lesson 11 brings"),
        (lambda: cosine_decay(0), "epochs is 0; expected at least 1"),
        (lambda: warmup(-1), "epochs is -1; expected at least 0"),
        # arrays that hold no real numbers
        (lambda: ops.conv2d(X.astype(object), WEIGHT), "x is object; expected real numbers"),
        (lambda: ops.relu(X.astype(complex)), "x is complex128; expected real numbers"),
        (lambda: ops.affine(np.array([["1"]]), ROW, ROW[0]), "x is <U1"),
        (lambda: ops.conv2d(X, WEIGHT, method="direct"), "expected one of gemm, fft, winograd, cudnn, auto"),
    ],
}
CASES = [(kind, call, words) for kind, cases in WRONG.items() for call, words in cases]


@pytest.mark.parametrize(("kind", "call", "words"), CASES, ids=[words for *_, words in CASES])
def test_wrong_input_is_named(kind: type[Exception], call: Any, words: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)


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


def test_assigned_parameters_are_copied_into_the_network() -> None:
    net = built()
    net.parameters = np.full(net.parameters.shape, 7, np.float32)
    net.parameters -= 1
    assert (net.layers[0].parameters["weight"] == 6).all()
    with pytest.raises(ValueError, match="parameters has shape"):
        net.parameters = np.zeros(3, np.float32)
    layer = net.layers[0]
    layer.parameters["weight"] = WEIGHT
    np.testing.assert_array_equal(net.parameters[: WEIGHT.size], WEIGHT.ravel())
    layer.parameters = {"bias": BIAS}
    np.testing.assert_array_equal(net.parameters[WEIGHT.size : WEIGHT.size + 3], BIAS)
    before = layer.parameters["weight"].copy()
    net.fit(TRAIN, epochs=1, progress=False)
    assert (layer.parameters["weight"] != before).any()
