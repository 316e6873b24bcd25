"""Rungs of a ladder as launches on one axis of time: the work stays, the gaps between the launches close."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.colors import to_hex

from unrolled.show.ladder import clip
from unrolled.show.picture import Explorer, Picture, Slider, choosing
from unrolled.show.sheet import Sheet
from unrolled.show.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, PAPER, SKY, SMALL, tint
from unrolled.show.timeline import RIGHT, Axis, Interval, Schedule, course_of
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


@dataclass(frozen=True)
class Form:
    """What a trace says: its pieces, launches by the host, and seconds in which the GPU has something to do."""

    course: Schedule
    launches: int
    busy: float

    @classmethod
    def of(cls, trace: Any) -> Form:
        course = course_of(trace)
        work = [(piece.start, piece.end) for piece in course.pieces if piece.row != "host"]
        calls = [piece for piece in course.pieces if piece.kind == "call" and not piece.op.startswith("copy ")]
        return cls(course, len(calls), covered(work))

    @property
    def span(self) -> float:
        return self.course.span

    @property
    def counted(self) -> str:
        return f"{count_of(self.launches, 'launch')}, {seconds(self.span)}"


def launches(traces: Mapping[str, Any], title: str = "", start: str | None = None) -> Explorer:
    """Draw the launches of the same work in several forms, all on one axis of time; a slider goes from form to form.

    traces: name -> trace of the simulated GPU (`with simgpu.trace() as t:`), in the order of the ladder; start: the
    name to show first. A second slider looks at a part of the axis only. Trace a call after a first one, which takes
    memory from the driver. ValueError for no traces, one without a launch, traces of several GPUs, an unknown
    start.
    """
    slider = choosing("form", "traces", [*traces], start, play=True)
    forms = {}
    for name, trace in traces.items():
        try:
            forms[name] = Form.of(trace)
        except ValueError as error:
            raise ValueError(f"traces[{name!r}]: {error}") from None
    machines = sorted({one.course.where for one in forms.values()})
    if len(machines) > 1:
        raise ValueError(f"traces are of several machines, {' and '.join(machines)}; expected those of one")
    title = f"{title or 'Launches, form by form'} ({machines[0]})"
    return Explorer(_draw, forms, title, form=slider, part=Slider("see", tuple(PARTS), 0))


def _draw(forms: Mapping[str, Form], title: str, form: str, part: str) -> Picture:
    now, (first, last) = forms[form], PARTS[part]
    whole = max(one.span for one in forms.values())
    axis = Axis(LEFT, first * whole, (last - first) * whole)
    pitch = min(ROW, ROWS / max(len(one.course.rows) for one in forms.values()))
    over = TOP + pitch * max(len(one.course.rows) for one in forms.values()) + 0.3
    bottom = over + OVERVIEW * len(forms)
    sheet = Sheet(bottom + 0.86, sharp=False)
    sheet.text((EDGE, 0.17), title, bold=True)
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
    for number, (name, one) in enumerate(forms.items()):
        _overview(sheet, name, one, axis, over + 0.06 + OVERVIEW * number, name == form)
    axis.draw(sheet, bottom)
    sheet.text((RIGHT, bottom + 0.34), f"time, {now.course.where}", GREY, SMALL, "right")
    kinds, x, y = {kind_of(piece) for one in forms.values() for piece in one.course.pieces}, EDGE, bottom + 0.42
    for words, colour, share in (look for kind, look in LOOKS.items() if kind in kinds):
        sheet.fill((x, y + 0.08 - 0.16 * share, 0.22, 0.16 * share), colour)
        sheet.text((x + 0.3, y), words, size=SMALL)
        x += 0.52 + 0.072 * len(words)
    nothing = "Nothing drawn: on the host, Python between two calls or waiting; on the GPU, nothing to do."
    sheet.text((EDGE, y + 0.25), nothing, GREY, SMALL)
    others = "; ".join(f"{name} {one.counted}" for name, one in forms.items())
    seen = "" if part == "all" else f" Seen is {part} of {seconds(whole)}."
    alt = f"{title}. {_summary(form, now)} All on one axis of time: {others}.{seen}"
    return Picture(sheet.figure(), alt)


def kind_of(piece: Interval) -> str:
    """Return which of LOOKS a piece has; "" for the host's waiting, which is not drawn."""
    if piece.kind == "kernel":
        return "product" if piece.op in PRODUCTS else "other"
    return "" if piece.kind == "wait" else piece.kind


def _piece(sheet: Sheet, piece: Interval, axis: Axis, top: float, height: float, faded: bool = False) -> None:
    box, kind = axis.box(piece.start, piece.end, top, height), kind_of(piece)
    if box and kind:
        _, colour, share = LOOKS[kind]
        left, _, width, _ = box
        sheet.fill(
            (left, top + height * (1 - share), width, height * share), to_hex(tint(colour, 0.7)) if faded else colour
        )
        if width > SEPARATED:
            sheet.line((left, top), (left, top + height), colour=PAPER, width=0.6)


def _overview(sheet: Sheet, name: str, one: Form, axis: Axis, top: float, chosen: bool) -> None:
    """A form as one bar: the time it takes, and in it when the GPU has something to do."""
    sheet.text((EDGE, top + 0.02), clip(name, 22), size=SMALL, bold=chosen)
    sheet.text((EDGE, top + 0.18), one.counted, INK if chosen else GREY, 8)
    if box := axis.box(0, one.span, top, BAR):  # else all of it is over before
        sheet.fill(box, TRACK)
        for piece in one.course.pieces:
            if piece.row != "host":
                _piece(sheet, piece, axis, top, BAR, faded=not chosen)
        if chosen:
            sheet.outline(box, INK, 1.2)


def _summary(form: str, one: Form) -> str:
    share = percent(one.busy / one.span)
    return f"{form}: {one.counted}. The GPU works for {seconds(one.busy)} of it, {share}."
