"""Pipelines: a network cut into stages, one a rank, that micro-batches pass through one behind the other.

A schedule is plain data: for each stage a list of slots, each ("F", i) for the forward pass of micro-batch i, ("B", i)
for its backward pass, or None for a bubble, in which the stage waits. `gpipe` is that of Huang et al., "GPipe", 2019;
`one_forward_one_backward` that of Narayanan et al., "PipeDream", 2019.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, TypeAlias

from unrolled.device import Array, array_module
from unrolled.nn import Dropout, Sequential
from unrolled.ops.arguments import check_whole
from unrolled.parallel.communicator import Communicator
from unrolled.parallel.same import check_same, digest
from unrolled.parallel.shards import shard

Slot: TypeAlias = "tuple[str, int] | None"
Schedule: TypeAlias = "Sequence[Sequence[Slot]]"
Work: TypeAlias = "list[tuple[str, int]]"  # of one stage, in order


def gpipe(stages: int, micro_batches: int) -> list[list[Slot]]:
    """Return the schedule that runs all forward passes, then all backward passes, the last micro-batch first.

    It takes 2 (m + p - 1) slots; a stage holds the activations of all m micro-batches.
    """
    _check(stages, micro_batches)
    forward: Work = [("F", i) for i in range(micro_batches)]
    return placed([forward + [("B", i) for i in reversed(range(micro_batches))] for _ in range(stages)])


def one_forward_one_backward(stages: int, micro_batches: int) -> list[list[Slot]]:
    """Return the schedule in which each stage, once p - s forward passes are under way, alternates (1F1B).

    It takes as many slots as `gpipe`; stage s holds the activations of at most p - s micro-batches.
    """
    _check(stages, micro_batches)
    return placed([alternating(min(stages - stage, micro_batches), micro_batches) for stage in range(stages)])


def alternating(ahead: int, micro_batches: int) -> Work:
    """Return a stage's work: `ahead` forward passes, then backward and forward passes in turn."""
    work: Work = [("F", i) for i in range(ahead)]
    for i in range(micro_batches):
        work.append(("B", i))
        if ahead + i < micro_batches:
            work.append(("F", ahead + i))
    return work


def placed(work: Sequence[Work]) -> list[list[Slot]]:
    """Return the schedule of stages that do their work in this order, each piece as early as it can.

    Raises ValueError where an order waits for itself.
    """
    done: list[dict[tuple[str, int], int]] = [{} for _ in work]  # the slot of each piece
    schedule: list[list[Slot]] = [[] for _ in work]
    slot = 0
    while any(len(there) < len(pieces) for there, pieces in zip(done, work, strict=True)):
        ready = [stage for stage in range(len(work)) if _can_begin(work, done, stage)]
        if not ready:
            raise ValueError(f"no stage can go on in slot {slot}: each waits for another one")
        for stage, row in enumerate(schedule):
            row.append(work[stage][len(done[stage])] if stage in ready else None)
        for stage in ready:
            done[stage][work[stage][len(done[stage])]] = slot
        slot += 1
    return schedule


def needs(stage: int, piece: tuple[str, int], stages: int) -> list[tuple[int, tuple[str, int]]]:
    """Return what a pass waits for, as (stage, pass): forward, the stage before; back, this one's way and the next."""
    kind, i = piece
    if kind == "F":
        return [(stage - 1, piece)] if stage > 0 else []
    return [(stage, ("F", i)), *([(stage + 1, piece)] if stage + 1 < stages else [])]


def faults(schedule: Schedule, stages: int, micro_batches: int) -> list[str]:
    """Return what is wrong with a schedule, in words: nothing if it is one of this many stages and micro-batches."""
    if len(schedule) != stages:
        return [f"the schedule has {len(schedule)} stages; expected {stages}"]
    wanted = {(kind, i) for kind in "FB" for i in range(micro_batches)}
    found: list[str] = []
    times: list[dict[tuple[str, int], int]] = []
    for stage, row in enumerate(schedule):
        pieces = [(slot, piece) for slot, piece in enumerate(row) if piece is not None]
        times.append({piece: slot for slot, piece in pieces})
        if twice := len(pieces) - len(times[-1]):
            found.append(f"stage {stage} does {twice} passes twice")
        found += [f"stage {stage} does {piece}, which there is not" for piece in times[-1].keys() - wanted]
        found += [f"stage {stage} never does {_name(piece)}" for piece in sorted(wanted - times[-1].keys())]
    return found or [
        f"stage {stage} begins {_name(piece)} in slot {slot}, before {why}"
        for stage in range(stages)
        for piece, slot in sorted(times[stage].items(), key=lambda item: item[1])
        if (why := _too_early(times, stage, piece, slot))
    ]


def activations(schedule: Schedule) -> list[int]:
    """Return for each stage how many micro-batches are at most between their forward and their backward pass there."""
    change = {"F": 1, "B": -1}
    return [max(accumulate((change[piece[0]] for piece in row if piece), initial=0)) for row in schedule]


def bubble(schedule: Schedule) -> float:
    """Return the share of all slots in which a stage waits: (p - 1) / (m + p - 1) at the least."""
    slots = len(schedule) * max(map(len, schedule))
    return 1 - sum(piece is not None for row in schedule for piece in row) / slots


class Stage:
    """One rank's part of a network: some of its layers, one behind the other, as a network of their own.

    All ranks make it from the same network. It copies its own layers only; then nobody needs that network any more.
    `network` has this rank's parameters and gradients. Raises ValueError for more ranks than layers, MismatchError for
    networks that differ between ranks, in layers or parameters.
    """

    def __init__(self, comm: Communicator, network: Sequential, input_shape: Sequence[int]) -> None:
        if comm.size > len(network.layers):
            raise ValueError(f"{comm.size} ranks, but {len(network.layers)} layers: expected at least a layer a rank")
        network.build(input_shape, array_module(network.parameters))
        check_same(comm, network, parameters=digest(network.parameters))
        part = shard(len(network.layers), comm.rank, comm.size)
        shape = tuple(input_shape)
        for layer in network.layers[: part.start]:
            shape = layer.build(shape)
        layers = [copy.copy(layer) for layer in network.layers[part]]
        for layer in layers:
            layer.network = None  # a copied layer has no arrays, and its network is the one below
        self.comm, self.input_shape, self.loss = comm, shape, network.loss
        self.network = Sequential(*layers, loss=network.loss, seed=network.seed, dtype=network.dtype)
        self.network.build(shape, array_module(network.parameters))
        self.output_shape = shape
        for mine, theirs in zip(self.network.layers, network.layers[part], strict=True):
            mine.parameters.update(theirs.parameters)
            mine.state.update(theirs.state)
            if isinstance(mine, Dropout) and isinstance(theirs, Dropout):
                mine.seed = theirs.seed
            self.output_shape = mine.build(self.output_shape)
        self.network.layers[0].is_first = comm.rank == 0

    def gradients(self, images: Array, labels: Array, schedule: Schedule) -> Array:
        """Fill this stage's gradients with those of the mean loss of a batch (N, ...), in the order of the schedule.

        Every rank gets the batch; the first stage reads the images, the last one the labels. Returns the loss, on every
        rank. Raises ValueError for a schedule that is none for these stages and as many micro-batches as it names, and
        unless there is a label for each image.
        """
        if len(images) != len(labels):
            raise ValueError(f"images {images.shape} and labels {labels.shape}: expected one label for each image")
        last = self.comm.rank == self.comm.size - 1
        micro_batches = sum(piece is not None and piece[0] == "F" for piece in schedule[0])
        if wrong := faults(schedule, self.comm.size, micro_batches):
            raise ValueError(f"schedule: {wrong[0]}")
        if micro_batches > len(images):
            raise ValueError(
                f"schedule has {micro_batches} micro-batches; expected at most {len(images)}, the images of the batch"
            )
        parts = [shard(len(images), number, micro_batches) for number in range(micro_batches)]
        module = array_module(self.network.parameters)
        summed, loss = module.zeros(self.network.gradients.shape, dtype=self.network.dtype), 0.0
        kept: dict[int, Any] = {}
        for kind, number in (piece for piece in schedule[self.comm.rank] if piece is not None):
            part = parts[number]
            share = (part.stop - part.start) / len(images)
            if kind == "F":
                scores = self._forward(images[part], kept, number)
                if last:
                    value, grad = self.loss(scores, labels[part])
                    loss, kept[number] = loss + value * share, (*kept[number], grad)
            else:
                self._backward(kept.pop(number), part.stop - part.start)
                summed += self.network.gradients * share
        self.network.gradients[...] = summed
        told = module.zeros(1, dtype=self.network.dtype)
        told += loss
        return self.comm.broadcast(told, root=self.comm.size - 1)[0]

    def _forward(self, images: Array, kept: dict[int, Any], number: int) -> Array:
        """Run the forward pass of a micro-batch and send its result on; keep what its backward pass needs."""
        x = images
        if self.comm.rank > 0:
            x = self.comm.receive(self._like(len(images), self.input_shape), self.comm.rank - 1)
        y = self.network.forward(x, training=True)
        kept[number] = ([layer.remember(None) for layer in self.network.layers],)
        if self.comm.rank < self.comm.size - 1:
            self._send(y, self.comm.rank + 1)
        return y

    def _backward(self, kept: Any, size: int) -> None:
        """Run the backward pass of a micro-batch and send its gradient back."""
        values, *grads = kept
        grad = grads[0] if grads else self.comm.receive(self._like(size, self.output_shape), self.comm.rank + 1)
        for layer, value in zip(self.network.layers, values, strict=True):
            layer.remember(value)
        for layer in reversed(self.network.layers):
            grad = layer.backward(grad)
        if self.comm.rank > 0:
            self._send(grad, self.comm.rank - 1)

    def _send(self, x: Array, to: int) -> None:
        """Send x in the network's dtype, in which it is awaited: images of another one come as they are."""
        self.comm.send(array_module(x).ascontiguousarray(x.astype(self.network.dtype, copy=False)), to)

    def _like(self, size: int, shape: Sequence[int]) -> Array:
        return array_module(self.network.parameters).empty((size, *shape), dtype=self.network.dtype)


def _check(stages: int, micro_batches: int) -> None:
    check_whole("stages", stages)
    check_whole("micro_batches", micro_batches)


def _can_begin(work: Sequence[Work], done: Sequence[dict[tuple[str, int], int]], stage: int) -> bool:
    if len(done[stage]) == len(work[stage]):
        return False
    return all(piece in done[where] for where, piece in needs(stage, work[stage][len(done[stage])], len(work)))


def _too_early(times: Sequence[dict[tuple[str, int], int]], stage: int, piece: tuple[str, int], slot: int) -> str:
    """What a pass ought to wait for, in words; nothing if it does."""
    for where, other in needs(stage, piece, len(times)):
        if times[where][other] >= slot:
            return f"stage {where} has ended {_name(other)}"
    return ""


def _name(piece: tuple[str, int]) -> str:
    return f"{'forward' if piece[0] == 'F' else 'backward'} {piece[1]}"
