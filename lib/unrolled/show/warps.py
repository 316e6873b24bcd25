"""Threads and addresses: what a warp reads at once, and the sectors of memory that have to be fetched for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from unrolled.show.picture import Explorer, Slider
from unrolled.show.sheet import Cells, Sheet
from unrolled.show.style import GREY, INK, ORANGE, SMALL, WIDTH
from unrolled.show.words import count_of, number, percent

WARP, SECTOR, LINE = 32, 32, 128  # threads; bytes of a sector, and of a row of the picture
MOST_WARPS, ROWS = 8, 8
EDGE, LABEL, TOP, ROW, SQUARE = 0.1, 0.62, 0.95, 0.27, 0.17  # inches
READ, FETCHED = "#9CD0EF", "#FBEBCB"
STRIDES: Mapping[str, Callable[[int], int]] = {
    "x[i]": lambda i: i,
    "x[i + 1]": lambda i: i + 1,
    "x[2 * i]": lambda i: 2 * i,
    "x[32 * i]": lambda i: 32 * i,
}


@dataclass(frozen=True)
class Access:
    """What all threads read in one step: places (warps, 32) in x, whose values have `itemsize` bytes."""

    name: str
    places: NDArray[np.int64]
    itemsize: int

    def sectors(self, warp: int) -> list[int]:
        """Return the numbers of the sectors that hold what this warp reads: these are fetched, each as a whole."""
        return [int(sector) for sector in np.unique(self.places[warp] * self.itemsize // SECTOR)]

    def shares(self, warp: int) -> list[float]:
        """Return how much of each fetched sector the warp asked for, from 0 to 1."""
        sectors = np.unique(self.places[warp]) * self.itemsize // SECTOR
        return [float(count) * self.itemsize / SECTOR for count in np.unique(sectors, return_counts=True)[1]]

    def fewest(self, warp: int) -> int:
        """Return how many sectors would hold the same values if they lay side by side."""
        return -(-self.used(warp) // SECTOR)

    def used(self, warp: int) -> int:
        """Return how many bytes of what is fetched the warp asked for."""
        return len(np.unique(self.places[warp])) * self.itemsize

    def lines(self, warp: int) -> list[int]:
        """Return the 128-byte rows of memory to draw: those of all warps where they have room, else of this one."""
        for places in (self.places, self.places[warp]):
            found = np.unique(places * self.itemsize // LINE).tolist()
            if len(found) <= ROWS:
                break
        return [int(line) for line in found]

    def readers(self, line: int) -> list[list[int]]:
        """Return the threads that read each value of a row of memory."""
        threads = self.places.ravel()
        per_line = LINE // self.itemsize
        return [np.flatnonzero(threads == line * per_line + i).tolist() for i in range(per_line)]


def warps(
    patterns: Mapping[str, Callable[[int], int]] = STRIDES, warps: int = 3, itemsize: int = 4, start: str | None = None
) -> Explorer:
    """Draw which addresses the threads read at once; the sectors of 32 bytes light up that a chosen warp fetches.

    patterns: what is read -> a function from a thread's number to the place in x that it reads. itemsize: bytes of a
    value. start: the pattern to show first. ValueError for places below 0, an unknown start, more than 8 warps, or
    values of other than 1, 2, 4, 8 or 16 bytes.
    """
    if itemsize not in (1, 2, 4, 8, 16) or not 1 <= warps <= MOST_WARPS:
        raise ValueError(f"itemsize must be 1, 2, 4, 8 or 16 and warps 1 to {MOST_WARPS}, got {itemsize} and {warps}")
    names = list(patterns)
    if not names or start not in (None, *names):
        raise ValueError(f"start must be one of the patterns, got {start!r} for {names}")
    found = {name: Access(name, places_of(name, pattern, warps * WARP), itemsize) for name, pattern in patterns.items()}
    first = 0 if start is None else names.index(start)
    return Explorer(
        _draw,
        _alt,
        found,
        pattern=Slider("thread i reads", names, first),
        warp=Slider("warp", range(warps), 0, lambda w: f"{w}: threads {w * WARP} to {w * WARP + WARP - 1}"),
    )


def places_of(name: str, pattern: Callable[[int], int], threads: int) -> NDArray[np.int64]:
    """Return the place of each thread, in rows of 32. ValueError for one below 0."""
    places = np.array([int(pattern(thread)) for thread in range(threads)], np.int64).reshape(-1, WARP)
    if places.min() < 0:
        raise ValueError(f"{name!r} is the place {places.min()} for some thread; expected 0 or more")
    return places


def _draw(found: Mapping[str, Access], pattern: str, warp: int) -> Figure:
    access = found[pattern]
    count = max(len(one.sectors(w)) for one in found.values() for w in range(len(one.places)))
    squares = -(-count // WARP)
    sheet = Sheet(TOP + ROWS * ROW + 0.85 + 2 * squares * SQUARE)
    sheet.text((EDGE, 0.2), f"Thread i reads {pattern}; warp {warp} at this moment", size=11, bold=True)
    sheet.text((EDGE, 0.45), _counts(access, warp))
    columns, left = LINE // access.itemsize, EDGE + LABEL
    cells = Cells(left, TOP, 1, columns, (WIDTH - EDGE - left) / columns, ROW)
    sheet.text((EDGE, TOP - 0.14), "byte", GREY, SMALL)
    sheet.text((cells.left, TOP - 0.14), f"memory, {LINE} bytes a row; thick bars: sectors of {SECTOR}", GREY, SMALL)
    lines = access.lines(warp)
    shown = lines[:ROWS]
    for row, line in enumerate(shown):
        _draw_line(sheet, cells.at(cells.left, TOP + row * ROW), access, warp, line)
    if len(lines) > len(shown):
        more = count_of(len(lines) - len(shown), "row")
        sheet.text((cells.left, TOP + ROWS * ROW + 0.13), f"… and {more} more that this warp reads", size=SMALL)
    _draw_sectors(sheet, TOP + ROWS * ROW + 0.37, access, warp, squares)
    _legend(sheet, sheet.height - 0.16)
    return sheet.figure()


def _draw_line(sheet: Sheet, cells: Cells, access: Access, warp: int, line: int) -> None:
    """128 bytes of memory: what the warp asked for, what is fetched with it, what other warps read."""
    readers = access.readers(line)
    own = [[thread for thread in threads if thread // WARP == warp] for threads in readers]
    per_sector = SECTOR // access.itemsize
    asked = np.array([bool(threads) for threads in own])
    fetched = np.repeat(asked.reshape(-1, per_sector).any(axis=1), per_sector)
    sheet.text((EDGE, cells.middle[1]), number(line * LINE), size=SMALL)
    for mask, colour in ((fetched & ~asked, FETCHED), (asked, READ)):
        for box in cells.runs(mask[None]):
            sheet.fill(box, colour)
    sheet.hatch(cells.runs((fetched & ~asked)[None]), "////", ORANGE)
    sheet.rule(cells)
    sheet.numbers(cells, [_names(threads) for threads in own])
    others = [_names(theirs) if theirs and not mine else "" for theirs, mine in zip(readers, own, strict=True)]
    sheet.numbers(cells, others, GREY)
    for x in np.linspace(cells.left, cells.right, LINE // SECTOR + 1):
        sheet.line((x, cells.top), (x, cells.bottom), colour=INK, width=1.8)


def _names(threads: list[int]) -> str:
    """The number of a thread; for several how many they are."""
    return "" if not threads else str(threads[0]) if len(threads) == 1 else f"{len(threads)}×"


def _draw_sectors(sheet: Sheet, top: float, access: Access, warp: int, rows: int) -> None:
    """Squares: as many as sectors are fetched, each blue as far as it is read; and as many as would do."""
    shares = access.shares(warp)
    for place, (words, filled) in enumerate(
        (("sectors fetched", shares), ("the fewest that would do", [1.0] * access.fewest(warp)))
    ):
        y = top + place * (rows * SQUARE + 0.08)
        sheet.text((EDGE, y + SQUARE / 2), f"{words}: {len(filled)}", size=SMALL)
        side, rest = SQUARE - 0.03, []
        for i, share in enumerate(filled):
            left, up = 2.0 + i % WARP * SQUARE, y + i // WARP * SQUARE
            read = share * side
            sheet.fill((left, up, read, side), READ)
            sheet.edge((left, up, side, side), INK)
            if share < 1:
                rest.append((left + read, up, side - read, side))
                sheet.fill(rest[-1], FETCHED)
        sheet.hatch(rest, "////", ORANGE)


def _legend(sheet: Sheet, y: float) -> None:
    sheet.swatch(EDGE, y, "a thread of this warp reads it", READ)
    sheet.hatch([sheet.swatch(2.5, y, "fetched, not read by it", FETCHED)], "////", ORANGE)
    sheet.text((4.75, y), "number: the thread", size=SMALL)
    sheet.text((6.05, y), "grey: other warps", GREY, SMALL)


def _counts(access: Access, warp: int) -> str:
    fetched, used = len(access.sectors(warp)), access.used(warp)
    share = percent(used / (fetched * SECTOR))
    return (
        f"{count_of(fetched, 'sector')} fetched, {access.fewest(warp)} would do: {number(used)} of "
        f"{number(fetched * SECTOR)} bytes are used, {share}."
    )


def _alt(found: Mapping[str, Access], pattern: str, warp: int) -> str:
    access = found[pattern]
    first, last = access.places[warp][[0, -1]] * access.itemsize
    others = "; ".join(
        f"{name}, {len(one.sectors(warp))} for {one.fewest(warp)}" for name, one in found.items() if name != pattern
    )
    text = (
        f"Thread i reads {pattern}, {count_of(access.itemsize, 'byte')} a value. Warp {warp}, threads {warp * WARP} to "
        f"{warp * WARP + WARP - 1}, reads at byte {number(int(first))} with its first thread and at byte "
        f"{number(int(last))} with its last. {_counts(access, warp)}"
    )
    return f"{text} Of the others: {others}." if others else text
