"""A lesson's record, at the end of its page: what its checks found in a complete run, and what was recorded for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from unrolled import device
from unrolled.checks.report import Report
from unrolled.show import words

RUN = """\
## The record

A complete answer to each exercise, on the machine that built this page ({cpu}):

{lines}"""
RECORDED = """

Recorded for this lesson (all figures stand in the [measurements](../docs/measurements.md)):

{lines}"""


def of_lesson(lesson: str, reports: Iterable[Report], measurements: str) -> str:
    """Return the record as Markdown; `measurements` is the text of docs/measurements.md, whose table names lessons."""
    checked = (f"- `{one.check}`, {one.points:g} of {one.max_points:g}: {'; '.join(_found(one))}" for one in reports)
    table = (line[2:-2].split(" | ") for line in measurements.splitlines() if line.startswith("| ["))
    recorded = [
        f"- {link.replace('](#', '](../docs/measurements.md#')}: {where}, {date}"
        for link, lessons, where, date in table
        if lesson[:2] in lessons.split(", ")
    ]
    text = RUN.format(cpu=device.describe()["cpu"], lines="\n".join(checked))
    return text + RECORDED.format(lines="\n".join(recorded)) if recorded else text


def _found(report: Report) -> Iterator[str]:
    """What a check found of each part, in words, and the rung it put on the ladder."""
    for part in report.parts:
        yield str(report.timing).rstrip(".") if report.timing and part.name.endswith("/speed") else part.detail
    if rung := report.rung:
        yield f"{rung['label']}: {words.seconds(rung['seconds'])} for 60,000 images"
