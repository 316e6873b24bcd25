"""The box: what code in it sees and cannot do, that it ends with whoever opened it, and what is said where it fails."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import eventually, gone

import unrolled
from unrolled_grader.box import sandbox
from unrolled_grader.box.transport import Worker

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60.0


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(boxed=True) as worker:
        yield worker


@pytest.fixture
def run(worker: Worker) -> Callable[[str], str]:
    """Runs a cell in the box, and gives what it prints."""
    printed: list[str] = []

    def run(source: str) -> str:
        worker.on_print = lambda name, text: printed.append(text)
        printed.clear()
        assert worker.run_cell(source, LIMIT) is None
        return "".join(printed)

    return run


Run = Callable[[str], str]


# What code in the box sees


def test_there_is_no_network(run: Run) -> None:
    assert run("import socket; print(*(name for _, name in socket.if_nameindex()))").split() == ["lo"]
    tried = """\
import errno, socket
for address in ("192.0.2.1", "1.1.1.1"):
    with socket.socket() as s:
        s.settimeout(5)
        print(errno.errorcode[s.connect_ex((address, 80))])
try: socket.getaddrinfo("example.org", 80)
except socket.gaierror: print("no name")"""
    assert run(tried).split() == ["ENETUNREACH", "ENETUNREACH", "no", "name"]


def test_no_socket_of_the_host_is_in_reach(run: Run) -> None:
    """Abstract sockets, such as the session bus has, belong to the network namespace."""
    import socket

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0unrolled-test-{os.getpid()}")
        listening.listen()
        source = f"import socket; print(socket.socket(socket.AF_UNIX).connect_ex('\\0unrolled-test-{os.getpid()}'))"
        assert run(source).strip() == str(111)


def test_only_processes_of_the_box_are_seen(run: Run) -> None:
    seen = run("import os; print(*sorted(int(n) for n in os.listdir('/proc') if n.isdigit()), os.getpid())").split()
    assert len(seen) <= 5
    assert max(map(int, seen)) < 100
    kill = f"import os\ntry: os.kill({os.getpid()}, 0)\nexcept ProcessLookupError: print('nobody')"
    assert run(kill).strip() == "nobody"


def test_files_of_the_host_are_out_of_sight(run: Run, tmp_path: Path) -> None:
    own = tmp_path / "of_the_judge.txt"
    own.write_text("secret")
    hidden = [own, tmp_path, ROOT / "solutions", ROOT / "tests", ROOT / "lessons", ROOT / ".git", Path.home() / ".ssh"]
    hidden += [
        Path("/etc/passwd"),
        Path("/etc/hosts"),
        Path("/sys/fs/cgroup"),
    ]
    hidden += [Path(sandbox.__file__).parent / "judge.py"]
    seen = run(f"import os; print([path for path in {list(map(str, hidden))} if os.path.exists(path)])")
    assert seen.strip() == "[]"
    assert run(f"import os; print(os.path.isdir({str(Path(unrolled.__file__).parent)!r}))").strip() == "True"


def test_the_home_is_empty(run: Run) -> None:
    assert run("import os; print(os.path.expanduser('~'), os.getcwd(), os.listdir('.'))").split() == [
        "/tmp",
        "/tmp/notebook",
        "[]",
    ]


@pytest.mark.parametrize(
    "path",
    ["/x", "/usr/x", "/dev/x", "/etc/x", "/proc/sys/kernel/core_pattern", str(Path(unrolled.__file__).parent / "x")],
)
def test_nothing_but_the_scratch_folders_can_be_written(path: str, run: Run) -> None:
    source = f"import errno\ntry: open({path!r}, 'w')\nexcept OSError as e: print(errno.errorcode[e.errno])"
    assert run(source).strip() in ("EROFS", "EACCES", "EPERM")


@pytest.mark.parametrize("path", [unrolled.__file__, "/usr/bin/env", "/bin", "/"])
def test_what_is_there_cannot_be_changed(path: str, run: Run) -> None:
    """To change a mode succeeds and does nothing, where the machine is known (seccomp); else it fails."""
    before = os.stat(path)
    run(f"import os\ntry: os.chmod({path!r}, 0o777); os.utime({path!r}, (1, 1))\nexcept OSError: pass")
    after = os.stat(path)
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    moved = run(f"import errno, os\ntry: os.rename({path!r}, '/tmp/x')\nexcept OSError as e: print(e.errno)")
    assert int(moved) in (errno.EROFS, errno.EPERM, errno.EXDEV, errno.EBUSY)


def test_the_environment_is_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNROLLED_TEST_SECRET", "token")
    printed: list[str] = []
    with Worker(boxed=True) as worker:
        worker.on_print = lambda name, text: printed.append(text)
        worker.run_cell("import os; print(open('/proc/1/environ').read(), open('/proc/self/environ').read())", LIMIT)
        worker.run_cell("print(sorted(os.environ))", LIMIT)
    assert "token" not in "".join(printed)
    assert "USER" not in "".join(printed)
    assert "MPLCONFIGDIR" in "".join(printed)


def test_nothing_is_open_but_what_is_meant(run: Run) -> None:
    source = """\
import os
for n in sorted(os.listdir("/proc/self/fd"), key=int):
    try: print(n, os.readlink(f"/proc/self/fd/{n}").split(":")[0])
    except FileNotFoundError: pass"""
    lines = [line.split(maxsplit=1) for line in run(source).splitlines()]
    assert lines[:3] == [["0", "/dev/null"], ["1", "pipe"], ["2", "pipe"]]
    kinds = [kind for _, kind in lines[3:] if not kind.startswith(("anon_inode", "/tmp"))]
    # The socket to the judge, the shared file (its descriptor and the map's own), and asyncio's own pair of sockets.
    assert kinds.count("socket") == 3
    assert [kind for kind in kinds if kind != "socket"] == ["/memfd"] * (len(kinds) - 3)
    assert len(kinds) - 3 <= 2


def test_it_has_no_rights_and_can_get_none(run: Run) -> None:
    status = dict(
        line.split(":\t", 1) for line in run("print(open('/proc/self/status').read())").splitlines() if ":\t" in line
    )
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "1"
    assert run("import os; print(os.getuid(), os.getgid(), os.uname().nodename)").split() == ["1000", "1000", "box"]
    mount = "import ctypes; print(ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None))"
    assert run(mount).strip() == "-1"


def test_it_can_make_no_namespace_of_its_own(run: Run) -> None:
    if "--disable-userns" not in sandbox._arguments():
        pytest.skip("this bubblewrap cannot forbid it")
    assert run("import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))").strip() == "-1"
    assert (
        run("import subprocess; print(subprocess.run(['unshare', '-U', 'true']).returncode != 0)").split()[-1] == "True"
    )


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_the_scratch_folders_are_limited_and_given_back(folder: str) -> None:
    source = f"""\
import errno
chunk = bytes(8 * 2**20)
try:
    for n in range(1000):
        with open(f"{folder}/{{n}}", "wb") as file: file.write(chunk)
except OSError as error: print(errno.errorcode[error.errno], n)"""
    printed: list[str] = []
    with Worker(boxed=True) as worker:
        worker.on_print = lambda name, text: printed.append(text)
        assert worker.run_cell(source, LIMIT) is None
        full = shared_memory()
    code, chunks = "".join(printed).split()
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
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and not gone(int(entry.name)):
                found.add(os.readlink(entry / "ns" / "pid"))
        except OSError:
            continue
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
def afresh() -> Iterator[None]:
    """What was found out about this system is forgotten, before and after."""
    for found in (sandbox.problem, sandbox.version, sandbox._arguments):
        found.cache_clear()
    yield
    for found in (sandbox.problem, sandbox.version, sandbox._arguments):
        found.cache_clear()


def stand_in(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is called bwrap and does this."""
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_here_it_works(afresh: None) -> None:
    assert sandbox.problem() == ""
    assert sandbox.version().startswith("bubblewrap ")


def test_a_missing_bubblewrap_is_named_with_what_installs_it(
    afresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sandbox.problem() == f"bubblewrap, which holds student code, is not installed. {sandbox.INSTALL}"
    assert "sudo apt-get install bubblewrap" in sandbox.problem()
    with pytest.raises(sandbox.SandboxError, match="could not be started"):
        sandbox.Box()


def test_another_system_is_named(afresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "runs on Linux alone" in sandbox.problem()
    assert "--unsafe-no-sandbox" in sandbox.problem()


@pytest.mark.parametrize(
    ("file", "text", "advice"),
    [
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "apparmor_restrict_unprivileged_userns=0"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sudo sysctl kernel.unprivileged_userns_clone=1"),
        ("/proc/sys/user/max_user_namespaces", "0", "sudo sysctl user.max_user_namespaces=10000"),
    ],
)
def test_what_forbids_namespaces_is_named_with_the_line_that_helps(
    file: str, text: str, advice: str, afresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, "echo 'bwrap: No permissions to create new namespace' >&2; exit 1", monkeypatch)
    monkeypatch.setattr(sandbox, "_says", lambda asked, said: (asked, said) == (file, text))
    problem = sandbox.problem()
    assert "does not work here (bwrap: No permissions to create new namespace)" in problem
    assert advice in problem
    assert "\n" not in problem


@pytest.mark.parametrize(
    ("mark", "advice"),
    [
        ("/.dockerenv", "--security-opt seccomp=unconfined"),
        ("/run/.containerenv", "--security-opt"),
        ("", "--unsafe-no"),
    ],
)
def test_a_container_is_told_apart(
    mark: str, advice: str, afresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, "exit 1", monkeypatch)
    monkeypatch.setattr(sandbox, "_says", lambda asked, said: False)
    there = Path.exists
    containers = ("/.dockerenv", "/run/.containerenv")
    monkeypatch.setattr(Path, "exists", lambda self: str(self) == mark if str(self) in containers else there(self))
    assert "bubblewrap ended at once" in sandbox.problem()
    assert advice in sandbox.problem()


def test_a_room_that_is_built_but_ends_is_no_room(
    afresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tells of its first process, and then what should keep it open does not start."""
    tells = 'while [ "$1" != --info-fd ]; do shift; done; echo \'{"child-pid": 1}\' > /dev/fd/$2'
    script = f"{tells}; echo no cat >&2; exit 1"
    stand_in(tmp_path, script, monkeypatch)
    with pytest.raises(sandbox.SandboxError, match="no cat"):
        sandbox.Box()


def test_a_file_says_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "setting").write_text("1\n")
    assert sandbox._says(str(tmp_path / "setting"), "1")
    assert not sandbox._says(str(tmp_path / "setting"), "0")
    assert not sandbox._says(str(tmp_path / "nosuch"), "1")


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
