"""Whose a file is, by the names that Canvas, Moodle and people give to files."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lms_exports import CLASS, Student, Upload, canvas_name, moodle_name, roster_csv

from unrolled_grader.classroom import roster
from unrolled_grader.receiving import layouts, lms
from unrolled_grader.receiving.layouts import Download

LESSONS = ("02_convolution", "03_pooling")
PEOPLE = roster.read(roster_csv().encode())
NO_NUMBERS = roster.read(roster_csv([student._replace(lms_id="") for student in CLASS]).encode())
FILES = st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters='/\\:*?"<>|'), min_size=1)


def upload(path: str) -> layouts.Upload:
    return layouts.upload([f"given.zip/{path}"], Download(LESSONS))


def whose(path: str, people: roster.Roster = PEOPLE) -> str:
    return lms.uploader(upload(path), people).id


@pytest.mark.parametrize("people", [PEOPLE, NO_NUMBERS], ids=["numbers", "names"])
def test_everyone_is_found_in_both_platforms_forms(people: roster.Roster) -> None:
    for student in CLASS:
        mine = Upload(student, b"", "02_convolution-1.ipynb", late=student.id > "s015")
        assert whose(canvas_name(mine), people) == student.id
        assert upload(canvas_name(mine)).late == mine.late
        for folders, old in ((True, False), (True, True), (False, False)):
            assert whose(moodle_name(mine, folders=folders, old=old), people) == student.id


@settings(max_examples=150)
@given(st.sampled_from(CLASS), FILES, st.booleans(), st.integers(1, 10**9))
def test_no_name_that_a_student_gives_a_file_makes_it_anothers(
    student: Student, name: str, late: bool, file: int
) -> None:
    mine = Upload(student, b"", name, late, file)
    found = upload(canvas_name(mine))
    assert (found.platform, found.number, found.late, found.file) == ("canvas", student.lms_id, late, file)
    assert whose(moodle_name(mine)) == whose(canvas_name(mine)) == student.id


@pytest.mark.parametrize("name", ["turingalan_70074_1_x.ipynb", "Alan Turing_5_assignsubmission_file_x.ipynb"])
def test_a_student_cannot_name_a_file_so_that_it_is_anothers(name: str) -> None:
    ada = CLASS[0]
    assert whose(moodle_name(Upload(ada, b"", name))) == ada.id
    assert whose(canvas_name(Upload(ada, b"", name))) == ada.id


@pytest.mark.parametrize(
    ("path", "platform", "number", "late", "file"),
    [
        ("submissions/lovelaceada_70037_12_a_b_7_8_c.zip", "canvas", "70037", False, 12),
        ("LATE_anon_x7Yz2_12_02_convolution.ipynb", "canvas", "x7Yz2", True, 12),
        ("lovelaceada_LATE_70037_text.html", "canvas", "70037", True, 0),
        ("Ada Lovelace_5037_assignsubmission_file/a/b/02_convolution.ipynb", "moodle", "5037", False, 0),
        ("Ada Lovelace_5037_assignsubmission_onlinetext_/onlinetext.html", "moodle", "5037", False, 0),
        ("Participant_5037_assignsubmission_file/x.ipynb", "moodle", "5037", False, 0),
        ("ada/02_convolution/02_convolution.ipynb", "", "", False, 0),
    ],
)
def test_forms(path: str, platform: str, number: str, late: bool, file: int) -> None:
    found = upload(path)
    assert (found.platform, found.number, found.late, found.file) == (platform, number, late, file)


@pytest.mark.parametrize(
    "path",
    [
        "s001/02_convolution/02_convolution.ipynb",
        "class of 2027/s001/02_convolution (1).ipynb",
        "S001.ipynb",
        "02_convolution_s001.ipynb",
        "s001-02_convolution (2).ipynb",
        "Ada Lovelace/02_convolution-1.ipynb",
        "s001/my answers.ipynb",
    ],
)
def test_plain_paths_name_their_student(path: str) -> None:
    assert whose(path) == "s001"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("02_convolution.ipynb", "nobody in the roster is given"),
        ("s001/unknown/02_convolution.ipynb", "nobody in the roster is unknown$"),  # not the folder around it
        ("s001/s002.ipynb", "could be s001 or s002"),
        ("nobody_1_2_x.ipynb", "nobody in the roster is nobody"),
        ("turingalan_70037_2_x.ipynb", "the number 70037 is s001's, but the name turingalan is s002's"),
        ("lovelaceada_1_2_x.ipynb", "the name lovelaceada is s001's, but the number 1 is not"),
        ("anon_x7Yz2_12_x.ipynb", "nobody in the roster is x7Yz2"),
        ("Participant_70037x_assignsubmission_file/x.ipynb", "nobody"),
    ],
)
def test_who_is_not_certain_is_not_guessed(path: str, message: str) -> None:
    with pytest.raises(lms.UnmatchedError, match=message):
        whose(path)


def test_two_people_of_one_name_are_told_apart_by_number_alone() -> None:
    twins = roster.read(b"id,name,lms_id\na,Kim Lee,1\nb,Kim Lee,2\nc,Lee Kim,\n")
    assert [whose(f"leekim_{number}_9_x.ipynb", twins) for number in (1, 2)] == ["a", "b"]
    assert whose("Kim Lee_2_assignsubmission_file/x.ipynb", twins) == "b"
    with pytest.raises(lms.UnmatchedError, match="could be a or b or c: put each file into a folder called by the id"):
        whose("Kim Lee_3_assignsubmission_file/x.ipynb", twins)
    assert whose("leekim_5_9_x.ipynb", roster.read(b"id,name,lms_id\na,Kim Lee,1\nb,Kim Lee,\n")) == "b"
    with pytest.raises(lms.UnmatchedError, match="two people in the roster have one id"):
        whose("a/x.ipynb", roster.read(b"id,name\na,Kim Lee\na,Ann\n"))


def test_a_number_of_moodles_is_nobodys_without_the_name() -> None:
    with pytest.raises(lms.UnmatchedError):
        whose("Somebody Else_70037_assignsubmission_file/x.ipynb")
    assert whose("Participant_70037_assignsubmission_file/x.ipynb") == "s001"  # blind: the roster holds these numbers


def test_every_reading_of_a_name_is_tried() -> None:
    found = layouts.upload(["z.zip/ﾌ_1_2_x.ipynb", "z.zip/müllerweißzoë_1_2_x.ipynb"], Download(LESSONS))
    assert lms.uploader(found, NO_NUMBERS).id == "s005"


@pytest.mark.parametrize(
    ("path", "is_noise"),
    [
        ("x.zip/__MACOSX/a/._b.ipynb", True),
        ("x.zip/a/.DS_Store", True),
        ("x/ada/.ipynb_checkpoints/02-checkpoint.ipynb", True),
        ("x/ada/a.DS_Store.ipynb", False),
        ("x/ada/02.ipynb", False),
    ],
)
def test_what_systems_leave_behind_is_told_from_work(path: str, is_noise: bool) -> None:
    assert bool(layouts.NOISE.search(path)) is is_noise


@pytest.mark.parametrize("text", ["_", "1", "_1_", "a_", "LATE_", "anon_"])
def test_names_as_long_as_a_zip_can_hold_are_no_platforms(text: str) -> None:
    """To match one took seconds, and a student's zip may hold thousands."""
    name = (text * 65_000)[:65_000]
    for _ in range(100):
        assert layouts.upload([f"{name}_1_2_x.ipynb"], Download()).platform == ""


def test_a_number_out_of_moodles_own_lists_names_nobody_where_marking_is_blind() -> None:
    path = "Participant_4001_assignsubmission_file/x.ipynb"
    assert whose(path, roster.read(b"id,lms_id\nada,4001\n")) == "ada"
    exported = roster.read(b"First name,Surname,ID number\nAda,Lovelace,4001\n")
    with pytest.raises(lms.UnmatchedError, match="nobody"):
        whose(path, exported)


@pytest.mark.parametrize("path", ["Ada@Example.org/x.ipynb", "02_convolution_ada@example.org.ipynb"])
@pytest.mark.parametrize("number", ["4001", ""])
def test_an_address_names_a_person_where_moodles_list_has_no_username(path: str, number: str) -> None:
    people = roster.read(
        f"First name,Surname,ID number,Email address\nAda,Lovelace,{number},ada@example.org\n".encode()
    )
    assert whose(path, people) == (number or "ada@example.org")
