"""The roster as people save it: any encoding, separator and order; what is wrong is said, and nobody is guessed."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lms_exports import CLASS, NAMES, roster_csv

from unrolled_grader.classroom import roster

PLAIN = roster_csv()


def ids(people: set[roster.Person]) -> set[str]:
    return {person.id for person in people}


@pytest.mark.parametrize(
    "data",
    [
        PLAIN.encode(),
        b"\xef\xbb\xbf" + PLAIN.encode(),
        PLAIN.replace("\n", "\r\n").encode(),
        PLAIN.encode("utf-16"),
        roster_csv(delimiter=";").encode("utf-8-sig"),
        roster_csv(delimiter="\t").encode("utf-16"),
        b"sep=;\r\n" + roster_csv(delimiter=";").encode(),
        ("\n\n" + PLAIN + "\n\n").encode(),
        unicodedata.normalize("NFD", PLAIN).encode(),
    ],
)
def test_every_way_to_save_it_gives_the_same_class(data: bytes) -> None:
    read = roster.read(data)
    assert read.problems == ()
    assert [tuple(vars(person).values()) for person in read.people] == [tuple(student) for student in CLASS]


@pytest.mark.parametrize(
    ("encoding", "names", "said"),
    [("cp932", ["太郎 山田", "花子 佐藤"], "Shift-JIS"), ("cp1252", ["Juan García", "Ana Lucía"], "Windows-1252")],
)
def test_excel_in_a_countrys_own_encoding_is_read_and_said(encoding: str, names: list[str], said: str) -> None:
    text = "id;name\n" + "".join(f"s{number};{name}\n" for number, name in enumerate(names))
    read = roster.read(text.encode(encoding))
    assert [person.name for person in read.people] == names
    assert said in read.problems[0]


def test_columns_come_in_any_order_and_case_and_others_are_passed_over() -> None:
    read = roster.read(b'Section,LMS ID , EMAIL,Name,"Id"\n1,77,a@x.org,"Lovelace, Ada",ada\n')
    assert read.people == (roster.Person("ada", "Lovelace, Ada", "a@x.org", "77"),)
    assert roster.read(b"id\nada\n").people == (roster.Person("ada"),)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it has no header, so nobody can be matched: it is empty"),
        (b"ada,Ada Lovelace,a@x.org,77\n", "its first line is 'ada,Ada Lovelace,a@x.org,77'"),
        (b"id,name,id\na,b,c\n", "its header names id twice"),
        (b"\0\1\2\xff\xfe", "no header"),
    ],
)
def test_a_roster_that_cannot_be_used_has_nobody_and_says_why(data: bytes, said: str) -> None:
    read = roster.read(data)
    assert read.people == ()
    assert said in read.problems[-1]


def test_a_bad_line_is_named_and_the_others_count() -> None:
    read = roster.read(b"id,name\nada,Ada\n../x,Evil\n,Nobody\ncon,Windows\nbob\n")
    assert [person.id for person in read.people] == ["ada", "bob"]
    assert [problem.partition(":")[0] for problem in read.problems] == ["line 3", "line 4", "line 5"]


def test_two_people_with_one_id_are_doubtful_and_one_line_twice_is_not() -> None:
    read = roster.read(b"id,name\nada,Ada\nAda,Adam\nbob,Bob\nbob,Bob\n")
    assert read.problems == ("lines 2 and 3 have one id, ada: what they hand in is set aside until that is settled",)
    assert [read.is_sure(person) for person in read.people] == [False, False, True]


def test_a_name_is_found_however_it_is_written() -> None:
    read = roster.read(PLAIN.encode())
    for written, meant in {
        "lovelaceada": "s001",
        "Lovelace, Ada": "s001",
        "ADA  LOVELACE": "s001",
        "obriensean": "",
        "obrienseán": "s004",
        unicodedata.normalize("NFD", "Zoë Müller-Weiß"): "s005",
        "müllerweisszoë": "s005",
        "garcíamárquezjuan": "s006",
        "山田太郎": "s007",
        "山田　太郎": "s007",
        "an nguyễn văn": "s009",
        "kimlee": "s011",
        "Lee": "",
    }.items():
        assert ids(read.with_name([written])) == ({meant} if meant else set()), written
    assert read.with_name([""]) == read.with_id("") == read.with_lms_id("") == set()


def test_two_people_whose_names_can_be_turned_into_each_other_both_fit() -> None:
    read = roster.read(b"id,name\na,Kim Lee\nb,Lee Kim\nc,Kim Leeds\n")
    assert ids(read.with_name(["Kim Lee"])) == {"a", "b"}


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(NAMES), st.integers(0, 3), st.sampled_from(["NFC", "NFD", "NFKC"]), st.booleans())
def test_any_turn_case_and_form_of_a_name_finds_its_owner_alone(name: str, turn: int, form: str, upper: bool) -> None:
    words = name.split()
    turn %= len(words)
    written = unicodedata.normalize(form, ", ".join(words[turn:] + words[:turn]))  # type: ignore[arg-type]
    found = roster.read(PLAIN.encode()).with_name([written.upper() if upper else written])
    assert [person.name for person in found] == [name]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | st.text('id,;\n"namé=', max_size=60).map(str.encode))
def test_whatever_the_file_holds_nothing_raises(data: bytes) -> None:
    read = roster.read(data)
    assert read.people or read.problems or b"id" in data.lower() or data.startswith((b"\xff\xfe", b"\xfe\xff"))
