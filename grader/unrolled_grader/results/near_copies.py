"""Near-copies across a class, for a person to look at. No student code is run.

Only the exercises' cells count, without the text that was handed out. The library copydetect compares them (winnowing,
as MOSS does): names, comments and spacing are set aside, and every passage of at least PASSAGE characters that stands
in both is found. The library's own answers and the course's solution are compared with, too.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import io
import statistics
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from copydetect import CodeFingerprint, compare_files
from nbformat import NotebookNode

from unrolled import checks
from unrolled.checks import Spec
from unrolled.checks.answers import answers_of
from unrolled.notebook import cells
from unrolled.notebook.cells import grade_id
from unrolled_grader.classroom import gradebook
from unrolled_grader.classroom.course import Course
from unrolled_grader.jobs import job
from unrolled_grader.judge import intake, opening

PASSAGE = 25  # characters of the shortest passage that counts, after each name became one letter
SHORTEST = 80  # characters, counted likewise, below which answers are too short to tell anything: about five lines
LONGEST = 50_000  # characters of a student's answers to a lesson that are compared
TELLING = 12  # characters of the shortest line whose sameness to the letter tells anything
TOP = 20  # pairs of a lesson that get a page
OPS, SOLUTION = "unrolled.ops", "the course's solution"


@dataclass(frozen=True)
class WrittenCode:
    """The answers of one student to a lesson, or those of the library or the solution. Equal only to itself."""

    who: str
    parts: tuple[tuple[str, str], ...]  # the exercises' names and the code written for each, in the lesson's order

    @property
    def text(self) -> str:
        return "".join(part for _, part in self.parts)

    @property
    def lines(self) -> list[str]:
        """The lines that tell something, without the space around them."""
        return [line.strip() for line in self.text.split("\n") if len(line.strip()) >= TELLING]


@dataclass(frozen=True)
class Side:
    """One of two works that were compared: how much of it is in the other, and where."""

    work: WrittenCode
    share: float
    passages: tuple[tuple[int, int], ...]  # begin and end of what is in both, in the work's text
    same_lines: int  # how many of its lines are in the other to the letter


@dataclass(frozen=True)
class ComparedPair:
    """Two works that were compared."""

    first: Side
    second: Side

    @property
    def score(self) -> float:
        """How much of one is in the other, 0 to 1: of the one that has more of it there."""
        return max(self.first.share, self.second.share)

    @property
    def letters(self) -> float:
        """What part of the lines of one, 0 to 1, is in the other to the letter: of the one with the larger part."""
        return max(side.same_lines / max(len(side.work.lines), 1) for side in (self.first, self.second))


@dataclass(frozen=True)
class Found:
    """What was found in a lesson; pairs and references by falling score."""

    lesson: str
    works: tuple[WrittenCode, ...]
    pairs: tuple[ComparedPair, ...]
    references: tuple[ComparedPair, ...]
    """Each student's work beside the library's answers and beside the solution; the score is the student's share."""
    passed_over: tuple[tuple[str, str], ...]  # students who are not compared, and why

    @property
    def median(self) -> float:
        """The score of the pair in the middle: what honest answers have in common."""
        return statistics.median(pair.score for pair in self.pairs) if self.pairs else 0.0


def of_class(course: Course, lesson: str) -> Found:
    """Compare what a class handed in of a lesson, and return what was found."""
    return compare(lesson, *works(course, lesson), references(course, lesson))


def works(course: Course, lesson: str) -> tuple[list[WrittenCode], list[tuple[str, str]]]:
    """Return the students' answers to a lesson, and who is passed over with the reason. Nothing handed in raises."""
    specs, released = checks.lessons()[lesson], gradebook.released(course.directory, lesson)
    found, passed_over = [], []
    for handed in intake.find(course.submitted, {lesson: list(specs)}):
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
    given = {grade_id(cell): cell.source for cell in released.cells}
    here = {grade_id(cell): cell.source for cell in nb.cells if cell.cell_type == "code"}
    parts, room = list[tuple[str, str]](), LONGEST
    for name in specs:
        parts.append((name, own(here.get(name, ""), given.get(name, ""))[:room]))
        room -= len(parts[-1][1])
    return WrittenCode(who, tuple(parts))


def own(source: str, released: str) -> str:
    """Return the lines of a cell that were not handed out with it, nor are docstrings, empty, or marks of the build."""
    lines, before = _told(source[: LONGEST + len(released)]), _told(released)
    matcher = difflib.SequenceMatcher(None, [line.strip() for line in before], [line.strip() for line in lines], False)
    same = {place for block in matcher.get_matching_blocks() for place in range(block.b, block.b + block.size)}
    kept = [line for place, line in enumerate(lines) if place not in same and line.strip()]
    return "".join(f"{line}\n" for line in kept if "BEGIN SOLUTION" not in line and "END SOLUTION" not in line)


def _told(source: str) -> list[str]:
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


def source_of(spec: Spec) -> str:
    """Return the source of every function of the library that answers an exercise."""
    sources = []
    for function in answers_of(spec):
        try:
            sources.append(inspect.getsource(inspect.unwrap(getattr(function, "func", function))))
        except (OSError, TypeError):  # a callable object, or one that was made on the way
            continue
    return "\n".join(dict.fromkeys(sources))


def compare(
    lesson: str, found: Iterable[WrittenCode], passed_over: Iterable[tuple[str, str]], others: Iterable[WrittenCode]
) -> Found:
    """Compare every student's work with all others and with the references; answers that are too short are left out."""
    prints, broken = [], []
    for work in found:
        try:
            prints.append((work, fingerprint(work)))
        except Exception as error:  # one student's code stops nobody else's comparison
            broken.append((work.who, f"its code cannot be read: {error}"))
    short = [(one.who, "too little code of their own") for one, marks in prints if len(marks.filtered_code) < SHORTEST]
    compared = [(work, marks) for work, marks in prints if len(marks.filtered_code) >= SHORTEST]
    given = [(work, fingerprint(work)) for work in others]
    pairs = [pair(*one, *two) for one, two in combinations(compared, 2)]
    references = [pair(*one, *other) for one in compared for other in given]
    return Found(
        lesson,
        tuple(work for work, _ in compared),
        tuple(sorted(pairs, key=lambda pair: (-pair.score, -pair.letters, pair.first.work.who))),
        tuple(sorted(references, key=lambda pair: (-pair.first.share, pair.first.work.who, pair.second.work.who))),
        (*passed_over, *broken, *short),
    )


def fingerprint(work: WrittenCode) -> Any:
    """Return copydetect's fingerprint of a work. Triple quotes never closed are taken out: they would hide the rest."""
    text = "".join(_closed(part) for _, part in work.parts)
    return CodeFingerprint("answers.py", PASSAGE, 1, language="python", fp=io.StringIO(text))


def _closed(part: str) -> str:
    """The text, of the same length, without triple quotes where one of them is open."""
    if any(part.count(quote) % 2 for quote in ('"""', "'''")):
        return part.replace('"""', "   ").replace("'''", "   ")
    return part


def pair(first: WrittenCode, first_marks: Any, second: WrittenCode, second_marks: Any) -> ComparedPair:
    """Compare two works by their fingerprints, and return the pair."""
    _, shares, slices = compare_files(first_marks, second_marks)
    sides = zip((first, second), (second, first), shares, slices, strict=True)
    return ComparedPair(*(_side(work, other, share, places) for work, other, share, places in sides))


def _side(work: WrittenCode, other: WrittenCode, share: float, slices: Any) -> Side:
    end = len(work.text)
    places = zip(*slices.tolist(), strict=True) if len(slices) else ()
    passages = tuple((int(begin), min(int(stop), end)) for begin, stop in places if begin < end)
    same = Counter(work.lines) & Counter(other.lines)
    return Side(work, min(float(share), 1.0), passages, same.total())


def marked(side: Side, other: WrittenCode) -> Iterator[tuple[str, list[tuple[bool, list[tuple[bool, str]]]]]]:
    """Yield each exercise's lines with whether they are in the other to the letter, in pieces with whether they are."""
    inside = bytearray(len(side.work.text))
    for begin, end in side.passages:
        inside[begin:end] = b"\1" * (end - begin)
    lines, start = set(other.lines), 0
    for name, part in side.work.parts:
        told = []
        for line in part.splitlines(keepends=True):
            indent = len(line) - len(line.lstrip())
            shared = bytes(indent) + inside[start + indent : start + len(line)]
            told.append((line.strip() in lines, list(_pieces(line, shared))))
            start += len(line)
        yield name, told


def _pieces(line: str, inside: bytes) -> Iterator[tuple[bool, str]]:
    begin = 0
    for place in range(1, len(line) + 1):
        if place == len(line) or inside[place] != inside[begin]:
            yield bool(inside[begin]), line[begin:place]
            begin = place


def by_student(references: Iterable[ComparedPair]) -> Mapping[str, Mapping[str, ComparedPair]]:
    """Return the comparisons with references: student -> reference -> pair, in the order in which they are given."""
    found: dict[str, dict[str, ComparedPair]] = {}
    for compared in references:
        found.setdefault(compared.first.work.who, {})[compared.second.work.who] = compared
    return found
