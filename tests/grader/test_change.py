"""`unrolled class change`: a class under way asks something else, in both trees at once, and nothing is lost."""

import csv
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import changing
import pytest
import small_course
from changing import OTHER, files, marked, run, worth
from small_course import GOOD, LESSON, answered, hand_in, table

from unrolled.cli import CommandError
from unrolled_grader import commands
from unrolled_grader.authoring import notebooks
from unrolled_grader.box import sandbox
from unrolled_grader.classroom import gradebook, seeds, settings
from unrolled_grader.export import Canvas
from unrolled_grader.grading import Grading
from unrolled_grader.jobs import queue, record
from unrolled_grader.judge import verdicts
from unrolled_grader.judge.verdicts import Options, Submission, Verdicts

CHANGED = {"instructors/course.toml", f"instructors/{settings.CHOICES}", f"learners/{settings.CHOICES}"}
WRONG = GOOD | {"double": "def double(number):\n    return number"}


def judge_by_reading(patch: pytest.MonkeyPatch) -> None:
    """Judge in this process, and run nothing."""
    patch.setattr(queue, "run", small_course.perform_here)
    patch.setattr(verdicts, "judge", changing.judge)
    patch.setattr(sandbox, "problem", lambda: "")
    patch.setattr(commands, "warm_up", lambda jobs: None)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The class after its first week: ann and bob are graded, and a person has read what ann wrote."""
    folder = tmp_path_factory.mktemp("class")
    with pytest.MonkeyPatch.context() as patch:
        changing.know(patch, folder / "instructors")
        judge_by_reading(patch)
        root = changing.make(folder)
        for student, answers in {"ann": GOOD, "bob": WRONG}.items():
            hand_in(root, student, answered(root, answers | {"explain_total": f"One call, says {student}."}))
        commands.grade_class(Grading.at(root))
        marked(root, "ann", 1.5)
        commands.grade_class(Grading.at(root))
    return folder


@pytest.fixture
def root(begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in which the test stands."""
    folder = shutil.copytree(begun, tmp_path / "class")
    judge_by_reading(monkeypatch)
    changing.know(monkeypatch, folder / "instructors")
    monkeypatch.chdir(folder / "instructors")
    return folder / "instructors"


def points(root: Path) -> dict[tuple[str, str], tuple[str, str]]:
    found = table(root / "grades" / "scores.csv")
    return {(row["student"], row["check"]): (row["points"], row["max_points"]) for row in found}


def logged(root: Path) -> list[tuple[str, ...]]:
    """The log of regrades without the times."""
    return [tuple(row.values())[1:] for row in table(root / "grades" / "regrades.csv")]


def exported(root: Path) -> list[list[str]]:
    course, file = Grading.at(root), root / "canvas.csv"
    with gradebook.opened(course.directory) as book:
        Canvas(config=course.config, to=str(file), unfinished="points").export(book)
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def test_a_threshold_in_week_two(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed, before = (root / seeds.FILE).read_bytes(), files(root)
    assert points(root)["ann", "total/speed"] == ("0", "1")
    with pytest.raises(CommandError, match="nobody can be asked here, and nothing was changed: say --yes"):
        run("--threshold", "total=2")
    asked = "total/speed: at least 2 times as fast as its baseline, not 5"
    assert capsys.readouterr().out == (
        f"{LESSON}\n  {asked}\n  to be judged again: 2 (ann, bob)\nfiles: 2 here, 1 in the learners' tree\n"
    )
    assert files(root) == before

    assert run("--threshold", "total=2", "--yes") == 0
    changed = {name for name, content in files(root).items() if before.get(name) != content}
    assert changed == CHANGED
    assert (root / seeds.FILE).read_bytes() == seed
    assert settings.read(root).thresholds == {"total": 2.0}
    assert points(root)["ann", "total/speed"] == ("1", "1")
    assert points(root)["ann", "explain_total"] == ("1.5", "2")
    lines = [("ann", LESSON, "total/speed", "0", "1"), ("bob", LESSON, "total/speed", "0", "1")]
    assert logged(root) == [(*line, f"the class changed: {asked}") for line in lines]
    assert exported(root)[1][-1] == "6"

    capsys.readouterr()
    assert run("--threshold", "total=2") == 0
    assert capsys.readouterr().out == "nothing changes: the class asks this already\n"


def test_an_older_learners_tree_gets_what_both_trees_share(root: Path) -> None:
    """The wheel of a tree without setup.py would hold no lessons."""
    (root / "setup.py").write_text("setup()", encoding="utf-8")
    assert run("--yes", "--later") == 0
    assert (root.parent / "learners" / "setup.py").read_text(encoding="utf-8") == "setup()"


def test_points_change_and_nothing_leaves_on_two_scales(
    root: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert run("--points", "double=4", "--points", "total/speed=0", "--later", "--yes") == 0
    output = capsys.readouterr().out
    for line in ("  double: 4 points, not 2\n", "  7 points at most, not 6\n", "judged again: `unrolled grade 07`"):
        assert line in output
    for tree in (root, root.parent / "learners"):
        assert worth(tree) == {"check_double": 4, "check_total": 1, "explain_total": 2}
    with pytest.raises(SystemExit):
        exported(root)
    assert f"2 submissions of {LESSON} stand on another scale than the class has now (ann, bob)" in caplog.text
    assert not (root / "canvas.csv").exists()

    commands.grade_class(Grading.at(root), student="ann")
    with pytest.raises(SystemExit):
        exported(root)
    assert f"1 submissions of {LESSON} stand on another scale than the class has now (bob)" in caplog.text
    commands.grade_class(Grading.at(root))
    table = exported(root)
    assert (table[1][-1], [row[-1] for row in table[2:]]) == ("7", ["6.5", "1"])
    assert points(root)["ann", "explain_total"] == ("1.5", "2")
    assert {line[:5] for line in logged(root)} == {("ann", LESSON, "double", "2", "4")}


def test_a_lesson_is_added_and_taken_out_again(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, theirs = files(root), root.parent / "learners"
    with (theirs / "README.md").open("a", encoding="utf-8") as readme:
        readme.write("\nWe meet on Mondays.\n")
    assert run("--lessons", "7,8", "--yes") == 0
    assert f"{OTHER}\n  this lesson is added\n" in capsys.readouterr().out
    assert (theirs / "notebooks" / OTHER / f"{OTHER}.ipynb").is_file()
    text = (theirs / "README.md").read_text(encoding="utf-8")
    assert f"| [08 Halving](notebooks/{OTHER}/{OTHER}.ipynb) | 5 |\n" in text
    assert text.endswith("\nWe meet on Mondays.\n")
    assert not (root / "grades" / "regrades.csv").exists()
    assert run("--lessons", "7", "--yes") == 0
    now = files(root)
    assert [name for name in before.keys() | now.keys() if before.get(name) != now.get(name)] == ["learners/README.md"]


def test_another_variant_takes_the_place_of_an_exercise(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--variant", "double=text", "--yes") == 0
    output = capsys.readouterr().out
    assert "  double: not asked any more\n  double_text: asked from now on, for 2 points\n" in output
    assert "double_text" in (root.parent / "learners" / "notebooks" / LESSON / f"{LESSON}.ipynb").read_text()
    found = points(root)
    assert found["ann", "double_text"] == ("0", "2")
    assert ("ann", "double") not in found
    assert found["ann", "explain_total"] == ("1.5", "2")
    assert [line[:5] for line in logged(root)] == [("ann", LESSON, "double", "2", "0")]
    assert logged(root)[0][-1].startswith("the class changed: double: not asked any more")
    hand_in(root, "bob", answered(root, {"double_text": GOOD["double"], "explain_total": "One call."}))
    commands.grade_class(Grading.at(root))
    assert [row[-1] for row in exported(root)][1:] == ["6", "2.5", "0"]


def test_an_answer_in_words_that_people_marked_never_vanishes(root: Path) -> None:
    script = root / "lessons" / f"{LESSON}.py"
    text = script.read_text(encoding="utf-8")
    script.write_text(text.replace("explain_total", "explain_sum"), encoding="utf-8")
    notebooks.build(root)
    message = "no longer has explain_total, for which people gave points: put the cell back"
    with pytest.raises(CommandError, match=message):
        Grading.at(root).fill_gradebook(LESSON)
    assert points(root)["ann", "explain_total"] == ("1.5", "2")
    script.write_text(text, encoding="utf-8")
    notebooks.build(root)
    commands.grade_class(Grading.at(root))
    assert points(root)["ann", "explain_total"] == ("1.5", "2")


def test_speed_is_switched_off_and_on(root: Path) -> None:
    assert run("--without-speed", "all", "--yes") == 0
    assert settings.read(root).without_speed == (LESSON, OTHER)
    assert worth(root) == {"check_double": 2, "check_total": 1, "explain_total": 2}
    assert ("ann", "total/speed") not in points(root)
    assert exported(root)[1][-1] == "5"
    file = root / settings.FILE
    file.write_text(
        file.read_text().replace(f'without_speed = ["{LESSON}", "{OTHER}"]', f'without_speed = ["{OTHER}"]')
    )
    assert run("--yes") == 0
    assert points(root)["ann", "total/speed"] == ("0", "1")
    assert exported(root)[1][-1] == "6"


def test_what_course_toml_says_is_applied_without_any_option(root: Path) -> None:
    file = root / settings.FILE
    file.write_text(file.read_text().replace("[thresholds]", "[thresholds]\ntotal = 2\n# since the second week"))
    with pytest.raises(settings.SettingsError, match=r"`unrolled class change` applies what course\.toml says"):
        settings.read(root)
    text = file.read_bytes()
    assert run("--yes") == 0
    assert points(root)["bob", "total/speed"] == ("1", "1")
    assert file.read_bytes() == text


def test_a_person_is_asked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    before = files(root)
    for answer in ("no", ""):
        monkeypatch.setattr("builtins.input", lambda _, answer=answer: answer)
        with pytest.raises(CommandError, match="nothing was changed"):
            run("--threshold", "total=2")
    assert files(root) == before
    monkeypatch.setattr("builtins.input", lambda _: "yes")
    assert run("--threshold", "total=2", "--later") == 0
    assert settings.read(root).thresholds == {"total": 2.0}


def test_a_regrade_that_was_killed_goes_on_and_is_logged_alike(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(submission: Submission, options: Options) -> Verdicts:
        if submission.student == "bob":
            raise KeyboardInterrupt
        return changing.judge(submission, options)

    monkeypatch.setattr(verdicts, "judge", killed)
    with pytest.raises(KeyboardInterrupt):
        run("--threshold", "total=2", "--yes")
    monkeypatch.setattr(verdicts, "judge", changing.judge)
    assert points(root)["ann", "total/speed"] == ("1", "1")
    assert points(root)["bob", "total/speed"] == ("0", "1")
    with pytest.raises(SystemExit):
        exported(root)
    assert run("--yes") == 0
    assert points(root)["bob", "total/speed"] == ("1", "1")
    reasons = {line[0]: line[-1] for line in logged(root)}
    assert reasons["ann"] == reasons["bob"] != ""
    assert exported(root)[1][-1] == "6"


def test_without_the_learners_tree_nothing_is_changed(root: Path) -> None:
    before = files(root)
    shutil.move(root.parent / "learners", root.parent / "public")
    with pytest.raises(CommandError, match="is no tree for learners: name it with --learners DIR"):
        run("--threshold", "total=2", "--yes")
    assert run("--threshold", "total=2", "--yes", "--later", "--learners", "../public") == 0
    assert json.loads((root.parent / "public" / settings.CHOICES).read_text())["thresholds"] == {"total": 2.0}
    assert len(files(root)) < len(before)
    assert run("--threshold", "total=1", "--yes", "--later", "--learners", ".") == 0
    assert json.loads((root.parent / "public" / settings.CHOICES).read_text())["thresholds"] == {"total": 2.0}


def test_where_nothing_can_be_judged_or_something_is_graded_nothing_is_changed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, words = files(root), ("--threshold", "total=2", "--yes")
    with record.alone(root / "grades"), pytest.raises(CommandError, match="another run grades into"):
        run(*words, "--later")
    monkeypatch.setattr(sandbox, "problem", lambda: "bubblewrap is missing")
    with pytest.raises(CommandError, match="bubblewrap is missing"):
        run(*words)
    assert files(root) == before
    assert run(*words, "--later") == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_anywhere_it_is_the_old_class_or_becomes_the_new_one(root: Path, tmp_path: Path) -> None:
    """A process that ends at each of its writes in turn, with nothing tidied up."""
    words = ("--threshold", "total=2", "--yes", "--later")
    old, folder = files(root), root.parent
    kept = shutil.copytree(folder, tmp_path / "kept")
    outcomes = []
    for step in range(50):
        ended = in_a_child(lambda: run(*words), folder, step)
        now = {name: content for name, content in files(root).items() if not name.endswith(".part")}
        if now == old or {name for name in now if now[name] != old.get(name)} == CHANGED:
            outcomes.append("old" if now == old else "new")
            settings.read(root)
        else:
            outcomes.append("between")
            with pytest.raises(settings.SettingsError, match=r"`unrolled class change` applies what course\.toml says"):
                settings.read(root)
        assert run(*words) == 0
        assert settings.read(root).thresholds == {"total": 2.0}
        new = files(root)
        assert {name for name in new if new[name] != old.get(name)} == CHANGED
        if ended == 0:
            break
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)
        os.chdir(root)
    assert sorted(set(outcomes), key=outcomes.index) == ["old", "between", "new"]


def in_a_child(work: Callable[[], int], folder: Path, step: int) -> int:
    """The exit code of a process that does this, and ends before the step-th time that it changes `folder`."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = iter(range(step))

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        changes = event in ("os.rename", "os.mkdir", "os.remove", "shutil.rmtree")
        changes = changes or (event == "open" and set(arguments[1] or "") & set("wxa"))
        if changes and str(arguments[0]).startswith(str(folder)) and next(left, None) is None:
            os._exit(9)

    sys.addaudithook(count)
    try:
        os._exit(work())
    finally:
        os._exit(1)
