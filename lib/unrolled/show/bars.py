"""Labelled bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from matplotlib.ticker import MaxNLocator

from unrolled.show.charts import chart, word_ticks
from unrolled.show.picture import Picture
from unrolled.show.style import BLUE, INK, SMALL, styled
from unrolled.show.words import amount, rounded, seconds

LETTER = 0.085  # inches that a letter of a label takes


@styled()
def bars(values: Mapping[str, float], unit: str, log: bool = False, title: str = "") -> Picture:
    """Draw a horizontal bar for each name, its value in words beside it.

    unit: the unit of the values; "s" is written as a duration; "B" and units with a slash get prefixes (MB, Gflop/s).
    log: draw dots on a log scale instead of bars (a bar needs a zero, which a log scale has not).
    ValueError for no values, negative ones, or a zero on a log scale.
    """
    if not values or min(values.values()) < 0 or (log and min(values.values()) == 0):
        raise ValueError(f"values must be numbers {'above' if log else 'from'} 0, got {dict(values)}")
    words = in_unit(unit)
    names, numbers = list(values), list(values.values())
    left = min(3.2, 0.3 + LETTER * max(len(name) for name in names))
    height = 0.36 * len(names) + 0.6 + (0.35 if title else 0.1)
    figure, axes = chart(height, left, 1.0, top=0.35 if title else 0.1)
    rows = range(len(names))
    if log:
        axes.set(xscale="log", xlim=(min(numbers) / 3, max(numbers) * 1.5))
        axes.hlines(rows, min(numbers) / 3, numbers, color=BLUE, linewidth=1.2)
        axes.plot(numbers, rows, "o", color=BLUE, markersize=8)
        word_ticks(axes, "x", words)
    else:
        axes.barh(rows, numbers, color=BLUE, edgecolor=INK, linewidth=0.5, height=0.62)
        axes.set_xlim(0, max(numbers) * 1.02 or 1)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        word_ticks(axes, "x", words, log=False)
    for row, value in zip(rows, numbers, strict=True):
        axes.annotate(words(value), (value, row), (8, 0), textcoords="offset points", va="center", size=SMALL)
    axes.set_yticks(rows, names, size=10)
    axes.tick_params(axis="y", length=0)
    axes.set(ylim=(len(names) - 0.45, -0.55), title=title)
    axes.grid(True, axis="x")
    said = "; ".join(f"{name}: {words(value)}" for name, value in values.items())
    return Picture(figure, f"{title + '. ' if title else ''}{said}.")


def in_unit(unit: str) -> Callable[[float], str]:
    """Return the function that writes a value in this unit."""
    if unit == "s":
        return seconds
    if unit == "B" or "/" in unit:
        return lambda value: amount(value, unit)
    return lambda value: f"{rounded(value)} {unit}"
