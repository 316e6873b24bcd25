"""Optimizers as paths on one surface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from unrolled.show.picture import Explorer, Picture, Slider
from unrolled.show.style import COLOURS, GREY, INK, PALE, RED, SMALL, WIDTH, new_figure
from unrolled.show.words import rounded

HEIGHT, TOP, BOTTOM = 3.4, 0.4, 0.55  # inches
MAP, CURVE = (0.65, 3.6), (5.0, 2.35)  # left and width
FINE = 81  # points of the surface along each axis
LEVELS = 14
FLOOR = 1e-4  # the curve shows no loss below
FAR = 3  # times the size of the map: from there on, a path that runs away is not drawn

Path = NDArray[np.float64]
Points = Mapping[str, Mapping[float, Path]]
Surface = Callable[[Any, Any], Any]
Box = tuple[float, float, float, float]


def optimizer_paths(surface: Surface, paths: Mapping[str, Mapping[float, ArrayLike]], box: Box) -> Explorer:
    """Draw the path of an optimizer down a surface; sliders choose the optimizer and its learning rate.

    surface: `surface(x, y)` is the loss, for arrays. paths: optimizer -> learning rate -> points (steps + 1, 2), the
    start first; every optimizer with the same rates. box: the part of the plane that is drawn, (x from, to, y from,
    to). ValueError for no paths, other shapes or rates that differ.
    """
    names = list(paths)
    rates = list(paths[names[0]]) if names else []
    points = {name: {rate: np.asarray(path, dtype=np.float64) for rate, path in paths[name].items()} for name in names}
    for name in names:
        if list(points[name]) != rates or any(path.ndim != 2 or path.shape[1] != 2 for path in points[name].values()):
            raise ValueError(f"paths of {name} must be (steps + 1, 2) for the learning rates {rates}")
    if not rates:
        raise ValueError("paths is empty: nothing to draw")
    rate_slider = Slider("learning rate", rates, len(rates) // 2, lambda rate: f"{rate:g}")
    return Explorer(_draw, surface, points, box, optimizer=Slider("optimizer", names), rate=rate_slider)


def losses(surface: Surface, path: Path) -> Path:
    """Return the loss at each point of a path; infinity where it is not finite."""
    with np.errstate(all="ignore"):
        values = np.asarray(surface(path[:, 0], path[:, 1]), dtype=np.float64)
    return np.where(np.isfinite(values), values, np.inf)


def _draw(surface: Surface, points: Points, box: Box, optimizer: str, rate: float) -> Picture:
    figure, path = new_figure(HEIGHT), points[optimizer][rate]
    low, tall = BOTTOM / HEIGHT, (HEIGHT - TOP - BOTTOM) / HEIGHT
    axes, curve = (figure.add_axes((left / WIDTH, low, width / WIDTH, tall)) for left, width in (MAP, CURVE))
    colour = COLOURS[list(points).index(optimizer) % 8]
    _map(axes, surface, path, colour, box)
    axes.set_title(f"{optimizer}, learning rate {rate:g}: {len(path) - 1} steps")
    for name, paths in points.items():
        values = np.clip(losses(surface, paths[rate]), FLOOR, 1e9)
        look = {"color": colour, "linewidth": 2} if name == optimizer else {"color": GREY, "linewidth": 1, "alpha": 0.5}
        curve.semilogy(values, **look)
    curve.set(ylim=(FLOOR, float(surface(*path[0])) * 30), xlabel="step", title="loss (others in grey)")
    curve.grid(True)
    mine = losses(surface, path)
    alt = f"{optimizer} with learning rate {rate:g} on a surface of two weights: from loss {rounded(mine[0])} "
    alt += f"to {rounded(mine[-1])} in {len(path) - 1} steps"
    outside = ((path < box[::2]) | (path > box[1::2])).any(axis=1)
    if outside.any():
        alt += f"; it leaves the picture at step {int(outside.argmax())}"
    return Picture(figure, f"{alt}.")


def _map(axes: Axes, surface: Surface, path: Path, colour: str, box: Box) -> None:
    x, y = np.meshgrid(np.linspace(*box[:2], FINE), np.linspace(*box[2:], FINE))
    heights = np.asarray(surface(x, y), dtype=np.float64)
    levels = np.geomspace(max(float(heights.max()) / 3000, 1e-12), float(heights.max()), LEVELS)
    axes.contour(x, y, heights, levels=levels, colors=PALE, linewidths=1.0)
    lowest = np.unravel_index(heights.argmin(), heights.shape)
    axes.plot(x[lowest], y[lowest], "*", color=INK, markersize=11)
    far = np.abs(path - np.mean([box[:2], box[2:]], axis=1)) > FAR * np.ptp([box[:2], box[2:]], axis=1)
    away = np.flatnonzero(far.any(axis=1) | ~np.isfinite(path).all(axis=1))
    seen = path[: away[0]] if away.size else path
    axes.plot(seen[:, 0], seen[:, 1], marker="o", markersize=3.5, linewidth=1.2, color=colour)
    axes.plot(*seen[0], "o", markersize=9, color="white", markeredgecolor=colour, markeredgewidth=2)
    if away.size:
        axes.text(0.98, 0.03, "it runs away", transform=axes.transAxes, ha="right", color=RED, weight="bold")
    axes.annotate("start", seen[0], (9, 6), textcoords="offset points", size=SMALL)
    axes.set(xlim=box[:2], ylim=box[2:], xlabel="weight 1", ylabel="weight 2")
