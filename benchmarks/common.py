"""What the benchmarks share: options, interleaved rounds, facts about the machine, the table and the record.

A benchmark gives its rows to `run`, or to `finish`; a record is
{"command", "date", "commit", "machine", "versions", "rows": [{"name", "ours_s", "peer", "peer_s", "ratio", ...}]}.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import multiprocessing
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timezone
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_info

from unrolled import data, device

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "lib" / "unrolled" / "records", ROOT / "benchmarks" / "results"
"""Each record lies in one of them: with the library if lessons quote it, since it travels with it then."""
PACKAGES = "unrolled", "numpy", "scipy", "threadpoolctl", "cupy", "torch", "nbgrader", "nbconvert", "ipykernel"
CALLS = 3  # timed in one turn of a process, after one that warms the caches up
MANY_CALLS = 40  # timed in one turn of a process that keeps its memory
LIMITS = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"
KEEPING = dict.fromkeys(LIMITS, "4294967296") | {"MALLOC_TOP_PAD_": "268435456"}
"""Has the C library keep freed memory: else a process pays for it again, page by page, in the next call."""
TOLERANCE = 1e-4  # of the largest value, by which two sides may differ: float32 sums differ by their order
REST = 0.06  # seconds between turns of processes: threads that wait for work by spinning go to sleep meanwhile
QUIET = 0.1  # a round during which other processes take a larger share of the machine is measured again

Row = dict[str, Any]
Step = Callable[[], Any]
Make = Callable[..., tuple[Step, Step]]
"""Returns a side's step, and a small one that only starts the libraries up."""
Times = dict[str, list[float]]


def run(description: str | None, rows: Callable[[Any], Iterable[Row]], packages: Sequence[str] = ()) -> None:
    """Parse the options, measure rows(options), print and write them; packages: those whose versions count besides."""
    chosen = parser(description).parse_args()
    finish(chosen, list(rows(chosen)), packages)


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return what reads --quick, --json FILE and --threads N; a benchmark may add its own options."""
    reader = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--quick", action="store_true", help="fewer rounds: a look, not a record")
    reader.add_argument("--json", type=Path, metavar="FILE", help="write the record there")
    reader.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1), help="for both sides (default: 2)")
    return reader


def sections(description: str | None, names: Iterable[str]) -> argparse.Namespace:
    """Parse the options with --only NAME ..., of these sections."""
    reader, names = parser(description), list(names)
    reader.add_argument("--only", nargs="+", choices=names, default=names, metavar="SECTION")
    return reader.parse_args()


def rounds(quick: bool) -> tuple[int, float]:
    """Return how many rounds count, and for how many seconds disturbed ones are measured again."""
    return (3, 0.0) if quick else (15, 45.0)


def table(name: str) -> dict[str, Any]:
    """Return the data of benchmarks/NAME.toml."""
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    return toml.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def absent(data_set: str) -> str:
    """Return what a row says that needs a data set which is not here, "" where it is."""
    if any(entry.ready() for entry in data.available() if entry.name == data_set):
        return ""
    return f"{data_set} is not here: unrolled data fetch {data_set}"


def check(what: str, ours: Any, expected: Any, tolerance: float = TOLERANCE) -> float:
    """Return the largest difference of two arrays, as a share of the largest value expected.

    Raises ArithmeticError for more than the tolerance, and where ours is not of float32.
    """
    error = float(abs(ours - expected).max() / abs(expected).max())
    if not error <= tolerance or ours.dtype != np.float32:
        raise ArithmeticError(f"{what} of {ours.dtype} is off by {error:.1e} of its largest value")
    return error


def in_turn(turns: Mapping[str, Callable[[], float]], rounds: int = 1, chance: Any = random) -> Times:
    """Return the seconds that each side's turn gives, `rounds` times, in an order that chance draws anew each time."""
    times: Times = {side: [] for side in turns}
    for _ in range(rounds):
        for side in chance.sample(list(turns), len(turns)):
            times[side].append(turns[side]())
    return times


def side_by_side(steps: Mapping[str, Step], rounds: int, patience: float) -> tuple[Times, float]:
    """Time the steps in this process: in a round, `CALLS` times one call of each, in random order. See `quietest`."""
    for step in [*steps.values()] * CALLS:
        step()
    turns = {side: partial(seconds, step) for side, step in steps.items()}
    return quietest(lambda: in_turn(turns, CALLS), rounds, patience)


def both_modes(make: Make, *arguments: Any, quick: bool, calls: int = MANY_CALLS) -> Row:
    """Measure the sides "ours" and "peer" of make(side, *arguments), each in a process of its own, in two modes.

    "ratio" is of turns of many calls with freed memory kept, as in a training; "ratio_apart" of single turns of a few
    calls, after which the C library may give memory back to the system. Returns both with their seconds, the memory of
    a step and the share of the machine that others took.
    """
    rounds, patience = (2, 0.0) if quick else (9, 45.0)
    row: Row = {}
    others = 0.0
    sides = {side: (side, *arguments) for side in ("ours", "peer")}
    for name, kept, number in (("", True, calls), ("apart_", False, CALLS)):
        times, share, memory = each_apart(make, sides, rounds, patience, number, kept)
        found, others = compared(times), max(others, share)
        row |= {f"ours_{name}s": found["ours_s"], f"peer_{name}s": found["peer_s"]}
        row["ratio_apart" if name else "ratio"] = found["ratio"]
    return row | {f"{side}_mb": peak for side, peak in memory.items()} | {"others": round(others, 2)}


def each_apart(
    make: Make, sides: Mapping[str, Sequence[Any]], rounds: int, patience: float, calls: int = CALLS, kept: bool = False
) -> tuple[Times, float, dict[str, float | None]]:
    """Time the steps of make(*arguments), each in a process of its own, so that thread pools do not disturb each other.

    The processes take turns of so many calls in random order, each alone on the machine, see `quietest`. With `kept`
    the C library keeps freed memory there. Returns besides how far a first step raises each side's memory, in MB; None
    where the system does not say.
    """
    context = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as block:
        pools = {side: block.enter_context(ProcessPoolExecutor(1, context)) for side in sides}
        with patch.dict(os.environ, KEEPING if kept else {}):
            started = {side: pools[side].submit(_start, make, arguments) for side, arguments in sides.items()}
        memory = {side: start.result() for side, start in started.items()}

        def turn(pool: ProcessPoolExecutor) -> float:
            time.sleep(REST)
            return pool.submit(_turn, calls).result()

        turns = {side: partial(turn, pool) for side, pool in pools.items()}
        return (*quietest(lambda: in_turn(turns), rounds, patience), memory)


def quietest(one_round: Callable[[], Times], rounds: int, patience: float) -> tuple[Times, float]:
    """Return the times of `rounds` rounds, and the largest share of the machine that other processes took in one.

    Rounds that others disturbed are measured again for up to `patience` seconds; then the least disturbed ones count.
    """
    end = time.monotonic() + patience
    done: list[tuple[float, Times]] = []
    while len(done) < rounds or (done[rounds - 1][0] > QUIET and time.monotonic() < end):
        before, start = _others_cpu_seconds(), time.monotonic()
        times = one_round()
        capacity = (time.monotonic() - start) * (os.cpu_count() or 1)
        done.append((max(0.0, (_others_cpu_seconds() - before) / capacity), times))
        done.sort(key=lambda each: each[0])
    kept = [times for _, times in done[:rounds]]
    return {side: [t for times in kept for t in times[side]] for side in kept[0]}, done[rounds - 1][0]


def seconds(step: Step) -> float:
    """Return the wall seconds of one call."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def compared(times: Times, ours: str = "ours", peer: str = "peer") -> dict[str, float]:
    """Return the medians of both sides and of their paired ratios: {"ours_s", "peer_s", "ratio"}."""
    ratio = statistics.median(a / b for a, b in zip(times[ours], times[peer], strict=True))
    return {"ours_s": statistics.median(times[ours]), "peer_s": statistics.median(times[peer]), "ratio": ratio}


def finish(chosen: argparse.Namespace, rows: Sequence[Row], packages: Sequence[str] = (), **facts: Any) -> None:
    """Print the rows and, with --json, write the record; see `save`."""
    print_sections(rows)
    save(chosen, rows, packages, **facts)


def save(chosen: argparse.Namespace, rows: Sequence[Row], packages: Sequence[str] = (), **facts: Any) -> None:
    """Write the record, if --json asks for it; `facts` of the machine stand in place of the number of threads."""
    if chosen.json:
        record = {
            "command": command(),
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "commit": os.environ.get("COMMIT") or commit(),
            "machine": machine() | {"threads": chosen.threads} if not facts else {**facts, **machine()},
            "versions": {"python": platform.python_version(), **versions(), **installed(*packages)},
            "rows": list(rows),
        }
        chosen.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def print_sections(rows: Sequence[Row]) -> None:
    """Print a table for each section of the rows, under its name, of all values that are numbers or words."""
    for section in dict.fromkeys(row.get("section") for row in rows):
        if section:
            print(f"\n{section}")
        shown = [row for row in rows if row.get("section") == section]
        print_table([{key: value for key, value in row.items() if key != "section" and plain(value)} for row in shown])


def plain(value: Any) -> bool:
    """Return whether a value can stand in a table."""
    return value is None or isinstance(value, (str, int, float))


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print one line a row, one column a key."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    lines = [keys, *([_text(row.get(key)) for key in keys] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = (f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        print("  ".join([f"{first:{widths[0]}}", *cells]), flush=True)


def machine() -> dict[str, Any]:
    """Return processor, cores, memory in GB, system and the kernels that NumPy's BLAS chose, which may be too old ones.

    Nothing names the machine itself.
    """
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else None
    return {
        "processor": device.describe()["cpu"],
        "cores": os.cpu_count(),
        "memory_gb": round(pages / 1e9, 1) if pages else None,
        "system": f"{platform.system()} {platform.machine()}",
        "blas": next((found.get("architecture") for found in threadpool_info() if found["user_api"] == "blas"), None),
    }


def versions() -> dict[str, str]:
    """Return the versions of those packages that this process has imported, of all that may take part."""
    found = {name: str(sys.modules[name].__version__) for name in PACKAGES if name in sys.modules}
    if library := sys.modules.get("cudnn"):
        found |= {"nvidia-cudnn-frontend": library.__version__, "cudnn": str(library.backend_version())}
    return found


def installed(*packages: str) -> dict[str, str]:
    """Return the versions of installed packages."""
    return {name: metadata.version(name) for name in packages}


def record_file(name: str) -> Path:
    """Return where the record NAME.json lies, or is to lie."""
    files = [folder / f"{name}.json" for folder in RECORDS]
    return next((file for file in files if file.exists()), files[-1])


def command() -> str:
    """Return how this program was called, with paths from the root of the project.

    The record's own path is where records lie, whatever was given.
    """
    words = [str(record_file(Path(word).stem)) if word.endswith(".json") else word for word in sys.argv[1:]]
    return " ".join(["python", _from_root(sys.argv[0]), *map(_from_root, words)])


def commit() -> str | None:
    """Return the commit that was measured, None where git does not know it."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


_steps: list[Step] = []  # of a process that `each_apart` has started


def _start(make: Make, arguments: Sequence[Any]) -> float | None:
    step, small = make(*arguments)
    small()
    _steps.append(step)
    return _peak_mb(step)


def _turn(calls: int) -> float:
    """Return the median seconds of so many calls, after one that does not count."""
    (step,) = _steps
    step()
    return statistics.median(seconds(step) for _ in range(calls))


def _peak_mb(step: Step) -> float | None:
    """How much the resident memory grows at most during a first call, in MB; None where the system does not say."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _memory_kb("VmRSS")
    step()
    return (_memory_kb("VmHWM") - before) / 1e3


def _memory_kb(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def _others_cpu_seconds() -> float:
    """CPU seconds so far of all processes but this one and its children; 0 where the system does not say."""
    if not Path("/proc/stat").exists():
        return 0.0
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    everyone = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return everyone - sum(map(_process_seconds, [os.getpid(), *(p.pid for p in multiprocessing.active_children())]))


def _process_seconds(pid: int | None) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _from_root(word: str) -> str:
    path = Path(word).resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) and "/" in word else word


def _text(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
