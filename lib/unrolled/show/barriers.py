"""A tree of partial sums in shared memory, from barrier to barrier; and what comes of it where there is no barrier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unrolled.show.picture import Explorer, Picture, counting
from unrolled.show.sheet import Cells, Sheet, cell_text, cells_text, on_host
from unrolled.show.style import BLUE, GREY, INK, PALE, RED, SMALL, WIDTH
from unrolled.show.words import listing, span

COUNTS = 4, 8, 16
WITH, WITHOUT = "A barrier after each round", "No barrier after a round"
PI = 3, 1, 4, 1, 5, 9, 2, 6
EDGE, TOP, LABEL, GAP = 0.1, 1.32, 0.36, 0.42  # inches
WRITTEN, WRONG = "#9CD0EF", "#FAD9C8"


@dataclass(frozen=True)
class Add:
    """One addition: `thread` reads s[thread] and s[other], and writes s[thread].

    late: the thread `other` has not finished what this addition counts on.
    """

    thread: int
    other: int
    late: bool = False


@dataclass(frozen=True)
class Tree:
    """Additions step by step, the first step after the values were written; memory (steps, n): s after each step."""

    steps: list[list[Add]]
    memory: NDArray[np.float64]
    ordered: bool
    """Whether a barrier stands between the steps."""

    @property
    def result(self) -> float:
        return float(self.memory[-1, 0])


def with_barriers(values: NDArray[np.float64]) -> Tree:
    """Return the tree in which all threads finish a round before any begins the next."""
    return _run(values, [[Add(t, t + half) for t in range(half)] for half in _halves(len(values))], True)


def without_barriers(values: NDArray[np.float64]) -> Tree:
    """Return the same additions in another order that a GPU may take: each thread runs to its end, 0 first.

    One thread a step, as many steps as there are rounds; all that are left in the last one.
    """
    halves = _halves(len(values))
    alone = [[(t, t + half) for half in halves if t < half] for t in range(halves[0])]
    last = len(halves) - 1
    steps = [*alone[:last], [add for adds in alone[last:] for add in adds]]
    done: set[tuple[int, int]] = set()
    found: list[list[Add]] = []
    for step in steps:
        found.append([])
        for thread, other in step:
            before = {(other, other + half) for half in halves if half > other - thread}
            found[-1].append(Add(thread, other, not before <= done))
            done.add((thread, other))
    return _run(values, found, False)


def _halves(count: int) -> list[int]:
    return [count >> k for k in range(1, count.bit_length())]


def _run(values: NDArray[np.float64], steps: list[list[Add]], ordered: bool) -> Tree:
    memory = [values.copy()]
    for step in steps:
        memory.append(memory[-1].copy())
        for add in step:
            memory[-1][add.thread] += memory[-1][add.other]
    return Tree(steps, np.array(memory), ordered)


def barriers(values: ArrayLike = PI) -> Explorer:
    """Draw how the threads of a block add up values in a tree, step by step, with barriers and without.

    values: (N,), one for each thread, N 4, 8 or 16. Without barriers, each thread stands for a warp of its own and
    runs as far as it can: one order of many. ValueError for another number of values.
    """
    given = on_host(values, dtype=np.float64)
    if given.ndim != 1 or len(given) not in COUNTS:
        raise ValueError(f"values have shape {given.shape}; expected 4, 8 or 16 of them, one for each thread")
    trees = {WITH: with_barriers(given), WITHOUT: without_barriers(given)}
    last = len(trees[WITH].steps)
    return Explorer(_draw, trees, step=counting("step", last, last))


def _draw(trees: dict[str, Tree], step: int) -> Picture:
    rounds, count = trees[WITH].memory.shape
    width = (WIDTH - 4 * EDGE) / 2 - LABEL
    cells = Cells(0, 0, 1, count, width / count, 0.27)
    pitch = cells.height + GAP
    sheet = Sheet(TOP + rounds * pitch - GAP + 0.5)
    states = []
    for place, (name, tree) in enumerate(trees.items()):
        words = _words(tree, trees[WITH].result, step)
        states.append(f"{name}: {' '.join(filter(None, words))} Shared memory s: {cells_text(tree.memory[step])}")
        left = EDGE + place * (WIDTH / 2)
        sheet.text((left, 0.2), name, size=11, bold=True)
        sheet.text((left, 0.45), "\n".join(words), size=SMALL)
        sheet.text((left, TOP - 0.14), "thread", GREY, 7)
        grid = cells.at(left + LABEL, TOP)
        sheet.numbers(Cells(grid.left, TOP - 0.24, 1, count, grid.width, 0.2), [str(i) for i in range(count)], GREY)
        for row in range(rounds):
            _draw_row(sheet, grid.at(grid.left, TOP + row * pitch), tree, row, row <= step)
    y = sheet.height - 0.16
    sheet.swatch(EDGE, y, "written", WRITTEN)
    sheet.outline(sheet.swatch(1.35, y, "written from a value read too early", WRONG), RED, 1.4)
    sheet.line((4.35, y), (4.65, y), colour=RED, width=1.4, style="--")
    sheet.text((4.73, y), "read too early", size=SMALL)
    sheet.line((5.85, y), (6.15, y), colour=INK, width=3)
    sheet.text((6.23, y), "syncthreads()", size=SMALL)
    alt = f"{count} threads add up {count} values in a tree, in shared memory. {'. '.join(states)}."
    return Picture(sheet.figure(), alt)


def _draw_row(sheet: Sheet, cells: Cells, tree: Tree, row: int, reached: bool) -> None:
    """Shared memory after a step, with lines from what was read to what was written."""
    adds = tree.steps[row - 1] if row else []
    sheet.text((cells.left - LABEL, cells.middle[1]), f"s, {row}", GREY, SMALL)
    if row == 0 or (tree.ordered and row < len(tree.steps)):
        y = cells.bottom + 0.1
        sheet.line((cells.left, y), (cells.right, y), colour=INK if reached else PALE, width=3)
    if not reached:
        sheet.rule(cells, PALE)
        return
    for thread in {add.thread for add in adds} if row else range(cells.columns):
        late = any(add.late for add in adds if add.thread == thread)
        sheet.fill(cells.box(0, thread), WRONG if late else WRITTEN)
        if late:
            sheet.outline(cells.box(0, thread), RED, 1.4)
    sheet.rule(cells)
    sheet.numbers(cells, [cell_text(value) for value in tree.memory[row].tolist()])
    for add in adds:
        start, (x, y) = cells.centre(0, add.other)[0], cells.centre(0, add.thread)
        look: Any = {"colour": RED, "style": "--"} if add.late else {"colour": BLUE}
        above = cells.top - GAP + (0.14 if tree.ordered or row == 1 else 0.02)
        sheet.line((start, above), (x, cells.top - 0.02), width=1.4, **look)
        sheet.line((x, above), (x, cells.top - 0.02), width=1.4, colour=BLUE)


def _words(tree: Tree, right: float, step: int) -> list[str]:
    """What the threads did in this step, what of it was too early, and what s[0] is now, in a line each."""
    adds = tree.steps[step - 1] if step else []
    threads = sorted({add.thread for add in adds})
    who = span("thread", threads[0], len(threads)) if threads else ""
    early = listing([f"s[{add.other}]" for add in adds if add.late])
    if not step:
        first, second = "every thread has written its value.", ""
    elif tree.ordered:
        away = adds[0].other - adds[0].thread
        first = f"{who}: s[t] += s[t + {away}]."
        second = f"Read: s[0] to s[{2 * away - 1}]. Written: s[0]{f' to s[{away - 1}]' if away > 1 else ''}."
    else:
        first = f"{who} go{'es' * (len(threads) == 1)} on without waiting."
        second = f"Read too early: {early}." if early != "none" else "Too late for those before."
    end = f"; the sum is {cell_text(right)}." if step == len(tree.steps) else "."
    return [f"Step {step}: {first}", second, f"s[0] = {cell_text(tree.memory[step, 0])}{end}"]
