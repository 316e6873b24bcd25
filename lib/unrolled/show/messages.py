"""Messages between ranks over modelled time: who sends to whom, when it leaves and when it is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from unrolled.show.picture import Picture
from unrolled.show.sheet import Dashes, Sheet
from unrolled.show.style import BLUE, GREEN, ORANGE, PINK, SMALL, styled
from unrolled.show.timeline import RIGHT, Axis
from unrolled.show.words import amount, count_of, number, seconds

MOST_RANKS, MOST = 16, 400
LEFT, TOP, ROW, MOST_HIGH = 0.85, 0.95, 0.5, 5.2  # inches
LOOKS: tuple[tuple[str, Dashes], ...] = ((BLUE, "-"), (ORANGE, "--"), (GREEN, "-"), (PINK, "--"))
"""By round, again and again."""
TOLD = 12  # messages that the words name


@styled()
def messages(sent: Sequence[Any], title: str = "Messages") -> Picture:
    """Draw each message as an arrow: from its sender when it leaves, to its receiver when it is there.

    sent: `Network.messages` of an emulated run, each with source, to, bytes, start and arrival (modelled seconds) and
    round. ValueError for none, more than 400, or more than 16 ranks.
    """
    if not 1 <= len(sent) <= MOST:
        raise ValueError(f"sent must hold 1 to {MOST} messages, got {len(sent)}")
    ranks = 1 + max(max(message.source, message.to) for message in sent)
    if ranks > MOST_RANKS:
        raise ValueError(f"sent must be between {MOST_RANKS} ranks at most, got {ranks}")
    return Picture(_draw(sent, ranks, title), _alt(sent, ranks, title))


def _draw(sent: Sequence[Any], ranks: int, title: str) -> Figure:
    axis, row = Axis(LEFT, 0.0, max(message.arrival for message in sent)), min(ROW, MOST_HIGH / ranks)
    bottom = TOP + row * (ranks - 1)
    sheet = Sheet(bottom + 0.95)
    sheet.heading(title, _summary(sent, ranks))
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
    return sheet.figure()


def _summary(sent: Sequence[Any], ranks: int) -> str:
    total, last = sum(message.bytes for message in sent), max(message.arrival for message in sent)
    rounds = count_of(max(message.round for message in sent), "round")
    size = f"{count_of(len(sent), 'message')} between {count_of(ranks, 'rank')}, {amount(total, 'B')} in {rounds}"
    return f"{size}; the last is there after {seconds(last)} (modelled)."


def _alt(sent: Sequence[Any], ranks: int, title: str) -> str:
    told = [
        f"{number(m.bytes)} bytes from rank {m.source} to rank {m.to}, {seconds(m.start)} to {seconds(m.arrival)}"
        for m in sorted(sent, key=lambda message: (message.start, message.source))
    ]
    more = [f"and {len(told) - TOLD} more"] if len(told) > TOLD else []
    return f"{title}. {_summary(sent, ranks)} {'; '.join([*told[:TOLD], *more])}."
