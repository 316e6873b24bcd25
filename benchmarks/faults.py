"""A class graded while its processes are killed: each submission once, with the scores of an undisturbed run.

    python benchmarks/faults.py [--quick] [--json benchmarks/results/faults.json] [--students 60] [--kills 30]

Half of the class hand in the solution, half the notebook as it was handed out; speeds are not measured, since they may
differ. First one run undisturbed. Then, in another course, `unrolled grade` is started again and again, while every few
seconds one of its processes is ended with `kill -9`: the coordinator, a process of its pool, a warm process, or what
runs or holds student code. It exits with 1 if a score differs or a submission was graded twice.
"""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import nbformat

import common
from grading import SCRIPTS, make_course
from unrolled_grader.jobs import record

LESSON = "00_start_here"
EVERY = (1.0, 9.0)  # seconds from one kill to the next


def main() -> int:
    parser = common.parser(__doc__)
    parser.add_argument("--students", type=int, default=60)
    parser.add_argument("--kills", type=int, default=30)
    options = parser.parse_args()
    students, kills = (8, 8) if options.quick else (options.students, options.kills)
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        calm, hit = Path(folder, "calm"), Path(folder, "hit")
        for root in (calm, hit):
            root.mkdir()
            hand_in(root, students)
        started = time.perf_counter()
        subprocess.run(command(options.threads), cwd=calm, check=True, stdout=subprocess.DEVNULL)
        undisturbed = time.perf_counter() - started
        victims, seconds = graded_under_fire(hit, kills, options.threads)
        different = len(scores(calm) ^ scores(hit))
        twice = graded_twice(hit)
    row = {
        "name": f"a class of {students} under kill -9",
        "kills": sum(victims.values()),
        **{f"{kind}_killed": victims[kind] for kind in ("coordinator", "pool", "warm", "worker")},
        "undisturbed_s": undisturbed,
        "seconds": seconds,
        "scores_that_differ": different,
        "graded_twice": twice,
    }
    common.finish(options, [row], ["numpy", "nbgrader"])
    return int(bool(different or twice))


def hand_in(root: Path, students: int) -> None:
    """Make a course in which every second student changed nothing."""
    make_course(root, LESSON, students)
    untouched = nbformat.read(root / "notebooks" / LESSON / f"{LESSON}.ipynb", as_version=4)
    for folder in sorted((root / "grader" / "submitted").iterdir())[::2]:
        nbformat.write(untouched, folder / LESSON / f"{LESSON}.ipynb")


def command(jobs: int) -> list[str]:
    return [str(SCRIPTS / "unrolled"), "grade", LESSON, "--no-timing", "--jobs", str(jobs)]


def graded_under_fire(root: Path, kills: int, jobs: int) -> tuple[Counter[str], float]:
    """Grade until a run comes to its end, while processes are killed.

    Returns how many of each kind were killed, and the seconds.
    """
    victims: Counter[str] = Counter()
    started = time.perf_counter()
    while True:
        with subprocess.Popen(command(jobs), cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            while run.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    run.wait(random.uniform(*EVERY))
                found = processes(run.pid)
                if run.poll() is None and victims.total() < kills and found:
                    kind = random.choice(sorted({kind for kind, _ in found}))
                    pid = random.choice([pid for other, pid in found if other == kind])
                    with suppress(ProcessLookupError):
                        subprocess.run(["kill", "-9", str(pid)], check=False)
                        victims[kind] += 1
            if run.returncode == 0:
                return victims, time.perf_counter() - started


def processes(coordinator: int) -> list[tuple[str, int]]:
    """Return the processes below the coordinator, itself among them, as (kind, process id)."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines() if len(line.split(None, 2)) == 3]
    below, found = {coordinator}, [("coordinator", coordinator)]
    for _ in range(6):
        for pid, parent, arguments in rows:
            if int(parent) in below and int(pid) not in below:
                below.add(int(pid))
                found.append((kind_of(arguments), int(pid)))
    return found


def kind_of(arguments: str) -> str:
    """Return what a process is, by its command line: "pool", "warm" or "worker".

    A worker in a box has the warm process's command line, and the box's for a parent.
    """
    if "from multiprocessing" in arguments:
        return "pool"
    return "warm" if "zygote.main" in arguments and "bwrap" not in arguments else "worker"


def scores(root: Path) -> set[tuple[Any, ...]]:
    """Return every row of scores.csv that there would be, without what names this machine."""
    found = record.load_all(root / "grades")
    return {(kept.student, score.part, score.points, score.verdict) for kept in found for score in kept.scores}


def graded_twice(root: Path) -> int:
    """Return the number of submissions of which an earlier result was replaced."""
    with closing(sqlite3.connect(root / "grades" / record.TABLE)) as table:
        (count,) = table.execute("SELECT count(*) FROM earlier").fetchone()
    return int(count)


if __name__ == "__main__":
    sys.exit(main())
