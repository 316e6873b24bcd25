"""What is timed runs alone; everything else may run side by side."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from unrolled_grader.lease import AVAILABLE, Lease

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="this system has no file locks")
SHORT = 0.2  # seconds: long enough for a thread to get as far as it can


class Taker(threading.Thread):
    """Takes a lease of its own, as another process would, and says when it has it."""

    def __init__(self, folder: Path, *, alone: bool) -> None:
        super().__init__(daemon=True)
        self.lease, self.alone, self.has_it = Lease(folder), alone, threading.Event()
        self.start()

    def run(self) -> None:
        self.lease.take(alone=self.alone)
        self.has_it.set()


def test_several_work_side_by_side(tmp_path: Path) -> None:
    first, second = Lease(tmp_path / "lease"), Taker(tmp_path / "lease", alone=False)
    first.take()
    assert second.has_it.wait(5)


def test_alone_waits_for_all_and_nobody_overtakes(tmp_path: Path) -> None:
    first = Lease(tmp_path / "lease")
    first.take()
    timed = Taker(tmp_path / "lease", alone=True)
    assert not timed.has_it.wait(SHORT)
    late = Taker(tmp_path / "lease", alone=False)
    assert not late.has_it.wait(SHORT)  # though the lease it wants is compatible with the first
    first.release()
    assert timed.has_it.wait(5)
    assert not late.has_it.wait(SHORT)
    timed.lease.release()
    assert late.has_it.wait(5)


def test_what_was_held_is_held_again(tmp_path: Path) -> None:
    lease = Lease(tmp_path / "lease")
    with lease.working():
        lease.take(alone=True)
        with lease.working():
            pass
        timed = Taker(tmp_path / "lease", alone=True)
        assert not timed.has_it.wait(SHORT)
    assert timed.has_it.wait(5)
