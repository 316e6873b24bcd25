"""A learner of lesson 11 moves its three widgets by keyboard, and reads that a scale was taken away in float16."""

from __future__ import annotations

from pathlib import Path

from lab import ARTIFACTS, hand_out, jupyter_lab
from playwright.sync_api import Page, expect
from test_lab import open_lesson, run_all, scroll_to
from test_lab_kernels import moved

LESSON = "11_smaller_numbers"
IN_FLOAT16 = """def loss_scale_step(gradients, scale, good_steps, every):
    if not np.isfinite(gradients).all():
        return None, scale / 2, 0
    found = (gradients / np.float16(min(scale, 65504))).astype(np.float32)
    if good_steps + 1 == every:
        return found, scale * 2, 0
    return found, scale, good_steps + 1
"""


def test_a_learner_pumps_numbers_and_moves_bits_and_limits(page: Page, tmp_path: Path) -> None:
    work = tmp_path / "work"
    hand_out(LESSON, work, until="show.clipping", loss_scale_step=IN_FLOAT16)
    with jupyter_lab(work, tmp_path / "home") as server:
        open_lesson(page, server.page(f"/lab/tree/{LESSON}.ipynb?reset"))
        run_all(page)

        report = page.locator(".jp-OutputArea-output", has_text="finite gradients").locator("table")
        scroll_to(page, report)
        expect(report.first).to_contain_text("gradients: shape")
        page.screenshot(path=ARTIFACTS / "check_loss_scale_step.png")

        moved(page, "A grid of 3 by 3 cells, step 3", 0, "ArrowRight", "A grid of 3 by 3 cells, step 4")
        page.screenshot(path=ARTIFACTS / "systolic_array.png")
        moved(page, "float16: 5 bits of exponent", 0, "ArrowRight", "6 bits of exponent and 10 of fraction")
        page.screenshot(path=ARTIFACTS / "float_ruler.png")
        moved(page, "Histogram of", 0, "ArrowLeft", "Histogram of")
        page.screenshot(path=ARTIFACTS / "clipping.png")
