"""Wrong and imperfect answers to lesson 05."""

import numpy as np

from unrolled import data, ops

from . import Mutant, updates

# sequential_forward


def forward_from_the_end(layers, x, training=False):
    for layer in reversed(layers):
        x = layer.forward(x, training)
    return x


def forward_without_return(layers, x, training=False):
    for layer in layers:
        x = layer.forward(x, training)


def forward_calling_the_layers(layers, x, training=False):
    for layer in layers:
        x = layer(x, training)
    return x


# sequential_backward


def backward_from_the_start(layers, grad):
    for layer in layers:
        grad = layer.backward(grad)
    return grad


def backward_reversing_in_place(layers, grad):
    layers.reverse()
    return backward_from_the_start(layers, grad)


# minibatches


def batches_in_order(images, labels, batch_size, seed):
    for start in range(0, len(images), batch_size):
        yield images[start : start + batch_size], labels[start : start + batch_size]


def batches_with_replacement(images, labels, batch_size, seed):
    rng = np.random.default_rng(seed)
    for start in range(0, len(images), batch_size):
        chosen = rng.integers(0, len(images), min(batch_size, len(images) - start))
        yield images[chosen], labels[chosen]


def batches_without_the_last(images, labels, batch_size, seed):
    order = np.random.default_rng(seed).permutation(len(images))
    for start in range(0, len(images) - batch_size + 1, batch_size):
        chosen = order[start : start + batch_size]
        yield images[chosen], labels[chosen]


def batches_of_images_only(images, labels, batch_size, seed):
    for batch, _ in data.minibatches((images, labels), batch_size, seed):
        yield batch


# evaluate


def loss_and_right(forward, images, labels):
    scores = forward(images)
    return float(ops.softmax_cross_entropy(scores, labels)[0]), float((scores.argmax(axis=1) == labels).mean())


def evaluated_at_once(forward, images, labels, batch_size):
    return loss_and_right(forward, images, labels)


def parts(forward, images, labels, batch_size):
    """(loss, accuracy, number of images) of each batch."""
    for start in range(0, len(images), batch_size):
        chosen = slice(start, start + batch_size)
        yield *loss_and_right(forward, images[chosen], labels[chosen]), len(labels[chosen])


def evaluated_at_once_and_wrong(forward, images, labels, batch_size):
    loss, accuracy = loss_and_right(forward, images, labels)
    return 2 * loss, accuracy


# train


def trained_by_centroids(images, labels, test_images, seed):
    """Learns, but not enough: the mean image of each class."""
    means = np.stack([images[labels == label].mean(axis=0).ravel() for label in range(10)])
    known = test_images.reshape(len(test_images), -1)
    return ((means**2).sum(axis=1) - 2 * known @ means.T).argmin(axis=1)


def nearest(images, labels, test_images):
    known, asked = images.reshape(len(images), -1), test_images.reshape(len(test_images), -1)
    return labels[((known**2).sum(axis=1) - 2 * asked @ known.T).argmin(axis=1)]


def trained_elsewhere(images, labels, test_images, seed):
    """As good as a network that was trained on the usual digits, whatever the sign of the ink."""
    digits = data.digits()
    return nearest(digits.images, digits.labels, np.abs(test_images))


def trained_on_one_batch(images, labels, test_images, seed):
    return nearest(images[:32], labels[:32], test_images)


def trained_to_say_one_thing(images, labels, test_images, seed):
    return np.zeros(len(test_images), np.int64)


def not_trained(images, labels, test_images, seed):
    return np.random.default_rng(seed).integers(0, 10, len(test_images))


def trained_to_give_scores(images, labels, test_images, seed):
    return np.eye(10, dtype=np.float32)[nearest(images, labels, test_images)]


def trained_to_give_floats(images, labels, test_images, seed):
    return nearest(images, labels, test_images).astype(float)


def trained_without_return(images, labels, test_images, seed):
    nearest(images, labels, test_images)


# batch_norm2d


def normalized(x, gamma, beta, epsilon=1e-5, over=(0, 2, 3), fewer=0):
    mean, variance = x.mean(axis=over, keepdims=True), x.var(axis=over, ddof=fewer, keepdims=True)
    return gamma[:, None, None] * ((x - mean) / np.sqrt(variance + epsilon)) + beta[:, None, None]


def normalized_in_place(x, gamma, beta, epsilon=1e-5):
    x -= x.mean(axis=(0, 2, 3), keepdims=True)
    return normalized(x, gamma, beta, epsilon)


def normalized_in_float64(x, gamma, beta, epsilon=1e-5):
    return normalized(x.astype(float), gamma, beta, epsilon)


def evaluated_with_all_labels(forward, images, labels, batch_size):
    return loss_and_right(lambda images: forward(images[: batch_size // 2]), images, labels)


def plain(x, epsilon):
    c = x.shape[1]
    return normalized(x, np.ones(c, x.dtype), np.zeros(c, x.dtype), epsilon)


def normalized_by_the_mean_of_squares(x, gamma, beta, epsilon=1e-5):
    mean, squares = (each.mean(axis=(0, 2, 3), keepdims=True) for each in (x, x**2))
    return gamma[:, None, None] * (x - mean) / np.sqrt(squares + epsilon) + beta[:, None, None]


MUTANTS = {
    "sequential_forward": [
        Mutant(forward_from_the_end, "from last to first"),
        Mutant(forward_without_return, "is the return statement missing?"),
        Mutant(forward_calling_the_layers, "call a method of it"),
    ],
    "sequential_backward": [
        Mutant(lambda layers, grad: layers.reverse(), "reversed(layers) goes through it backwards"),
        Mutant(backward_from_the_start, "the last layer is the first to get it"),
        Mutant(backward_reversing_in_place, "'tuple' object has no attribute 'reverse'"),
    ],
    "minibatches": [
        Mutant(batches_in_order, "in the order of the data set: shuffle"),
        Mutant(batches_with_replacement, "each must come once an epoch"),
        Mutant(batches_without_the_last, "the last batch is missing: 23 images, 8 at a time, leave one of 7"),
    ],
    "momentum_step": [
        Mutant(lambda **given: updates.momentum(**given)[0], "return parameters, velocity"),
        Mutant(updates.momentum_in_place, "changed its input parameters"),
        Mutant(updates.momentum_without_its_velocity, "expected a tuple of 2"),
    ],
    "adam_step": [
        Mutant(updates.adam_in_float64, "dtype is float64, expected float32"),
        Mutant(updates.adam_in_place, "changed its input m"),
        Mutant(updates.adam_without_m_and_v, "expected a tuple of 3"),
    ],
    "evaluate": [
        Mutant(evaluated_with_all_labels, "take the labels of this batch alone"),
        Mutant(evaluated_at_once, "you gave the network 40 images in one call; its memory has room for 8"),
        Mutant(evaluated_at_once_and_wrong, "you gave the network 40 images in one call"),
    ],
    "train": [
        Mutant(trained_by_centroids, "it learns, but not far enough"),
        Mutant(trained_elsewhere, "they fit the usual labels of digits"),
        Mutant(trained_to_say_one_thing, "every image is called 0"),
    ],
    "batch_norm2d": [
        Mutant(normalized_by_the_mean_of_squares, "this is the mean of x**2"),
        Mutant(normalized_in_place, "changed its input x"),
        Mutant(normalized_in_float64, "dtype is float64, expected float32"),
    ],
}

HONEST = {}

LOOP = {}
