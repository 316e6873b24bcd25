"""A learner of lesson 06 moves the clock's stop by keyboard, and reads why a clock that does not wait is wrong."""

from __future__ import annotations

import re
from pathlib import Path

from lab import ARTIFACTS, hand_out, jupyter_lab
from playwright.sync_api import Page, expect
from test_lab import open_lesson, run_all, scroll_to

LESSON = "06_gpu_port"
A_LIE = """def gpu_time(function, x):
    function(x)
    start = device.clock(x)
    function(x)
    return device.clock(x) - start
"""


def test_a_learner_moves_the_clocks_stop_and_is_told_that_it_lies(page: Page, tmp_path: Path) -> None:
    work = tmp_path / "work"
    hand_out(LESSON, work, until="check.gpu_time(", gpu_time=A_LIE)
    with jupyter_lab(work, tmp_path / "home") as server:
        open_lesson(page, server.page(f"/lab/tree/{LESSON}.ipynb?reset"))
        run_all(page)

        timeline = page.locator(".jp-OutputArea-output", has=page.locator(".noUi-handle"))
        scroll_to(page, timeline)
        stop, wait = (timeline.first.locator(".noUi-handle").nth(n) for n in range(2))
        picture = timeline.first.locator("img")
        expect(picture).to_have_attribute("alt", containing("The clock stops after call 4 (matmul), without waiting"))
        stop.focus()
        for _ in range(2):
            page.keyboard.press("ArrowLeft")
        expect(picture).to_have_attribute("alt", containing("after call 2 (matmul), without waiting"))
        page.screenshot(path=ARTIFACTS / "timeline_that_lies.png")
        wait.focus()
        page.keyboard.press("ArrowRight")
        expect(picture).to_have_attribute("alt", containing("having synchronized"))
        page.screenshot(path=ARTIFACTS / "timeline_honest.png")

        report = page.locator(".jp-OutputArea-output", has_text="by events on the GPU itself").locator("table")
        scroll_to(page, report)
        expect(report.first).to_contain_text("the clock stopped before the device was done")
        report.first.scroll_into_view_if_needed()
        page.screenshot(path=ARTIFACTS / "check_gpu_time.png")


def containing(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text))
