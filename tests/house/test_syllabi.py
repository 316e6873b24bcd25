"""The syllabi account for every lesson and every core exercise, in minutes that are enough for the exercises."""

import itertools
import re
from pathlib import Path

import pytest

from unrolled_grader.authoring.listed import MORE
from unrolled_grader.authoring.syllabi import SYLLABI

ROOT = Path(__file__).resolve().parents[2]
PARTS = re.split(r"(?m)^## ", (ROOT / "site/syllabi.md").read_text(encoding="utf-8"))[1 : 1 + len(SYLLABI)]
ROW = re.compile(r"(?m)^\| (\d+)-(\d+) \| ([^|]*) \| [^|]* \|$")
EXERCISE = re.compile(r"# ### Exercise: (\w+)\n#\n# \*\*Core\*\*, about (\d+) minutes")
TEXTS = {file.stem: file.read_text(encoding="utf-8") for file in sorted((ROOT / "lessons").glob("[0-9]*.py"))}


def numbers(text):
    """The lessons that a text names, one by one or as in "08 to 13"."""
    found = {int(number) for number in re.findall(r"\b\d\d\b", text)}
    for first, last in re.findall(r"\b(\d\d) to (\d\d)\b", text):
        found |= {*range(int(first), int(last) + 1)}
    return found


@pytest.fixture(params=zip(SYLLABI.values(), PARTS, strict=True), ids=SYLLABI)
def syllabus(request):
    """A syllabus with its part of the page: what it teaches, and what it leaves out."""
    chosen, part = request.param
    return chosen, *part.split("**Left out**")


def test_each_lesson_is_taught_or_left_out(syllabus):
    chosen, taught, left_out = syllabus
    inside = {int(name[:2]) for name in chosen.lessons}
    assert inside == {number for *_, cell in ROW.findall(taught) for number in numbers(cell[:4])}
    assert inside | numbers(left_out) == {int(name[:2]) for name in TEXTS}


@pytest.mark.parametrize("name", TEXTS)
def test_a_lesson_fits_into_a_session_or_says_where_to_stop(name):
    first = TEXTS[name].split("**Afterwards")[0]
    core = int(re.search(r"about (\d+) minutes", first)[1]) - sum(map(int, MORE.findall(TEXTS[name])))
    assert core <= 90 or re.search(r"session of 90 minutes ends|place\s+(?:# )?for a break|with a break", first)


def test_the_rows_follow_each_other_and_fill_the_hours(syllabus):
    chosen, taught, _ = syllabus
    spans = [(int(start), int(stop)) for start, stop in re.findall(r"(?m)^\| (\d+)-(\d+) \|", taught)]
    assert sum(stop - start for start, stop in spans) == 60 * chosen.hours
    assert all(start in (0, stop) for (_, stop), (start, _) in itertools.pairwise(spans))  # 0: the next session


def test_each_core_exercise_is_done_in_its_minutes_or_left_out(syllabus):
    chosen, taught, left_out = syllabus
    given = dict.fromkeys(chosen.lessons, 0)
    lesson = ""
    for start, stop, cell in ROW.findall(taught):
        if number := re.search(r"\d\d", cell):
            lesson = next(name for name in given if name.startswith(number[0]))
            given[lesson] += int(stop) - int(start)
    for name, minutes in given.items():
        core = {exercise: int(asked) for exercise, asked in EXERCISE.findall(TEXTS[name])}
        done = [exercise for exercise in core if f"`{exercise}`" in taught]
        assert [exercise for exercise in core if f"`{exercise}`" not in taught + left_out] == [], name
        stated = int(re.search(r"about (\d+) minutes", TEXTS[name])[1])
        assert sum(core[exercise] for exercise in done) < minutes <= stated, name
