"""Whether all ranks were given the same: told apart by digests, which they exchange before anything is computed."""

from __future__ import annotations

import hashlib
from itertools import compress
from typing import Any

import numpy as np

from unrolled.data import Dataset
from unrolled.device import Array, array_module, to_device, to_host
from unrolled.nn import Sequential
from unrolled.parallel.communicator import Communicator
from unrolled.parallel.errors import MismatchError

LOOKED_AT = 64  # images of a data set


def check_same(comm: Communicator, network: Sequential, **others: Any) -> None:
    """Raise MismatchError, on all ranks, unless all have this network's layers, shapes and loss, and these others.

    others: what else has to be the same, by name, told apart by its repr. The error names what differs, and where.
    """
    layers = [(repr(layer), sorted(layer.parameter_shapes.items())) for layer in network.layers]
    network_told = repr((layers, network.dtype.name, getattr(network.loss, "__name__", "")))
    told = {"network": network_told, **{name: repr(value) for name, value in others.items()}}
    digests = np.array([_number(words) for words in told.values()], np.int64)
    found = to_host(comm.all_gather(to_device(digests, array_module(network.parameters)))).reshape(comm.size, -1)
    differ = {rank: [*compress(told, row != found[0])] for rank, row in enumerate(found)}
    if names := [name for name in told if any(name in its for its in differ.values())]:
        says = "; ".join(f"rank {rank} differs from rank 0 in {', '.join(its)}" for rank, its in differ.items() if its)
        here = "; ".join(f"{name} {told[name]}" for name in names)
        raise MismatchError(f"{says}; here (rank {comm.rank}): {here}")


def dataset_told(dataset: Dataset | None) -> str:
    """Return what tells a data set apart: shapes, dtypes, and a digest of all labels and of some images."""
    if dataset is None:
        return "None"
    images, labels = dataset.images, dataset.labels
    rows = np.unique(np.linspace(0, len(labels) - 1, LOOKED_AT).astype(np.int64))
    some = images[to_device(rows, array_module(images))]
    return f"images {images.dtype} {images.shape}, labels {labels.dtype} {labels.shape}, {digest(labels, some)}"


def digest(*arrays: Array) -> str:
    """Return a digest of the values of arrays, wherever they are."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(to_host(array)).tobytes())
    return found.hexdigest()[:16]


def _number(words: str) -> int:
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "little", signed=True)
