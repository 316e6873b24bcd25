"""Every figure that the course claims of itself, measured on this machine beside the record that it comes from.

    python benchmarks/everything.py [--quick] [--only NAME ...] [--records DIR] [--json FILE]

A claim is a row of a record; docs/measurements.md shows them all, README, lessons and docs quote them. Every benchmark
that has a record is run again, in a process of its own, by the command that the record names, or by its short form
(--quick); its rows are joined with the record's by their names. Printed are the figures of each row, with what is
recorded and what was seen here, and whether each meets its aim. Ratios hold on other machines, times do not.
The file of --json has every number of the rows, and --records keeps what each benchmark wrote.

What cannot run here says why: it needs a GPU, or two, or data. A benchmark that fails is named, and the others go on;
then the exit code is 1. The short form takes about five minutes on two cores. It leaves out what takes much longer
even when short, and what would compute something smaller under the same name.
"""

from __future__ import annotations

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
LEFT_OUT = {
    **dict.fromkeys(
        ("attention", "attention_cpu", "grading", "operating_curve", "verdicts", "whole_course"),
        "left out: it takes long even with --quick",
    ),
    **dict.fromkeys(
        ("gpu_kernels", "precision", "lstm", "memory"), "left out: --quick would compute something smaller"
    ),
}
"""Benchmarks that have no short form here, and why."""
FIGURES = """ratio ratio_graph ratio_compiled ratio_eager ratio_apart over_no_overlap modelled_ratio host_ratio
    device_ratio faster backward_faster speedup times_faster efficiency of_copy of_peer of_peak of_plain
    accuracy test_accuracy within_2x host_within_2x inconclusive_share erred pass fail inconclusive points wrong lost
    unequal launches ours_s epoch_s eager_s slowest_s two_ranks_s median_s gpu_s seconds us device_us host_us waits_us
    modelled_us lowest_us highest_us bus_gb_s gb_per_s gflops tflops peak_mb above_one_mb"""
CLAIMED = FIGURES.split()  # what is printed of a row
Row = Mapping[str, Any]


@dataclass
class Seen:
    """What a benchmark's runs gave: rows by name; why others are missing; in words what failed."""

    why: str = ""
    rows: dict[str, Row] = field(default_factory=dict)
    failed: str = ""


def main() -> int:
    """Measure, print, write what was asked for. Return 1 if a benchmark failed."""
    reader = common.parser(__doc__)
    reader.add_argument("--only", nargs="+", metavar="NAME", help="these benchmarks alone")
    reader.add_argument("--records", type=Path, metavar="DIR", help="keep each benchmark's record there")
    chosen = reader.parse_args()
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
    print(f"\n{ending(found, failed)}")
    common.save(chosen, found)
    return int(bool(failed))


def measured(
    names: Sequence[str], records: Mapping[str, Row], programs: Sequence[str], chosen: Any, folder: Path
) -> dict[str, Seen]:
    """Run the benchmarks of these names; return what each gave, by name."""
    found, module = dict[str, Seen](), device.gpu()
    here = 0 if device.is_simulated(module) else int(module.cuda.runtime.getDeviceCount())
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in programs and name in records:
            runs, why = planned(name, records[name], chosen.quick, here)
            found[name] = run(name, runs, Seen(why), folder, LIMIT if chosen.quick else None)
            continue
        gone = f"{name}.json is a record of no benchmark: benchmarks/{name}.py is not there"
        found[name] = Seen(failed=gone if name in records else f"benchmarks/{name}.py has no record")
    return found


def run(name: str, runs: Sequence[list[str]], seen: Seen, folder: Path, limit: float | None) -> Seen:
    """Run a benchmark with these arguments, each time for at most so many seconds; its records go to `folder`."""
    for number, arguments in enumerate(runs):
        file = folder / (f"{name}-{number}.json" if number else f"{name}.json")
        file.unlink(missing_ok=True)
        command, start = [sys.executable, str(HERE / f"{name}.py"), *arguments, "--json", str(file)], time.monotonic()
        try:
            done = subprocess.run(command, cwd=common.ROOT, capture_output=True, text=True, timeout=limit, check=False)
            output = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()] or ["it says nothing"]
            failed = f"exit code {done.returncode}: {output[-1]}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            failed = f"it took more than {limit:g} s"
        if file.exists():
            seen.rows |= {row["name"]: row for row in json.loads(file.read_text(encoding="utf-8"))["rows"]}
        seen.failed = seen.failed or failed
        print(f"{name}: {failed or 'done'}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return seen


def benchmarks(folder: Path) -> list[str]:
    """Return the names of the programs that write a record: their texts begin with how, and have the option --json."""
    files = (file for file in folder.glob("*.py") if file != Path(__file__).resolve())
    return sorted(file.stem for file in files if re.search(r"(?m)^    python .*--json", file.read_text("utf-8")))


def planned(name: str, record: Row, quick: bool, gpus: int) -> tuple[list[list[str]], str]:
    """Return the arguments of each run on a machine with so many GPUs, and why rows may be missing then."""
    needs = int(record["machine"].get("gpus", bool(record["machine"].get("gpu"))))
    if needs > gpus:
        return [], "needs a GPU" if needs == 1 else "needs two GPUs"
    if quick and name in LEFT_OUT:
        return [], LEFT_OUT[name]
    commands = [arguments(command, name) for command in str(record["command"]).split("; ")]
    if quick:
        at = commands[0].index("--threads") if "--threads" in commands[0] else len(commands[0])
        return [["--quick", *commands[0][at : at + 2]]], "not in the short form"
    return commands, "not in this run"


def arguments(command: str, name: str) -> list[str]:
    """Return what a record's command gives to its benchmark, without the files that it writes."""
    words = shlex.split(command)
    words = words[next(at for at, word in enumerate(words) if word.endswith(f"{name}.py")) + 1 :]
    files = [at for at, word in enumerate(words) if word in ("--json", "--picture")]
    return [word for at, word in enumerate(words) if at not in files and at - 1 not in files]


def joined(name: str, record: Row, seen: Seen) -> list[dict[str, Any]]:
    """Return the record's rows: their numbers with what was seen of them here, or why nothing was."""
    rows, missing = [], f"failed: {seen.failed}" if seen.failed else seen.why
    for row in record["rows"]:
        here = seen.rows.get(row["name"])
        reasons = [here.get(key) for key in ("error", "failed", "absent")] if here else [missing]
        numbers = {key: [row[key], number((here or {}).get(key))] for key in row if number(row[key]) is not None}
        about = {"record": f"{name}.json, {str(record['date'])[:10]}", "name": row["name"]}
        about["why"] = next((why for why in reasons if isinstance(why, str)), "")
        rows.append({**about, "numbers": numbers, "aims": {aim.figure: vars(aim) for aim in aims.aims(row)}})
    return rows


def number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def claimed(row: Row) -> dict[str, list[Any]]:
    """Return the figures of a joined row that are printed: what is recorded, and what was seen here."""
    return {key: row["numbers"][key] for key in CLAIMED if key in row["numbers"]}


def lines(row: Row) -> Iterator[dict[str, Any]]:
    """Yield a line of the table for each figure of a joined row."""
    name = row["name"]
    for key, (recorded, here) in claimed(row).items():
        times = here / recorded if here is not None and recorded else None
        line = {"name": name, "figure": key, "recorded": recorded, "here": "not here" if here is None else here}
        line["here / recorded"] = times
        if key in row["aims"]:
            aim = aims.Aim(**row["aims"][key])
            outcomes = ["met" if aim.met(value) else "missed" for value in (recorded, here) if value is not None]
            line["aim"] = f"{aim.side} {aim.bound:g}: {', '.join(outcomes)}"
        yield line
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


def ending(rows: Sequence[Row], failed: Mapping[str, str]) -> str:
    """Return in words how many figures were measured, why others were not, and which benchmarks failed."""
    figures = [(row["why"], here) for row in rows for _, here in claimed(row).values()]
    reasons = Counter(why or "not here" for why, here in figures if here is None and not why.startswith("failed: "))
    texts = [f"{sum(here is not None for _, here in figures)} of {len(figures)} recorded figures were measured here."]
    texts += [f"{count} were not: {why}." for why, count in reasons.items()]
    return "\n".join([*texts, *(f"FAILED {name}: {why}" for name, why in failed.items())])


if __name__ == "__main__":
    sys.exit(main())
