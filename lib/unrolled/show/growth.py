"""How measured time grows with size, and how a speedup is capped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from unrolled.show.charts import chart, spread, word_ticks
from unrolled.show.picture import Picture
from unrolled.show.style import COLOURS, INK, MARKERS, SMALL, styled
from unrolled.show.words import number, seconds

LABELS = 2.35  # inches beside the chart


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
    figure, axes = chart(3.4, 0.8, LABELS)
    ends = []
    for i, values in enumerate(times.values()):
        axes.loglog(n, values, marker=MARKERS[i % 8], color=COLOURS[i % 8])
        ends.append(float(values[-1]))
    axes.margins(0.04, 0.08)
    axes.grid(True)
    axes.set(xlabel=f"size ({what})", ylabel="time")
    if len(n) <= 8:
        axes.set_xticks(n, [number(size) for size in n])
        axes.minorticks_off()
    else:
        word_ticks(axes, "x", number)
    word_ticks(axes, "y", seconds)
    low, high = np.log(axes.get_ylim())
    places = spread([(np.log(end) - low) / (high - low) for end in ends], 0.19)
    for i, (name, values) in enumerate(times.items()):
        factor = 2 ** slope(sizes, values)
        text = f"{name}\n{_doubling(factor)}"
        options = {"xycoords": "axes fraction", "va": "center", "color": INK, "size": SMALL}
        axes.plot(1.04, places[i], marker=MARKERS[i % 8], color=COLOURS[i % 8], transform=axes.transAxes, clip_on=False)
        axes.annotate(text, (1.075, places[i]), **options)  # type: ignore[arg-type]
    return Picture(figure, _growth_alt(n, times, what))


def slope(sizes: Sequence[int], times: Sequence[float]) -> float:
    """Return the exponent p of the best fit time = c · size^p (least squares on logarithms)."""
    return float(np.polyfit(np.log(np.asarray(sizes, dtype=np.float64)), np.log(np.asarray(times)), 1)[0])


def _doubling(factor: float) -> str:
    return f"twice the size: {number(round(factor, 1))} × the time"


def _growth_alt(n: NDArray[np.float64], times: Mapping[str, Sequence[float]], what: str) -> str:
    lines = [
        f"{name}: from {seconds(values[0])} to {seconds(values[-1])}; {_doubling(2 ** slope(list(n), values))}"
        f" (slope {slope(list(n), values):.2f})"
        for name, values in times.items()
    ]
    return f"Time against size, from {number(n[0])} to {number(n[-1])} {what}, log axes. {'. '.join(lines)}."
