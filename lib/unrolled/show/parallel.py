"""Parallel work: the cells of a matrix product shared out among workers; Amdahl's law, which caps what that gives."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.colors import to_hex
from numpy.typing import NDArray

from unrolled import ops
from unrolled.show.picture import Explorer, Picture, Slider
from unrolled.show.sheet import Cells, Sheet
from unrolled.show.style import BLUE, COLOURS, HATCHES, INK, ORANGE, PALE, RED, SMALL, tint
from unrolled.show.words import count_of, number, percent

MOST_WORKERS, MOST_CELLS = len(COLOURS), 24
SIDE, GAP = 0.34, 0.4  # inches: the largest cell, and the room between matrices
CELL, HATCH = 0.4, 0.6  # how strong the colour of a cell is, and that of its hatching

FACTORS = (1, 2, 4, 8, 16, 64, 1024)
TICKS = (1, 10, 100, 1000)
LARGEST = 1024
PERCENTS = (*range(0, 100, 5), 99, 99.9, 100)
LEFT, RIGHT, TOP, BOTTOM = 0.75, 3.85, 0.45, 2.95  # inches: the frame of the curve
BARS, BAR_STEP, BAR_WIDTH = 4.75, 0.35, 2.6


def matmul_workers(rows: int = 6, inner: int = 5, columns: int = 8, workers: int = 4) -> Explorer:
    """Draw A (rows, inner) times B (inner, columns): which worker computes which cell, and what a cell needs.

    Sliders: the number of workers (1 to 8, first `workers`) and the cell that is looked at.
    ValueError for sizes outside 1 to 24 or more than 8 workers.
    """
    for name, value in {"rows": rows, "inner": inner, "columns": columns, "workers": workers}.items():
        most = MOST_WORKERS if name == "workers" else MOST_CELLS
        if not 1 <= value <= most:
            raise ValueError(f"{name} must be from 1 to {most}, got {value}")
    count, middle = Slider("workers", range(1, MOST_WORKERS + 1), workers - 1), rows // 2 * columns + columns // 2
    cell = Slider("cell of C", range(rows * columns), middle, lambda i: "row {}, column {}".format(*divmod(i, columns)))
    return Explorer(_draw, (rows, inner, columns), workers=count, cell=cell)


def shares(rows: int, columns: int, workers: int) -> NDArray[np.int64]:
    """Return the worker, from 0, of each cell, (rows, columns): neighbouring cells, in shares as equal as can be."""
    parts = np.array_split(np.arange(rows * columns), workers)
    return np.concatenate([np.full(len(part), i) for i, part in enumerate(parts)]).reshape(rows, columns)


def _draw(sizes: tuple[int, int, int], workers: int, cell: int) -> Picture:
    rows, inner, columns = sizes
    side = min(SIDE, (4.9 - GAP) / (inner + columns), 5.0 / (inner + rows))
    b = Cells(0.1 + inner * side + GAP, 0.45, inner, columns, side, side)
    a = Cells(0.1, b.bottom + GAP, rows, inner, side, side)
    c = Cells(b.left, a.top, rows, columns, side, side)
    sheet = Sheet(max(c.bottom + 0.1, c.top + 0.3 + 0.26 * workers))
    row, column = divmod(cell, columns)
    looks = (a, a.box(row, 0, 1, a.columns), "A", BLUE, "#BFE0F2"), (b, b.box(0, column, b.rows), "B", RED, "#F8D9C4")
    for cells, lit, name, colour, pale in looks:
        sheet.fill(cells.frame, "#F7F7F7")
        sheet.fill(lit, pale)
        sheet.rule(cells)
        sheet.outline(lit, colour)
        sheet.text_above(cells, f"{name}, {cells.rows} × {cells.columns}")
    share = shares(rows, columns, workers)
    sheet.paint(c, np.array([tint(colour, CELL) for colour in COLOURS])[share])
    for worker in range(1, workers):
        sheet.hatch(c.runs(share == worker), HATCHES[worker], to_hex(tint(COLOURS[worker], HATCH)))
    sheet.rule(c)
    sheet.numbers(c, [str(worker + 1) for worker in share.ravel()])
    sheet.outline(c.box(row, column), INK)
    sheet.text_above(c, f"C = A B, {rows} × {columns}")
    for worker in range(workers):
        swatch = Cells(c.right + 0.3, c.top + 0.02 + worker * 0.26, 1, 1, 0.3, 0.2)
        sheet.paint(swatch, np.array([[tint(COLOURS[worker], CELL)]]))
        if worker:
            sheet.hatch([swatch.frame], HATCHES[worker], to_hex(tint(COLOURS[worker], HATCH)))
        sheet.rule(swatch)
        words = f"worker {worker + 1}: {count_of(int((share == worker).sum()), 'cell')}"
        sheet.text((swatch.left + 0.4, swatch.top + 0.1), words, size=SMALL)
    needs = f"C[{row}, {column}] needs\nrow {row} of A and\ncolumn {column} of B:\n{count_of(inner, 'product')}."
    sheet.text((c.right + 0.3, b.top + 0.1), f"{needs}\nNo cell needs another.")
    return Picture(sheet.figure(), _alt(sizes, workers, cell))


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


def amdahl(fraction: float = 0.9) -> Explorer:
    """Draw the speedup of a whole of which `fraction` of the time (0 to 1) is made faster, and the time that is left.

    Source: G. Amdahl, 1967: speedup = 1 / ((1 - fraction) + fraction / factor). ValueError for another fraction.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be from 0 to 1, got {fraction}")
    values = sorted({*(value / 100 for value in PERCENTS), fraction})
    slider = Slider("share of the time that is made faster", values, values.index(fraction), percent)
    return Explorer(_draw_law, fraction=slider)


def _draw_law(fraction: float) -> Picture:
    sheet = Sheet(3.5)
    for tick in TICKS:
        (x, _), (_, y) = _point(tick, 1), _point(1, tick)
        sheet.line((x, TOP), (x, BOTTOM), colour=PALE)
        sheet.line((LEFT, y), (RIGHT, y), colour=PALE)
        sheet.text((x, BOTTOM + 0.14), number(tick), size=SMALL, anchor="middle")
        sheet.text((LEFT - 0.08, y), number(tick), size=SMALL, anchor="right")
    sheet.line((LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM), width=0.8)
    sheet.text(((LEFT + RIGHT) / 2, BOTTOM + 0.38), "speedup of that part (times)", anchor="middle")
    sheet.text((0.1, 0.2), "speedup of the whole (times)")
    factors = np.geomspace(1, LARGEST, 60).tolist()
    sheet.line(_point(1, 1), _point(LARGEST, LARGEST), width=1.2, style=":")
    sheet.text(_point(9, 22), "all of it faster", "#555555", SMALL, "right")
    sheet.line(*(_point(factor, ops.amdahl_speedup(fraction, factor)) for factor in factors), colour=BLUE, width=2)
    never = "without a limit"
    if fraction < 1:
        limit = 1 / (1 - fraction)
        most, y = f"{number(round(limit, 1))} times", _point(1, min(limit, LARGEST))[1]
        never = f"never more than {most}"
        sheet.line((LEFT, y), (RIGHT, y), colour=RED, width=1.4, style="--")
        lower = y + (0.14 if limit > 300 else -0.12)
        sheet.text((RIGHT, lower), f"limit: {most}", RED, SMALL, "right", bold=True)
    _draw_bars(sheet, fraction)
    gains = ((factor, number(round(ops.amdahl_speedup(fraction, factor), 1))) for factor in (2, 16, 1024))
    points = "; ".join(f"{factor} times gives {gain}" for factor, gain in gains)
    alt = (
        f"Amdahl's law: {percent(fraction)} of the time is made faster, {percent(1 - fraction)} stays. The whole "
        f"becomes faster by less than the part: {points}; {never}."
    )
    return Picture(sheet.figure(), alt)


def _point(factor: float, speedup: float) -> tuple[float, float]:
    """Where a point of the curve lies: both axes logarithmic, from 1 to 1024."""
    x, y = (math.log(value) / math.log(LARGEST) for value in (factor, speedup))
    return LEFT + x * (RIGHT - LEFT), BOTTOM - y * (BOTTOM - TOP)


def _draw_bars(sheet: Sheet, fraction: float) -> None:
    sheet.text((BARS - 0.7, 0.2), "time left, hatched where it is unchanged")
    for i, factor in enumerate(FACTORS):
        top = TOP + 0.02 + i * BAR_STEP
        slow, fast = (1 - fraction) * BAR_WIDTH, fraction / factor * BAR_WIDTH
        sheet.fill((BARS, top, slow, 0.25), ORANGE)
        sheet.hatch([(BARS, top, slow, 0.25)] if slow else [], "//", INK)
        sheet.fill((BARS + slow, top, fast, 0.25), BLUE)
        sheet.text((BARS - 0.08, top + 0.125), f"{number(factor)} ×", size=SMALL, anchor="right")
        share = 1 / ops.amdahl_speedup(fraction, factor)
        end, middle = BARS + slow + fast, top + 0.125
        if share <= 0.8:
            sheet.text((end + 0.06, middle), percent(share), size=SMALL)
        elif fast >= 0.6:
            sheet.text((end - 0.06, middle), percent(share), "#FFFFFF", SMALL, "right")
    sheet.line((BARS, TOP), (BARS, BOTTOM), width=0.8)
    sheet.text((BARS + BAR_WIDTH / 2, BOTTOM + 0.38), "share of the time before", anchor="middle")
