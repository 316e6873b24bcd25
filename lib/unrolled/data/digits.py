"""The digits that need no network: scikit-learn's, enlarged to the size of MNIST's."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .dataset import Dataset


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
