"""Images with their labels, mini-batches in an order that a seed decides, and the digits that need no network."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import index
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from unrolled.device import Array, array_module, to_device


class FileFormatError(ValueError):
    """A file is not what its name promises. The message names the file, what was found and what was expected."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images (N, C, H, W), float32 in [0, 1], with their labels (N,), int64."""

    images: NDArray[np.float32]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def split(self, train: int = 1500, seed: int = 0) -> Split:
        """Return (train, test): `train` images drawn at random by seed, and the rest; the same seed, the same split.

        Raises ValueError unless 0 <= train <= the number of images.
        """
        if not 0 <= train <= len(self):
            raise ValueError(f"train is {train}; expected 0 to {len(self)}, the number of images")
        order = np.random.default_rng(seed).permutation(len(self))
        first, rest = order[:train], order[train:]
        return Dataset(self.images[first], self.labels[first]), Dataset(self.images[rest], self.labels[rest])


Split: TypeAlias = tuple[Dataset, Dataset]
"""(train, test)."""


def minibatches(
    data: Dataset | tuple[Array, Array], batch_size: int, seed: int | Sequence[int]
) -> Iterator[tuple[Array, Array]]:
    """Return an iterator over (images, labels) of one epoch: every image once, shuffled by `seed`, in mini-batches.

    A batch has `batch_size` images; the last may be smaller. Each is a copy, on the device where the arrays are.
    Raises ValueError for a batch size below 1, images and labels of different counts, and no images.
    """
    images, labels = (data.images, data.labels) if isinstance(data, Dataset) else data
    module, size = array_module(images, labels), index(batch_size)
    if size < 1:
        raise ValueError(f"batch_size is {batch_size}; expected at least 1")
    if images.shape[:1] != labels.shape[:1]:
        raise ValueError(f"images has shape {images.shape}, labels {labels.shape}; expected one label for each image")
    if images.shape[0] == 0:
        raise ValueError(f"images has shape {images.shape}; expected at least one image")
    order = to_device(np.random.default_rng(seed).permutation(images.shape[0]), module)
    starts = range(0, images.shape[0], size)
    return ((images[chosen], labels[chosen]) for chosen in (order[start : start + size] for start in starts))


@lru_cache(maxsize=1)
def digits() -> Dataset:
    """Return the 1,797 handwritten digits of scikit-learn, as images (1797, 1, 28, 28), the size of MNIST's.

    The originals are 8 x 8 with values 0 to 16. They are divided by 16 and enlarged by bilinear interpolation, pixel
    centres aligned: R @ image @ R.T with R from `bilinear_matrix(8, 28)`. Kept in memory, so the arrays are read-only:
    copy them before you change them. Raises ModuleNotFoundError where scikit-learn is not installed.
    """
    # scikit-learn is not imported for its digits: that takes a second, for SciPy's statistics.
    package = importlib.util.find_spec("sklearn")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("the digits come with scikit-learn: pip install scikit-learn", name="sklearn")
    file = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    table = np.loadtxt(file, delimiter=",")  # 64 pixels and the label
    resize = bilinear_matrix(8, 28)
    images = (resize @ (table[:, :-1].reshape(-1, 8, 8) / 16) @ resize.T).astype(np.float32)[:, None]
    labels = table[:, -1].astype(np.int64)
    images.flags.writeable = labels.flags.writeable = False
    return Dataset(images, labels)


def bilinear_matrix(size: int, new_size: int) -> NDArray[np.float64]:
    """Return R (new_size, size): R @ values resamples `size` values to `new_size`, linearly between pixel centres.

    New centre i lies at (i + 1/2) * size / new_size - 1/2 on the old axis; beyond the outermost centres the value is
    that of the outermost pixel.
    """
    centres = np.clip((np.arange(new_size) + 0.5) * size / new_size - 0.5, 0, size - 1)
    matrix: NDArray[np.float64] = np.maximum(0, 1 - np.abs(centres[:, None] - np.arange(size)))
    return matrix
