"""Write docs/measurements.md, and the table of docs/gpu.md, from the records.

    python benchmarks/measurements.py            write them
    python benchmarks/measurements.py --check    exit with 1 if they are not what the records say

They are made, never typed: to change a figure, measure again.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aims
import common

HERE = Path(__file__).resolve().parent
PAGE, GPU_PAGE = (common.ROOT / "docs" / name for name in ("measurements.md", "gpu.md"))
TABLE = re.compile(r"(?<=<!-- made from twins_random.json -->\n\n).*?(?=<!-- to here -->)", re.DOTALL)
INTRODUCTION = """\
# Measurements

For whoever wants to know what a claim rests on. Made by `python benchmarks/measurements.py` from the records in
`benchmarks/results/` and, where lessons quote them, in `lib/unrolled/records/`. Every record says which machine,
versions and command it comes from. Ratios were measured side by side in one run; absolute times are of that machine.
Where rows have an aim ("at most", "at least"), the column "aim" says whether they meet it; below the tables stands why
some miss it.

`make bench` measures what it can of them again, on your machine, and prints each figure beside the record.
"""
LESSONS: Mapping[str, tuple[str, ...]] = {
    "attention": ("14",),
    "attention_cpu": ("14",),
    "cifar_cnn": ("06",),
    "compiled": ("13",),
    "compiled_cpu": ("13",),
    "convolutions": ("10",),
    "cpu": ("02", "04"),
    "cpu_convolutions": ("10",),
    "gpu": ("03", "06", "07", "08", "12", "13"),
    "gpu_kernels": ("08",),
    "gpu_ops": ("07",),
    "gpu_precision": ("11",),
    "ladder": ("02",),
    "lstm": ("09",),
    "mnist_cnn": ("05",),
    "parallel": ("12",),
    "parallel_cpu": ("12",),
    "pooling": ("03",),
    "precision": ("11",),
    "simgpu": ("03", "06", "07", "08"),
}
"""The lessons that a benchmark measures something for: at their end the site names its record."""


def records() -> dict[str, dict[str, Any]]:
    """Return all records, by the name of the benchmark that made each."""
    files = [file for folder in common.RECORDS for file in folder.glob("*.json")]
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def page(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the whole page; `records` by the name of the benchmark that made them."""
    names = sorted(records)
    return "\n".join([INTRODUCTION, *contents(records), *(section(name, records[name]) for name in names)])


def contents(records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a table of the sections: what each measures, for which lessons, on which machine, when."""
    rows = []
    for name, record in sorted(records.items()):
        heading, machine = title(HERE / f"{name}.py"), record["machine"]
        anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        lessons, where = ", ".join(LESSONS.get(name, ())), machine.get("gpu") or machine["processor"]
        rows.append(f"| [{heading}](#{anchor}) | {lessons} | {where} | {record['date'][:10]} |")
    return ["| measured | for lessons | on | date |", "| --- | --- | --- | --- |", *rows, ""]


def section(name: str, record: Mapping[str, Any]) -> str:
    """Return one record as Markdown: what it measures, its table, where it comes from."""
    lines = [f"## {title(HERE / f'{name}.py')}", "", *tables(record["rows"]), *shortfalls(name, record["rows"])]
    machine = ", ".join(f"{key} {text(value)}" for key, value in record["machine"].items() if value is not None)
    versions = ", ".join(f"{key} {value}" for key, value in record["versions"].items() if value is not None)
    lines += [f"`{record['command']}`, {record['date'][:10]}, commit {str(record['commit'])[:10]}.", ""]
    return "\n".join([*lines, f"Machine: {machine}. Versions: {versions}.", ""])


def shortfalls(name: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the aims that a record's rows miss, each with the reason, as a list."""
    found = list(aims.missed(rows))
    for row, aim in found:
        why = aims.FALLS_SHORT.get((name, row["name"], aim.figure), "no reason is known")
        figure = f"{column_name(aim.figure)} {text(row[aim.figure])}"
        yield f"- Missed: {row['name']}, {figure}, {aim.side} {aim.bound:g}: {why}."
    if found:
        yield ""


def title(script: Path) -> str:
    """Return the first line of the benchmark's docstring, without the full stop."""
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or script.stem
    return docstring.partition("\n")[0].rstrip(".")


def tables(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a table for each section that the rows name, in their order; without sections, one for all."""
    sections: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        sections.setdefault(row.get("section"), []).append({k: v for k, v in row.items() if k != "section"})
    lines = []
    for heading, part in sections.items():
        if any(map(aims.outcome, part)):
            part = [{**row, "aim": aims.outcome(row)} for row in part]
        lines += [*([f"### {heading}", ""] if heading else []), *table(part), ""]
    return lines


def table(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a Markdown table with a column for every key whose values are plain."""
    rows = list(rows)
    keys = [
        key
        for key in dict.fromkeys(key for row in rows for key in row)
        if all(common.plain(row.get(key)) for row in rows)
    ]
    head = "| " + " | ".join(map(column_name, keys)) + " |"
    rule = "| " + " | ".join("---" if isinstance(rows[0].get(key), str) else "---:" for key in keys) + " |"
    return [head, rule, *("| " + " | ".join(text(row.get(key)) for key in keys) + " |" for row in rows)]


def column_name(key: str) -> str:
    return key.replace("_", " ")


def text(value: Any) -> str:
    """Return a number with three significant digits; everything else as it is."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def differing(record: Mapping[str, Any]) -> str:
    """Return the table of docs/gpu.md: what differs on purpose between CuPy and the simulated GPU."""
    search, *rows = record["rows"]
    where = f"CuPy {record['versions']['cupy']} on an {record['machine']['gpu']}, {record['date'][:10]}"
    head = f"| {where} | in {search['programs']:,} programs | the smallest one | CuPy; here |"
    cells = ((row["name"], row["times"], _code("; ".join(row["program"])), _code(row["detail"][0])) for row in rows)
    lines = ("| " + " | ".join(map(str, row)) + " |" for row in cells)
    return "\n".join([head, "| --- | ---: | --- | --- |", *lines, ""])


def _code(words: str) -> str:
    """Return words as code in a cell of a table."""
    return "`" + words.replace("|", "\\|") + "`"


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if one is out of date")
    options = parser.parse_args()
    found = records()
    made = {PAGE: page(found)}
    made[GPU_PAGE] = TABLE.sub(lambda _: differing(found["twins_random"]), GPU_PAGE.read_text(encoding="utf-8"))
    for file, text in made.items():
        if not options.check:
            file.write_text(text, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            print(f"{file.name} is not what the records say: run `python {sys.argv[0]}`")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
