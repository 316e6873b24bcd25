"""The pictures of the class report: pure functions from records to a `Picture` that says in words what it shows."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from unrolled.show.picture import Picture
from unrolled.show.style import (
    BLUE,
    GREEN,
    HATCHES,
    INK,
    ORANGE,
    PALE,
    PINK,
    RED,
    SKY,
    SMALL,
    YELLOW,
    new_figure,
    styled,
)
from unrolled_grader.evidence import VERDICTS
from unrolled_grader.record import Record

BINS = 10
COLUMNS = 3
WIDTH = 9.0  # inches
COLOURS = {
    "pass": GREEN,
    "inconclusive": SKY,
    "deferred": YELLOW,
    "fail": ORANGE,
    "crashed": RED,
    "timeout": PINK,
    "missing": PALE,
}
ORDER = tuple(COLOURS)
TEXTURES = dict(zip(ORDER, ("", "..", "oo", "//", "xx", "\\\\", ""), strict=True))
assert set(ORDER) == set(VERDICTS)
assert set(TEXTURES.values()) <= set(HATCHES)


@dataclass(frozen=True)
class PartCount:
    """How one scored part went in the class."""

    part: str
    verdicts: Counter[str]

    @property
    def passed(self) -> int:
        return self.verdicts["pass"]

    @property
    def total(self) -> int:
        return self.verdicts.total()


@dataclass(frozen=True)
class Speeds:
    """The measured factors of one check, and the factor it asks for."""

    check: str
    at_least: float
    ratios: tuple[float, ...]


def part_counts(records: Sequence[Record]) -> list[PartCount]:
    """Verdicts by part, in the order of lessons and checks."""
    counts: dict[str, Counter[str]] = {}
    for kept in sorted(records, key=lambda kept: kept.lesson):
        for score in kept.scores:
            counts.setdefault(score.part, Counter())[score.verdict] += 1
    return [PartCount(part, verdicts) for part, verdicts in counts.items()]


def speeds(records: Sequence[Record]) -> list[Speeds]:
    """The last measured factor of each student, by check; unmeasured ones are left out."""
    asked: dict[str, float] = {}
    ratios: dict[str, list[float]] = {}
    for kept in sorted(records, key=lambda kept: kept.lesson):
        for score in kept.scores:
            ratio = score.timings[-1]["ratio"] if score.timings else None
            if ratio is not None and ratio > 0:
                asked[score.check] = score.timings[-1]["at_least"]
                ratios.setdefault(score.check, []).append(float(ratio))
    return [Speeds(check, asked[check], tuple(sorted(found))) for check, found in ratios.items()]


@styled()
def histogram(records: Sequence[Record]) -> Picture:
    """How many students reached which share of the points, a panel a lesson."""
    lessons = sorted({kept.lesson for kept in records})
    shares = {
        lesson: [kept.points / kept.max_points for kept in records if kept.lesson == lesson and kept.max_points]
        for lesson in lessons
    }
    columns = min(COLUMNS, len(lessons))
    rows = -(-len(lessons) // columns)
    figure = new_figure(0.4 + 2.1 * rows, WIDTH * columns / COLUMNS, layout="constrained")
    axes = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for ax, lesson in zip(axes, lessons, strict=False):
        ax.hist([100 * share for share in shares[lesson]], bins=BINS, range=(0, 100), color=BLUE, edgecolor="white")
        ax.set_title(lesson)
        ax.set_xlabel("% of the points")
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        ax.yaxis.set_tick_params(labelleft=True)
    axes[0].set_ylabel("students")
    for ax in axes[len(lessons) :]:
        ax.set_visible(False)
    said = [
        f"{lesson}: {len(found)} students, median {100 * statistics.median(found):.0f} %, "
        f"{sum(share == 1 for share in found)} with all points, {sum(share == 0 for share in found)} with none"
        for lesson, found in shares.items()
        if found
    ]
    return Picture(figure, "Histogram of scores. " + "; ".join(said) + ".")


@styled()
def pass_rates(counts: Sequence[PartCount]) -> Picture:
    """A bar a part: its verdicts side by side, with the share that passed in words."""
    figure = new_figure(0.9 + 0.32 * len(counts), WIDTH, layout="constrained")
    ax = figure.subplots()
    present = [verdict for verdict in ORDER if any(count.verdicts[verdict] for count in counts)]
    left = [0.0] * len(counts)
    for verdict in present:
        widths = [100 * count.verdicts[verdict] / count.total for count in counts]
        style = {"color": COLOURS[verdict], "hatch": TEXTURES[verdict], "edgecolor": INK, "linewidth": 0.5}
        ax.barh(range(len(counts)), widths, left=left, height=0.7, label=verdict, **style)  # type: ignore[arg-type]
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for row, count in enumerate(counts):
        ax.text(101, row, f"{count.passed} of {count.total}", va="center", fontsize=SMALL)
    ax.set_yticks(range(len(counts)), [count.part for count in counts])
    ax.set_ylim(len(counts) - 0.4, -0.6)
    ax.set_xlim(0, 100)
    ax.set_xlabel("% of the submissions; beside it, how many passed")
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(length=0)
    figure.legend(loc="outside upper left", ncols=len(present))
    said = [f"{count.part} {count.passed} of {count.total}" for count in counts]
    return Picture(figure, "Passed, by check: " + "; ".join(said) + ".")


@styled()
def speedups(found: Sequence[Speeds]) -> Picture:
    """A row a check: a dot a student on a log scale, and a line at the factor that is asked for."""
    figure = new_figure(0.9 + 0.55 * len(found), WIDTH, layout="constrained")
    ax = figure.subplots()
    for row, speed in enumerate(found):
        offsets = _spread(len(speed.ratios))
        fast = [(ratio, row + shift) for ratio, shift in zip(speed.ratios, offsets, strict=True)]
        for reached, marker, colour in ((True, "o", BLUE), (False, "X", RED)):
            points = [point for point in fast if (point[0] >= speed.at_least) == reached]
            ax.plot(*zip(*points, strict=True), marker, color=colour, markersize=7, alpha=0.75) if points else None
        ax.plot([speed.at_least] * 2, [row - 0.4, row + 0.4], color=INK, linewidth=2)
        ax.text(speed.at_least, row - 0.43, f"asked: {speed.at_least:g}x", fontsize=SMALL, ha="center", va="bottom")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_yticks(range(len(found)), [speed.check for speed in found])
    ax.set_ylim(len(found) - 0.4, -0.85)
    ax.set_xlabel("times as fast as the baseline (dots: reached what was asked; crosses: below)")
    ax.grid(axis="x")
    ax.spines[["left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    said = [
        f"{speed.check}: asked {speed.at_least:g}x, {len(speed.ratios)} measured, "
        f"from {speed.ratios[0]:.3g}x to {speed.ratios[-1]:.3g}x, median {statistics.median(speed.ratios):.3g}x"
        for speed in found
    ]
    return Picture(figure, "Measured speedups, log scale. " + "; ".join(said) + ".")


def _spread(count: int) -> list[float]:
    """Small vertical offsets, so that equal values do not hide each other; the same for the same count."""
    return [((index * 0.618) % 1 - 0.5) * 0.5 for index in range(count)]
