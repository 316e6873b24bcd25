"""Attention on the CPU beside PyTorch's, and beside the plain form that keeps T x T weights.

    python benchmarks/attention_cpu.py [--quick] [--json benchmarks/results/attention_cpu.json] [--threads 2]

What is measured is as in `attention.py`, with 8 heads in float32. PyTorch chooses how. Every side is in a process of
its own; `memory_mb` is how far a call raises its resident memory at the peak, less the outputs. `others` is the share
of the machine that other processes took meanwhile.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import common
from attention import AIMED, PEER, Case, in_all_sizes, rows
from common import Row, Step
from cpu import limit_threads


def make(side: str, case: Case, threads: int) -> tuple[Step, Step]:
    """Return one side's call on the CPU, and a small one."""
    limit_threads(threads)
    small = replace(case, t=16)  # so small that what it leaves does not hide what the call needs
    return case.step(side, case.tensors("cpu")), small.step(side, small.tensors("cpu"))


def cpu_rows(case: Case, chosen: Any) -> list[Row]:
    """Measure a case on the CPU, each side in a process of its own."""
    makes, tensors = {side: (side, case, chosen.threads) for side in case.sides()}, case.tensors("cpu")
    errors = {side: case.error(side, make(*given)[0](), tensors) for side, given in makes.items()}
    large = case.t > AIMED
    rounds, calls = common.rounds(chosen.quick or large), 1 if large else common.CALLS
    times, others, memory = common.each_apart(make, makes, *rounds, calls, kept=True)
    return [row | {"others": round(others, 2)} for row in rows(case, times, memory, errors, PEER)]


if __name__ == "__main__":
    common.run(__doc__, lambda chosen: in_all_sizes(cpu_rows, Case("CPU", 8), chosen))
