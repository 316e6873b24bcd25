"""Peak memory: of grading a class, of the kernel that runs a lesson, and of `nn.fit` beside PyTorch.

    python benchmarks/memory.py [--quick] [--json benchmarks/results/memory.json] [--threads 2]
                                [--only grading large-class timed-grading kernels training]

"grading", "large-class", "timed-grading": `unrolled grade`, two submissions at a time, and everything that it starts,
boxes too. Each student hands in the lesson's solution with a word of their own; without speed is --no-timing. `peak_mb`
is the largest sum of the processes' proportional set sizes (PSS: a page that several map counts once), looked at every
20 ms; `above_one_mb` is that less the peak for a class of one, who has one judge and one box where others have two.

"kernels": the largest resident memory that a Jupyter kernel ever had while it ran a lesson's solution (VmHWM), and
what it had after the first cell of code, which imports.

"training": an epoch of source A's network on 60,000 images of MNIST's shape and batches of 128, each side in a process
of its own. `ours_mb` and `peer_mb` are the peaks of resident memory, `imports` is what was resident after imports and a
step, before there were data, `epoch` how far the epoch rose above the data. `ratio` is of the peaks less imports, so of
data and epoch. Memory is in MB of 10^6 bytes, as Linux counts it.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import common
from networks import SOURCE_A
from unrolled import data

LESSON, SHORT = "02_convolution", "00_start_here"
GRADINGS = {"grading": (LESSON, False, (1, 8, 60)), "timed-grading": (LESSON, True, (1, 8))}
GRADINGS |= {"large-class": (SHORT, False, (1, 200))}
"""By section: the lesson, whether speed is measured, and the sizes of the classes."""
KERNELS = ("02_convolution", "05_train_a_cnn", "09_lstm")
MOST_ABOVE_ONE = 250  # MB
INTERVAL = 0.02  # seconds
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
IMAGES, BATCH = 60_000, 128
CASE = SOURCE_A[BATCH]
STATUS = "/proc/self/status"
Section = Callable[[argparse.Namespace], Iterator[common.Row]]


def main() -> None:
    """Measure the sections that were asked for."""
    if sys.argv[1:2] == ["side"]:
        print(json.dumps(side(*sys.argv[2:])))
        return
    chosen = common.sections(__doc__, SECTIONS)
    rows = []
    for section in chosen.only:
        for row in SECTIONS[section](chosen):
            rows.append({"section": section, **row})
            common.print_table(rows[-1:])
    common.finish(chosen, rows, ["unrolled", "numpy", "torch", "nbgrader", "nbconvert", "ipykernel"])


def gradings(section: str, chosen: argparse.Namespace) -> Iterator[common.Row]:
    """Yield a row for each size of a class."""
    lesson, timed, sizes = GRADINGS[section]
    lesson, sizes = (SHORT, (1, 4)) if chosen.quick else (lesson, sizes)
    alone = None
    for students in sizes:
        peak, seconds = graded(lesson, students, timed, chosen.threads)
        alone = peak if alone is None else alone
        name = f"{section.replace('-', ' ')}, {lesson}, {students} student{'s' * (students > 1)}"
        row = {"name": name, "peak_mb": peak, "seconds": seconds, "jobs": chosen.threads}
        yield row if students == 1 else row | {"above_one_mb": peak - alone, "at_most_mb": MOST_ABOVE_ONE}


def graded(lesson: str, students: int, timed: bool, jobs: int) -> tuple[float, float]:
    """Return the peak of the memory, in MB, while a class is graded, and the seconds that it took."""
    import grading  # loads nbgrader: not for the sides of a training

    # Workers in boxes have lost their parents: they become children of this process.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(prefix="memory-") as folder:
        grading.make_course(root := Path(folder, "course"), lesson, students)
        command = ["unrolled", "grade", lesson, "--jobs", str(jobs), *([] if timed else ["--no-timing"])]
        command[0] = str(grading.SCRIPTS / command[0])
        start, peak = time.perf_counter(), 0.0
        with Path(folder, "log").open("w") as output, subprocess.Popen(command, cwd=root, stdout=output) as process:
            with suppress(PermissionError):  # a busy machine must not keep this process from looking
                os.setpriority(os.PRIO_PROCESS, 0, -10)
            while process.poll() is None:
                peak = max(peak, sum(map(pss_mb, descendants(os.getpid()))))
                time.sleep(INTERVAL)
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        if process.returncode:
            raise RuntimeError(f"not all of {students} were graded: {Path(folder, 'log').read_text()[-2000:]}")
    return peak, time.perf_counter() - start


def descendants(pid: int) -> Iterator[int]:
    """Yield the processes that a process has started, and those that they have."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, read(task).split()):
            yield child
            yield from descendants(child)


def pss_mb(pid: int) -> float:
    """Return the proportional set size of a process, 0 if it has ended."""
    return field_mb(f"/proc/{pid}/smaps_rollup", "Pss")


def field_mb(file: str, name: str) -> float:
    """Return a field of a file of proc(5) that counts kB, in MB; 0 where there is none."""
    found = (line.split() for line in read(file).splitlines())
    return next((int(words[1]) * 1024 / 1e6 for words in found if words[0] == f"{name}:"), 0.0)


def read(file: str | Path) -> str:
    """Return what a file of proc(5) says, nothing if the process has ended."""
    try:
        return Path(file).read_text()
    except OSError:
        return ""


def kernels(chosen: argparse.Namespace) -> Iterator[common.Row]:
    """Yield a row for each lesson, whose solution runs in a kernel."""
    from unrolled.notebook import run

    for lesson in (SHORT,) if chosen.quick else KERNELS:
        seen: list[float] = []

        def look(index: int, cell: Any, seen: list[float] = seen) -> None:
            seen.append(max(field_mb(f"/proc/{pid}/status", "VmHWM") for pid in descendants(os.getpid())))

        source = common.ROOT / "solutions" / lesson / f"{lesson}.ipynb"
        with tempfile.TemporaryDirectory(prefix="memory-") as folder:
            found = run.execute(source, cwd=folder, cell_timeout=600.0, on_cell=look)
        if found.errors:
            raise RuntimeError(f"{lesson}: {found.errors[0]}")
        yield {"name": f"kernel, {lesson}", "peak_mb": seen[-1], "imports_mb": seen[0], "seconds": found.seconds}


def trainings(chosen: argparse.Namespace) -> Iterator[common.Row]:
    """Yield a row for an epoch of training, of ours beside PyTorch's."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(chosen.threads)}
    row: common.Row = {"name": f"nn.fit, source A's network, batch {BATCH}, one epoch", "peer": "PyTorch"}
    for name in ("ours", "peer"):
        command = [sys.executable, __file__, "side", name, str(6_000 if chosen.quick else IMAGES)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        row |= {f"{name}_{key}mb": value for key, value in json.loads(done.stdout).items()}
    growth = {name: row[f"{name}_mb"] - row[f"{name}_imports_mb"] for name in ("ours", "peer")}
    yield row | {"ratio": growth["ours"] / growth["peer"]}


def side(name: str, images: str) -> dict[str, float]:
    """Train for an epoch in this process, and return its memory in MB: the peak, and what it is made of."""
    epoch, rng = {"ours": ours, "peer": peer}[name](), np.random.default_rng(0)

    def drawn(count: int) -> tuple[Any, Any]:
        return rng.random((count, 1, 28, 28), dtype=np.float32), rng.integers(0, 10, count)

    epoch(*drawn(BATCH))  # starts the libraries up
    imports = field_mb(STATUS, "VmRSS")
    images_and_labels = drawn(int(images))
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = field_mb(STATUS, "VmRSS")
    epoch(*images_and_labels)
    peak = field_mb(STATUS, "VmHWM")
    return {"": peak, "imports_": imports, "epoch_": peak - before}


def ours() -> Any:
    """Return an epoch of the library."""
    network, optimizer = CASE.build(), CASE.optimizer()

    def epoch(images: Any, labels: Any) -> None:
        network.fit(data.Dataset(images, labels), epochs=1, batch_size=BATCH, optimizer=optimizer, progress=False)

    return epoch


def peer() -> Any:
    """Return an epoch of PyTorch, on batches in random order."""
    import torch  # not for our side

    import twins

    network = twins.built(CASE, np)
    optimizer = twins.optimizer(CASE.optimizer(), network.parameters())

    def epoch(images: Any, labels: Any) -> None:
        x, y = twins.tensors((images, labels), np)
        order = torch.randperm(len(x))
        for batch in (order[start : start + BATCH] for start in range(0, len(x), BATCH)):
            optimizer.zero_grad()
            torch.autograd.backward(torch.nn.functional.cross_entropy(network(x[batch]), y[batch]))
            optimizer.step()

    return epoch


SECTIONS: dict[str, Section] = {
    **{name: partial(gradings, name) for name in GRADINGS},
    "kernels": kernels,
    "training": trainings,
}

if __name__ == "__main__":
    main()
