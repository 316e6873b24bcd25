"""Every figure that the course claims of itself, measured on this machine beside the record that it comes from.

    python benchmarks/everything.py [--quick] [--only NAME ...] [--records DIR] [--json FILE]

A claim is a row of a record; docs/measurements.md shows them all, README, lessons and docs quote them. Every benchmark
that has a record is run again, in a process of its own, by the command that the record names, or by its short form
(--quick); its rows are joined with the record's by their names. Printed are the figures of each row, with what is
recorded and what was seen here, and the aims with whether they are met. Ratios hold on other machines, times do not.
The file of --json has every number of the rows, and --records keeps what each benchmark wrote.

What cannot run here says why: it needs a GPU, or two, or data. A benchmark that fails is named, and the others go on;
then the exit code is 1. The short form takes about five minutes on two cores. It leaves out what takes much longer
even when short, and what would compute something smaller under the same name.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import aims
import common
import measurements
from unrolled import device
from unrolled.show import words

HERE = Path(__file__).resolve().parent
LIMIT = 150.0  # seconds for the short form of one benchmark
WITHOUT_GPU = "CPU"  # the section of a benchmark for GPUs that runs on the host
SMALLER = {"gpu_kernels": (), "precision": (), "lstm": (WITHOUT_GPU,), "memory": ()}
"""Benchmarks whose short form takes smaller arrays or other data, and the sections that stay as they are."""
LONG = ("grading", "operating_curve", "verdicts")
"""What takes a minute or more even in its short form: many verdicts, and gradings of whole classes."""
RATIOS = ("ratio", "ratio_graph", "ratio_compiled", "ratio_eager", "ratio_apart", "over_no_overlap")
MODELLED = ("modelled_ratio", "host_ratio", "device_ratio")
FACTORS = ("faster", "backward_faster", "speedup", "times_faster", "efficiency", "of_copy", "of_peer", "of_peak")
SHARES = ("accuracy", "test_accuracy", "within_2x", "host_within_2x", "inconclusive_share")
COUNTS = ("erred", "pass", "fail", "inconclusive", "points", "wrong", "launches")
SECONDS = ("ours_s", "epoch_s", "eager_s", "slowest_s", "two_ranks_s", "median_s", "gpu_s", "seconds")
MICROSECONDS = ("us", "device_us", "host_us", "waits_us", "modelled_us", "lowest_us", "highest_us")
RATES = ("bus_gb_s", "gb_per_s", "gflops", "tflops")
MEMORY = ("peak_mb", "above_one_mb")
CLAIMED = (*RATIOS, *MODELLED, *FACTORS, *SHARES, *COUNTS, *SECONDS, *MICROSECONDS, *RATES, *MEMORY)
"""The figures of a row that are printed."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """How a benchmark is run here: the arguments of each run, and for which sections of its record; None: for all.

    `why` says what keeps the others from being measured.
    """

    runs: list[list[str]] = field(default_factory=list)
    sections: tuple[str, ...] | None = None
    why: str = ""


@dataclass
class Seen:
    """What a benchmark's runs gave, as they were planned: rows by name, and in words what failed."""

    plan: Plan = Plan()
    rows: dict[str, Row] = field(default_factory=dict)
    failed: str = ""


def main() -> int:
    """Measure, print, write what was asked for. Return 1 if a benchmark failed."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--quick", action="store_true", help="the short form of each benchmark: a look, not a record")
    reader.add_argument("--only", nargs="+", metavar="NAME", help="these benchmarks alone")
    reader.add_argument("--records", type=Path, metavar="DIR", help="keep each benchmark's record there")
    reader.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    chosen = reader.parse_args()
    chosen.threads = None
    records, programs = measurements.records(), benchmarks(HERE)
    names = chosen.only or sorted({*records, *programs})
    if unknown := sorted({*names} - {*records, *programs}):
        reader.error(f"--only: no benchmark is named {', '.join(unknown)}; there are {', '.join(programs)}")
    with tempfile.TemporaryDirectory() as folder:
        seen = measured(names, records, programs, chosen, chosen.records or Path(folder))
    found = [row for name in names if name in records for row in joined(name, records[name], seen[name])]
    failed = {name: one.failed for name, one in seen.items() if one.failed}
    facts = device.describe()
    print("Here:", ", ".join([facts["gpu"] or "no GPU", facts["cpu"], f"{os.cpu_count()} cores"]))
    print_figures(found)
    print_aims(found)
    print(f"\n{ending(found, failed)}")
    common.save(chosen, found, ("unrolled", "numpy"))
    return int(bool(failed))


def measured(
    names: Sequence[str], records: Mapping[str, Row], programs: Sequence[str], chosen: Any, folder: Path
) -> dict[str, Seen]:
    """Run the benchmarks of these names; return what each gave, by name."""
    found, here = dict[str, Seen](), gpus()
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name not in programs:
            found[name] = Seen(failed=f"{name}.json is a record of no benchmark: benchmarks/{name}.py is not there")
        elif name not in records:
            found[name] = Seen(failed=f"benchmarks/{name}.py has no record")
        else:
            plan = planned(name, records[name], chosen.quick, here)
            found[name] = run(name, plan, folder, LIMIT if chosen.quick else None)
    return found


def run(name: str, plan: Plan, folder: Path, limit: float | None) -> Seen:
    """Run a benchmark as planned, with at most so many seconds for each run; its records are written to `folder`."""
    seen = Seen(plan)
    for number, arguments in enumerate(plan.runs):
        file = folder / (f"{name}-{number}.json" if number else f"{name}.json")
        file.unlink(missing_ok=True)
        command, start = [sys.executable, str(HERE / f"{name}.py"), *arguments, "--json", str(file)], time.monotonic()
        try:
            done = subprocess.run(command, cwd=common.ROOT, capture_output=True, text=True, timeout=limit, check=False)
            said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()] or ["it says nothing"]
            failed = f"exit code {done.returncode}: {said[-1]}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            failed = f"it took more than {limit:g} s"
        if file.exists():
            seen.rows |= {row["name"]: row for row in json.loads(file.read_text(encoding="utf-8"))["rows"]}
        seen.failed = seen.failed or failed
        print(f"{name}: {failed or 'done'}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return seen


def gpus() -> int:
    """Return how many GPUs work here."""
    module = device.gpu()
    return 0 if device.is_simulated(module) else int(module.cuda.runtime.getDeviceCount())


def benchmarks(folder: Path) -> list[str]:
    """Return the names of the programs that write a record: their texts begin with how, and have the option --json."""
    files = (file for file in folder.glob("*.py") if file != Path(__file__).resolve())
    return sorted(file.stem for file in files if re.search(r"(?m)^    python .*--json", file.read_text("utf-8")))


def planned(name: str, record: Row, quick: bool, gpus: int) -> Plan:
    """Return how a benchmark is run on a machine with so many GPUs, from the command and the machine of its record."""
    commands = [arguments(command, name) for command in str(record["command"]).split("; ")]
    if quick and name in LONG:
        return Plan([], (), "left out: it takes long even with --quick")
    needs = int(record["machine"].get("gpus", "gpu" in record["machine"]))
    kept, why = None, ""
    if needs > gpus:
        kept, why = (WITHOUT_GPU,), "needs a GPU" if needs == 1 else "needs two GPUs"
    elif quick and name in SMALLER:
        kept, why = SMALLER[name], "left out: --quick would compute something smaller"
    if quick:
        commands = [["--quick", *threads(commands[0])]]
    if kept is None:
        return Plan(commands, None, "not in the short form" if quick else "")
    there = tuple(section for section in kept if any(row.get("section") == section for row in record["rows"]))
    runs = [[*(["--quick"] if quick else []), "--only", *there, *threads(commands[0])]] if there else []
    return Plan(runs, there, why)


def arguments(command: str, name: str) -> list[str]:
    """Return what a record's command gives to its benchmark, without the files that it writes."""
    words = shlex.split(command)
    words = words[next(at for at, word in enumerate(words) if word.endswith(f"{name}.py")) + 1 :]
    files = [at for at, word in enumerate(words) if word in ("--json", "--picture")]
    return [word for at, word in enumerate(words) if at not in files and at - 1 not in files]


def threads(words: list[str]) -> list[str]:
    """Return the option --threads of a command, if it has one."""
    at = words.index("--threads") if "--threads" in words else len(words)
    return words[at : at + 2]


def joined(name: str, record: Row, seen: Seen) -> list[dict[str, Any]]:
    """Return the record's rows: their numbers with what was seen of them here, or why nothing was."""
    rows = []
    for row in record["rows"]:
        here = seen.rows.get(row["name"])
        said = [here.get(key) for key in ("error", "failed", "absent")] if here else [reason(row, seen)]
        rows.append(
            {
                "record": f"{name}.json, {str(record['date'])[:10]}",
                "name": row["name"],
                "why": next((why for why in said if isinstance(why, str)), ""),
                "numbers": {k: [row[k], number((here or {}).get(k))] for k in row if number(row[k]) is not None},
                "aims": [vars(aim) for aim in aims.aims(row)],
            }
        )
    return rows


def number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def reason(row: Row, seen: Seen) -> str:
    """Return why a row was not measured."""
    plan = seen.plan
    if plan.sections is not None and row.get("section") not in plan.sections:
        return plan.why
    if seen.failed:
        return f"failed: {seen.failed}"
    return (plan.why if plan.sections is None else "") or "not in this run"


def claimed(row: Row) -> list[str]:
    """Return the names of the figures of a joined row that are printed."""
    return [key for key in CLAIMED if key in row["numbers"]]


def lines(row: Row) -> Iterator[dict[str, Any]]:
    """Yield a line of the table for each figure of a joined row."""
    name = row["name"]
    for key in claimed(row):
        recorded, here = row["numbers"][key]
        times = here / recorded if here is not None and recorded else None
        seen = "not here" if here is None else here
        yield {"name": name, "figure": key, "recorded": recorded, "here": seen, "here / recorded": times}
        name = ""


def print_figures(rows: Sequence[Row]) -> None:
    """Print the figures of each record, and for how many rows nothing was measured."""
    for record, part in groupby(rows, lambda row: row["record"]):
        group = list(part)
        print(f"\n{record}")
        if measured := [line for row in group if not row["why"] for line in lines(row)]:
            common.print_table(measured)
        for why, count in Counter(row["why"] for row in group if row["why"]).items():
            print(f"  {words.count_of(count, 'row')} not measured: {why}")


def print_aims(rows: Sequence[Row]) -> None:
    """Print each aim with the recorded figure and the one seen here, and whether they meet it."""
    found = []
    for row in rows:
        for aim in (aims.Aim(**facts) for facts in row["aims"]):
            line = {"name": row["name"], "aim": f"{aim.figure} {aim.side} {aim.bound:g}"}
            for side, value in zip(("recorded", "here"), row["numbers"][aim.figure], strict=True):
                line[side] = "" if value is None else f"{value:.3g} {'met' if aim.met(value) else 'missed'}"
            found.append(line)
    if found:
        print("\nAims; why some are missed in a record stands in docs/measurements.md")
        common.print_table(found)


def ending(rows: Sequence[Row], failed: Mapping[str, str]) -> str:
    """Return in words how many figures were measured, why others were not, and which benchmarks failed."""
    figures = [(row["why"], row["numbers"][key][1]) for row in rows for key in claimed(row)]
    reasons = Counter(why or "not here" for why, here in figures if here is None and not why.startswith("failed: "))
    said = [f"{sum(here is not None for _, here in figures)} of {len(figures)} recorded figures were measured here."]
    said += [f"{count} were not: {why}." for why, count in reasons.items()]
    return "\n".join([*said, *(f"FAILED {name}: {why}" for name, why in failed.items())])


if __name__ == "__main__":
    sys.exit(main())
