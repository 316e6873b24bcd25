"""Mini-batches and evaluation: what they are tried on, how they are judged, and usual mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from unrolled import data, ops
from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.domain import edge_size
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Compare, Function, Inputs, normal
from unrolled.device import Array

Lines = tuple[str, ...]

MANY = 10**7
"""What an honest shuffle does by chance once in so many epochs, or less often, is no honest shuffle."""


def shuffled_batches(images: Array, labels: Array, batch_size: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """Return (images, labels) of every mini-batch: what `minibatches` must do."""
    return data.minibatches((images, labels), batch_size, seed)


LARGE = 300  # from here on an image keeps its place with five seeds by chance once in 8 * 10**9 times

FAR = 4 * 27_720_000  # seeds so far apart are the same modulo each of 1 to 12, 100, 256 and 1,000
STEPS = (1, FAR, 2, 3)


def _steps(inputs: Inputs) -> Sequence[int]:
    """How far other seeds are from the first: of many images one may have the same place with two."""
    return STEPS if len(inputs["images"]) >= LARGE else STEPS[:2]


def some_epochs(function: Function, inputs: Inputs) -> list[Any]:
    """Return the batches of epochs: twice with one seed, then with the next, one far off; of many images two more."""
    seed, most = inputs["seed"], len(inputs["images"]) + 1  # most: some iterators never end
    return [
        list(islice(batches, most)) if isinstance(batches, Iterable) else batches
        for batches in (function(**inputs | {"seed": seed + step}) for step in (0, 0, *_steps(inputs)))
    ]


class Epoch(NamedTuple):
    """The images and labels of all batches of an epoch, in order, and how many each batch has.

    `numbers` are those of the images: the first pixel of an image is its number.
    """

    sizes: list[int]
    images: Array
    labels: Array
    numbers: Array


Problem = Callable[[Epoch, Inputs], Lines]


def judge_of_epochs(*problems: Problem, orders: Callable[[Inputs], int]) -> Compare:
    """Return a judge of epochs: the first `problem(epoch, inputs)` that has words, then if the seed alone decides.

    `orders(inputs)` counts the orders that an epoch may have: of few, two seeds may draw the same.
    """

    def compare(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
        epochs = list[Epoch]()
        for batches in got:
            if lines := no_pairs(batches, inputs):
                return Mismatch(lines)
            epochs.append(_joined(batches, inputs))
            for problem in problems:
                if lines := problem(epochs[-1], inputs):
                    return Mismatch(lines)
        first, again, *others = (epoch.numbers for epoch in epochs)
        if not np.array_equal(first, again):
            return Mismatch(("the same seed gave two different orders: draw from np.random.default_rng(seed) alone",))
        own_labels = len(set(inputs["labels"].tolist())) == len(inputs["labels"])
        for seed, other in zip(_steps(inputs), others, strict=True):
            if np.array_equal(first, other) and orders(inputs) > MANY:
                return Mismatch((f"another seed, {seed:,} higher, gave the same order: is all of `seed` used?",))
            if own_labels and _alike(first, other) > _by_chance(len(first)):
                return Mismatch((f"{HARDLY} np.random.default_rng(seed).permutation(…), and change nothing more",))
        if own_labels and len(first) >= LARGE and (kept := (first == others).all(axis=0)).any():
            return Mismatch((f"image {first[kept][0]} has the same place with every seed: shuffle all images",))
        return None

    return compare


HARDLY = "the seed hardly changes the order: images keep their neighbours, or their distance. Take"


def _by_chance(count: int) -> int:
    """Return how often one step or distance may come by chance among so many images; each comes once on average."""
    return 12 + count // 100


def _alike(one: Array, other: Array) -> int:
    """Count the neighbours that two orders have in common, or the images that are as far apart; the larger of these."""
    shared, most = list[int](), int(max(one.max(initial=0), other.max(initial=0))) + 1
    for theirs in (other, other[::-1]):
        after = np.full(most, -1)
        after[theirs[:-1]] = theirs[1:]
        shared.append(int((after[one[:-1]] == one[1:]).sum()))
    return max(*shared, int(np.bincount((one - other) % most).max(initial=0)))


def no_pairs(batches: Any, inputs: Inputs) -> Lines:
    """Say why these are not pairs of images and labels, shaped as the data set's."""
    if not isinstance(batches, list):
        return (f"expected mini-batches to loop over, got {type(batches).__name__}: `yield` each of them",)
    for place, batch in enumerate(batches):
        if not (isinstance(batch, (tuple, list)) and len(batch) == 2):
            return (f"batch {place} is of type {type(batch).__name__}; expected a pair: yield images[…], labels[…]",)
        images, labels = batch
        shape = (len(labels), *inputs["images"].shape[1:])
        if not (isinstance(images, np.ndarray) and isinstance(labels, np.ndarray)) or images.shape != shape:
            return (f"batch {place} holds {_shape(images)} and {_shape(labels)}; expected images {shape}",)
        came, dtypes = ([each.dtype for each in pair] for pair in ((inputs["images"], inputs["labels"]), batch))
        if dtypes != came:
            came_as = f"images and labels came as {came[0]} and {came[1]}"
            return (f"{came_as}; batch {place} has {dtypes[0]} and {dtypes[1]}",)
    return ()


def _shape(value: Any) -> str:
    return str(value.shape) if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


def _joined(batches: list[tuple[Array, Array]], inputs: Inputs) -> Epoch:
    images = np.concatenate([inputs["images"][:0], *(images for images, _ in batches)])
    labels = np.concatenate([inputs["labels"][:0], *(labels for _, labels in batches)])
    with np.errstate(invalid="ignore"):  # a pixel that is no number is none of the data set's, either
        numbers = images[:, 0, 0, 0].astype(np.int64)
    return Epoch([len(labels) for _, labels in batches], images, labels, numbers)


def _wrong_sizes(epoch: Epoch, inputs: Inputs) -> Lines:
    """Say which batch sizes of an epoch are wrong."""
    size, count = inputs["batch_size"], len(inputs["labels"])
    expected = [min(size, count - start) for start in range(0, count, size)]
    if epoch.sizes == expected:
        return ()
    if epoch.sizes == [each for each in expected if each == size]:
        return (f"the last batch is missing: {count} images, {size} at a time, leave one of {count % size}",)
    return (f"your batches hold {_short(epoch.sizes)} images; expected {_short(expected)}",)


def _short(sizes: Sequence[int]) -> str:
    return str(list(sizes)) if len(sizes) <= 8 else f"[{', '.join(map(str, sizes[:6]))}, ..., {sizes[-1]}]"


def strangers(epoch: Epoch, inputs: Inputs) -> Lines:
    """Say whether some of the images are none of the data set's."""
    known = ((epoch.numbers >= 0) & (epoch.numbers < len(inputs["labels"]))).all()
    if known and np.array_equal(epoch.images, inputs["images"][epoch.numbers]):
        return ()
    return ("some of your images are none of the data set: take them as they are, images[...]",)


def strange_labels(epoch: Epoch, inputs: Inputs) -> Lines:
    """Say whether some images have labels of others."""
    apart = (epoch.labels != inputs["labels"][epoch.numbers]).any()
    return ("labels and images come apart: take both with the same indices",) if apart else ()


def _not_each_once(epoch: Epoch, inputs: Inputs) -> Lines:
    """Say whether images never come, or more than once."""
    count = len(inputs["labels"])
    times = np.bincount(epoch.numbers, minlength=count)
    line = f"{(times == 0).sum()} of {count} images never come and {(times > 1).sum()} come more than once"
    advice = "each must come once an epoch: draw an order (rng.permutation), not each batch on its own"
    return (line, advice) if (times != 1).any() else ()


def _not_shuffled(epoch: Epoch, inputs: Inputs) -> Lines:
    """Say whether the order of the images has a pattern that so many images have by chance once in MANY epochs."""
    count, steps = len(inputs["labels"]), np.diff(epoch.numbers)
    if len(steps) > 10 and (steps == 1).all():
        return ("the images come in the order of the data set: shuffle them",)
    parts = np.split(epoch.numbers, np.cumsum(epoch.sizes)[:-1])
    if all(np.ptp(numbers) < len(numbers) for numbers in parts):
        splits = math.factorial(count) // math.prod(map(math.factorial, epoch.sizes))
        if splits > MANY * math.factorial(len(parts)):
            line = (
                "only the order of the batches, or that inside each, is shuffled: shuffle the images, then cut batches"
            )
            return (line,)
    if np.bincount(steps % count).max(initial=0) > _by_chance(count):
        return ("from one image to the next it is often the same step: draw an order, rng.permutation(count)",)
    return ()


def _near(epoch: Epoch, inputs: Inputs) -> Lines:
    """Say whether many images move too little, or a first batch of 80 and more leaves out a quarter of the data set.

    The mean distance is n / 3 after an honest shuffle; of 300 images, n / 12 is nearly seven standard deviations of it.
    """
    numbers, count = epoch.numbers, len(inputs["labels"])
    distance = np.abs(numbers - np.arange(count)).mean()
    quarters = np.unique(4 * numbers[: inputs["batch_size"]] // count)
    if count < LARGE or (abs(distance - count / 3) < count / 12 and len(quarters) == 4):
        return ()
    return ("images stay near their old place, or near their neighbours: shuffle all of them at once",)


def _orders(inputs: Inputs) -> int:
    return math.factorial(len(inputs["labels"]))


each_once_and_shuffled = judge_of_epochs(
    _wrong_sizes, strangers, _not_each_once, strange_labels, _not_shuffled, _near, orders=_orders
)


def numbered_images(rng: np.random.Generator, count: int) -> Inputs:
    """Draw images (count, C, H, W), the first pixel of each its number, and labels (count,), each another."""
    images = normal(count, *(edge_size(rng, 3) for _ in range(3))).make(rng)
    images[:, 0, 0, 0] = np.arange(count)
    return {"images": images, "labels": rng.permutation(count) + 100}


def numbered(rng: np.random.Generator, count: int, batch_size: int) -> Inputs:
    """Draw so many numbered images, for batches of this size."""
    return {**numbered_images(rng, count), "batch_size": batch_size, "seed": int(rng.integers(1000))}


def any_numbered(rng: np.random.Generator) -> Inputs:
    """Draw up to 40 numbered images, and now and then more than a thousand."""
    if rng.random() < 0.12:
        return numbered(rng, many(rng), int(rng.integers(80, 300)))
    return numbered(rng, edge_size(rng, 40), edge_size(rng, 12))


def many(rng: np.random.Generator) -> int:
    """Draw how many images a data set has that nobody counts by hand."""
    return int(rng.integers(1001, 1500))


class SpyNetwork:
    """Scores from one matrix product. It remembers the shapes of the images that each call was given."""

    def __init__(self, weight: Array) -> None:
        self.weight = weight
        self.shapes: list[tuple[int, ...]] = []

    def __call__(self, images: Array) -> Array:
        self.shapes.append(images.shape)
        return images.reshape(len(images), -1) @ self.weight


Means = tuple[float, float]


def evaluated(forward: Function, images: Array, labels: Array, batch_size: int) -> Means:
    """Return mean loss and accuracy, at most `batch_size` images at a time: what `evaluate` must do."""
    loss, correct = 0.0, 0
    for start in range(0, len(images), batch_size):
        scores, known = forward(images[start : start + batch_size]), labels[start : start + batch_size]
        loss += float(ops.softmax_cross_entropy(scores, known)[0]) * len(known)
        correct += int((scores.argmax(axis=1) == known).sum())
    return loss / len(images), correct / len(images)


def in_bounded_memory(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Judge whether the values are right, from batches as large as allowed and no larger, each image once as it is."""
    shapes, most, (count, *image) = inputs["forward"].shapes, inputs["batch_size"], inputs["images"].shape
    calls, found = [shape[0] for shape in shapes], mismatch(got, expected, 1e-4)
    if strange := next((shape for shape in shapes if list(shape[1:]) != image), None):
        came = f"you gave the network an array {strange}, and images are (n, {', '.join(map(str, image))})"
        return Mismatch.of(f"{came}: give it slices of images, as they are", *(found.lines if found else ()))
    if calls and max(calls) > most:
        line = f"you gave the network {max(calls)} images in one call; its memory has room for {most} (batch_size)"
        return Mismatch((line, *(found.lines if found else ("the values are right",))))
    if sum(calls) != count:
        lines = found.lines if found else ("the values are right",)
        return Mismatch((*lines, f"the network was given {sum(calls)} images, and there are {count}"))
    if found is None and len(calls) > -(-count // most):
        return Mismatch((f"right, but in {len(calls)} calls: give the network batch_size = {most} images at a time",))
    return found


def graded(rng: np.random.Generator, count: int, batch_size: int, classes: int = 5, scale: float = 1) -> Inputs:
    """Draw images (count, 1, 3, 3) and a network of some classes that gets most right, but of the last few none.

    So a mean of means shows. With a large scale, exp of a score is beyond float32.
    """
    images = rng.standard_normal((count, 1, 3, 3)).astype(np.float32)
    weight = (scale * rng.standard_normal((9, classes))).astype(np.float32)
    scores = images.reshape(count, -1) @ weight
    labels = np.where(rng.random(count) < 0.8, scores.argmax(axis=1), rng.integers(0, classes, count))
    last = count % batch_size or 1
    labels[-last:] = scores[-last:].argmin(axis=1)
    return {"forward": SpyNetwork(weight), "images": images, "labels": labels, "batch_size": batch_size}


def any_graded(rng: np.random.Generator) -> Inputs:
    """Draw up to 30 images, and now and then more than a thousand, of more classes than digits have."""
    if rng.random() < 0.12:
        return graded(rng, many(rng), 700, 12, 100)
    return graded(rng, edge_size(rng, 30), edge_size(rng, 12), edge_size(rng, 6, 2))


def only(says: str, chosen: Callable[[int, int], slice]) -> Mistake:
    """Return the mistake of taking some of the images alone, with their labels: `chosen(count, batch_size)`."""
    return given(
        says,
        images=lambda images, batch_size: images[chosen(len(images), batch_size)],
        labels=lambda labels, batch_size: labels[chosen(len(labels), batch_size)],
    )


LAST_LEFT_OUT = only("the last, smaller batch is left out", lambda count, size: slice(count // size * size))


def _from_parts(says: str, mix: Callable[[Array, Array, Array, int], Means]) -> Mistake:
    """Return the mistake `mix(losses, accuracies, sizes, batch_size)`: of the batches' mean losses and accuracies."""

    def wrong(forward: Function, images: Array, labels: Array, batch_size: int) -> Means:
        parts = [slice(start, start + batch_size) for start in range(0, len(images), batch_size)]
        means = [evaluated(forward, images[part], labels[part], batch_size) for part in parts]
        losses, accuracies = np.array(means).T
        loss, accuracy = mix(losses, accuracies, np.array([len(labels[part]) for part in parts]), batch_size)
        return float(loss), float(accuracy)

    return Mistake(says, wrong)


def _mean(means: Array, sizes: Array) -> float:
    return float(np.average(means, weights=sizes))


SMALLER = "is a mean of means: the last batch is smaller"


EVALUATE_MISTAKES = (
    _from_parts(
        f"this {SMALLER}, so its mean must count for less", lambda losses, rights, *_: (losses.mean(), rights.mean())
    ),
    _from_parts(
        f"the loss {SMALLER}, so its mean must count for less",
        lambda losses, rights, sizes, _: (losses.mean(), _mean(rights, sizes)),
    ),
    _from_parts(
        f"the accuracy {SMALLER}; count the right ones, divide at the end",
        lambda losses, rights, sizes, _: (_mean(losses, sizes), rights.mean()),
    ),
    _from_parts(
        "the last batch is weighed as if it were full: times the number of images in this batch, not batch_size",
        lambda losses, rights, sizes, size: (losses.sum() * size / sizes.sum(), _mean(rights, sizes)),
    ),
    _from_parts(
        "the loss adds up means of batches, and is divided by images: a mean counts as often as its batch has images",
        lambda losses, rights, sizes, _: (losses.sum() / sizes.sum(), _mean(rights, sizes)),
    ),
    result(
        "no answer counts as right: compare scores.argmax(axis=1), a class for each image, with the labels",
        lambda y: (y[0], 0.0),
    ),
    result("this is the share of wrong answers: accuracy is that of the right ones", lambda y: (y[0], 1 - y[1])),
    LAST_LEFT_OUT,
    only(
        "only the last batch counts: add up, do not replace",
        lambda count, size: slice((count - 1) // size * size, None),
    ),
    only("only the first batch counts: is the return inside the loop?", lambda count, size: slice(size)),
    result(
        "the loss is a sum over batches: its mean over images is asked",
        lambda y, images, batch_size: (y[0] * -(-len(images) // batch_size), y[1]),
    ),
    result("the loss is a sum over images: divide by their number", lambda y, images: (y[0] * len(images), y[1])),
    result(
        "the accuracy is a number of images: divide by how many there are", lambda y, images: (y[0], y[1] * len(images))
    ),
    result("the accuracy is in percent: a share from 0 to 1 is asked", lambda y: (y[0], 100 * y[1])),
    result(
        "both are sums over images: divide by their number", lambda y, images: tuple(mean * len(images) for mean in y)
    ),
)
