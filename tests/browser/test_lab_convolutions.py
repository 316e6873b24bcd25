"""A learner of lesson 10 steps through F(2, 3) by keyboard, and is told that the weight has to be flipped."""

from __future__ import annotations

from pathlib import Path

from lab import ARTIFACTS, hand_out, jupyter_lab
from playwright.sync_api import Page, expect
from test_lab import open_lesson, run_all, scroll_to
from test_lab_kernels import moved

LESSON = "10_faster_convolutions"
NOT_FLIPPED = """def fft_conv2d(x, weight, bias, padding=0):
    xp = device.array_module(x)
    (kh, kw), (h, w) = weight.shape[2:], x.shape[2:]
    lengths = h + kh - 1, w + kw - 1
    pixels = xp.fft.rfft2(x, lengths).transpose(2, 3, 0, 1)
    weights = xp.fft.rfft2(weight, lengths).transpose(2, 3, 1, 0)
    whole = xp.fft.irfft2((pixels @ weights).transpose(2, 3, 0, 1), lengths)
    top, left = kh - 1 - padding, kw - 1 - padding
    oh, ow = h + 2 * padding - kh + 1, w + 2 * padding - kw + 1
    return whole[:, :, top : top + oh, left : left + ow] + bias[:, None, None]
"""


def test_a_learner_steps_through_four_products_and_is_told_to_flip(page: Page, tmp_path: Path) -> None:
    work = tmp_path / "work"
    hand_out(LESSON, work, until="check.fft_conv2d(", fft_conv2d=NOT_FLIPPED)
    with jupyter_lab(work, tmp_path / "home") as server:
        open_lesson(page, server.page(f"/lab/tree/{LESSON}.ipynb?reset"))
        run_all(page)

        report = page.locator(".jp-OutputArea-output", has_text="one image, one channel").locator("table")
        scroll_to(page, report)
        expect(report.first).to_contain_text("the weight is not flipped")
        page.screenshot(path=ARTIFACTS / "check_fft_conv2d.png")

        moved(page, "F(2, 3), step 4", 0, "ArrowLeft", "F(2, 3), step 3")
        page.screenshot(path=ARTIFACTS / "winograd_1d.png")
