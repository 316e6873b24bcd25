"""How time grows with size, of one piece of work or machine or another; and a training step on more and more ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isclose
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from unrolled.parallel.links import LINKS, Link
from unrolled.show.charts import beside, chart, heights, word_ticks
from unrolled.show.picture import Explorer, Picture, Slider
from unrolled.show.style import BLUE, COLOURS, FONT_SIZE, GREY, MARKERS, SMALL, STYLES, WIDTH, mark, new_figure, styled
from unrolled.show.words import amount, count_of, number, percent, seconds, times, titled

Line = tuple[Sequence[float], Sequence[float], str]


@styled()
def growth(
    sizes: Sequence[int], values: Mapping[str, Sequence[float]], what: str = "numbers", unit: str = "s"
) -> Picture:
    """Draw time, or memory, over size on log axes, a line for each name, with its slope: what doubling the size costs.

    values: name -> one for each size, or for the first sizes alone; what: the unit of the sizes; unit: "s" or "B", of
    the values. Each line has two or more.
    """
    figure, axes = chart(3.4, 0.8, 2.55)
    axes.set_xlabel(f"size ({what})")
    noun, words = ("time", seconds) if unit == "s" else ("memory", partial(amount, unit=unit))
    ranges = {name: sizes[: len(line)] for name, line in values.items()}
    slopes = {name: slope(ranges[name], line) for name, line in values.items()}
    twice = {name: f"twice the size: {number(round(2**exponent, 1))} × the {noun}" for name, exponent in slopes.items()}
    lines = [(ranges[name], line, "measured", f"{name}\n{twice[name]}") for name, line in values.items()]
    _draw_lines(axes, lines, (0.04, 0.08), 0.19, [1.04], 1.075, SMALL, noun, words)
    texts = [
        f"{name}: from {words(line[0])} to {words(line[-1])}; {twice[name]} (slope {slopes[name]:.2f})"
        for name, line in values.items()
    ]
    ends = f"from {number(sizes[0])} to {number(sizes[-1])} {what}"
    return Picture(figure, f"{noun.capitalize()} against size, {ends}, log axes. {'. '.join(texts)}.")


@styled()
def scaling(lines: Mapping[str, Line], what: str = "channels", title: str = "") -> Picture:
    """Draw time against size on log axes, a line a machine, each with what the largest costs against the smallest.

    lines: name -> (sizes, seconds, how), all above 0. how begins with "measured", "recorded", "modelled" or "published"
    and says more after that: "recorded: H200, 2026-11-21". what: the unit of the sizes.
    """
    figure, axes = chart(3.6, 0.8, 2.8)
    axes.set(xlabel=what, title=title)
    grown = {name: growth_in_words(sizes, values) for name, (sizes, values, _) in lines.items()}
    named = [(*line, f"{name}\n{line[2]}\n{grown[name]}") for name, line in lines.items()]
    _draw_lines(axes, named, (0.05, 0.1), 0.24, [1.03, 1.11], 1.14, SMALL - 0.5)
    texts = [
        f"{name} ({how}): "
        + ", ".join(f"{seconds(value)} at {number(size)}" for size, value in zip(sizes, values, strict=True))
        + f"; {grown[name]}"
        for name, (sizes, values, how) in lines.items()
    ]
    return Picture(figure, titled(title, f"Time against {what}, log axes. {'. '.join(texts)}."))


def slope(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Return the exponent p of the best fit time = c · size^p (least squares on logarithms)."""
    return float(np.polyfit(np.log(np.asarray(sizes, dtype=np.float64)), np.log(np.asarray(times)), 1)[0])


def growth_in_words(sizes: Sequence[float], values: Sequence[float]) -> str:
    """Return what the largest size costs against the smallest: "16 × the size, 2.1 × the time"; of one, its time."""
    first, last = (extreme(range(len(sizes)), key=sizes.__getitem__) for extreme in (min, max))
    if first == last:
        return seconds(values[first])
    size, time = (times(row[last] / row[first]).replace("times", "×") for row in (sizes, values))
    return f"{size} the size, {time} the time"


def _draw_lines(
    axes: Axes,
    lines: Sequence[tuple[Sequence[float], Sequence[float], str, str]],
    margins: tuple[float, float],
    gap: float,
    marks: Sequence[float],
    left: float,
    size: float,
    noun: str = "time",
    values_in_words: Callable[[float], str] = seconds,
) -> None:
    """Draw lines of (sizes, values, how, words) on log axes, with the words beside them as `beside` places them."""
    looks = []
    for i, (sizes, values, how, _) in enumerate(lines):
        stroke = next(style for kind, style in STYLES.items() if how.startswith(kind))
        looks.append(mark(how, COLOURS[i % 8]) | {"marker": MARKERS[i % 8], "linestyle": stroke})
        axes.loglog(sizes, values, **looks[-1])
    axes.margins(*margins)
    axes.grid(True)
    axes.set_ylabel(noun)
    ticks = sorted({float(size) for sizes, *_ in lines for size in sizes})
    if len(ticks) > 8:
        word_ticks(axes, "x", number)
    else:
        axes.set_xticks(ticks, [number(size) for size in ticks])
        axes.minorticks_off()
    word_ticks(axes, "y", values_in_words)
    places = heights(axes, (values[-1] for _, values, *_ in lines), gap)
    for (*_, words), place, look in zip(lines, places, looks, strict=True):
        beside(axes, marks, left, place, words, size=size, **look)


# Strong beside weak scaling

RANKS = (1, 2, 4, 8, 16, 32, 64)
HEIGHT, LEFTS, WIDE = 4.95, (0.8, 4.6), 2.75  # inches
ROWS = ((2.72, 1.35), (0.98, 1.35))  # inches: bottom and height of the axes
BATCH = {"strong": "one batch, shared out", "weak": "a batch for each rank"}
STEPS = (1, 2, 5)
SAME = 0.01  # relative: so far apart are two times that the picture takes for one
Point = tuple[int, float, str]
NETWORK = LINKS["100 Gb/s network"]


@dataclass(frozen=True)
class Model:
    """A step: `compute` seconds on one rank, then an all-reduce of `gradient` bytes round a ring of such links."""

    compute: float
    gradient: float
    alpha: float
    beta: float

    def step(self, ranks: int, kind: str) -> float:
        """Return the seconds of a step: nothing is sent while anything is computed."""
        return self.alone(ranks, kind) + Link("", self.alpha, self.beta, "").all_reduce_seconds(self.gradient, ranks)

    def alone(self, ranks: int, kind: str) -> float:
        """Return the seconds of a step in which messages take no time."""
        return self.compute / ranks if kind == "strong" else self.compute

    def efficiency(self, ranks: int, kind: str) -> float:
        """Return the share of `ranks` times one rank's speed that is reached."""
        return efficiency(self.step(1, kind), self.step(ranks, kind), ranks, kind)


def efficiency(one: float, step: float, ranks: int, kind: str) -> float:
    """Return the efficiency of a step on so many ranks, of one on one rank; strong: the batch is shared out."""
    return one / (step * (ranks if kind == "strong" else 1))


class Recorded(NamedTuple):
    """A recorded step; its efficiency is None where its label has no step of one rank."""

    ranks: int
    seconds: float
    label: str
    efficiency: float | None


Points = Mapping[str, Sequence[Recorded]]  # by kind, "strong" and "weak"


def scaling_curves(
    compute: float = 0.01,
    gradient: float = 1e8,
    alpha: float = NETWORK.alpha,
    beta: float = NETWORK.beta,
    strong: Sequence[Point] = (),
    weak: Sequence[Point] = (),
) -> Explorer:
    """Draw a step's time and efficiency over 1 to 64 ranks: of a batch that is shared out, and of one for each rank.

    compute: seconds on one rank; gradient: bytes; alpha: seconds a message, beta: seconds a byte of each link. Sliders
    change all four. strong and weak: recorded points, (ranks, seconds, label), drawn over the modelled lines; those
    with a point of one rank under the same label have an efficiency too, and `compute` can be set to its seconds. As
    long as it is set to others, they are grey: the lines are of another step.
    """
    points: dict[str, list[Recorded]] = {}
    for kind, its in (("strong", strong), ("weak", weak)):
        ones = {label: time for ranks, time, label in reversed(its) if ranks == 1}
        points[kind] = [
            Recorded(ranks, time, label, efficiency(ones[label], time, ranks, kind) if label in ones else None)
            for ranks, time, label in its
        ]
    alone = [point.seconds for its in points.values() for point in its if point.ranks == 1]
    return Explorer(
        _draw,
        points,
        compute=_slider("compute on one rank", compute, -4, 1, seconds, alone),
        gradient=_slider("gradient", gradient, 3, 11, lambda value: amount(value, "B")),
        alpha=_slider("alpha: a message", alpha, -7, -2, seconds),
        beta=_slider(
            "beta: a megabyte", beta, -12, -6, lambda value: f"{seconds(value * 1e6)} ({amount(1 / value, 'B/s')})"
        ),
    )


def _slider(
    label: str, start: float, low: int, high: int, words: Callable[[Any], str], more: Sequence[float] = ()
) -> Slider:
    """A slider over 1, 2 and 5 times the powers of ten, its start, and more values."""
    steps = {float(f"{step}e{power}") for power in range(low, high) for step in STEPS}
    values = sorted({*steps, float(f"1e{high}"), start, *more})
    return Slider(label, values, values.index(start), words)


def _draw(points: Points, **numbers: float) -> Picture:
    model, figure, legend = Model(**numbers), new_figure(HEIGHT), []
    for line, words in enumerate(_summary(model)):
        figure.text(0.1 / WIDTH, 1 - (0.2 + 0.24 * line) / HEIGHT, words, va="center", size=FONT_SIZE)
    looks = {}
    for i, label in enumerate(dict.fromkeys(point.label for its in points.values() for point in its), start=1):
        same = _is_of_step(points, label, model)
        look = mark("recorded", COLOURS[i % 8] if same else GREY)
        looks[label] = look | {"marker": MARKERS[i % 8], "linestyle": "", "markersize": 7, "markeredgewidth": 1.6}
        legend.append(Line2D([], [], label=f"recorded: {label}{'' if same else ', another step'}", **looks[label]))
    for left, kind in zip(LEFTS, BATCH, strict=True):
        for row, (bottom, height) in enumerate(ROWS):
            axes = figure.add_axes((left / WIDTH, bottom / HEIGHT, WIDE / WIDTH, height / HEIGHT))
            _lines(axes, model, kind, bool(row))
            for label, look in looks.items():
                known = [
                    (point.ranks, value)
                    for point in points[kind]
                    if point.label == label and (value := point.efficiency if row else point.seconds) is not None
                ]
                axes.plot([ranks for ranks, _ in known], [value for _, value in known], zorder=3, **look)
            if not row:
                axes.set_title(f"{kind} scaling: {BATCH[kind]}", size=FONT_SIZE)
    panels = figure.axes[::2]  # of time: they span the same, and a factor of 30 at least, so that some ticks fall in
    low, high = min(axes.get_ylim()[0] for axes in panels), max(axes.get_ylim()[1] for axes in panels)
    more = max(1.0, (30 * low / high) ** 0.5)
    for axes in panels:
        axes.set_ylim(low / more, high * more)
        word_ticks(axes, "y", seconds)
    lines = [*figure.axes[0].lines[:2], *legend]
    figure.legend(handles=lines, loc="lower left", bbox_to_anchor=(0.08, 0.0), ncols=2, fontsize=SMALL)
    return Picture(figure, _alt(points, **numbers))


def _lines(axes: Axes, model: Model, kind: str, share: bool) -> None:
    """What the model says over ranks, with messages and if they took no time: efficiency, or time on a log scale."""
    values = [model.efficiency(p, kind) if share else model.step(p, kind) for p in RANKS]
    ideal = [1.0 if share else model.alone(p, kind) for p in RANKS]
    axes.plot(RANKS, values, STYLES["modelled"], color=BLUE, linewidth=2.4, label="modelled")
    axes.plot(RANKS, ideal, STYLES["modelled"], color=GREY, linewidth=1.2, label="modelled, without messages")
    axes.set_xscale("log", base=2)
    axes.set_xticks(RANKS, [str(ranks) for ranks in RANKS])
    axes.minorticks_off()
    axes.grid(True)
    if share:
        axes.set(ylim=(0, 1.08), xlabel="ranks", ylabel="efficiency")
        word_ticks(axes, "y", percent, log=False)
    else:
        axes.set(yscale="log", ylabel="time of a step")
        axes.margins(y=0.15)


def _is_of_step(points: Points, label: str, model: Model) -> bool:
    """Whether the lines are of the step that was recorded under a label, as far as its time on one rank tells."""
    alone = [point.seconds for its in points.values() for point in its if (point.ranks, point.label) == (1, label)]
    return not alone or any(isclose(time, model.compute, rel_tol=SAME) for time in alone)


def _summary(model: Model) -> tuple[str, str]:
    """The step, and on how many of the ranks drawn one batch is done soonest."""
    link = f"alpha {seconds(model.alpha)}, {amount(1 / model.beta, 'B/s')} a link"
    best = min(RANKS, key=lambda ranks: model.step(ranks, "strong"))
    return (
        f"Step of {seconds(model.compute)} on one rank, gradient of {amount(model.gradient, 'B')}, {link} (modelled)",
        f"One batch is done soonest on {count_of(best, 'rank')}: {seconds(model.step(best, 'strong'))}.",
    )


def _alt(points: Points, **numbers: float) -> str:
    model, parts = Model(**numbers), []
    for kind, its in points.items():
        steps = ((p, seconds(model.step(p, kind)), percent(round(model.efficiency(p, kind), 3))) for p in RANKS)
        values = ", ".join(f"{time} ({share}) on {p}" for p, time, share in steps)
        parts.append(f"{kind.capitalize()} scaling, {BATCH[kind]}: {values}.")
        for point in its:
            other = "" if _is_of_step(points, point.label, model) else " (another step)"
            reached = "" if point.efficiency is None else f" ({percent(round(point.efficiency, 3))})"
            parts.append(f"Recorded, {point.label}{other}: {seconds(point.seconds)}{reached} on {point.ranks}.")
    step, soonest = _summary(model)
    return f"{step}. {soonest} Time of a step, and efficiency, over ranks. {' '.join(parts)}"
