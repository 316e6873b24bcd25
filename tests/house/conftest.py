import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from throwaway import ROOT, make_course


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A throwaway course of one lesson."""
    return make_course(tmp_path / "course")


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """A function that gives a file of benchmarks/ as a module."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module
