"""Many ranks: their messages over modelled time, and an all-reduce that sends chunks of an array round a ring.

The ring is after P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
Journal of Parallel and Distributed Computing 69 (2), 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from unrolled.show.picture import Explorer, Picture, counting
from unrolled.show.sheet import Box, Cells, Dashes, Sheet
from unrolled.show.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, PINK, SMALL, WIDTH, styled
from unrolled.show.timeline import RIGHT, Axis
from unrolled.show.words import amount, count_of, number, seconds

# Messages

LEFT, TOP, ROW, MOST_HIGH = 0.85, 0.95, 0.5, 5.2  # inches
LOOKS: tuple[tuple[str, Dashes], ...] = ((BLUE, "-"), (ORANGE, "--"), (GREEN, "-"), (PINK, "--"))
"""By round, again and again."""
MOST_NAMED = 12  # messages that the words name


@styled()
def messages(sent: Sequence[Any], title: str = "Messages") -> Picture:
    """Draw each message as an arrow: from its sender when it leaves, to its receiver when it is there.

    sent: `Network.messages` of an emulated run, each with source, to, bytes, start and arrival (modelled seconds) and
    round. There is room for 400 messages of 16 ranks.
    """
    ranks = 1 + max(max(message.source, message.to) for message in sent)
    descriptions = [
        f"{number(m.bytes)} bytes from rank {m.source} to rank {m.to}, {seconds(m.start)} to {seconds(m.arrival)}"
        for m in sorted(sent, key=lambda message: (message.start, message.source))
    ]
    more = [f"and {len(descriptions) - MOST_NAMED} more"] if len(descriptions) > MOST_NAMED else []
    total, last = sum(message.bytes for message in sent), max(message.arrival for message in sent)
    rounds = count_of(max(message.round for message in sent), "round")
    size = f"{count_of(len(sent), 'message')} between {count_of(ranks, 'rank')}, {amount(total, 'B')} in {rounds}"
    summary = f"{size}; the last is there after {seconds(last)} (modelled)."
    axis, row = Axis(LEFT, 0.0, max(message.arrival for message in sent)), min(ROW, MOST_HIGH / ranks)
    bottom = TOP + row * (ranks - 1)
    sheet = Sheet(bottom + 0.95)
    sheet.heading(title, summary)
    for rank in range(ranks):
        y = TOP + row * rank
        sheet.text((0.1, y), f"rank {rank}", size=SMALL)
        sheet.line((LEFT, y), (RIGHT, y), width=0.8)
    for message in sent:
        colour, style = LOOKS[(message.round - 1) % len(LOOKS)]
        start, end = axis.x(message.start), axis.x(message.arrival)
        places = (start, TOP + row * message.source), (end, TOP + row * message.to)
        sheet.arrow(*places, colour=colour, width=1.4, style=style)
    axis.draw(sheet, bottom + 0.25)
    changes = "; colours and strokes change from round to round" * (max(message.round for message in sent) > 1)
    sheet.text((0.1, bottom + 0.65), f"modelled time{changes}", size=SMALL)
    return Picture(sheet.figure(), f"{title}. {summary} {'; '.join([*descriptions[:MOST_NAMED], *more])}.")


# The ring

MOST = 8  # ranks
EDGE, LABEL, RING_TOP, GAP = 0.1, 0.75, 1.3, 0.3  # inches; GAP: between two ranks, so that arrows have room
HEIGHT, WIDEST = 0.36, 1.1
PART, WHOLE, ARRIVES = "#D3E9F7", "#8FD3BC", ORANGE
A_LINE = 4  # ranks that a line of a cell names

Move = tuple[int, int]
Holds = tuple[int, ...]


@dataclass(frozen=True)
class Ring:
    """`size` ranks, each with an array of as many chunks; rank r ends the first half with the sum of chunk r."""

    size: int

    @property
    def rounds(self) -> int:
        """Those of the reduce-scatter, then as many of the all-gather."""
        return 2 * (self.size - 1)

    def adds(self, number: int) -> bool:
        """Whether a chunk that arrives in this round, from 1, is added to the one that is there."""
        return number < self.size

    def moves(self, number: int) -> list[Move]:
        """Return for each rank what it sends to the next one in this round, as (rank, chunk). Round 0: nothing."""
        return [(rank, (rank - number) % self.size) for rank in range(self.size)] if number else []

    def after(self, number: int) -> list[list[Holds]]:
        """Return whose values each chunk holds after this round, by rank and chunk, in the order they were added."""
        holds: list[list[Holds]] = [[(rank,)] * self.size for rank in range(self.size)]
        for done in range(1, number + 1):
            sent = [(rank, chunk, holds[rank][chunk]) for rank, chunk in self.moves(done)]
            for rank, chunk, values in sent:
                to = (rank + 1) % self.size
                holds[to][chunk] = (*values, *holds[to][chunk]) if self.adds(done) else values
        return holds

    def carried(self, number: int) -> Fraction:
        """The share of the array that each link has carried after this round."""
        return Fraction(number, self.size)


def ring_allreduce(ranks: int = 4) -> Explorer:
    """Draw how an all-reduce moves chunks round a ring of ranks, round by round: whose values each of them holds.

    Each rank begins with an array of its own, cut into as many chunks as there are ranks, 2 to 8.
    """
    ring = Ring(ranks)
    # First shown: a round where something moves, and no sum is there yet. How sums come about is for who moves on.
    slider = counting("round", ring.rounds, 1)
    return Explorer(_draw, ring, round=slider)


def _draw(ring: Ring, round: int) -> Picture:
    width = min(WIDEST, (WIDTH - 2 * EDGE - LABEL) / ring.size - 0.08)
    grid = Cells(EDGE + LABEL, RING_TOP, ring.size, ring.size, width + 0.08, HEIGHT + GAP)
    sheet = Sheet(grid.bottom + 0.5)
    sheet.heading(_title(ring, round), *_summary(ring, round))
    holds, moves = ring.after(round), ring.moves(round)
    sent = {move for done in range(1, round + 1) for move in ring.moves(done)}
    for rank in range(ring.size):
        sheet.text((EDGE, grid.box(rank, 0)[1] + HEIGHT / 2), f"rank {rank}", size=SMALL)
        for chunk in range(ring.size):
            box = (*grid.box(rank, chunk)[:2], width, HEIGHT)
            # Once sent, a part of a sum only waits to be replaced.
            needed = len(holds[rank][chunk]) == ring.size or (rank, chunk) not in sent
            _cell(sheet, box, _words(holds[rank][chunk], ring.size), needed)
            if ((rank - 1) % ring.size, chunk) in moves:
                sheet.outline(box, ARRIVES, 2)
    for chunk in range(ring.size):
        x = grid.left + chunk * grid.width + width / 2
        words = f"chunk {chunk}" if ring.size < MOST else str(chunk)
        sheet.text((x, RING_TOP - 0.36), words, size=SMALL, anchor="middle")
    if ring.size == MOST:
        sheet.text((EDGE, RING_TOP - 0.36), "chunk", size=SMALL)
    for rank, chunk in moves:
        left, top, _, _ = grid.box(rank, chunk)
        x, y, gap = left + width / 2, top + HEIGHT, GAP - 0.05
        sheet.arrow((x, y + 0.02), (x, y + gap), colour=INK, width=1.6)
        if rank == ring.size - 1:  # out at the bottom, and in again at the top
            sheet.arrow((x, grid.top - GAP + 0.02), (x, grid.top - 0.05), colour=INK, width=1.6)
    x, y = EDGE, grid.bottom + 0.24
    for words, colour in (("part of the sum", PART), ("the whole sum", WHOLE), ("sent, no longer needed", "")):
        sheet.swatch(x, y, words, colour, GREY if colour else PALE, 0.8)
        x += 0.5 + 0.075 * len(words)
    sheet.outline((x, y - 0.07, 0.24, 0.14), ARRIVES, 1.6)
    sheet.text((x + 0.32, y), "arrives in this round", size=SMALL)
    return Picture(sheet.figure(), _alt(ring, round))


def _cell(sheet: Sheet, box: Box, words: str, needed: bool) -> None:
    """A chunk with whose values it holds; white with grey words where nobody needs it any more."""
    whole = words == "all"
    if needed:
        sheet.fill(box, WHOLE if whole else PART)
    sheet.edge(box, GREY if needed else PALE, 0.8)
    lines = words.count("\n")
    size = SMALL if not lines else SMALL - 1.5
    x, y = box[0] + box[2] / 2, box[1] + box[3] / 2 - 0.07 * lines
    sheet.text((x, y), words, INK if needed else GREY, size, "middle", bold=whole)


def _words(holds: Holds, size: int) -> str:
    if len(holds) == size:
        return "all"
    ranks = [str(rank) for rank in sorted(holds)]
    lines = ["+".join(ranks[i : i + A_LINE]) for i in range(0, len(ranks), A_LINE)]
    return "\n+".join(lines)


def _title(ring: Ring, number: int) -> str:
    if not number:
        return "Before the first round"
    return f"Round {number} of {ring.rounds}: {'reduce-scatter' if ring.adds(number) else 'all-gather'}"


def _summary(ring: Ring, number: int) -> list[str]:
    """What happens in the round, and how much each link has carried."""
    total = f"{_share(ring.carried(ring.rounds))} after the last round"
    if not number:
        return [f"Each rank has an array of its own, in {count_of(ring.size, 'chunk')}.", f"Each link carries {total}."]
    then = "adds it to its own" if ring.adds(number) else "keeps it instead of its own"
    now = f"Each rank sends one chunk to the next rank, which {then}."
    if number == ring.rounds:
        return [now, f"Each link has carried {_share(ring.carried(number))}."]
    return [now, f"So far each link has carried {_share(ring.carried(number))}; {total}."]


def _share(share: Fraction) -> str:
    """A share of the array in words."""
    return "the array once" if share == 1 else f"{share} of the array"


def _alt(ring: Ring, round: int) -> str:
    holds = ring.after(round)
    came = [
        f"chunk {chunk} from rank {rank} to rank {to}, now {_words(holds[to][chunk], ring.size)}".replace("\n", "")
        for rank, chunk in ring.moves(round)
        for to in [(rank + 1) % ring.size]
    ]
    whole = sum(len(values) == ring.size for row in holds for values in row)
    moved = f" Moved: {'; '.join(came)}." if came else ""
    return (
        f"An all-reduce round a ring of {count_of(ring.size, 'rank')}. {_title(ring, round)}. "
        f"{' '.join(_summary(ring, round))}{moved} "
        f"{whole} of {count_of(ring.size**2, 'chunk')} hold the sum of all ranks."
    )
