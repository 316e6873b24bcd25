"""An instructor opens formgrader from the course's root, sees the lessons and autogrades one submission."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import nbformat
from lab import ARTIFACTS, ROOT, jupyter_lab
from playwright.sync_api import Page, expect

from unrolled_grader import sample

LESSON = "00_start_here"
STUDENT = "perfect"


def scratch_course(folder: Path) -> Path:
    """A course of its own with one submission, so that the real gradebook is left alone."""
    for name in ("solutions", "notebooks"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "grader").mkdir()
    shutil.copy(ROOT / "nbgrader_config.py", folder)
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
        expect(page.locator("#success-modal")).to_be_visible(timeout=120_000)
        page.screenshot(path=ARTIFACTS / "formgrader_autograded.png")
        page.locator("#success-modal .modal-footer button").first.click()
        expect(row).to_contain_text("needs manual grading")  # the explain-in-words cell waits for a person

        points = scores(course)
        assert points > 0
        expect(row.locator(".score")).to_contain_text(f"{points:g} / ")
