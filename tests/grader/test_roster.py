"""The roster as people save it: any encoding, separator and order; what is wrong is said, and nobody is guessed."""

import itertools
import re
import unicodedata
from pathlib import Path

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
    ("encoding", "names", "encoding_name"),
    [("cp932", ["太郎 山田", "花子 佐藤"], "Shift-JIS"), ("cp1252", ["Juan García", "Ana Lucía"], "Windows-1252")],
)
def test_excel_in_a_countrys_own_encoding_is_read_and_said(encoding: str, names: list[str], encoding_name: str) -> None:
    text = "id;name\n" + "".join(f"s{number};{name}\n" for number, name in enumerate(names))
    read = roster.read(text.encode(encoding))
    assert [person.name for person in read.people] == names
    assert encoding_name in read.problems[0]


def test_columns_come_in_any_order_and_case_and_others_are_passed_over() -> None:
    read = roster.read(b'Section,LMS ID , EMAIL,Name,"Id"\n1,77,a@x.org,"Lovelace, Ada",ada\n')
    assert read.people == (roster.Person("ada", "Lovelace, Ada", "a@x.org", "77"),)
    assert roster.read(b"id\nada\n").people == (roster.Person("ada"),)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it has no header that says who is who, so nobody can be matched: it is empty"),
        (b"ada,Ada Lovelace,a@x.org,77\n", "its first line is 'ada,Ada Lovelace,a@x.org,77'"),
        (b"id,name,id\na,b,c\n", "its header names id twice"),
        (b"\0\1\2\xff\xfe", "no header"),
        (
            b"Student Name,Student ID,Email\nAda,70037,a@x.org\n",
            "expected id,name,email,lms_id, Canvas's gradebook export",
        ),
        (
            "Prénom,Nom,Adresse de courriel\nAda,Lovelace,a@x.org\n".encode(),
            "rename the columns to First name, Last name",
        ),
    ],
)
def test_a_roster_that_cannot_be_used_has_nobody_and_says_why(data: bytes, message: str) -> None:
    read = roster.read(data)
    assert read.people == ()
    assert message in read.problems[-1]


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


@settings(max_examples=150)
@given(st.sampled_from(NAMES), st.integers(0, 3), st.sampled_from(["NFC", "NFD", "NFKC"]), st.booleans())
def test_any_turn_case_and_form_of_a_name_finds_its_owner_alone(name: str, turn: int, form: str, upper: bool) -> None:
    words = name.split()
    turn %= len(words)
    written = unicodedata.normalize(form, ", ".join(words[turn:] + words[:turn]))  # type: ignore[arg-type]
    found = roster.read(PLAIN.encode()).with_name([written.upper() if upper else written])
    assert [person.name for person in found] == [name]


@settings(max_examples=200)
@given(st.binary(max_size=200) | st.text('id,;\n"namé=', max_size=60).map(str.encode))
def test_whatever_the_file_holds_nothing_raises(data: bytes) -> None:
    read = roster.read(data)
    assert read.people or read.problems


CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Notes,"00 start; here (4711)",Current Score
,,,,,,Manual Posting,
    Points Possible,,,,,(read only),2,(read only)
"Lovelace, Ada",70037,U1,ada,Spring,,1.5,75
"Müller, Jürgen",70074,U2,jmue,Spring and Autumn,,,
"Student, Test",70999,,0f3c7a9be1d24c58a6b7f0e1d2c3b4a5968778a9,Spring,,,
"""
CANVAS_SEMICOLONS = """\
\ufeffLastName;FirstName;ID;SIS Login ID;Section;00, start (4711);02, convolution (4712)
    Points Possible;;;;;2,00;15,00
Lovelace;Ada;70037;ada;Spring;1,50;
Müller;Jürgen;70074;jmue;Spring;2,00;13,50
Teilnehmer;Test;70999;0f3c7a9be1d24c58a6b7f0e1d2c3b4a5968778a9;Spring;;
"""
QUIZ = """\
name,id,sis_id,section,section_id,submitted,attempt
Ada Lovelace,70037,U1,Spring,9,2027-01-14 09:20:00 UTC,1
Jürgen Müller,70074,U2,Spring,9,2027-01-14 09:25:00 UTC,1
"""
MOODLE_GRADES = """\
\ufeffFirst name,Surname,ID number,Institution,Email address,"Assignment: 00, start (Real)",Last downloaded
Ada,Lovelace,4001,,ada@example.org,1.50,1768901400
Jürgen,Müller,4002,,jm@example.org,-,1768901400
"""
MOODLE_PEOPLE = """\
"First name","Last name","Email address",Groups
Ada,Lovelace,ada@example.org,
Jürgen,Müller,jm@example.org,"Team 1"
"""
MOODLE_GERMAN = """\
Vorname;Nachname;ID-Nummer;E-Mail-Adresse;Anmeldename
Ada;Lovelace;4001;ada@example.org;ada
Jürgen;Müller;4002;jm@example.org;jmue
"""
MOODLE_WORKSHEET = """\
Identifier,Full name,Email address,Status,Grade
Participant 17,Ada Lovelace,ada@example.org,Submitted for grading,
Participant 18,Jürgen Müller,jm@example.org,No submission,
"""
NBGRADER = "id,first_name,last_name,email,lms_user_id\nada,Ada,Lovelace,,70037\njmue,Jürgen,Müller,,\n"


@pytest.mark.parametrize(
    ("text", "expected", "description"),
    [
        (CANVAS, "ada jmue", 'id from "SIS Login ID", name from "Student", no email, lms_id from "ID"'),
        (CANVAS, "ada jmue", 'passed over: "Manual Posting", "Points Possible", "Student, Test"'),
        (CANVAS.replace(",ada,", ",,").replace(",jmue,", ",,"), "U1 U2", 'id from "SIS User ID"'),
        (CANVAS.replace(",U1,ada,", ",,,").replace(",U2,jmue,", ",,,"), "70037 70074", 'id from "ID"'),
        (CANVAS_SEMICOLONS, "ada jmue", 'gradebook export, 2 people: id from "SIS Login ID", name from "LastName" and'),
        (QUIZ, "U1 U2", 'id from "sis_id", name from "name", no email, lms_id from "id"'),
        (MOODLE_GRADES, "4001 4002", 'id from "ID number", name from "Surname" and "First name", email from "Email'),
        (
            MOODLE_PEOPLE,
            "ada@example.org jm@example.org",
            'Moodle\'s list of people, 2 people: id from "Email address"',
        ),
        (MOODLE_GERMAN, "ada jmue", 'id from "Anmeldename", name from "Nachname" and "Vorname", email from "E-Mail-'),
        (MOODLE_WORKSHEET, "ada@example.org jm@example.org", 'name from "Full name"'),
        (NBGRADER, "ada jmue", 'id from "id", name from "last_name" and "first_name", email from "email"'),
    ],
)
def test_an_export_is_taken_as_it_comes_and_says_which_columns(text: str, expected: str, description: str) -> None:
    read = roster.read(text.encode())
    assert read.problems == ()
    assert [person.id for person in read.people] == expected.split()
    assert {person.id for name in ("adalovelace", "Müller, Jürgen") for person in read.with_name([name])} == {
        *expected.split()
    }
    assert description in read.describe()
    for saved in (text.replace("\n", "\r\n").encode(), text.encode("utf-16"), text.replace(";", "\t").encode()):
        assert roster.read(saved).people == read.people


def test_what_an_export_says_of_a_person_is_kept() -> None:
    ada, jmue = roster.read(CANVAS.encode()).people
    assert (ada, jmue.lms_id) == (roster.Person("ada", "Lovelace, Ada", "", "70037"), "70074")
    ada, _ = roster.read(MOODLE_GERMAN.encode()).people
    assert ada == roster.Person("ada", "Lovelace, Ada", "ada@example.org", "4001")


def test_who_has_nothing_in_the_column_of_ids_is_named_and_left_out() -> None:
    read = roster.read(MOODLE_GRADES.replace(",4002,", ",,").encode())
    assert [person.id for person in read.people] == ["4001"]
    assert read.problems == ('line 3: Müller, Jürgen has nothing in "ID number"',)


def test_the_page_shows_what_is_taken_of_its_examples() -> None:
    page = (Path(__file__).parents[2] / "docs" / "collecting.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shown = [(text, description) for text, description in itertools.pairwise(blocks) if ": id from " in description]
    assert len(shown) == 2
    for text, description in shown:
        assert roster.read(text.encode()).describe() == description.strip()
