"""Ladders of times: a learner's own, rung by rung; one split by cause; a gallery of several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from matplotlib import font_manager
from matplotlib.axes import Axes

from unrolled.show.charts import chart
from unrolled.show.picture import Picture
from unrolled.show.style import BLUE, COLOURS, GREY, INK, MARKERS, SMALL, STYLES, WIDTH, mark, new_figure, styled
from unrolled.show.words import count_of, listing, seconds, times

CREDIT = "Measured by the author of an article on GPU programming with CuPy (Qiita, 2020), on several machines."
REFERENCES: tuple[Mapping[str, Any], ...] = (
    {"label": "NumPy, hosted notebook", "seconds": 1800, "how": "published"},
    {"label": "the same code on CuPy", "seconds": 100, "batch": 8, "hardware": "hosted GPU", "how": "published"},
    {"label": "CuPy after one fix", "seconds": 50, "batch": 8, "hardware": "hosted GPU", "how": "published"},
    {"label": "Keras", "seconds": 4, "batch": 128, "hardware": "hosted GPU", "how": "published"},
)

TICKS = {1e-3: "1 ms", 1e-2: "10 ms", 1e-1: "100 ms", 1.0: "1 s", 10.0: "10 s", 60.0: "1 min", 600.0: "10 min"}
TICKS |= {3600.0: "1 h", 36000.0: "10 h", 360000.0: "100 h"}  # by their seconds
ROW, HEADING, LEFT, RIGHT, LADDER_AXIS = 0.42, 0.34, 2.75, 0.95, 0.6  # inches
WHOLE, OTHERS = "an epoch of training", "for comparison, measured by others"
MARKED = "Full: measured. Half: modelled. Hollow: recorded, or published."
CAUSE_ROW, CAUSE_RIGHT = 0.46, 1.7
MARKED_BY = {"measured": "o", "recorded": "s", "modelled": "^", "published": "D"}
CAUSES = {**dict(zip(("code", "batch", "precision", "hardware"), COLOURS, strict=False)), "several": GREY}
"""What one rung can differ in from the rung before it, with its colour; several where nobody can say which."""
PANEL_ROW, HEAD, PANEL_LEFT, TOP, BOTTOM, AXIS = 0.36, 0.58, 1.75, 0.1, 0.55, 0.34  # inches, in a gallery
NAME = 20  # characters of a learner's name
KEY = 62  # characters of a line of a panel's key
# The first of these that the machine has, if it has one, stands in for what the course's font lacks in names.
JAPANESE = ("Noto Sans CJK JP", "Noto Sans JP", "Hiragino Sans", "Yu Gothic", "Meiryo", "IPAexGothic", "TakaoGothic")
OFFSET: dict[str, Any] = {"textcoords": "offset points", "va": "center"}
BESIDE: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "annotation_clip": False, **OFFSET}

Rung = Mapping[str, Any]
Rows = list[tuple[str, list[tuple[str, float]]]]


@styled()
def ladder(rungs: Sequence[Rung]) -> Picture:
    """Draw seconds on a log scale, a row for each rung, in the order given, by what was measured.

    A rung is a mapping with "label" and "seconds" (above 0), and where known "what" (what was measured), "hardware",
    "batch", "precision", "code" (whose it is), "accuracy" (from 0 to 1), and "how" it came about, one of STYLES.
    Whole networks, and those of others below them, have axes of their own: an epoch of one layer is none of a network.
    """
    parts = grouped(rungs)
    networks = {name: parts.pop(name) for name in [WHOLE] if name in parts} | {OTHERS: list(REFERENCES)}
    panels = [(parts, "time for 60,000 images of this part alone")] if parts else []
    panels.append((networks, "time for an epoch of MNIST (60,000 images)"))
    heights = [ROW * sum(map(len, groups.values())) + HEADING * len(groups) for groups, _ in panels]
    height = 0.45 + sum(heights) + LADDER_AXIS * len(panels)
    figure, top = new_figure(height), height - 0.1
    for (groups, words), tall in zip(panels, heights, strict=True):
        box = (LEFT / WIDTH, (top - tall) / height, (WIDTH - LEFT - RIGHT) / WIDTH, tall / height)
        _groups(figure.add_axes(box), groups, tall)
        figure.axes[-1].set_xlabel(f"{words}, log scale")
        top -= tall + LADDER_AXIS
    figure.text(0.1 / WIDTH, 0.29 / height, MARKED, size=8, color=GREY)
    figure.text(0.1 / WIDTH, 0.09 / height, CREDIT, size=8, color=GREY)
    return Picture(figure, _alt({**parts, **networks}, rungs))


def _groups(axes: Axes, groups: Mapping[str, Sequence[Rung]], tall: float) -> None:
    """Draw rungs of the same kind of work on axes of so many inches, each group below its heading."""
    time_axis(axes, [float(rung["seconds"]) for group in groups.values() for rung in group], 3)
    axes.set(ylim=(tall, 0), yticks=[])
    y = 0.0
    for heading, group in groups.items():
        axes.annotate(heading, (0, y + HEADING * 0.6), (-(LEFT - 0.1) * 72, 0), weight="bold", **BESIDE)
        y += HEADING
        for rung in group:
            middle, value = y + ROW / 2, float(rung["seconds"])
            how = rung.get("how") or ("modelled" if "modelled" in str(rung.get("hardware")) else "measured")
            look = mark(how, GREY if how == "published" else BLUE)
            axes.plot([axes.get_xlim()[0], value], [middle] * 2, STYLES[how], color=look["color"], linewidth=1.4)
            axes.plot(value, middle, MARKED_BY[how], markersize=8, **look)
            axes.annotate(seconds(value), (value, middle), (9, 0), weight="bold", **OFFSET)
            _name(axes, middle, LEFT - 0.25, clip(str(rung["label"]), 34), clip(details(rung), 44))
            y += ROW


def grouped(rungs: Iterable[Rung]) -> dict[str, list[Rung]]:
    """Return the rungs by what was measured, in the order in which each first appears."""
    groups: dict[str, list[Rung]] = {}
    for rung in rungs:
        groups.setdefault(str(rung.get("what") or WHOLE), []).append(rung)
    return groups


def details(rung: Rung) -> str:
    """Return what is known of a rung besides its time, in words: batch, whose code, precision, hardware, accuracy."""
    parts = [f"batch {rung['batch']}"] if rung.get("batch") else []
    parts += [str(rung[key]) for key in ("code", "precision", "hardware") if rung.get(key)]
    parts += [f"{100 * float(rung['accuracy']):.2f} % right"] if rung.get("accuracy") is not None else []
    return ", ".join(parts)


def time_axis(axes: Axes, values: Sequence[float], room: float) -> None:
    """Make x the log scale of these seconds, with ticks in words and `room` times below the least of them."""
    low, high = min(values) / room, max(values) * 1.6
    if high / low < 60:  # always wide enough for two ticks
        low, high = low / 4, high * 4
    axes.set(xscale="log", xlim=(low, high))
    row_axis(axes, TICKS)


def row_axis(axes: Axes, ticks: Mapping[float, str]) -> None:
    """Label those of the ticks that lie on the x axis, for rows that need no y axis."""
    low, high = axes.get_xlim()
    seen = [tick for tick in ticks if low <= tick <= high]
    axes.set_xticks(seen, [ticks[tick] for tick in seen])
    axes.minorticks_off()
    axes.spines["left"].set_visible(False)
    axes.grid(True, axis="x")


def _name(axes: Axes, y: float, left: float, label: str, small: str) -> None:
    """Name a row so many inches left of the axes, with small words below."""
    axes.annotate(label, (0, y), (-left * 72, 6 if small else 0), color=INK, **BESIDE)
    if small:
        axes.annotate(small, (0, y), (-left * 72, -6), size=8, color=GREY, **BESIDE)


def clip(text: str, most: int) -> str:
    """Return at most so many letters of a text, with an ellipsis for the others."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _alt(groups: Mapping[str, list[Rung]], rungs: Sequence[Rung]) -> str:
    text = "Seconds per MNIST epoch, log scale."
    for heading, group in groups.items():
        labels = ((f"{rung['label']} {seconds(float(rung['seconds']))}", details(rung)) for rung in group)
        rows = [f"{name} ({small})" if small else name for name, small in labels]
        text += f" {heading[:1].upper()}{heading[1:]}: {'; '.join(rows)}."
        own = [float(rung["seconds"]) for rung in group if any(rung is mine for mine in rungs)]
        if len(own) > 1:
            count, climbed = count_of(len(own), "rung"), times(max(own) / min(own))
            text += f" From the slowest of your {count} to the fastest: {climbed}."
    return f"{text} {CREDIT}"


@styled()
def causes(rungs: Sequence[Rung], title: str = "") -> Picture:
    """Draw seconds on a log scale, a row a rung, in the order given; a bar goes from the rung before to this one.

    A rung has "label" and "seconds" (above 0), from the second on "cause", one of CAUSES, and where known "batch",
    "hardware", "precision", "code", "accuracy", and "how" the seconds came about, as in `mark`: measured unless it says
    otherwise. The bar has the cause's colour.
    """
    figure, axes = chart(CAUSE_ROW * len(rungs) + 1.52, LEFT, CAUSE_RIGHT, top=0.45, bottom=1.07)
    values = [float(rung["seconds"]) for rung in rungs]
    time_axis(axes, values, 2)
    axes.set(ylim=(len(rungs) - 0.5, -0.5), yticks=[], xlabel="time of an epoch, log scale; left is faster")
    if title:
        axes.set_title(title, loc="left", size=SMALL + 1)
    factors: dict[str, float] = {}  # of all rungs of each cause together
    rows, hows = [], dict[str, None]()
    for y, (rung, value) in enumerate(zip(rungs, values, strict=True)):
        how = str(rung.get("how", "measured"))
        by, caption, row = "", seconds(value), f"{rung['label']} {seconds(value)}"
        if y:
            cause, gain = str(rung["cause"]), values[y - 1] / value
            factors[cause] = factors.get(cause, 1.0) * gain
            axes.hlines(y, value, values[y - 1], color=CAUSES[cause], linewidth=7)
            by, caption, row = f"by {cause}", f"{caption}   {times(gain)}", f"{row}, {times(gain)} by {cause}"
        _name(axes, y, LEFT - 0.1, str(rung["label"]), "; ".join(filter(None, [by, details(rung)])))
        axes.plot(value, y, MARKED_BY[how.split(",")[0]], markersize=8, **mark(how, INK))
        hows[how] = None
        axes.annotate(caption, (1, y), (6, 0), weight="bold", size=SMALL, **BESIDE)
        rows.append(f"{row} ({how})" if "how" in rung else row)
    used = [cause for cause in CAUSES if cause in factors]
    for cause in used:
        axes.plot([], [], color=CAUSES[cause], linewidth=6, label=cause)
    for how in hows:
        axes.plot([], [], MARKED_BY[how.split(",")[0]], linestyle="", label=how, **mark(how, INK))
    lines, names = axes.get_legend_handles_labels()
    for bottom, part in ((0.22, slice(None, len(used))), (0.0, slice(len(used), None))):
        place = (0, bottom / figure.get_figheight())
        look: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": place, "frameon": False, "fontsize": SMALL}
        figure.legend(lines[part], names[part], ncols=len(names[part]), **look)
    whole = listing([f"{cause} {times(gain)}" for cause, gain in factors.items()])
    return Picture(figure, f"{title or 'A ladder split by cause'}. {'; '.join(rows)}. In all: {whole}.")


@styled()
def gallery(ladders: Sequence[Mapping[str, Any]]) -> Picture:
    """Draw ladders as rows of points on a log scale: a panel for each kind of work, the fastest on top.

    A ladder is a mapping with "name" and "rungs"; a rung has "label", "what" and "seconds" (above 0). A way of doing
    the work has the same marker in every row of its panel. ValueError if there is nothing to draw.
    """
    works = panels(ladders)
    if not works:
        raise ValueError("ladders holds no rungs: nothing to draw")
    keys = {what: _key(rows) for what, rows in works.items()}
    heights = [HEAD + 0.17 * (len(keys[what]) - 1) + PANEL_ROW * len(rows) + AXIS for what, rows in works.items()]
    height = TOP + sum(heights) + BOTTOM - AXIS
    figure, top = new_figure(height), height - TOP
    for (what, rows), tall in zip(works.items(), heights, strict=True):
        plot = PANEL_ROW * len(rows)
        head = tall - plot - AXIS
        box = (PANEL_LEFT / WIDTH, (top - head - plot) / height, (WIDTH - PANEL_LEFT - RIGHT) / WIDTH, plot / height)
        _panel(figure.add_axes(box), what, rows, keys[what], head)
        top -= tall
    figure.axes[-1].set_xlabel("log scale; left is faster", size=9, color=GREY)
    text = "Several learners' ladders, seconds on a log scale."
    for what, rows in works.items():
        summaries = []
        for name, points in rows:
            (_, slow), (label, fast) = points[0], points[-1]
            more = f", {times(slow / fast)} from slowest to fastest" if len(points) > 1 else ""
            summaries.append(f"{name}: {label} {seconds(fast)}{more}")
        text += f" {what[:1].upper()}{what[1:]}, {count_of(len(rows), 'ladder')}: {'; '.join(summaries)}."
    return Picture(figure, text)


def panels(ladders: Sequence[Mapping[str, Any]]) -> dict[str, Rows]:
    """Return by what was measured each learner's name and (label, seconds), slow to fast; the fastest learner first."""
    works: dict[str, Rows] = {}
    for one in ladders:
        for what, rungs in grouped(one["rungs"]).items():
            points = [(str(rung["label"]), float(rung["seconds"])) for rung in rungs]
            works.setdefault(what, []).append((str(one["name"]), sorted(points, key=lambda point: -point[1])))
    for rows in works.values():
        rows.sort(key=lambda row: row[1][-1][1])
    return works


def _key(rows: Rows) -> list[list[str]]:
    """The ways in a panel, each once, the slowest first, in lines that fit."""
    slow_to_fast = sorted((point for _, points in rows for point in points), key=lambda point: -point[1])
    lines: list[list[str]] = [[]]
    for label in dict.fromkeys(label for label, _ in slow_to_fast):
        if lines[-1] and sum(len(other) + 4 for other in lines[-1]) + len(label) > KEY:
            lines.append([])
        lines[-1].append(label)
    return lines


def _panel(axes: Axes, what: str, rows: Rows, key: Sequence[Sequence[str]], head: float) -> None:
    """A row a learner: a point for each way, a line between the slowest and the fastest, and how far they are apart."""
    time_axis(axes, [value for _, points in rows for _, value in points], 1.6)
    axes.set(ylim=(len(rows) - 0.5, -0.5))
    here = {font.name for font in font_manager.fontManager.ttflist}
    families = ["DejaVu Sans", *[name for name in JAPANESE if name in here][:1]]
    axes.set_yticks(range(len(rows)), [clip(name, NAME) for name, _ in rows], family=families)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    marks = {label: number % len(COLOURS) for number, label in enumerate(chain(*key))}
    for y, (_, points) in enumerate(rows):
        axes.hlines(y, points[-1][1], points[0][1], color=GREY, linewidth=1.2, zorder=1)
        for label, value in points:
            mark = marks[label]
            axes.plot(value, y, MARKERS[mark], color=COLOURS[mark], markersize=7, markeredgecolor="white", zorder=2)
        caption = times(points[0][1] / points[-1][1]) if len(points) > 1 else seconds(points[0][1])
        axes.annotate(caption, (1, y), (8, 0), size=8.5, color=BLUE, **BESIDE)
    left, up = -(PANEL_LEFT - 0.1) * 72, head * 72 - 13
    axes.annotate(what, (0, 1), (left, up), xycoords="axes fraction", weight="bold", **OFFSET)
    for below, line in enumerate(key):  # the marker of each way
        x, at = left + 4, up - 15 - 12 * below
        for label in line:
            mark = marks[label]
            place = x / 72 / (WIDTH - PANEL_LEFT - RIGHT), 1 + at / 72 / (PANEL_ROW * len(rows))
            axes.plot(*place, MARKERS[mark], color=COLOURS[mark], markersize=6, transform=axes.transAxes, clip_on=False)
            axes.annotate(label, (0, 1), (x + 7, at), xycoords="axes fraction", size=8.5, color=GREY, **OFFSET)
            x += 7 + 5.0 * len(label) + 14
