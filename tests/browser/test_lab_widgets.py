"""The first widget of lessons 03 and 05 follows its slider by keyboard; a picture of it is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import ARTIFACTS, hand_out, jupyter_lab
from playwright.sync_api import Page, expect
from test_lab import open_lesson, run_all, scroll_to


@pytest.mark.parametrize(
    ("lesson", "drawn"), [("03_pooling", "show.max_pool2d("), ("05_train_a_cnn", "show.optimizer_paths(")]
)
def test_the_first_widget_of_a_lesson_moves(page: Page, tmp_path: Path, lesson: str, drawn: str) -> None:
    work = tmp_path / "work"
    hand_out(lesson, work, until=drawn)
    with jupyter_lab(work, tmp_path / "home") as server:
        open_lesson(page, server.page(f"/lab/tree/{lesson}.ipynb?reset"))
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
