"""Random shapes for the operations, calls of them, and the comparison with PyTorch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

from unrolled import device

Array = Any


class Geometry(NamedTuple):
    """One convolution or pooling: shapes that fit."""

    n: int
    c: int
    o: int
    size: tuple[int, int]
    kernel_size: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    seed: int

    def arrays(self, dtype: Any = np.float64) -> tuple[Array, Array, Array]:
        """x, weight, bias."""
        rng = np.random.default_rng(self.seed)
        shapes = ((self.n, self.c, *self.size), (self.o, self.c, *self.kernel_size), (self.o,))
        x, weight, bias = (rng.normal(size=shape).astype(dtype) for shape in shapes)
        return x, weight, bias


@dataclass(frozen=True)
class Call:
    """An operation with arguments that exercise it."""

    function: Callable[..., Any]
    arrays: tuple[Any, ...]
    options: tuple[Any, ...] = ()
    computes: bool = True  # False: only moves or selects values, so that integers stay integers
    integers: tuple[Any, ...] = ()  # labels or indices, which follow the arrays and keep their dtype
    gives: str | None = None  # a dtype of results that is the same whatever comes in: that of indices

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        arrays = arrays or self.arrays
        module = device.array_module(*arrays)
        integers = self.integers if module is np else tuple(map(module.asarray, self.integers))
        result = self.function(*arrays, *integers, *self.options)
        return result if isinstance(result, tuple) else (result,)


def pairs(least: int, most: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(least, most), st.integers(least, most))


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    """Any batch (over and under a block of 8), odd sizes, strides, paddings; 1 x 1 kernels and kernel = image too."""
    size, padding = draw(pairs(1, 9)), draw(pairs(0, 3))
    padded = [s + 2 * p for s, p in zip(size, padding, strict=True)]
    kernels = st.tuples(*(st.integers(1, min(5, s)) for s in padded))
    special = st.sampled_from([(1, 1), size])
    return Geometry(
        n=draw(st.sampled_from([1, 2, 7, 9])),
        c=draw(st.integers(1, 4)),
        o=draw(st.integers(1, 5)),
        size=size,
        kernel_size=draw(st.one_of(kernels, special)),
        stride=draw(pairs(1, 4)),
        padding=padding,
        seed=draw(st.integers(0, 2**16)),
    )


@st.composite
def pooling_geometries(draw: st.DrawFn) -> Geometry:
    """As `geometries`, with padding of at most half a window, which is what PyTorch allows."""
    kernel_size = draw(pairs(1, 4))
    padding = tuple(draw(st.integers(0, k // 2)) for k in kernel_size)
    least = [max(1, k - 2 * p) for k, p in zip(kernel_size, padding, strict=True)]
    size = tuple(draw(st.integers(s, 9)) for s in least)
    n, c = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return Geometry(n, c, 1, size, kernel_size, draw(pairs(1, 4)), padding, draw(st.integers(0, 2**16)))


def agrees_with_torch(
    peer: Callable[..., Any],
    arrays: Sequence[Array],
    function: Callable[..., Array],
    backward: Callable[[Array], Any],
    tolerance: float = 1e-9,
) -> None:
    """Fail unless function(*arrays) is peer(torch.nn.functional, *tensors), and backward(grad) are its gradients."""
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    tensors = [torch.tensor(x, requires_grad=True) for x in arrays]
    expected, y = peer(torch.nn.functional, *tensors), function(*arrays)
    assert y.dtype == arrays[0].dtype
    np.testing.assert_allclose(y, expected.detach(), rtol=tolerance, atol=tolerance)
    grad = np.asarray(np.random.default_rng(y.size).normal(size=y.shape), y.dtype)
    expected.backward(torch.tensor(grad))
    found = backward(grad)
    for gradient, tensor in zip(found if isinstance(found, tuple) else (found,), tensors, strict=True):
        np.testing.assert_allclose(gradient, tensor.grad, rtol=10 * tolerance, atol=tolerance)
