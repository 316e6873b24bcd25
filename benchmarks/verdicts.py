"""How often the judge errs on speed: gradings of answers near what is asked, quiet and beside busy processes.

    python benchmarks/verdicts.py [--quick] [--json benchmarks/results/verdicts.json] [--gradings 100] [--beside 0 4]
                                  [--kinds honest slow] [--sets 1] [--within SECONDS]

A grading judges every timed exercise, out of process and in a sandbox, as `unrolled grade` does; of the notebooks it
keeps these exercises, their checks and what they need. The answers do all of their work several times: as often as
leaves them at 1.5 times what is asked at least (honest), and as often as leaves them at 2/3 of it at most (slow). 100
gradings of each, on a quiet machine and beside 4 busy processes; --quick makes 2. --sets divides the cores of a large
machine: so many gradings at a time, each on two cores of its own, with its own busy processes there. --within ends each
row after so many seconds: no grading is started later, and the row says how many were made. It exits with 1 if an
honest answer lost points, or a slow one earned points for speed on a quiet machine.
"""

from __future__ import annotations

import ast
import itertools
import math
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from nbformat import NotebookNode

import common
from operating_curve import busy
from unrolled import checks
from unrolled.notebook import cells
from unrolled.notebook.cells import grade_id
from unrolled_grader.judge import walk

CORES = 2
EXPECTED = {"honest": "pass", "slow": "fail"}
WORDS = {"honest": "answers at 1.5 of what is asked", "slow": "answers at 2/3 of what is asked"}
CALIBRATIONS = 3
Found = Counter[tuple[str, str]]  # how often a part got a verdict
MARGINS = {"honest": 3 / 2, "slow": 2 / 3}
SLOW = """

_once = {name}
@functools.wraps(_once)
def {name}(*arguments, **options):
    for _ in range({times}):
        result = _once(*arguments, **options)
    return result
"""
"""What makes an answer slow: it does all of its work so many times."""


def main() -> int:
    parser = common.parser(__doc__)
    parser.add_argument("--gradings", type=int, default=100)
    parser.add_argument("--beside", type=int, nargs="*", default=[0, 4], help="busy processes")
    parser.add_argument("--sets", type=int, default=1, help="gradings at a time, each on two cores of its own")
    parser.add_argument("--within", type=float, default=math.inf, metavar="SECONDS", help="for each row")
    parser.add_argument("--kinds", nargs="+", choices=list(WORDS), default=list(WORDS))
    options = parser.parse_args()
    count = 2 if options.quick else options.gradings
    rows: list[dict[str, Any]] = []
    for beside, kind in itertools.product(options.beside, options.kinds):
        deadline = time.monotonic() + options.within
        rows.append(row(kind, beside, *tally(kind, count, beside, options.sets, deadline)))
        common.finish(options, rows)  # after every row: what was found outlives a later failure
    return int(any(line["erred"] for line in rows))


def small(lesson: str) -> NotebookNode:
    """Return a lesson's solution: its first cell, its exercises, the functions that they call, and the checks."""
    nb = cells.read(common.ROOT / "solutions" / lesson / f"{lesson}.ipynb")
    code = [(cell, parsed(cell.source)) for cell in nb.cells if cell.cell_type == "code"]
    wanted = {*checks.lessons()[lesson], *(f"check_{name}" for name in checks.lessons()[lesson])}
    nodes = (node for cell, tree in code if grade_id(cell) in wanted for node in ast.walk(tree))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    called = [any(isinstance(node, ast.FunctionDef) and node.name in used for node in tree.body) for _, tree in code]
    called[0] = True
    nb.cells = [cell for (cell, _), so in zip(code, called, strict=True) if so or grade_id(cell) in wanted]
    return nb


def parsed(source: str) -> ast.Module:
    """Return the tree of a cell, without what only a notebook understands."""
    return ast.parse("\n".join(line for line in source.split("\n") if not line.lstrip().startswith(("%", "!"))))


def slowed(lesson: str, repeats: dict[str, int]) -> NotebookNode:
    """Return what `small` returns, with the exercises of which speed is asked made slow."""
    nb = small(lesson)
    nb.cells[0].source += "\nimport functools"
    for cell in nb.cells:
        if (name := grade_id(cell)) in repeats:
            cell.source += SLOW.format(name=name, times=repeats[name])
    return nb


def judged(nb: NotebookNode, lesson: str, names: Iterable[str]) -> Any:
    """Return the verdicts on these checks of a notebook."""
    # Imported late: a process of its own imports the judge, so that its locks are its own.
    from unrolled_grader.judge.verdicts import Submission, judge

    return judge(Submission("benchmark", lesson, nb, {name: checks.lessons()[lesson][name] for name in names}))


def timed_lessons() -> dict[str, list[str]]:
    """Return the checks with points for speed, by lesson."""
    every = checks.lessons().items()
    found = {
        lesson: [name for name, spec in specs.items() if spec.speed and spec.speed.points] for lesson, specs in every
    }
    return {lesson: names for lesson, names in found.items() if names}


def work_to_do(kind: str) -> dict[str, int]:
    """Return how often each timed answer must do its work to keep to its margin of what is asked, as measured now.

    Work that is done again finds its data in the cache and takes less time, so that one measurement does not tell. A
    slow answer does it as often as any measurement asked for, an honest one as seldom. What is not measured is left
    out: it waits for a GPU, or its cases count launches or bytes, and refuse who does all of the work again.
    """
    repeats = {name: 1 for names in timed_lessons().values() for name in names}
    for number in range(CALIBRATIONS):
        for lesson, timed in timed_lessons().items():
            specs = {name: checks.lessons()[lesson][name] for name in timed if name in repeats}
            measured = walk.Walk(slowed(lesson, repeats), specs, boxed=True, timed=True)
            timed_parts = [score for parts in measured.scores.values() for score in parts if score.timings]
            for name in specs.keys() - {score.check for score in timed_parts}:
                del repeats[name]
            for score in timed_parts:
                timing = score.timings[0]
                times = repeats[score.check] * timing["ratio"] / (MARGINS[kind] * timing["at_least"])
                if kind == "slow":
                    repeats[score.check] = max(repeats[score.check], math.ceil(times))
                elif number == 0 or times < repeats[score.check]:
                    repeats[score.check] = max(1, math.floor(times))
    return repeats


def grading(kind: str, repeats: dict[str, int]) -> Found:
    """Make one grading; return how often each part got each verdict."""
    found = Found()
    for lesson, timed in timed_lessons().items():
        names = [name for name in timed if name in repeats]
        verdicts = judged(slowed(lesson, repeats), lesson, names) if names else None
        for score in verdicts.scores if verdicts else ():
            if "/" in score.part:
                found[score.part, score.verdict] += 1
                if score.verdict != EXPECTED[kind]:
                    print(f"  {score.part}: {score.verdict}, seeds {verdicts.seeds}: {score.detail}", flush=True)
    return found


def tally(kind: str, count: int, beside: int, sets: int, deadline: float) -> tuple[Found, int]:
    """Make up to `count` gradings, on `sets` pairs of cores at a time; return verdicts, and how many they were."""
    shares = [count // sets + (number < count % sets) for number in range(sets)]
    jobs = [(kind, share, beside, number, sets, deadline) for number, share in enumerate(shares) if share]
    with multiprocessing.get_context("spawn").Pool(sets) as pool:
        found = pool.starmap(several, jobs, chunksize=1)
    return sum((verdicts for verdicts, _ in found), Found()), sum(made for _, made in found)


def several(kind: str, count: int, beside: int, number: int, sets: int, deadline: float) -> tuple[Found, int]:
    """Make gradings one after the other, on one pair of cores; return verdicts, and how many were made in time."""
    if sets > 1:
        os.sched_setaffinity(0, range(number * CORES, number * CORES + CORES))
    tempfile.tempdir = tempfile.mkdtemp(prefix="verdicts-")  # locks of its own: other cores are other machines here
    total, repeats, done = Found(), work_to_do(kind), 0
    with busy(beside):
        while done < count and time.monotonic() < deadline:
            started = time.monotonic()
            total.update(grading(kind, repeats))
            done += 1
            print(f"{kind}, beside {beside}, {done}: {time.monotonic() - started:.0f} s", flush=True)
    return total, done


def row(kind: str, beside: int, found: Found, count: int) -> dict[str, Any]:
    """Return counts of verdicts, and what is not as expected."""
    verdicts = Counter[str]()
    for (_, verdict), times in found.items():
        verdicts[verdict] += times
    wrong = {f"{part}: {was}": times for (part, was), times in sorted(found.items()) if was != EXPECTED[kind]}
    erred = verdicts.total() - verdicts["pass"] - verdicts["inconclusive"]
    if kind == "slow":
        erred = verdicts["pass"] + (verdicts["inconclusive"] if beside == 0 else 0)
    name = f"{WORDS[kind]}, {f'beside {beside} busy processes' if beside else 'on a quiet machine'}"
    counts = {"gradings": count, "parts": verdicts.total(), "verdicts": dict(verdicts)}
    share = verdicts["inconclusive"] / max(1, verdicts.total())
    return {"name": name, **counts, "inconclusive_share": share, "erred": erred, "not_as_expected": wrong}


if __name__ == "__main__":
    sys.exit(main())
