"""Fixtures that several modules of the library's tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from drawn import Drawn

from unrolled import journal, simgpu
from unrolled.simgpu.machine import LocalMachine


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """What pictures put on their sheets during a test."""
    return Drawn(monkeypatch)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the learner's, the current one, with a journal of its own."""
    monkeypatch.setenv("UNROLLED_JOURNAL", str(tmp_path / "journal.json"))
    monkeypatch.setattr(journal.file, "_chosen", None)
    monkeypatch.setattr(journal.file, "_memory", None)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def t4() -> Iterator[None]:
    """A simulated T4 of its own for each test, and the one before afterwards."""
    simgpu.connect(LocalMachine("T4"))
    yield
    simgpu.disconnect()
