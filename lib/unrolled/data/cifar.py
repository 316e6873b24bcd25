"""The batches of CIFAR-10. They are pickles, and a pickle can run any code; so only the published files are read, those
with their checksums. Format: https://www.cs.toronto.edu/~kriz/cifar.html.
"""

from __future__ import annotations

import gzip
import hashlib
import pickle
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .dataset import Dataset, FileFormatError, Split

FOLDER = "cifar-10-batches-py"
TRAIN = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
}
TEST = {"test_batch": "40351d587109b95175f43aff81a1287e"}
"""The MD5 of each batch, as torchvision has them."""
SHAPE = (3, 32, 32)
_LARGEST = 1 << 26  # bytes that are read of a file; a batch has 31 million

Batch = tuple[NDArray[np.uint8], NDArray[np.int64]]


def read_folder(folder: Path) -> Split:
    """Return (train, test) from the unpacked folder. Raises FileFormatError, FileNotFoundError for a missing batch."""

    def read(sums: Mapping[str, str]) -> Dataset:
        return _joined(_read(folder / name, md5) for name, md5 in sums.items())

    return read(TRAIN), read(TEST)


def read_archive(path: Path) -> Split:
    """Return (train, test) from the published archive; nothing is unpacked to the disk. Raises FileFormatError."""
    sums, found = TRAIN | TEST, dict[str, Batch]()
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:  # once from front to back: going back would unpack everything again
                name = member.name.removeprefix(f"{FOLDER}/")
                stream = archive.extractfile(member) if name in sums else None
                if stream is not None:
                    found[name] = read_batch(stream.read(_LARGEST), sums[name], f"{path}: {name}")
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileFormatError(f"{path}: the archive is damaged or cut short ({error})") from error
    missing = [name for name in sums if name not in found]
    if missing:
        raise FileFormatError(f"{path}: found no {', '.join(missing)}; expected the batches of CIFAR-10")
    return _joined(found[name] for name in TRAIN), _joined(found[name] for name in TEST)


def read_batch(content: bytes, md5: str, name: str) -> Batch:
    """Return the pixels (N, 3, 32, 32) and labels (N,) of one batch file; `name` is for the message.

    Raises FileFormatError for a file with another checksum: nothing of it is looked at.
    """
    if (found := hashlib.md5(content, usedforsecurity=False).hexdigest()) != md5:
        raise FileFormatError(f"{name}: its MD5 is {found}; expected {md5}, that of the published batch of CIFAR-10")
    batch = pickle.loads(content, encoding="bytes")
    return batch[b"data"].reshape(-1, *SHAPE), np.array(batch[b"labels"], np.int64)


def _read(file: Path, md5: str) -> Batch:
    with file.open("rb") as stream:
        return read_batch(stream.read(_LARGEST), md5, str(file))


def _joined(found: Iterable[Batch]) -> Dataset:
    """All batches as one data set. The bytes of all are small beside the floats, of which there is one copy."""
    batches = list(found)
    images = np.empty((sum(len(pixels) for pixels, _ in batches), *SHAPE), np.float32)
    start = 0
    for pixels, _ in batches:
        np.divide(pixels, 255, out=images[start : start + len(pixels)], dtype=np.float32)
        start += len(pixels)
    return Dataset(images, np.concatenate([labels for _, labels in batches]))
