"""The build keeps lists of lessons in pages that people write, and says what it cannot list."""

import pytest

from unrolled_grader.authoring.listed import pages, with_lessons
from unrolled_grader.authoring.variants import LessonError

FACTS = [{"number": "00", "title": "Start"}, {"number": "01", "title": "Products"}]
MARK = "<!-- each lesson: - {number}: {title} -->"


def test_the_lines_of_a_list_are_replaced_and_what_stands_around_stays():
    text = f"# Page\n\n{MARK}\n\nFirst:\n\n- 00: Begin\n- 07: Gone\n\n- 08: another list\n"
    expected = f"# Page\n\n{MARK}\n\nFirst:\n\n- 00: Start\n- 01: Products\n\n- 08: another list\n"
    assert with_lessons("page.md", text, FACTS) == expected
    assert with_lessons("page.md", expected, FACTS) == expected


def test_a_page_may_have_two_lists():
    text = f"{MARK}\n- 00: x\n<!-- each lesson: {{title}} <{{number}}> -->\nStart <00>\n"
    made = with_lessons("page.md", text, FACTS)
    assert "- 00: Start\n- 01: Products\n" in made
    assert made.endswith("\nStart <00>\nProducts <01>\n")


def test_syllabi_are_listed_with_the_minutes_of_the_lessons_that_are_there():
    minutes = {"00_start_here": ("20", "20"), "02_convolution": ("110", "98"), "03_pooling": ("1000", "90")}
    facts = [
        {"name": name, "number": name[:2], "minutes": whole, "core": core} for name, (whole, core) in minutes.items()
    ]
    mark = "<!-- each syllabus: | {name} | {lessons} | {minutes}, {core} | -->"
    made = with_lessons(
        "page.md", f"{mark}\n\n| syllabus | which | minutes |\n| --- | --- | --- |\n| a | b | c, d |\n", facts
    )
    assert made.splitlines()[4:] == [
        "| `2h` | 00, 02 | 130, 118 |",
        "| `4h` | 00, 02 | 130, 118 |",
        "| `8h` | 00, 02 | 130, 118 |",
        "| neither: a term | all, 00 to 03 | 1,130, 208 |",
    ]


def test_the_core_is_the_minutes_without_what_is_marked_more(tmp_path):
    (tmp_path / "README.md").write_text("<!-- each lesson: - {week}: {core} of {minutes} -->\n- 1: 2 of 3\n", "utf-8")
    text = "# # Start\n#\n# Lesson 00, about 50 minutes.\n# **Core**, about 9 minutes.\n# **More**, about 8 minutes.\n"
    for name in ("00_start", "01_next", "02_long", "03_last"):
        sittings = "# For two sittings.\n" if "long" in name else ""
        (tmp_path / f"{name}.py").write_text(f"{text}# **More**, about 7\n# minutes.\n{sittings}", "utf-8")
        specs = tmp_path / f"lib/unrolled/checks/exercises/l{name}/__init__.py"
        specs.parent.mkdir(parents=True)
        specs.write_text('"""Do it."""\n', "utf-8")
    lessons = {file.stem: file for file in sorted(tmp_path.glob("*.py"))}
    lines = pages(tmp_path, lessons)["README.md"].decode().splitlines()
    assert lines[1:] == ["- 1: 35 of 50", "- 1: 35 of 50", "- 2, 3: 35 of 50", "- 4: 35 of 50"]


def test_a_list_without_a_line_is_named():
    with pytest.raises(LessonError, match=r"page\.md: no line looks like '- \{number\}: \{title\}'"):
        with_lessons("page.md", f"{MARK}\n\nnothing\n", FACTS)


def test_a_lesson_that_does_not_say_what_is_listed_is_named(tmp_path):
    (tmp_path / "README.md").write_text(f"{MARK}\n- 00: x\n", encoding="utf-8")
    lesson = tmp_path / "00_start.py"
    lesson.write_text("# # Start\n", encoding="utf-8")
    with pytest.raises(LessonError, match="00_start: the first cell must say"):
        pages(tmp_path, {"00_start": lesson})
    lesson.write_text("# # Start\n#\n# Lesson 00, about 5 minutes.\n", encoding="utf-8")
    with pytest.raises(LessonError, match=r"00_start: .*/l00_start/__init__\.py must say in its docstring"):
        pages(tmp_path, {"00_start": lesson})


def test_a_course_without_such_pages_needs_none_of_it(tmp_path):
    assert pages(tmp_path, {"00_start": tmp_path / "missing.py"}) == {}
