"""Every figure that the course claims of itself, measured on this machine beside the record that it comes from.

    python benchmarks/everything.py [--quick] [--only NAME ...] [--records DIR] [--json FILE]

A claim is a row of a record; docs/measurements.md shows them all, README, lessons and docs quote them. Every benchmark
that has a record is run again, in a process of its own, by the command that the record names, or by its short form
(--quick); its rows are joined with the record's by their names. Of each row one figure is printed: what is recorded,
where and when, what was seen here, and here / recorded. Ratios hold on other machines, times do not. The file of --json
has every number of the rows, and --records keeps what each benchmark wrote.

What cannot run here says why: it needs a GPU, or two, or data. A benchmark that fails is named, and the others go on;
then the exit code is 1. The short form takes about five minutes on two cores. It leaves out what takes much longer even
when short, and what would compute something smaller under the same name.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import common
import measurements
from unrolled import device

HERE = Path(__file__).resolve().parent
FIGURES = common.ROOT / "docs" / "figures.md"
ONCE = "## Measured once"
"""The heading above the figures that no program measures again."""
LIMIT = 150.0  # seconds for the short form of one benchmark
WITHOUT_GPU = "CPU"  # the section of a benchmark for GPUs that runs on the host
SMALLER = {"gpu_kernels": (), "precision": (), "lstm": (WITHOUT_GPU,)}
"""Benchmarks whose short form takes smaller arrays or other data, and the sections that stay as they are."""
LONG = ("grading", "operating_curve", "verdicts")
"""What takes a minute or more even in its short form: many verdicts, and gradings of whole classes."""
FACTORS = ("speedup", "efficiency", "faster", "ratio", "accuracy", "within_2x", "of_copy")
COUNTS = ("erred", "fail", "points", "scores_that_differ")
OF_THE_MACHINE = ("epoch_s", "ours_s", "bus_gb_s", "gb_per_s", "tflops", "gpu_s", "seconds")
OF_THE_MACHINE_US = ("waits_us", "us", "device_us", "host_us")
HEADLINES = (*FACTORS, *COUNTS, *OF_THE_MACHINE, *OF_THE_MACHINE_US)
"""The figure of a row that is printed: the first of these that it has, else its first number."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """How a benchmark is run here: the arguments of each run, and for which sections of its record; None: for all.

    `why` says what keeps the others from being measured.
    """

    runs: list[list[str]]
    sections: tuple[str, ...] | None = None
    why: str = ""


@dataclass
class Seen:
    """What a benchmark's runs gave: rows by name, and in words what failed."""

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
        found, failed = measured(names, records, programs, chosen, chosen.records or Path(folder))
    common.print_table([short(row) for row in found])
    print(f"\n{ending(found, failed)}")
    if not chosen.only:
        print("\nMeasured once, by hand; no program measures these again (docs/figures.md):")
        print("\n".join(f"  {line}" for line in measured_once(FIGURES.read_text(encoding="utf-8"))))
    common.save(chosen, found, ("unrolled", "numpy"))
    return int(bool(failed))


def measured(
    names: Sequence[str], records: Mapping[str, Row], programs: Sequence[str], chosen: Any, folder: Path
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Run the benchmarks of these names; return a row for every claim, and by name what failed."""
    found, failed, here = list[dict[str, Any]](), dict[str, str](), gpus()
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name not in programs:
            failed[name] = f"{name}.json is a record of no benchmark: benchmarks/{name}.py is not there"
        elif name not in records:
            failed[name] = f"benchmarks/{name}.py has no record"
        plan = planned(name, records[name], chosen.quick, here) if name in records and name in programs else Plan([])
        seen = run(name, plan, folder, LIMIT if chosen.quick else None)
        if seen.failed:
            failed[name] = seen.failed
        if name in records:
            found += joined(name, records[name], plan, seen)
    return found, failed


def run(name: str, plan: Plan, folder: Path, limit: float | None) -> Seen:
    """Run a benchmark as planned, with at most so many seconds for each run; its records are written to `folder`."""
    seen = Seen()
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


def threads(words: Sequence[str]) -> list[str]:
    """Return the option --threads of a command, if it has one."""
    return next((list(words[at : at + 2]) for at, word in enumerate(words) if word == "--threads"), [])


def joined(name: str, record: Row, plan: Plan, seen: Seen) -> list[dict[str, Any]]:
    """Return the record's rows, each beside what was seen of it here, or why nothing was."""
    about = {"record": name, "date": str(record["date"])[:10]}
    return [
        about | {"machine": machine(row, record)} | beside(row, seen.rows.get(row["name"]), reason(row, plan, seen))
        for row in record["rows"]
    ]


def machine(row: Row, record: Row) -> str:
    """Return what a recorded row was measured on: the GPU, if its record has one and the row is not of the host."""
    facts = record["machine"]
    return str(facts["gpu"] if "gpu" in facts and row.get("section") != WITHOUT_GPU else facts["processor"])


def beside(row: Row, here: Row | None, why: str) -> dict[str, Any]:
    """Return a recorded row's name and headline, what was seen of it, their ratio, and all numbers of both."""
    which = headline(row)
    value = row.get(which)
    seen = (here or {}).get(which)
    if here is not None and not is_number(seen):
        why = str(here.get("absent") or here.get("failed") or here.get("error") or f"the row has no {which} here")
    found = {"name": row["name"], "figure": which, "recorded": value, "here": seen if is_number(seen) else None}
    found["here / recorded"] = seen / value if is_number(seen) and is_number(value) and value else None
    both = {key: [row[key], (here or {}).get(key)] for key in row if is_number(row[key])}
    return found | {"why": why if found["here"] is None else "", "numbers": both}


def reason(row: Row, plan: Plan, seen: Seen) -> str:
    """Return why a row was not measured."""
    if plan.sections is not None and row.get("section") not in plan.sections:
        return plan.why
    rest = plan.why if plan.sections is None else ""
    return f"failed: {seen.failed}" if seen.failed else rest or "not in this run"


def headline(row: Row) -> str:
    """Return the name of the figure of a row that is printed, "" where it has no number."""
    return next((key for key in (*HEADLINES, *row) if is_number(row.get(key))), "")


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def short(row: Row) -> dict[str, Any]:
    """Return what a line of the table shows of a row; the reason stands in the place of the figure seen here."""
    where = f"{row['record']}.json, {row['date']}, {row['machine']}"
    shown = {key: row[key] for key in ("name", "figure", "recorded")} | {"from": where}
    return shown | {"here": row["why"] or row["here"], "here / recorded": row["here / recorded"]}


def ending(rows: Sequence[Row], failed: Mapping[str, str]) -> str:
    """Return in words how many figures were measured, why others were not, and which benchmarks failed."""
    reasons = Counter(row["why"] for row in rows if row["why"] and not row["why"].startswith("failed: "))
    measured_here = sum(row["here"] is not None for row in rows)
    lines = [f"{measured_here} of {len(rows)} recorded figures were measured here."]
    lines += [f"{count} were not: {why}." for why, count in reasons.items()]
    return "\n".join([*lines, *(f"FAILED {name}: {why}" for name, why in failed.items())])


def measured_once(page: str) -> Iterator[str]:
    """Yield the figures that docs/figures.md says were measured once, with their page and how."""
    part = page.partition(ONCE)[2].partition("\n## ")[0]
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0].strip("-") not in ("", "figure"):
            yield f"{cells[2]}: {cells[0]} ({cells[1]})"


if __name__ == "__main__":
    sys.exit(main())
