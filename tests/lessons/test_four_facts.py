"""The four facts that hold for every lesson, with the variants of its exercises.

1. The solution notebook runs top to bottom and earns everything.
2. The learner's notebook holds no solution, runs top to bottom and earns nothing.
3. Each check rejects at least three wrong answers and says why in words that help.
4. Each speed check passes two honest but imperfect answers at 1.5 T or more and leaves the loop at 0.67 T or less.

Here facts 1 and 2 are tried exercise by exercise, without the rest of the notebook, fact 1 for `unrolled prove` alone:
test_fact_1_and_2.py runs whole ones. Facts 3 and 4 are judged on the specs.
"""

import copy
import re

import nbformat
import numpy as np
import pytest
from answers import Mutant
from facts import (
    CASE_LIMIT,
    MARGIN,
    WITH_ANSWERS,
    assert_rejected,
    assert_right,
    by_values,
    counts,
    settled,
    without_speed,
)
from lessons_found import EXERCISES, LESSONS, TIMED

from unrolled import checks
from unrolled.checks.domain import features_of
from unrolled.notebook.cells import grade_id
from unrolled_grader.authoring import one_cell


def test_there_are_lessons():
    assert [lesson.name for lesson in LESSONS][:3] == ["00_start_here", "01_matrix_parallelism", "02_convolution"]


@pytest.mark.parametrize("exercise", EXERCISES, ids=str)
def test_fact_1_the_solution_of_an_exercise_is_right(exercise):
    report = untimed(exercise, "solutions")
    assert report.passed, str(report)


@pytest.mark.parametrize("exercise", [each for each in EXERCISES if not each.is_variant], ids=str)
def test_fact_2_the_cell_of_an_exercise_earns_nothing(exercise):
    assert untimed(exercise, "notebooks").points == 0


def untimed(exercise, folder):
    """What a check says to the function in an exercise's cell, but for its speed."""
    function = one_cell.function(exercise.cells(folder), exercise.name)
    return checks.run(exercise.name, without_speed(exercise.spec), function, case_limit=CASE_LIMIT)


@pytest.mark.parametrize("exercise", EXERCISES, ids=str)
def test_an_exercise_has_a_heading_with_minutes_a_cell_and_a_check(exercise):
    name, cells = exercise.name, exercise.cells("solutions")
    heading = rf"^### Exercise: {name}\n\n\*\*(Core|More)\*\*, about \d+\s+minutes\b"
    assert any(re.search(heading, cell.source, re.MULTILINE) for cell in cells), "no heading, or no minutes below it"
    sources = {grade_id(cell): cell.source for cell in cells}
    assert f"check.{name}({name})" in sources[f"check_{name}"]


@pytest.mark.parametrize("lesson", LESSONS, ids=str)
def test_fact_2_the_learners_notebook_holds_no_solution(lesson):
    text = lesson.notebook.read_text(encoding="utf-8")
    assert "BEGIN SOLUTION" not in text
    assert "BEGIN HIDDEN" not in text
    solved = {cell.metadata.nbgrader.grade_id: cell for cell in marked_cells(lesson.solution, "solution")}
    for cell in marked_cells(lesson.notebook, "solution"):
        kept = set(lines_of_solution(solved[cell.metadata.nbgrader.grade_id])) & set(cell.source.splitlines())
        assert not {line for line in kept if len(line.strip()) > 3}


def marked_cells(path, mark):
    """The cells of a notebook that nbgrader knows as this: `grade` or `solution`."""
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get(mark)]


def lines_of_solution(cell):
    """The lines between the solution marks."""
    inside = False
    for line in cell.source.splitlines():
        if "BEGIN SOLUTION" in line or "END SOLUTION" in line:
            inside = "BEGIN" in line
        elif inside:
            yield line


@pytest.mark.parametrize("lesson", LESSONS, ids=str)
def test_notebook_points_are_those_of_the_specs(lesson):
    marks = [cell.metadata.nbgrader for cell in marked_cells(lesson.notebook, "grade") if cell.cell_type == "code"]
    worth = {mark.grade_id: mark.points for mark in marks}
    assert worth == {f"check_{name}": spec.total_points for name, spec in lesson.specs.items()}


@pytest.mark.parametrize("lesson", LESSONS, ids=str)
def test_each_lesson_asks_for_words_once(lesson):
    (written,) = [cell for cell in marked_cells(lesson.solution, "grade") if cell.cell_type == "markdown"]
    assert "rubric" in written.source.lower()


@pytest.fixture
def seeds(exercise, request):
    """Five where one exercise is proved, one among all, and where a recipe takes seconds."""
    return range(5 if request.config.getoption("--exercise", None) and not exercise.spec.leaderboard else 1)


@pytest.mark.parametrize("exercise", EXERCISES, ids=str)
def test_the_reference_passes_for_any_seed(exercise, seeds):
    spec = exercise.spec
    for seed in seeds:
        report = checks.run(
            exercise.name, by_values(spec), spec.reference, seed=seed, place=WITH_ANSWERS, case_limit=CASE_LIMIT
        )
        assert report.passed, str(report)


@pytest.mark.parametrize("exercise", EXERCISES, ids=str)
def test_facts_3_and_4_have_three_wrong_answers_and_two_honest_ones_where_time_counts(exercise):
    assert len(exercise.mutants) + len(exercise.spec.mistakes) >= 3
    assert exercise.spec.speed is None or len(exercise.honest) >= 2


def of_each_exercise(kind):
    """Its answers of this kind, as parameters of a test."""
    answers = [(each, number, answer) for each in EXERCISES for number, answer in enumerate(getattr(each, kind))]
    return [pytest.param(each, answer, id=f"{each}-{number}") for each, number, answer in answers]


@pytest.mark.parametrize(("exercise", "mutant"), of_each_exercise("mutants"))
def test_fact_3_a_wrong_answer_is_rejected_in_words_that_help(exercise, mutant):
    assert_rejected(exercise.name, exercise.spec, mutant)


@pytest.mark.parametrize("exercise", [each for each in EXERCISES if each.spec.call is None], ids=str)
def test_fact_3_no_exercise_takes_another_dtype_a_changed_input_or_nothing(exercise):
    spec = by_values(exercise.spec)
    inputs = spec.cases[0].inputs(0)
    results = spec.reference(**inputs)

    def changing(**given):
        y = copy.deepcopy(spec.reference(**given))
        for x in filter(is_array, given.values()):
            x[...] = 0
        return y

    def narrowing(**given):
        wide = {name: x.astype(np.float32) for name, x in given.items() if is_array(x, np.float64)}
        y, right = spec.reference(**given | wide), spec.reference(**given)
        return as_float64(y) if is_array(right[0], np.float64) else y

    assert_rejected(exercise.name, spec, Mutant(lambda **given: None, "None"))
    if any(is_array(y, np.float32) for y in (results if isinstance(results, tuple) else (results,))):
        widening = Mutant(lambda **given: as_float64(spec.reference(**given)), "but dtype is float64, expected float32")
        assert_rejected(exercise.name, spec, widening)
    if any(map(is_array, inputs.values())):
        assert_rejected(exercise.name, spec, Mutant(changing, "changed its input"))
    if spec.domain and any("beyond float32" in " ".join(features_of(spec.domain.inputs(seed))) for seed in range(30)):
        assert_rejected(exercise.name, spec, Mutant(narrowing, "float64 came in, so keep that"))


@pytest.mark.parametrize("exercise", EXERCISES, ids=str)
def test_there_are_five_right_answers(exercise):
    loop = {exercise.loop} - {None, exercise.spec.speed and exercise.spec.speed.baseline}
    assert len({*exercise.honest, *exercise.right, *loop}) + exercise.another_way >= 5


@pytest.mark.parametrize(("exercise", "function"), of_each_exercise("right"))
def test_a_right_answer_passes_for_any_seed(exercise, function, seeds):
    for seed in seeds:
        report = checks.run(
            exercise.name, without_speed(exercise.spec), function, seed=seed, climb=False, case_limit=CASE_LIMIT
        )
        assert report.passed, str(report)


def is_array(y, dtype=None):
    return hasattr(y, "dtype") and np.ndim(y) > 0 and dtype in (None, y.dtype)


def as_float64(y):
    if isinstance(y, tuple):
        return tuple(map(as_float64, y))
    return y.astype(float) if is_array(y, np.float32) else y


@pytest.mark.timed
@pytest.mark.parametrize(("exercise", "function"), of_each_exercise("honest"))
def test_fact_4_honest_answers_pass_with_room_to_spare(exercise, function):
    """At 1.5 T or nearly so. Ranks gain no more than there are: at T, they do not fail where other work runs."""
    spec = exercise.spec
    if spec.speed.ranks > 1:
        assert settled(spec, function, spec.speed.at_least) != "fail"
        return
    with_room = settled(spec, function, MARGIN * spec.speed.at_least)
    assert with_room != "fail"
    assert with_room == "pass" or settled(spec, function, spec.speed.at_least) == "pass"


@pytest.mark.timed
@pytest.mark.parametrize("exercise", TIMED, ids=str)
def test_fact_4_the_loop_does_not_pass(exercise):
    """Even at 0.67 T, where it may be so near that a measurement says nothing: one is enough."""
    assert settled(exercise.spec, exercise.loop, exercise.spec.speed.at_least / MARGIN, attempts=1) != "pass"


@pytest.mark.parametrize("exercise", TIMED, ids=str)
def test_fact_4_what_is_timed_is_right(exercise):
    """The baseline, the loop and the honest answers; slow ones may need more than is counted out."""
    name, spec = exercise.name, exercise.spec
    if spec.speed.ranks == 1:  # else it is no program of ranks; the timed ones' results are compared with its
        assert_right(name, by_values(spec), spec.speed.baseline, WITH_ANSWERS)
    if exercise.loop is not spec.speed.baseline:
        assert_right(name, by_values(spec) if counts(spec) else spec, exercise.loop, WITH_ANSWERS)
    for function in exercise.honest:
        assert_right(name, spec, function)
