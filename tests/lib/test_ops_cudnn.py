"""The door to cuDNN where there is none: what it says when it is missing, and what it would ask of it."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from unrolled import ops
from unrolled.ops import cudnn
from unrolled.ops.windows import Windows

X, WEIGHT = np.zeros((2, 3, 6, 5), np.float32), np.zeros((4, 3, 3, 3), np.float32)
GRAD = np.zeros((2, 4, 4, 3), np.float32)


CUPY = SimpleNamespace(__name__="cupy")


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Any:
    """No package of the front end, and nothing kept from one."""
    kept = (cudnn.frontend, cudnn._handle, cudnn._compiled)
    for function in kept:
        function.cache_clear()
    monkeypatch.setitem(sys.modules, "cudnn", None)
    yield
    for function in kept:
        function.cache_clear()


def test_arrays_of_the_host_are_named() -> None:
    message = "x is an array of numpy; method 'cudnn' expects CuPy's, on an NVIDIA GPU"
    with pytest.raises(ValueError, match=message):
        ops.conv2d(X, WEIGHT, method="cudnn")
    with pytest.raises(ValueError, match=message):
        ops.conv2d_backward(GRAD, X, WEIGHT, method="cudnn")


def test_a_missing_package_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cudnn, "array_module", lambda x: CUPY)
    with pytest.raises(ImportError, match="method 'cudnn' needs cuDNN and its front end: pip install nvidia-cudnn-f"):
        cudnn.check(X)


def test_a_missing_library_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> int:
        raise RuntimeError("libcudnn is not there")

    monkeypatch.setitem(sys.modules, "cudnn", SimpleNamespace(backend_version=broken))
    with pytest.raises(ImportError, match=r"nvidia-cudnn-cu12 .*\(libcudnn is not there\)"):
        cudnn.frontend()


class Tensor:
    """A tensor of a graph: its shape and strides, and whether it is written."""

    def __init__(self, dim: Any = None, stride: Any = None, name: str = "") -> None:
        self.dim, self.stride, self.name, self.written = dim, stride, name, False

    def set_output(self, value: bool) -> Tensor:
        self.written = value
        return self

    def set_dim(self, dim: Any) -> Tensor:
        self.dim = dim
        return self

    def set_stride(self, stride: Any) -> Tensor:
        self.stride = stride
        return self


class Graph:
    """Notes the operation that it was asked for."""

    asked: tuple[str, dict[str, Any]]

    def tensor(self, **options: Any) -> Tensor:
        return Tensor(**options)

    def __getattr__(self, name: str) -> Any:
        def operation(**options: Any) -> Tensor:
            self.asked = name, options
            return Tensor()

        return operation


@pytest.mark.parametrize(
    ("kind", "name", "read", "written"),
    [
        ("fprop", "conv_fprop", {"image": X.shape, "weight": WEIGHT.shape}, GRAD.shape),
        ("wgrad", "conv_wgrad", {"image": X.shape, "loss": GRAD.shape}, WEIGHT.shape),
        ("dgrad", "conv_dgrad", {"loss": GRAD.shape, "filter": WEIGHT.shape}, X.shape),
    ],
)
def test_each_pass_is_described_by_its_tensors(kind: str, name: str, read: dict[str, Any], written: Any) -> None:
    graph, windows = Graph(), Windows.over(X.shape[2:], 3, (2, 1), (1, 0))
    shapes = X.shape, WEIGHT.shape, GRAD.shape
    *inputs, output = cudnn._describe(graph, cudnn.Operation(kind, *shapes, windows.stride, windows.padding, False))
    asked, options = graph.asked
    assert asked == name
    assert (options["stride"], options["padding"], options["dilation"]) == ([2, 1], [1, 0], [1, 1])
    assert [options[key] for key in read] == inputs
    assert [tuple(tensor.dim) for tensor in inputs] == list(read.values())
    assert output.written
    assert tuple(output.dim) == written
    for tensor in (*inputs, output):
        there = np.zeros(tuple(tensor.dim), np.float32)
        assert [4 * step for step in tensor.stride] == list(there.strides)
