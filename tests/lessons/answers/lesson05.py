"""Wrong and imperfect answers to lesson 05."""

from operator import itemgetter

import numpy as np

from unrolled import data, ops

from . import Mutant, result_of

# sequential_forward


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


def trained_to_say_one_thing(images, labels, test_images, seed):
    return np.zeros(len(test_images), np.int64)


# batch_norm2d


def evaluated_with_all_labels(forward, images, labels, batch_size):
    return loss_and_right(lambda images: forward(images[: batch_size // 2]), images, labels)


MUTANTS = {
    "sequential_forward": [
        Mutant(forward_calling_the_layers, "call a method of it"),
    ],
    "sequential_backward": [
        Mutant(lambda layers, grad: layers.reverse(), "reversed(layers) goes through it backwards"),
        Mutant(backward_reversing_in_place, "'tuple' object has no attribute 'reverse'"),
    ],
    "minibatches": [
        Mutant(batches_in_order, "in the order of the data set: shuffle"),
        Mutant(batches_with_replacement, "each must come once an epoch"),
        Mutant(
            result_of("minibatches", lambda batches: [batch for batch in batches if len(batch[0]) == 8]),
            "the last batch is missing: 23 images, 8 at a time, leave one of 7",
        ),
    ],
    "momentum_step": [
        Mutant(result_of("momentum_step", itemgetter(0)), "return parameters, velocity"),
    ],
    "adam_step": [
        Mutant(result_of("adam_step", itemgetter(0)), "expected a tuple of 3"),
    ],
    "evaluate": [
        Mutant(evaluated_with_all_labels, "take the labels of this batch alone"),
        Mutant(evaluated_at_once, "you gave the network 40 images in one call; its memory has room for 8"),
    ],
    "train": [
        Mutant(trained_by_centroids, "it learns, but not far enough"),
        Mutant(trained_elsewhere, "they fit the usual labels of digits"),
        Mutant(trained_to_say_one_thing, "every image is called 0"),
    ],
}
