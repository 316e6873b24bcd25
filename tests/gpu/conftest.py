"""Everything in this folder runs on a real GPU: `pytest -m gpu`. Elsewhere it is skipped, and says why."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from unrolled import device

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "lib"))  # the cases of the tests that run everywhere


@cache
def why_not() -> str | None:
    """Why there is no GPU here; None if there is one."""
    reason: str | None = device.describe()["why"]
    return reason


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            if why_not():
                item.add_marker(pytest.mark.skip(reason=f"no GPU: {why_not()}"))
