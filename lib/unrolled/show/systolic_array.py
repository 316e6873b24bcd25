"""A systolic array: a matrix product by a grid of cells that hand numbers on to their neighbours, step by step.

After H. T. Kung, "Why systolic architectures?", Computer 15 (1), 1982. Here each cell keeps one sum of the result; the
first matrix flows in from the left, the second from above, each row and column a step later than the one before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from unrolled.show.picture import Explorer, Slider
from unrolled.show.sheet import Cells, Sheet, cell_text, on_host
from unrolled.show.style import BLUE, GREY, INK, ORANGE, PALE, SMALL
from unrolled.show.words import count_of

MOST = 4  # rows, columns and terms of a sum
LEFT, TOP, CELL, FEED = 2.3, 1.75, 0.75, 0.42  # inches
WORKING = "#FBEBCB"


@dataclass(frozen=True)
class Array:
    """The factors (N, K) and (K, M), and what each cell has done after so many steps."""

    a: NDArray[np.float64]
    b: NDArray[np.float64]

    @property
    def steps(self) -> int:
        """Until the last cell has its last pair: it gets the first one N + M - 2 steps late."""
        (n, k), m = self.a.shape, self.b.shape[1]
        return int(n + m + k - 2)

    def done(self, step: int) -> NDArray[np.int64]:
        """Return how many pairs each cell has multiplied after this step, (N, M)."""
        (n, k), m = self.a.shape, self.b.shape[1]
        late = np.arange(n)[:, None] + np.arange(m)
        return np.asarray(np.clip(step - late, 0, k), np.int64)

    def sums(self, step: int) -> NDArray[np.float64]:
        """Return what each cell holds after this step, (N, M)."""
        done = self.done(step)
        terms = np.cumsum(self.a[:, :, None] * self.b[None], axis=1)
        zeros = np.zeros_like(terms[:, :1])
        return np.take_along_axis(np.concatenate((zeros, terms), axis=1), done[:, None, :], axis=1)[:, 0]


def systolic_array(a: ArrayLike, b: ArrayLike) -> Explorer:
    """Draw a product of matrices a (N, K) and b (K, M) in a grid of N x M cells, step by step.

    ValueError for shapes that do not fit, or more than 4 rows, columns or terms.
    """
    found = Array(on_host(a, np.float64), on_host(b, np.float64))
    if found.a.ndim != 2 or found.b.ndim != 2 or found.a.shape[1] != found.b.shape[0]:
        raise ValueError(f"a and b must be (N, K) and (K, M), got {found.a.shape} and {found.b.shape}")
    if not 1 <= min(*found.a.shape, *found.b.shape) <= max(*found.a.shape, *found.b.shape) <= MOST:
        raise ValueError(f"a and b must have 1 to {MOST} rows and columns, got {found.a.shape} and {found.b.shape}")
    last = found.steps
    slider = Slider("step", range(last + 1), min(last, found.a.shape[1]), lambda step: f"{step} of {last}", play=True)
    return Explorer(_draw, _alt, found, step=slider)


def _draw(found: Array, step: int) -> Figure:
    n, m = found.a.shape[0], found.b.shape[1]
    cells = Cells(LEFT, TOP, n, m, CELL, CELL)
    sheet = Sheet(cells.bottom + 0.3)
    sheet.text((0.1, 0.2), f"Step {step} of {found.steps}", size=11, bold=True)
    sheet.text((0.1, 0.48), _says(found, step))
    done, before = found.done(step), found.done(step - 1)
    for row in range(n):
        for column in range(m):
            if done[row, column] > before[row, column]:
                sheet.fill(cells.box(row, column), WORKING)
    sheet.rule(cells, INK, 1.0)
    sums = [cell_text(value) if did else "" for value, did in zip(found.sums(step).ravel(), done.ravel(), strict=True)]
    sheet.numbers(cells, sums)
    for row in range(n):
        _feed(sheet, cells, found.a[row], step - row, BLUE, row, across=True)
    for column in range(m):
        _feed(sheet, cells, found.b[:, column], step - column, ORANGE, column, across=False)
    x = cells.right + 0.4
    sheet.text((x, TOP + 0.1), "blue: rows of a, from the left", BLUE, SMALL)
    sheet.text((x, TOP + 0.35), "orange: columns of b, from above", "#8a5a00", SMALL)
    sheet.text((x, TOP + 0.6), "shaded: multiplies and adds now", INK, SMALL)
    return sheet.figure()


def _feed(
    sheet: Sheet, cells: Cells, values: NDArray[np.float64], gone: int, colour: str, at: int, across: bool
) -> None:
    """The numbers that still wait outside of the grid; the one that goes in next stands nearest."""
    for number, value in enumerate(values[max(0, gone) :]):
        away = (number + 0.6 + max(0, -gone)) * FEED
        x, y = (
            (cells.left - away, cells.centre(at, 0)[1])
            if across
            else (cells.centre(0, at)[0], cells.top - 0.06 - away * 0.55)
        )
        if x > 0.05 and y > 0.62:
            sheet.text((x, y), cell_text(value), BLUE if across else "#8a5a00", SMALL, "middle")
    end = (cells.left - 0.04, cells.centre(at, 0)[1]) if across else (cells.centre(0, at)[0], cells.top - 0.03)
    start = (end[0] - 0.12, end[1]) if across else (end[0], end[1] - 0.08)
    sheet.arrow(start, end, colour=GREY if gone < len(values) else PALE, width=1.0)


def _says(found: Array, step: int) -> str:
    done, before = found.done(step), found.done(step - 1)
    works, products = int((done > before).sum()), found.a.size * found.b.shape[1]
    return f"{count_of(works, 'cell')} at work now; {int(done.sum())} of {products} products done."


def _alt(found: Array, step: int) -> str:
    rows = "; ".join(", ".join(cell_text(value) for value in row) for row in found.sums(step))
    grid = f"A grid of {found.a.shape[0]} by {found.b.shape[1]} cells"
    return f"{grid}, step {step} of {found.steps}. {_says(found, step)} Sums: {rows}."
