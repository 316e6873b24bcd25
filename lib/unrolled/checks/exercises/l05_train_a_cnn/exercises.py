"""Lesson 05: layers into a network, mini-batches, optimizers, evaluation in bounded memory, training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled import data, nn, ops
from unrolled.checks.domain import any_arrays, edge_size
from unrolled.checks.exercises.l04_backprop.gradients import named
from unrolled.checks.exercises.l05_train_a_cnn import batches, optimizer_steps, training
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Case, Draw, Inputs, Spec, case, images, normal, random_case, vector
from unrolled.device import Array


def by_hand(name: str, /, **arguments: Any) -> Case:
    """Make a case in which lists stand for float32 arrays."""
    return case(name, **{key: np.array(v, np.float32) if isinstance(v, list) else v for key, v in arguments.items()})


def forward(layers: Sequence[Any], x: Array, training: bool = False) -> Array:
    """Return what the layers, one after the other, make of x (N, …)."""
    for layer in layers:
        x = layer.forward(x, training)
    return x


def backward(layers: Sequence[Any], grad: Array) -> Array:
    """Return the gradient by what came into the first layer, from that by what left the last one."""
    for layer in reversed(layers):
        grad = layer.backward(grad)
    return grad


STEPS = ([[2, 0], [0, 3]], [[1, 1], [0, 1]], [[0, 1], [1, 0]])
"""Three matrices that give another result in any other order."""
BY_HAND = "three layers: times (2, 3), add the first to the second, exchange"

SMALL_LAYERS = Draw(lambda rng: tuple(map(training.Matrix, STEPS)))


def ready_layers(rng: np.random.Generator) -> Inputs:
    """Draw layers that have been through a forward pass, and a gradient of the right shape."""
    layers, x = training.any_layers(rng)
    return {"layers": layers, "grad": normal(*forward(layers, x, training=True).shape).make(rng)}


def layers_and_x(rng: np.random.Generator) -> Inputs:
    """Draw layers and a batch for them, beside `training` or not."""
    layers, x = training.any_layers(rng)
    return {"layers": layers, "x": x} | ({} if rng.random() < 0.2 else {"training": bool(rng.random() < 0.5)})


def _with_layers(says: str, start: int | None = None, stop: int | None = None, step: int = 1) -> Mistake:
    """Return the mistake of these layers alone, or of another order."""
    return given(says, layers=lambda layers: layers[start:stop:step])


sequential_forward = Spec(
    reference=forward,
    cases=[
        by_hand(BY_HAND, layers=SMALL_LAYERS, x=[[1, 1]]),
        case("one layer", layers=(training.Bend(),), x=normal(3, 4)),
        case("one layer; in training", layers=(training.Bend(),), x=normal(3, 4), training=True),
        case("two layers; in training", layers=(training.Bend(), training.Bend()), x=normal(3, 4), training=True),
    ],
    compare=training.once_each("forward"),
    domain=random_case("any layers", layers_and_x),
    points=1,
    hints=(
        "What leaves one layer enters the next. Keep one variable for it, and let each layer replace it.",
        "layer.forward(x, training) takes a batch and returns a batch, of another shape perhaps. There is no need to "
        "know the shapes. Dropout must know whether this is training, so pass that on.",
        "for layer in layers:\n    x = (what this layer makes of x, told whether this is training)\nreturn x",
    ),
    mistakes=(
        _with_layers("you went through the layers from last to first", step=-1),
        given("`training` does not reach the layers", training=False),
        given("`training` is always True: pass on what you were given", training=True),
        _with_layers("the last layer is left out", stop=-1),
        _with_layers("only the first layer's result comes back: is the return inside the loop?", stop=1),
        _with_layers("each layer got the same x: it must get what the layer before it gave", start=-1),
    ),
)

sequential_backward = Spec(
    reference=backward,
    cases=[
        by_hand(BY_HAND, layers=SMALL_LAYERS, grad=[[3, 1]]),
    ],
    compare=training.once_each("backward"),
    domain=random_case("any layers", ready_layers),
    points=2,
    hints=(
        "The chain rule goes the other way: the last layer was closest to the loss, so it is the first to be asked.",
        "layer.backward(grad) takes the gradient by what left the layer and returns that by what came in: the very "
        "thing that the layer before it needs.",
        "for layer in (the layers, the last one first):\n    grad = layer.backward(grad)\nreturn grad",
    ),
    mistakes=(
        _with_layers(
            "you went through the layers from first to last: the gradient comes from the loss, so the last layer is "
            "the first to get it",
            step=-1,
        ),
        _with_layers("each layer got the gradient of the loss: pass on what the layer after it returned", stop=1),
        _with_layers("only the last layer is asked: is the return inside the loop?", start=-1),
        _with_layers("you return the gradient that came in: put what each layer returns in its place", stop=0),
        _with_layers("the first layer is left out", start=1),
        _with_layers("the last layer is left out", stop=-1),
    ),
)

minibatches = Spec(
    reference=batches.shuffled_batches,
    cases=[
        random_case("24 images, 8 at a time", batches.numbered, 24, 8),
        random_case("23 images, 8 at a time", batches.numbered, 23, 8),
        random_case("25 images, 8 at a time", batches.numbered, 25, 8),
        random_case("12 images, 20 at a time", batches.numbered, 12, 20),
    ],
    domain=random_case("any number", batches.any_numbered),
    points=2,
    hints=(
        "Shuffle indices, not images: then images and labels stay together, and nobody's arrays change.",
        "np.random.default_rng(seed).permutation(n) holds each of 0 to n - 1 once. Cut it into slices of batch_size; "
        "a slice that reaches past the end is shorter by itself.",
        "order = np.random.default_rng(seed).permutation(len(images))\n"
        "for start in range(0, len(images), batch_size):\n"
        "    chosen = (the slice of order that begins at start)\n"
        "    yield images[chosen], (their labels)",
    ),
    compare=batches.each_once_and_shuffled,
    call=batches.some_epochs,
    expected=lambda inputs: None,  # any shuffle is right
)

momentum_step = Spec(
    reference=optimizer_steps.momentum_update,
    cases=[
        by_hand("the first step: velocity 0", parameters=[1, 2], gradient=[2, -4], velocity=[0, 0], learning_rate=0.1),
        by_hand("the second step", parameters=[0.8, 2.4], gradient=[1, 1], velocity=[2, -4], learning_rate=0.1),
        by_hand(
            "with weight decay",
            parameters=[10, -20, 5],
            gradient=[1, 1, 0],
            velocity=[1, -1, 2],
            learning_rate=0.5,
            momentum=0.5,
            weight_decay=0.1,
        ),
    ],
    new=True,
    domain=random_case("any step", optimizer_steps.any_momentum),
    points=2,
    hints=(
        "A ball that rolls: it keeps part of its velocity, and the gradient changes the velocity, not the place.",
        "First the gradient: weight decay adds weight_decay times the parameters to it. Then the new velocity from "
        "the old one. Then the step, with the new velocity. All are arrays of one shape; make new ones.",
        "gradient = gradient + (the part for weight decay)\n"
        "velocity = momentum * velocity + gradient\n"
        "return (the parameters after a step against the new velocity), velocity",
    ),
    mistakes=optimizer_steps.MOMENTUM_MISTAKES,
    compare=named("parameters", "velocity"),
)


def adam_case(name: str, t: int, parameters: Any, gradient: Any, m: Any, v: Any, **options: float) -> Case:
    """Make a case of step t, in which lists stand for float32 arrays."""
    return by_hand(name, parameters=parameters, gradient=gradient, m=m, v=v, t=t, **options)


adam_step = Spec(
    reference=optimizer_steps.adam_update,
    cases=[
        adam_case(
            "the first step: t = 1, m and v are 0", 1, [1, 2, 3], [2, -0.5, 100], [0] * 3, [0] * 3, learning_rate=0.1
        ),
        adam_case("the second step", 2, [0.9, 2.1], [1, 1], [0.2, -0.05], [0.004, 0.00025], learning_rate=0.1),
        adam_case("step 1000, the default rate", 1000, normal(5), normal(5), normal(5), [0.5, 1, 2, 3, 4]),
        adam_case("step 50,000", 50_000, [1, 2], [1, 1], [0.5, -0.5], [1, 2], learning_rate=0.5),
        adam_case("an epsilon that shows", 3, [1, 2], [1, 2], [-1, 4], [2, 1], learning_rate=0.5, epsilon=0.5),
        adam_case(
            "a gradient as small as the default epsilon", 1, [1, 2], [1e-8, -2e-8], [0, 0], [0, 0], learning_rate=0.5
        ),
    ],
    domain=random_case("any step", optimizer_steps.any_adam),
    points=2,
    hints=(
        "Two running means: m of the gradient, v of its square. The step is their ratio, m / sqrt(v): about 1 in size, "
        "however large the gradient. Both begin at 0, so early on they are too small; a correction makes up for it.",
        "m becomes beta1 * m + (1 - beta1) * gradient, and v the same with beta2 and gradient**2. For the step alone "
        "divide them by 1 - beta1**t and 1 - beta2**t; what you return is m and v without that.",
        "m = beta1 * m + (1 - beta1) * gradient\n"
        "v = (the same with beta2 and the square)\n"
        "m_hat, v_hat = m / (1 - beta1**t), (v, corrected in the same way)\n"
        "return parameters - learning_rate * m_hat / (np.sqrt(v_hat) + epsilon), m, v",
    ),
    mistakes=optimizer_steps.ADAM_MISTAKES,
    compare=named("parameters", "m", "v"),
)

evaluate = Spec(
    reference=batches.evaluated,
    allows=(ops.softmax_cross_entropy,),
    cases=[
        random_case("50 images, 16 at a time", batches.graded, 50, 16),
    ],
    domain=random_case("any number", batches.any_graded),
    points=3,
    hints=(
        "Go through the images a batch at a time, in order, and keep two sums: of the losses, and of the right "
        "answers. Divide by the number of images at the end.",
        "ops.softmax_cross_entropy(scores, labels) returns the MEAN loss of its images and a gradient. The last batch "
        "may be smaller, so turn each mean back into a sum: times the number of images in that batch.",
        "for start in range(0, len(images), batch_size):\n"
        "    scores, known = forward(images[start : start + batch_size]), labels[start : start + batch_size]\n"
        "    loss += float(ops.softmax_cross_entropy(scores, known)[0]) * len(known)\n"
        "    correct += int((scores.argmax(axis=1) == known).sum())",
    ),
    mistakes=batches.EVALUATE_MISTAKES,
    compare=batches.in_bounded_memory,
)


# `network.fit` is allowed with `nn`: it has to learn the disguised digits, too.
train = Spec(
    reference=training.nearest_neighbour,
    allows=(nn, data.minibatches, ops.softmax_cross_entropy),
    cases=[
        random_case("three trainings on disguised digits, median accuracy", training.three_disguises, 1300, 497),
    ],
    points=4,
    hints=(
        "An epoch is a loop over mini-batches, with the four lines from above inside; training is a loop over epochs.",
        "Before the loops: network and optimizer, once. Give `data.minibatches` another seed in each epoch, such as "
        "(seed, epoch). After the loops: network.predict(test_images). Eight epochs with nn.Adam(0.002) do.",
        "network, optimizer = new_network(seed), nn.Adam(0.002)\n"
        "network.build(images.shape[1:])\n"
        "for epoch in range(8):\n"
        "    for x, y in data.minibatches((images, labels), 32, (seed, epoch)):\n"
        "        scores = network.forward(x, training=True)\n"
        "        ... loss and gradient, backward, step\n"
        "return network.predict(test_images)",
    ),
    compare=training.median_accuracy,
    call=training.train_on_each,
    limit=60.0,
)


def normalized(
    x: Array,
    gamma: Array,
    beta: Array,
    epsilon: float = 1e-5,
    *,
    over: tuple[int, ...] = (0, 2, 3),
    fewer: int = 0,
    outside: float = 0.0,
    power: float = 0.5,
    centred: bool = True,
    brackets: bool = True,
    flat_moments: bool = False,
    flat_parameters: bool = False,
) -> Array:
    """Return gamma * (x - mean) / sqrt(variance + epsilon) + beta, by the mean and variance of each channel of x.

    Mistakes are `over` other axes, by `fewer` values, with an epsilon `outside` of the root, with another power, not
    `centred`, or without `brackets`, so that the mean alone is divided.
    What is `flat`, (C,), goes along the columns: a ValueError, unless there are as many.
    """
    mean, variance = x.mean(axis=over, keepdims=True), x.var(axis=over, ddof=fewer, keepdims=True)
    if flat_moments:
        mean, variance = mean.ravel(), variance.ravel()
    if not flat_parameters:
        gamma, beta = gamma[:, None, None], beta[:, None, None]
    root = (variance + epsilon) ** power + outside
    return gamma * ((x - mean * centred) / root if brackets else x - mean / root) + beta


def any_batch(rng: np.random.Generator) -> Inputs:
    """Draw a batch of any size, gamma and beta for its channels, and an epsilon that shows."""
    n, c, h, w = (edge_size(rng, 8 if axis < 2 else 7) for axis in range(4))
    arrays = any_arrays(rng, x=(n, c, h, w), gamma=(c,), beta=(c,))
    return {**arrays, "epsilon": float(rng.uniform(0.1, 1) * np.square(arrays["x"]).max() + 1e-9)}


NORMALIZATION_MISTAKES = (
    given(
        "the mean and the variance are over images only: a channel has one of each, over positions as well", over=(0,)
    ),
    given("each image is normalized by itself: the mean is over all images of the batch, axes (0, 2, 3)", over=(2, 3)),
    given("axis 1 is that of the channels: the mean is over all the others, axes (0, 2, 3)", over=(1,)),
    given("the mean is over the channels, too: each channel has its own, over the axes (0, 2, 3)", over=(0, 1, 2, 3)),
    given("you divide by the variance: take its square root", power=1.0),
    given("epsilon is outside of the root: it is added to the variance", epsilon=0.0, outside=lambda epsilon: epsilon),
    given("epsilon is missing: add it to the variance, before the root", epsilon=0.0),
    given("the variance divides by one value fewer: here it is the plain mean of the squares", fewer=1),
    given(
        "gamma and beta are exchanged: gamma multiplies, beta is added",
        gamma=lambda beta: beta,
        beta=lambda gamma: gamma,
    ),
    given(
        "gamma and beta are missing: gamma * x_hat + beta",
        gamma=lambda gamma: 0 * gamma + 1,
        beta=lambda beta: 0 * beta,
    ),
    given(
        "this is the mean of x**2: the variance is that of (x - mean)**2",
        epsilon=lambda x, epsilon: epsilon + x.mean(axis=(0, 2, 3), keepdims=True) ** 2,
    ),
    given("gamma is missing: it multiplies x_hat", gamma=lambda gamma: 0 * gamma + 1),
    given("beta is missing: add it at the end", beta=lambda beta: 0 * beta),
    given(
        "gamma and beta go along the columns: with gamma[:, None, None] they go along the channels",
        flat_parameters=True,
    ),
    given("mean and variance go along the columns: keepdims=True keeps the channels", flat_moments=True),
    result("beta goes along the columns: beta[:, None, None]", lambda y, beta: y - beta[:, None, None] + beta),
    result(
        "beta is multiplied by gamma: add it after, gamma * x_hat + beta",
        lambda y, gamma, beta: y + ((gamma - 1) * beta)[:, None, None],
    ),
    given("only the mean is divided: put x - mean in brackets", brackets=False),
    given(
        "all four go along the columns: keepdims=True for mean and variance, [:, None, None] for the others",
        flat_moments=True,
        flat_parameters=True,
    ),
    given("the mean is not subtracted", centred=False),
)


batch_norm2d = Spec(
    reference=normalized,
    cases=[
        by_hand("1, 3, 5, 7 in one channel", x=[[[[1, 3]]], [[[5, 7]]]], gamma=[2], beta=[10], epsilon=4.0),
        case("as many channels as rows and columns", x=images(4, 3, 3, 3), gamma=vector(3), beta=vector(3)),
        case("two images, three channels", x=images(2, 3, 4, 5), gamma=vector(3), beta=vector(3)),
        by_hand(
            "the same, 100,000 higher",
            x=[[[[1e5 + 1, 1e5 + 3]]], [[[1e5 + 5, 1e5 + 7]]]],
            gamma=[2],
            beta=[10],
            epsilon=4.0,
        ),
        by_hand(
            "a channel of equal values", x=[[[[2, 2], [2, 2]], [[0, 0.001], [0.002, 0.003]]]], gamma=[1, 1], beta=[0, 5]
        ),
        case("float64", x=normal(3, 2, 2, 2, dtype=float), gamma=normal(2, dtype=float), beta=normal(2, dtype=float)),
    ],
    domain=random_case("any shape, any epsilon", any_batch),
    points=2,
    hints=(
        "A channel is one slice x[:, c]: all images, all positions. It has one mean, one variance, one gamma and one "
        "beta. Everything else follows from shapes that keep the channels apart.",
        "The mean over the axes (0, 2, 3) with keepdims=True is (1, C, 1, 1), and so is the variance: both fit x "
        "(N, C, H, W) as they are. gamma and beta are (C,), which would fit the last axis; gamma[:, None, None] is "
        "(C, 1, 1).",
        "mean = x.mean(axis=(0, 2, 3), keepdims=True)\n"
        "variance = (the mean of the squared distances from it, over the same axes)\n"
        "x_hat = (x - mean) / np.sqrt(variance + epsilon)\n"
        "return gamma[:, None, None] * x_hat + (beta, in the same shape)",
    ),
    mistakes=NORMALIZATION_MISTAKES,
)
