"""The box: what code in it sees and cannot do, that it ends with whoever opened it, and what is said where it fails."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from stage import printed_in
from waiting import eventually, gone

from unrolled_grader.box import sandbox
from unrolled_grader.box.transport import Worker

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60.0


# What code in the box sees


def test_the_home_is_empty() -> None:
    source = "import os; print(os.path.expanduser('~'), os.getcwd(), os.listdir('.'))"
    with Worker(boxed=True) as worker:
        assert printed_in(worker, source).split() == ["/tmp", "/tmp/notebook", "[]"]


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_the_scratch_folders_are_limited_and_given_back(folder: str) -> None:
    source = f"""\
import errno
chunk = bytes(8 * 2**20)
try:
    for n in range(1000):
        with open(f"{folder}/{{n}}", "wb") as file: file.write(chunk)
except OSError as error: print(errno.errorcode[error.errno], n)"""
    with Worker(boxed=True) as worker:
        code, chunks = printed_in(worker, source).split()
        full = shared_memory()
    assert code == "ENOSPC"
    assert int(chunks) * 8 * 2**20 <= sandbox.SCRATCH
    assert eventually(lambda: full - shared_memory() > 100_000)  # others, beside this test, may use more or less of it


def shared_memory() -> int:
    """KiB of tmpfs and the like on this machine."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Shmem:"))


def test_the_box_says_nothing_of_a_student(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with sandbox.Box() as box:
        line = Path(f"/proc/{box.pid}/cmdline").read_bytes().decode()
    assert str(tmp_path) not in line


# How it ends


def test_closing_a_box_ends_all_that_runs_in_it() -> None:
    with Worker(boxed=True) as worker:
        worker.run_cell("import os\nif os.fork() == 0:\n    os.setsid()\n    while True: pass", LIMIT)
        assert worker._box is not None
        inside = [worker.pid, worker._box.pid]
        space = os.readlink(f"/proc/{worker.pid}/ns/pid")
        kept = os.open(f"/proc/{worker.pid}/ns/pid", os.O_RDONLY)  # or a new box, beside this test, gets its number
    assert eventually(lambda: all(map(gone, inside)))
    assert eventually(lambda: space not in spaces())
    os.close(kept)


def spaces() -> set[str]:
    """The process namespaces that anybody is in."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found |= set() if gone(int(process.name)) else {os.readlink(process / "ns" / "pid")}
    return found


def test_the_box_ends_with_whoever_opened_it_however_that_ends() -> None:
    source = """\
from unrolled_grader.box.transport import Worker
worker = Worker(boxed=True)
worker.on_print = lambda name, text: print(worker.pid, worker._box.pid, flush=True)
worker.run_cell("print('busy', flush=True)\\nwhile True: pass", 600)"""
    judge = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert judge.stdout is not None
    pids = [int(word) for word in judge.stdout.readline().split()]
    assert len(pids) == 2
    assert not any(map(gone, pids))
    os.kill(judge.pid, signal.SIGKILL)
    judge.communicate()
    assert eventually(lambda: all(map(gone, pids)))


# What is said where it does not work


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """A function that puts a script in the place of bwrap. What was found out about this system is forgotten."""

    def put(script: str) -> None:
        program = tmp_path / "bwrap"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def forget() -> None:
        for found in (sandbox.problem, sandbox.version, sandbox._arguments):
            found.cache_clear()

    forget()
    yield put
    forget()


@pytest.mark.usefixtures("stand_in")
def test_here_it_works() -> None:
    assert sandbox.problem() == ""
    assert sandbox.version().startswith("bubblewrap ")


@pytest.mark.usefixtures("stand_in")
def test_a_missing_bubblewrap_is_named_with_what_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sandbox.problem() == f"bubblewrap, which holds student code, is not installed. {sandbox.INSTALL}"
    assert "sudo apt-get install bubblewrap" in sandbox.problem()
    with pytest.raises(sandbox.SandboxError, match="could not be started"):
        sandbox.Box()


@pytest.mark.usefixtures("stand_in")
def test_another_system_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "runs on Linux alone" in sandbox.problem()
    assert "--unsafe-no-sandbox" in sandbox.problem()


CONTAINERS = ("/.dockerenv", "/run/.containerenv")
REFUSED, ENDED = "(bwrap: No permissions to create new namespace)", "bubblewrap ended at once"


@pytest.mark.parametrize(
    ("sign", "reason", "advice"),
    [
        (
            ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
            REFUSED,
            "apparmor_restrict_unprivileged_userns=0",
        ),
        (("/proc/sys/kernel/unprivileged_userns_clone", "0"), REFUSED, "sysctl kernel.unprivileged_userns_clone=1"),
        (("/proc/sys/user/max_user_namespaces", "0"), REFUSED, "sudo sysctl user.max_user_namespaces=10000"),
        (CONTAINERS[0], ENDED, "--security-opt seccomp=unconfined"),
        (CONTAINERS[1], ENDED, "--security-opt"),
        ("", ENDED, "--unsafe-no"),
    ],
)
def test_where_it_does_not_work_the_reason_is_named_with_the_line_that_helps(
    sign: object, reason: str, advice: str, stand_in: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the kernel's with this text in it forbids namespaces; another file marks a container."""
    stand_in(f"echo '{REFUSED.strip('()')}' >&2; exit 1" if reason == REFUSED else "exit 1")
    monkeypatch.setattr(sandbox, "_says", lambda *asked: asked == sign)
    there = Path.exists
    monkeypatch.setattr(Path, "exists", lambda self: str(self) == sign if str(self) in CONTAINERS else there(self))
    problem = sandbox.problem()
    assert reason in problem
    assert advice in problem
    assert "\n" not in problem


def test_a_room_that_is_built_but_ends_is_no_room(stand_in: Callable[[str], None]) -> None:
    """It tells of its first process, and then what should keep it open does not start."""
    tells = 'while [ "$1" != --info-fd ]; do shift; done; echo \'{"child-pid": 1}\' > /dev/fd/$2'
    stand_in(f"{tells}; echo no cat >&2; exit 1")
    with pytest.raises(sandbox.SandboxError, match="no cat"):
        sandbox.Box()


@pytest.mark.parametrize(("value", "allowed"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_the_environment_may_allow_code_without_a_box(
    value: str | None, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(sandbox.VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(sandbox.VARIABLE, value)
    assert sandbox.allowed_without() is allowed


def test_an_interpreter_behind_a_link_comes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with Pythons of uv, whose folder `cpython-3.12` is a link to `cpython-3.12.5`."""
    (tmp_path / "real" / "lib").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setattr(sandbox, "SETTINGS", ())
    monkeypatch.setattr(sandbox, "_python", lambda: iter([str(tmp_path / "link"), str(tmp_path / "link" / "lib")]))
    found = list(sandbox._readable())
    assert found[-2:] == [tmp_path / "link", tmp_path / "real"]
    assert len(found) == len(set(found))
