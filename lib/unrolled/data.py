"""Data sets as arrays: `digits()` needs no network. `available` and `fetch` serve the `unrolled data` command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images (N, C, H, W), float32 in [0, 1], with their labels (N,), int64."""

    images: NDArray[np.float32]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def split(self, train: int = 1500, seed: int = 0) -> tuple[Dataset, Dataset]:
        """(train, test): `train` images drawn at random by seed, and the rest; the same seed gives the same split."""
        if not 0 <= train <= len(self):
            raise ValueError(f"train is {train}; expected 0 to {len(self)}, the number of images")
        order = np.random.default_rng(seed).permutation(len(self))
        first, rest = order[:train], order[train:]
        return Dataset(self.images[first], self.labels[first]), Dataset(self.images[rest], self.labels[rest])


@dataclass(frozen=True)
class Entry:
    """A data set that works here: its name, what it is, where it comes from, and the function that loads it."""

    name: str
    about: str
    source: str
    load: Callable[[], Dataset]


@lru_cache(maxsize=1)
def digits() -> Dataset:
    """The 1,797 handwritten digits that scikit-learn carries, as images (1797, 1, 28, 28), the size of MNIST's.

    The originals are 8 x 8 with values 0 to 16. They are divided by 16 and enlarged by bilinear interpolation, pixel
    centres aligned: R @ image @ R.T with R from `bilinear_matrix(8, 28)`. Kept in memory, so the arrays are read-only:
    copy them before you change them.
    """
    from sklearn.datasets import load_digits  # type: ignore[import-untyped, unused-ignore]

    small: Any = load_digits()
    resize = bilinear_matrix(8, 28)
    images = (resize @ (small.images / 16) @ resize.T).astype(np.float32)[:, None]
    labels = small.target.astype(np.int64)
    images.flags.writeable = labels.flags.writeable = False
    return Dataset(images, labels)


def bilinear_matrix(size: int, new_size: int) -> NDArray[np.float64]:
    """R (new_size, size): R @ values resamples `size` values to `new_size`, linearly between pixel centres.

    New centre i lies at (i + 1/2) * size / new_size - 1/2 on the old axis; beyond the outermost centres the value is
    that of the outermost pixel.
    """
    centres = np.clip((np.arange(new_size) + 0.5) * size / new_size - 0.5, 0, size - 1)
    matrix: NDArray[np.float64] = np.maximum(0, 1 - np.abs(centres[:, None] - np.arange(size)))
    return matrix


def available() -> tuple[Entry, ...]:
    """The data sets that `fetch` knows."""
    return (
        Entry("digits", "1,797 handwritten digits, 8 x 8 resized to 28 x 28, in 10 classes", "scikit-learn", digits),
    )


def fetch(name: str) -> Dataset:
    """The data set of that name. Raises ValueError, with the names there are, for another."""
    entries = {entry.name: entry for entry in available()}
    if name not in entries:
        raise ValueError(f"name is {name!r}; expected one of: {', '.join(entries)}")
    return entries[name].load()
