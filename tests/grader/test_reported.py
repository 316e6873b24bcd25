"""Cases that people who run graded courses reported of other tools in public, rebuilt as small files: one outcome each.

These are of platforms, rosters and groups; of answers, in test_reported_answers. What counts of several attempts is in
test_attempts, days late in test_late.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
import small_course
from lms_exports import zipped
from nbgrader.api import Gradebook
from small_course import GOOD, answered
from test_collect import LESSON, Desk, notebook

from unrolled.cli import main
from unrolled.notebook import handin
from unrolled_grader import commands
from unrolled_grader.classroom import groups, roster
from unrolled_grader.classroom.settings import Settings
from unrolled_grader.export import Brightspace
from unrolled_grader.grading import Grading
from unrolled_grader.judge import evidence
from unrolled_grader.judge.verdicts import Submission
from unrolled_grader.receiving import layouts
from unrolled_grader.results.near_copies import works

FILE = f"{LESSON}.ipynb"
MORE = "anna,Anna-Lena Noether,,\nj_doe,John Doe,,5001\njdoe2,John Doe,,5002\n"
PEOPLE = "id,name,email,lms_id\nada,Ada Lovelace,ada@x.org,70037\nalan,Alan Turing,,70074\ngrace,Grace Hopper,,\n"
METADATA = f"""---
submission_1:
  :submitters:
  - :name: Ada Lovelace
    :sid: ada
    :email: ada@x.org
  - :name: Alan Turing
    :email: nobody@x.org
  :created_at: 2027-01-15 22:10:03
  {FILE}: a file's name is a key of the student's own
"""
LAYOUTS = {
    # Canvas, a group's export: the number is a member's
    "projectgroup1_70037_4567_02.ipynb": "ada alan: of the group projectgroup1",
    "project_group_2_70037_4567_02.ipynb": "ada alan",
    "projectgroup9_70037_4567_02.ipynb": "ada: projectgroup9 is no name of theirs; if that is a group",
    # Moodle: a team's, a team's of older releases, blind, and one whose group nobody named
    "Group 3_17_assignsubmission_file/x.ipynb": "ada alan",
    "Group 3-Ada Lovelace_5037_assignsubmission_file_/x.ipynb": "ada alan",
    "Group 3-A-Ada Lovelace_5037_assignsubmission_file_/x.ipynb": "ada grace",
    "Anna-Lena Noether_5037_assignsubmission_file_/x.ipynb": "anna",
    "Group 4-Ada Lovelace_5037_assignsubmission_file_/x.ipynb": "ada",
    "Group 4_18_assignsubmission_file/x.ipynb": "-: nobody in the roster is Group 4; if that is a group, write its m",
    "Participant_70037_assignsubmission_file/x.ipynb": "ada",
    # Blackboard; its time of the file, and titles and logins with underscores
    "Lab 2_ada_attempt_2027-01-15-22-10-03_my_lab.ipynb": "ada",
    "lab_2_alan_attempt_2027-01-15-22-10-03_02.ipynb": "alan",
    "lab_2_70037_attempt_2027-01-15-22-10-03_02.ipynb": "-: nobody in the roster is lab_2_70037",
    "lab_2_eve_attempt_2027-01-15-22-10-03_02.ipynb": "-: nobody in the roster is lab_2_eve",
    # files that students called as other platforms would have called another student's
    "lovelaceada_70037_4567_lab_alan_attempt_2027-01-15-22-10-03_x.ipynb": "ada",
    "lab_ada_attempt_2027-01-15-22-10-03_lab_alan_attempt_2027-01-16-22-10-03_x.ipynb": "ada",
    "1234-567 - Ada Lovelace - Jan 15, 2027 1010 PM - lab_alan_attempt_2027-01-15-22-10-03_x.ipynb": "ada",
    "ada/Alan Turing_5037_assignsubmission_file/x.ipynb": "ada",
    "Convolution/Submissions/Lovelace_Ada_ada_4711/turingalan_70074_4567_x.ipynb": "ada",
    # Brightspace, in folders and flat
    "1234-567 - Ada Lovelace - Jan 15, 2027 1010 PM/02.ipynb": "ada",
    "1234-567 - Ada Lovelace - January 15, 2027 1010 PM - 02.ipynb": "ada",
    # ILIAS, Sakai, Gradescope
    "Convolution/Submissions/Lovelace_Ada_ada_4711/x.ipynb": "ada",
    "Convolution/Abgaben/Lovelace_Ada_ada_4711/Late Submission - x.ipynb": "ada",
    "Convolution/Lovelace, Ada(ada)/Submission attachment(s)/x.ipynb": "ada",
    "Convolution/Doe, John(j_doe)/Submission attachment(s)/x.ipynb": "j_doe",
    "Convolution/Submissions/Doe_John_j_doe_4711/x.ipynb": "j_doe",
    "assignment_9_export/submission_1/x.ipynb": "ada alan",
    # saved under other names
    f"ada/{FILE}.json": "ada",
    f"ada/{FILE} (1).txt": "ada",
    "ada (2).json": "ada",
    f"class_of_summer_2027/ada_{FILE}": "ada",
}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.people = roster.read((PEOPLE + MORE).encode())
    teams = {"projectgroup1": "ada alan", "project_group_2": "ada alan", "Group 3": "ada alan"}
    teams |= {"Group 3-A": "ada grace", "Anna": "alan grace"}
    members = (f"{team},{one}\n" for team, ids in teams.items() for one in ids.split())
    desk.groups = groups.read("".join(("group,id\n", *members)).encode(), desk.people)
    return desk


@pytest.mark.parametrize("path", LAYOUTS)
def test_whose_a_file_is_in_each_platforms_layout(path: str, desk: Desk) -> None:
    members = [(path, notebook())]
    if path.startswith("assignment_"):
        members.append((f"assignment_9_export/{layouts.GRADESCOPE}", METADATA.encode()))
    rows = [row.entry for row in desk.take_zip(zipped(members)).rows if not layouts.NOISE.search(row.entry.path)]
    who, _, message = LAYOUTS[path].partition(": ")
    assert " ".join(sorted(entry.student or "-" for entry in rows)) == who
    assert all(message in (row.problem or row.note) for row in rows)
    assert rows[0].late == ("Late" in path)


@pytest.mark.parametrize("top", ["export", ""])
def test_a_list_that_a_student_handed_in_says_nothing(top: str, desk: Desk) -> None:
    for folder in ("submission_1", "Ada Lovelace_5037_assignsubmission_file"):
        desk.file(f"in/{top}/{folder}/{layouts.GRADESCOPE}", b"submission_2: {':submitters': [{':sid': ada}]}")
    desk.file(f"in/{top}/submission_2/x.ipynb", notebook())
    (entry,) = [row.entry for row in desk.take(desk.folder / "in").rows if row.entry.path.endswith("ipynb")]
    assert entry.student == ""
    desk.file(f"in/{top}/{layouts.GRADESCOPE}", METADATA.replace("submission_1", "submission_2").encode())
    rows = [row.entry for row in desk.take(desk.folder / "in").rows if row.entry.path.endswith("ipynb")]
    assert [entry.student for entry in rows] == ["ada", "alan"]


def test_a_platforms_time_counts_in_the_classs_zone_and_the_last_attempt_is_the_newest(desk: Desk) -> None:
    desk.settings = Settings(timezone="Europe/Berlin")
    name = "lab_ada_attempt_2027-01-{}-22-10-03_x.ipynb"
    both = [(name.format(day), notebook(day)) for day in ("16", "15")]
    assert len(desk.take_zip(zipped([*both, ("lab_ada_attempt_2027-01-15-22-10-03.txt", b"Name: Ada")])).problems) == 0
    assert (desk.submitted / "ada" / LESSON / FILE).read_bytes() == notebook("16")
    assert (desk.submitted / "ada" / LESSON / "timestamp.txt").read_text() == "2027-01-16 21:10:03 UTC"
    folder = "Convolution/Submissions/Hopper_Grace_grace_4711"
    desk.take_zip(
        zipped([(f"{folder}/Late Submission - x.ipynb", notebook("1")), (f"{folder}/x.ipynb", notebook("2"))])
    )
    assert (desk.submitted / "grace" / LESSON / FILE).read_bytes() == notebook("1")
    desk.take_zip(zipped([("1234-567 - Alan Turing - Jan 15, 2027 110 AM/x.ipynb", notebook())]))
    assert (desk.submitted / "alan" / LESSON / "timestamp.txt").read_text() == "2027-01-15 00:10:00 UTC"


def test_a_hand_in_of_another_than_the_groups_members_is_set_aside(desk: Desk) -> None:
    data = handin.make(notebook(), {}, "grace", LESSON)
    (row,) = desk.take_zip(zipped([("projectgroup1_70037_4567_x.zip", data)])).rows
    assert row.entry.problem == "projectgroup1 handed in what says it is grace's"


@pytest.mark.parametrize(
    ("pattern", "path", "who"),
    [
        ("{name}_{id}_{file}", "Ada Lovelace_ada_x.ipynb", ["ada"]),
        ("{lms_id}/{file}", "deep/70074/x.ipynb", ["alan"]),
        ("{last_name}-{first_name}-{file}", "Hopper-Grace-x.ipynb", ["grace"]),
        (
            r".+_(?P<student_id>\w+)_attempt_(?P<timestamp>[0-9\-]+)_(?P<file_id>\w+).ipynb",
            "p_ada_attempt_2_q.ipynb",
            ["ada"],
        ),
        ("{name}_{lms_id}_{file}", "John Doe_5001_x.ipynb", ["j_doe"]),  # not the other of that name
        ("Übung {id}_{file}", "U\u0308bung ada_x.ipynb", ["ada"]),
        ("U\u0308bung {id}_{file}", "Übung ada_x.ipynb", ["ada"]),
        ("(?P<id>(a+)+)b/(?P<file>.*)", f"{'a' * 99}/x.ipynb", [""]),  # takes years
        ("{name}_{id}_{file}", "x.ipynb", [""]),
        ("{name}_{id}_{file}", "Ada Lovelace_alan_x.ipynb", [""]),  # two people
    ],
)
def test_a_pattern_for_any_other_platform(pattern: str, path: str, who: list[str], desk: Desk) -> None:
    desk.pattern = layouts.pattern(pattern)
    assert [row.entry.student for row in desk.take_zip(zipped([(path, notebook())])).rows] == who


@pytest.mark.parametrize("wrong", ["{file}", "{nam}_{id}", "(?P<id>", "{id}_{id}"])
def test_a_pattern_that_cannot_be_used_is_said(wrong: str) -> None:
    with pytest.raises(layouts.PatternError, match=r"expected one of|is unknown|no regular expression"):
        layouts.pattern(wrong)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PK\3\4...", "it is an Excel or OpenDocument file, not a table in text: save it as CSV there"),
        (b"\xd0\xcf\x11\xe0...", "it is an old Excel file"),
    ],
)
def test_a_roster_that_is_no_text_is_said(data: bytes, message: str) -> None:
    assert message in roster.read(data).problems[0]


def test_numbers_that_a_spreadsheet_made_and_brightspaces_marks_are_read() -> None:
    assert roster.read(b"id;lms_id\n4001.0;70037.00\nv1.0;7.5\n4002;70074,0\n4003;70.000\n").people == (
        roster.Person("4001", lms_id="70037"),
        roster.Person("v1.0", lms_id="7.5"),
        roster.Person("4002", lms_id="70074"),
        roster.Person("4003", lms_id="70.000"),  # seventy thousand where a point parts thousands
    )
    export = roster.read(
        b"OrgDefinedId,Username,Last Name,First Name,Email,a Points Grade <Numeric MaxPoints:5>,End-of-Line Indicator\n"
        b"#s001,#alovelace,Lovelace,Ada,ada@x.org,4,#\n"
    )
    assert export.people == (roster.Person("s001", "Lovelace, Ada", "ada@x.org"),)
    assert export.describe().startswith('Brightspace\'s grades export, 1 person: id from "OrgDefinedId"')
    assert roster.read(b"Username,End-of-Line Indicator\n#ada,#\n").people == (roster.Person("ada"),)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (b"team;id\nx;ada\n", "expected the columns group,id"),
        (b"group,id\nGroup 11,ada\nGroup 1-1,alan\n", "line 3: 'Group 1-1' is 'Group 11' to a platform"),
        (b"group,id\nx,eve\n", "line 2: 'eve' is no id of the roster"),
    ],
)
def test_a_members_file_that_cannot_be_used_is_said(table: bytes, message: str) -> None:
    with pytest.raises(groups.GroupsError, match=message):
        groups.read(table, roster.read(PEOPLE.encode()))


judged: list[str] = []


@pytest.fixture
def course(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The small course with a group of two; each judging finds one point less than the one before."""

    def find(submission: Submission) -> list[evidence.Score]:
        judged.append(submission.student)
        parts = [("double", 3.0 - len(judged), 2.0), ("total", 0.0, 1.0), ("total/speed", 0.0, 1.0)]
        return [evidence.Score(part, "pass", points, most, "") for part, points, most in parts]

    judged.clear()
    small_course.judged_here(monkeypatch, find)
    monkeypatch.chdir(root)
    (root / "roster.csv").write_text(PEOPLE)
    (root / "groups.csv").write_text("group,id\nprojectgroup1,ada\nprojectgroup1,alan\n")
    (root / "course.toml").write_text(
        f'[due]\ntimezone = "Europe/Berlin"\n{small_course.LESSON} = 2027-10-30T23:59:00\n'
        f"[extensions.ada]\n{small_course.LESSON} = 2027-12-01T12:00:00\n[late]\nper_day = 0.5\n"
    )
    yield root
    for path in ("course.toml", "groups.csv", "roster.csv"):
        (root / path).unlink()


def points(course: Path) -> dict[str, str]:
    """What Brightspace gets, by id."""
    grading = Grading.at(course)
    with Gradebook(grading.directory.db_url, grading.directory.course_id) as book:
        Brightspace(to=str(course / "b.csv"), unfinished="points", config=grading.config).export(book)
    head, *rows = csv.reader(io.StringIO((course / "b.csv").read_text()))
    assert head == ["OrgDefinedId", f"{small_course.LESSON} Points Grade", "End-of-Line Indicator"]
    return {row[0]: row[1] for row in rows}


def test_a_group_is_judged_once_and_each_member_gets_the_score_less_their_own_lateness(
    course: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    export = course / "groups.zip"
    data = nbformat.writes(answered(course, GOOD)).encode()
    export.write_bytes(
        zipped([(f"projectgroup1_LATE_70074_4567_{small_course.LESSON}.ipynb", data)], when=(2027, 10, 31, 23, 0, 0))
    )
    before = sorted(course.rglob("*"))
    assert main(["collect", str(export), "--dry-run"]) == 0
    assert "alan, 07_doubling; of the group projectgroup1" in capsys.readouterr().out
    assert sorted(course.rglob("*")) == before
    assert main(["collect", str(export)]) == 0
    assert "the same notebook as" not in capsys.readouterr().out
    for student in (
        "ada",
        "alan",
    ):  # 24 hours and a minute after, over a change of clocks: the second day has not begun
        (course / "grader/submitted" / student / small_course.LESSON / "timestamp.txt").write_text(
            "2027-10-31 22:58:00 UTC"
        )
    assert commands.grade_class(Grading.at(course), student="alan") == 0
    assert judged == ["ada"]
    assert points(course) == {"#ada": "2", "#alan": "1", "#grace": ""}
    assert f"alan,{small_course.LESSON},late,-1,0,late,24 hours late (1 day begun)" in (
        (course / "grades/scores.csv").read_text()
    )
    assert len(works(Grading.at(course), small_course.LESSON)[0]) == 1
    assert commands.grade_class(Grading.at(course), force=True) == 0
    assert judged == ["ada", "ada"]
    assert points(course) == {"#ada": "1", "#alan": "0.5", "#grace": ""}
