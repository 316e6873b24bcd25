"""A thread that watches whether what a rank calls through NCCL ends."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

from unrolled.parallel.calls import Call
from unrolled.parallel.errors import ParallelError
from unrolled.parallel.packing import end_with
from unrolled.parallel.store import Failure, Store

ANSWER_SECONDS = 3.0  # that others have to say where they wait, before all end


def wait_for(stream: int) -> None:
    """Wait until a stream has done all so far; not for one that a graph captures, which cannot be asked.

    This calls the driver directly. Some of CuPy's calls keep Python's lock, and while another thread waits in CUDA the
    driver would hold them, and with them all of this process.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    captures = ctypes.c_int(0)
    if driver.cuStreamIsCapturing(ctypes.c_void_p(stream), ctypes.byref(captures)) == 0 and captures.value == 0:
        driver.cuStreamSynchronize(ctypes.c_void_p(stream))


class Watch:
    """A thread that says that this rank lives, and ends the process where NCCL would hang.

    It ends it rather than stop NCCL: a result that never came must not be computed with, let alone be saved. Where CUDA
    stops all of Python, as when CuPy loads a kernel while the device waits, the store misses the signs of life.
    """

    def __init__(self, cupy: Any, store: Store, timeout: float) -> None:
        self.communicator: Any = None
        self._cupy, self._store, self._timeout = cupy, store, timeout
        self._device = cupy.cuda.Device()
        self.issued: tuple[Any, Call] | None = None
        """The stream of the last operation, and what it is: a new pair for each one, and no more, since an all-reduce
        of few bytes takes as long as ten lines of Python. When it was issued is known to a sign of life."""
        self._seen: Any = None
        self._since = 0.0  # when it was seen first
        self._asked: Any = None
        self._answered: Any = None
        self._questions: SimpleQueue[tuple[Any, Call] | None] = SimpleQueue()
        threading.Thread(target=self._ask, daemon=True).start()
        self._host: tuple[float, str] | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def host(self, what: str) -> Iterator[None]:
        """While the host itself waits for other ranks."""
        before, self._host = self._host, (time.monotonic(), what)
        try:
            yield
        finally:
            self._host = before

    def close(self) -> None:
        self._closed = True
        self._questions.put(None)
        self._thread.join()

    def _run(self) -> None:
        self._device.use()
        posted = False
        while not self._closed:
            failure = self._store.heartbeat() or self._broken()
            seconds, what = self._waits()
            if seconds > max(self._timeout - ANSWER_SECONDS, self._timeout / 2) and not posted:
                self._post(what)
                posted = True
            elif posted and not seconds:
                self._post(None)
                posted = False
            if seconds > self._timeout:
                failure = failure or self._hang(what)
            if failure and not self._closed:
                self._end(failure)

    def _post(self, what: str | None) -> None:
        with contextlib.suppress(ParallelError):
            self._store.put(f"waits/{self._store.rank}", what)

    def _broken(self) -> Failure | None:
        """NCCL's own error of what runs on the device."""
        if self.communicator is None:
            return None
        try:
            self.communicator.check_async_error()
        except Exception as error:
            what = f" in {self.issued[1]}" if self.issued else ""
            return {"kind": "RankError", "text": f"rank {self._store.rank}: {error}{what}"}
        return None

    def _waits(self) -> tuple[float, str]:
        """How long this rank has waited for others, and in what. The device is asked only when nothing is issued."""
        now, host, issued = time.monotonic(), self._host, self.issued
        if issued is not self._seen:
            self._seen, self._since = issued, now
        if host is not None:
            return now - host[0], host[1]
        if issued is None or now - self._since < self._timeout / 4 or self._answered is issued:
            return 0.0, ""
        if self._asked is not issued:
            self._asked = issued
            self._questions.put(issued)
            return 0.0, ""
        return now - self._since, str(issued[1])

    def _ask(self) -> None:
        """In a thread of its own, since CUDA may hold it: find out which streams have done all so far."""
        self._device.use()
        while (issued := self._questions.get()) is not None:
            wait_for(issued[0].ptr)
            self._answered = issued

    def _hang(self, what: str) -> Failure:
        waits = [f"rank {self._store.rank} waits in {what}"]
        for rank in sorted(set(range(self._store.size)) - {self._store.rank}):
            with contextlib.suppress(ParallelError):
                theirs = self._store.get(f"waits/{rank}", 0.0)
                waits.append(f"rank {rank} waits in {theirs}" if theirs else f"rank {rank} waits for nobody")
        kind = "RankError" if any(text.endswith("nobody") for text in waits) else "DeadlockError"
        return {"kind": kind, "text": f"no progress for {self._timeout:g} s: {'; '.join(waits)}"}

    def _end(self, failure: Failure) -> None:
        self._store.fail(failure)
        end_with(failure)
