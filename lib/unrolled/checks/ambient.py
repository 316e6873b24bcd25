"""What a notebook may have set for all of its process, set aside while a function is judged."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def set_aside() -> Iterator[None]:
    """Run the block with NumPy's errors and Python's warnings silenced, whatever the notebook has set.

    Both are the process's own: a learner's check and a judge of the same function would else find different things.
    Usual mistakes divide by zero, too. Takes microseconds; afterwards all is as it was.
    """
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
