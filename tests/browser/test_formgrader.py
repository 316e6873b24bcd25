"""An instructor opens formgrader from the course's root, sees the lessons and autogrades one submission."""

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from lab import ARTIFACTS, ROOT, Server, jupyter_lab
from playwright.sync_api import Page, expect

from unrolled_grader.authoring import sample

LESSON = "00_start_here"
STUDENT = "perfect"


def scratch_course(folder: Path) -> Path:
    """A course of its own with one submission, so that the real gradebook is left alone."""
    for name in ("solutions", "notebooks"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "grader").mkdir()
    for name in ("nbgrader_config.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    shutil.copy(ROOT / "grader" / "nbgrader_config.py", folder / "grader")
    submission = folder / "grader" / "submitted" / STUDENT / LESSON / f"{LESSON}.ipynb"
    submission.parent.mkdir(parents=True)
    nbformat.write(sample.notebook(ROOT, STUDENT, LESSON), submission)
    return folder


def scores(course: Path) -> float:
    with (course / "grades" / "scores.csv").open(newline="") as file:
        return sum(float(row["points"]) for row in csv.DictReader(file))


def test_an_instructor_autogrades_a_submission(page: Page, tmp_path: Path) -> None:
    course = scratch_course(tmp_path / "course")
    with jupyter_lab(course, tmp_path / "home") as server:
        page.goto(server.page("/formgrader"))
        lessons = page.locator("#main-table")
        for notebook in sorted((ROOT / "notebooks").iterdir()):
            expect(lessons).to_contain_text(notebook.name)
        page.screenshot(path=ARTIFACTS / "formgrader_lessons.png")

        page.goto(server.page(f"/formgrader/manage_submissions/{LESSON}"))
        row = page.locator("#main-table tr", has_text=STUDENT)
        expect(row).to_contain_text("needs autograding")
        row.locator(".autograde a").click()
        expect(page.locator("#success-modal")).to_be_visible()
        page.screenshot(path=ARTIFACTS / "formgrader_autograded.png")
        page.locator("#success-modal .modal-footer button").first.click()
        expect(row).to_contain_text("needs manual grading")  # the explain-in-words cell waits for a person

        points = scores(course)
        assert points > 0
        expect(row.locator(".score")).to_contain_text(f"{points:g} / ")
        mark_the_answer(page, server, course, points)


def mark_the_answer(page: Page, server: Server, course: Path, points: float) -> None:
    """A person reads the answer in words beside its rubric and gives a point, which a regrade keeps."""
    page.goto(server.page(f"/formgrader/gradebook/{LESSON}/{LESSON}"))
    page.get_by_role("link", name="Submission #1").click()
    answer = page.locator(".nbgrader_cell", has=page.locator("input#explain_ratio"))
    expect(answer).to_contain_text("One large call does the work")
    rubric = page.locator(".text_cell", has_text="For the marker only")
    expect(rubric).to_contain_text("Rubric, 1 point")
    assert answer.bounding_box()["y"] < rubric.bounding_box()["y"]  # type: ignore[index]
    expect(answer).to_contain_text("/ 1.0")
    box = page.locator("input#explain_ratio")
    page.wait_for_function("window.formgrader?.grades?.loaded")  # before, the page does not listen to the box
    box.fill("0.5")
    with page.expect_response("**/formgrader/api/grade/*") as saved:  # the page's own sign is gone after a second
        box.press("Tab")
    assert saved.value.ok
    page.screenshot(path=ARTIFACTS / "formgrader_marking.png", full_page=True)

    command = [sys.executable, "-m", "unrolled.cli", "grade", "00", "--force", "--reason", "a second look"]
    subprocess.run(command, cwd=course, check=True, capture_output=True, timeout=1000)
    assert scores(course) == points + 0.5
    assert "explain_ratio,0.5,1,marked,by a person" in (course / "grades" / "scores.csv").read_text()
    feedback = (course / "grader" / "feedback" / STUDENT / LESSON / f"{LESSON}.html").read_text()
    assert f"{points + 0.5:g} of 2 points" in feedback
    assert "For the marker" not in feedback
    assert (
        "Rubric, 1 point" not in (course / "grader" / "autograded" / STUDENT / LESSON / f"{LESSON}.ipynb").read_text()
    )
    exporter = ["--exporter", "unrolled_grader.export.Canvas", "--to", "canvas.csv"]
    export = [sys.executable, "-m", "nbgrader", "export", *exporter]
    subprocess.run(export, cwd=course, check=True, capture_output=True, timeout=1000)
    assert f",{STUDENT},,{points + 0.5:g}" in (course / "canvas.csv").read_text()
