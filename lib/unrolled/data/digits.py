"""The digits that need no network: scikit-learn's, enlarged to the size of MNIST's."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dataset import Dataset


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
