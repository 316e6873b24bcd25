"""`check.NAME(function)`: run an exercise's spec and show what it found. `check.NAME.hint()` helps in three steps.

A check never raises in a learner's hands and ends no cell with a value. Where nbgrader itself runs the notebook (it
sets NBGRADER_EXECUTION) a failing check raises CheckFailedError after it has spoken, so that nbgrader's Validate tells
the truth and a set-up without our grader cannot hand out full marks.
"""

from __future__ import annotations

import difflib
import html
import os
import secrets
import sys
from typing import Any

import unrolled
from unrolled import checks, journal
from unrolled.checks.report import MARKS, MIME, Finding, Report
from unrolled.notebook import frontend

__all__ = ["Check", "CheckFailedError", "start"]

COLOURS = {"pass": "#00694c", "inconclusive": "#8a5a00", "missing": "#555", "not run": "#555"}

ONCE_PASSED = "an earlier version of yours passed: until this one does, later cells use the library's function"


SEEDS = 10_000  # from which a check draws one: four digits are typed quickly


class CheckFailedError(AssertionError):
    """A check did not pass while nbgrader ran the notebook."""


class Check:
    """One exercise's check. Call it with the function; ask it for a `hint()`."""

    def __init__(self, name: str, spec: checks.Spec) -> None:
        self.name = name
        self.spec = spec
        self._hints_given = 0

    def __repr__(self) -> str:
        return f"check.{self.name}: call it with your function; check.{self.name}.hint() helps"

    def __call__(self, function: Any, seed: int | None = None) -> None:
        """Check the function with new inputs, show the findings and note them in the journal.

        Where something fails, the last line names the seed: with it the same inputs are drawn again.
        """
        display = _Display()
        fixed = os.environ.get("UNROLLED_SEED")  # set where a run has to repeat, as in tests: no ladder
        if not (seed is None or (isinstance(seed, int) and seed >= 0)):
            display.show(f"{self.name}: seed must be a whole number from 0 on, got {seed!r}")
            return
        if seed is None:
            seed = secrets.randbelow(SEEDS) if fixed is None else int(fixed)

        def announce(text: str) -> None:
            display.show(f"{self.name}: {text}")

        report = checks.run(self.name, self.spec, function, seed=seed, announce=announce, climb=fixed is None)
        display.show(str(report), report, self._closing(report, seed))
        if "NBGRADER_EXECUTION" not in os.environ:
            journal.note(report, function)
        elif not report.passed or (
            os.environ["NBGRADER_EXECUTION"] == "autograde" and report.points < report.max_points
        ):
            raise CheckFailedError(str(report))  # without our plugin, no error would be full marks

    def _closing(self, report: checks.Report, seed: int) -> str:
        """The last line: the time and the points that were earned, or where help is, and how to draw the same again."""
        from unrolled.show.words import seconds

        points = f"{report.points:g} of {report.max_points:g} point{'s' * (report.max_points != 1)}"
        if not report.passed:
            step = min(self._hints_given + 1, len(self.spec.hints))
            helps = f"{points}; check.{self.name}.hint() gives hint {step} of {len(self.spec.hints)}"
            written = all(finding.verdict != "missing" for finding in report.findings)
            again = [f"check.{self.name}(…, seed={seed}) draws the same inputs again"] if written else []
            return "; ".join([helps, *again, *([ONCE_PASSED] if self._passed_before() else [])])
        if not report.settled:
            return f"not settled: {report.points:g} of {report.max_points:g} for now; call the check again for the rest"
        if rung := report.rung:
            return f"{rung['label']}: {seconds(rung['seconds'])} for 60,000 images, on your ladder; {points}"
        return points

    def _passed_before(self) -> bool:
        """Whether the journal knows of a version that passed; where nbgrader runs, nothing is asked or noted."""
        noted = {} if "NBGRADER_EXECUTION" in os.environ else journal.read()["checks"]
        return bool(noted.get(self.name, {}).get("ever_passed"))

    def hint(self, step: int | None = None) -> None:
        """Print the next of three hints: the idea, the shapes, nearly the code. `hint(1)` goes back to the first."""
        last = len(self.spec.hints)
        if step is not None and not 1 <= step <= last:
            print(f"There are {last} hints: step must be 1 to {last}, got {step}.")
            return
        self._hints_given = step or min(self._hints_given + 1, last)
        print(f"Hint {self._hints_given} of {last}. {self.spec.hints[self._hints_given - 1]}")


class _Display:
    """Where the report appears: one output of the cell, announced and then filled, or plain text outside a notebook."""

    def __init__(self) -> None:
        self.handle: Any = None
        self.out = sys.stdout  # a function's own prints are turned away while it is timed

    def show(self, text: str, report: Report | None = None, closing: str = "") -> None:
        """Show a text; in a notebook in place of the one before, and with it a report's table and data."""
        text += f"\n  {closing}" if closing else ""
        if not hasattr(frontend.shell(), "kernel"):
            print(text, file=self.out, flush=True)
            return
        from IPython.display import display

        rich = {} if report is None else {"text/html": to_html(report, closing), MIME: report.to_dict()}
        if self.handle is None:
            self.handle = display({"text/plain": text, **rich}, raw=True, display_id=True)
        else:
            self.handle.update({"text/plain": text, **rich}, raw=True)


def start(lesson: str, version: str) -> None:
    """Greet the learner in the first cell of a lesson, list what passed, and warn of a library of another version."""
    print(f"Unrolled {unrolled.__version__}, lesson {lesson}. The journal is {journal.path()}.")
    noted = journal.read()["checks"]
    if passed := [name for name in checks.lessons().get(lesson, {}) if noted.get(name, {}).get("passed")]:
        print(f"Passed so far: {', '.join(passed)}.")
    if version != unrolled.__version__:
        print(
            f"Note: this notebook belongs to version {version} of the course, the library is {unrolled.__version__}. "
            "The checks may ask something else than the text. Install the matching version, or get the newer notebook."
        )


def to_html(report: Report, closing: str = "") -> str:
    """Return the report as a small HTML table. Everything that came from a learner's code is escaped."""
    rows, pairs = "".join(_row(finding) for finding in report.findings), ""
    if report.timing is not None:
        from unrolled import show

        pairs = f"<details><summary>the measured pairs</summary>{show.pairs(report.timing).html()}</details>"
    return f"<div><b>{html.escape(report.check)}</b><table>{rows}</table>{html.escape(closing)}{pairs}</div>"


def _row(finding: Finding) -> str:
    colour = COLOURS.get(finding.verdict, "#a8380b")  # of what failed
    lines = "".join(f"<div>{html.escape(line)}</div>" for line in finding.lines)
    cell = 'style="text-align:left; vertical-align:top; padding-right:1em"'
    mark = f'<span style="color:{colour}; white-space:nowrap">{MARKS[finding.verdict]} {finding.verdict}</span>'
    text = f"{html.escape(finding.case)}{lines}{_difference(finding)}"
    return f"<tr><td {cell}>{mark}</td><td {cell}>{text}</td></tr>"


def _difference(finding: Finding) -> str:
    """A picture of where the values differ, if they lie in a plane."""
    found = finding.mismatch
    if found is None or found.got is None or found.expected is None or min(found.expected.shape) < 2:
        return ""
    from unrolled import show

    return show.difference(found.got, found.expected).html()


def __getattr__(name: str) -> Check:
    specs = checks.all_specs()
    if name not in specs:
        near = difflib.get_close_matches(name, specs, n=1)
        advice = f"; did you mean check.{near[0]}?" if near else f"; there are {', '.join(specs)}"
        raise AttributeError(f"there is no check named {name}{advice}")
    check = globals()[name] = Check(name, specs[name])
    return check


def __dir__() -> list[str]:
    return ["start", *checks.all_specs()]
