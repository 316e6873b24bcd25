"""grades/report.html: how the class did, on one page that needs nothing but itself.

Pictures are data URIs with a text alternative. Everything that came from students is escaped. There is no script.
"""

from __future__ import annotations

import datetime
import html
import itertools
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import unrolled
from unrolled_grader.jobs import record
from unrolled_grader.jobs.record import Record
from unrolled_grader.results import figures, leaderboard
from unrolled_grader.results.inert import document, table
from unrolled_grader.results.leaderboard import Place
from unrolled_grader.results.tally import Notice, TalliedPart, Tally, tallied

STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
FEW = 6  # names that stand in a table without a fold
HOW = (
    "A judge in a process of its own sends secret inputs to each student's code, compares what comes back with its own "
    "results and times it with its own clock; what remains possible for code that sets out to cheat is written down in "
    "docs/threat-model.md."
)


def write(grades: Path, records: Sequence[Record]) -> Path:
    """Write grades/report.html from these records, and return its path."""
    boards = leaderboard.boards(
        records,
        leaderboard.parts(),
        lambda student, lesson: leaderboard.requested_name(record.notebook(grades, student, lesson)),
    )
    record.replace_file(file := grades / "report.html", page(records, boards))
    return file


def page(records: Iterable[Record], boards: Mapping[TalliedPart, Sequence[Place]] | None = None) -> str:
    """Return the report as one HTML document, with these leaderboards."""
    found = tallied(records)
    body = "".join(_sections(found, boards or {})) if found.submissions else "<p>Nothing has been graded yet.</p>"
    unsafe, stamp = sum(count for how, count in found.sandboxes.items() if how.startswith("NONE")), ""
    if unsafe:
        stamp = f'<p class="stamp">NO SANDBOX: {unsafe} of {found.submissions.total()} submissions ran with nothing '
        stamp += "between their code and this machine. Their scores prove nothing.</p>"
    return document("Class report", STYLE + figures.BAR_STYLE, f"{stamp}<h1>Class report</h1>{body}")


def _sections(found: Tally, boards: Mapping[TalliedPart, Sequence[Place]]) -> Iterator[str]:
    yield _head(found)
    yield from _scores(found)
    if found.verdicts:
        counts = sum(found.verdicts.values(), Counter[str]())
        labels = {verdict: f"{verdict} {counts[verdict]:,}" for verdict in figures.BACKGROUNDS if counts[verdict]}
        yield f"<h2>Checks</h2><p>How {counts.total():,} scored parts ended, and how many students passed each.</p>"
        yield f"{figures.legend(labels)}{figures.bars(found.verdicts)}"
    if found.speeds:
        yield "<h2>Speedups</h2><p>Of the students whose answer was right, so that it was timed.</p>"
        rows = []
        for part, (at_least, ratios) in found.speeds.items():
            spread = (f"{value:.3g}x" for value in (ratios[0], statistics.median(ratios), ratios[-1]))
            reached = sum(ratio >= at_least for ratio in ratios)
            rows.append([part.name, f"{at_least:g}x", str(len(ratios)), str(reached), *spread])
        yield _table(["check", "asked", "measured", "reached", "slowest", "median", "fastest"], rows, right=range(1, 7))
    yield from _leaderboards(boards)
    yield from _by_people(found)
    yield from _reasons(found)
    yield _machines(found)


def _scores(found: Tally) -> Iterator[str]:
    """A picture a lesson; what waits has a colour of its own."""
    pictures = (
        figures.histogram(lesson, found.shares.get(lesson, []), found.open.get(lesson, []))
        for lesson in sorted({*found.shares, *found.open})
    )
    labels = {"settled": "students by their share of the points", "all": "students with all points"}
    if found.open:
        labels["waits"] = (
            "students of whom something waits, at what they have so far: an answer to be read, or a deferred part"
        )
    yield f'<h2>Scores</h2>{figures.legend(labels)}<div class="pictures">{"".join(pictures)}</div>'


def _head(found: Tally) -> str:
    shares, waiting = ([*itertools.chain(*lessons.values())] for lessons in (found.shares, found.open))
    known = [*shares, *waiting]
    facts = {
        "students": f"{len(found.students)}",
        "submissions": f"{found.submissions.total()}",
        "median so far" if waiting else "median score": f"{100 * statistics.median(known):.0f} %" if known else "–",
        "full scores": f"{sum(share >= 1 for share in shares)}",
        "waiting": f"{len(waiting)}",
        "to look at": f"{sum(map(len, found.look.values()))}",
        "deferred": f"{sum(map(len, found.deferred.values()))}",
    }
    items = "".join(f"<li><b>{value}</b>{name}</li>" for name, value in facts.items())
    when = datetime.datetime.now().astimezone().strftime("%d %B %Y, %H:%M")
    about = html.escape(f"{', '.join(sorted(found.submissions))} · {when} · Unrolled {unrolled.__version__}")
    return f'<p class="quiet">{about}</p><ul class="facts">{items}</ul>'


def _leaderboards(boards: Mapping[TalliedPart, Sequence[Place]]) -> Iterator[str]:
    """Names that learners chose, and nothing that says who they are."""
    if boards:
        yield "<h2>Leaderboard</h2><p>Those who asked for a place, under names of their own, by the median of what was "
        yield "measured: each against the reference on the same machine in the same run.</p>"
    for part, places in boards.items():
        rows = [
            [f"{rank or ''}", name, f"{ratio:.3g}x" if ratio else "not settled yet"] for rank, name, ratio in places
        ]
        yield f"<h3>{_text(f'{part.lesson}, {part.name}')}</h3>{_table(['', 'name', 'faster'], rows, right=[0, 2])}"


def _by_people(found: Tally) -> Iterator[str]:
    """What no machine decides: answers in words, and what lateness took."""
    if found.words:
        rows = [
            [lesson, name, *(str(counts[verdict]) for verdict in ("marked", "waits", "unanswered"))]
            for (lesson, name), counts in found.words.items()
        ]
        head = ["lesson", "answer in words", "marked", "to be read", "not answered"]
        yield f"<h2>In words</h2>{_table(head, rows, right=(2, 3, 4))}"
    if found.late:
        yield f"<h2>Late</h2><p>What is said here is taken off the points above.</p>{_items(found.late)}"


def _reasons(found: Tally) -> Iterator[str]:
    """What a person should know, grouped: one row for all students whom the same concerns."""
    nothing = "<p>Nothing: every submission opened, every speed was settled.</p>"
    yield f"<h2>To look at</h2>{_items(found.look) if found.look else nothing}"
    if found.deferred:
        yield (
            "<h2>Deferred</h2><p>These points are neither lost nor given. Grade again where the machine has what is "
            f"missing, and they are completed.</p>{_items(found.deferred)}"
        )
    if found.repaired:
        count = sum(map(len, found.repaired.values()))
        about = f"<summary>{count} notebooks had lost cells or their marks; they were graded after repair</summary>"
        yield f"<h2>Repaired</h2><details>{about}{_items(found.repaired)}</details>"


def _items(items: Mapping[Notice, Sequence[str]]) -> str:
    rows = []
    for (lesson, what, why), students in items.items():
        names = ", ".join(map(_text, students))
        if len(students) > FEW:
            names = f"<details><summary>{len(students)} students</summary>{names}</details>"
        rows.append((f'<span class="quiet">{_text(lesson)}</span><br>{_text(what)}', _text(why), names))
    return table(("what", "why", "students"), rows)


def _machines(found: Tally) -> str:
    """Where, and how the code was held. Ratios are comparable between machines, seconds are not."""
    tables = "".join(
        _table([what, "submissions"], [[name, str(count)] for name, count in counts.most_common()], right=[1])
        for what, counts in (("machine", found.machines), ("code was held by", found.sandboxes))
        if counts
    )
    return f'<h2>Machines</h2>{tables}<p class="quiet">{HOW}</p>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> str:
    """A table; every cell is escaped. Columns in `right` are numbers."""
    return table([_text(cell) for cell in head], (map(_text, row) for row in rows), right)


def _text(text: str) -> str:
    """Escaped, with the places where a long name may go on in the next line."""
    return html.escape(record.one_line(text)).replace("_", "_<wbr>").replace("/", "/<wbr>")
