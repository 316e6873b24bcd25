"""A learner opens lesson 02 in JupyterLab, runs everything and moves a slider."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from lab import ARTIFACTS, ROOT, jupyter_lab
from playwright.sync_api import Locator, Page, expect

from chromium import PATIENCE

LESSON = "02_convolution"
ALL_RUN = r"""() => {
    const status = document.querySelector(".jp-Notebook-ExecutionIndicator").textContent;
    if (/Executed \d+ cells/.test(status)) return true;
    // A run of less than a second is not told there. Running all moves to the last cell, so it is rendered.
    const prompts = [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")].map(one => one.textContent.trim());
    return status.includes("Idle") && !prompts.includes("[*]:") && /^\[\d+\]:$/.test(prompts.at(-1) ?? "");
}"""
PAGE_DOWN = """window => {
    const end = window.scrollTop + window.clientHeight >= window.scrollHeight - 1;
    window.scrollTo(0, end ? 0 : window.scrollTop + 700);
}"""


def run_all(page: Page) -> None:
    """Run > Run All Cells, as a learner would, and wait until the kernel rests."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(ALL_RUN, timeout=3 * 1000 * PATIENCE)


def scroll_to(page: Page, target: Locator) -> None:
    """JupyterLab renders what is near the window only: page down, again from the top, until the target is there.

    A page may be rendered only after it was scrolled past, so the first way down need not find it.
    """
    window = page.locator(".jp-WindowedPanel-outer").first
    window.evaluate("window => window.scrollTo(0, 0)")
    deadline = time.monotonic() + PATIENCE
    while not target.first.is_visible():
        assert time.monotonic() < deadline, f"{target} does not appear in the notebook"
        window.evaluate(PAGE_DOWN)
        page.wait_for_timeout(150)
    target.first.scroll_into_view_if_needed()


def open_lesson(page: Page, url: str) -> None:
    page.goto(url)
    expect(page.locator(".jp-Notebook")).to_be_visible()
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
