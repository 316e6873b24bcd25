"""The pictures of the class report: pure functions from a tally to something that says in words what it shows."""

from __future__ import annotations

import html
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from unrolled.show.picture import Picture
from unrolled.show.style import BLUE, GREEN, INK, ORANGE, PALE, PINK, RED, SKY, SMALL, YELLOW, new_figure, styled, tint
from unrolled_grader.judge.evidence import VERDICTS
from unrolled_grader.results.tally import Speeds, TalliedPart

BINS = 10
_STRIPES = "repeating-linear-gradient({}deg, #0000 0 4px, #0005 4px 5.5px), "
_RISING, _UPRIGHT, _FALLING = map(_STRIPES.format, (45, 90, 135))
_DOTS = "radial-gradient(circle at 3px 3px, #0007 1.1px, #0000 1.3px) 0 0 / 6px 6px, "
BACKGROUNDS = {
    "pass": GREEN,
    "inconclusive": _DOTS + SKY,
    "deferred": _UPRIGHT + YELLOW,
    "fail": _RISING + ORANGE,
    "crashed": _RISING + _FALLING + RED,
    "timeout": _FALLING + PINK,
    "missing": PALE,
}
"""As CSS: a texture over the colour, which never carries meaning alone."""
assert set(BACKGROUNDS) == set(VERDICTS)
SCORES = {"settled": BLUE, "all": _FALLING.replace("#0005", "#fff") + GREEN, "waits": _UPRIGHT + YELLOW}
"""As CSS: what the bars of `histogram` stand for."""
BAR_STYLE = "".join(f".{name} {{ background: {css}; }}\n" for name, css in (BACKGROUNDS | SCORES).items())


@styled()
def histogram(lesson: str, shares: Sequence[float], waiting: Sequence[float] = ()) -> Picture:
    """Draw how many students reached which share of a lesson's points. The bar on the right is all points.

    Those of whom something waits stand below the line, at the share that they have so far: no bar counts them.
    """
    figure = new_figure(2.0, 2.75, layout="constrained")
    ax = figure.subplots()
    counts, full = _counts(share for share in shares if share < 1), sum(share >= 1 for share in shares)
    ax.bar(range(BINS), counts, width=1, align="edge", color=BLUE, edgecolor="white")
    ax.bar(BINS + 0.25, full, width=1, align="edge", color=GREEN, edgecolor="white", hatch="//")
    if waiting:
        depths = [-count for count in _counts(waiting)]
        ax.bar(range(BINS), depths, width=1, align="edge", color=YELLOW, edgecolor=INK, linewidth=0.5, hatch="|||")
        ax.axhline(0, color=INK, linewidth=1)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):g}"))
    ax.set_xticks([0, BINS / 2, BINS + 0.75], ["0", "50", "all"])
    median = f"median {'so far ' if waiting else ''}{100 * statistics.median([*shares, *waiting]):.0f} %"
    ax.set_xlabel(f"% of the points,{chr(10) if waiting else ' '}{median}")
    ax.set_xlim(-0.2, BINS + 1.5)
    ax.set_title(lesson)
    ax.set_ylabel("students")
    ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    alt = f"Scores of {lesson}: {len(shares) + len(waiting)} students, {median}, {full} with all points, "
    alt += f"{sum(share == 0 for share in shares)} with none"
    if waiting:
        low, high = 100 * min(waiting), 100 * max(waiting)
        alt += f"; of {len(waiting)} something waits, they have {low:.0f} to {high:.0f} % so far"
    return Picture(figure, f"{alt}.")


def _counts(shares: Iterable[float]) -> list[int]:
    """How many shares lie in each bin."""
    counts = Counter(min(int(share * BINS), BINS - 1) for share in shares)
    return [counts[place] for place in range(BINS)]


def bars(verdicts: Mapping[TalliedPart, Counter[str]]) -> str:
    """Return a bar a part in HTML: its verdicts side by side, with the number that passed in words."""
    lines, lesson = list[str](), None
    for part, counts in verdicts.items():
        if part.lesson != lesson:
            lesson = part.lesson
            lines.append(f"<h3>{html.escape(lesson)}</h3>")
        given = {verdict: counts[verdict] for verdict in BACKGROUNDS if counts[verdict]}
        counted = ", ".join(f"{count} {verdict}" for verdict, count in given.items())
        segments = (
            f'<span class="{verdict}" style="width: {100 * count / counts.total():.3g}%"></span>'
            for verdict, count in given.items()
        )
        lines.append(
            f'<div class="part"><span class="name">{html.escape(part.name).replace("/", "/<wbr>")}</span>'
            f'<span class="bar" role="img" aria-label="{counted}" title="{counted}">{"".join(segments)}</span>'
            f'<span class="passed">{counts["pass"]} of {counts.total() - counts["deferred"]}</span></div>'
        )
    return "".join(lines)


def legend(labels: Mapping[str, str]) -> str:
    """Return in HTML what colours and textures stand for, by the names that they have in the page's style."""
    items = (f'<li><span class="{name}"></span>{html.escape(text)}</li>' for name, text in labels.items())
    return f'<ul class="legend">{"".join(items)}</ul>'


@styled()
def speedups(found: Mapping[TalliedPart, Speeds]) -> Picture:
    """Draw a row a check: a mark a student on a log scale, and a line at the factor that is asked for."""
    figure = new_figure(0.8 + 0.62 * len(found), 8.6, layout="constrained")
    ax = figure.subplots()
    for row, speeds in enumerate(found.values()):
        _speed_row(ax, row, speeds)
    _log_axis(ax, [ratio for speeds in found.values() for ratio in (*speeds.ratios, speeds.at_least)])
    ax.set_yticks(range(len(found)), [part.name for part in found])
    ax.set_ylim(len(found) - 0.4, -0.8)
    ax.set_xlabel("times as fast as the baseline")
    ax.grid(axis="x")
    ax.spines[["left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    summaries = [
        f"{part.name}: asked {speeds.at_least:g}x, {len(speeds.ratios)} measured, from {speeds.ratios[0]:.3g}x to "
        f"{speeds.ratios[-1]:.3g}x, median {statistics.median(speeds.ratios):.3g}x"
        for part, speeds in found.items()
    ]
    return Picture(figure, "Measured speedups, log scale. " + "; ".join(summaries) + ".")


def _speed_row(ax: Axes, row: int, speeds: Speeds) -> None:
    many = len(speeds.ratios) > 40
    # small vertical offsets, so that equal values do not hide each other; the same for the same count
    marks = [(ratio, row + ((index * 0.618) % 1 - 0.5) * 0.5) for index, ratio in enumerate(speeds.ratios)]
    for reached, marker, colour in ((True, "o", BLUE), (False, "X", RED)):
        chosen = [mark for mark in marks if (mark[0] >= speeds.at_least) == reached]
        if chosen:
            ax.plot(*zip(*chosen, strict=True), marker, color=colour, markersize=4 if many else 7, alpha=0.7, mew=0)
    ax.plot([speeds.at_least] * 2, [row - 0.36, row + 0.36], color=INK, linewidth=2)
    ax.text(speeds.at_least, row - 0.39, f"asked: {speeds.at_least:g}x", fontsize=SMALL, ha="center", va="bottom")
    if row % 2:
        ax.axhspan(row - 0.5, row + 0.5, color=tint(PALE, 0.35), zorder=0)


def _log_axis(ax: Axes, values: Sequence[float]) -> None:
    """1, 2, 5, 10 … as far as the values reach, or only powers of ten where that would be crowded."""
    low, high = math.log10(min(values)) - 0.12, math.log10(max(values)) + 0.12
    steps = (1, 2, 5) if high - low < 2.5 else (1,)
    ticks = [step * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for step in steps]
    ax.set_xscale("log")
    ax.set_xlim(10**low, 10**high)
    ax.xaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= math.log10(tick) <= high]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
