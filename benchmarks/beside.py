"""What was seen here beside what is recorded, for everything.py: figure by figure, aim by aim, rung by rung."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import aims
import common
from unrolled.show import words
from unrolled_grader.authoring import finished

ONCE = "## Measured once"
"""The heading of docs/figures.md above the figures that no program measures again."""
WITHOUT_GPU = "CPU"  # the section of a benchmark for GPUs that runs on the host
NAME = 62  # letters of a row's name that are printed
RATIOS = ("ratio", "ratio_graph", "ratio_compiled", "ratio_eager", "ratio_apart", "over_no_overlap")
MODELLED = ("modelled_ratio", "host_ratio", "device_ratio")
FACTORS = ("faster", "backward_faster", "speedup", "times_faster", "efficiency", "of_copy", "of_peer", "of_peak")
SHARES = ("accuracy", "test_accuracy", "within_2x", "host_within_2x", "inconclusive_share")
COUNTS = ("erred", "pass", "fail", "inconclusive", "points", "wrong", "scores_that_differ", "graded_twice", "launches")
SECONDS = ("ours_s", "epoch_s", "eager_s", "slowest_s", "two_ranks_s", "median_s", "gpu_s", "seconds")
MICROSECONDS = ("us", "device_us", "host_us", "waits_us", "modelled_us", "lowest_us", "highest_us")
RATES = ("bus_gb_s", "gb_per_s", "gflops", "tflops", "tera_operations_s")
CLAIMED = (*RATIOS, *MODELLED, *FACTORS, *SHARES, *COUNTS, *SECONDS, *MICROSECONDS, *RATES)
"""The figures of a row that are printed."""

Row = Mapping[str, Any]


def joined(name: str, record: Row, row: Row, here: Row | None, why: str) -> dict[str, Any]:
    """Return a recorded row: its numbers and aims with what was seen of them here, or why nothing was."""
    seen = here or {}
    numbers = {key: [row[key], number_or_none(seen.get(key))] for key in row if number_or_none(row[key]) is not None}
    if here is not None:
        why = next((here[key] for key in ("absent", "failed", "error") if isinstance(here.get(key), str)), "")
    return {
        "record": name,
        "date": str(record["date"])[:10],
        "machine": machine(row, record),
        "name": row["name"],
        "why": why,
        "numbers": numbers,
        "aims": [
            {"figure": aim.figure, "aim": f"{aim.side} {aim.bound:g}"}
            | {side: met(aim, value) for side, value in zip(("recorded", "here"), numbers[aim.figure], strict=True)}
            for aim in aims.aims(row)
        ],
    }


def number_or_none(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def met(aim: aims.Aim, value: float | None) -> str:
    return "" if value is None else "met" if aim.met(value) else "missed"


def machine(row: Row, record: Row) -> str:
    """Return what a recorded row was measured on: the GPU, if its record has one and the row is not of the host."""
    facts = record["machine"]
    return str(facts["gpu"] if "gpu" in facts and row.get("section") != WITHOUT_GPU else facts["processor"])


def claimed(row: Row) -> list[str]:
    """Return the names of the figures of a joined row that are printed."""
    return [key for key in CLAIMED if key in row["numbers"]]


def lines(row: Row) -> Iterator[dict[str, Any]]:
    """Yield a line of the table for each figure of a joined row."""
    name = shortened(row["name"])
    for key in claimed(row):
        recorded, here = row["numbers"][key]
        times = here / recorded if here is not None and recorded else None
        seen = "not here" if here is None else here
        yield {"name": name, "figure": key, "recorded": recorded, "here": seen, "here / recorded": times}
        name = ""


def shortened(name: str) -> str:
    """Return a name without its middle, if it is too long to be printed."""
    half = NAME // 2
    return name if len(name) <= NAME else f"{name[: half - 1]}…{name[-half:]}"


def print_figures(rows: Sequence[Row]) -> None:
    """Print the figures of each record, and for how many rows nothing was measured."""
    for origin, part in groupby(rows, lambda row: f"{row['record']}.json, {row['date']}, {row['machine']}"):
        group = list(part)
        print(f"\n{origin}")
        if measured := [line for row in group if not row["why"] for line in lines(row)]:
            common.print_table(measured)
        for why, count in Counter(row["why"] for row in group if row["why"]).items():
            print(f"  {words.count_of(count, 'row')} not measured: {why}")


def print_aims(rows: Sequence[Row]) -> None:
    """Print each aim with the recorded figure and the one seen here, and whether they meet it."""
    found = []
    for row in rows:
        for aim in row["aims"]:
            sides = zip(("recorded", "here"), row["numbers"][aim["figure"]], strict=True)
            values = {side: "" if value is None else f"{value:.3g} {aim[side]}" for side, value in sides}
            name = shortened(f"{row['record']}: {row['name']}")
            found.append({"name": name, "aim": f"{aim['figure']} {aim['aim']}", **values})
    if found:
        print("\nAims; why some are missed in a record stands in docs/measurements.md")
        common.print_table(found)


def print_ladder(records: Mapping[str, Row], seen: Mapping[str, Mapping[str, Row]]) -> None:
    """Print the finished ladder of these records beside the seconds that the same rungs have in the rows seen here."""
    recorded = finished.ours(records)
    fresh = {name: {**records[name], "rows": list(rows.values())} for name, rows in seen.items() if name in records}
    here = {_rung(rung): words.seconds(rung["seconds"]) for rung in finished.ours(fresh)}
    if recorded:
        print("\nThe finished ladder: an epoch of MNIST")
        common.print_table(
            [
                {
                    "what": rung["label"].replace("`", ""),
                    "batch": rung["batch"],
                    "recorded": words.seconds(rung["seconds"]),
                    "on": rung["hardware"],
                    "here": here.get(_rung(rung), ""),
                    "from": rung["origin"].replace("`", "").partition(",")[0],
                }
                for rung in finished.everybodys(recorded)
            ]
        )


def _rung(rung: Row) -> tuple[Any, ...]:
    return tuple(rung[key] for key in ("label", "batch", "hardware", "origin"))


def ending(rows: Sequence[Row], failed: Mapping[str, str]) -> str:
    """Return in words how many figures were measured, why others were not, and which benchmarks failed."""
    figures = [(row["why"], row["numbers"][key][1]) for row in rows for key in claimed(row)]
    reasons = Counter(why or "not here" for why, here in figures if here is None and not why.startswith("failed: "))
    measured_here = sum(here is not None for _, here in figures)
    said = [f"{measured_here} of {len(figures)} recorded figures were measured here."]
    said += [f"{count} were not: {why}." for why, count in reasons.items()]
    return "\n".join([*said, *(f"FAILED {name}: {why}" for name, why in failed.items())])


def measured_once(page: str) -> Iterator[str]:
    """Yield the figures that docs/figures.md says were measured once, with their page and how."""
    part = page.partition(ONCE)[2].partition("\n## ")[0]
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0].strip("-") not in ("", "figure"):
            yield f"{cells[2]}: {cells[0]} ({cells[1]})"
