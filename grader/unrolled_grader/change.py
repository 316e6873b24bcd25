"""`unrolled class change`: what an instructor decided becomes something else while the course runs.

Seed, gradebook, submissions and address stay. What must be judged again is listed first; then the files of both trees
change together, and `unrolled grade` does the rest.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.cli import CommandError, Subparsers, checkout, present_folder
from unrolled.cli.common import reading
from unrolled_grader import commands
from unrolled_grader.authoring import notebooks, specs
from unrolled_grader.classroom import learners, settings, trees
from unrolled_grader.classroom.folders import Folders

if TYPE_CHECKING:
    from unrolled.checks import Spec
    from unrolled.checks.choices import Choices

LIBRARY = "lib/unrolled"


@dataclass(frozen=True)
class Change:
    """What a change would do."""

    differences: Mapping[str, list[str]]  # what a lesson asks otherwise, in words, by lesson
    files: Mapping[Path, bytes | None]  # what changes; None: it goes
    again: Mapping[str, list[str]]  # the students whose submissions must be judged again, by lesson
    reasons: Mapping[str, str] = field(default_factory=dict)  # for the log, by the hash of what then judges a lesson


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled class` command: the entry point through which `unrolled` finds it."""
    actions = trees.add(subparsers)
    change = actions.add_parser(
        "change",
        help="change lessons, variants, thresholds, points or speed parts while the class runs",
        description="Apply what course.toml says and what these options change of it: to this tree, to that of the "
        "learners, and to the points of what was handed in. What would be judged again is listed first.",
    )
    trees.add_choices(change)
    change.add_argument(
        "--learners",
        type=present_folder,
        metavar="DIR",
        help="the learners' tree (default: ../learners; . where learners have this very folder)",
    )
    change.add_argument("--later", action="store_true", help="judge nothing now; `unrolled grade` will")
    change.add_argument("--yes", action="store_true", help="do not ask")
    commands.add_jobs(change)
    change.set_defaults(run=_change)


def _change(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    folders = Folders.at(root)
    theirs = learners_tree(root, arguments.learners)
    wanted = trees.with_options(root, arguments)
    trees.check(root, wanted)
    found = planned(root, theirs, folders, wanted)
    if not found.files and not found.again:
        print("nothing changes: the class asks this already")
        return 0
    print_change(found, root)
    lessons = sorted(found.again)
    if lessons and not arguments.later:  # before anything changes
        from unrolled_grader.grading import Grading

        Grading.at(root).need_sandbox()
    if not arguments.yes:
        _confirm()
    if found.files:
        _put(root, folders, found)
        print("the class has changed")
    if theirs is not None and any(file.is_relative_to(theirs) for file in found.files):
        print(f"publish {theirs} again; for Colab also `make wheel`, and the new wheel at your release")
    if lessons and arguments.later:
        print(f"to be judged again: `unrolled grade {' '.join(name[:2] for name in lessons)}`")
    return 0 if arguments.later or not lessons else _judged_again(root, lessons, commands.at_a_time(arguments.jobs))


def learners_tree(root: Path, given: Path | None) -> Path | None:
    """Return the learners' tree: beside this one unless another is given; None where it is this one.

    Raises CommandError where there is none.
    """
    tree = (given or root.parent / "learners").resolve()
    if tree == root.resolve():
        return None
    if not (tree / LIBRARY / "checks").is_dir():
        raise CommandError(
            f"{tree} is no tree for learners: name it with --learners DIR, or say --learners . if they have this folder"
        )
    return tree


def planned(root: Path, theirs: Path | None, folders: Folders, wanted: settings.Settings) -> Change:
    """Return what these settings would change. Changes nothing; raises CommandError for what cannot be built."""
    from unrolled import checks
    from unrolled.checks import choices
    from unrolled_grader.jobs import job
    from unrolled_grader.results import regrades

    with reading(root / settings.CHOICES):
        was = choices.read(root / settings.CHOICES)
    now = trees.choices_of(wanted)
    otherwise = _built_otherwise(was, now)
    before, after = checks.specs_for(was), checks.specs_for(now)
    differences = {
        lesson: words
        for lesson in {**before, **after}
        if (words := _differences(before.get(lesson), after.get(lesson)))
    }
    made = notebooks.make(root, now, otherwise)
    files: dict[Path, bytes | None] = dict(_changed_here(root, wanted, made))
    if theirs is not None:
        files |= _changed_there(root, theirs, wanted, made)
    for lesson in differences.keys() & after.keys() & before.keys():
        differences[lesson] += _total(root, lesson, made)
    asked = {lesson: job.asking_hash(specs, _notebook(root, lesson, made)) for lesson, specs in after.items()}
    new = {
        asked[lesson]: "the class changed: " + "; ".join(differences[lesson])
        for lesson in differences.keys() & asked.keys()
    }
    return Change(differences, files, _outdated(folders, asked), {**regrades.reasons(folders.grades), **new})


def _differences(before: Mapping[str, Spec] | None, after: Mapping[str, Spec] | None) -> list[str]:
    """What a lesson asks otherwise, in words."""
    from unrolled.checks import choices

    if before is None or after is None:
        return ["this lesson is added" if before is None else "this lesson is taken out; its points stay as they are"]
    was, now = choices.parts(before), choices.parts(after)
    words = []
    for part in {**was, **now}:
        if part not in now:
            speed = "not measured any more" if part.endswith(choices.SPEED) else "not asked any more"
            words.append(f"{part}: {speed}")
        elif part not in was:
            words.append(f"{part}: asked from now on, for {_points(now[part][0])}")
        else:
            words += [f"{part}: {_points(now[part][0])}, not {was[part][0]:g}"] if was[part][0] != now[part][0] else []
            if was[part][1] != now[part][1]:
                words.append(f"{part}: at least {now[part][1]:g} times as fast as its baseline, not {was[part][1]:g}")
    return words


def _points(number: float) -> str:
    return f"{number:g} point" if number == 1 else f"{number:g} points"


def _built_otherwise(was: Choices, now: Choices) -> list[str]:
    """The lessons whose notebooks have other cells, or say something else of what is asked."""
    from unrolled import checks
    from unrolled.checks import choices

    everything = [checks.specs_for(replace(chosen, lessons=None)) for chosen in (was, now)]
    parts = [{lesson: choices.parts(each) for lesson, each in asked.items()} for asked in everything]
    return [lesson for lesson in parts[1] if parts[0].get(lesson) != parts[1][lesson]]


def _changed_here(root: Path, wanted: settings.Settings, made: Mapping[str, bytes]) -> Iterator[tuple[Path, bytes]]:
    """The files of the instructors' tree that become others."""
    file = root / settings.FILE
    lessons = set(notebooks.find_lessons(root))
    text = file.read_text(encoding="utf-8") if file.is_file() else None
    new = settings.written(wanted) if text is None else settings.rewritten(text, wanted, lessons)
    texts = {settings.FILE: new.encode(), settings.CHOICES: trees.choices_text(wanted).encode()}
    for name, content in {**made, **texts}.items():
        if not _holds(root / name, content):
            yield root / name, content


def _changed_there(
    root: Path, theirs: Path, wanted: settings.Settings, made: Mapping[str, bytes]
) -> Iterator[tuple[Path, bytes | None]]:
    """The files of the learners' tree that become others: what it shares, the notebooks, the README's list of them."""
    books = trees.learner_notebooks(root, wanted, made)
    files = {file.relative_to(root).as_posix(): file for file in trees.shared(root)}
    contents = {name: file.read_bytes() for name, file in files.items()} | books
    contents[settings.CHOICES] = trees.choices_text(wanted).encode()
    readme = theirs / "README.md"
    if readme.is_file():
        text, rows = readme.read_text(encoding="utf-8"), learners.rows(trees.heads(books))
        contents["README.md"] = learners.ROWS.sub(lambda _: f"{rows}\n", text, count=1).encode()
    for name, content in contents.items():
        if not _holds(theirs / name, content):
            yield theirs / name, content
    for lesson in notebooks.find_lessons(root):
        name = f"{notebooks.NOTEBOOKS}/{lesson}/{lesson}.ipynb"
        if name not in books and (theirs / name).is_file():
            yield theirs / name, None


def _holds(file: Path, content: bytes) -> bool:
    return file.is_file() and file.read_bytes() == content


def _total(root: Path, lesson: str, made: Mapping[str, bytes]) -> list[str]:
    """What a lesson is worth from now on, if that is something else."""
    now, was = (specs.total(json.loads(_notebook(root, lesson, each))) for each in (made, {}))
    return [f"{_points(now)} at most, not {was:g}"] if now != was else []


def _notebook(root: Path, lesson: str, made: Mapping[str, bytes]) -> bytes:
    """A lesson's notebook, as it is made or lies there."""
    name = f"{notebooks.NOTEBOOKS}/{lesson}/{lesson}.ipynb"
    return made[name] if name in made else (root / name).read_bytes()


def _outdated(folders: Folders, asked: Mapping[str, str]) -> dict[str, list[str]]:
    """The students whose submissions were judged by something else than what is asked, by lesson."""
    import unrolled
    from unrolled_grader.jobs import record

    found: dict[str, list[str]] = {}
    for kept in record.load_all(folders.grades):
        ours = kept.version == unrolled.__version__ and kept.lesson in asked
        if ours and kept.key.specs != asked[kept.lesson]:
            found.setdefault(kept.lesson, []).append(kept.student)
    return found


def print_change(found: Change, root: Path) -> None:
    """Print what would change, and what would be judged again."""
    from unrolled_grader.jobs.record import one_line

    for lesson in sorted({*found.differences, *found.again}):
        print(lesson)
        for words in found.differences.get(lesson, ["what judges it has changed since"]):
            print(f"  {words}")
        if students := found.again.get(lesson):
            print(f"  to be judged again: {len(students)} ({', '.join(map(one_line, students))})")
    if found.files:
        here = sum(file.is_relative_to(root) for file in found.files)
        print(f"files: {here} here, {len(found.files) - here} in the learners' tree", flush=True)


def _confirm() -> None:
    """Raise CommandError unless a person says yes."""
    if not sys.stdin.isatty():
        raise CommandError("nobody can be asked here, and nothing was changed: say --yes to go on")
    with contextlib.suppress(EOFError):
        if input("Type yes to go on: ").strip().lower() in ("y", "yes"):
            return
    raise CommandError("nothing was changed")


def _put(root: Path, folders: Folders, found: Change) -> None:
    """Put the files of a change in their places, while nothing is graded; killed on the way, the same command goes on.

    course.toml comes first and course.json last: in between they differ, so that nothing is graded.
    """
    from unrolled_grader.jobs import record
    from unrolled_grader.receiving.received import put
    from unrolled_grader.results import regrades

    first, last = root / settings.FILE, root / settings.CHOICES
    with record.alone(folders.grades):
        record.replace_file(folders.grades / regrades.REASONS, json.dumps(dict(found.reasons)))
        for target in sorted(found.files, key=lambda target: (target == last, target != first)):
            content = found.files[target]
            if content is None:
                target.unlink()
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                put(target, content, replacing=True)


def _judged_again(root: Path, lessons: Sequence[str], jobs: int) -> int:
    """Judge these lessons again, by what they ask now."""
    print(flush=True)
    commands.warm_up(jobs)
    from unrolled_grader.grading import Grading

    return commands.grade_class(Grading.at(root), lessons, jobs=jobs)
