"""The pictures of the class report: pure functions from a tally to something that says in words what it shows."""

from __future__ import annotations

import html
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from matplotlib.ticker import FuncFormatter, MaxNLocator

from unrolled.show.picture import Picture
from unrolled.show.style import BLUE, GREEN, INK, ORANGE, PALE, PINK, RED, SKY, YELLOW, new_figure, styled
from unrolled_grader.judge.evidence import VERDICTS
from unrolled_grader.results.tally import TalliedPart

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
