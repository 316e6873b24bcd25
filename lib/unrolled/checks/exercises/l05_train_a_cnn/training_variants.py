"""Variants of lesson 05: networks that keep their values or are partly frozen, balanced batches, wrong labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.exercises.l05_train_a_cnn.batches import (
    SpyNetwork,
    decided_by_seed,
    no_pairs,
    numbered_images,
    numbers_of,
    strange_labels,
    strangers,
)
from unrolled.checks.exercises.l05_train_a_cnn.training import CLASSES, after_forward, disguised_digits, random_layers
from unrolled.checks.spec import Function, Inputs, Mistake
from unrolled.device import Array

# sequential_forward_activations


def activations(layers: Sequence[Any], x: Array, training: bool = False) -> list[Array]:
    """x, and what each layer makes of it."""
    kept = [x]
    for layer in layers:
        kept.append(layer.forward(kept[-1], training))
    return kept


ACTIVATIONS_MISTAKES = (
    Mistake("x itself is missing: it comes first in the list", lambda **given: activations(**given)[1:]),
    Mistake(
        "the last layer's result is missing: append what each layer gives, not what it gets",
        lambda **given: activations(**given)[:-1],
    ),
    Mistake("this is only what the last layer gives: keep all of them", lambda **given: activations(**given)[-1]),
    Mistake(
        "you went through the layers from last to first",
        lambda layers, x, **given: activations(layers[::-1], x, **given),
    ),
    Mistake(
        "the list is in reverse: x first, the last layer's result last", lambda **given: activations(**given)[::-1]
    ),
    Mistake("`training` does not reach the layers", lambda layers, x, training=False: activations(layers, x)),
    Mistake(
        "`training` is always True: pass on what you were given",
        lambda layers, x, training=False: activations(layers, x, True),
    ),
    Mistake(
        "each layer got the same x: it must get what the layer before it gave",
        lambda layers, x, training=False: [x, *(layer.forward(x, training) for layer in layers)],
    ),
    Mistake(
        "every item is the last layer's result: append in the loop",
        lambda **given: [activations(**given)[-1]] * len(activations(**given)),
    ),
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
    """The gradient by what comes into layer number `frozen`; the layers before it are left alone."""
    for layer in reversed(layers[frozen:]):
        grad = layer.backward(grad)
    return grad


def frozen_layers(count: int, frozen: Callable[[int], int]) -> Function:
    """Draws layers that have been through a forward pass, of which the first frozen(how many) are frozen."""

    def draw(rng: np.random.Generator) -> Inputs:
        n, size = (int(value) for value in rng.integers(2, 6, 2))
        layers = tuple(Watched(layer) for layer in random_layers(rng, size, count))
        after_forward(layers, rng.standard_normal((n, size)).astype(np.float32))
        grad = rng.standard_normal((n, size)).astype(np.float32)
        return {"layers": layers, "grad": grad, "frozen": frozen(len(layers))}

    return draw


def frozen_left_alone(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """The right gradient, and no work for layers that do not learn."""
    found = mismatch(got, expected, 1e-4)
    asked = [place for place in range(inputs["frozen"]) if inputs["layers"][place].asked]
    if not asked:
        return found
    line = f"layer {asked[-1]} was asked for its gradient, and is one of the first {inputs['frozen']}, which are frozen"
    return Mismatch((*(found.lines if found else ("the gradient is right",)), line, "stop before it: that saves time"))


def _back(layers: Sequence[Any], grad: Array) -> Array:
    return frozen_backward(layers, grad, 0)


FROZEN_MISTAKES = (
    Mistake(
        "you went back to the very first layer: stop before the frozen ones",
        lambda layers, grad, frozen: _back(layers, grad),
    ),
    Mistake(
        "the last layers are left out: the frozen ones are the first",
        lambda layers, grad, frozen: _back(layers[: len(layers) - frozen], grad),
    ),
    Mistake(
        "one layer too few: layer number `frozen` learns, so it is asked, too",
        lambda layers, grad, frozen: _back(layers[frozen + 1 :], grad),
    ),
    Mistake(
        "one layer too many: layers 0 to frozen - 1 are frozen",
        lambda layers, grad, frozen: _back(layers[max(frozen - 1, 0) :], grad),
    ),
    Mistake(
        "you went through the layers from first to last: the gradient comes from the loss, so the last layer is the "
        "first to get it",
        lambda layers, grad, frozen: _back(layers[frozen:][::-1], grad),
    ),
    Mistake(
        "each layer got the gradient of the loss: pass on what the layer after it returned",
        lambda layers, grad, frozen: layers[frozen].backward(grad),
    ),
    Mistake(
        "only the last layer is asked: is the return inside the loop?",
        lambda layers, grad, frozen: _back(layers[-1:], grad),
    ),
    Mistake(
        "you return the gradient that came in: put what each layer returns in its place",
        lambda layers, grad, frozen: grad,
    ),
    Mistake(
        "only the frozen layers are asked: it is the others that learn",
        lambda layers, grad, frozen: _back(layers[:frozen], grad),
    ),
)


# minibatches_balanced


def balanced_batches(images: Array, labels: Array, per_class: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """Batches with per_class images of each class, until the rarest class has too few left."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
    for start in range(0, min(map(len, orders)) - per_class + 1, per_class):
        chosen = np.concatenate([order[start : start + per_class] for order in orders])
        yield images[chosen], labels[chosen]


def unbalanced(counts: tuple[int, ...], per_class: int) -> Function:
    """Draws numbered images of classes that are so frequent; the classes have any numbers."""

    def draw(rng: np.random.Generator) -> Inputs:
        images = numbered_images(rng, sum(counts))["images"]
        classes = rng.choice(100, len(counts), replace=False)
        labels = rng.permutation(np.repeat(classes, counts))
        return {"images": images, "labels": labels, "per_class": per_class, "seed": int(rng.integers(1000))}

    return draw


def any_unbalanced(rng: np.random.Generator) -> Inputs:
    counts = tuple(int(count) for count in rng.integers(9, 40, rng.integers(2, 6)))
    return unbalanced(counts, int(rng.integers(2, 5)))(rng)  # type: ignore[no-any-return]


def balanced_and_shuffled(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Every batch with as many of each class, as many batches as the rarest allows, no image twice, by the seed."""
    for batches in got:
        if lines := no_pairs(batches, inputs) or _balance(batches, inputs) or _choice(batches, inputs):
            return Mismatch(lines)
    return decided_by_seed(got)


def _balance(batches: Any, inputs: Inputs) -> tuple[str, ...]:
    """What is wrong with the numbers of batches and of images in them, in words."""
    classes, counts = np.unique(inputs["labels"], return_counts=True)
    each, rarest = inputs["per_class"], int(counts.min())
    for place, (_, labels) in enumerate(batches):
        for label in classes:
            found = int((labels == label).sum())
            if found != each:
                return (
                    f"batch {place} holds {found} images of class {label}; expected per_class = {each} of every class",
                )
    if len(batches) != rarest // each:
        many = f"{len(batches)} batches; expected {rarest // each}"
        return (f"{many}: the rarest class has {rarest} images, and each batch takes {each} of them",)
    return ()


def _choice(batches: Any, inputs: Inputs) -> tuple[str, ...]:
    """What is wrong with the images that were chosen, in words."""
    if lines := strangers(batches, inputs) or strange_labels(batches, inputs):
        return lines
    numbers, labels = numbers_of(batches), inputs["labels"]
    often = int((np.bincount(numbers.astype(np.int64)) > 1).sum())
    if often:
        return (f"{often} images come more than once in an epoch: shuffle each class once, then cut it into pieces",)
    ordered = [numbers[labels[numbers.astype(np.int64)] == label] for label in np.unique(labels)]
    if all((np.diff(chosen) > 0).all() for chosen in ordered):
        return ("the images of each class come in the order of the data set: shuffle them, class by class",)
    return ()


# train_noisy

WRONG = 0.3
"""Share of the labels that are wrong."""


def noisy_digits(rng: np.random.Generator, train: int, test: int) -> Inputs:
    """Digits in disguise, and of the labels to learn from, the share WRONG names another class. Those of the test do
    not."""
    inputs = disguised_digits(rng, train, test)
    wrong = rng.permutation(train)[: int(WRONG * train)]
    labels = inputs["labels"].copy()
    labels[wrong] = (labels[wrong] + rng.integers(1, CLASSES, len(wrong))) % CLASSES
    return {**inputs, "labels": labels}


NEIGHBOURS = 11


def neighbours_vote(images: Array, labels: Array, test_images: Array, seed: int) -> Array:
    """The label that most of the similar images have: no network, quick, and not misled; stands in as the reference."""
    known, asked = images.reshape(len(images), -1), test_images.reshape(len(test_images), -1)
    distances = (known**2).sum(axis=1) - 2 * asked @ known.T
    near = labels[np.argpartition(distances, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]]
    return np.asarray((near[:, :, None] == np.arange(CLASSES)).sum(axis=1).argmax(axis=1))


# evaluate_confusion


def confusion(forward: Function, images: Array, labels: Array, batch_size: int) -> Array:
    """How many images of each class (row) were taken for each class (column), at most batch_size at a time."""
    counts = None
    for start in range(0, len(images), batch_size):
        scores, known = forward(images[start : start + batch_size]), labels[start : start + batch_size]
        if counts is None:
            counts = np.zeros((scores.shape[1],) * 2, np.int64)
        np.add.at(counts, (known, scores.argmax(axis=1)), 1)
    assert counts is not None
    return counts


def mistaken(count: int, batch_size: int, absent: bool = False) -> Function:
    """Images and labels of which the network gets about half right; with `absent`, no image is of the last class."""

    def draw(rng: np.random.Generator) -> Inputs:
        images = rng.standard_normal((count, 1, 3, 3)).astype(np.float32)
        network = SpyNetwork(rng.standard_normal((9, 5)).astype(np.float32))
        scores = images.reshape(count, -1) @ network.weight
        labels = np.where(rng.random(count) < 0.5, scores.argmax(axis=1), rng.integers(0, 5, count))
        if absent:
            labels = np.where(labels == 4, 0, labels)
        return {"forward": network, "images": images, "labels": labels, "batch_size": batch_size}

    return draw


def any_mistaken(rng: np.random.Generator) -> Inputs:
    batch_size = int(rng.integers(4, 20))
    return mistaken(batch_size * int(rng.integers(2, 5)) + int(rng.integers(1, batch_size)), batch_size)(rng)  # type: ignore[no-any-return]


def _lost(forward: Function, images: Array, labels: Array, batch_size: int) -> Array:
    """Of a pair that comes twice in a batch, one is lost."""
    counts = np.zeros_like(confusion(forward, images, labels, batch_size))
    for start in range(0, len(images), batch_size):
        found = forward(images[start : start + batch_size]).argmax(axis=1)
        counts[labels[start : start + batch_size], found] += 1
    return counts


def _part(chosen: Callable[[int, int], slice]) -> Function:
    """Only some of the images: those of chosen(count, batch_size)."""

    def wrong(forward: Function, images: Array, labels: Array, batch_size: int) -> Array:
        part = chosen(len(images), batch_size)
        return confusion(forward, images[part], labels[part], batch_size)

    return wrong


def _after(change: Callable[[Array], Any]) -> Function:
    return lambda **inputs: change(confusion(**inputs))


def _of_known_classes(labels: Array, **inputs: Any) -> Array:
    classes = int(labels.max()) + 1
    return confusion(labels=labels, **inputs)[:classes, :classes]


CONFUSION_MISTAKES = (
    Mistake(
        "counts[labels, found] += 1 counts a pair once, even where it comes twice: np.add.at counts all of them",
        _lost,
    ),
    Mistake(
        "rows and columns are exchanged: a row is what the image is, a column what the network took it for",
        _after(lambda counts: counts.T),
    ),
    Mistake("the last, smaller batch is left out", _part(lambda count, size: slice(0, count - count % size))),
    Mistake(
        "only the last batch counts: make the table before the loop, and add to it",
        _part(lambda count, size: slice((count - 1) // size * size, None)),
    ),
    Mistake("only the first batch counts: is the return inside the loop?", _part(lambda count, size: slice(0, size))),
    Mistake("these are shares: whole numbers of images are asked", _after(lambda counts: counts / counts.sum())),
    Mistake(
        "these are shares of each row: whole numbers of images are asked",
        _after(lambda counts: counts / counts.sum(axis=1, keepdims=True)),
    ),
    Mistake(
        "these are the right ones only: the table has a column for each class",
        _after(lambda counts: np.diag(counts)),
    ),
    Mistake(
        "only right answers are counted: count the others beside the diagonal", _after(lambda c: np.diag(np.diag(c)))
    ),
    Mistake("right answers are left out: they are the diagonal", _after(lambda c: c - np.diag(np.diag(c)))),
    Mistake(
        "this is the accuracy: the table of counts is asked",
        _after(lambda counts: float(np.trace(counts) / counts.sum())),
    ),
    Mistake("as many classes as the network has scores: also one that no image has", _of_known_classes),
)
