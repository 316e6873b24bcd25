"""Networks and training: small layers to put in a row, digits in disguise, and the judge of accuracies."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from unrolled import data
from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.domain import edge_size
from unrolled.checks.spec import Compare, Function, Inputs, normal
from unrolled.device import Array
from unrolled.timing.blocks import blas_threads


class Matrix:
    """A layer x @ weight."""

    def __init__(self, weight: Any) -> None:
        self.weight = np.asarray(weight, np.float32)
        self.calls = Counter[str]()

    def forward(self, x: Array, training: bool = False) -> Array:
        self.calls["forward"] += 1
        return x @ self.weight

    def backward(self, grad: Array) -> Array:
        self.calls["backward"] += 1
        return grad @ self.weight.T


class Bend:
    """A layer tanh(x), and twice that in training: as with dropout, the two must not be mixed up."""

    def __init__(self) -> None:
        self.y: Array = np.zeros(1, np.float32)
        self.calls = Counter[str]()

    def forward(self, x: Array, training: bool = False) -> Array:
        self.calls["forward"] += 1
        self.y = np.tanh(x)
        return 2 * self.y if training else self.y

    def backward(self, grad: Array) -> Array:
        self.calls["backward"] += 1
        return 2 * grad * (1 - self.y**2)


def once_each(way: str) -> Compare:
    """Return a comparison that asks, too, that each layer goes this way once: a call may cost as much as all others."""

    def judge(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
        found = mismatch(got, expected, 1e-4, inputs)
        for place, layer in enumerate(inputs["layers"]):
            if found is None and layer.calls[way] != 1:
                times = f"layers[{place}].{way} was called {layer.calls[way]} times"
                found = Mismatch.of(f"right, but {times}: call it once, and keep what it gives")
        return found

    return judge


def any_layers(rng: np.random.Generator) -> tuple[tuple[Any, ...], Array]:
    """Draw one to nine layers, matrices and bends, and a batch for them."""
    x = normal(edge_size(rng, 5), edge_size(rng, 5)).make(rng)
    size, layers = x.shape[1], list[Any]()
    for _ in range(edge_size(rng, 9)):
        if rng.random() < 0.5:
            layers.append(Bend())
        else:
            then = edge_size(rng, 5)
            layers.append(Matrix(rng.standard_normal((size, then)) / size**0.5))
            size = then
    return tuple(layers), x


CLASSES = 10
MOST_SHIFT = 2


def disguised_digits(rng: np.random.Generator, train: int, test: int, negative: bool | None = None) -> Inputs:
    """Draw digits in disguise: all shifted alike, perhaps with negative ink, and every label exchanged for another.

    A network that was trained elsewhere fails on them, and so do labels known by heart. `seeds` are three to train
    with; `test_labels` and `usual_labels` (those before the exchange) are for the judge alone.
    """
    digits = data.digits()
    chosen = rng.permutation(len(digits))[: train + test]
    down, right = (int(step) for step in rng.integers(-MOST_SHIFT, MOST_SHIFT + 1, 2))
    images = moved(digits.images[chosen], down, right)
    if rng.random() < 0.5 if negative is None else negative:
        images = -images  # not 1 - images: so bright a ground makes training slow, and honest answers fail now and then
    exchange = rng.permutation(CLASSES)
    while (exchange == np.arange(CLASSES)).any():  # every label changes
        exchange = rng.permutation(CLASSES)
    labels = exchange[digits.labels[chosen]]
    return {
        "images": images[:train],
        "labels": labels[:train],
        "test_images": images[train:],
        "seeds": [int(seed) for seed in rng.integers(0, 1000, 3)],
        "test_labels": labels[train:],
        "usual_labels": digits.labels[chosen][train:],
    }


def moved(images: Array, down: int, right: int) -> Array:
    """Return images (N, C, H, W) moved by so many pixels, zeros where nothing comes in; a copy."""
    height, width = images.shape[2:]
    framed = np.pad(images, ((0, 0), (0, 0), (abs(down),) * 2, (abs(right),) * 2))
    top, left = abs(down) - down, abs(right) - right
    return framed[:, :, top : top + height, left : left + width].copy()


def three_disguises(rng: np.random.Generator, train: int, test: int) -> Inputs:
    """Draw what each of three trainings is given and judged by, with ink of both signs: no luck decides."""
    signs = rng.permutation([False, True, bool(rng.random() < 0.5)])
    return {"runs": [disguised_digits(rng, train, test, negative) for negative in signs]}


def train_on_each(function: Function, inputs: Inputs) -> list[Any]:
    """Return the predictions after each training. The function never sees the labels of the test images.

    On one BLAS thread: on a busy machine, many threads on small matrices take ten times as long.
    """
    with blas_threads(1):
        return [function(run["images"], run["labels"], run["test_images"], run["seeds"][0]) for run in inputs["runs"]]


def nearest_neighbour(images: Array, labels: Array, test_images: Array, seed: int) -> Array:
    """Return the most similar image's label: no network, quick, right for the digits; stands in as the reference."""
    known, asked = images.reshape(len(images), -1), test_images.reshape(len(test_images), -1)
    distances = (known**2).sum(axis=1) - 2 * asked @ known.T  # squared, less what each test image has in common
    return np.asarray(labels[distances.argmin(axis=1)])


GUESSED = 0.25  # below this accuracy, hardly better than guessing
LEFT_OUT = (
    "a training is far behind the others: each has its own digits, labels and seed, and the ink of some is negative"
)
TOO_LITTLE = (
    "it learns, but not far enough: does each epoch visit all images, is the optimizer made once, before the "
    "loops, and the return after them? If so: more epochs, or another learning rate"
)
GUESSING = (
    "hardly better than guessing: is the optimizer's step taken for every batch, and do a batch's images and labels "
    "belong together?"
)


def median_accuracy(got: Any, expected: Any, inputs: Inputs, at_least: float = 0.93) -> Mismatch | None:
    """Judge predictions by the median of their accuracies; none may be hardly better than guessing."""
    pairs = [(predictions, run["test_labels"]) for predictions, run in zip(got, inputs["runs"], strict=True)]
    for predictions, truth in pairs:
        if lines := _no_labels(predictions, len(truth)):
            return Mismatch(lines)
    accuracies = [float((predictions == truth).mean()) for predictions, truth in pairs]
    median = float(np.median(accuracies))
    if median >= at_least and min(accuracies) >= GUESSED:
        return None
    each = ", ".join(f"{accuracy:.1%}" for accuracy in accuracies)
    line = f"right in three trainings: {each}. The median is {median:.1%}; at least {at_least:.0%} are asked"
    if median >= at_least:
        return Mismatch((line, LEFT_OUT))
    return Mismatch((line, _seen(got[0], median, inputs["runs"][0]) or TOO_LITTLE))


def _no_labels(predictions: Any, count: int) -> tuple[str, ...]:
    """Say why these are not `count` labels."""
    if predictions is None:
        return ("expected labels, got None: is the return statement missing?",)
    if not isinstance(predictions, np.ndarray):
        return (f"expected an array of {count} labels, got {type(predictions).__name__}",)
    if predictions.ndim == 2 and len(predictions) == count:
        line = f"expected labels ({count},), got shape {predictions.shape}"
        return (line, "these look like scores: the label is the place of the largest, argmax(axis=1)")
    if predictions.shape != (count,):
        return (f"expected one label for each of test_images, shape ({count},), got shape {predictions.shape}",)
    if predictions.dtype.kind not in "iu":
        return (f"labels are whole numbers; yours have dtype {predictions.dtype}",)
    return ()


def _seen(predictions: Array, median: float, inputs: Inputs) -> str | None:
    """Say what the predictions look like, if they look like something known."""
    if (predictions == predictions[0]).all():
        return f"every image is called {predictions[0]}: is the step taken, does the loss fall, or did it become NaN?"
    if (predictions == inputs["usual_labels"]).mean() > 0.5:
        return "they fit the usual labels of digits; here labels are exchanged: learn from the `labels` you are given"
    return GUESSING if median < GUESSED else None
