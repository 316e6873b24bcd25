"""Host and GPU side by side, and the same work as launches in several forms, all over modelled time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.colors import to_hex

from unrolled.show.ladder import clip
from unrolled.show.picture import Explorer, Picture, Slider, choosing
from unrolled.show.sheet import Box, Sheet
from unrolled.show.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, PAPER, RED, SKY, SMALL, WIDTH, tint
from unrolled.show.words import count_of, percent, seconds, times
from unrolled.simgpu.trace import PRODUCTS, covered

# The host hands out work and goes on, and a clock that stops there lies

LEFT, RIGHT = 1.05, WIDTH - 0.3  # inches: the axis of time
TOP, ROW, BOX = 0.98, 0.52, 0.3
MOST_STOPS = 60
LIE = 1.1  # times that a reading may be too short and still pass as honest
GRAPH = "graph"  # what the launch of one is called
THINNEST = 0.008  # inches: so that every piece of work can be seen

Kind = Literal["call", "wait", "kernel", "copy"]
LOOKS: dict[Kind, tuple[str, str]] = {  # what it is called, its colour
    "call": ("hands out work", BLUE),
    "wait": ("waits for the GPU", PALE),
    "kernel": ("computes", ORANGE),
    "copy": ("copies", GREEN),
}


@dataclass(frozen=True)
class Interval:
    """Something that the host (row "host") or a stream of the GPU does, in seconds from the start of the trace.

    `calls`: how many calls the host had made before it asked for this; `op`: the operation that was called, or "".
    """

    row: str
    kind: Kind
    start: float
    end: float
    calls: int
    op: str = ""


@dataclass(frozen=True)
class Stop:
    """A place where a clock could stop: when the host is there, and when the work given so far is done."""

    time: float
    done: float
    calls: int
    words: str


@dataclass(frozen=True)
class Schedule:
    """A trace as it is drawn. `span`: its seconds; `where`: what gave them."""

    pieces: list[Interval]
    stops: list[Stop]
    span: float
    where: str

    @property
    def rows(self) -> list[str]:
        """The host first, then the streams."""
        return list(dict.fromkeys(["host", *(piece.row for piece in self.pieces)]))


def timeline(trace: Any, title: str = "") -> Explorer:
    """Draw what host and GPU did, and what a clock reads that stops at a place in the program, with or without waiting.

    trace: of the simulated GPU (`with simgpu.trace() as t:`). Sliders move the clock's stop from call to call, and
    choose whether the host synchronizes first. ValueError for a trace in which nothing was launched or copied.
    """
    course = course_of(trace)
    place = Slider("the clock stops", range(len(course.stops)), len(course.stops) - 1, lambda i: course.stops[i].words)
    wait = Slider("before that", (False, True), 0, lambda on: "synchronize" if on else "do not wait")
    return Explorer(_draw, course, title or "Host and GPU", place=place, wait=wait)


def course_of(trace: Any) -> Schedule:
    """Return what is drawn of a trace, in seconds from its start. ValueError if it holds no launch and no copy.

    A graph is one call, and each of its kernels is work that this asked for.
    """
    work = sorted([*trace.host_launches, *trace.transfers], key=lambda event: event.issued)
    if not work:
        raise ValueError("the trace is empty: nothing was launched or copied in it")
    zero, streams = trace.start, {event.stream for event in (*trace.launches, *trace.transfers)}
    within = trace.by_graph()
    pieces, stops, done = [], [], 0.0
    for i, event in enumerate(work):
        op = _name(event)
        issued = event.issued - zero
        over = issued + event.call
        pieces.append(Interval("host", "call", issued, over, i, op))
        for part in within.get(event.number, []) if op == GRAPH else [event]:
            row = "GPU" if len(streams) == 1 else f"stream {part.stream}"
            kind: Kind = "copy" if hasattr(part, "direction") else "kernel"
            pieces.append(Interval(row, kind, part.start - zero, part.end - zero, i, _name(part)))
        if hasattr(event, "direction") and event.blocking:
            pieces.append(Interval("host", "wait", over, event.end - zero, i))
            over = event.end - zero
        done = max(done, event.end - zero)
        stops.append(Stop(over, done, i + 1, f"after call {i + 1} ({op})"))
    for wait in trace.synchronizations:
        calls = bisect_left(work, wait.start, key=lambda event: event.issued)
        pieces.append(Interval("host", "wait", wait.start - zero, wait.end - zero, calls))
    # Few enough stops for a slider, with the first and the last.
    chosen = [stops[i] for i in np.unique(np.linspace(0, len(stops) - 1, MOST_STOPS).round().astype(int))]
    where = f"modelled, {trace.profile}" if trace.profile else "modelled"
    return Schedule(pieces, chosen, max(trace.end - zero, done), where)


def _name(event: Any) -> str:
    """What a launch, a graph or a copy is called."""
    return f"copy {event.direction}" if hasattr(event, "direction") else getattr(event, "op", GRAPH)


def reading(course: Schedule, place: int, wait: bool) -> tuple[float, float]:
    """Return the seconds that the clock reads at a stop, and those until the work given so far is really done."""
    stop = course.stops[place]
    true = max(stop.time, stop.done)
    return (true if wait else stop.time), true


class Axis(NamedTuple):
    """An axis of time that begins at `left` inches with the second `start`, and ends `span` seconds later at RIGHT."""

    left: float
    start: float
    span: float

    def x(self, time: float) -> float:
        """Return the place of a time, in inches."""
        return self.left + (RIGHT - self.left) * (time - self.start) / self.span

    def box(self, start: float, end: float, top: float, height: float) -> Box | None:
        """Return the box from start to end, cut off at the ends of the axis; None for what lies beyond.

        However thin it is: a least width would fill the gaps between hundreds of short launches.
        """
        first, last = max(start, self.start), min(end, self.start + self.span)
        return (self.x(first), top, self.x(last) - self.x(first), height) if first < last else None

    def draw(self, sheet: Sheet, y: float) -> None:
        """Draw the axis at the height y, with ticks in words."""
        power = 10.0 ** np.floor(np.log10(self.span / 4))  # 4 to 8 ticks, 1, 2 or 5 times a power of ten apart
        step = float(max(factor * power for factor in (1, 2, 5) if 4 * factor * power <= self.span * (1 + 1e-9)))
        for i in range(ceil(self.start / step - 1e-9), int((self.start + self.span) / step + 1e-9) + 1):
            x = self.x(i * step)
            sheet.line((x, y), (x, y + 0.05), width=0.8)
            sheet.text((x, y + 0.15), seconds(i * step), size=SMALL, anchor="middle")
        sheet.line((self.left, y), (RIGHT, y), width=0.8)


def _draw(course: Schedule, title: str, place: int, wait: bool) -> Picture:
    bottom, axis, stop = TOP + ROW * len(course.rows), Axis(LEFT, 0.0, course.span), course.stops[place]
    sheet = Sheet(bottom + 0.9)
    clock, true = reading(course, place, wait)
    sheet.text((0.1, 0.17), f"{title} ({course.where})", bold=True)
    sheet.text((0.1, 0.43), _summary(clock, true))
    axis.draw(sheet, bottom)
    tops = {name: TOP + ROW * row + (ROW - BOX) / 2 for row, name in enumerate(course.rows)}
    for name, top in tops.items():
        sheet.text((LEFT - 0.12, top + BOX / 2), name, anchor="right")
    for piece in course.pieces:
        left, top, faded = axis.x(piece.start), tops[piece.row], wait and piece.calls >= stop.calls
        width = max(axis.x(piece.end) - left, THINNEST)
        _look(sheet, (left, top, width, BOX), piece.kind, faded)
        if piece.kind != "wait" and width > 0.03:
            sheet.line((left, top), (left, top + BOX), colour=PAPER, width=0.5)
    start, here, there = (axis.x(time) for time in (0, clock, true))
    if wait and true > stop.time:  # the trace need not have had this synchronization
        left = axis.x(stop.time)
        _look(sheet, (left, tops["host"], max(there - left, THINNEST), BOX), "wait")
    # The clock's stop is a line with a flag.
    sheet.line((here, TOP - 0.14), (here, bottom), colour=RED, width=2)
    sheet.line((start, TOP - 0.14), (here, TOP - 0.14), colour=RED, width=2)
    near = here > (LEFT + RIGHT) / 2
    flag = (here + (-0.06 if near else 0.06), TOP - 0.25)
    sheet.text(flag, f"clock: {seconds(clock)}", RED, SMALL, "right" if near else "left")
    if true > clock:
        sheet.line((there, TOP - 0.02), (there, bottom), colour=INK, width=1.4, style="--")
    x, y, kinds = 0.1, bottom + 0.48, {piece.kind for piece in course.pieces} | {"wait"}
    for kind in (kind for kind in LOOKS if kind in kinds):
        words = LOOKS[kind][0]
        _look(sheet, (x, y - 0.08, 0.26, 0.16), kind)
        sheet.text((x + 0.33, y), words, size=SMALL)
        x += 0.55 + 0.072 * len(words)
    sheet.line((x, y), (x + 0.26, y), colour=INK, width=1.4, style="--")
    sheet.text((x + 0.33, y), "the work is done", size=SMALL)
    sheet.text((0.1, y + 0.25), "white: on the host, Python between two calls; on the GPU, nothing to do", size=SMALL)
    return Picture(sheet.figure(), _alt(course, title, place, wait))


def _look(sheet: Sheet, box: Box, kind: Kind, faded: bool = False) -> None:
    """Fill the box of something that host or GPU does; waiting is also hatched."""
    colour = LOOKS[kind][1]
    sheet.fill(box, to_hex(tint(colour, 0.25)) if faded else colour)
    if kind == "wait":
        sheet.hatch([box], "////", GREY)


def _summary(clock: float, true: float) -> str:
    if true > LIE * clock:
        over = f"{times(true / clock)} as long" if clock else "no end of a lie"
        return f"The clock reads {seconds(clock)}, but the work is done after {seconds(true)}: {over}."
    if true > clock:
        return f"The clock reads {seconds(clock)}, and the work is done after {seconds(true)}: almost the same."
    return f"The clock reads {seconds(clock)}, and then the work is done. That is the time it takes."


def _alt(course: Schedule, title: str, place: int, wait: bool) -> str:
    launched, copies = (sum(piece.kind == kind for piece in course.pieces) for kind in ("kernel", "copy"))
    and_copies = f" and {count_of(copies, 'copy')}" if copies else ""
    waiting = "having synchronized" if wait else "without waiting"
    return (
        f"{title}, over {seconds(course.span)} ({course.where}): {count_of(launched, 'kernel')}{and_copies}. The clock "
        f"stops {course.stops[place].words}, {waiting}. {_summary(*reading(course, place, wait))}"
    )


# Rungs of a ladder on one axis: the work stays, the gaps between the launches close

FORMS_LEFT, EDGE = 1.72, 0.1  # inches: the axis of time starts at FORMS_LEFT
FORMS_TOP, FORMS_ROW, ROWS, FORMS_BOX, OVERVIEW, BAR = 0.92, 0.42, 1.5, 0.28, 0.4, 0.2
SEPARATED = 0.03  # inches: wider pieces have a white line before them
# What is drawn of a row, its colour and the share of the height that it takes: they differ without colours, too.
FORM_LOOKS = {
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
    return Explorer(_draw_launches, forms, title, form=slider, part=Slider("see", tuple(PARTS), 0))


def _draw_launches(forms: Mapping[str, Form], title: str, form: str, part: str) -> Picture:
    now, (first, last) = forms[form], PARTS[part]
    whole = max(one.span for one in forms.values())
    axis = Axis(FORMS_LEFT, first * whole, (last - first) * whole)
    pitch = min(FORMS_ROW, ROWS / max(len(one.course.rows) for one in forms.values()))
    over = FORMS_TOP + pitch * max(len(one.course.rows) for one in forms.values()) + 0.3
    bottom = over + OVERVIEW * len(forms)
    sheet = Sheet(bottom + 0.86, sharp=False)
    sheet.text((EDGE, 0.17), title, bold=True)
    sheet.text((EDGE, 0.43), _summary_launches(form, now))
    sheet.text((EDGE, FORMS_TOP - 0.16), f"{form}, row by row", GREY, SMALL)
    for row, name in enumerate(now.course.rows):
        top, height = FORMS_TOP + pitch * row, FORMS_BOX / FORMS_ROW * pitch
        sheet.text((FORMS_LEFT - 0.12, top + height / 2), name, size=SMALL, anchor="right")
        for piece in now.course.pieces:
            if piece.row == name:
                _piece(sheet, piece, axis, top, height)
        sheet.line((FORMS_LEFT, top + height), (RIGHT, top + height), colour=PALE)
    sheet.text((EDGE, over - 0.12), "the GPU in all forms, on the same axis", GREY, SMALL)
    for number, (name, one) in enumerate(forms.items()):
        _overview(sheet, name, one, axis, over + 0.06 + OVERVIEW * number, name == form)
    axis.draw(sheet, bottom)
    sheet.text((RIGHT, bottom + 0.34), f"time, {now.course.where}", GREY, SMALL, "right")
    kinds, x, y = {kind_of(piece) for one in forms.values() for piece in one.course.pieces}, EDGE, bottom + 0.42
    for words, colour, share in (look for kind, look in FORM_LOOKS.items() if kind in kinds):
        sheet.fill((x, y + 0.08 - 0.16 * share, 0.22, 0.16 * share), colour)
        sheet.text((x + 0.3, y), words, size=SMALL)
        x += 0.52 + 0.072 * len(words)
    nothing = "Nothing drawn: on the host, Python between two calls or waiting; on the GPU, nothing to do."
    sheet.text((EDGE, y + 0.25), nothing, GREY, SMALL)
    others = "; ".join(f"{name} {one.counted}" for name, one in forms.items())
    seen = "" if part == "all" else f" Seen is {part} of {seconds(whole)}."
    alt = f"{title}. {_summary_launches(form, now)} All on one axis of time: {others}.{seen}"
    return Picture(sheet.figure(), alt)


def kind_of(piece: Interval) -> str:
    """Return which of FORM_LOOKS a piece has; "" for the host's waiting, which is not drawn."""
    if piece.kind == "kernel":
        return "product" if piece.op in PRODUCTS else "other"
    return "" if piece.kind == "wait" else piece.kind


def _piece(sheet: Sheet, piece: Interval, axis: Axis, top: float, height: float, faded: bool = False) -> None:
    box, kind = axis.box(piece.start, piece.end, top, height), kind_of(piece)
    if box and kind:
        _, colour, share = FORM_LOOKS[kind]
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


def _summary_launches(form: str, one: Form) -> str:
    share = percent(one.busy / one.span)
    return f"{form}: {one.counted}. The GPU works for {seconds(one.busy)} of it, {share}."
