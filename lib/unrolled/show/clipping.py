"""Where to clip before values become int8: what rounding costs, and what clipping costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from unrolled.show.charts import chart
from unrolled.show.picture import Explorer, Slider
from unrolled.show.sheet import on_host
from unrolled.show.style import BLUE, GREEN, INK, ORANGE, RED, SMALL
from unrolled.show.words import percent, rounded

LIMITS = 20  # stops of the slider, from a fifth of the largest magnitude on


@dataclass(frozen=True)
class Values:
    """Values that become whole numbers from -levels to levels."""

    values: NDArray[np.float64]
    levels: int

    @cached_property
    def limits(self) -> list[float]:
        """Where the slider can stand."""
        return [float(limit) for limit in np.abs(self.values).max() * np.linspace(0.05, 1, LIMITS)]

    def errors(self, limit: float) -> tuple[float, float]:
        """Return the mean squared errors of rounding, where nothing is clipped, and of clipping, over all values."""
        scale = limit / self.levels
        clipped = np.clip(self.values, -limit, limit)
        stored = np.rint(clipped / scale) * scale
        off, beyond = (self.values - stored) ** 2, np.abs(self.values) > limit
        return float(off[~beyond].sum() / off.size), float(off[beyond].sum() / off.size)

    @cached_property
    def best(self) -> float:
        """The limit with the smallest error of those that the slider has."""
        return min(self.limits, key=lambda limit: sum(self.errors(limit)))


def clipping(values: ArrayLike, bits: int = 8) -> Explorer:
    """Draw a histogram of values with a slider for the limit beyond which they are clipped, and the error by kind.

    values: at least two different finite numbers, any shape. bits: 2 to 8, of the whole numbers. ValueError for others.
    """
    found = on_host(values, np.float64).ravel()
    if not 2 <= bits <= 8:
        raise ValueError(f"bits must be 2 to 8, got {bits}")
    if not np.isfinite(found).all() or not np.unique(found).size > 1:
        raise ValueError(f"values must be finite and not all the same, got {found.size} of them")
    known = Values(found, 2 ** (bits - 1) - 1)
    return Explorer(_draw, _alt, known, limit=Slider("limit", known.limits, LIMITS - 1, rounded))


def _draw(known: Values, limit: float) -> Figure:
    figure, axes = chart(3.6, 0.9, 2.75, top=0.35)
    most = known.limits[-1]
    axes.hist(known.values, bins=80, range=(-most, most), color=BLUE, log=True)
    for side in (-limit, limit):
        axes.axvline(side, color=RED, linewidth=2)
    for side in (-known.best, known.best):
        axes.axvline(side, color=GREEN, linewidth=1.2, linestyle="--")
    axes.set(xlabel="value", ylabel="how many (log scale)", title=f"Clipped at ±{rounded(limit)}")
    inner = figure.add_axes((0.74, 0.24, 0.22, 0.56))
    rounding, clipped = known.errors(limit)
    found = [sum(known.errors(each)) for each in known.limits]
    low, high = min(found) / 300, max(found) * 2
    inner.set(yscale="log", ylim=(low, high), xlim=(-0.6, 1.6), title="mean squared error")
    for place, (error, colour, marker) in enumerate(((rounding, BLUE, "o"), (clipped, ORANGE, "s"))):
        inner.plot(place, max(error, low), marker, color=colour, markeredgecolor=INK, markersize=9, clip_on=False)
        inner.annotate(
            rounded(error), (place, max(error, low)), (0, 9), textcoords="offset points", ha="center", size=SMALL
        )
    inner.set_xticks([0, 1], ["rounding", "clipping"])
    figure.text(0.7, 0.05, f"dashed: the best limit, ±{rounded(known.best)}", size=SMALL, color=INK)
    return figure


def _alt(known: Values, limit: float) -> str:
    rounding, clipped = known.errors(limit)
    beyond = float((np.abs(known.values) > limit).mean())
    return (
        f"Histogram of {known.values.size:,} values from {rounded(float(known.values.min()))} to "
        f"{rounded(float(known.values.max()))}, clipped at {rounded(limit)}: {percent(beyond)} lie beyond. "
        f"Mean squared error {rounded(rounding)} by rounding and {rounded(clipped)} by clipping. "
        f"The best limit is {rounded(known.best)}."
    )
