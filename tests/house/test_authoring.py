"""The build: what it makes of a lesson, that it is deterministic, and what `--check` finds."""

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell
from throwaway import LESSON, make_course

import unrolled
from unrolled import checks, cli
from unrolled_grader.authoring import notebooks, one_cell, specs
from unrolled_grader.authoring.notebooks import Address, Change, LessonError

SOLUTION = "solutions/07_doubling/07_doubling.ipynb"
NOTEBOOK = "notebooks/07_doubling/07_doubling.ipynb"
PUBLIC = Address("https://github.com/someone/unrolled", "v1.2.3")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course after its first build; do not change it."""
    root = make_course(tmp_path_factory.mktemp("built") / "course")
    assert notebooks.build(root) == [Change("missing", NOTEBOOK), Change("missing", SOLUTION)]
    return root


def notebook_of(tmp_path: Path, text: str = LESSON, address: Address | None = None, **options):
    file = tmp_path / "07_doubling.py"
    file.write_text(text, encoding="utf-8")
    return notebooks.solution_notebook(file, address or Address(), **options)


def test_the_solution_is_complete_and_holds_no_trace_of_jupytext(built):
    text = (built / SOLUTION).read_text(encoding="utf-8")
    nb = nbformat.reads(text, as_version=4)
    nbformat.validate(nb)
    assert "return 2 * number" in text
    assert "jupytext" not in text
    assert "lines_to_next_cell" not in text
    assert [sorted(cell.metadata) for cell in nb.cells] == [[], [], [], [], ["nbgrader"], ["nbgrader"], ["nbgrader"]]
    assert nb.metadata == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "unrolled": {"lesson": "07_doubling", "version": unrolled.__version__},
    }
    assert all(cell.outputs == [] and cell.execution_count is None for cell in nb.cells if cell.cell_type == "code")


def test_the_learner_gets_no_solution_but_everything_else(built):
    text = (built / NOTEBOOK).read_text(encoding="utf-8")
    cells = {cell.id: cell for cell in nbformat.reads(text, as_version=4).cells}
    assert not re.search("secret|2 \\* number|SOLUTION", text)
    assert cells["double"].source.endswith('About 1 line."""\n    # your code here\n    raise NotImplementedError')
    assert cells["explain"].source == "Your answer here."
    assert cells["check_double"].source == "assert double(2) == 4"
    assert cells["check_double"].metadata.editable is False
    assert cells["check_double"].metadata.nbgrader.checksum


def test_cells_are_named_by_grade_id_or_by_source_and_occurrence(built, tmp_path):
    ids = [cell.id for cell in nbformat.read(built / SOLUTION, as_version=4).cells]
    assert ids[4:] == ["double", "check_double", "explain"]
    assert len(set(ids)) == 7
    assert ids[2] != ids[3], "the same source twice"
    later = notebook_of(tmp_path, LESSON.replace("# %%\nx = 1", "# %%\ny = 2\n\n# %%\nx = 1", 1))
    assert [cell.id for cell in later.cells if cell.source == "x = 1"] == ids[2:4], "an inserted cell renames no other"


@pytest.mark.parametrize("call", ['check.start("07_doubling", "0.0.0")', "check.start('07_doubling')"])
def test_a_version_in_the_lesson_is_replaced(tmp_path, call):
    source = notebook_of(tmp_path, LESSON.replace('check.start("07_doubling")', call)).cells[1].source
    assert source.count("check.start") == 1
    assert f'check.start("07_doubling", "{unrolled.__version__}")' in source


def test_without_an_address_there_is_no_badge_and_no_index_is_asked(tmp_path):
    """Whose package an index has by the course's name, nobody knows."""
    nb = notebook_of(tmp_path)
    assert nb.cells[0].source == "# Doubling\n\nTen minutes. You will double a number."
    assert f' --no-index {{places}} unrolled=={unrolled.__version__}")\n' in nb.cells[1].source


def test_with_an_address_there_are_a_badge_and_a_tagged_install(tmp_path):
    nb = notebook_of(tmp_path, LESSON, PUBLIC)
    title, _, badge, _, text = nb.cells[0].source.split("\n")
    assert (title, text) == ("# Doubling", "Ten minutes. You will double a number.")
    assert f"(https://colab.research.google.com/github/someone/unrolled/blob/v1.2.3/{NOTEBOOK})" in badge
    wheel = f"releases/download/v1.2.3/unrolled-{unrolled.__version__}-py3-none-any.whl"
    assert f'install -q "unrolled @ https://github.com/someone/unrolled/{wheel}"' in nb.cells[1].source
    assert nb.cells[1].source.index("install -q") < nb.cells[1].source.index("from unrolled import check")


def test_colab_opens_github_only_and_elsewhere_the_tag_itself_is_installed(tmp_path):
    github, other = Address("https://github.com/a/b.git/", "v1"), Address("https://gitlab.com/a/b", "v1")
    assert "colab" not in notebook_of(tmp_path, LESSON, other).cells[0].source
    assert "/github/a/b/blob/" in github.badge("07_doubling")
    assert github.wheel().startswith("https://github.com/a/b/releases/download/v1/")
    assert other.wheel() == "git+https://gitlab.com/a/b@v1"


@pytest.mark.parametrize("address", [PUBLIC, Address()])
def test_the_install_line_runs_only_where_the_course_is_missing(tmp_path, address):
    cells = notebook_of(tmp_path, LESSON, address).cells
    assert re.search(r"except ModuleNotFoundError:.*\n(    .*\n)*    get_ipython\(\)\.run_line", cells[1].source)
    assert one_cell.function(cells, "double")(2) == 4, "the cell is plain Python, as the proofs read it"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# # Doubling", "# Doubling", "first cell must be markdown"),
        ('check.start("07_doubling")', "", r"must call check.start\(\"07_doubling\"\)"),
        ('check.start("07_doubling")', 'check.start("08_other")', "must call check.start"),
        ("### BEGIN SOLUTION", "### BEGIN SOLUTON", "do not pair up in the cell that starts with 'def double"),
        ("    ### END SOLUTION\n", "", "do not pair up"),
        ('"grade_id": "check_double"', '"grade_id": "double"', "2 cells have the grade_id 'double'"),
        ('"grade_id": "double"', '"grade_id": "a double"', "must be 1-64 letters"),
    ],
)
def test_a_malformed_lesson_is_refused_with_its_name_and_the_reason(tmp_path, old, new, message):
    assert old in LESSON
    with pytest.raises(LessonError, match=f"07_doubling: .*{message}"):
        notebook_of(tmp_path, LESSON.replace(old, new))


SPEC = checks.Spec(reference=abs, cases=(), points=3, hints=("", "", ""), numbers={"launches": 4})
SPEED = checks.Speed(baseline=abs, inputs={}, at_least=4.5, points=1, against="")
QUOTING = "First {points} points. At least {T} times as fast,\nsays `{T}`. At most {launches} launches."


def test_a_check_is_worth_what_its_spec_says(tmp_path):
    plain, pointless = notebook_of(tmp_path), LESSON.replace('"points": 1, ', "", 1)
    worth = notebook_of(tmp_path, pointless, asked={"double": SPEC})
    assert [one.id for one, other in zip(plain.cells, worth.cells, strict=True) if one != other] == ["check_double"]
    assert worth.cells[5].metadata.nbgrader.points == 3
    with pytest.raises(LessonError, match="07_doubling: the cell check_double: take its points out"):
        notebook_of(tmp_path, asked={"double": SPEC})
    with pytest.raises(LessonError, match="07_doubling: the cell check_double: there is no spec for it"):
        notebook_of(tmp_path, pointless)


@pytest.mark.parametrize(
    ("speed", "expected"),
    [
        (SPEED, "First 4 points. At least 4.5 times as fast,\nsays `{T}`. At most 4 launches."),
        (None, "First 3 points. At most 4 launches."),  # where a class measures no speed
    ],
)
def test_text_quotes_the_spec_of_the_last_heading_above(speed, expected):
    spec = dataclasses.replace(SPEC, speed=speed)
    cells = [new_markdown_cell("### Exercise: double\n\n" + QUOTING), new_markdown_cell("Again " + QUOTING)]
    specs.write("07_doubling", cells, {"double": spec})
    assert [cell.source for cell in cells] == ["### Exercise: double\n\n" + expected, "Again " + expected]


def test_text_that_quotes_what_no_spec_has_is_refused():
    cells = [new_markdown_cell("### Exercise: double\n\nAt most {lanches} launches.")]
    with pytest.raises(LessonError, match=r"double quotes {lanches}; there is {points}, {launches}"):
        specs.write("07_doubling", cells, {"double": SPEC})


def test_what_nbgrader_refuses_is_reported_and_leaves_the_tree_untouched(tmp_path):
    unmarked = LESSON.replace('"solution": true, "task": false}\ndef', '"solution": false, "task": false}\ndef')
    root = make_course(tmp_path / "course", unmarked)
    with pytest.raises(LessonError, match=r"07_doubling: nbgrader refuses it.*non-solution cell"):
        notebooks.build(root)
    assert not (root / "solutions").exists()


@pytest.mark.parametrize(
    ("repository", "tag", "message"),
    [("https://github.com/a/b", "", "both repository and tag"), ("git@github.com:a/b", "v1", "https://")],
)
def test_half_an_address_is_refused(repository, tag, message):
    with pytest.raises(LessonError, match=message):
        Address(repository, tag)


def test_the_address_is_read_from_pyproject(course):
    assert notebooks.read_address(course) == Address()
    project = course / "pyproject.toml"
    text = project.read_text(encoding="utf-8").replace('repository = ""', 'repository = "https://github.com/a/b"')
    project.write_text(text.replace('tag = ""', 'tag = "v9"'), encoding="utf-8")
    assert notebooks.read_address(course) == Address("https://github.com/a/b", "v9")


def test_a_script_with_another_name_is_refused(course):
    (course / "lessons" / "notes.py").write_text("", encoding="utf-8")
    with pytest.raises(LessonError, match=r"lessons/notes\.py: a lesson is named NN_topic"):
        notebooks.build(course)


def test_another_hash_seed_and_time_zone_give_the_same_bytes(built):
    """Another process, so that nothing that varies between processes can hide."""
    find = "from pathlib import Path; from unrolled_grader.authoring import notebooks"
    code = f"{find}; print(notebooks.check(Path({str(built)!r})))"
    env = {**os.environ, "PYTHONHASHSEED": "123", "TZ": "Asia/Kolkata", "LC_ALL": "C"}
    assert subprocess.check_output([sys.executable, "-c", code], env=env, text=True) == "[]\n"


def test_check_names_what_differs_is_missing_or_stale_and_build_repairs_it(course):
    notebooks.build(course)
    notebook = course / NOTEBOOK
    notebook.write_bytes(notebook.read_bytes() + b" ")
    (course / SOLUTION).unlink()
    gone = course / "notebooks" / "08_gone"
    leftovers = [
        notebook.parent / ".ipynb_checkpoints" / "07_doubling-checkpoint.ipynb",
        notebook.parent / "journal.json",
    ]
    for file in (gone / "08_gone.ipynb", *leftovers):  # a learner's are not the build's business
        file.parent.mkdir(exist_ok=True)
        file.write_text("{}", encoding="utf-8")
    expected = [
        Change("differs", NOTEBOOK),
        Change("stale", "notebooks/08_gone/08_gone.ipynb"),
        Change("missing", SOLUTION),
    ]
    assert notebooks.check(course) == expected
    assert notebooks.build(course) == expected
    assert notebooks.check(course) == []
    assert not gone.exists()
    assert all(file.exists() for file in leftovers)


def test_a_course_without_lessons_builds(course):
    next((course / "lessons").iterdir()).unlink()
    assert notebooks.build(course) == []


def test_formgraders_generate_gives_the_same_bytes(course, monkeypatch):
    """With a database, from the course's root."""
    from nbgrader.apps import NbGraderAPI

    directory = notebooks.nbgrader_config(course).CourseDirectory
    assert (directory.root, directory.submitted_directory) == (str(course), "grader/submitted")
    notebooks.build(course)
    committed = (course / NOTEBOOK).read_bytes()
    (course / NOTEBOOK).unlink()
    monkeypatch.chdir(course)
    monkeypatch.setenv("PATH", os.defpath)  # nbgrader calls `alembic` by name; our configuration must provide it
    result = NbGraderAPI(config=notebooks.nbgrader_config(course)).generate_assignment("07_doubling")
    assert result["success"], result
    assert (course / NOTEBOOK).read_bytes() == committed
    assert (course / "grader" / "gradebook.db").exists()


def test_the_command_builds_checks_and_says_so(course, monkeypatch, capsys):
    monkeypatch.chdir(course / "lessons")
    assert cli.main(["build", "--check"]) == 1
    found = capsys.readouterr()
    assert found.out == f"{NOTEBOOK} (missing)\n{SOLUTION} (missing)\n"
    assert "run `make build`" in found.err
    assert cli.main(["build"]) == 0
    minutes = "07_doubling: 0 minutes stated, 7 computed (prose 0, exercises 0, cells 7)"
    assert capsys.readouterr().out == f"made {NOTEBOOK}\nmade {SOLUTION}\n{minutes}\nlessons: 1, files changed: 2\n"
    assert cli.main(["build", "--check"]) == 0
    assert capsys.readouterr().err == ""


def test_the_command_says_in_one_line_what_is_wrong_with_a_lesson(course, monkeypatch, capsys):
    monkeypatch.chdir(course)
    (course / "lessons" / "07_doubling.py").write_text("# %%\n1\n", encoding="utf-8")
    assert cli.main(["build"]) == 1
    message = "unrolled build: 07_doubling: the first cell must be markdown and start with the title, '# …'\n"
    assert capsys.readouterr().err == message


def test_a_body_that_stands_in_the_library_is_written_out():
    body = "    # body of unrolled.ops.amdahl.amdahl_speedup"
    source = f"def f(x):\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION\n"
    lines = specs.with_bodies("07_doubling", source).splitlines()
    assert (lines[1], lines[-1]) == ("    ### BEGIN SOLUTION", "    ### END SOLUTION")
    assert "    return " in lines[-2]
    assert all(line.startswith("    ") for line in lines[1:])
    with pytest.raises(LessonError, match=r"07_doubling: '# body of unrolled\.ops\.nothing': .*nothing"):
        specs.with_bodies("07_doubling", "    # body of unrolled.ops.nothing")
