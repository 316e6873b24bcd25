"""Matrices: a walk through one in memory; a product whose cells workers share, and Amdahl's law; a systolic array.

The array, a product by a grid of cells that hand numbers on to their neighbours, is after H. T. Kung, "Why systolic
architectures?", Computer 15 (1), 1982. Here each cell keeps one sum of the result; the first matrix flows in from the
left, the second from above, each row and column a step later than the one before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.colors import to_hex
from numpy.typing import ArrayLike, NDArray

from unrolled import ops
from unrolled.show.picture import Explorer, Picture, Slider, counting
from unrolled.show.sheet import Box, Cells, Point, Sheet, cell_text, cells_text, on_host
from unrolled.show.style import BLUE, COLOURS, HATCHES, INK, ORANGE, PALE, RED, SKY, SMALL, WIDTH, tint
from unrolled.show.words import count_of, listing, number, percent

# The same visits, another number of cache lines loaded

Order = Literal["row", "column"]
SHAPE = 8, 8  # of the matrix that is drawn
LINE, LINES = 8, 4  # numbers in a cache line, as 8 float64 are the usual 64 bytes, and lines that the cache holds
EDGE, HEAD, STRIP = 0.15, 0.62, 0.55  # inches
HELD = "#D3EAF8"


@dataclass(frozen=True)
class MemoryWalk:
    """A walk over a (rows, columns) matrix that lies row by row in memory.

    visits: the address (in numbers, from 0) visited at each step. loads: how many cache lines were loaded up to and
    with each step. cached: the lines that the cache holds after each step, the least recently used first.
    """

    order: Order
    visits: list[int]
    loads: list[int]
    cached: list[tuple[int, ...]]

    def in_cache(self, step: int) -> NDArray[np.bool_]:
        """Return which addresses the cache holds after this step: a mask over all of memory."""
        return np.isin(np.arange(len(self.visits)) // LINE, self.cached[step])


def walk(order: Order) -> MemoryWalk:
    """Return a walk that visits every cell of the matrix once; the cache drops the least recently used line."""
    addresses = np.arange(SHAPE[0] * SHAPE[1]).reshape(SHAPE)
    visits = (addresses if order == "row" else addresses.T).ravel().tolist()
    cache: tuple[int, ...] = ()
    loads, cached, count = [], [], 0
    for address in visits:
        wanted = address // LINE
        count += wanted not in cache
        cache = (*(held for held in cache if held != wanted), wanted)[-LINES:]
        loads.append(count)
        cached.append(cache)
    return MemoryWalk(order, visits, loads, cached)


def memory_walk() -> Explorer:
    """Draw a matrix in row-major memory, walked row by row and column by column, step by step, with a small cache."""
    walks = walk("row"), walk("column")
    slider = Slider("step", range(len(walks[0].visits)), 20, lambda step: str(step + 1), play=True)
    return Explorer(_draw, *walks, step=slider)


def _draw(*walks: MemoryWalk, step: int) -> Picture:
    cells = Cells.fitting(SHAPE, WIDTH / 2 - 2 * EDGE, 2.3, 0.29)
    count, strips = len(walks[0].visits), HEAD + cells.size[1] + 0.45
    sheet = Sheet(strips + STRIP * len(walks) + 0.3)
    for i, one in enumerate(walks):
        left = EDGE + i * WIDTH / 2
        sheet.text((left, 0.18), f"{one.order} by {one.order}", size=11, bold=True)
        sheet.text((left, 0.42), f"{count_of(step + 1, 'visit')}, {count_of(one.loads[step], 'cache line')} loaded")
        turns = [""] * count
        for turn, address in enumerate(one.visits[: step + 1], start=1):
            turns[address] = str(turn)
        grid, now = cells.at(left, HEAD), one.visits[step]
        _hold(sheet, grid, one.in_cache(step).reshape(SHAPE))
        sheet.numbers(grid, turns)
        sheet.outline(grid.box(*divmod(now, SHAPE[1])), RED)
        # Memory as it is: one long row, in cache lines.
        top = strips + i * STRIP
        memory = Cells(EDGE, top + 0.12, 1, count, (WIDTH - 2 * EDGE) / count, 0.2)
        sheet.text((EDGE, top), f"memory, read {one.order} by {one.order}", size=SMALL)
        _hold(sheet, memory, one.in_cache(step)[None])
        for first in range(0, count + LINE, LINE):
            x = memory.left + first * memory.width
            sheet.line((x, memory.top - 0.04), (x, memory.bottom + 0.04), colour=INK, width=1.6)
        sheet.outline(memory.box(0, now), RED)
    y, bars = sheet.height - 0.16, f"bold bars: a cache line holds {LINE} numbers"
    held, visited = Cells(EDGE, y - 0.07, 1, 1, 0.24, 0.14), Cells(1.55, y - 0.07, 1, 1, 0.14, 0.14)
    _hold(sheet, held, np.ones((1, 1), dtype=bool))
    sheet.text((held.right + 0.08, y), "in the cache", size=SMALL)
    sheet.outline(visited.frame, RED)
    sheet.text((visited.right + 0.1, y), "visited now", size=SMALL)
    sheet.text((2.75, y), f"1, 2, 3: order of the visits      {bars}", size=SMALL)
    return Picture(sheet.figure(), _alt(walks, step))


def _hold(sheet: Sheet, cells: Cells, held: NDArray[np.bool_]) -> None:
    """Tint and hatch the cells that the cache holds."""
    sheet.hatch(sheet.fill_runs(cells, held, HELD), "///", SKY)
    sheet.rule(cells)


def _alt(walks: tuple[MemoryWalk, ...], step: int) -> str:
    count = len(walks[0].visits)
    read = [
        f"{one.order} by {one.order}, step {step + 1} of {count} visits {list(divmod(one.visits[step], SHAPE[1]))} "
        f"at address {one.visits[step]} and {count_of(one.loads[step], 'cache line')} were loaded so far, "
        f"{one.loads[-1]} by the end"
        for one in walks
    ]
    ratio = number(round(walks[1].loads[-1] / walks[0].loads[-1], 1))
    return (
        f"A matrix of {SHAPE[0]} by {SHAPE[1]} numbers lies row by row in memory, in cache lines of {LINE} numbers; "
        f"the cache holds {LINES} lines. Read {listing(read)}: the same {count} visits, {ratio} times the loads."
    )


# Workers that share a product, and what caps their speedup

ROWS, INNER, COLUMNS = 6, 5, 8  # A is ROWS by INNER, B is INNER by COLUMNS
MOST_WORKERS = len(COLOURS)
SIDE, GAP = 0.34, 0.4  # inches: the largest cell, and the room between matrices
CELL, HATCH = 0.4, 0.6  # how strong the colour of a cell is, and that of its hatching

FACTORS = (1, 2, 4, 8, 16, 64, 1024)
TICKS = (1, 10, 100, 1000)
LARGEST = 1024
SHARES = tuple(value / 100 for value in (*range(0, 100, 5), 99, 99.9, 100))
LEFT, RIGHT, TOP, BOTTOM = 0.75, 3.85, 0.45, 2.95  # inches: the frame of the curve
BARS, BAR_STEP, BAR_WIDTH = 4.75, 0.35, 2.6


def matmul_workers() -> Explorer:
    """Draw a product of two matrices: which worker computes which cell, and what a cell needs.

    Sliders: the number of workers (1 to 8) and the cell that is looked at.
    """
    count, middle = Slider("workers", range(1, MOST_WORKERS + 1), 3), ROWS // 2 * COLUMNS + COLUMNS // 2
    cell = Slider("cell of C", range(ROWS * COLUMNS), middle, lambda i: "row {}, column {}".format(*divmod(i, COLUMNS)))
    return Explorer(_draw_workers, workers=count, cell=cell)


def shares(rows: int, columns: int, workers: int) -> NDArray[np.int64]:
    """Return the worker, from 0, of each cell, (rows, columns): neighbouring cells, in shares as equal as can be."""
    parts = np.array_split(np.arange(rows * columns), workers)
    return np.concatenate([np.full(len(part), i) for i, part in enumerate(parts)]).reshape(rows, columns)


def _draw_workers(workers: int, cell: int) -> Picture:
    b = Cells(0.1 + INNER * SIDE + GAP, 0.45, INNER, COLUMNS, SIDE, SIDE)
    a = Cells(0.1, b.bottom + GAP, ROWS, INNER, SIDE, SIDE)
    c = Cells(b.left, a.top, ROWS, COLUMNS, SIDE, SIDE)
    sheet = Sheet(max(c.bottom + 0.1, c.top + 0.3 + 0.26 * workers))
    row, column = divmod(cell, COLUMNS)
    looks = (a, a.box(row, 0, 1, a.columns), "A", BLUE, "#BFE0F2"), (b, b.box(0, column, b.rows), "B", RED, "#F8D9C4")
    for cells, lit, name, colour, pale in looks:
        sheet.fill(cells.frame, "#F7F7F7")
        sheet.fill(lit, pale)
        sheet.rule(cells)
        sheet.outline(lit, colour)
        sheet.text_above(cells, f"{name}, {cells.rows} × {cells.columns}")
    share = shares(ROWS, COLUMNS, workers)
    sheet.paint(c, np.array([tint(colour, CELL) for colour in COLOURS])[share])
    for worker in range(1, workers):
        sheet.hatch(c.runs(share == worker), HATCHES[worker], to_hex(tint(COLOURS[worker], HATCH)))
    sheet.rule(c)
    sheet.numbers(c, [str(worker + 1) for worker in share.ravel()])
    sheet.outline(c.box(row, column), INK)
    sheet.text_above(c, f"C = A B, {ROWS} × {COLUMNS}")
    for worker in range(workers):
        swatch = Cells(c.right + 0.3, c.top + 0.02 + worker * 0.26, 1, 1, 0.3, 0.2)
        sheet.paint(swatch, np.array([[tint(COLOURS[worker], CELL)]]))
        if worker:
            sheet.hatch([swatch.frame], HATCHES[worker], to_hex(tint(COLOURS[worker], HATCH)))
        sheet.rule(swatch)
        words = f"worker {worker + 1}: {count_of(int((share == worker).sum()), 'cell')}"
        sheet.text((swatch.left + 0.4, swatch.top + 0.1), words, size=SMALL)
    needs = f"C[{row}, {column}] needs\nrow {row} of A and\ncolumn {column} of B:\n{count_of(INNER, 'product')}."
    sheet.text((c.right + 0.3, b.top + 0.1), f"{needs}\nNo cell needs another.")
    return Picture(sheet.figure(), _alt_workers(workers, cell))


def speedup(rows: int, columns: int, workers: int) -> tuple[int, float]:
    """Return the number of cells of the busiest worker, and how many times as fast all workers together are as one."""
    rounds = -(-rows * columns // workers)
    return rounds, rows * columns / rounds


def _alt_workers(workers: int, cell: int) -> str:
    row, column = divmod(cell, COLUMNS)
    rounds, factor = speedup(ROWS, COLUMNS, workers)
    owner = int(shares(ROWS, COLUMNS, workers)[row, column]) + 1
    sooner = f", so equal workers are done {number(round(factor, 2))} times as soon" if workers > 1 else ""
    return (
        f"Matrix A ({ROWS} by {INNER}) times matrix B ({INNER} by {COLUMNS}): the {ROWS * COLUMNS} cells of "
        f"the product C are shared by {count_of(workers, 'worker')}, at most {count_of(rounds, 'cell')} each{sooner}. "
        f"Worker {owner} computes cell [{row}, {column}] from row {row} of A and column {column} of B with "
        f"{count_of(INNER, 'multiplication')}; no cell needs another."
    )


def amdahl() -> Explorer:
    """Draw the speedup of a whole of which a share of the time is made faster, and the time that is left.

    Source: G. Amdahl, 1967: speedup = 1 / ((1 - fraction) + fraction / factor).
    """
    slider = Slider("share of the time that is made faster", [*SHARES], SHARES.index(0.9), percent)
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


# A systolic array

MOST = 4  # rows, columns and terms of a sum
MARGIN, ABOVE, BELOW = 0.1, 0.8, 0.75  # inches
WAIT, WAY = (0.4, 0.26), 0.2  # inches: a number that waits, and the way from there into the grid
SUM = 0.95, 0.56  # inches
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
    return Explorer(_draw_array, found, step=slider)


def _draw_array(found: Array, step: int) -> Picture:
    (n, k), m = found.a.shape, found.b.shape[1]
    cells = Cells(MARGIN + WAIT[0] * (n + k - 1) + WAY, ABOVE + WAIT[1] * (m + k - 1) + WAY, n, m, *SUM)
    sheet = Sheet(cells.bottom + BELOW)
    sheet.heading(f"Step {step} of {found.steps}", *_summary(found, step))
    for row in range(n):
        x, y = cells.left, cells.centre(row, 0)[1]
        sheet.arrow((x - WAY + 0.04, y), (x - 0.03, y))
        _waiting(sheet, (x - WAY - WAIT[0] / 2, y), (-WAIT[0], 0), found.a[row], step - row, OF_A)
    for column in range(m):
        x, y = cells.centre(0, column)[0], cells.top
        sheet.arrow((x, y - WAY + 0.04), (x, y - 0.03))
        _waiting(sheet, (x, y - WAY - WAIT[1] / 2), (0, -WAIT[1]), found.b[:, column], step - column, OF_B)
    done, sums, pairs = found.done(step), found.sums(step), found.pairs(step)
    for place in np.ndindex(n, m):
        if done[place]:
            _cell(sheet, cells.box(*place), pairs.get(place), cell_text(float(sums[place])))
    sheet.rule(cells, INK, 1.0)
    y = cells.bottom + 0.25
    sheet.text((MARGIN, y), "blue: rows of a, from the left", OF_A, SMALL)
    sheet.text((MARGIN + 2.6, y), "brown: columns of b, from above", OF_B, SMALL)
    sheet.swatch(MARGIN, y + 0.23, "works now: its product, and its sum so far", WORKING)
    sheet.swatch(4.1, y + 0.23, "done: its sum", DONE)
    rows = "; ".join(map(cells_text, found.sums(step)))
    grid = f"A grid of {found.a.shape[0]} by {found.b.shape[1]} cells"
    now = listing([f"{cell_text(a)} × {cell_text(b)}" for a, b in found.pairs(step).values()])
    products = f" Multiplied now: {now}." if now else ""
    alt = f"{grid}, step {step} of {found.steps}. {_summary(found, step)[0]} Sums: {rows}.{products}"
    return Picture(sheet.figure(), alt)


def _waiting(sheet: Sheet, first: Point, apart: Point, values: NDArray[np.float64], gone: int, colour: str) -> None:
    """The numbers that still wait outside of the grid; the one that goes in next stands nearest."""
    for away, value in enumerate(values[max(0, gone) :], start=max(0, -gone)):
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
