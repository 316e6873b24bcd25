"""A systolic array: a matrix product by a grid of cells that hand numbers on to their neighbours, step by step.

After H. T. Kung, "Why systolic architectures?", Computer 15 (1), 1982. Here each cell keeps one sum of the result; the
first matrix flows in from the left, the second from above, each row and column a step later than the one before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unrolled.show.picture import Explorer, Picture, counting
from unrolled.show.sheet import Box, Cells, Point, Sheet, cell_text, cells_text, on_host
from unrolled.show.style import BLUE, INK, PALE, SMALL
from unrolled.show.words import count_of, listing

MOST = 4  # rows, columns and terms of a sum
EDGE, TOP, BELOW = 0.1, 0.8, 0.75  # inches
WAIT, GAP = (0.4, 0.26), 0.2  # inches: a number that waits, and the way from there into the grid
CELL = 0.95, 0.56  # inches
WORKING, DONE = "#FBEBCB", PALE
OF_A, OF_B = BLUE, "#8a5a00"


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

    def pairs(self, step: int) -> dict[tuple[int, ...], tuple[float, float]]:
        """Return what each cell that works in this step multiplies, by row and column."""
        done = self.done(step)
        places = np.argwhere(done > self.done(step - 1)).tolist()
        last = ((row, column, done[row, column] - 1) for row, column in places)
        return {(row, column): (float(self.a[row, k]), float(self.b[k, column])) for row, column, k in last}


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
    slider = counting("step", last, min(last, found.a.shape[1]))
    return Explorer(_draw, found, step=slider)


def _draw(found: Array, step: int) -> Picture:
    (n, k), m = found.a.shape, found.b.shape[1]
    cells = Cells(EDGE + WAIT[0] * (n + k - 1) + GAP, TOP + WAIT[1] * (m + k - 1) + GAP, n, m, *CELL)
    sheet = Sheet(cells.bottom + BELOW)
    sheet.heading(f"Step {step} of {found.steps}", *_summary(found, step))
    for row in range(n):
        x, y = cells.left, cells.centre(row, 0)[1]
        sheet.arrow((x - GAP + 0.04, y), (x - 0.03, y))
        _waiting(sheet, (x - GAP - WAIT[0] / 2, y), (-WAIT[0], 0), found.a[row], step - row, OF_A)
    for column in range(m):
        x, y = cells.centre(0, column)[0], cells.top
        sheet.arrow((x, y - GAP + 0.04), (x, y - 0.03))
        _waiting(sheet, (x, y - GAP - WAIT[1] / 2), (0, -WAIT[1]), found.b[:, column], step - column, OF_B)
    done, sums, pairs = found.done(step), found.sums(step), found.pairs(step)
    for place in np.ndindex(n, m):
        if done[place]:
            _cell(sheet, cells.box(*place), pairs.get(place), cell_text(sums[place]))
    sheet.rule(cells, INK, 1.0)
    y = cells.bottom + 0.25
    sheet.text((EDGE, y), "blue: rows of a, from the left", OF_A, SMALL)
    sheet.text((EDGE + 2.6, y), "brown: columns of b, from above", OF_B, SMALL)
    sheet.swatch(EDGE, y + 0.23, "works now: its product, and its sum so far", WORKING)
    sheet.swatch(4.1, y + 0.23, "done: its sum", DONE)
    rows = "; ".join(map(cells_text, found.sums(step)))
    grid = f"A grid of {found.a.shape[0]} by {found.b.shape[1]} cells"
    now = listing([f"{cell_text(a)} × {cell_text(b)}" for a, b in found.pairs(step).values()])
    products = f" Multiplied now: {now}." if now else ""
    alt = f"{grid}, step {step} of {found.steps}. {_summary(found, step)[0]} Sums: {rows}.{products}"
    return Picture(sheet.figure(), alt)


def _waiting(sheet: Sheet, first: Point, apart: Point, values: NDArray[np.float64], gone: int, colour: str) -> None:
    """The numbers that still wait outside of the grid; the one that goes in next stands nearest."""
    for number, value in enumerate(values[max(0, gone) :]):
        away = number + max(0, -gone)
        left, top = first[0] + away * apart[0] - WAIT[0] / 2, first[1] + away * apart[1] - WAIT[1] / 2
        box = Cells(left, top, 1, 1, *WAIT)
        sheet.rule(box)
        sheet.numbers(box, [cell_text(value)], colour)


def _cell(sheet: Sheet, box: Box, pair: tuple[float, float] | None, total: str) -> None:
    """A cell with its sum; and above it the pair that it multiplies now, if it does."""
    left, top, width, _ = box
    sheet.fill(box, WORKING if pair else DONE)
    if pair:
        a, b = (Cells(left + shift, top + 0.06, 1, 1, width / 2 - 0.1, 0.22) for shift in (0.02, width / 2 + 0.08))
        sheet.numbers(a, [cell_text(pair[0])], OF_A)
        sheet.text((left + width / 2, top + 0.17), "×", size=SMALL, anchor="middle")
        sheet.numbers(b, [cell_text(pair[1])], OF_B)
    sheet.text((left + width / 2, top + 0.39), total, anchor="middle", bold=True)


def _summary(found: Array, step: int) -> tuple[str, str]:
    """What works and how far it is; and how long all of it takes."""
    done, before = found.done(step), found.done(step - 1)
    works, products = int((done > before).sum()), found.a.size * found.b.shape[1]
    return (
        f"{count_of(works, 'cell')} at work now; {int(done.sum())} of {products} products done.",
        f"All take {count_of(found.steps, 'step')}; one cell alone would take {products}.",
    )
