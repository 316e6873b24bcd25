"""Whether two results are the same but for rounding, whatever a check's own comparison accepts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from unrolled.checks.compare import agree

ROUNDING = {"float16": 1e-3, "float32": 1e-5}
"""By which share of the largest value results may differ by dtype; by 1e-10 in all others."""


def difference(got: Any, right: Any, tolerance: float | None = None) -> str | None:
    """Return where a result is not the right one, in words; None if it is.

    Items of lists, tuples and dictionaries have the same places; arrays the same dtype and shape, and values within
    `tolerance` times the largest, by default rounding. Raises TypeError for what is not data.
    """
    ours, theirs = dict(_leaves(got)), dict(_leaves(right))
    if ours.keys() != theirs.keys():
        return f"{len(ours)} items for {len(theirs)}, or others"
    for place, value in theirs.items():
        if (one := _kind(ours[place])) != (other := _kind(value)):
            return f"the result{place} is {one} for {other}"
        if not agree(ours[place], value, tolerance or ROUNDING.get(other.partition(" ")[0], 1e-10)):
            return f"the result{place} is {ours[place]} for {value}"
    return None


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, (list, tuple, Mapping)):
        for name, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _leaves(item, f"{place}[{name!r}]")
    else:
        yield place, value


def _kind(value: Any) -> str:
    """A number's type does not matter, an array's dtype and shape do."""
    if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "biuf":
        return f"{value.dtype} {value.shape}"
    if value is None or isinstance(value, str):
        return type(value).__name__
    if np.ndim(value) or np.asarray(value).dtype.kind not in "biuf":
        raise TypeError(f"{type(value).__name__} is no data")
    return "a number"
