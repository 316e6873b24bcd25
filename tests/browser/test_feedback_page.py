"""A hostile notebook's feedback in a real browser: no script runs, nothing is loaded, nothing covers the page.

Once as it is, and once without its Content-Security-Policy, so that each of the two walls is seen to hold alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from lab import ARTIFACTS, ROOT
from playwright.sync_api import Page

from unrolled_grader import feedback
from unrolled_grader.inert import POLICY

sys.path.append(str(ROOT / "tests" / "grader"))
import hostile

SCRIPTED = (
    f"<!DOCTYPE html><html><head><meta charset=utf-8>{POLICY}</head><body><script>{hostile.DEED}</script>"
    f"<img src=x onerror='{hostile.DEED}'><img src='{hostile.AWAY}/a.png'></body></html>"
)


def open_file(page: Page, file: Path, text: str) -> tuple[list[str], list[str]]:
    """Open the text as a page from a file; what it asked for, beside itself and its data, and what went wrong."""
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    file.write_text(text, encoding="utf-8")
    page.goto(file.as_uri())
    page.wait_for_timeout(500)  # for what would set itself off later
    return [url for url in asked if url != file.as_uri() and not url.startswith("data:")], said


@pytest.mark.parametrize("policy", [POLICY, ""], ids=["with_policy", "without"])
def test_a_hostile_notebook_does_nothing(page: Page, tmp_path: Path, policy: str) -> None:
    text = feedback.page(hostile.notebook(), hostile.GRADES)
    assert POLICY in text
    asked, said = open_file(page, tmp_path / "feedback.html", text.replace(POLICY, policy))
    assert (asked, said) == ([], [])
    assert page.evaluate("window.attacked") is None
    assert page.url.startswith("file:")
    for link in page.locator("main a[href]").all():
        assert (link.get_attribute("href") or "").startswith(("http://", "https://"))
    names = page.evaluate("[...new Set([...document.querySelectorAll('body *')].map(element => element.localName))]")
    assert set(names).isdisjoint({"script", "iframe", "object", "embed", "form", "input", "style", "link", "svg"})
    places = page.evaluate("[...document.querySelectorAll('body *')].map(e => getComputedStyle(e).position)")
    assert set(places) == {"static"}
    assert page.locator(".judge").count() == 1
    assert page.locator(".judge h3").is_visible()
    page.screenshot(path=ARTIFACTS / "feedback_hostile.png", full_page=True)


def test_the_policy_alone_stops_scripts_and_loads(page: Page, tmp_path: Path) -> None:
    """Or the test above could not tell what stopped them."""
    _, said = open_file(page, tmp_path / "scripted.html", SCRIPTED)
    assert page.evaluate("window.attacked") is None
    assert any("Content Security Policy" in text for text in said)
    open_file(page, tmp_path / "scripted.html", SCRIPTED.replace(POLICY, ""))
    assert page.evaluate("window.attacked") == 1


def test_a_lessons_feedback_reads_well(page: Page, tmp_path: Path) -> None:
    """On a narrow page, too: nothing is wider than the window."""
    page.set_viewport_size({"width": 390, "height": 844})
    open_file(page, tmp_path / "feedback.html", feedback.page(hostile.notebook(), hostile.GRADES))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    widest = page.locator("img").evaluate_all("images => Math.max(...images.map(image => image.naturalWidth))")
    assert widest == 60  # pictures are decoded and stand there
