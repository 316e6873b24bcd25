"""A learner drills down in lesson 07 by keyboard, gets a step of their own, and reads why a clock lied."""

from __future__ import annotations

import re
from pathlib import Path

from lab import ARTIFACTS, hand_out, jupyter_lab
from playwright.sync_api import Page, expect
from test_lab import open_lesson, run_all, scroll_to

LESSON = "07_profiling"
WITHOUT_WAITING = """def time_layers(layers, x, grad, clock, synchronize):
    forward, backward = [], []
    for layer in layers:
        start = clock()
        x = layer.forward(x, True)
        forward.append(clock() - start)
    for layer in reversed(layers):
        start = clock()
        grad = layer.backward(grad)
        backward.append(clock() - start)
    return list(zip(forward, reversed(backward)))
"""


def test_a_learner_drills_down_and_finds_a_step_of_their_own(page: Page, tmp_path: Path) -> None:
    work = tmp_path / "work"
    hand_out(LESSON, work, until="assign(LEARNER)", time_layers=WITHOUT_WAITING)
    file = work / f"{LESSON}.ipynb"
    file.write_text(
        file.read_text(encoding="utf-8").replace("LEARNER = ...  #", "LEARNER = 'bob'  #"), encoding="utf-8"
    )
    with jupyter_lab(work, tmp_path / "home") as server:
        open_lesson(page, server.page(f"/lab/tree/{LESSON}.ipynb?reset"))
        run_all(page)

        waterfall = page.locator(".jp-OutputArea-output", has=page.locator(".noUi-handle"))
        scroll_to(page, waterfall)
        picture = waterfall.first.locator("img")
        expect(picture).to_have_attribute("alt", re.compile("an epoch"))
        waterfall.first.locator(".noUi-handle").first.focus()
        for _ in range(2):
            page.keyboard.press("ArrowRight")
        expect(picture).to_have_attribute("alt", re.compile("pooling.*fill", re.DOTALL))
        page.screenshot(path=ARTIFACTS / "profiling_waterfall.png")

        report = page.locator(".jp-OutputArea-output", has_text="two layers on a CPU").locator("table")
        scroll_to(page, report)
        expect(report.first).to_contain_text("the clock was read without a wait")
        report.first.scroll_into_view_if_needed()
        page.screenshot(path=ARTIFACTS / "check_time_layers.png")

        timeline = page.locator(".jp-OutputArea-output", has=page.locator("img[alt*='8 digits']"))
        scroll_to(page, timeline)
        timeline.first.scroll_into_view_if_needed()
        page.screenshot(path=ARTIFACTS / "profiling_timeline.png")

        step = page.locator(".jp-OutputArea-output", has_text="def step(images, weight)")
        scroll_to(page, step)
        expect(step.first).to_contain_text("return")
        page.screenshot(path=ARTIFACTS / "profiling_step.png")
