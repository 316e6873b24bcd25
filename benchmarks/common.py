"""What the benchmarks share: options, interleaved rounds, facts about the machine, the table and the record.

A benchmark declares its rows and calls `finish`; a record is
{"command", "date", "commit", "machine", "versions", "rows": [{"name", "ours_s", "peer", "peer_s", "ratio", ...}]}.
"""

from __future__ import annotations

import argparse
import contextlib
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
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any

from unrolled import data, device

ROOT = Path(__file__).resolve().parent.parent
CALLS = 3  # timed in one turn of a process, after one that warms the caches up
MANY_CALLS = 40  # timed in one turn of a process that keeps its memory
KEEPING = {
    "MALLOC_TRIM_THRESHOLD_": "4294967296",
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TOP_PAD_": "268435456",
}
"""Has the C library keep freed memory: else a process pays for it again, page by page, in the next call."""
REST = 0.06  # seconds between turns of processes: threads that wait for work by spinning go to sleep meanwhile
QUIET = 0.1  # a round during which other processes take a larger share of the machine is measured again

Step = Callable[[], Any]
Times = dict[str, list[float]]


def options(description: str | None, arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse --quick, --json FILE, --threads N."""
    return parser(description).parse_args(arguments)


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return what reads --quick, --json FILE and --threads N; a benchmark may add its own options."""
    reader = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--quick", action="store_true", help="fewer rounds: a look, not a record")
    reader.add_argument("--json", type=Path, metavar="FILE", help="write the record there")
    reader.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1), help="for both sides (default: 2)")
    return reader


def sections(reader: argparse.ArgumentParser, names: Iterable[str]) -> argparse.Namespace:
    """Parse the options with --only NAME ..., of these sections."""
    names = list(names)
    reader.add_argument("--only", nargs="+", choices=names, default=names, metavar="SECTION")
    return reader.parse_args()


def rounds(quick: bool) -> tuple[int, float]:
    """Return how many rounds count, and for how many seconds disturbed ones are measured again."""
    return (3, 0.0) if quick else (15, 45.0)


def absent(data_set: str) -> str:
    """Return what a row says that needs a data set which is not here, "" where it is."""
    if any(entry.ready() for entry in data.available() if entry.name == data_set):
        return ""
    return f"{data_set} is not here: unrolled data fetch {data_set}"


def side_by_side(steps: Mapping[str, Step], rounds: int, patience: float) -> tuple[Times, float]:
    """Time the steps in this process: in a round, `CALLS` times one call of each, in random order. See `quietest`."""
    for step in [*steps.values()] * CALLS:
        step()

    def one_round() -> Times:
        times: Times = {side: [] for side in steps}
        for _ in range(CALLS):
            for side in random.sample(list(steps), len(steps)):
                times[side].append(seconds(steps[side]))
        return times

    return quietest(one_round, rounds, patience)


def both_modes(
    make: Callable[..., tuple[Step, Step]], *arguments: Any, quick: bool, calls: int = MANY_CALLS
) -> dict[str, Any]:
    """Measure the sides "ours" and "peer" of make(side, *arguments), each in a process of its own, in two modes.

    "ratio" is of turns of many calls with freed memory kept, as in a training; "ratio_apart" of single turns of a few
    calls, after which the C library may give memory back to the system. Returns both with their seconds, the memory of
    a step and the share of the machine that others took.
    """
    rounds, patience = (2, 0.0) if quick else (9, 45.0)
    row: dict[str, Any] = {}
    others = 0.0
    for name, kept, number in (("", True, calls), ("apart_", False, CALLS)):
        with Apart(make, "ours", *arguments, kept=kept) as us, Apart(make, "peer", *arguments, kept=kept) as it:
            times, share = apart({"ours": us, "peer": it}, rounds, patience, number)
            memory = {"ours_mb": us.peak_mb, "peer_mb": it.peak_mb}
        found, others = compared(times), max(others, share)
        row |= {f"ours_{name}s": found["ours_s"], f"peer_{name}s": found["peer_s"]}
        row["ratio_apart" if name else "ratio"] = found["ratio"]
    return row | memory | {"others": round(others, 2)}


def apart(processes: Mapping[str, Apart], rounds: int, patience: float, calls: int = CALLS) -> tuple[Times, float]:
    """Let processes take turns of so many calls in random order, each alone on the machine. See `quietest`."""
    for process in processes.values():
        process.wait()

    def one_round() -> Times:
        times: Times = {}
        for side in random.sample(list(processes), len(processes)):
            time.sleep(REST)
            times[side] = [processes[side].turn(calls)]
        return times

    return quietest(one_round, rounds, patience)


def each_apart(
    make: Callable[..., tuple[Step, Step]],
    sides: Mapping[str, Sequence[Any]],
    rounds: int,
    patience: float,
    calls: int = CALLS,
    kept: bool = False,
) -> tuple[Times, float]:
    """Start a process for each side, `make(*arguments)`, all of them at once, and let them take turns. See `apart`."""
    with contextlib.ExitStack() as block:
        processes = {side: block.enter_context(Apart(make, *each, kept=kept)) for side, each in sides.items()}
        return apart(processes, rounds, patience, calls)


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
    return {
        "ours_s": statistics.median(times[ours]),
        "peer_s": statistics.median(times[peer]),
        "ratio": statistics.median(a / b for a, b in zip(times[ours], times[peer], strict=True)),
    }


class Apart:
    """A side in a process of its own, so that the thread pools of two libraries do not disturb each other.

    `make(*arguments)` is called there; it returns (step, small step). The small one only starts the libraries up. With
    `kept` the C library keeps freed memory there.
    """

    peak_mb: float | None = None
    """How far a step raises the memory, once it has started; None where the system does not say."""

    def __init__(self, make: Callable[..., tuple[Step, Step]], *arguments: Any, kept: bool = False) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there, make, arguments), daemon=True)
        before = {name: os.environ.get(name) for name in KEEPING}
        os.environ.update(KEEPING if kept else {})
        self._process.start()
        for name in KEEPING:
            os.environ.pop(name, None)
        os.environ.update({name: value for name, value in before.items() if value is not None})
        there.close()
        self._starting = True

    def wait(self) -> None:
        """Wait until it has loaded its libraries and taken its first step."""
        if self._starting:
            self.peak_mb = self._here.recv()
            self._starting = False

    def turn(self, calls: int = CALLS) -> float:
        """Return the median seconds of so many calls over there, after one that does not count."""
        self._here.send(calls)
        return float(self._here.recv())

    def __enter__(self) -> Apart:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._here.close()
        self._process.join(timeout=10)


def finish(chosen: argparse.Namespace, rows: Sequence[Mapping[str, Any]], packages: Sequence[str]) -> None:
    """Print the rows as a table and, with --json, write the record."""
    print_table(rows)
    save(chosen, rows, packages)


def save(
    chosen: argparse.Namespace,
    rows: Sequence[Mapping[str, Any]],
    packages: Sequence[str],
    facts: Mapping[str, Any] | None = None,
    found: Mapping[str, str] | None = None,
) -> None:
    """Write the record, if --json asks for it.

    facts: of the machine, in place of the number of threads. found: versions besides those of the packages.
    """
    if chosen.json:
        record = {
            "command": command(),
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "commit": os.environ.get("COMMIT") or commit(),
            "machine": machine() | {"threads": chosen.threads} if facts is None else {**facts, **machine()},
            "versions": versions(packages) | dict(found or {}),
            "rows": list(rows),
        }
        chosen.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print one line a row, one column a key."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    lines = [keys, *([_text(row.get(key)) for key in keys] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = (f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        print("  ".join([f"{first:{widths[0]}}", *cells]))


def machine() -> dict[str, Any]:
    """Return processor, cores, memory in GB and system; nothing that names the machine itself."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else None
    return {
        "processor": device.describe()["cpu"],
        "cores": os.cpu_count(),
        "memory_gb": round(pages / 1e9, 1) if pages else None,
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Return Python's version and those of installed packages."""
    return {"python": platform.python_version(), **installed(*packages)}


def installed(*packages: str) -> dict[str, str]:
    """Return the versions of installed packages."""
    return {name: metadata.version(name) for name in packages}


def record_file(name: str) -> Path:
    """Return where the record NAME.json lies: with the library if lessons quote it, else in benchmarks/results/."""
    quoted = ROOT / "lib" / "unrolled" / "records" / f"{name}.json"
    return quoted if quoted.exists() else ROOT / "benchmarks" / "results" / f"{name}.json"


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


def _serve(pipe: Any, make: Callable[..., tuple[Step, Step]], arguments: tuple[Any, ...]) -> None:
    step, small = make(*arguments)
    small()
    pipe.send(_peak_mb(step))
    while True:
        try:
            calls = pipe.recv()
        except EOFError:
            return
        step()
        pipe.send(statistics.median(seconds(step) for _ in range(calls)))


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
