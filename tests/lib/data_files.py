"""Small files in the formats of MNIST and CIFAR-10."""

import gzip
import hashlib
import io
import pickle
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unrolled.data import cifar

TRAIN, TEST = 20, 10


def idx(values: Any) -> bytes:
    values = np.asarray(values, np.uint8)
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def mnist_files(seed: int = 0) -> dict[str, bytes]:
    """The four files, packed, of 20 and 10 noisy images."""
    rng = np.random.default_rng(seed)
    arrays = {
        "train-images-idx3-ubyte.gz": rng.integers(0, 256, (TRAIN, 28, 28)),
        "train-labels-idx1-ubyte.gz": rng.integers(0, 10, TRAIN),
        "t10k-images-idx3-ubyte.gz": rng.integers(0, 256, (TEST, 28, 28)),
        "t10k-labels-idx1-ubyte.gz": rng.integers(0, 10, TEST),
    }
    return {name: gzip.compress(idx(array), mtime=0) for name, array in arrays.items()}


def write(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def batch(count: int = 4, seed: int = 0) -> dict[bytes, Any]:
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, (count, 3072)).astype(np.uint8)
    return {b"batch_label": b"made", b"labels": rng.integers(0, 10, count).tolist(), b"data": data, b"filenames": []}


def cifar_files() -> dict[str, bytes]:
    names = [*cifar.TRAIN, *cifar.TEST]
    return {name: pickle.dumps(batch(seed=seed), 2) for seed, name in enumerate(names)}


def publish(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let these be the published batches of CIFAR-10."""
    for part, sums in (("TRAIN", cifar.TRAIN), ("TEST", cifar.TEST)):
        monkeypatch.setattr(cifar, part, {name: hashlib.sha256(files[name]).hexdigest() for name in sums})


def archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in reversed(files.items()):
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
