"""Each student of the sample class loses what their class of wrong functions says. Judged on specs, without notebooks.

Whether `slow` is slow on a CPU is for `make demo` to show: no test depends on a measurement. On the GPU launches and
transfers are counted, and seconds are modelled.
"""

import dataclasses
import linecache
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unrolled import checks, data, device, kernels, nn, ops, simgpu
from unrolled.checks.exercises.l13_capstone import against_the_clock, own
from unrolled.notebook import cells
from unrolled.ops import winograd
from unrolled.simgpu import jit
from unrolled_grader.authoring import sample

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "grader" / "sample_class" / "README.md").read_text(encoding="utf-8")
LESSONS = list(checks.lessons())
SPECS = {name: spec for specs in checks.lessons().values() for name, spec in specs.items()}


def changed(student: str, lesson: str) -> set[str]:
    """The exercises that a student answers otherwise than the solution, which the first of the four facts judges."""
    specs = checks.lessons()[lesson]
    return set(specs) if student == "untouched" else set(sample.changed(ROOT, student, lesson)) & specs.keys()


def loses(student: str, name: str) -> bool:
    """Whether a student loses an exercise of their class; `slow` where launches or CPU time count, else speed alone."""
    if student == "slow":
        return name == "own_network" or any(case.on_gpu for case in SPECS[name].cases)
    return student != "another_way"


VERDICTS = {
    "untouched": {"missing"},
    "slow": {"fail"},
    "off_by_one": {"fail"},
    "raises": {"crashed"},
    "endless": {"timeout"},
}


def judged(student: str, lesson: str) -> dict[str, checks.Report]:
    """The report on each function that a student changed; those of the notebook's other cells are there for them."""
    namespace: dict[str, Any] = {
        "exp": math.exp,
        "sqrt": math.sqrt,
        "np": np,
        "ops": ops,
        "nn": nn,
        "data": data,
        "device": device,
    }
    namespace |= {"cp": simgpu, "jit": jit, "THREADS": 256, "TILE": 32, "WIDTH": 33}
    namespace |= {"digits": data.digits(), "matmul": kernels.matmul}
    for name, rows in (("B_T", winograd.PIXELS), ("G", winograd.WEIGHTS), ("A_T", winograd.RESULTS)):
        namespace[name] = np.array(rows[2], np.float32)
    sources: dict[str, str] = {}
    for cell in sample.notebook(ROOT, student, lesson).cells:
        if cell.cell_type == "code" and "def " in cell.source and "rawkernel" not in cell.source:
            sources |= sample.functions(cell.source)
        elif cells.grade_id(cell) in SPECS and "rawkernel" in cell.source:
            sources[cells.grade_id(cell)] = cell.source  # a kernel, and the function that launches it
    for name, source in sources.items():
        file = f"<{student}, {name}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # kernels are read from it
        exec(compile(source, file, "exec"), namespace)
    reports = {}
    for name in changed(student, lesson):
        untimed = dataclasses.replace(checks.lessons()[lesson][name], speed=None, rung=None, limit=None)
        limit = 0.05 if student == "endless" else 600.0  # no honest one ends by the clock
        reports[name] = checks.run(name, untimed, namespace[name], seed=20300101, case_limit=limit)
    return reports


def test_the_class_is_what_the_readme_lists() -> None:
    assert tuple(re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE)) == sample.STUDENTS
    files = (ROOT / "grader" / "sample_class").glob("*.py")
    classes = {name for file in files for name in re.findall(r"^class (\w+)", file.read_text(encoding="utf-8"), re.M)}
    assert classes == set(sample.STUDENTS) - {"perfect", "untouched"} - sample.SPOILED.keys()


@pytest.mark.parametrize("student", [student for student in sample.STUDENTS if student != "perfect"])
def test_a_student_loses_what_was_meant(student: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "TURNS", 3)  # the trainings of lesson 13 take most of the time
    monkeypatch.setattr(against_the_clock, "RUNS", 2)
    reports = {name: report for lesson in LESSONS for name, report in judged(student, lesson).items()}
    lost = {name: report for name, report in reports.items() if report.points < report.max_points}
    assert reports
    assert set(lost) == {name for name in reports if loses(student, name)}
    assert {report.parts[0].verdict for report in lost.values()} == VERDICTS.get(student, set())


def test_perfect_is_the_solution() -> None:
    assert not any(changed("perfect", lesson) for lesson in LESSONS)


def test_untouched_is_what_was_handed_out() -> None:
    for lesson in LESSONS:
        handed_out = cells.read(ROOT / "notebooks" / lesson / f"{lesson}.ipynb")
        assert sample.notebook(ROOT, "untouched", lesson) == handed_out


def test_no_student_hands_in_marks_of_solutions(tmp_path: Path) -> None:
    sample.hand_in(ROOT, LESSONS, tmp_path)
    files = sorted(tmp_path.glob("*/*/*.ipynb"))
    assert len(files) == len(sample.STUDENTS) * len(LESSONS)
    assert not any("SOLUTION" in file.read_text(encoding="utf-8") for file in files)


def test_where_a_class_has_a_variant_the_sample_class_answers_it_like_the_solution(tmp_path: Path) -> None:
    """The student's function is of an exercise that is not asked there; a misspelt one is still refused."""
    lesson = "02_convolution"
    for folder in ("notebooks", "solutions"):
        text = (ROOT / folder / lesson / f"{lesson}.ipynb").read_text(encoding="utf-8")
        (tmp_path / folder / lesson).mkdir(parents=True)
        changed = text.replace('"grade_id": "im2col"', '"grade_id": "im2col_nhwc"')
        assert changed != text
        (tmp_path / folder / lesson / f"{lesson}.ipynb").write_text(changed, encoding="utf-8")
    file = tmp_path / "grader" / "sample_class" / "lesson02.py"
    file.parent.mkdir(parents=True)
    file.write_text("class slow:\n    def im2col():\n        return 'changed'\n", encoding="utf-8")
    sources = {cells.grade_id(cell): cell.source for cell in sample.notebook(tmp_path, "slow", lesson).cells}
    assert sources["im2col_nhwc"].startswith("def im2col")
    assert not any("'changed'" in source for source in sources.values())
    file.write_text("class slow:\n    def im2coll():\n        pass\n", encoding="utf-8")
    with pytest.raises(ValueError, match="im2coll"):
        sample.notebook(tmp_path, "slow", lesson)
