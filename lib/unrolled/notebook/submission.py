"""Before a notebook is handed in: is every exercise and answer there, and what do the checks say?

Nothing here stops a learner from handing in less than everything: what is missing is said, and the file is made.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import unrolled
from unrolled import checks
from unrolled.checks.report import MARKS, Report
from unrolled.notebook import cells, frontend, handin
from unrolled.notebook.cells import mark, source

Record = dict[str, Any]

REHEARSAL = "UNROLLED_REHEARSAL"  # set in a run that is not the learner's, as by `unrolled check`: no hand-in there
STUB = "raise NotImplementedError"
EMPTY = "Your answer here."
WORDS = "in your own words"


class NotReadyError(ValueError):
    """Nothing can be handed in. The message says why, and what to do about it."""


@dataclass(frozen=True)
class Outcome:
    """What a check says of an exercise: whether it passed, its points, and why not, in a line."""

    passed: bool
    points: float
    max_points: float
    why: str = ""


def claims(nb: Record) -> tuple[str, str]:
    """Return the lesson and the version that a notebook says it is of; "" where it does not say."""
    if cells.claimed(nb)[0]:
        return cells.claimed(nb)
    text = "\n".join(map(source, nb["cells"]))
    found = re.search(r"""check\.start\(\s*["'](\w+)["']\s*,\s*["']([^"']+)["']""", text)
    return (found[1], found[2]) if found else ("", "")


def lesson_of(nb: Record, wanted: str | None = None) -> str:
    """Return the lesson whose notebook this is. Raises NotReadyError unless it is `wanted`, or any of the course's.

    A notebook that does not name its lesson counts as one of `wanted` if it has a cell for one of the exercises.
    """
    lessons = checks.lessons()
    lesson, _ = claims(nb)
    if not lesson and wanted and any(cell for name in lessons[wanted] for cell in cells_of(nb, name)):
        return wanted
    if lesson not in lessons:
        claim = f"says it is lesson {lesson!r}" if lesson else "does not say which lesson it is"
        raise NotReadyError(f"the notebook {claim}; this course has {', '.join(lessons)}")
    if wanted not in (None, lesson):
        raise NotReadyError(f"this is the notebook of {lesson}, not of {wanted}")
    return lesson


def problems(nb: Record, exercises: Iterable[str]) -> dict[str, str]:
    """Return what is missing or untouched, by exercise, in words; the answer in words stands under `WORDS`.

    A cell is found as the grader finds it: by its grade_id, or because it defines the function.
    """
    found = {}
    for name in exercises:
        texts = cells_of(nb, name)
        defining = [text for text in texts if defines(text, name)]
        if not texts:
            found[name] = f"missing: no cell defines {name}"
        elif not defining:
            found[name] = f"its cell does not define {name}"
        elif all(STUB in text for text in defining):
            found[name] = "not written yet"
    answer = _answer_problem(nb)
    return found | ({WORDS: answer} if answer else {})


def _answer_problem(nb: Record) -> str:
    texts = [source(cell) for cell in nb["cells"] if cell.get("cell_type") == "markdown" and _is_answer(cell)]
    if not texts:
        return "its cell has lost its mark, or is missing; the grader looks for it where it stood"
    return "" if any(text.strip() not in ("", EMPTY) for text in texts) else "not answered yet"


def _is_answer(cell: Record) -> bool:
    answer = mark(cell)
    return bool(answer.get("grade") and answer.get("solution")) or EMPTY in source(cell)


def cells_of(nb: Record, name: str) -> list[str]:
    """Return the text of the code cells that carry an exercise's grade_id or define its function."""
    texts = [(cell, source(cell)) for cell in nb["cells"] if cell.get("cell_type") == "code"]
    return [text for cell, text in texts if mark(cell).get("grade_id") == name or defines(text, name)]


def defines(text: str, name: str) -> bool:
    """Return whether a cell binds a name at its top level, judged by its text: with magics it is no valid Python."""
    bound = rf"^(?:(?:async[ \t]+)?(?:def|class)[ \t]+{re.escape(name)}\b|{re.escape(name)}[ \t]*(?::[^=\n]+)?=(?!=))"
    return bool(re.search(bound, text, re.MULTILINE))


def outcome(report: Report) -> Outcome:
    """Return what a check found, with the first case that did not pass, and why, in a line."""
    stopped = next(
        (f for f in report.findings if f.verdict not in ("pass", "inconclusive", "deferred", "not run")), None
    )
    why = ": ".join([stopped.case, *stopped.lines[:1]]) if stopped and not report.passed else ""
    return Outcome(report.passed, report.points, report.max_points, why)


def remembered(record: Record, exercises: Collection[str], found: Collection[str] = ()) -> dict[str, Outcome]:
    """Return what the journal knows of these exercises' last checks, except those `found` missing or not written."""
    entries = {name: record["checks"][name] for name in exercises if name in record["checks"] and name not in found}
    return {
        name: Outcome(bool(entry.get("passed")), entry.get("points", 0), entry.get("max_points", 0))
        for name, entry in entries.items()
    }


def table(exercises: Collection[str], found: Mapping[str, str], outcomes: Mapping[str, Outcome]) -> str:
    """Return a line for each exercise and for the answer in words, then how many checks pass."""
    names = [*exercises, WORDS]
    width = max(map(len, names))
    lines = [f"  {_line(name, width, found.get(name, ''), outcomes.get(name))}" for name in names]
    passed = sum(outcomes[name].passed for name in exercises if name in outcomes)
    return "\n".join([*lines, f"{passed} of {len(exercises)} checks pass."])


def _line(name: str, width: int, problem: str, result: Outcome | None) -> str:
    if result and result.passed:
        mark, text = MARKS["pass"], ""
    elif problem:
        mark, text = MARKS["missing"], problem
    elif name == WORDS:
        return f"{MARKS['pass']} {name:<{width}}   answered; a person reads it"
    elif result:
        mark, text = MARKS["fail"], result.why
    else:
        mark, text = MARKS["missing"], "not checked yet"
    points = f"{result.points:g} of {result.max_points:g} points" if result else ""
    return f"{mark} {name:<{width}}   " + "   ".join(filter(None, [points, text]))


def pack(nb: bytes | Record, record: Record, student: str, lesson: str, folder: Path) -> Path:
    """Make the hand-in in `folder` under a name that is free; return its path. Raises NotReadyError if it cannot be."""
    try:
        data = handin.make(nb, record, student, lesson)
        folder.mkdir(parents=True, exist_ok=True)
        return _write(data, folder, f"{lesson}.{student}")
    except ValueError as error:
        raise NotReadyError(str(error)) from None
    except OSError as error:
        why = error.strerror or error
        raise NotReadyError(f"the file cannot be written to {folder}: {why}; name another folder") from None


def _write(data: bytes, folder: Path, stem: str) -> Path:
    for number in itertools.count(1):
        file = folder / (f"{stem}.zip" if number == 1 else f"{stem}.{number}.zip")
        try:
            with file.open("xb") as stream:
                stream.write(data)
            break
        except FileExistsError:
            continue
        except OSError:
            file.unlink(missing_ok=True)
            raise
    return file


def made(file: Path, nb: Record) -> str:
    """Return in words what was made of a notebook: the file, for whom, and what was left out of it."""
    hand_in = handin.read(file.read_bytes())
    size = f"{file.stat().st_size / 1000:.0f} kB"
    lines = [note_on_version(nb), f"Made {file} ({size}): the notebook and your journal, for {hand_in.student}."]
    lines += [f"Left out: {text}. Nothing is graded by its output." for text in hand_in.dropped]
    lines.append("Hand in this file. It will be graded with inputs that you have not seen.")
    return "\n".join(filter(None, lines))


def note_on_version(nb: Record) -> str:
    """Return a note on a notebook of another version of the course than the one installed, or ""."""
    version = claims(nb)[1]
    note = (
        f"Note: the notebook belongs to version {version} of the course, and {unrolled.__version__} is installed. It "
        "is graded by the checks of its own version."
    )
    return note if version not in ("", unrolled.__version__) else ""


def submit_here(record: Record, student: str, notebook: Path | None, to: Path | None, beside: Path) -> None:
    """Make the file to hand in from the notebook that is running. `beside` is the journal's file.

    What is missing is printed. Where the notebook is only checked, no file is made. Raises NotReadyError.
    """
    if REHEARSAL in os.environ or "NBGRADER_EXECUTION" in os.environ:
        print("Nothing is handed in here: this run is a check of the notebook.")
        return
    content, file = _running(notebook)
    nb = cells.parse(content) if isinstance(content, bytes) else content
    lesson = lesson_of(nb)
    exercises = checks.lessons()[lesson]
    if file is not None:
        _stop_if_unsaved(nb, exercises, file)
    print(f"{lesson}, by your journal:")
    found = problems(nb, exercises)
    print(table(exercises, found, remembered(record, exercises, found)))
    packed = pack(content, record, student, lesson, to or _folder(file, beside))
    print(made(packed, nb))
    frontend.offer(packed)


def _running(notebook: Path | None) -> tuple[bytes | Record, Path | None]:
    """The content of the running notebook, and its file if it came from one."""
    if notebook is None and frontend.on_colab():
        page = frontend.colab_notebook()
        if page is None:
            words = "Colab did not send the notebook. Choose File, Download, Download .ipynb, and hand in that"
            raise NotReadyError(words)
        return page, None
    file = notebook or frontend.notebook_file()
    if file is None:
        raise NotReadyError('the notebook\'s file is not known here; name it: journal.submit(notebook="FILE.ipynb")')
    try:
        content = file.read_bytes()
        cells.parse(content)
    except (OSError, ValueError) as error:
        raise NotReadyError(f"{file} cannot be handed in: {error}") from None
    return content, file


def _stop_if_unsaved(nb: Record, exercises: Iterable[str], file: Path) -> None:
    """Raise NotReadyError unless each exercise and this cell are saved as last run; what was typed since is unknown."""
    inputs, saved = frontend.inputs(), {source(cell).strip() for cell in nb["cells"]}
    last = {name: text.strip() for text in inputs for name in exercises if defines(text, name)}
    older = [name for name, text in last.items() if text not in saved]
    if inputs and inputs[-1].strip() not in saved:
        older.append("this very cell")
    if older:
        words = " and ".join(older)
        raise NotReadyError(f"{file.name} on disk is older than {words}. Save it first, then run this again")


def _folder(file: Path | None, beside: Path) -> Path:
    """Where the hand-in goes: beside the notebook; on Colab to Drive, if it is mounted."""
    if file is not None:
        return file.parent
    if frontend.DRIVE in beside.parents:
        return beside.parent
    return frontend.DRIVE if frontend.DRIVE.is_dir() else Path.cwd()
