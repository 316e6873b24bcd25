"""Charts: axes with room for words, ticks that read as words, labels beside the axes; bars, and a verdict's pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from unrolled.show.picture import Picture
from unrolled.show.style import BLUE, INK, SMALL, WIDTH, new_figure, styled
from unrolled.show.words import amount, count_of, number, rounded, seconds, titled
from unrolled.timing import Verdict

LETTER = 0.085  # inches that a letter of a label takes


def chart(height: float, left: float, right: float, top: float = 0.35, bottom: float = 0.55) -> tuple[Figure, Axes]:
    """Return a figure as wide as the page, and its one axes; the height and the margins are in inches."""
    figure = new_figure(height)
    box = (left / WIDTH, bottom / height, (WIDTH - left - right) / WIDTH, (height - bottom - top) / height)
    return figure, figure.add_axes(box)


def word_ticks(axes: Axes, which: str, words: Callable[[float], str], log: bool = True) -> None:
    """Label the ticks of the "x" or "y" axis with `words(value)`.

    On a log scale they stand at powers of ten, not at each where there would be more than nine, and also at 2 and 5
    times those where the axis spans less than a factor of 50.
    """
    axis = axes.xaxis if which == "x" else axes.yaxis
    if log:
        low, high = sorted(axes.get_xlim() if which == "x" else axes.get_ylim())
        decades = np.log10(high / low)
        axis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0) if decades < 1.7 else (1.0,), numticks=9))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _position: words(value)))


def beside(
    axes: Axes, marks: Sequence[float], left: float, y: float, words: str, *line: str, size: float = SMALL, **look: Any
) -> None:
    """Draw a marker or line at x `marks` and write words from x `left` on, all at height y, in shares of the axes."""
    axes.plot(marks, [y] * len(marks), *line, transform=axes.transAxes, clip_on=False, **look)
    axes.annotate(words, (left, y), xycoords="axes fraction", va="center", size=size)


def heights(axes: Axes, values: Iterable[float], gap: float) -> list[float]:
    """Return where labels of these values of the y axis stand, in shares of its height, `gap` or more apart."""
    axes.get_ylim()  # brings the limits up to date with what is drawn: transforms alone do not
    to_axes = axes.transData + axes.transAxes.inverted()
    return spread([float(to_axes.transform((1, value))[1]) for value in values], gap)


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """Return the positions, in the order given, moved until neighbours are `gap` or more apart (up to 100 rounds)."""
    order = np.argsort(positions, kind="stable")
    placed = np.asarray(positions, dtype=np.float64)[order]
    for _ in range(100):
        short = np.maximum(gap - np.diff(placed), 0) / 2
        if not (short > 1e-9).any():
            break
        placed[:-1] -= short
        placed[1:] += short
    return [float(value) for value in placed[np.argsort(order)]]


@styled()
def bars(values: Mapping[str, float], unit: str, log: bool = False, title: str = "") -> Picture:
    """Draw a horizontal bar for each name, its value in words beside it.

    unit: the unit of the values; "s" is written as a duration; "B" and units with a slash get prefixes (MB, Gflop/s).
    log: draw dots on a log scale instead of bars (a bar needs a zero, which a log scale has not).
    ValueError for no values, negative ones, or a zero on a log scale.
    """
    if not values or min(values.values()) < 0 or (log and min(values.values()) == 0):
        raise ValueError(f"values must be numbers {'above' if log else 'from'} 0, got {dict(values)}")

    def words(value: float) -> str:
        prefixed = unit == "B" or "/" in unit
        return seconds(value) if unit == "s" else amount(value, unit) if prefixed else f"{rounded(value)} {unit}"

    names, numbers = list(values), list(values.values())
    left = min(3.2, 0.3 + LETTER * max(len(name) for name in names))
    top = 0.35 if title else 0.1
    figure, axes = chart(0.36 * len(names) + 0.6 + top, left, 1.0, top=top)
    rows = range(len(names))
    if log:
        axes.set(xscale="log", xlim=(min(numbers) / 3, max(numbers) * 1.5))
        axes.hlines(rows, min(numbers) / 3, numbers, color=BLUE, linewidth=1.2)
        axes.plot(numbers, rows, "o", color=BLUE, markersize=8)
    else:
        axes.barh(rows, numbers, color=BLUE, edgecolor=INK, linewidth=0.5, height=0.62)
        axes.set_xlim(0, max(numbers) * 1.02 or 1)
        axes.xaxis.set_major_locator(MaxNLocator(4))
    word_ticks(axes, "x", words, log=log)
    for row, value in zip(rows, numbers, strict=True):
        axes.annotate(words(value), (value, row), (8, 0), textcoords="offset points", va="center", size=SMALL)
    axes.set_yticks(rows, names, size=10)
    axes.tick_params(axis="y", length=0)
    axes.set(ylim=(len(names) - 0.45, -0.55), title=title)
    axes.grid(True, axis="x")
    summary = "; ".join(f"{name}: {words(value)}" for name, value in values.items())
    return Picture(figure, titled(title, f"{summary}."))


@styled()
def pairs(verdict: Verdict) -> Picture:
    """Draw every measured pair of a verdict, the interval of the median, and what was asked."""
    figure = new_figure(3.0, layout="constrained")
    axes = figure.subplots()
    verdict.draw(axes)
    if axes.get_yscale() == "log":
        word_ticks(axes, "y", number)
    return Picture(figure, f"{count_of(len(verdict.pairs), 'measured pair')}: {verdict}")
