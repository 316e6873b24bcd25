"""Symbols: what a function is called with to write down what it does, as plain data and without doing it."""

from __future__ import annotations

from typing import Any

import numpy as np

Reference = Any  # ["in", i], ["step", j], or a number


class Recorder:
    """The steps of an expression, in order: [[name, [reference, ...], dtype or None], ...]."""

    def __init__(self) -> None:
        self.steps: list[list[Any]] = []

    def record(self, name: str, values: Any, dtype: str | None = None) -> Symbol:
        """Add a step, and return its value as a symbol."""
        self.steps.append([name, [reference(value) for value in values], dtype])
        return Symbol(self, ["step", len(self.steps) - 1])


class Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """A value that is known only when the kernel runs. Operators and NumPy's element-wise functions are recorded."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, recorder: Recorder, place: Reference) -> None:
        self.recorder, self.place = recorder, place

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or function.nout != 1 or function.signature is not None or set(options) - {"dtype"}:
            raise TypeError(f"numpy.{function.__name__} ({method}) cannot stand in a kernel of single values")
        dtype = options.get("dtype")
        return self.recorder.record(function.__name__, inputs, None if dtype is None else np.dtype(dtype).name)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.where and len(args) == 3 and not kwargs:
            return self.recorder.record("where", args)
        if function is np.clip and len(args) == 3 and not kwargs:
            return np.minimum(np.maximum(args[0], args[1]), args[2])
        raise TypeError(f"numpy.{function.__name__} cannot stand in a kernel: it is no function of single values")

    def astype(self, dtype: Any) -> Symbol:
        """Return the value in another dtype, as a symbol."""
        return self.recorder.record("cast", [self], np.dtype(dtype).name)

    def __bool__(self) -> bool:
        raise TypeError(
            "a value inside of a kernel cannot be asked for its truth: each thread has another one. "
            "Choose between two values with np.where(condition, a, b)"
        )

    def __int__(self) -> int:
        raise TypeError(
            "a value inside of a kernel is known only on the device: int(x) has none; x.astype(int) converts"
        )

    def __float__(self) -> float:
        raise TypeError("a value inside of a kernel is known only on the device: float(x) has none")

    __index__ = __int__

    def __iter__(self) -> Any:
        raise TypeError("a value inside of a kernel is a single number: it cannot be iterated or indexed")

    def __repr__(self) -> str:
        return f"<symbol {self.place[0]} {self.place[1]}>"


def reference(value: Any) -> Reference:
    """Return a symbol's place, or a plain number. Raises TypeError for what a kernel cannot hold."""
    if isinstance(value, Symbol):
        return value.place
    if isinstance(value, (bool, int, float, np.generic)):
        return value.item() if isinstance(value, np.generic) else value
    raise TypeError(f"a kernel takes single values and numbers; {type(value)} is neither")
