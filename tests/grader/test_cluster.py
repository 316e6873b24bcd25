"""The queue on a real Dask scheduler with real workers, on this machine."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from test_queue import HERE, answered, begun, boxed, double, mark, numbers, refuse

from unrolled_grader.jobs import queue

distributed = pytest.importorskip("distributed")


@contextmanager
def dask(*arguments: str, failures: int = 1) -> Iterator[subprocess.Popen[bytes]]:
    """A `dask` command that runs for the block and finds this folder's modules."""
    search = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    environment = {"PYTHONPATH": search, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(failures)}
    command = [sys.executable, "-m", "dask", *arguments]
    with subprocess.Popen(command, env={**os.environ, **environment}, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def scheduler(folder: Path, failures: int = 1) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    where = folder / "scheduler.json"
    command = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(where))
    with dask(*command, failures=failures) as process:
        deadline = time.monotonic() + 120
        while not (where.exists() and where.read_text()):
            assert time.monotonic() < deadline, "no scheduler"
            time.sleep(0.02)
        yield json.loads(where.read_text())["address"], process


def worker(address: str, resources: str = "TIMING=1", *more: str) -> Any:
    return dask("worker", address, "--nthreads", "1", "--resources", resources, "--no-nanny", "--no-dashboard", *more)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ExitStack() as stack:
        address, _ = stack.enter_context(scheduler(tmp_path_factory.mktemp("dask")))
        for _ in range(2):
            stack.enter_context(worker(address))
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)  # one test gives up early on what no worker offers
        yield address


def test_answers_and_exceptions_come_from_workers(address: str) -> None:
    found = answered([{"number": number} for number in range(6)], double, 1, address)
    assert numbers(found) == list(range(6))
    assert all(isinstance(answer, dict) and answer["twice"] == 2 * order["number"] for order, answer in found)
    assert os.getpid() not in {answer["pid"] for _, answer in found if isinstance(answer, dict)}
    ((_, error),) = answered([{"number": 1}], refuse, 1, address)
    assert "no 1" in str(error)


def test_an_order_that_no_worker_can_do_is_deferred(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "PATIENCE", 0.5)
    orders = [{"number": 0, "resources": {"TIMING": 1, "GPU": 1}}, {"number": 1}, {"number": 2, "resources": {}}]
    found = {order["number"]: answer for order, answer in answered(orders, double, 1, address)}
    assert isinstance(found[0], queue.Deferred)
    assert str(found[0]) == f"deferred: no worker at {address} offers TIMING and GPU"
    assert isinstance(found[1], dict)
    assert isinstance(found[2], dict)


def test_the_order_of_a_killed_worker_runs_again_elsewhere(address: str, tmp_path: Path) -> None:
    orders = [{"number": number, "folder": str(tmp_path), "dies": int(number == 1)} for number in range(4)]
    found = answered(orders, mark, 1, address)
    assert numbers(found) == list(range(4))
    assert all(isinstance(answer, dict) for _, answer in found)
    assert len(set(begun(tmp_path, 1))) == 2


def test_a_worker_without_a_sandbox_is_refused_once_where_others_can_do_its_orders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = [{"number": number} for number in range(20)]
    with scheduler(tmp_path) as (address, _), worker(address, "TIMING=1", "--name", "unboxed") as unboxed:
        found = answered(orders[:2], boxed, 1, address)
        assert [str(answer).rpartition(": ")[2] for _, answer in found] == ["bubblewrap is not installed"] * 2
        with worker(address), distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
            found = answered(orders, boxed, 1, address)
            unboxed.wait(120)
    assert numbers(found) == list(range(20))
    assert all(isinstance(answer, dict) for _, answer in found)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("refused until it is started again: the worker at tcp://127.0.0.1:")


def test_a_lost_scheduler_is_named_and_what_was_answered_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "CONNECT", 2.0)
    logged = Mock(level=0)
    monkeypatch.setattr(logging.getLogger("distributed.client"), "handlers", [logged])
    with scheduler(tmp_path) as (address, process), worker(address):
        orders = [{"number": number, "folder": str(tmp_path), "sleeps": 60 * number} for number in range(2)]
        with queue.run(orders, mark, 1, address) as answers:
            assert next(answers)[0]["number"] == 0
            begun(tmp_path, 1)
            process.send_signal(signal.SIGKILL)
            with pytest.raises(queue.SchedulerError, match=address):
                next(answers)
    logged.handle.assert_not_called()  # no traceback beside the one line


def test_an_order_that_kills_its_workers_is_given_up_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue._Cluster, "slots", lambda _: 40)  # so that others stand behind it
    with scheduler(tmp_path, failures=0) as (address, _), ExitStack() as workers:
        for _ in range(3):
            workers.enter_context(worker(address, "TIMING=1,GPU=1"))
        order = {"folder": str(tmp_path), "resources": {"TIMING": 1, "GPU": 1}}
        orders = [{**order, "number": number, "dies": 9 * (number == 0)} for number in range(40)]
        found = answered(orders, mark, 1, address)
    assert numbers(found) == list(range(40))
    (lost,) = [(order["number"], str(answer)) for order, answer in found if isinstance(answer, Exception)]
    assert lost[0] == 0
    assert "ended" in lost[1]


def test_an_unknown_scheduler_is_named_and_without_dask_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "CONNECT", 0.5)
    for address in ("tcp://127.0.0.1:1", "nonsense"):
        with pytest.raises(queue.SchedulerError, match=address):
            answered([], double, 1, address)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(queue.SchedulerError, match=r"-e ..\[cluster\]"):
        answered([], double, 1, "tcp://127.0.0.1:8786")
