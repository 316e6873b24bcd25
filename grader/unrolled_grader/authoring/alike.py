"""Whether two results are the same but for rounding, whatever a check's own comparison accepts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from unrolled.checks.compare import agree, shortened

ROUNDING = {"float16": 1e-3, "float32": 1e-5}
"""By which share of the largest value results may differ by dtype; by 1e-10 in all others."""
SHOWN = 60  # characters of a result


def difference(got: Any, right: Any, tolerance: float | None = None) -> str | None:
    """Return where a result is not the right one, in words; None if it is.

    Items of lists, tuples and dictionaries have the same places; arrays the same dtype and shape, and values within
    `tolerance` times the largest, by default rounding. Raises TypeError if the right result is no data.
    """
    ours, theirs = dict(_leaves(got)), dict(_leaves(right))
    if not all(map(_kind, theirs.values())):
        raise TypeError("the right result is no data")
    if ours.keys() != theirs.keys():
        return f"{len(ours)} items for {len(theirs)}, or others"
    for place, value in theirs.items():
        kind = _kind(value)
        if (one := _kind(ours[place])) != kind:
            return f"the result{place} is {one or type(ours[place]).__name__} for {kind}"
        if not agree(ours[place], value, tolerance or ROUNDING.get(kind.partition(" ")[0], 1e-10)):
            return f"the result{place} is {shortened(ours[place], SHOWN)} for {shortened(value, SHOWN)}"
    return None


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, (list, tuple, Mapping)):
        for name, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _leaves(item, f"{place}[{name!r}]")
    else:
        yield place, value


def _kind(value: Any) -> str:
    """A number's type does not matter, an array's dtype and shape do; "" for what is no data."""
    if value is None or isinstance(value, str):
        return type(value).__name__
    array = isinstance(value, np.ndarray) and value.ndim > 0
    if np.asarray(value).dtype.kind not in "biuf" or (np.ndim(value) and not array):
        return ""
    return f"{value.dtype} {value.shape}" if array else "a number"
