"""Control groups: where they are found, and what they do where this machine lets them be made."""

import itertools
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import eventually

from unrolled_grader.box import cgroup, process
from unrolled_grader.box.transport import Worker, WorkerDiedError

V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n"
V1 = "".join(
    f"cgroup /sys/fs/cgroup/{names} cgroup rw,nosuid,{names} 0 0\n" for names in ("memory", "pids", "cpu,cpuacct")
)
NAMED = "cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,name=systemd 0 0\n"
HYBRID = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
OTHER = "proc /proc proc rw 0 0\ntmpfs /sys/fs/cgroup tmpfs ro,mode=755 0 0\n"
SCOPE = "/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope"


@pytest.mark.parametrize(
    ("own", "mounts", "homes"),
    [
        ("0::/\n", OTHER + V2, {"": "/sys/fs/cgroup"}),
        (f"0::{SCOPE}\n", V2, {"": f"/sys/fs/cgroup{SCOPE}"}),
        ("0::/../../outside\n", V2, {"": "/sys/fs/cgroup"}),
        ("0::/gone (deleted)\n", V2, {"": "/sys/fs/cgroup/gone (deleted)"}),
        (
            "4:memory:/docker/abc\n3:pids:/docker/abc\n2:cpu,cpuacct:/docker/abc\n1:name=systemd:/init\n",
            OTHER + V1 + NAMED,
            {
                "memory": "/sys/fs/cgroup/memory/docker/abc",
                "pids": "/sys/fs/cgroup/pids/docker/abc",
                "cpu": "/sys/fs/cgroup/cpu,cpuacct/docker/abc",
                "cpuacct": "/sys/fs/cgroup/cpu,cpuacct/docker/abc",
                "name=systemd": "/sys/fs/cgroup/systemd/init",
            },
        ),
        (
            "2:memory:/a:b\n0::/x\n",
            V1 + HYBRID,
            {"memory": "/sys/fs/cgroup/memory/a:b", "": "/sys/fs/cgroup/unified/x"},
        ),
    ],
)
def test_where_a_process_stands_is_read_from_two_texts(own: str, mounts: str, homes: dict[str, str]) -> None:
    assert {name: str(home) for name, _, home in cgroup._homes(own, mounts)} == homes


def test_where_its_own_folder_is_not_in_sight_the_topmost_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        cgroup, "read", {cgroup.OWN: "0::/docker/abc\n", cgroup.MOUNTS: f"x {tmp_path} cgroup2 rw 0 0\n"}.get
    )
    assert cgroup._here() == {"": tmp_path}
    (tmp_path / "docker" / "abc").mkdir(parents=True)
    assert cgroup._here() == {"": tmp_path / "docker" / "abc"}


@pytest.mark.parametrize("home", [None, "/nosuch", "/proc", "plain"])
def test_where_no_group_can_be_made_there_is_none(
    home: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain folder has no `cgroup.procs`: nothing that could be written to, and nothing is left behind in it."""
    where = tmp_path if home == "plain" else Path(home or "")
    monkeypatch.setattr(cgroup, "_here", lambda: {} if home is None else {"": where})
    assert cgroup.new() is None
    assert list(tmp_path.iterdir()) == []
    with Worker(boxed=True) as worker:
        assert not worker.counts_cpu
        assert worker.run_cell("import time\nwhile time.process_time() < 0.5: pass", 30) is None
        assert worker.cpu_seconds() > 0.4  # of the worker alone
        with worker.frozen(), worker.thawed():
            assert worker.run_cell("1", 30) is None
        assert worker.run_cell("x = bytearray(4 * 2**30)", 30) == ("MemoryError", "", "")


# From here on with real groups

probe = cgroup.new()
if probe is not None:
    probe.close()
real = pytest.mark.skipif(probe is None, reason="no control groups can be made here")
limited = pytest.mark.skipif(probe is None or not probe.limits_memory, reason="no memory controller here")


@pytest.fixture
def group() -> Iterator[cgroup.Group]:
    group = cgroup.new()
    assert group is not None
    yield group
    group.close()


def folders(group: cgroup.Group) -> set[Path]:
    return {group._unified, *group._others.values()}


def running(group: cgroup.Group, source: str) -> subprocess.Popen[str]:
    """A Python process in the group that waits for a line before it runs this."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"input()\n{source}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    group.add(process.pid)
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return process


BURN = """
import os, signal, time
def burn():
    while time.process_time() < 0.5: pass
"""


@real
@pytest.mark.parametrize(
    "how",
    [
        "burn()",
        "import threading; t = threading.Thread(target=burn); t.start(); t.join()",
        "pid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: burn(); os._exit(0)",
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nr, w = os.pipe()\nif os.fork() == 0: burn(); os._exit(0)\n"
        "os.close(w); os.read(r, 1)",
        "r, w = os.pipe()\nif os.fork() == 0: os.fork() or burn(); os._exit(0)\nos.close(w); os.read(r, 1)",
        "r, w = os.pipe()\nif os.fork() == 0: burn(); os._exit(0)\nos.close(w); os.read(r, 1)",
    ],
    ids=["itself", "thread", "child", "ignored child", "double fork", "child that nobody waits for"],
)
def test_cpu_time_of_whoever_was_in_the_group_is_counted(how: str, group: cgroup.Group) -> None:
    process = running(group, BURN + how)
    process.communicate()
    assert process.returncode == 0
    assert 0.4 < group.cpu_seconds() < 5


@real
def test_a_frozen_group_stands_still_and_goes_on(group: cgroup.Group) -> None:
    process = running(group, "while True: pass")
    assert eventually(lambda: group.cpu_seconds() > 0.1)
    group.freeze(True)
    assert eventually(lambda: "frozen 1" in (group._unified / "cgroup.events").read_text())
    before = group.cpu_seconds()
    time.sleep(0.3)
    assert group.cpu_seconds() == pytest.approx(before, abs=0.01)
    group.freeze(False)
    assert eventually(lambda: group.cpu_seconds() > before + 0.1)
    process.kill()
    process.communicate()


@real
@pytest.mark.parametrize("frozen", [False, True])
def test_closing_kills_all_and_leaves_no_folder(frozen: bool) -> None:
    group = cgroup.new()
    assert group is not None
    there = folders(group)
    assert all(folder.is_dir() for folder in there)
    process = running(group, "import os\nos.fork()\nos.setsid()\nwhile True: pass")
    assert eventually(lambda: len((group._unified / "cgroup.procs").read_text().split()) == 2)
    group.freeze(frozen)
    group.close()
    assert process.wait(20) == -9
    process.communicate()
    assert not any(folder.exists() for folder in there)
    group.close()


@real
def test_a_worker_is_in_its_group_and_its_children_too() -> None:
    with Worker(boxed=True) as worker:
        assert worker.group is not None
        there = folders(worker.group)
        assert worker.run_cell("import subprocess; p = subprocess.Popen(['sleep', '60'])", 30) is None
        for folder in there:  # the two that keep the box open are in it, too: student code can take them over
            assert len((folder / "cgroup.procs").read_text().split()) == 4
            assert str(worker.pid) in (folder / "cgroup.procs").read_text().split()
        assert str(worker.group).startswith("cgroup (cpu time")
    assert not any(folder.exists() for folder in there)


FILL = "for n in range(60):\n    for folder in ('/tmp', '/dev/shm'): open(f'{folder}/{n}', 'wb').write(bytes(2**22))"


@limited
@pytest.mark.parametrize("source", ["x = bytearray(b'x') * (600 * 2**20)", FILL], ids=["memory", "files in /tmp"])
def test_memory_of_all_processes_and_what_lies_in_tmp_is_limited(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MEMORY", 300 * 2**20)
    with Worker(boxed=True) as worker:
        assert worker.run_cell("x = bytearray(b'x') * (100 * 2**20); del x", 30) is None
        with pytest.raises(WorkerDiedError):
            worker.run_cell(source, 30)


@pytest.mark.skipif(probe is None or not probe.limits_processes, reason="no pids controller here")
def test_the_number_of_processes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "PROCESSES", 20)
    source = "import os, time\nfor n in range(40):\n    if os.fork() == 0: time.sleep(60); os._exit(0)"
    with Worker(boxed=True) as worker:
        assert (worker.run_cell(source, 30) or ("",))[0] == "BlockingIOError"


@real
def test_what_a_killed_judge_left_is_removed_by_the_next() -> None:
    source = "from unrolled_grader.box import cgroup; import os; g = cgroup.new(); print(g._unified, flush=True); {}"
    killed = [sys.executable, "-c", source.format("os.kill(os.getpid(), 9)")]
    left = Path(subprocess.run(killed, capture_output=True, text=True, check=False).stdout.strip())
    assert left.is_dir()
    subprocess.run([sys.executable, "-c", source.format("g.close()")], stdout=subprocess.DEVNULL, check=True)
    assert not left.exists()


@real
def test_a_group_is_made_where_another_process_with_our_number_left_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of processes come again, soon in a container."""
    first = cgroup.new()
    assert first is not None
    cgroup._sweep.cache_clear()  # as in a new process
    monkeypatch.setattr(cgroup, "_numbers", itertools.count(int(first._unified.name.split("-")[2])))
    second = cgroup.new()
    assert second is not None
    second.close()
