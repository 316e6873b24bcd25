"""The warm process: it has Python, NumPy and the library loaded, and forks a worker whenever one is asked for.

A fork takes milliseconds where a start takes seconds, and judges that work side by side share one warm process. The
fork enters the box that bubblewrap built: it joins the namespaces of the box's first process, gives up every
capability, and keeps no file open but those that it was handed (setns(2), capabilities(7)). The warm process itself
never runs student code and is told nothing of a student.

`fork` is for the judge; `main` is what runs in the warm process.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from unrolled_grader.box import seccomp

if sys.platform != "win32":
    import fcntl
    import resource

NAMESPACES = ("mnt", "pid", "net", "ipc", "uts", "cgroup")
NS_GET_USERNS = 0xB701  # ioctl_ns(2): the user namespace that owns a namespace
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38  # prctl(2)
KEYCTL_JOIN_SESSION_KEYRING = 1
CAPABILITY_VERSION_3 = 0x20080522  # capset(2)
ORDER_LIMIT = 1 << 16
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/tmp",
    "UNROLLED_GRADING": "1",  # measurements for showing take one call (unrolled.timing.measure)
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    # One BLAS thread: submissions that are judged side by side share the machine, and what is timed gets one core.
    **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")},
    # Which GPU, and where CUDA's own files are.
    **{name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES", "CUDA_PATH") if name in os.environ},
}


_BEGIN = """\
import json, socket, sys
sys.path[:] = json.loads(sys.argv[2])
from unrolled_grader.box import zygote
zygote.main(*(socket.socket(fileno=number) for number in json.loads(sys.argv[1])))
"""
"""The warm process imports from where the judge does, and from nowhere else."""


class ZygoteError(RuntimeError):
    """No worker could be started: why."""


class Connection:
    """A connection to a warm process: whoever has the end of one can have workers forked."""

    def __init__(self, end: socket.socket, spare: Sequence[socket.socket] = ()) -> None:
        self._end = end
        self.spare = list(spare)  # ends of more lines to the same process, for other processes to have

    def fork(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        """Start a worker with these open files; return its process id, as this process sees it. Raises ZygoteError."""
        try:
            socket.send_fds(self._end, [_message(order)], descriptors)
            answer = json.loads(_rest(self._end, b"") or b"{}")
        except OSError as error:
            answer = {"error": str(error)}
        if "pid" not in answer:
            raise ZygoteError(f"no worker could be started: {answer.get('error', 'the warm process ended')}")
        return int(answer["pid"])

    def close(self) -> None:
        """Close the connection, and its spare ones."""
        for end in (self._end, *self.spare):
            end.close()


class Zygote(Connection):
    """A warm process of our own, with so many spare connections. It ends with this process."""

    def __init__(self, spare: int = 0) -> None:
        from unrolled.data import fetching  # not sooner: what `queue.warm` starts need not wait for NumPy

        ours, theirs = zip(*(socket.socketpair() for _ in range(1 + spare)), strict=True)
        numbers = [end.fileno() for end in theirs]
        path = [folder for folder in sys.path if os.path.isabs(folder)]
        # Matplotlib keeps its list of fonts from one start to the next, where no other account can put one.
        environment = {**ENVIRONMENT, "MPLCONFIGDIR": str(fetching.cache() / "matplotlib")}
        command = [sys.executable, "-I", "-c", _BEGIN, json.dumps(numbers), json.dumps(path)]
        nothing = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdin=nothing, stdout=nothing, pass_fds=numbers, env=environment, cwd="/"
        )
        for end in theirs:
            end.close()
        super().__init__(ours[0], ours[1:])

    def close(self) -> None:
        """End the warm process. Workers in boxes live on until their box is closed; others end with it."""
        super().close()
        self._process.kill()  # it keeps nothing, and may still be loading
        self._process.wait()


def _message(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"


def _rest(end: socket.socket, data: bytes) -> bytes:
    """A message of which `data` has arrived; empty if the other end is gone before all of it is there."""
    while not data.endswith(b"\n"):
        if not (more := end.recv(ORDER_LIMIT)):
            return b""
        data += more
    return data


_warm: list[Connection] = []
_one_at_a_time = threading.Lock()


def warm(spare: int) -> None:
    """Start a warm process that up to `spare` others can share, if there is none and can be one; do not wait for it."""
    if hasattr(os, "fork"):
        with _one_at_a_time:
            if not _warm:
                _warm.append(Zygote(spare))


def fork(order: Mapping[str, Any], descriptors: Sequence[int]) -> int:
    """Fork a worker; return its id. The warm process starts on first use, and again if it ended. Raises ZygoteError."""
    if not hasattr(os, "fork"):
        raise ZygoteError("this system cannot fork a worker: grade on Linux or macOS; on Windows, in WSL")
    with _one_at_a_time:
        if _warm:
            with contextlib.suppress(ZygoteError):
                return _warm[0].fork(order, descriptors)
            end()
        _warm.append(Zygote())
        return _warm[0].fork(order, descriptors)


def spare_line() -> socket.socket | None:
    """Return a line to the warm process, for another process to `use`; None where none is left."""
    with _one_at_a_time:
        return _warm[0].spare.pop() if _warm and _warm[0].spare else None


def use(line: socket.socket | None) -> None:
    """Let this process use another's warm one, by a spare line of that; without one it starts its own."""
    _warm[:] = [] if line is None else [Connection(line)]


@atexit.register
def end() -> None:
    """End the warm process."""
    while _warm:
        _warm.pop().close()


def _forget() -> None:
    """In a fork of the judge: the warm process is its parent's, and answers that one alone."""
    while _warm:
        Connection.close(_warm.pop())


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget)


def main(*lines: socket.socket) -> None:
    """Fork a worker for every order that arrives, until the other end of the first line is gone."""
    _load()
    open_lines = list(lines)
    while lines[0] in open_lines:
        for line in select.select(open_lines, [], [])[0]:
            order, descriptors = _received(line)
            if order:
                _fork_worker(line, order, descriptors)
            else:
                open_lines.remove(line)
                line.close()


def _received(line: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """An order, with the files that came with it; an empty one if nobody is at the other end any more."""
    try:
        data, descriptors, _, _ = socket.recv_fds(line, ORDER_LIMIT, 4)
        return json.loads((data and _rest(line, data)) or b"{}"), descriptors
    except OSError:
        return {}, []


def _fork_worker(line: socket.socket, order: dict[str, Any], descriptors: Sequence[int]) -> None:
    child = os.fork()
    if child == 0:
        _start_worker(line, order, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    if order.get("box"):
        _, status = os.waitpid(child, 0)
        if status != 0:
            with contextlib.suppress(OSError):  # nobody waits for the answer any more
                line.send(_message({"error": "it could not enter the box"}))
    with contextlib.suppress(ChildProcessError):  # workers without a box are our own children: let the ended ones go
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _load() -> None:
    """Import what notebooks import, and what shows them, so that no worker has to."""
    gc.disable()  # all of it stays
    import IPython.core.application
    import IPython.core.completerlib
    import IPython.core.magics.execution
    import IPython.core.oinspect  # noqa: F401
    import ipywidgets  # noqa: F401
    import matplotlib.pyplot as plt
    import matplotlib_inline.backend_inline  # noqa: F401
    import numpy as np
    import packaging.requirements  # noqa: F401
    import pooch  # noqa: F401
    import threadpoolctl  # noqa: F401
    from IPython.core import pylabtools

    import unrolled_grader.box.worker  # noqa: F401
    from unrolled import check, checks, data, journal, kernels, nn, ops, show, simgpu, timing  # noqa: F401

    checks.all_specs()
    data.digits()
    pylabtools.find_gui_and_backend("inline")  # reads what every package offers
    for picture in (show.convolution(np.eye(3), np.eye(2)), show.bars({"a bar": 1.0}, "s", title="bars")):
        picture._repr_mimebundle_()  # finds the fonts, and loads what draws letters and axes
    plt.close("all")
    gc.freeze()  # so that collections in the workers do not copy every page
    gc.enable()


def _start_worker(line: socket.socket, order: dict[str, Any], descriptors: Sequence[int]) -> None:
    """In the fork: walk into the box, fork once more (only a child is in the box's process namespace), and serve.

    Without a box this is the worker, and ends with the warm process.
    """
    from unrolled.simgpu import process as machine
    from unrolled_grader.box import worker  # not for the judge, who forks workers and runs nothing of theirs

    code, pid = 1, 0
    try:
        baseline = None
        if "baseline" in order:  # a function of the course: in the box, its file is out of sight
            baseline = attrgetter(order["baseline"]["name"])(importlib.import_module(order["baseline"]["module"]))
        if order.get("box"):
            enter(order["box"], gpu=order.get("gpu", False))
            pid = os.fork()
        if not pid:
            os.setsid()  # before anybody knows of it, so that all of it can be killed from then on
        if pid or not order.get("box"):
            line.send(_message({"pid": pid or os.getpid()}))
        if not pid:
            line.close()
            _settle(order, descriptors)
            if order.get("role") == "machine":
                machine.serve(socket.socket(fileno=descriptors[0]), memory_limit=order["memory"])
            else:
                worker.serve(descriptors, baseline, gpu=order.get("gpu", False))
        code = 0
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"worker: {type(error).__name__}: {error}\n".encode())
            if not order.get("box"):
                line.send(_message({"error": str(error)}))
    finally:
        os._exit(code)


def enter(pid: int, *, gpu: bool = False) -> None:
    """Join all namespaces of process `pid`, and give up every capability and many system calls. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(name: str, *arguments: Any) -> None:
        if getattr(libc, name)(*arguments) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{name}: {os.strerror(number)}")

    opened = {name: os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in NAMESPACES}
    user = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    # bubblewrap sets the room up in one user namespace, and then shuts itself into a second one inside it.
    owner = fcntl.ioctl(opened["mnt"], NS_GET_USERNS)
    same = os.fstat(owner).st_ino == os.fstat(user).st_ino
    for namespace in (owner, *opened.values(), *([] if same else [user])):
        call("setns", namespace, 0)
        os.close(namespace)
    os.chdir("/tmp")
    if (number := seccomp.number("keyctl")) is not None:  # a new one: ours may hold keys of whoever grades
        libc.syscall(number, KEYCTL_JOIN_SESSION_KEYRING, None, 0, 0, 0)
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    for capability in range(last + 1):
        call("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0)
    call("capset", ctypes.byref((ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)), ctypes.byref((ctypes.c_uint32 * 6)()))
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    seccomp.install(gpu=gpu)


def _settle(order: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    """No open file but those handed over; limits; a folder and an environment of its own."""
    kept = sorted({0, 1, 2, *descriptors})
    for low, high in zip(kept, [*kept[1:], resource.getrlimit(resource.RLIMIT_NOFILE)[0]], strict=True):
        os.closerange(low + 1, high)
    if not order.get("box") and sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # its parent is the warm process itself
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, most in order.get("limits", {}).items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            hard = resource.getrlimit(number)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(number, (most, most))
    folder = Path(order.get("folder", "/tmp/notebook"))
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    os.environ.clear()
    home = str(folder.parent)  # without a box, /tmp may hold what another account's worker left there
    os.environ.update(ENVIRONMENT, HOME=home, TMPDIR=home, MPLCONFIGDIR=f"{home}/matplotlib")
    tempfile.tempdir = None
    sys.path.insert(0, "")
