"""The sample class: what seven students hand in, made from the lessons' own solutions and a few changed functions.

`grader/sample_class/lessonNN.py` holds in what students differ from the solution, in a class a student: functions, and
for functions of the solution {words in it: the student's in their place}. Either goes into the cell with its name as
grade_id. `perfect` differs in none, `untouched` hands in what was handed out, and two have the solution with one
function `SPOILED`.
"""

from __future__ import annotations

import ast
import itertools
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from unrolled import checks
from unrolled.notebook import cells
from unrolled.notebook.cells import grade_id
from unrolled_grader.authoring import specs
from unrolled_grader.authoring.notebooks import BEGIN, END

STUDENTS = ("perfect", "untouched", "slow", "off_by_one", "raises", "endless", "another_way")
SPOILED = {"raises": (2, "answer = in_no_cell"), "endless": (None, "while True: pass")}
"""The last of so many functions of a lesson, or of all, and the line that it begins with."""
LONGEST = ("endless", "slow")
"""Who take longest to be graded: two calls run into their time limit, and what is too slow is measured twice. The first
two notebooks are then those of `endless`: nothing can be timed while one of them runs, so they should run together."""
PRACTICE = "00_start_here"
IN_WORDS = "One large call does the work of many small ones, and walks through memory in order."


def hand_in(root: Path, lessons: Sequence[str], submitted: Path) -> None:
    """Write the whole class's notebooks of these lessons as submitted/STUDENT/LESSON/LESSON.ipynb."""
    for student, lesson in itertools.product(STUDENTS, lessons):
        file = submitted / student / lesson / f"{lesson}.ipynb"
        file.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook(root, student, lesson), file)


def practice(course: Path, into: Path) -> Path:
    """Make a course of lesson 00 alone in `into`, from what the wheel brings of the course's folder; return it.

    The wheel holds no solutions. This one is made of the specs' references, as `build` makes it.
    """
    shutil.copytree(course, into)
    solution = _read(into, "notebooks", PRACTICE)
    for cell in solution.cells:
        if spec := checks.lessons()[PRACTICE].get(grade_id(cell) or ""):
            body = f"# body of {spec.reference.__module__}.{spec.reference.__name__}\n    ### {END}"
            source = cell.source.replace("# your code here", f"### {BEGIN}").replace("raise NotImplementedError", body)
            cell.source = specs.with_bodies(PRACTICE, source)
    file = into / "solutions" / PRACTICE / f"{PRACTICE}.ipynb"
    file.parent.mkdir(parents=True)
    nbformat.write(solution, file)
    return into


def notebook(root: Path, student: str, lesson: str) -> NotebookNode:
    """Return the released notebook with `student`'s answers. Raises ValueError for one that it does not ask for."""
    handed_out = _read(root, "notebooks", lesson)
    if student == "untouched":
        return handed_out
    answers = _solved(_read(root, "solutions", lesson))
    theirs = changed(root, student, lesson)
    variants = checks.variants().items()
    replaced = {name for name, others in variants if answers.keys() & {f"{name}_{one}" for one in others}}
    if strangers := theirs.keys() - answers.keys() - replaced:  # a variant is answered like the solution
        raise ValueError(f"{student} has {sorted(strangers)} for {lesson}, which has only {sorted(answers)}")
    answers |= theirs
    for cell in handed_out.cells:
        cell.source = answers.get(grade_id(cell) or "", cell.source)
    return handed_out


def changed(root: Path, student: str, lesson: str) -> dict[str, str]:
    """Return a student's functions that differ from the solution's, by name. Raises ValueError for words not there."""
    solved = _solved(_read(root, "solutions", lesson))
    if student in SPOILED:
        count, line = SPOILED[student]
        name = [name for name, source in solved.items() if f"def {name}(" in source][:count][-1]
        return {name: _spoiled(solved[name], name, line)}
    file = root / "grader" / "sample_class" / f"lesson{lesson[:2]}.py"
    source = file.read_text(encoding="utf-8") if file.exists() else ""
    theirs = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == student)
    body = [statement for node in theirs for statement in node.body]
    found = dict(_functions(body, source))
    for statement in (one for one in body if isinstance(one, ast.Assign)):
        name = ast.unparse(statement.targets[0])
        found[name] = solved.get(name, "")
        for words, others in ast.literal_eval(statement.value).items():
            if name in solved and words not in found[name]:
                raise ValueError(f"{student} changes {words!r} in {name} of {lesson}, where it does not stand")
            found[name] = found[name].replace(words, others)
    return found


def _spoiled(source: str, name: str, line: str) -> str:
    """A cell's source, in which the function of this name begins with another line, after its docstring."""
    definitions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    function = next(definition for definition in definitions if definition.name == name)
    first, lines = function.body[ast.get_docstring(function) is not None], source.split("\n")
    lines.insert(first.lineno - 1, " " * first.col_offset + line)
    return "\n".join(lines)


def functions(source: str) -> dict[str, str]:
    """Return the source of each function of a module, by name."""
    return dict(_functions(ast.parse(source).body, source))


def _functions(body: Sequence[ast.stmt], source: str) -> Iterator[tuple[str, str]]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, textwrap.dedent(ast.get_source_segment(source, node, padded=True) or "")


def _solved(solution: NotebookNode) -> dict[str, str]:
    """The sources of the cells for answers, by grade_id, without the lines that mark solutions."""
    answers = {}
    for cell in solution.cells:
        name, mark = grade_id(cell), cell.metadata.get("nbgrader", {})
        if name and mark["solution"]:
            lines = [line for line in cell.source.split("\n") if BEGIN not in line and END not in line]
            answers[name] = IN_WORDS if mark["grade"] else "\n".join(lines)
    return answers


def _read(root: Path, folder: str, lesson: str) -> NotebookNode:
    return cells.read(root / folder / lesson / f"{lesson}.ipynb")
