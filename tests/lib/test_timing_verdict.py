"""What a verdict says, draws and stores; and what measure and the ceilings return."""

import json
import math
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from fake_gpu import PaperClock
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from unrolled.timing import Pair, TimedBlock, Verdict, copy_bandwidth, matmul_peak, measure, measuring
from unrolled.timing.blocks import blas_threads
from unrolled.timing.verdict import conclude, fair, untimed, where_able

QUIET = [Pair(TimedBlock(1, 1.0), TimedBlock(1, 1.0))] * 8
NOISY = [Pair(TimedBlock(1, 1.0), TimedBlock(1, 1.5)), Pair(TimedBlock(1, 1.5), TimedBlock(1, 1.0))] * 4


def pairs(*ratios: float, cpu: float = math.nan) -> list[Pair]:
    return [Pair(TimedBlock(1, 0.02, 0.01), TimedBlock(10, 0.2 / ratio, 0.1 / cpu), "candidate") for ratio in ratios]


@pytest.mark.parametrize(
    ("ratios", "at_least", "text"),
    [
        ([38.1, *[41.2] * 6, 44.3], 2.5, "41x faster than the baseline (38 to 44); at least 2.5x was asked: pass."),
        ([1.3] * 8, 2.5, "1.3x faster than the baseline (1.3 to 1.3); at least 2.5x was asked: fail."),
        (
            [0.3, *[0.31] * 6, 0.32],
            2.5,
            "3.2x slower than the baseline (3.1 to 3.3); at least 2.5x faster was asked: fail.",
        ),
        ([0.99] * 4 + [1.02] * 4, 50, "About as fast as the baseline; at least 50x was asked: fail."),
        (
            [0.43, 0.9, 0.91, 1.4] * 2,
            50,
            "1.1x slower than the baseline (from 2.3x slower to 1.4x faster); at least 50x faster was asked: fail.",
        ),
        (
            [2.3] * 32,
            2.5,
            "2.3x faster than the baseline (2.3 to 2.3); at least 2.5x was asked: inconclusive. "
            "Too close to call after 32 pairs.",
        ),
        ([2400.0] * 8, 1000, "2,400x faster than the baseline (2,400 to 2,400); at least 1,000x was asked: pass."),
        (
            [0.01],
            2.5,
            "100x slower than the baseline (100 to 100); at least 2.5x faster was asked: fail. "
            "Stopped after one pair, far below what was asked.",
        ),
        (
            [],
            2.5,
            "Not one pair could be measured; at least 2.5x was asked: inconclusive. "
            "Time ran out after 0 of at least 8 pairs.",
        ),
    ],
)
def test_a_verdict_in_plain_sentences(ratios: list[float], at_least: float, text: str) -> None:
    assert str(conclude(pairs(*ratios), QUIET, at_least)) == text


BUSY = "The machine is too busy for a fair measurement"


@pytest.mark.parametrize(
    ("measured", "at_least", "text"),
    [
        (pairs(*[1.3] * 8), 2.5, f"inconclusive. {BUSY}: try again when it is quieter."),
        (pairs(*[2.7, 3.7] * 4), 10, f"{BUSY}: a quieter one will hardly change this, faster code will."),
        (
            pairs(*[1.5, 9.0] * 16, cpu=4.0),
            2.5,
            "4x faster than the baseline in CPU time (4 to 4); at least 2.5x was asked: pass. "
            "The machine is busy, so CPU time decided.",
        ),
    ],
)
def test_a_busy_machine_in_plain_sentences(measured: list[Pair], at_least: float, text: str) -> None:
    assert str(conclude(measured, NOISY, at_least)).endswith(text)


def test_a_clock_that_stands_still_never_divides_by_zero() -> None:
    assert Pair(TimedBlock(1, 0.02, 0.0), TimedBlock(1, 0.0, 0.0)).ratio == math.inf
    assert math.isnan(Pair(TimedBlock(1, 0.02), TimedBlock(1, 0.01)).cpu_ratio)


seconds = st.floats(1e-6, 10)
block = st.builds(TimedBlock, st.integers(1, 10**6), seconds, st.one_of(seconds, st.just(math.nan)))
some_pairs = st.lists(st.builds(Pair, block, block, st.sampled_from(["baseline", "candidate"])), max_size=10)


@given(some_pairs, some_pairs, st.floats(0.1, 100))
def test_through_json_and_back(measured: list[Pair], control: list[Pair], at_least: float) -> None:
    verdict = conclude(measured, control, at_least, threads="1 thread", seconds=0.5, seed=3)
    text = json.dumps(verdict.to_dict(), allow_nan=False)  # NaN would be no JSON for a browser
    back = Verdict.from_dict(json.loads(text))
    assert repr(back) == repr(verdict)
    assert str(back) == str(verdict)


def test_what_is_no_verdict_no_input_and_no_number_of_threads_is_refused() -> None:
    data = conclude(pairs(*[9.0] * 8), [], 2.5).to_dict()
    del data["pairs"], data["seed"]
    with pytest.raises(ValueError, match="seed, pairs missing"):
        Verdict.from_dict(data)
    with pytest.raises(ValueError, match="inputs is empty"):
        measure(len, [])
    for number in (0, -1):
        with pytest.raises(ValueError, match="threads"), blas_threads(number):
            pass


@pytest.mark.parametrize("ratios", [[9.0] * 8, [0.31] * 8, [1.5, 9.0] * 16, []])
def test_draw(ratios: list[float]) -> None:
    verdict = conclude(pairs(*ratios, cpu=4.0), NOISY, 2.5)
    ax = Figure().add_subplot()
    verdict.draw(ax)
    assert verdict.outcome in ax.get_title()
    assert ax.get_title().startswith("3.2x slower") == (ratios == [0.31] * 8)
    assert "asked: 2.5x" in [line.get_label() for line in ax.get_lines()]
    assert ax.get_legend() is not None
    assert ("CPU time" in ax.get_ylabel()) == (verdict.witness == "cpu time")
    points = [line for line in ax.get_lines() if line.get_label() == "measured pairs"]
    assert [len(np.asarray(line.get_xdata())) for line in points] == ([len(ratios)] if ratios else [])


@pytest.mark.parametrize("module", ["timing", "ops"])
def test_what_is_heavy_is_not_imported_before_it_is_needed(module: str) -> None:
    heavy = {"matplotlib", "scipy", "threadpoolctl", "sklearn"} | ({"concurrent.futures"} if module == "ops" else set())
    code = f"import sys, unrolled.{module}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> PaperClock:
    paper = PaperClock()
    for name in ("perf_counter", "process_time"):
        monkeypatch.setattr(time, name, getattr(paper, name))
    return paper


@pytest.mark.parametrize("per_call", [2e-6, 3e-4, 0.03])
def test_measure_takes_the_median_within_its_budget(clock: PaperClock, per_call: float) -> None:
    measured = measure(clock.pass_by, {"seconds": per_call}, budget=0.5)
    assert [measured.seconds, measured.low, measured.high] == pytest.approx([per_call] * 3)
    assert measured.calls == sum(block.calls for block in measured.blocks)
    assert 0.3 < clock.now <= 0.5
    assert min(block.wall for block in measured.blocks) >= measuring.SHORT_BLOCK


def test_measure_calls_a_slow_function_once_and_leaves_out_a_slow_first_call(clock: PaperClock) -> None:
    measured = measure(clock.pass_by, {"seconds": 7.0}, budget=0.5)
    assert (measured.seconds, measured.calls, clock.now) == (7.0, 1, 7.0)
    assert str(measured) == "7 s per call (7 s to 7 s, 1 call)"
    times = iter([0.2] + [0.01] * 99)
    assert measure(lambda: clock.pass_by(next(times)), {}).high == pytest.approx(0.01)


def test_measure_walks_through_several_inputs(clock: PaperClock) -> None:
    measured = measure(clock.pass_by, [{"seconds": seconds} for seconds in (0.01, 0.02, 0.03)])
    assert [block.wall for block in measured.blocks[1:7]] == pytest.approx([0.03, 0.01, 0.02] * 2)
    assert measured.seconds == pytest.approx(0.02)


def test_ceilings_count_bytes_and_operations_and_are_the_best_of_several(
    clock: PaperClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def product(a: Any, b: Any, out: Any) -> None:
        dtypes.update((a.dtype, b.dtype, out.dtype))
        clock.pass_by(next(times))

    times, dtypes = iter([0.5, 0.03, 0.01] + [0.02] * 999), set()
    monkeypatch.setattr(measuring, "COPY_BYTES", 2**20)
    monkeypatch.setattr(np, "copyto", lambda target, source: clock.pass_by(0.01))
    monkeypatch.setattr(np, "matmul", product)
    assert copy_bandwidth() == pytest.approx(2 * 2**20 / 0.01)
    assert matmul_peak() == pytest.approx(2 * 768**3 / 0.01)
    assert dtypes == {np.dtype("f4")}
    dtypes.clear()
    assert matmul_peak(np.float64) == pytest.approx(2 * 768**3 / 0.02)
    assert dtypes == {np.dtype("f8")}


# Where a machine may be unable to show a speed


@pytest.mark.parametrize(
    ("ratio", "model", "outcome", "excused"),
    [
        (1.9, 1.0, "pass", False),  # who passes needs no model
        (1.0, 1.9, "fail", False),  # the machine can, the candidate cannot
        (1.4, 1.9, "inconclusive", False),  # by more than the slack
        (1.4, 1.7, "inconclusive", True),  # within it
        (1.0, 1.1, "inconclusive", True),  # two cores that are no faster than one
        (0.4, 0.9, "fail", False),  # slow on any machine
        (0.01, 1.9, "fail", False),
    ],
)
def test_a_model_in_the_candidates_place_tells_whether_the_machine_is_the_cause(ratio, model, outcome, excused):
    verdict = where_able(conclude(pairs(*[ratio] * 8), QUIET, 1.6), conclude(pairs(*[model] * 8), QUIET, 1.6))
    assert verdict.outcome == outcome
    assert verdict.excused == excused
    assert Verdict.from_dict(json.loads(json.dumps(verdict.to_dict()))).excused == excused
    if excused:
        than = "hardly more" if model >= 1.6 else "so this machine cannot show it"
        assert str(verdict).endswith(f"The course's own answer is {model:.2g} times as fast here, {than}.")
        assert str(verdict).startswith(f"{ratio:.2g} times as fast as the baseline")


@pytest.mark.parametrize(("ratio", "outcome"), [(0.05, "fail"), (0.2, "inconclusive")])
def test_time_for_few_pairs_excuses_nobody_who_is_far_slower_than_the_model(ratio, outcome):
    """Twice the work beside three busy loops was 0.17 times as fast as one rank, and earned its point."""
    found = where_able(conclude(pairs(ratio), QUIET, 1.6), conclude(pairs(*[0.5] * 8), QUIET, 1.6))
    assert (found.outcome, found.excused) == (outcome, False)


@pytest.mark.parametrize(
    ("cpu", "models", "count", "outcome"),
    [
        (1.8, 1.8, 8, "pass"),
        (1.0, 1.8, 8, "fail"),  # each rank does its work twice
        (1.4, 1.8, 8, "inconclusive"),
        (1.8, 1.8, 7, "inconclusive"),  # too few
        (1.0, 1.3, 8, "inconclusive"),  # ranks that wait burn CPU time here: it tells nothing
    ],
)
def test_where_the_model_is_held_up_cpu_time_decides(cpu, models, count, outcome):
    """What others on the machine take from ranks, that is as with the model; in wall time both have 0.2 of a rank."""
    verdict = conclude(pairs(*[0.2] * count, cpu=cpu), QUIET, 1.6)
    found = where_able(verdict, conclude(pairs(*[0.2] * 8, cpu=models), QUIET, 1.6))
    assert (found.outcome, found.excused) == (outcome, False)
    assert (found.witness == "cpu time") == (outcome != "inconclusive")
    assert found.ratio == pytest.approx(cpu if outcome != "inconclusive" else 0.2)


def test_sleeping_ranks_pass_by_no_clock():
    asleep = [Pair(TimedBlock(1, 0.02, 0.01), TimedBlock(10, 1.0, 0.05)) for _ in range(8)]
    found = where_able(conclude(asleep, QUIET, 1.6), conclude(pairs(*[0.6] * 8, cpu=1.8), QUIET, 1.6))
    assert found.outcome != "pass"
    assert not found.excused


@pytest.mark.parametrize(
    ("seconds", "ratios", "excused"),
    [
        ([1, 1, 1, 1], [2, 2, 2, 2], True),
        ([1, 1, 1, 1], [2, 2, 2, 1.2], False),  # 2.5 is asked, and the last baseline is like the others
        ([1, 1, 1, 3], [2, 2, 2, 1.2], True),  # it was held up itself: this pair says nothing
        ([1, 3], [2, 0.1], True),  # the lower of two is the usual one
        ([1, 3], [1.2, 2], False),
    ],
)
def test_no_fair_pair_may_be_below_half_of_what_is_asked(seconds, ratios, excused):
    """A fair pair: its baseline took what it takes in the others."""
    found = [Pair(TimedBlock(1, s), TimedBlock(1, s / ratio)) for s, ratio in zip(seconds, ratios, strict=True)]
    assert len(fair(found)) == seconds.count(1)
    verdict = conclude(found, NOISY, 2.5)
    assert (verdict.outcome, verdict.excused) == ("inconclusive", excused)


def test_what_cannot_be_timed_is_open_says_why_and_was_not_seen():
    verdict = untimed("too busy to start the ranks", 1.6)
    assert (verdict.outcome, verdict.excused) == ("inconclusive", False)
    assert str(verdict).endswith("inconclusive. Too busy to start the ranks.")
