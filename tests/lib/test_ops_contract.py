"""What holds for every operation: the array contract, dtypes, untouched inputs, any memory layout, no images."""

import importlib
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ops_cases import Call
from strict_arrays import strict

from unrolled import device, ops

RNG = np.random.default_rng(7)


def floats(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


X, WEIGHT, BIAS = floats(2, 3, 6, 5), floats(4, 3, 3, 2), floats(4)
Y = ops.conv2d(X, WEIGHT, BIAS, (2, 1), (1, 2))
POOLED, WHERE = ops.max_pool2d(X, 3, 2, 1), ops.max_pool2d_indices(X, 3, 2, 1)
SAMPLES, MATRIX = floats(5, 7), floats(4, 7)
LABELS = np.array([0, 6, 3, 3, 1])
COLUMNS = ops.im2col(X, (3, 2), 2, 1)

CALLS = {
    "conv2d": Call(ops.conv2d, (X, WEIGHT, BIAS), ((2, 1), (1, 2))),
    "conv2d, no bias": Call(ops.conv2d, (X, WEIGHT)),
    "conv2d_backward": Call(ops.conv2d_backward, (Y, X, WEIGHT), ((2, 1), (1, 2))),
    "conv2d_loops": Call(ops.conv2d_loops, (X[:1], WEIGHT[:2], BIAS[:2]), (2, 1)),
    "conv2d_positions": Call(ops.conv2d_positions, (X, WEIGHT, BIAS), (2, 1)),
    "im2col": Call(ops.im2col, (X,), ((3, 2), 2, 1), computes=False),
    "col2im": Call(ops.col2im, (COLUMNS,), (X.shape, (3, 2), 2, 1), computes=False),
    "col2im_loops": Call(ops.col2im_loops, (COLUMNS,), (X.shape, (3, 2), 2, 1), computes=False),
    "max_pool2d": Call(ops.max_pool2d, (X,), (3, 2, 1), computes=False),
    "max_pool2d_loops": Call(ops.max_pool2d_loops, (X,), (3, 2, 1), computes=False),
    "max_pool2d_with_indices": Call(ops.max_pool2d_with_indices, (X,), (3, 2, 1), computes=False, gives="int64"),
    "max_pool2d_indices": Call(ops.max_pool2d_indices, (X,), (3, 2, 1), gives="int64"),
    "max_pool2d_backward": Call(ops.max_pool2d_backward, (POOLED, X), (3, 2, 1), computes=False),
    "max_unpool2d": Call(ops.max_unpool2d, (POOLED,), ((6, 5),), computes=False, integers=(WHERE,)),
    "max_unpool2d_loops": Call(ops.max_unpool2d_loops, (POOLED, X), (3, 2, 1), computes=False),
    "max_unpool2d_mask": Call(ops.max_unpool2d_mask, (POOLED, X), (3, 2, 1), computes=False),
    "avg_pool2d": Call(ops.avg_pool2d, (X,), (3, 2, 1)),
    "avg_pool2d_backward": Call(ops.avg_pool2d_backward, (POOLED,), (X.shape, 3, 2, 1)),
    "affine": Call(ops.affine, (SAMPLES, MATRIX, BIAS)),
    "affine_one_by_one": Call(ops.affine_one_by_one, (SAMPLES, MATRIX, BIAS)),
    "affine_backward": Call(ops.affine_backward, (SAMPLES @ MATRIX.T, SAMPLES, MATRIX)),
    "relu": Call(ops.relu, (SAMPLES,), computes=False),
    "relu_backward": Call(ops.relu_backward, (SAMPLES, SAMPLES), computes=False),
    "step": Call(ops.step, (SAMPLES,)),
    "step_backward": Call(ops.step_backward, (SAMPLES, SAMPLES)),
    "leaky_relu": Call(ops.leaky_relu, (SAMPLES,), (0.2,)),
    "leaky_relu_backward": Call(ops.leaky_relu_backward, (SAMPLES, SAMPLES), (0.2,)),
    "softplus": Call(ops.softplus, (SAMPLES,)),
    "softplus_backward": Call(ops.softplus_backward, (SAMPLES, SAMPLES)),
    "sigmoid": Call(ops.sigmoid, (SAMPLES,)),
    "sigmoid_backward": Call(ops.sigmoid_backward, (SAMPLES, SAMPLES)),
    "tanh": Call(ops.tanh, (SAMPLES,)),
    "tanh_backward": Call(ops.tanh_backward, (SAMPLES, SAMPLES)),
    "softmax": Call(ops.softmax, (SAMPLES,)),
    "softmax_backward": Call(ops.softmax_backward, (SAMPLES, SAMPLES)),
    "softmax_cross_entropy": Call(ops.softmax_cross_entropy, (SAMPLES,), integers=(LABELS,)),
    "mean_squared_error": Call(ops.mean_squared_error, (SAMPLES, SAMPLES[::-1].copy())),
    "batch_statistics": Call(ops.batch_statistics, (X,)),
    "batch_norm2d": Call(ops.batch_norm2d, (X, BIAS[:3], BIAS[1:])),
    "batch_norm2d, running": Call(ops.batch_norm2d, (X, BIAS[:3], BIAS[1:], BIAS[:3], BIAS[:3] ** 2)),
    "batch_norm2d_backward": Call(ops.batch_norm2d_backward, (X[::-1].copy(), X, BIAS[:3])),
    "matmul_loops": Call(ops.matmul_loops, (SAMPLES[:3], MATRIX[:2].T)),
    "matmul_rows": Call(ops.matmul_rows, (SAMPLES, MATRIX.T)),
}
for beside in sorted(Path(__file__).parent.glob("test_ops_*.py")):  # a topic may keep calls of its operations itself
    if beside != Path(__file__) and "\nCALLS = {" in beside.read_text(encoding="utf-8"):
        CALLS |= importlib.import_module(beside.stem).CALLS
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


def test_no_operation_on_arrays_is_missing_here() -> None:
    tried = {call.function.__name__ for call in CALLS.values()}
    functions = {name for name in ops.__all__ if inspect.isfunction(getattr(ops, name))}
    on_arrays = {name for name in functions if "Array" in str(inspect.signature(getattr(ops, name)))}
    assert tried == on_arrays - {"numeric_gradient"}


@every_call
def test_calls_only_supported_names(call: Call) -> None:
    results = call(*(strict.asarray(x) for x in call.arrays))
    for result, expected in zip(results, call(), strict=True):
        assert device.array_module(result) is strict
        np.testing.assert_allclose(device.to_host(result), expected, rtol=1e-5, atol=1e-5)


@every_call
def test_floats_keep_their_dtype_and_integers_count_as_float32_where_it_computes(call: Call) -> None:
    integers = "float32" if call.computes else "int64"
    for dtype, expected in (("float32", "float32"), ("float64", "float64"), ("int64", integers)):
        assert {result.dtype.name for result in call(*(x.astype(dtype) for x in call.arrays))} <= {expected, call.gives}


@every_call
def test_float16_is_computed_in_float32_and_rounded_once_or_refused(call: Call) -> None:
    half = tuple(x.astype(np.float16) for x in call.arrays)
    if call.function.__name__.startswith("fft_"):
        with pytest.raises(ValueError, match="is float16"):
            call(*half)
        return
    wide = call(*(x.astype(np.float32) for x in half))
    ulps = 4 if call.function.__name__ == "lstm_backward" else 0  # what it keeps of the way there is float16, too
    for result, expected in zip(call(*half), wide, strict=True):
        np.testing.assert_allclose(result, expected.astype(result.dtype), rtol=ulps * 2**-10, atol=ulps * 2**-14)


@pytest.mark.parametrize(
    "sums",
    [
        lambda ones: ops.affine_backward(ones, ones, ones[:2])[2],
        lambda ones: ops.batch_norm2d_backward(ones[..., None, None], ones[..., None, None], ones[0])[2],
        lambda ones: ops.matmul_loops(ones.T, ones)[0, 0],
        lambda ones: ops.col2im(ones.reshape(1, -1), (1, 1, 100, 100), 1),
        lambda ones: ops.max_unpool2d(ones[None, None], np.zeros((1, 1, 5000, 2), int), 1)[0, 0, 0, 0] / 2,
    ],
    ids=["affine_backward", "batch_norm2d_backward", "matmul_loops", "col2im", "max_unpool2d"],
)
def test_a_sum_in_float16_does_not_stand_still_at_2048(sums: Any) -> None:
    ones = np.ones((5000, 2), np.float16)
    found = np.unique(sums(ones))
    assert found.dtype == np.float16
    assert found in ([5000], [1])


@every_call
def test_inputs_may_be_read_only_and_are_not_changed_and_share_no_memory_with_results(call: Call) -> None:
    copies = tuple(x.copy() for x in call.arrays)
    for copy in copies:
        copy.flags.writeable = False
    results = call(*copies)
    for copy, original in zip(copies, call.arrays, strict=True):
        np.testing.assert_array_equal(copy, original)
        assert not any(np.shares_memory(result, copy) for result in results)


@every_call
def test_any_memory_layout_gives_the_same(call: Call) -> None:
    def strided(x: Any) -> Any:
        """The same values in Fortran order, with gaps, read backwards."""
        room = np.full((*(2 * n for n in x.shape),), np.nan, dtype=x.dtype, order="F")
        every_second = tuple(slice(None, None, 2) for _ in x.shape)
        backwards = tuple(slice(None, None, -1) for _ in x.shape)
        room[every_second] = x[backwards]
        return room[every_second][backwards]

    for result, expected in zip(call(*(strided(x) for x in call.arrays)), call(), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


NO_IMAGES = {
    "im2col": (ops.im2col, (X[:0], 3), (27, 0)),
    "max_pool2d": (ops.max_pool2d, (X[:0], 2), (0, 3, 3, 2)),
    "max_pool2d_backward": (ops.max_pool2d_backward, (POOLED[:0], X[:0], 3, 2, 1), (0, 3, 6, 5)),
    "max_unpool2d": (ops.max_unpool2d, (POOLED[:0], WHERE[:0], (6, 5)), (0, 3, 6, 5)),
    "avg_pool2d": (ops.avg_pool2d, (X[:0], 2), (0, 3, 3, 2)),
    "avg_pool2d_backward": (ops.avg_pool2d_backward, (POOLED[:0], (0, 3, 6, 5), 3, 2, 1), (0, 3, 6, 5)),
    "affine": (ops.affine, (SAMPLES[:0], MATRIX, BIAS), (0, 4)),
    "softmax_backward": (ops.softmax_backward, (SAMPLES[:0], SAMPLES[:0]), (0, 7)),
    "batch_norm2d": (ops.batch_norm2d, (X[:0], *(BIAS[:3],) * 3, BIAS[:3] ** 2), (0, 3, 6, 5)),
}


@pytest.mark.parametrize(("function", "arguments", "shape"), NO_IMAGES.values(), ids=NO_IMAGES.keys())
def test_no_images_give_no_results(function: Any, arguments: Any, shape: tuple[int, ...]) -> None:
    result = function(*arguments)
    assert result.shape == shape
    assert result.dtype == np.float32
