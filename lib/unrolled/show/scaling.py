"""How time grows with size: of one piece of work or another, on one machine or another, and where each line is from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from unrolled.show.charts import beside, chart, heights, size_ticks, word_ticks
from unrolled.show.picture import Picture
from unrolled.show.style import COLOURS, MARKERS, PAPER, SMALL, styled
from unrolled.show.words import number, seconds, times, titled

STYLES = {"measured": "-", "recorded": "--", "modelled": ":", "published": "-."}
"""How the times of a line may have come about, and its stroke. Only what was measured just now has filled markers."""
Line = tuple[Sequence[float], Sequence[float], str]


@styled()
def growth(sizes: Sequence[int], times: Mapping[str, Sequence[float]], what: str = "numbers") -> Picture:
    """Draw seconds over size on log axes, a line for each name, with its slope in words: what doubling the size costs.

    times: name -> seconds, one for each size; what: the unit of the sizes. ValueError for fewer than two sizes, counts
    that do not fit, or sizes or times not above 0.
    """
    if len(sizes) < 2 or min(sizes) <= 0:
        raise ValueError(f"sizes must be at least two, all above 0, got {list(sizes)}")
    for name, values in times.items():
        if len(values) != len(sizes) or min(values) <= 0:
            raise ValueError(f"times of {name!r} must be {len(sizes)} seconds above 0, got {list(values)}")
    figure, axes = chart(3.4, 0.8, 2.35)
    looks = [_look(i, "measured") for i in range(len(times))]
    _draw(axes, [(sizes, values, look) for values, look in zip(times.values(), looks, strict=True)], (0.04, 0.08))
    axes.set_xlabel(f"size ({what})")
    places = heights(axes, (values[-1] for values in times.values()), 0.19)
    for (name, values), place, look in zip(times.items(), places, looks, strict=True):
        beside(axes, [1.04], 1.075, place, f"{name}\n{_doubling(sizes, values)}", **look)
    lines = [
        f"{name}: from {seconds(values[0])} to {seconds(values[-1])}; {_doubling(sizes, values)} "
        f"(slope {slope(sizes, values):.2f})"
        for name, values in times.items()
    ]
    ends = f"from {number(sizes[0])} to {number(sizes[-1])} {what}"
    return Picture(figure, f"Time against size, {ends}, log axes. {'. '.join(lines)}.")


@styled()
def scaling(lines: Mapping[str, Line], what: str = "channels", title: str = "") -> Picture:
    """Draw time against size on log axes, a line a machine, each with what the largest costs against the smallest.

    lines: name -> (sizes, seconds, how), all above 0. how begins with "measured", "recorded", "modelled" or "published"
    and says more after that: "recorded: H200, 2026-11-21". what: the unit of the sizes. ValueError for anything else,
    and for no lines.
    """
    for name, (sizes, values, how) in lines.items():
        if not len(sizes) or len(sizes) != len(values) or min(*sizes, *values) <= 0:
            raise ValueError(f"{name!r} must have as many sizes as seconds, all above 0; got {[*sizes]}, {[*values]}")
        if not _kind(how):
            raise ValueError(f"{name!r} must say how its times came about: {', '.join(STYLES)} ...; got {how!r}")
    if not lines:
        raise ValueError("lines is empty; expected name -> (sizes, seconds, how)")
    figure, axes = chart(3.6, 0.8, 2.8)
    looks = [_look(i, how) for i, (_, _, how) in enumerate(lines.values())]
    _draw(axes, [(*line[:2], look) for line, look in zip(lines.values(), looks, strict=True)], (0.05, 0.1))
    axes.set(xlabel=what, title=title)
    places = heights(axes, (values[-1] for _, values, _ in lines.values()), 0.24)
    for (name, (sizes, values, how)), place, look in zip(lines.items(), places, looks, strict=True):
        text = f"{name}\n{how}\n{growth_in_words(sizes, values)}"
        beside(axes, [1.03, 1.11], 1.14, place, text, size=SMALL - 0.5, **look)
    texts = [
        f"{name} ({how}): "
        + ", ".join(f"{seconds(value)} at {number(size)}" for size, value in zip(sizes, values, strict=True))
        + f"; {growth_in_words(sizes, values)}"
        for name, (sizes, values, how) in lines.items()
    ]
    return Picture(figure, titled(title, f"Time against {what}, log axes. {'. '.join(texts)}."))


def slope(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Return the exponent p of the best fit time = c · size^p (least squares on logarithms)."""
    return float(np.polyfit(np.log(np.asarray(sizes, dtype=np.float64)), np.log(np.asarray(times)), 1)[0])


def _doubling(sizes: Sequence[float], times: Sequence[float]) -> str:
    return f"twice the size: {number(round(2 ** slope(sizes, times), 1))} × the time"


def growth_in_words(sizes: Sequence[float], values: Sequence[float]) -> str:
    """Return what the largest size costs against the smallest: "16 × the size, 2.1 × the time"; of one, its time."""
    first, last = (extreme(range(len(sizes)), key=sizes.__getitem__) for extreme in (min, max))
    if first == last:
        return seconds(values[first])
    size, time = (times(row[last] / row[first]).replace("times", "×") for row in (sizes, values))
    return f"{size} the size, {time} the time"


def _draw(axes: Axes, lines: Sequence[tuple[Sequence[float], Sequence[float], Any]], margins: Sequence[float]) -> None:
    """Draw lines of (sizes, seconds, look), both axes logarithmic with ticks in words."""
    for sizes, values, look in lines:
        axes.loglog(sizes, values, **look)
    axes.margins(*margins)
    axes.grid(True)
    axes.set_ylabel("time")
    size_ticks(axes, sorted({float(size) for sizes, _, _ in lines for size in sizes}))
    word_ticks(axes, "y", seconds)


def _look(i: int, how: str) -> dict[str, Any]:
    look = {"color": COLOURS[i % 8], "marker": MARKERS[i % 8], "linestyle": STYLES[_kind(how)]}
    return look if how.startswith("measured") else {**look, "markerfacecolor": PAPER}


def _kind(how: str) -> str:
    return next((kind for kind in STYLES if how.startswith(kind)), "")
