"""A learner of lesson 12 moves its widgets by keyboard, and reads that a mean of means was taken."""

from __future__ import annotations

from pathlib import Path

from lab import ARTIFACTS, hand_out, jupyter_lab
from playwright.sync_api import Page, expect
from test_lab import open_lesson, run_all, scroll_to
from test_lab_kernels import moved

from unrolled import records
from unrolled.show.words import seconds

LESSON = "12_many_devices"
MEAN_OF_MEANS = """def data_parallel_step(comm, weight, x, labels):
    own = gradient_of_mean(weight, x, labels) if len(x) else np.zeros_like(weight)
    return comm.all_reduce(own) / np.float32(comm.size)
"""


def steps_on_one_gpu() -> tuple[str, str]:
    """The recorded step of source B's network, where the slider begins, and the slider's next lower stop, in words."""
    rows = [row for row in records.parallel().rows.values() if row.get("gpus") == 1]
    recorded = next(row["ours_s"] for row in rows if row["section"] == "weak")
    stops = [float(f"{step}e{power}") for power in range(-4, 1) for step in (1, 2, 5)]
    stops += [row["ours_s"] for row in rows if "batch 8 " in row["name"]]
    return seconds(recorded), seconds(max(stop for stop in stops if stop < recorded))


def test_a_learner_goes_round_the_ring_and_down_the_pipeline(page: Page, tmp_path: Path) -> None:
    work = tmp_path / "work"
    hand_out(LESSON, work, until="show.scaling_curves", data_parallel_step=MEAN_OF_MEANS)
    with jupyter_lab(work, tmp_path / "home") as server:
        open_lesson(page, server.page(f"/lab/tree/{LESSON}.ipynb?reset"))
        run_all(page)

        report = page.locator(".jp-OutputArea-output", has_text="two ranks with 6 samples and 2").locator("table")
        scroll_to(page, report)
        expect(report.first).to_contain_text("this is the mean of the ranks' means")
        page.screenshot(path=ARTIFACTS / "check_data_parallel_step.png")

        moved(page, "An all-reduce round a ring of 4 ranks. Round 1 of 6", 0, "ArrowRight", "Round 2 of 6")
        page.screenshot(path=ARTIFACTS / "ring_allreduce.png")

        moved(page, "GPipe: bubble 27.3 %", 2, "ArrowRight", "4 stages, 9 micro-batches: 24 slots")
        page.screenshot(path=ARTIFACTS / "pipeline_gpipe.png")
        moved(page, "1F1B: bubble 27.3 %", 1, "ArrowRight", "5 stages, 8 micro-batches: 24 slots")
        page.screenshot(path=ARTIFACTS / "pipeline_1f1b.png")

        recorded, below = steps_on_one_gpu()
        moved(page, f"Step of {recorded}", 0, "ArrowLeft", f"Step of {below} on one rank, gradient of 50.3 MB")
        moved(page, f"Step of {below} on one rank", 1, "ArrowLeft", "gradient of 50 MB, alpha 3.4 µs")
        moved(page, "gradient of 50 MB, alpha 3.4", 2, "ArrowRight", "alpha 5 µs, 450 GB/s a link")
        moved(page, "alpha 5 µs, 450 GB/s a link", 3, "ArrowRight", "alpha 5 µs, 200 GB/s a link")
        page.screenshot(path=ARTIFACTS / "scaling_curves.png")
