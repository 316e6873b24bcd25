"""What benchmarks on a GPU share: timing by events, the host's share of a call, sections, facts about the machine."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any

import common
from common import Row, Step
from unrolled import device

cp = device.gpu()
WARM_UP = 3
SPIN = r"""
extern "C" __global__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
}
"""


@cache
def spinner() -> Any:
    """Return a kernel that keeps the device busy, so that the host gets ahead of it."""
    return cp.RawKernel(SPIN, "spin")


def synchronize() -> None:
    cp.cuda.runtime.deviceSynchronize()


def between_events(step: Step, calls: int) -> float:
    """Return the seconds of one call, from so many in a row. Whatever is slower counts, host or device."""
    first, last = cp.cuda.Event(), cp.cuda.Event()
    first.record()
    for _ in range(calls):
        step()
    last.record()
    last.synchronize()
    return float(cp.cuda.get_elapsed_time(first, last)) / 1e3 / calls


def block(step: Step, calls: int) -> float:
    """Return the seconds of one call, from so many in a row, once the device has nothing else to do."""
    synchronize()
    return between_events(step, calls)


def side_by_side(steps: Mapping[str, Step], calls: int, rounds: int) -> common.Times:
    """Return the seconds of a call of each side, `rounds` times: in turn, in random order."""
    for step in steps.values():
        for _ in range(max(WARM_UP, calls // 4)):
            step()
    return common.in_turn({side: partial(block, step, calls) for side, step in steps.items()}, rounds)


def seconds(step: Step, calls: int, rounds: int) -> float:
    """Return the median seconds of a call, after a warm-up."""
    return statistics.median(side_by_side({"": step}, calls, rounds)[""])


def host_seconds(step: Step, calls: int = 50, rounds: int = 7) -> float:
    """Return the seconds that the host needs to issue a call: it never waits, as long as the queue has room."""
    for _ in range(WARM_UP):
        step()
    found = []
    for _ in range(rounds):
        synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            step()
        found.append((time.perf_counter() - start) / calls)
        synchronize()
    return statistics.median(found)


def device_seconds(step: Step, host: float, calls: int = 40, rounds: int = 5) -> float:
    """Return the seconds that the device needs for a call, with the gap between two kernels.

    The host issues all of them while a kernel keeps the device busy. `host` is `host_seconds(step)`.
    """
    cycles = int(2e9 * (2 * calls * host + 300e-6))
    found = []
    for _ in range(rounds):
        synchronize()
        spinner()((1,), (1,), (cycles,))
        found.append(between_events(step, calls))
    return statistics.median(found)


def costs(step: Step, calls: int = 40) -> dict[str, float]:
    """Return {"host_us", "device_us"}, in microseconds, of a call that does not wait, from so many in a row."""
    host = host_seconds(step, calls)
    return {"host_us": 1e6 * host, "device_us": 1e6 * device_seconds(step, host, calls)}


def guarded(name: str, section: Callable[[], list[Row]]) -> list[Row]:
    """Return the rows of a section, or its error as one."""
    try:
        return section()
    except Exception as error:
        traceback.print_exc()
        return [{"section": name, "name": name, "error": f"{type(error).__name__}: {error}"}]


def each(cases: Iterable[Any], rows: Callable[[Any], list[Row]]) -> list[Row]:
    """Return the rows of each case, or its error as one."""
    return [row for case in cases for row in guarded(case.name, lambda case=case: rows(case))]


def machine() -> dict[str, Any]:
    """Return what ran besides the host: the GPU, its driver, CUDA."""
    facts = device.describe()
    return {"gpu": facts["gpu"], "driver": driver(), "cuda": facts["cuda"]}


def driver() -> str | None:
    """Return the version of the driver as NVIDIA names it, None where nvidia-smi does not tell."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def run(
    description: str | None,
    sections: Mapping[str, Callable[[argparse.Namespace], list[Row]]],
    more: Callable[[], Mapping[str, Any]] = dict,
) -> int:
    """Measure the sections that the options ask for; print and save each, so that a run cut short leaves what it has.

    `more` gives further facts of the machine. Returns the exit code: 1 without a GPU for more than "CPU", and if
    something failed.
    """
    chosen, rows = common.sections(description, sections), list[Row]()
    if device.is_simulated(cp) and chosen.only != ["CPU"]:
        print("no GPU works here: --only CPU measures what runs without one", file=sys.stderr)
        return 1
    for name in chosen.only:
        found = [{"section": name, **row} for row in guarded(name, partial(sections[name], chosen))]
        common.print_sections(found)
        rows += found
        common.save(chosen, rows, **machine(), **more())
    return int(any("failed" in row or isinstance(row.get("error"), str) for row in rows))
