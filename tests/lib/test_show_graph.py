"""unrolled.show: the graph of lesson 04 and the training of lesson 05 say what the mathematics and the training say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pictures import HISTORY, TRAINING_ONLY, bowl
from pictures import NETWORK as NET

from unrolled import ops, show
from unrolled.show.convolution import Steps, added, shared, windows
from unrolled.show.graph import BREAKS, PARAMETERS, STEPS, Graph, Network, backward, forward, losses, worked
from unrolled.show.training import Live, losses_along

NETWORK = Network.of(**NET)
LOSS_SIGN = len(BREAKS) - 1


def loss_with(name: str, value: np.ndarray) -> float:
    if name == "x":
        changed = Network(value, NETWORK.labels, NETWORK.parameters)
    else:
        changed = Network(NETWORK.x, NETWORK.labels, NETWORK.parameters | {name: value})
    return float(forward(changed)["loss"][0, 0])


@pytest.mark.parametrize("name", ["x", *PARAMETERS])
def test_gradients_are_those_of_the_loss(name: str) -> None:
    grads = backward(NETWORK, forward(NETWORK))
    value = NETWORK.x if name == "x" else NETWORK.parameters[name]
    expected = ops.numeric_gradient(lambda changed: loss_with(name, changed), value)
    np.testing.assert_allclose(grads[name], expected, atol=1e-8)


@pytest.mark.parametrize("broken", BREAKS[1:], ids=lambda broken: broken.short)
def test_each_break_spoils_its_own_gradient_and_none_that_was_computed_before(broken: object) -> None:
    values = forward(NETWORK)
    right, wrong = backward(NETWORK, values), backward(NETWORK, values, broken)  # type: ignore[arg-type]
    spoiled = [name for name in right if not np.array_equal(right[name], wrong[name])]
    assert spoiled[0] == broken.name  # type: ignore[attr-defined]


def test_a_broken_gradient_still_trains_unless_every_sign_is_wrong() -> None:
    for broken in BREAKS[:LOSS_SIGN]:
        curve = losses(NETWORK, broken, 40, 0.2)
        assert len(curve) == 41
        assert curve[-1] < 0.05 * curve[0]
    rising = losses(NETWORK, BREAKS[LOSS_SIGN], 40, 0.2)
    assert rising == sorted(rising)


def test_worked_numbers_are_right() -> None:
    graph = Graph(NETWORK)
    lines = [worked(graph, at) for at in range(len(STEPS))]
    assert lines[1] == "first value: 1 × 1 + 2 × (−1) + 0.5 = −0.5"
    assert lines[2] == "first value: −0.5 becomes 0"
    assert lines[6] == "first value: (0.2 − 1) / 2 = −0.4"
    assert lines[8] == "first value: the input was −0.5, so 0.2 becomes 0"


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1)])
def test_the_picture_of_col2im_adds_up_to_col2im(stride: int, padding: int) -> None:
    seen = windows(np.zeros((5, 6)), (3, 2), stride, padding)
    columns = np.random.default_rng(0).standard_normal((6, seen.output_size[0] * seen.output_size[1]))
    image = added(seen, columns, columns.shape[1] - 1)
    inside = image[padding : padding + 5, padding : padding + 6]
    np.testing.assert_allclose(inside, ops.col2im(columns, (1, 1, 5, 6), (3, 2), stride, padding)[0, 0])
    assert added(seen, columns, 0)[:3, :2].tolist() == columns[:, 0].reshape(3, 2).tolist()


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1)])
def test_the_picture_of_a_convolution_backward_adds_up_to_conv2d_backward(stride: int, padding: int) -> None:
    rng = np.random.default_rng(0)
    x, kernel = rng.standard_normal((5, 6)), rng.standard_normal((3, 2))
    grad = rng.standard_normal(windows(x, (3, 2), stride, padding).output_size)
    steps = Steps.of(x, kernel, stride, padding, 0.0)
    by_image, by_kernel = shared(steps, grad, grad.size - 1)
    expected, weight, _ = ops.conv2d_backward(grad[None, None], x[None, None], kernel[None, None], stride, padding)
    np.testing.assert_allclose(by_image[padding : padding + 5, padding : padding + 6], expected[0, 0])
    np.testing.assert_allclose(by_kernel, weight[0, 0])


# training


def test_an_epoch_interrupted_before_its_validation_is_left_out() -> None:
    history = SimpleNamespace(**{**vars(HISTORY), "loss": [2.0, 1.0, 0.1, 0.05], "accuracy": [0.3, 0.7, 1.0, 1.0]})
    assert "epochs 1 to 3. After epoch 3: training loss 0.1" in show.learning_curves(history).alt


def test_live_curves_are_drawn_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[Any] = []
    live = show.live("now")
    live(None, TRAINING_ONLY)
    assert isinstance(live, Live)
    assert live.picture is not None
    assert "After epoch 2" in live.picture.alt  # nothing is displayed here: this is no notebook
    live._handle = SimpleNamespace(update=updates.append)
    assert live(None, HISTORY) is None, "a callback that returns something true would stop the training"
    assert updates == [live.picture]


def test_a_path_that_runs_to_infinity_has_an_infinite_loss() -> None:
    assert losses_along(bowl, np.array([[1.0, 0.0], [1e200, 0.0], [np.nan, 0.0]])).tolist() == [1.0, np.inf, np.inf]
