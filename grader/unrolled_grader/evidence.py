"""What a notebook's run proves: the structured verdict of each check, read from the check's own cell and nowhere else.

Printed text, numbers, pictures, warnings and exceptions prove nothing, and neither does a verdict that another cell
displays. No evidence is 0 points, with the reason why there is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from nbformat import NotebookNode

from unrolled.checks import MIME, Spec
from unrolled.notebooks import DEAD, TIMEOUT, CellError, Executed, grade_id
from unrolled.timing import Verdict

VERDICTS = ("pass", "fail", "inconclusive", "deferred", "crashed", "timeout", "missing")
CELL = "check_"
"""A check's cell has this before the check's name as its grade_id."""


@dataclass(frozen=True)
class Score:
    """One scored part of a check, a row of scores.csv. `part` is "conv2d_gemm" or "conv2d_gemm/speed"."""

    part: str
    verdict: str
    points: float
    max_points: float
    detail: str
    flag: str = ""
    """Why a person should look at it; empty if there is no need."""
    timings: tuple[dict[str, Any], ...] = ()
    """Every measurement behind a speed verdict, in order, as `timing.Verdict.to_dict` writes it."""

    @property
    def check(self) -> str:
        return self.part.partition("/")[0]


def part_points(check: str, spec: Spec) -> dict[str, float]:
    """The parts of a check and what each is worth. The spec alone says so, never the notebook."""
    points = {check: float(spec.points)}
    if spec.speed is not None:
        points[f"{check}/speed"] = float(spec.speed.points)
    return points


def without(check: str, spec: Spec, verdict: str, reason: str, flag: str = "") -> tuple[Score, ...]:
    """The check's parts where nothing is proved: 0 points each, for this reason."""
    return tuple(Score(part, verdict, 0.0, most, reason, flag) for part, most in part_points(check, spec).items())


def read(executed: Executed, check: str, spec: Spec) -> tuple[Score, ...]:
    """The scored parts of `check` in this run."""
    index, cell = _check_cell(executed.notebook, check)
    if cell is None:
        return without(check, spec, "missing", "the check's cell is not in the notebook")
    found = _verdicts_in(cell, check)
    if not found:
        return without(check, spec, *_why_none(executed, index))
    if len(found) > 1:
        reason = f"the check's cell shows {len(found)} verdicts, expected one"
        return without(check, spec, "missing", reason, "more than one verdict: look at the notebook")
    try:
        return _scores(found[0], check, spec)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"the verdict that the notebook shows is refused: {error}"
        return without(check, spec, "missing", reason, "a verdict that no check writes: look at the notebook")


def _check_cell(notebook: NotebookNode, check: str) -> tuple[int, NotebookNode | None]:
    """The check's cell and its index; of several with the same grade_id the last, as nbgrader does."""
    for index in reversed(range(len(notebook.cells))):
        if notebook.cells[index].cell_type == "code" and grade_id(notebook.cells[index]) == CELL + check:
            return index, notebook.cells[index]
    return -1, None


def _verdicts_in(cell: NotebookNode, check: str) -> list[dict[str, Any]]:
    """What the cell displayed as the verdict of `check`; what it displayed of other checks counts for nothing."""
    shown = [output.get("data", {}).get(MIME) for output in cell.outputs]
    return [data for data in shown if isinstance(data, dict) and data.get("check") == check]


def _why_none(executed: Executed, index: int) -> tuple[str, str]:
    """Verdict and reason for a check's cell that shows no verdict."""
    for error in executed.errors:
        if error.cell_index == index:
            return _of_error(error, f"{error.name}: {error.message}")
    last = executed.errors[-1] if executed.stopped else None
    if last is not None and index >= last.cell_index:
        return _of_error(last, f"not run: {executed.stopped} ({last})")
    return "missing", "the check's cell was not run or shows no verdict"


def _of_error(error: CellError, reason: str) -> tuple[str, str]:
    verdict = {TIMEOUT: "timeout", DEAD: "crashed", "NameError": "missing"}.get(error.name, "crashed")
    return verdict, reason


def _scores(data: Mapping[str, Any], check: str, spec: Spec) -> tuple[Score, ...]:
    """The scores that a check's verdict claims. Raises ValueError (or KeyError, TypeError) for what no check writes."""
    claims = {part["name"]: part for part in data["parts"]}
    expected = part_points(check, spec)
    if claims.keys() != expected.keys() or len(data["parts"]) != len(expected):
        raise ValueError(f"its parts are {sorted(map(str, claims))}, expected {sorted(expected)}")
    timing = _timing(data["timing"], spec)
    return tuple(
        _score(claims[part], part, most, (timing,) if timing and part.endswith("/speed") else ())
        for part, most in expected.items()
    )


def _score(claim: Mapping[str, Any], part: str, most: float, timings: tuple[dict[str, Any], ...]) -> Score:
    verdict, points = claim["verdict"], claim["points"]
    if verdict not in VERDICTS:
        raise ValueError(f"{part} has the verdict {verdict!r:.40}")
    if not _is_number(points) or not 0 <= points <= most:
        raise ValueError(f"{part} claims {points!r:.40} points, expected 0 to {most:g}")
    if points > 0 and verdict not in ("pass", "inconclusive"):
        raise ValueError(f"{part} claims {points:g} points for the verdict {verdict}")
    return Score(part, verdict, float(points), most, str(claim["detail"]), timings=timings)


def _timing(data: Any, spec: Spec) -> dict[str, Any] | None:
    """The measurement, if there is one and it is of the form that `timing.compare` gives for this spec."""
    if data is None:
        return None
    verdict = Verdict.from_dict(data)
    numbers = (verdict.ratio, verdict.low, verdict.high, verdict.at_least, verdict.seconds)
    if not all(isinstance(number, (int, float)) for number in numbers):
        raise ValueError("its timing holds something that is no number")
    if spec.speed is None or verdict.at_least != spec.speed.at_least:
        raise ValueError(f"it was timed against a factor of {verdict.at_least}, which the check does not ask")
    return verdict.to_dict()


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
