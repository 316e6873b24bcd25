"""Wrong and imperfect answers to the variants of lesson 05."""

# ruff: noqa: RET503, RET504  mistakes look like that

import numpy as np

from unrolled import data

from . import Mutant, variant_updates
from .lesson05 import (
    batches_of_images_only,
    nearest,
    not_trained,
    trained_elsewhere,
    trained_on_one_batch,
    trained_to_give_floats,
    trained_to_give_scores,
    trained_to_say_one_thing,
    trained_without_return,
)

# sequential_forward_activations


def kept_before_each_layer(layers, x, training=False):
    kept = []
    for layer in layers:
        kept.append(x)
        x = layer.forward(x, training)
    return kept


def kept_after_each_layer(layers, x, training=False):
    kept = []
    for layer in layers:
        x = layer.forward(x, training)
        kept.append(x)
    return kept


def kept_the_last_only(layers, x, training=False):
    for layer in layers:
        x = layer.forward(x, training)
    return x


def kept_without_training(layers, x, training=False):
    return [x, *kept_after_each_layer(layers, x)]


def kept_always_training(layers, x, training=False):
    return [x, *kept_after_each_layer(layers, x, True)]


def kept_from_the_end(layers, x, training=False):
    return [x, *kept_after_each_layer(layers[::-1], x, training)]


def kept_of_the_same_x(layers, x, training=False):
    return [x] + [layer.forward(x, training) for layer in layers]


def kept_after_the_loop(layers, x, training=False):
    kept = [x]
    for layer in layers:
        x = layer.forward(x, training)
    kept.append(x)
    return kept


def kept_as_a_tuple(layers, x, training=False):
    return (x, *kept_after_each_layer(layers, x, training))


# sequential_backward_frozen


def back_through(layers, grad):
    for layer in reversed(layers):
        grad = layer.backward(grad)
    return grad


def back_and_remembered(layers, grad, frozen):
    """The right gradient, and all the work that was to be saved."""
    grads = [grad]
    for layer in reversed(layers):
        grads.append(layer.backward(grads[-1]))
    return grads[len(layers) - frozen]


def back_each_alone(layers, grad, frozen):
    for layer in reversed(layers[frozen:]):
        result = layer.backward(grad)
    return result


def back_returning_in_the_loop(layers, grad, frozen):
    for layer in reversed(layers[frozen:]):
        grad = layer.backward(grad)
        return grad


# minibatches_balanced


def orders_of(labels, rng):
    return [rng.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]


def pieces(orders, images, labels, per_class, count):
    for batch in range(count):
        piece = slice(batch * per_class, (batch + 1) * per_class)
        chosen = np.concatenate([order[piece] for order in orders])
        yield images[chosen], labels[chosen]


def balanced(images, labels, per_class, seed):
    orders = orders_of(labels, np.random.default_rng(seed))
    return pieces(orders, images, labels, per_class, min(map(len, orders)) // per_class)


def balanced_until_all_are_used(images, labels, per_class, seed):
    orders = orders_of(labels, np.random.default_rng(seed))
    return pieces(orders, images, labels, per_class, max(map(len, orders)) // per_class + 1)


def balanced_by_repeating(images, labels, per_class, seed):
    """The rare classes come again and again: as many batches as the most frequent class allows."""
    orders = orders_of(labels, np.random.default_rng(seed))
    most = max(map(len, orders))
    return pieces([np.resize(order, most) for order in orders], images, labels, per_class, most // per_class)


def balanced_without_the_last(images, labels, per_class, seed):
    orders = orders_of(labels, np.random.default_rng(seed))
    return pieces(orders, images, labels, per_class, (min(map(len, orders)) - 1) // per_class)


def balanced_in_order(images, labels, per_class, seed):
    orders = [np.sort(order) for order in orders_of(labels, np.random.default_rng(seed))]
    return pieces(orders, images, labels, per_class, min(map(len, orders)) // per_class)


def balanced_with_replacement(images, labels, per_class, seed):
    rng = np.random.default_rng(seed)
    orders = [rng.choice(order, len(order)) for order in orders_of(labels, rng)]
    return pieces(orders, images, labels, per_class, min(map(len, orders)) // per_class)


def balanced_by_chance(images, labels, per_class, seed):
    """Ordinary shuffled batches of the right size."""
    return data.minibatches((images, labels), per_class * len(np.unique(labels)), seed)


def balanced_and_apart(images, labels, per_class, seed):
    rng = np.random.default_rng(seed)
    for batch_images, batch_labels in balanced(images, labels, per_class, seed):
        yield batch_images[rng.permutation(len(batch_images))], batch_labels


def balanced_without_the_seed(images, labels, per_class, seed):
    return balanced(images, labels, per_class, 0)


def balanced_anew_each_time(images, labels, per_class, seed):
    return balanced(images, labels, per_class, None)


def balanced_in_float64(images, labels, per_class, seed):
    return balanced(images.astype(float), labels, per_class, seed)


# train_noisy


def trained_by_heart(images, labels, test_images, seed):
    """What a network does in the end that learns every label, wrong or right."""
    return nearest(images, labels, test_images)


# evaluate_confusion


def counted(forward, images, labels, batch_size, change=lambda counts: counts, chosen=slice(None)):
    """Right, or with some of the images, or with the table changed."""
    images, labels = images[chosen], labels[chosen]
    for start in range(0, len(images), batch_size):
        scores, known = forward(images[start : start + batch_size]), labels[start : start + batch_size]
        if start == 0:
            counts = np.zeros((scores.shape[1], scores.shape[1]), np.int64)
        np.add.at(counts, (known, scores.argmax(axis=1)), 1)
    return change(counts)


def counted_with(change):
    return lambda **inputs: counted(**inputs, change=change)


def counted_at_once(forward, images, labels, batch_size):
    return counted(forward, images, labels, len(images))


def counted_one_by_one(forward, images, labels, batch_size):
    return counted(forward, images, labels, 1)


def counted_with_lost_pairs(forward, images, labels, batch_size):
    counts = np.zeros((5, 5), np.int64)
    for start in range(0, len(images), batch_size):
        found = forward(images[start : start + batch_size]).argmax(axis=1)
        counts[labels[start : start + batch_size], found] += 1
    return counts


def counted_anew_in_each_batch(forward, images, labels, batch_size):
    return counted(
        forward, images, labels, batch_size, chosen=slice((len(images) - 1) // batch_size * batch_size, None)
    )


def counted_without_the_rest(forward, images, labels, batch_size):
    for start in range(0, len(images) - batch_size + 1, batch_size):
        scores, known = forward(images[start : start + batch_size]), labels[start : start + batch_size]
        if start == 0:
            counts = np.zeros((scores.shape[1], scores.shape[1]), np.int64)
        np.add.at(counts, (known, scores.argmax(axis=1)), 1)
    return counts


def counted_returning_in_the_loop(forward, images, labels, batch_size):
    return counted(forward, images, labels, batch_size, chosen=slice(0, batch_size))


def counted_for_the_labels_there_are(forward, images, labels, batch_size):
    classes = labels.max() + 1
    return counted(forward, images, labels, batch_size, change=lambda counts: counts[:classes, :classes])


def of_pairs(batch):
    """An ordinary `minibatches` mutant, called with the arguments of `minibatches_balanced`."""
    return lambda images, labels, per_class, seed: batch(images, labels, per_class, seed)


MUTANTS = {
    "sequential_forward_activations": [
        Mutant(kept_before_each_layer, "append what each layer gives, not what it gets"),
        Mutant(kept_after_each_layer, "x itself is missing"),
        Mutant(kept_the_last_only, "keep all of them"),
        Mutant(kept_without_training, "`training` does not reach the layers"),
        Mutant(kept_always_training, "`training` is always True"),
        Mutant(kept_from_the_end, "from last to first"),
        Mutant(kept_of_the_same_x, "each layer got the same x"),
        Mutant(kept_after_the_loop, "expected 4 items, got 2"),
        Mutant(kept_as_a_tuple, "return them as a list"),
    ],
    "sequential_backward_frozen": [
        Mutant(lambda layers, grad, frozen: back_through(layers, grad), "stop before the frozen ones"),
        Mutant(back_and_remembered, "layer 0 was asked for its gradient, and is one of the first 1"),
        Mutant(
            lambda layers, grad, frozen: back_through(layers[: len(layers) - frozen], grad), "the last layers are left"
        ),
        Mutant(lambda layers, grad, frozen: back_through(layers[:frozen], grad), "it is the others that learn"),
        Mutant(lambda layers, grad, frozen: back_through(layers[frozen + 1 :], grad), "one layer too few"),
        Mutant(lambda layers, grad, frozen: back_through(layers[frozen:][::-1], grad), "from first to last"),
        Mutant(back_each_alone, "pass on what the layer after it returned"),
        Mutant(back_returning_in_the_loop, "only the last layer is asked"),
        Mutant(lambda layers, grad, frozen: grad, "you return the gradient that came in"),
    ],
    "minibatches_balanced": [
        Mutant(balanced_by_chance, "expected per_class = 3 of every class"),
        Mutant(balanced_until_all_are_used, "expected per_class = 3 of every class"),
        Mutant(balanced_by_repeating, "the rarest class has 9 images, and each batch takes 3 of them"),
        Mutant(balanced_without_the_last, "3 batches; expected 4"),
        Mutant(balanced_in_order, "shuffle them, class by class"),
        Mutant(balanced_with_replacement, "come more than once in an epoch"),
        Mutant(balanced_and_apart, "take both with the same indices"),
        Mutant(balanced_without_the_seed, "is `seed` used?"),
        Mutant(balanced_anew_each_time, "the same seed gave two different orders"),
        Mutant(balanced_in_float64, "batch 0 has float64 and int64"),
        Mutant(of_pairs(batches_of_images_only), "expected a pair"),
        Mutant(lambda images, labels, per_class, seed: None, "`yield` each of them"),
    ],
    "momentum_step_nesterov": [
        Mutant(variant_updates.nesterov(lambda p, g, v, r, m: (p - r * v, v)), "momentum without the look ahead"),
        Mutant(variant_updates.nesterov_with_the_old_velocity, "momentum without the look ahead"),
        Mutant(
            variant_updates.nesterov(lambda p, g, v, r, m: (p - r * (v + m * v), v)), "its first part is the gradient"
        ),
        Mutant(
            variant_updates.nesterov(lambda p, g, v, r, m: (p - r * (g + v), v)), "the velocity counts `momentum` times"
        ),
        Mutant(variant_updates.nesterov(lambda p, g, v, r, m: (p - r * m * v, v)), "the step leaves the gradient out"),
        Mutant(
            variant_updates.nesterov(lambda p, g, v, r, m: (p - r * (g + m * v), g + m * v)),
            "you return the look ahead",
        ),
        Mutant(variant_updates.nesterov(lambda p, g, v, r, m: (p + r * (g + m * v), v)), "the step goes uphill"),
        Mutant(lambda **given: variant_updates.right_nesterov(**given)[::-1], "the order is parameters, velocity"),
        Mutant(variant_updates.nesterov_without_decay, "the weight decay is missing"),
        Mutant(variant_updates.nesterov_decaying_beside, "weight decay is part of the gradient"),
        Mutant(variant_updates.nesterov_with_the_rate_inside, "the learning rate is inside your velocity"),
        Mutant(variant_updates.nesterov_in_place, "changed its input gradient"),
        Mutant(lambda **given: variant_updates.right_nesterov(**given)[0], "expected a tuple of 2"),
        Mutant(
            lambda **given: (variant_updates.right_nesterov(**given)[0], given["velocity"]),
            "you return the old velocity",
        ),
    ],
    "adam_step_decoupled": [
        Mutant(variant_updates.decoupled_with(in_gradient=True), "as in Adam with L2"),
        Mutant(variant_updates.decoupled_with(no_decay=True), "the weight decay is missing"),
        Mutant(variant_updates.decoupled_with(after=True), "and so the step as well"),
        Mutant(variant_updates.decoupled_with(whole=True), "here it is learning_rate * weight_decay"),
        Mutant(variant_updates.decoupled_with(pull=-1), "the weight decay has the wrong sign"),
        Mutant(variant_updates.decoupled_with(sign=-1), "uphill"),
        Mutant(variant_updates.decoupled_with(uncorrected=True), "the bias correction is missing"),
        Mutant(variant_updates.decoupled_with(keep_corrected=True), "you return the corrected means"),
        Mutant(variant_updates.decoupled_with(by=lambda v, epsilon: v + epsilon), "the square root is missing"),
        Mutant(variant_updates.decoupled_with(by=lambda v, epsilon: np.sqrt(v + epsilon)), "epsilon is under the root"),
        Mutant(variant_updates.decoupled_with(shift=1), "you count t one too high"),
        Mutant(variant_updates.decoupled_with(shift=-1), "you count t from 0"),
        Mutant(variant_updates.decoupled_in_float64, "dtype is float64, expected float32"),
        Mutant(variant_updates.decoupled_in_place, "changed its input parameters"),
        Mutant(lambda **given: variant_updates.decoupled(**given)[0], "expected a tuple of 3"),
    ],
    "evaluate_confusion": [
        Mutant(counted_at_once, "you gave the network 40 images in one call; its memory has room for 8"),
        Mutant(counted_one_by_one, "in 40 calls: give the network batch_size = 8 images at a time"),
        Mutant(counted_with_lost_pairs, "np.add.at counts all of them"),
        Mutant(counted_with(lambda counts: counts.T), "rows and columns are exchanged"),
        Mutant(counted_without_the_rest, "the last, smaller batch is left out"),
        Mutant(counted_anew_in_each_batch, "make the table before the loop"),
        Mutant(counted_returning_in_the_loop, "is the return inside the loop?"),
        Mutant(counted_with(lambda counts: counts.astype(float)), "dtype is float64, expected int64"),
        Mutant(counted_with(lambda counts: counts / counts.sum()), "whole numbers of images are asked"),
        Mutant(
            counted_with(lambda counts: counts / counts.sum(axis=1, keepdims=True)), "whole numbers of images are asked"
        ),
        Mutant(counted_with(np.diag), "the right ones only"),
        Mutant(counted_with(lambda counts: np.trace(counts) / counts.sum()), "this is the accuracy"),
        Mutant(counted_for_the_labels_there_are, "also one that no image has"),
    ],
    "train_noisy": [
        Mutant(trained_by_heart, "a network learns those by heart"),
        Mutant(trained_on_one_batch, "it learns, but not far enough"),
        Mutant(trained_elsewhere, "they fit the usual labels of digits"),
        Mutant(trained_to_say_one_thing, "every image is called 0"),
        Mutant(not_trained, "hardly better than guessing"),
        Mutant(trained_to_give_scores, "argmax(axis=1)"),
        Mutant(trained_to_give_floats, "labels are whole numbers"),
        Mutant(trained_without_return, "is the return statement missing?"),
    ],
}

HONEST = {}

LOOP = {}
