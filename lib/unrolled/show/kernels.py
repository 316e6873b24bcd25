"""What a warp wants at once of memory and of banks; threads that add up in a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.show.picture import Explorer, Picture, Slider, choosing, counting
from unrolled.show.sheet import Cells, Sheet, cell_text, cells_text
from unrolled.show.style import BLUE, GREY, INK, ORANGE, PALE, RED, SMALL, WIDTH
from unrolled.show.words import count_of, listing, number, percent, span

# What a warp wants at once

WARP = 32  # threads
EDGE = 0.1  # inches
READ, BESIDE = "#9CD0EF", "#FBEBCB"


def _names(threads: list[int]) -> str:
    """The number of a thread; for several how many they are."""
    return "" if not threads else str(threads[0]) if len(threads) == 1 else f"{len(threads)}×"


# Memory

SECTOR, LINE = 32, 128  # bytes of a sector, and of a row of the picture
WARPS, ITEMSIZE = 3, 4  # how many warps read, and bytes of a value
ROWS = 8
LEFT, TOP, ROW, SQUARE = 0.72, 0.95, 0.27, 0.17  # inches
THREADS = np.arange(WARPS * WARP).reshape(WARPS, WARP)
STRIDES = {"x[i]": THREADS, "x[i + 1]": THREADS + 1, "x[2 * i]": 2 * THREADS, "x[32 * i]": 32 * THREADS}


@dataclass(frozen=True)
class Access:
    """What all threads read in one step: places (warps, 32) in x."""

    places: NDArray[np.int64]

    def shares(self, warp: int) -> list[float]:
        """Return how much of each sector that is fetched, as a whole, the warp asked for, from 0 to 1."""
        sectors = np.unique(self.places[warp]) * ITEMSIZE // SECTOR
        return [float(count) * ITEMSIZE / SECTOR for count in np.unique(sectors, return_counts=True)[1]]

    def fewest(self, warp: int) -> int:
        """Return how many sectors would hold the same values if they lay side by side."""
        return -(-self.used(warp) // SECTOR)

    def used(self, warp: int) -> int:
        """Return how many bytes of what is fetched the warp asked for."""
        return len(np.unique(self.places[warp])) * ITEMSIZE

    def lines(self, warp: int) -> list[int]:
        """Return the 128-byte rows of memory to draw: those of all warps where they have room, else of this one."""
        of_all, own = (np.unique(places * ITEMSIZE // LINE) for places in (self.places, self.places[warp]))
        return [int(line) for line in (of_all if len(of_all) <= ROWS else own)]

    def readers(self, line: int) -> list[list[int]]:
        """Return the threads that read each value of a row of memory."""
        threads, per_line = self.places.ravel(), LINE // ITEMSIZE
        return [np.flatnonzero(threads == line * per_line + i).tolist() for i in range(per_line)]


def warps(start: str | None = None) -> Explorer:
    """Draw which addresses the threads read at once; the sectors of 32 bytes light up that a chosen warp fetches.

    start: which of `STRIDES` to show first. ValueError for another.
    """
    slider = choosing("thread i reads", "patterns", [*STRIDES], start)
    which = Slider("warp", range(WARPS), 0, lambda w: f"{w}: threads {w * WARP} to {w * WARP + WARP - 1}")
    return Explorer(_draw_memory, pattern=slider, warp=which)


def _draw_memory(pattern: str, warp: int) -> Picture:
    access = Access(STRIDES[pattern])
    sheet = Sheet(TOP + ROWS * ROW + 0.85 + 2 * SQUARE)
    sheet.heading(f"Thread i reads {pattern}; warp {warp} at this moment", _sectors(access, warp), first=0.45)
    columns = LINE // ITEMSIZE
    cells = Cells(LEFT, TOP, 1, columns, (WIDTH - EDGE - LEFT) / columns, ROW)
    sheet.text((EDGE, TOP - 0.14), "byte", GREY, SMALL)
    sheet.text((LEFT, TOP - 0.14), f"memory, {LINE} bytes a row; thick bars: sectors of {SECTOR}", GREY, SMALL)
    lines = access.lines(warp)
    for row, line in enumerate(lines[:ROWS]):
        _draw_line(sheet, cells.at(LEFT, TOP + row * ROW), access, warp, line)
    if len(lines) > ROWS:
        more = count_of(len(lines) - ROWS, "row")
        sheet.text((LEFT, TOP + ROWS * ROW + 0.13), f"… and {more} more that this warp reads", size=SMALL)
    top, fewest = TOP + ROWS * ROW + 0.37, [1.0] * access.fewest(warp)
    _draw_sectors(sheet, top, "sectors fetched", access.shares(warp))
    _draw_sectors(sheet, top + SQUARE + 0.08, "the fewest that would do", fewest)
    y = sheet.height - 0.16
    sheet.swatch(EDGE, y, "a thread of this warp reads it", READ)
    sheet.hatch([sheet.swatch(2.5, y, "fetched, not read by it", BESIDE)], "////", ORANGE)
    sheet.text((4.75, y), "number: the thread", size=SMALL)
    sheet.text((6.05, y), "grey: other warps", GREY, SMALL)
    first, last = access.places[warp][[0, -1]] * ITEMSIZE
    rest = {name: Access(places) for name, places in STRIDES.items() if name != pattern}
    others = "; ".join(f"{name}, {len(one.shares(warp))} for {one.fewest(warp)}" for name, one in rest.items())
    text = (
        f"Thread i reads {pattern}, {ITEMSIZE} bytes a value. Warp {warp}, threads {warp * WARP} to "
        f"{warp * WARP + WARP - 1}, reads at byte {number(int(first))} with its first thread and at byte "
        f"{number(int(last))} with its last. {_sectors(access, warp)}"
    )
    return Picture(sheet.figure(), f"{text} Of the others: {others}.")


def _draw_line(sheet: Sheet, cells: Cells, access: Access, warp: int, line: int) -> None:
    """128 bytes of memory: what the warp asked for, what is fetched with it, what other warps read."""
    readers = access.readers(line)
    own = [[thread for thread in threads if thread // WARP == warp] for threads in readers]
    per_sector = SECTOR // ITEMSIZE
    asked = np.array([bool(threads) for threads in own])
    fetched = np.repeat(asked.reshape(-1, per_sector).any(axis=1), per_sector)
    sheet.text((EDGE, cells.middle[1]), number(line * LINE), size=SMALL)
    sheet.hatch(sheet.fill_runs(cells, (fetched & ~asked)[None], BESIDE), "////", ORANGE)
    sheet.fill_runs(cells, asked[None], READ)
    sheet.rule(cells)
    sheet.numbers(cells, [_names(threads) for threads in own])
    others = [_names(theirs) if theirs and not mine else "" for theirs, mine in zip(readers, own, strict=True)]
    sheet.numbers(cells, others, GREY)
    for x in np.linspace(cells.left, cells.right, LINE // SECTOR + 1):
        sheet.line((x, cells.top), (x, cells.bottom), colour=INK, width=1.8)


def _draw_sectors(sheet: Sheet, top: float, words: str, shares: list[float]) -> None:
    """A square a sector, blue as far as it is read."""
    sheet.text((EDGE, top + SQUARE / 2), f"{words}: {len(shares)}", size=SMALL)
    side = SQUARE - 0.03
    for i, share in enumerate(shares):
        left, read = 2.0 + i * SQUARE, share * side
        sheet.fill((left, top, read, side), READ)
        sheet.edge((left, top, side, side), INK)
        if share < 1:
            rest = (left + read, top, side - read, side)
            sheet.fill(rest, BESIDE)
            sheet.hatch([rest], "////", ORANGE)


def _sectors(access: Access, warp: int) -> str:
    fetched, used = len(access.shares(warp)), access.used(warp)
    share = percent(used / (fetched * SECTOR))
    return (
        f"{count_of(fetched, 'sector')} fetched, {access.fewest(warp)} would do: {number(used)} of "
        f"{number(fetched * SECTOR)} bytes are used, {share}."
    )


# Shared memory

BANKS, ROWS_OF_BANKS = 32, 32  # as many rows of words as the widest of `TILES` needs
LABEL, BANKS_TOP, WORD = 0.82, 1.0, 0.15  # inches
LANES = np.arange(WARP)
TILES = {"a row of 32 × 32": LANES, "a column of 32 × 32": 32 * LANES, "a column of 32 × 33": 33 * LANES}
"""The words of 4 bytes that the lanes of a warp want at once: (32,), the first word is 0 and lies in bank 0."""


def words_a_bank(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many different words each bank is asked for, (32,): it gives one a pass."""
    return np.bincount(np.unique(words) % BANKS, minlength=BANKS)


def banks(start: str | None = None) -> Explorer:
    """Draw the 32 banks of shared memory as columns, and where in them the lanes of a warp find their words.

    start: which of `TILES` to show first. ValueError for another.
    """
    return Explorer(_draw_banks, pattern=choosing("a warp wants", "patterns", [*TILES], start))


def _draw_banks(pattern: str) -> Picture:
    rows, words, counts = ROWS_OF_BANKS, TILES[pattern], words_a_bank(TILES[pattern])
    cells = Cells(LABEL, BANKS_TOP, rows, BANKS, (WIDTH - EDGE - LABEL) / BANKS, WORD)
    sheet = Sheet(cells.bottom + 0.9)
    sheet.heading(f"Shared memory: a warp wants {pattern}", _passes(pattern), first=0.45)
    sheet.text((EDGE, BANKS_TOP - 0.13), "bank", GREY, SMALL)
    sheet.numbers(Cells(LABEL, BANKS_TOP - 0.23, 1, BANKS, cells.width, 0.2), [str(i) for i in range(BANKS)], GREY)
    lanes = [np.flatnonzero(words == word).tolist() for word in range(rows * BANKS)]
    mask = np.array([bool(each) for each in lanes]).reshape(rows, BANKS)
    sheet.fill_runs(cells, mask & (counts <= 1), READ)
    sheet.fill_runs(cells, mask & (counts > 1), BESIDE)
    sheet.rule(cells, PALE)
    for row in range(0, rows, 8):
        sheet.text((EDGE, cells.centre(row, 0)[1]), f"word {number(row * BANKS)}", size=SMALL)
    sheet.numbers(cells, [_names(each) for each in lanes])
    below = Cells(LABEL, cells.bottom + 0.1, 1, BANKS, cells.width, 0.24)  # how many words each bank has to give
    sheet.text((EDGE, below.middle[1]), "passes", size=SMALL)
    sheet.numbers(below, ["1" if count == 1 else "" for count in counts])
    for bank, count in enumerate(counts.tolist()):
        if count > 1:
            sheet.outline(cells.box(0, bank, rows), RED, 1.6)
            sheet.text(below.centre(0, bank), str(count), RED, SMALL, "middle", bold=True)
        elif not count:
            sheet.text(below.centre(0, bank), "·", GREY, SMALL, "middle")
    y = sheet.height - 0.16
    sheet.swatch(EDGE, y, "alone in its bank", READ, INK)
    sheet.outline(sheet.swatch(2.35, y, "one after the other", BESIDE), RED, 1.6)
    sheet.text((4.25, y), "number: the lane    ·: nothing wanted", size=SMALL)
    return Picture(sheet.figure(), _alt_banks(pattern))


def _passes(pattern: str) -> str:
    passes = int(words_a_bank(TILES[pattern]).max())
    if passes == 1:
        return "Each bank gives one word at most: 1 pass, no bank conflict."
    conflicts = count_of(passes - 1, "bank conflict")
    return f"One bank has to give {passes} words, one a pass: {passes} passes, {conflicts}."


def _alt_banks(pattern: str) -> str:
    used = np.flatnonzero(words_a_bank(TILES[pattern])).tolist()
    others = "; ".join(f"{name}, {words_a_bank(words).max()}" for name, words in TILES.items() if name != pattern)
    return (
        f"A warp wants {pattern} from shared memory, whose words of 4 bytes lie in 32 banks, one word after the other. "
        f"Its lanes go to {span('bank', used[0], len(used))}. {_passes(pattern)} Passes of the others: {others}."
    )


# A tree of partial sums, from barrier to barrier, and what comes of it where there is no barrier

WITH, WITHOUT = "A barrier after each round", "No barrier after a round"
VALUES = np.array([3.0, 1, 4, 1, 5, 9, 2, 6])  # the first digits of pi
TREE_TOP, STEP_LABEL, GAP = 1.32, 0.36, 0.42  # inches
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


def barriers() -> Explorer:
    """Draw how the threads of a block add up eight values in a tree, step by step, with barriers and without.

    Without barriers, each thread stands for a warp of its own and runs as far as it can: one order of many.
    """
    trees = {WITH: with_barriers(VALUES), WITHOUT: without_barriers(VALUES)}
    last = len(trees[WITH].steps)
    return Explorer(_draw, trees, step=counting("step", last, last))


def _draw(trees: dict[str, Tree], step: int) -> Picture:
    rounds, count = trees[WITH].memory.shape
    width = (WIDTH - 4 * EDGE) / 2 - STEP_LABEL
    cells = Cells(0, 0, 1, count, width / count, 0.27)
    pitch = cells.height + GAP
    sheet = Sheet(TREE_TOP + rounds * pitch - GAP + 0.5)
    states = []
    for place, (name, tree) in enumerate(trees.items()):
        words = _says(tree, trees[WITH].result, step)
        states.append(f"{name}: {' '.join(filter(None, words))} Shared memory s: {cells_text(tree.memory[step])}")
        left = EDGE + place * (WIDTH / 2)
        sheet.text((left, 0.2), name, size=11, bold=True)
        sheet.text((left, 0.45), "\n".join(words), size=SMALL)
        sheet.text((left, TREE_TOP - 0.14), "thread", GREY, 7)
        grid = cells.at(left + STEP_LABEL, TREE_TOP)
        sheet.numbers(
            Cells(grid.left, TREE_TOP - 0.24, 1, count, grid.width, 0.2), [str(i) for i in range(count)], GREY
        )
        for row in range(rounds):
            _draw_row(sheet, grid.at(grid.left, TREE_TOP + row * pitch), tree, row, row <= step)
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
    sheet.text((cells.left - STEP_LABEL, cells.middle[1]), f"s, {row}", GREY, SMALL)
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


def _says(tree: Tree, right: float, step: int) -> list[str]:
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
