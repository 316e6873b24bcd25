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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import unrolled
from unrolled.cli import CommandError, Subparsers, checkout
from unrolled.cli import folder as a_folder
from unrolled.notebook import cells
from unrolled_grader.authoring import notebooks, variants
from unrolled_grader.authoring.syllabi import SYLLABI
from unrolled_grader.classroom import learners, seeds, settings
from unrolled_grader.classroom.settings import MOST_POINTS, Settings

if TYPE_CHECKING:
    from unrolled.checks.choices import Choices

WHOLE = (
    *(".ci", ".github", ".gitignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile"),
    *("README.md", "benchmarks", "docs", "grader/nbgrader_config.py"),
    *("findings", "grader/sample_class", "grader/unrolled_grader", "lessons", "lib", "nbgrader_config.py"),
    *("pyproject.toml", "requirements.txt", "setup.py", "site", "tests"),
)
"""The course's own files. What people made (submissions, gradebook, grades, work) is never copied."""
SHARED = (".ci/venv", "LICENSE", "lib/unrolled", "setup.py")  # what learners get as it is
DOCS = ("self-study.md", "colab.md", "gpu.md", "nn.md")  # pages for learners
MADE = ("__pycache__", "*.egg-info", ".ipynb_checkpoints", ".*.part")
Value = TypeVar("Value")


def add(subparsers: Subparsers) -> Subparsers:
    """Add the `unrolled class` command, and return what its actions are added to."""
    parser = subparsers.add_parser("class", help="make a class of your own, and change it while it runs")
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    new = actions.add_parser(
        "new",
        help="make DIR/learners and DIR/instructors",
        description="Make DIR/learners and DIR/instructors from this checkout. What no option says is as course.toml "
        "has it, if there is one. Nothing that exists is changed: DIR must be new or empty.",
    )
    new.add_argument("folder", type=a_folder, metavar="DIR")
    add_choices(new)
    new.add_argument("--name", help='such as "Spring 2027"')
    new.add_argument("--repository", default="", metavar="URL", help="where learners will fetch their tree from")
    new.add_argument("--tag", default="", help="of that repository, for Colab")
    new.set_defaults(run=_new)
    return actions


def add_choices(parser: argparse.ArgumentParser) -> None:
    """Add the options for what a class asks. Each changes what it names, and leaves the rest as it is."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--lessons", metavar="00,02,05", help="these lessons, and no others")
    which.add_argument("--syllabus", choices=sorted(SYLLABI), help="the lessons of a course of so many hours")
    several: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("--variant", **several, metavar="EXERCISE=SUFFIX", help="such as im2col=nhwc")
    parser.add_argument("--threshold", **several, metavar="CHECK=T", help="such as conv2d_gemm=2.0")
    parser.add_argument("--points", **several, metavar="PART=N", help="such as conv2d_gemm=3, conv2d_gemm/speed=2")
    parser.add_argument("--without-speed", metavar="02,05", help="in these lessons speed earns nothing; or all")


def _new(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    address = notebooks.Address(arguments.repository, arguments.tag)
    new(root, arguments.folder, with_options(root, arguments), address)
    lessons = len(list((arguments.folder / "learners" / "notebooks").iterdir()))
    print(f"{arguments.folder / 'learners'}: {lessons} lessons, the library; for learners")
    print(f"{arguments.folder / 'instructors'}: the whole course, course.toml, a private seed; not for learners")
    if not address.repository:
        print("The notebooks have no address for Colab; --repository and --tag give them one.")
    return 0


def new(root: Path, folder: Path, wanted: Settings, address: notebooks.Address) -> Path:
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


def write_instructors(root: Path, tree: Path, wanted: Settings, address: notebooks.Address) -> None:
    """Write the whole course with what was chosen, and a private seed, to `tree`, and build it."""
    tree.mkdir(parents=True)
    for name in WHOLE:
        copy(root / name, tree / name)
    project = (tree / "pyproject.toml").read_text(encoding="utf-8")
    _write(tree / "pyproject.toml", addressed(project, address))
    _write(tree / settings.FILE, settings.written(wanted))
    _write(tree / settings.CHOICES, choices_text(wanted))
    seeds.write(tree)
    notebooks.build(tree)


def write_learners(source: Path, tree: Path, wanted: Settings, address: notebooks.Address) -> None:
    """Write what learners get to `tree`, from the instructors' tree."""
    for name in SHARED:
        copy(source / name, tree / name)
    books = learner_notebooks(source, wanted)
    for name, content in books.items():
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_bytes(content)
    pages = [page for page in DOCS if (source / "docs" / page).is_file()]
    docs = {page: learners.unlinked((source / "docs" / page).read_text(encoding="utf-8"), pages) for page in pages}
    for page, text in docs.items():
        _write(tree / "docs" / page, text)
    ours = notebooks.parsed_toml((source / "pyproject.toml").read_text(encoding="utf-8"))
    _write(tree / "README.md", learners.readme(wanted.name, heads(books), docs, unrolled.__version__))
    _write(tree / "pyproject.toml", learners.pyproject(ours, address.repository, address.tag))
    _write(tree / "Makefile", learners.MAKEFILE)
    _write(tree / "requirements.txt", learners.REQUIREMENTS)
    _write(tree / ".gitignore", learners.GITIGNORE)


def shared(source: Path) -> list[Path]:
    """Return the files that learners get as they are, without what programs made among them."""
    found = (file for name in SHARED for file in sorted([source / name, *(source / name).rglob("*")]) if file.is_file())
    return [file for file in found if not any(file.match(f"*/{name}") or name in file.parts for name in MADE)]


def learner_notebooks(
    source: Path, wanted: Settings, made: Mapping[str, bytes] = MappingProxyType({})
) -> dict[str, bytes]:
    """Return the notebooks that learners get by their path in both trees: those just `made`, else as in `source`."""
    lessons = wanted.lessons or tuple(notebooks.find_lessons(source))
    names = [f"{notebooks.NOTEBOOKS}/{lesson}/{lesson}.ipynb" for lesson in lessons]
    return {name: made.get(name) or (source / name).read_bytes() for name in names}


def heads(books: Mapping[str, bytes]) -> dict[str, str]:
    """Return the text of each notebook's first cell, by lesson."""
    return {Path(name).stem: cells.source(cells.parse(content)["cells"][0]) for name, content in books.items()}


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder, without what programs made in it; pass over what is not there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*MADE))
    elif source.is_file():
        shutil.copy(source, target)


def with_options(root: Path, arguments: argparse.Namespace) -> Settings:
    """Return the settings in the course.toml of `root`, but for what the options say. Raises CommandError."""
    found = settings.read(root, agreeing=False)
    names = list(notebooks.find_lessons(root))
    if arguments.syllabus:
        found = replace(found, lessons=SYLLABI[arguments.syllabus].lessons)
    if arguments.lessons is not None:
        found = replace(found, lessons=lessons_of("--lessons", arguments.lessons, names))
    off = set(found.without_speed)
    if arguments.without_speed is not None:
        off.update(lessons_of("--without-speed", arguments.without_speed, names))
    return replace(
        found,
        variants={**found.variants, **pairs("--variant", arguments.variant, _suffix, "EXERCISE=SUFFIX")},
        thresholds={
            **found.thresholds,
            **pairs("--threshold", arguments.threshold, _above_zero, "CHECK=T, with a number above 0"),
        },
        points={
            **found.points,
            **pairs("--points", arguments.points, _whole, f"PART=N, with a whole number from 0 to {MOST_POINTS}"),
        },
        without_speed=tuple(name for name in names if name in off),
        name=found.name if getattr(arguments, "name", None) is None else arguments.name,
    )


def lessons_of(option: str, text: str, names: list[str]) -> tuple[str, ...]:
    """Return the lessons that "00,02,05" or "all" means, in the course's order. Raises CommandError."""
    from unrolled.cli.lab import choose

    if text == "all":
        return tuple(names)
    asked = {choose(word.strip(), names) for word in text.split(",") if word.strip()}
    if not asked:
        raise CommandError(f"{option} names none, got {text!r}; there are {', '.join(names)}")
    return tuple(name for name in names if name in asked)


def pairs(option: str, words: Sequence[str], kind: Callable[[str], Value], expected: str) -> dict[str, Value]:
    """Return the names and values in words like NAME=VALUE. Raises CommandError, with what was expected."""
    found: dict[str, Value] = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            found[name] = kind(value)
        except ValueError:
            name = ""
        if not name:
            raise CommandError(f"{option} {word}: expected {expected}")
    return found


def _suffix(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text


def _above_zero(text: str) -> float:
    if not 0 < float(text) < float("inf"):
        raise ValueError(text)
    return float(text)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= MOST_POINTS):
        raise ValueError(text)
    return int(text)


def check(root: Path, wanted: Settings) -> None:
    """Raise CommandError if something is chosen that is not there, or would have no effect.

    What the texts of the lessons tell comes first: the checks themselves take a while to load.
    """
    there = variants.known(root)
    for name, suffix in wanted.variants.items():
        if name not in there:
            have = ", ".join(one for one, suffixes in sorted(there.items()) if suffixes) or "none"
            raise CommandError(f"there is no exercise {name!r:.60}; there are variants of {have}")
        if suffix not in there[name]:
            have = ", ".join(there[name]) or "none"
            raise CommandError(f"{name!r} has no variant {suffix!r}: it has {have}")
    named = {name.partition("/")[0] for name in wanted.points} | wanted.thresholds.keys()
    exist = variants.checks(root)
    if unknown := sorted(named - exist.keys()):
        raise CommandError(f"there is no check {unknown[0]!r}; there are {', '.join(exist)}")
    from unrolled import checks

    found = checks.problems(choices_of(wanted), notebooks.find_lessons(root))
    both = [(name, wanted.variants[name]) for name in sorted(named) if name in wanted.variants]
    found += [f"{one!r} is replaced by its variant: set that of {one}_{suffix}" for one, suffix in both]
    for name, suffix in wanted.variants.items():
        lesson = exist.get(f"{name}_{suffix}", "")
        if wanted.lessons and lesson not in wanted.lessons:
            found.append(f"{name!r} is of lesson {lesson[:2]}, which is not chosen")
    if found:
        raise CommandError("; ".join(found))


def choices_of(wanted: Settings) -> Choices:
    """Return the settings as the library's checks take them."""
    from unrolled.checks.choices import Choices

    return Choices(
        lessons=wanted.lessons or None,
        variants=wanted.variants,
        thresholds=wanted.thresholds,
        points=wanted.points,
        without_speed=wanted.without_speed,
    )


def choices_text(wanted: Settings) -> str:
    """Return what the library must know of the settings, as course.json."""
    chosen = {name: value for name, value in settings.shared(wanted).items() if value}
    return json.dumps(chosen, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def addressed(project: str, address: notebooks.Address) -> str:
    """Return a pyproject.toml with this address in [tool.unrolled]."""
    before, mark, after = project.partition("[tool.unrolled]\n")
    for key, value in (("repository", address.repository), ("tag", address.tag)):
        line = f"{key} = {settings.toml_text(value)}".replace("\\", r"\\")
        after = re.sub(rf"^{key} = .*$", line, after, count=1, flags=re.MULTILINE)
    return before + mark + after


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")
