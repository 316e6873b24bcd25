"""Arrays in an .npz file: no pickle, so that opening a stranger's file runs nothing, and nothing larger than the file.

A network's arrays are named by the layer's number and the parameter's name, `3.weight`; `input_shape` and `layers` (how
many) tell whether it fits.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from unrolled.device import Array, to_host
from unrolled.nn.layers import Shape

INPUT_SHAPE = "input_shape"
LAYERS = "layers"


class Header(NamedTuple):
    """What is known of an array before it is read."""

    shape: Shape
    dtype: Any


def save(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays by name. An older file stays as it was until the new one is complete.

    Raises FileNotFoundError where there is no folder for it.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into")
    unfinished = path.with_name(path.name + ".part")
    try:
        with unfinished.open("wb") as file:
            np.savez(file, **{name: to_host(value) for name, value in arrays.items()})
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def headers(path: Path, what: str) -> dict[str, Header]:
    """Return shape and dtype of each array in a file that `save` wrote; no array is made.

    Raises ValueError for any other file, also for one whose arrays claim more bytes than it has; `what` it should be.
    """
    found = {}
    with _owning(path, what), zipfile.ZipFile(path) as file:
        for entry in file.infolist():
            if entry.compress_type != zipfile.ZIP_STORED:
                raise ValueError("compressed: it might grow")
            with file.open(entry) as stream:
                read = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
                shape, _, dtype = read(stream)
            found[entry.filename.removesuffix(".npy")] = Header(shape, dtype)
        claimed = sum(prod(header.shape) * header.dtype.itemsize for header in found.values())
        if claimed > path.stat().st_size or any(header.dtype.hasobject for header in found.values()):
            raise ValueError("more than the file can hold")
    return found


def arrays(path: Path, what: str, names: Iterable[str]) -> dict[str, Array]:
    """Return these arrays of a file. Raises ValueError where it is damaged or lacks one."""
    with _owning(path, what), np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in names}


def origin(path: Path, what: str) -> tuple[Shape, int]:
    """Return the input shape and the number of layers of the network in a file. Raises ValueError as `arrays`."""
    found = arrays(path, what, (INPUT_SHAPE, LAYERS))
    with _owning(path, what):
        return tuple(map(int, found[INPUT_SHAPE])), int(found[LAYERS])


def check_fit(
    layers: int, expected: Sequence[Mapping[str, Header]], found: Mapping[str, Header]
) -> dict[str, tuple[int, str]]:
    """Return (layer, parameter) by the array's name in a file that has so many layers.

    Raises ValueError, which names layer and parameter, unless every array has its layer's shape and dtype.
    """
    if layers != len(expected):
        raise ValueError(f"it has {layers} layers, the network has {len(expected)}")
    places = {}
    for number, headers in enumerate(expected):
        there = [key.partition(".")[2] for key in found if key.startswith(f"{number}.")]
        if headers.keys() != set(there):
            raise ValueError(f"layer {number} has {sorted(there)} in it, the network's has {sorted(headers)}")
        for name, own in headers.items():
            header = found[f"{number}.{name}"]
            if header != own:
                words = f"{number}.{name} is {header.dtype} {header.shape} in it"
                raise ValueError(f"{words}, the network's is {own.dtype} {own.shape}")
            places[f"{number}.{name}"] = number, name
    return places


@contextmanager
def naming(path: Path, what: str = "network") -> Iterator[None]:
    """Name the file in a ValueError of this block."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path} does not fit this {what}: {error}") from None


@contextmanager
def _owning(path: Path, what: str) -> Iterator[None]:
    """Say that it is none of our files where this block cannot read it."""
    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:  # zipfile and NumPy have a dozen kinds for what may be wrong in a file
        raise ValueError(f"{path} is not a file of {what}, or it is damaged") from error
