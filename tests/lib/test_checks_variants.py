"""Lesson 05's disguised digits and their judge; and what variants bring of their own."""

from functools import partial

import numpy as np
import pytest

from unrolled import data
from unrolled.checks.exercises.l04_backprop.dense_gradients import any_smoothed, smoothed_cross_entropy
from unrolled.checks.exercises.l05_train_a_cnn.batches import each_once_and_shuffled, numbered, some_epochs
from unrolled.checks.exercises.l05_train_a_cnn.training import (
    disguised_digits,
    median_accuracy,
    nearest_neighbour,
    three_disguises,
    train_on_each,
)
from unrolled.checks.exercises.l05_train_a_cnn.variants import (
    balanced_and_shuffled,
    unbalanced,
)


@pytest.mark.parametrize("seed", range(4))
def test_smoothed_labels_cost_as_in_pytorch(seed):
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    inputs = any_smoothed(np.random.default_rng(seed))
    scores = torch.tensor(inputs["scores"], requires_grad=True)
    loss = torch.nn.functional.cross_entropy(
        scores, torch.tensor(inputs["labels"]), label_smoothing=min(inputs.get("smoothing", 0.1), 1)
    )
    loss.backward()
    ours, grad = smoothed_cross_entropy(**inputs)
    assert float(ours) == pytest.approx(loss.item(), rel=1e-4, abs=1e-5)
    np.testing.assert_allclose(grad, scores.grad.numpy(), rtol=1e-4, atol=1e-5)


def inside_batches(rng, places, size):
    return np.hstack([rng.permutation(places[start : start + size]) for start in range(0, len(places), size)])


WEAK = {
    "rotated": lambda rng, places, size: np.roll(places, rng.integers(1, len(places))),
    "every fifth": lambda rng, places, size: places[5 * (np.arange(len(places)) + rng.integers(9)) % len(places)],
    "inside batches": inside_batches,
    "one order, from another place on": lambda rng, places, size: np.roll(
        np.random.default_rng(0).permutation(places), rng.integers(1, len(places))
    ),
    "one order, of other numbers": lambda rng, places, size: (
        (np.random.default_rng(0).permutation(places) + rng.integers(len(places))) % len(places)
    ),
}


LOCAL = {
    "within windows": lambda rng, places, size: inside_batches(rng, places, 16),
    "by a noisy place": lambda rng, places, size: np.argsort(places + 4 * rng.normal(size=len(places))),
    "halves apart": lambda rng, places, size: inside_batches(rng, places, len(places) // 2),
    "blocks in any order": lambda rng, places, size: np.hstack(
        [part[rng.permutation(75)] for part in rng.permutation(places.reshape(4, 75))]
    ),
    "the first stays": lambda rng, places, size: np.append(0, 1 + rng.permutation(len(places) - 1)),
    "not from 100 on": lambda rng, places, size: rng.permutation(places) if len(places) < 100 else places,
}


@pytest.mark.parametrize(
    ("order", "count", "size"),
    [*((order, 23, 8) for order in WEAK.values()), *((order, 300, 80) for order in LOCAL.values())],
    ids=[*WEAK, *LOCAL],
)
def test_a_weak_shuffle_is_refused(order, count, size):
    inputs = numbered(np.random.default_rng(0), count, size)

    def weak(images, labels, batch_size, seed):
        places = order(np.random.default_rng(seed), np.arange(len(labels)), batch_size)
        return [(images[part], labels[part]) for part in np.split(places, range(batch_size, len(labels), batch_size))]

    assert each_once_and_shuffled(some_epochs(weak, inputs), None, inputs) is not None


OF_A_CLASS = {"rotated": WEAK["rotated"], "the first alone": lambda rng, places, size: rng.permutation(places[:16])}


@pytest.mark.parametrize("order", OF_A_CLASS.values(), ids=OF_A_CLASS)
def test_a_weak_shuffle_of_classes_is_refused(order):
    inputs = unbalanced(np.random.default_rng(0), (30, 17), 4)

    def weak(images, labels, per_class, seed):
        rng = np.random.default_rng(seed)
        orders = [order(rng, np.flatnonzero(labels == label), per_class)[:16] for label in np.unique(labels)]
        return [
            (images[each], labels[each])
            for each in map(np.hstack, zip(*(np.split(places, 4) for places in orders), strict=True))
        ]

    assert balanced_and_shuffled(some_epochs(weak, inputs), None, inputs) is not None


def test_seeds_draw_other_disguises_and_leave_the_digits_alone():
    before = data.digits().images.sum()
    signs = {bool(disguised_digits(np.random.default_rng(seed), 20, 20)["images"].min() < 0) for seed in range(12)}
    assert signs == {True, False}
    assert data.digits().images.sum() == before


def test_the_function_never_sees_the_labels_of_the_test_images():
    drawn = three_disguises(np.random.default_rng(0), 60, 40)
    seen = []

    def train(images, labels, test_images, seed):
        seen.append((len(images), len(labels), len(test_images), seed))
        return nearest_neighbour(images, labels, test_images, seed)

    predictions = train_on_each(train, drawn)
    assert seen == [(60, 60, 40, run["seeds"][0]) for run in drawn["runs"]]
    assert len(predictions) == 3


def with_accuracies(*shares):
    """Predictions for ten test images, of which these shares are right."""
    truth = np.arange(10)
    inputs = {"runs": [{"test_labels": truth, "usual_labels": truth + 1}] * len(shares)}
    return [np.where(truth < 10 * share, truth, -1) for share in shares], inputs


def test_the_median_decides():
    judge = partial(median_accuracy, at_least=0.8)
    got, inputs = with_accuracies(0.3, 0.8, 0.9)
    assert judge(got, None, inputs) is None
    got, inputs = with_accuracies(0.1, 0.8, 0.9)
    assert "a training is far behind the others" in judge(got, None, inputs).lines[1]
    got, inputs = with_accuracies(0.1, 0.7, 0.9)
    assert "10.0%, 70.0%, 90.0%. The median is 70.0%" in judge(got, None, inputs).lines[0]
