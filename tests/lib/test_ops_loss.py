"""Losses: known values, PyTorch's values and gradients for scores of any size, bad labels."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strict_arrays import strict

from unrolled import device, ops

quick = settings(max_examples=60, deadline=None)


def test_cross_entropy_by_hand() -> None:
    scores = np.log(np.array([[1, 2, 5], [2, 2, 4]], dtype=np.float32))  # probabilities 1/8 2/8 5/8 and 1/4 1/4 1/2
    loss, grad = ops.softmax_cross_entropy(scores, np.array([2, 0]))
    assert float(loss) == pytest.approx((log(8 / 5) + log(4)) / 2, rel=1e-6)
    np.testing.assert_allclose(grad, np.array([[1 / 8, 2 / 8, -3 / 8], [-3 / 4, 1 / 4, 1 / 2]]) / 2, rtol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 4e-6)])
@quick
@given(st.integers(1, 16), st.integers(1, 10), st.integers(0, 999), st.sampled_from([0.1, 1.0, 30.0, 1e4]))
def test_losses_of_pytorch(dtype: Any, tolerance: float, n: int, m: int, seed: int, size: float) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    rng = np.random.default_rng(seed)
    scores, targets = (rng.normal(0, size, (n, m)).astype(dtype) for _ in range(2))
    for ours, theirs, expected in (
        (ops.softmax_cross_entropy, torch.nn.functional.cross_entropy, rng.integers(0, m, n)),
        (ops.mean_squared_error, torch.nn.functional.mse_loss, targets),
    ):
        inputs = torch.tensor(scores, requires_grad=True)
        peer = theirs(inputs, torch.tensor(expected))
        peer.backward()
        loss, grad = ours(scores, expected)
        np.testing.assert_allclose(loss, peer.item(), rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(grad, inputs.grad, rtol=tolerance, atol=tolerance)


@pytest.mark.filterwarnings("error")
def test_a_score_of_minus_infinity_costs_nothing_unless_it_is_the_labels() -> None:
    scores = np.array([[0, -np.inf, 0]], dtype=np.float32)
    loss, grad = ops.softmax_cross_entropy(scores, np.array([0]))
    hopeless, way = ops.softmax_cross_entropy(scores, np.array([1]))
    assert float(loss) == pytest.approx(log(2))
    np.testing.assert_array_equal(grad, [[-0.5, 0, 0.5]])
    assert hopeless == np.inf
    np.testing.assert_array_equal(way, [[0.5, -1, 0.5]])


@pytest.mark.parametrize("labels", [np.zeros(3), np.zeros(3, bool), np.array(["0", "1", "2"])])
def test_labels_that_are_no_integers_are_refused(labels: Any) -> None:
    with pytest.raises(ValueError, match=f"labels (are|is) {labels.dtype}; expected"):
        ops.softmax_cross_entropy(np.eye(3), labels)


@pytest.mark.parametrize("label", [-1, 4, 255])
def test_labels_out_of_range_are_named(label: int) -> None:
    with pytest.raises(ValueError, match=rf"labels holds {label}; expected 0 to 3 for scores of shape \(3, 4\)"):
        ops.softmax_cross_entropy(np.zeros((3, 4), np.float32), np.array([0, label, 3]))


@pytest.mark.parametrize(("last", "wrong"), [(2, False), (-1, True)])
def test_on_a_device_a_label_out_of_range_makes_the_loss_nan(last: int, wrong: bool) -> None:
    scores, labels = np.eye(3, dtype=np.float32), np.array([0, 1, last])
    loss, _ = ops.softmax_cross_entropy(strict.asarray(scores), strict.asarray(labels))
    assert np.isnan(device.to_host(loss)) == wrong


@pytest.mark.parametrize(
    ("scores", "labels", "words"),
    [
        ((3,), (3,), r"scores has shape \(3,\); expected 2 axes \(N, M\)"),
        ((3, 4), (2,), r"labels has shape \(2,\); expected \(3,\) to fit scores \(3, 4\)"),
        ((3, 4), (3, 4), r"labels has shape \(3, 4\); expected \(3,\) to fit scores \(3, 4\)"),
        ((0, 4), (0,), r"scores has shape \(0, 4\); expected at least one sample"),
        ((3, 0), (3,), r"scores has shape \(3, 0\); expected at least one sample and one class"),
    ],
)
def test_shapes_of_scores_and_labels(scores: tuple[int, ...], labels: tuple[int, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ops.softmax_cross_entropy(np.zeros(scores, np.float32), np.zeros(labels, np.int64))


def test_shapes_of_predictions_and_targets() -> None:
    with pytest.raises(ValueError, match=r"targets has shape \(3,\); expected \(3, 1\) to fit predictions \(3, 1\)"):
        ops.mean_squared_error(np.zeros((3, 1)), np.zeros(3))
    with pytest.raises(ValueError, match=r"predictions has shape \(0, 2\): the mean of no values"):
        ops.mean_squared_error(np.zeros((0, 2)), np.zeros((0, 2)))
