"""Orders go out to processes of this machine, or to a Dask cluster; their answers come back as they are ready.

An order and its answer are plain JSON: paths and options, never notebooks or arrays. Every order gets exactly one
answer, whatever happens to the process that works on it.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import closing, contextmanager, nullcontext, suppress
from itertools import islice
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from queue import Empty, SimpleQueue
from socket import socket
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from unrolled.cli import CommandError
from unrolled_grader.box import zygote
from unrolled_grader.box.sandbox import SandboxError

if TYPE_CHECKING:
    from distributed import Client, Future

Order = dict[str, Any]
Answer = dict[str, Any]
Perform = Callable[[Order], Answer]
ATTEMPTS = 3  # how many processes an order may cost before it is given up
GRACE = 3.0  # seconds that a process which is told to end has to clean up after itself
NEEDS = {"TIMING": 1}  # what an order asks of a Dask worker, unless it says so itself under "resources"
CONNECT = 10.0  # seconds to find a scheduler
PATIENCE = 30.0
"""Seconds that an order waits for a worker which offers what it needs. A restarted worker is back in a few."""


class Lost(RuntimeError):  # noqa: N818 - an answer, not a fault of the caller
    """The answer to an order whose process was killed time and again."""


class Deferred(RuntimeError):  # noqa: N818
    """The answer to an order that needs what no worker offers."""


class JobError(RuntimeError):
    """A job cannot be performed here, which is not the submission's fault."""


class UnfitError(RuntimeError):
    """The worker at an address can perform no order, whatever it holds: the address, and why."""

    def __str__(self) -> str:
        return "the worker at {}: {}".format(*self.args)


class SchedulerError(CommandError):
    """There is no scheduler at that address, or no longer."""


@contextmanager
def run(
    orders: Iterable[Order],
    perform: Perform,
    jobs: int,
    scheduler: str | None = None,
) -> Iterator[Iterator[tuple[Order, Answer | Exception]]]:
    """Have orders performed; the block gets each with its answer, or with the exception raised, once and as they come.

    `perform` is a function at the top level of a module. It runs in `jobs` processes of this machine, each for many
    orders, or on the workers of the Dask scheduler at that address. `orders` may be lazy: the next is taken when a
    worker is free. Processes of this machine share its warm one as far as it has lines to spare.

    Processes of this machine begin with the first orders as the block does; they take seconds to start, in which the
    block can get ready for the answers. What is unanswered when the block ends is given up. Raises ValueError for fewer
    than 1 job, SchedulerError where there is no scheduler.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    if scheduler is not None:
        with closing(_on_cluster(iter(orders), perform, scheduler)) as answers:
            yield answers
        return
    todo, pool = iter(orders), list[_Process]()
    try:
        for order in islice(todo, jobs):
            pool.append(_Process(perform))
            pool[-1].begin(order)
        yield _answers(todo, pool)
    finally:
        for process in pool:
            process.dismiss()
        for process in pool:
            process.end()


def _answers(orders: Iterator[Order], pool: Sequence[_Process]) -> Iterator[tuple[Order, Answer | Exception]]:
    """What the processes answer to the orders they have, and then to these."""
    busy = list(pool)
    while busy:
        ready = wait([process.connection for process in busy])
        for process in [process for process in busy if process.connection in ready]:
            if (answer := process.answer()) is None:
                continue
            done = process.order
            if following := next(orders, None):
                process.begin(following)
            else:
                busy.remove(process)
            yield done, answer


class _Process:
    """A process that works on one order at a time; when it is killed, a new one takes its place."""

    def __init__(self, perform: Perform) -> None:
        self._perform = perform
        self._start()

    def _start(self, attempt: int = 1) -> None:
        context = _context(self._perform.__module__)
        self.connection, theirs = context.Pipe()
        line = zygote.spare_line()
        with closing(theirs), line or nullcontext():  # both are sent along, and closed here
            self._process = context.Process(target=_serve, args=(theirs, self._perform, line))
            try:
                self._process.start()
            except (EOFError, ConnectionError):  # what forks them was killed; the next attempt starts it anew
                self.connection.close()
                if attempt == ATTEMPTS:
                    raise
                self._start(attempt + 1)

    def begin(self, order: Order, attempt: int = 1) -> None:
        self.order, self._attempt = order, attempt
        with suppress(OSError):  # it is gone; answer() finds that out
            self.connection.send(order)

    def answer(self) -> Answer | Exception | None:
        """What came of the order; None if the process was killed and the order begun anew. Blocks until then."""
        try:
            return _received(self.connection.recv_bytes())
        except (EOFError, OSError):
            self.dismiss()
            self.end()
        ended = self._process.exitcode
        self._start()
        if self._attempt == ATTEMPTS:
            return Lost(f"the process that worked on this ended {ATTEMPTS} times, last with exit code {ended}")
        self.begin(self.order, self._attempt + 1)
        return None

    def dismiss(self) -> None:
        """Tell the process to end, and do not wait for it."""
        self.connection.close()

    def end(self) -> None:
        """Wait until the process has ended, which it does after `GRACE` at the latest, or by force."""
        self._process.join(GRACE + 1)
        self._process.kill()
        self._process.join()


def warm(module: str) -> None:
    """Start the process from which those that perform what is in this module are forked, if any; do not wait for it."""
    if isinstance(_context(module), ForkServerContext):
        forkserver.ensure_running()


def _context(module: str) -> ForkServerContext | SpawnContext:
    """How processes come to be: forked from one that has loaded what they perform, and done nothing else.

    Where system libraries may not outlive a fork, as on macOS, each process loads all of it anew.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([module])
    return context


def _serve(connection: Connection, perform: Perform, line: socket | None) -> None:
    """Work on orders until the other end of the connection closes, or its process is gone, even by SIGKILL."""
    if hasattr(os, "setsid"):
        os.setsid()  # so that Ctrl-C in a terminal reaches the parent alone, which then ends us in good order
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit that it is ignored
    orders: SimpleQueue[Order] = SimpleQueue()
    with suppress(KeyboardInterrupt, OSError):
        threading.Thread(target=_listen, args=(connection, orders), daemon=True).start()
        zygote.use(line)
        while True:
            connection.send_bytes(_performed(perform, orders.get()))


def _listen(connection: Connection, orders: SimpleQueue[Order]) -> None:
    """Hand on the orders; when no more can come, interrupt what is going on, and after a while end the process."""
    with suppress(EOFError, OSError):
        while True:
            orders.put(connection.recv())
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(GRACE)
    os._exit(1)


def _performed(perform: Perform, order: Order) -> bytes:
    """What `_received` turns into the answer, or into the exception that took its place."""
    try:
        return pickle.dumps((perform(order), ""))
    except Exception as error:
        try:
            failed = pickle.dumps((error, traceback.format_exc()))
            pickle.loads(failed)  # some exceptions can be dumped but not loaded
        except Exception:
            failed = pickle.dumps((RuntimeError(f"{type(error).__name__}: {error}"), traceback.format_exc()))
        return failed


def _received(data: bytes) -> Answer | Exception:
    answer, trace = pickle.loads(data)
    if trace:
        answer.__cause__ = RuntimeError(f"\n{trace}")
    return answer  # type: ignore[no-any-return]


def _on_cluster(
    orders: Iterator[Order], perform: Perform, address: str
) -> Generator[tuple[Order, Answer | Exception], None, None]:
    answered: list[tuple[Order, Answer | Exception]] = []
    blamed: list[Order] = []
    alone = False
    with _connected(address) as client:
        cluster = _Cluster(client, address)
        while client.status in ("running", "connecting"):
            for order in islice(orders, max(0, cluster.slots() - len(cluster.waiting))):
                cluster.send(perform, order)
            yield from answered  # only now, when the workers are busy again
            if not cluster.waiting:
                if not blamed:
                    return
                cluster.send(perform, blamed.pop())
                alone = True
            answered = cluster.deferred()
            for order, answer in cluster.answered(0 if answered else 1):
                if isinstance(answer, UnfitError) and cluster.refuse(answer):
                    cluster.send(perform, order)
                elif isinstance(answer, Lost) and not alone:
                    blamed.append(order)  # Dask blames the end of a worker on all orders it had; we try each alone
                else:
                    answered.append((order, answer))
        raise _lost(address)


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at `address`, which says nothing on stderr."""
    try:
        import dask
        from distributed import Client
    except ImportError as error:
        raise SchedulerError(
            f'a scheduler needs Dask: pip install -e ".[cluster]" in the course\'s folder ({error})'
        ) from error
    logs = [logging.getLogger(name) for name in ("distributed", "distributed.client")]  # Dask gives each a level
    levels = [log.level for log in logs]
    with dask.config.set({"distributed.comm.timeouts.connect": CONNECT}):
        try:
            client = Client(address, timeout=CONNECT, set_as_default=False)
        except (OSError, ValueError) as error:
            raise SchedulerError(f"no Dask scheduler at {address}: {error}") from error
        for log in logs:
            log.setLevel(logging.CRITICAL)
        try:
            with client:
                yield client
        finally:
            for log, level in zip(logs, levels, strict=True):
                log.setLevel(level)


class _Cluster:
    """The orders that a scheduler has, and what its workers offer."""

    def __init__(self, client: Client, address: str) -> None:
        self.waiting: dict[Future[Any], Order] = {}
        self._client, self._address = client, address
        self._done: SimpleQueue[Future[Any]] = SimpleQueue()
        self._offered: dict[str, float] = {}  # when there last was a worker that offered this
        self._refused: set[str] = set()
        self._began = time.monotonic()
        self._asked = -1.0

    def slots(self) -> int:
        """How many orders the workers can do at a time; at least one, so that there is something to wait for."""
        return max(1, sum(int(worker["nthreads"]) for worker in self._workers()))

    def send(self, perform: Perform, order: Order) -> None:
        future = self._client.submit(_on_worker, perform, order, resources=_needs(order), pure=False)
        self.waiting[future] = order
        future.add_done_callback(self._done.put)

    def answered(self, timeout: float) -> Iterator[tuple[Order, Answer | Exception]]:
        """What is there, after waiting for `timeout` seconds at most."""
        with suppress(Empty):
            future = self._done.get(timeout=timeout)
            while True:
                if future in self.waiting:
                    yield self.waiting.pop(future), _outcome(future, self._address)
                future = self._done.get(block=False)

    def refuse(self, unfit: UnfitError) -> bool:
        """Let a worker leave, and say so; return False, and let it stay, where there is no other to take its place."""
        address, self._asked = unfit.args[0], -1.0
        self._workers()
        if not self._known.keys() - self._refused - {address}:
            return False
        if address not in self._refused:
            self._refused.add(address)
            tqdm.write(f"refused until it is started again: {unfit}")  # above the bar, if there is one
            self._client.retire_workers([address])
        return True

    def deferred(self) -> list[tuple[Order, Answer | Exception]]:
        """The orders for which there has been no worker for too long; they are taken back."""
        late = [(future, order) for future, order in self.waiting.items() if self._lacks(_needs(order))]
        for future, _ in late:
            del self.waiting[future]
            future.cancel()
        message = "deferred: no worker at {} offers {}"
        return [(order, Deferred(message.format(self._address, _named(_needs(order))))) for _, order in late]

    def _lacks(self, needs: dict[str, float]) -> bool:
        now, name = time.monotonic(), _named(needs)
        offers = [worker["resources"] for worker in self._workers()]
        if any(all(offer.get(one, 0) >= least for one, least in needs.items()) for offer in offers):
            self._offered[name] = now
        return now - self._offered.get(name, self._began) > PATIENCE

    def _workers(self) -> list[dict[str, Any]]:
        """What the scheduler knows of each worker that is not refused, asked for once a second at most."""
        if time.monotonic() - self._asked > 1:
            self._known: dict[str, dict[str, Any]] = self._client.scheduler_info(n_workers=-1)["workers"]
            self._asked = time.monotonic()
        return [worker for address, worker in self._known.items() if address not in self._refused]


def _on_worker(perform: Perform, order: Order) -> Answer:
    """Perform an order on a worker, which says whose fault it is where its machine cannot."""
    from distributed import get_worker

    try:
        return perform(order)
    except (JobError, SandboxError) as error:
        raise UnfitError(get_worker().address, str(error)) from error


def _outcome(future: Future[Any], address: str) -> Answer | Exception:
    from distributed import KilledWorker

    try:
        return future.result()  # type: ignore[no-any-return]
    except KilledWorker as error:
        times, last = error.allowed_failures + 1, error.last_worker.address
        return Lost(f"{times} workers ended while they worked on this, the last was {last}")
    except CancelledError as error:
        raise _lost(address) from error
    except Exception as error:
        return error


def _lost(address: str) -> SchedulerError:
    return SchedulerError(f"the Dask scheduler at {address} was lost. What was answered is kept; start again to go on")


def _needs(order: Order) -> dict[str, float]:
    return order.get("resources", NEEDS)  # type: ignore[no-any-return]


def _named(needs: dict[str, float]) -> str:
    return " and ".join(name if least == 1 else f"{least:g} {name}" for name, least in needs.items())
