"""A private seed repeats a submission's hidden inputs, and tells nothing to anybody else."""

import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nbformat.v4 import new_notebook
from small_course import GOOD, LESSON, SPECS, answered, hand_in

from unrolled_grader.classroom import seeds
from unrolled_grader.grading import Grading
from unrolled_grader.judge import verdicts
from unrolled_grader.judge.evidence import without
from unrolled_grader.judge.intake import handed
from unrolled_grader.judge.verdicts import REPEATS, Options, Submission, judge

ADA = ("ada", "02_convolution", "digest")


def test_the_file_is_its_owners_alone_and_never_replaced(tmp_path: Path):
    file = seeds.write(tmp_path)
    assert len(file.read_bytes().strip()) == 64
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        seeds.write(tmp_path)


def test_the_same_submission_has_the_same_seed_and_no_other_has_it(tmp_path: Path):
    seeds.write(tmp_path)
    others = [("eve", *ADA[1:]), ("ada", "03_pooling", "digest"), (*ADA[:2], "another")]
    assert seeds.seed_for(tmp_path, *ADA) == seeds.seed_for(tmp_path, *ADA)
    assert len({seeds.seed_for(tmp_path, *submission) for submission in [ADA, *others]}) == 4
    (elsewhere := tmp_path / "elsewhere").mkdir()
    seeds.write(elsewhere)
    assert seeds.seed_for(elsewhere, *ADA) != seeds.seed_for(tmp_path, *ADA)
    assert 0 <= seeds.seed_for(tmp_path, *ADA) < 2**63


def test_without_a_private_seed_it_is_chance(tmp_path: Path):
    assert seeds.seed_for(tmp_path, *ADA) != seeds.seed_for(tmp_path, *ADA)


@pytest.mark.parametrize("content", [b"", b"7\n"])
def test_a_seed_that_can_be_guessed_is_refused(tmp_path: Path, content: bytes):
    seeds.write(tmp_path).write_bytes(content)
    with pytest.raises(seeds.SeedError, match="would not be secret"):
        seeds.seed_for(tmp_path, *ADA)


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds of the walks: a walk that finds each speed inconclusive, so that it is walked four times."""
    found: list[int] = []

    def walk(notebook: Any, specs: Any, *, seed: int, **others: Any) -> Any:
        found.append(seed)
        scores = {name: without(name, spec, "inconclusive", "") for name, spec in specs.items()}
        return SimpleNamespace(notebook=notebook, scores=scores, reports={}, seed=seed, held="", notes={})

    monkeypatch.setattr(verdicts, "Walk", walk)
    return found


def test_each_run_has_a_seed_of_its_own_that_follows_from_the_submissions(walked: list[int]):
    def seeds_of(seed: int | None) -> tuple[int, ...]:
        submission = Submission("ada", LESSON, new_notebook(), SPECS, seed)
        return judge(submission, Options(sandbox=False)).seeds

    first = seeds_of(3)
    assert len(set(first)) == len(first) == 1 + REPEATS
    assert seeds_of(3) == first
    assert not {*seeds_of(4), *seeds_of(None), *seeds_of(None)} & set(first)
    assert 3 not in first  # the student's box is sent seeds of single uses, never this one


def test_an_order_carries_the_seed_and_never_what_it_follows_from(root: Path):
    file = hand_in(root, "ada", answered(root, GOOD))
    course, found = Grading.at(root), handed(file.parent, list(SPECS))
    assert course.order(found)["seed"] != course.order(found)["seed"]
    private = seeds.write(root)
    try:
        order = course.order(found)
        assert order["seed"] == course.order(found)["seed"] == seeds.seed_for(root, "ada", LESSON, found.digest)
        assert private.read_text().strip() not in str(order)
    finally:
        private.unlink()
