"""A learner steps through the graph of lesson 04 by keyboard, breaks a gradient, and reads why an answer is wrong."""

from __future__ import annotations

import re
from pathlib import Path

from lab import ARTIFACTS, hand_out, jupyter_lab
from playwright.sync_api import Page, expect
from test_lab import open_lesson, run_all, scroll_to

LESSON = "04_backprop"
TO_ONE_SIDE = """def numeric_gradient(function, x, step=1e-5):
    gradient = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        moved = x.copy()
        moved[index] += step
        gradient[index] = (function(moved) - function(x)) / step
    return gradient
"""


def test_a_learner_steps_through_the_graph_and_breaks_a_gradient(page: Page, tmp_path: Path) -> None:
    work = tmp_path / "work"
    hand_out(LESSON, work, until="check.numeric_gradient(", numeric_gradient=TO_ONE_SIDE)
    with jupyter_lab(work, tmp_path / "home") as server:
        open_lesson(page, server.page(f"/lab/tree/{LESSON}.ipynb?reset"))
        run_all(page)

        graph = page.locator(".jp-OutputArea-output", has=page.locator(".noUi-handle"))
        scroll_to(page, graph)
        step, broken = (graph.first.locator(".noUi-handle").nth(n) for n in range(2))
        picture = graph.first.locator("img")
        step.focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        expect(picture).to_have_attribute("alt", containing("Step 9 of 9, affine 1, backward"))
        page.screenshot(path=ARTIFACTS / "graph_right.png")

        broken.focus()
        page.keyboard.press("ArrowRight")
        expect(picture).to_have_attribute("alt", containing("broken (bias 1 has the wrong sign), with 3 of 38"))
        page.screenshot(path=ARTIFACTS / "graph_broken.png")

        report = page.locator(".jp-OutputArea-output", has_text="catches: a sign error").locator("table")
        scroll_to(page, report)
        expect(report.first).to_contain_text("step to both sides")
        report.first.scroll_into_view_if_needed()
        page.screenshot(path=ARTIFACTS / "check_numeric_gradient.png")


def containing(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text))
