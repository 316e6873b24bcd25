"""The ladder: seconds per MNIST epoch, rung by rung."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from unrolled.show.charts import chart
from unrolled.show.picture import Picture
from unrolled.show.style import BLUE, GREY, INK, styled
from unrolled.show.words import count_of, seconds, times

CREDIT = "Measured by the author of an article on GPU programming with CuPy (Qiita, 2020), on several machines."
REFERENCES: tuple[Mapping[str, Any], ...] = (
    {"label": "NumPy, hosted notebook", "seconds": 1800},
    {"label": "the same code on CuPy", "seconds": 100, "batch": 8, "hardware": "hosted GPU"},
    {"label": "CuPy after one fix", "seconds": 50, "batch": 8, "hardware": "hosted GPU"},
    {"label": "Keras", "seconds": 4, "batch": 128, "hardware": "hosted GPU"},
)

TICKS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36000.0, 360000.0)  # seconds
ROW, HEADING, LEFT, RIGHT = 0.42, 0.34, 2.75, 0.95  # inches

Rung = Mapping[str, Any]


@styled()
def ladder(rungs: Sequence[Rung], references: Sequence[Rung] = REFERENCES, credit: str = CREDIT) -> Picture:
    """Draw seconds per MNIST epoch on a log scale, a row for each rung, in the order given, by what was measured.

    A rung is a mapping with "label" and "seconds" (above 0), and where known "what" (what was measured), "hardware",
    "batch", "precision", "code" (whose it is), "accuracy" (from 0 to 1). references: rungs of others, drawn hollow
    under their own heading, with `credit` below; pass () to leave them out. ValueError where there is nothing to draw,
    or seconds not above 0.
    """
    groups = grouped(rungs)
    if references:
        groups["for comparison, measured by others"] = list(references)
    rows = [rung for group in groups.values() for rung in group]
    if not rows:
        raise ValueError("rungs is empty and so are references: nothing to draw")
    for rung in rows:
        if not rung["seconds"] > 0:
            raise ValueError(f"seconds of rung {rung['label']!r} must be above 0, got {rung['seconds']}")
    height = ROW * len(rows) + HEADING * len(groups)
    bottom = 0.85 if references else 0.6
    figure, axes = chart(height + bottom + 0.15, LEFT, RIGHT, top=0.15, bottom=bottom)
    time_axis(axes, [float(rung["seconds"]) for rung in rows], 3)
    axes.set(ylim=(height, 0), yticks=[], xlabel="time for an epoch of MNIST (60,000 images), log scale")
    y = 0.0
    for heading, group in groups.items():
        axes.annotate(heading, (0, y + HEADING * 0.6), (-(LEFT - 0.1) * 72, 0), weight="bold", **BESIDE)
        y += HEADING
        for rung in group:
            _rung(axes, y + ROW / 2, rung, hollow=any(rung is reference for reference in references))
            y += ROW
    if references:
        figure.text(0.1 / 7.5, 0.09 / figure.get_figheight(), credit, size=8, color=GREY)
    return Picture(figure, _alt(groups, rungs, credit if references else ""))


BESIDE: dict[str, Any] = {
    "xycoords": ("axes fraction", "data"),
    "textcoords": "offset points",
    "va": "center",
    "annotation_clip": False,
}


def grouped(rungs: Iterable[Rung]) -> dict[str, list[Rung]]:
    """Return the rungs by what was measured, in the order in which each first appears."""
    groups: dict[str, list[Rung]] = {}
    for rung in rungs:
        groups.setdefault(str(rung.get("what") or "an epoch of training"), []).append(rung)
    return groups


def details(rung: Rung) -> str:
    """Return what is known of a rung besides its time, in words: batch, whose code, precision, hardware, accuracy."""
    parts = [f"batch {rung['batch']}"] if rung.get("batch") else []
    parts += [str(rung[key]) for key in ("code", "precision", "hardware") if rung.get(key)]
    parts += [f"{100 * float(rung['accuracy']):.2f} % right"] if rung.get("accuracy") is not None else []
    return ", ".join(parts)


def time_axis(axes: Axes, values: Sequence[float], room: float) -> None:
    """Make x the log scale of these seconds, with ticks in words and `room` times below the least of them."""
    low, high = min(values) / room, max(values) * 1.6
    if high / low < 60:  # always wide enough for two ticks
        low, high = low / 4, high * 4
    axes.set(xscale="log", xlim=(low, high))
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [_tick_words(tick) for tick in ticks])
    axes.minorticks_off()
    axes.spines["left"].set_visible(False)
    axes.grid(True, axis="x")


def _tick_words(tick: float) -> str:
    if tick < 60:
        return seconds(tick)
    return f"{tick / 60:.0f} min" if tick < 3600 else f"{tick / 3600:.0f} h"


def _rung(axes: Axes, y: float, rung: Rung, hollow: bool) -> None:
    start, value = axes.get_xlim()[0], float(rung["seconds"])
    axes.hlines(y, start, value, color=GREY if hollow else BLUE, linewidth=1.4, linestyle=":" if hollow else "-")
    face = "white" if hollow else BLUE
    axes.plot(value, y, "D" if hollow else "o", markersize=8, color=face, markeredgecolor=GREY if hollow else BLUE)
    axes.annotate(seconds(value), (value, y), (9, 0), textcoords="offset points", va="center", weight="bold")
    words, small = str(rung["label"]), details(rung)
    left = -(LEFT - 0.25) * 72
    axes.annotate(clip(words, 34), (0, y), (left, 6 if small else 0), color=INK, **BESIDE)
    if small:
        axes.annotate(clip(small, 44), (0, y), (left, -6), size=8, color=GREY, **BESIDE)


def clip(text: str, most: int) -> str:
    """Return at most so many letters of a text, with an ellipsis for the others."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _alt(groups: Mapping[str, list[Rung]], rungs: Sequence[Rung], credit: str) -> str:
    text = "Seconds per MNIST epoch, log scale."
    for heading, group in groups.items():
        rows = [
            f"{rung['label']} {seconds(float(rung['seconds']))}" + (f" ({details(rung)})" if details(rung) else "")
            for rung in group
        ]
        text += f" {heading[:1].upper()}{heading[1:]}: {'; '.join(rows)}."
        own = [float(rung["seconds"]) for rung in group if any(rung is mine for mine in rungs)]
        if len(own) > 1:
            rungs_of = f"your {count_of(len(own), 'rung')}"
            text += f" From the slowest of {rungs_of} to the fastest: {times(max(own) / min(own))}."
    return f"{text} {credit}".strip()
