"""An array library that offers what `device.SUPPORTED` lists, and nothing else.

It computes with NumPy behind the scenes, but its arrays refuse NumPy's functions, host arrays and implicit conversion,
as CuPy's do. Code that runs on it runs on any module that keeps the contract.
"""

import operator
from types import SimpleNamespace
from typing import Any

import numpy as np

from unrolled import device


def wrap(value: Any) -> Any:
    return StrictArray(value) if isinstance(value, (np.ndarray, np.generic)) else value


def unwrap(value: Any) -> Any:
    if isinstance(value, StrictArray):
        return value.host
    if isinstance(value, (np.ndarray, list)):
        raise TypeError(f"Unsupported type {type(value)}")
    return tuple(map(unwrap, value)) if isinstance(value, tuple) else value


def check_supported(name: str) -> None:
    if name not in device.SUPPORTED:
        raise AttributeError(f"{name} is not in device.SUPPORTED")


class StrictArray:
    """A wrapped NumPy array. Operators and indexing work; attributes must be listed as `ndarray.NAME`."""

    __array_ufunc__ = None

    def __init__(self, host: Any) -> None:
        self.host = np.asarray(host) if not isinstance(host, np.ndarray) else host

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        check_supported(f"ndarray.{name}")
        value = getattr(self.host, name)
        if callable(value):
            return lambda *args, **kwargs: wrap(value(*unwrap(args), **kwargs))
        return wrap(value)

    def __getitem__(self, key: Any) -> Any:
        return wrap(self.host[unwrap(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.host[unwrap(key)] = unwrap(value)

    def __len__(self) -> int:
        return len(self.host)

    def __bool__(self) -> bool:
        return bool(self.host)

    def __neg__(self) -> Any:
        return wrap(-self.host)

    def __invert__(self) -> Any:
        return wrap(~self.host)


def _method(name: str, function: Any, reflected: bool = False) -> None:
    """Give arrays the operator `name`, which makes a new array; one that begins with `i` changes its own."""

    def method(self: StrictArray, other: Any) -> Any:
        host = function(unwrap(other), self.host) if reflected else function(self.host, unwrap(other))
        if not name.startswith("i"):
            return wrap(host)
        self.host = host
        return self

    setattr(StrictArray, f"__{name}__", method)


for _name in ("add", "sub", "mul", "truediv", "matmul", "and_", "or_"):
    _function, _plain = getattr(operator, _name), _name.strip("_")
    _method(_plain, _function)
    _method(f"r{_plain}", _function, reflected=True)
    _method(f"i{_plain}", getattr(operator, f"i{_plain}"))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _method(_name, getattr(operator, _name))


class _Runtime:
    synchronized = 0

    def deviceSynchronize(self) -> None:  # noqa: N802 (CUDA's name)
        self.synchronized += 1


class _Generator:
    """Random numbers that are born where the arrays are, from NumPy's generator of the same seed."""

    def __init__(self, seed: Any) -> None:
        check_supported("random.default_rng")
        self._host = np.random.default_rng(seed)

    def random(self, size: Any, dtype: Any = np.float64) -> StrictArray:
        return StrictArray(self._host.random(size, dtype))


class _Fft:
    def __getattr__(self, name: str) -> Any:
        check_supported(f"fft.{name}")
        return lambda x, *args: StrictArray(getattr(np.fft, name)(unwrap(x), *args))


class StrictModule:
    """The module: SUPPORTED, and the three names that move arrays and wait."""

    cuda = SimpleNamespace(runtime=_Runtime())
    fft = _Fft()
    random = SimpleNamespace(default_rng=_Generator)

    def asarray(self, host: Any) -> StrictArray:
        return StrictArray(np.array(host))

    def asnumpy(self, x: StrictArray) -> Any:
        return x.host

    def __getattr__(self, name: str) -> Any:
        check_supported(name)
        function = getattr(np, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            out = kwargs.get("out")
            result = function(*unwrap(args), **{key: unwrap(value) for key, value in kwargs.items()})
            return wrap(result) if out is None else out

        if f"{name}.at" in device.SUPPORTED:
            call.at = lambda *args: function.at(*map(unwrap, args))  # type: ignore[attr-defined]
        return call


strict = StrictModule()
device.register(StrictArray, strict)
