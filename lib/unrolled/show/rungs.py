"""Draw ladders from several machines: a panel each, its speedups, and how much of its peak each reaches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes

from unrolled.ops.lstm import FORMS
from unrolled.show.ladder import BESIDE, OFFSET, row_axis
from unrolled.show.picture import Picture
from unrolled.show.style import BLUE, GREY, INK, ORANGE, SMALL, WIDTH, new_figure, styled
from unrolled.show.words import listing, number, rounded, times

PUBLISHED_TITLE, PUBLISHED_CREDIT = "published, 2016", "Published: cuDNN 5's own account of its LSTM, 2016."
OTHER = "four layers"
PUBLISHED: tuple[Mapping[str, Any], ...] = (
    {"name": "naive", "speedup": 1.0, "gflops": 349},
    {"name": "combined", "speedup": 2.1, "gflops": 724},
    {"name": "streams", "speedup": 2.8, "gflops": 994},
    {"name": "fused", "speedup": 5.5, "gflops": 1942},
    {"name": "transposed", "speedup": 6.3, "gflops": 2199},
    {"name": "inputs_at_once", "speedup": 6.5, "gflops": 2290},
    {"name": "wavefront", "speedup": 11.1, "gflops": 3898, "workload": OTHER},
)
RUNG_ROW, RUNG_LEFT, RUNG_TOP, RUNG_BOTTOM, RUNG_RIGHT = 0.46, 1.2, 0.62, 0.55, 0.94  # inches
FACTORS = 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200

Steps = Mapping[str, float] | Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Speedup:
    """A rung: how many times faster than the first, and where known GFLOPS and the share of the machine's peak.

    `workload`: what else was computed than on the other rungs, or "".
    """

    name: str
    factor: float
    gflops: float | None = None
    of_peak: float | None = None
    workload: str = ""

    @property
    def use(self) -> list[str]:
        """What is known of the machine's use, in words: its rate, and how much of its peak that is."""
        known = []
        if self.gflops is not None:
            known.append(f"{number(round(self.gflops, 1 if self.gflops < 100 else None))} GFLOPS")
        return known if self.of_peak is None else [*known, f"{rounded(100 * self.of_peak, 2)} % of peak"]


@styled()
def rungs(ladders: Mapping[str, Steps]) -> Picture:
    """Draw ladders side by side, a panel each: how many times faster than the first rung every rung is, on a log scale.

    ladders: title -> seconds by rung, or rows: mappings with "name" (what follows its last comma is the rung) and
    "speedup", "seconds", "ours_s" or "gflops", and where known "gflops", "of_peak" (from 0 to 1) and "workload" (what
    else this rung computes than the others). Beside them stands what cuDNN's makers published.
    """
    given = {**ladders, PUBLISHED_TITLE: PUBLISHED}
    found = {title: steps_of(rows) for title, rows in given.items()}
    given_names = dict.fromkeys(step.name for steps in found.values() for step in steps)
    names = [form for form in FORMS if form in given_names] + [name for name in given_names if name not in FORMS]
    notes = [
        f"* {step.name}, {title}: {step.workload}, another workload than the rungs above it; no step of this ladder."
        for title, steps in found.items()
        for step in steps
        if step.workload
    ]
    notes.append(PUBLISHED_CREDIT)
    below = RUNG_BOTTOM + 0.2 * len(notes)
    height = RUNG_TOP + RUNG_ROW * len(names) + below
    figure = new_figure(height)
    wide = (WIDTH - RUNG_LEFT) / len(found)
    factors = [step.factor for steps in found.values() for step in steps]
    for place, (title, steps) in enumerate(found.items()):
        left, size = RUNG_LEFT + place * wide, (wide - RUNG_RIGHT, RUNG_ROW * len(names))
        axes = figure.add_axes((left / WIDTH, below / height, size[0] / WIDTH, size[1] / height))
        axes.set(xscale="log", xlim=(min(factors) / 1.3, max(factors) * 1.2), ylim=(len(names) - 0.5, -0.5))
        _panel_of_rungs(axes, title, steps, names)
    figure.axes[0].set_yticks(range(len(names)), names)
    first, *others = {steps[0].name for steps in found.values()}
    words = f"times as fast as {'the first rung' if others else first}, log scale; thick: what a rung adds"
    figure.text(RUNG_LEFT / WIDTH, (below - 0.42) / height, words, size=SMALL)
    for line, note in enumerate(reversed(notes)):
        figure.text(0.1 / WIDTH, (0.08 + 0.2 * line) / height, note, size=8, color=GREY)
    return Picture(figure, f"{_alt_rungs(found)} {PUBLISHED_CREDIT}")


def steps_of(rows: Steps) -> list[Speedup]:
    """Return a ladder's rungs."""
    if isinstance(rows, Mapping):
        rows = [{"name": name, "seconds": value} for name, value in rows.items()]
    speeds = {"speedup": 1, "gflops": 1, "seconds": -1, "ours_s": -1}
    found: list[Speedup] = []
    for row in rows:
        name, gflops = str(row["name"]).rsplit(", ", 1)[-1], row.get("gflops")
        key = next(key for key in speeds if key in row)
        factor, workload = float(row[key]) ** speeds[key], str(row.get("workload", ""))
        found.append(Speedup(name, factor, gflops, row.get("of_peak"), workload))
    return [replace(step, factor=step.factor / found[0].factor) for step in found]


def gains(steps: Sequence[Speedup]) -> dict[str, float]:
    """Return how many times faster each rung is than the one before it, where both did the same work."""
    pairs = pairwise(steps)
    return {step.name: step.factor / before.factor for before, step in pairs if step.workload == before.workload}


def largest_gain(steps: Sequence[Speedup]) -> str:
    """Return the rung that gains most, "" if none gains anything."""
    gained = {name: gain for name, gain in gains(steps).items() if gain > 1}
    return max(gained, key=gained.__getitem__, default="")


def _panel_of_rungs(axes: Axes, title: str, steps: Sequence[Speedup], names: Sequence[str]) -> None:
    """A dot a rung, a thick line from the rung before it; the largest gain has a colour and a marker of its own."""
    gained, largest = gains(steps), largest_gain(steps)
    axes.annotate(title, (0, 1), (0, 30), xycoords="axes fraction", weight="bold", **OFFSET)
    if largest:
        words = f"largest: {largest}, × {rounded(gained[largest], 2)}"
        axes.annotate(words, (0, 1), (0, 12), xycoords="axes fraction", size=8, **OFFSET)
    before = 1.0
    for step in steps:
        y, colour = names.index(step.name), ORANGE if step.name == largest else BLUE
        axes.hlines(y, 1.0, step.factor, color=GREY, linewidth=0.8, linestyle=":" if step.workload else "-", zorder=1)
        if not step.workload:
            if step.factor > before:
                axes.hlines(y, before, step.factor, color=colour, linewidth=4, zorder=2)
            before = step.factor
        face, marker = "white" if step.workload else colour, "D" if step.name == largest else "o"
        axes.plot(step.factor, y, marker, color=face, markeredgecolor=INK, markersize=7, zorder=3)
        words, use = f"× {rounded(step.factor)}{' *' * bool(step.workload)}", step.use[-1:]
        axes.annotate(words, (1, y), (5, 6 if use else 0), weight="bold", size=SMALL, **BESIDE)
        axes.annotate("".join(use), (1, y), (5, -6), size=7.5, color=INK, **BESIDE)
    row_axis(axes, {tick: number(tick) for tick in FACTORS})
    axes.set_yticks([])
    axes.tick_params(axis="y", length=0)


def _alt_rungs(found: Mapping[str, Sequence[Speedup]]) -> str:
    text = "Ladders side by side: how many times faster than its first rung each rung is."
    for title, steps in found.items():
        summaries = []
        for step in steps:
            rate = [*step.use, *([f"another workload: {step.workload}"] if step.workload else [])]
            summaries.append(f"{step.name} {rounded(step.factor)}{f' ({listing(rate)})' if rate else ''}")
        gained, largest = gains(steps), largest_gain(steps)
        most = f". The largest step is {largest}, {times(gained[largest])} faster than before it" if largest else ""
        text += f" {title[:1].upper()}{title[1:]}: {'; '.join(summaries)}{most}."
    return text
