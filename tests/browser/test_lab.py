"""A learner opens lesson 02 in JupyterLab, runs everything and moves a slider."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from lab import ARTIFACTS, ROOT, jupyter_lab
from playwright.sync_api import Locator, Page, expect

LESSON = "02_convolution"


def run_all(page: Page) -> None:
    """Run > Run All Cells, as a learner would, and wait until the kernel rests."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    indicator = page.locator(".jp-Notebook-ExecutionIndicator")
    expect(indicator).to_have_attribute("data-status", "busy")
    expect(indicator).to_have_attribute("data-status", "idle", timeout=180_000)


def scroll_to(page: Page, target: Locator) -> None:
    """JupyterLab renders what is near the window only: page down until the target is there."""
    page.locator(".jp-Notebook .jp-Cell").first.click()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Home")
    for _ in range(60):
        if target.count():
            target.first.scroll_into_view_if_needed()
            return
        page.locator(".jp-WindowedPanel-outer").first.hover()
        page.mouse.wheel(0, 700)
        page.wait_for_timeout(150)
    raise AssertionError(f"{target} does not appear in the notebook")


def open_lesson(page: Page, url: str) -> None:
    page.goto(url)
    expect(page.locator(".jp-Notebook")).to_be_visible(timeout=60_000)
    expect(page.locator("#jp-main-statusbar")).to_contain_text("| Idle")  # the kernel is connected


def test_a_learner_runs_lesson_02_and_moves_a_slider(page: Page, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(ROOT / "solutions" / LESSON / f"{LESSON}.ipynb", work)
    with jupyter_lab(work, tmp_path / "home") as server:
        open_lesson(page, server.page(f"/lab/tree/{LESSON}.ipynb?reset"))
        run_all(page)

        handle = page.locator(".jp-OutputArea-output .noUi-handle").first
        scroll_to(page, handle)
        picture = page.locator(".jp-OutputArea-output", has=page.locator(".noUi-handle")).first.locator("img")
        picture.scroll_into_view_if_needed()
        before, said = picture.get_attribute("src"), picture.get_attribute("alt")
        page.screenshot(path=ARTIFACTS / "slider_before.png")
        handle.focus()
        page.keyboard.press("ArrowRight")  # by keyboard: no mouse is needed anywhere
        expect(picture).not_to_have_attribute("src", before or "")
        expect(picture).not_to_have_attribute("alt", said or "")
        page.screenshot(path=ARTIFACTS / "slider_after.png")

        report = page.locator(".jp-OutputArea-output", has_text="conv2d_gemm").locator("table")
        scroll_to(page, report)
        expect(report.first).to_contain_text("pass")
        report.first.scroll_into_view_if_needed()
        page.screenshot(path=ARTIFACTS / "check_passed.png")

    journal = json.loads((work / "journal.json").read_text())
    assert journal["checks"]["conv2d_gemm"]["passed"]
