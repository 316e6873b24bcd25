"""IDX, the file format of MNIST: a header of sizes, then the values.

Two zero bytes, one for the type (8: unsigned bytes), one for the number of axes, each axis as a big-endian 32-bit
number, then all values, last axis fastest (Y. LeCun, http://yann.lecun.com/exdb/mnist/).
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from .dataset import Dataset, FileFormatError

SIDE = 28
CLASSES = 10
_UNSIGNED_BYTES = 8
_CHUNK = 1 << 20


def read_idx(path: Path, axes: int) -> NDArray[np.uint8]:
    """Return the array of unsigned bytes in an IDX file, plain or packed (.gz).

    Raises FileFormatError for a file of another kind, another number of axes, too few or too many bytes.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            shape = _shape(path, _read(stream, 4 + 4 * axes), axes)
            values = _read(stream, math.prod(shape) + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileFormatError(f"{path}: the packed file is damaged or cut short ({error})") from error
    if len(values) != math.prod(shape):
        found = f"{len(values):,}" if len(values) < math.prod(shape) else "more"
        raise FileFormatError(f"{path}: found {found} values; expected {math.prod(shape):,}, as its header says")
    return np.frombuffer(values, np.uint8).reshape(shape)


def read_pair(images: Path, labels: Path) -> Dataset:
    """Return images (N, 1, 28, 28) and labels (N,) of two IDX files. Raises FileFormatError unless they fit MNIST."""
    pixels, classes = read_idx(images, axes=3), read_idx(labels, axes=1)
    if pixels.shape[1:] != (SIDE, SIDE):
        raise FileFormatError(f"{images}: found images of {pixels.shape[1:]} pixels; expected {(SIDE, SIDE)}")
    if len(pixels) != len(classes):
        raise FileFormatError(f"{labels}: found {len(classes):,} labels; expected {len(pixels):,}, one for each image")
    if classes.size and classes.max() >= CLASSES:
        raise FileFormatError(f"{labels}: found the label {classes.max()}; expected 0 to {CLASSES - 1}")
    return Dataset(np.divide(pixels[:, None], 255, dtype=np.float32), classes.astype(np.int64))


def _shape(path: Path, header: bytes, axes: int) -> tuple[int, ...]:
    if header[:2] != b"\0\0" or len(header) < 4:
        raise FileFormatError(f"{path}: begins with {header[:4]!r}; expected an IDX file, which begins with two zeros")
    if header[2] != _UNSIGNED_BYTES:
        raise FileFormatError(f"{path}: found values of type {header[2]:#04x}; expected 0x08, unsigned bytes")
    if header[3] != axes:
        raise FileFormatError(f"{path}: found {header[3]} axes; expected {axes}")
    if len(header) != 4 + 4 * axes:
        raise FileFormatError(f"{path}: found {len(header)} bytes; expected a header of {4 + 4 * axes} bytes")
    return tuple(int(size) for size in np.frombuffer(header, ">u4", offset=4))


def _read(stream: BinaryIO | gzip.GzipFile, size: int) -> bytes:
    """At most `size` bytes, in chunks: a false header cannot ask for more memory than the file has bytes."""
    parts = []
    while size > 0 and (part := stream.read(min(size, _CHUNK))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
