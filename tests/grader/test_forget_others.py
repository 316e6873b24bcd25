"""Forgetting a student whose id is a number, a word or a letter destroys nothing of anybody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unrolled.cli import CommandError
from unrolled_grader.classroom.roster import Person
from unrolled_grader.grading import Grading
from unrolled_grader.receiving import received
from unrolled_grader.results import forget, traces
from unrolled_grader.results.people import Names
from unrolled_grader.results.spellings import Finder

REGRADES = "when,student,lesson,part,before,after,reason\n2027-01-15,bob,02,im2col,1,2,a pass: marked by a person\n"
ROSTER = "id,name,email,lms_id\nbob,Bob Hope,bob@example.org,1\n"
CANVAS = 'Student,ID,SIS User ID,SIS Login ID,Section,02\n    Points Possible,,,,,2\n"Hope, Bob",1,,bob,,2\n'
MOODLE = "First name,Last name,Username,ID number,Email address,02\nBob,Hope,bob,1,bob@example.org,2\n"
LISTS = (REGRADES, ROSTER, CANVAS, MOODLE)


def alone(person: Person) -> Names:
    return Names({person.id: person})


@pytest.mark.parametrize("name", ["1", "2", "01", "a", "id", "student", "pass", "02", "im2col", "person", "when", "ID"])
@pytest.mark.parametrize("text", LISTS)
def test_a_word_that_is_somebodys_id_takes_no_row_of_others(text: str, name: str) -> None:
    left, count = forget.without_rows(text, alone(Person(name, "Ada Lovelace", "ada@example.org", "2")), name)
    assert left.replace("(removed)", name).splitlines() == text.splitlines()
    assert count in (0, 1 if "(removed)" in left else 0)


@pytest.mark.parametrize(("text", "row"), [*zip(LISTS, ("2027,1,02,im2col,1,2,why\n", "1,Ada,a@x,70\n",
    '"Hope, Bob",70,,1,,2\n', "Bob,Hope,1,70,a@x,2\n"), strict=True)])  # fmt: skip
def test_their_own_row_goes_also_where_the_id_is_a_number(text: str, row: str) -> None:
    assert forget.without_rows(text + row, alone(Person("1", "Bob Hope", "a@x", "70")), "1") == (text, 1)


def test_a_list_without_a_known_column_loses_rows_by_what_tells() -> None:
    text = "Wer,Punkte\nada,1\nbob,1\n"
    assert forget.without_rows(text, alone(Person("ada")), "ada") == ("Wer,Punkte\nbob,1\n", 1)
    assert forget.without_rows(text, alone(Person("1")), "1") == (text, 0)


def test_a_log_keeps_its_lines_where_the_id_is_a_letter() -> None:
    log = "[INFO] a line about bob\n[INFO] 01 of 30\n"
    for name in ("a", "01"):
        assert forget.without_lines(log, alone(Person(name)), name) == (log, 0)
    assert alone(Person("a", "Ada Lovelace")).is_sure("Lovelace, Ada", "a")
    assert alone(Person("a", "李 明")).is_sure("李明", "a")


def test_an_id_that_leads_elsewhere_deletes_nothing(root: Path) -> None:
    kept = root / "grader" / "received" / "students" / "bob" / "file"
    kept.parent.mkdir(parents=True)
    kept.write_text("bob's")
    for name in (".", "..", "../bob", "a\\b", ""):
        with pytest.raises(ValueError, match="expected an id"):
            received.forget(root / "grader" / "received", name)
        with pytest.raises(CommandError, match="nothing was deleted"):
            forget.deleted(Grading.at(root), alone(Person(name)), name)
    assert kept.exists()


def test_links_and_an_index_that_lead_out_delete_nothing_there(tmp_path: Path) -> None:
    root, outside = tmp_path / "received", tmp_path / "outside"
    for folder in (outside / "ada", outside / "1", root / "students", root / "set_aside"):
        folder.mkdir(parents=True)
    (root / "students" / "ada").symlink_to(outside / "ada")
    (root / "set_aside" / "1").symlink_to(outside / "1")
    lines = [{"id": str(kept), "source": "z", "path": "p", "student": "ada", "kept": kept}
             for kept in ("../outside", str(outside), "set_aside/../..", "set_aside/1", 7)]  # fmt: skip
    (root / "index.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    received.forget(root, "ada")
    assert sorted(path.name for path in outside.iterdir()) == ["1", "ada"]
    assert not (root / "students" / "ada").is_symlink()


def test_a_link_is_named_as_it_was_not_searched(tmp_path: Path) -> None:
    (tmp_path / "course").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "course" / "old").symlink_to(tmp_path / "outside")
    (tmp_path / "course" / "one").symlink_to(tmp_path / "none")
    found = traces.find(tmp_path / "course", Finder({"ada"}))
    assert [(trace.file, trace.found) for trace in found] == [("old", traces.UNKNOWN), ("one", traces.UNKNOWN)]
