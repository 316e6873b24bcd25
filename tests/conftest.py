from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The browser last: Playwright leaves its event loop running in this thread, where no other loop can then run."""
    items.sort(key=lambda item: "browser" in item.path.parts)
