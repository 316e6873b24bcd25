"""A ladder of times split by cause: what made each rung shorter than the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes

from unrolled.show.charts import chart
from unrolled.show.ladder import details, time_axis
from unrolled.show.picture import Picture
from unrolled.show.style import COLOURS, GREY, INK, SMALL, styled
from unrolled.show.words import listing, seconds, times

CAUSES = ("code", "batch", "precision", "hardware", "several")
"""What one rung can differ in from the rung before it; the last where several differ at once, and nobody can say."""
COLOUR = dict(zip(CAUSES, (*COLOURS[:4], GREY), strict=True))
ROW, LEFT, RIGHT, HEAD, FOOT = 0.46, 2.75, 1.7, 0.45, 0.85  # inches
OFFSET: dict[str, Any] = {"textcoords": "offset points", "va": "center"}


@styled()
def causes(rungs: Sequence[Mapping[str, Any]], title: str = "") -> Picture:
    """Draw seconds on a log scale, a row a rung, in the order given; a bar goes from the rung before to this one.

    A rung has "label" and "seconds" (above 0), from the second on "cause", one of CAUSES, and where known "batch",
    "hardware", "precision", "code", "accuracy". The bar has the cause's colour. Raises ValueError for fewer than two
    rungs, seconds not above 0, and an unknown cause.
    """
    _check(rungs)
    figure, axes = chart(ROW * len(rungs) + HEAD + FOOT, LEFT, RIGHT, top=HEAD, bottom=FOOT)
    time_axis(axes, [float(rung["seconds"]) for rung in rungs], 2)
    axes.set(ylim=(len(rungs) - 0.5, -0.5), yticks=[], xlabel="seconds, log scale; left is faster")
    if title:
        axes.set_title(title, loc="left", size=SMALL + 1)
    for y, rung in enumerate(rungs):
        _row(axes, y, rung, rungs[y - 1] if y else None)
    used = [cause for cause in CAUSES if any(rung.get("cause") == cause for rung in rungs[1:])]
    for cause in used:
        axes.plot([], [], color=COLOUR[cause], linewidth=6, label=cause)
    figure.legend(loc="lower left", ncols=len(used), frameon=False, fontsize=SMALL)
    return Picture(figure, _alt(rungs, title))


def factors(rungs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return how many times faster all rungs of each cause together made it."""
    found: dict[str, float] = {}
    for before, rung in pairwise(rungs):
        gain = float(before["seconds"]) / float(rung["seconds"])
        found[str(rung["cause"])] = found.get(str(rung["cause"]), 1.0) * gain
    return found


def _check(rungs: Sequence[Mapping[str, Any]]) -> None:
    if len(rungs) < 2:
        raise ValueError(f"rungs has {len(rungs)}; expected at least two, since a cause lies between two")
    for rung in rungs:
        if not rung["seconds"] > 0:
            raise ValueError(f"seconds of rung {rung['label']!r} must be above 0, got {rung['seconds']}")
    for rung in rungs[1:]:
        if rung.get("cause") not in CAUSES:
            raise ValueError(f"cause of rung {rung['label']!r} is {rung.get('cause')!r}; expected {', '.join(CAUSES)}")


def _row(axes: Axes, y: int, rung: Mapping[str, Any], before: Mapping[str, Any] | None) -> None:
    value, known = float(rung["seconds"]), details(rung)
    small = "; ".join(filter(None, [f"by {rung['cause']}" if before else "", known]))
    beside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "annotation_clip": False, **OFFSET}
    axes.annotate(str(rung["label"]), (0, y), (-(LEFT - 0.1) * 72, 6 if small else 0), color=INK, **beside)
    if small:
        axes.annotate(small, (0, y), (-(LEFT - 0.1) * 72, -6), size=SMALL - 1, color=GREY, **beside)
    said = seconds(value)
    if before is not None:
        colour = COLOUR[str(rung["cause"])]
        axes.hlines(y, value, float(before["seconds"]), color=colour, linewidth=7)
        said += f"   {_gain(before, rung)}"
    axes.plot(value, y, "o", markersize=7, color=INK)
    axes.annotate(said, (1, y), (6, 0), weight="bold", size=SMALL, **beside)


def _gain(before: Mapping[str, Any], rung: Mapping[str, Any]) -> str:
    return f"{times(float(before['seconds']) / float(rung['seconds']))}"


def _alt(rungs: Sequence[Mapping[str, Any]], title: str) -> str:
    rows = [f"{rungs[0]['label']} {seconds(float(rungs[0]['seconds']))}"]
    for before, rung in pairwise(rungs):
        rows.append(f"{rung['label']} {seconds(float(rung['seconds']))}, {_gain(before, rung)} by {rung['cause']}")
    whole = listing([f"{cause} {times(gain)}" for cause, gain in factors(rungs).items()])
    return f"{title or 'A ladder split by cause'}. {'; '.join(rows)}. In all: {whole}."
