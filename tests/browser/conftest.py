"""A real Chromium for the tests in this folder."""

from collections.abc import Iterator

import pytest
from lab import ARTIFACTS
from playwright.sync_api import Browser, Page, expect

import chromium

expect.set_options(timeout=1000 * chromium.PATIENCE)


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A fresh page; a screenshot of how the test left it is kept in artifacts/browser."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    tab = browser.new_page(viewport={"width": 1280, "height": 1000})
    tab.set_default_timeout(1000 * chromium.PATIENCE)
    yield tab
    tab.screenshot(path=ARTIFACTS / f"{request.node.name}.png")
    tab.close()
