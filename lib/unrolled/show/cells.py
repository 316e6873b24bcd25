"""Grids of cells, measured in inches from the upper left corner of a sheet, and what stands in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib import colormaps
from numpy.typing import DTypeLike, NDArray

from unrolled.device import to_host
from unrolled.show.style import PIXELS, SIGNED

Box = tuple[float, float, float, float]  # left, top, width, height


@dataclass(frozen=True)
class Cells:
    """A grid of cells: its upper left corner and the size of a cell."""

    left: float
    top: float
    rows: int
    columns: int
    width: float
    height: float

    @classmethod
    def fitting(cls, shape: Sequence[int], width: float, height: float, largest: float) -> Cells:
        """Return square cells for a matrix of this shape, as large as width x height inches and `largest` allow."""
        rows, columns = shape
        size = min(width / columns, height / rows, largest)
        return cls(0.0, 0.0, rows, columns, size, size)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the whole grid."""
        return self.columns * self.width, self.rows * self.height

    @property
    def right(self) -> float:
        return self.left + self.columns * self.width

    @property
    def bottom(self) -> float:
        return self.top + self.rows * self.height

    @property
    def middle(self) -> tuple[float, float]:
        """The point in the middle."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    @property
    def frame(self) -> Box:
        """The box around all cells."""
        return self.box(0, 0, self.rows, self.columns)

    def at(self, left: float, top: float) -> Cells:
        """Return the same grid with its upper left corner at (left, top), in inches."""
        return replace(self, left=left, top=top)

    def centre(self, row: int, column: int) -> tuple[float, float]:
        """Return the middle of a cell as (x, y), in inches."""
        return self.left + (column + 0.5) * self.width, self.top + (row + 0.5) * self.height

    def box(self, row: int, column: int, rows: int = 1, columns: int = 1) -> Box:
        """Return the box around a block of cells whose upper left one is at (row, column)."""
        left, top = self.left + column * self.width, self.top + row * self.height
        return left, top, columns * self.width, rows * self.height

    def runs(self, mask: NDArray[np.bool_]) -> list[Box]:
        """Return the boxes of the cells where mask (rows, columns) is true, neighbours in a row joined."""
        edges = np.diff(np.pad(mask.astype(np.int8), ((0, 0), (1, 1))), axis=1)
        boxes = []
        for row, steps in enumerate(edges):
            starts, ends = np.flatnonzero(steps > 0).tolist(), np.flatnonzero(steps < 0).tolist()
            boxes += [self.box(row, first, 1, last - first) for first, last in zip(starts, ends, strict=True)]
        return boxes


@dataclass(frozen=True)
class Scale:
    """A colour scale: greys for values from 0 on, purple and orange around 0 where some are negative."""

    limit: float
    signed: bool

    @classmethod
    def of(cls, values: NDArray[Any]) -> Scale:
        """Return the colour scale that covers all finite values."""
        finite = values[np.isfinite(values)]
        limit = float(np.abs(finite).max()) if finite.size else 0.0
        return cls(limit or 1.0, bool((finite < 0).any()))

    def colours(self, values: NDArray[Any], lightness: float = 1.0) -> NDArray[np.float64]:
        """Return the colours of the values as RGBA (..., 4). What is not finite is transparent.

        lightness: above 1 it makes the colours pale enough to write numbers on.
        """
        limit = self.limit * lightness
        share = (values + limit) / (2 * limit) if self.signed else values / limit
        return np.asarray(colormaps[SIGNED if self.signed else PIXELS](np.ma.masked_invalid(share)), dtype=np.float64)


def on_host(values: Any, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Return nested lists, a number or an array of any library as a NumPy array; one on a GPU is copied to the host.

    Raises TypeError for what is no array.
    """
    return np.asarray(values if isinstance(values, (list, tuple, range)) else to_host(values), dtype=dtype)


def cell_text(value: float) -> str:
    """Return a number as text for a cell: no decimals for integers or from 100 on, else at most two; "" for NaN."""
    if value != value:
        return ""
    whole = abs(value) >= 100 or float(value).is_integer()
    text = f"{abs(value):.0f}" if whole else f"{abs(value):.2f}".rstrip("0").rstrip(".")
    sign = "−" if value < 0 and text != "0" else ""
    return sign + (text[1:] if text.startswith("0.") else text)
