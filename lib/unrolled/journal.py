"""The learner's own record: predictions, findings and the rungs of the ladder, in one JSON file beside the notebook.

The file is `$UNROLLED_JOURNAL`, or `journal.json` in the folder where the notebook runs. It is read afresh before each
change and replaced as a whole, so that a crash never leaves half a file. A broken or foreign file is put aside under
another name and said so; nothing is lost. Where the folder cannot be written the record lives as long as the kernel.
Beside its parts it may hold "student", the learner's id, and "gallery", the key of a ladder that was given to others.
"""

from __future__ import annotations

import datetime
import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled import device, handin
from unrolled import gallery as gallery_file

if TYPE_CHECKING:
    from unrolled.checks.report import Report
    from unrolled.show.picture import Picture

FORMAT = "unrolled-journal"
VERSION = 1
PARTS = ("predictions", "measurements", "checks", "rungs")
Record = dict[str, Any]
AGAIN = (
    "Run your notebooks again from top to bottom: your guesses and answers stand there, and the journal fills itself."
)

_chosen: Path | None = None
_memory: Record | None = None


def path() -> Path:
    """Where the journal is kept."""
    return _chosen or Path(os.environ.get("UNROLLED_JOURNAL", "journal.json")).expanduser().absolute()


def use(file: str | Path) -> None:
    """Keep the journal in `file` from now on: on Colab, for instance, in "/content/drive/MyDrive/journal.json"."""
    global _chosen, _memory
    _chosen, _memory = Path(file).expanduser().absolute(), None
    print(f"The journal is {_chosen}: {_summary(read())}.")


def export(file: str | Path) -> Path:
    """Write a copy of the journal to `file` and return its path."""
    target = Path(file).expanduser().absolute()
    _write(target, read())
    return target


def restore(file: str | Path) -> None:
    """Take over all entries from an exported journal; what is already here and newer stays.

    Raises ValueError if `file` is not a journal, FileNotFoundError if it is not there.
    """
    theirs = _parse(Path(file).expanduser().read_text(encoding="utf-8"), str(file))
    ours = read()
    for part in PARTS:
        for key, entry in theirs[part].items():
            if key not in ours[part] or ours[part][key]["date"] < entry["date"]:
                ours[part][key] = entry
    for key in ("student", "gallery"):
        if key in theirs:
            ours.setdefault(key, theirs[key])
    _save(ours)
    print(f"Restored from {file}: {_summary(ours)}.")


def student(name: str | None = None) -> str:
    """The learner's id, as the course gave it; "" if none is known. A `name` that is given is remembered from now on.

    Raises ValueError for a name that cannot be an id.
    """
    record = read()
    if name is not None:
        record["student"] = handin.student_id(name)
        _save(record)
    known = record.get("student")
    return known if isinstance(known, str) else ""


def submit(student: str | None = None, notebook: str | Path | None = None, to: str | Path | None = None) -> None:
    """Make the file to hand in from the notebook that is running: on Colab, in JupyterLab and in VS Code.

    `student` is your id in the course, asked for once. `notebook` names the file where it is not found by itself, `to`
    the folder for the new file. It says what is missing and what the journal knows of the checks, and never raises.
    """
    from unrolled import submission

    try:
        name = _identify(student)
        submission.submit_here(read(), name, Path(notebook) if notebook else None, Path(to) if to else None, path())
    except (submission.NotReadyError, ValueError) as error:
        print(f"Nothing was handed in: {error}.")


def _identify(name: str | None) -> str:
    known = student(name)
    if not known:
        raise ValueError('say once who you are, by the id that your course gave you: journal.submit("ID")')
    return handin.student_id(known)


def predict(name: str, times: Any) -> None:
    """Note a guess, as a number of `times`: faster, longer, whatever was asked. `...` means none yet.

    Never asks and never raises.
    """
    if times is ...:
        print(f"No guess for {name} yet. Put a number in place of the dots: how many times?")
    elif not _is_positive(times):
        print(f"A guess is a positive number of times, such as 40. Got {times!r}; nothing noted.")
    else:
        record = read()
        record["predictions"][name] = {"guess": float(times), "date": _now()}
        _save(record)
        print(f"Noted: your guess for {name} is {times:g} times. The measurement will stand beside it.")


def measured(name: str, times: float) -> None:
    """Note a measurement made in a lesson, a number of `times`, to stand beside the prediction of the same name.

    Raises ValueError unless `times` is a positive number.
    """
    if not _is_positive(times):
        raise ValueError(f"times must be a positive number, got {times!r}")
    record = read()
    record["measurements"][name] = {"times": float(times), "date": _now()}
    _save(record)


def note(report: Report) -> None:
    """Keep the outcome of a check: its points, its measured ratio and its rung."""
    record = read()
    before = record["checks"].get(report.check, {})
    record["checks"][report.check] = {
        "passed": report.passed,
        "ever_passed": report.passed or bool(before.get("ever_passed")),
        "points": report.points,
        "max_points": report.max_points,
        "date": _now(),
    }
    if report.timing:
        record["measurements"][report.check] = {"times": report.timing.ratio, "date": _now()}
    if report.rung:
        _add_rung(record, report.rung)
    _save(record)


def rung(
    label: str, what: str, seconds: float, batch: int, precision: str = "float32", hardware: str | None = None
) -> None:
    """Add a rung that a lesson measured: `seconds` for 60,000 images, `batch` of them at a time.

    Rungs with the same `what` did the same work and stand together. `hardware` is what ran it, this machine's processor
    unless given; a time that is modelled says so here, as in "T4, modelled". ValueError unless `seconds` is positive.
    """
    if not _is_positive(seconds):
        raise ValueError(f"seconds must be a positive number, got {seconds!r}")
    record = read()
    entry = {"label": label, "what": what, "seconds": float(seconds), "batch": batch, "precision": precision}
    _add_rung(record, entry if hardware is None else entry | {"hardware": hardware})
    _save(record)


def _add_rung(record: Record, entry: Record) -> None:
    record["rungs"][entry["label"]] = {"hardware": device.describe()["cpu"]} | entry | {"date": _now()}


def ladder() -> Picture:
    """The learner's seconds per MNIST epoch, rung by rung, on a log scale."""
    from unrolled import show

    return show.ladder(sorted(read()["rungs"].values(), key=lambda rung: -rung["seconds"]))


def guesses() -> Picture | None:
    """Every prediction against what was measured; None, and a word, while there is none."""
    from unrolled import show

    record = read()
    seen = record["measurements"]
    pairs = [
        {"name": name, "guess": entry["guess"], "measured": seen[name]["times"]}
        for name, entry in record["predictions"].items()
        if name in seen
    ]
    if not pairs:
        print("No guess has a measurement beside it yet. Write one down with journal.predict, then measure.")
        return None
    return show.guesses(pairs)


def give(file: str | Path, name: str) -> None:
    """Put your ladder into a gallery's file, under a name of your choice, beside those of others.

    Only this call gives anything, and it gives the rungs alone: what, how long, batch, precision, hardware. What you
    gave before is replaced by what you have now. Raises ValueError for a name that is taken or none, or a file that is
    no gallery; the file is then as it was.
    """
    record = read()
    if not record["rungs"]:
        raise ValueError("your ladder has no rung to give yet; the first ones come in lessons 01 and 02")
    target = Path(file).expanduser().absolute()
    if "gallery" not in record:
        record["gallery"] = secrets.token_hex(8)
        _save(record)
    mine = gallery_file.ladder(gallery_file.pseudonym(name), str(record["gallery"]), record["rungs"].values())
    given = gallery_file.read(target) if target.exists() else []
    _write(target, gallery_file.document(gallery_file.added(given, mine)))
    print(f"Given to {file}: {len(mine['rungs'])} rungs, as {mine['name']}. Nothing else went along.")


def gallery(*files: str | Path) -> Picture:
    """The ladders in one or several galleries' files, side by side.

    Raises ValueError if a file is no gallery, FileNotFoundError if it is not there.
    """
    from unrolled import show

    return show.gallery(gallery_file.merged(gallery_file.read(Path(file).expanduser()) for file in files))


def read() -> Record:
    """The whole record. A file that is not a journal is put aside, with a message, and an empty record returned."""
    if _memory is not None:
        return _memory
    file = path()
    try:
        return load(file)
    except (FileNotFoundError, NotADirectoryError):
        return _empty()
    except (OSError, ValueError) as error:
        print(f"{error}. {_put_aside(file)} A new journal is begun. {AGAIN}")
        return _empty()


def load(file: Path) -> Record:
    """The record in a file, which stays as it is. Raises OSError, and ValueError, naming it, if it is no journal."""
    return _parse(file.read_text(encoding="utf-8"), str(file))


def _empty() -> Record:
    return {"format": FORMAT, "version": VERSION} | {part: {} for part in PARTS}


def _parse(text: str, name: str) -> Record:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not a journal: {error}") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ValueError(f"{name} is not a journal of this course")
    if record.get("version") != VERSION:
        raise ValueError(f"{name} is a journal of version {record.get('version')}, expected {VERSION}")
    for part in PARTS:
        entries = record.get(part)
        if not isinstance(entries, dict) or not all(isinstance(e, dict) and "date" in e for e in entries.values()):
            raise ValueError(f"{name} is a damaged journal: its {part} are not readable")
    return record


def _put_aside(file: Path) -> str:
    """Rename to a name that is free: journal.broken-1.json, journal.broken-2.json, … What became of it, in words."""
    global _memory
    number = 1
    while (aside := file.with_name(f"{file.stem}.broken-{number}{file.suffix}")).exists():
        number += 1
    try:
        file.rename(aside)
    except OSError as error:
        _memory = _empty()
        return f"It stays where it is ({error}); the record is kept only as long as this kernel runs."
    return f"The file is kept as {aside}."


def _save(record: Record) -> None:
    global _memory
    try:
        _write(path(), record)
    except OSError as error:
        if _memory is None:
            print(f"The journal cannot be written ({error}). It is kept only as long as this kernel runs.")
        _memory = record


def _write(file: Path, record: Record) -> None:
    """Replace the file as a whole: the new text is complete on disk before it takes the old one's name."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=file.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(record, stream, indent=1, sort_keys=True)
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise


def _is_positive(times: Any) -> bool:
    return isinstance(times, (int, float)) and not isinstance(times, bool) and 0 < times < float("inf")


def _summary(record: Record) -> str:
    passed = sum(bool(check.get("ever_passed")) for check in record["checks"].values())
    return f"{passed} checks passed, {len(record['predictions'])} predictions, {len(record['rungs'])} rungs"


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
