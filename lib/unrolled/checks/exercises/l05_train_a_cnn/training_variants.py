"""Variants of lesson 05: values that are kept, frozen layers, balanced batches, wrong labels, confusion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.exercises.l05_train_a_cnn import batches, exercises
from unrolled.checks.exercises.l05_train_a_cnn.exercises import backward as _back
from unrolled.checks.exercises.l05_train_a_cnn.training import CLASSES, disguised_digits, distances
from unrolled.checks.mistakes import converted, given, result
from unrolled.checks.spec import Function, Inputs
from unrolled.device import Array

# sequential_forward_activations


def activations(layers: Sequence[Any], x: Array, training: bool = False) -> list[Array]:
    """Return x, and what each layer makes of it."""
    return list(accumulate(layers, lambda y, layer: layer.forward(y, training), initial=x))


ACTIVATIONS_MISTAKES = (
    result("x itself is missing: it comes first in the list", lambda y: y[1:]),
    result("the last layer's result is missing: append what each layer gives, not what it gets", lambda y: y[:-1]),
    result("this is only what the last layer gives: keep all of them", lambda y: y[-1]),
    result("the list is in reverse: x first, the last layer's result last", lambda y: y[::-1]),
    *exercises.FORWARD_MISTAKES,
    result(exercises.SAME_X, lambda y, layers, x, training: [x, *(each.forward(x, training) for each in layers)]),
    result("every item is the last layer's result: append in the loop", lambda y: y[-1:] * len(y)),
)


# sequential_backward_frozen


class Watched:
    """A layer that counts how often it was asked for its gradient."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer
        self.asked = 0

    def forward(self, x: Array, training: bool = False) -> Any:
        return self.layer.forward(x, training)

    def backward(self, grad: Array) -> Any:
        self.asked += 1
        return self.layer.backward(grad)


def frozen_backward(layers: Sequence[Any], grad: Array, frozen: int) -> Array:
    """Return the gradient by what comes into layer number `frozen`; the layers before it are left alone."""
    return _back(layers[frozen:], grad)


def frozen_layers(count: int, frozen: Callable[[int], int]) -> Function:
    """Return what draws as `ready_layers` does; the first frozen(how many) of the layers are frozen."""

    def draw(rng: np.random.Generator) -> Inputs:
        inputs = exercises.ready_layers(rng, count)
        layers = tuple(Watched(layer) for layer in inputs["layers"])
        return {**inputs, "layers": layers, "frozen": frozen(len(layers))}

    return draw


def frozen_left_alone(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Judge whether the gradient is right, and no work was done for layers that do not learn."""
    found = mismatch(got, expected, 1e-4)
    asked = [place for place in range(inputs["frozen"]) if inputs["layers"][place].asked]
    if not asked:
        return found
    line = f"layer {asked[-1]} was asked for its gradient, and is one of the first {inputs['frozen']}, which are frozen"
    return Mismatch((*(found.lines if found else ("the gradient is right",)), line, "stop before it: that saves time"))


FROZEN_MISTAKES = (
    given("you went back to the very first layer: stop before the frozen ones", frozen=0),
    given(
        "the last layers are left out: the frozen ones are the first",
        layers=lambda layers, frozen: layers[: len(layers) - frozen],
        frozen=0,
    ),
    given("one layer too few: layer number `frozen` learns, so it is asked, too", frozen=lambda frozen: frozen + 1),
    given("one layer too many: layers 0 to frozen - 1 are frozen", frozen=lambda frozen: max(frozen - 1, 0)),
    *(converted(m, _back, layers=lambda layers, frozen: layers[frozen:]) for m in exercises.BACKWARD_MISTAKES),
    given(
        "only the frozen layers are asked: it is the others that learn",
        layers=lambda layers, frozen: layers[:frozen],
        frozen=0,
    ),
)


# minibatches_balanced


def balanced_batches(images: Array, labels: Array, per_class: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """Yield batches with per_class images of each class, until the rarest class has too few left."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
    for start in range(0, min(map(len, orders)) - per_class + 1, per_class):
        chosen = np.concatenate([order[start : start + per_class] for order in orders])
        yield images[chosen], labels[chosen]


def unbalanced(counts: tuple[int, ...], per_class: int) -> Callable[[np.random.Generator], Inputs]:
    """Return what draws numbered images of classes that are so frequent; the classes have any numbers."""

    def draw(rng: np.random.Generator) -> Inputs:
        images = batches.numbered_images(rng, sum(counts))["images"]
        classes = rng.choice(100, len(counts), replace=False)
        labels = rng.permutation(np.repeat(classes, counts))
        return {"images": images, "labels": labels, "per_class": per_class, "seed": int(rng.integers(1000))}

    return draw


def any_unbalanced(rng: np.random.Generator) -> Inputs:
    """Draw 9 to 39 images of each of 2 to 5 classes, for batches with 2 to 4 of each."""
    counts = tuple(int(count) for count in rng.integers(9, 40, rng.integers(2, 6)))
    return unbalanced(counts, int(rng.integers(2, 5)))(rng)


def _balance(epoch: Any, inputs: Inputs) -> batches.Lines:
    """Say what is wrong with the numbers of batches and of images in them."""
    classes, counts = np.unique(inputs["labels"], return_counts=True)
    each, rarest = inputs["per_class"], int(counts.min())
    for place, (_, labels) in enumerate(epoch):
        for label in classes:
            if (found := int((labels == label).sum())) != each:
                many = f"batch {place} holds {found} images of class {label}"
                return (f"{many}; expected per_class = {each} of every class",)
    many = f"{len(epoch)} batches; expected {rarest // each}"
    lines = (f"{many}: the rarest class has {rarest} images, and each batch takes {each} of them",)
    return lines if len(epoch) != rarest // each else ()


def _choice(epoch: Any, inputs: Inputs) -> batches.Lines:
    """Say what is wrong with the order in which images were chosen."""
    numbers = batches.numbers_of(epoch)
    labels = inputs["labels"][numbers]
    often = int((np.bincount(numbers) > 1).sum())
    if often:
        return (f"{often} images come more than once in an epoch: shuffle each class once, then cut it into pieces",)
    if all((np.diff(numbers[labels == label]) > 0).all() for label in np.unique(labels)):
        return ("the images of each class come in the order of the data set: shuffle them, class by class",)
    return ()


balanced_and_shuffled = batches.judge_of_epochs(_balance, batches.strangers, batches.strange_labels, _choice)


# train_noisy

WRONG = 0.3  # share of the labels that are wrong


def noisy_digits(rng: np.random.Generator, train: int, test: int) -> Inputs:
    """Draw digits in disguise; of the labels to learn from, the share WRONG names another class."""
    inputs = disguised_digits(rng, train, test)
    wrong = rng.permutation(train)[: int(WRONG * train)]
    labels = inputs["labels"].copy()
    labels[wrong] = (labels[wrong] + rng.integers(1, CLASSES, len(wrong))) % CLASSES
    return {**inputs, "labels": labels}


NEIGHBOURS = 11


def neighbours_vote(images: Array, labels: Array, test_images: Array, seed: int) -> Array:
    """Name the label that most of the similar images have: as `nearest_neighbour`, and not misled."""
    near = labels[np.argpartition(distances(images, test_images), NEIGHBOURS, axis=1)[:, :NEIGHBOURS]]
    return np.asarray((near[:, :, None] == np.arange(CLASSES)).sum(axis=1).argmax(axis=1))


# evaluate_confusion


def confusion(forward: Function, images: Array, labels: Array, batch_size: int) -> Array:
    """Count the images of each class (row) taken for each class (column), at most batch_size at a time."""
    scores = np.concatenate([forward(images[s : s + batch_size]) for s in range(0, len(images), batch_size)])
    counts = np.zeros((scores.shape[1],) * 2, np.int64)
    np.add.at(counts, (labels, scores.argmax(axis=1)), 1)
    return counts


def mistaken(rng: np.random.Generator, count: int, batch_size: int, absent: bool = False) -> Inputs:
    """Draw images of which the network gets about half right; with `absent`, none is of the last class."""
    inputs = batches.answered(rng, count, 0.5)
    if absent:
        inputs["labels"][inputs["labels"] == 4] = 0
    return {**inputs, "batch_size": batch_size}


def any_mistaken(rng: np.random.Generator) -> Inputs:
    """Draw as `mistaken` does, 3 to 5 batches."""
    return mistaken(rng, *batches.any_size(rng))


def _lost(y: Array, forward: Function, images: Array, labels: Array, batch_size: int) -> Array:
    """Return the counts where, of a pair that comes twice in a batch, one is lost."""
    counts = np.zeros_like(y)
    for start in range(0, len(images), batch_size):
        found = forward(images[start : start + batch_size]).argmax(axis=1)
        counts[labels[start : start + batch_size], found] += 1
    return counts


CONFUSION_MISTAKES = (
    result(
        "counts[labels, found] += 1 counts a pair once, even where it comes twice: np.add.at counts all of them", _lost
    ),
    result(
        "rows and columns are exchanged: a row is what the image is, a column what the network took it for",
        lambda y: y.T,
    ),
    batches.LAST_LEFT_OUT,
    batches.last_only("only the last batch counts: make the table before the loop, and add to it"),
    batches.FIRST_ONLY,
    result("these are shares: whole numbers of images are asked", lambda y: y / y.sum()),
    result(
        "these are shares of each row: whole numbers of images are asked", lambda y: y / y.sum(axis=1, keepdims=True)
    ),
    result("these are the right ones only: the table has a column for each class", lambda y: np.diag(y)),
    result("only right answers are counted: count the others beside the diagonal", lambda y: np.diag(np.diag(y))),
    result("right answers are left out: they are the diagonal", lambda y: y - np.diag(np.diag(y))),
    result("this is the accuracy: the table of counts is asked", lambda y: float(np.trace(y) / y.sum())),
    result(
        "as many classes as the network has scores: also one that no image has",
        lambda y, labels: y[: labels.max() + 1, : labels.max() + 1],
    ),
)
