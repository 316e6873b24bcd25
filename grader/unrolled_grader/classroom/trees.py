"""`unrolled class new DIR`: a class of one's own, as two trees without history.

DIR/learners holds what learners may have: the notebooks of the chosen lessons, the library, a README, `make lab`.
DIR/instructors holds the whole course with what was chosen, and a private seed. Neither is a repository yet.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import unrolled
from unrolled.cli import CommandError, Subparsers, checkout
from unrolled.cli import folder as a_folder
from unrolled.notebook import cells
from unrolled_grader.build import authoring, variants
from unrolled_grader.classroom import learners, seeds, settings
from unrolled_grader.classroom.settings import Settings
from unrolled_grader.classroom.syllabi import SYLLABI

WHOLE = (
    *(".ci", ".gitignore", "LICENSE", "Makefile", "README.md", "benchmarks", "docs", "grader/nbgrader_config.py"),
    *("grader/sample_class", "grader/unrolled_grader", "lessons", "lib", "nbgrader_config.py", "pyproject.toml"),
    *("requirements.txt", "site", "tests"),
)
"""The course's own files. What people made (submissions, gradebook, grades, work) is never copied."""
SHARED = (".ci/venv", "LICENSE", "lib/unrolled")  # what learners get as it is
DOCS = ("self-study.md", "colab.md", "gpu.md", "nn.md")  # pages for learners
MADE = ("__pycache__", "*.egg-info", ".ipynb_checkpoints")
Value = TypeVar("Value")


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled class` command."""
    parser = subparsers.add_parser("class", help="make a class of your own: a tree for learners, one for instructors")
    new = parser.add_subparsers(dest="action", metavar="action", required=True).add_parser(
        "new",
        help="make DIR/learners and DIR/instructors",
        description="Make DIR/learners and DIR/instructors from this checkout. What no option says is as course.toml "
        "has it, if there is one. Nothing that exists is changed: DIR must be new or empty.",
    )
    new.add_argument("folder", type=a_folder, metavar="DIR")
    which = new.add_mutually_exclusive_group()
    which.add_argument("--lessons", metavar="00,02,05", help="these lessons (default: all)")
    which.add_argument("--syllabus", choices=sorted(SYLLABI), help="the lessons of a course of so many hours")
    new.add_argument("--variant", action="append", default=[], metavar="EXERCISE=SUFFIX", help="such as im2col=nhwc")
    new.add_argument("--threshold", action="append", default=[], metavar="CHECK=T", help="such as conv2d_gemm=2.0")
    new.add_argument("--name", help='such as "Spring 2027"')
    new.add_argument("--repository", default="", metavar="URL", help="where learners will fetch their tree from")
    new.add_argument("--tag", default="", help="of that repository, for Colab")
    new.set_defaults(run=_new)


def _new(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    address = authoring.Address(arguments.repository, arguments.tag)
    new(root, arguments.folder, chosen(root, arguments), address)
    lessons = len(list((arguments.folder / "learners" / "notebooks").iterdir()))
    print(f"{arguments.folder / 'learners'}: {lessons} lessons, the library; for learners")
    print(f"{arguments.folder / 'instructors'}: the whole course, course.toml, a private seed; not for learners")
    if not address.repository:
        print("The notebooks have no address for Colab; --repository and --tag give them one.")
    return 0


def new(root: Path, folder: Path, wanted: Settings, address: authoring.Address) -> Path:
    """Make the two trees in `folder`, all at once or not at all, and return it.

    Raises CommandError if `folder` is not empty or lies in the course, or if something is chosen that is not there.
    """
    folder = folder.absolute()
    if folder.resolve().is_relative_to(root.resolve()):
        raise CommandError(f"{folder} lies in the course's own folder: choose one outside of {root}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"{folder} is not empty: choose a new folder, nothing is overwritten")
    check(root, wanted)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        trees = Path(scratch, "trees")
        write_instructors(root, trees / "instructors", wanted, address)
        write_learners(trees / "instructors", trees / "learners", wanted, address)
        if folder.exists():
            folder.rmdir()
        trees.rename(folder)
    return folder


def write_instructors(root: Path, tree: Path, wanted: Settings, address: authoring.Address) -> None:
    """Write the whole course with what was chosen, and a private seed, to `tree`, and build it."""
    tree.mkdir(parents=True)
    for name in WHOLE:
        copy(root / name, tree / name)
    project = (tree / "pyproject.toml").read_text(encoding="utf-8")
    _write(tree / "pyproject.toml", addressed(project, address))
    _write(tree / settings.FILE, settings.written(wanted))
    _write(tree / settings.CHOICES, choices_text(wanted))
    seeds.write(tree)
    authoring.build(tree)


def write_learners(source: Path, tree: Path, wanted: Settings, address: authoring.Address) -> None:
    """Write what learners get to `tree`, from the instructors' tree."""
    for name in SHARED:
        copy(source / name, tree / name)
    lessons = wanted.lessons or tuple(authoring.find_lessons(source))
    for lesson in lessons:
        copy(source / authoring.NOTEBOOKS / lesson, tree / authoring.NOTEBOOKS / lesson)
    pages = [page for page in DOCS if (source / "docs" / page).is_file()]
    docs = {page: learners.unlinked((source / "docs" / page).read_text(encoding="utf-8"), pages) for page in pages}
    for page, text in docs.items():
        _write(tree / "docs" / page, text)
    books = {lesson: cells.read(tree / authoring.NOTEBOOKS / lesson / f"{lesson}.ipynb") for lesson in lessons}
    heads = {lesson: book.cells[0].source for lesson, book in books.items()}
    ours = authoring.parsed_toml((source / "pyproject.toml").read_text(encoding="utf-8"))
    _write(tree / "README.md", learners.readme(wanted.name, heads, docs, unrolled.__version__))
    _write(tree / "pyproject.toml", learners.pyproject(ours, address.repository, address.tag))
    _write(tree / "Makefile", learners.MAKEFILE)
    _write(tree / "requirements.txt", learners.REQUIREMENTS)
    _write(tree / ".gitignore", learners.GITIGNORE)


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder, without what programs made in it; pass over what is not there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*MADE))
    elif source.is_file():
        shutil.copy(source, target)


def chosen(root: Path, arguments: argparse.Namespace) -> Settings:
    """Return the settings in the course.toml of `root`, but for what the options say. Raises CommandError."""
    found = settings.read(root, agreeing=False)
    if arguments.syllabus:
        found = replace(found, lessons=SYLLABI[arguments.syllabus].lessons)
    if arguments.lessons is not None:
        found = replace(found, lessons=lessons_of(arguments.lessons, list(authoring.find_lessons(root))))
    if arguments.variant:
        found = replace(found, variants=pairs("--variant", arguments.variant, str))
    if arguments.threshold:
        found = replace(found, thresholds=pairs("--threshold", arguments.threshold, float))
    return found if arguments.name is None else replace(found, name=arguments.name)


def lessons_of(text: str, names: list[str]) -> tuple[str, ...]:
    """Return the lessons that "00,02,05" means, in the course's order. Raises CommandError."""
    from unrolled.cli.lab import choose

    asked = {choose(word.strip(), names) for word in text.split(",") if word.strip()}
    if not asked:
        raise CommandError(f"--lessons names none, got {text!r}; there are {', '.join(names)}")
    return tuple(name for name in names if name in asked)


def pairs(option: str, words: Sequence[str], kind: Callable[[str], Value]) -> dict[str, Value]:
    """Return the names and values in words like NAME=VALUE. Raises CommandError."""
    found: dict[str, Value] = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            found[name] = kind(value)
        except ValueError:
            value = ""
        if not name or value in ("", "inf"):
            raise CommandError(f"{option} {word}: expected NAME={'NUMBER' if kind is float else 'SUFFIX'}")
    return found


def check(root: Path, wanted: Settings) -> None:
    """Raise CommandError if a lesson, a variant or a threshold is chosen that is not there, or would have no effect."""
    there = variants.known(root)
    for name, suffix in wanted.variants.items():
        if name not in there:
            have = ", ".join(one for one, suffixes in sorted(there.items()) if suffixes) or "none"
            raise CommandError(f"there is no exercise {name!r:.60}; there are variants of {have}")
        if suffix not in there[name]:
            have = ", ".join(there[name]) or "none"
            raise CommandError(f"{name!r} has no variant {suffix!r}: it has {have}")
    from unrolled import checks
    from unrolled.checks import choices

    names = list(authoring.find_lessons(root))
    asked = choices.Choices(wanted.lessons or None, wanted.variants, wanted.thresholds)
    found = choices.problems(asked, names, checks.all_specs(), checks.variants())
    both = [(name, wanted.variants[name]) for name in wanted.thresholds if name in wanted.variants]
    found += [f"{one!r} is replaced by its variant: set the threshold of {one}_{suffix}" for one, suffix in both]
    for name, suffix in wanted.variants.items():
        files = list((root / "lessons" / "variants").glob(f"*_{name}_{suffix}.py"))
        if files and wanted.lessons and not any(files[0].stem[:2] == lesson[:2] for lesson in wanted.lessons):
            found.append(f"{name!r} is of lesson {files[0].stem[:2]}, which is not chosen")
    if found:
        raise CommandError("; ".join(found))


def choices_text(wanted: Settings) -> str:
    """Return what the library must know of the settings, as course.json."""
    found: dict[str, Any] = {"variants": dict(wanted.variants), "thresholds": dict(wanted.thresholds)}
    if wanted.lessons:
        found["lessons"] = list(wanted.lessons)
    return json.dumps(found, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def addressed(project: str, address: authoring.Address) -> str:
    """Return a pyproject.toml with this address in [tool.unrolled]."""
    before, mark, after = project.partition("[tool.unrolled]\n")
    for key, value in (("repository", address.repository), ("tag", address.tag)):
        line = f"{key} = {settings.toml_text(value)}".replace("\\", r"\\")
        after = re.sub(rf"^{key} = .*$", line, after, count=1, flags=re.MULTILINE)
    return before + mark + after


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")
