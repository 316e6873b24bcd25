"""One network in several precisions: what it gets right, over the bytes that its weights take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from unrolled.show.charts import beside, chart, word_ticks
from unrolled.show.picture import Picture
from unrolled.show.style import COLOURS, INK, MARKERS, styled
from unrolled.show.words import amount, percent, seconds, titled

Row = Mapping[str, Any]


@styled()
def precision_front(rows: Sequence[Row], title: str = "", like: Sequence[Row] = ()) -> Picture:
    """Draw accuracy over bytes for each row, and say the seconds beside its name.

    rows: mappings with "name", "accuracy" from 0 to 1, "bytes" and "seconds" above 0. like: the rows of an earlier
    picture, whose marks the same forms keep here. ValueError for no rows and for other values.
    """
    if not rows or not all(0 <= row["accuracy"] <= 1 and min(row["bytes"], row["seconds"]) > 0 for row in rows):
        raise ValueError(f"rows must hold accuracy from 0 to 1, bytes and seconds above 0, got {list(rows)!r:.80}")
    figure, axes = chart(max(3.2, 0.5 * len(rows) + 1.2), 0.8, 2.9, top=0.35 if title else 0.15)
    accuracies = [float(row["accuracy"]) for row in rows]
    margin = max(0.004, 0.15 * (max(accuracies) - min(accuracies)))
    axes.set(xscale="log", xlabel="bytes of all weights (log scale)", ylabel="right", title=title)
    axes.set(xlim=(min(row["bytes"] for row in rows) / 1.6, max(row["bytes"] for row in rows) * 1.6))
    axes.set(ylim=(min(accuracies) - margin, min(1.0, max(accuracies)) + margin))
    marks = [mark % len(MARKERS) for mark in marks_of(rows, like)]
    for mark, row in zip(marks, rows, strict=True):
        look: dict[str, Any] = {"color": COLOURS[mark], "markeredgecolor": INK, "markersize": 9}
        axes.plot(row["bytes"], row["accuracy"], MARKERS[mark], clip_on=False, zorder=3, **look)
    word_ticks(axes, "x", lambda value: amount(value, "B"))
    axes.xaxis.set_major_locator(LogLocator(10, subs=(1.0, 3.0)))  # all forms lie within a factor of 10 to 40
    word_ticks(axes, "y", percent, log=False)
    axes.grid(True, axis="y")
    _labels(axes, rows, marks)
    return Picture(figure, titled(title, f"{'; '.join(map(_words, rows))}."))


def marks_of(rows: Sequence[Row], like: Sequence[Row] = ()) -> list[int]:
    """Return a number for each row: the place in `like` of a name that its own begins with, else the next one free."""
    names = [str(row["name"]) for row in like]
    marks: list[int] = []
    for row in rows:
        known = (place for place, name in enumerate(names) if str(row["name"]).startswith(name) and place not in marks)
        free = (place for place in range(len(names), len(names) + len(rows)) if place not in marks)
        marks.append(next(chain(known, free)))
    return marks


def _labels(axes: Axes, rows: Sequence[Row], marks: Sequence[int]) -> None:
    """Beside the chart, in the order of the rows."""
    for number, (mark, row) in enumerate(zip(marks, rows, strict=True)):
        look: dict[str, Any] = {"color": COLOURS[mark], "markeredgecolor": INK, "markersize": 8}
        words = f"{row['name']}\n{percent(float(row['accuracy']))}, {seconds(float(row['seconds']))}"
        beside(axes, [1.07], 1.12, 0.96 - 0.96 * number / max(len(rows), 6), words, MARKERS[mark], **look)


def _words(row: Row) -> str:
    right, size = percent(float(row["accuracy"])), amount(float(row["bytes"]), "B")
    return f"{row['name']}: {right} right, {size}, {seconds(float(row['seconds']))}"
