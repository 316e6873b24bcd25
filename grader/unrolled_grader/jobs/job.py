"""A job: judging one submission, in any process on any machine. Plain JSON goes in and comes out; only paths travel.

All ways of grading share this module: `unrolled grade` has jobs performed in its pool or on a cluster, nbgrader's own
commands perform them in their process. What was judged is found again by `valid_record`, whichever of them judged it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from itertools import chain
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from nbformat import NotebookNode

import unrolled
import unrolled_grader
from unrolled import checks
from unrolled.checks import choices
from unrolled.notebook import cells
from unrolled.notebook.cells import grade_id
from unrolled_grader.box.sandbox import SandboxError
from unrolled_grader.box.zygote import ZygoteError
from unrolled_grader.jobs import record, releases, versions
from unrolled_grader.jobs.queue import NEEDS, JobError
from unrolled_grader.jobs.record import Key, Record
from unrolled_grader.judge import evidence, intake, opening, repair, verdicts
from unrolled_grader.judge.verdicts import Options, Submission, Verdicts

REPAIRS = "unrolled_repairs"  # in a sanitized notebook's metadata: what was repaired, as repair.Note has it
JUDGES = ("box", "judge", "jobs/job.py", "jobs/versions.py")
"""The grader's packages and modules that have a part in a verdict. When one of them changes, all is judged again."""
SHOWS = ("cli", "show")  # the library's parts that have no part in a verdict; all others have one


def perform(order: Mapping[str, Any]) -> dict[str, Any]:
    """Judge the submission that `order` names, write what came of it to a file, and return where that is.

    `order` is as `order_for` makes it. Nothing that a submission does raises. What is our fault does: no sandbox, a
    full disk, a machine with another version of the course (JobError). A notebook of another version is judged by that
    release.
    """
    student, lesson, released = order["student"], order["lesson"], Path(order["released"])
    if order["specs"] != specs_hash(released):
        raise JobError("this machine has another version of the course: install the same one everywhere")
    handed_out = cells.read(released)
    found: tuple[Record, NotebookNode | None]
    options = Options(**order["options"])
    specs = checks.judged(lesson)
    try:
        nb = opening.opened(intake.read(Path(order["notebook"])), lesson, specs)
        release = versions.release_for(versions.version_of(nb), released)
        nb = nb if release else sanitized(nb, handed_out)
    except Exception as error:  # refused, or a notebook that repair did not foresee
        refused = isinstance(error, opening.RefusedError)
        problem = str(error) if refused else f"it cannot be repaired: {type(error).__name__}: {error}"
        found = Record(student, lesson, order["digest"], (), problem), None
    else:
        own = frozenset(cell.source for cell in handed_out.cells)
        submission = Submission(student, lesson, nb, specs, order["seed"], own)
        key = Key(submission_hash(nb), release.hash(lesson) if release else order["specs"], environment(options))
        if release:
            found = versions.performed_by(release, order, key, versions.worth(handed_out))
        else:
            found = _judged(submission, options, key, order["digest"])
    written = {"record": record.to_dict(found[0]), "notebook": found[1]}
    record.replace_file(Path(order["result"]), json.dumps(written))
    return {"result": order["result"]}


def order_for(
    handed: intake.Handed, released: Path, folder: Path, options: Options, seed: int | None = None
) -> dict[str, Any]:
    """Return the order to judge what was handed in, with its result in `folder`, and its hidden inputs from `seed`."""
    name = hashlib.sha256(f"{handed.student}/{handed.lesson}".encode()).hexdigest()
    return {
        "student": handed.student,
        "lesson": handed.lesson,
        "notebook": str(handed.path.absolute()),
        "digest": handed.digest,
        "released": str(released.absolute()),
        "specs": specs_hash(released),
        "seed": seed,
        # A name of its own: a process that a lost run left behind may still write its result.
        "result": str(folder.absolute() / f"{name}-{secrets.token_hex(8)}.json"),
        "options": {"timing": options.timing, "sandbox": options.sandbox},
        **_resources(options),
    }


def _resources(options: Options) -> dict[str, Any]:
    """What an order asks of a cluster's worker, where it is not what the queue asks by itself."""
    if not options.timing:
        return {"resources": {}}  # any will do
    return {"resources": {**NEEDS, "GPU": 1}} if options.gpu else {}


def perform_here(order: Mapping[str, Any]) -> tuple[Record, NotebookNode]:
    """Perform an order at once; return record and executed notebook. Raises what `perform` does, and RefusedError."""
    answer = perform(order)
    found, notebook = result_of(answer)
    Path(answer["result"]).unlink(missing_ok=True)
    if notebook is None:
        raise opening.RefusedError(found.problem)
    return found, notebook


def result_of(answer: Mapping[str, Any]) -> tuple[Record, NotebookNode | None]:
    """Return what `perform` wrote: the record, and the notebook as it ran (None if it could not be opened)."""
    data = json.loads(Path(answer["result"]).read_text(encoding="utf-8"))
    notebook = data["notebook"]
    return record.from_dict(data["record"]), None if notebook is None else nbformat.from_dict(notebook)


def _judged(submission: Submission, options: Options, key: Key, digest: str) -> tuple[Record, NotebookNode]:
    """Judge a sanitized submission; return its record, and its notebook as it ran.

    Raises what is our fault. Where the judge itself fails, the submission gets 0, a flag, and a record without a key:
    the next run judges again.
    """
    notes = [repair.Note(*pair) for pair in submission.notebook.metadata.get(REPAIRS, ())]
    try:
        judged = verdicts.judge(submission, options)
    except (SandboxError, ZygoteError, OSError):  # OSError: such as a full disk
        raise
    except Exception as error:
        why = f"the judge failed: {type(error).__name__}: {error}", "not the student's fault: grade again"
        parts = [evidence.without(name, spec, "crashed", *why) for name, spec in submission.specs.items()]
        judged = Verdicts(submission.notebook, tuple(chain.from_iterable(parts)), 0.0, ())
        key = replace(key, submission="")
    notes += [repair.Note(*pair) for pair in judged.notes]
    found = Record(
        submission.student,
        submission.lesson,
        digest,
        tuple(_noted(score, [note for note in notes if not note.to_look]) for score in judged.scores),
        seconds=judged.seconds,
        seeds=judged.seeds,
        repairs=tuple(str(note) for note in notes if not note.to_look),
        flags=(*judged.flags, *(str(note) for note in notes if note.to_look)),
        sandbox=judged.sandbox,
        timing=options.timing,
        key=key,
    )
    return found, judged.notebook


def sanitized(handed: NotebookNode, released: NotebookNode) -> NotebookNode:
    """Return an opened notebook with every cell that was handed out, and a note of each repair in its metadata.

    Locked cells have the text that was handed out, as after nbgrader's own sanitize pass, which needs a gradebook.
    """
    nb, notes = repair.repaired(handed, released)
    originals = {grade_id(cell): cell for cell in released.cells if grade_id(cell)}
    for cell in filter(grade_id, nb.cells):
        mark = cell.metadata.nbgrader
        if not mark["solution"] and (mark["grade"] or mark["locked"]):  # nbgrader's rule; it takes long to import
            cell.source = originals[grade_id(cell)].source
    nb.metadata[REPAIRS] = [list(astuple(note)) for note in notes]
    return nb


def valid_record(grades: Path, handed: intake.Handed, released: Path, options: Options) -> Record | None:
    """Return the record that answers for this very submission, so that nothing has to be judged; None if it must be."""
    kept = record.finished(grades, handed.student, handed.lesson)
    if kept is None or kept.key.specs != judging_hash(kept.version, released):
        return None
    if kept.problem or handed.problem:  # a problem that only repair or nbgrader had is perhaps gone
        return kept if kept.problem and handed.problem and kept.digest == handed.digest else None
    submission = kept.key.submission if kept.digest == handed.digest else hash_of(handed, released)
    same = bool(submission) and kept.key == Key(submission, kept.key.specs, environment(options))
    return kept if same and not could_settle(kept, options) else None


def could_settle(kept: Record, options: Options) -> bool:
    """Return whether judging again, here and now, could settle a part that was deferred."""
    if not options.timing or all(score.verdict != "deferred" for score in kept.scores):
        return False
    there, here = kept.machine, record.machine()
    more_cores = (here["cores"] or 1) > (there.get("cores") or here["cores"] or 1)  # ranks have one each
    return not kept.timing or more_cores or (not there.get("gpu") and (options.gpu or bool(here["gpu"])))


def submission_hash(nb: NotebookNode) -> str:
    """Return a hash of what is judged of a sanitized notebook. Cell ids do not count: many tools change them."""
    cells = [[cell.cell_type, grade_id(cell), cell.source, cell.get("attachments")] for cell in nb.cells]
    judged = [cells, nb.metadata.get(REPAIRS), versions.version_of(nb)]
    return hashlib.sha256(json.dumps(judged, sort_keys=True).encode()).hexdigest()


def hash_of(handed: intake.Handed, released: Path) -> str:
    """Return the hash of what would be judged of this file; empty if it cannot be sanitized."""
    try:
        nb = opening.opened(intake.read(handed.path), handed.lesson, checks.lessons().get(handed.lesson, {}))
        release = versions.release_for(versions.version_of(nb), released)
        return submission_hash(nb if release else sanitized(nb, cells.read(released)))
    except Exception:  # `perform` says why
        return ""


def specs_hash(released: Path) -> str:
    """Return a hash of what judges a lesson: library, judge, what the class asks, and the notebook handed out."""
    return asking_hash(checks.lessons().get(released.stem, {}), released.read_bytes())


def asking_hash(specs: Mapping[str, checks.Spec], notebook: bytes) -> str:
    """Return what `specs_hash` gives of a lesson whose checks ask this, and whose notebook is this one."""
    asked = json.dumps(choices.parts(specs), sort_keys=True).encode()
    return hashlib.sha256(_code() + asked + notebook).hexdigest()


def judging_hash(version: str, released: Path) -> str:
    """Return a hash of what judges notebooks of this version of the course; empty where its release is not here."""
    try:
        release = versions.release_for(version, released)
    except versions.AbsentError:
        return ""
    return release.hash(released.stem) if release else specs_hash(released)


def environment(options: Options) -> str:
    """Return what else a verdict depends on, in words: Python, NumPy, and whether code runs in a sandbox."""
    sandbox = "in a sandbox" if options.sandbox else "without a sandbox"
    return f"Python {platform.python_version()}, NumPy {np.__version__}, {sandbox}"


@functools.cache
def _code() -> bytes:
    """A hash of the library and the judge as they are installed."""
    return code_hash(Path(unrolled.__file__).parent, Path(unrolled_grader.__file__).parent)


def code_hash(library: Path, grader: Path) -> bytes:
    """Return a hash (SHA-256) of the files in these two packages' folders that have a part in a verdict.

    What a class chose is not among them: its choices for one lesson have no part in another.
    """
    seen = hashlib.sha256()
    for file in releases.files_in(library):
        if file.relative_to(library).parts[0] not in SHOWS and file != library / "checks" / choices.FILE.name:
            releases.take_in(seen, file, library)
    for name in JUDGES:
        for file in releases.files_in(grader / name):
            releases.take_in(seen, file, grader)
    return seen.digest()


def _noted(score: evidence.Score, notes: Sequence[repair.Note]) -> evidence.Score:
    """The score, with what was repaired of its exercise and its check in front of the detail."""
    texts = [note.text for note in notes if note.concerns(score.check)]
    return replace(score, detail=f"(repaired: {'; '.join(texts)}) {score.detail}".rstrip()) if texts else score
