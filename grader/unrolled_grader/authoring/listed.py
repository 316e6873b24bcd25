"""Lists of lessons and syllabi in pages that people write, such as the README: the build keeps them.

A comment says what a line of the list is made of, and stands anywhere above it:

    <!-- each lesson: | {number} {title} | {minutes} | {leads} | -->

The first lines below it that look like that are replaced, by one for each lesson. Title and minutes are those of the
lesson's first cell, `core` are the minutes without the exercises marked "more", `week` is the lesson's in a term (two
where it says that it is for two sittings), and `leads` is the docstring of its specs' folder. `<!-- each syllabus: …
-->` does the same for the syllabi, and for a term with all lessons: `name`, `lessons`, `minutes`, `core`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from unrolled_grader.authoring.syllabi import SYLLABI
from unrolled_grader.authoring.variants import LessonError

PAGES = ("README.md", "docs/class.md", "site/index.md", "site/notes/index.md", "site/syllabi.md")
SPECS = "lib/unrolled/checks/exercises"
MARK = re.compile(r"^<!-- each (lesson|syllabus): (.+) -->$", re.MULTILINE)
TITLE = re.compile(r"^# # (.+)$", re.MULTILINE)
MINUTES = re.compile(r"^# Lesson \d+, about (\d+) minutes", re.MULTILINE)
MORE = re.compile(r"\*\*More\*\*, about (\d+)\s")
TERM = "neither: a term"


def pages(root: Path, lessons: Mapping[str, Path]) -> dict[str, bytes]:
    """Return the pages of a checkout that list lessons, as they should be, by path. `lessons` are scripts by name.

    Raises LessonError where a lesson does not say what a page tells of it, or a page has no line to replace.
    """
    there = {page: (root / page).read_text(encoding="utf-8") for page in PAGES if (root / page).is_file()}
    marked = {page: text for page, text in there.items() if MARK.search(text)}
    facts = [_facts(root, name, file) for name, file in lessons.items()] if marked else []
    last = 0  # session of the lesson before: the first two lessons share one
    for about, file in zip(facts, lessons.values() if marked else (), strict=True):
        first = max(last + (int(about["number"]) > 1), 1)
        last = first + ("two sittings" in file.read_text(encoding="utf-8"))
        about["week"] = str(first) if last == first else f"{first}, {last}"
    return {page: with_lessons(page, text, facts).encode() for page, text in marked.items()}


def with_lessons(page: str, text: str, facts: list[dict[str, str]]) -> str:
    """Return a page's text with a line for each lesson, or syllabus, in every list.

    Raises LessonError where none can be replaced.
    """
    for mark in reversed(list(MARK.finditer(text))):
        like = re.compile(re.sub(r"\\{\w+\\}", ".+?", re.escape(mark[2])))
        lines = text[mark.end() :].split("\n")
        first = next((at for at, line in enumerate(lines) if like.fullmatch(line)), None)
        if first is None:
            raise LessonError(f"{page}: no line looks like {mark[2]!r}")
        last = first
        while last < len(lines) and like.fullmatch(lines[last]):
            last += 1
        rows = facts if mark[1] == "lesson" else syllabi(facts)
        lines[first:last] = [mark[2].format(**about) for about in rows]
        text = text[: mark.end()] + "\n".join(lines)
    return text


def syllabi(facts: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return what a list can tell of each syllabus and of a term with all lessons, from what it can of the lessons."""
    known = {about["name"]: about for about in facts}
    there = {f"`{name}`": [known[one] for one in each.lessons if one in known] for name, each in SYLLABI.items()}
    found = []
    for name, lessons in {**there, TERM: facts}.items():
        numbers = [about["number"] for about in lessons]
        words = f"all, {numbers[0]} to {numbers[-1]}" if name == TERM and numbers else ", ".join(numbers)
        sums = {key: f"{sum(int(about[key]) for about in lessons):,}" for key in ("minutes", "core")}
        found += [{"name": name, "lessons": words, **sums}] if lessons else []
    return found


def _facts(root: Path, lesson: str, script: Path) -> dict[str, str]:
    """What a list can tell of a lesson."""
    text, folder = script.read_text(encoding="utf-8"), Path(SPECS, f"l{lesson}", "__init__.py")
    title, minutes = TITLE.search(text), MINUTES.search(text)
    if title is None or minutes is None:
        raise LessonError(f"{lesson}: the first cell must say '# TITLE' and 'Lesson NN, about N minutes'")
    file = root / folder
    leads = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) if file.is_file() else None
    if not leads:
        raise LessonError(f"{lesson}: {folder.as_posix()} must say in its docstring what the learner will do")
    leads = " ".join((leads[0].lower() + leads[1:].rstrip(".")).split())
    core = int(minutes[1]) - sum(map(int, MORE.findall(text)))
    about = {"name": lesson, "number": lesson[:2], "title": title[1], "minutes": minutes[1], "leads": leads}
    return about | {"core": str(core)}
