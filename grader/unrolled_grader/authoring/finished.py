"""The finished ladder: seconds for an epoch of MNIST, from the first source's 30 minutes down, made from the records.

A page of the site has the ladder between two marks. The build keeps this table, and `unrolled site` draws the picture
beside it. A rung whose record has no such row is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled_grader.authoring.variants import LessonError

if TYPE_CHECKING:
    from unrolled.show.picture import Picture

PAGE = "site/ladder.md"
RECORDS = ("benchmarks/results", "lib/unrolled/records")
BEGIN = "<!-- the finished ladder: `unrolled build` makes it from the records -->"
END = "<!-- the end of the ladder -->"
PICTURE = "finished_ladder.png"
EPOCH = 60_000  # images
HOST = "CPU"  # the section of a record of a GPU that was measured on its host
ON_HOST = r"(?P<host>, (?:on the )?CPU)?"
FORMS: Mapping[str, str] = {
    "mnist_cnn": r"mnist step, batch (?P<batch>\d+)",
    "gpu": r"mnist epoch, batch (?P<batch>\d+)",
    "compiled": r"(?:compiled (?:step|epoch), batch (?P<batch>\d+)|mnist epoch, batch (?P<of_epoch>\d+), compiled)"
    rf"{ON_HOST}",
}
"""What names the rows have that are rungs, by how the names of their records begin."""

Rung = dict[str, Any]


def pages(root: Path) -> dict[str, bytes]:
    """Return the page of a checkout that holds the ladder, as it should be, by its path.

    A checkout that lacks records of ours keeps what stands there.
    """
    text = (root / PAGE).read_bytes().decode() if (root / PAGE).is_file() else ""
    known = records(root) if BEGIN in text else {}
    complete = {*FORMS} - {"compiled"} <= {*known}
    return {PAGE: with_ladder(text, ours(known)).encode()} if complete else {}


def records(root: Path) -> dict[str, Any]:
    """Return the records that have rungs, by name; those of them that the checkout has."""
    files = [file for name in FORMS for folder in RECORDS for file in sorted((root / folder).glob(f"{name}*.json"))]
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files if _form(file.stem)}


def picture(root: Path) -> Picture:
    """Return the ladder of a checkout's records as a picture."""
    from unrolled import show

    rungs = ours(records(root))
    plain = [rung | {"label": rung["label"].replace("`", ""), "how": "recorded"} for rung in rungs]
    drawn = show.ladder(sorted(plain, key=itemgetter("seconds"), reverse=True))
    drawn.alt = alt(rungs)
    return drawn


def with_ladder(text: str, rungs: Sequence[Rung]) -> str:
    """Return the page's text with the ladder between its marks. Raises LessonError where the second one is missing."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise LessonError(f"{PAGE}: after {BEGIN!r} a line must say {END!r}")
    return f"{before}{BEGIN}\n\n{table(rungs)}\n\n{END}{after}"


def ours(known: Mapping[str, Any]) -> list[Rung]:
    """Return the rungs that these records have: label, seconds, batch, hardware, and which record of which day."""
    found: dict[tuple[str, str, int], Rung] = {}
    for name, record in known.items():
        for row in record["rows"]:
            for rung in _rungs(name, record, row):
                same = rung["label"], rung["hardware"], rung["batch"]
                if same not in found or "epoch" in row["name"]:  # better than a step, times so many
                    found[same] = rung
    return list(found.values())


def everybodys(rungs: Sequence[Rung]) -> list[Rung]:
    """Return the source's rungs and ours, the slowest first."""
    from unrolled.show.ladder import REFERENCES

    credit = "the first source, an article on CuPy (Qiita, 2020)"
    theirs = [{"batch": 8, "hardware": "hosted CPU", **rung, "origin": credit} for rung in REFERENCES]
    return sorted([*theirs, *rungs], key=lambda rung: -rung["seconds"])


def table(rungs: Sequence[Rung]) -> str:
    """Return the ladder as a Markdown table, the slowest rung first."""
    from unrolled.show import words

    rows = everybodys(rungs)
    slowest = rows[0]["seconds"]
    lines = ["| an epoch | faster | what | batch | machine | measured by |", "| ---: | ---: | --- | ---: | --- | --- |"]
    for rung in rows:
        seconds = rung["seconds"]
        faster = words.times(slowest / seconds) if seconds < slowest else ""
        cells = (words.seconds(seconds), faster, *(rung[key] for key in ("label", "batch", "hardware", "origin")))
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def alt(rungs: Sequence[Rung]) -> str:
    """Return in words what the picture shows."""
    from unrolled.show import words

    descriptions = (
        f"{rung['label'].replace('`', '')}, batch {rung['batch']}, {rung['hardware']}, {words.seconds(rung['seconds'])}"
        for rung in everybodys(rungs)
    )
    return f"The finished ladder, seconds for an epoch of MNIST on a log scale: {'; '.join(descriptions)}."


def _rungs(name: str, record: Mapping[str, Any], row: Mapping[str, Any]) -> list[Rung]:
    """The rung that a row is, if it is one, and that of the same epoch from Python, if it was recorded beside it."""
    found = re.fullmatch(_form(name), row["name"])
    if found is None or not row.get("ours_s"):
        return []
    fields = found.groupdict()
    batch = int(fields["batch"] or fields["of_epoch"])
    facts = record["machine"]
    on_gpu = "gpu" in facts and not fields.get("host") and row.get("section") != HOST
    rung = {
        "label": f"this course, {'`nn.compiled`' if name.startswith('compiled') else 'CuPy' if on_gpu else 'NumPy'}",
        "seconds": row["ours_s"] if "epoch" in row["name"] else row["ours_s"] * EPOCH / batch,
        "batch": batch,
        "hardware": str(facts["gpu"]) if on_gpu else f"{facts['processor']}, {facts['cores']} cores",
        "origin": f"`{name}.json`, {str(record['date'])[:10]}",
    }
    beside = row.get("eager_s") if on_gpu and "epoch" in row["name"] else None
    return [rung, rung | {"label": "this course, CuPy", "seconds": beside}] if beside else [rung]


def _form(name: str) -> str:
    """What names the rungs of a record have; "" for a record without any."""
    return FORMS["compiled"] if name.startswith("compiled") else FORMS.get(name, "")
