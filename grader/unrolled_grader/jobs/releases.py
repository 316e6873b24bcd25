"""Other releases of the course, in grader/versions/VERSION: what their notebooks are judged by.

`unrolled version add` takes one in: from a tag of this repository, or a folder with another checkout. A release is the
library, the judge and the notebooks as they were; nothing of it is imported here.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import unrolled
from unrolled.cli import CommandError, Subparsers, checkout

FOLDER = "grader/versions"
PARTS = ("lib", "grader/unrolled_grader", "notebooks")
NAME = re.compile(r"[0-9][0-9A-Za-z.+-]{0,39}")
VERSION = re.compile(r"""^__version__ = ["']([^"']+)["']""", re.MULTILINE)
LESSONS = """\
import json
from unrolled import checks
import unrolled_grader.jobs.job
print(json.dumps(list(checks.lessons())))
"""


@dataclass(frozen=True)
class Release:
    """A release of the course in a folder of its own."""

    version: str
    root: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which Python finds its packages."""
        return {**os.environ, "PYTHONPATH": os.pathsep.join((str(self.root / "lib"), str(self.root / "grader")))}

    def released(self, lesson: str) -> Path:
        """Return the file of the notebook that the release's learners got."""
        return self.root / "notebooks" / lesson / f"{lesson}.ipynb"

    def hash(self, lesson: str) -> str:
        """Return a hash of all that judges a lesson: library, judge, notebook."""
        return hashlib.sha256(_code(self.root).encode() + self.released(lesson).read_bytes()).hexdigest()


def add_release(root: Path, source: str) -> tuple[Release, list[str]]:
    """Take a release in; return it, and its lessons. What is there is never replaced. Raises CommandError."""
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".adding-", dir=folder) as scratch:
        made = Path(scratch, "release")
        _take(root, source, made)
        release = Release(_version(made, source), made)
        target = folder / release.version
        if target.exists():
            raise CommandError(f"version {release.version} is there already, in {target}: it stays as it is")
        lessons = _lessons(release)
        os.replace(made, target)
    return Release(release.version, target), lessons


def known(versions: Path) -> list[Release]:
    """Return the releases in a folder, by name."""
    found = [entry for entry in sorted(versions.glob("*")) if entry.is_dir() and NAME.fullmatch(entry.name)]
    return [Release(entry.name, entry) for entry in found]


def _take(root: Path, source: str, into: Path) -> None:
    """Bring the parts of a release together. Raises CommandError for what is neither a folder nor a tag."""
    given = Path(source).expanduser()
    if given.is_dir():
        for part in PARTS:
            _copy(given / part, into / part)
        return
    if source.startswith("-"):
        raise CommandError(f"expected a tag or a folder, got {source!r}")
    archive = into.with_name("archive.zip")
    command = ["git", "-C", str(root), "archive", "--format=zip", f"--output={archive}", source, "--", *PARTS]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise CommandError(f"{source} is no folder, and git is not here to look for a tag") from None
    except subprocess.CalledProcessError as error:
        last = " ".join(error.stderr.strip().splitlines()[-1:])
        raise CommandError(f"{source} is no folder and no tag here: {last}") from None
    shutil.unpack_archive(archive, into)


def _copy(source: Path, target: Path) -> None:
    if not source.is_dir():
        raise CommandError(f"{source} is missing: a release holds {', '.join(PARTS)}")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")
    try:
        shutil.copytree(source, target, ignore=ignored, dirs_exist_ok=True)
    except OSError as error:  # a link that leads nowhere, a full disk
        raise CommandError(f"{source} cannot be copied: {error}") from error


def _version(made: Path, source: str) -> str:
    """What the release calls itself. Raises CommandError for this one, and for a name that can be no folder's."""
    file = made / "lib" / "unrolled" / "__init__.py"
    found = VERSION.search(file.read_text(encoding="utf-8")) if file.is_file() else None
    if found is None or not NAME.fullmatch(found[1]):
        raise CommandError(f"{source} does not say which version it is, in lib/unrolled/__init__.py")
    if found[1] == unrolled.__version__:
        raise CommandError(f"{source} is of version {found[1]}, as this course is: its notebooks are judged here")
    return found[1]


def _lessons(release: Release) -> list[str]:
    """The lessons that the release knows, as it says itself. Raises CommandError if it does not run here."""
    command = [sys.executable, "-c", LESSONS]
    done = subprocess.run(command, env=release.environment, cwd=release.root, capture_output=True, text=True)
    if done.returncode:
        last_line = done.stderr.strip().splitlines()[-1:]
        raise CommandError(f"version {release.version} does not run with this Python: {' '.join(last_line)}")
    return [str(lesson) for lesson in json.loads(done.stdout.splitlines()[-1])]


@functools.cache
def _code(root: Path) -> str:
    """A hash of the library and the judge of a release."""
    seen = hashlib.sha256()
    for folder in ("lib/unrolled", "grader/unrolled_grader"):
        for file in files_in(root / folder):
            take_in(seen, file, root)
    return seen.hexdigest()


def files_in(part: Path) -> list[Path]:
    """Return the files in a folder, or the one file, without compiled modules."""
    return sorted(file for file in (part, *part.rglob("*")) if file.is_file() and "__pycache__" not in file.parts)


def take_in(seen: hashlib._Hash, file: Path, root: Path) -> None:
    """Let a hash take in a file's bytes, and its name below `root`."""
    seen.update(f"{file.relative_to(root).as_posix()}\0".encode() + file.read_bytes() + b"\0")


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled version` command."""
    parser = subparsers.add_parser(
        "version", help="take in other releases of the course, by which their notebooks are graded"
    )
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    one = actions.add_parser("add", help="take a release in: a tag of this repository, or a folder")
    one.add_argument("source", metavar="TAG|FOLDER")
    one.set_defaults(run=_add)
    actions.add_parser("list", help="list the releases that are here").set_defaults(run=_list)


def _add(arguments: argparse.Namespace) -> int:
    release, lessons = add_release(checkout.find(), arguments.source)
    print(f"version {release.version} is in {release.root}, with {len(lessons)} lessons")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    print(f"this one: {unrolled.__version__}")
    for release in known(checkout.find() / FOLDER):
        print(f"{release.version}: in {release.root}")
    return 0
