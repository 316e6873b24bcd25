"""The banks of shared memory as columns: which lane of a warp goes to which bank, and how many passes that takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from unrolled.show.picture import Explorer, Slider
from unrolled.show.sheet import Cells, Sheet
from unrolled.show.style import GREY, INK, PALE, RED, SMALL, WIDTH
from unrolled.show.words import count_of, number, span

LANES = BANKS = 32
MOST_ROWS = 36
EDGE, LABEL, TOP, ROW = 0.1, 0.72, 1.0, 0.15  # inches
ALONE, CROWDED = "#9CD0EF", "#FBEBCB"
TILES: Mapping[str, Callable[[int], int]] = {
    "a row of 32 × 32": lambda lane: lane,
    "a column of 32 × 32": lambda lane: 32 * lane,
    "a column of 32 × 33": lambda lane: 33 * lane,
}


@dataclass(frozen=True)
class Words:
    """The words of 4 bytes that the lanes of a warp want at once: (32,), the first word is 0 and lies in bank 0."""

    name: str
    words: NDArray[np.int64]

    @property
    def words_a_bank(self) -> NDArray[np.int64]:
        """How many different words each bank is asked for, (32,): it gives one a pass."""
        return np.bincount(np.unique(self.words) % BANKS, minlength=BANKS)

    @property
    def passes(self) -> int:
        return int(self.words_a_bank.max())

    @property
    def conflicts(self) -> int:
        """Passes beyond the first."""
        return self.passes - 1

    @property
    def rows(self) -> int:
        """Rows of 32 words that hold all of them."""
        return int(self.words.max()) // BANKS + 1


def banks(patterns: Mapping[str, Callable[[int], int]] = TILES, start: str | None = None) -> Explorer:
    """Draw the 32 banks of shared memory as columns, and where in them the lanes of a warp find their words.

    patterns: what the warp wants -> a function from the lane, 0 to 31, to a word of 4 bytes. start: the one to
    show first. ValueError for an unknown start, no pattern, and words below 0 or beyond 36 rows of 32.
    """
    names = list(patterns)
    if not names or start not in (None, *names):
        raise ValueError(f"start must be one of the patterns, got {start!r} for {names}")
    found = {name: words_of(name, pattern) for name, pattern in patterns.items()}
    return Explorer(
        _draw, _alt, found, pattern=Slider("a warp wants", names, 0 if start is None else names.index(start))
    )


def words_of(name: str, pattern: Callable[[int], int]) -> Words:
    """Return the words of a pattern. Raises ValueError for those that the picture has no room for."""
    words = np.array([int(pattern(lane)) for lane in range(LANES)], np.int64)
    if words.min() < 0 or words.max() >= MOST_ROWS * BANKS:
        got = f"{words.min()} to {words.max()}"
        raise ValueError(f"{name!r} wants the words {got}; expected words from 0 to {MOST_ROWS * BANKS - 1}")
    return Words(name, words)


def _draw(found: Mapping[str, Words], pattern: str) -> Figure:
    wanted, rows = found[pattern], max(one.rows for one in found.values())
    left = EDGE + LABEL
    cells = Cells(left, TOP, rows, BANKS, (WIDTH - EDGE - left) / BANKS, ROW)
    sheet = Sheet(cells.bottom + 0.9)
    sheet.text((EDGE, 0.2), f"Shared memory: a warp wants {pattern}", size=11, bold=True)
    sheet.text((EDGE, 0.45), _counts(wanted))
    sheet.text((EDGE, TOP - 0.13), "bank", GREY, SMALL)
    sheet.numbers(Cells(left, TOP - 0.23, 1, BANKS, cells.width, 0.2), [str(bank) for bank in range(BANKS)], GREY)
    _draw_words(sheet, cells, wanted)
    _draw_passes(sheet, cells, wanted)
    _legend(sheet, sheet.height - 0.16)
    return sheet.figure()


def _draw_words(sheet: Sheet, cells: Cells, wanted: Words) -> None:
    """Shared memory, 32 words a row: the wanted ones with their lanes."""
    lanes: list[list[int]] = [[] for _ in range(cells.rows * BANKS)]
    for lane, word in enumerate(wanted.words.tolist()):
        lanes[word].append(lane)
    mask = np.array([bool(each) for each in lanes]).reshape(cells.rows, BANKS)
    crowded = mask & (wanted.words_a_bank > 1)
    for chosen, colour in ((mask & ~crowded, ALONE), (crowded, CROWDED)):
        for box in cells.runs(chosen):
            sheet.fill(box, colour)
    sheet.rule(cells, PALE)
    for row in range(0, cells.rows, 8):
        sheet.text((EDGE, cells.centre(row, 0)[1]), f"word {number(row * BANKS)}", size=SMALL)
    sheet.numbers(cells, [str(each[0]) if len(each) == 1 else f"{len(each)}×" if each else "" for each in lanes])
    for bank in np.flatnonzero(wanted.words_a_bank > 1).tolist():
        sheet.outline(cells.box(0, bank, cells.rows), RED, 1.6)


def _draw_passes(sheet: Sheet, cells: Cells, wanted: Words) -> None:
    """Below each bank, how many words it has to give."""
    below = Cells(cells.left, cells.bottom + 0.1, 1, BANKS, cells.width, 0.24)
    sheet.text((EDGE, below.middle[1]), "passes", size=SMALL)
    counts = wanted.words_a_bank.tolist()
    sheet.numbers(below, [str(count) if count == 1 else "" for count in counts])
    for bank, count in enumerate(counts):
        if count > 1:
            sheet.text(below.centre(0, bank), str(count), RED, SMALL, "middle", bold=True)
        elif not count:
            sheet.text(below.centre(0, bank), "·", GREY, SMALL, "middle")


def _legend(sheet: Sheet, y: float) -> None:
    sheet.swatch(EDGE, y, "alone in its bank", ALONE, INK)
    sheet.outline(sheet.swatch(2.35, y, "one after the other", CROWDED), RED, 1.6)
    sheet.text((4.25, y), "number: the lane    ·: nothing wanted", size=SMALL)


def _counts(wanted: Words) -> str:
    if wanted.passes == 1:
        return "Each bank gives one word at most: 1 pass, no bank conflict."
    return (
        f"One bank has to give {wanted.passes} words, one a pass: {wanted.passes} passes, "
        f"{count_of(wanted.conflicts, 'bank conflict')}."
    )


def _alt(found: Mapping[str, Words], pattern: str) -> str:
    wanted = found[pattern]
    used = np.flatnonzero(wanted.words_a_bank).tolist()
    where = span("bank", used[0], len(used)) if used == list(range(used[0], used[-1] + 1)) else f"{len(used)} banks"
    others = "; ".join(f"{name}, {one.passes}" for name, one in found.items() if name != pattern)
    text = (
        f"A warp wants {pattern} from shared memory, whose words of 4 bytes lie in 32 banks, one word after the other. "
        f"Its lanes go to {where}. {_counts(wanted)}"
    )
    return f"{text} Passes of the others: {others}." if others else text
