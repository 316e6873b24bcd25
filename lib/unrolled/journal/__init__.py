"""The learner's own record: predictions, findings and the rungs of the ladder, in one JSON file beside the notebook.

`file` says where it lies and how it is kept. It may also hold "student", an id, and "gallery", a given ladder's key.
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.journal import galleries, own
from unrolled.journal.file import PARTS, Record, changing, choose, is_positive, load, locked, path, read, write
from unrolled.notebook import handin

if TYPE_CHECKING:
    from unrolled.checks.report import Report
    from unrolled.show.picture import Picture

__all__ = ["export", "gallery", "give", "guesses", "ladder", "leaderboard", "load", "measured", "mine", "note", "path"]
__all__ += ["predict", "read", "restore", "rung", "student", "submit", "use"]


def use(file: str | Path) -> None:
    """Keep the journal in `file` from now on: on Colab, for instance, in "/content/drive/MyDrive/journal.json"."""
    choose(Path(file).expanduser().absolute())
    print(f"The journal is {path()}: {_summary(read())}.")


def export(file: str | Path) -> Path:
    """Write a copy of the journal to `file` and return its path."""
    target = Path(file).expanduser().absolute()
    write(target, read())
    return target


def restore(file: str | Path) -> None:
    """Take over an exported journal's entries; newer ones here stay. ValueError for no journal, FileNotFoundError."""
    theirs = load(Path(file).expanduser())
    with changing() as ours:
        for part in PARTS:
            for key, entry in theirs[part].items():
                if key not in ours[part] or ours[part][key]["date"] < entry["date"]:
                    ours[part][key] = entry
        for key in ("student", "gallery"):
            if key in theirs:
                ours.setdefault(key, theirs[key])
    print(f"Restored from {file}: {_summary(ours)}.")


def student(name: str | None = None) -> str:
    """Return the learner's id, "" if none is known. A `name` is kept from now on; ValueError if it cannot be an id."""
    if name is not None:
        name = handin.student_id(name)
        with changing() as record:
            record["student"] = name
    known = name if name is not None else read().get("student")
    return known if isinstance(known, str) else ""


def submit(student: str | None = None, notebook: str | Path | None = None, to: str | Path | None = None) -> None:
    """Make the file to hand in from the notebook that is running: on Colab, in JupyterLab and in VS Code.

    `student` is your id in the course, asked for once. `notebook` names the file where it is not found by itself, `to`
    the folder for the new file. What is missing and what the journal knows of the checks is printed; nothing is raised.
    """
    from unrolled.notebook import submission

    try:
        name = _identify(student)
        submission.submit_here(read(), name, Path(notebook) if notebook else None, Path(to) if to else None, path())
    except ValueError as error:
        print(f"Nothing was handed in: {error}.")


def _identify(name: str | None) -> str:
    return handin.identified(student(name), 'journal.submit("ID")')


def predict(name: str, times: Any) -> None:
    """Note a guess, as a number of `times`: faster, longer, … (`...` means none yet). Never asks and never raises."""
    record = read()
    known, seen = record["predictions"].get(name), record["measurements"].get(name)
    if times is ...:
        if known:
            print(f"Your guess for {name} stands: {known['guess']:g} times.")
        else:
            print(f"No guess for {name} yet. Put a number in place of the dots: how many times?")
    elif not is_positive(times):
        print(f"A guess is a positive number of times, such as 40. Got {times!r}; nothing noted.")
    else:
        with changing() as record:
            record["predictions"][name] = {"guess": float(times), "date": _now()}
        beside = "The measurement will stand beside it"
        if seen:
            how = f"({seen['where']})" if seen.get("where") else "when you measured"
            beside = f"It was {seen['times']:.3g} {how}"
        print(f"Noted: your guess for {name} is {times:g} times. {beside}.")


def _beside_the_guess(name: str, record: Record) -> None:
    """Print the measurement of this name, where a guess waits for it."""
    if guess := record["predictions"].get(name):
        from unrolled.show.words import times

        seen = record["measurements"][name]
        how = seen.get("where") or "measured"
        print(f"{name}: you guessed {times(guess['guess'])}; it is {times(seen['times'])} ({how}).")


def measured(name: str, times: float, where: str = "") -> None:
    """Note a lesson's measurement, a number of `times`, and print it beside the guess. ValueError unless positive.

    `where`: what it was made on if not this machine's processor; for a modelled time as in "modelled, T4".
    """
    if not is_positive(times):
        raise ValueError(f"times must be a positive number, got {times!r}")
    with changing() as record:
        record["measurements"][name] = {"times": float(times), "date": _now()} | ({"where": where} if where else {})
    _beside_the_guess(name, record)


def note(report: Report, function: Any = None) -> None:
    """Keep the outcome of a check: its points, its measured ratio, its rung, and the function if it passed."""
    kept = own.keep(report.check, function, report.passed and callable(function))
    with changing() as record:
        before = record["checks"].get(report.check, {})
        record["checks"][report.check] = kept | {
            "passed": report.passed,
            "ever_passed": report.passed or bool(before.get("ever_passed")),
            "points": report.points,
            "max_points": report.max_points,
            "date": _now(),
        }
        if report.timing:
            record["measurements"][report.check] = {"times": report.timing.ratio, "date": _now()}
        if report.rung:
            _add_rung(record, report.rung | {"code": "your code"})
    if report.timing:
        _beside_the_guess(report.check, record)


def mine(*names: str) -> Any:
    """Return your own function for each check that it passed, the library's for the others, and print which.

    One name gives a function, several a tuple; without a journal, as in grading, the library's. ValueError if unknown.
    """
    found = own.functions(names, read()["checks"])
    print(", ".join(f"{name}: {whose}" for name, (_, whose) in zip(names, found, strict=True)))
    functions = tuple(function for function, _ in found)
    return functions[0] if len(functions) == 1 else functions


def rung(
    label: str,
    what: str,
    seconds: float,
    batch: int,
    precision: str = "float32",
    hardware: str | None = None,
    made_of: Iterable[Callable[..., Any]] = (),
) -> None:
    """Add a rung that a lesson measured: `seconds` for 60,000 images, `batch` of them at a time.

    Rungs with the same `what` did the same work and stand together. `hardware` is what ran it, this machine's processor
    unless given; a time that is modelled says so here, as in "T4, modelled". `made_of` are the functions that `mine`
    gave: the ladder says whether they are yours. ValueError unless `seconds` is positive.
    """
    if not is_positive(seconds):
        raise ValueError(f"seconds must be a positive number, got {seconds!r}")
    entry = {"label": label, "what": what, "seconds": float(seconds), "batch": batch, "precision": precision}
    entry |= {} if hardware is None else {"hardware": hardware}
    yours = [own.is_yours(function) for function in made_of]
    if any(yours):
        entry["code"] = "your code" if all(yours) else "partly your code"
    with changing() as record:
        _add_rung(record, entry)


def _add_rung(record: Record, entry: Record) -> None:
    from unrolled import device

    record["rungs"][entry["label"]] = {"hardware": device.describe()["cpu"]} | entry | {"date": _now()}


def ladder() -> Picture:
    """Draw the learner's seconds per MNIST epoch, rung by rung, on a log scale."""
    from unrolled import show

    return show.ladder(sorted(read()["rungs"].values(), key=lambda rung: -rung["seconds"]))


def guesses() -> Picture | None:
    """Draw every prediction against what was measured; while there is none, print so and return None."""
    from unrolled import show

    record = read()
    seen = record["measurements"]
    rows = [
        {"name": name, "guess": entry["guess"], "measured": seen[name]["times"], "where": seen[name].get("where", "")}
        for name, entry in record["predictions"].items()
        if name in seen
    ]
    if rows:
        return show.guesses(rows)
    print("No guess has a measurement beside it yet. Write one down with journal.predict, then measure.")
    return None


def give(file: str | Path, name: str) -> None:
    """Put your ladder into a gallery's file, under a name of your choice, beside those of others.

    Only this call gives anything, and it gives the rungs alone: what, how long, batch, precision, hardware, whose code.
    What you gave before is replaced by what you have now. ValueError for a ladder without rungs, a name that is taken
    or not valid, or a file that is no gallery; the file is then as it was.
    """
    record = read()
    if not record["rungs"]:
        raise ValueError("your ladder has no rung to give yet; the first ones come in lessons 01 and 02")
    target = Path(file).expanduser().absolute()
    if "gallery" not in record:
        with changing() as record:
            record.setdefault("gallery", secrets.token_hex(8))
    mine = galleries.ladder(galleries.pseudonym(name), str(record["gallery"]), record["rungs"].values())
    with locked(target):
        given = galleries.read(target) if target.exists() else []
        write(target, galleries.document(galleries.added(given, mine)))
    print(f"Given to {file}: {len(mine['rungs'])} rungs, as {mine['name']}. Nothing else went along.")


def gallery(*files: str | Path) -> Picture:
    """Draw galleries' ladders side by side. ValueError for a file that is no gallery, FileNotFoundError for none."""
    from unrolled import show

    return show.gallery(galleries.merged(galleries.read(Path(file).expanduser()) for file in files))


def leaderboard(name: str) -> None:
    """Ask for a place on your class's leaderboard by handing in a notebook with this call; the name is your choice.

    Nothing is kept or sent here: whoever grades finds the call in the notebook, where a line begins with it and the
    name stands in it as text. Without it you are not on the leaderboard. ValueError unless the name is 1 to 40
    printable characters.
    """
    asked = galleries.pseudonym(name)
    print(f"Handed in with this line, you stand on your class's leaderboard as {asked}; without it you do not.")


def _summary(record: Record) -> str:
    passed = sum(bool(check.get("ever_passed")) for check in record["checks"].values())
    return f"{passed} checks passed, {len(record['predictions'])} predictions, {len(record['rungs'])} rungs"


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
