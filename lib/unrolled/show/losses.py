"""Losses over the steps of training, one curve a way of training; where one stops being a number, a cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unrolled.show.charts import chart, spread, word_ticks
from unrolled.show.picture import Picture
from unrolled.show.style import COLOURS, INK, SMALL, styled
from unrolled.show.words import number

HEIGHT, LEFT, RIGHT = 2.9, 0.7, 2.35  # inches
LINES = ("-", "--", "-.", ":")
APART = 0.09  # of the height, between names at the right


@styled()
def losses(curves: Mapping[str, Sequence[float]], title: str = "", log: bool = True) -> Picture:
    """Loss against step, a curve each, named at its end; infinite and NaN losses end a curve with a cross.

    curves: name -> losses, one a step, the first being step 0. ValueError where there is no curve, or one starts with
    no number.
    """
    lengths = {name: _numbers(curve) for name, curve in curves.items()}
    if not lengths or not all(lengths.values()):
        raise ValueError(f"curves holds {list(curves)}; expected at least one curve, each starting with a number")
    figure, axes = chart(HEIGHT, LEFT, RIGHT)
    axes.set(xlabel="step", ylabel="loss", yscale="log" if log else "linear")
    ends = []
    for i, (name, curve) in enumerate(curves.items()):
        count, colour = lengths[name], COLOURS[i % len(COLOURS)]
        axes.plot(curve[:count], LINES[i % len(LINES)], color=colour)
        if count < len(curve):
            axes.plot(count - 1, curve[count - 1], "X", color=colour, markersize=10, markeredgecolor=INK)
        ends.append((name, float(curve[count - 1]), count, len(curve), colour))
    axes.margins(0.02, 0.08)
    axes.grid(True)
    if log:
        word_ticks(axes, "y", number)
    axes.set_title(title)
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = [float(to_axes.transform((0, end))[1]) for _, end, *_ in ends]
    for (name, end, count, length, colour), y in zip(ends, spread(heights, APART * 2), strict=True):
        text = f"{name}\n{_fate(end, count, length)}"
        axes.text(1.02, y, text, transform=axes.transAxes, va="center", color=colour, size=SMALL, weight="bold")
    said = "; ".join(
        f"{name}: from {_short(curves[name][0])}, {_fate(end, count, length)}" for name, end, count, length, _ in ends
    )
    return Picture(figure, f"{title + ': ' if title else ''}loss over the steps of training. {said}.")


def _numbers(curve: Sequence[float]) -> int:
    """How many values there are before the first that is not finite."""
    finite = np.isfinite(np.asarray(curve, np.float64))
    return len(curve) if finite.all() else int(finite.argmin())


def _fate(end: float, count: int, length: int) -> str:
    return f"ends at {_short(end)}" if count == length else f"no number from step {count} on"


def _short(value: float) -> str:
    return number(float(f"{value:.2g}"))
