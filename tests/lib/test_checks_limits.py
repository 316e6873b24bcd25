"""A function that never ends is stopped, and no alarm is left behind."""

import contextlib
import signal
import sys
import time

import pytest
from test_checks_run import report

from unrolled.checks import limits
from unrolled.checks.limits import time_limit


def test_an_endless_loop_is_stopped():
    def endless(x):
        while True:
            with contextlib.suppress(Exception):  # what a careless learner writes
                time.sleep(60)

    found = report(endless, case_limit=0.2)
    assert found.parts[0].verdict == "timeout"
    assert "does a loop never end?" in str(found)


with_alarms = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="Windows has no interval timer, only one interrupt"
)


class SlowToDelete:
    """Alarms come while Python cannot raise."""

    def __del__(self):
        time.sleep(0.01)


@with_alarms
@pytest.mark.parametrize("step", [lambda: time.sleep(0.01), SlowToDelete], ids=["it sleeps", "it deletes"])
def test_an_endless_loop_that_catches_everything_is_stopped_and_says_nothing(step, monkeypatch):
    def endless(x):
        while True:
            try:
                step()
            except:  # noqa: E722
                continue

    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    for _ in range(2):
        assert report(endless, case_limit=0.01).parts[0].verdict == "timeout"
    time.sleep(0.05)  # an alarm left behind would end the test run
    assert len(unraisable) < 2 * limits.PATIENCE, "the first alarms, half a second apart"
    assert sys.unraisablehook == unraisable.append, "given back"


LATE = """
def late(which, seconds, interval=0.0):
    if seconds == 0:
        signal.raise_signal(signal.SIGALRM)
    return setitimer(which, seconds, interval)
"""


@with_alarms
@pytest.mark.parametrize("late", [False, True])
def test_the_time_limit_leaves_no_alarm_behind(late, monkeypatch):
    """Nor does an alarm raise that comes while the timer is turned off: the next would come half a second later."""
    before = signal.getsignal(signal.SIGALRM)
    if late:
        names = {"signal": signal, "setitimer": signal.setitimer}
        exec(compile(LATE, limits.__file__, "exec"), names)  # as if it were a line of that module
        monkeypatch.setattr(signal, "setitimer", names["late"])
    with time_limit(60):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    assert signal.getsignal(signal.SIGALRM) is before
