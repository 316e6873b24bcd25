"""A notebook of another version is judged by that release, at every door; one whose release is not here waits."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
import small_course
from nbformat import NotebookNode
from small_course import GOOD, LESSON, SPECS, answered, autograde, grades, hand_in, perform_here, recorded, rows

from unrolled.cli import CommandError
from unrolled_grader import commands
from unrolled_grader.grading import Grading
from unrolled_grader.jobs import job, queue, record, releases, versions
from unrolled_grader.jobs.record import Record
from unrolled_grader.judge.evidence import Score, without
from unrolled_grader.judge.verdicts import Options

OLDER = "0.0.9"
TRIPLES = "def double(number):\n    return 3 * number"
SPEC = '''
"""Declared in the older release alone: there, `double` triples, and there is no `total`."""
from unrolled.checks.spec import Spec, case

double = Spec(lambda number: 3 * number, [case("two", number=2)], 3, ("a", "b", "c"))
extra = Spec(lambda number: number, [case("two", number=2)], 1, ("a", "b", "c"))
'''


def older_course(root: Path, made: Path) -> Path:
    """A checkout of an older release: other checks, other points, no `total`."""
    ignored = shutil.ignore_patterns("__pycache__", "*.ipynb", "site")
    shutil.copytree(small_course.ROOT / "lib", made / "lib", ignore=ignored)
    shutil.copytree(
        small_course.ROOT / "grader" / "unrolled_grader", made / "grader" / "unrolled_grader", ignore=ignored
    )
    package = made / "lib" / "unrolled" / "__init__.py"
    text = package.read_text(encoding="utf-8")
    package.write_text(releases.VERSION.sub(f'__version__ = "{OLDER}"', text), encoding="utf-8")
    specs = made / "lib" / "unrolled" / "checks" / "exercises" / f"l{LESSON}"
    specs.mkdir()
    (specs / "__init__.py").touch()
    (specs / "exercises.py").write_text(SPEC, encoding="utf-8")
    notebook = made / "notebooks" / LESSON / f"{LESSON}.ipynb"
    notebook.parent.mkdir(parents=True)
    nbformat.write(of_version(OLDER, older_notebook(root)), notebook)
    return made


def older_notebook(root: Path) -> NotebookNode:
    """What its learners got: a check more and an exercise less than now."""
    nb = small_course.released(root)
    nb.cells = [cell for cell in nb.cells if "total" not in str(cell.metadata) or "explain" in str(cell.metadata)]
    for cell in nb.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "check_double":
            cell.metadata.nbgrader.points = 3
    more = json.loads(small_course.CHECK % ("extra", 1))
    nb.cells.append(nbformat.v4.new_code_cell("check.extra(extra)", metadata={"nbgrader": more}))
    return nb


def of_version(version: str, nb: NotebookNode) -> NotebookNode:
    nb.metadata.unrolled.version = version
    return nb


def handed_in_older(root: Path, student: str) -> Path:
    """It triples, which is wrong today, and right there."""
    nb = of_version(OLDER, older_notebook(root))
    return hand_in(root, student, small_course.with_answers(nb, {"double": TRIPLES}))


@pytest.fixture(scope="module")
def course(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grading]:
    """The small course with the older release beside it. Without sandbox or timing: neither is in question here."""
    made = older_course(root, tmp_path_factory.mktemp("older") / "checkout")
    release, lessons = releases.add_release(root, str(made))
    assert (release.version, LESSON in lessons) == (OLDER, True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue, "run", perform_here)
        patch.setenv("UNROLLED_UNSAFE_NO_SANDBOX", "1")
        course = Grading.at(root)
        course.judge_with(timing=False, sandbox=False)
        yield course


def graded(course: Grading, student: str) -> Record:
    commands.grade_class(course, student=student)
    return recorded(course, student)


def test_it_is_judged_by_its_own_specs_and_cells_once_for_all_doors(
    course: Grading, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_in_older(root, "ann")
    assert autograde(root, "ann", timing=False)["success"]
    kept = recorded(course, "ann")
    monkeypatch.setattr(versions, "performed_by", lambda *arguments: pytest.fail("judged again"))
    assert graded(course, "ann") == kept
    assert autograde(root, "ann", timing=False)["success"]
    assert kept.problem == ""
    assert (kept.version, kept.max_points) == (OLDER, 4)
    assert rows(kept.scores) == {"double": ("pass", 3.0), "extra": ("missing", 0.0)}
    (flag,) = kept.flags
    assert flag == (
        f"of version {OLDER}, and judged by its checks; worth something else: double (3 there, 2 here); "
        "not in that version: total; in that version alone: extra"
    )
    assert grades(course, "ann") == {  # the same share of what a check is worth here; what it does not have waits
        "check_double": (2.0, False),
        "check_total": (0.0, True),
        "explain_total": (0.0, False),
    }
    page = course.feedback / "ann" / LESSON / f"{LESSON}.html"
    assert "double: 3 of 3 points, pass" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("0.0.8", "it is of version 0.0.8, older than this course"),
        ("99.1", "it is of version 99.1, newer than this course"),
        ("../../x", "it says that it is of version '../../x', which is none"),
    ],
)
def test_one_whose_release_is_not_here_waits(course: Grading, root: Path, version: str, message: str) -> None:
    student = f"w{len(message)}"
    hand_in(root, student, of_version(version, answered(root, GOOD)))
    kept = graded(course, student)
    assert kept.problem.startswith(f"{versions.SET_ASIDE}{message}")
    assert ("unrolled version add" in kept.problem) is (version != "../../x")
    assert {score.verdict for score in kept.scores} == {"deferred"}
    assert set(grades(course, student).values()) == {(0.0, True)}  # withheld: a person's, or the next run's
    result = autograde(root, student, timing=False)
    assert not result["success"]
    assert message in str(result["log"])


def test_the_version_stands_in_the_first_cell_where_the_metadata_are_lost(course: Grading, root: Path) -> None:
    nb = answered(root, GOOD)
    del nb.metadata["unrolled"]
    for cell in nb.cells:
        cell.source = cell.source.replace(f'"{versions.unrolled.__version__}")', '"0.0.7")')
    hand_in(root, "dan", nb)
    assert "version 0.0.7" in graded(course, "dan").problem


def test_a_release_that_fails_grades_nobody(
    course: Grading, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_in_older(root, "eve")
    monkeypatch.setattr(versions, "PERFORM", "raise SystemExit('no NumPy there')")
    assert commands.grade_class(course, student="eve") == 1
    assert f"not graded: version {OLDER} cannot grade here: no NumPy there" in capsys.readouterr().out
    assert record.load(course.grades, "eve", LESSON) is None


def test_a_record_of_a_later_format_is_not_guessed_at() -> None:
    found = Record("ann", LESSON, "d", without("double", SPECS["double"], "fail", "why"))
    data = json.loads(json.dumps(record.to_dict(found)))
    data["new"], data["scores"][0]["new"] = 1, 2
    assert versions.adopted(data).scores == found.scores
    with pytest.raises(ValueError, match="its record has format 2, expected one of"):
        versions.adopted({**data, "format": 2})


def test_points_are_brought_by_share() -> None:
    scores = [Score("a", "pass", 2, 2, ""), Score("a/speed", "fail", 0, 2, ""), Score("gone", "pass", 1, 1, "")]
    found = versions.converted_points(scores, {"a": 3.0, "new": 2.0})
    assert found == ({"check_a": 1.5, "check_new": 0.0}, {"check_new"})


def test_what_is_no_release_is_named_and_leaves_nothing(course: Grading, root: Path, tmp_path: Path) -> None:
    def refused(source: object, message: str) -> None:
        with pytest.raises(CommandError, match=message):
            releases.add_release(root, str(source))

    before = sorted((root / releases.FOLDER).iterdir())
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "a release holds lib, grader/unrolled_grader, notebooks")
    refused("v9", "no tag here")
    refused("--output=x", "expected a tag")
    same = shutil.copytree(root / releases.FOLDER / OLDER, tmp_path / "same")
    refused(same, "is there already")
    init = same / "lib" / "unrolled" / "__init__.py"
    init.write_text(f'__version__ = "{versions.unrolled.__version__}"\n', encoding="utf-8")
    refused(same, "its notebooks are judged here")
    (same / "lib" / "gone").symlink_to(tmp_path / "nowhere")
    refused(same, "cannot be copied")
    (same / "lib" / "gone").unlink()
    init.write_text('__version__ = "0.0.5"\n1 / 0\n', encoding="utf-8")
    refused(same, r"version 0\.0\.5 does not run with this Python: ZeroDivisionError")
    assert sorted((root / releases.FOLDER).iterdir()) == before


def test_options_of_an_order_are_those_that_every_release_knows() -> None:
    """An order goes to older releases, which build their own Options from it."""
    assert set(job._resources(Options())) <= {"resources"}
    known = {"timing", "sandbox"}
    handed = job.intake.Handed("a", LESSON, Path("x"), "d")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "specs_hash", lambda released: "")
        assert set(job.order_for(handed, Path("r"), Path("f"), Options())["options"]) == known
