"""The simulated GPU's arrays against NumPy's, over random shapes, dtypes, layouts and views: the same bits.

Where CuPy works, the same programs run on CuPy (`pytest -m gpu`), to a tolerance.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simgpu_cases import DTYPES, arrays, kept, keys, on, placed, same

from unrolled import simgpu as cp

ELEMENTWISE = """
    add subtract multiply divide maximum minimum greater less_equal equal not_equal
    negative absolute square sqrt exp log log1p tanh isfinite floor sin
"""
REDUCTIONS = ["sum", "mean", "max", "min", "prod", "any", "all", "var", "std", "argmax", "argmin", "cumsum"]
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.lt, operator.ge]
NUMBERS: Any = st.sampled_from([0, 1, 2, 3, -1, 0.5, -2.25, True, np.float32(1.5), np.float64(0.1), np.int64(3)])


@pytest.mark.parametrize("name", ELEMENTWISE.split())
@given(data=st.data())
def test_element_wise_functions(name: str, data: Any) -> None:
    same(name, lambda m, *x: getattr(m, name)(*x), *data.draw(arrays(getattr(np, name).nin)))


def written(change: Callable[..., Any]) -> Callable[..., Any]:
    """A program that changes its first array in place."""

    def program(m: Any, x: Any, *others: Any) -> Any:
        change(m, x, *others)
        return x

    return program


@pytest.mark.parametrize("function", OPERATORS)
@given(data=st.data(), number=NUMBERS)
def test_operators_with_numbers_on_either_side(function: Any, data: Any, number: Any) -> None:
    (a,) = data.draw(arrays(1))
    if function is operator.pow and (a.dtype == bool or (a.dtype.kind in "iu" and number == -1)):
        return  # NumPy looks at the number first: it refuses -1, and squares a bool in int8
    same(function, lambda m, x: function(x, number), a)
    same(function, lambda m, x: function(number, x), a)


@given(data=st.data(), number=NUMBERS)
def test_operators_in_place_keep_the_array_and_its_dtype(data: Any, number: Any) -> None:
    def change(m: Any, x: Any, y: Any) -> Any:
        before = x
        x += y
        x *= number
        assert x is before

    same("+= and *=", written(change), *data.draw(arrays(2)))


@given(data=st.data(), dtype=st.sampled_from(DTYPES))
def test_out_and_dtype(data: Any, dtype: str) -> None:
    """With dtype= operands are cast however unsafe that is."""
    a, b = data.draw(arrays(2))

    def add(m: Any, x: Any, y: Any) -> Any:
        out = m.zeros(np.broadcast_shapes(x.shape, y.shape), dtype=dtype)
        assert m.add(x, y, out=out) is out
        return out

    unsafe = {np: {"casting": "unsafe"}}
    same("add", add, a, b)
    same("add", lambda m, x, y: m.add(x, y, dtype=dtype, **unsafe.get(m, {})), abs(a), abs(b))


@given(data=st.data())
def test_results_lie_in_memory_as_numpys_do(data: Any) -> None:
    """So that what reads them next adds up in the same order."""
    a, b = data.draw(arrays(2))
    if not a.size or not b.size:
        return
    axis = data.draw(st.sampled_from([None, *range(a.ndim)]))
    programs = [
        lambda m, x, y: m.multiply(x, y),
        lambda m, x, y: m.where(x, x, y),
        lambda m, x, y: m.exp(x),
        lambda m, x, y: x.astype("float32"),
        lambda m, x, y: m.zeros_like(x),
        lambda m, x, y: m.sum(x, axis=axis),
        lambda m, x, y: m.max(x, axis=axis, keepdims=True),
    ]
    for number, program in enumerate(programs):
        results = np.asarray(program(np, kept(a), kept(b))), program(cp, placed(cp, a), placed(cp, b))
        steps = [[step for step, n in zip(x.strides, x.shape, strict=True) if n > 1] for x in results]
        assert steps[0] == steps[1], number


@pytest.mark.parametrize("name", REDUCTIONS)
@given(data=st.data())
def test_reductions(name: str, data: Any) -> None:
    (a,) = data.draw(arrays(1))
    axis = data.draw(st.sampled_from([None, *range(-a.ndim, a.ndim)]))
    if name == "cumsum" and a.dtype == "float32":  # adds in float64, as little as CuPy loses: exact for eighths
        a = np.round(a * 8) / 8
    same(name, lambda m, x: getattr(m, name)(x, axis=axis), a)
    same(name, lambda m, x: getattr(x, name)(axis), a)
    if name != "cumsum":
        same(name, lambda m, x: getattr(m, name)(x, axis=axis, keepdims=True), a)


@pytest.mark.parametrize("name", ["sum", "max", "mean", "all"])
@given(data=st.data())
def test_reductions_over_several_axes_with_dtype_and_out(name: str, data: Any) -> None:
    (a,) = data.draw(arrays(1))
    axes = tuple(data.draw(st.sets(st.sampled_from(range(a.ndim))))) if a.ndim else ()
    same(name, lambda m, x: getattr(m, name)(x, axis=axes), a)
    if name in ("sum", "mean"):
        same(name, lambda m, x: getattr(m, name)(x, axis=axes, dtype="float64"), a)

    def into(m: Any, x: Any) -> Any:
        out = m.empty_like(getattr(m, name)(x, axis=axes))
        assert getattr(m, name)(x, axis=axes, out=out) is out
        return out

    exact = name in ("max", "all") or a.dtype.kind not in "fc"  # NumPy may add up in another order into `out`
    if axes and len(axes) < a.ndim and exact:
        same(name, into, a)


@given(data=st.data())
def test_basic_indexing_reads_writes_and_shares_memory(data: Any) -> None:
    (a,) = data.draw(arrays(1))
    key = data.draw(keys(a.shape))
    same(key, lambda m, x: x[key], a)

    place = key if Ellipsis in key else (*key, ...)  # NumPy has no view of a single value otherwise

    def write(m: Any, x: Any) -> None:
        view = x[place]
        view[...] = 1
        view *= 3
        x[place] += 1

    same(key, written(write), a)


@given(data=st.data())
def test_advanced_indexing(data: Any) -> None:
    (a,) = data.draw(arrays(1, least=1))
    key = data.draw(keys(a.shape, advanced=True))
    same(key, lambda m, x: x[on(m, key)], a)

    def write(m: Any, x: Any) -> None:
        x[on(m, key)] = 7
        x[on(m, key)] = x[on(m, key)]

    same(key, written(write), a)
    if a.dtype not in (bool, np.uint8):  # the GPU has no such atomic addition
        same(key, written(lambda m, x: m.add.at(x, on(m, key), 2)), a)


def test_an_assigned_array_loses_axes_of_length_1_in_front() -> None:
    def write(m: Any, x: Any) -> None:
        x[0] = m.ones((1, 1, 3))
        x[m.array([1])] = m.full((1, 1, 1, 3), 2)

    same("x[0] = ...", written(write), np.zeros((2, 3)))


@given(data=st.data())
def test_a_mask_reads_and_writes(data: Any) -> None:
    (a,) = data.draw(arrays(1, least=1))
    same("x[x > 1]", lambda m, x: x[x > 1], a)
    same("nonzero", lambda m, x: m.stack(m.nonzero(x)), a)

    def write(m: Any, x: Any) -> None:
        x[x > 1] = 0
        x[x == 0] = x[x == 0] + x[x == 0]

    same("x[x > 1] = 0", written(write), a)


@given(data=st.data())
def test_choices_and_shapes(data: Any) -> None:
    a, b = data.draw(arrays(2, least=1))
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    order = data.draw(st.permutations(range(a.ndim)))
    last = a.shape[-1]
    window = tuple(data.draw(st.integers(1, max(1, n))) for n in a.shape)
    repeated = (*a.shape[:-1], min(1, a.shape[-1]), 2)
    same("where", lambda m, x, y: m.where(x > 0, x, y), a, b)
    programs = {
        "where with a number": lambda m, x: m.where(x > 0, x, 0.5),
        "where with two numbers": lambda m, x: m.where(x > 0, 1, 2.5),
        "clip": lambda m, x: m.clip(x, 1, 3) if x.dtype != bool else x,
        "clip below": lambda m, x: x.clip(1, None) if x.dtype != bool else x,
        "windows": lambda m, x: m.lib.stride_tricks.sliding_window_view(x, window).sum(axis=-1),
        "strided": lambda m, x: m.lib.stride_tricks.as_strided(x, repeated, (*x.strides, 0)),
        "ravel": lambda m, x: x.ravel(),
        "flatten": lambda m, x: x.flatten(),
        "reshape": lambda m, x: x.reshape(-1, last) if x.size else x,
        "reshape F": lambda m, x: m.reshape(x, (last, x.size // last), order="F") if x.size else x,
        "transpose": lambda m, x: x.transpose(order),
        "T": lambda m, x: x.T,
        "swapaxes": lambda m, x: x.swapaxes(0, axis),
        "moveaxis": lambda m, x: m.moveaxis(x, 0, axis),
        "expand_dims": lambda m, x: m.expand_dims(x, axis),
        "squeeze": lambda m, x: m.squeeze(m.expand_dims(x, 0)),
        "flip": lambda m, x: m.flip(x, axis),
        "broadcast_to": lambda m, x: m.broadcast_to(x, (2, *x.shape)),
        "concatenate": lambda m, x: m.concatenate([x, x, x], axis=axis),
        "concatenate all": lambda m, x: m.concatenate([x, x], axis=None),
        "stack": lambda m, x: m.stack([x, x], axis=axis),
        "repeat": lambda m, x: m.repeat(x, 2, axis=axis),
        "tile": lambda m, x: m.tile(x, (2, 1, 3)),
        "pad": lambda m, x: m.pad(x, 2, constant_values=1),
        "roll": lambda m, x: m.roll(x, 2, axis=axis),
        "roll all": lambda m, x: m.roll(x, -1),
        "copy F": lambda m, x: x.copy(order="F"),
        "astype": lambda m, x: x.astype("float32"),
        "sort": lambda m, x: m.sort(x, axis=axis),
        "diagonal": lambda m, x: x.diagonal() if x.ndim > 1 else x,
    }
    for name, program in programs.items():
        same(name, program, a)


@given(seed=st.integers(0, 99), n=st.integers(0, 4), k=st.integers(0, 4), m=st.integers(0, 4), turned=st.booleans())
def test_products(seed: int, n: int, k: int, m: int, turned: bool) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(n, k)).astype("f4"), rng.normal(size=(m, k) if turned else (k, m)).astype("f4")
    if turned:
        b = b.T
    batch, vector = rng.normal(size=(2, 1, n, k)), rng.normal(size=k)
    programs = {
        "@": lambda m, x, y, *_: x @ y,
        "matmul": lambda m, x, y, batch, _: m.matmul(batch, y),
        "matmul out": lambda m, x, y, *_: m.matmul(x, y, out=m.empty((x.shape[0], y.shape[1]), "f4")),
        "vector": lambda m, x, y, _, vector: x @ vector,
        "two vectors": lambda m, x, y, _, vector: vector @ vector,
        "dot": lambda m, x, y, *_: m.dot(x, y),
        "tensordot": lambda m, x, y, batch, _: m.tensordot(batch, y, axes=([3], [0])),
        "einsum": lambda m, x, y, *_: m.einsum("ij,jk->ki", x, y, optimize=True),
        "outer": lambda m, x, y, _, vector: m.outer(vector, vector),
        "norm": lambda m, x, *_: m.linalg.norm(x),
        "norm of rows": lambda m, x, *_: m.linalg.norm(x, axis=1),
    }
    for name, program in programs.items():
        same(name, program, a, b, batch, vector)


@given(seed=st.integers(0, 99), shape=st.tuples(*[st.integers(1, 5)] * 4), s=st.tuples(*[st.integers(1, 7)] * 2))
def test_transforms_of_real_images_and_back(seed: int, shape: tuple[int, ...], s: tuple[int, int]) -> None:
    images = np.random.default_rng(seed).normal(size=shape).astype("f4")
    for axes in ((-2, -1), (0, 1), (3, 0)):
        same("rfft2", lambda m, x, axes=axes: m.fft.rfft2(x, s, axes), images)
        spectra = np.fft.rfft2(images, s, axes)
        same("irfft2", lambda m, x, axes=axes: m.fft.irfft2(x, s, axes), spectra)
        same("irfft2, longer", lambda m, x, axes=axes: m.fft.irfft2(x, (s[0] + 3, s[1] + 4), axes), spectra)
        for x in (images, spectra):
            same("fft2", lambda m, x, axes=axes: m.fft.fft2(x, s, axes), x)
            same("ifft2", lambda m, x, axes=axes: m.fft.ifft2(x, s, axes), x)
            same("the real part, a view", lambda _, x: x.real[..., 1:] + 1, x)
        for name in ("conjugate", "conj"):
            same(name, lambda m, x, name=name: getattr(m, name)(x), spectra)
            same(f"{name}, a method", lambda _, x, name=name: getattr(x, name)(), spectra)
            same(f"{name} of real numbers", lambda _, x, name=name: getattr(x, name)(), images)
    same("of integers", lambda m, x: m.fft.rfft2(x), np.arange(12).reshape(3, 4))
    same("an even length", lambda m, x: m.fft.irfft2(x), np.fft.rfft2(np.arange(12.0).reshape(3, 4)))
    same("in the last two axes", lambda m, x: m.fft.rfft2(x), images)


def test_copying_into_an_array() -> None:
    def program(m: Any, x: Any) -> Any:
        y = m.zeros((3, 2), "complex64")
        m.copyto(y, x)
        m.copyto(y[1:], 7)
        return y

    same("copyto", program, np.arange(2, dtype="f4"))
    with pytest.raises(TypeError, match="Cannot cast float64 to int32 in same_kind casting mode"):
        cp.copyto(cp.zeros(2, "int32"), cp.ones(2))


def test_creation() -> None:
    programs = [
        lambda m: m.zeros((2, 3)),
        lambda m: m.ones(4, dtype="int64"),
        lambda m: m.full((2, 2), 7),
        lambda m: m.full((2, 2), 0.5, dtype="float32"),
        lambda m: m.full(3, True),
        lambda m: m.arange(7),
        lambda m: m.arange(2, 9, 3),
        lambda m: m.arange(0.5, 3, 0.25),
        lambda m: m.arange(5, dtype="float32"),
        lambda m: m.arange(5, 0, -2),
        lambda m: m.linspace(0, 1, 11),
        lambda m: m.linspace(3, -1, 4, endpoint=False),
        lambda m: m.eye(3, 4, k=1),
        lambda m: m.tril(m.ones((3, 3))),
        lambda m: m.array([[1, 2], [3, 4]]),
        lambda m: m.array(3.5),
        lambda m: m.zeros_like(m.array([1, 2], dtype="uint8")),
        lambda m: m.ones_like(m.arange(3), dtype="float32"),
        lambda m: m.full_like(m.arange(3), 9),
        lambda m: m.argsort(m.array([3, 1, 2])),
        lambda m: m.take(m.arange(10) * 2, m.array([[1, 2], [3, 4]])),
        lambda m: m.take(m.eye(4), m.array([1, 3]), axis=1),
        lambda m: m.take_along_axis(m.eye(4), m.array([[1], [0], [2], [2]]), axis=1),
        lambda m: m.round(m.linspace(-2, 2, 9)),
    ]
    for number, program in enumerate(programs):
        same(number, program)


def test_results_are_arrays_on_the_device_single_values_too() -> None:
    x = cp.arange(6).reshape(2, 3)
    for single in (x.sum(), x[1, 2], x.mean(), x.max(axis=None), cp.exp(1.0), x[0] @ x[1]):
        assert isinstance(single, cp.ndarray)
        assert single.shape == ()
    assert [int(x.sum()), float(x.mean()), bool(x.any()), x[1, 2].item()] == [15, 2.5, True, 5]
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert f"{x.mean():.2f}" == "2.50"
    assert [row.tolist() for row in x] == x.tolist()
    assert repr(x) == repr(x.get())
    with pytest.raises(TypeError):
        range(9)[x[1, 0]]  # one value is no index of the host's


HALF_ONES = np.ones((5000, 3), "e")
LARGEST = np.finfo(float).max
RESTS = [-1e9 / 2**54, np.nan, np.nan, -(2.0**970)]
DIVISORS = [0.1, 3, np.inf, 3]
AS_A_GPU = {
    "a negative float in uint8": (lambda cp: cp.asarray([-1.0, 1.9]).astype("B"), [0, 1]),
    "infinity in int32": (lambda cp: cp.asarray([np.inf, -np.inf, np.nan], "f").astype("i"), [2**31 - 1, -(2**31), 0]),
    "NaN in int8 and in bool": (lambda cp: cp.asarray([np.nan]).astype("b") + cp.asarray([np.nan]).astype("?"), [1]),
    "floats written to integers": (lambda cp: _written(cp, [1e10, -1e10, 2.5]), [2**31 - 1, -(2**31), 2]),
    "a sum of float16": (lambda cp: cp.asarray(HALF_ONES).sum(axis=0), [5000] * 3),
    "a variance of float16": (lambda cp: cp.asarray(HALF_ONES * [1, 2, 3]).astype("e").var(axis=0), [0] * 3),
    "a running sum of float16": (lambda cp: cp.asarray(HALF_ONES[:, 0]).cumsum()[-1:] > 4500, [1]),
    "a running sum of float32": (lambda cp: cp.ones(20_000_000, "f").cumsum()[-1:] > 1.9e7, [1]),
    "columns moved on": (lambda cp: _moved(cp, lambda x: (x[:, 1:], x[:, :-1])), [[0, 0, 1], [3, 3, 4], [6, 6, 7]]),
    "in place by a ufunc": (lambda cp: _added(cp), [0, 1, 3, 5]),
    "the dtype of a range up to a float": (lambda cp: cp.zeros(1) + (cp.arange(2.5).dtype == "float64"), [1]),
    "the norm of complex numbers": (lambda cp: cp.linalg.norm(cp.asarray([[3j, 4]]), axis=1), [5]),
    "and of all of them": (lambda cp: cp.linalg.norm(cp.asarray([[3j, 4]], "F")), 5),
    "a product with conjugates": (lambda cp: cp.vdot(cp.asarray([3j]), cp.asarray([2j])), 6),
    "half added to integers at places": (lambda cp: _added_at(cp, cp.asarray([0, 0]), 1.5), [2, 1]),
    "uint64 at places": (lambda cp: _added_at(cp, cp.asarray([0, 0]), 2**63 - 1, "Q"), [2**64 - 2, 1]),
    "int8 under a mask": (lambda cp: _added_at(cp, cp.asarray([True, False]), 1, "b"), [1, 1]),
    "tens of integers": (lambda cp: cp.around(cp.asarray([-15, 25, 26], "q"), -1), [-20, 20, 30]),
    "a bool rounded": (lambda cp: cp.around(cp.asarray([True])) / 2, [0.5]),
    "a triangle of one row": (lambda cp: cp.tril(cp.arange(1, 3)), [[1, 0], [1, 2]]),
    "a border of a single number": (lambda cp: cp.pad(cp.asarray(7), 2), 7),
    "a single number turned": (lambda cp: cp.flip(cp.asarray(7)), 7),
    "a dtype that holds less": (lambda cp: cp.add(cp.asarray([2.75, -1]), 1, dtype="B"), [3, 1]),
    "complex numbers in a real dtype": (lambda cp: cp.abs(cp.asarray([-2 - 1j]), dtype="f"), [2]),
    "compared as bool": (lambda cp: cp.greater(cp.asarray([3, 0]), 2, dtype="?"), [False, False]),
    "a negative power in a dtype": (lambda cp: cp.power(cp.asarray([2, -1]), -1, dtype="i"), [0, -1]),
    "the sign of a bool": (lambda cp: cp.sign(cp.asarray([True, False])) * -1, [-1, 0]),
    "a bool that stays": (lambda cp: +cp.asarray([True, False]), [True, False]),
    "unsigned beside a signed number": (lambda cp: cp.asarray([3], "Q") == np.int64(3), [True]),
    "nothing and a large number": (lambda cp: cp.zeros(0, "b") + 300, []),
    "an index of a small dtype": (lambda cp: cp.arange(300)[cp.asarray([255], "B")], [255]),
    "the order of a single number": (lambda cp: cp.asarray(7).argsort(), [0]),
    "a single number, twice": (lambda cp: cp.asarray(7).take(cp.asarray([0, -1]), axis=0), [7, 7]),
    "the place of the largest along an axis": (lambda cp: cp.asarray([1, 3]).argmax(axis=(0,)), 1),
    "a largest number written to integers": (lambda cp: cp.asarray([1.5, 2.5]).max(out=cp.zeros((), "i")), 2),
    "a choice of numbers": (lambda cp: cp.where(cp.asarray([True, False]), np.uint8(200), 0), [200, 0]),
    "a mask that holds nowhere": (lambda cp: _masked(cp, 300), [0, 1]),
    "one row and one column": (lambda cp: cp.einsum("ij,ij->i", cp.ones((1, 2)), cp.ones((2, 1))), [2, 2]),
    "a transform of nothing": (lambda cp: cp.fft.rfft2(cp.zeros((0, 2)), (1, 2)), [[0, 0]]),
    "the truth of nothing": (lambda cp: cp.asarray(bool(cp.zeros(0))), False),
    "NaN at places": (lambda cp: _added_at(cp, cp.asarray([0, 0]), np.nan, "f", "maximum"), [0, 1]),
    "NaN under a mask": (lambda cp: _added_at(cp, cp.asarray([True, False]), np.nan, "f", "minimum"), [0, 1]),
    "a maximum of int64 at places": (lambda cp: _added_at(cp, cp.asarray([0, 0]), 5, "q", "maximum"), [5, 1]),
    "a power of uint64": (lambda cp: cp.asarray([2**64 - 1], "Q") ** cp.asarray([2**64 - 1], "Q"), [2**64 - 1]),
    "bounds of another dtype": (lambda cp: cp.asarray([5, 100], "b").clip(np.uint8(200), None), [127, 127]),
    "a bound that is NaN": (lambda cp: cp.asarray([5, 100], "b").clip(np.nan, 7), [5, 7]),
    "NaN in 64 bits, and of 64 bits": (lambda cp: _nan_in(cp, "fq") - _nan_in(cp, "di"), [-(2**63) + 2**31]),
    "a complex number in uint8": (lambda cp: cp.asarray([-1.5 + 2j]).astype("B"), [0]),
    "infinity that adds up in int32": (lambda cp: cp.asarray([np.inf, -1], "f").sum(dtype="i"), [2**31 - 2]),
    "1e5, which float16 has not": (lambda cp: cp.asarray([1e5, -np.inf]).sum(dtype="e"), -np.inf),
    "a variance in float16": (lambda cp: cp.asarray([1e5, 1e5 + 2]).var(dtype="e"), 1),
    "a mean in uint8": (lambda cp: cp.asarray([200, 201], "B").mean(dtype="B"), 200),
    "a variance of nothing": (lambda cp: cp.nanvar(cp.zeros((2, 0)), axis=1), [0, 0]),
    "and of no whole numbers": (lambda cp: cp.nanvar(cp.zeros((2, 0), "i"), axis=1), [np.nan, np.nan]),
    "a quotient that is almost 0": (lambda cp: cp.asarray([-2.75], "f") // 3.4e38, [0]),
    "uint64 and int64 compared": (lambda cp: cp.asarray([1, 2**63], "Q") > np.int64(3), [0, 1]),
    "quotients, rounded twice": (lambda cp: cp.asarray([1, np.inf, -1, 7]) // cp.asarray(DIVISORS), [10, np.inf, 0, 2]),
    "their rests": (lambda cp: cp.asarray([1e9, np.inf, -1, LARGEST]) % cp.asarray(DIVISORS), RESTS),
    "a rest of float16": (lambda cp: cp.asarray([1], "e") % 2**40, [np.nan]),
    "no rest is no -0.0": (lambda cp: cp.signbit(cp.asarray([2.0]) % -1), [0]),
    "a single number is no -0.0": (lambda cp: cp.signbit(cp.asarray(np.array(-0.0))), False),
    "of many each may be": (lambda cp: cp.signbit(cp.full(1, -0.0)), [True]),
    "the last 32 bits of a shift": (lambda cp: 1 << cp.asarray([-(2**63), 64, 2**32 + 1]), [1, 0, 2]),
    "1 divided by 0": (lambda cp: cp.reciprocal(cp.asarray([0, 1, 2])), [0, 1, 0]),
    "the rest of 2**64 - 1": (lambda cp: cp.fmod(cp.asarray([2**64 - 1], "Q"), 2), [0]),
    "a range, rounded once": (lambda cp: cp.arange(0.5, 3, 0.3)[3:5], [1.4, 1.7]),
    "a range in the dtype of its end": (lambda cp: cp.linspace(0, np.float32(0.3), 4) == np.float32(0.1), [0, 1, 0, 0]),
    "large numbers rounded": (lambda cp: cp.around(cp.asarray([3.4e38], "f"), 1), [np.float32(3.4e38)]),
    "a number without its imaginary part": (lambda cp: cp.full(1, 2 + 1j, "I"), [2]),
    "a full array of NaN, whole": (lambda cp: cp.full_like(cp.zeros(2, "i"), np.nan), [-(2**31)] * 2),
    "a full array of an array of one": (lambda cp: cp.full(2, np.array([[7]]), "B"), [7, 7]),
    "a power that is no root": (lambda cp: cp.power(cp.asarray([-np.inf, 9], "f"), 0.5), [np.inf, 3]),
    "a float where only its last bits fit": (lambda cp: cp.full(1, 1e10, "B"), [255]),
    "nothing, less than once": (lambda cp: cp.tile(cp.zeros(0), -1), []),
    "a product of 0 axes": (lambda cp: cp.tensordot(cp.asarray(2), cp.asarray([3]), 0), [6]),
    "one product of float16": (lambda cp: cp.asarray([300, 300], "e") @ cp.asarray([300, -300], "e"), np.nan),
    "and several": (lambda cp: cp.ones((2, 2), "e") * 300 @ cp.asarray([300, -300], "e"), [0, 0]),
    "a product of nothing, by three axes": (lambda cp: cp.ones((1, 0)).dot(cp.ones((2, 0, 1))), [[[0], [0]]]),
    "a multiple that is too large": (lambda cp: cp.lcm(cp.asarray([2**31 - 1], "i"), 2), [2]),
    "float16 after infinity": (lambda cp: cp.nextafter(cp.asarray([np.inf], "e"), 1), [np.nan]),
    "a bool squared": (lambda cp: cp.asarray([-1]) * cp.asarray([True]) ** 2 << 40, [-(2**40)]),
    "roots of whole numbers": (lambda cp: cp.asarray([4, 9], "b") ** 0.5, [2, 3]),
    "a root in place is a power": (lambda cp: _rooted(cp, [-np.inf, 4]), [np.inf, 2]),
    "a number of another dtype": (lambda cp: cp.full(1, np.uint8(200), "b"), [-56]),
}


def _written(cp, values):
    x = cp.zeros(3, "i")
    x[:] = cp.asarray(values, "f")
    return x


def _nan_in(cp, kinds):
    return cp.asarray([np.nan], kinds[0]).astype(kinds[1])


def _moved(cp, views):
    to, of = views(x := cp.arange(9).reshape(3, 3))
    to[...] = of
    return x


def _added_at(cp, key, value, dtype="i", name="add"):
    x = cp.arange(2, dtype=dtype)
    getattr(cp, name).at(x, key, value)
    return x


def _rooted(cp, values):
    x = cp.asarray(values)
    x **= 0.5
    return x


def _masked(cp, value):
    x = cp.arange(2, dtype="b")
    x[x > 1] = value
    return x


def _added(cp):
    x = cp.arange(4)
    x[1:] += x[:-1]
    return x


@pytest.mark.parametrize("name", AS_A_GPU)
def test_a_program_gives_what_it_gives_on_a_gpu(name):
    program, expected = AS_A_GPU[name]
    np.testing.assert_array_equal(program(cp).get(), expected)


def test_sorts_are_stable_or_refused():
    for sort in (cp.sort, cp.argsort):
        assert sort(cp.arange(3), kind="stable").get().tolist() == [0, 1, 2]
        with pytest.raises(ValueError, match="kind"):
            sort(cp.arange(3), kind="quicksort")


REFUSED_AS_A_GPU = {
    "a range of bool": (lambda cp, x: cp.arange(7, dtype="?"), TypeError),
    "infinity where a mask holds": (lambda cp, x: x.__setitem__(x > 1, float("inf")), OverflowError),
    "a negative number, unsigned": (lambda cp, x: x.astype("Q").fill(-2.25), OverflowError),
    "a complex number, real": (lambda cp, x: x.astype("f").fill(1j), TypeError),
    "a number that a choice does not hold": (lambda cp, x: cp.where(x < 9, x.astype("B"), -1), OverflowError),
    "a border that the dtype does not hold": (lambda cp, x: cp.pad(x, 1, constant_values=np.nan), ValueError),
    "a bound that the dtype does not hold": (lambda cp, x: x.astype("b").clip(300, None), OverflowError),
    "a logical function's number": (lambda cp, x: cp.logical_xor(x.astype("I"), -1), OverflowError),
    "complex numbers and": (lambda cp, x: cp.logical_and(x, 1j), TypeError),
    "complex bounds": (lambda cp, x: x.clip(1j, None), TypeError),
    "one bound of bool": (lambda cp, x: (x > 1).clip(1, None), TypeError),
    "one array for two results": (lambda cp, x: cp.divmod(x, x, out=x), ValueError),
    "a rule of casting": (lambda cp, x: x.astype("f", casting="safe"), TypeError),
    "a copy of NaN, whole": (lambda cp, x: cp.copyto(x, np.nan), TypeError),
    "a range that steps back, unsigned": (lambda cp, x: cp.arange(5, 0, -2, "B"), OverflowError),
    "a product of two numbers": (lambda cp, x: cp.dot(x[1], 2), TypeError),
    "a product into another dtype": (lambda cp, x: cp.dot(x, x, out=cp.zeros((), "d")), ValueError),
    "axes of a single number": (lambda cp, x: cp.tensordot(x, x[1], -1), ValueError),
    "an inner product of nothing": (lambda cp, x: cp.inner(x[:0], x[:0]), ZeroDivisionError),
    "half a repeat": (lambda cp, x: cp.repeat(x, 1.5), ValueError),
    "fewer repeats than none": (lambda cp, x: cp.repeat(x[:0], -1), ValueError),
    "a product with a number": (lambda cp, x: x.dot(2), TypeError),
    "a product into too few axes": (lambda cp, x: cp.matmul(cp.ones((2, 4, 2)), x.reshape(2, 2), out=x), IndexError),
    "an end of a line that is complex": (lambda cp, x: cp.linspace(0, 1j), TypeError),
    "single numbers side by side": (lambda cp, x: cp.concatenate([x[0], x[1]]), TypeError),
    "the median of nothing": (lambda cp, x: cp.median(x[:0]), ValueError),
    "the mean of nothing but NaN": (lambda cp, x: cp.nanmean(x[:0] / 1), ValueError),
    "a count that keeps its axis": (lambda cp, x: cp.count_nonzero(x, keepdims=True), TypeError),
    "NaN at a place, whole": (lambda cp, x: cp.add.at(x.astype("B"), cp.asarray([0]), np.nan), ValueError),
    "a place on an axis of length 0": (lambda cp, x: x[:0].take(cp.asarray([0])), IndexError),
    "a mean in bool, along no axis": (lambda cp, x: cp.nanmean(x[0] / 1, 0, dtype="?"), TypeError),
    "shapes and dtypes that do not go together": (lambda cp, x: cp.ldexp(x * 1j, x[:3]), ValueError),
    "a product at places": (lambda cp, x: cp.multiply.at(x, cp.asarray([0, 0]), 2), NotImplementedError),
    "a maximum of float16 at places": (lambda cp, x: cp.maximum.at(x.astype("e"), cp.asarray([0, 0]), 2), TypeError),
    "nothing, into another shape": (lambda cp, x: x[:0].take(cp.asarray([0]), out=x), ValueError),
    "more axes than there are": (lambda cp, x: cp.tensordot(x, x, 2), IndexError),
    "a running sum that keeps its axis": (lambda cp, x: cp.cumsum(x, axis=0, keepdims=True), TypeError),
}


@pytest.mark.parametrize("name", REFUSED_AS_A_GPU)
def test_a_program_is_refused_as_on_a_gpu(name):
    program, kind = REFUSED_AS_A_GPU[name]
    with pytest.raises(kind):
        program(cp, cp.arange(4))
