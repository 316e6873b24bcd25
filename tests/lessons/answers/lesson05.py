"""Wrong and imperfect answers to lesson 05."""

import math
import random
from functools import reduce
from itertools import accumulate
from operator import itemgetter

import numpy as np

from unrolled import data, ops

from . import Mutant, result_of

# sequential_forward


def forward_calling_the_layers(layers, x, training=False):
    for layer in layers:
        x = layer(x, training)
    return x


def forward_asking_twice(layers, x, training=False):
    return [x := (layer.forward(x, training), layer.forward(x, training))[0] for layer in layers][-1]


# sequential_backward


def backward_from_the_start(layers, grad):
    for layer in layers:
        grad = layer.backward(grad)
    return grad


# momentum_step


def momentum_of_half(parameters, gradient, velocity, learning_rate, momentum=0.5, weight_decay=0.0):
    velocity = momentum * velocity + gradient + weight_decay * parameters
    return parameters - learning_rate * velocity, velocity


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


def evaluated_as_vectors(forward, images, labels, batch_size):
    return evaluated_by_averages(lambda images: forward(images.reshape(len(images), -1)), images, labels, batch_size)


def evaluated_with_all_labels(forward, images, labels, batch_size):
    return loss_and_right(lambda images: forward(images[: batch_size // 2]), images, labels)


# Right in other styles


def forward_by_recursion(layers, x, training=False):
    return forward_by_recursion(layers[1:], layers[0].forward(x, training), training) if layers else x


def forward_by_index(layers, x, training=False):
    at = 0
    while at < len(layers):
        x, at = layers[at].forward(x, training=training), at + 1
    return x


class Forward:
    def __call__(self, layers, x, training=False):
        outputs = [x]
        outputs.extend(layer.forward(outputs[-1], training) for layer in layers)
        return outputs.pop()


def backward_by_pop(layers, grad):
    waiting = list(layers)
    while waiting:
        grad = waiting.pop().backward(grad)
    return grad


def backward_of_a_reversed_copy(layers, grad):
    layers = [*layers]
    layers.reverse()
    return backward_from_the_start(layers, grad)


def backward_by_index(layers, grad):
    for index in range(len(layers) - 1, -1, -1):
        grad = layers[index].backward(grad)
    return grad


def batches_of_shuffled_places(images, labels, batch_size, seed):
    places, start = np.arange(len(labels)), 0
    np.random.default_rng(seed).shuffle(places)
    while start < len(places):
        yield np.take(images, places[start : start + batch_size], axis=0), labels[places[start : start + batch_size]]
        start += batch_size


def batches_of_a_shuffled_copy(images, labels, batch_size, seed):
    order = np.random.RandomState(seed).permutation(len(images))
    images, labels = images[order], labels[order]
    parts = [slice(start, start + batch_size) for start in range(0, len(images), batch_size)]
    return ((images[part], labels[part]) for part in parts)


def batches_image_by_image(images, labels, batch_size, seed):
    pairs = list(zip(images, labels, strict=True))
    random.Random(seed).shuffle(pairs)
    while pairs:
        batch, pairs = pairs[:batch_size], pairs[batch_size:]
        yield np.stack([image for image, _ in batch]), np.array([label for _, label in batch])


class Batches:
    def __init__(self, images, labels, batch_size, seed):
        self.given, self.size, self.order = (
            (images, labels),
            batch_size,
            np.random.default_rng(seed).random(len(labels)),
        )

    def __iter__(self):
        for batch in range(-(-len(self.order) // self.size)):
            ranks = np.argsort(self.order)[batch * self.size :][: self.size]
            yield [each[ranks] for each in self.given]


def momentum_in_place_on_copies(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
    parameters, velocity, decay = parameters.copy(), velocity.copy(), weight_decay * parameters
    velocity *= momentum
    velocity += decay
    velocity += gradient
    parameters -= learning_rate * velocity
    return parameters, velocity


def momentum_one_by_one(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
    new, stepped = np.empty_like(velocity), np.empty_like(parameters)
    for i, (p, g, v) in enumerate(zip(parameters, gradient, velocity, strict=True)):
        new[i] = v * momentum + (g + p * weight_decay)
        stepped[i] = p - new[i] * learning_rate
    return [stepped, new]


def momentum_by_einsum(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
    weights = np.array([weight_decay, 1, momentum], parameters.dtype)
    new = np.einsum("i,ip->p", weights, np.stack([parameters, gradient, velocity]))
    return parameters + -learning_rate * new, new


def adam_in_place_on_copies(parameters, gradient, m, v, t, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8):
    m, v = m.copy(), v.copy()
    m *= beta1
    m += gradient * (1 - beta1)
    v *= beta2
    v += np.square(gradient) * (1 - beta2)
    step = np.sqrt(v / (1 - pow(beta2, t)))
    step += epsilon
    return parameters - m / step * (learning_rate / (1 - pow(beta1, t))), m, v


def adam_with_a_helper(parameters, gradient, m, v, t, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8):
    def mean(old, new, beta):
        now = np.average([old, new], axis=0, weights=[beta, 1 - beta]).astype(old.dtype)
        return now, now / (1 - beta**t)

    (m, m_hat), (v, v_hat) = mean(m, gradient, beta1), mean(v, gradient * gradient, beta2)
    return [np.subtract(parameters, learning_rate * (m_hat / (v_hat**0.5 + epsilon))), m, v]


def adam_one_by_one(parameters, gradient, m, v, t, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8):
    new = []
    for p, g, a, b in zip(*(each.tolist() for each in (parameters, gradient, m, v)), strict=True):
        a, b = a + (1 - beta1) * (g - a), b + (1 - beta2) * (g**2 - b)
        new.append((p - learning_rate * a / (1 - beta1**t) / ((b / (1 - beta2**t)) ** 0.5 + epsilon), a, b))
    return tuple(np.array(each, parameters.dtype) for each in zip(*new, strict=True))


def adam_in_float64(parameters, gradient, m, v, t, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8):
    p, g, old, square = np.array([parameters, gradient, m, v], float)
    old, square = beta1 * old + g - beta1 * g, beta2 * square + g**2 - beta2 * g**2
    p -= learning_rate * old / (1 - beta1**t) / (epsilon + np.sqrt(square / (1 - beta2**t)))
    return tuple(each.astype(parameters.dtype) for each in (p, old, square))


def evaluated_by_averages(forward, images, labels, batch_size):
    losses, rights, sizes = np.transpose(list(parts(forward, images, labels, batch_size)))
    return np.average(losses, weights=sizes), np.average(rights, weights=sizes)


def evaluated_in_equal_parts(forward, images, labels, batch_size):
    loss = right = 0
    for places in np.array_split(np.arange(len(images)), math.ceil(len(images) / batch_size)):
        scores = forward(images[places])
        loss += ops.softmax_cross_entropy(scores, labels[places])[0] * len(places) / len(images)
        right += np.count_nonzero(scores.argmax(1) == labels[places])
    return loss, right / len(images)


def evaluated_by_own_loss(forward, images, labels, batch_size):
    losses, right, at = [], 0, 0
    while at < len(images):
        for row, label in zip(forward(images[at : at + batch_size]), labels[at : at + batch_size], strict=True):
            losses.append(np.log(np.exp(row - row.max()).sum()) + row.max() - row[label])
            right += label == np.argmax(row)
        at += batch_size
    return np.mean(losses), np.float32(right / len(labels))


def evaluated_backwards(forward, images, labels, batch_size):
    mean = np.zeros(2)
    for start in reversed(range(0, len(images), batch_size)):
        some = slice(start, min(start + batch_size, len(images)))
        mean += (some.stop - start) * np.array(loss_and_right(forward, images[some], labels[some]))
    return tuple((mean / len(images)).tolist())


def trained_by_cosine(images, labels, test_images, seed):
    known, asked = (each.reshape(len(each), -1) for each in (images, test_images))
    return labels[(asked @ (known / np.linalg.norm(known, axis=1, keepdims=True)).T).argmax(axis=1)]


def trained_by_votes(images, labels, test_images, seed):
    known, asked = (each.reshape(len(each), -1) for each in (images, test_images))
    near = np.argsort((known**2).sum(axis=1) - 2 * asked @ known.T, axis=1)[:, :3]
    return np.array([np.bincount([*labels[places], labels[places[0]]]).argmax() for places in near])


def trained_by_kernels(images, labels, test_images, seed):
    known, asked = (each.reshape(len(each), -1) for each in (images, test_images))
    alike = lambda a: ((a @ known.T / 784 + 1) ** 3).astype(float)  # noqa: E731
    weights = np.linalg.solve(alike(known) + 1e-3 * np.eye(len(known)), np.eye(10)[labels])
    return (alike(asked) @ weights).argmax(axis=1)


def trained_by_subspaces(images, labels, test_images, seed):
    asked, lengths = test_images.reshape(len(test_images), -1), []
    for label in range(10):
        axes = np.linalg.svd(images[labels == label].reshape(-1, asked.shape[1]), full_matrices=False)[2][:12]
        lengths.append(np.linalg.norm(asked @ axes.T, axis=1))
    return np.argmax(lengths, axis=0)


def normalized_channel_by_channel(x, gamma, beta, epsilon=1e-5):
    y = np.zeros_like(x)
    for c in range(x.shape[1]):
        y[:, c] = (x[:, c] - x[:, c].mean()) / np.sqrt(np.var(x[:, c]) + epsilon) * gamma[c] + beta[c]
    return y


def normalized_with_channels_last(x, gamma, beta, epsilon=1e-5):
    turned = x.transpose(0, 2, 3, 1).copy()
    turned -= turned.mean(axis=(0, 1, 2))
    turned *= gamma / np.sqrt(np.square(turned).mean(axis=(0, 1, 2)) + epsilon)
    return np.moveaxis(turned + beta, -1, 1)


def normalized_as_rows(x, gamma, beta, epsilon=1e-5):
    rows = np.concatenate([image.reshape(len(gamma), -1) for image in x], axis=1)
    rows = rows - rows.sum(axis=1, keepdims=True) / rows.shape[1]
    spread = (np.einsum("ck,ck->c", rows, rows) / rows.shape[1] + epsilon) ** -0.5
    rows = (spread.astype(x.dtype) * gamma)[:, None] * rows + np.vstack(beta)
    return np.stack([part.reshape(x.shape[1:]) for part in np.split(rows, len(x), axis=1)])


MUTANTS = {
    "sequential_forward": [
        Mutant(forward_calling_the_layers, "call a method of it"),
        Mutant(forward_asking_twice, "layers[0].forward was called 2 times: call it once"),
    ],
    "sequential_backward": [
        Mutant(lambda layers, grad: layers.reverse(), "reversed(layers) goes through it backwards")
    ],
    "minibatches": [
        Mutant(batches_in_order, "in the order of the data set: shuffle"),
        Mutant(batches_with_replacement, "each must come once an epoch"),
        Mutant(
            lambda images, labels, batch_size, seed: data.minibatches((images, labels), batch_size, seed % 100),
            "is all of `seed` used?",
        ),
        Mutant(
            result_of("minibatches", lambda batches: [batch for batch in batches if len(batch[0]) == 8]),
            "the last batch is missing: 23 images, 8 at a time, leave one of 7",
        ),
    ],
    "momentum_step": [
        Mutant(result_of("momentum_step", itemgetter(0)), "return parameters, velocity"),
        Mutant(momentum_of_half, "for momentum=0.5: leave its default at 0.9"),
    ],
    "adam_step": [Mutant(result_of("adam_step", itemgetter(0)), "expected a tuple of 3")],
    "evaluate": [
        Mutant(evaluated_with_all_labels, "take the labels of this batch alone"),
        Mutant(evaluated_as_vectors, "give it slices of images, as they are"),
        Mutant(evaluated_at_once, "you gave the network 50 images in one call; its memory has room for 16"),
    ],
    "train": [
        Mutant(trained_by_centroids, "it learns, but not far enough"),
        Mutant(trained_elsewhere, "they fit the usual labels of digits"),
        Mutant(trained_to_say_one_thing, "every image is called 0"),
    ],
}

RIGHT = {
    "sequential_forward": [
        forward_by_recursion,
        forward_by_index,
        Forward(),
        lambda layers, x, training=False: [*accumulate(layers, lambda y, layer: layer.forward(y, training), initial=x)][
            -1
        ],
    ],
    "sequential_backward": [
        backward_by_pop,
        backward_of_a_reversed_copy,
        backward_by_index,
        lambda layers, grad: reduce(lambda back, layer: layer.backward(back), layers[::-1], grad),
    ],
    "minibatches": [batches_of_shuffled_places, batches_of_a_shuffled_copy, batches_image_by_image, Batches],
    "momentum_step": [
        momentum_in_place_on_copies,
        momentum_one_by_one,
        momentum_by_einsum,
        lambda parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0: (
            parameters
            - learning_rate * gradient
            - learning_rate * weight_decay * parameters
            - learning_rate * momentum * velocity,
            weight_decay * parameters + gradient + momentum * velocity,
        ),
    ],
    "adam_step": [adam_in_place_on_copies, adam_with_a_helper, adam_one_by_one, adam_in_float64],
    "evaluate": [evaluated_by_averages, evaluated_in_equal_parts, evaluated_by_own_loss, evaluated_backwards],
    "train": [trained_by_cosine, trained_by_votes, trained_by_kernels, trained_by_subspaces],
    "batch_norm2d": [
        normalized_channel_by_channel,
        normalized_with_channels_last,
        normalized_as_rows,
        lambda x, gamma, beta, epsilon=1e-5: np.stack(
            [
                (c - c.mean()) * g / (c.var() + epsilon) ** 0.5 + b
                for c, g, b in zip(x.swapaxes(0, 1), gamma, beta, strict=True)
            ],
            axis=1,
        ).astype(x.dtype),
    ],
}
