"""Hints and findings help where nobody is there to ask: the idea, the shapes, nearly the code, and never all of it."""

import ast
import re
import textwrap
from pathlib import Path

import jupytext
import pytest
from lessons_found import EXERCISES, ROOT, Exercise

from unrolled import checks
from unrolled.notebook.cells import grade_id

ANSWER = re.compile(r"^ +# your code here|^ +### BEGIN SOLUTION", re.MULTILINE)


def unanswered(exercise: Exercise) -> tuple[str, dict[str, object]]:
    """The cell of an exercise up to where the answer goes, and what the notebook imports."""
    cells = exercise.cells("notebooks")
    names: dict[str, object] = {}
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    exec("\n".join(re.findall(r"^(?:import|from) .+$", code, re.MULTILINE)), names)
    source = next(cell.source for cell in cells if grade_id(cell) == exercise.name)
    start = ANSWER.search(source)
    assert start, f"no place for the answer in {exercise}"
    return source[: start.start()].rstrip(), names


@pytest.mark.parametrize("exercise", EXERCISES, ids=str)
def test_three_hints_go_from_the_idea_to_nearly_the_code(exercise: Exercise) -> None:
    idea, shapes, code = exercise.spec.hints
    for hint in (idea, shapes):
        assert len(hint) > 50, f"too short to help: {hint}"
        assert hint.rstrip()[-1] in ".?!", f"not a sentence: {hint}"
    assert "\n" not in idea, "the idea is said in words"
    assert re.search(r" = |return |\+=|\byield\b", code), f"no code in {code!r}"
    assert_no_answer(exercise, code)


def assert_no_answer(exercise: Exercise, code: str) -> None:
    head, names = unanswered(exercise)
    answer = f"{head}\n{textwrap.indent(code, '    ')}\n"
    try:
        ast.parse(answer)
    except SyntaxError:
        return  # words stand where the learner has to think
    exec(answer, names)
    report = checks.run(
        exercise.name, exercise.spec, names[exercise.name], seed=1, announce=lambda text: None, climb=False
    )
    assert not report.passed, f"put into the cell, the last hint of {exercise} is a whole answer"


def test_a_usual_mistake_is_explained() -> None:
    for exercise in EXERCISES:
        assert exercise.spec.mistakes or exercise.spec.compare, f"{exercise} tells no more than that the values differ"
        for mistake in exercise.spec.mistakes:
            assert len(mistake.says.split()) >= 4, f"too short to help: {mistake.says}"


each_lesson = pytest.mark.parametrize("file", sorted((ROOT / "lessons").rglob("*.py")), ids=lambda file: file.stem)


@each_lesson
def test_no_heading_stands_twice_in_a_table(file: Path) -> None:
    """As where two tables stand side by side, whose rows have nothing to do with each other."""
    heads = re.findall(r"^# \|(.+)\|\n# \|[ |:-]+\|$", file.read_text(encoding="utf-8"), re.MULTILINE)
    for head in heads:
        names = [name for name in map(str.strip, head.split("|")) if name]
        assert len(set(names)) == len(names), names


@each_lesson
def test_no_line_of_a_sentence_is_read_as_a_bullet(file: Path) -> None:
    """A formula that is wrapped before its minus would begin a list."""
    for cell in jupytext.read(file, fmt="py:percent").cells:
        if cell.cell_type == "markdown":
            prose = re.sub(r"^```.*?^```", "", cell.source, flags=re.MULTILINE | re.DOTALL)
            for paragraph in re.split(r"\n\s*\n", prose):
                first, *others = paragraph.strip().split("\n")
                if not re.match(r"[-+*] |\d+[.)] ", first):
                    bullets = [line for line in others if re.match(r"[-+*] |1[.)] ", line)]
                    assert not bullets, f"{first} … {bullets[0]}"
