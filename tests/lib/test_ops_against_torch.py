"""ops beside PyTorch on random shapes, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from ops_cases import Geometry, geometries, pooling_geometries

from unrolled import ops

torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
functional = torch.nn.functional
few = settings(max_examples=40, deadline=None)


def tensors(*arrays: Any) -> list[Any]:
    return [torch.tensor(x, requires_grad=True) for x in arrays]


@few
@given(geometries())
def test_conv2d_and_its_gradients(g: Geometry) -> None:
    arrays = g.arrays()
    inputs = tensors(*arrays)
    expected = functional.conv2d(*inputs, g.stride, g.padding)
    y = ops.conv2d(*arrays, g.stride, g.padding)
    np.testing.assert_allclose(y, expected.detach(), rtol=1e-9, atol=1e-9)

    grad = np.random.default_rng(g.seed + 1).normal(size=y.shape)
    expected.backward(torch.tensor(grad))
    gradients = ops.conv2d_backward(grad, *arrays[:2], g.stride, g.padding)
    for gradient, tensor in zip(gradients, inputs, strict=True):
        np.testing.assert_allclose(gradient, tensor.grad, rtol=1e-9, atol=1e-9)


@few
@given(geometries())
def test_conv2d_in_float32(g: Geometry) -> None:
    arrays = g.arrays(np.float32)
    expected = functional.conv2d(*tensors(*arrays), g.stride, g.padding).detach()
    y = ops.conv2d(*arrays, g.stride, g.padding)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


@few
@given(geometries())
def test_im2col_and_col2im(g: Geometry) -> None:
    x = g.arrays()[0]
    options = {"kernel_size": g.kernel_size, "stride": g.stride, "padding": g.padding}
    patches = functional.unfold(torch.tensor(x), **options)  # (N, C * KH * KW, OH * OW)
    columns = ops.im2col(x, **options)
    np.testing.assert_array_equal(columns, patches.permute(1, 0, 2).reshape(columns.shape))
    back = functional.fold(patches, g.size, **options)
    np.testing.assert_allclose(ops.col2im(columns, x.shape, **options), back, rtol=1e-12, atol=1e-12)


@few
@given(pooling_geometries())
def test_max_pool2d_its_indices_and_its_gradient_with_ties(g: Geometry) -> None:
    # Few different values: most windows have several maxima, and the first of them must get the gradient.
    x = np.random.default_rng(g.seed).choice([-np.inf, -1.0, 0.0, 1.0], (g.n, g.c, *g.size))
    options = (g.kernel_size, g.stride, g.padding)
    (inputs,) = tensors(x)
    expected, where = functional.max_pool2d(inputs, *options, return_indices=True)
    y, indices = ops.max_pool2d_with_indices(x, *options)
    np.testing.assert_array_equal(y, expected.detach())
    np.testing.assert_array_equal(ops.max_pool2d(x, *options), expected.detach())
    np.testing.assert_array_equal(indices, where)

    grad = np.random.default_rng(g.seed + 1).normal(size=y.shape)
    expected.backward(torch.tensor(grad))
    for grad_x in (ops.max_pool2d_backward(grad, x, *options), ops.max_unpool2d(grad, indices, g.size)):
        np.testing.assert_allclose(grad_x, inputs.grad, rtol=1e-12, atol=1e-12)


@few
@given(pooling_geometries())
def test_max_unpool2d_without_overlap(g: Geometry) -> None:
    # Where windows overlap, PyTorch keeps one of the values that meet on a pixel; ours add up.
    x = g.arrays()[0]
    stride = tuple(map(max, g.kernel_size, g.stride))
    y, indices = ops.max_pool2d_with_indices(x, g.kernel_size, stride, g.padding)
    expected = functional.max_unpool2d(
        torch.tensor(y), torch.tensor(indices), g.kernel_size, stride, g.padding, output_size=g.size
    )
    np.testing.assert_array_equal(ops.max_unpool2d(y, indices, g.size), expected)
    np.testing.assert_array_equal(ops.max_unpool2d_mask(y, x, g.kernel_size, stride, g.padding), expected)


@few
@given(pooling_geometries())
def test_avg_pool2d_and_its_gradient(g: Geometry) -> None:
    x, options = g.arrays()[0], (g.kernel_size, g.stride, g.padding)
    (inputs,) = tensors(x)
    expected = functional.avg_pool2d(inputs, *options, count_include_pad=True)
    y = ops.avg_pool2d(x, *options)
    np.testing.assert_allclose(y, expected.detach(), rtol=1e-12, atol=1e-12)

    grad = np.random.default_rng(g.seed + 1).normal(size=y.shape)
    expected.backward(torch.tensor(grad))
    np.testing.assert_allclose(ops.avg_pool2d_backward(grad, x.shape, *options), inputs.grad, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("n", "d", "m"), [(1, 1, 1), (5, 7, 3), (64, 100, 10)])
def test_affine_and_relu_and_their_gradients(n: int, d: int, m: int) -> None:
    rng = np.random.default_rng(n)
    x, weight, bias, grad = (rng.normal(size=shape) for shape in ((n, d), (m, d), (m,), (n, m)))
    inputs = tensors(x, weight, bias)
    hidden = functional.linear(*inputs)
    hidden.retain_grad()
    functional.relu(hidden).backward(torch.tensor(grad))

    y = ops.affine(x, weight, bias)
    np.testing.assert_allclose(y, hidden.detach(), rtol=1e-12, atol=1e-12)
    grad_hidden = ops.relu_backward(grad, y)
    np.testing.assert_allclose(grad_hidden, hidden.grad, rtol=1e-12)
    for gradient, tensor in zip(ops.affine_backward(grad_hidden, x, weight), inputs, strict=True):
        np.testing.assert_allclose(gradient, tensor.grad, rtol=1e-12, atol=1e-12)
