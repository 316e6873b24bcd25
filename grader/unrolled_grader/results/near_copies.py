"""Near-copies across a class, for a person to look at. No student code is run.

Only the exercises' cells count, without the text that was handed out. The library copydetect compares them (winnowing,
as MOSS does): names, comments and spacing are set aside, and every passage of at least PASSAGE characters that stands
in both is found. The library's own answers and the course's solution are compared with, too. Its report shows the
nearest pairs side by side; LESSON.csv beside it lists all pairs, and in which exercises they agree.
"""

from __future__ import annotations

import ast
import difflib
import html
import inspect
import io
import re
import statistics
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from copydetect import CodeFingerprint, CopyDetector
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
TELLING = 12  # characters of the shortest line whose sameness to the letter tells anything
TOP = 20  # pairs of students that the report shows, and as many beside the library or the solution
OPS, SOLUTION = "unrolled.ops", "the course's solution"
COLUMNS = ("first", "second", "in common", "to the letter", "exercises")


@dataclass(frozen=True, eq=False)
class WrittenCode:
    """The answers of one student to a lesson, or those of the library or the solution."""

    who: str
    parts: tuple[tuple[str, str], ...]  # the exercises' names and the code written for each, in the lesson's order

    @property
    def key(self) -> str:
        """What the report calls it. It puts names into HTML as they are."""
        return html.escape(one_line(self.who), quote=False)

    @cached_property
    def text(self) -> str:
        """All of it, each exercise below a comment with its name, which the comparison passes over."""
        return "".join(f"# {name}\n{_closed(part)}" for name, part in self.parts)

    @cached_property
    def lines(self) -> list[str]:
        """The lines that tell something, without the space around them."""
        lines = (line.strip() for _, part in self.parts for line in part.split("\n"))
        return [line for line in lines if len(line) >= TELLING]


@dataclass(frozen=True)
class ComparedPair:
    """Two works that were compared. Shares are from 0 to 1."""

    first: WrittenCode
    second: WrittenCode
    shares: tuple[float, float]  # how much of each is in the other
    exercises: Mapping[str, float]  # of each exercise in which they agree: how much of it is in the other

    @property
    def score(self) -> float:
        """How much of one is in the other: of the one that has more of it there."""
        return max(self.shares)

    @property
    def letters(self) -> float:
        """What part of the lines of one is in the other to the letter: of the one with the larger part."""
        ours, theirs = Counter(self.first.lines), Counter(self.second.lines)
        return (ours & theirs).total() / max(min(ours.total(), theirs.total()), 1)


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


class _Detector(CopyDetector):  # type: ignore[misc]
    """copydetect with works in place of files."""

    similarity_matrix: Any

    def __init__(self, works: Mapping[WrittenCode, Any], others: Mapping[WrittenCode, Any]) -> None:
        super().__init__(noise_t=PASSAGE, guarantee_t=PASSAGE, display_t=0.0, autoopen=False, silent=True)
        self.shown: Sequence[ComparedPair] = ()  # those that the report shows side by side
        for kind, some in (("testref", works), ("ref", others)):
            for work, marks in some.items():
                self.file_data[work.key] = marks
                self.add_file(work.key, kind)

    def place(self, first: WrittenCode, second: WrittenCode) -> tuple[int, int]:
        """Return where a pair stands in the matrix."""
        return self.test_files.index(first.key), self.ref_files.index(second.key)

    def get_copied_code_list(self) -> list[Any]:
        """Return what the report shows of pairs: highlighting all of them would take minutes."""
        every = self.similarity_matrix
        self.similarity_matrix = np.full_like(every, -1.0)
        for pair in self.shown:
            place = self.place(pair.first, pair.second)
            self.similarity_matrix[place] = every[place]
        found: list[Any] = super().get_copied_code_list()
        self.similarity_matrix = every
        return found


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
    return [WrittenCode(OPS, tuple((name, source_of(spec)) for name, spec in specs.items())), solution]


def written(who: str, nb: NotebookNode, released: NotebookNode, specs: Iterable[str]) -> WrittenCode:
    """Return what stands in the cells of these exercises, without what was handed out."""
    given = {cells.grade_id(cell): cell.source for cell in released.cells}
    here = {cells.grade_id(cell): cell.source for cell in nb.cells if cell.cell_type == "code"}
    parts, room = list[tuple[str, str]](), LONGEST
    for name in specs:
        answer = own(here.get(name, ""), given.get(name, ""))[:room]
        parts.append((name, "".join(f"{in_sight(line)}\n" for line in answer.splitlines())))
        room -= len(parts[-1][1])
    return WrittenCode(who, tuple(parts))


def own(source: str, released: str) -> str:
    """Return the lines of a cell that were not handed out with it, nor are docstrings, empty, or marks of the build."""
    lines, before = _without_docstrings(source[: LONGEST + len(released)]), _without_docstrings(released)
    matcher = difflib.SequenceMatcher(None, [line.strip() for line in before], [line.strip() for line in lines], False)
    same = {place for block in matcher.get_matching_blocks() for place in range(block.b, block.b + block.size)}
    kept = [line for place, line in enumerate(lines) if place not in same and line.strip()]
    return "".join(f"{line}\n" for line in kept if "BEGIN SOLUTION" not in line and "END SOLUTION" not in line)


def _without_docstrings(source: str) -> list[str]:
    """The lines without docstrings: what is left of one, where a part was handed out, would read as an open string."""
    lines = source.split("\n")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as an invalid escape sequence
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return lines
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node, clean=False) is not None:
            text, *others = node.body
            if not others or others[0].lineno > (text.end_lineno or 0):
                lines[text.lineno - 1 : text.end_lineno] = [""] * ((text.end_lineno or 0) - text.lineno + 1)
    return lines


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
            marks = fingerprint(work)
        except Exception as error:  # one student's code stops nobody else's comparison
            missed.append((work.who, f"its code cannot be read: {error}"))
            continue
        if len(marks.filtered_code) < SHORTEST:
            missed.append((work.who, "too little code of their own"))
        else:
            compared[work] = marks
    given = {work: fingerprint(work) for work in others}
    detector = _Detector(compared, given)
    if compared:
        detector.run()
    pairs = sorted(
        (_pair(detector, *both) for both in combinations(compared, 2)),
        key=lambda pair: (-pair.score, -pair.letters, pair.first.who),
    )
    references = sorted(
        (_pair(detector, work, other) for work in compared for other in given),
        key=lambda pair: (-pair.shares[0], pair.first.who, pair.second.who),
    )
    detector.shown = (*pairs[:TOP], *references[:TOP])
    report = _report(detector) if compared else ""
    return Found(lesson, tuple(compared), tuple(pairs), tuple(references), tuple(missed), report)


def fingerprint(work: WrittenCode) -> Any:
    """Return copydetect's fingerprint of a work."""
    return CodeFingerprint("answers.py", PASSAGE, 1, language="python", fp=io.StringIO(work.text))


def _closed(part: str) -> str:
    """The text, of the same length, without triple quotes where one of them is open: they would hide the rest."""
    if any(part.count(quote) % 2 for quote in ('"""', "'''")):
        return part.replace('"""', "   ").replace("'''", "   ")
    return part


def _pair(detector: _Detector, first: WrittenCode, second: WrittenCode) -> ComparedPair:
    """What the detector found of two works."""
    one, other = (min(float(share), 1.0) for share in detector.similarity_matrix[detector.place(first, second)])
    slices = detector.slice_matrix.get((first.key, second.key), ((), ()))
    exercises: dict[str, float] = {}
    for work, passages in zip((first, second), slices, strict=True):
        for name, share in _exercises(work, passages):
            exercises[name] = max(share, exercises.get(name, 0.0))
    return ComparedPair(first, second, (one, other), exercises)


def _exercises(work: WrittenCode, passages: Any) -> Iterator[tuple[str, float]]:
    """How much of each exercise lies in the passages: of its signs, blank space aside."""
    inside = bytearray(len(work.text))
    for begin, end in zip(*passages, strict=True) if len(passages) else ():
        inside[int(begin) : int(end)] = b"\1" * (min(int(end), len(inside)) - int(begin))
    start = 0
    for name, part in work.parts:
        start += len(f"# {name}\n")
        signs = [inside[start + at] for at, sign in enumerate(part) if not sign.isspace()]
        if any(signs):
            yield name, sum(signs) / len(signs)
        start += len(part)


def _report(detector: _Detector) -> str:
    """copydetect's report without what it loads from elsewhere: its style, and the script that folds code away."""
    matplotlib.use("agg")
    page: str = detector.generate_html_report("return")
    return re.sub(r"<link[^>]*>|<script.*?</script>", "", page).replace("<head>", f"<head>{POLICY}", 1)


def write(folder: Path, found: Found) -> tuple[Path, Path]:
    """Write LESSON.csv, every pair, and LESSON.html, copydetect's report; return their paths."""
    rows = [_row(pair, pair.score) for pair in found.pairs]
    rows += [_row(pair, pair.shares[0]) for pair in found.references]
    pages = folder / f"{found.lesson}.csv", folder / f"{found.lesson}.html"
    for page, text in zip(pages, (csv_text([COLUMNS, *rows]), found.report), strict=True):
        replace_file(page, text)
    return pages


def _row(pair: ComparedPair, share: float) -> list[str]:
    named = sorted(pair.exercises.items(), key=lambda item: -item[1])
    exercises = ", ".join(f"{name} {100 * part:.0f} %" for name, part in named)
    who = (one_line(work.who) for work in (pair.first, pair.second))
    return [*who, f"{100 * share:.0f} %", f"{100 * pair.letters:.0f} %", exercises]
