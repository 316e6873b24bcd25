"""The memory of a simulated GPU: a pool of blocks, and arrays on them that reach no byte beyond."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
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
        self.used = self.total = self.peak = 0
        self._blocks: dict[int, Any] = {}
        self._free: dict[int, list[Any]] = {}
        self._next = 0
        self._lock = threading.RLock()  # arrays are freed by finalizers, at any time and in any thread

    def take(self, nbytes: int) -> tuple[int, bool]:
        """Return a new buffer's id, and whether the pool had to grow. Raises OutOfMemoryError if there is no room."""
        size = -(-nbytes // BLOCK) * BLOCK
        with self._lock:
            kept = self._free.get(size)
            grew = not kept
            block = kept.pop() if kept else self._grow(nbytes, size)
            self._next += 1
            self.buffers[self._next], self._blocks[self._next] = block[:nbytes], block
            self.used += size
            self.peak = max(self.peak, self.used)
            return self._next, grew

    def give(self, buffer: int) -> int | None:
        """Take a buffer back and return its bytes, or None for an unknown id."""
        with self._lock:
            block = self._blocks.pop(buffer, None)
            if block is None:
                return None
            self._free.setdefault(block.nbytes, []).append(block)
            self.used -= block.nbytes
            return int(self.buffers.pop(buffer).nbytes)

    def drop(self) -> None:
        """Let go of all free blocks."""
        with self._lock:
            self._free.clear()
            self.total = self.used

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
