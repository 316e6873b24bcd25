"""Which attempt counts: by policy, by `unrolled attempts`, or because a person put it there; nothing undoes that."""

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import nbformat
import pytest
import small_course
from lms_exports import CLASS, roster_csv
from small_course import GOOD, answered
from test_collect import LESSON, Desk, notebook

from unrolled.cli import main
from unrolled_grader import commands
from unrolled_grader.classroom.settings import Late, Settings
from unrolled_grader.grading import Grading
from unrolled_grader.judge import evidence
from unrolled_grader.judge.verdicts import Submission
from unrolled_grader.receiving import attempts, collect, placing
from unrolled_grader.receiving.received import Received

ADA = CLASS[0]
DUE = datetime(2027, 1, 15, 23, 59, tzinfo=timezone.utc)
FIRST, SECOND, THIRD = (notebook(name) for name in ("first", "second", "third"))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A desk where two attempts were collected one after the other: one in time, one two days late."""
    desk = Desk(tmp_path)
    hand_in(desk, 1, FIRST, DUE - timedelta(hours=1))
    hand_in(desk, 2, SECOND, DUE + timedelta(days=2))
    return desk


def hand_in(desk: Desk, number: int, data: bytes, when: datetime = DUE + timedelta(days=5)) -> collect.Collected:
    return desk.take(desk.file(f"in/{ADA.id}/{LESSON}-{number}.ipynb", data, when.timestamp()))


def folder(desk: Desk) -> Path:
    return desk.submitted / ADA.id / LESSON


def put_by_hand(desk: Desk, number: int) -> None:
    """Copy an attempt out of what was received, and say when it came, as an instructor does."""
    received = Received(collect.home(desk.submitted))
    kept = received.folder(received.attempts(ADA.id, LESSON)[number - 1])
    (folder(desk) / f"{LESSON}.ipynb").write_bytes(next(kept.glob("*.ipynb")).read_bytes())
    (folder(desk) / "timestamp.txt").write_text("2027-01-15 20:00:00 UTC")


def settle(desk: Desk) -> attempts.Settled:
    settled = attempts.settle(Received(collect.home(desk.submitted)), desk.submitted, ADA.id, LESSON, desk.settings)
    assert settled is not None
    return settled


def test_what_a_person_put_there_counts_whatever_is_collected_after(desk: Desk) -> None:
    put_by_hand(desk, 1)
    for again in (desk.take(desk.folder / "in"), hand_in(desk, 3, THIRD), desk.take(desk.folder / "in")):
        assert again.problems == ()
        assert str(again.settled[0]).startswith(f"{ADA.id}, {LESSON}: attempt 1 of ")
        assert (desk.placed(ADA), desk.stamp(ADA)) == (FIRST, "2027-01-15 20:00:00 UTC")
    before = desk.everything()
    assert not settle(desk).changed
    assert desk.everything() == before
    put_by_hand(desk, 2)
    assert (settle(desk).number, settle(desk).by_hand, desk.placed(ADA)) == (2, True, SECOND)


def test_the_newest_put_back_by_hand_is_a_choice_as_well(desk: Desk) -> None:
    for number, data in ((1, FIRST), (2, SECOND)):
        put_by_hand(desk, number)
        assert (settle(desk).by_hand, desk.placed(ADA)) == (True, data)
    hand_in(desk, 3, THIRD)
    assert desk.placed(ADA) == SECOND


@pytest.mark.parametrize("number", [1, 2])
def test_without_a_time_of_its_own_the_time_of_another_attempt_goes(desk: Desk, number: int) -> None:
    """A person copies the notebook alone, or moves their own away."""
    times = {1: "2027-01-15 22:59:00 UTC", 2: "2027-01-17 23:59:00 UTC"}
    attempts.choose(Received(collect.home(desk.submitted)), ADA.id, LESSON, 3 - number)
    settle(desk)
    stamp = desk.stamp(ADA)
    put_by_hand(desk, number)
    (folder(desk) / "timestamp.txt").write_text(stamp)
    settle(desk)
    assert desk.stamp(ADA) == times[number]
    (folder(desk) / f"{LESSON}.ipynb").unlink()
    attempts.choose(Received(collect.home(desk.submitted)), ADA.id, LESSON, 3 - number)
    settle(desk)
    assert desk.stamp(ADA) == times[3 - number]


def test_a_notebook_of_a_persons_own_stays_until_they_move_it_away(desk: Desk) -> None:
    file = folder(desk) / f"{LESSON}.ipynb"
    file.write_bytes(THIRD)
    attempts.choose(Received(collect.home(desk.submitted)), ADA.id, LESSON, 1)
    for _ in range(2):
        with pytest.raises(OSError, match="move it away first"):
            settle(desk)
        assert desk.placed(ADA) == THIRD
    file.unlink()
    settle(desk)
    assert (desk.placed(ADA), desk.stamp(ADA)) == (FIRST, "2027-01-15 22:59:00 UTC")


@pytest.mark.parametrize("stamp", ["", "2027-01-15 20:00:00 UTC"])
def test_a_corrected_time_comes_back_whatever_a_person_put_over_it(desk: Desk, stamp: str) -> None:
    (folder(desk) / "timestamp.txt").write_text("2027-01-16 00:00:00 UTC")
    settle(desk)
    put_by_hand(desk, 1)
    (folder(desk) / "timestamp.txt").write_text(stamp or "2027-01-16 00:00:00 UTC")
    settle(desk)
    assert (desk.placed(ADA), desk.stamp(ADA)) == (FIRST, stamp or "2027-01-15 22:59:00 UTC")
    attempts.choose(Received(collect.home(desk.submitted)), ADA.id, LESSON, 2)
    settle(desk)
    assert (desk.placed(ADA), desk.stamp(ADA)) == (SECOND, "2027-01-16 00:00:00 UTC")


def test_a_corrected_time_tells_what_came_in_time(desk: Desk) -> None:
    (folder(desk) / "timestamp.txt").write_text("2027-01-15 20:00:00 UTC")
    desk.settings = Settings(due={LESSON: DUE}, count="latest in time")
    for _ in range(2):
        assert (settle(desk).number, desk.placed(ADA)) == (2, SECOND)
    attempts.choose(Received(collect.home(desk.submitted)), ADA.id, LESSON, 1)
    settle(desk)
    attempts.choose(Received(collect.home(desk.submitted)), ADA.id, LESSON, None)
    assert (settle(desk).number, desk.stamp(ADA)) == (2, "2027-01-15 20:00:00 UTC")


def test_a_choice_by_number_and_back_brings_the_corrected_time_back_too(desk: Desk) -> None:
    received = Received(collect.home(desk.submitted))
    (folder(desk) / "timestamp.txt").write_text("2027-01-16 00:00:00 UTC")
    for number, data, stamp in ((1, FIRST, "2027-01-15 22:59:00 UTC"), (None, SECOND, "2027-01-16 00:00:00 UTC")):
        attempts.choose(received, ADA.id, LESSON, number)
        assert settle(desk).changed
        assert (desk.placed(ADA), desk.stamp(ADA)) == (data, stamp)
    assert not settle(desk).by_hand


@pytest.mark.parametrize(
    ("count", "grace", "placed"),
    [("latest", 0, SECOND), ("latest in time", 0, FIRST), ("latest in time", 2880, SECOND), ("best", 0, SECOND)],
)
def test_a_changed_policy_counts_from_the_next_time_on(desk: Desk, count: str, grace: float, placed: bytes) -> None:
    desk.settings = Settings(due={LESSON: DUE}, late=Late(grace_minutes=grace), count=count)
    settle(desk)
    assert desk.placed(ADA) == placed
    hand_in(desk, 3, THIRD)
    assert desk.placed(ADA) == (THIRD if count != "latest in time" else placed)


def test_without_a_note_of_what_was_placed_the_newest_was(desk: Desk) -> None:
    for file in desk.folder.rglob("counts.json"):
        file.write_text("{")
    hand_in(desk, 3, THIRD)
    assert desk.placed(ADA) == THIRD


@pytest.mark.parametrize("step", range(8))
def test_killed_while_one_is_chosen_the_next_run_goes_on(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Each write is the last one once: what is half done looks like no hand's work, and what was chosen is placed."""
    writes = iter(range(100))
    for module in (attempts, placing):
        whole = module.put

        def put(*given: object, whole: object = whole, **more: object) -> None:
            if next(writes) == step:
                raise KeyboardInterrupt
            whole(*given, **more)  # type: ignore[operator]

        monkeypatch.setattr(module, "put", put)
    received = Received(collect.home(desk.submitted))
    try:
        attempts.choose(received, ADA.id, LESSON, 1)
        settle(desk)
        hand_in(desk, 3, THIRD)
        attempts.choose(received, ADA.id, LESSON, 0)
        settle(desk)
    except KeyboardInterrupt:
        monkeypatch.undo()
        chosen = attempts.read(received, ADA.id, LESSON)
        settled = settle(desk)
        assert chosen is not None
        assert settled.by_hand == bool(chosen.by_hand)
        assert not settled.noticed
        assert (folder(desk) / f"{LESSON}.ipynb").read_bytes() == (FIRST if chosen.by_hand else desk.placed(ADA))
    else:
        assert step == 7


@pytest.mark.parametrize("step", range(1, 7))
def test_killed_between_notebook_and_time_each_attempt_keeps_its_own(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    received, times = (
        Received(collect.home(desk.submitted)),
        {2: "2027-01-15 20:00:00 UTC", 1: "2027-01-10 00:00:00 UTC"},
    )
    for number in (2, 1):
        attempts.choose(received, ADA.id, LESSON, number)
        settle(desk)
        (folder(desk) / "timestamp.txt").write_text(times[number])
    moves, replace = iter(range(1, 100)), os.replace

    def killed(*given: Any) -> None:
        if next(moves) == step:
            raise KeyboardInterrupt
        replace(*given)

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(os, "replace", killed)
        attempts.choose(received, ADA.id, LESSON, 2)
        settle(desk)
    assert not settle(desk).noticed
    for number in (1, 2):
        attempts.choose(received, ADA.id, LESSON, number)
        settle(desk)
        assert (desk.placed(ADA), desk.stamp(ADA)) == ((FIRST, SECOND)[number - 1], times[number])


POINTS = {"poor": 1.0, "good": 2.0, "late": 2.0}


@pytest.fixture
def course(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The small course; the judge gives points by a word in the answer."""

    def find(submission: Submission) -> list[evidence.Score]:
        text = "".join(cell.source for cell in submission.notebook.cells)
        points = next(points for word, points in POINTS.items() if f"# {word}" in text)
        return [evidence.Score("double", "pass", points, 2.0, "")]

    small_course.judged_here(monkeypatch, find)
    monkeypatch.chdir(root)
    (root / "roster.csv").write_text(roster_csv(CLASS[:1]), encoding="utf-8")
    yield root
    for path in ("course.toml", "roster.csv"):
        (root / path).unlink()


def test_the_best_counts_after_lateness_and_each_is_graded_once(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (course / "course.toml").write_text(
        f'[due]\ntimezone = "UTC"\n{small_course.LESSON} = 2027-01-15T23:59:00\n'
        '[attempts]\ncount = "best"\n[late]\nper_day = 0.25\n'
    )
    for days, word in enumerate(POINTS, -1):
        file = tmp_path / word / ADA.id / f"{small_course.LESSON}.ipynb"
        file.parent.mkdir(parents=True)
        file.write_bytes(nbformat.writes(answered(course, {"double": f"{GOOD['double']}\n# {word}"})).encode())
        os.utime(file, times=((DUE + timedelta(days=days)).timestamp(),) * 2)
        assert main(["collect", str(file.parent)]) == 0
    assert commands.grade_class(Grading.at(course)) == 0
    printed = capsys.readouterr().out
    assert printed.index("attempt 2 of 3 counts") < printed.index("attempt 1 of 3") < printed.rindex("attempt 2 of 3")
    assert main(["attempts", ADA.id, "07"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == f"{ADA.id}, {small_course.LESSON}: attempt 2 of 3 counts, by the class's policy"
    assert "2027-01-14 23:59 UTC, in time, 1 points" in rows[1]
    assert rows[2].startswith("2, which counts: 2027-01-15 23:59 UTC, in time, 2 points")
    assert "24 hours late (1 day begun), 1.5 points" in rows[3]
    policy = (course / "course.toml").read_text()
    (course / "course.toml").write_text(f"{policy}[extensions.{ADA.id}]\n{small_course.LESSON} = 2027-02-01T00:00:00\n")
    assert main(["attempts", ADA.id, "07"]) == 0  # as good as the second now, and later
    assert "attempt 3 of 3 counts, by the class's policy" in capsys.readouterr().out
    (course / "course.toml").write_text(policy)
    assert main(["attempts", ADA.id, "07", "--count", "3"]) == 0
    assert "attempt 3 of 3 counts, chosen by hand" in capsys.readouterr().out
    table = (course / "grades" / "collected.csv").read_text(encoding="utf-8")
    assert [row.split(",")[:2] for row in table.splitlines()[1:]] == [
        ["earlier", ""],
        ["earlier", ""],
        ["newest", "counts"],
    ]
    assert commands.grade_class(Grading.at(course)) == 0
    assert f"{ADA.id},{small_course.LESSON},late,-0.5" in (course / "grades" / "scores.csv").read_text()
    assert main(["attempts", ADA.id, "07", "--count", "policy"]) == 0
    for wrong, message in ((["eve", "07"], "nothing was received of 'eve'"), ([ADA.id, "07", "--count", "4"], "has 3")):
        assert main(["attempts", *wrong]) == 1
        assert message in capsys.readouterr().err
