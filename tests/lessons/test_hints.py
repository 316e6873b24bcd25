"""Hints and findings help where nobody is there to ask: the idea, the shapes, nearly the code, and never all of it."""

from __future__ import annotations

import ast
import re
import textwrap

import nbformat
import pytest
from lessons_found import ROOT

from unrolled import checks
from unrolled.notebooks import grade_id

STUB = "# your code here"
EXERCISES = [(lesson, name) for lesson, specs in checks.lessons().items() for name in specs]


def exercise(lesson: str, name: str) -> tuple[str, dict[str, object]]:
    """The handed out cell of an exercise up to where the answer goes, and what the notebook imports."""
    notebook = nbformat.read(ROOT / "notebooks" / lesson / f"{lesson}.ipynb", as_version=4)
    names: dict[str, object] = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for line in re.findall(r"^(?:import|from) .+$", cell.source, re.MULTILINE):
                exec(line, names)
    source = next(cell.source for cell in notebook.cells if grade_id(cell) == name)
    return source[: source.index(STUB)].rstrip(), names


@pytest.mark.parametrize(("lesson", "name"), EXERCISES)
def test_three_hints_go_from_the_idea_to_nearly_the_code(lesson: str, name: str) -> None:
    idea, shapes, code = checks.lessons()[lesson][name].hints
    for hint in (idea, shapes):
        assert len(hint) > 50, f"too short to help: {hint}"
        assert hint.rstrip()[-1] in ".?!", f"not a sentence: {hint}"
    assert "\n" not in idea, "the idea is said in words"
    assert re.search(r" = |return |\+=|\byield\b", code), f"no code in {code!r}"


@pytest.mark.parametrize(("lesson", "name"), EXERCISES)
def test_the_last_hint_is_no_answer(lesson: str, name: str) -> None:
    head, names = exercise(lesson, name)
    spec = checks.lessons()[lesson][name]
    answer = f"{head}\n{textwrap.indent(spec.hints[2], '    ')}\n"
    try:
        ast.parse(answer)
    except SyntaxError:
        return  # words stand where the learner has to think
    exec(answer, names)
    report = checks.run(name, spec, names[name], seed=1, announce=lambda text: None, climb=False)
    assert not report.passed, f"put into the cell, the last hint of {name} is a whole answer"


@pytest.mark.parametrize(("lesson", "name"), EXERCISES)
def test_a_usual_mistake_is_explained(lesson: str, name: str) -> None:
    spec = checks.lessons()[lesson][name]
    assert spec.mistakes or spec.compare, "nothing tells the learner more than that the values differ"
    for mistake in spec.mistakes:
        assert len(mistake.says.split()) >= 4, f"too short to help: {mistake.says}"
