"""Mini-batches and evaluation: what they are tried on, and how they are judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from unrolled import data, ops
from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.spec import Function, Inputs, Mistake
from unrolled.device import Array


def shuffled_batches(images: Array, labels: Array, batch_size: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """(images, labels) of every mini-batch: what `minibatches` must do."""
    return data.minibatches((images, labels), batch_size, seed)


def three_epochs(function: Function, inputs: Inputs) -> list[Any]:
    """The batches of three epochs: twice with one seed, then with another."""
    seed, most = inputs["seed"], len(inputs["images"]) + 1  # most: some iterators never end
    return [
        list(islice(batches, most)) if isinstance(batches, Iterable) else batches
        for batches in (function(**inputs | {"seed": s}) for s in (seed, seed, seed + 1))
    ]


def each_once_and_shuffled(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Every image once with its label, in batches of the right size, in an order that the seed alone decides."""
    for batches in got:
        lines = _form(batches, inputs) or _contents(batches, inputs)
        if lines:
            return Mismatch(lines)
    return decided_by_seed(got)


def decided_by_seed(epochs: Any) -> Mismatch | None:
    """Whether two epochs with one seed are alike, and the third, with another, is not."""
    first, again, other = (numbers_of(batches) for batches in epochs)
    if not np.array_equal(first, again):
        return Mismatch(("the same seed gave two different orders: draw from np.random.default_rng(seed) alone",))
    if np.array_equal(first, other):
        return Mismatch(("another seed gave the same order: is `seed` used?",))
    return None


def no_pairs(batches: Any, inputs: Inputs) -> tuple[str, ...]:
    """Why these are not pairs of images and labels, shaped as the data set's, in words."""
    if not isinstance(batches, list):
        return (f"expected mini-batches to loop over, got {type(batches).__name__}: `yield` each of them",)
    for place, batch in enumerate(batches):
        if not (isinstance(batch, (tuple, list)) and len(batch) == 2):
            return (f"batch {place} is of type {type(batch).__name__}; expected a pair: yield images[…], labels[…]",)
        images, labels = batch
        shape = (len(labels), *inputs["images"].shape[1:])
        if not (isinstance(images, np.ndarray) and isinstance(labels, np.ndarray)) or images.shape != shape:
            return (f"batch {place} holds {_shape(images)} and {_shape(labels)}; expected images {shape}",)
        if (images.dtype, labels.dtype) != (inputs["images"].dtype, inputs["labels"].dtype):
            return (
                f"images and labels came as {inputs['images'].dtype} and {inputs['labels'].dtype}; batch {place} "
                f"has {images.dtype} and {labels.dtype}",
            )
    return ()


def _shape(value: Any) -> str:
    return str(value.shape) if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


def _form(batches: Any, inputs: Inputs) -> tuple[str, ...]:
    """What is wrong with the form of an epoch's batches, in words."""
    if lines := no_pairs(batches, inputs):
        return lines
    sizes, size, count = [len(labels) for _, labels in batches], inputs["batch_size"], len(inputs["labels"])
    expected = [min(size, count - start) for start in range(0, count, size)]
    if sizes == expected:
        return ()
    if sizes == [size for size in expected if size == inputs["batch_size"]]:
        return (f"the last batch is missing: {count} images, {size} at a time, leave one of {count % size}",)
    return (f"your batches hold {_short(sizes)} images; expected {_short(expected)}",)


def numbers_of(batches: Any) -> Array:
    """The numbers of all images of these batches, in order: the first pixel of an image is its number."""
    return np.concatenate([images[:, 0, 0, 0] for images, _ in batches])


def strangers(batches: Any, inputs: Inputs) -> tuple[str, ...]:
    """Whether some of the images are none of the data set's, in words."""
    numbers = numbers_of(batches)
    if np.isin(numbers, np.arange(len(inputs["labels"]))).all():
        found = np.concatenate([images for images, _ in batches])
        if np.array_equal(found, inputs["images"][numbers.astype(np.int64)]):
            return ()
    return ("some of your images are none of the data set: take them as they are, images[...]",)


def strange_labels(batches: Any, inputs: Inputs) -> tuple[str, ...]:
    """Whether some images have labels of others, in words."""
    labels = np.concatenate([labels for _, labels in batches])
    if (labels == inputs["labels"][numbers_of(batches).astype(np.int64)]).all():
        return ()
    return ("labels and images come apart: take both with the same indices",)


def _contents(batches: Any, inputs: Inputs) -> tuple[str, ...]:
    """What is wrong with what an epoch's batches hold."""
    if lines := strangers(batches, inputs):
        return lines
    count, numbers = len(inputs["labels"]), numbers_of(batches)
    times = np.bincount(numbers.astype(np.int64), minlength=count)
    if (times != 1).any():
        never, often = int((times == 0).sum()), int((times > 1).sum())
        return (
            f"{never} of {count} images never come and {often} come more than once",
            "each must come once an epoch: draw an order (rng.permutation), not each batch on its own",
        )
    if lines := strange_labels(batches, inputs):
        return lines
    if np.array_equal(numbers, np.arange(count)):
        return ("the images come in the order of the data set: shuffle them",)
    steps = np.diff(numbers[: inputs["batch_size"]])
    if len(steps) and (steps == 1).all():
        return ("only the order of the batches is shuffled: shuffle the images, then cut batches",)
    return ()


def _short(sizes: Sequence[int]) -> str:
    return str(list(sizes)) if len(sizes) <= 8 else f"[{', '.join(map(str, sizes[:6]))}, ..., {sizes[-1]}]"


def numbered_images(rng: np.random.Generator, count: int) -> Inputs:
    """images (count, 1, 2, 2), the first pixel of each its number, and labels (count,) that change all the time."""
    images = rng.standard_normal((count, 1, 2, 2)).astype(np.float32)
    images[:, 0, 0, 0] = np.arange(count)
    return {"images": images, "labels": rng.permutation(count) + 100}


def numbered(count: int, batch_size: int) -> Function:
    def draw(rng: np.random.Generator) -> Inputs:
        return {**numbered_images(rng, count), "batch_size": batch_size, "seed": int(rng.integers(1000))}

    return draw


def any_batches(rng: np.random.Generator) -> Inputs:
    count, batch_size = int(rng.integers(20, 60)), int(rng.integers(3, 12))
    return numbered(count, batch_size)(rng)  # type: ignore[no-any-return]


class SpyNetwork:
    """Scores from one matrix product. It remembers how many images each call was given."""

    def __init__(self, weight: Array) -> None:
        self.weight = weight
        self.calls: list[int] = []

    def __call__(self, images: Array) -> Array:
        self.calls.append(len(images))
        return images.reshape(len(images), -1) @ self.weight


def evaluated(forward: Function, images: Array, labels: Array, batch_size: int) -> tuple[float, float]:
    """Mean loss and accuracy, at most `batch_size` images at a time: what `evaluate` must do."""
    loss, correct = 0.0, 0
    for start in range(0, len(images), batch_size):
        scores, known = forward(images[start : start + batch_size]), labels[start : start + batch_size]
        loss += float(ops.softmax_cross_entropy(scores, known)[0]) * len(known)
        correct += int((scores.argmax(axis=1) == known).sum())
    return loss / len(images), correct / len(images)


def in_bounded_memory(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Right values, from batches as large as allowed and no larger, each image once."""
    calls, most, count = inputs["forward"].calls, inputs["batch_size"], len(inputs["images"])
    found = mismatch(got, expected, 1e-4)
    if calls and max(calls) > most:
        line = f"you gave the network {max(calls)} images in one call; its memory has room for {most} (batch_size)"
        return Mismatch((line, *(found.lines if found else ("the values are right",))))
    if found is not None:
        return found
    if sum(calls) != count:
        return Mismatch((f"right, but the network was given {sum(calls)} images, and there are {count}",))
    if len(calls) > -(-count // most):
        return Mismatch((f"right, but in {len(calls)} calls: give the network batch_size = {most} images at a time",))
    return None


def graded(count: int, batch_size: int) -> Function:
    """Images and labels of which the network gets most right, but of the last few none: a mean of means shows."""

    def draw(rng: np.random.Generator) -> Inputs:
        images = rng.standard_normal((count, 1, 3, 3)).astype(np.float32)
        network = SpyNetwork(rng.standard_normal((9, 5)).astype(np.float32))
        scores = images.reshape(count, -1) @ network.weight
        labels = np.where(rng.random(count) < 0.8, scores.argmax(axis=1), rng.integers(0, 5, count))
        last = count % batch_size or 1
        labels[-last:] = scores[-last:].argmin(axis=1)
        return {"forward": network, "images": images, "labels": labels, "batch_size": batch_size}

    return draw


def any_evaluation(rng: np.random.Generator) -> Inputs:
    batch_size = int(rng.integers(4, 20))
    return graded(batch_size * int(rng.integers(2, 5)) + int(rng.integers(1, batch_size)), batch_size)(rng)  # type: ignore[no-any-return]


def _mean_of_means(forward: Function, images: Array, labels: Array, batch_size: int) -> tuple[float, float]:
    starts = range(0, len(images), batch_size)
    parts = [evaluated(forward, images[s : s + batch_size], labels[s : s + batch_size], batch_size) for s in starts]
    loss, accuracy = np.mean(parts, axis=0)
    return float(loss), float(accuracy)


def _last_batch_as_full(forward: Function, images: Array, labels: Array, batch_size: int) -> tuple[float, float]:
    loss, accuracy = _mean_of_means(forward, images, labels, batch_size)
    return loss * -(-len(images) // batch_size) * batch_size / len(images), accuracy


def _items(loss_by: Function, accuracy_by: Function) -> Function:
    """The loss in one way and the accuracy in another."""

    def wrong(**inputs: Any) -> tuple[float, float]:
        return loss_by(**inputs)[0], accuracy_by(**inputs)[1]

    return wrong


def _scaled(loss_factor: Function, accuracy_factor: Function) -> Function:
    """The right values times factors that depend on the number of images and of batches."""

    def wrong(forward: Function, images: Array, labels: Array, batch_size: int) -> tuple[float, float]:
        loss, accuracy = evaluated(forward, images, labels, batch_size)
        count, batches = len(images), -(-len(images) // batch_size)
        return loss * loss_factor(count, batches), accuracy * accuracy_factor(count, batches)

    return wrong


def _one(count: int, batches: int) -> int:
    return 1


def _part(start: Function) -> Function:
    """Only some of the images: those from start(count, batch_size) on, as many as a batch."""

    def wrong(forward: Function, images: Array, labels: Array, batch_size: int) -> tuple[float, float]:
        first = start(len(images), batch_size)
        chosen = slice(first, first + batch_size)
        return evaluated(forward, images[chosen], labels[chosen], batch_size)

    return wrong


def _whole_batches_only(forward: Function, images: Array, labels: Array, batch_size: int) -> tuple[float, float]:
    whole = len(images) - len(images) % batch_size
    return evaluated(forward, images[:whole], labels[:whole], batch_size)


EVALUATE_MISTAKES: Sequence[Mistake] = [
    Mistake("this is a mean of means: the last batch is smaller, so its mean must count for less", _mean_of_means),
    Mistake(
        "the loss is a mean of means: the last batch is smaller, so its mean must count for less",
        _items(_mean_of_means, evaluated),
    ),
    Mistake(
        "the accuracy is a mean of means: the last batch is smaller; count the right ones, divide at the end",
        _items(evaluated, _mean_of_means),
    ),
    Mistake(
        "the last batch is weighed as if it were full: times the number of images in this batch, not batch_size",
        _items(_last_batch_as_full, evaluated),
    ),
    Mistake("the last, smaller batch is left out", _whole_batches_only),
    Mistake(
        "only the last batch counts: add up, do not replace", _part(lambda count, size: (count - 1) // size * size)
    ),
    Mistake("only the first batch counts: is the return inside the loop?", _part(lambda count, size: 0)),
    Mistake("the loss is a sum over batches: its mean over images is asked", _scaled(lambda n, b: b, _one)),
    Mistake("the loss is a sum over images: divide by their number", _scaled(lambda n, b: n, _one)),
    Mistake("the accuracy is a number of images: divide by how many there are", _scaled(_one, lambda n, b: n)),
    Mistake("the accuracy is in percent: a share from 0 to 1 is asked", _scaled(_one, lambda n, b: 100)),
    Mistake("both are sums over images: divide by their number", _scaled(lambda n, b: n, lambda n, b: n)),
]
