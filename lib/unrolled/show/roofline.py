"""The roofline: what a machine's memory and its arithmetic allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from unrolled.show.charts import beside, chart, heights, word_ticks
from unrolled.show.picture import Picture
from unrolled.show.style import COLOURS, INK, MARKERS, ORANGE, SKY, SMALL, styled, tint
from unrolled.show.words import amount, number, percent, rounded

MOST_KERNELS = 6
OFFSET: dict[str, Any] = {"textcoords": "offset points", "size": SMALL}
Points = Mapping[str, tuple[float, float]]
Kernels = Mapping[str, tuple[float, float, float]]


@styled()
def roofline(
    peak_flops: float,
    bandwidth: float,
    points: Points | None = None,
    *,
    kernels: Kernels | Any = None,
    where: str = "",
    modelled: Mapping[str, float] | None = None,
) -> Picture:
    """Draw the roof min(peak, intensity · bandwidth) and what was measured under it.

    peak_flops: flop/s; bandwidth: bytes/s; points: name -> (flops a byte, flop/s). kernels, besides or instead: name ->
    (flops, bytes, seconds), or a trace of the simulated GPU. Of either, the six that take longest are shown; those that
    compute nothing stand below the chart. where: whose roof it is and what gave the times, as in "modelled, T4".
    modelled: name -> seconds that a model gives the kernels that were measured, drawn hollow above or below them.
    Source: Williams, Waterman, Patterson: Roofline, 2009. ValueError for values not above 0 (kernels may have 0 flops).
    """
    given = {} if kernels is None else dict(kernels) if isinstance(kernels, Mapping) else kernels_of(kernels)
    for name, (flops, moved, took) in given.items():
        if flops < 0 or min(moved, took) <= 0:
            raise ValueError(
                f"kernel {name!r} has {flops} flops, {moved} bytes, {took} s; expected bytes and s above 0"
            )
    longest = {name: given[name] for name in sorted(given, key=lambda name: -given[name][2])[:MOST_KERNELS]}
    computing = {name: (flops / moved, flops / took) for name, (flops, moved, took) in longest.items() if flops}
    points = {**(points or {}), **computing}
    if min(peak_flops, bandwidth, *(min(point) for point in points.values())) <= 0:
        raise ValueError("peak_flops, bandwidth and both coordinates of every point must be above 0")
    copies = [
        f"{name} computes nothing: {amount(moved / took, 'B/s')}, {percent(moved / took / bandwidth)} of the bandwidth"
        for name, (flops, moved, took) in longest.items()
        if not flops
    ]
    ridge = peak_flops / bandwidth
    intensities = [ridge, *(intensity for intensity, _ in points.values())]
    x = np.geomspace(min(intensities) / 6, max(*intensities, ridge * 3) * 3, 100)
    model = {name: (points[name][0], longest[name][0] / s) for name, s in (modelled or {}).items() if name in points}
    figure, axes = chart(3.6 + 0.2 * len(copies), 0.95, 2.35, bottom=0.55 + 0.2 * len(copies))
    axes.loglog(x, np.minimum(peak_flops, x * bandwidth), color=INK)
    low = min([bandwidth * x[0], *(speed for _, speed in (*points.values(), *model.values()))]) / 2
    axes.set(xlim=(x[0], x[-1]), ylim=(low, peak_flops * 5))
    _regions(axes, x, ridge, peak_flops, bandwidth)
    for i, (name, (intensity, speed)) in enumerate(points.items()):
        if name in model:
            axes.plot(*model[name], MARKERS[i % 8], color="none", markersize=9, markeredgecolor=COLOURS[i % 8])
        axes.plot(intensity, speed, MARKERS[i % 8], color=COLOURS[i % 8], markersize=9, markeredgecolor=INK)
    axes.set(xlabel="arithmetic intensity (flops a byte moved)", ylabel="speed (flop/s)")
    word_ticks(axes, "x", number)
    word_ticks(axes, "y", lambda value: amount(value, ""))
    axes.grid(True)
    axes.set_title(f"Roofline ({where})" if where else "")
    places = heights(axes, (speed for _, speed in points.values()), 0.16)
    for i, ((name, (intensity, speed)), place) in enumerate(zip(points.items(), places, strict=True)):
        share, limit = bound(intensity, speed, peak_flops, bandwidth)
        words = f"{name}\n{percent(share)} of the roof ({limit})"
        if name in model:
            modelled_share = percent(bound(*model[name], peak_flops, bandwidth)[0])
            words = f"{name}: {percent(share)}\nof the roof; model: {modelled_share}"
        look: dict[str, Any] = {"color": COLOURS[i % 8], "markeredgecolor": INK, "markersize": 9}
        beside(axes, [1.05], 1.09, place, words, MARKERS[i % 8], **look)
    for i, words in enumerate(copies):
        figure.text(0.015, (0.08 + 0.2 * i) / (3.6 + 0.2 * len(copies)), words, size=SMALL)
    return Picture(figure, _alt(peak_flops, bandwidth, points, model, copies, where))


def kernels_of(trace: Any) -> dict[str, tuple[float, float, float]]:
    """Return the operations of a trace, the longest first: name -> (flops, bytes, seconds), summed over launches."""
    return {name: (sums.flops, sums.bytes, sums.seconds) for name, sums in trace.by_op().items()}


def _regions(axes: Axes, x: NDArray[np.float64], ridge: float, peak: float, bandwidth: float) -> None:
    """Shade where memory is the limit and where arithmetic is, and name both parts of the roof."""
    low, high = axes.get_ylim()
    below = np.array([x[0], ridge])
    axes.fill_between(below, low, below * bandwidth, color=tint(SKY, 0.35), linewidth=0)
    axes.fill_between([ridge, x[-1]], low, peak, color=tint(ORANGE, 0.3), linewidth=0)
    axes.annotate(f"arithmetic: {amount(peak, 'flop/s')}", (x[-1], peak), (-4, 6), ha="right", **OFFSET)
    half = float(np.sqrt(x[0] * ridge))
    axes.annotate(f"memory: {amount(bandwidth, 'B/s')}", (half, half * bandwidth), (-8, 6), ha="right", **OFFSET)
    for place, words in ((half, "memory is the limit"), (np.sqrt(ridge * x[-1]), "arithmetic is")):
        axes.text(place, low * (high / low) ** 0.03, words, ha="center", size=SMALL, style="italic")


def bound(intensity: float, speed: float, peak_flops: float, bandwidth: float) -> tuple[float, str]:
    """Return the share of the roof that a point reaches, and what limits it there: "memory" or "arithmetic"."""
    limit = "memory" if intensity * bandwidth < peak_flops else "arithmetic"
    return speed / min(peak_flops, intensity * bandwidth), limit


def _alt(peak: float, bandwidth: float, points: Points, model: Points, copies: Sequence[str], where: str) -> str:
    texts = [
        f"Roofline{f' ({where})' if where else ''}: memory allows {amount(bandwidth, 'B/s')}, arithmetic "
        f"{amount(peak, 'flop/s')}; below {rounded(peak / bandwidth)} flops a byte memory is the limit"
    ]
    for name, (intensity, speed) in points.items():
        share, limit = bound(intensity, speed, peak, bandwidth)
        place = f"{amount(speed, 'flop/s')} at {rounded(intensity)} flops a byte"
        hollow = f" (modelled: {amount(model[name][1], 'flop/s')})" if name in model else ""
        texts.append(f"{name}: {place}, {percent(share)} of what {limit} allows{hollow}")
    return ". ".join([*texts, *copies]) + "."
