"""Images with their labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray


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


def from_bytes(images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> Dataset:
    """Return a data set of pixels 0 to 255, made float32 in [0, 1], and labels, made int64."""
    return Dataset(np.divide(images, 255, dtype=np.float32), labels.astype(np.int64))
