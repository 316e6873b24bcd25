"""A learner of lesson 12 goes round the ring by keyboard, and reads that a mean of means was taken."""

from __future__ import annotations

from pathlib import Path

from lab import ARTIFACTS, hand_out, jupyter_lab
from playwright.sync_api import Page, expect
from test_lab import open_lesson, run_all, scroll_to
from test_lab_kernels import moved

LESSON = "12_many_devices"
MEAN_OF_MEANS = """def data_parallel_step(comm, weight, x, labels):
    own = gradient_of_mean(weight, x, labels) if len(x) else np.zeros_like(weight)
    return comm.all_reduce(own) / np.float32(comm.size)
"""


def test_a_learner_goes_round_the_ring(page: Page, tmp_path: Path) -> None:
    work = tmp_path / "work"
    hand_out(LESSON, work, until="show.ring_allreduce", data_parallel_step=MEAN_OF_MEANS)
    with jupyter_lab(work, tmp_path / "home") as server:
        open_lesson(page, server.page(f"/lab/tree/{LESSON}.ipynb?reset"))
        run_all(page)

        report = page.locator(".jp-OutputArea-output", has_text="two ranks with 6 samples and 2").locator("table")
        scroll_to(page, report)
        expect(report.first).to_contain_text("this is the mean of the ranks' means")
        page.screenshot(path=ARTIFACTS / "check_data_parallel_step.png")

        moved(page, "An all-reduce round a ring of 4 ranks. Round 3 of 6", 0, "ArrowRight", "Round 4 of 6")
        page.screenshot(path=ARTIFACTS / "ring_allreduce.png")
