"""Dropout on many ranks: each draws what one rank draws for the whole mini-batch, and takes its own rows of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from unrolled.device import Array, array_module, to_device, to_host
from unrolled.nn import Dropout, Sequential
from unrolled.parallel.communicator import Communicator
from unrolled.parallel.shards import shard


@contextmanager
def drawing_together(comm: Communicator, network: Sequential) -> Iterator[Callable[[int], None]]:
    """Let the network's Dropout layers draw as on one rank, from rank 0's seeds on.

    They begin anew there, whatever they have drawn before: ranks may have drawn differently, and no library tells where
    a generator on a GPU is. Yields what is to be called with the number of all ranks' images, before each mini-batch.
    """
    layers = [layer for layer in network.layers if isinstance(layer, Dropout)]
    module = array_module(network.parameters)
    shared = []
    if layers:
        seeds = comm.broadcast(to_device(np.array([layer.seed for layer in layers], np.int64), module))
        for layer, seed in zip(layers, to_host(seeds).tolist(), strict=True):
            layer.seed = seed
            shared.append(OwnRows(module.random.default_rng(seed)))
    for layer, rows in zip(layers, shared, strict=True):
        layer.generator = rows

    def begin(total: int) -> None:
        for rows in shared:
            rows.begin(total, shard(total, comm.rank, comm.size).start)

    try:
        yield begin
    finally:
        for layer, rows in zip(layers, shared, strict=True):
            layer.generator = rows.end()


class OwnRows:
    """A generator for a rank's rows of mini-batches: it draws for all rows, as late as it can."""

    def __init__(self, rng: Any) -> None:
        self._rng = rng
        self._todo: list[int] = []  # rows of mini-batches that are still to be drawn
        self._drawn: Array = None
        self._next = 0

    def begin(self, total: int, start: int) -> None:
        """Begin a mini-batch of `total` rows, of which this rank's begin with row `start`."""
        self._todo.append(total)
        self._next = start

    def random(self, shape: Sequence[int], dtype: Any) -> Array:
        """Return the numbers of the next shape[0] rows of this mini-batch."""
        self._draw(shape[1:], dtype)
        rows = slice(self._next, self._next + shape[0])
        self._next = rows.stop
        return self._drawn[rows]

    def end(self) -> Any:
        """Return the generator, as far as one rank would have used it."""
        if self._drawn is not None:  # else this rank had no rows in any mini-batch
            self._draw(self._drawn.shape[1:], self._drawn.dtype)
        return self._rng

    def _draw(self, row: Sequence[int], dtype: Any) -> None:
        for total in self._todo:
            self._drawn = self._rng.random((total, *row), dtype=dtype)
        self._todo.clear()
