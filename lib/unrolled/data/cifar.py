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
    "data_batch_1": "54636561a3ce25bd3e19253c6b0d8538147b0ae398331ac4a2d86c6d987368cd",
    "data_batch_2": "766b2cef9fbc745cf056b3152224f7cf77163b330ea9a15f9392beb8b89bc5a8",
    "data_batch_3": "0f00d98ebfb30b3ec0ad19f9756dc2630b89003e10525f5e148445e82aa6a1f9",
    "data_batch_4": "3f7bb240661948b8f4d53e36ec720d8306f5668bd0071dcb4e6c947f78e9682b",
    "data_batch_5": "d91802434d8376bbaeeadf58a737e3a1b12ac839077e931237e0dcd43adcb154",
}
TEST = {"test_batch": "f53d8d457504f7cff4ea9e021afcf0e0ad8e24a91f3fc42091b8adef61157831"}
"""The SHA-256 of each batch of the published archive."""
SHAPE = (3, 32, 32)
_LARGEST = 1 << 26  # bytes that are read of a file; a batch has 31 million

Batch = tuple[NDArray[np.uint8], NDArray[np.int64]]


def read_folder(folder: Path) -> Split:
    """Return (train, test) from the unpacked folder. Raises FileFormatError, FileNotFoundError for a missing batch."""

    def read(sums: Mapping[str, str]) -> Dataset:
        return _joined(_read(folder / name, sha256) for name, sha256 in sums.items())

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


def read_batch(content: bytes, sha256: str, name: str) -> Batch:
    """Return the pixels (N, 3, 32, 32) and labels (N,) of one batch file; `name` is for the message.

    Raises FileFormatError for a file with another checksum: nothing of it is looked at.
    """
    if (found := hashlib.sha256(content).hexdigest()) != sha256:
        raise FileFormatError(
            f"{name}: its SHA-256 is {found}; expected {sha256}, that of the published batch of CIFAR-10"
        )
    batch = pickle.loads(content, encoding="bytes")
    return batch[b"data"].reshape(-1, *SHAPE), np.array(batch[b"labels"], np.int64)


def _read(file: Path, sha256: str) -> Batch:
    with file.open("rb") as stream:
        return read_batch(stream.read(_LARGEST), sha256, str(file))


def _joined(found: Iterable[Batch]) -> Dataset:
    """All batches as one data set. The bytes of all are small beside the floats, of which there is one copy."""
    batches = list(found)
    images = np.empty((sum(len(pixels) for pixels, _ in batches), *SHAPE), np.float32)
    start = 0
    for pixels, _ in batches:
        np.divide(pixels, 255, out=images[start : start + len(pixels)], dtype=np.float32)
        start += len(pixels)
    return Dataset(images, np.concatenate([labels for _, labels in batches]))
