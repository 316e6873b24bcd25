"""The pictures of the class report: pure functions from a tally to something that says in words what it shows."""

from __future__ import annotations

import html
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from unrolled_grader.judge.evidence import VERDICTS
from unrolled_grader.results.tally import TalliedPart

# Those of `unrolled.show.style`, which loads Matplotlib.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PINK, YELLOW, PALE = "#56B4E9", "#CC79A7", "#F0E442", "#E6E6E6"

BINS = 10
TALLEST = 6.0  # rem: the tallest bar of a histogram
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
HISTOGRAM_STYLE = """
.scores { display: inline-grid; grid-template-columns: repeat(10, 1.35rem) 1.6rem; text-align: center;
          align-content: start; }
.scores h3, .scores p { grid-column: 1 / -1; text-align: left; margin: .2rem 0; }
.scores span { display: block; margin: 0 1px; border: 1px solid #444; border-width: 0 1px; }
.scores small { text-align: left; } .scores small:nth-of-type(2) { grid-column: 6; }
.scores small:nth-of-type(3) { grid-column: 11; text-align: center; }
.up { display: flex; flex-direction: column-reverse; border-bottom: 1px solid #222; }
"""
BAR_STYLE = HISTOGRAM_STYLE + "".join(
    f".{name} {{ background: {css}; }}\n" for name, css in (BACKGROUNDS | SCORES).items()
)


def histogram(lesson: str, shares: Sequence[float], waiting: Sequence[float] = ()) -> str:
    """Return in HTML how many students reached which share of a lesson's points. The bar on the right is all points.

    Those of whom something waits stand below the line, at the share that they have so far: no bar counts them.
    """
    full = sum(share >= 1 for share in shares)
    above, below = _counts(share for share in shares if share < 1), _counts(waiting)
    unit = TALLEST / max(1, full, *above, *below)
    bars = "".join(_column("settled", count, unit) for count in above) + _column("all", full, unit)
    if waiting:
        bars += "".join(_column("waits", count, unit) for count in below) + _column("waits", 0, unit)
    ticks = "".join(f"<small>{tick}</small>" for tick in ("0", "50", "all"))
    median = f"median {'so far ' if waiting else ''}{100 * statistics.median([*shares, *waiting]):.0f} %"
    alt = f"Scores of {lesson}: {len(shares) + len(waiting)} students, {median}, {full} with all points, "
    alt += f"{sum(share == 0 for share in shares)} with none"
    if waiting:
        low, high = 100 * min(waiting), 100 * max(waiting)
        alt += f"; of {len(waiting)} something waits, they have {low:.0f} to {high:.0f} % so far"
    name, alt = html.escape(lesson), html.escape(alt)
    inside = f"<h3>{name}</h3>{bars}{ticks}<p>students by % of the points, {median}</p>"
    return f'<div class="scores" role="img" aria-label="{alt}.">{inside}</div>'


def _column(name: str, count: int, unit: float) -> str:
    """A bar with its number of students at its end, `unit` high for each."""
    bar = f'<span class="{name}" style="height: {count * unit:.3g}rem"></span>{count}' if count else ""
    return f'<div class="{"down" if name == "waits" else "up"}">{bar}</div>'


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
