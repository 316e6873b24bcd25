"""The pages of `unrolled similar`: a lesson's pairs as a picture and a list, and each pair side by side.

The pages need nothing but themselves and have no script. Everything that came from students is escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from unrolled.show.charts import chart
from unrolled.show.picture import Picture
from unrolled.show.style import BLUE, GREY, INK, ORANGE, SMALL, styled
from unrolled_grader.jobs.record import one_line, replace_file
from unrolled_grader.judge.outputs import in_sight
from unrolled_grader.results import near_copies
from unrolled_grader.results.inert import document, table
from unrolled_grader.results.near_copies import OPS, PASSAGE, SOLUTION, TOP, ComparedPair, Found, Side

SHOWN = 15  # pairs in the picture
NAME = 18  # characters of a name in the picture
PAGE = re.compile(r"\d{3}\.html")
STYLE = """
body { font: 15px/1.5 "DejaVu Sans", Verdana, sans-serif; color: #222; background: #fff; max-width: 900px;
       margin: 1.5rem auto 4rem; padding: 0 1rem; overflow-wrap: anywhere; }
body.pair { max-width: 1500px; }
h1 { font-size: 1.6rem; margin: 0; } a { color: #0059a8; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; border-top: 2px solid #0072b2; padding-top: .5rem; }
h3 { font-size: .95rem; margin: 1.2rem 0 .3rem; } p, ul { margin: .3rem 0 .8rem; }
.quiet { color: #595959; font-size: .87rem; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid #e0e0e0; }
th { border-bottom-color: #767676; } td.number, th.number { text-align: right; }
img { display: block; } .wide { overflow-x: auto; } .wide img { min-width: 620px; }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: .4rem 1.2rem; align-items: start; }
.sides h2 { margin: 0; } .sides h3 { grid-column: 1 / -1; }
pre { margin: 0; white-space: pre-wrap; font: 13px/1.5 "DejaVu Sans Mono", Consolas, monospace; background: #f6f6f6;
      border: 1px solid #e0e0e0; border-radius: 3px; padding: .5rem .5rem .5rem 0; min-width: 0; }
pre span { display: block; padding-left: .6rem; border-left: 4px solid transparent; min-height: 1.5em; }
pre .same { border-left-color: #b3261e; font-weight: bold; }
mark { color: inherit; background: #fff0c2; border-bottom: 1px solid #8a6d00; }
@media (max-width: 700px) {
  .sides { grid-template-columns: 1fr; }
  pre::before { content: attr(data-who); display: block; padding: 0 0 .3rem .85rem; font-weight: bold; }
}
@media print { tr, pre span { break-inside: avoid; } }
"""


def write(folder: Path, found: Found) -> Path:
    """Write LESSON.html and LESSON/001.html … for the pairs in `folder`, over earlier ones; return the first's path."""
    pages = folder / found.lesson
    pages.mkdir(parents=True, exist_ok=True)
    nearest = [pair for references in near_copies.by_student(found.references).values() for pair in references.values()]
    shown = [*found.pairs[:TOP], *nearest]
    names = {id(pair): f"{number:03}.html" for number, pair in enumerate(shown, 1)}
    for old in pages.iterdir():
        if PAGE.fullmatch(old.name) and old.name not in names.values():
            old.unlink()
    for pair in shown:
        replace_file(pages / names[id(pair)], pair_page(found, pair))
    body = "".join(_sections(found, {key: f"{found.lesson}/{name}" for key, name in names.items()}))
    title = f"Similar answers: {one_line(found.lesson)}"
    page = folder / f"{found.lesson}.html"
    replace_file(page, document(title, STYLE, f"<h1>{html.escape(title)}</h1>{body}"))
    return page


def pair_page(found: Found, pair: ComparedPair) -> str:
    """Return the page with two works side by side, exercise by exercise."""
    first, second = pair.first, pair.second
    heads = "".join(f"<h2>{_text(side.work.who)}</h2>" for side in (first, second))
    notes = "".join(f'<p class="quiet">{_share(side)}</p>' for side in (first, second))
    rows = zip(near_copies.marked(first, second.work), near_copies.marked(second, first.work), strict=True)
    told = ((name, one, two) for (name, one), (_, two) in rows if one or two)
    exercises = "".join(f"<h3>{_text(name)}</h3>{_code(first, one)}{_code(second, two)}" for name, one, two in told)
    title = one_line(f"{first.work.who} and {second.work.who}, {found.lesson}")
    body = (
        f"<h1>{html.escape(title)}</h1>"
        f'<p><a href="../{html.escape(found.lesson)}.html">All pairs of the lesson, and what the numbers mean</a></p>'
        f"<p>Yellow, underlined: a passage of {PASSAGE} characters or more that stands in both, whatever its names. "
        "Bold with a red line: the same to the letter. Text as handed out is left out.</p>"
        f'<div class="sides">{heads}{notes}{exercises}</div>'
    )
    return document(title, STYLE, body, kind="pair")


def _sections(found: Found, links: dict[int, str]) -> Iterator[str]:
    """What stands on a lesson's page; `links` leads from a pair's id to its page."""
    yield f'<p class="quiet">{len(found.works)} students, {len(found.pairs)} pairs. No student code was run.</p>'
    if found.pairs:
        yield f'<div class="wide">{ranking(found).html()}</div>'
    yield _meaning(found)
    if found.pairs:
        yield f"<h2>The nearest pairs</h2>{_pairs(found.pairs[:TOP], links)}"
    if found.references:
        yield _near(found, links)
    if found.passed_over:
        rows = [[_text(who), _text(why)] for who, why in found.passed_over]
        yield f"<h2>Not compared</h2>{table(['student', 'why'], rows)}"


def _meaning(found: Found) -> str:
    half = f"Half of this class's pairs have {_percent(found.median)} or more in common. "
    return (
        "<h2>What the numbers mean</h2><p><b>In common</b> is the part of one student's own code that stands in the "
        f"other's as well, in passages of at least {PASSAGE} characters. Names, comments and spacing are set aside "
        "first, and so is all text that was handed out. Of the two students, the one with the larger part counts. "
        "<b>To the letter</b> is the part of the lines that are the same in names and comments too.</p>"
        "<p><b>It is no proof of copying.</b> The exercises are short and have few good answers, so honest answers "
        f"look alike. {half if len(found.pairs) > 1 else ''}What asks for a look is a pair far above the others, and "
        "above all the same odd name, comment or mistake on both sides. The number does not say who wrote first, nor "
        "whether they were allowed to work together. Read both, then talk with both.</p>"
        "<p><b>A low number proves nothing either.</b> Rewritten code, code from outside of this class and an answer "
        "that somebody else explained are not found.</p>"
    )


def _pairs(pairs: Sequence[ComparedPair], links: dict[int, str]) -> str:
    rows = []
    for number, pair in enumerate(pairs, 1):
        who = f"{_text(pair.first.work.who)}, {_text(pair.second.work.who)}"
        rows.append([str(number), _link(links, pair, who), _percent(pair.score), _percent(pair.letters)])
    return table(["", "students", "in common", "to the letter"], rows, numbers=(2, 3))


def _link(links: dict[int, str], pair: ComparedPair, text: str) -> str:
    return f'<a href="{html.escape(links[id(pair)])}">{text}</a>'


def _near(found: Found, links: dict[int, str]) -> str:
    """Who is near the library's own answers, or the course's solution."""
    rows = []
    for who, nearest in near_copies.by_student(found.references).items():
        both = [nearest[name] for name in (OPS, SOLUTION) if name in nearest]
        cells = [_link(links, pair, _percent(pair.first.share)) for pair in both]
        letters = max(pair.first.same_lines / max(len(pair.first.work.lines), 1) for pair in nearest.values())
        rows.append([_text(who), *cells, _percent(letters)])
    return (
        f"<h2>Near {OPS}</h2><p>The part of a student's own code that stands in the library's answers to these "
        "exercises, and in the course's solution. Anybody can read the library's source, and the hints lead to code "
        "like the solution's: the same lines to the letter tell more than the part in common.</p>"
        f"{table(['student', OPS, _text(SOLUTION), 'to the letter'], rows, numbers=(1, 2, 3))}"
    )


@styled()
def ranking(found: Found) -> Picture:
    """Draw the nearest pairs as bars, a line at the pair in the middle, a diamond at what is the same to the letter."""
    pairs = found.pairs[:SHOWN]
    both = ((_short(pair.first.work.who), _short(pair.second.work.who)) for pair in pairs)
    names = [f"{one}, {two}  {number}" for number, (one, two) in enumerate(both, 1)]
    left = min(3.6, 0.4 + 0.085 * max(map(len, names)))
    figure, axes = chart(0.34 * len(pairs) + 1.25, left, 0.7, top=0.5)
    rows = range(len(pairs))
    letters = [100 * pair.letters for pair in pairs]
    axes.barh(rows, [100 * pair.score for pair in pairs], color=BLUE, edgecolor=INK, linewidth=0.5, height=0.62)
    axes.plot(letters, rows, "D", color=ORANGE, mec=INK, mew=0.7, clip_on=False, zorder=3)
    points: dict[str, Any] = {"textcoords": "offset points", "size": SMALL}
    for row, pair in enumerate(pairs):
        axes.annotate(_percent(pair.score), (100, row), (10, 0), va="center", **points)
    axes.axvline(100 * found.median, color=GREY, linestyle="--", linewidth=1.4)
    middle = f"the pair in the middle: {_percent(found.median)}"
    axes.annotate(middle, (100 * found.median, 1), (4, 4), xycoords=("data", "axes fraction"), **points)
    axes.set_xlim(0, 100)
    axes.set_ylim(len(pairs) - 0.45, -0.55)
    axes.set_yticks(rows, names, size=10, parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x")
    axes.set_xlabel("% in common (bar), % of lines the same to the letter (diamond)")
    said = "; ".join(
        f"{one_line(pair.first.work.who)} and {one_line(pair.second.work.who)}: {_percent(pair.score)}, "
        f"to the letter {_percent(pair.letters)}"
        for pair in pairs
    )
    return Picture(
        figure,
        f"The {len(pairs)} nearest of {len(found.pairs)} pairs in {found.lesson}. "
        f"The pair in the middle has {_percent(found.median)} in common. {said}.",
    )


def _share(side: Side) -> str:
    lines = len(side.work.lines)
    return f"{_percent(side.share)} of this code is in the other; {side.same_lines} of {lines} lines to the letter"


def _code(side: Side, lines: list[tuple[bool, list[tuple[bool, str]]]]) -> str:
    shown = "".join(
        f"<span{' class=same' if same else ''}>"
        + "".join(f"<mark>{_plain(text)}</mark>" if both else _plain(text) for both, text in pieces)
        + "</span>"
        for same, pieces in lines
    )
    return f'<pre data-who="{_text(side.work.who)}">{shown}</pre>'


def _short(name: str) -> str:
    """A name in the picture, as far as its font has the letters; the table has them all."""
    name = one_line(name).encode("latin-1", "replace").decode("latin-1")
    return name if len(name) <= NAME else f"{name[: NAME - 1]}…"


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def _plain(text: str) -> str:
    return html.escape(in_sight(text.rstrip("\r\n")))


def _text(text: str) -> str:
    return html.escape(one_line(text))
