"""Parameters in an .npz file: arrays only, no pickle, so that opening a stranger's file runs nothing.

An array's name is the layer's number and the parameter's name, `3.weight`; `input_shape` and `layers` (how many) tell
whether it fits.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.device import Array, to_host
from unrolled.nn.layers import Shape

INPUT_SHAPE = "input_shape"
LAYERS = "layers"


def save(path: Path, input_shape: Shape, parameters: Sequence[dict[str, Array]]) -> None:
    """Write the parameters of each layer. An older file stays as it was until the new one is complete.

    Raises FileNotFoundError where there is no folder for it.
    """
    arrays: dict[str, Any] = {
        f"{number}.{name}": to_host(value) for number, layer in enumerate(parameters) for name, value in layer.items()
    }
    arrays |= {INPUT_SHAPE: np.array(input_shape), LAYERS: np.array(len(parameters))}
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into")
    unfinished = path.with_name(path.name + ".part")
    try:
        with unfinished.open("wb") as file:
            np.savez(file, **arrays)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def load(path: Path) -> tuple[Shape, list[dict[str, Array]]]:
    """Return (input_shape, the parameters of each layer) from a file that `save` wrote.

    Raises ValueError for any other file, FileNotFoundError where there is none.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        input_shape = tuple(int(size) for size in arrays.pop(INPUT_SHAPE))
        layers: list[dict[str, Array]] = [{} for _ in range(int(arrays.pop(LAYERS)))]
        for key, value in arrays.items():
            number, _, name = key.partition(".")
            layers[int(number)][name] = value
    except FileNotFoundError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a file of a network's parameters, or it is damaged") from error
    return input_shape, layers


def check_fit(expected: Sequence[dict[str, Shape]], dtype: Any, found: Sequence[dict[str, Array]]) -> None:
    """Raise ValueError, which names layer and parameter, unless every array has its layer's shape, and the dtype."""
    if len(found) != len(expected):
        raise ValueError(f"it has {len(found)} layers, the network has {len(expected)}")
    for number, (shapes, arrays) in enumerate(zip(expected, found, strict=True)):
        if shapes.keys() != arrays.keys():
            raise ValueError(f"layer {number} has {sorted(arrays)} in it, the network's has {sorted(shapes)}")
        for name, shape in shapes.items():
            there = arrays[name]
            if there.shape != shape or there.dtype != dtype:
                words = f"{number}.{name} is {there.dtype} {there.shape} in it"
                raise ValueError(f"{words}, the network's is {dtype} {shape}")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file in a ValueError of this block."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path} does not fit this network: {error}") from None
