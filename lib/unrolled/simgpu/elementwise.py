"""Kernels of one's own: a NumPy function of single values becomes one launch.

It is called with symbols, which write down what it does, as plain data and without doing it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unrolled.simgpu.array import SCALARS, broadcast_shape, check_types, launch, ndarray
from unrolled.simgpu.creation import check_apart


class ElementwiseKernel:
    """ElementwiseKernel("float32 x, float32 y", "float32 z", function, "name"), one launch a call.

    CuPy takes the body as CUDA text; the simulated GPU takes a Python function of the inputs, written with NumPy:
    `lambda x, y: np.maximum(x, y) * 2`. The function returns the outputs, one value or a tuple. It is called once, when
    the kernel is made, with symbols, and its steps are kept: no `if` on a value (use np.where), no loop over values, no
    indices.

    A type is NumPy's name or a letter: arrays for the same letter have the same dtype. Raises TypeError for a body that
    is text, for steps that a kernel cannot hold, and at a call for other dtypes; ValueError for shapes that do not fit.
    """

    def __init__(
        self, in_params: str, out_params: str, operation: Callable[..., Any], name: str = "kernel", **options: Any
    ) -> None:
        if not callable(operation):
            raise TypeError(
                "the simulated GPU cannot compile CUDA text: give a function of the inputs written with NumPy, "
                "such as lambda x, y: np.maximum(x, y)"
            )
        self.name, self.in_params, self.out_params = name, _parameters(in_params), _parameters(out_params)
        self.nin, self.nout = len(self.in_params), len(self.out_params)
        self._steps: Steps = []
        found = operation(*(Symbol(self._steps, ["in", i]) for i in range(self.nin)))
        values = found if isinstance(found, tuple) else (found,)
        if len(values) != self.nout or any(value is None for value in values):
            text = f"the function gave {len(values)} values; expected {self.nout}, one for each output"
            raise TypeError(f"{name}: {text}")
        self._results = [reference(value) for value in values]

    def __call__(self, *args: Any) -> Any:
        if len(args) not in (self.nin, self.nin + self.nout):
            raise TypeError(f"{self.name} takes {self.nin} inputs and maybe {self.nout} outputs, got {len(args)}")
        check_types(args)
        inputs, outs = args[: self.nin], list(args[self.nin :])
        types = self._types(inputs, outs)
        shape = broadcast_shape([x.shape for x in inputs if isinstance(x, ndarray)])
        outs = outs or [ndarray(shape, types[kind]) for kind, _ in self.out_params]
        for out in outs:
            if out.shape != shape:
                raise ValueError(f"{self.name}: an output has shape {out.shape}; the inputs give {shape}")
        options = {"name": self.name, "steps": self._steps, "results": self._results}
        kinds = [types[kind] for kind, _ in self.in_params]
        typed = [x if isinstance(x, ndarray) else kind.type(x).item() for x, kind in zip(inputs, kinds, strict=True)]
        for x, out in itertools.product(typed, outs):
            if isinstance(x, ndarray):
                check_apart(x, out)
        launch("fused", typed, outs, options)
        return outs[0] if self.nout == 1 else tuple(outs)

    def __repr__(self) -> str:
        return f"<ElementwiseKernel {self.name!r}: {self.nin} inputs, {self.nout} outputs, {len(self._steps)} steps>"

    def _types(self, inputs: Sequence[Any], outs: Sequence[ndarray]) -> dict[str, np.dtype[Any]]:
        """The dtype of every type that the parameters name; letters get theirs from the arrays."""
        parameters = [*self.in_params, *self.out_params]
        types = {kind: np.dtype(kind) for kind, _ in parameters if len(kind) > 1}
        pairs = list(zip([*inputs, *outs], parameters, strict=False))
        for x, (kind, name) in pairs:
            if isinstance(x, ndarray) and types.setdefault(kind, x.dtype) != x.dtype:
                raise TypeError(f"Type is mismatched. {name} is {x.dtype}; expected {kind} = {types[kind]}")
        for x, (kind, _) in pairs:
            types.setdefault(kind, np.asarray(x).dtype if isinstance(x, SCALARS) else np.dtype(float))
        unknown = [kind for kind, _ in parameters if kind not in types]
        if unknown:
            raise TypeError(f"{self.name}: no input tells the type {unknown[0]!r}")
        return types


def _parameters(text: str) -> list[tuple[str, str]]:
    """ "float32 x, T y" as [("float32", "x"), ("T", "y")]."""
    found = [part.split() for part in text.split(",")]
    if any(len(part) != 2 for part in found):
        raise ValueError(f"parameters are {text!r}; expected a type and a name for each, as 'float32 x, float32 y'")
    return [(kind, name) for kind, name in found]


Reference = Any  # ["in", i], ["step", j], or a number
Steps = list[list[Any]]  # [[name, [reference, ...], dtype or None], ...], in order


class Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """A value that is known only when the kernel runs. Operators and NumPy's element-wise functions are recorded."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, steps: Steps, place: Reference) -> None:
        self.steps, self.place = steps, place

    def record(self, name: str, values: Any, dtype: str | None = None) -> Symbol:
        """Add a step to those of the kernel, and return its value as a symbol."""
        self.steps.append([name, [reference(value) for value in values], dtype])
        return Symbol(self.steps, ["step", len(self.steps) - 1])

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or function.nout != 1 or function.signature is not None or set(options) - {"dtype"}:
            raise TypeError(f"numpy.{function.__name__} ({method}) cannot stand in a kernel of single values")
        dtype = options.get("dtype")
        return self.record(function.__name__, inputs, None if dtype is None else np.dtype(dtype).name)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.where and len(args) == 3 and not kwargs:
            return self.record("where", args)
        if function is np.clip and len(args) == 3 and not kwargs:
            return np.minimum(np.maximum(args[0], args[1]), args[2])
        raise TypeError(f"numpy.{function.__name__} cannot stand in a kernel: it is no function of single values")

    def astype(self, dtype: Any) -> Symbol:
        """Return the value in another dtype, as a symbol."""
        return self.record("cast", [self], np.dtype(dtype).name)

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
