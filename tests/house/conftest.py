from __future__ import annotations

from pathlib import Path

import pytest
from throwaway import make_course


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A throwaway course of one lesson."""
    return make_course(tmp_path / "course")
