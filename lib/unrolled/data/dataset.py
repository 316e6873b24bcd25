"""Images with their labels, and mini-batches of them in an order that a seed decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import index
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
