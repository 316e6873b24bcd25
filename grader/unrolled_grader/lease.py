"""A lease on this machine's cores: several gradings may work side by side, but what is timed runs alone.

Two lock files in the temporary folder hold for all gradings of one user on one machine: `unrolled grade` with its
workers, nbgrader, formgrader. Where the system has no such locks (Windows) a lease is always granted.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

AVAILABLE = fcntl is not None


class Lease:
    """This process's share of the machine. Not for use by several threads at once."""

    def __init__(self, folder: Path | None = None) -> None:
        user = os.getuid() if AVAILABLE else 0
        self._folder = folder or Path(tempfile.gettempdir(), f"unrolled-timing-{user}")
        self._files: tuple[int, int] | None = None
        self._held = False

    def take(self, *, alone: bool = False) -> None:
        """Wait for a turn: beside others, or `alone`. What this process held before, it gives back first.

        Who waits to be alone stands at the gate, so that nobody who comes later is served before.
        """
        if not AVAILABLE:
            return
        gate, turn = self._open()
        self.release()
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(turn, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        self._held = True

    def release(self) -> None:
        """Give the turn back."""
        if self._files is not None:
            fcntl.flock(self._files[1], fcntl.LOCK_UN)
        self._held = False

    @contextmanager
    def working(self) -> Iterator[None]:
        """A turn beside others for the block; what was held before is held again after it."""
        held = self._held
        self.take()
        try:
            yield
        finally:
            if held:
                self.take()
            else:
                self.release()

    def _open(self) -> tuple[int, int]:
        """The lock files, opened on first use."""
        if self._files is None:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            gate, turn = (
                os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) for name in ("gate", "turn")
            )
            self._files = gate, turn
        return self._files


lease = Lease()
"""The lease of this process."""
