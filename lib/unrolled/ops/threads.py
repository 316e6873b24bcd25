"""Threads for blocks of images: as many as NumPy's BLAS may use at that moment, one included.

BLAS has threads for a product. What lies between products, copies and sums, runs on one: so here each thread takes
whole blocks, with products of its own. NumPy lets go of Python's lock (the GIL) inside of all these.

The threads come with the first call that can use them, and wait without spinning. A forked process has none and makes
its own. One call at a time has them: what other threads call meanwhile, and what blocks call themselves, runs where it
is called. While they work, BLAS is held to one thread for the whole process.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from unrolled.device import Array

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

T = TypeVar("T")
SMALL_PRODUCT = 10**6  # multiplications, at most: OpenBLAS has kernels for these that copy nothing first
SMALL_KERNELS = ("SkylakeX", "Cooperlake", "SapphireRapids")  # and these processors' names for them: all with AVX-512
PASS_BYTES = 512 << 10  # that a thread passes over before it takes the next part: half of a second-level cache


class _Team:
    """The threads, and who may call them."""

    def __init__(self) -> None:
        self.free = threading.Lock()
        self._executor: Executor | None = None

    def call(self, task: Callable[[], None], helpers: int) -> list[Future[None]]:
        """Start task on up to so many threads: fewer where the system gives no more."""
        started = [self._submit(task) for _ in range(helpers)]
        return [each for each in started if each is not None]

    def _submit(self, task: Callable[[], None]) -> Future[None] | None:
        if self._executor is None:
            from concurrent.futures import ThreadPoolExecutor

            self._executor = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="unrolled.ops")
        try:
            return self._executor.submit(copy_context().run, task)  # NumPy's errstate is of a context
        except RuntimeError:  # a limit on threads, or Python is about to end
            self._executor = None
            return None


_team = _Team()


def share(work: Callable[[Iterator[T]], None], items: Sequence[T]) -> None:
    """Call work(rest of the items) here, and beside it on as many threads as BLAS may use; each item goes to one.

    After an exception no further item begins; the first is raised here once all threads are done.
    """
    rest, team = iter(items), _team
    if len(items) < 2 or not team.free.acquire(blocking=False):
        work(rest)
        return
    try:
        libraries = _blas()
        limits = [library.get_num_threads() for library in libraries]
        threads = min([len(items), *limits]) if limits else 1  # a BLAS that nobody can limit says nothing of threads
        if threads < 2:
            work(rest)
            return
        with _one_thread_each(libraries):
            _share(team, work, rest, threads - 1)
    finally:
        team.free.release()


@contextmanager
def alone() -> Iterator[None]:
    """Hold BLAS to one thread in this block: for products that take less time than to wake another.

    What is shared here runs on this thread too. While the threads work for somebody else, BLAS is held already.
    """
    team = _team
    if not team.free.acquire(blocking=False):
        yield
        return
    try:
        with _one_thread_each(_blas()):
            yield
    finally:
        team.free.release()


def pay(x: Array) -> bool:
    """Return whether a pass over the values of x is long enough for threads: floats of NumPy, a megabyte or more."""
    return isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.nbytes >= 2 * PASS_BYTES and len(x) > 1


def share_rows(each: Callable[[slice], object], x: Array) -> None:
    """Call each(rows) for slices of the first axis of x, which may go to different threads: see `share`."""
    size = max(1, len(x) * PASS_BYTES // x.nbytes)

    def work(parts: Iterator[slice]) -> None:
        for part in parts:
            each(part)

    share(work, [slice(start, start + size) for start in range(0, len(x), size)])


def _share(team: _Team, work: Callable[[Iterator[T]], None], rest: Iterator[T], helpers: int) -> None:
    def task() -> None:
        try:
            work(rest)
        except BaseException:
            deque(rest, maxlen=0)  # nothing is left for the others
            raise

    started = team.call(task, helpers)
    try:
        task()
    finally:
        errors = [error for each in started if not each.cancel() and (error := each.exception())]
    if errors:
        raise errors[0]


def multiplies_as_it_lies() -> bool:
    """Return whether BLAS has kernels for small products, and one thread: a larger product would not be shared."""
    libraries = _blas()
    return bool(libraries) and all(
        library.get_num_threads() == 1 and getattr(library, "architecture", "") in SMALL_KERNELS
        for library in libraries
    )


@cache
def _blas() -> list[Any]:
    """The BLAS libraries that NumPy and others have loaded, for threadpoolctl's questions: microseconds each."""
    import threadpoolctl

    return list(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def _one_thread_each(libraries: Sequence[Any]) -> Iterator[None]:
    limits = [library.get_num_threads() for library in libraries]
    try:
        for library in libraries:
            library.set_num_threads(1)
        yield
    finally:
        for library, number in zip(libraries, limits, strict=True):
            library.set_num_threads(number)


def _renew() -> None:
    """In a forked process: the threads are its parent's, and so is whoever had called them."""
    global _team
    _team = _Team()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
