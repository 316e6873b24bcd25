"""Each layer against finite differences; Sequential: flat parameters, the networks of the sources, the summary."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled import data, nn, ops
from unrolled.nn.layers import Views


def source_a(**options):
    """The network of the article on CuPy."""
    scale = {"weight_scale": 0.05}
    return nn.Sequential(
        *(nn.Conv2d(10, 3, padding=1, **scale), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(100, **scale), nn.ReLU(), nn.Linear(10, **scale)),
        **options,
    )


def keras_example():
    return nn.Sequential(
        *(nn.Conv2d(32, 3), nn.ReLU(), nn.Conv2d(64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten()),
        *(nn.Linear(128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(10)),
    )


def source_b(stride=None):
    layers = nn.Conv2d(16, 5), nn.MaxPool2d(4, stride), nn.ReLU(), nn.Flatten(), nn.Linear(1000), nn.ReLU()
    return nn.Sequential(*layers, nn.Linear(10))


def batch(shape=(1, 28, 28), n=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, *shape), dtype=np.float32), rng.integers(0, 10, n)


SOURCES = {
    "A": (source_a(), (1, 28, 28), 90 + 10 + 1960 * 100 + 100 + 1000 + 10),
    "Keras": (keras_example(), (1, 28, 28), 1_199_882),
    "B": (source_b(), (3, 32, 32), 16 * 75 + 16 + 16 * 49 * 1000 + 1000 + 10_010),
    "B, overlapping windows": (source_b(stride=2), (3, 32, 32), None),
}


@pytest.mark.parametrize(("network", "shape", "count"), SOURCES.values(), ids=SOURCES.keys())
def test_the_networks_of_the_sources(network, shape, count):
    images, labels = batch(shape)
    loss, scores = network.loss_and_scores(images, labels)
    assert scores.shape == (3, 10)
    assert scores.dtype == network.parameters.dtype == network.gradients.dtype == np.float32
    assert np.isfinite(loss)
    assert count is None or network.summary().parameters == len(network.parameters) == count


def test_a_layer_stays_with_its_network():
    network = source_a().build((1, 28, 28))
    before = network.forward(batch()[0])
    other = nn.Sequential(*network.layers[:-1], nn.Linear(5))
    with pytest.raises(ValueError, match=r"layer 0, Conv2d.* belongs to another network"):
        other.build((1, 28, 28))
    np.testing.assert_array_equal(network.forward(batch()[0]), before)
    with pytest.raises(ValueError, match=r"built for batches \(N, 1, 28, 28\)$"):  # and nothing of a single sample
        network.forward(batch((1, 14, 14))[0])


def test_the_same_seed_gives_the_same_network_also_if_the_first_batch_builds_it():
    by_batch = source_a(seed=1)
    by_batch.forward(batch()[0])
    first, other = (source_a(seed=seed).build((1, 28, 28)).parameters for seed in (1, 2))
    np.testing.assert_array_equal(by_batch.parameters, first)
    assert not np.array_equal(first, other)


def test_loops_give_the_same_answers():
    network = nn.Sequential(nn.Conv2d(2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(10))
    images = data.digits().images[:6, :, ::2, ::2]
    np.testing.assert_array_equal(nn.predict_with_loops(network, images), network.predict(images))


def test_summary_counts_by_hand():
    summary = source_a().summary((1, 28, 28))
    first, *_, last = summary.rows
    assert (first.layer, first.output) == ("Conv2d(10, 3, padding=1, weight_scale=0.05)", (10, 28, 28))
    assert (first.parameters, first.multiply_adds, first.bytes) == (100, 10 * 9 * 784, 10 * 784 * 4)
    assert (last.output, last.parameters, last.multiply_adds, last.bytes) == ((10,), 1010, 1000, 40)
    assert summary.multiply_adds == 10 * 9 * 784 + 196_000 + 1000
    lines = str(summary).splitlines()
    assert len(lines) == 1 + 1 + 7 + 1
    assert "197,210" in lines[-1]
    assert max(map(len, lines)) <= 100, "as wide as a notebook's output"


def test_a_loss_on_numbers_instead_of_classes():
    network = nn.Sequential(nn.Linear(8), nn.Tanh(), nn.Linear(1), loss=ops.mean_squared_error)
    x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    history = network.fit(data.Dataset(x, x**2), epochs=200, optimizer=nn.Adam(0.02), progress=False)
    assert history.loss[-1] < 0.01
    assert np.isnan(history.accuracy[-1])
    assert "nan" not in str(history) + history.latest(), "an accuracy that has no meaning is not shown"


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
    "Attention(2)": (nn.Attention(2), (4, 6), (4, 6)),
    "Attention(1, causal=True)": (nn.Attention(1, causal=True), (3, 2), (3, 2)),
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
