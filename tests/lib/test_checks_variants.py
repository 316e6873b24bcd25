"""What variants bring of their own: a reference that `ops` has not, and a judge of batches in any order."""

import numpy as np
import pytest

from unrolled.checks.exercises.l04_backprop.dense_gradients import any_smoothed, smoothed_cross_entropy
from unrolled.checks.exercises.l05_train_a_cnn.batches import three_epochs
from unrolled.checks.exercises.l05_train_a_cnn.variants import any_unbalanced, balanced_and_shuffled, balanced_batches


@pytest.mark.parametrize("seed", range(12))
def test_smoothed_labels_cost_as_in_pytorch(seed):
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    inputs = any_smoothed(np.random.default_rng(seed))
    scores = torch.tensor(inputs["scores"], requires_grad=True)
    loss = torch.nn.functional.cross_entropy(
        scores, torch.tensor(inputs["labels"]), label_smoothing=min(inputs["smoothing"], 1)
    )
    loss.backward()
    ours, grad = smoothed_cross_entropy(**inputs)
    assert float(ours) == pytest.approx(loss.item(), rel=1e-4)
    np.testing.assert_allclose(grad, scores.grad.numpy(), rtol=1e-4, atol=1e-5)


def mixed_batches(images, labels, per_class, seed):
    """Right, in another way: images of a batch in any order."""
    rng = np.random.default_rng([seed, 5])
    for batch_images, batch_labels in balanced_batches(images, labels, per_class, seed):
        order = rng.permutation(len(batch_labels))
        yield batch_images[order], batch_labels[order]


@pytest.mark.parametrize("seed", range(8))
def test_balanced_batches_may_hold_their_images_in_any_order(seed):
    inputs = any_unbalanced(np.random.default_rng(seed))
    assert balanced_and_shuffled(three_epochs(mixed_batches, inputs), None, inputs) is None
