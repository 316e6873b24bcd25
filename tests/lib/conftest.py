"""Fixtures that several modules of the library's tests share."""

from __future__ import annotations

import pytest
from drawn import Drawn


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """What pictures put on their sheets during a test."""
    return Drawn(monkeypatch)
