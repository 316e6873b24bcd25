"""Each layer against numbers: gradients by finite differences, shapes, errors, and how it is written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled import nn, ops
from unrolled.nn.layers import Views

IMAGE = (2, 6, 5)
LAYERS = {
    "Linear(4)": (nn.Linear(4), (7,), (4,)),
    "Conv2d(3, (3, 2), stride=2, padding=1)": (nn.Conv2d(3, (3, 2), stride=2, padding=1), IMAGE, (3, 3, 3)),
    "Conv2d(3, 3, padding=1, method='fft')": (nn.Conv2d(3, 3, padding=1, method="fft"), IMAGE, (3, 6, 5)),
    "Conv2d(3, 3, method='winograd')": (nn.Conv2d(3, 3, method="winograd"), IMAGE, (3, 4, 3)),
    "MaxPool2d(3, stride=2, padding=1)": (nn.MaxPool2d(3, stride=2, padding=1), IMAGE, (2, 3, 3)),
    "AvgPool2d(2)": (nn.AvgPool2d(2), IMAGE, (2, 3, 2)),
    "BatchNorm2d(momentum=0.2)": (nn.BatchNorm2d(momentum=0.2), IMAGE, IMAGE),
    "Flatten()": (nn.Flatten(), IMAGE, (60,)),
    "ReLU()": (nn.ReLU(), IMAGE, IMAGE),
    "LeakyReLU(slope=0.1)": (nn.LeakyReLU(slope=0.1), IMAGE, IMAGE),
    "Sigmoid()": (nn.Sigmoid(), (5,), (5,)),
    "Tanh()": (nn.Tanh(), (5,), (5,)),
    "LSTM(3)": (nn.LSTM(3), (4, 5), (3,)),
    "LSTM(3, num_layers=2, return_sequences=True)": (nn.LSTM(3, 2, return_sequences=True), (4, 5), (4, 3)),
    "Softplus()": (nn.Softplus(), (5,), (5,)),
}
every_layer = pytest.mark.parametrize(("layer", "shape", "out"), LAYERS.values(), ids=LAYERS.keys())


def ready(layer, shape, dtype=np.float64):
    """The layer with random parameters in float64, so that differences are exact enough."""
    rng = np.random.default_rng(5)
    layer.build(shape)
    shapes = layer.parameter_shapes
    layer.parameters = Views({name: rng.normal(size=size).astype(dtype) for name, size in shapes.items()})
    layer.gradients = Views({name: np.full(size, np.nan, dtype) for name, size in shapes.items()})
    layer.state = Views({name: value.astype(dtype) for name, value in layer.initial_state().items()})
    return layer, rng.normal(size=(3, *shape)).astype(dtype)


@pytest.mark.parametrize("words", LAYERS, ids=str)
def test_a_layer_reads_as_it_is_written(words):
    assert repr(LAYERS[words][0]) == words


@every_layer
def test_gradients_by_the_input_and_by_each_parameter_in_a_first_layer_too(layer, shape, out, monkeypatch):
    layer, x = ready(layer, shape)
    grad = np.random.default_rng(1).normal(size=(3, *out))

    def total(x):
        return (layer.forward(x, training=True) * grad).sum()

    def with_parameter(name, value):
        before = layer.parameters[name].copy()
        layer.parameters[name] = value
        result = total(x)
        layer.parameters[name] = before
        return result

    expected = ops.numeric_gradient(total, x)
    layer.forward(x, training=True)
    np.testing.assert_allclose(layer.backward(grad), expected, rtol=1e-6, atol=1e-7)
    for name, parameter in layer.parameters.items():
        expected = ops.numeric_gradient(lambda value, name=name: with_parameter(name, value), parameter)
        np.testing.assert_allclose(layer.gradients[name], expected, rtol=1e-6, atol=1e-7)
    expected = {name: value.copy() for name, value in layer.gradients.items()}
    monkeypatch.setattr(layer, "is_first", True)
    layer.forward(x, training=True)
    layer.backward(grad)
    for name, value in expected.items():
        np.testing.assert_array_equal(layer.gradients[name], value)


@every_layer
def test_the_way_back_needs_a_forward_pass_in_training(layer, shape, out):
    layer, x = ready(layer, shape)
    layer.forward(x, training=True)
    layer.forward(x)
    with pytest.raises(RuntimeError, match="forward pass with training=True"):
        layer.backward(np.ones((3, *out)))


@settings(max_examples=20, deadline=None)
@given(inputs=st.integers(50, 400), outputs=st.integers(100, 200))
def test_first_weights_have_the_scale_of_he_or_the_one_asked_for(inputs, outputs):
    for scale, expected in ((None, np.sqrt(2 / inputs)), (0.05, 0.05)):
        layer = nn.Linear(outputs, weight_scale=scale)
        layer.build((inputs,))
        first = layer.initial(np.random.default_rng(0))
        assert first["weight"].std() == pytest.approx(expected, rel=0.05)
        assert not first["bias"].any()
