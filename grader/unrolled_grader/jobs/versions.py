"""A notebook of another version of the course is judged by that version: its specs, its library, its cells.

The release in grader/versions does the job itself, in a process of its own; only paths and JSON go there and back. The
gradebook knows one set of cells, this version's: `converted_points` says what another version's points are there.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import nbformat
from nbformat import NotebookNode
from packaging.version import InvalidVersion, Version

import unrolled
from unrolled.notebook.cells import grade_id
from unrolled_grader.jobs import record, releases
from unrolled_grader.jobs.record import Key, Record
from unrolled_grader.judge.evidence import CELL, Score
from unrolled_grader.judge.opening import RefusedError

READABLE = (1,)
"""Formats of a release's record that are understood here. One with more fields of the same format is, too."""
SET_ASIDE = "set aside: "
"""How the reason begins where a submission waits for its release: its points are withheld, not lost."""
PERFORM = """\
import json, os, sys, threading
from pathlib import Path
order = json.loads(sys.stdin.readline())
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()
from unrolled_grader.jobs import job
order["specs"] = job.specs_hash(Path(order["released"]))
job.perform(order)
"""
"""What a release's process does. It ends with the one that started it, whose end of the pipe then closes."""


class AbsentError(RefusedError):
    """A notebook is of a version that is not here: which, and the line that helps."""


class ReleaseError(RuntimeError):
    """A release could not do its job, or its answer is not understood; not the submission's fault."""


def version_of(nb: NotebookNode) -> str:
    """Return the version that an opened notebook claims; this one's if it claims none."""
    claimed = nb.metadata.get("unrolled", {}).get("version")
    return claimed if isinstance(claimed, str) else unrolled.__version__


def release_for(version: str, released: Path) -> releases.Release | None:
    """Return the release that judges a notebook of this version; None if this course does.

    `released` is this version's notebook of the lesson, in its checkout. Raises AbsentError if the release is not here.
    """
    if version == unrolled.__version__:
        return None
    lesson, root = released.stem, released.parents[2]
    try:
        asked = Version(version)
    except InvalidVersion:
        shown = record.one_line(version)[:40]
        raise AbsentError(f"{SET_ASIDE}it says that it is of version {shown!r}, which is none") from None
    if asked == Version(unrolled.__version__):
        return None
    there = {release.version: release for release in releases.known(root / releases.FOLDER)}
    if version not in there:
        age = "newer than" if asked > Version(unrolled.__version__) else "older than"
        raise AbsentError(
            f"{SET_ASIDE}it is of version {version}, {age} this course ({unrolled.__version__}), and that version is "
            f"not here; `unrolled version add v{version}` (a tag or a folder) takes it in, then grade again"
        )
    release = there[version]
    if not release.released(lesson).is_file():
        raise AbsentError(f"{SET_ASIDE}version {version}, which it is of, has no lesson {lesson} in {release.root}")
    return release


def performed_by(
    release: releases.Release, order: Mapping[str, Any], key: Key, here: Mapping[str, float]
) -> tuple[Record, NotebookNode | None]:
    """Have a release do an order; return record and notebook. `here`: what checks are worth. Raises ReleaseError."""
    with tempfile.TemporaryDirectory(prefix="unrolled-release-") as scratch:
        result = Path(scratch, "result.json")
        theirs = {**order, "released": str(release.released(order["lesson"])), "result": str(result)}
        with Path(scratch, "log").open("w+b") as log:
            _run(release, theirs, log)
        try:
            data = json.loads(result.read_text(encoding="utf-8"))
            found, notebook = adopted(data["record"]), data["notebook"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ReleaseError(f"the answer of version {release.version} is not understood: {error}") from error
    found = dataclasses.replace(
        found,
        **{name: order[name] for name in ("student", "lesson", "digest")},
        version=release.version,
        key=key if found.key.submission else dataclasses.replace(key, submission=""),  # "": their judge failed
        flags=(*found.flags, difference(release.version, found.scores, here)),
    )
    return found, None if notebook is None else nbformat.from_dict(notebook)


def _run(release: releases.Release, order: Mapping[str, Any], log: IO[bytes]) -> None:
    """Let the release perform the order. Raises ReleaseError with the last line that it wrote."""
    command, pipe, nothing = [sys.executable, "-c", PERFORM], subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=pipe, stdout=nothing, stderr=log, env=release.environment, cwd=release.root
    ) as process:
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
            process.wait()
        except BrokenPipeError:  # it ended before it could read: what it wrote says why
            pass
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()  # which ends it, where this process was interrupted
    if process.returncode:
        log.seek(0)
        lines = log.read().decode("utf-8", "replace").strip().splitlines()
        raise ReleaseError(f"version {release.version} cannot grade here: {lines[-1] if lines else 'it ended'}")


def adopted(data: Mapping[str, Any]) -> Record:
    """Return a release's record, less what is unknown here. Raises ValueError, KeyError, TypeError for what is none."""
    if data["format"] not in READABLE:
        raise ValueError(f"its record has format {data['format']!r}, expected one of {READABLE}")
    scores = [_known(score, Score) for score in data["scores"]]
    return record.from_dict({**_known(data, Record), "scores": scores, "key": _known(data["key"], Key), "format": 1})


def _known(data: Mapping[str, Any], kind: type) -> dict[str, Any]:
    names = {field.name for field in dataclasses.fields(kind)}
    return {name: value for name, value in data.items() if name in names}


def difference(version: str, scores: Iterable[Score], here: Mapping[str, float]) -> str:
    """Return a flag: by which version a notebook was judged, and what checks are worth otherwise there, or missing."""
    there = _worth(scores)
    other = [name for name, most in here.items() if there.get(name) not in (None, most)]
    differences = {
        "worth something else": [f"{name} ({there[name]:g} there, {here[name]:g} here)" for name in other],
        "not in that version": [name for name in here if name not in there],
        "in that version alone": [name for name in there if name not in here],
    }
    words = "".join(f"; {what}: {', '.join(names)}" for what, names in differences.items() if names and there)
    return f"of version {version}, and judged by its checks{words}"


def converted_points(scores: Iterable[Score], here: Mapping[str, float]) -> tuple[dict[str, float], set[str]]:
    """Return what a release's scores are in this version's gradebook: points by cell, and cells that a person must see.

    A score is the same share of what its check is worth here. A check that the release does not have is worth nothing
    until a person says what.
    """
    scores = list(scores)
    there = _worth(scores)
    points = {CELL + name: 0.0 for name in here}
    for score in scores:
        if there[score.check] and score.check in here:
            points[CELL + score.check] += score.points * here[score.check] / there[score.check]
    return points, {CELL + name for name in here if name not in there}


def fitted_cells(nb: NotebookNode, released: NotebookNode) -> NotebookNode:
    """Return a release's notebook as this version's gradebook takes it, with plain cells for those it does not know."""
    known = {grade_id(cell): cell for cell in released.cells if grade_id(cell)}
    for cell in nb.cells:
        same = known.get(grade_id(cell))
        if same is not None and _kind(same) == _kind(cell):
            cell.metadata.nbgrader = {**same.metadata.nbgrader}
        else:
            cell.metadata.pop("nbgrader", None)
    return nb


def worth(released: NotebookNode) -> dict[str, float]:
    """Return what each check of a notebook is worth, in points by name."""
    marks = [cell.metadata.nbgrader for cell in released.cells if (grade_id(cell) or "").startswith(CELL)]
    return {mark["grade_id"].removeprefix(CELL): float(mark["points"]) for mark in marks if mark.get("grade")}


def _kind(cell: NotebookNode) -> tuple[Any, ...]:
    mark = cell.metadata.nbgrader
    return (cell.cell_type, *(bool(mark.get(name)) for name in ("grade", "solution", "task", "locked")))


def _worth(scores: Iterable[Score]) -> dict[str, float]:
    there: dict[str, float] = {}
    for score in scores:
        there[score.check] = there.get(score.check, 0.0) + score.max_points
    return there
