"""What a function may not do while it is measured; and stopping one that runs for too long, in this process."""

from __future__ import annotations

import _thread
import contextlib
import itertools
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from unrolled.timing.blocks import cpu_seconds

PATIENCE = 3
"""Alarms until they come fast. A bare `except` in an endless loop swallows any error, but cannot protect the lines of
its own block: of many alarms a millisecond, one soon falls there."""


class UnfairError(Exception):
    """While it was timed, a function did what a fair measurement does not allow: what, in words."""


class UnableError(Exception):
    """This machine cannot time a function at all: why, in words."""


class TimeLimitError(BaseException):
    """Raised inside the code that ran too long. Not an `Exception`, so that a careless `except` lets it through."""


def cpu_clock(function: Any) -> Callable[[], float]:
    """Return the clock of CPU seconds where a function runs: its class's own, if it stands for one elsewhere.

    Sleep, other work on the machine and a second core gain and lose nothing by it.
    """
    return function.cpu_seconds if hasattr(type(function), "cpu_seconds") else cpu_seconds


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimitError inside the block once `seconds` have passed, again every half second while it goes on.

    Uses the interval timer on POSIX in the main thread. Elsewhere (Windows) a thread interrupts the main thread. In
    other threads there is no limit. Code inside one long call of a C library is stopped only when that call returns.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
    elif hasattr(signal, "setitimer"):
        yield from _by_alarm(seconds)
    else:
        yield from _by_interrupt(seconds)


def _by_alarm(seconds: float) -> Iterator[None]:
    entered_from = _first_frame_outside(sys._getframe())
    alarms = itertools.count(1)
    hook = sys.unraisablehook
    forget: Callable[[Any], None] = deque[Any](maxlen=0).append
    left = deciding = False

    def stop(signum: int, frame: FrameType | None) -> None:
        nonlocal deciding
        if left or deciding:  # on a busy machine one alarm comes before the last is done: they must not pile up
            return
        deciding = True
        try:
            alarm = next(alarms)
            fast = alarm > PATIENCE
            ended = frame is not None and _first_frame_outside(frame) is entered_from and (fast or _is_ours(frame))
        finally:  # the block may have used up the stack
            deciding = False
        if ended:
            return  # the block is left already
        if alarm == PATIENCE:
            # Some will fall into a `__del__` or a callback of the garbage collector. Errors there go to this hook, and
            # the next alarm would hit a hook in Python. This one is in C, where none falls, and forgets them.
            sys.unraisablehook = forget
            signal.setitimer(signal.ITIMER_REAL, 20e-6, 37e-6)
        raise TimeLimitError(f"ran longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
    try:
        yield
    finally:
        left = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        # The kernel may have handed the last alarm to another thread, which gets it when it next runs: by default, that
        # would end the process.
        signal.signal(signal.SIGALRM, _too_late if before == signal.SIG_DFL else before)
        sys.unraisablehook = hook


def _too_late(signum: int, frame: FrameType | None) -> None:
    """Do nothing. Unlike SIG_IGN, a program that this process starts does not inherit it."""


def _first_frame_outside(frame: FrameType) -> FrameType | None:
    """The innermost frame that is not ours."""
    at: FrameType | None = frame
    while at is not None and _is_ours(at):
        at = at.f_back
    return at


def _is_ours(frame: FrameType) -> bool:
    """Whether it belongs to this module or to contextlib, which calls it."""
    return frame.f_code.co_filename in (__file__, contextlib.__file__)


def _by_interrupt(seconds: float) -> Iterator[None]:
    expired = threading.Event()

    def stop() -> None:
        expired.set()
        _thread.interrupt_main()

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        if expired.is_set():
            raise TimeLimitError(f"ran longer than {seconds:g} s") from None
        raise
    finally:
        timer.cancel()
