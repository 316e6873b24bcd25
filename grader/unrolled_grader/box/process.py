"""The process of a worker, on the judge's side: how it is started in a box, held, counted and ended."""

from __future__ import annotations

import os
import select
import selectors
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled_grader.box import cgroup, sandbox, wire, zygote

if TYPE_CHECKING:
    from typing_extensions import Self

MEMORY = 3 * 2**30  # bytes that all processes of a box may use together
PROCESSES = 256
CPU_SECONDS = 1200
START_LIMIT = 30.0  # seconds that a worker may take for what is no student's code
DEATH_LIMIT = 5.0  # seconds that a killed worker may take to end
Baseline = Callable[..., Any] | None


class Process:
    """One process in a box of its own, with a socket, a shared file and its standard streams."""

    def __init__(self, *, boxed: bool, baseline: Baseline = None, gpu: bool = False, memory: int | None = None) -> None:
        """Start a worker, which with `gpu` may reach a real GPU; or a simulated one with so many bytes of `memory`."""
        self._gpu = gpu
        self._box = sandbox.Box(gpu=gpu) if boxed else None
        self.boxed = boxed
        self.dead = ""  # why it was given up; empty while it works
        self.overran = False  # whether it was given up because its time was over
        self.group = cgroup.new()
        self.counts_cpu = self.group is not None
        """Whether the CPU time of all processes in the box is counted, and finely."""
        self._handle: int | None = None
        self._folder = None if boxed else Path(tempfile.mkdtemp(prefix=f"unrolled-worker-{os.getpid()}-"))
        self.arena = wire.new_arena()
        self.selector = selectors.DefaultSelector()
        try:
            self._start(baseline, {"role": "machine" if memory else "worker", "gpu": gpu, "memory": memory})
        except BaseException:
            self.close()
            raise

    def _start(self, baseline: Baseline, order: dict[str, Any]) -> None:
        ours, theirs = socket.socketpair()
        self.socket = ours
        ours.settimeout(START_LIMIT)
        self.selector.register(ours, selectors.EVENT_READ, "channel")
        ends = [theirs.detach(), os.dup(self.arena)]
        for name in ("stdout", "stderr"):
            read, write = os.pipe()
            os.set_blocking(read, False)
            self.selector.register(read, selectors.EVENT_READ, name)
            ends.append(write)
        order["limits"] = self._limits()
        if self._box is not None:
            order["box"] = self._box.pid
        if self._folder is not None:
            order["folder"] = str(self._folder / "notebook")
        if baseline is not None:
            order["baseline"] = {"module": baseline.__module__, "name": baseline.__qualname__}
        if self.group is not None:
            self.group.limit(MEMORY, PROCESSES)
            for pid in self._box.pids() if self._box is not None else ():
                self.group.add(pid)  # student code can take these over
        try:
            self.pid = zygote.fork(order, ends)
        finally:
            for end in ends:
                os.close(end)
        if hasattr(os, "pidfd_open"):
            self._handle = os.pidfd_open(self.pid)
        if self.group is not None:
            self.group.add(self.pid)

    def _limits(self) -> dict[str, int]:
        """What setrlimit holds, for each process: all of it where there is no group, or none that limits."""
        limits = {"CORE": 0, "NOFILE": 512, "FSIZE": sandbox.SCRATCH, "CPU": CPU_SECONDS}
        # CUDA reserves addresses for more memory than any limit would leave it.
        if not self._gpu and (self.group is None or not self.group.limits_memory):
            limits["AS"] = MEMORY
        if self.group is None or not self.group.limits_processes:
            limits["NPROC"] = PROCESSES
        return limits

    def close(self) -> None:
        """Kill whatever runs in the box, and release everything that was opened for it. A second call does nothing."""
        if self.selector.get_map() is None:
            return
        self.kill()
        if self.group is not None:
            self.group.close()
        for key in list(self.selector.get_map().values()):
            self.selector.unregister(key.fileobj)
            if isinstance(key.fileobj, int):
                os.close(key.fileobj)
            else:
                key.fileobj.close()  # type: ignore[attr-defined]
        self.selector.close()
        os.close(self.arena)
        if self._handle is not None:
            poll = select.poll()  # until it has ended, it may still write to its folder
            poll.register(self._handle, select.POLLIN)
            poll.poll(DEATH_LIMIT * 1000)
            os.close(self._handle)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def give_up(self, why: str, *, overran: bool = False) -> None:
        """Kill whatever runs in the box, and note why."""
        self.dead, self.overran = why, overran
        self.kill()

    def kill(self) -> None:
        """Kill whatever runs in the box."""
        if self._box is not None:
            self._box.close()
        elif hasattr(self, "pid"):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def cpu_seconds(self) -> float:
        """Return the CPU time, in seconds, of all processes that are or were in the box."""
        # Where no group counts it: of the worker, and in steps of 10 ms of the children that it has waited for.
        return _cpu_seconds(self.pid) if self.group is None else self.group.cpu_seconds()

    @contextmanager
    def frozen(self, still: bool = True) -> Iterator[None]:
        """Freeze everything in the box during the block, but for blocks of `thawed`; without a group, the worker."""
        self._freeze(still)
        try:
            yield
        finally:
            self._freeze(not still)

    def thawed(self) -> AbstractContextManager[None]:
        """Let the box go on during the block, and freeze it again after it."""
        return self.frozen(False)

    def _freeze(self, frozen: bool) -> None:
        if self.group is not None:
            self.group.freeze(frozen)
        else:
            self.send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)

    def send_signal(self, number: int) -> None:
        """Send a signal to the worker if it is still there; with a pidfd, never to a later process with its number."""
        with suppress(ProcessLookupError):
            if self._handle is None:
                os.kill(self.pid, number)
            else:
                signal.pidfd_send_signal(self._handle, number)

    def pin(self, cores: frozenset[int]) -> None:
        """Let the worker run on these cores alone, unless it chooses others itself."""
        if cores and hasattr(os, "sched_setaffinity"):
            with suppress(OSError):
                for thread in os.listdir(f"/proc/{self.pid}/task"):
                    os.sched_setaffinity(int(thread), cores)


def _cpu_seconds(pid: int) -> float:
    """CPU time of a process with all its threads, and of its children that ended; 0 where the system does not tell.

    The kernel's clock of another process counts nanoseconds (clock_getcpuclockid(3) makes its number so); its children
    stand in proc_pid_stat(5).
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        own = time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0.0
    return own + sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")
