"""A learner of lesson 08 moves its three widgets by keyboard, and reads which thread went out of bounds, and where."""

from __future__ import annotations

import re
from pathlib import Path

from lab import ARTIFACTS, hand_out, jupyter_lab
from playwright.sync_api import Locator, Page, expect
from test_lab import open_lesson, run_all, scroll_to

LESSON = "08_kernels"
WITHOUT_A_GUARD = """@jit.rawkernel()
def add_kernel(x, y, out, n):
    i = jit.grid(1)
    out[i] = x[i] + y[i]
"""


def test_a_learner_watches_a_warp_and_is_told_of_a_missing_guard(page: Page, tmp_path: Path) -> None:
    work = tmp_path / "work"
    hand_out(LESSON, work, until="show.barriers()", add_kernel=WITHOUT_A_GUARD)
    with jupyter_lab(work, tmp_path / "home") as server:
        open_lesson(page, server.page(f"/lab/tree/{LESSON}.ipynb?reset"))
        run_all(page)

        hardware = page.locator(".jp-OutputArea-output img[alt*='warps of 32 threads share a memory of 32 banks']")
        scroll_to(page, hardware)
        page.screenshot(path=ARTIFACTS / "kernels_hardware.png")

        report = page.locator(".jp-OutputArea-output", has_text="the last block has threads to spare").locator("table")
        scroll_to(page, report)
        expect(report.first).to_contain_text("out of bounds")
        page.screenshot(path=ARTIFACTS / "check_add_kernel.png")

        moved(page, "Thread i reads x[2 * i]", 1, "ArrowRight", "Warp 1, threads 32 to 63, reads at byte 256")
        page.screenshot(path=ARTIFACTS / "kernels_warps.png")
        moved(page, "a column of 32 × 32 from", 0, "ArrowRight", "A warp wants a column of 32 × 33")
        page.screenshot(path=ARTIFACTS / "kernels_banks.png")
        moved(page, "8 threads add up 8 values", 0, "ArrowLeft", "Step 2: thread 1 goes on without waiting")
        page.screenshot(path=ARTIFACTS / "kernels_barriers.png")


def moved(page: Page, said: str, slider: int, key: str, says: str) -> Locator:
    """Press a key on a slider of the widget whose picture `said` this, and wait until it `says` that."""
    widget = page.locator(".jp-OutputArea-output", has=page.locator(".noUi-handle")).filter(
        has=page.locator(f"img[alt*='{said}'], img[alt*='{says}']")
    )
    scroll_to(page, widget)
    widget.first.locator(".noUi-handle").nth(slider).focus()
    page.keyboard.press(key)
    expect(widget.first.locator("img")).to_have_attribute("alt", re.compile(re.escape(says)))
    return widget
