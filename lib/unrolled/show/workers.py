"""The cells of a matrix product, shared out among workers: no cell needs another."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from numpy.typing import NDArray

from unrolled.show.cells import Cells
from unrolled.show.explorer import Explorer, Slider
from unrolled.show.sheet import Sheet
from unrolled.show.style import BLUE, COLOURS, HATCHES, INK, RED, SMALL, tint
from unrolled.show.words import count_of, number

MOST_WORKERS, MOST_CELLS = len(COLOURS), 24
SIDE, GAP = 0.34, 0.4  # inches: the largest cell, and the room between matrices
CELL, HATCH = 0.4, 0.6  # how strong the colour of a cell is, and that of its hatching


def matmul_workers(rows: int = 6, inner: int = 5, columns: int = 8, workers: int = 4) -> Explorer:
    """Draw A (rows, inner) times B (inner, columns): which worker computes which cell, and what a cell needs.

    Sliders: the number of workers (1 to 8, first `workers`) and the cell that is looked at.
    ValueError for sizes outside 1 to 24 or more than 8 workers.
    """
    for name, value in {"rows": rows, "inner": inner, "columns": columns, "workers": workers}.items():
        most = MOST_WORKERS if name == "workers" else MOST_CELLS
        if not 1 <= value <= most:
            raise ValueError(f"{name} must be from 1 to {most}, got {value}")

    def place(cell: int) -> str:
        return "row {}, column {}".format(*divmod(cell, columns))

    sizes, count = (rows, inner, columns), Slider("workers", range(1, MOST_WORKERS + 1), workers - 1)
    cell = Slider("cell of C", range(rows * columns), rows // 2 * columns + columns // 2, place)
    return Explorer(partial(_draw, sizes), partial(_alt, sizes), workers=count, cell=cell)


def shares(rows: int, columns: int, workers: int) -> NDArray[np.int64]:
    """Return the worker, from 0, of each cell, (rows, columns): neighbouring cells, in shares as equal as can be."""
    parts = np.array_split(np.arange(rows * columns), workers)
    return np.concatenate([np.full(len(part), i) for i, part in enumerate(parts)]).reshape(rows, columns)


def _draw(sizes: tuple[int, int, int], workers: int, cell: int) -> Figure:
    rows, inner, columns = sizes
    side = min(SIDE, (4.9 - GAP) / (inner + columns), 5.0 / (inner + rows))
    heading = 0.45
    b = Cells(0.1 + inner * side + GAP, heading, inner, columns, side, side)
    a = Cells(0.1, b.bottom + GAP, rows, inner, side, side)
    c = Cells(b.left, a.top, rows, columns, side, side)
    sheet = Sheet(max(c.bottom + 0.1, c.top + 0.3 + 0.26 * workers))
    _operands(sheet, a, b, divmod(cell, columns))
    share = shares(rows, columns, workers)
    sheet.paint(c, np.array([tint(colour, CELL) for colour in COLOURS])[share])
    for worker in range(1, workers):
        sheet.hatch(c.runs(share == worker), HATCHES[worker], to_hex(tint(COLOURS[worker], HATCH)))
    sheet.rule(c)
    sheet.numbers(c, [str(worker + 1) for worker in share.ravel()])
    sheet.outline(c.box(*divmod(cell, columns)), INK)
    sheet.text_above(c, f"C = A B, {rows} × {columns}")
    _legend(sheet, c, share, workers)
    row, column = divmod(cell, columns)
    needs = f"C[{row}, {column}] needs\nrow {row} of A and\ncolumn {column} of B:\n{count_of(inner, 'product')}."
    sheet.text((c.right + 0.3, b.top + 0.1), f"{needs}\nNo cell needs another.")
    return sheet.figure()


def _operands(sheet: Sheet, a: Cells, b: Cells, at: tuple[int, int]) -> None:
    row, column = at
    looks = (a, a.box(row, 0, 1, a.columns), "A", BLUE, "#BFE0F2"), (b, b.box(0, column, b.rows), "B", RED, "#F8D9C4")
    for cells, lit, name, colour, pale in looks:
        sheet.fill(cells.frame, "#F7F7F7")
        sheet.fill(lit, pale)
        sheet.rule(cells)
        sheet.outline(lit, colour)
        sheet.text_above(cells, f"{name}, {cells.rows} × {cells.columns}")


def _legend(sheet: Sheet, c: Cells, share: NDArray[np.int64], workers: int) -> None:
    left, top = c.right + 0.3, c.top + 0.02
    for worker in range(workers):
        swatch = Cells(left, top + worker * 0.26, 1, 1, 0.3, 0.2)
        sheet.paint(swatch, np.array([[tint(COLOURS[worker], CELL)]]))
        if HATCHES[worker]:
            sheet.hatch([swatch.frame], HATCHES[worker], to_hex(tint(COLOURS[worker], HATCH)))
        sheet.rule(swatch)
        count = int((share == worker).sum())
        sheet.text((left + 0.4, swatch.top + 0.1), f"worker {worker + 1}: {count_of(count, 'cell')}", size=SMALL)


def speedup(rows: int, columns: int, workers: int) -> tuple[int, float]:
    """Return the number of cells of the busiest worker, and how many times as fast all workers together are as one."""
    rounds = -(-rows * columns // workers)
    return rounds, rows * columns / rounds


def _alt(sizes: tuple[int, int, int], workers: int, cell: int) -> str:
    rows, inner, columns = sizes
    row, column = divmod(cell, columns)
    rounds, factor = speedup(rows, columns, workers)
    owner = int(shares(rows, columns, workers)[row, column]) + 1
    sooner = f", so equal workers are done {number(round(factor, 2))} times as soon" if workers > 1 else ""
    return (
        f"Matrix A ({rows} by {inner}) times matrix B ({inner} by {columns}): the {rows * columns} cells of "
        f"the product C are shared by {count_of(workers, 'worker')}, at most {count_of(rounds, 'cell')} each{sooner}. "
        f"Worker {owner} computes cell [{row}, {column}] from row {row} of A and column {column} of B with "
        f"{count_of(inner, 'multiplication')}; no cell needs another."
    )
