"""The warm process: it has Python, NumPy and the library loaded, and forks a worker whenever one is asked for.

A fork takes milliseconds where a start takes seconds. The fork walks into the box that bubblewrap built: it joins the
namespaces of the box's first process, gives up every capability, and keeps no file open but those that it was handed
(setns(2), capabilities(7)). The warm process itself never runs student code and is told nothing of a student.

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
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unrolled.simgpu import process as machine
from unrolled_grader import worker

if sys.platform != "win32":
    import fcntl
    import resource

NAMESPACES = ("mnt", "pid", "net", "ipc", "uts", "cgroup")
NS_GET_USERNS = 0xB701  # ioctl_ns(2): the user namespace that owns a namespace
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38  # prctl(2)
KEYCTL = {"x86_64": 250, "aarch64": 219}  # keyctl(2) by its number: the C library has no name for it
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
from unrolled_grader import zygote
zygote.main(socket.socket(fileno=int(sys.argv[1])))
"""
"""The warm process imports from where the judge does, and from nowhere else."""


class ZygoteError(RuntimeError):
    """No worker could be started: why."""


class Zygote:
    """The warm process, seen from the judge."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = [folder for folder in sys.path if os.path.isabs(folder)]
        cache = tempfile.gettempdir()  # where Matplotlib keeps its list of fonts from one start to the next
        environment = {**ENVIRONMENT, "MPLCONFIGDIR": str(Path(cache, f"unrolled-fonts-{os.getuid()}"))}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _BEGIN, str(theirs.fileno()), json.dumps(path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=environment,
                cwd="/",
            )
        self._control = ours

    def fork(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        """Start a worker with these open files; its process id, as this process sees it. Raises ZygoteError."""
        try:
            socket.send_fds(self._control, [json.dumps(order).encode()], descriptors)
            answer = json.loads(self._control.recv(ORDER_LIMIT) or b"{}")
        except OSError as error:
            answer = {"error": str(error)}
        if "pid" not in answer:
            raise ZygoteError(f"no worker could be started: {answer.get('error', 'the warm process ended')}")
        return int(answer["pid"])

    def close(self) -> None:
        """End the warm process. Workers in boxes live on until their box is closed; others end with it."""
        self.forget()
        self._process.wait()

    def forget(self) -> None:
        """Leave the warm process to whoever else holds its other end."""
        self._control.close()


_warm: list[Zygote] = []
_one_at_a_time = threading.Lock()


def fork(order: Mapping[str, Any], descriptors: Sequence[int]) -> int:
    """Start a worker from this process's warm one, which is started on first use, and once again if it ended."""
    if not hasattr(os, "fork"):
        raise ZygoteError("this system cannot fork a worker: grade on Linux or macOS; on Windows, in WSL")
    with _one_at_a_time:
        if _warm:
            with contextlib.suppress(ZygoteError):
                return _warm[0].fork(order, descriptors)
            end()
        _warm.append(Zygote())
        return _warm[0].fork(order, descriptors)


@atexit.register
def end() -> None:
    """End the warm process."""
    while _warm:
        _warm.pop().close()


def _forget() -> None:
    """In a fork of the judge: the warm process is its parent's, and answers that one alone."""
    while _warm:
        _warm.pop().forget()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget)


def main(control: socket.socket) -> None:
    """Fork a worker for every order that arrives, until the other end is gone."""
    _load()
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, ORDER_LIMIT, 4)
        if not data:
            return
        order = json.loads(data)
        child = os.fork()
        if child == 0:
            _start_worker(control, order, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        if order.get("box"):
            _, status = os.waitpid(child, 0)
            if status != 0:
                control.send(json.dumps({"error": "it could not enter the box"}).encode())
        _reap()


def _reap() -> None:
    """Let go of workers without a box, which are this process's own children, once they have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _load() -> None:
    """Import what notebooks import, so that no worker has to."""
    import ipywidgets  # noqa: F401
    import matplotlib.pyplot as plt
    import matplotlib_inline.backend_inline  # noqa: F401
    import numpy as np
    import threadpoolctl  # noqa: F401

    from unrolled import check, checks, data, journal, kernels, nn, ops, show, simgpu, timing  # noqa: F401

    checks.all_specs()
    data.digits()
    show.convolution(np.eye(3), np.eye(2))._repr_mimebundle_()  # finds the fonts, and loads what draws letters
    plt.close("all")
    gc.collect()
    gc.freeze()  # so that collections in the workers do not copy every page


def _start_worker(control: socket.socket, order: dict[str, Any], descriptors: Sequence[int]) -> None:
    """In the fork: walk into the box, fork once more (only a child is in the box's process namespace), and serve.

    Without a box this is the worker, and ends with the warm process.
    """
    code, pid = 1, 0
    try:
        baseline = _imported(order["baseline"]) if "baseline" in order else None
        if order.get("box"):
            enter(order["box"])
            pid = os.fork()
        if pid or not order.get("box"):
            control.send(json.dumps({"pid": pid or os.getpid()}).encode())
        if not pid:
            control.close()
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
                control.send(json.dumps({"error": str(error)}).encode())
    finally:
        os._exit(code)


def _imported(order: Mapping[str, str]) -> Any:
    """The baseline, a function of the course: imported before the box is entered, where its file is out of sight."""
    found: Any = importlib.import_module(order["module"])
    for name in order["name"].split("."):
        found = getattr(found, name)
    return found


def enter(pid: int) -> None:
    """Join all namespaces of process `pid`, and give up every capability. Raises OSError."""
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
    if (number := KEYCTL.get(platform.machine())) is not None:  # a new one: ours may hold keys of whoever grades
        libc.syscall(number, KEYCTL_JOIN_SESSION_KEYRING, None, 0, 0, 0)
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    for capability in range(last + 1):
        call("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0)
    call("capset", ctypes.byref((ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)), ctypes.byref((ctypes.c_uint32 * 6)()))
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _settle(order: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    """No open file but those handed over; limits; a folder; a session of its own, so that all of it can be killed."""
    kept = sorted({0, 1, 2, *descriptors})
    for low, high in zip(kept, [*kept[1:], resource.getrlimit(resource.RLIMIT_NOFILE)[0]], strict=True):
        os.closerange(low + 1, high)
    os.setsid()
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
    os.environ.update(ENVIRONMENT, MPLCONFIGDIR=str(folder.parent / "matplotlib"), TMPDIR=str(folder.parent))
    tempfile.tempdir = None
    sys.path.insert(0, "")
