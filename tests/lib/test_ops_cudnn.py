"""The door to cuDNN where there is none: what it says when it is missing, and what it would ask of it."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from unrolled import ops
from unrolled.ops import cudnn

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
