"""A dense layer over several ranks: split by its outputs (columns of x @ W^T) or by its inputs (rows).

The two belong together: the outputs of a `ColumnLinear`, after any function of single values, are the inputs of a
`RowLinear` as they lie, so that the pair takes one all-reduce forward and one backward (Shoeybi et al., "Megatron-LM",
2019). First weights are the slices of those that the unsplit layers draw.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.device import Array, array_module, to_device, to_host
from unrolled.nn.layers import Linear, Shape, Weighted
from unrolled.ops.arguments import check_whole
from unrolled.parallel.communicator import Communicator
from unrolled.parallel.shards import shard


@dataclass(eq=False, repr=False)
class ColumnLinear(Linear):
    """A dense layer of which each rank has some of the outputs: (N, D) to (N, features of this rank).

    Every rank has all of x; the gradient by x is summed over the ranks.
    """

    comm: Communicator = field(kw_only=True)

    def __post_init__(self) -> None:
        _check_comm(self.comm)

    def build(self, shape: Shape) -> Shape:
        if len(shape) != 1:
            raise ValueError(f"{self!r} takes flat samples (D,), got {shape}: put Flatten() before it")
        check_whole("features", self.features, self.comm.size)
        mine = shard(self.features, self.comm.rank, self.comm.size)
        self.weight_shape = (mine.stop - mine.start, shape[0])
        self.multiply_adds = self.weight_shape[0] * shape[0]
        return (self.weight_shape[0],)

    def initial(self, rng: np.random.Generator) -> dict[str, Array]:
        mine = shard(self.features, self.comm.rank, self.comm.size)
        whole = _drawn(self, (self.features, self.weight_shape[1]), rng)
        return {name: values[mine] for name, values in whole.items()}

    def backward(self, grad: Array) -> Array | None:
        grad_x = super().backward(grad)
        return None if grad_x is None else self.comm.all_reduce(grad_x, out=grad_x)


@dataclass(eq=False, repr=False)
class RowLinear(Linear):
    """A dense layer of which each rank has some of the inputs: (N, D of this rank) to (N, features) on every rank.

    The sum over the ranks is the product; the bias is added once, on rank 0. All ranks build it together, since each
    asks how many inputs the others have. Once it is built, `summary` and `load` ask nobody.
    """

    comm: Communicator = field(kw_only=True)
    _inputs: tuple[int, int] = field(default=(0, 0), init=False)  # where this rank's begin, and how many there are

    def __post_init__(self) -> None:
        _check_comm(self.comm)

    def build(self, shape: Shape) -> Shape:
        known = self._inputs[1] and self.weight_shape[1:] == tuple(shape)
        mine = super().build(shape)
        if known:
            return mine
        sizes = to_host(self.comm.all_gather(to_device(np.array([shape[0]]), self.comm.module)))
        self._inputs = int(sizes[: self.comm.rank].sum()), int(sizes.sum())
        return mine

    def initial(self, rng: np.random.Generator) -> dict[str, Array]:
        start, inputs = self._inputs
        whole = _drawn(self, (self.features, inputs), rng)
        return {"weight": whole["weight"][:, start : start + self.weight_shape[1]], "bias": whole["bias"]}

    def forward(self, x: Array, training: bool = False) -> Array:
        self._kept = x if training else None
        bias = self.parameters["bias"]
        y = ops.affine(x, self.parameters["weight"], bias if self.comm.rank == 0 else array_module(x).zeros_like(bias))
        return self.comm.all_reduce(y, out=y)


def _check_comm(comm: Communicator) -> None:
    if not isinstance(comm, Communicator):
        raise TypeError(f"comm is {comm!r}; expected a communicator, as parallel.world() and parallel.run give it")


def _drawn(layer: Weighted, shape: Shape, rng: np.random.Generator) -> dict[str, Any]:
    """The first values of the unsplit layer."""
    mine, layer.weight_shape = layer.weight_shape, shape
    try:
        return Weighted.initial(layer, rng)
    finally:
        layer.weight_shape = mine
