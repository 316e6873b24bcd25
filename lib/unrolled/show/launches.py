"""Rungs of a ladder as launches on one axis of time: the work stays, the gaps between the launches close."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from unrolled.show.ladder import clip
from unrolled.show.picture import Explorer, Slider, choosing
from unrolled.show.sheet import Box, Sheet
from unrolled.show.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, PAPER, SKY, SMALL, tint
from unrolled.show.timeline import RIGHT, Interval, Schedule, course_of, time_ticks
from unrolled.show.words import count_of, percent, seconds
from unrolled.simgpu.trace import PRODUCTS, covered

LEFT, EDGE = 1.72, 0.1  # inches: the axis of time starts at LEFT
TOP, ROW, ROWS, BOX, OVERVIEW, BAR = 0.92, 0.42, 1.5, 0.28, 0.4, 0.2
SEPARATED = 0.03  # inches: wider pieces have a white line before them
# What is drawn of a row, its colour and the share of the height that it takes: they differ without colours, too.
LOOKS = {
    "call": ("host hands out work", BLUE, 1.0),
    "product": ("matrix product", ORANGE, 1.0),
    "other": ("other kernel", SKY, 0.6),
    "copy": ("copy", GREEN, 0.3),
}
TRACK = "#F4F4F4"
PARTS = {
    "all": (0.0, 1.0),
    "the first quarter": (0.0, 1 / 4),
    "the first sixteenth": (0.0, 1 / 16),
    "the last quarter": (3 / 4, 1.0),
}
"""What can be seen of the axis of time: from where to where, as shares of it."""


class Axis(NamedTuple):
    """The seconds that are seen: from `start` on, `span` of them."""

    start: float
    span: float


@dataclass(frozen=True)
class Form:
    """What a trace says: its pieces, launches by the host, seconds, and those in which the GPU has something to do."""

    course: Schedule
    launches: int
    busy: float

    @classmethod
    def of(cls, trace: Any) -> Form:
        course = course_of(trace)
        work = [piece for piece in course.pieces if piece.row != "host"]
        calls = [piece.op for piece in course.pieces if piece.kind == "call"]
        launches = sum(not op.startswith("copy ") for op in calls)
        return cls(course, launches, covered((piece.start, piece.end) for piece in work))

    @property
    def span(self) -> float:
        return self.course.span


@dataclass(frozen=True)
class Climb:
    """All forms by name, as they are drawn."""

    forms: Mapping[str, Form]
    title: str

    @property
    def span(self) -> float:
        return max(form.span for form in self.forms.values())

    @property
    def where(self) -> str:
        return next(iter(self.forms.values())).course.where

    @property
    def rows(self) -> int:
        """The most rows that a form has."""
        return max(len(form.course.rows) for form in self.forms.values())


def launches(traces: Mapping[str, Any], title: str = "", start: str | None = None) -> Explorer:
    """Draw the launches of the same work in several forms, all on one axis of time; a slider goes from form to form.

    traces: name -> trace of the simulated GPU (`with simgpu.trace() as t:`), in the order of the ladder; start: the
    name to show first. A second slider looks at a part of the axis only. Trace a call after a first one, which takes
    memory from the driver. ValueError for no traces, one without a launch, traces of several GPUs, an unknown
    start.
    """
    slider = choosing("form", "traces", [*traces], start, play=True)
    climb = Climb({name: _form(name, trace) for name, trace in traces.items()}, title or "Launches, form by form")
    machines = {one.course.where for one in climb.forms.values()}
    if len(machines) > 1:
        raise ValueError(f"traces are of several machines, {' and '.join(sorted(machines))}; expected those of one")
    return Explorer(_draw, _alt, climb, form=slider, part=Slider("see", tuple(PARTS), 0))


def _form(name: str, trace: Any) -> Form:
    try:
        return Form.of(trace)
    except ValueError as error:
        raise ValueError(f"traces[{name!r}]: {error}") from None


def _draw(climb: Climb, form: str, part: str) -> Figure:
    now, (first, last) = climb.forms[form], PARTS[part]
    axis = Axis(first * climb.span, (last - first) * climb.span)
    pitch = min(ROW, ROWS / climb.rows)
    over = TOP + pitch * climb.rows + 0.3
    bottom = over + OVERVIEW * len(climb.forms)
    sheet = Sheet(bottom + 0.86, sharp=False)
    sheet.text((EDGE, 0.17), f"{climb.title} ({climb.where})", bold=True)
    sheet.text((EDGE, 0.43), _summary(form, now))
    sheet.text((EDGE, TOP - 0.16), f"{form}, row by row", GREY, SMALL)
    for row, name in enumerate(now.course.rows):
        top, height = TOP + pitch * row, BOX / ROW * pitch
        sheet.text((LEFT - 0.12, top + height / 2), name, size=SMALL, anchor="right")
        for piece in now.course.pieces:
            if piece.row == name:
                _piece(sheet, piece, axis, top, height)
        sheet.line((LEFT, top + height), (RIGHT, top + height), colour=PALE)
    sheet.text((EDGE, over - 0.12), "the GPU in all forms, on the same axis", GREY, SMALL)
    for number, (name, one) in enumerate(climb.forms.items()):
        _overview(sheet, name, one, axis, over + 0.06 + OVERVIEW * number, name == form)
    time_ticks(sheet, axis.span, bottom, LEFT, axis.start)
    sheet.text((RIGHT, bottom + 0.34), f"time, {climb.where}", GREY, SMALL, "right")
    _legend(sheet, climb, bottom + 0.42)
    return sheet.figure()


def kind_of(piece: Interval) -> str:
    """Return which of LOOKS a piece has; "" for the host's waiting, which is not drawn."""
    if piece.kind == "kernel":
        return "product" if piece.op in PRODUCTS else "other"
    return "" if piece.kind == "wait" else piece.kind


def _piece(sheet: Sheet, piece: Interval, axis: Axis, top: float, height: float, faded: bool = False) -> None:
    box = box_of(piece.start, piece.end, axis, top, height)
    if box and (kind := kind_of(piece)):
        left, _, width, _ = box
        _, colour, share = LOOKS[kind]
        colour = to_hex(tint(colour, 0.7)) if faded else colour
        sheet.fill((left, top + height * (1 - share), width, height * share), colour)
        if width > SEPARATED:
            sheet.line((left, top), (left, top + height), colour=PAPER, width=0.6)


def box_of(start: float, end: float, axis: Axis, top: float, height: float) -> Box | None:
    """Return the box from start to end on an axis of time, cut off at its ends; None for what lies beyond.

    However thin it is: a least width would fill the gaps between hundreds of short launches.
    """
    first, last = max(start - axis.start, 0.0), min(end - axis.start, axis.span)
    if first >= last:
        return None
    scale = (RIGHT - LEFT) / axis.span
    return LEFT + first * scale, top, (last - first) * scale, height


def _overview(sheet: Sheet, name: str, one: Form, axis: Axis, top: float, chosen: bool) -> None:
    """A form as one bar: the time it takes, and in it when the GPU has something to do."""
    counted = f"{count_of(one.launches, 'launch')}, {seconds(one.span)}"
    sheet.text((EDGE, top + 0.02), clip(name, 22), size=SMALL, bold=chosen)
    sheet.text((EDGE, top + 0.18), counted, INK if chosen else GREY, 8)
    box = box_of(0, one.span, axis, top, BAR)
    if box is None:  # all of it is over before
        return
    sheet.fill(box, TRACK)
    for piece in one.course.pieces:
        if piece.row != "host":
            _piece(sheet, piece, axis, top, BAR, faded=not chosen)
    if chosen:
        sheet.outline(box, INK, 1.2)


def _legend(sheet: Sheet, climb: Climb, y: float) -> None:
    pieces = [piece for one in climb.forms.values() for piece in one.course.pieces]
    kinds, x = {kind_of(piece) for piece in pieces}, EDGE
    for words, colour, share in (look for kind, look in LOOKS.items() if kind in kinds):
        sheet.fill((x, y + 0.08 - 0.16 * share, 0.22, 0.16 * share), colour)
        sheet.text((x + 0.3, y), words, size=SMALL)
        x += 0.52 + 0.072 * len(words)
    sheet.text(
        (EDGE, y + 0.25),
        "Nothing drawn: on the host, Python between two calls or waiting; on the GPU, nothing to do.",
        GREY,
        SMALL,
    )


def _summary(form: str, one: Form) -> str:
    took, share = seconds(one.span), percent(one.busy / one.span)
    counted = count_of(one.launches, "launch")
    return f"{form}: {counted}, {took}. The GPU works for {seconds(one.busy)} of it, {share}."


def _alt(climb: Climb, form: str, part: str) -> str:
    others = "; ".join(
        f"{name} {count_of(one.launches, 'launch')}, {seconds(one.span)}" for name, one in climb.forms.items()
    )
    seen = "" if part == "all" else f" Seen is {part} of {seconds(climb.span)}."
    return (
        f"{climb.title} ({climb.where}). {_summary(form, climb.forms[form])} All on one axis of time: {others}.{seen}"
    )
