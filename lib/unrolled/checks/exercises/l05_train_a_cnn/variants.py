"""The variant of lesson 05: mini-batches that hold as many images of each class."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l05_train_a_cnn import batches
from unrolled.checks.spec import Inputs, Spec, random_case
from unrolled.device import Array


def balanced_batches(images: Array, labels: Array, per_class: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """Yield batches with per_class images of each class, until the rarest class has too few left."""
    rng = np.random.default_rng(seed)
    classes = np.unique(labels)[::-1]  # in any order: theirs need not be the same
    orders = [rng.permutation(np.flatnonzero(labels == label)) for label in classes]
    for start in range(0, min(map(len, orders)) - per_class + 1, per_class):
        chosen = np.concatenate([order[start : start + per_class] for order in orders])
        yield images[chosen], labels[chosen]


def unbalanced(rng: np.random.Generator, counts: tuple[int, ...], per_class: int) -> Inputs:
    """Draw numbered images of classes that are so frequent; the classes have any numbers, that rise."""
    images = batches.numbered_images(rng, sum(counts))["images"]
    classes = np.sort(rng.choice(100, len(counts), replace=False))
    labels = rng.permutation(np.repeat(classes, counts))
    return {"images": images, "labels": labels, "per_class": per_class, "seed": int(rng.integers(1000))}


def any_unbalanced(rng: np.random.Generator) -> Inputs:
    """Draw images of one to five classes, at times many, for batches with up to 4 of each, or for none."""
    if rng.random() < 0.12:
        return unbalanced(rng, (batches.many(rng) - 600, 400, 250), int(rng.integers(40, 120)))
    counts = tuple(edge_size(rng, 20, low=1) for _ in range(edge_size(rng, 5)))
    return unbalanced(rng, counts, edge_size(rng, 4))


def _balance(epoch: batches.Epoch, inputs: Inputs) -> batches.Lines:
    """Say what is wrong with the numbers of batches and of images in them."""
    counts, each = Counter(inputs["labels"].tolist()), inputs["per_class"]
    classes, rarest = sorted(counts), min(counts.values())
    so_far = np.cumsum(np.vstack([np.zeros(len(classes), bool), epoch.labels[:, None] == classes]), axis=0)
    held = np.diff(so_far[np.cumsum([0, *epoch.sizes])], axis=0)
    for place, odd in np.argwhere(held != each)[:1]:
        many = f"batch {place} holds {held[place, odd]} images of class {classes[odd]}"
        return (f"{many}; expected per_class = {each} of every class",)
    many = f"{len(epoch.sizes)} batches; expected {rarest // each}"
    lines = (f"{many}: the rarest class has {rarest} images, and each batch takes {each} of them",)
    return lines if len(epoch.sizes) != rarest // each else ()


def _choice(epoch: batches.Epoch, inputs: Inputs) -> batches.Lines:
    """Say what is wrong with the order in which images were chosen."""
    numbers, labels = epoch.numbers, epoch.labels  # labels that come apart are refused before
    often = int((np.bincount(numbers) > 1).sum())
    if often:
        return (f"{often} images come more than once in an epoch: shuffle each class once, then cut it into pieces",)
    for label in set(labels.tolist()):
        places, chosen = np.flatnonzero(inputs["labels"] == label), numbers[labels == label]
        if (descents := int((np.diff(chosen) < 0).sum())) < 2:  # of k! orders, 2**k - k are rotated
            pieces = chosen.reshape(-1, inputs["per_class"])
            each = math.factorial(inputs["per_class"]) if (np.diff(pieces) > 0).all() else 1  # in a batch any order
            ways = math.factorial(len(chosen)) // each ** len(pieces)
            if ways >> len(chosen) * descents > batches.MANY:
                return (f"the images of class {label} come in the order of the data set: shuffle them, class by class",)
        first = len(chosen) < len(places) and chosen.max() < places[len(chosen)]
        if first and math.comb(len(places), len(chosen)) > batches.MANY:
            return (f"of class {label} only the first {len(chosen)} images come: shuffle them all, then cut batches",)
    return ()


def _orders(inputs: Inputs) -> int:
    """Count the orders that an epoch may have."""
    _, counts = np.unique(inputs["labels"], return_counts=True)
    used = counts.min() // inputs["per_class"] * inputs["per_class"]
    return math.prod(math.perm(int(count), int(used)) for count in counts)


balanced_and_shuffled = batches.judge_of_epochs(
    _balance, batches.strangers, batches.strange_labels, _choice, orders=_orders
)

# `data.minibatches` is no answer: class by class it is a good way to begin.
minibatches_balanced = Spec(
    reference=balanced_batches,
    cases=[
        random_case("15, 15 and 15 images, 3 of each class at a time", unbalanced, (15, 15, 15), 3),
        random_case("six classes, 1 of each at a time", unbalanced, (5, 4, 3, 5, 4, 3), 1),
        random_case("the rarest class is used up by one batch", unbalanced, (40, 7, 40), 7),
    ],
    domain=random_case("any numbers", any_unbalanced),
    points=2,
    hints=(
        "Shuffle indices, not images, and each class by itself. Then cut a piece of the same length from each class, "
        "and put the pieces together.",
        "np.unique(labels) are the classes, np.flatnonzero(labels == label) the places of one of them; shuffle those "
        "with rng.permutation. The shortest of these arrays says how many batches there are: min(...) // per_class. "
        "np.concatenate puts pieces together.",
        "rng = np.random.default_rng(seed)\n"
        "orders = [(the places of this label, shuffled) for label in np.unique(labels)]\n"
        "for batch in range(how many batches the shortest order gives):\n"
        "    piece = slice(batch * per_class, (batch + 1) * per_class)\n"
        "    chosen = np.concatenate([order[piece] for order in orders])\n"
        "    yield images[chosen], (their labels)",
    ),
    compare=balanced_and_shuffled,
    call=batches.some_epochs,
    expected=lambda inputs: None,  # any shuffle is right
)
