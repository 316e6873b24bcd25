"""Whether all ranks were given the same: told apart by digests, which they exchange before anything is computed."""

from __future__ import annotations

import hashlib
from functools import partial
from inspect import signature
from itertools import compress
from types import FunctionType
from typing import Any

import numpy as np

from unrolled.data import Dataset
from unrolled.device import Array, array_module, to_device, to_host
from unrolled.nn import Layer, Optimizer, Sequential
from unrolled.parallel.communicator import Communicator
from unrolled.parallel.errors import MismatchError

LOOKED_AT = 64  # images of a data set
PLAIN = bool, int, float, complex, str, bytes, np.dtype


def check_same(comm: Communicator, network: Sequential, **others: Any) -> None:
    """Raise MismatchError, on all ranks, unless all have this network's layers, shapes and loss, and these others.

    others: what else has to be the same, by name. Each is told apart by its words, see `words`. The error names what
    differs, and where.
    """
    layers = [(layer, sorted(layer.parameter_shapes.items())) for layer in network.layers]
    described = {"network": words((layers, network.dtype.name, network.loss))}
    described |= {name: words(value) for name, value in others.items()}
    digests = np.array([_number(value) for value in described.values()], np.int64)
    found = to_host(comm.all_gather(to_device(digests, array_module(network.parameters)))).reshape(comm.size, -1)
    differ = {rank: [*compress(described, row != found[0])] for rank, row in enumerate(found)}
    if names := [name for name in described if any(name in its for its in differ.values())]:
        says = "; ".join(f"rank {rank} differs from rank 0 in {', '.join(its)}" for rank, its in differ.items() if its)
        here = "; ".join(f"{name} {described[name]}" for name in names)
        raise MismatchError(f"{says}; here (rank {comm.rank}): {here}")


def words(value: Any) -> str:
    """Return words that tell a value apart, the same in every process.

    Numbers, strings, arrays, and lists of them are told apart by their values; layers and optimizers by their class and
    the arguments that they keep under their names; `functools.partial` by function and arguments; a function by its
    name, not by its code, and by the values around it that it uses. Anything else is told by its class alone, so
    options of an object that serves as loss are not compared.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{words(key)}: {words(item)}' for key, item in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(words, value))})"
    if isinstance(value, partial):
        return f"partial({words(value.func)}, {words(value.args)}, {words(value.keywords)})"
    if isinstance(value, (Layer, Optimizer)):
        return f"{_name(type(value))}({', '.join(f'{name}={words(x)}' for name, x in _kept(value).items())})"
    if isinstance(value, FunctionType) and value.__closure__:
        around = [cell.cell_contents for cell in value.__closure__]
        return f"{_name(value)} {[_name(x) if isinstance(x, FunctionType) else words(x) for x in around]}"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype} {value.shape} {digest(value)}"
    return _name(value if hasattr(value, "__name__") else type(value))


def dataset_words(dataset: Dataset | None) -> str:
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


def _kept(made: Any) -> dict[str, Any]:
    """The arguments that an object was made with, as far as it keeps them under their names, or with _ before."""
    own = vars(made)
    return {name: own.get(name, own.get(f"_{name}")) for name in signature(type(made)).parameters}


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little", signed=True)
