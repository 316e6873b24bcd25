"""Races on real workers. What is asserted holds by wide margins: a hundred times the work, or a twentieth of it."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from small_course import SPECS

from unrolled.checks.crashes import ReportedError
from unrolled.checks.limits import UnfairError
from unrolled.timing import BlockTime
from unrolled.timing.verdict import Pair, TimedBlock, Verdict, conclude
from unrolled_grader.box.transport import Worker
from unrolled_grader.judge import race as racing
from unrolled_grader.judge.race import time_against_baseline

SPEC = SPECS["total"]
SEED = 12345
LIMIT = 60.0
LATER = "calls = []\ndef total(x):\n    calls.append(0)\n    return x.sum() if len(calls) < 5"
WRONG = "while it was timed, a result was wrong"


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """Its blocks are longer than a busy machine holds them up; its inputs are few, as many take long to draw there."""
    monkeypatch.setattr(racing, "SHORTEST", 0.1)
    monkeypatch.setattr(racing, "DISTINCT_BYTES", 2**23)
    with Worker(boxed=True) as worker:
        yield worker


def raced(worker: Worker, source: str) -> Verdict:
    """The race of `total`, as this source defines it, against a loop. It asks for five times the loop's speed."""
    assert worker.run_cell(source, LIMIT) is None
    assert worker.bind("total")["callable"]
    return time_against_baseline(worker, SPEC, SEED)


@pytest.mark.parametrize(
    ("source", "error", "says"),
    [
        ("import zlib\ndef total(x): return x.sum() + (zlib.crc32(x.tobytes()) % 4 > 0)", UnfairError, WRONG),
        (f"{LATER} else calls", UnfairError, WRONG),
        (f"{LATER} else 1 / 0", ReportedError, "raised ZeroDivisionError"),
        ("def total(x):\n    s = x.sum()\n    x[0] += 1\n    return s", UnfairError, "changed its input x"),
        ("kept = []\ndef total(x):\n    kept.append(x.sum())\n    return kept[0]", UnfairError, WRONG),
    ],
    ids=["three in four", "after a while", "an error after a while", "changed", "the first again"],
)
def test_what_is_wrong_while_it_is_timed_is_found(
    source: str, error: type[Exception], says: str, worker: Worker
) -> None:
    """A block's sample is secret, so nothing here is right for more than a quarter of the inputs or a few calls."""
    with pytest.raises(error, match=says):
        raced(worker, source)


class WaitedError(Exception):
    """In place of a wait for the machine."""


def test_who_is_not_clearly_fast_enough_waits_for_the_machine(worker: Worker) -> None:
    def alone() -> None:
        raise WaitedError

    assert worker.run_cell("def total(x):\n    s = 0.0\n    for value in x: s += value\n    return s", LIMIT) is None
    assert worker.bind("total")["callable"]
    with pytest.raises(WaitedError):
        time_against_baseline(worker, SPEC, SEED, alone=alone)


# Transport


def verdict_of(seconds: float) -> Verdict:
    pair = Pair(TimedBlock(1, 1.0), TimedBlock(10, seconds))
    return conclude([pair] * 8, [], 5)


def test_a_transport_that_weighs_so_much_that_it_may_decide_decides_nothing() -> None:
    assert racing._with_transport(verdict_of(1.999), 0.019).outcome == "pass"  # 5.003 times, 5 are asked
    assert racing._with_transport(verdict_of(0.1), 0.003).outcome == "pass"  # 100 times
    heavy = racing._with_transport(verdict_of(1.999), 0.03)
    assert heavy.outcome == "inconclusive"
    assert "the transport took 3.0% of a block, at most 2% is fair" in heavy.reason
    assert repr(heavy.pairs) == repr(verdict_of(1.999).pairs), (
        "from Python 3.13 on, no NaN in a dataclass equals itself"
    )


def test_the_transport_is_measured(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    monkeypatch.setattr(racing, "_with_transport", lambda verdict, seconds: seen.append(seconds) or verdict)
    raced(worker, "def total(x):\n    return x.sum()")
    assert len(seen) == 1
    assert seen[0] > 0


# Inputs


def same(a: Any, b: Any) -> bool:
    return len(a) == len(b) and all(np.array_equal(x["x"], y["x"]) for x, y in zip(a, b, strict=True))


def test_both_sides_of_a_pair_get_the_same_inputs_and_no_pair_gets_them_again() -> None:
    stream = racing._Stream(SPEC, SEED)
    seen = []
    for first, second in ((1, 2), (1, 2), (2, 1), (1, 2)):
        one, other = stream.inputs(first, 3), stream.inputs(second, 3)
        assert same(one, other)
        seen += [inputs["x"].tobytes() for inputs in one]
    seen += [inputs["x"].tobytes() for _ in range(4) for inputs in stream.inputs(1, 2)]  # a side alone
    assert len(set(seen)) == len(seen) == 20


def test_inputs_follow_from_the_seed_and_a_batch_that_grows_begins_as_it_was() -> None:
    stream = racing._Stream(SPEC, SEED)
    few = stream.inputs(1, 2)
    assert same(racing._Stream(SPEC, SEED).inputs(1, 2), few)
    assert not same(racing._Stream(SPEC, SEED + 1).inputs(1, 2), few)
    assert not same(SPEC.speed.draw_inputs(SEED, 2) if SPEC.speed else (), few)
    assert same(stream.inputs(2, 5)[:2], few)
    assert len(stream.inputs(3, 3)) == 3


def test_a_block_has_as_many_inputs_as_fit_and_never_few() -> None:
    stream = racing._Stream(SPEC, SEED)
    assert stream.distinct == racing.DISTINCT_BYTES // 400_000
    assert stream.distinct >= 16


# What a block took


class Fake:
    """In place of a worker: its blocks take these seconds, and `early` more of CPU time as it gets ready for each."""

    counts_cpu = True
    boxed = False

    def __init__(self, wall: float, cpu: float, early: float = 0.0) -> None:
        self.wall, self.cpu, self.early = wall, cpu, early
        self.used = 0.0
        self.inputs: Any = ()

    def prepare(self, inputs: Any, slot: int) -> None:
        self.inputs = inputs
        self.used += self.early

    def go(self, calls: int, limit: float) -> BlockTime:
        self.used += self.cpu
        return BlockTime(self.wall, self.cpu)

    def cpu_seconds(self) -> float:
        return self.used

    def result(self, number: int, slot: int, like: Any) -> Any:
        return np.ascontiguousarray(SPEC.reference(**self.inputs[number]))

    def inputs_now(self, number: int) -> Any:
        return self.inputs[number]


def side(worker: Any) -> racing._Side:
    stream = racing._Stream(SPEC, SEED)
    stream.distinct = 150  # so many inputs of a block are different, whatever memory they take
    return racing._Side(worker, stream, nullcontext, verified=True)


def test_a_second_core_buys_nothing() -> None:
    assert side(Fake(wall=1.0, cpu=0.5))(2) == BlockTime(1.0, 0.5)
    assert side(Fake(wall=1.0, cpu=1.9))(2) == BlockTime(1.9, 1.9)


CALL_BYTES = 400_000 + 64
"""Of SPEC: its input, and its result at its place."""


def ready(timed: racing._Side, worker: Fake, calls: int = 100) -> float:
    """Block after a first one of the same size, which has mapped all pages: seconds that it counts as."""
    early, worker.early = worker.early, 0.0
    timed(calls)
    worker.early = early
    return timed(calls).wall


@pytest.mark.parametrize(("early", "counts"), [(0.0, 1.0), (0.25, 1.0), (0.252, 1.0), (0.352, 1.1), (4.252, 5.0)])
def test_work_before_a_block_counts_as_its_own_but_for_a_quarter(early: float, counts: float) -> None:
    """100 inputs are allowed 2 ms."""
    worker = Fake(1.0, 1.0, early)
    assert ready(side(worker), worker) == pytest.approx(counts)


@pytest.mark.parametrize("burnt", [1, 5, 20])
def test_what_other_blocks_took_buys_a_block_nothing(burnt: int) -> None:
    worker = Fake(10.0, 10.0)
    timed = side(worker)
    for _ in range(burnt):
        timed(100)
    worker.cpu = worker.wall = 1.0
    worker.early = 4.252
    assert timed(100) == pytest.approx((5.0, 5.0))


@pytest.mark.parametrize(("calls", "call"), [(1, 1e-3), (1, 1e-2), (20, 1e-3)])
@pytest.mark.parametrize("moved", [0.0, 0.2, 0.5, 1.0])
def test_what_can_be_gained_at_most(moved: float, calls: int, call: float) -> None:
    """A quarter, and 20 us a call: whatever share of its work an answer does early, in a short block or a long one."""
    work = calls * call
    worker = Fake(work * (1 - moved), work * (1 - moved), work * moved)
    counted = ready(side(worker), worker, calls)
    assert work <= 1.25 * counted + calls * racing.PER_INPUT + 1e-12


@pytest.mark.parametrize(("per_byte", "late"), [(0.2e-9, 0.0), (0.6e-9, 0.0), (5e-9, 4.4e-9)])
def test_new_pages_may_take_three_times_as_long_as_honest_workers_need(per_byte: float, late: float) -> None:
    size = 100 * CALL_BYTES
    worker = Fake(1.0, 1.0, 0.252 + per_byte * size)
    timed = side(worker)
    assert timed(100).wall == pytest.approx(1.0 + late * size)
    assert timed(100).wall == pytest.approx(1.0 + per_byte * size)  # these pages are mapped already
    worker.early = 0.253 + per_byte * 50 * CALL_BYTES
    assert timed(150).wall == pytest.approx(1.0 + late * 50 * CALL_BYTES)


def test_the_baselines_own_time_counts_as_it_is() -> None:
    """What it takes to get ready would make the candidate look faster."""
    assert racing._Side(Fake(1.0, 1.0, 5.0), racing._Stream(SPEC, SEED), nullcontext)(100) == (1.0, 1.0)


def test_where_cpu_time_is_counted_in_coarse_steps_no_block_is_charged() -> None:
    worker = Fake(1.0, 1.0, 5.0)
    worker.counts_cpu = False
    timed = side(worker)
    assert timed(100) == (1.0, 1.0)
    with pytest.raises(UnfairError, match=r"5\.00 s of CPU time were used outside of the measured blocks, 1\.00 s"):
        timed.settle()


def test_cpu_time_between_two_looks_at_the_clock_is_not_lost() -> None:
    """A box is not frozen at once."""
    worker = Fake(1.0, 1.0)
    timed = side(worker)
    timed(100)
    worker.used += 4.252
    assert timed(100).wall == pytest.approx(5.0)


@pytest.mark.parametrize(("more", "fair"), [(-0.1, True), (0.1, False)])
def test_time_lost_on_the_students_side_is_a_fail(more: float, fair: bool) -> None:
    """The baseline's counts without its control. exploits/test_timed.py has workers that sleep."""
    candidate, baseline = side(Fake(1.0, 1.0)), side(Fake(1.0, 1.0))
    control = [Pair(TimedBlock(1, 1.0), TimedBlock(1, 1.0))] * 8
    baseline._spent = 10.0 + 16.0
    candidate._spent = racing.DAWDLING * 10.0 + racing.PATIENCE + more
    message = r"time was lost: its blocks took \d+\.\d s, the baseline's 10\.0 s"
    with nullcontext() if fair else pytest.raises(UnfairError, match=message):
        candidate.expect_haste(baseline, control)


@pytest.mark.parametrize(("outside", "fair"), [(0.0, True), (0.2, True), (0.5, False)])
def test_cpu_time_outside_of_the_blocks_is_bounded(outside: float, fair: bool) -> None:
    worker = Fake(wall=1.0, cpu=1.0)
    timed = side(worker)
    timed(2)
    worker.used += outside
    message = r"0\.50 s of CPU time were used outside of the measured blocks, 1\.00 s inside"
    with nullcontext() if fair else pytest.raises(UnfairError, match=message):
        timed.settle()
