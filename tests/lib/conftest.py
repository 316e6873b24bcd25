"""Fixtures that several modules of the library's tests share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mpi_ranks
import numpy as np
import pytest
from drawn import Drawn

from unrolled import journal, simgpu
from unrolled.parallel import mpi_start
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


@pytest.fixture(params=[np, simgpu], ids=["host", "simgpu"])
def module(request: pytest.FixtureRequest) -> Any:
    """Where a compiled program runs. On a real GPU, tests/gpu has fixtures of its own for this and the next."""
    return request.param


@pytest.fixture
def gpu() -> Any:
    return simgpu


@pytest.fixture
def _no_rank_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No process of a rank over MPI outlives the test."""
    monkeypatch.setenv(*mpi_ranks.MARK)
    monkeypatch.setattr(mpi_start, "ABORT_SECONDS", 0.2)  # that nobody needs to wait for the end of what is frozen
    yield
    assert mpi_ranks.ranks_of_ours() == []
