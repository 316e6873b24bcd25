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
from unrolled_grader.judge.verdicts import settling_outcome

CHECK, LESSON = "batch_affine", "01_matrix_parallelism"
SHARE, CONTROL_SHARE = 0.22, 2.0  # of the speed that is asked for
BASE = """\
import gc, mmap, os, random, signal, time
orders = next(thing for thing in gc.get_objects() if type(thing) is dict and {"prepare", "go"} <= thing.keys())
prepare, go = orders["prepare"], orders["go"]
sizes, begun = [], set()

def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

def early(order, share):
    "Do this share of the coming block's work before the clock starts."
    for inputs in prepare.__self__.block:
        work(share * WORK)
        begun.add(id(inputs["x"]))

def before(order):
    "Before a block."

def after(order):
    "In a block, behind its calls."

def preparing(order):
    done = prepare(order)
    begun.clear()
    grown = len(order["inputs"]) > max([0, *sizes])
    sizes.append(len(order["inputs"]))
    if grown and GROWING:
        early(order, GROWING)
    before(order)
    return done

def going(order):
    done = go(order)
    after(order)
    return done

def batch_affine(x, weight, bias):
    work(WORK * (1 - MOVED) if id(x) in begun else WORK)
    return x @ weight.T + bias

orders["prepare"], orders["go"] = preparing, going
"""
"""What every answer has: hooks before and in a block, and a call of `WORK` seconds of CPU time."""
STALLS: dict[str, dict[str, str]] = {
    "without a trick": {},
    "asleep in a call of the ninth pair": {"after": "if len(sizes) == FIRST + 9: time.sleep(7)"},
    "asleep in each block from the ninth pair on": {"after": "if len(sizes) >= FIRST + 9: time.sleep(1.2)"},
    "asleep before blocks from the ninth pair on": {"before": "if len(sizes) >= FIRST + 9: time.sleep(2.0)"},
    "asleep from the seventeenth pair on": {"after": "if len(sizes) >= FIRST + 17: time.sleep(1.0)"},
    "asleep from the third pair on": {"after": "if len(sizes) >= FIRST + 3: time.sleep(2.4)"},
    "asleep a little in each block": {"after": "time.sleep(0.08)"},
    "asleep ever longer": {"after": "time.sleep(0.01 * len(sizes))"},
    "asleep as long as goes unnoticed": {
        "first": "begin = []",
        "before": "begin[:] = [time.monotonic()]",
        "after": "time.sleep(1.8 * (time.monotonic() - begin[0]))",
    },
    "asleep by chance": {"after": "if random.random() < 0.3: time.sleep(random.random())"},
    "every second block slow": {"after": "if len(sizes) % 2: work(0.1)"},
    "uneven by chance": {"after": "work(random.choice((0.0, 0.0, 0.02, 0.3)))"},
    "slow at first, so that blocks are short": {"after": "if len(sizes) <= FIRST: work(1.0)"},
    "a quarter of the work before the clock": {"first": "MOVED = 0.25", "before": "early(order, MOVED)"},
    "most of the work before the clock in the first pairs": {
        "first": "MOVED = 0.75",
        "before": "if len(sizes) in (FIRST + 2, FIRST + 3): early(order, MOVED)",
        "after": "if len(sizes) >= FIRST + 9: time.sleep(1.5)",
    },
    "CPU time burnt in some blocks, work moved in others": {
        "first": "MOVED = 0.75",
        "before": "if len(sizes) % 4: early(order, MOVED)",
        "after": "if len(sizes) % 4 == 0: work(0.4)",
    },
    "new pages in every block": {
        "after": "memory = mmap.mmap(-1, 2**27)\nfor place in range(0, 2**27, 4096): memory[place] = 1"
    },
    "a stopped process": {
        "after": """\
if len(sizes) >= FIRST + 9:
    if os.fork() == 0:
        time.sleep(1.0)
        os.kill(os.getppid(), signal.SIGCONT)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGSTOP)"""
    },
    "children that burn CPU time": {"first": "for _ in range(4):\n    if os.fork() == 0:\n        while True: pass"},
    "cold caches for the baseline": {"first": "cold = np.zeros(2**26, np.uint8)", "after": "cold[:] += 1"},
}
"""Twenty ways: what is run first, and what the hooks do. `FIRST` is about where the warm-up ends: later ones count."""
GROWING = 0.75
"""The share of a block's work that is done early where its pages are new, but by the answer without a trick."""


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
    return speed.verdict, speed.points, [settling_outcome(timing["outcome"], timing) for timing in speed.timings]


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
            seconds, said = round(time.monotonic() - started, 1), ", ".join(outcomes)
            print(f"{name}, {where}: {verdict}, {points:g} points, {said} ({seconds} s)", flush=True)
            row = {"name": f"{name}, {where}", "share": asked, "verdict": verdict, "points": points}
            yield row | {"measured": said, "seconds": seconds}


def main() -> int:
    parser = common.parser(__doc__)
    parser.add_argument("--beside", type=int, nargs="*", default=[0, 3], help="busy processes")
    options = parser.parse_args()
    names = list(STALLS)[:4] if options.quick else list(STALLS)
    found: list[dict[str, Any]] = []
    for beside in [0] if options.quick else options.beside:
        found += rows(beside, names)
        common.save(options, found, ["numpy", "ipython"])
    earned = [one["name"] for one in found if (one["points"] > 0) != one["name"].startswith("control")]
    print(f"not as it should be: {', '.join(earned)}" if earned else "No stall earned the points; the control did.")
    return int(bool(earned))


if __name__ == "__main__":
    sys.exit(main())
