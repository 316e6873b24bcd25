"""The references of lesson 05's variants against PyTorch and scikit-learn, and their judges."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from unrolled.checks.exercises.l05_train_a_cnn.batches import three_epochs
from unrolled.checks.exercises.l05_train_a_cnn.optimizer_steps import decoupled_update, nesterov_update
from unrolled.checks.exercises.l05_train_a_cnn.training import disguised_digits
from unrolled.checks.exercises.l05_train_a_cnn.training_variants import (
    WRONG,
    any_mistaken,
    any_unbalanced,
    balanced_and_shuffled,
    balanced_batches,
    confusion,
    frozen_backward,
    frozen_layers,
    frozen_left_alone,
    neighbours_vote,
    noisy_digits,
    unbalanced,
)

torch = pytest.importorskip("torch")


def five_steps_of_torch(optimizer, start, gradients):
    parameters = torch.tensor(start, requires_grad=True)
    optimizer = optimizer([parameters])
    for gradient in gradients:
        parameters.grad = torch.tensor(gradient)
        optimizer.step()
    return parameters.detach().numpy()


def drawn():
    rng = np.random.default_rng(0)
    return rng.standard_normal(6), rng.standard_normal((5, 6))


def test_nesterov_steps_as_in_torch():
    start, gradients = drawn()
    options = {"momentum": 0.8, "weight_decay": 0.1}
    theirs = five_steps_of_torch(lambda p: torch.optim.SGD(p, lr=0.2, nesterov=True, **options), start, gradients)
    ours, velocity = start, np.zeros(6)
    for gradient in gradients:
        ours, velocity = nesterov_update(ours, gradient, velocity, 0.2, **options)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_decoupled_steps_as_in_torch():
    start, gradients = drawn()
    theirs = five_steps_of_torch(
        lambda p: torch.optim.AdamW(p, lr=0.2, betas=(0.8, 0.9), weight_decay=0.3), start, gradients
    )
    ours, m, v = start, np.zeros(6), np.zeros(6)
    for t, gradient in enumerate(gradients, 1):
        ours, m, v = decoupled_update(ours, gradient, m, v, t, 0.2, 0.8, 0.9, weight_decay=0.3)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_the_table_is_that_of_scikit_learn(seed):
    inputs = any_mistaken(np.random.default_rng(seed))
    found = inputs["forward"](inputs["images"]).argmax(axis=1)
    expected = confusion_matrix(inputs["labels"], found, labels=range(5))
    assert np.array_equal(confusion(**inputs), expected)


@pytest.mark.parametrize("frozen", [0, 2, 5])
def test_frozen_layers_are_left_alone(frozen):
    inputs = frozen_layers(3, lambda count: frozen)(np.random.default_rng(0))
    grad = frozen_backward(**inputs)
    assert [layer.asked for layer in inputs["layers"]] == [0] * frozen + [1] * (5 - frozen)
    assert frozen_left_alone(grad, grad, inputs) is None
    inputs["layers"][0].backward(grad)
    assert (frozen_left_alone(grad, grad, inputs) is None) == (frozen == 0)


def mixed_batches(images, labels, per_class, seed):
    """Right, in another way: images of a batch in any order, classes in turn."""
    rng = np.random.default_rng([seed, 5])
    for batch_images, batch_labels in balanced_batches(images, labels, per_class, seed):
        order = rng.permutation(len(batch_labels))
        yield batch_images[order], batch_labels[order]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("function", [balanced_batches, mixed_batches])
def test_balanced_batches_in_any_order_are_right(function, seed):
    inputs = any_unbalanced(np.random.default_rng(seed))
    epochs = three_epochs(function, inputs)
    assert balanced_and_shuffled(epochs, None, inputs) is None
    epochs[2] = epochs[0]
    assert "is `seed` used?" in balanced_and_shuffled(epochs, None, inputs).lines[0]


def test_the_rarest_class_ends_the_epoch():
    inputs = unbalanced((20, 7), 3)(np.random.default_rng(0))
    epochs = three_epochs(balanced_batches, inputs)
    assert [len(batches) for batches in epochs] == [2, 2, 2]
    short = [batches[:1] for batches in epochs]
    assert "1 batches; expected 2" in balanced_and_shuffled(short, None, inputs).lines[0]


def test_three_of_ten_labels_are_wrong_and_those_of_the_test_are_not():
    noisy = noisy_digits(np.random.default_rng(3), 300, 200)
    clean = disguised_digits(np.random.default_rng(3), 300, 200)
    assert (noisy["labels"] != clean["labels"]).sum() == int(WRONG * 300)
    assert set(noisy["labels"]) <= set(range(10))
    assert all(np.array_equal(noisy[name], clean[name]) for name in clean if name not in ("labels", "seeds"))


def test_neighbours_outvote_the_wrong_labels():
    inputs = noisy_digits(np.random.default_rng(4), 900, 300)
    found = neighbours_vote(inputs["images"], inputs["labels"], inputs["test_images"], 0)
    assert (found == inputs["test_labels"]).mean() > 0.9
