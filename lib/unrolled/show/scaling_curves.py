"""Strong beside weak scaling: what a training step costs on more ranks, where a modelled all-reduce follows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from unrolled.parallel.links import LINKS, Link
from unrolled.show.charts import word_ticks
from unrolled.show.picture import Explorer, Slider
from unrolled.show.style import BLUE, COLOURS, FONT_SIZE, GREY, MARKERS, PAPER, SMALL, WIDTH, new_figure
from unrolled.show.words import amount, count_of, percent, seconds

RANKS = (1, 2, 4, 8, 16, 32, 64)
HEIGHT, LEFTS, WIDE = 4.95, (0.8, 4.6), 2.75  # inches
ROWS = ((2.72, 1.35), (0.98, 1.35))  # inches: bottom and height of the axes
KINDS = ("strong", "weak")
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
        link = Link("", self.alpha, self.beta, "")
        own = self.compute / ranks if kind == "strong" else self.compute
        return own + link.all_reduce_seconds(self.gradient, ranks)

    def efficiency(self, ranks: int, kind: str) -> float:
        """Return the share of `ranks` times one rank's speed that is reached."""
        return efficiency(self.step(1, kind), self.step(ranks, kind), ranks, kind)


def efficiency(one: float, step: float, ranks: int, kind: str) -> float:
    """Return the efficiency of a step on so many ranks, of one on one rank; strong: the batch is shared out."""
    return one / (step * (ranks if kind == "strong" else 1))


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
    long as it is set to others, they are hollow: the lines are of another step. ValueError for numbers not above 0.
    """
    given = {"compute": compute, "gradient": gradient, "alpha": alpha, "beta": beta}
    for name, value in given.items():
        if not value > 0:
            raise ValueError(f"{name} must be above 0, got {value}")
    points = {"strong": list(strong), "weak": list(weak)}
    for kind, its in points.items():
        for ranks, time, label in its:
            if not 1 <= ranks <= RANKS[-1] or not time > 0:
                where = f"{kind} holds ({ranks}, {time}, {label!r})"
                raise ValueError(f"{where}; expected 1 to {RANKS[-1]} ranks and seconds above 0")
    alone = [time for its in points.values() for ranks, time, _ in its if ranks == 1]
    return Explorer(
        _draw,
        _alt,
        points,
        compute=_slider("compute on one rank", compute, -4, 1, seconds, alone),
        gradient=_slider("gradient", gradient, 3, 11, _bytes),
        alpha=_slider("alpha: a message", alpha, -7, -2, seconds),
        beta=_slider("beta: a megabyte", beta, -12, -6, _megabyte),
    )


def _slider(
    label: str, start: float, low: int, high: int, words: Callable[[Any], str], more: Sequence[float] = ()
) -> Slider:
    """A slider over 1, 2 and 5 times the powers of ten, its start, and more values."""
    steps = {float(f"{step}e{power}") for power in range(low, high) for step in STEPS}
    values = sorted({*steps, float(f"1e{high}"), start, *more})
    return Slider(label, values, values.index(start), words)


def _bytes(value: float) -> str:
    return amount(value, "B")


def _megabyte(beta: float) -> str:
    return f"{seconds(beta * 1e6)} ({_speed(beta)})"


def _speed(beta: float) -> str:
    return amount(1 / beta, "B/s")


def _draw(points: dict[str, list[Point]], compute: float, gradient: float, alpha: float, beta: float) -> Figure:
    model, figure = Model(compute, gradient, alpha, beta), new_figure(HEIGHT)
    for line, words in enumerate((_title(model), _summary(model))):
        figure.text(0.1 / WIDTH, 1 - (0.2 + 0.24 * line) / HEIGHT, words, va="center", size=FONT_SIZE)
    labels = list(dict.fromkeys(label for kind in KINDS for _, _, label in points[kind]))
    for left, kind in zip(LEFTS, KINDS, strict=True):
        for row, (bottom, height) in enumerate(ROWS):
            axes = figure.add_axes((left / WIDTH, bottom / HEIGHT, WIDE / WIDTH, height / HEIGHT))
            _lines(axes, model, kind, bool(row))
            for number, label in enumerate(labels):
                look = _look(number, _is_of_step(points, label, compute))
                _points(axes, points[kind], label, kind if row else "", look)
            _axes(axes, bool(row))
            if not row:
                axes.set_title(f"{kind} scaling: {BATCH[kind]}", size=FONT_SIZE)
    _same_times(figure.axes[::2])
    lines = [
        *figure.axes[0].lines[:2],
        *(_legend(label, number, _is_of_step(points, label, compute)) for number, label in enumerate(labels)),
    ]
    figure.legend(handles=lines, loc="lower left", bbox_to_anchor=(0.08, 0.0), ncols=2, fontsize=SMALL)
    return figure


def _lines(axes: Axes, model: Model, kind: str, share: bool) -> None:
    """What the model says, and what it would be if messages took no time."""
    values = [model.efficiency(p, kind) if share else model.step(p, kind) for p in RANKS]
    ideal = [1.0 if share else model.compute / (p if kind == "strong" else 1) for p in RANKS]
    axes.plot(RANKS, values, color=BLUE, marker="o", markersize=4, label="modelled")
    axes.plot(RANKS, ideal, color=GREY, linestyle="--", linewidth=1.2, label="modelled, without messages")


def _same_times(panels: Sequence[Axes]) -> None:
    """Let the axes of time span the same, and a factor of 30 at least, so that some ticks fall in."""
    low = min(axes.get_ylim()[0] for axes in panels)
    high = max(axes.get_ylim()[1] for axes in panels)
    more = max(1.0, (30 * low / high) ** 0.5)
    for axes in panels:
        axes.set_ylim(low / more, high * more)
        word_ticks(axes, "y", seconds)


def _axes(axes: Axes, share: bool) -> None:
    """Ranks by powers of two; efficiency from 0, time on a log scale."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(RANKS, [str(ranks) for ranks in RANKS])
    axes.minorticks_off()
    axes.grid(True)
    if share:
        axes.set(ylim=(0, 1.08), xlabel="ranks", ylabel="efficiency")
        word_ticks(axes, "y", percent, log=False)
    else:
        axes.set_yscale("log")
        axes.margins(y=0.15)
        axes.set_ylabel("time of a step")


def _is_of_step(points: dict[str, list[Point]], label: str, compute: float) -> bool:
    """Whether the lines are of the step that was recorded under a label, as far as its time on one rank tells."""
    alone = [time for its in points.values() for ranks, time, found in its if ranks == 1 and found == label]
    return not alone or any(isclose(time, compute, rel_tol=SAME) for time in alone)


def _legend(label: str, number: int, of_step: bool) -> Line2D:
    return Line2D([], [], label=f"recorded: {label}{'' if of_step else ', another step'}", **_look(number, of_step))


def _look(number: int, filled: bool) -> dict[str, Any]:
    colour = COLOURS[(number + 1) % 8]
    return {
        "color": colour,
        "marker": MARKERS[(number + 1) % 8],
        "linestyle": "",
        "markersize": 7,
        "markerfacecolor": colour if filled else PAPER,
        "markeredgecolor": PAPER if filled else colour,
        "markeredgewidth": 0.8 if filled else 1.4,
    }


def _points(axes: Axes, points: Sequence[Point], label: str, kind: str, look: dict[str, Any]) -> None:
    """The points of a label: their times, or where a kind is given their efficiency."""
    found = [(p, _share(points, p, time, label, kind) if kind else time) for p, time, its in points if its == label]
    known = [(p, value) for p, value in found if value is not None]
    if known:
        axes.plot(*zip(*known, strict=True), zorder=3, **look)


def _share(points: Sequence[Point], ranks: int, time: float, label: str, kind: str) -> float | None:
    """The efficiency of a point; None where its label has none of one rank."""
    one = next((seconds for p, seconds, its in points if p == 1 and its == label), None)
    return None if one is None else efficiency(one, time, ranks, kind)


def _title(model: Model) -> str:
    link = f"alpha {seconds(model.alpha)}, {_speed(model.beta)} a link"
    return f"Step of {seconds(model.compute)} on one rank, gradient of {_bytes(model.gradient)}, {link} (modelled)"


def _summary(model: Model) -> str:
    """On how many of the ranks drawn one batch is done soonest."""
    best = min(RANKS, key=lambda ranks: model.step(ranks, "strong"))
    return f"One batch is done soonest on {count_of(best, 'rank')}: {seconds(model.step(best, 'strong'))}."


def _reached(share: float) -> str:
    return percent(round(share, 3))


def _alt(points: dict[str, list[Point]], compute: float, gradient: float, alpha: float, beta: float) -> str:
    model, parts = Model(compute, gradient, alpha, beta), []
    for kind in KINDS:
        values = [f"{seconds(model.step(p, kind))} ({_reached(model.efficiency(p, kind))}) on {p}" for p in RANKS]
        parts.append(f"{kind.capitalize()} scaling, {BATCH[kind]}: {', '.join(values)}.")
        for p, time, label in points[kind]:
            other = "" if _is_of_step(points, label, compute) else " (another step)"
            share = _share(points[kind], p, time, label, kind)
            reached = "" if share is None else f" ({_reached(share)})"
            parts.append(f"Recorded, {label}{other}: {seconds(time)}{reached} on {p}.")
    return f"{_title(model)}. {_summary(model)} Time of a step, and efficiency, over ranks. {' '.join(parts)}"
