"""What the charts share: axes with room for words, ticks that read as words, and labels beside the axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from unrolled.show.style import PALE, SMALL, WIDTH, new_figure
from unrolled.show.words import number


def chart(height: float, left: float, right: float, top: float = 0.35, bottom: float = 0.55) -> tuple[Figure, Axes]:
    """Return a figure as wide as the page, and its one axes; the height and the margins are in inches."""
    figure = new_figure(height)
    box = (left / WIDTH, bottom / height, (WIDTH - left - right) / WIDTH, (height - bottom - top) / height)
    return figure, figure.add_axes(box)


def word_ticks(axes: Axes, which: str, words: Callable[[float], str], log: bool = True) -> None:
    """Label the ticks of the "x" or "y" axis with `words(value)`.

    On a log scale they stand at powers of ten, not at each where there would be more than nine, and also at 2 and 5
    times those where the axis spans less than a factor of 20.
    """
    axis = axes.xaxis if which == "x" else axes.yaxis
    if log:
        low, high = sorted(axes.get_xlim() if which == "x" else axes.get_ylim())
        decades = np.log10(high / low)
        axis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0) if decades < 1.3 else (1.0,), numticks=9))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _position: words(value)))


def size_ticks(axes: Axes, sizes: Sequence[float]) -> None:
    """Label the x axis, a log scale, with the sizes themselves; with `word_ticks` where they are more than eight."""
    if len(sizes) > 8:
        word_ticks(axes, "x", number)
    else:
        axes.set_xticks(sizes, [number(size) for size in sizes])
        axes.minorticks_off()


def equals(axes: Axes, low: float, high: float, within: float, **look: Any) -> None:
    """Draw the line of equal values, both axes logarithmic from low to high, and a band a factor `within` around it."""
    ends = np.array([low, high])
    axes.fill_between(ends, ends / within, ends * within, color=PALE, linewidth=0)
    axes.loglog(ends, ends, **look)
    axes.set(xlim=(low, high), ylim=(low, high))


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
        steps = np.diff(placed)
        short = np.maximum(gap - steps, 0) / 2
        if not (short > 1e-9).any():
            break
        placed[:-1] -= short
        placed[1:] += short
    result = np.empty_like(placed)
    result[order] = placed
    return [float(value) for value in result]
