"""The memory of a simulated GPU: a pool of blocks, and arrays on them that reach no byte beyond."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

import numpy as np

from unrolled.simgpu import operations
from unrolled.simgpu.command import InvalidCommandError, OutOfMemoryError, View

BLOCK = 512
"""The pool gives out multiples of so many bytes, as CuPy's does."""
DIMENSIONS = 32
INTEGER = 2**62
"""No offset, length or stride is larger."""


class Pool:
    """Blocks of memory: live ones by id, and free ones by size, kept for the next array of that size."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.buffers: dict[int, Any] = {}
        self.used = self.total = 0
        self._kept = 0
        """Bytes of blocks that graphs hold and no array uses."""
        self._holds: dict[int, int] = {}
        """How many captures and graphs hold a block, by its id()."""
        self.blocks: dict[int, Any] = {}
        """The blocks of the buffers that live."""
        self._free: dict[int, list[Any]] = {}
        self.newest = 0
        """The id of the buffer that was taken last."""
        self._lock = threading.RLock()  # arrays are freed by finalizers, at any time and in any thread

    def take(self, nbytes: int) -> tuple[int, bool]:
        """Return a new buffer's id, and whether the pool had to grow. Raises OutOfMemoryError if there is no room."""
        size = -(-nbytes // BLOCK) * BLOCK
        with self._lock:
            kept = self._free.get(size)
            grew = not kept
            block = kept.pop() if kept else self._grow(nbytes, size)
            self.newest += 1
            self.buffers[self.newest], self.blocks[self.newest] = block[:nbytes], block
            self.used += size
            return self.newest, grew

    def has(self, nbytes: int) -> bool:
        """Return whether a free block is there for so many bytes; none need no block."""
        return not nbytes or bool(self._free.get(-(-nbytes // BLOCK) * BLOCK))

    def hold(self, blocks: Iterable[Any]) -> None:
        """Give these blocks to no array until they are released: those that are free now, others once they are."""
        with self._lock:
            for block in blocks:
                self._holds[id(block)] = self._holds.get(id(block), 0) + 1
                free = self._free.get(block.nbytes, [])
                place = next((i for i, other in enumerate(free) if other is block), None)
                if place is not None:
                    self._kept += free.pop(place).nbytes

    def release(self, blocks: Iterable[Any]) -> None:
        """Take back one `hold` of each block; what no array uses is free then."""
        with self._lock:
            used = {id(block) for block in self.blocks.values()}
            for block in blocks:
                self._holds[id(block)] -= 1
                if not self._holds[id(block)]:
                    del self._holds[id(block)]
                    if id(block) not in used:
                        self._kept -= block.nbytes
                        self._free.setdefault(block.nbytes, []).append(block)

    def give(self, buffer: int) -> int | None:
        """Take a buffer back and return its bytes, or None for an unknown id."""
        with self._lock:
            block = self.blocks.pop(buffer, None)
            if block is None:
                return None
            if id(block) in self._holds:
                self._kept += block.nbytes
            else:
                self._free.setdefault(block.nbytes, []).append(block)
            self.used -= block.nbytes
            return int(self.buffers.pop(buffer).nbytes)

    def drop(self) -> None:
        """Let go of all free blocks."""
        with self._lock:
            self._free.clear()
            self.total = self.used + self._kept

    def _grow(self, nbytes: int, size: int) -> Any:
        if self.total + size > self.capacity:
            self.drop()
        if self.total + size > self.capacity:
            raise OutOfMemoryError(
                f"Out of memory allocating {size:,} bytes (allocated so far: {self.total:,} bytes, "
                f"in use: {self.used:,} bytes, limit set to: {self.capacity:,} bytes)."
            )
        try:
            block = np.zeros(size, np.uint8)  # zeros: nobody sees what this process had there
        except MemoryError:
            raise OutOfMemoryError(f"Out of memory allocating {nbytes:,} bytes: this computer has no more") from None
        self.total += size
        return block


def array_of(view: View, buffers: Mapping[int, Any], elements: int) -> Any:
    """Return the view as a NumPy array on its buffer.

    Raises InvalidCommandError for what is no view, and if any of the view would lie outside of the buffer.
    """
    dtype = operations.dtype_of(view.dtype)
    memory = buffers.get(view.buffer) if type(view.buffer) is int else None
    if memory is None:
        raise InvalidCommandError(f"buffer {view.buffer!r:.40} does not exist")
    if type(view.shape) is not tuple or type(view.strides) is not tuple:
        raise InvalidCommandError("shape and strides of a view are tuples")
    numbers = (view.offset, *view.shape, *view.strides)
    if not all(type(n) is int and -INTEGER < n < INTEGER for n in numbers) or len(view.shape) != len(view.strides):
        raise InvalidCommandError("offset, shape and strides of a view are whole numbers, one stride for each length")
    if len(view.shape) > DIMENSIONS or min((0, *view.shape)) < 0 or prod(n or 1 for n in view.shape) > elements:
        raise InvalidCommandError(
            f"shape is {view.shape!r:.80}; expected at most {DIMENSIONS} axes, {elements:,} elements"
        )
    if not prod(view.shape):
        return np.empty(view.shape, dtype)
    reach = [(n - 1) * stride for n, stride in zip(view.shape, view.strides, strict=True)]
    low = view.offset + sum(min(0, r) for r in reach)
    high = view.offset + sum(max(0, r) for r in reach) + dtype.itemsize
    if not 0 <= low < high <= memory.nbytes:
        raise InvalidCommandError(f"a view of bytes {low:,} to {high:,} of a buffer with {memory.nbytes:,}")
    return np.ndarray(view.shape, dtype, memory, view.offset, view.strides)


def real_memory() -> int:
    """Return half of this computer's memory in bytes, or 4 GiB where the system does not tell it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # no such call on Windows
        return 4 * 2**30
