"""A learner of lesson 09 goes through its three widgets by keyboard, and reads which gate is in another's place."""

from __future__ import annotations

from pathlib import Path

from lab import ARTIFACTS, hand_out, jupyter_lab
from playwright.sync_api import Page, expect
from test_lab import open_lesson, run_all, scroll_to
from test_lab_kernels import moved

LESSON = "09_lstm"
IN_ANOTHER_ORDER = """def lstm_step(x, h, c, weight_ih, weight_hh, bias):
    size = weight_hh.shape[1]
    sums = x @ weight_ih.T + h @ weight_hh.T + bias
    i, f, o, g = (sums[:, k * size : (k + 1) * size] for k in range(4))
    c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c
"""


def test_a_learner_steps_through_the_cell_and_is_told_of_a_wrong_gate(page: Page, tmp_path: Path) -> None:
    work = tmp_path / "work"
    hand_out(LESSON, work, until="show.wavefront", lstm_step=IN_ANOTHER_ORDER)
    with jupyter_lab(work, tmp_path / "home") as server:
        open_lesson(page, server.page(f"/lab/tree/{LESSON}.ipynb?reset"))
        run_all(page)

        report = page.locator(".jp-OutputArea-output", has_text="everything is forgotten").locator("table")
        scroll_to(page, report)
        expect(report.first).to_contain_text("the third block is g, the fourth o")
        page.screenshot(path=ARTIFACTS / "check_lstm_step.png")

        moved(page, "One step of an LSTM", 0, "ArrowLeft", "Step 6 of 7, new cell state")
        page.screenshot(path=ARTIFACTS / "lstm_cell.png")
        moved(page, "naive: 323 launches", 0, "ArrowRight", "combined: 227 launches")
        page.screenshot(path=ARTIFACTS / "lstm_launches.png")
        moved(page, "A grid of 4 layers and 8 steps", 0, "ArrowRight", "Slot 4 of 0 to 10")
        page.screenshot(path=ARTIFACTS / "lstm_wavefront.png")
