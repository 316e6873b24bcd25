"""Near-copies across a class, for a person to look at. No student code is run.

Only the exercises' cells count, without the lines that were handed out. The library copydetect compares them
(winnowing, as MOSS does): names, comments and spacing are set aside, and every passage of at least PASSAGE characters
that stands in both is found. The library's own answers and the course's solution are compared with, too. Its report
shows the nearest pairs of students side by side; LESSON.csv beside it lists all pairs.
"""

from __future__ import annotations

import html
import inspect
import io
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib
from copydetect import CodeFingerprint, CopyDetector, compare_files
from nbformat import NotebookNode

from unrolled import checks
from unrolled.notebook import cells
from unrolled_grader.classroom import gradebook
from unrolled_grader.classroom.course import Course
from unrolled_grader.jobs import job
from unrolled_grader.jobs.record import csv_text, one_line, replace_file
from unrolled_grader.judge import intake, opening
from unrolled_grader.judge.outputs import in_sight
from unrolled_grader.receiving import collect
from unrolled_grader.receiving.received import Received
from unrolled_grader.results.inert import POLICY

PASSAGE = 25  # characters of the shortest passage that counts, after each name became one letter
SHORTEST = 80  # characters, counted likewise, below which answers are too short to tell anything: about five lines
LONGEST = 50_000  # characters of a student's answers to a lesson that are compared
TOP = 20  # pairs of students that the report shows, or more where they are as near
OPS, SOLUTION = "unrolled.ops", "the course's solution"
COLUMNS = ("first", "second", "in common")


@dataclass(frozen=True)
class WrittenCode:
    """The answers of one student to a lesson, or those of the library or the solution."""

    who: str
    text: str


@dataclass(frozen=True)
class ComparedPair:
    """Two works that were compared; `shares` say how much of each is in the other, from 0 to 1."""

    first: WrittenCode
    second: WrittenCode
    shares: tuple[float, float]

    @property
    def score(self) -> float:
        """How much of one is in the other: of the one that has more of it there."""
        return max(self.shares)


@dataclass(frozen=True)
class Found:
    """What was found in a lesson; pairs and references by falling score."""

    lesson: str
    works: tuple[WrittenCode, ...]
    pairs: tuple[ComparedPair, ...]
    references: tuple[ComparedPair, ...]  # each student's work beside the library's answers and beside the solution
    passed_over: tuple[tuple[str, str], ...]  # students who are not compared, and why
    report: str  # copydetect's own, as HTML

    @property
    def median(self) -> float:
        """The score of the pair in the middle: what honest answers have in common."""
        return statistics.median(pair.score for pair in self.pairs) if self.pairs else 0.0


def works(course: Course, lesson: str) -> tuple[list[WrittenCode], list[tuple[str, str]]]:
    """Return the students' answers to a lesson, and who is passed over with the reason. Nothing handed in raises."""
    specs, released = checks.lessons()[lesson], gradebook.released(course.directory, lesson)
    found, passed_over = [], []
    groups, met = Received(collect.home(course.submitted)).groups(), set[tuple[str, str]]()
    for handed in intake.find(course.submitted, {lesson: list(specs)}):
        if group := groups.get((handed.student, lesson, handed.digest)):
            if (group, handed.digest) in met:
                continue  # a group's notebook is compared once
            met.add((group, handed.digest))
        try:
            opened = opening.opened(intake.read(handed.path), lesson, specs)
            work = written(handed.student, job.sanitized(opened, released), released, specs)
        except Exception as error:  # damage of a kind that grading names as well
            passed_over.append((handed.student, str(error) or type(error).__name__))
        else:
            found.append(work)
    return found, passed_over


def references(course: Course, lesson: str) -> list[WrittenCode]:
    """Return the library's answers to a lesson, and the course's solution."""
    specs, released = checks.lessons()[lesson], gradebook.released(course.directory, lesson)
    file = Path(course.directory.root, course.directory.source_directory, lesson, f"{lesson}.ipynb")
    solution = written(SOLUTION, cells.read(file), released, specs)
    return [WrittenCode(OPS, "\n".join(map(source_of, specs.values()))), solution]


def written(who: str, nb: NotebookNode, released: NotebookNode, specs: Iterable[str]) -> WrittenCode:
    """Return what stands in the cells of these exercises, without the lines that were handed out."""
    given = {cells.grade_id(cell): cell.source for cell in released.cells}
    here = {cells.grade_id(cell): cell.source for cell in nb.cells if cell.cell_type == "code"}
    parts = "".join(own(here.get(name, ""), given.get(name, "")) for name in specs)
    return WrittenCode(who, "".join(f"{in_sight(line)}\n" for line in parts[:LONGEST].splitlines()))


def own(source: str, released: str) -> str:
    """Return the lines of a cell that were not handed out with it, nor are empty.

    Where a triple quote is open in them they have none: it would hide what follows.
    """
    before = {"", *(line.strip() for line in released.splitlines())}
    lines = (line for line in source[: LONGEST + len(released)].split("\n") if line.strip() not in before)
    text = "".join(f"{line}\n" for line in lines)
    is_open = any(text.count(quote) % 2 for quote in ('"""', "'''"))
    return text.replace('"""', "   ").replace("'''", "   ") if is_open else text


def source_of(spec: checks.Spec) -> str:
    """Return the source of every function of the library that answers an exercise."""
    sources = []
    for function in (spec.reference, *([spec.speed.baseline] if spec.speed else [])):
        try:
            sources.append(inspect.getsource(inspect.unwrap(getattr(function, "func", function))))
        except (OSError, TypeError):  # a callable object, or one that was made on the way
            continue
    return "\n".join(dict.fromkeys(sources))


def compare(
    lesson: str, found: Iterable[WrittenCode], passed_over: Iterable[tuple[str, str]], others: Iterable[WrittenCode]
) -> Found:
    """Compare every student's work with all others and with the references; answers that are too short are left out."""
    compared, missed = dict[WrittenCode, Any](), [*passed_over]
    for work in found:
        try:
            found_marks = fingerprint(work)
        except Exception as error:  # one student's code stops nobody else's comparison
            missed.append((work.who, f"its code cannot be read: {error}"))
            continue
        if len(found_marks.filtered_code) < SHORTEST:
            missed.append((work.who, "too little code of their own"))
        else:
            compared[work] = found_marks
    marks = compared | {other: fingerprint(other) for other in others}
    pairs = [_pair(marks, *both) for both in combinations(compared, 2)]
    beside = [_pair(marks, work, other) for work in compared for other in marks if other not in compared]
    pairs.sort(key=lambda pair: (-pair.score, pair.first.who))
    beside.sort(key=lambda pair: (-pair.shares[0], pair.first.who, pair.second.who))
    report = _report(compared, pairs[:TOP]) if compared else ""
    return Found(lesson, tuple(compared), tuple(pairs), tuple(beside), tuple(missed), report)


def fingerprint(work: WrittenCode) -> Any:
    """Return copydetect's fingerprint of a work."""
    return CodeFingerprint("answers.py", PASSAGE, 1, language="python", fp=io.StringIO(work.text))


def _pair(marks: Mapping[WrittenCode, Any], first: WrittenCode, second: WrittenCode) -> ComparedPair:
    _, shares, _ = compare_files(marks[first], marks[second])
    one, other = (min(float(share), 1.0) for share in shares)
    return ComparedPair(first, second, (one, other))


def _report(marks: Mapping[WrittenCode, Any], pairs: Sequence[ComparedPair]) -> str:
    """copydetect's report of these pairs, without what it loads from elsewhere: its style, and a script that folds.

    It puts names into HTML as they are.
    """
    matplotlib.use("agg")
    least = max(0.0, pairs[-1].score - 1e-6) if pairs else 1.0
    detector = CopyDetector(noise_t=PASSAGE, guarantee_t=PASSAGE, display_t=least, autoopen=False, silent=True)
    for work in dict.fromkeys(work for pair in pairs for work in (pair.first, pair.second)) or marks:
        name = html.escape(one_line(work.who), quote=False)
        detector.file_data[name] = marks[work]
        detector.add_file(name)
    detector.run()
    page = re.sub(r"<link[^>]*>|<script.*?</script>", "", detector.generate_html_report("return"))
    return page.replace("<head>", f"<head>{POLICY}", 1)


def write(folder: Path, found: Found) -> tuple[Path, Path]:
    """Write LESSON.csv, every pair, and LESSON.html, copydetect's report; return their paths."""
    rows = [_row(pair, pair.score) for pair in found.pairs]
    rows += [_row(pair, pair.shares[0]) for pair in found.references]
    pages = folder / f"{found.lesson}.csv", folder / f"{found.lesson}.html"
    for page, text in zip(pages, (csv_text([COLUMNS, *rows]), found.report), strict=True):
        replace_file(page, text)
    return pages


def _row(pair: ComparedPair, share: float) -> list[str]:
    return [one_line(pair.first.who), one_line(pair.second.who), f"{100 * share:.0f} %"]
