"""How time grows with the size of a network, on one machine and another; and where each line comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from unrolled.show.charts import chart, spread, word_ticks
from unrolled.show.picture import Picture
from unrolled.show.style import COLOURS, INK, MARKERS, PAPER, SMALL, styled
from unrolled.show.words import number, seconds, times

LABELS = 2.8  # inches beside the chart
STYLES = {"measured": "-", "recorded": "--", "modelled": ":", "published": "-."}
"""How the times of a line may have come about, and its stroke. Only what was measured just now has filled markers."""
Line = tuple[Sequence[float], Sequence[float], str]


@styled()
def scaling(lines: Mapping[str, Line], what: str = "channels", title: str = "") -> Picture:
    """Draw time against size on log axes, a line a machine, each with what the largest costs against the smallest.

    lines: name -> (sizes, seconds, how), all above 0. how begins with "measured", "recorded", "modelled" or "published"
    and says more after that: "recorded: H200, 2026-11-21". what: the unit of the sizes. ValueError for anything else,
    and for no lines.
    """
    for name, line in lines.items():
        _check(name, *line)
    if not lines:
        raise ValueError("lines is empty; expected name -> (sizes, seconds, how)")
    figure, axes = chart(3.6, 0.8, LABELS)
    for i, (sizes, values, how) in enumerate(lines.values()):
        axes.loglog(sizes, values, **_look(i, how))
    axes.margins(0.05, 0.1)
    axes.grid(True)
    axes.set(xlabel=what, ylabel="time", title=title)
    everything = sorted({float(size) for sizes, _, _ in lines.values() for size in sizes})
    if len(everything) <= 8:
        axes.set_xticks(everything, [number(size) for size in everything])
        axes.minorticks_off()
    else:
        word_ticks(axes, "x", number)
    word_ticks(axes, "y", seconds)
    _labels(axes, lines)
    return Picture(figure, _alt(lines, what, title))


def growth_in_words(sizes: Sequence[float], values: Sequence[float]) -> str:
    """Return what the largest size costs against the smallest: "16 × the size, 2.1 × the time"; of one, its time."""
    first, last = min(range(len(sizes)), key=sizes.__getitem__), max(range(len(sizes)), key=sizes.__getitem__)
    if first == last:
        return seconds(values[first])
    size, time = (times(row[last] / row[first]).replace("times", "×") for row in (sizes, values))
    return f"{size} the size, {time} the time"


def _labels(axes: Axes, lines: Mapping[str, Line]) -> None:
    low, high = np.log(axes.get_ylim())
    ends = [(np.log(values[-1]) - low) / (high - low) for _, values, _ in lines.values()]
    for i, ((name, (sizes, values, how)), place) in enumerate(zip(lines.items(), spread(ends, 0.24), strict=True)):
        axes.plot([1.03, 1.11], [place, place], transform=axes.transAxes, clip_on=False, **_look(i, how))
        text = f"{name}\n{how}\n{growth_in_words(sizes, values)}"
        axes.annotate(text, (1.14, place), xycoords="axes fraction", va="center", color=INK, size=SMALL - 0.5)


def _look(i: int, how: str) -> dict[str, Any]:
    colour = COLOURS[i % len(COLOURS)]
    filled = colour if how.startswith("measured") else PAPER
    return {
        "color": colour,
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": STYLES[_kind(how)],
        "markerfacecolor": filled,
        "markeredgecolor": colour,
    }


def _kind(how: str) -> str:
    return next((kind for kind in STYLES if how.startswith(kind)), "")


def _check(name: str, sizes: Sequence[float], values: Sequence[float], how: str) -> None:
    if not len(sizes) or len(sizes) != len(values) or min(*sizes, *values) <= 0:
        raise ValueError(f"{name!r} must have as many sizes as seconds, all above 0; got {list(sizes)}, {list(values)}")
    if not _kind(how):
        raise ValueError(f"{name!r} must say how its times came about: {', '.join(STYLES)} ...; got {how!r}")


def _alt(lines: Mapping[str, Line], what: str, title: str) -> str:
    texts = [
        f"{name} ({how}): "
        + ", ".join(f"{seconds(value)} at {number(size)}" for size, value in zip(sizes, values, strict=True))
        + f"; {growth_in_words(sizes, values)}"
        for name, (sizes, values, how) in lines.items()
    ]
    return f"{title + '. ' if title else ''}Time against {what}, log axes. {'. '.join(texts)}."
