"""How measured time grows with size, and how a speedup is capped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unrolled.show.charts import beside, chart, heights, size_ticks, word_ticks
from unrolled.show.picture import Picture
from unrolled.show.style import COLOURS, MARKERS, styled
from unrolled.show.words import number, seconds


@styled()
def growth(sizes: Sequence[int], times: Mapping[str, Sequence[float]], what: str = "numbers") -> Picture:
    """Draw seconds over size on log axes, a line for each name, with its slope in words: what doubling the size costs.

    times: name -> seconds, one for each size; what: the unit of the sizes. ValueError for fewer than two sizes, counts
    that do not fit, or sizes or times not above 0.
    """
    n = np.asarray(sizes, dtype=np.float64)
    if len(n) < 2 or (n <= 0).any():
        raise ValueError(f"sizes must be at least two, all above 0, got {list(sizes)}")
    for name, values in times.items():
        if len(values) != len(n) or min(values) <= 0:
            raise ValueError(f"times of {name!r} must be {len(n)} seconds above 0, got {list(values)}")
    figure, axes = chart(3.4, 0.8, 2.35)
    looks: list[dict[str, Any]] = [{"marker": MARKERS[i % 8], "color": COLOURS[i % 8]} for i in range(len(times))]
    for values, look in zip(times.values(), looks, strict=True):
        axes.loglog(n, values, **look)
    axes.margins(0.04, 0.08)
    axes.grid(True)
    axes.set(xlabel=f"size ({what})", ylabel="time")
    size_ticks(axes, sizes)
    word_ticks(axes, "y", seconds)
    places = heights(axes, (values[-1] for values in times.values()), 0.19)
    for (name, values), place, look in zip(times.items(), places, looks, strict=True):
        beside(axes, [1.04], 1.075, place, f"{name}\n{_doubling(sizes, values)}", **look)
    return Picture(figure, _alt(sizes, times, what))


def slope(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Return the exponent p of the best fit time = c · size^p (least squares on logarithms)."""
    return float(np.polyfit(np.log(np.asarray(sizes, dtype=np.float64)), np.log(np.asarray(times)), 1)[0])


def _doubling(sizes: Sequence[float], times: Sequence[float]) -> str:
    return f"twice the size: {number(round(2 ** slope(sizes, times), 1))} × the time"


def _alt(sizes: Sequence[float], times: Mapping[str, Sequence[float]], what: str) -> str:
    lines = [
        f"{name}: from {seconds(values[0])} to {seconds(values[-1])}; {_doubling(sizes, values)} "
        f"(slope {slope(sizes, values):.2f})"
        for name, values in times.items()
    ]
    return f"Time against size, from {number(sizes[0])} to {number(sizes[-1])} {what}, log axes. {'. '.join(lines)}."
