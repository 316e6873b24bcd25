"""What the simulated GPU refuses, in CuPy's words: mixing, moving by itself, what does not fit, what is missing."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

from unrolled import simgpu as cp

pytestmark = pytest.mark.usefixtures("t4")
HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


UNSUPPORTED = r"Unsupported type <class 'numpy.ndarray'>"
IMPLICIT = r"Implicit conversion to a NumPy array is not allowed\. Please use `.get\(\)`"


TAKES = (np.asarray, np.array, lambda x: np.dot(HOST, x))
MIXES: list[Callable[[Any], Any]] = [
    lambda x: x + HOST,
    lambda x: HOST + x,
    lambda x: x @ HOST.T,
    lambda x: HOST @ x.T,
    lambda x: x == HOST,
    lambda x: cp.maximum(x, HOST),
    lambda x: cp.add(x, x, out=HOST.copy()),
    lambda x: cp.where(x > 0, HOST, x),
    lambda x: cp.exp(HOST),
    lambda x: cp.concatenate([x, HOST]),
    lambda x: cp.matmul(x, HOST.T),
]
STRICTER: list[Callable[[Any], Any]] = [lambda x: cp.sum(HOST), lambda x: cp.reshape(HOST, 6)]
"""CuPy calls the argument's own method here, so that a host array stays on the host."""


@pytest.mark.parametrize("mix", MIXES + STRICTER)
def test_arrays_of_host_and_device_do_not_mix(mix: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=UNSUPPORTED):
        mix(cp.asarray(HOST))


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        *((lambda x, take=take: take(x), TypeError, f"{IMPLICIT}|{UNSUPPORTED}") for take in TAKES),
        (lambda x: HOST.copy().__iadd__(x), TypeError, ""),
        (lambda x: HOST.copy().__setitem__(Ellipsis, x), TypeError, IMPLICIT),
        (lambda x: x.__setitem__(Ellipsis, HOST), ValueError, r"non-scalar numpy\.ndarray cannot be used for fill"),
        (lambda x: x.__setitem__(0, [1, 2, 3]), ValueError, r"non-scalar numpy\.ndarray cannot be used for fill"),
        (lambda x: cp.add(x, [1, 2, 3]), TypeError, "Unsupported type <class 'list'>"),
        (lambda x: x.set(x), TypeError, r"Only numpy\.ndarray can be set"),
        (lambda x: x.set(HOST.T), ValueError, r"Shape mismatch. Old shape: \(2, 3\), new shape: \(3, 2\)"),
        (lambda x: x.set(HOST.astype(float)), TypeError, "float64 array cannot be set to float32 array"),
    ],
)
def test_the_host_cannot_take_a_device_array_by_itself(
    wrong: Callable[[Any], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words or None):
        wrong(cp.asarray(HOST))


def test_only_some_types_can_be_added_to_from_many_threads() -> None:
    counts = cp.zeros(3, "uint8")
    with pytest.raises(TypeError, match=r"add\.at only supports int32"):
        cp.add.at(counts, cp.asarray([0, 0, 2]), 1)
    cp.add.at(counts, slice(0, 2), 1)
    assert counts.tolist() == [1, 1, 0]


def test_set_and_get_move_whole_arrays_of_the_same_kind() -> None:
    x = cp.zeros((2, 3), dtype="float32")
    x.set(HOST)
    back = x.get()
    np.testing.assert_array_equal(back, HOST)
    back[0] = 7  # the host's own memory
    assert x.get()[0, 0] == 0
    columns = cp.asarray(np.asfortranarray(HOST))
    assert columns.flags.f_contiguous
    out = np.zeros_like(HOST)
    assert x.get(out=out) is out
    assert cp.asnumpy(HOST) is HOST
    for found, expected in (
        (x.T.get(), HOST.T),
        (x[:, ::2].get(), HOST[:, ::2]),
        (cp.asnumpy(x), HOST),
        (out, HOST),
        (columns.get(), HOST),
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda x: x + x.T, ValueError, r"could not be broadcast together with shapes \(2,3\) \(3,2\)"),
        (lambda x: cp.add(x, x, out=cp.zeros(3)), ValueError, r"output operand with shape \(3,\)"),
        (lambda x: cp.add(x, x, out=cp.zeros((2, 3), int)), TypeError, "Cannot cast ufunc 'add' output"),
        (lambda x: x.take(cp.zeros((1, 2), int), axis=0, out=x.copy()), ValueError, "Output shape mismatch"),
        (lambda x: x.take(cp.zeros(2, int), axis=0, out=cp.zeros((2, 3))), TypeError, "Output dtype mismatch"),
        (lambda x: x.dot(cp.zeros((4, 3, 5), "f4"), out=cp.zeros((2, 2, 4, 5), "f4")), ValueError, "dot: out has sh"),
        (lambda x: x.get(out=np.zeros((4, 2, 3), "f4")), ValueError, r"Expected shape: \(2, 3\), actual .*\(4, 2, 3"),
        (lambda x: x.get(out=np.zeros((2, 3))), TypeError, "float64 array cannot be obtained from float32 array"),
        (lambda x: cp.random.default_rng(0).random(out=x), TypeError, "Expected float64, got float32"),
        (lambda x: cp.random.default_rng(0).random(6, "f4", out=x), ValueError, r"size must match out\.shape"),
        (lambda x: x.get(out=x), TypeError, r"Only numpy\.ndarray can be obtained"),
        (lambda x: cp.nanvar(x, dtype="d"), NotImplementedError, r"write x.astype\('float64'\) first"),
        (lambda x: x.reshape(4), ValueError, r"cannot reshape array of size 6 into shape \(4,\)"),
        (lambda x: setattr(x, "shape", 4), ValueError, r"cannot reshape array of size 6 into shape \(4,\)"),
        (lambda x: setattr(x.T, "shape", 6), AttributeError, "Incompatible shape for in-place modification"),
        (lambda x: x @ x, ValueError, "matmul"),
        (lambda x: x @ 2, TypeError, "Unsupported type <class 'int'>"),
        (lambda x: x.sum(axis=2), ValueError, "axis 2 is out of bounds"),
        (lambda x: x[:0].max(), ValueError, "zero-size array to reduction operation cupy_max"),
        (lambda x: x[2], IndexError, "out of bounds"),
        (lambda x: x[0, 0, 0], IndexError, "too many indices"),
        (lambda x: x[cp.zeros(3)], IndexError, "integer or boolean"),
        (lambda x: x[cp.zeros(3, bool)], IndexError, "boolean index did not match"),
        (lambda x: x["a"], IndexError, "only integers, slices"),
        (lambda x: x[cp.arange(2), cp.arange(3)], IndexError, "indexing arrays could not be broadcast"),
        (lambda x: x.__setitem__(0, cp.zeros(2)), ValueError, r"from shape \(2,\) into shape \(3,\)"),
        (lambda x: cp.concatenate([x, x.T]), ValueError, "must match exactly"),
        (lambda x: x.transpose(0, 0), ValueError, "repeated axis"),
        (lambda x: cp.einsum("ij,jk", x, x), ValueError, "'j' has length 3 in one array and 2 in another"),
        (lambda x: cp.array([object()]), ValueError, "Unsupported dtype object"),
        (lambda x: bool(x), ValueError, "truth value of an array with more than one element is ambiguous"),
        (lambda x: float(x), TypeError, "arrays can be converted to Python scalars"),
        (lambda x: iter(x.sum()), TypeError, "iteration over a 0-d array"),
        (lambda x: hash(x), TypeError, "unhashable"),
        (lambda x: x.astype("uint8").__iadd__(300), OverflowError, "out of bounds for uint8"),
        (lambda x: cp.linalg.norm(x, ord="nuc"), ValueError, "not simulated"),
        (lambda x: cp.fft.rfft2(x.astype("complex64")), TypeError, "rfft2 of complex64 is not simulated"),
        (lambda x: cp.fft.irfft2(x), TypeError, "irfft2 of float"),
        (lambda x: cp.fft.rfft2(x, (4, 4, 4)), ValueError, "two axes and two lengths"),
        (lambda x: cp.fft.rfft2(x, (4, 0)), ValueError, "Invalid number of FFT data points"),
        (lambda x: cp.pad(x, 1, mode="edge"), ValueError, "border of one number only"),
        (lambda x: cp.einsum("...i", x), ValueError, "not simulated"),
        (lambda x: x.repeat([1, 2]), NotImplementedError, "not simulated: write x.cp.asarray"),
        (lambda x: x[1.5], IndexError, "a float is not simulated: write int"),
        (lambda x: cp.arctan2(x, 1j), NotImplementedError, "arctan2 of complex numbers is not simulated"),
        (lambda x: cp.power(x, x, dtype="int8"), NotImplementedError, "dtype='int8'. is not simulated"),
        (lambda x: cp.maximum.at(x.astype("d"), x[:1].astype(int), 1), NotImplementedError, "float64 is not simulated"),
        (lambda x: x.argmax(axis=(0, 1)), NotImplementedError, "argmax along several axes is not simulated"),
        (lambda x: x.std(dtype=int), NotImplementedError, "std in int64 is not simulated"),
        (lambda x: (x * 1j).sum(dtype="i"), NotImplementedError, "sum of complex numbers in int32 is not simulated"),
    ],
)
def test_errors_say_what_does_not_fit(wrong: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        wrong(cp.asarray(HOST))


@pytest.mark.parametrize(
    "name", ["sparse", "random.poisson", "cuda.PinnedMemory", "cuda.runtime.streamDestroy", "fft.fft"]
)
def test_what_is_missing_says_that_it_is_not_simulated(name: str) -> None:
    with pytest.raises(AttributeError, match=f"{name} is not simulated"):
        attrgetter(name)(cp)
