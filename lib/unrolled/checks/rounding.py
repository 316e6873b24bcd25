"""Results that no right answer has to the last digits: where terms cancel, each order of adding leaves other ones.

A result is right within a share of its largest value. Where all of it cancels, that is less than rounding makes: there
a result may differ as much as the right one does once its inputs change in their last digit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .compare import agree
from .gpu import each_leaf
from .spec import Inputs

NEARLY = 0.05  # of the largest value: what is further off is no rounding
NUDGES = 3  # changes of the inputs that are tried
FACTOR = 8.0  # an answer may round as often as this where the reference rounds once


def corrected(got: Any, expected: Any, right: Callable[[Inputs], Any], inputs: Inputs) -> Any:
    """Return `got` with the expected values where only rounding parts them; `right(inputs)` is the right result.

    Returns `got` itself where it is further off, or no arrays.
    """
    if not agree(got, expected, NEARLY):
        return got
    rng = np.random.default_rng(0)
    others = [right(each_leaf(inputs, lambda leaf: _nudged(leaf, rng))) for _ in range(NUDGES)]
    return _corrected(got, expected, others)


def _nudged(leaf: Any, rng: np.random.Generator) -> Any:
    """An array of floats with each changed by one unit in its last place, up or down."""
    if not (isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f"):
        return leaf
    return np.nextafter(leaf, np.where(rng.random(leaf.shape) < 0.5, -np.inf, np.inf).astype(leaf.dtype))


def _corrected(got: Any, expected: Any, others: list[Any]) -> Any:
    if isinstance(expected, (tuple, list)) and isinstance(got, (tuple, list)):
        return type(got)(map(_corrected, got, expected, map(list, zip(*others, strict=True))))
    if not isinstance(got, np.ndarray) or not isinstance(expected, np.ndarray) or expected.dtype.kind != "f":
        return got
    if any(np.shape(other) != expected.shape for other in others):
        return got
    wide = expected.astype(np.float64)
    with np.errstate(invalid="ignore"):  # inf - inf
        spread = np.max([np.abs(other - wide) for other in others], axis=0)
        near = np.abs(got - wide) <= FACTOR * spread
    return np.where(near, expected, got).astype(got.dtype)
