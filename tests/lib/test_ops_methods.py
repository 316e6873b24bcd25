"""The methods of conv2d: each gives the same, gemm stays as it was, auto follows its table; what each refuses."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ops_cases import Call, Geometry
from strict_arrays import strict

from unrolled import ops
from unrolled.ops import cudnn, fft, methods
from unrolled.ops.windows import Windows


def floats(*shape: int) -> Any:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


def by_4(x: Any, weight: Any, bias: Any) -> Any:
    return ops.winograd_conv2d(x, weight, bias, 1, 1, tile=4)


def by_4_backward(grad: Any, x: Any, weight: Any) -> Any:
    return ops.winograd_conv2d_backward(grad, x, weight, 1, 1, tile=4)


by_4.__name__, by_4_backward.__name__ = "winograd_conv2d", "winograd_conv2d_backward"
IMAGES, OBLONG, SQUARE, ALONG = floats(2, 3, 6, 5), floats(4, 3, 3, 2), floats(4, 3, 3, 3), floats(4)
LONG, LONG_WEIGHT = floats(1, 1, 3, 90), floats(2, 1, 2, 3)
STRIDED = (2, 1), (1, 2)
CALLS = {
    "fft_conv2d": Call(ops.fft_conv2d, (IMAGES, OBLONG, ALONG), STRIDED),
    "fft_conv2d, no bias": Call(ops.fft_conv2d, (IMAGES, OBLONG)),
    "fft_conv2d, tiles": Call(ops.fft_conv2d, (LONG, LONG_WEIGHT)),
    "fft_conv2d_backward": Call(ops.fft_conv2d_backward, (floats(2, 4, 3, 8), IMAGES, OBLONG), STRIDED),
    "fft_conv2d_backward, tiles": Call(ops.fft_conv2d_backward, (floats(1, 2, 2, 88), LONG, LONG_WEIGHT)),
    "winograd_conv2d": Call(ops.winograd_conv2d, (IMAGES, SQUARE, ALONG), (1, (1, 2))),
    "winograd_conv2d, no bias": Call(ops.winograd_conv2d, (IMAGES, SQUARE)),
    "winograd_conv2d, 4": Call(by_4, (IMAGES, SQUARE, ALONG)),
    "winograd_conv2d_backward": Call(ops.winograd_conv2d_backward, (floats(2, 4, 6, 5), IMAGES, SQUARE), (1, 1)),
    "winograd_conv2d_backward, 4": Call(by_4_backward, (floats(2, 4, 6, 5), IMAGES, SQUARE)),
}
"""For `test_ops_contract.py`."""

X, WEIGHT, BIAS = Geometry(2, 3, 4, (7, 6), (3, 3), (1, 1), (1, 1), 0).arrays()
Y = ops.conv2d(X, WEIGHT, BIAS, padding=1)
GRAD = np.random.default_rng(1).normal(size=Y.shape)
EVERY_METHOD = pytest.mark.parametrize("method", [method for method in methods.METHODS if method != "cudnn"])


@EVERY_METHOD
def test_every_method_gives_the_same_and_its_gradients_go_into_given_arrays(method: str) -> None:
    np.testing.assert_allclose(ops.conv2d(X, WEIGHT, BIAS, padding=1, method=method), Y, rtol=1e-9, atol=1e-9)
    out = np.full(WEIGHT.shape, np.nan), np.full(BIAS.shape, np.nan)
    grad_x, *gradients = ops.conv2d_backward(GRAD, X, WEIGHT, 1, 1, method=method, input_gradient=False, out=out)
    assert grad_x is None
    assert all(gradient is given for gradient, given in zip(gradients, out, strict=True))
    expected = ops.conv2d_backward(GRAD, X, WEIGHT, padding=1)
    np.testing.assert_allclose(out[0], expected[1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(out[1], expected[2], rtol=1e-9, atol=1e-9)


def test_auto_follows_the_measured_crossovers() -> None:
    def auto(kernel: int, n: int, c: int, o: int, stride: int = 1, size: int = 64) -> str:
        return methods.fastest(Windows.over(size, kernel, stride, 0), n, c, o)

    enough = methods.FFT_IMAGES
    for few, kernel in methods.FFT_KERNELS.items():
        assert auto(kernel, enough, few, 4 * few) == auto(kernel, enough, 4 * few, few) == "fft"
        assert auto(kernel - 1, enough, few, few) == auto(kernel, enough - 1, few, few) == "gemm"
        assert auto(kernel, enough, few, few, stride=2) == "gemm"
    many = methods.WINOGRAD_CHANNELS
    assert auto(3, 1, many, many) == "winograd"
    assert {auto(3, 1, many - 1, many), auto(3, 1, many, many - 1), auto(3, 1, many, many, stride=2)} == {"gemm"}
    assert [auto(3, n, many, many, size=16) for n in (3, 4, 99)] == ["gemm", "winograd", "winograd"]
    assert auto(3, 99, many, many, size=9) == "gemm"  # few images at a time, however many there are
    assert auto(5, enough, many, many) == auto(1, enough, 0, many) == "gemm"


def test_auto_on_a_gpu_follows_kernels_and_multiplications() -> None:
    def auto(kernel: int, n: int, channels: int, size: int, stride: int = 1) -> str:
        return methods.fastest_on_gpu(Windows.over(size, kernel, stride, kernel // 2), n, channels, channels)

    assert auto(7, 8, 16, 256) == auto(31, 8, 16, 64) == "fft"
    assert auto(5, 99, 256, 256) == auto(7, 8, 16, 64) == auto(31, 8, 1, 64) == auto(7, 99, 16, 256, 2) == "gemm"
    edge = methods.GPU_FFT_PRODUCTS / (64 * 64 * 15 * 15 * 16 * 16)
    assert [auto(15, int(edge) + more, 16, 64) for more in (0, 1)] == ["gemm", "fft"]


@pytest.mark.parametrize(("chooser", "module"), [("fastest", np), ("fastest_on_gpu", strict)])
def test_auto_takes_what_it_chose_and_gemm_for_float16(
    chooser: str, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[Any] = []
    monkeypatch.setattr(methods, chooser, lambda *geometry: chosen.append(geometry[1:]) or "fft")
    windows = Windows.over(X.shape[2:], 3, 1, 0)
    x, weight = module.asarray(X), module.asarray(WEIGHT)
    assert methods.module_for("auto", x, weight, windows) is fft
    assert chosen == [(2, 3, 4)]
    assert methods.module_for("auto", x.astype("float16"), weight, windows) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight": np.zeros((4, 3, 3, 1))}, r"weight has kernels of \(3, 1\); expected \(3, 3\) for Winograd"),
        ({"stride": (1, 2)}, r"stride is \(1, 2\); expected 1 for Winograd"),
        ({"tile": 3}, "tile is 3; expected 2 or 4"),
    ],
)
def test_what_winograd_does_not_take_is_named_both_ways(changes: dict[str, Any], message: str) -> None:
    arguments = {"x": np.zeros((2, 3, 8, 8)), "weight": np.zeros((4, 3, 3, 3))} | changes
    with pytest.raises(ValueError, match=message):
        ops.winograd_conv2d(**arguments)
    grad = np.zeros((2, 4, *ops.conv2d_output_size((8, 8), arguments["weight"].shape[2:], changes.get("stride", 1))))
    with pytest.raises(ValueError, match=message):
        ops.winograd_conv2d_backward(grad, **arguments)


HALF = X.astype(np.float16), WEIGHT.astype(np.float16)
ON_HOST = "x is an array of numpy; method 'cudnn' expects CuPy's, on an NVIDIA GPU"
FLOAT16 = "x is float16; expected float32 or float64"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.fft_conv2d(*HALF), FLOAT16),
        (lambda: ops.fft_conv2d_backward(GRAD.astype(np.float16), *HALF, 1, 1), FLOAT16),
        (lambda: ops.conv2d(X, WEIGHT, method="cudnn"), ON_HOST),
        (lambda: ops.conv2d_backward(GRAD, X, WEIGHT, 1, 1, method="cudnn"), ON_HOST),
    ],
)
def test_arrays_that_a_method_does_not_take_are_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_missing_package_or_library_of_cudnn_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> int:
        raise RuntimeError("libcudnn is not there")

    kept = (cudnn.frontend, cudnn._handle, cudnn._compiled)
    for function in kept:
        function.cache_clear()
    monkeypatch.setattr(cudnn, "array_module", lambda x: SimpleNamespace(__name__="cupy"))
    monkeypatch.setitem(sys.modules, "cudnn", None)
    with pytest.raises(ImportError, match="method 'cudnn' needs cuDNN and its front end: pip install nvidia-cudnn-f"):
        cudnn.check(IMAGES)
    monkeypatch.setitem(sys.modules, "cudnn", SimpleNamespace(backend_version=broken))
    with pytest.raises(ImportError, match=r"nvidia-cudnn-cu12 .*\(libcudnn is not there\)"):
        cudnn.frontend()
    for function in kept:
        function.cache_clear()
