"""How often the speed rule errs: real workloads of known ratio, on an idle machine and beside busy processes.

    python benchmarks/operating_curve.py [--quick] [--json benchmarks/results/operating_curve.json] [--runs 200]

A workload is the same small step done many times. The baseline does all of them, the candidate so many fewer that it is
1.5 times as fast as asked (honest), or 0.8 or 2/3 as fast (slow). 200 verdicts of each, beside 0, 1, 2 and 4 processes
that it starts and stops; --quick makes 10 of each. "pairs beyond" is the share of pairs that look so many times
as fast as they are, which is what a clear pass rests on (`rule.is_clear`). It exits with 1 if an honest function failed
or slow code passed. Start it on a quiet machine, or its first rows are not idle. It takes about 20 minutes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import common
from unrolled.timing import Verdict, compare, measure, rule

RUNS, QUICK_RUNS = 200, 10
BUSY = (0, 1, 2, 4)
MARGINS = {"honest, 1.5 T": Fraction(3, 2), "slow, 0.8 T": Fraction(4, 5), "slow, 0.67 T": Fraction(2, 3)}
BEYOND = sorted(rule.CLEAR.values())
AT_LEAST = (2.5, 4, 20)  # T, with each of the workloads
STEPS = 240  # of the baseline; every candidate's number of steps is then whole, and its true ratio exact
BASELINE_SECONDS = 0.0105
# Arithmetic in Python and copies of an array larger than a core's cache; ends with its parent.
BUSY_SOURCE = """
import os
import numpy as np
parent, source = os.getppid(), np.ones(2**20)
target = source.copy()
while os.getppid() == parent:
    sum(i * i for i in range(100_000))
    np.copyto(target, source)
"""


def python_step(x: np.ndarray, grain: int) -> float:
    """Run a plain loop."""
    total = 0.0
    for i in range(12 * grain):
        total += i * 0.5
    return total


def numpy_step(x: np.ndarray, grain: int) -> float:
    """Do elementwise work within one core's cache."""
    for _ in range(grain):
        y = x * 1.5
        y += x
    return float(y[0, 0])


def blas_step(x: np.ndarray, grain: int) -> float:
    """Multiply small matrices."""
    for _ in range(grain):
        y = x @ x
    return float(y[0, 0])


def mixed_step(x: np.ndarray, grain: int) -> float:
    """Do all three of the other steps."""
    return python_step(x, grain) + numpy_step(x, grain) + blas_step(x, grain)


def repeat(workload: Any, steps: int, x: np.ndarray) -> float:
    """Do `steps` steps, and return the sum of their results."""
    step, grain = workload
    return sum(step(x, grain) for _ in range(steps))


def make_input(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return {"x": 48 x 48 float32}."""
    return {"x": rng.random((48, 48), dtype=np.float32)}


def verdict(workload: Any, at_least: float, margin: Fraction, seed: int) -> Verdict:
    """Compare a candidate that is `margin` times as fast as asked."""
    steps = STEPS / (Fraction(at_least) * margin)
    assert steps.denominator == 1, "the ratio would not be exact"
    baseline, candidate = (partial(repeat, workload, number) for number in (STEPS, int(steps)))
    return compare(candidate, baseline, inputs=make_input, at_least=at_least, seed=seed)


def workloads() -> Iterator[tuple[Any, int]]:
    """Yield the four kinds of workload: a step, and how often it is done inside so that all of them take 10 ms here."""
    x = make_input(np.random.default_rng(0))["x"]
    for step in (python_step, numpy_step, blas_step, mixed_step):
        seconds = measure(step, {"x": x, "grain": 10}, budget=0.2).seconds
        yield step, max(1, round(10 * BASELINE_SECONDS / STEPS / seconds))


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep so many processes busy during the block."""
    started = [subprocess.Popen([sys.executable, "-c", BUSY_SOURCE]) for _ in range(processes)]
    try:
        time.sleep(1.0 if started else 0.0)  # until they have imported NumPy
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


def row(name: str, margin: Fraction, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return counts of outcomes, how far the measured ratio was off, and how long a verdict took."""
    outcomes, seconds = [one.outcome for one in verdicts], [one.seconds for one in verdicts]
    counts = {outcome: outcomes.count(outcome) for outcome in ("pass", "fail", "inconclusive")}
    counts |= {"by_cpu_time": sum(one.witness == "cpu time" for one in verdicts)}
    counts |= {"noisy": sum(one.noisy for one in verdicts)}
    off = statistics.median(one.ratio / (one.at_least * float(margin)) for one in verdicts)
    pairs = [pair.ratio / (one.at_least * float(margin)) for one in verdicts for pair in one.pairs]
    noise = {f"pairs_beyond_{c:g}": sum(pair >= c for pair in pairs) / len(pairs) for c in BEYOND}
    times = {"median_s": statistics.median(seconds), "longest_s": max(seconds)}
    return {
        "name": name,
        "runs": len(verdicts),
        **counts,
        "measured_over_true": off,
        "pairs": len(pairs),
        **noise,
        **times,
    }


def rows(runs: int) -> Iterator[dict[str, Any]]:
    """Yield one row for each margin and number of busy processes."""
    kinds = list(product(AT_LEAST, workloads()))
    for processes in BUSY:
        where = "idle" if processes == 0 else f"beside {processes} busy process{'es' * (processes > 1)}"
        for name, margin in MARGINS.items():
            with busy(processes):
                drawn = ((seed, *kinds[seed % len(kinds)]) for seed in range(runs))
                verdicts = [verdict(workload, at_least, margin, seed) for seed, at_least, workload in drawn]
            yield row(f"{name}, {where}", margin, verdicts)


def main() -> int:
    """Print the table and write the record; return 1 if a verdict was wrong."""
    parser = common.parser(__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="verdicts of each")
    options = parser.parse_args()
    measured: list[dict[str, Any]] = []
    for one in rows(QUICK_RUNS if options.quick else options.runs):
        measured.append(one)
        common.finish(options, measured)
    wrong = sum(one["fail" if one["name"].startswith("honest") else "pass"] for one in measured)
    print("No honest function failed and no slow code passed." if not wrong else f"{wrong} verdicts are wrong.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
