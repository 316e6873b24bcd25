"""A fake CuPy with two GPUs and an NCCL: NumPy's arrays under CuPy's names, so that ranks can be tested anywhere.

Nothing is asynchronous here: an operation of NCCL's holds its thread until the others have come.
"""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np

from cupy import cuda as cuda
from unrolled import device

__version__ = "fake"


class ndarray(np.ndarray):  # noqa: N801  (CuPy's name)
    """An array that lies on no GPU, with CuPy's way to tell where."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self) -> Any:
        return np.asarray(self).copy()


def _made(function: Any) -> Any:
    return lambda *args, **named: function(*args, **named).view(ndarray)


zeros, ones, empty, full, arange = map(_made, (np.zeros, np.ones, np.empty, np.full, np.arange))
empty_like = _made(np.empty_like)


def asarray(x: Any) -> ndarray:
    return np.asarray(x).copy().view(ndarray)


def asnumpy(x: Any) -> Any:
    return np.asarray(x).copy()


device.register(ndarray, sys.modules[__name__])
