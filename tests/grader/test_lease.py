"""What is timed runs alone; everything else may run side by side."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from waiting import eventually

from unrolled_grader.box import lease as lease_module
from unrolled_grader.box.lease import Lease, Resource, core_sets, divided

fcntl = pytest.importorskip("fcntl", reason="this system has no file locks")
SHORT = 0.2  # seconds: long enough for a thread to get as far as it can
PLACES = [Resource("cores-0+2", frozenset({0, 1})), Resource("cores-2+2", frozenset({2, 3}))]


@pytest.fixture(autouse=True)
def _one_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNROLLED_CORE_SETS", "1")


class Taker(threading.Thread):
    """Takes a lease of its own, as another process would, and says when it has it."""

    def __init__(self, folder: Path, *, alone: bool, places: list[Resource] | None = None) -> None:
        super().__init__(daemon=True)
        self.folder, self.lease = folder, Lease(folder, places)
        self.alone, self.has_it = alone, threading.Event()
        self.start()

    def run(self) -> None:
        self.lease.take(alone=self.alone)
        self.has_it.set()

    def stands_in_line(self) -> bool:
        """Whether it has the lock on entry, and waits for the place."""
        (entry,) = self.folder.glob("*.entry")
        return not is_free(entry)


def is_free(lock: Path) -> bool:
    """Whether nobody holds this lock."""
    with lock.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_several_work_side_by_side(tmp_path: Path) -> None:
    first, second = Lease(tmp_path / "lease"), Taker(tmp_path / "lease", alone=False)
    first.take()
    assert second.has_it.wait(60)


def test_alone_waits_for_all_and_nobody_overtakes(tmp_path: Path) -> None:
    first = Lease(tmp_path / "lease")
    first.take()
    timed = Taker(tmp_path / "lease", alone=True)
    assert eventually(timed.stands_in_line)
    assert not timed.has_it.is_set()
    late = Taker(tmp_path / "lease", alone=False)
    assert not late.has_it.wait(SHORT)  # though the lease it wants is compatible with the first
    first.release()
    assert timed.has_it.wait(60)
    assert not late.has_it.wait(SHORT)
    timed.lease.release()
    assert late.has_it.wait(60)


def test_what_was_held_is_held_again(tmp_path: Path) -> None:
    lease = Lease(tmp_path / "lease")
    with lease.working():
        lease.take(alone=True)
        with lease.working():
            pass
        timed = Taker(tmp_path / "lease", alone=True)
        assert not timed.has_it.wait(SHORT)
    assert timed.has_it.wait(60)


def test_each_process_goes_where_the_fewest_are_and_stays(tmp_path: Path) -> None:
    leases = [Lease(tmp_path / "lease", PLACES) for _ in range(4)]
    assert [sorted(one.cores()) for one in leases] == [[0, 1], [2, 3], [0, 1], [2, 3]]
    leases[0].take(alone=True)
    leases[0].release()
    assert leases[0].cores() == {0, 1}


def test_what_is_timed_in_one_set_does_not_wait_for_another(tmp_path: Path) -> None:
    first, second, third = (Lease(tmp_path / "lease", PLACES) for _ in range(3))
    for one in (first, second):
        one.take(alone=True)  # would hang if it were the same set
    assert third.cores() == first.cores()


def test_a_lease_on_something_else_is_one_by_name(tmp_path: Path) -> None:
    lease, gpu = Lease(tmp_path / "lease", PLACES[:1]), Lease(tmp_path / "lease", [Resource("gpu-0")])
    lease.take(alone=True)
    gpu.take(alone=True)
    assert gpu.cores() == frozenset()
    with pytest.raises(ValueError, match="places"):
        Lease(tmp_path / "lease", []).take()


def test_a_killed_process_gives_back_its_place(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "lease")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        beside = Lease(tmp_path / "lease", PLACES)
        assert beside.cores() == {2, 3}
        waiting = Taker(tmp_path / "lease", alone=False, places=PLACES)  # in the first set, where the holder is
        assert eventually((tmp_path / "lease" / "cores-0+2.process1").exists)
        assert not waiting.has_it.wait(SHORT)
        holder.send_signal(signal.SIGKILL)
        assert waiting.has_it.wait(60)  # though its child still runs: until nobody holds the other end of stdin
        assert eventually(lambda: is_free(tmp_path / "lease" / "cores-0+2.process0"))  # locks come back one by one
        assert Lease(tmp_path / "lease", PLACES).cores() == {0, 1}


HOLDER = """
import pathlib, subprocess, sys, time
from unrolled_grader.box.lease import Lease, Resource
sets = [Resource("cores-0+2", frozenset({0, 1})), Resource("cores-2+2", frozenset({2, 3}))]
lease = Lease(pathlib.Path(sys.argv[1]), sets)
lease.take(alone=True)
subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdout=subprocess.DEVNULL)  # must not hold it
print("held", flush=True)
time.sleep(3600)
"""


def test_cores_are_divided_without_rest() -> None:
    assert [sorted(place.cores) for place in divided([0, 4, 1, 5, 2], 2)] == [[0, 4], [1, 2, 5]]
    assert len({place.name for place in divided(range(64), 32)}) == 32


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not let processes choose cores")
def test_sets_are_of_two_cores_unless_a_variable_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 8, 9})
    monkeypatch.setattr(lease_module, "_first_sibling", lambda core: core % 8)  # 8 shares a core with 0, 9 with 1
    assert [sorted(place.cores) for place in core_sets()] == [[0, 1, 2, 3, 8, 9]]
    monkeypatch.delenv("UNROLLED_CORE_SETS")
    assert [sorted(place.cores) for place in core_sets()] == [[0, 8], [1, 9], [2, 3]]
    for wrong in ("0", "7", "two"):
        monkeypatch.setenv("UNROLLED_CORE_SETS", wrong)
        with pytest.raises(ValueError, match=r"UNROLLED_CORE_SETS must be a number from 1 to 6.*" + wrong):
            core_sets()
