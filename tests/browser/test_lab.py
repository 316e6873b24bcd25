"""Learners in JupyterLab: all cells run, widgets follow the keyboard, reports say what is wrong."""

import json
import re
import time
from collections.abc import Iterator

import pytest
from lab import ARTIFACTS, Server, hand_out, jupyter_lab
from playwright.sync_api import Locator, Page, expect
from ways import WAYS, Move, Way

from chromium import PATIENCE

ALL_RUN = r"""() => {
    const status = document.querySelector(".jp-Notebook-ExecutionIndicator").textContent;
    if (/Executed \d+ cells/.test(status)) return true;
    // A run of less than a second is not reported there. Running all moves to the last cell, so it is rendered.
    const prompts = [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")].map(one => one.textContent.trim());
    return status.includes("Idle") && !prompts.includes("[*]:") && /^\[\d+\]:$/.test(prompts.at(-1) ?? "");
}"""
PAGE_DOWN = """window => {
    const end = window.scrollTop + window.clientHeight >= window.scrollHeight - 1;
    window.scrollTo(0, end ? 0 : window.scrollTop + 700);
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """JupyterLab over a folder for each lesson."""
    folder = tmp_path_factory.mktemp("work")
    with jupyter_lab(folder, tmp_path_factory.mktemp("home")) as running:
        yield running


def run_all(page: Page, server: Server, lesson: str) -> None:
    """Open a lesson; Run > Run All Cells, as a learner would, and wait until the kernel rests."""
    page.goto(server.page(f"/lab/tree/{lesson}/{lesson}.ipynb?reset"))
    expect(page.locator(".jp-Notebook")).to_be_visible()
    expect(page.locator("#jp-main-statusbar")).to_contain_text("| Idle")  # the kernel is connected
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(ALL_RUN, timeout=3 * 1000 * PATIENCE)


def scroll_to(page: Page, target: Locator) -> None:
    """JupyterLab renders what is near the window only: page down, again from the top, until the target is there.

    A page may be rendered only after it was scrolled past, so the first way down need not find it.
    """
    window = page.locator(".jp-WindowedPanel-outer").first
    window.evaluate("window => window.scrollTo(0, 0)")
    deadline = time.monotonic() + PATIENCE
    while not target.first.is_visible():
        assert time.monotonic() < deadline, f"{target} does not appear in the notebook"
        window.evaluate(PAGE_DOWN)
        page.wait_for_timeout(150)
    target.first.scroll_into_view_if_needed()


def see(page: Page, target: Locator, picture: str) -> None:
    """Scroll to an output and keep a picture of it."""
    scroll_to(page, target)
    page.screenshot(path=ARTIFACTS / f"{picture}.png")


def make(page: Page, move: Move, picture: str) -> None:
    """Press keys on a slider, no mouse is needed anywhere, and wait until another picture is there."""
    says = f"[alt*='{move.before}'], img[alt*='{move.after}']" if move.before else ""
    widget = page.locator(".jp-OutputArea-output", has=page.locator(".noUi-handle")).filter(
        has=page.locator(f"img{says}")
    )
    scroll_to(page, widget)
    image = widget.first.locator("img")
    before = image.get_attribute("src")
    widget.first.locator(".noUi-handle").nth(move.slider).focus()
    for key in move.keys:
        page.keyboard.press(key)
    expect(image).not_to_have_attribute("src", before or "")
    expect(image).to_have_attribute("alt", re.compile(re.escape(move.after) or "."))
    page.screenshot(path=ARTIFACTS / f"{picture}.png")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.lesson)
def test_a_learner_moves_the_widgets_and_reads_what_is_wrong(page: Page, server: Server, way: Way) -> None:
    hand_out("notebooks", way.lesson, server.folder, way.until, way.answer)
    run_all(page, server, way.lesson)
    found, says = way.report
    if found:
        report = page.locator(".jp-OutputArea-output", has_text=found).locator("table")
        see(page, report, f"{way.lesson}_report")
        expect(report.first).to_contain_text(says)
    for number, output in enumerate(way.shows):
        see(page, page.locator(f".jp-OutputArea-output {output}"), f"{way.lesson}_shown_{number}")
    for number, move in enumerate(way.moves):
        make(page, move, f"{way.lesson}_moved_{number}")
    server.end_kernels()


def test_a_complete_lesson_passes_and_is_kept_in_the_journal(page: Page, server: Server) -> None:
    lesson = "02_convolution"
    hand_out("solutions", lesson, server.folder, "check.conv2d_gemm(")
    run_all(page, server, lesson)
    report = page.locator(".jp-OutputArea-output", has_text="conv2d_gemm").locator("table")
    see(page, report, f"{lesson}_report")
    expect(report.first).to_contain_text("pass")
    make(page, Move("", 0, ("ArrowRight",), ""), f"{lesson}_moved")
    server.end_kernels()
    journal = json.loads((server.folder / lesson / "journal.json").read_text())
    assert journal["checks"]["conv2d_gemm"]["passed"]
