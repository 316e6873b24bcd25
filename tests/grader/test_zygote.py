"""The warm process: its forks are in the box, whole and alone, and nothing is left of them."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually, gone

from unrolled_grader.box import cgroup, sandbox, wire, zygote
from unrolled_grader.box.transport import Worker
from unrolled_grader.box.zygote import ZygoteError
from unrolled_grader.jobs import queue


def assert_works(boxed: bool) -> None:
    with Worker(boxed=boxed) as worker:
        assert worker.run_cell("1", 30) is None


def links(pid: int) -> dict[str, str]:
    return {name: os.readlink(f"/proc/{pid}/ns/{name}") for name in (*zygote.NAMESPACES, "user")}


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_a_worker_is_in_all_namespaces_of_the_box_and_in_none_of_ours() -> None:
    with Worker(boxed=True) as worker:
        assert worker._box is not None
        inside, box, outside = links(worker.pid), links(worker._box.pid), links(os.getpid())
        assert inside == box
        assert all(inside[name] != outside[name] for name in inside)


@pytest.mark.parametrize(
    ("order", "says"),
    [({"box": 2**30}, "could not enter the box"), ({"baseline": {"module": "unrolled", "name": "nosuch"}}, "nosuch")],
)
def test_what_cannot_start_is_an_error_and_the_next_one_works(order: Any, says: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, open(os.devnull, "w") as null, os.fdopen(wire.new_arena()) as arena:
        handed = [theirs.fileno(), arena.fileno(), null.fileno(), null.fileno()]
        with pytest.raises(ZygoteError, match=says):
            zygote.fork(order, handed)
    assert_works(boxed="box" in order)


def test_a_warm_process_that_died_is_replaced() -> None:
    with Worker(boxed=True):
        pass
    first = zygote._warm[0]._process
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert_works(boxed=True)
    assert zygote._warm[0]._process.pid != first.pid


def work(order: dict[str, Any]) -> dict[str, Any]:
    """Have a worker, in a process of the queue's, until as many others have one too.

    Answers whether it came from a warm process of that process's own.
    """
    with Worker(boxed=False) as worker:
        assert worker.run_cell("1", 30) is None
        meet = Path(order["meet"])
        (meet / str(os.getpid())).touch()
        eventually(lambda: len(os.listdir(meet)) == order["among"])
    return {"own": isinstance(zygote._warm[0], zygote.Zygote)}


def test_processes_share_the_warm_process_as_far_as_there_are_lines(tmp_path: Path) -> None:
    zygote.end()
    zygote.warm(spare=1)
    lines = list(zygote._warm[0].spare)  # type: ignore[attr-defined]
    with queue.run([{"meet": str(tmp_path), "among": 2}] * 2, work, 2) as answers:
        assert [line.fileno() for line in lines] == [-1], "it is the process's, and closed here"
        assert sorted(answer["own"] for _, answer in answers if isinstance(answer, dict)) == [False, True]
    assert_works(boxed=False)  # what others did with theirs does no harm to our own line


def test_who_shared_a_warm_process_that_died_gets_one_of_its_own(tmp_path: Path) -> None:
    zygote.end()
    zygote.warm(spare=1)
    zygote._warm[0]._process.kill()  # type: ignore[attr-defined]
    with queue.run([{"meet": str(tmp_path), "among": 1}], work, 1) as answers:
        assert [answer for _, answer in answers] == [{"own": True}]


def test_a_warm_process_that_still_loads_ends_at_once() -> None:
    zygote.end()
    zygote.warm(spare=0)
    process = zygote._warm[0]._process  # type: ignore[attr-defined]
    zygote.end()
    assert process.returncode == -signal.SIGKILL


def test_many_forks_leave_no_file_open_and_no_process() -> None:
    with sandbox.Box() as box:
        zygote.end()
        opened: list[int] = []
        for turn in range(10):
            ours, theirs = socket.socketpair()
            arena, null = wire.new_arena(), os.open(os.devnull, os.O_WRONLY)
            pid = zygote.fork({"box": box.pid}, [theirs.fileno(), arena, null, null])
            for descriptor in (arena, null):
                os.close(descriptor)
            theirs.close()
            ours.close()  # the worker hangs up
            warm = zygote._warm[0]._process.pid
            assert eventually(lambda pid=pid: gone(pid))
            assert eventually(lambda warm=warm: children(warm) == [])  # it has closed what it was handed, and waited
            if turn in (0, 9):
                opened.append(len(os.listdir(f"/proc/{warm}/fd")))
                opened.append(len(os.listdir("/proc/self/fd")))
        assert opened[:2] == opened[2:]


def test_workers_without_a_box_end_with_the_warm_process_and_are_let_go_of() -> None:
    with Worker(boxed=False) as first:
        assert first.run_cell("1", 30) is None
        pid = first.pid
    with Worker(boxed=False) as second:
        assert second.run_cell("1", 30) is None
        warm = zygote._warm[0]._process.pid
        assert eventually(lambda: str(pid) not in children(warm))
        os.kill(warm, signal.SIGKILL)
        assert eventually(lambda: gone(second.pid))


def test_a_worker_without_a_box_has_a_home_of_its_own() -> None:
    """What lies in /tmp may be another account's: its .ipython would do."""
    with Worker(boxed=False) as worker:
        home = str(worker._folder)
        assert worker.run_cell(f"assert get_ipython().ipython_dir == {home + '/.ipython'!r}", 30) is None
        assert worker.run_cell(f"import os; assert os.path.expanduser('~') == {home!r}", 30) is None
    assert not Path(home).exists()


def test_of_a_worker_closed_at_once_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no control group kills it, it has to be in a process group of its own from the start."""
    monkeypatch.setattr(cgroup, "new", lambda: None)
    pids, folders = [], []
    for _ in range(20):
        with Worker(boxed=False) as worker:
            pids.append(worker.pid)
            folders.append(worker._folder)
    assert all(map(gone, pids))
    assert not any(folder and folder.exists() for folder in folders)


def test_the_list_of_fonts_lies_in_the_cache_of_whoever_grades(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In /tmp, another account could put one there first."""
    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path))
    with closing(zygote.Zygote()) as warm:
        environment = Path(f"/proc/{warm._process.pid}/environ")
        where = f"MPLCONFIGDIR={tmp_path}/matplotlib"
        assert eventually(lambda: where in environment.read_text().split("\0"))


def test_only_absolute_entries_of_the_path_go_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file beside a notebook, called like a module, must not be imported outside of the box."""
    (tmp_path / "json.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", ".", *sys.path, str(tmp_path / "absolute")])
    zygote.end()
    source = f"""\
import sys
assert sys.path[0] == ""
assert [entry for entry in sys.path[1:] if not entry.startswith("/")] == []
assert {str(tmp_path / "absolute")!r} in sys.path"""
    with Worker(boxed=True) as worker:
        assert worker.run_cell(source, 30) is None
    zygote.end()


def test_a_fork_of_the_judge_leaves_its_parents_warm_process_alone() -> None:
    with Worker(boxed=False):
        pass
    pid = os.fork()
    if pid == 0:
        os._exit(0 if zygote._warm == [] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert_works(boxed=False)


def test_threads_of_the_judge_get_a_worker_each() -> None:
    source = """\
    from concurrent.futures import ThreadPoolExecutor
    from unrolled_grader.box.transport import Worker
    def judge(number):
        with Worker(boxed=False) as worker:
            printed = []
            worker.on_print = lambda name, text: printed.append(text)
            worker.run_cell(f"import os; print({number}, os.getpid())", 30)
            return "".join(printed).split() == [str(number), str(worker.pid)]
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(judge, range(16)))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(source)], check=True, timeout=600)


def test_the_warm_process_ends_with_its_judge() -> None:
    source = "import os; from unrolled_grader.box import transport, zygote; w = transport.Worker(boxed=False); "
    source += "print(w.pid, zygote._warm[0]._process.pid, flush=True); os.kill(os.getpid(), 9)"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=600)
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2
    assert eventually(lambda: all(map(gone, pids)))
