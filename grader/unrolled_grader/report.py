"""grades/report.html: how the class did, on one page that needs nothing but itself.

Pictures are data URIs with a text alternative. Everything that came from students is escaped.
"""

from __future__ import annotations

import datetime
import html
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import unrolled
from unrolled_grader import figures, record
from unrolled_grader.record import Record

STYLE = """
body { font: 15px/1.5 "DejaVu Sans", Verdana, sans-serif; color: #222; background: #fff; max-width: 900px;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .4rem; }
p { margin: .3rem 0 .8rem; } .quiet { color: #595959; font-size: .87rem; }
.facts { display: flex; flex-wrap: wrap; gap: .6rem 2.4rem; margin: 1.2rem 0; padding: 0; list-style: none; }
.facts b { display: block; font-size: 1.5rem; line-height: 1.2; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #e6e6e6;
         overflow-wrap: anywhere; }
th { border-bottom-color: #767676; } td.number, th.number { text-align: right; }
.note { border-left: 4px solid #D55E00; padding: .3rem .8rem; background: #fdf3ec; }
img { display: block; } summary { cursor: pointer; } @media print { details { display: none; } }
"""
UNSAFE = (
    "These scores come from checks that ran in the same process as the students' code. They cannot be earned by "
    "printed text or by silence, but code written to cheat can still reach them. Look at what seems too good."
)


def write(grades: Path) -> Path:
    """Make grades/report.html from all records."""
    file = grades / "report.html"
    record.replace_file(file, page(record.load_all(grades)))
    return file


def page(records: Sequence[Record]) -> str:
    """The report as one HTML document."""
    body = "".join(_sections(records)) if records else "<p>Nothing has been graded yet.</p>"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Class report</title><style>{STYLE}</style></head>\n"
        f"<body><h1>Class report</h1>{body}</body></html>\n"
    )


def _sections(records: Sequence[Record]) -> Iterable[str]:
    counts, speeds = figures.part_counts(records), figures.speeds(records)
    yield _head(records)
    yield f"<h2>Scores</h2>{figures.histogram(records).html()}"
    if counts:
        yield f"<h2>Checks</h2>{figures.pass_rates(counts).html()}{_count_table(counts)}"
    if speeds:
        yield "<h2>Speedups</h2><p>Each mark is a student whose answer was right, so that it was timed.</p>"
        yield f"{figures.speedups(speeds).html()}{_speed_table(speeds)}"
    yield _flagged(records)
    yield _repaired(records)
    yield _machines(records)
    yield f'<p class="note">{UNSAFE}</p>'


def _head(records: Sequence[Record]) -> str:
    lessons = sorted({kept.lesson for kept in records})
    shares = [100 * kept.points / kept.max_points for kept in records if kept.max_points]
    facts = {
        "students": f"{len({kept.student for kept in records})}",
        "submissions": f"{len(records)}",
        "median score": f"{statistics.median(shares):.0f} %" if shares else "–",
        "full scores": f"{sum(share == 100 for share in shares)}",
        "to look at": f"{len(_items(records))}",
    }
    items = "".join(f"<li><b>{value}</b>{name}</li>" for name, value in facts.items())
    when = datetime.datetime.now().astimezone().strftime("%d %B %Y, %H:%M")
    about = html.escape(f"{', '.join(lessons)} · {when} · Unrolled {unrolled.__version__}")
    return f'<p class="quiet">{about}</p><ul class="facts">{items}</ul>'


def _count_table(counts: Sequence[figures.PartCount]) -> str:
    present = [verdict for verdict in figures.ORDER if any(count.verdicts[verdict] for count in counts)]
    rows = [[count.part, *(str(count.verdicts[verdict] or "") for verdict in present)] for count in counts]
    return f"<details><summary>as a table</summary>{_table(['check', *present], rows, numbers=True)}</details>"


def _speed_table(speeds: Sequence[figures.Speeds]) -> str:
    head = ["check", "asked", "measured", "slowest", "median", "fastest"]
    rows = [
        [
            speed.check,
            f"{speed.at_least:g}x",
            str(len(speed.ratios)),
            *(f"{value:.3g}x" for value in (speed.ratios[0], statistics.median(speed.ratios), speed.ratios[-1])),
        ]
        for speed in speeds
    ]
    return f"<details><summary>as a table</summary>{_table(head, rows, numbers=True)}</details>"


def _items(records: Sequence[Record]) -> list[list[str]]:
    """What a person should look at: student, lesson, part, why."""
    items = []
    for kept in records:
        if kept.problem:
            items.append([kept.student, kept.lesson, "not graded", kept.problem])
            continue
        flagged = [score for score in kept.scores if score.flag or score.verdict in ("inconclusive", "deferred")]
        items += [[kept.student, kept.lesson, score.part, score.flag or score.detail] for score in flagged]
    return items


def _flagged(records: Sequence[Record]) -> str:
    items = _items(records)
    if not items:
        return "<h2>To look at</h2><p>Nothing: every submission opened, and every speed was settled.</p>"
    return f"<h2>To look at</h2>{_table(['student', 'lesson', 'what', 'why'], items)}"


def _repaired(records: Sequence[Record]) -> str:
    items = [[kept.student, kept.lesson, "; ".join(kept.repairs)] for kept in records if kept.repairs]
    if not items:
        return ""
    about = f"<summary>{len(items)} notebooks had lost cells or their marks; they were graded after repair</summary>"
    return f"<h2>Repaired</h2><details>{about}{_table(['student', 'lesson', 'what was done'], items)}</details>"


def _machines(records: Sequence[Record]) -> str:
    """Where and how long. Ratios are comparable between machines, seconds are not."""
    machines = {
        f"{facts['system']}, {facts['cpu']}, {facts['cores']} cores, GPU {facts['gpu'] or 'none'}, "
        f"Python {facts['python']}, NumPy {facts['numpy']}"
        for facts in (kept.machine for kept in records)
    }
    seconds = sum(kept.seconds for kept in records)
    lines = "".join(f"<br>{html.escape(text)}" for text in sorted(machines))
    return f"<h2>Machine</h2><p>{len(records)} submissions were judged in {seconds / 60:.1f} minutes on{lines}</p>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = False) -> str:
    """A table; every cell is escaped. With `numbers`, all columns but the first stand right."""
    classes = ["", *([' class="number"' if numbers else ""] * (len(head) - 1))]
    top = "".join(f"<th{kind}>{html.escape(cell)}</th>" for kind, cell in zip(classes, head, strict=True))
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{kind}>{html.escape(record.one_line(cell))}</td>" for kind, cell in zip(classes, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
