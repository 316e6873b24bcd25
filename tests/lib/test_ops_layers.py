"""Ops of layers and losses: PyTorch's values and gradients, corners and limits, what dropout drops, what is refused."""

import warnings
from collections.abc import Callable
from functools import partial
from math import log
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from ops_cases import Call, agrees_with_torch
from strict_arrays import strict

from unrolled import device, ops


class Activation(NamedTuple):
    """A function, its way back, whether that needs the output, and PyTorch's function of the same values."""

    function: Callable[[Any], Any]
    backward: Callable[[Any, Any], Any]
    peer: Callable[[Any, Any], Any]
    needs_output: bool = False

    def gradient(self, grad: Any, x: Any) -> Any:
        return self.backward(grad, self.function(x) if self.needs_output else x)


ACTIVATIONS = {
    "step": Activation(ops.step, ops.step_backward, lambda f, x: (x > 0) + 0 * x),
    "relu": Activation(ops.relu, ops.relu_backward, lambda f, x: f.relu(x)),
    "leaky_relu": Activation(ops.leaky_relu, ops.leaky_relu_backward, lambda f, x: f.leaky_relu(x)),
    "leaky_relu, 0.3": Activation(
        *(partial(leaky, slope=0.3) for leaky in (ops.leaky_relu, ops.leaky_relu_backward)),
        lambda f, x: f.leaky_relu(x, 0.3),
    ),
    # PyTorch's is x itself above 20 unless told otherwise
    "softplus": Activation(ops.softplus, ops.softplus_backward, lambda f, x: f.softplus(x, threshold=700)),
    "sigmoid": Activation(ops.sigmoid, ops.sigmoid_backward, lambda f, x: f.sigmoid(x), needs_output=True),
    "tanh": Activation(ops.tanh, ops.tanh_backward, lambda f, x: f.tanh(x), needs_output=True),
    "softmax": Activation(ops.softmax, ops.softmax_backward, lambda f, x: f.softmax(x, dim=-1), needs_output=True),
}
every = pytest.mark.parametrize("a", ACTIVATIONS.values(), ids=ACTIVATIONS.keys())


@every
@given(
    shape=arrays.array_shapes(min_dims=0, max_dims=4, max_side=5),
    size=st.sampled_from([1.0, 10.0, 600.0]),
    dtype=st.sampled_from(["float32", "float64"]),
    seed=st.integers(0, 999),
)
def test_values_and_gradients_are_pytorchs(a: Activation, shape: Any, size: float, dtype: str, seed: int) -> None:
    shape = (*shape, 3) if a is ACTIVATIONS["softmax"] else shape
    x = np.asarray(np.random.default_rng(seed).normal(0, size, shape)).astype(dtype)
    x[np.asarray(x == x.max(initial=0))] = 0  # at a corner the gradient is that of the flat side, as PyTorch's
    if dtype == "float32":
        x = np.clip(x, -80, 80)  # beyond, PyTorch's softplus of that threshold overflows
    tolerance = 1e-13 if dtype == "float64" else 2e-6
    agrees_with_torch(a.peer, [x], a.function, lambda grad: a.gradient(grad, x), tolerance)


@every
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_values_neither_overflow_nor_warn(a: Activation, dtype: Any) -> None:
    x = np.array([-1e30, -1e4, -1000, -89, -1, 1, 89, 1000, 1e4, 1e30], dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y, gradient = a.function(x), a.gradient(np.ones_like(x), x)
    assert np.isfinite(y).all()
    assert np.isfinite(gradient).all()
    if a is not ACTIVATIONS["softmax"]:
        assert (np.diff(y) >= 0).all()  # each of them never falls


@every
def test_nan_stays_nan(a: Activation) -> None:
    y = a.function(np.array([[np.nan, 1.0], [-1.0, 2.0]], dtype=np.float32))
    assert np.isnan(y[0, 0])
    assert np.isfinite(y[1]).all()


@every
def test_a_grad_that_does_not_fit_is_named_with_both_shapes(a: Activation) -> None:
    with pytest.raises(ValueError, match=r"grad has shape \(1, 3\); expected \(2, 3\) to fit [xy] \(2, 3\)"):
        a.backward(np.ones((1, 3), np.float32), np.ones((2, 3), np.float32))


RNG = np.random.default_rng(3)


@given(st.integers(1, 64), st.integers(1, 30), st.integers(1, 10), st.sampled_from([ops.affine, ops.affine_one_by_one]))
def test_affine_and_its_gradients_are_pytorchs(n: int, d: int, m: int, affine: Any) -> None:
    x, weight, bias = (np.random.default_rng(n).normal(size=shape) for shape in ((n, d), (m, d), (m,)))
    agrees_with_torch(
        lambda functional, *tensors: functional.linear(*tensors),
        [x, weight, bias],
        affine,
        lambda grad: ops.affine_backward(grad, x, weight),
    )


@pytest.mark.parametrize("product", [ops.matmul_loops, ops.matmul_rows])
@pytest.mark.parametrize(("n", "k", "m"), [(1, 1, 1), (3, 4, 2), (2, 0, 3), (5, 1, 4)])
def test_matrix_products(product: Any, n: int, k: int, m: int) -> None:
    a, b = RNG.normal(size=(n, k)), RNG.normal(size=(k, m))
    np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-12, atol=1e-12)


def drawn(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(3, 2, shape)


shapes = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), st.integers(2, 5))


@given(shape=shapes, seed=st.integers(0, 99), epsilon=st.sampled_from([1e-5, 0.1]))
def test_both_passes_are_those_of_torch(shape: Any, seed: int, epsilon: float) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    x = drawn(seed, *shape)
    gamma, beta, mean, variance = np.abs(drawn(seed + 1, 4, shape[1]))
    agrees_with_torch(
        lambda f, x, gamma, beta: f.batch_norm(x, None, None, gamma, beta, training=True, eps=epsilon),
        [x, gamma, beta],
        lambda *arrays: ops.batch_norm2d(*arrays, epsilon=epsilon),
        lambda grad: ops.batch_norm2d_backward(grad, x, gamma, epsilon=epsilon),
        tolerance=1e-7,
    )
    expected = torch.nn.functional.batch_norm(*map(torch.tensor, (x, mean, variance, gamma, beta)), eps=epsilon)
    found = ops.batch_norm2d(x, gamma, beta, mean, variance, epsilon=epsilon)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-9)


def test_the_variance_survives_a_large_mean() -> None:
    x = (1000 + drawn(3, 8, 2, 9, 9)).astype(np.float32)  # the mean of squares less the square of means would lose it
    np.testing.assert_allclose(ops.batch_statistics(x)[1], x.astype(np.float64).var(axis=(0, 2, 3)), rtol=1e-3)


def drop(x: Any) -> Any:
    """`ops.dropout` with a generator of x's module, as it demands."""
    return ops.dropout(x, 0.4, device.array_module(x).random.default_rng(1))


drop.__name__ = "dropout"

SAMPLES = np.random.default_rng(7).normal(size=(5, 7)).astype(np.float32)
CALLS = {"dropout": Call(drop, (SAMPLES,)), "dropout_backward": Call(ops.dropout_backward, (SAMPLES, SAMPLES))}
"""For `test_ops_contract.py`."""


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(
    x=arrays.arrays(
        np.float32, arrays.array_shapes(min_dims=0), elements=st.floats(-1e3, 1e3, width=32) | st.just(np.nan)
    ),
    rate=st.floats(0, 0.99),
    seed=st.integers(0, 99),
)
def test_a_value_is_0_or_scaled_as_the_mask_says(x: Any, rate: float, seed: int) -> None:
    y, mask = ops.dropout(x, rate, generator(seed))
    assert np.shape(y) == np.shape(mask) == x.shape
    assert set(np.unique(mask)) <= {np.float32(0), np.float32(1 / (1 - rate))}
    np.testing.assert_array_equal(y, x * mask)
    np.testing.assert_array_equal(ops.dropout_backward(x, mask), y)  # the same product back and forth


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_share_that_is_dropped_and_the_mean_that_stays(rate: float, dtype: Any) -> None:
    n = 40_000
    y, mask = ops.dropout(np.ones(n, dtype), rate, generator(3))
    deviation = (rate * (1 - rate) / n) ** 0.5
    assert abs((mask == 0).mean() - rate) < 4 * deviation
    assert abs(y.mean() - 1) < 4 * deviation / (1 - rate)


def test_the_same_seed_gives_the_same_mask_in_any_dtype_and_the_next_draw_another() -> None:
    x, rng = np.ones(100, np.float32), generator(4)
    first, second = ops.dropout(x, 0.5, rng)[1], ops.dropout(x, 0.5, rng)[1]
    assert (first != second).any()
    np.testing.assert_array_equal(ops.dropout(x.astype(np.float64), 0.5, generator(4))[1], first)


def test_cross_entropy_by_hand() -> None:
    scores = np.log(np.array([[1, 2, 5], [2, 2, 4]], dtype=np.float32))  # probabilities 1/8 2/8 5/8 and 1/4 1/4 1/2
    loss, grad = ops.softmax_cross_entropy(scores, np.array([2, 0]))
    assert float(loss) == pytest.approx((log(8 / 5) + log(4)) / 2, rel=1e-6)
    np.testing.assert_allclose(grad, np.array([[1 / 8, 2 / 8, -3 / 8], [-3 / 4, 1 / 4, 1 / 2]]) / 2, rtol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 4e-6)])
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


@pytest.mark.parametrize(("last", "wrong"), [(2, False), (-1, True)])
def test_on_a_device_a_label_out_of_range_makes_the_loss_nan(last: int, wrong: bool) -> None:
    scores, labels = np.eye(3, dtype=np.float32), np.array([0, 1, last])
    loss, _ = ops.softmax_cross_entropy(strict.asarray(scores), strict.asarray(labels))
    assert np.isnan(device.to_host(loss)) == wrong


def zeros(*shape: int, dtype: str = "float32") -> Any:
    return np.zeros(shape, dtype)


def cross_entropy(scores: Any, labels: Any) -> Any:
    labels = zeros(*labels, dtype="int64") if isinstance(labels, tuple) else labels
    return lambda: ops.softmax_cross_entropy(zeros(*scores), labels)


X, MATRIX, IMAGES, C = np.ones((5, 4)), np.ones((3, 4)), np.ones((2, 3, 4, 4)), np.ones(3)
WRONG: list[tuple[str, Callable[[], Any]]] = [
    *(("x has shape .*expected a last axis", lambda s=s: ops.softmax(zeros(*s))) for s in ((), (0,), (3, 0))),
    *(("y has shape .*expected a", lambda s=s: ops.softmax_backward(*[zeros(*s)] * 2)) for s in ((), (0,), (3, 0))),
    *((f"slope is {s}; expected 0 to 1", lambda s=s: ops.leaky_relu(X, s)) for s in (-0.1, 1.5, np.nan)),
    *((f"slope is {s}; expected 0 to 1", lambda s=s: ops.leaky_relu_backward(X, X, s)) for s in (-0.1, 1.5, np.nan)),
    *(
        (words, lambda affine=affine, arrays=arrays: affine(*arrays))
        for affine in (ops.affine, ops.affine_one_by_one)
        for words, arrays in (
            (r"weight has shape \(3, 5\).*x has shape \(5, 4\)", (X, np.zeros((3, 5)), C)),
            (r"bias has shape \(4,\); expected \(3,\) to fit weight \(3, 4\)", (X, MATRIX, np.zeros(4))),
            (r"x has shape \(4,\); expected 2 axes \(N, D\)", (X[0], MATRIX, C)),
        )
    ),
    (r"grad has shape \(5, 4\); expected \(5, 3\) to fit x \(5, 4\)", lambda: ops.affine_backward(X, X, MATRIX)),
    *(
        (words, lambda product=product, a=a: product(a, MATRIX))
        for product in (ops.matmul_loops, ops.matmul_rows)
        for words, a in (
            (r"b has shape \(3, 4\) with K = 3.*a has shape \(5, 4\) with K = 4", X),
            (r"a has shape \(4,\); expected 2 axes", X[0]),
        )
    ),
    (r"x has shape \(2, 3\); expected 4 axes \(N, C, H, W\)", lambda: ops.batch_norm2d(np.ones((2, 3)), C, C)),
    (r"gamma has shape \(2,\); expected \(3,\) to fit x \(2, 3, 4, 4\)", lambda: ops.batch_norm2d(IMAGES, C[:2], C)),
    (r"beta has shape \(1, 3\); expected \(3,\) to fit x \(2, 3, 4, 4", lambda: ops.batch_norm2d(IMAGES, C, C[None])),
    (r"variance has shape \(2,\); expected \(3,\)", lambda: ops.batch_norm2d(IMAGES, C, C, C, C[:2])),
    ("variance is missing: give mean and variance, or neither", lambda: ops.batch_norm2d(IMAGES, C, C, C)),
    (r"x has shape \(0, 3, 4, 4\): the mean of no values", lambda: ops.batch_norm2d(IMAGES[:0], C, C)),
    (r"grad has shape \(2, 3, 4\); expected", lambda: ops.batch_norm2d_backward(IMAGES[..., 0], IMAGES, C)),
    *(
        (f"rate is {rate}; expected 0 or more and below 1", lambda rate=rate: ops.dropout(C, rate, generator()))
        for rate in (-0.1, 1, 50, float("nan"))
    ),
    *((f"rng is {r}; expected a random generator", lambda r=r: ops.dropout(C, 0.5, r)) for r in (0, None)),
    (r"grad has shape \(3,\); expected \(2, 3\) to fit mask", lambda: ops.dropout_backward(C, np.ones((2, 3)))),
    *(
        (f"labels (are|is) {labels.dtype}; expected", cross_entropy((3, 3), labels))
        for labels in (np.zeros(3), np.zeros(3, bool), np.array(["0", "1", "2"]))
    ),
    *(
        (rf"labels holds {n}; expected 0 to 3 for scores of shape \(3, 4\)", cross_entropy((3, 4), np.array([0, n, 3])))
        for n in (-1, 4, 255)
    ),
    (r"scores has shape \(3,\); expected 2 axes \(N, M\)", cross_entropy((3,), (3,))),
    (r"labels has shape \(2,\); expected \(3,\) to fit scores \(3, 4\)", cross_entropy((3, 4), (2,))),
    (r"labels has shape \(3, 4\); expected \(3,\) to fit scores \(3, 4\)", cross_entropy((3, 4), (3, 4))),
    (r"scores has shape \(0, 4\); expected at least one sample", cross_entropy((0, 4), (0,))),
    (r"scores has shape \(3, 0\); expected at least one sample and one class", cross_entropy((3, 0), (3,))),
    (r"targets has shape \(3,\); expected \(3, 1\) to fit pred", lambda: ops.mean_squared_error(zeros(3, 1), zeros(3))),
    (r"predictions has shape \(0, 2\): the mean of no", lambda: ops.mean_squared_error(zeros(0, 2), zeros(0, 2))),
]


@pytest.mark.parametrize(("words", "call"), WRONG, ids=[words[:40] for words, _ in WRONG])
def test_what_does_not_fit_is_named(words: str, call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError if words.startswith("rng") else ValueError, match=words):
        call()
