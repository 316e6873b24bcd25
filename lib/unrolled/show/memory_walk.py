"""Walking through a matrix in memory: the same visits, another number of cache lines loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unrolled.show.picture import Explorer, Picture, Slider
from unrolled.show.sheet import Cells, Sheet
from unrolled.show.style import INK, RED, SKY, SMALL, WIDTH
from unrolled.show.words import count_of, listing, number

Order = Literal["row", "column"]
MOST_CELLS = 256
EDGE, HEAD, STRIP = 0.15, 0.62, 0.55  # inches
HELD = "#D3EAF8"


@dataclass(frozen=True)
class MemoryWalk:
    """A walk over a (rows, columns) matrix that lies row by row in memory.

    line: numbers in a cache line; lines: how many of them the cache holds. visits: the address (in numbers, from 0)
    visited at each step. loads: how many cache lines were loaded up to and with each step. cached: the lines that the
    cache holds after each step, the least recently used first.
    """

    order: Order
    line: int
    lines: int
    visits: list[int]
    loads: list[int]
    cached: list[tuple[int, ...]]

    def in_cache(self, step: int) -> NDArray[np.bool_]:
        """Return which addresses the cache holds after this step: a mask over all of memory."""
        return np.isin(np.arange(len(self.visits)) // self.line, self.cached[step])


def walk(shape: tuple[int, int], order: Order, line: int, lines: int) -> MemoryWalk:
    """Return a walk that visits every cell of a (rows, columns) matrix once.

    The cache holds `lines` lines of `line` numbers and drops the least recently used.
    """
    addresses = np.arange(shape[0] * shape[1]).reshape(shape)
    visits = (addresses if order == "row" else addresses.T).ravel().tolist()
    cache: tuple[int, ...] = ()
    loads, cached, count = [], [], 0
    for address in visits:
        wanted = address // line
        count += wanted not in cache
        cache = (*(held for held in cache if held != wanted), wanted)[-lines:]
        loads.append(count)
        cached.append(cache)
    return MemoryWalk(order, line, lines, visits, loads, cached)


def memory_walk(shape: tuple[int, int] = (8, 8), order: Order | None = None, line: int = 8, lines: int = 4) -> Explorer:
    """Draw a matrix in row-major memory, walked row by row and column by column (or in one `order`), step by step.

    line: numbers in a cache line (8 float64 are the usual 64 bytes); lines: how many of them the small cache holds.
    ValueError for more than 256 cells, an unknown order, or sizes below 1.
    """
    if min(*shape, line, lines) < 1 or shape[0] * shape[1] > MOST_CELLS:
        raise ValueError(f"shape, line and lines must be at least 1 and shape at most {MOST_CELLS} cells, got {shape}")
    if order not in ("row", "column", None):
        raise ValueError(f"order must be 'row', 'column' or None for both, got {order!r}")
    orders: tuple[Order, ...] = ("row", "column") if order is None else (order,)
    walks, steps = [walk(shape, one, line, lines) for one in orders], range(shape[0] * shape[1])
    slider = Slider("step", steps, min(2 * shape[1] + shape[1] // 2, steps[-1]), lambda step: str(step + 1), play=True)
    return Explorer(_draw, shape, walks, step=slider)


def _draw(shape: tuple[int, int], walks: list[MemoryWalk], step: int) -> Picture:
    cells = Cells.fitting(shape, WIDTH / 2 - 2 * EDGE, 2.3, 0.29)
    count, strips = shape[0] * shape[1], HEAD + cells.size[1] + 0.45
    sheet = Sheet(strips + STRIP * len(walks) + 0.3)
    for i, one in enumerate(walks):
        left = EDGE + i * WIDTH / 2
        sheet.text((left, 0.18), f"{one.order} by {one.order}", size=11, bold=True)
        sheet.text((left, 0.42), f"{count_of(step + 1, 'visit')}, {count_of(one.loads[step], 'cache line')} loaded")
        turns = [""] * count
        for turn, address in enumerate(one.visits[: step + 1], start=1):
            turns[address] = str(turn)
        grid, now = cells.at(left, HEAD), one.visits[step]
        _hold(sheet, grid, one.in_cache(step).reshape(shape))
        sheet.numbers(grid, turns)
        sheet.outline(grid.box(*divmod(now, shape[1])), RED)
        # Memory as it is: one long row, in cache lines.
        top = strips + i * STRIP
        memory = Cells(EDGE, top + 0.12, 1, count, (WIDTH - 2 * EDGE) / count, 0.2)
        sheet.text((EDGE, top), f"memory, read {one.order} by {one.order}", size=SMALL)
        _hold(sheet, memory, one.in_cache(step)[None])
        for first in range(0, count + one.line, one.line):
            x = min(memory.left + first * memory.width, memory.right)
            sheet.line((x, memory.top - 0.04), (x, memory.bottom + 0.04), colour=INK, width=1.6)
        sheet.outline(memory.box(0, now), RED)
    y, bars = sheet.height - 0.16, f"bold bars: a cache line holds {walks[0].line} numbers"
    held, visited = Cells(EDGE, y - 0.07, 1, 1, 0.24, 0.14), Cells(1.55, y - 0.07, 1, 1, 0.14, 0.14)
    _hold(sheet, held, np.ones((1, 1), dtype=bool))
    sheet.text((held.right + 0.08, y), "in the cache", size=SMALL)
    sheet.outline(visited.frame, RED)
    sheet.text((visited.right + 0.1, y), "visited now", size=SMALL)
    sheet.text((2.75, y), f"1, 2, 3: order of the visits      {bars}", size=SMALL)
    return Picture(sheet.figure(), _alt(shape, walks, step))


def _hold(sheet: Sheet, cells: Cells, held: NDArray[np.bool_]) -> None:
    """Tint and hatch the cells that the cache holds."""
    sheet.hatch(sheet.fill_runs(cells, held, HELD), "///", SKY)
    sheet.rule(cells)


def _alt(shape: tuple[int, int], walks: list[MemoryWalk], step: int) -> str:
    count, line, lines = shape[0] * shape[1], walks[0].line, walks[0].lines
    read = [
        f"{one.order} by {one.order}, step {step + 1} of {count} visits {list(divmod(one.visits[step], shape[1]))} "
        f"at address {one.visits[step]} and {count_of(one.loads[step], 'cache line')} were loaded so far, "
        f"{one.loads[-1]} by the end"
        for one in walks
    ]
    text = listing(read)
    if len(walks) == 2:
        ratio = walks[1].loads[-1] / walks[0].loads[-1]
        text += f": the same {count} visits, {number(round(ratio, 1))} times the loads"
    return (
        f"A matrix of {shape[0]} by {shape[1]} numbers lies row by row in memory, in cache lines of "
        f"{count_of(line, 'number')}; the cache holds {count_of(lines, 'line')}. Read {text}."
    )
