"""Losses over the steps of training, one curve a way of training; where one stops being a number, a cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from unrolled.show.cells import on_host
from unrolled.show.charts import beside, chart, heights, word_ticks
from unrolled.show.picture import Picture
from unrolled.show.style import COLOURS, INK, styled
from unrolled.show.words import number, rounded

LINES = ("-", "--", "-.", ":")
APART = 0.18  # of the height, between names at the right
SMOOTH = 10  # steps whose mean is drawn bold; a single batch may be easy or hard by chance
FAINT = 0.25
ROOM = 3.0  # times: how far single steps may reach below and above the bold lines


@dataclass(frozen=True)
class Curve:
    """One way of training: the losses until the first that is not finite, and how many steps there were."""

    name: str
    losses: NDArray[np.float64]
    steps: int
    colour: str
    line: str

    @property
    def smooth(self) -> NDArray[np.float64]:
        """The mean of the last ten losses at each step, its own included."""
        sums, last = np.cumsum([0.0, *self.losses]), np.arange(1, len(self.losses) + 1)
        first = np.maximum(last - SMOOTH, 0)
        return np.asarray((sums[last] - sums[first]) / (last - first))

    @property
    def fate(self) -> str:
        """How the curve ends, in words."""
        if len(self.losses) < self.steps:
            return f"no number from step {len(self.losses)} on"
        return f"ends at {rounded(self.smooth[-1], 2)}"


@styled()
def losses(curves: Mapping[str, Sequence[float]], title: str = "", log: bool = True) -> Picture:
    """Draw loss against step, a curve for each name, named at its end; an infinite or NaN loss ends it with a cross.

    curves: name -> losses, one for each step, the first being step 0. The bold line is the mean of the last ten steps.
    ValueError where there is no curve, or one does not start with a number.
    """
    drawn = [_curve(name, values, i) for i, (name, values) in enumerate(curves.items())]
    if not drawn:
        raise ValueError("curves is empty; expected at least one curve")
    figure, axes = chart(2.9, 0.7, 2.35)
    axes.set(xlabel="step", ylabel="loss", yscale="log" if log else "linear", title=title)
    for curve in drawn:
        axes.plot(curve.losses, color=curve.colour, alpha=FAINT, linewidth=0.9)
        axes.plot(curve.smooth, curve.line, color=curve.colour)
        if len(curve.losses) < curve.steps:
            at = len(curve.losses) - 1
            axes.plot(at, curve.smooth[-1], "X", color=curve.colour, markersize=10, markeredgecolor=INK, zorder=5)
    axes.margins(0.02, 0.08)
    if log:
        _keep_to_the_bold(axes, drawn)
        word_ticks(axes, "y", number)
    axes.grid(True)
    for curve, y in zip(drawn, heights(axes, (curve.smooth[-1] for curve in drawn), APART), strict=True):
        beside(axes, [1.01, 1.07], 1.09, y, f"{curve.name}\n{curve.fate}", curve.line, color=curve.colour)
    said = "; ".join(f"{curve.name}: from {rounded(curve.losses[0], 2)}, {curve.fate}" for curve in drawn)
    return Picture(figure, f"{title + ': ' if title else ''}loss over the steps of training. {said}.")


def _curve(name: str, values: Sequence[float], index: int) -> Curve:
    losses = on_host(values, np.float64)
    finite = np.isfinite(losses)
    if not losses.size or not finite[0]:
        raise ValueError(f"curve {name!r} does not start with a number")
    count = len(losses) if finite.all() else int(finite.argmin())
    return Curve(name, losses[:count], len(losses), COLOURS[index % len(COLOURS)], LINES[index % len(LINES)])


def _keep_to_the_bold(axes: Axes, drawn: Sequence[Curve]) -> None:
    """Single steps, thin lines, must not press the bold ones together."""
    bold = np.concatenate([curve.smooth for curve in drawn])
    bold = bold[bold > 0]
    if bold.size:
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, bold.min() / ROOM), min(high, bold.max() * ROOM))
