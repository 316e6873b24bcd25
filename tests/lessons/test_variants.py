"""Variants of exercises: each stands in its exercise's place, in its lesson and in a class that chose it.

What is asked of their specs is what is asked of any: test_four_facts.py, test_mistakes.py and test_hints.py try both.
"""

import json
import re
import shutil

import jupytext
import nbformat
import pytest
from facts import QUICKLY, SMALL, cells_that_run
from lessons_found import ROOT
from nbformat.v4 import new_code_cell, new_notebook

from unrolled import checks
from unrolled.checks import choices
from unrolled.notebook import cells, run
from unrolled_grader.authoring import notebooks, sample, variants
from unrolled_grader.judge.verdicts import Options, Submission, judge

LESSON_OF = {name: lesson for lesson, specs in checks.declared().items() for name in specs}
CHOSEN = [(LESSON_OF[exercise], exercise, suffix) for exercise, by in checks.variants().items() for suffix in by]
CONVOLUTION, NHWC = "02_convolution", {"im2col": "nhwc"}
each_variant = pytest.mark.parametrize(("lesson", "exercise", "suffix"), CHOSEN)


def file_of(lesson: str, exercise: str, suffix: str):
    return ROOT / "lessons" / variants.FOLDER / f"{lesson[:2]}_{exercise}_{suffix}.py"


def test_a_lesson_has_one_variant_at_most():
    lessons = [lesson for lesson, _, _ in CHOSEN]
    assert len(lessons) == len(set(lessons))


def test_every_variant_has_its_cells_and_every_file_its_spec():
    assert set((ROOT / "lessons" / variants.FOLDER).glob("*.py")) == {file_of(*chosen) for chosen in CHOSEN}


@each_variant
def test_a_variant_is_worth_what_its_exercise_is(lesson, exercise, suffix):
    assert checks.variants()[exercise][suffix].total_points == checks.all_specs()[exercise].total_points


def built(lesson: str, chosen: dict[str, str], folder: str, root=ROOT):
    made = notebooks.make(root, choices.Choices(variants=chosen), [lesson])
    return nbformat.reads(made[f"{folder}/{lesson}/{lesson}.ipynb"].decode(), as_version=4)


def what_a_variant_touches(notebook, exercise, name):
    """Its own cells, those that take its function, and all that they need to run."""
    others = {f"check_{other}" for other in checks.all_specs() if other != name}
    code = [cell for cell in notebook.cells if cells.grade_id(cell) not in others]
    mine = rf'journal\.mine\([^)]*"{exercise}"'
    return cells_that_run(new_notebook(cells=code), [cell.source for cell in code if not re.search(mine, cell.source)])


def cells_to_run(lesson: str, exercise: str, suffix: str):
    """A variant's own cells untouched, then what its solution touches. The first of the four facts runs all others."""
    untouched, solved = (built(lesson, {exercise: suffix}, folder) for folder in ("notebooks", "solutions"))
    assert "BEGIN SOLUTION" not in nbformat.writes(untouched)
    name = f"{exercise}_{suffix}"
    ours = {cell.source for cell in jupytext.read(file_of(lesson, exercise, suffix), fmt="py:percent").cells}
    ours |= {cell.source for cell in untouched.cells if cells.grade_id(cell) == name or "check.start(" in cell.source}
    untouched = [cell for cell in untouched.cells if cell.source in ours]
    for part, chosen in (("untouched", untouched), ("solved", what_a_variant_touches(solved, exercise, name))):
        for number, cell in enumerate(chosen):
            cell.id = f"{name}-{part}-{number}"
            yield cell


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The cells of all variants, executed: one kernel runs them, which forgets the names of the variant before."""
    notebook = new_notebook(cells=[SMALL])
    for chosen in CHOSEN:
        notebook.cells += [*cells_to_run(*chosen), new_code_cell("%reset -f")]
    result = run.execute(notebook, cwd=tmp_path_factory.mktemp("variants"), env=QUICKLY, cell_timeout=600)
    assert [str(error) for error in result.errors] == []
    return result.notebook.cells


@each_variant
def test_a_variant_earns_nothing_untouched_and_everything_solved(lesson, exercise, suffix, executed):
    name = f"{exercise}_{suffix}"
    nothing, everything = (
        run.reports(new_notebook(cells=[cell for cell in executed if cell.id.startswith(f"{name}-{part}-")]))
        for part in ("untouched", "solved")
    )
    assert {check: found.report().points for check, found in nothing.items()} == {name: 0}
    assert set(everything) == {name}
    report = everything[name].report()
    assert report.passed, str(report)  # some want a GPU, or a quieter machine


@pytest.fixture
def course(tmp_path):
    """A checkout with lesson 02 and one of its variants, to be spoilt."""
    for file in ("pyproject.toml", "nbgrader_config.py", "grader/nbgrader_config.py", SOURCE, VARIANT):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


SOURCE, VARIANT = "lessons/02_convolution.py", "lessons/variants/02_im2col_nhwc.py"


def test_other_text_stays_and_later_cells_go_on_with_functions_that_take_what_the_exercise_takes():
    sources = [cell.source for cell in built("03_pooling", {"max_pool2d": "average"}, "solutions").cells]
    heading = next(i for i, text in enumerate(sources) if text.startswith("### Exercise: max_pool2d_average"))
    assert "Its author thought that the smaller ones forgave too little." in sources[heading - 1]
    assert "### Exercise: max_pool2d\n" not in "\n".join(sources)
    smoothed = built("04_backprop", {"softmax_cross_entropy": "smoothing"}, "solutions")
    assert any('journal.mine("softmax_cross_entropy", "affine_backward")' in cell.source for cell in smoothed.cells)


def test_a_guess_is_noted_for_the_variant(course):
    with (course / SOURCE).open("a", encoding="utf-8") as lesson:
        lesson.write('\n# %%\njournal.predict("im2col", 4)\n')
    notebook = built(CONVOLUTION, NHWC, "notebooks", course)
    assert 'journal.predict("im2col_nhwc", 4)' in [cell.source for cell in notebook.cells]


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (VARIANT, "# ### Exercise: im2col_nhwc", "# ### im2col", r"02_im2col_nhwc\.py: the first cell must be"),
        (VARIANT, '"check_im2col_nhwc"', '"check_im2col"', r"02_im2col_nhwc\.py: the cells with a grade_id must be"),
        (VARIANT, "### END SOLUTION", "", "do not pair up in the cell that starts with 'def im2col_nhwc"),
        (SOURCE, "# ### Exercise: im2col\n", "# ### im2col\n", "02_convolution: no line '### Exercise: im2col' stands"),
        (SOURCE, '"check_im2col"', '"check_im2cols"', "02_convolution: no cell check_im2col follows"),
    ],
)
def test_a_variant_that_does_not_fit_is_refused_with_its_file_and_cell(course, file, old, new, message):
    text = (course / file).read_text(encoding="utf-8")
    assert old in text
    (course / file).write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(notebooks.LessonError, match=message):
        notebooks.make(course, choices.Choices(variants=NHWC))


@pytest.mark.parametrize("wanted", [{"im2col": "nchw"}, {"ink": "nhwc"}])
def test_a_variant_that_does_not_exist_is_refused(course, wanted):
    with pytest.raises(notebooks.LessonError, match="there is no lessons/variants/NN_"):
        notebooks.make(course, choices.Choices(variants=wanted))


def test_a_class_builds_what_its_course_json_chooses(course):
    file = course / notebooks.CHOICES
    file.parent.mkdir(parents=True)
    file.write_text('{"variants": {"im2col": "nhwc"}}', encoding="utf-8")
    notebook = notebooks.make(course)["notebooks/02_convolution/02_convolution.ipynb"].decode()
    assert "check.im2col_nhwc(im2col_nhwc)" in notebook
    assert "check.im2col(im2col)" not in notebook
    file.write_text("{", encoding="utf-8")
    with pytest.raises(notebooks.LessonError, match=r"course\.json is not JSON"):
        notebooks.make(course)


@pytest.fixture
def chosen_by_the_class(tmp_path, monkeypatch):
    """A function that puts a course.json in force."""
    functions = (checks.lessons, checks.all_specs)

    def choose(**content):
        file = tmp_path / "course.json"
        file.write_text(json.dumps(content), encoding="utf-8")
        monkeypatch.setattr(choices, "FILE", file)
        for function in functions:
            function.cache_clear()

    yield choose
    monkeypatch.undo()
    for function in functions:
        function.cache_clear()


def test_course_json_chooses_lessons_variants_and_thresholds(chosen_by_the_class):
    chosen_by_the_class(
        lessons=["02_convolution"], variants={"im2col": "nhwc"}, thresholds={"conv2d_gemm": 2, "row_sum_maximum": 3}
    )
    assert list(checks.lessons()) == ["02_convolution"]
    specs = checks.lessons()["02_convolution"]
    assert list(specs) == ["conv2d_output_size", "conv2d_loops", "im2col_nhwc", "im2col_fast", "conv2d_gemm"]
    assert specs["conv2d_gemm"].speed.at_least == checks.all_specs()["conv2d_gemm"].speed.at_least == 2
    assert checks.all_specs()["row_sum_maximum"].speed.at_least == 3
    assert "im2col" in checks.all_specs()


def test_course_json_chooses_points_and_lessons_without_speed(chosen_by_the_class):
    chosen_by_the_class(points={"conv2d_gemm": 4, "conv2d_gemm/speed": 0, "im2col_nhwc": 5})
    specs = checks.lessons()["02_convolution"]
    assert choices.parts({"conv2d_gemm": specs["conv2d_gemm"]}) == {
        "conv2d_gemm": (4, None),
        "conv2d_gemm/speed": (0, specs["conv2d_gemm"].speed.at_least),
    }
    assert checks.all_specs()["im2col_nhwc"].total_points == 5
    chosen_by_the_class(without_speed=["02_convolution"], thresholds={"conv2d_gemm": 2})
    untimed = checks.lessons()["02_convolution"]["conv2d_gemm"]
    assert untimed.speed is None
    timed = {name for name, spec in checks.all_specs().items() if spec.speed}
    assert {name for name in timed if name.startswith(("conv2d", "im2"))} == {"conv2d_port"}
    assert checks.lessons()["01_matrix_parallelism"]["matmul_rows"].speed is not None


def test_the_build_writes_the_points_that_a_class_chose(course):
    chosen = choices.Choices(points={"im2col": 5}, without_speed=("02_convolution",))
    made = notebooks.make(course, chosen, [CONVOLUTION])[f"notebooks/{CONVOLUTION}/{CONVOLUTION}.ipynb"]
    marked = [cell for cell in nbformat.reads(made.decode(), as_version=4).cells if cells.grade_id(cell)]
    worth = {cells.grade_id(cell): cell.metadata.nbgrader.get("points") for cell in marked}
    specs = checks.declared()[CONVOLUTION]
    assert worth["check_im2col"] == 5
    assert worth["check_conv2d_gemm"] == specs["conv2d_gemm"].points
    assert worth["check_conv2d_loops"] == specs["conv2d_loops"].total_points


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"variants": {"im2col": "nchw"}}, "'im2col' has no variant 'nchw': it has nhwc"),
        ({"variants": {"ink": "nhwc"}}, "'ink' has no variant 'nhwc': it has none"),
        ({"variants": {"nosuch": "nhwc"}}, "there is no exercise 'nosuch' to choose a variant of"),
        ({"lessons": ["99_more"]}, "no lesson '99_more'"),
        ({"thresholds": {"im2col": 2}}, "no speed part of 'im2col'"),
        ({"thresholds": {"conv2d_gemm": 0}}, "must be positive, got 0"),
        ({"thresholds": {"conv2d_gemm": "fast"}}, "thresholds must map names to numbers"),
        ({"variants": ["im2col"]}, "variants must map names to suffixes"),
        ({"variant": {}}, r"has \['variant'\]"),
        ({"thresholds": {"conv2d_gemm": float("nan")}}, "must be positive, got nan"),
        ({"points": {"im2col/speed": 2}}, "there is no part 'im2col/speed' to set the points of"),
        ({"points": {"im2col": -1}}, "the points of 'im2col' must not be negative, got -1"),
        ({"points": {"im2col": 1.5}}, "points must map names to whole numbers"),
        ({"without_speed": ["99_more"]}, "no lesson '99_more'"),
        ({"without_speed": "02_convolution"}, "without_speed must be a list of names"),
    ],
)
def test_a_course_json_that_names_what_is_not_there_is_refused(chosen_by_the_class, content, message):
    chosen_by_the_class(**content)
    with pytest.raises(ValueError, match=message):
        checks.lessons()


def test_a_class_that_chose_a_variant_grades_it(chosen_by_the_class):
    """Built with the variant, handed in by a learner who answered it and nothing else, judged."""
    chosen_by_the_class(variants=NHWC)
    notebook = built(CONVOLUTION, NHWC, "notebooks")
    notebook.cells = [cell for cell in notebook.cells if cells.grade_id(cell) or "check.start(" in cell.source]
    solved = sample._solved(built(CONVOLUTION, NHWC, "solutions"))
    for cell in notebook.cells:
        if cells.grade_id(cell) == "im2col_nhwc":
            cell.source = solved["im2col_nhwc"]
    verdicts = judge(Submission("ada", CONVOLUTION, notebook, checks.lessons()[CONVOLUTION]), Options(timing=False))
    points = {score.part: score.points for score in verdicts.scores}
    assert points["im2col_nhwc"] == 3
    assert sum(points.values()) == 3
