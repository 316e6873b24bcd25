"""A real Chromium for the tests in this folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from lab import ARTIFACTS
from playwright.sync_api import Browser, Page, expect, sync_playwright

expect.set_options(timeout=60_000)  # a busy machine is slow, not wrong

QUIET = (
    "--no-sandbox",  # tests may run as root in a container, where Chromium's own sandbox cannot
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The machine's Chromium; where it has none, the one that `playwright install chromium` fetched."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=list(QUIET))
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A fresh page; a screenshot of how the test left it is kept in artifacts/browser."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    tab = browser.new_page(viewport={"width": 1280, "height": 1000})
    tab.set_default_timeout(60_000)
    yield tab
    tab.screenshot(path=ARTIFACTS / f"{request.node.name}.png")
    tab.close()
