"""The memory of a machine: its pool, arrays on that, and which bytes kernels of the program's own wrote last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from unrolled.simgpu import operations
from unrolled.simgpu.command import InvalidCommandError, Operand, View, Views
from unrolled.simgpu.lockstep.arrays import GlobalArray
from unrolled.simgpu.pool import Pool, array_of
from unrolled.simgpu.touches import Place


class Memory:
    """A pool, and arrays of at most so many elements on it."""

    def __init__(self, pool: Pool, elements: int) -> None:
        self.pool, self._elements = pool, elements
        self._own: dict[int, Any] = {}
        """Of each buffer that kernels of the program's own wrote: which bytes one of these wrote last."""

    def array(self, view: View) -> Any:
        """Return the NumPy array that lies at a view. Raises InvalidCommandError for what is none."""
        if not isinstance(view, View):
            raise InvalidCommandError(f"an operand of type {type(view).__name__}; expected a View")
        return array_of(view, self.pool.buffers, self._elements)

    def operand(self, x: Operand) -> Any:
        """Return an operand as NumPy takes it: None, a number, or the array at a view."""
        return x if x is None else self.array(x) if isinstance(x, View) else operations.scalar(x)

    def argument(self, x: View | tuple[str, bool | int | float]) -> Any:
        """Return an argument as a kernel sees it: a number, or all of a buffer and where in it the array lies."""
        if not isinstance(x, View):
            dtype, number = x
            try:
                return operations.dtype_of(dtype).type(operations.scalar(number))
            except (OverflowError, TypeError) as error:
                raise InvalidCommandError(f"a number that is no {dtype}: {error}") from None
        array, memory = self.array(x), self.pool.buffers[x.buffer]
        itemsize = array.itemsize
        if any(n % itemsize for n in (x.offset, *x.strides)):
            raise InvalidCommandError(f"a view of {array.dtype} that lies askew in its memory")
        flat = memory[: memory.nbytes // itemsize * itemsize].view(array.dtype)
        steps = tuple(stride // itemsize for stride in x.strides)
        return GlobalArray("", flat, x.offset // itemsize, tuple(x.shape), steps, x.buffer)

    def places(self, operands: Sequence[Any]) -> list[Place]:
        """Return those of the operands that are views, each with what was done to its memory."""
        return [(self.pool.blocks[x.buffer].history, x) for x in operands if isinstance(x, View)]

    def own_bytes(self, view: View) -> int:
        """Return how many bytes of an array a kernel of the program's own wrote last."""
        self.array(view)
        return sum(self._notes(view).tobytes()) if view.buffer in self._own else 0

    def wrote(self, arrays: Iterable[GlobalArray]) -> None:
        """Note what such a kernel has written."""
        for array in arrays:
            if array.shadow is not None and (memory := self.pool.buffers.get(array.buffer)) is not None:
                own = self._own.setdefault(array.buffer, np.zeros(memory.nbytes, np.uint8))
                cells = array.shadow.written(np.arange(array.shadow.cells))
                written = cells.repeat(array.data.itemsize // array.unit)[: len(own)]
                own[: len(written)] |= written

    def lost(self, views: Views) -> None:
        """Note that something else has written to these."""
        for view in views:
            if view.buffer in self._own:
                self._notes(view)[...] = 0

    def free(self, buffer: int) -> int | None:
        """Give a buffer back, and return its bytes; None for an unknown one."""
        self._own.pop(buffer, None)
        return self.pool.give(buffer)

    def _notes(self, view: View) -> Any:
        return array_of(view, self._own, self._elements)
