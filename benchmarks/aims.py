"""What the rows of records aim at, and why some fall short of it.

An aim stands in a row under a key of `FIGURES`, and bounds the first figure there that the row has. A recorded figure
meets its aim or has a line in aims.toml: `tests/house/test_aims.py` compares them, docs/measurements.md says both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import common

FIGURES: Mapping[str, tuple[str, ...]] = {
    "at_most": ("ratio",),
    "at_most_eager": ("ratio_eager",),
    "at_most_s": ("ours_s",),
    "at_most_mb": ("above_one_mb",),
    "at_most_lost": ("lost",),
    "at_most_unequal": ("unequal",),
    "at_most_of_plain": ("of_plain",),
    "at_least": ("faster", "speedup", "accuracy"),
    "at_least_of_copy": ("of_copy",),
    "at_least_of_peer": ("of_peer",),
}
FALLS_SHORT: dict[tuple[str, str, str], str] = {
    (record, row, figure): why
    for record, rows in common.table("aims").items()
    for row, figures in rows.items()
    for figure, why in figures.items()
}
"""Why an aim is missed, by record, row and figure."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Aim:
    """A bound of a row's figure, of the side "at most" or "at least"."""

    figure: str
    side: str
    bound: float

    def met(self, value: float) -> bool:
        """Return whether a figure is within the bound."""
        return value <= self.bound if self.side == "at most" else value >= self.bound


def aims(row: Row) -> Iterator[Aim]:
    """Yield the aims of a row, of the figures that it has."""
    for key, figures in FIGURES.items():
        figure = next((figure for figure in figures if row.get(figure) is not None), None)
        if row.get(key) is not None and figure:
            yield Aim(figure, " ".join(key.split("_")[:2]), row[key])


def outcome(row: Row) -> str:
    """Return "met" or "missed", by all aims of a row; "" where it has none."""
    return ("missed" if any(missed([row])) else "met") if any(aims(row)) else ""


def missed(rows: Iterable[Row]) -> Iterator[tuple[Row, Aim]]:
    """Yield each aim that a row misses, with its row."""
    return ((row, aim) for row in rows for aim in aims(row) if not aim.met(row[aim.figure]))
