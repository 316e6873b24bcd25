"""Every order is answered exactly once, whatever happens to the processes that work on them."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterable, Iterator
from multiprocessing import context
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually, gone

from unrolled_grader.box import sandbox
from unrolled_grader.jobs import queue

HERE = Path(__file__).parent


def double(order: dict[str, Any]) -> dict[str, Any]:
    return {"twice": 2 * order["number"], "pid": os.getpid()}


def refuse(order: dict[str, Any]) -> dict[str, Any]:
    raise StubbornError(order["number"], "no")


def boxed(order: dict[str, Any]) -> dict[str, Any]:
    """Do what cannot be done on a worker of this name."""
    from distributed import get_worker

    if get_worker().name == "unboxed":
        raise sandbox.SandboxError("bubblewrap is not installed")
    return double(order)


class StubbornError(Exception):
    """Can be pickled, but not loaded again."""

    def __init__(self, number: int, word: str) -> None:
        super().__init__(f"{word} {number}")


def mark(order: dict[str, Any]) -> dict[str, Any]:
    """Leave a file for each time this order is begun; then do what the order says."""
    folder = Path(order["folder"])
    times = len(list(folder.glob(f"{order['number']}-*")))
    try:
        (folder / f"{order['number']}-{times}").write_text(str(os.getpid()))  # from here on a test may interrupt it
        if times < order.get("dies", 0):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(order.get("sleeps", 0))
    finally:
        time.sleep(order.get("cleans", 0))
        (folder / f"cleaned-{order['number']}").touch()
    return {"number": order["number"]}


def numbers(found: list[tuple[queue.Order, queue.Answer | Exception]]) -> list[int]:
    return sorted(order["number"] for order, _ in found)


def answered(
    orders: Iterable[queue.Order], perform: queue.Perform, jobs: int, scheduler: str | None = None
) -> list[tuple[queue.Order, queue.Answer | Exception]]:
    """All that is answered."""
    with queue.run(orders, perform, jobs, scheduler) as answers:
        return list(answers)


def begun(folder: Path, number: int, least: int = 1) -> list[int]:
    """The processes that began an order, once there are so many."""
    deadline = time.monotonic() + 60
    while len(marks := [m for m in sorted(folder.glob(f"{number}-*")) if m.read_text()]) < least:
        assert time.monotonic() < deadline, f"order {number} was not begun"
        time.sleep(0.01)
    return [int(one.read_text()) for one in marks]


def test_answers_come_from_few_processes_that_are_used_again() -> None:
    found = answered([{"number": number} for number in range(20)], double, jobs=2)
    assert numbers(found) == list(range(20))
    assert all(not isinstance(answer, Exception) and answer["twice"] == 2 * o["number"] for o, answer in found)
    pids = {answer["pid"] for _, answer in found if isinstance(answer, dict)}
    assert len(pids) <= 2
    assert os.getpid() not in pids
    assert not multiprocessing.active_children()


def test_an_exception_is_an_answer_even_if_it_cannot_travel() -> None:
    found = answered([{"number": 1}, {"number": 2}], refuse, jobs=1)
    assert [str(answer) for _, answer in found] == ["StubbornError: no 1", "StubbornError: no 2"]
    assert "in refuse" in str(found[0][1].__cause__)  # where it was raised


def test_a_killed_process_costs_nobody_else_and_its_order_comes_again(tmp_path: Path) -> None:
    orders = [{"number": number, "folder": str(tmp_path), "dies": {1: 2, 4: 99}.get(number, 0)} for number in range(6)]
    found = answered(orders, mark, jobs=2)
    assert numbers(found) == list(range(6))
    lost = {order["number"]: answer for order, answer in found if isinstance(answer, Exception)}
    assert list(lost) == [4]
    assert "3 times" in str(lost[4])
    assert [len(list(tmp_path.glob(f"{number}-*"))) for number in range(6)] == [1, 3, 1, 1, 3, 1]


class Kept(dict[str, Any]):
    """An order that can be counted: a dict alone cannot be referred to weakly."""


def test_orders_are_taken_when_somebody_can_work_on_them_and_not_kept() -> None:
    orders: list[weakref.ref[Kept]] = []

    def lazy() -> Iterator[queue.Order]:
        for number in range(50):
            order = Kept(number=number)
            orders.append(weakref.ref(order))
            yield order

    with queue.run(lazy(), double, jobs=2) as answers:
        for done, _ in enumerate(answers, 1):
            assert len(orders) <= done + 2
            assert sum(one() is not None for one in orders) <= 6


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked by a server on Linux alone")
def test_a_process_that_could_not_be_forked_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    start, begun = context.ForkServerProcess.start, []

    def killed_at_first(process: Any) -> None:
        begun.append(process)
        if len(begun) == 1:
            raise EOFError
        start(process)

    monkeypatch.setattr(context.ForkServerProcess, "start", killed_at_first)
    assert numbers(answered([{"number": 1}, {"number": 2}], double, jobs=2)) == [1, 2]
    assert len(begun) == 3


def test_who_stops_listening_ends_the_work_at_once_and_it_cleans_up(tmp_path: Path) -> None:
    folder = str(tmp_path)
    orders = [{"number": 0, "folder": folder}, {"number": 1, "folder": folder, "sleeps": 60}]
    with queue.run(orders, mark, jobs=2) as answers:
        next(answers)
        (pid,) = begun(tmp_path, 1)
    assert eventually(lambda: gone(pid), within=1)
    assert (tmp_path / "cleaned-1").exists()


def test_the_work_begins_before_an_answer_is_asked_for(tmp_path: Path) -> None:
    with queue.run([{"number": 0, "folder": str(tmp_path)}], mark, jobs=2):
        begun(tmp_path, 0)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_the_work_ends_with_who_ordered_it(tmp_path: Path, how: signal.Signals) -> None:
    script = tmp_path / "coordinator.py"
    script.write_text(COORDINATOR.format(here=str(HERE), folder=str(tmp_path)))
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as coordinator:
        (pid,) = begun(tmp_path, 7)
        if how == signal.SIGINT:
            os.killpg(coordinator.pid, how)  # as a terminal does
        else:
            coordinator.send_signal(how)
        assert eventually(lambda: gone(pid))
        coordinator.wait(60)
        assert coordinator.stderr is not None
        errors = coordinator.stderr.read()
    assert errors.count("Traceback") == (how == signal.SIGINT)  # the coordinator's own
    assert (tmp_path / "cleaned-7").exists()


COORDINATOR = """
import signal, sys
sys.path.insert(0, {here!r})
import test_queue
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where the tests run in a shell's background, ignored
    order = {{"number": 7, "folder": {folder!r}, "sleeps": 60, "cleans": 0.5}}
    print(test_queue.answered([order], test_queue.mark, jobs=1))
"""
