"""Where the time of judging goes: one timed submission of lessons 02 and 05, part by part.

    python benchmarks/grading_profile.py [--quick] [--json benchmarks/results/grading_profile.json] [--no-timing]

A perfect solution is judged three times in this process, as `unrolled grade` judges it in one of its own; the row has
the last time, when everything is warm. Each part is what its functions take, less the parts that they call. "boxes" are
started and ended, for the notebook and for each baseline; "inputs" are drawn; "transport" puts them into the shared
file; "blocks" are timed, and split by what they are for; "verifying" computes what a sample of results should be.
"""

from __future__ import annotations

import functools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import common
from unrolled import checks
from unrolled.notebook import cells
from unrolled.timing import blocks, comparing
from unrolled_grader.authoring import sample
from unrolled_grader.box.lease import Lease
from unrolled_grader.box.process import Process
from unrolled_grader.box.sandbox import Box
from unrolled_grader.box.transport import Worker
from unrolled_grader.jobs import job
from unrolled_grader.judge import race, walk

LESSONS = "02_convolution", "05_train_a_cnn"
TIMES = 3
PHASES = {"warm_up": "warm-up", "first_pairs": "first pairs", "add_pairs": "pairs alone", "control": "control"}
PARTS: dict[str, list[tuple[Any, str]]] = {
    "boxes": [(Box, "__init__"), (Process, "_start"), (Process, "close"), (Process, "_freeze")],
    "cells": [(Worker, "run_cell")],
    "calls of cases": [(Worker, "call"), (Worker, "bind")],
    "inputs": [(race._Stream, "inputs")],
    "transport": [(Worker, "prepare"), (race._Side, "transport")],
    "blocks": [(Worker, "go")],
    "verifying": [(race._Side, "_sample"), (race._Side, "_verify"), (race._Stream, "expected")],
    "the lease": [(Lease, "take")],
    "": [(blocks, "warm_up"), *((comparing._Race, name) for name in ("first_pairs", "add_pairs", "control"))],
    "the rest": [(walk, "Walk")],
}


class Clock:
    """Seconds of each part, without those of the parts inside it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inside = [0.0]
        self._phase: list[str] = []

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, which counts for this part; blocks count for the phase that they are run in."""
        phase = PHASES.get(function.__name__)

        @functools.wraps(function)
        def run(*arguments: Any, **options: Any) -> Any:
            self._inside.append(0.0)
            self._phase += [phase] if phase else []
            started = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                took, inner = time.perf_counter() - started, self._inside.pop()
                self._inside[-1] += took
                name = f"blocks, {self._phase[-1]}" if part == "blocks" and self._phase else part or "the rest"
                self.seconds[name] += took - inner
                if phase:
                    self._phase.pop()

        return run


def rows(options: Any) -> Iterator[common.Row]:
    """Yield a row for each lesson and part, and one for the whole."""
    clock = Clock()
    for part, functions in PARTS.items():
        for place, name in functions:
            setattr(place, name, clock.timed(part, getattr(place, name)))
    for lesson in LESSONS:
        notebook = sample.notebook(common.ROOT, "perfect", lesson)
        released = cells.read(common.ROOT / "notebooks" / lesson / f"{lesson}.ipynb")
        for _ in range(1 if options.quick else TIMES):
            clock.seconds.clear()
            clean, own = job.sanitized(notebook, released), {cell.source for cell in released.cells}
            how = {"handed_out": own, "boxed": True, "timed": not options.no_timing}
            walk.Walk(clean, checks.lessons()[lesson], **how)
        whole = sum(clock.seconds.values())
        yield {"name": f"judging, {lesson}", "ours_s": whole}
        for part, seconds in sorted(clock.seconds.items(), key=lambda item: -item[1]):
            yield {"name": f"judging, {lesson}, {part}", "ours_s": seconds, "share": seconds / whole}


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--no-timing", action="store_true", help="values alone")
    options = parser.parse_args()
    common.finish(options, list(rows(options)), ("unrolled", "numpy"))


if __name__ == "__main__":
    main()
