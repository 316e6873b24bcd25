"""Which bytes of memory a kernel or a copy touches, as exactly as its operands tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
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
    low, high, cells, is_gapless = _reach(view.offset, tuple(view.shape), tuple(view.strides), view.dtype)
    if key is not None and sum(part.size for part in key if isinstance(part, np.ndarray)) <= LARGEST:
        yield Touch(history, view.buffer, kind, low, high, partial(cells, key))
    else:
        yield Touch(history, view.buffer, kind, low, high, None if is_gapless else cells)


@lru_cache(maxsize=4096)
def _reach(
    offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str
) -> tuple[int, int, Strided, bool]:  # fmt: skip
    """The first byte of an array, the one behind its last, which it has of these, and whether it has all of them."""
    itemsize = int(operations.dtype_of(dtype).itemsize)
    reach = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    low = offset + sum(r for r in reach if r < 0)
    high = offset + sum(r for r in reach if r > 0) + itemsize
    inner, is_gapless = itemsize, True  # values lie side by side, in whatever order
    for step, n in sorted((abs(step), n) for step, n in zip(strides, shape, strict=True) if n > 1):
        is_gapless &= step == inner
        inner *= n
    return low, high, Strided(offset - low, high - low, shape, strides, itemsize), is_gapless


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
