"""The small network of lesson 00."""

import dataclasses

import numpy as np
import pytest

from unrolled import data, nn, ops
from unrolled.nn.digit_network import _initial


@pytest.fixture(scope="module")
def halves():
    return data.digits().split()


@pytest.fixture(scope="module")
def trained(halves):
    return nn.train(halves[0])


def small_network(filters=2, shape=(1, 6, 8), seed=1):
    """Weights in float64, so that differences of the loss are exact enough."""
    network = _initial(np.random.default_rng(seed), filters, shape)
    return nn.DigitNetwork(
        *(10 * getattr(network, field.name).astype(np.float64) for field in dataclasses.fields(network))
    )


def test_training_reaches_nine_in_ten_on_digits_it_has_not_seen(trained, halves):
    assert trained.accuracy(halves[1]) > 0.9
    assert trained.accuracy(halves[0]) > 0.9


def test_untrained_it_guesses(halves):
    assert nn.train(halves[0], epochs=0).accuracy(halves[1]) < 0.4


def test_the_same_seed_gives_the_same_network(halves):
    few = data.Dataset(halves[0].images[:64], halves[0].labels[:64])
    first, second, other = (nn.train(few, epochs=1, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.filters, second.filters)
    assert not np.array_equal(first.filters, other.filters)


def test_loops_give_the_same_answers(trained, halves):
    images = halves[1].images[:12]
    np.testing.assert_array_equal(trained.predict_with_loops(images), trained.predict(images))


def test_weights_and_scores_stay_float32(trained, halves):
    kinds = {getattr(trained, field.name).dtype for field in dataclasses.fields(trained)}
    assert kinds == {np.dtype(np.float32)}
    assert trained.scores(halves[1].images[:3]).dtype == np.float32


def test_shapes(trained, halves):
    assert trained.filters.shape == (4, 1, 3, 3)
    assert trained.scores(halves[1].images[:5]).shape == (5, 10)
    assert trained.predict(halves[1].images[:5]).shape == (5,)


def test_gradients_are_those_of_the_loss():
    """Along random directions. The negative bias leaves some windows all below 0, where no gradient may pass."""
    rng = np.random.default_rng(2)
    network = dataclasses.replace(small_network(), filter_bias=np.array([-0.8, 0.1]))
    images, labels = rng.random((3, 1, 6, 8)), np.array([4, 0, 9])
    _, pooled, _ = network.forward(images)
    assert 0 < (pooled == 0).mean() < 1, "the case should hold dead windows and living ones"
    _, gradient = network.gradients(images, labels)
    for field in dataclasses.fields(network):
        weights = getattr(network, field.name)
        step = 1e-6 * rng.standard_normal(weights.shape)
        up, down = (
            dataclasses.replace(network, **{field.name: moved}).gradients(images, labels)[0]
            for moved in (weights + step, weights - step)
        )
        expected = (getattr(gradient, field.name) * step).sum()
        assert (up - down) / 2 == pytest.approx(expected, rel=1e-3), field.name


def test_cross_entropy_of_equal_scores_is_the_logarithm_of_their_number():
    loss, grad = nn.softmax_cross_entropy(np.zeros((2, 4), np.float32), np.array([1, 3]))
    assert loss == pytest.approx(np.log(4))
    np.testing.assert_allclose(grad, [[0.125, -0.375, 0.125, 0.125], [0.125, 0.125, 0.125, -0.375]])


def test_cross_entropy_survives_huge_scores():
    loss, grad = nn.softmax_cross_entropy(np.array([[1e4, -1e4]], np.float32), np.array([1]))
    assert loss == pytest.approx(2e4)
    np.testing.assert_allclose(grad, [[1, -1]])


def test_odd_images_are_refused():
    odd = data.Dataset(np.zeros((4, 1, 7, 8), np.float32), np.zeros(4, np.int64))
    with pytest.raises(ValueError, match="7 x 8"):
        nn.train(odd)


def test_training_leaves_the_data_alone(halves):
    few = data.Dataset(halves[0].images[:32].copy(), halves[0].labels[:32].copy())
    before = few.images.copy(), few.labels.copy()
    nn.train(few, epochs=1)
    np.testing.assert_array_equal(few.images, before[0])
    np.testing.assert_array_equal(few.labels, before[1])


def test_the_pooled_features_feed_the_dense_layer():
    network = small_network(filters=3, shape=(2, 4, 6))
    images = np.random.default_rng(0).random((2, 2, 4, 6))
    convolved, pooled, scores = network.forward(images)
    np.testing.assert_allclose(convolved, ops.conv2d(images, network.filters, network.filter_bias, padding=1))
    np.testing.assert_allclose(pooled, ops.max_pool2d(ops.relu(convolved), 2))
    np.testing.assert_allclose(scores, ops.affine(pooled.reshape(2, -1), network.weight, network.bias))
