"""Small files in the formats of MNIST and CIFAR-10."""

import gzip
import io
import pickle
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

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


def batch(count: int = 4, seed: int = 0, **changed: Any) -> dict[Any, Any]:
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, (count, 3072)).astype(np.uint8)
    labels = rng.integers(0, 10, count).tolist()
    return {"batch_label": "made", "labels": labels, "data": data, "filenames": []} | changed


def cifar_files() -> dict[str, bytes]:
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    return {name: pickle.dumps(batch(seed=seed), 2) for seed, name in enumerate(names)}


def archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in reversed(files.items()):
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
