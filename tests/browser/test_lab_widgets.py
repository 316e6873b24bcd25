"""The first widget of lessons 03 and 05 follows its slider by keyboard; a picture of it is kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import ARTIFACTS, Server, hand_out, jupyter_lab
from playwright.sync_api import Page, expect
from test_lab import open_lesson, run_all, scroll_to

FIRST = {"03_pooling": "show.max_pool2d(", "05_train_a_cnn": "show.optimizer_paths("}
"""What draws the first widget, by lesson."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """JupyterLab over a folder for each of the lessons."""
    folder = tmp_path_factory.mktemp("work")
    for lesson, drawn in FIRST.items():
        hand_out(lesson, folder / lesson, until=drawn)
    with jupyter_lab(folder, tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.mark.parametrize("lesson", FIRST)
def test_the_first_widget_of_a_lesson_moves(page: Page, server: Server, lesson: str) -> None:
    open_lesson(page, server.page(f"/lab/tree/{lesson}/{lesson}.ipynb?reset"))
    run_all(page)
    widget = page.locator(".jp-OutputArea-output", has=page.locator(".noUi-handle"))
    scroll_to(page, widget)
    picture = widget.first.locator("img")
    before, said = picture.get_attribute("src"), picture.get_attribute("alt")
    widget.first.locator(".noUi-handle").first.focus()
    page.keyboard.press("ArrowRight")
    expect(picture).not_to_have_attribute("src", before or "")
    expect(picture).not_to_have_attribute("alt", said or "")
    page.screenshot(path=ARTIFACTS / f"widget_{lesson[:2]}.png")
