"""Control groups: what all processes of a box may use together, and the CPU time that they used.

Where this process may make groups (as root, or in a scope delegated by systemd), a group counts the CPU time of every
process that was ever in it, can be frozen and killed as a whole, and limits memory and the number of processes. Where
it may not, `new` gives None, and the limits of each single process (setrlimit) are what is left.

Linux has two versions side by side; see cgroups(7). Version 2 counts, freezes and kills. Memory and processes are
limited by version 2 where it has these controllers, else by version 1.
"""

from __future__ import annotations

import functools
import itertools
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

OWN, MOUNTS = "/proc/self/cgroup", "/proc/self/mounts"
_numbers = itertools.count()
_sweeping = threading.Lock()
PATIENCE = 5.0  # seconds that a killed group may take to empty


class Group:
    """One box's control group: a folder of version 2, and folders of version 1 for what version 2 does not control."""

    def __init__(self, unified: Path, others: Mapping[str, Path]) -> None:
        self._unified, self._others = unified, others
        self.limits_memory = "memory" in others or (unified / "memory.max").exists()
        self.limits_processes = "pids" in others or (unified / "pids.max").exists()

    def __str__(self) -> str:
        return f"cgroup (cpu time{', memory' * self.limits_memory}{', pids' * self.limits_processes})"

    def limit(self, memory: int, processes: int) -> None:
        """Limit memory to so many bytes, without swap, and the number of processes and threads, if controllers can."""
        if self.limits_memory:
            self._write("memory", "memory.max", "memory.limit_in_bytes", memory)
            with suppress(OSError):  # no swap on this system
                self._write("memory", "memory.swap.max", "memory.memsw.limit_in_bytes", 0, memory)
        if self.limits_processes:
            self._write("pids", "pids.max", "pids.max", processes)

    def add(self, pid: int) -> None:
        """Put a process into the group. What it starts from now on is in the group, too."""
        for folder in {self._unified, *self._others.values()}:
            (folder / "cgroup.procs").write_text(str(pid))

    def cpu_seconds(self) -> float:
        """Return the CPU time, in seconds, of all processes that are or were in the group."""
        return int((self._unified / "cpu.stat").read_text().split()[1]) / 1e6

    def freeze(self, frozen: bool) -> None:
        """Freeze all processes of the group, or let them go on."""
        (self._unified / "cgroup.freeze").write_text(str(int(frozen)))

    def close(self) -> None:
        """Kill what is left in the group, and remove the group."""
        with suppress(OSError):
            (self._unified / "cgroup.kill").write_text("1")
        deadline = time.monotonic() + PATIENCE
        for folder in {self._unified, *self._others.values()}:
            while folder.exists() and time.monotonic() < deadline:
                try:
                    folder.rmdir()
                except OSError:
                    time.sleep(0.002)

    def _write(self, controller: str, new: str, old: str, value: int, old_value: int | None = None) -> None:
        if controller in self._others:
            (self._others[controller] / old).write_text(str(value if old_value is None else old_value))
        else:
            (self._unified / new).write_text(str(value))


def new() -> Group | None:
    """Make a group below this process's own and return it; None where this process may not make one."""
    homes = _here()
    unified = _made(homes.get(""))
    if unified is None:
        return None
    controlled = (unified / "cgroup.controllers").read_text().split()
    others = {name: _made(homes.get(name)) for name in ("memory", "pids") if name not in controlled}
    return Group(unified, {name: folder for name, folder in others.items() if folder})


def _made(home: Path | None) -> Path | None:
    if home is None:
        return None
    with _sweeping:  # else one thread would remove what another has just made
        _sweep(home)
    folder = home / f"unrolled-{os.getpid()}-{next(_numbers)}"
    try:
        folder.mkdir()
    except OSError:
        return None
    if os.access(folder / "cgroup.procs", os.W_OK):
        return folder
    folder.rmdir()
    return None


@functools.cache
def _sweep(home: Path) -> None:
    """Remove the empty groups of judges that were killed, so that a judge with the number of one can make its own."""
    for left in home.glob("unrolled-*-*"):
        pid = left.name.split("-")[1]
        if pid == str(os.getpid()) or not Path("/proc", pid).exists():
            with suppress(OSError):
                left.rmdir()


def _here() -> dict[str, Path]:
    """Where this process stands, by controller. In a container that may be out of sight: then the topmost in sight."""
    homes = _homes(read(OWN), read(MOUNTS))
    return {name: folder if folder.is_dir() else top for name, top, folder in homes}


def read(file: str) -> str:
    """Return a file's text; an empty one where the system has no such file."""
    try:
        return Path(file).read_text()
    except OSError:
        return ""


def _homes(own: str, mounts: str) -> Iterator[tuple[str, Path, Path]]:
    """By controller, "" being version 2: where its hierarchy is mounted, and where this process stands in it."""
    mounted = [line.split() for line in mounts.splitlines()]
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        names = controllers.split(",") if controllers else [""]
        for _, where, kind, options, *_ in mounted:
            if kind == ("cgroup" if controllers else "cgroup2") and set(names) & {"", *options.split(",")}:
                top = Path(where)
                for name in names:
                    # A path that begins with `..` lies outside of what this process may see.
                    yield name, top, top if path.startswith("/..") else top / path.lstrip("/")
