"""The gradient of a mini-batch whose images are shared out among ranks: summed in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from unrolled.device import Array, array_module
from unrolled.nn import Sequential
from unrolled.parallel.communicator import Communicator, Pending


def gradients(
    comm: Communicator,
    network: Sequential,
    images: Array,
    labels: Array,
    total: int,
    pieces: Sequence[slice] = (slice(None),),
) -> tuple[Array, Array]:
    """Fill `network.gradients` with the gradient of the mean loss over all ranks' `total` images.

    images and labels are this rank's, none where a short batch leaves it without. `pieces` of the gradient are summed
    one by one, the last first, as soon as the backward pass has filled them. Dropout draws for this rank's images alone
    (`fit` lets it draw as one rank would). Returns this rank's share of the loss (its sum over ranks is the loss of the
    batch) and its scores (N, M).
    """
    if len(pieces) > 1 and len(images):
        return _overlapped(comm, network, images, labels, total, pieces)
    if len(images):
        share = len(images) / total
        scores = network.forward(images, training=True)
        loss, grad = network.loss(scores, labels)
        loss = loss * share
        network.backward(grad * share)  # here it is small: one pass less over all gradients
    else:
        module = array_module(network.parameters)
        network.gradients[...] = 0
        loss, scores = module.zeros((), dtype=network.dtype), module.zeros((0, 1), dtype=network.dtype)
    if len(pieces) == 1:
        comm.all_reduce(network.gradients, out=network.gradients)
    else:  # without images: as the others do
        for pending in [comm.start_all_reduce(piece, out=piece) for piece in _views(network, pieces)]:
            pending.wait()
    return loss, scores


def cuts(network: Sequential, count: int) -> list[slice]:
    """Return at most `count` slices of the flat gradient, of about the same size, cut between layers."""
    sizes = [sum(map(prod, layer.parameter_shapes.values())) for layer in network.layers]
    ends = np.cumsum(sizes).tolist()
    wanted = [len(network.gradients) * number / count for number in range(1, count)]
    nearest = {min((abs(end - at), end) for end in ends)[1] for at in wanted}
    inner = sorted(nearest - {0, len(network.gradients)})
    return [slice(a, b) for a, b in zip([0, *inner], [*inner, len(network.gradients)], strict=True)]


def _overlapped(
    comm: Communicator, network: Sequential, images: Array, labels: Array, total: int, pieces: Sequence[slice]
) -> tuple[Array, Array]:
    """Run forward and backward; begin to sum each piece of the gradient once its layers are through."""
    share = len(images) / total
    scores = network.forward(images, training=True)
    loss, grad = network.loss(scores, labels)
    grad = grad * share
    waiting: list[Pending] = []
    todo, start = _views(network, pieces), len(network.gradients)
    starts = [piece.start or 0 for piece in reversed(pieces)]
    for layer in reversed(network.layers):
        grad = layer.backward(grad)
        start -= sum(array.size for array in layer.gradients.values())
        while len(waiting) < len(todo) and start <= starts[len(waiting)]:
            piece = todo[len(waiting)]
            waiting.append(comm.start_all_reduce(piece, out=piece))
    for pending in waiting:
        pending.wait()
    return loss * share, scores


def _views(network: Sequential, pieces: Sequence[slice]) -> list[Array]:
    """The pieces of the gradient, the last first: the order in which a backward pass fills them."""
    return [network.gradients[piece] for piece in reversed(pieces)]
