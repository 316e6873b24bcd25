"""Whether an answer that is too slow can stall its way to the points: twenty staged ways, judged as in a grading.

    python benchmarks/dawdlers.py [--quick] [--json benchmarks/results/dawdlers.json] [--beside 0 3]

Every answer to `batch_affine` here is right and 4.5 times too slow. It takes over its worker and sleeps, calls
unevenly, moves work out of the clock or maps new pages, so that the judge shall find no evidence. On a quiet machine
and beside 3 busy processes; --quick judges the first four on a quiet machine. A control does the same work without a
trick at twice what is asked. It exits with 1 if an answer earned points for its speed or the control did not.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from textwrap import indent
from typing import Any

from nbformat.v4 import new_code_cell, new_notebook

import common
import verdicts
from operating_curve import busy
from unrolled import checks
from unrolled.timing import Verdict
from unrolled_grader.judge.verdicts import UNDECIDED

CHECK, LESSON = "batch_affine", "01_matrix_parallelism"
SHARE, CONTROL_SHARE = 0.22, 2.0  # of the speed that is asked for
GROWING = 0.75  # of a block's work is done early where its pages are new, but by the answer without a trick
BASE, STALLS = common.table("dawdlers").values()


def answer(seconds: float, stall: Mapping[str, str], growing: float) -> str:
    """Return the source of an answer whose calls take so many seconds of CPU time."""
    names = f"import numpy as np\nWORK, MOVED, GROWING, FIRST = {seconds!r}, {growing!r}, {growing!r}, 8\n"
    hooks = [f"def {hook}(order):\n{indent(does, '    ')}\n" for hook, does in stall.items() if hook != "first"]
    return "".join([names, BASE, stall.get("first", ""), "\n", *hooks])


def judged(source: str) -> tuple[str, float, list[str]]:
    """Judge an answer; return verdict and points for speed, and what each measurement said."""
    nb = new_notebook(cells=[_cell(source, CHECK), _cell(f"check.{CHECK}({CHECK})", f"check_{CHECK}")])
    right, speed = verdicts.judged(nb, LESSON, [CHECK]).scores
    if right.verdict != "pass":
        raise SystemExit(f"the answer is not right: {right.detail}")
    return speed.verdict, speed.points, list(map(outcome, speed.timings))


def outcome(timing: Mapping[str, Any]) -> str:
    """Return what a measurement says; UNDECIDED is an inconclusive one that is not the machine's fault."""
    open_still = timing["outcome"] == "inconclusive" and not Verdict.from_dict(timing).excused
    return UNDECIDED if open_still else timing["outcome"]


def _cell(source: str, name: str) -> Any:
    cell = new_code_cell(source)
    cell.metadata["nbgrader"] = {"grade_id": name, "grade": name.startswith("check_"), "solution": True}
    return cell


def allowed_seconds() -> float:
    """Return the CPU seconds of a call as fast as asked, no faster: the baseline's over the factor, in one thread."""
    from threadpoolctl import threadpool_limits

    speed = checks.lessons()[LESSON][CHECK].speed
    assert speed is not None
    times = []
    with threadpool_limits(1):
        for one in speed.draw_inputs(0, 16):
            start = time.thread_time()
            speed.baseline(**one)
            times.append(time.thread_time() - start)
    return float(statistics.median_high(times) / speed.at_least)


def rows(beside: int, names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield a row a way, the control first: judge it, print what it earned."""
    allowed = allowed_seconds()
    where = "quiet" if beside == 0 else f"beside {beside} busy processes"
    ways = [("control", {}, CONTROL_SHARE), *((name, STALLS[name], SHARE) for name in names)]
    with busy(beside):
        for name, stall, asked in ways:
            started = time.monotonic()
            verdict, points, outcomes = judged(answer(allowed / asked, stall, GROWING if stall else 0.0))
            seconds, measured = round(time.monotonic() - started, 1), ", ".join(outcomes)
            print(f"{name}, {where}: {verdict}, {points:g} points, {measured} ({seconds} s)", flush=True)
            row = {"name": f"{name}, {where}", "share": asked, "verdict": verdict, "points": points}
            yield row | {"measured": measured, "seconds": seconds}


def main() -> int:
    parser = common.parser(__doc__)
    parser.add_argument("--beside", type=int, nargs="*", default=[0, 3], help="busy processes")
    options = parser.parse_args()
    names = list(STALLS)[:4] if options.quick else list(STALLS)
    found: list[dict[str, Any]] = []
    for beside in [0] if options.quick else options.beside:
        found += rows(beside, names)
        common.save(options, found)
    earned = [one["name"] for one in found if (one["points"] > 0) != one["name"].startswith("control")]
    print(f"not as it should be: {', '.join(earned)}" if earned else "No stall earned the points; the control did.")
    return int(bool(earned))


if __name__ == "__main__":
    sys.exit(main())
