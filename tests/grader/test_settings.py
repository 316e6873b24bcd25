"""course.toml: every entry is read, and what is wrong with one is named."""

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from unrolled_grader.classroom import settings

LESSONS = {"00_start_here", "02_convolution"}
FULL = """
[class]
name = "Spring 2027"
lessons = ["00_start_here", "02_convolution"]
without_speed = ["00_start_here"]
[variants]
im2col = "nhwc"
[thresholds]
conv2d_gemm = 2
[points]
"conv2d_gemm/speed" = 2
[due]
timezone = "Asia/Tokyo"
02_convolution = 2027-01-15T23:59:00
[extensions.ada]
02_convolution = 2027-01-18T23:59:00+09:00
[late]
grace_minutes = 15
per_day = 0.1
at_most = 0.5
"""
TOKYO = timezone(timedelta(hours=9))


CHOICES = {
    "lessons": ["00_start_here", "02_convolution"],
    "without_speed": ["00_start_here"],
    "variants": {"im2col": "nhwc"},
    "thresholds": {"conv2d_gemm": 2.0},
    "points": {"conv2d_gemm/speed": 2},
}


def write_choices(root: Path, **others: Any) -> None:
    file = root / settings.CHOICES
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**CHOICES, **others}), encoding="utf-8")


def test_everything_is_read(tmp_path: Path):
    write_choices(tmp_path)
    (tmp_path / "lessons").mkdir()
    for lesson in LESSONS:
        (tmp_path / "lessons" / f"{lesson}.py").touch()
    (tmp_path / "course.toml").write_text(FULL, encoding="utf-8")
    assert settings.read(tmp_path) == settings.Settings(
        name="Spring 2027",
        lessons=("00_start_here", "02_convolution"),
        variants={"im2col": "nhwc"},
        thresholds={"conv2d_gemm": 2.0},
        points={"conv2d_gemm/speed": 2},
        without_speed=("00_start_here",),
        timezone="Asia/Tokyo",
        due={"02_convolution": datetime(2027, 1, 15, 23, 59, tzinfo=TOKYO)},
        extensions={"ada": {"02_convolution": datetime(2027, 1, 18, 23, 59, tzinfo=TOKYO)}},
        late=settings.Late(15, 0.1, 0.5),
    )


@pytest.mark.parametrize(
    "others",
    [{"thresholds": {}}, {"variants": {}}, {"lessons": ["00_start_here"]}, {"points": {}}, {"without_speed": []}],
)
def test_what_learners_checks_ask_otherwise_is_named(tmp_path: Path, others: dict[str, Any]):
    test_everything_is_read(tmp_path)
    write_choices(tmp_path, **others)
    with pytest.raises(settings.SettingsError, match=f"{next(iter(others))} .*, but lib/unrolled/checks/course.json"):
        settings.read(tmp_path)
    assert settings.read(tmp_path, agreeing=False).name == "Spring 2027"


def test_an_extension_goes_before_the_due_date():
    found = settings.parse(FULL, LESSONS)
    assert found.due_for("ada", "02_convolution") == datetime(2027, 1, 18, 23, 59, tzinfo=TOKYO)
    assert found.due_for("ben", "02_convolution") == datetime(2027, 1, 15, 23, 59, tzinfo=TOKYO)
    assert found.due_for("ada", "00_start_here") is None


def test_without_the_file_and_in_an_empty_one_all_are_defaults(tmp_path: Path):
    assert settings.read(tmp_path) == settings.parse("", set()) == settings.Settings()
    assert settings.Settings().late == settings.Late(0, 0, 1)


@pytest.mark.parametrize("text", ["", FULL, '[class]\nname = "Größe \\"3\\"\\n"\n[extensions."a b.c"]\n'])
def test_what_is_written_reads_the_same(text: str):
    found = settings.parse(text, LESSONS)
    assert settings.parse(settings.written(found), LESSONS) == found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[klass]", "klass is unknown; there are class, variants"),
        ("class = 3", "class is 3; expected a table"),
        ("[class]\nprivate_seed = 3", "class.private_seed is unknown; there are name, lessons, without_speed"),
        ("[class]\nname = 3", "class.name is 3; expected a text"),
        ('[class]\nlessons = "02_convolution"', "class.lessons is '02_convolution'; expected a list"),
        ('[class]\nlessons = ["02"]', "class.lessons is '02'; expected one of 00_start_here, 02_convolution"),
        ("[class]\nlessons = [[]]", r"class.lessons is \[\]; expected one of"),
        ("[thresholds]\nconv2d_gemm = 0", "thresholds.conv2d_gemm is 0; expected a number above 0"),
        ("[thresholds]\nconv2d_gemm = true", "thresholds.conv2d_gemm is True"),
        ("[points]\nim2col = 2.5", "points.im2col is 2.5; expected a whole number from 0 to 1000"),
        ('[class]\nwithout_speed = ["09"]', "class.without_speed is '09'; expected one of"),
        (
            "[due]\n02_convolution = 2027-01-15T23:59:00",
            'due.02_convolution is 2027-01-15T23:59:00; .*timezone = "Europe',
        ),
        ("[due]\n02_convolution = 2027-01-15T23:59:00+01:00", "a time zone for it: write timezone = "),
        ("[due]\ntimezone = 'Europe/Berlim'", "due.timezone is 'Europe/Berlim'; expected a name such as"),
        ("[due]\ntimezone = 9", "due.timezone is 9; expected a name such as"),
        ("[due]\ntimezone = 'UTC'\n02_convolution = 2027-01-15", "is 2027-01-15; expected a date and time"),
        ("[due]\ntimezone = 'America/New_York'\n02_convolution = 9999-12-31T23:59:59", "expected a date and time"),
        ("[due]\n02_konvolution = 2027-01-15T23:59:00Z", "due is '02_konvolution'; expected one of"),
        ('[extensions.ada]\n02_convolution = "soon"', "extensions.ada.02_convolution is 'soon'"),
        ("[late]\nper_day = 10", "late.per_day is 10; expected a part from 0 to 1"),
        ("[late]\nper_week = 1", "late.per_week is unknown"),
        ("[class", "course.toml is not TOML: "),
    ],
)
def test_what_is_wrong_is_named(text: str, says: str):
    with pytest.raises(settings.SettingsError, match=says):
        settings.parse(text, LESSONS)


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path):
    (tmp_path / "course.toml").write_bytes(b"[class]\nname = '\xff'")
    with pytest.raises(settings.SettingsError, match=r"course\.toml cannot be read"):
        settings.read(tmp_path)


COMMENTED = """\
# Ours.
[class]
name = "Spring"   # for the README
lessons = [
    "00_start_here",
]

# Agreed with the students on Monday.
[late]
per_day = 0.1
"""


def test_a_text_that_people_wrote_stays_but_for_the_tables_that_change():
    was = settings.parse(COMMENTED, LESSONS)
    both = ("00_start_here", "02_convolution")
    now = replace(was, lessons=both, thresholds={"conv2d_gemm": 2.0}, points={"conv2d_gemm/speed": 2})
    text = settings.rewritten(COMMENTED, now, LESSONS)
    assert settings.parse(text, LESSONS) == now
    assert "# Ours.\n[class]\n" in text
    assert "# Agreed with the students on Monday.\n[late]\nper_day = 0.1\n" in text
    assert text.endswith('\n[thresholds]\nconv2d_gemm = 2.0\n\n[points]\n"conv2d_gemm/speed" = 2\n')
    assert settings.rewritten(text, now, LESSONS) == text


def test_a_table_in_an_unusual_form_is_written_anew():
    text = '[class]\nname = "a"\n\nlessons = ["00_start_here"]\n'
    now = replace(settings.parse(text, LESSONS), lessons=("02_convolution",))
    assert settings.parse(settings.rewritten(text, now, LESSONS), LESSONS) == now
