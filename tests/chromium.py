"""A real Chromium, for the tests of the site and of JupyterLab."""

import contextlib
import shutil
from collections.abc import Iterator

from playwright.sync_api import Browser, sync_playwright

PATIENCE = 180
"""Seconds that a browser or a server may take for one thing. A busy machine is slow, not wrong."""

OPTIONS = (
    "--no-sandbox",  # tests may run as root in a container, where Chromium's own sandbox cannot
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # a slow network must not hold up a page
)


@contextlib.contextmanager
def launched() -> Iterator[Browser]:
    """The machine's Chromium; where it has none, the one that `playwright install chromium` fetched."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=list(OPTIONS), timeout=1000 * PATIENCE)
        yield chromium
        chromium.close()
