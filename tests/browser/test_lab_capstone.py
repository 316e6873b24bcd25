"""A learner of lesson 13 reads that a rate was frozen."""

from __future__ import annotations

from pathlib import Path

from lab import ARTIFACTS, hand_out, jupyter_lab
from playwright.sync_api import Page, expect
from test_lab import open_lesson, run_all, scroll_to

LESSON = "13_capstone"
FROZEN = """def capturable_step(x, target, weight, velocity, rate, error, grad):
    matmul(x, weight, out=error)
    error -= target
    matmul(x.T, error, out=grad)
    grad *= 0.1 / len(x)
    velocity *= 0.9
    velocity -= grad
    weight += velocity
    rate *= 0.99
"""


def test_a_learner_reads_that_a_rate_was_frozen(page: Page, tmp_path: Path) -> None:
    work = tmp_path / "work"
    hand_out(LESSON, work, until="show.launches", capturable_step=FROZEN)
    with jupyter_lab(work, tmp_path / "home") as server:
        open_lesson(page, server.page(f"/lab/tree/{LESSON}.ipynb?reset"))
        run_all(page)

        report = page.locator(".jp-OutputArea-output", has_text="captured once").locator("table")
        scroll_to(page, report)
        expect(report.first).to_contain_text("the rate is frozen at its first value")
        page.screenshot(path=ARTIFACTS / "check_capturable_step.png")
