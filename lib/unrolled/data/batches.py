"""Mini-batches, in an order that a seed decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import index

import numpy as np

from unrolled.device import Array, array_module, to_device

from .dataset import Dataset


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
