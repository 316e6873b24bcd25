"""The memory of a simulated GPU: a pool of blocks, and arrays on them that reach no byte beyond."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from unrolled.simgpu import operations
from unrolled.simgpu.command import InvalidCommandError, OutOfMemoryError, View
from unrolled.simgpu.ordering import History

BLOCK = 512
"""The pool gives out multiples of so many bytes, as CuPy's does."""
DIMENSIONS = 32
INTEGER = 2**62
"""No offset, length or stride is larger."""


class Block:
    """Memory that arrays get one after another, all of them made on one stream: so it is reused in that one's order."""

    __slots__ = ("history", "memory", "nbytes", "stream")

    def __init__(self, nbytes: int, stream: int) -> None:
        self.memory = np.zeros(nbytes, np.uint8)  # zeros: nobody sees what this process had there
        self.nbytes, self.stream = nbytes, stream
        self.history = History()


class Pool:
    """Blocks of memory: live ones by id, and free ones by size, kept for the next array of that size.

    A free block goes to arrays of its stream, as CuPy has it. Another stream gets it where it has none, as if it were
    new: so streams that come and go let no pool grow.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.buffers: dict[int, Any] = {}
        self.used = self.total = 0
        self._kept = 0
        """Bytes of blocks that graphs hold and no array uses."""
        self._holds: dict[int, int] = {}
        """How many captures and graphs hold a block, by its id()."""
        self.blocks: dict[int, Block] = {}
        """The blocks of the buffers that live."""
        self._free: dict[int, list[Block]] = {}
        self.newest = 0
        """The id of the buffer that was taken last."""
        self._lock = threading.RLock()  # arrays are freed by finalizers, at any time and in any thread

    def take(self, nbytes: int, stream: int = 0) -> tuple[int, bool]:
        """Return a new buffer's id, and whether the pool had to grow. Raises OutOfMemoryError if there is no room."""
        size = -(-nbytes // BLOCK) * BLOCK
        with self._lock:
            kept = self._free.get(size, [])
            grew = not kept
            own = (place for place in range(len(kept) - 1, -1, -1) if kept[place].stream == stream)
            block = kept.pop(next(own, -1)) if kept else self._grow(nbytes, size, stream)
            if block.stream != stream:  # CuPy would give other memory, to which nothing was done
                block.stream, block.history = stream, History()
            self.newest += 1
            self.buffers[self.newest], self.blocks[self.newest] = block.memory[:nbytes], block
            self.used += size
            return self.newest, grew

    def has(self, nbytes: int) -> bool:
        """Return whether a free block is there for so many bytes; none need no block."""
        return not nbytes or bool(self._free.get(-(-nbytes // BLOCK) * BLOCK))

    def hold(self, blocks: Iterable[Block]) -> None:
        """Give these blocks to no array until they are released: those that are free now, others once they are."""
        with self._lock:
            for block in blocks:
                self._holds[id(block)] = self._holds.get(id(block), 0) + 1
                free = self._free.get(block.nbytes, [])
                place = next((i for i, other in enumerate(free) if other is block), None)
                if place is not None:
                    self._kept += free.pop(place).nbytes

    def release(self, blocks: Iterable[Block]) -> None:
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

    def _grow(self, nbytes: int, size: int, stream: int) -> Block:
        if self.total + size > self.capacity:
            self.drop()
        if self.total + size > self.capacity:
            raise OutOfMemoryError(
                f"Out of memory allocating {size:,} bytes (allocated so far: {self.total:,} bytes, "
                f"in use: {self.used:,} bytes, limit set to: {self.capacity:,} bytes)."
            )
        try:
            block = Block(size, stream)
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
    shape, strides = view.shape, view.strides
    if len(shape) != len(strides) or not all(map(_is_whole, (view.offset, *shape, *strides))):
        raise InvalidCommandError("offset, shape and strides of a view are whole numbers, one stride for each length")
    low = high = view.offset
    size = most = 1
    for n, stride in zip(shape, strides, strict=True):
        size, most, reach = size * n, most * (n or 1), (n - 1) * stride
        low, high = (low + reach, high) if reach < 0 else (low, high + reach)
    if len(shape) > DIMENSIONS or min(shape, default=0) < 0 or most > elements:
        raise InvalidCommandError(f"shape is {shape!r:.80}; expected at most {DIMENSIONS} axes, {elements:,} elements")
    if not size:
        return np.empty(shape, dtype)
    high += dtype.itemsize
    if not 0 <= low < high <= memory.nbytes:
        raise InvalidCommandError(f"a view of bytes {low:,} to {high:,} of a buffer with {memory.nbytes:,}")
    return np.ndarray(shape, dtype, memory, view.offset, strides)


def _is_whole(n: Any) -> bool:
    return type(n) is int and -INTEGER < n < INTEGER


def real_memory() -> int:
    """Return half of this computer's memory in bytes, or 4 GiB where the system does not tell it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # no such call on Windows
        return 4 * 2**30
