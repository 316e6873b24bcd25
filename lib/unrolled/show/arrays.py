"""What pictures are made of: NumPy arrays, whatever holds the values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from unrolled.device import to_host


def on_host(values: Any, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Return nested lists, a number or an array of any library as a NumPy array; one on a GPU is copied to the host.

    Raises TypeError for what is no array.
    """
    return np.asarray(values if isinstance(values, (list, tuple, range)) else to_host(values), dtype=dtype)
