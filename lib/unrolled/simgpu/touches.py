"""Which bytes of memory a kernel or a copy touches, as exactly as its operands tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from unrolled.simgpu import operations
from unrolled.simgpu.command import View
from unrolled.simgpu.lockstep.arrays import GlobalArray
from unrolled.simgpu.ordering import ATOMIC, READ, WRITE, History, Touch

Place: TypeAlias = tuple[History, View]
HIDDEN = ("random", "random.seed")
"""Operations whose last output is the state of a generator, which CuPy keeps to itself."""
LARGEST = 2**16
"""How many numbers an index may have to be kept. What a larger one names counts as all of the array."""


def of_launch(op: str, inputs: Sequence[Place], outputs: Sequence[Place], key: Any = None) -> Iterator[Touch]:
    """Yield what an operation touches: it reads inputs, and writes outputs. key: of what index arrays name."""
    adds = op.endswith(".at")
    for number, place in enumerate(inputs):
        yield from of_view(*place, READ, key if op == "getitem" and not number else None)
    for place in outputs[: len(outputs) - (op in HIDDEN)]:
        yield from of_view(*place, ATOMIC if adds else WRITE, key if adds or op == "setitem" else None)


def indexed(op: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """Return that of an operation's arrays of which index arrays name the values; None where there is none."""
    return inputs[0] if op == "getitem" else outputs[0] if op == "setitem" or op.endswith(".at") else None


def of_view(history: History, view: View, kind: str, key: Any = None) -> Iterator[Touch]:
    """Yield the touch of an array, or of what a key names in it; nothing where it has no values."""
    if not view.size:
        return
    itemsize = int(operations.dtype_of(view.dtype).itemsize)
    reach = [(n - 1) * step for n, step in zip(view.shape, view.strides, strict=True)]
    low = view.offset + sum(r for r in reach if r < 0)
    high = view.offset + sum(r for r in reach if r > 0) + itemsize
    cells: Any = Strided(view.offset - low, high - low, view.shape, view.strides, itemsize)
    if key is not None and sum(part.size for part in key if isinstance(part, np.ndarray)) <= LARGEST:
        cells = partial(cells, key)
    elif _is_gapless(view, itemsize):
        cells = None
    yield Touch(history, view.buffer, kind, low, high, cells)


def _is_gapless(view: View, itemsize: int) -> bool:
    """Whether the values lie side by side, in whatever order."""
    inner = itemsize
    for step, n in sorted((abs(step), n) for step, n in zip(view.strides, view.shape, strict=True) if n > 1):
        if step != inner:
            return False
        inner *= n
    return True


@dataclass(frozen=True)
class Strided:
    """The bytes of an array from the first to the last, `size` of them; its first value begins at byte `start`."""

    start: int
    size: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    def __call__(self, key: Any = ...) -> Any:
        """Return which of these bytes belong to values of the array, those that a key names."""
        found = np.zeros(self.size, bool)
        np.ndarray((*self.shape, self.itemsize), bool, found, self.start, (*self.strides, 1))[key] = True
        return found


@dataclass(frozen=True)
class Marked:
    """Which of `count` cells, of `size` bytes each, were touched: a bit for each."""

    bits: bytes
    count: int
    size: int

    @classmethod
    def of(cls, touched: Any, size: int) -> Marked:
        return cls(np.packbits(touched).tobytes(), len(touched), size)

    def __call__(self) -> Any:
        """Return a bool for each byte."""
        cells = np.unpackbits(np.frombuffer(self.bits, np.uint8), count=self.count)
        return cells.astype(bool).repeat(self.size)


def of_kernel(histories: Mapping[int, History], arrays: Iterable[GlobalArray]) -> list[Touch]:
    """Return what a kernel of the program's own touched, by what its lanes did; histories: by buffer."""
    found = []
    for array in {id(array.shadow or array): array for array in arrays}.values():
        records = {READ: array.fetched} if array.shadow is None else array.shadow.touched()
        for kind, touched in records.items():
            places = np.flatnonzero(touched)
            if len(places):
                first, last = int(places[0]), int(places[-1]) + 1
                size = array.data.itemsize // array.unit
                part = None if len(places) == last - first else Marked.of(touched[first:last], size)
                found.append(Touch(histories[array.buffer], array.buffer, kind, first * size, last * size, part))
    return found
