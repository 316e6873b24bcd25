"""The record: one A4 page that says what passed, when, and what was measured. It loads nothing from elsewhere."""

from __future__ import annotations

import contextlib
import datetime
import html
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template
from typing import Any

import unrolled

from . import plan

STYLE = Template(Path(__file__).with_suffix(".css").read_text(encoding="utf-8"))
DARK_GREEN, DARK_GREY = "#00694c", "#6a6a6a"
"""The pictures' green and grey, darker for small type."""

SELF_CHECKED = (
    "<b>Self-checked.</b> The learner's own computer ran these checks, and the learner's own files made this page. "
    "Nobody watched, and nothing proves who wrote the code or that these files were left as they were. "
    "The page says what somebody worked through; it is no examination, no grade and no certificate."
)


def page(lessons: list[plan.Lesson], kept: Mapping[str, Any], name: str, today: datetime.date) -> str:
    """Return the record as HTML. `kept` is a journal; lessons with nothing passed are named in a line at the end."""
    from unrolled.show.style import BLUE, INK, PALE

    style = STYLE.substitute(ink=INK, blue=BLUE, pale=PALE, green=DARK_GREEN, grey=DARK_GREY)
    done = plan.passed(kept["checks"])
    begun = [lesson for lesson in lessons if any(one.name in done for one in lesson.exercises)]
    blocks = "".join(_lesson(lesson, kept, done) for lesson in begun)
    others = [lesson.title for lesson in lessons if lesson not in begun]
    rest = f"<p class='note'>Not begun: {html.escape(', '.join(others))}.</p>" if others else ""
    day = f"{today.day} {today:%B %Y}"
    who = f'<div class="name">{html.escape(name)}<small>{day}</small></div>' if name else day
    legend = "<p class='note'>× says how many times as fast as the slow version that the check compares with.</p>"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Unrolled: a self-checked record</title>'
        f'<meta name="viewport" content="width=device-width"><style>{style}</style></head><body>\n'
        f"<header><div><h1>Unrolled</h1><p>From Python loops to GPU speed: a self-checked record</p></div>{who}"
        "</header>\n"
        f"{_sum(lessons, kept, done)}\n<main><div class='lessons'>{blocks}</div>{legend}{rest}{_ladder(kept)}</main>\n"
        f"<footer>{SELF_CHECKED} Course version {unrolled.__version__}.</footer>\n</body></html>\n"
    )


def _sum(lessons: list[plan.Lesson], kept: Mapping[str, Any], done: set[str]) -> str:
    names = [one.name for lesson in lessons for one in lesson.exercises]
    minutes = sum(lesson.minutes - lesson.left(done) for lesson in lessons)
    facts = [(f"{sum(name in done for name in names)} of {len(names)}", "exercises passed")]
    facts += [(f"about {round(minutes / 60)} h", "of lessons")] if minutes >= 45 else []
    facts += [(f"{len(kept['predictions'])}", "guesses written down")] if kept["predictions"] else []
    facts += [(f"{len(kept['rungs'])}", "rungs of the ladder")] if kept["rungs"] else []
    return f'<ul class="sum">{"".join(f"<li><b>{number}</b><span>{what}</span></li>" for number, what in facts)}</ul>'


def _lesson(lesson: plan.Lesson, kept: Mapping[str, Any], done: set[str]) -> str:
    rows = "".join(_row(one.name, kept, one.name in done) for one in lesson.exercises)
    count = f"{sum(one.name in done for one in lesson.exercises)} of {len(lesson.exercises)}"
    return f"<section><h2>{html.escape(lesson.title)}<span>{count}</span></h2><table>{rows}</table></section>"


def _row(name: str, kept: Mapping[str, Any], done: bool) -> str:
    row, mark, times, day = ' class="open"', "", "", ""
    if done:
        row, mark = "", '<span role="img" aria-label="passed">✓</span>'
        measured = kept["measurements"].get(name, {}).get("times")
        if isinstance(measured, (int, float)):
            times = f"{measured:,.0f}×" if measured >= 10 else f"{measured:.1f}×"
        with contextlib.suppress(ValueError):
            date = datetime.datetime.fromisoformat(str(kept["checks"][name].get("date"))).astimezone()
            day = f"{date.day} {date:%b %Y}"
    return (
        f'<tr{row}><td class="mark">{mark}</td><td>{html.escape(name)}</td>'
        f'<td class="times">{times}</td><td class="day">{day}</td></tr>'
    )


def _ladder(kept: Mapping[str, Any]) -> str:
    """From the slowest rung to the fastest, a row for each kind of work, on one log scale; nothing without rungs."""
    from unrolled.show.ladder import grouped

    rungs = [rung for rung in kept["rungs"].values() if rung["seconds"] > 0]
    if not rungs:
        return ""
    works = [sorted(group, key=lambda rung: -rung["seconds"]) for group in grouped(rungs).values()]
    works.sort(key=lambda group: group[-1]["seconds"] / group[0]["seconds"])
    low, high = min(rung["seconds"] for rung in rungs), max(rung["seconds"] for rung in rungs)

    def place(seconds: float) -> float:
        return 100 * math.log(seconds / low) / math.log(high / low) if high > low else 0

    rows = "".join(_climb(str(group[0]["what"]), group[0], group[-1], place) for group in works)
    where = html.escape("; ".join(sorted({str(rung.get("hardware", "")) for rung in rungs} - {""})))
    return (
        f'<h2 class="wide">The ladder<span>from the slowest way to the fastest, log scale</span></h2>'
        f'<table class="ladder">{rows}</table><p class="note">Measured on: {where}.</p>'
    )


def _climb(what: str, slow: Mapping[str, Any], fast: Mapping[str, Any], place: Callable[[float], float]) -> str:
    """One kind of work: where its slowest and its fastest rung stand, and how far they are apart."""
    from unrolled.show.words import seconds, times

    left, right = place(fast["seconds"]), place(slow["seconds"])
    dots = f'<i class="line" style="left:{left:.1f}%;width:{right - left:.1f}%"></i><b style="left:{left:.1f}%"></b>'
    words = f"{html.escape(str(fast['label']))}: {seconds(fast['seconds'])}"
    ratio = ""
    if slow is not fast:
        dots += f'<b class="slow" style="left:{right:.1f}%"></b>'
        words = f"{html.escape(str(slow['label']))}: {seconds(slow['seconds'])} → {words}"
        ratio = times(slow["seconds"] / fast["seconds"])
    return (
        f'<tr><td class="work"><b>{html.escape(what)}</b><small>{words}</small></td>'
        f'<td class="track"><div>{dots}</div></td><td class="ratio">{ratio}</td></tr>'
    )
