"""A lease on a part of this machine: several gradings may work there side by side, but what is timed runs alone.

The machine's cores are divided into sets; a process belongs to one of them from its first lease on, and its workers are
to stay on that set's cores. Lock files in the temporary folder hold for all gradings of one user on one machine:
`unrolled grade` with its processes, Dask workers, nbgrader, formgrader. The system gives a lock back when the process
that holds it ends, however it ends. Where there are no such locks (Windows) a lease is always granted.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

AVAILABLE = fcntl is not None
CORES = 2  # cores of a set: one for what is timed, one for the process that times it


@dataclass(frozen=True)
class Resource:
    """Where one thing can be timed at a time: a set of cores, or anything else that has a name, such as a GPU."""

    name: str
    cores: frozenset[int] = frozenset()


class Lease:
    """This process's share of the place that the fewest have chosen. Not for several threads at once, nor a fork."""

    def __init__(self, folder: Path | None = None, places: Sequence[Resource] | None = None) -> None:
        user = os.getuid() if AVAILABLE else 0
        self._folder = folder or Path(tempfile.gettempdir(), f"unrolled-timing-{user}")
        self._places = places
        self._chosen: tuple[Resource, int, int] | None = None
        self._held = False

    def take(self, *, alone: bool = False) -> None:
        """Wait for the place and hold it, beside others or `alone`; first give back what this process held before.

        Requests are served in their order: who waits to be alone holds the lock on entry, so that nobody who comes
        later is served before.
        """
        if not AVAILABLE:
            return
        _, entry, use = self._choice()
        self.release()
        fcntl.flock(entry, fcntl.LOCK_EX)
        fcntl.flock(use, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(entry, fcntl.LOCK_UN)
        self._held = True

    def release(self) -> None:
        """Give the place back."""
        if self._chosen is not None:
            fcntl.flock(self._chosen[2], fcntl.LOCK_UN)
        self._held = False

    @contextmanager
    def working(self, *, alone: bool = False) -> Iterator[None]:
        """Hold the place for the block, beside others or `alone`; if it was held before, then beside others again."""
        held = self._held
        self.take(alone=alone)
        try:
            yield
        finally:
            if held:
                self.take()
            else:
                self.release()

    def cores(self) -> frozenset[int]:
        """Return the cores to stay on; empty where the system does not let processes choose."""
        return self._choice()[0].cores if AVAILABLE else frozenset()

    def _choice(self) -> tuple[Resource, int, int]:
        """This process's place for good, with its locks on entry and on use."""
        if self._chosen is None:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            place = self._emptiest(core_sets() if self._places is None else self._places)
            self._chosen = place, self._open(f"{place.name}.entry"), self._open(f"{place.name}.use")
        return self._chosen

    def _emptiest(self, places: Sequence[Resource]) -> Resource:
        """The place that the fewest processes have. Each holds a numbered lock there until it ends."""
        if not places:
            raise ValueError("places must name at least one place, got none")
        for number in itertools.count():
            for place in places:
                file = self._open(f"{place.name}.process{number}")
                with suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return place
                os.close(file)
        raise AssertionError  # never: somebody would have to hold them all

    def _open(self, name: str) -> int:
        return os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def core_sets() -> list[Resource]:
    """Return this machine's cores in sets of `CORES`, or in as many sets as the variable UNROLLED_CORE_SETS says.

    Raises ValueError if the variable is no number from 1 to that of the cores.
    """
    if not hasattr(os, "sched_getaffinity"):
        return [Resource("machine")]
    cores = sorted(os.sched_getaffinity(0), key=lambda core: (_first_sibling(core), core))
    asked = os.environ.get("UNROLLED_CORE_SETS") or str(max(1, len(cores) // CORES))
    if not asked.isdecimal() or not 1 <= int(asked) <= len(cores):
        raise ValueError(f"UNROLLED_CORE_SETS must be a number from 1 to {len(cores)}, the cores here, got {asked!r}")
    return divided(cores, int(asked))


def divided(cores: Sequence[int], sets: int) -> list[Resource]:
    """Divide `cores` into as many `sets`: neighbours together, each core in one of them."""
    cuts = [len(cores) * number // sets for number in range(sets + 1)]
    groups = [cores[start:stop] for start, stop in itertools.pairwise(cuts)]
    return [Resource(f"cores-{min(group)}+{len(group)}", frozenset(group)) for group in groups]


def _first_sibling(core: int) -> int:
    """The first of the hardware threads on the same core: they disturb each other, so they go into one set."""
    try:
        text = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").read_text()
        return int(text.replace("-", ",").split(",")[0])
    except (OSError, ValueError):
        return core


ours = Lease()  # the lease of this process
