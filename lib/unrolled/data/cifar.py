"""The batches of CIFAR-10. They are pickles, and a pickle can run any code; so these are read without NumPy's help.

A batch holds only a few names. Each is answered by a stand-in below that can do nothing but collect unsigned bytes;
any other name ends the reading. Format: https://www.cs.toronto.edu/~kriz/cifar.html.
"""

from __future__ import annotations

import gzip
import io
import math
import pickle
import tarfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dataset import Dataset, FileFormatError, Split

FOLDER = "cifar-10-batches-py"
TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST = ("test_batch",)
SHAPE = (3, 32, 32)
CLASSES = 10
_LARGEST = 1 << 26  # bytes; a batch has 31 million


def read_batch(content: bytes, name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the pixels (N, 3, 32, 32), uint8, and labels (N,), int64, of one batch file; `name` is for the messages.

    Raises FileFormatError for what is no batch: damaged, cut short, foreign, or with names that a batch does not hold.
    """
    try:
        batch = _Reader(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # damaged bytes make pickle raise almost anything
        words = str(error) or type(error).__name__
        raise FileFormatError(f"{name}: found no readable CIFAR-10 batch ({words})") from error
    if not isinstance(batch, dict):
        raise FileFormatError(f"{name}: found a {type(batch).__name__}; expected a dictionary with data and labels")
    fields = {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in batch.items()}
    pixels = _pixels(fields.get("data"), name)
    return pixels, _labels(fields.get("labels"), len(pixels), name)


def read_folder(folder: Path) -> Split:
    """Return (train, test) from the unpacked folder. Raises FileFormatError, FileNotFoundError for a missing batch."""

    def read(names: tuple[str, ...]) -> Dataset:
        return _joined(_limited((folder / name).open("rb"), str(folder / name)) for name in names)

    return read(TRAIN), read(TEST)


def read_archive(path: Path) -> Split:
    """Return (train, test) from the published archive; nothing is unpacked to the disk. Raises FileFormatError."""
    found: dict[str, tuple[str, bytes]] = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:  # once from front to back: going back would unpack everything again
                name = member.name.removeprefix(f"{FOLDER}/")
                stream = archive.extractfile(member) if name in TRAIN + TEST else None
                if stream is not None:
                    found[name] = _limited(stream, f"{path}: {name}")
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileFormatError(f"{path}: the archive is damaged or cut short ({error})") from error
    missing = [name for name in TRAIN + TEST if name not in found]
    if missing:
        raise FileFormatError(f"{path}: found no {', '.join(missing)}; expected the batches of CIFAR-10")
    train, test = ([found[name] for name in names] for names in (TRAIN, TEST))
    return _joined(train), _joined(test)


def _joined(contents: Iterable[tuple[str, bytes]]) -> Dataset:
    """All batches as one data set. The bytes of all are small beside the floats, of which there is one copy."""
    batches = [read_batch(content, name) for name, content in contents]
    images = np.empty((sum(len(pixels) for pixels, _ in batches), *SHAPE), np.float32)
    start = 0
    for pixels, _ in batches:
        np.divide(pixels, 255, out=images[start : start + len(pixels)], dtype=np.float32)
        start += len(pixels)
    return Dataset(images, np.concatenate([labels for _, labels in batches]))


def _limited(stream: Any, name: str) -> tuple[str, bytes]:
    """The name for messages, and all that the stream holds."""
    with stream:
        content: bytes = stream.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise FileFormatError(f"{name}: found more than {_LARGEST:,} bytes; expected a CIFAR-10 batch")
    return name, content


def _pixels(data: Any, name: str) -> NDArray[np.uint8]:
    values = data.values if isinstance(data, _Array) else None
    if values is None or values.shape[1:] != (math.prod(SHAPE),):
        found = type(data).__name__ if values is None else f"an array {values.shape}"
        raise FileFormatError(f"{name}: data is {found}; expected an array (N, {math.prod(SHAPE)}) of unsigned bytes")
    return values.reshape(-1, *SHAPE)


def _labels(labels: Any, count: int, name: str) -> NDArray[np.int64]:
    if not isinstance(labels, list) or not all(type(label) is int and 0 <= label < CLASSES for label in labels):
        raise FileFormatError(f"{name}: labels are not what was expected: a list of whole numbers 0 to {CLASSES - 1}")
    if len(labels) != count:
        raise FileFormatError(f"{name}: found {len(labels):,} labels; expected {count:,}, one for each image")
    return np.array(labels, np.int64)


class _Reader(pickle.Unpickler):
    """Knows the names that Python 2, and NumPy 1 and 2, write for an array of bytes, and gives each a stand-in."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _Name(_STAND_INS[module, name])
        except KeyError:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which no CIFAR-10 batch holds") from None


class _Name:
    """A name in a pickle: it can be called, and not be changed."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("it changes a name")


class _Bytes:
    """Stands for numpy.dtype("u1"), the only type of value in a batch."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        """Byte order and alignment, which one byte has not."""


class _Array:
    """Stands for an array: NumPy builds it empty and then fills it, or makes it at once from a buffer."""

    __slots__ = ("values",)

    def __init__(self, *_arguments: Any) -> None:
        self.values: NDArray[np.uint8] | None = None

    def __setstate__(self, state: Any) -> None:
        _version, shape, dtype, columns_first, content = state
        if not isinstance(dtype, _Bytes) or not isinstance(content, (bytes, bytearray)):
            raise pickle.UnpicklingError("its array is not made of bytes")
        self.values = np.frombuffer(content, np.uint8).reshape(shape, order="F" if columns_first else "C")


def _from_buffer(content: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    array = _Array()
    array.__setstate__((1, shape, dtype, order == "F", content))
    return array


def _dtype(code: Any, *_flags: Any) -> _Bytes:
    if code not in ("u1", b"u1"):
        raise pickle.UnpicklingError(f"its array holds values of type {code!r}; expected 'u1', unsigned bytes")
    return _Bytes()


def _encode(text: Any, encoding: Any) -> bytes:
    """Protocol 2 writes bytes as text in Latin-1."""
    if encoding not in ("latin1", b"latin1"):
        raise pickle.UnpicklingError(f"it asks for the encoding {encoding!r}")
    return bytes(str(text), "latin1")


def _no_call(*_arguments: Any) -> Any:
    raise pickle.UnpicklingError("it calls numpy.ndarray")


_STAND_INS: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy.core.numeric", "_frombuffer"): _from_buffer,
    ("numpy._core.numeric", "_frombuffer"): _from_buffer,
    ("numpy", "ndarray"): _no_call,
    ("numpy", "dtype"): _dtype,
    ("_codecs", "encode"): _encode,
}
