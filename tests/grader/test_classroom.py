"""`unrolled class new`: learners get what they may have, and it works; instructors get the rest."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from unrolled import cli
from unrolled.cli import CommandError
from unrolled_grader.authoring import notebooks, sample
from unrolled_grader.authoring.syllabi import SYLLABI
from unrolled_grader.classroom import learners, seeds, settings, trees

ROOT = Path(__file__).resolve().parents[2]
LESSONS = ("00_start_here", "02_convolution")
OPTIONS = ("--lessons", "0,02", "--variant", "im2col=nhwc", "--threshold", "conv2d_gemm=2", "--name", "Spring 2027")
ADDRESS = ("--repository", "https://github.com/ada/spring", "--tag", "v1")
PRIVATE = ("grader/submitted/ada/x.ipynb", "grader/received/x.zip", "grader/gradebook.db", "grader/private_seed")
NOT_FOR_LEARNERS = {"lessons", "solutions", "grader", "benchmarks", "tests", "course.toml", "nbgrader_config.py"}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with three lessons, and with what people made in it."""
    root = tmp_path_factory.mktemp("class") / "course"
    for name in trees.WHOLE:
        if name not in ("lessons", "tests", "benchmarks"):
            trees.copy(ROOT / name, root / name)
    for lesson in ("00_start_here", "01_matrix_parallelism", "02_convolution"):
        trees.copy(ROOT / "lessons" / f"{lesson}.py", root / "lessons" / f"{lesson}.py")
    shutil.copytree(ROOT / "lessons" / "variants", root / "lessons" / "variants")
    for name in (*PRIVATE, "work/02_convolution.ipynb", "grades/scores.csv", "lib/unrolled/__pycache__/x.pyc"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("private")
    return root


@pytest.fixture(scope="module")
def made(course: Path) -> Path:
    """A class with lessons 00 and 02, a variant and a threshold."""
    folder = course.parent / "spring"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(course)
        assert cli.main(["class", "new", str(folder), *OPTIONS, *ADDRESS]) == 0
    return folder


def files(tree: Path) -> set[str]:
    return {file.relative_to(tree).as_posix() for file in tree.rglob("*") if file.is_file()}


def grade_ids(tree: Path, folder: str, lesson: str) -> set[str]:
    notebook = json.loads((tree / folder / lesson / f"{lesson}.ipynb").read_text(encoding="utf-8"))
    return {cell["metadata"]["nbgrader"]["grade_id"] for cell in notebook["cells"] if "nbgrader" in cell["metadata"]}


def test_learners_get_the_chosen_notebooks_and_nothing_of_the_instructors(made: Path):
    there = files(made / "learners")
    assert not {name.partition("/")[0] for name in there} & NOT_FOR_LEARNERS
    assert {name for name in there if name.endswith(".ipynb")} == {f"notebooks/{x}/{x}.ipynb" for x in LESSONS}
    assert {"LICENSE", "Makefile", "README.md", "pyproject.toml", "requirements.txt", ".ci/venv"} <= there
    seed = (made / "instructors" / seeds.FILE).read_bytes().strip()
    for name in there:
        content = (made / "learners" / name).read_bytes()
        assert seed not in content
        assert not name.endswith(".ipynb") or b"BEGIN SOLUTION" not in content


def test_what_people_made_goes_nowhere(made: Path):
    for tree in ("learners", "instructors"):
        there = files(made / tree)
        assert not {name for name in there if name.startswith(("work/", "grades/", "grader/submitted", "grader/rec"))}
        assert not {name for name in there if "__pycache__" in name or name.endswith(".db")}
        assert not (made / tree / ".git").exists()
    assert (made / "instructors" / seeds.FILE).read_text(encoding="ascii") != "private"
    assert seeds.FILE in (made / "instructors" / ".gitignore").read_text(encoding="utf-8").split()


def test_the_instructors_tree_is_built_and_knows_what_was_chosen(made: Path):
    tree = made / "instructors"
    assert notebooks.check(tree) == []
    found = settings.read(tree)  # which agrees with what learners' checks ask
    assert (found.name, found.lessons) == ("Spring 2027", LESSONS)
    assert (found.variants, found.thresholds) == ({"im2col": "nhwc"}, {"conv2d_gemm": 2.0})
    for folder in ("solutions", "notebooks"):
        ids = grade_ids(tree, folder, "02_convolution")
        assert {"im2col_nhwc", "check_im2col_nhwc"} <= ids
        assert "im2col" not in ids


def test_the_sample_class_hands_in_what_the_class_has(made: Path):
    cells = sample.notebook(made / "instructors", "raises", "02_convolution").cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    assert any("def im2col_nhwc" in source and "rows[at]" in source for source in sources)
    assert not any("def im2col(" in source and "raise" in source for source in sources)


@pytest.mark.parametrize("tree", ["learners", "instructors"])
def test_check_and_judge_ask_the_same(made: Path, tree: str):
    code = (
        "import json; from unrolled import checks; import unrolled; print(json.dumps([unrolled.__file__, "
        "{lesson: list(specs) for lesson, specs in checks.lessons().items()}, "
        "checks.lessons()['02_convolution']['conv2d_gemm'].speed.at_least]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(made / tree / "lib")}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    source, lessons, threshold = json.loads(run.stdout)
    assert Path(source).is_relative_to(made / tree)
    assert list(lessons) == list(LESSONS)
    assert lessons["02_convolution"] == [
        "conv2d_output_size",
        "conv2d_loops",
        "im2col_nhwc",
        "im2col_fast",
        "conv2d_gemm",
    ]
    assert threshold == 2.0


def test_the_learners_project_installs_the_library_alone(made: Path):
    project = notebooks.parsed_toml((made / "learners" / "pyproject.toml").read_text(encoding="utf-8"))
    ours = notebooks.parsed_toml((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dependencies"] == ours["project"]["dependencies"]
    assert set(project["project"]["optional-dependencies"]) == {"lab", "gpu"}
    assert project["tool"]["setuptools"]["packages"]["find"]["where"] == ["lib"]
    assert "checks/course.json" in project["tool"]["setuptools"]["package-data"]["unrolled"]
    assert "entry-points" not in project["project"]
    assert "grad" not in project["project"]["description"]
    assert re.findall(r"^([\w-]+):", (made / "learners" / "Makefile").read_text(encoding="utf-8"), re.M) == ["lab"]


@pytest.mark.parametrize("tree", ["learners", "instructors"])
def test_notebooks_fetch_the_class_and_not_the_whole_course(made: Path, tree: str):
    assert notebooks.read_address(made / tree) == notebooks.Address("https://github.com/ada/spring", "v1")
    text = (made / tree / "notebooks/00_start_here/00_start_here.ipynb").read_text(encoding="utf-8")
    assert "github.com/ada/spring" in text


def test_every_link_of_the_learners_pages_leads_somewhere(made: Path):
    tree = made / "learners"
    pages = [tree / "README.md", *(tree / "docs").glob("*.md")]
    assert len(pages) > 1
    for page in pages:
        links = learners.LINK.findall(page.read_text(encoding="utf-8"))
        for _, target, _ in links:
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"
    readme = (tree / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("# Spring 2027\n")
    assert "| [02 Convolution](notebooks/02_convolution/02_convolution.ipynb) | 110 |" in readme


def test_a_new_class_from_an_instructors_tree_is_as_its_course_toml_says(made: Path, tmp_path: Path):
    tree = made / "instructors"
    arguments = options(tmp_path / "next")
    assert trees.with_options(tree, arguments) == settings.read(tree)
    arguments.name, arguments.syllabus = "Autumn", "2h"
    assert trees.with_options(tree, arguments).name == "Autumn"
    assert trees.with_options(tree, arguments).lessons == SYLLABI["2h"].lessons


def test_an_option_changes_what_it_names_and_nothing_else(made: Path, tmp_path: Path):
    tree = made / "instructors"
    words = {"threshold": ["im2col_fast=3"], "points": ["conv2d_gemm/speed=0"], "without_speed": "all"}
    found = trees.with_options(tree, options(tmp_path, **words))
    assert found.variants == {"im2col": "nhwc"}
    assert found.thresholds == {"conv2d_gemm": 2.0, "im2col_fast": 3.0}
    assert found.points == {"conv2d_gemm/speed": 0}
    assert found.without_speed == tuple(notebooks.find_lessons(tree))


def options(folder: Path, **others: Any) -> Any:
    import argparse

    names = {"lessons": None, "syllabus": None, "without_speed": None, "name": None}
    names |= {"variant": [], "threshold": [], "points": []}
    return argparse.Namespace(folder=folder, **{**names, **others})


def test_a_folder_that_is_not_empty_is_left_alone(course: Path, tmp_path: Path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CommandError, match="not empty"):
        trees.new(course, tmp_path, settings.Settings(), notebooks.Address())
    assert files(tmp_path) == {"notes.txt"}


def test_a_folder_in_the_course_is_refused(course: Path):
    with pytest.raises(CommandError, match="outside of"):
        trees.new(course, course / "lib" / "spring", settings.Settings(), notebooks.Address())
    assert not (course / "lib" / "spring").exists()


def test_what_fails_half_way_leaves_nothing(course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(root: Path) -> None:
        raise notebooks.LessonError("02_convolution: no")

    monkeypatch.setattr(notebooks, "build", broken)
    with pytest.raises(CommandError, match="02_convolution: no"):
        trees.new(course, tmp_path / "spring", settings.Settings(), notebooks.Address())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"lessons": ","}, "--lessons names none"),
        ({"variant": ["im2col"]}, "--variant im2col: expected EXERCISE=SUFFIX"),
        ({"variant": ["im2col=upside_down"]}, "'im2col' has no variant 'upside_down': it has nhwc"),
        ({"variant": ["im2col=nhwc"], "lessons": "0,1"}, "'im2col' is of lesson 02, which is not chosen"),
        ({"threshold": ["im2col=fast"]}, "--threshold im2col=fast: expected CHECK=T, with a number above 0"),
        ({"threshold": ["im2col=2"]}, "no speed part of 'im2col'"),
        ({"points": ["im2col=1001"]}, "--points im2col=1001: expected PART=N, with a whole number from 0 to 1000"),
        ({"points": ["im2col/speed=2"]}, "there is no part 'im2col/speed'"),
        ({"without_speed": ""}, "--without-speed names none"),
        ({"syllabus": "4h"}, "there is no lesson '05_train_a_cnn'"),
    ],
)
def test_a_choice_that_is_not_there_is_named(course: Path, tmp_path: Path, words: dict[str, Any], says: str):
    with pytest.raises(CommandError, match=re.escape(says)):
        trees.check(course, trees.with_options(course, options(tmp_path, **words)))


def test_a_threshold_of_an_exercise_that_a_variant_replaces_is_named(course: Path):
    wanted = settings.Settings(variants={"im2col": "nhwc"}, thresholds={"im2col": 2.0})
    with pytest.raises(CommandError, match="replaced by its variant: set that of im2col_nhwc"):
        trees.check(course, wanted)


def test_a_link_to_a_page_that_is_not_there_becomes_its_words():
    text = "See [grading](grading.md#how), [GPU](gpu.md#x), [site](https://a.b/c.md) and ![a picture](ladder.png)."
    assert learners.unlinked(text, ["gpu.md"]) == (
        "See grading, [GPU](gpu.md#x), [site](https://a.b/c.md) and ![a picture](ladder.png)."
    )


def test_syllabi_name_lessons_in_order_and_fill_their_hours():
    names = list(notebooks.find_lessons(ROOT))
    for name, syllabus in SYLLABI.items():
        assert name == f"{syllabus.hours}h"
        assert list(syllabus.lessons) == [lesson for lesson in names if lesson in syllabus.lessons]


def test_the_whole_course_is_all_that_git_keeps():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    made = ("solutions/", "notebooks/")
    assert {
        name for name in kept if name and not name.startswith(made) and not name.startswith(tuple(trees.WHOLE))
    } == set()
