"""The references of lesson 04's variants against PyTorch, and the judge of slopes."""

from dataclasses import replace

import numpy as np
import pytest

from unrolled.checks.exercises.l02_convolution import dilation
from unrolled.checks.exercises.l04_backprop import variants as variants04
from unrolled.checks.exercises.l04_backprop.dense_gradients import (
    any_affine_in_out,
    any_smoothed,
    in_out_backward,
    smoothed_cross_entropy,
)
from unrolled.checks.exercises.l04_backprop.gradients import (
    SQUARES,
    directed,
    is_a_judge_along,
    mean_forgotten,
    one_element_off,
    relu_let_through,
    sign_error,
    slope_along,
    transposed_weight,
)
from unrolled.checks.exercises.l04_backprop.window_gradients import (
    any_convolution_nhwc,
    any_dilated_columns,
    nhwc_backward,
)

torch = pytest.importorskip("torch")
SEEDS = range(12)
PLANTED = (sign_error, mean_forgotten, transposed_weight, relu_let_through, one_element_off)


def tensor(array, gradient=False):
    return torch.tensor(np.asarray(array), requires_grad=gradient)


def assert_close(ours, theirs):
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dense_layer_with_its_inputs_first(seed):
    inputs = any_affine_in_out(np.random.default_rng(seed))
    x, weight = tensor(inputs["x"], True), tensor(inputs["weight"], True)
    bias = torch.zeros(weight.shape[1], requires_grad=True)
    (x @ weight + bias).backward(tensor(inputs["grad"]))
    for ours, theirs in zip(in_out_backward(**inputs), (x.grad, weight.grad, bias.grad), strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("seed", SEEDS)
def test_smoothed_labels(seed):
    inputs = any_smoothed(np.random.default_rng(seed))
    scores = tensor(inputs["scores"], True)
    loss = torch.nn.functional.cross_entropy(
        scores, tensor(inputs["labels"]), label_smoothing=min(inputs["smoothing"], 1)
    )
    loss.backward()
    ours, grad = smoothed_cross_entropy(**inputs)
    assert float(ours) == pytest.approx(loss.item(), rel=1e-4)
    assert_close(grad, scores.grad)


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_of_windows_with_gaps(seed):
    inputs = any_dilated_columns(np.random.default_rng(seed))
    n, c, h, w = inputs["x_shape"]
    columns = inputs["columns"].reshape(len(inputs["columns"]), n, -1).swapaxes(0, 1)
    options = {name: inputs[name] for name in ("kernel_size", "stride", "padding", "dilation")}
    theirs = torch.nn.functional.fold(tensor(np.ascontiguousarray(columns)), (h, w), **options)
    assert theirs.shape == (n, c, h, w)
    assert_close(dilation.col2im_dilated(**inputs), theirs)
    assert_close(dilation.col2im_dilated_loops(**inputs), theirs)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_convolution_with_its_channels_last(seed):
    inputs = any_convolution_nhwc(np.random.default_rng(seed))
    x, weight = tensor(inputs["x"], True), tensor(inputs["weight"], True)
    bias = torch.zeros(weight.shape[3], requires_grad=True)
    y = torch.nn.functional.conv2d(
        x.permute(0, 3, 1, 2), weight.permute(3, 2, 0, 1), bias, inputs["stride"], inputs["padding"]
    )
    y.permute(0, 2, 3, 1).backward(tensor(inputs["grad"]))
    for ours, theirs in zip(nhwc_backward(**inputs), (x.grad, weight.grad, bias.grad), strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("draw", PLANTED)
def test_a_slope_tells_a_planted_error(draw, seed):
    """Along the right gradient the slope is the product with the direction; along the planted one it is not."""
    inputs = directed(draw)(np.random.default_rng(seed))
    known, x, direction = inputs["function"], inputs["x"], inputs["direction"]
    right, wrong = ((gradient(x) * direction).sum() for gradient in (known.gradient, known.planted))
    assert slope_along(known, x, direction) == pytest.approx(right, rel=1e-5, abs=1e-7)
    fresh = directed(draw)(np.random.default_rng(seed))
    fresh["function"].calls.extend([1, 1])
    assert is_a_judge_along(right, right, fresh) is None
    assert is_a_judge_along(wrong, right, fresh) is not None


def test_two_questions_are_enough():
    inputs = {"function": replace(SQUARES, calls=[]), "x": np.array([1.0, -2.0]), "direction": np.array([1.0, 1.0])}
    slope = slope_along(**inputs)
    assert slope == pytest.approx(-2)
    assert is_a_judge_along(slope, slope, inputs) is None
    inputs["function"](inputs["x"])
    assert "3 times: two are enough" in is_a_judge_along(slope, slope, inputs).lines[0]


def test_a_case_draws_functions_that_were_never_asked():
    case = variants04.numeric_gradient_directional.cases[0]
    first = case.inputs(0)
    first["function"](first["x"])
    assert case.inputs(0)["function"].calls == []
