"""The leaderboard holds those who asked for it, by the name they chose, and nobody else."""

import html
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import small_course
from nbformat.v4 import new_code_cell, new_notebook
from small_course import GOOD, LESSON, SPECS, answered, hand_in

from unrolled import checks, journal
from unrolled.checks import Report
from unrolled.checks.compare import Remark
from unrolled.notebook import cells
from unrolled_grader import commands
from unrolled_grader.grading import Grading
from unrolled_grader.jobs import record
from unrolled_grader.jobs.record import Record
from unrolled_grader.judge.checking import Checking
from unrolled_grader.judge.evidence import Score
from unrolled_grader.judge.verdicts import Submission
from unrolled_grader.results import leaderboard
from unrolled_grader.results.leaderboard import Place
from unrolled_grader.results.tally import TalliedPart

ROOT = Path(__file__).resolve().parents[2]
PART = TalliedPart(LESSON, "total/speed")
TIMED = SPECS["total"]
assert TIMED.speed is not None
RANKED = {**SPECS, "total": replace(TIMED, speed=replace(TIMED.speed, leaderboard=True))}


def speed(verdict: str, *ratios: float, flag: str = "") -> Score:
    return Score("total/speed", verdict, 1.0, 1.0, "", flag, tuple({"ratio": one, "at_least": 5.0} for one in ratios))


def of(**scores: Score) -> list[Place]:
    """The places of students who are known by their ids."""
    records = [Record(student, LESSON, "", (score,)) for student, score in scores.items()]
    return leaderboard.boards(records, {PART}, lambda student, _: student).get(PART, [])


def test_the_median_of_what_was_measured_makes_the_order() -> None:
    """Ratios that read the same share a rank; what is not settled has none, and what was not measured no place."""
    found = of(
        ada=speed("pass", 1.0, 12.0, 99.0),
        bob=speed("fail", 3.0),
        cem=speed("pass", 11.98),
        dan=speed("pass", 20.0),
        eve=speed("crashed", 7.0),
        fay=speed("inconclusive", 50.0),
        gil=speed("pass", 900.0, flag="faster than memory allows: look at the code"),
        hal=replace(speed("pass", 9.0), part="double/speed"),
    )
    assert [(place.rank, place.name) for place in found] == [
        (1, "dan"), (2, "ada"), (2, "cem"), (4, "bob"), (None, "fay"), (None, "gil")
    ]  # fmt: skip


def test_a_name_that_several_chose_is_numbered() -> None:
    found = leaderboard.places([("Fox", 1.0), ("Fox", 2.0), ("Fox (2)", 3.0)])
    assert [place.name for place in found] == ["Fox (2) (2)", "Fox (2)", "Fox"]


def test_other_lessons_and_what_could_not_be_graded_have_no_place() -> None:
    records = [
        Record("bob", "08_kernels", "", (speed("pass", 9.0),)),
        Record("cem", LESSON, "", (speed("pass", 9.0),), problem="not valid JSON"),
    ]
    assert leaderboard.boards(records, {PART}, lambda student, _: student) == {}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('journal.leaderboard("Fast Fox")', "Fast Fox"),
        ("x = 1\njournal.leaderboard( 'Ada\"s' )  # me", 'Ada"s'),
        ('journal.leaderboard("A")\njournal.leaderboard("  B ")', "B"),
        ('# journal.leaderboard("Fast Fox")', ""),
        ('if False:\n    journal.leaderboard("Fast Fox")', ""),
        ("journal.leaderboard(name)", ""),
        ('journal.leaderboard("")', ""),
        (f'journal.leaderboard("{"x" * 41}")', ""),
        ('journal.leaderboard("a\u202eb")', ""),
    ],
)
def test_a_line_of_code_asks_and_nothing_else(source: str, name: str) -> None:
    assert leaderboard.requested_name(new_notebook(cells=[new_code_cell(source)])) == name
    assert leaderboard.requested_name(None) == ""
    if name:
        without = leaderboard.without_name(source)
        assert name not in without
        assert leaderboard.requested_name(new_notebook(cells=[new_code_cell(without)])) == "someone"


def test_the_call_says_what_it_does_and_keeps_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = journal.read()
    journal.leaderboard(" Fast Fox ")
    assert "as Fast Fox; without it you do not" in capsys.readouterr().out
    assert journal.read() == before
    with pytest.raises(ValueError, match="1 to 40 printable characters"):
        journal.leaderboard("")


def test_a_part_is_ranked_where_its_spec_says_so() -> None:
    assert leaderboard.parts({LESSON: SPECS}) == set()
    assert leaderboard.parts({LESSON: RANKED}) == {PART}
    assert leaderboard.parts({LESSON: {"total": replace(TIMED, leaderboard=True)}}) == {TalliedPart(LESSON, "total")}


@pytest.mark.parametrize(("ratio", "flagged"), [(9.9, False), (711287.0, True)])
def test_a_check_that_times_what_it_compares_hands_on_its_ratio(ratio: float, flagged: bool) -> None:
    """Whoever is many times as fast has no place until a person has looked."""
    spec = replace(TIMED, speed=None, rung=None, compare=lambda got, expected, inputs: Remark((), ratio=ratio))
    report = Report.from_dict(checks.run("total", spec, lambda x: x.sum()).to_dict())
    (score,) = Checking({"total": spec}, 0, boxed=False, timed=True).scores("total", report)
    assert (score.verdict, score.points, bool(score.flag)) == ("pass", 1, flagged)
    kept = record.from_dict(json.loads(json.dumps(record.to_dict(Record("ada", LESSON, "", (score,))))))
    found = leaderboard.boards([kept], {TalliedPart(LESSON, "total")}, lambda *_: "Fox")
    assert found[TalliedPart(LESSON, "total")] == [Place(None, "Fox", None) if flagged else Place(1, "Fox", ratio)]


def test_the_capstone_is_ranked_and_no_lesson_asks_for_its_learners() -> None:
    for file in ROOT.glob("notebooks/*/*.ipynb"):
        assert leaderboard.requested_name(cells.read(file)) == "", file.stem
    lesson = "13_capstone"
    assert TalliedPart(lesson, "time_to_accuracy") in leaderboard.parts()
    notebook = cells.read(ROOT / "notebooks" / lesson / f"{lesson}.ipynb")
    (line,) = (cell for cell in notebook.cells if "journal.leaderboard(" in cell.source)
    assert not cells.grade_id(line)
    assert line.source.startswith('# journal.leaderboard("')


SCRIPT = "<script>alert(1)</script>"
NAMES = {"s01": "Twin", "s02": "Twin", "s03": SCRIPT, "s04": "x" * 41, "s06": "Fox 6", "s07": "Fox 7", "s08": "Fox 8"}
"""Who has the line, by id; s04 with a name that is not valid."""
ODD = {"s07": speed("deferred"), "s08": speed("missing")}


def sent(root: Path, student: str, line: str) -> None:
    notebook = answered(root, GOOD)
    notebook.cells.append(new_code_cell(f"# {student[1:]}\n{line}"))
    hand_in(root, student, notebook)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A class of eight, graded; s05, who does not ask, is the fastest."""

    def find(submission: Submission) -> list[Score]:
        number = int(submission.student[1:])
        return [ODD.get(submission.student, speed("pass", 50.0 if number == 5 else float(number)))]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "lessons", lambda: {LESSON: RANKED})
        small_course.judged_here(patch, find)
        root = small_course.make(tmp_path_factory.mktemp("leaderboard") / "class")
        students = [f"s{number:02}" for number in range(1, 9)]
        for student in students:
            sent(root, student, f"journal.leaderboard({json.dumps(NAMES[student])})" if student in NAMES else "")
        (root / "roster.csv").write_text("id,name\n" + "".join(f"{one},Pip {one}quux\n" for one in students))
        commands.grade_class(Grading.at(root))
        yield root


@pytest.fixture
def course(graded: Path, tmp_path: Path) -> Grading:
    """A copy of the class."""
    return Grading.at(shutil.copytree(graded, tmp_path / "class"))


def shown(course: Grading) -> list[tuple[str, str, str]]:
    """The rows of the report's leaderboard: rank, name, ratio."""
    page = (course.grades / "report.html").read_text(encoding="utf-8")
    table = page.partition("<h2>Leaderboard</h2>")[2].partition("</table>")[0]
    rows = re.findall(r"<tr><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td></tr>", table)
    return [tuple(html.unescape(re.sub(r"<wbr>", "", cell)) for cell in row) for row in rows]  # type: ignore[misc]


def test_a_class_has_those_who_asked_and_were_measured_and_no_ids(course: Grading) -> None:
    assert shown(course) == [
        ("1", "Fox 6", "6x"), ("2", SCRIPT, "3x"), ("3", "Twin (2)", "2x"), ("4", "Twin", "1x"),
        ("", "Fox 7", "not settled yet"),
    ]  # fmt: skip
    page = (course.grades / "report.html").read_text(encoding="utf-8")
    section = page.partition("<h2>Leaderboard</h2>")[2].partition("<h2>")[0]
    assert "<script" not in page
    assert not re.search(r"\bs\d\d\b|quux", section)


def test_who_is_forgotten_or_hands_in_again_without_the_line_is_on_it_no_more(
    course: Grading, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert small_course.command(course, monkeypatch, "forget", "s06", "--yes") == 0
    assert "still found" not in capsys.readouterr().out
    assert [row[:2] for row in shown(course)] == [("1", SCRIPT), ("2", "Twin (2)"), ("3", "Twin"), ("", "Fox 7")]
    sent(Path(course.directory.root), "s02", "# no more")
    commands.grade_class(course)
    assert [row[1] for row in shown(course)] == [SCRIPT, "Twin", "Fox 7"]
    monkeypatch.setattr(leaderboard, "parts", lambda: set[TalliedPart]())
    commands.grade_class(course)
    assert "Leaderboard" not in (course.grades / "report.html").read_text(encoding="utf-8")


def test_an_export_under_pseudonyms_holds_no_such_name(
    course: Grading, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert small_course.command(course, monkeypatch, "pseudonymous", str(tmp_path / "out"), "--texts") == 0
    texts = [file.read_text(encoding="utf-8") for file in (tmp_path / "out").rglob("*") if file.is_file()]
    assert sum("journal.leaderboard(" in text for text in texts) == len(NAMES)
    assert not [text for text in texts if re.search("Fox|Twin|alert", text)]
