"""Wrong and imperfect answers to lesson 05."""

# ruff: noqa: RET503, RET504  mistakes look like that

import numpy as np

from unrolled import data, ops

from . import Mutant, updates

# sequential_forward


def forward_from_the_end(layers, x, training=False):
    for layer in reversed(layers):
        x = layer.forward(x, training)
    return x


def forward_without_training(layers, x, training=False):
    for layer in layers:
        x = layer.forward(x)
    return x


def forward_always_training(layers, x, training=False):
    for layer in layers:
        x = layer.forward(x, True)
    return x


def forward_returning_in_the_loop(layers, x, training=False):
    for layer in layers:
        x = layer.forward(x, training)
        return x


def forward_into_another_variable(layers, x, training=False):
    for layer in layers:
        y = layer.forward(x, training)
    return y


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


def backward_each_alone(layers, grad):
    for layer in reversed(layers):
        result = layer.backward(grad)
    return result


def backward_without_the_first(layers, grad):
    for layer in layers[:0:-1]:
        grad = layer.backward(grad)
    return grad


def backward_without_the_last(layers, grad):
    for layer in layers[-2::-1]:
        grad = layer.backward(grad)
    return grad


def backward_returning_what_came_in(layers, grad):
    way_back = grad
    for layer in reversed(layers):
        way_back = layer.backward(way_back)
    return grad


def backward_returning_in_the_loop(layers, grad):
    for layer in reversed(layers):
        grad = layer.backward(grad)
        return grad


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


def batches_that_come_apart(images, labels, batch_size, seed):
    rng = np.random.default_rng(seed)
    mine, theirs = rng.permutation(len(images)), rng.permutation(len(images))
    for start in range(0, len(images), batch_size):
        yield images[mine[start : start + batch_size]], labels[theirs[start : start + batch_size]]


def batches_shuffled_as_wholes(images, labels, batch_size, seed):
    starts = np.arange(0, len(images), batch_size)
    for start in sorted(np.random.default_rng(seed).permutation(starts), key=lambda s: s + batch_size > len(images)):
        yield images[start : start + batch_size], labels[start : start + batch_size]


def batches_without_the_seed(images, labels, batch_size, seed):
    return data.minibatches((images, labels), batch_size, 0)


def batches_of_random_order(images, labels, batch_size, seed):
    return data.minibatches((images, labels), batch_size, int(np.random.default_rng().integers(10**9)))


def batches_shuffled_in_place(images, labels, batch_size, seed):
    np.random.default_rng(seed).shuffle(images)
    np.random.default_rng(seed).shuffle(labels)
    return batches_in_order(images, labels, batch_size, seed)


def batches_of_images_only(images, labels, batch_size, seed):
    for batch, _ in data.minibatches((images, labels), batch_size, seed):
        yield batch


def batches_of_one_more(images, labels, batch_size, seed):
    return data.minibatches((images, labels), batch_size + 1, seed)


def batches_returned_one_at_a_time(images, labels, batch_size, seed):
    return next(data.minibatches((images, labels), batch_size, seed))


def batches_in_float64(images, labels, batch_size, seed):
    return data.minibatches((images.astype(float), labels), batch_size, seed)


def batches_without_end(images, labels, batch_size, seed):
    while True:
        yield from data.minibatches((images, labels), batch_size, seed)


# evaluate


def loss_and_right(forward, images, labels):
    scores = forward(images)
    return float(ops.softmax_cross_entropy(scores, labels)[0]), float((scores.argmax(axis=1) == labels).mean())


def evaluated_at_once(forward, images, labels, batch_size):
    return loss_and_right(forward, images, labels)


def evaluated_one_by_one(forward, images, labels, batch_size):
    parts = [loss_and_right(forward, images[i : i + 1], labels[i : i + 1]) for i in range(len(images))]
    loss, accuracy = np.mean(parts, axis=0)
    return float(loss), float(accuracy)


def parts(forward, images, labels, batch_size):
    """(loss, accuracy, number of images) of each batch."""
    for start in range(0, len(images), batch_size):
        chosen = slice(start, start + batch_size)
        yield *loss_and_right(forward, images[chosen], labels[chosen]), len(labels[chosen])


def evaluated_with_a_mean_of_means(forward, images, labels, batch_size):
    loss, accuracy, _ = np.mean(list(parts(forward, images, labels, batch_size)), axis=0)
    return float(loss), float(accuracy)


def evaluated_without_the_rest(forward, images, labels, batch_size):
    whole = len(images) // batch_size * batch_size
    if whole == 0:
        return 0.0, 0.0
    return evaluated_with_a_mean_of_means(forward, images[:whole], labels[:whole], batch_size)


def evaluated_by_the_last_batch(forward, images, labels, batch_size):
    for loss, accuracy, _ in parts(forward, images, labels, batch_size):  # noqa: B007  the mistake
        pass
    return loss, accuracy


def evaluated_returning_in_the_loop(forward, images, labels, batch_size):
    for loss, accuracy, _ in parts(forward, images, labels, batch_size):
        return loss, accuracy


def evaluated_in_sums(forward, images, labels, batch_size):
    found = list(parts(forward, images, labels, batch_size))
    return sum(loss * n for loss, _, n in found), sum(accuracy * n for _, accuracy, n in found)


def evaluated_with_a_full_last_batch(forward, images, labels, batch_size):
    found = list(parts(forward, images, labels, batch_size))
    return sum(loss for loss, _, _ in found) * batch_size / len(images), sum(a * n for _, a, n in found) / len(images)


def evaluated_with_a_mean_accuracy(forward, images, labels, batch_size):
    found = list(parts(forward, images, labels, batch_size))
    return sum(loss * n for loss, _, n in found) / len(images), sum(a for _, a, _ in found) / len(found)


def evaluated_with_a_mean_loss(forward, images, labels, batch_size):
    found = list(parts(forward, images, labels, batch_size))
    return sum(loss for loss, _, _ in found) / len(found), sum(a * n for _, a, n in found) / len(images)


def evaluated_right_but_in_percent(forward, images, labels, batch_size):
    loss, accuracy = (part / len(images) for part in evaluated_in_sums(forward, images, labels, batch_size))
    return loss, 100 * accuracy


def evaluated_without_the_loss(forward, images, labels, batch_size):
    return evaluated_in_sums(forward, images, labels, batch_size)[1] / len(images)


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


def trained_on_labels_that_came_apart(images, labels, test_images, seed):
    return nearest(images, np.random.default_rng(seed).permutation(labels), test_images)


def trained_to_give_scores(images, labels, test_images, seed):
    return np.eye(10, dtype=np.float32)[nearest(images, labels, test_images)]


def trained_to_give_floats(images, labels, test_images, seed):
    return nearest(images, labels, test_images).astype(float)


def trained_to_name_what_it_knows(images, labels, test_images, seed):
    return nearest(images, labels, images)


def trained_without_return(images, labels, test_images, seed):
    nearest(images, labels, test_images)


# batch_norm2d


def normalized(x, gamma, beta, epsilon=1e-5, over=(0, 2, 3), fewer=0):
    mean, variance = x.mean(axis=over, keepdims=True), x.var(axis=over, ddof=fewer, keepdims=True)
    return gamma[:, None, None] * ((x - mean) / np.sqrt(variance + epsilon)) + beta[:, None, None]


def normalized_over(*over, fewer=0):
    def variant(x, gamma, beta, epsilon=1e-5):
        return normalized(x, gamma, beta, epsilon, over, fewer)

    return variant


def normalized_by_the_variance(x, gamma, beta, epsilon=1e-5):
    mean, variance = x.mean(axis=(0, 2, 3), keepdims=True), x.var(axis=(0, 2, 3), keepdims=True)
    return gamma[:, None, None] * (x - mean) / (variance + epsilon) + beta[:, None, None]


def normalized_by_the_deviation(x, gamma, beta, epsilon=1e-5):
    mean, deviation = x.mean(axis=(0, 2, 3), keepdims=True), x.std(axis=(0, 2, 3), keepdims=True)
    return gamma[:, None, None] * (x - mean) / (deviation + epsilon) + beta[:, None, None]


def normalized_without_the_mean(x, gamma, beta, epsilon=1e-5):
    return gamma[:, None, None] * x / np.sqrt(x.var(axis=(0, 2, 3), keepdims=True) + epsilon) + beta[:, None, None]


def normalized_along_the_columns(x, gamma, beta, epsilon=1e-5):
    return gamma * normalized(x, np.ones_like(gamma), np.zeros_like(beta), epsilon) + beta


def normalized_in_place(x, gamma, beta, epsilon=1e-5):
    x -= x.mean(axis=(0, 2, 3), keepdims=True)
    return normalized(x, gamma, beta, epsilon)


def normalized_in_float64(x, gamma, beta, epsilon=1e-5):
    return normalized(x.astype(float), gamma, beta, epsilon)


def normalized_without_keepdims(x, gamma, beta, epsilon=1e-5):
    x_hat = (x - x.mean(axis=(0, 2, 3))) / np.sqrt(x.var(axis=(0, 2, 3)) + epsilon)
    return gamma[:, None, None] * x_hat + beta[:, None, None]


def forward_through(layers, x, training):
    for layer in layers:
        x = layer.forward(x, training)
    return x


def momentum_changed(gathered):
    """Momentum with another velocity: gathered(parameters, gradient, velocity, momentum, weight_decay)."""

    def variant(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
        velocity = gathered(parameters, gradient, velocity, momentum, weight_decay)
        return parameters - learning_rate * velocity, velocity

    return variant


def evaluated(forward, images, labels, batch_size):
    found = list(parts(forward, images, labels, batch_size))
    return sum(loss * n for loss, _, n in found) / len(images), sum(a * n for _, a, n in found) / len(images)


def evaluated_with_a_sum_of_means(forward, images, labels, batch_size):
    found = list(parts(forward, images, labels, batch_size))
    return sum(loss for loss, _, _ in found) / len(images), sum(a * n for _, a, n in found) / len(images)


def evaluated_with_all_labels(forward, images, labels, batch_size):
    return loss_and_right(lambda images: forward(images[: batch_size // 2]), images, labels)


def evaluated_by_the_highest_score(forward, images, labels, batch_size):
    return evaluated(forward, images, labels, batch_size)[0], 0.0


def evaluated_by_the_wrong_ones(forward, images, labels, batch_size):
    loss, accuracy = evaluated(forward, images, labels, batch_size)
    return loss, 1 - accuracy


def plain(x, epsilon):
    c = x.shape[1]
    return normalized(x, np.ones(c, x.dtype), np.zeros(c, x.dtype), epsilon)


def normalized_by_the_mean_of_squares(x, gamma, beta, epsilon=1e-5):
    mean, squares = (each.mean(axis=(0, 2, 3), keepdims=True) for each in (x, x**2))
    return gamma[:, None, None] * (x - mean) / np.sqrt(squares + epsilon) + beta[:, None, None]


def normalized_without_brackets(x, gamma, beta, epsilon=1e-5):
    mean, variance = (f(x, axis=(0, 2, 3), keepdims=True) for f in (np.mean, np.var))
    return gamma[:, None, None] * (x - mean / np.sqrt(variance + epsilon)) + beta[:, None, None]


def normalized_flat(x, gamma, beta, epsilon=1e-5):
    mean, variance = (f(x, axis=(0, 2, 3)) for f in (np.mean, np.var))
    return gamma * (x - mean) / np.sqrt(variance + epsilon) + beta


MUTANTS = {
    "sequential_forward": [
        Mutant(forward_from_the_end, "from last to first"),
        Mutant(forward_without_training, "`training` does not reach the layers"),
        Mutant(forward_always_training, "`training` is always True"),
        Mutant(forward_returning_in_the_loop, "only the first layer's result comes back"),
        Mutant(forward_into_another_variable, "each layer got the same x"),
        Mutant(forward_without_return, "is the return statement missing?"),
        Mutant(forward_calling_the_layers, "call a method of it"),
        Mutant(
            lambda layers, x, training=False: forward_through(layers[:-1], x, training), "the last layer is left out"
        ),
    ],
    "sequential_backward": [
        Mutant(lambda layers, grad: layers.reverse(), "reversed(layers) goes through it backwards"),
        Mutant(backward_from_the_start, "the last layer is the first to get it"),
        Mutant(backward_reversing_in_place, "'tuple' object has no attribute 'reverse'"),
        Mutant(backward_each_alone, "pass on what the layer after it returned"),
        Mutant(backward_without_the_first, "the first layer is left out"),
        Mutant(backward_without_the_last, "the last layer is left out"),
        Mutant(backward_returning_what_came_in, "you return the gradient that came in"),
        Mutant(backward_returning_in_the_loop, "only the last layer is asked"),
    ],
    "minibatches": [
        Mutant(batches_in_order, "in the order of the data set: shuffle"),
        Mutant(batches_with_replacement, "each must come once an epoch"),
        Mutant(batches_without_the_last, "the last batch is missing: 23 images, 8 at a time, leave one of 7"),
        Mutant(batches_that_come_apart, "take both with the same indices"),
        Mutant(batches_shuffled_as_wholes, "only the order of the batches is shuffled"),
        Mutant(batches_without_the_seed, "is `seed` used?"),
        Mutant(batches_of_random_order, "the same seed gave two different orders"),
        Mutant(batches_shuffled_in_place, "changed its input images"),
        Mutant(batches_of_images_only, "expected a pair"),
        Mutant(batches_of_one_more, "your batches hold [9, 9, 6] images; expected [8, 8, 8]"),
        Mutant(batches_returned_one_at_a_time, "expected a pair"),
        Mutant(batches_in_float64, "batch 0 has float64 and int64"),
        Mutant(batches_without_end, "images; expected [8, 8, 8]"),
        Mutant(lambda images, labels, batch_size, seed: None, "`yield` each of them"),
        Mutant(
            lambda images, labels, batch_size: [], "cannot be called as f(images=…, labels=…, batch_size=…, seed=…)"
        ),
    ],
    "momentum_step": [
        Mutant(momentum_changed(lambda p, g, v, momentum, decay: v + g + decay * p), "momentum is missing"),
        Mutant(momentum_changed(lambda p, g, v, momentum, decay: momentum * v + g + 2 * decay * p), "counts twice"),
        Mutant(
            momentum_changed(lambda p, g, v, momentum, decay: momentum * v + g + decay * g), "yours takes the gradient"
        ),
        Mutant(lambda **given: updates.momentum(**given)[::-1], "the order is parameters, velocity"),
        Mutant(lambda **given: updates.momentum(**given)[0], "return parameters, velocity"),
        Mutant(updates.momentum_uphill, "the step goes uphill"),
        Mutant(updates.momentum_with_two_signs, "two signs cancel"),
        Mutant(updates.momentum_with_the_rate_inside, "the learning rate is inside your velocity"),
        Mutant(updates.momentum_stepping_first, "first the velocity, then the step"),
        Mutant(updates.momentum_without_decay, "the weight decay is missing"),
        Mutant(updates.momentum_decaying_beside, "weight decay is part of the gradient"),
        Mutant(updates.momentum_that_averages, "weighed with 1 - momentum"),
        Mutant(updates.momentum_in_place, "changed its input parameters"),
        Mutant(updates.momentum_without_its_velocity, "expected a tuple of 2"),
        Mutant(lambda **given: (updates.momentum(**given)[0], given["velocity"]), "you return the old velocity"),
    ],
    "adam_step": [
        Mutant(updates.adam_with(raw_m=True), "only v is corrected"),
        Mutant(updates.adam_with(divisor=lambda beta, t: 1 - beta * t), "beta * t is no power"),
        Mutant(updates.adam_with(divisor=lambda beta, t: 1 / (1 - beta**t)), "the correction divides"),
        Mutant(updates.adam_with(divisor=lambda beta, t: 1 - beta), "right in the first step only"),
        Mutant(updates.adam_with(weigh=lambda old, new, beta: (1 - beta) * old + beta * new), "yours are exchanged"),
        Mutant(updates.adam_with(squared_weight=True), "the square is of the gradient alone"),
        Mutant(updates.adam_with(bare=True), "epsilon is missing"),
        Mutant(updates.adam_with(beside=True), "epsilon belongs to the root"),
        Mutant(updates.adam_with(correct=False), "the bias correction is missing"),
        Mutant(updates.adam_with(shift=1), "you count t one too high"),
        Mutant(updates.adam_with(shift=-1), "you count t from 0"),
        Mutant(updates.adam_with(keep_corrected=True), "you return the corrected means"),
        Mutant(updates.adam_with(root=False), "the square root is missing"),
        Mutant(updates.adam_with(inside=True), "epsilon is inside the square root"),
        Mutant(updates.adam_with(sign=-1), "uphill"),
        Mutant(updates.adam_with(square=False), "v is the mean of the gradient's square"),
        Mutant(updates.adam_in_float64, "dtype is float64, expected float32"),
        Mutant(updates.adam_in_place, "changed its input m"),
        Mutant(updates.adam_without_m_and_v, "expected a tuple of 3"),
    ],
    "evaluate": [
        Mutant(evaluated_by_the_highest_score, "no answer counts as right"),
        Mutant(evaluated_by_the_wrong_ones, "the share of wrong answers"),
        Mutant(evaluated_with_a_sum_of_means, "the loss adds up means of batches"),
        Mutant(evaluated_with_all_labels, "take the labels of this batch alone"),
        Mutant(evaluated_at_once, "you gave the network 40 images in one call; its memory has room for 8"),
        Mutant(evaluated_at_once_and_wrong, "you gave the network 40 images in one call"),
        Mutant(evaluated_one_by_one, "in 40 calls: give the network batch_size = 8 images at a time"),
        Mutant(evaluated_with_a_mean_of_means, "this is a mean of means"),
        Mutant(evaluated_with_a_full_last_batch, "weighed as if it were full"),
        Mutant(evaluated_with_a_mean_accuracy, "the accuracy is a mean of means"),
        Mutant(evaluated_with_a_mean_loss, "the loss is a mean of means"),
        Mutant(evaluated_without_the_rest, "the last, smaller batch is left out"),
        Mutant(evaluated_by_the_last_batch, "add up, do not replace"),
        Mutant(evaluated_returning_in_the_loop, "is the return inside the loop?"),
        Mutant(evaluated_in_sums, "both are sums over images"),
        Mutant(evaluated_right_but_in_percent, "a share from 0 to 1 is asked"),
        Mutant(evaluated_without_the_loss, "expected a tuple of 2"),
    ],
    "train": [
        Mutant(trained_by_centroids, "it learns, but not far enough"),
        Mutant(trained_elsewhere, "they fit the usual labels of digits"),
        Mutant(trained_on_one_batch, "it learns, but not far enough"),
        Mutant(trained_to_say_one_thing, "every image is called 0"),
        Mutant(not_trained, "hardly better than guessing"),
        Mutant(trained_on_labels_that_came_apart, "hardly better than guessing"),
        Mutant(trained_to_give_scores, "argmax(axis=1)"),
        Mutant(trained_to_give_floats, "labels are whole numbers"),
        Mutant(trained_to_name_what_it_knows, "expected one label for each of test_images, shape (497,)"),
        Mutant(trained_without_return, "is the return statement missing?"),
    ],
    "batch_norm2d": [
        Mutant(normalized_over(1), "axis 1 is that of the channels"),
        Mutant(lambda x, gamma, beta, epsilon=1e-5: plain(x, epsilon), "gamma and beta are missing"),
        Mutant(
            lambda x, gamma, beta, epsilon=1e-5: normalized(x, gamma, 0 * beta, epsilon) + beta,
            "beta goes along the columns",
        ),
        Mutant(
            lambda x, gamma, beta, epsilon=1e-5: gamma[:, None, None] * (plain(x, epsilon) + beta[:, None, None]),
            "beta is multiplied by gamma",
        ),
        Mutant(normalized_by_the_mean_of_squares, "this is the mean of x**2"),
        Mutant(normalized_without_brackets, "only the mean is divided"),
        Mutant(normalized_flat, "all four go along the columns"),
        Mutant(normalized_over(0), "over images only"),
        Mutant(normalized_over(2, 3), "each image is normalized by itself"),
        Mutant(normalized_over(0, 1, 2, 3), "over the channels, too"),
        Mutant(normalized_over(1, 2, 3), "each image is normalized by itself"),
        Mutant(normalized_over(0, 2, 3, fewer=1), "divides by one value fewer"),
        Mutant(normalized_by_the_variance, "take its square root"),
        Mutant(normalized_by_the_deviation, "epsilon is outside of the root"),
        Mutant(normalized_without_the_mean, "the mean is not subtracted"),
        Mutant(normalized_along_the_columns, "they go along the channels"),
        Mutant(normalized_in_place, "changed its input x"),
        Mutant(normalized_in_float64, "dtype is float64, expected float32"),
        Mutant(normalized_without_keepdims, "keepdims=True keeps the channels"),
        Mutant(
            lambda x, gamma, beta, epsilon=1e-5: normalized(x, beta, gamma, epsilon), "gamma and beta are exchanged"
        ),
        Mutant(lambda x, gamma, beta, epsilon=1e-5: normalized(x, gamma, beta, 0.0), "epsilon is missing"),
        Mutant(lambda x, gamma, beta, epsilon=1e-5: normalized(x, gamma, 0 * beta, epsilon), "beta is missing"),
        Mutant(lambda x, gamma, beta, epsilon=1e-5: normalized(x, gamma**0, beta, epsilon), "gamma is missing"),
    ],
}

HONEST = {}

LOOP = {}
