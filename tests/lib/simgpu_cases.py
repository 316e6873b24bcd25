"""Random arrays, keys and the comparison that the tests of the simulated GPU share."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from unrolled import simgpu

DTYPES = ["float32", "float64", "int64", "uint8", "bool"]
MODULE: Any = simgpu
SIZES: Any = st.integers(0, 4)


@st.composite
def arrays(draw: Any, count: int, least: int = 0) -> list[Any]:
    """Arrays that broadcast together, in any layout: transposed, reversed, every second value, or as they come."""
    shape = draw(st.lists(SIZES, min_size=least, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return [_array(draw, rng, _thinned(draw, shape) if i else shape) for i in range(count)]


def _thinned(draw: Any, shape: list[int]) -> list[int]:
    """A shape that broadcasts to this one: some axes of length 1, some in front left out."""
    thin = [draw(st.sampled_from([1, n])) for n in shape]
    return thin[draw(st.integers(0, len(thin))) :]


def _array(draw: Any, rng: Any, shape: list[int]) -> Any:
    dtype = draw(st.sampled_from(DTYPES))
    layout = draw(st.sampled_from(["as is", "columns", "turned", "reversed", "every second"]))
    sizes = [2 * n for n in shape] if layout == "every second" else shape
    order = draw(st.permutations(range(len(shape)))) if layout == "turned" else range(len(shape))
    values = np.asarray(rng.integers(0, 5, [sizes[i] for i in order]), dtype)
    if dtype.startswith("float"):
        values = np.asarray(values - 2 + rng.normal(size=values.shape), dtype)
    if layout == "columns":
        return np.asfortranarray(values)
    if layout == "turned":
        return values.transpose(np.argsort(order))
    step = {"reversed": -1, "every second": 2}.get(layout)
    return values[(*(slice(None, None, step) for _ in shape), ...)] if step else values


@st.composite
def keys(draw: Any, shape: tuple[int, ...], advanced: bool = False) -> tuple[Any, ...]:
    """A key that fits the shape: slices, integers, None, ..., and (advanced) arrays of integers and masks."""
    key: list[Any] = []
    common = draw(st.sampled_from([(), (1,), (3,), (2, 3)]))
    axis = 0
    while axis < len(shape):
        size = shape[axis]
        kinds = ["slice", "none", *(["int"] if size else []), *(["array"] * 2 if advanced and size else [])]
        kind = draw(st.sampled_from([*kinds, *(["mask"] if advanced and common == () else [])]))
        axis += kind != "none"
        if kind == "slice":
            ends = st.one_of(st.none(), st.integers(-5, 5))
            key.append(slice(draw(ends), draw(ends), draw(st.sampled_from([None, 1, 2, -1, -2]))))
        elif kind == "none":
            key.append(None)
            if len(key) > 5:
                break
        elif kind == "int":
            key.append(draw(st.integers(-size, size - 1)))
        elif kind == "mask":
            key.append(np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool))
            common = ("no more",)  # two masks need as many True each
        elif common != ("no more",):
            values = draw(st.lists(st.integers(-size, size - 1), min_size=6, max_size=6))
            key.append(np.array(values[: int(np.prod(common))]).reshape(common))
        else:
            key.append(0)
    if draw(st.booleans()):
        key = key[: draw(st.integers(0, len(key)))]
        if not any(isinstance(k, np.ndarray) for k in key):
            key.insert(draw(st.integers(0, len(key))), Ellipsis)
    return tuple(key)


def on(module: Any, key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key with its arrays in a module."""
    return tuple(module.asarray(k) if isinstance(k, np.ndarray) else k for k in key)


def same(what: Any, program: Callable[..., Any], *arrays: Any) -> None:
    """The program gives the same on the simulated GPU as on NumPy: the same bits, or the same kind of error.

    On CuPy (`MODULE`, set by tests/gpu): the same dtype and shape, and values to a tolerance.
    """
    module = MODULE
    expected, error = _run(program, np, [kept(x) for x in arrays])
    if module is not simgpu and error is not None:
        return
    found, other = _run(program, module, [placed(module, x) for x in arrays])
    assert _kind(error) is _kind(other), (what, error, other)
    if error is not None:
        return
    assert isinstance(found, module.ndarray), what
    host = module.asnumpy(found)
    expected = np.asarray(expected)
    assert host.dtype == expected.dtype, (what, host.dtype, expected.dtype)
    assert host.shape == expected.shape, what
    if module is simgpu:
        np.testing.assert_array_equal(host, expected, err_msg=str(what))
    else:
        np.testing.assert_allclose(host, expected, rtol=1e-4, atol=1e-5, err_msg=str(what))


def _run(program: Callable[..., Any], module: Any, arrays: list[Any]) -> tuple[Any, Exception | None]:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return program(module, *arrays), None
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        return None, error


def _kind(error: Exception | None) -> type | None:
    """The kind of error that a program catches: a built-in one."""
    kinds = [] if error is None else [kind for kind in type(error).__mro__ if kind.__module__ == "builtins"]
    return kinds[0] if kinds else None


def kept(x: Any) -> Any:
    """A copy with the same strides, as far as a copy can have them: programs may write to it."""
    base, key = _base(x)
    return base.copy(order="K")[(*key, ...)] if key else x.copy(order="K")


def placed(module: Any, x: Any) -> Any:
    """The array on the module, in the same layout."""
    base, key = _base(x)
    order = np.argsort([-step for step in base.strides], kind="stable")  # without gaps, the axes in any order
    there = module.asarray(base.transpose(order)).transpose(np.argsort(order))
    return there[key] if key else there


def _base(x: Any) -> tuple[Any, Any]:
    """An array without gaps, and the key that makes x of it, for what `arrays` draws by slicing."""
    if x.base is None or x.flags.forc or not x.size:
        return x, None
    if min(x.strides, default=1) < 0:
        backwards = (slice(None, None, -1),) * x.ndim
        return x[backwards], backwards
    if x.base.size == x.size:
        return x, None
    return x.base, (slice(None, None, 2),) * x.ndim
