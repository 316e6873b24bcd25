"""A hostile notebook's feedback in a real browser: no script runs, nothing is loaded, nothing covers the page.

Once as it is, and once without its Content-Security-Policy, so that each of the two walls is seen to hold alone.
"""

import sys
from pathlib import Path

import pytest
from lab import ARTIFACTS, ROOT
from nbconvert.exporters import HTMLExporter
from nbgrader.server_extensions.formgrader import handlers
from playwright.sync_api import Page

from unrolled_grader.authoring import notebooks
from unrolled_grader.results import feedback
from unrolled_grader.results.inert import POLICY

sys.path.append(str(ROOT / "tests" / "grader"))
import hostile

SCRIPTED = (
    f"<!DOCTYPE html><html><head><meta charset=utf-8>{POLICY}</head><body><script>{hostile.DEED}</script>"
    f"<img src=x onerror='{hostile.DEED}'><img src='{hostile.AWAY}/a.png'></body></html>"
)


def open_file(page: Page, file: Path, text: str) -> tuple[list[str], list[str]]:
    """Open the text as a page from a file; what it asked for, beside itself and its data, and what went wrong."""
    asked: list[str] = []
    messages: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    file.write_text(text, encoding="utf-8")
    page.goto(file.as_uri())
    page.wait_for_timeout(500)  # for what would set itself off later
    return [url for url in asked if url != file.as_uri() and not url.startswith("data:")], messages


@pytest.mark.parametrize("policy", [POLICY, ""], ids=["with_policy", "without"])
def test_a_hostile_notebook_does_nothing(page: Page, tmp_path: Path, policy: str) -> None:
    text = feedback.page(hostile.notebook(), hostile.GRADES)
    assert POLICY in text
    asked, messages = open_file(page, tmp_path / "feedback.html", text.replace(POLICY, policy))
    assert (asked, messages) == ([], [])
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


def formgraders_page() -> str:
    """The hostile submission as formgrader shows it for manual grading, with the course's configuration."""
    config = notebooks.nbgrader_config(ROOT)
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    nb = hostile.notebook()
    nb.metadata.pop("widgets")  # the autograded notebook has no such metadata
    names = ("assignment_id", "notebook_id", "submission_id", "base_url", "student", "first_name", "last_name")
    resources = {**dict.fromkeys(names, "x"), "notebook_path": "x", "index": 0, "total": 1}
    page: str = HTMLExporter(config=config).from_notebook_node(nb, resources=resources)[0]
    return page.encode("utf-8", "replace").decode()


def test_a_hostile_notebook_does_nothing_in_formgrader(page: Page, tmp_path: Path) -> None:
    """There the instructor's own session could be used. The page's own scripts cannot load here; none of ours must."""
    asked, _ = open_file(page, tmp_path / "formgrade.html", formgraders_page())
    assert page.evaluate("window.attacked") is None
    assert page.url.startswith("file:")
    assert [url for url in asked if hostile.AWAY.removeprefix("http:") in url] == []
    assert page.locator("#notebook").locator("iframe, object, embed, form, style, link, base, svg").count() == 0
    assert page.locator(".judge, #cell-0").count() == 0  # no class or id that the page's own styles would follow
    assert page.locator("td", has_text="conv1").count() == 1  # the honest table is there


def test_the_policy_alone_stops_scripts_and_loads(page: Page, tmp_path: Path) -> None:
    """Or the test above could not tell what stopped them."""
    _, messages = open_file(page, tmp_path / "scripted.html", SCRIPTED)
    assert page.evaluate("window.attacked") is None
    assert any("Content Security Policy" in text for text in messages)
    open_file(page, tmp_path / "scripted.html", SCRIPTED.replace(POLICY, ""))
    assert page.evaluate("window.attacked") == 1


def test_a_lessons_feedback_reads_well(page: Page, tmp_path: Path) -> None:
    """On a narrow page, too: nothing is wider than the window."""
    page.set_viewport_size({"width": 390, "height": 844})
    open_file(page, tmp_path / "feedback.html", feedback.page(hostile.notebook(), hostile.GRADES))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    widest = page.locator("img").evaluate_all("images => Math.max(...images.map(image => image.naturalWidth))")
    assert widest == 60  # pictures are decoded and stand there
