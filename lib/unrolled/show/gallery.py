"""A gallery: several learners' ladders side by side, a panel for each kind of work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from unrolled.show.ladder import BESIDE, clip, grouped, time_axis
from unrolled.show.picture import Picture
from unrolled.show.style import BLUE, COLOURS, GREY, INK, MARKERS, WIDTH, new_figure, styled
from unrolled.show.words import count_of, seconds, times

ROW, HEADING, LEFT, RIGHT, TOP, BOTTOM = 0.36, 0.58, 1.75, 0.95, 0.1, 0.55  # inches
AXIS = 0.34
NAME = 20  # characters
JAPANESE = ("Noto Sans CJK JP", "Noto Sans JP", "Hiragino Sans", "Yu Gothic", "Meiryo", "IPAexGothic", "TakaoGothic")
KEY = 62  # characters of a line of a panel's key

Ladder = Mapping[str, Any]
Point = tuple[str, float]
Rows = Sequence[tuple[str, list[Point]]]


@styled()
def gallery(ladders: Sequence[Ladder]) -> Picture:
    """Draw ladders as rows of points on a log scale: a panel for each kind of work, the fastest on top.

    A ladder is a mapping with "name" and "rungs"; a rung has "label", "what" and "seconds" (above 0). A way of doing
    the work has the same marker in every row of its panel. ValueError if there is nothing to draw.
    """
    works = panels(ladders)
    if not works:
        raise ValueError("ladders holds no rungs: nothing to draw")
    keys = {what: _key(rows) for what, rows in works.items()}
    heights = [HEADING + 0.17 * (len(keys[what]) - 1) + ROW * len(rows) + AXIS for what, rows in works.items()]
    height = TOP + sum(heights) + BOTTOM - AXIS
    figure, top = new_figure(height), height - TOP
    for (what, rows), tall in zip(works.items(), heights, strict=True):
        plot = ROW * len(rows)
        head = tall - plot - AXIS
        box = (LEFT / WIDTH, (top - head - plot) / height, (WIDTH - LEFT - RIGHT) / WIDTH, plot / height)
        _panel(figure.add_axes(box), what, rows, keys[what], head)
        top -= tall
    figure.axes[-1].set_xlabel("log scale; left is faster", size=9, color=GREY)
    return Picture(figure, _alt(works))


def panels(ladders: Sequence[Ladder]) -> dict[str, list[tuple[str, list[Point]]]]:
    """Return by what was measured each learner's name and (label, seconds), slow to fast; the fastest learner first."""
    works: dict[str, list[tuple[str, list[Point]]]] = {}
    for one in ladders:
        for what, rungs in grouped(one["rungs"]).items():
            points = [(str(rung["label"]), float(rung["seconds"])) for rung in rungs]
            row = str(one["name"]), sorted(points, key=lambda point: -point[1])
            works.setdefault(what, []).append(row)
    for rows in works.values():
        rows.sort(key=lambda row: row[1][-1][1])
    return works


def _labels(rows: Rows) -> list[str]:
    """The ways in a panel, each once, the slowest first."""
    slowest: dict[str, float] = {}
    for _, points in rows:
        for label, value in points:
            slowest[label] = max(value, slowest.get(label, 0))
    return sorted(slowest, key=lambda label: -slowest[label])


def _key(rows: Rows) -> list[list[str]]:
    """The panel's labels, in lines that fit."""
    lines: list[list[str]] = [[]]
    for label in _labels(rows):
        if lines[-1] and sum(len(other) + 4 for other in lines[-1]) + len(label) > KEY:
            lines.append([])
        lines[-1].append(label)
    return lines


def _panel(axes: Axes, what: str, rows: Rows, key: Sequence[Sequence[str]], head: float) -> None:
    """A row a learner: a point for each way, a line between the slowest and the fastest, and how far they are apart."""
    time_axis(axes, [value for _, points in rows for _, value in points], 1.6)
    axes.set(ylim=(len(rows) - 0.5, -0.5))
    axes.set_yticks(range(len(rows)), [clip(name, NAME) for name, _ in rows], family=_families())
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    marks = {label: number % len(COLOURS) for number, label in enumerate(_labels(rows))}
    for y, (_, points) in enumerate(rows):
        axes.hlines(y, points[-1][1], points[0][1], color=GREY, linewidth=1.2, zorder=1)
        for label, value in points:
            mark = marks[label]
            axes.plot(value, y, MARKERS[mark], color=COLOURS[mark], markersize=7, markeredgecolor="white", zorder=2)
        said = times(points[0][1] / points[-1][1]) if len(points) > 1 else seconds(points[0][1])
        axes.annotate(said, (1, y), (8, 0), size=8.5, color=BLUE, **BESIDE)
    _heading(axes, what, key, marks, head)


def _heading(axes: Axes, what: str, key: Sequence[Sequence[str]], marks: Mapping[str, int], head: float) -> None:
    """What was measured, and below it the marker of each way."""
    up = head * 72 - 13
    left = -(LEFT - 0.1) * 72
    options: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "center"}
    axes.annotate(what, (0, 1), (left, up), weight="bold", **options)
    for number, line in enumerate(key):
        x, y = left + 4, up - 15 - 12 * number
        for label in line:
            mark = marks[label]
            place = x / 72 / (WIDTH - LEFT - RIGHT), 1 + y / 72 / (ROW * len(axes.get_yticks()))
            axes.plot(*place, MARKERS[mark], color=COLOURS[mark], markersize=6, transform=axes.transAxes, clip_on=False)
            axes.annotate(label, (0, 1), (x + 7, y), size=8.5, color=GREY, **options)
            x += 7 + 5.0 * len(label) + 14


def _families() -> list[str]:
    """The course's font, then one of this machine's for names in Japanese, if it has one."""
    from matplotlib import font_manager

    here = {font.name for font in font_manager.fontManager.ttflist}
    return ["DejaVu Sans", *[name for name in JAPANESE if name in here][:1]]


def _alt(works: Mapping[str, Rows]) -> str:
    text = "Several learners' ladders, seconds on a log scale."
    for what, rows in works.items():
        said = []
        for name, points in rows:
            (_, slow), (label, fast) = points[0], points[-1]
            more = f", {times(slow / fast)} from slowest to fastest" if len(points) > 1 else ""
            said.append(f"{name}: {label} {seconds(fast)}{more}")
        text += f" {what[:1].upper()}{what[1:]}, {count_of(len(rows), 'ladder')}: {'; '.join(said)}."
    return text
