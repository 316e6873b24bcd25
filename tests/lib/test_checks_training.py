"""The disguised digits of lesson 05, and the judge of what was learned from them."""

from functools import partial

import numpy as np

from unrolled import data
from unrolled.checks.exercises.l05_train_a_cnn.training import (
    disguised_digits,
    median_accuracy,
    nearest_neighbour,
    train_with_each_seed,
)


def test_seeds_draw_other_disguises_and_leave_the_digits_alone():
    before = data.digits().images.sum()
    signs = {bool(disguised_digits(np.random.default_rng(seed), 20, 20)["images"].min() < 0) for seed in range(12)}
    assert signs == {True, False}
    assert data.digits().images.sum() == before


def test_the_function_never_sees_the_labels_of_the_test_images():
    drawn = disguised_digits(np.random.default_rng(0), 60, 40)
    seen = []

    def train(images, labels, test_images, seed):
        seen.append((len(images), len(labels), len(test_images), seed))
        return nearest_neighbour(images, labels, test_images, seed)

    predictions = train_with_each_seed(train, drawn)
    assert seen == [(60, 60, 40, seed) for seed in drawn["seeds"]]
    assert len(predictions) == 3


def with_accuracies(*shares):
    """Predictions for ten test images, of which these shares are right."""
    truth = np.arange(10)
    inputs = {"test_labels": truth, "usual_labels": truth + 1}
    return [np.where(truth < 10 * share, truth, -1) for share in shares], inputs


def test_the_median_decides():
    judge = partial(median_accuracy, at_least=0.8)
    got, inputs = with_accuracies(0.1, 0.8, 0.9)
    assert judge(got, None, inputs) is None
    got, inputs = with_accuracies(0.1, 0.7, 0.9)
    assert "10.0%, 70.0%, 90.0%. The median is 70.0%" in judge(got, None, inputs).lines[0]
