"""How time grows with the size of a network, on one machine and another; and where each line comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unrolled.show.charts import beside, chart, heights, size_ticks, word_ticks
from unrolled.show.picture import Picture
from unrolled.show.style import COLOURS, MARKERS, PAPER, SMALL, styled
from unrolled.show.words import number, seconds, times

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
    for name, (sizes, values, how) in lines.items():
        if not len(sizes) or len(sizes) != len(values) or min(*sizes, *values) <= 0:
            got = f"{list(sizes)}, {list(values)}"
            raise ValueError(f"{name!r} must have as many sizes as seconds, all above 0; got {got}")
        if not _kind(how):
            raise ValueError(f"{name!r} must say how its times came about: {', '.join(STYLES)} ...; got {how!r}")
    if not lines:
        raise ValueError("lines is empty; expected name -> (sizes, seconds, how)")
    figure, axes = chart(3.6, 0.8, 2.8)
    for i, (sizes, values, how) in enumerate(lines.values()):
        axes.loglog(sizes, values, **_look(i, how))
    axes.margins(0.05, 0.1)
    axes.grid(True)
    axes.set(xlabel=what, ylabel="time", title=title)
    everything = sorted({float(size) for sizes, _, _ in lines.values() for size in sizes})
    size_ticks(axes, everything)
    word_ticks(axes, "y", seconds)
    places = heights(axes, (values[-1] for _, values, _ in lines.values()), 0.24)
    for i, ((name, (sizes, values, how)), place) in enumerate(zip(lines.items(), places, strict=True)):
        text = f"{name}\n{how}\n{growth_in_words(sizes, values)}"
        beside(axes, [1.03, 1.11], 1.14, place, text, size=SMALL - 0.5, **_look(i, how))
    return Picture(figure, _alt(lines, what, title))


def growth_in_words(sizes: Sequence[float], values: Sequence[float]) -> str:
    """Return what the largest size costs against the smallest: "16 × the size, 2.1 × the time"; of one, its time."""
    first, last = (extreme(range(len(sizes)), key=sizes.__getitem__) for extreme in (min, max))
    if first == last:
        return seconds(values[first])
    size, time = (times(row[last] / row[first]).replace("times", "×") for row in (sizes, values))
    return f"{size} the size, {time} the time"


def _look(i: int, how: str) -> dict[str, Any]:
    look = {"color": COLOURS[i % 8], "marker": MARKERS[i % 8], "linestyle": STYLES[_kind(how)]}
    return look if how.startswith("measured") else {**look, "markerfacecolor": PAPER}


def _kind(how: str) -> str:
    return next((kind for kind in STYLES if how.startswith(kind)), "")


def _alt(lines: Mapping[str, Line], what: str, title: str) -> str:
    texts = [
        f"{name} ({how}): "
        + ", ".join(f"{seconds(value)} at {number(size)}" for size, value in zip(sizes, values, strict=True))
        + f"; {growth_in_words(sizes, values)}"
        for name, (sizes, values, how) in lines.items()
    ]
    return f"{title + '. ' if title else ''}Time against {what}, log axes. {'. '.join(texts)}."
