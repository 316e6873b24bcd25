"""The record in a browser: one A4 page, nothing loaded from elsewhere, no fault in it."""

import datetime
import re
from pathlib import Path

from lab import ARTIFACTS, ROOT
from playwright.sync_api import Page

from unrolled import checks
from unrolled.cli import plan, record

DAY = "2026-10-21T12:00:00+00:00"
WORKS = (
    "convolution forward only, x 60,000 images",
    "convolution backward only, x 60,000 images",
    "an epoch of training",
)


def everything() -> str:
    """The record of somebody who passed every exercise, each with a measurement, and climbed the ladder."""
    names = list(checks.all_specs())
    done = {"passed": True, "ever_passed": True, "points": 1, "max_points": 1, "date": DAY}
    rungs = [(f"a way with a long name, number {n}", what, 10.0**n) for what in WORKS for n in (-1, 3)]
    kept = {
        "checks": dict.fromkeys(names, done),
        "measurements": {name: {"times": 1234.5, "date": DAY} for name in names},
        "predictions": {},
        "rungs": {
            f"{what} {label}": {"label": label, "what": what, "seconds": seconds, "hardware": "a processor"}
            for label, what, seconds in rungs
        },
    }
    lessons = plan.read(checks.lessons(), [ROOT / "notebooks"])
    return record.page(lessons, kept, "Augusta Ada King, Countess of Lovelace", datetime.date(2026, 11, 21))


def test_the_record_prints_on_one_page_and_asks_for_nothing(page: Page, tmp_path: Path) -> None:
    messages: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    file = tmp_path / "record.html"
    file.write_text(everything(), encoding="utf-8")
    page.goto(file.as_uri())
    assert asked == [file.as_uri()]
    assert messages == []
    printed = page.pdf(path=ARTIFACTS / "record.pdf", prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    page.set_viewport_size({"width": 390, "height": 800})
    assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth"), "readable on a phone"
