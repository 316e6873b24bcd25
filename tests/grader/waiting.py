"""Waiting for what other processes and threads do, no longer than it takes."""

import time
from collections.abc import Callable
from pathlib import Path


def eventually(true: Callable[[], bool], within: float = 60) -> bool:
    """Whether it comes true within so many seconds."""
    deadline = time.monotonic() + within
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return true()


def gone(pid: int) -> bool:
    """Whether the process has ended; one that nobody has waited for yet has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True
