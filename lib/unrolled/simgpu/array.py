"""The array of the simulated GPU: where it lies, and how it meets the host. `methods.py` adds what it can compute.

An array never holds numbers here. It has memory on the machine, and a layout: a NumPy array of the same shape, dtype
and strides whose values nobody reads or writes. Views and strides are NumPy's own: they are taken from the layout.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from operator import attrgetter, index
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unrolled.simgpu import current
from unrolled.simgpu.command import Machine, Operand, Options, OutOfMemoryError, View

Layout = NDArray[Any]
SCALARS = (bool, int, float, complex, np.generic)

_KNOWS_COPY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def in_shape(layout: Layout, shape: Any) -> Layout:
    """Return a view of a layout in another shape.

    Raises AttributeError where only a copy could have it, ValueError for a shape of another size.
    """
    view: Layout = layout.view()
    if not _KNOWS_COPY:
        view.shape = shape  # deprecated since NumPy 2.5
        return view
    try:
        view = layout.reshape(shape, copy=False)
    except ValueError as error:
        if "copy" not in str(error):
            raise
        raise AttributeError("Incompatible shape for in-place modification. Use `.reshape()`: it copies") from None
    return view


class Memory:
    """One allocation. All views of it share this object; when the last is gone, the machine gets the buffer back."""

    __slots__ = ("base", "buffer", "machine", "owned")

    def __init__(self, machine: Machine, buffer: int, owned: bool = True) -> None:
        self.machine, self.buffer, self.owned = machine, buffer, owned
        self.base: Layout  # the layout of all of it: offsets count from its first byte

    def __del__(self) -> None:
        if self.owned and not sys.is_finalizing():
            self.machine.free(self.buffer)


class ndarray:  # noqa: N801 (CuPy's name)
    """An array in the memory of the simulated GPU, like `cupy.ndarray`: ndarray(shape) has undefined values.

    Raises OutOfMemoryError (a MemoryError), which names the array, where there is no room.
    """

    __slots__ = ("__weakref__", "_layout", "_memory", "_view")
    __array_ufunc__: ClassVar[None] = None
    __array_priority__: ClassVar[int] = 100
    __hash__: ClassVar[None] = None  # type: ignore[assignment]
    _layout: Layout
    _memory: Memory
    _view: View | None

    def __new__(cls, shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
        return cls.made_for("", shape, dtype, order)

    @classmethod
    def made_for(cls, purpose: str, shape: Any, dtype: Any, order: str = "C") -> ndarray:
        """Return a new array for what a capture refuses: a copy from the host ("H2D") or a library ("cuBLAS").

        CuPy refuses that before it allocates, and so the machine is told.
        """
        sizes = tuple(map(index, shape if isinstance(shape, (tuple, list)) else (shape,)))
        if min(sizes, default=0) < 0:
            raise ValueError("negative dimensions are not allowed")
        kind, machine = np.dtype(dtype), current.machine()
        nbytes = prod(sizes) * kind.itemsize
        try:
            memory = Memory(machine, machine.allocate(nbytes, purpose, current.streams[-1]))
        except OutOfMemoryError as error:
            held = machine.memory()
            free = held["capacity"] - held["used"]
            text = f"no room for an array {sizes} of {kind}, {nbytes:,} bytes: {free:,} bytes are free. {error}"
            raise OutOfMemoryError(text) from None
        memory.base = np.empty(sizes, kind, order="F" if order == "F" else "C")
        return cls._of(memory, memory.base)

    @classmethod
    def _of(cls, memory: Memory, layout: Layout) -> ndarray:
        self = object.__new__(cls)
        self._memory, self._layout, self._view = memory, layout, None
        return self

    @classmethod
    def from_view(cls, view: View) -> ndarray:
        """Return the array that lies at this view. Its memory belongs to another: it is not freed with this object."""
        dtype = np.dtype(view.dtype)
        last = sum(max(0, (n - 1) * step) for n, step in zip(view.shape, view.strides, strict=True))
        base = np.empty(view.offset + last + dtype.itemsize, np.uint8)
        layout: Layout = np.ndarray(view.shape, dtype, base, view.offset, view.strides)
        memory = Memory(current.machine(), view.buffer, owned=False)
        memory.base = base
        return cls._of(memory, layout)

    def as_view(self) -> View:
        """Return where the array lies, as plain data."""
        if self._view is None:
            layout = self._layout
            base = self._memory.base
            offset = 0 if layout is base else _address(layout) - _address(base)
            self._view = View(self._memory.buffer, offset, layout.shape, layout.strides, _name(layout.dtype))
        return self._view

    def seen_as(self, layout: Layout) -> ndarray:
        """Return an array on the same memory, whose layout is the given view of this array's layout."""
        return ndarray._of(self._memory, layout)

    # what is known without asking the device

    @property
    def shape(self) -> tuple[int, ...]:
        return self._layout.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        self._layout, self._view = in_shape(self._layout, shape), None

    dtype = property(attrgetter("_layout.dtype"))
    strides = property(attrgetter("_layout.strides"))
    ndim = property(attrgetter("_layout.ndim"))
    size = property(attrgetter("_layout.size"))
    itemsize = property(attrgetter("_layout.itemsize"))
    nbytes = property(attrgetter("_layout.nbytes"))
    flags = property(attrgetter("_layout.flags"))

    @property
    def T(self) -> ndarray:  # noqa: N802 (NumPy's name)
        return self.seen_as(self._layout.T)

    @property
    def real(self) -> ndarray:
        return self.seen_as(self._layout.real)

    @property
    def device(self) -> Any:
        from unrolled.simgpu import cuda

        return cuda.Device()

    def __len__(self) -> int:
        return len(self._layout)

    def __iter__(self) -> Iterator[ndarray]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    if TYPE_CHECKING:  # methods.py puts them on the class

        def __getitem__(self, key: Any) -> Any: ...
        def __setitem__(self, key: Any, value: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"ndarray.{name} is not simulated")

    # to and from the host

    def get(self, stream: Any = None, order: str = "C", blocking: bool = True, out: Any = None) -> Any:
        """Return the values as a NumPy array on the host, in `out` if given. Waits for the work on the stream.

        Raises TypeError or ValueError for an `out` of another dtype or shape.
        """
        if out is not None:
            self._check_host(out, "obtained from", "Expected shape: {}, actual shape: {}")
        number = current.number(stream)
        current.streams.append(number)  # CuPy makes the copy there, too
        try:
            whole = self if self.flags.forc else self.copy()
        finally:
            current.streams.pop()
        data = current.machine().download(place(whole, current.machine()), number)
        host = np.frombuffer(data, self.dtype).reshape(self.shape)
        if out is not None:
            out[...] = host
            return out
        return host.copy(order="F" if order == "F" else "C")

    def _check_host(self, host: Any, done: str, shapes: str) -> None:
        if not isinstance(host, np.ndarray):
            raise TypeError(f"Only numpy.ndarray can be {done} cupy.ndarray")
        if host.dtype != self.dtype:
            raise TypeError(f"{host.dtype} array cannot be {done} {self.dtype} array")
        if host.shape != self.shape:
            raise ValueError(f"Shape mismatch. {shapes.format(self.shape, host.shape)}")

    def set(self, arr: Any, stream: Any = None) -> None:
        """Copy a NumPy array of the same shape and dtype to the device."""
        self._check_host(arr, "set to", "Old shape: {}, new shape: {}")
        if not self.flags.forc:
            raise RuntimeError("Cannot set to non-contiguous array")
        data = arr.astype(arr.dtype.newbyteorder("="), copy=False).tobytes()
        current.machine().upload(place(self, current.machine()), data, current.number(stream), blocking=stream is None)

    def item(self, *index: Any) -> Any:
        """Return one value as a Python number. Waits for the device."""
        if index or self.size != 1:
            return self[index[0] if len(index) == 1 and isinstance(index[0], tuple) else index].get().item()
        return self.get().item()

    def tolist(self) -> Any:
        return self.get().tolist()

    def tobytes(self, order: str = "C") -> bytes:
        return bytes(self.get(order=order).tobytes(order="F" if order == "F" else "C"))

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
            )
        return bool(self.size and self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __complex__(self) -> complex:
        return complex(self.get())

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __repr__(self) -> str:
        return repr(self.get())

    def __str__(self) -> str:
        return str(self.get())

    def __format__(self, spec: str) -> str:
        return format(self.get().item() if not self.ndim else self.get(), spec)

    # copies and views

    def view(self, dtype: Any = None) -> ndarray:
        """Return an array on the same memory; with `dtype`, its bytes are read as that type."""
        return self.seen_as(self._layout.view() if dtype is None else self._layout.view(dtype))

    def copy(self, order: str = "C") -> ndarray:
        """Return a copy with memory of its own. order: C, F, or K (as this array lies)."""
        return self.astype(self.dtype, order)

    def astype(self, dtype: Any, order: str = "K", casting: None = None, copy: bool = True) -> ndarray:
        """Return a copy in another dtype; this array itself where nothing changes and `copy` is False.

        Raises TypeError for a rule of casting: CuPy has none but "unsafe".
        """
        if casting is not None:
            raise TypeError("casting is not supported yet")
        kind = np.dtype(dtype)
        if not copy and kind == self.dtype and (order in "KA" or self.flags[f"{order}_CONTIGUOUS"]):
            return self
        result = empty_like(self, kind, order)
        launch("copy", [self], [result])
        return result

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> ndarray:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """As CuPy's: the values go by way of the host."""
        return sys.modules["unrolled.simgpu"].asarray, (self.get(),)


def empty_like(prototype: ndarray, dtype: Any = None, order: str = "K", shape: Any = None) -> ndarray:
    """Return an array with undefined values, of the prototype's shape, dtype and memory order unless given."""
    x = check(prototype)
    if shape is not None:
        return ndarray(shape, dtype or x.dtype, order)
    kind = x.dtype if dtype is None else np.dtype(dtype)
    if order == "C" or (x.flags.c_contiguous and order != "F"):
        return ndarray(x.shape, kind)
    return shaped_like(np.empty_like(x._layout, kind, order=order))  # type: ignore[call-overload]


def shaped_like(layout: Layout) -> ndarray:
    """Return a new array with the layout of this NumPy array, whose axes may lie in any order but without gaps."""
    flat = ndarray(layout.size, layout.dtype)
    if layout.flags.c_contiguous:
        return flat.seen_as(flat._layout.reshape(layout.shape))
    axes = sorted(range(layout.ndim), key=lambda axis: -layout.strides[axis])
    inner = flat._layout.reshape([layout.shape[axis] for axis in axes])
    return flat.seen_as(inner.transpose(np.argsort(axes)))


def launch(op: str, inputs: Sequence[Any], outputs: Sequence[ndarray], options: Options | None = None) -> None:
    """Send one command to the machine, on the stream in use. Inputs are arrays, numbers or None.

    Raises TypeError for anything else: nothing moves by itself.
    """
    machine = current.machine()
    operands: list[Operand] = []
    for x in inputs:
        number = x is None or isinstance(x, SCALARS)
        operands.append((x.item() if isinstance(x, np.generic) else x) if number else place(check(x), machine))
    machine.launch(op, operands, [place(x, machine) for x in outputs], options or {}, current.streams[-1])


def launch_kernel(name: str, inputs: Sequence[Any], outputs: Sequence[ndarray], options: Options | None = None) -> None:
    """Launch a kernel of the library by its name: it writes the outputs."""
    launch("kernel", inputs, outputs, {**(options or {}), "name": name})


def what_numpy_does(function: Any) -> str:
    """Return the first sentence of NumPy's docstring for a function of NumPy, and whose words these are."""
    first, *others = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    text = others[0] if first.startswith(f"{function.__name__}(") else first  # a ufunc's begins with how it is called
    return f"{' '.join(text.split()).partition('. ')[0].rstrip('.')} (in the words of numpy.{function.__name__})"


def check(x: Any) -> ndarray:
    """Return x. Raises TypeError, in CuPy's words, for what is no array of the device."""
    if not isinstance(x, ndarray):
        raise TypeError(f"Unsupported type {type(x)}")
    return x


def check_types(values: Sequence[Any]) -> None:
    """Raise TypeError, in CuPy's words, for what is neither an array of the device nor a number."""
    for x in values:
        if not isinstance(x, SCALARS):
            check(x)


def check_cast(what: str, dtype: Any, to: Any, casting: Any = "same_kind") -> None:
    """Raise TypeError, in NumPy's words, where `casting` does not let what has this dtype be written `to` another."""
    if not np.can_cast(dtype, to, casting):
        raise TypeError(f"Cannot cast {what} from {dtype!r} to {to!r} with casting rule {casting!r}")


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the common shape of these shapes. Raises ValueError, in NumPy's words, where there is none."""
    if len(set(shapes)) == 1:
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        text = " ".join(str(shape).replace(" ", "") for shape in shapes)
        raise ValueError(f"operands could not be broadcast together with shapes {text}") from None


def check_fits(x: Any, dtype: np.dtype[Any]) -> None:
    """Raise OverflowError, ValueError (NaN) or TypeError, as NumPy does, for a Python number this dtype cannot hold."""
    if type(x) in (int, float, complex) and (dtype.kind in "iu" or (dtype.kind == "f" and type(x) is complex)):
        np.asarray(x, dtype)


def place(x: ndarray, machine: Machine) -> View:
    if x._memory.machine is not machine:
        raise ValueError("this array lies on a simulated GPU that is gone: use(), reset() or connect() came after it")
    return x.as_view()


@lru_cache(maxsize=64)
def _name(dtype: np.dtype[Any]) -> str:
    return str(dtype.name)


def _address(layout: Layout) -> int:
    return int(layout.__array_interface__["data"][0])
