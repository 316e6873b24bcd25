"""From lessons/NN_topic.py to solutions/ and notebooks/, the same bytes every time.

A lesson is written once, as a Jupytext percent script with nbgrader's metadata on its cells. `build` makes the complete
notebook from it, has nbgrader's own GenerateAssignment make the learner's, and replaces what differs in the checkout;
`check` says what would be replaced. Nothing edits a notebook afterwards, so that formgrader's Generate gives the same
bytes.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import importlib
import logging
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import unrolled
from unrolled.cli import Subparsers, checkout
from unrolled_grader.authoring import finished, listed, minutes, specs
from unrolled_grader.authoring.variants import LessonError, chosen, put, require

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from unrolled.checks import Spec
    from unrolled.checks.choices import Choices

SOLUTIONS, NOTEBOOKS = "solutions", "notebooks"
CHOICES = "lib/unrolled/checks/course.json"
LESSON_NAME = re.compile(r"\d\d_[a-z0-9_]+")
WHY = re.compile(r"\s?<!-- why: [^>]* -->")  # marks a sentence that docs/figures.md bears out; not for learners
CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
START = re.compile(r"""check\.start\(\s*["'](?P<lesson>[^"']*)["']\s*(?:,\s*["'][^"']*["']\s*)?\)""")
KEPT_METADATA = ("nbgrader", "tags")
BEGIN, END = "BEGIN SOLUTION", "END SOLUTION"

# %pip in Python's words: what reads a lesson's cells as Python, such as the proofs, reads these as well.
INSTALL = """\
try:
    import unrolled
except ModuleNotFoundError:
    get_ipython().run_line_magic("pip", 'install -q "unrolled @ {wheel}"')"""
NEARBY = """\
try:
    import unrolled
except ModuleNotFoundError:  # its wheel lies here, or on Colab in Drive's folder "unrolled"
    import glob, sys
    if "google.colab" in sys.modules and not glob.glob("unrolled-*.whl"):
        from google.colab import drive
        drive.mount("/content/drive")
    places = "-f . -f wheels -f drive/MyDrive/unrolled -f drive/MyDrive/unrolled/wheels"
    get_ipython().run_line_magic("pip", f"install -qq --no-index {{places}} unrolled=={version}")"""
BADGE = (
    "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
    "(https://colab.research.google.com/github/{path}/blob/{tag}/{notebook})"
)


@dataclass(frozen=True)
class Address:
    """Where learners fetch the course from; both parts empty while the course has no public home."""

    repository: str = ""
    tag: str = ""

    def __post_init__(self) -> None:
        if bool(self.repository) != bool(self.tag):
            raise LessonError("pyproject.toml: [tool.unrolled] needs both repository and tag, or neither")
        if self.repository and not self.repository.startswith("https://"):
            raise LessonError(f"pyproject.toml: repository must be an https:// address, got {self.repository!r}")

    @property
    def github(self) -> str:
        """OWNER/NAME if the repository is on GitHub; else empty."""
        found = re.fullmatch(r"https://github\.com/([^/]+/[^/]+?)(\.git)?/?", self.repository)
        return found[1] if found else ""

    def badge(self, lesson: str) -> str:
        """Return Markdown that opens the lesson in Colab, which knows GitHub only; empty for a repository elsewhere."""
        if not self.github:
            return ""
        return BADGE.format(path=self.github, tag=self.tag, notebook=f"{NOTEBOOKS}/{lesson}/{lesson}.ipynb")

    def wheel(self) -> str:
        """Return where pip gets this version: on GitHub the wheel of the tag's release, elsewhere the tag itself."""
        if not self.github:
            return f"git+{self.repository}@{self.tag}"
        file = f"unrolled-{unrolled.__version__}-py3-none-any.whl"
        return f"https://github.com/{self.github}/releases/download/{self.tag}/{file}"

    def install(self) -> str:
        """Return how the first code cell begins. pip leaves alone what is there: NumPy and CuPy stay Colab's."""
        if not self.repository:
            return NEARBY.format(version=unrolled.__version__)
        return INSTALL.format(wheel=self.wheel())


@dataclass(frozen=True)
class Change:
    """A notebook or page that is not what the lessons make of it. `kind`: missing, differs or stale."""

    kind: str
    path: str

    def __str__(self) -> str:
        return f"{self.path} ({self.kind})"


def build(root: Path, lessons: Iterable[str] | None = None) -> list[Change]:
    """Bring solutions/, notebooks/ and lists in line with lessons/; return the changes, none on LessonError.

    With `lessons`, only the notebooks of these.
    """
    made = make(root, lessons=lessons)
    changes = [change for change in differences(root, made) if lessons is None or change.path in made]
    for change in changes:
        file = root / change.path
        if change.kind == "stale":
            file.unlink()
            if not any(file.parent.iterdir()):
                file.parent.rmdir()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(made[change.path])
    return changes


def check(root: Path) -> list[Change]:
    """Return what `build` would change. Raises LessonError if a lesson cannot be built."""
    return differences(root, make(root))


def differences(root: Path, made: dict[str, bytes]) -> list[Change]:
    """Compare what is under `root` with what was made of the lessons, byte by byte; return what differs, by path."""
    files = [file for folder in (SOLUTIONS, NOTEBOOKS) for file in root.glob(f"{folder}/*/*.ipynb")]
    there = {file.relative_to(root).as_posix() for file in files} | {path for path in made if (root / path).is_file()}
    kinds = {**dict.fromkeys(there - made.keys(), "stale"), **dict.fromkeys(made.keys() - there, "missing")}
    kinds |= {path: "differs" for path in made.keys() & there if (root / path).read_bytes() != made[path]}
    return [Change(kind, path) for path, kind in sorted(kinds.items())]


def make(root: Path, choices: Choices | None = None, lessons: Iterable[str] | None = None) -> dict[str, bytes]:
    """Return the bytes of the notebooks and, for all lessons, of the pages that list them, by path relative to `root`.

    `choices` says which variants stand in place of their exercises and what checks are worth, by default what
    course.json in `root` chooses; `lessons` are those to make, by default all. Raises LessonError if one cannot be
    made, or does not exist.
    """
    import nbformat

    there = find_lessons(root)
    wanted = _chosen(root) if choices is None else choices
    require(root, wanted.variants)
    if unknown := [name for name in lessons or () if name not in there]:
        raise LessonError(f"there is no lesson {unknown[0]}; there are {', '.join(there)}")
    files = {name: file for name, file in there.items() if lessons is None or name in set(lessons)}
    if not files:
        return {}
    address, asked = read_address(root), specs.by_name(wanted, there)
    with tempfile.TemporaryDirectory(prefix="unrolled-build-") as scratch:
        for name, file in files.items():
            target = Path(scratch, SOLUTIONS, name, f"{name}.ipynb")
            target.parent.mkdir(parents=True)
            with target.open("w", encoding="utf-8", newline="\n") as stream:
                nbformat.write(solution_notebook(file, address, wanted.variants, asked), stream)
        generate(Path(scratch), nbgrader_config(root), list(files))
        written = sorted(Path(scratch).glob("*/*/*.ipynb"))
        made = {file.relative_to(scratch).as_posix(): file.read_bytes() for file in written}
    if lessons is not None:
        return made
    return made | listed.pages(root, files) | finished.pages(root)


def _chosen(root: Path) -> Choices:
    """What the class in `root` chose, nothing in the course itself."""
    from unrolled.checks import choices  # and with it NumPy, which the command line does without

    try:
        return choices.read(root / CHOICES)
    except ValueError as error:
        raise LessonError(str(error)) from error


def find_lessons(root: Path) -> dict[str, Path]:
    """Return the lessons' sources by name, in order. Raises LessonError for a script whose name is not NN_topic.py."""
    files = sorted((root / "lessons").glob("*.py"))
    for file in files:
        if not LESSON_NAME.fullmatch(file.stem):
            raise LessonError(f"lessons/{file.name}: a lesson is named NN_topic.py, such as 02_convolution.py")
    return {file.stem: file for file in files}


def parsed_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text. Raises ValueError for a text that is not TOML."""
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    tables: dict[str, Any] = toml.loads(text)
    return tables


def read_address(root: Path) -> Address:
    """Return repository and tag from [tool.unrolled] in pyproject.toml. Raises LessonError if they cannot be used."""
    table = parsed_toml((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["unrolled"]
    return Address(table.get("repository", ""), table.get("tag", ""))


def solution_notebook(
    file: Path,
    address: Address,
    variants: Mapping[str, str] = MappingProxyType({}),
    asked: Mapping[str, Spec] = MappingProxyType({}),
) -> NotebookNode:
    """Return the lesson's complete notebook, without outputs, with these variants, and what the specs `asked` say.

    Raises LessonError if it is malformed, or has what no spec says.
    """
    import jupytext
    from nbformat import NotebookNode

    name = file.stem
    nb: NotebookNode = jupytext.reads(file.read_text(encoding="utf-8"), fmt="py:percent")
    for exercise, variant in chosen(file, nb.cells, variants).items():
        nb.cells = put(name, nb.cells, exercise, variant)
    for cell in nb.cells:
        cell.metadata = NotebookNode({key: cell.metadata[key] for key in KEPT_METADATA if key in cell.metadata})
        _check_regions(name, cell)
        if cell.cell_type == "code":
            cell.source = specs.with_bodies(name, cell.source)
        else:
            cell.source = WHY.sub("", cell.source)
    specs.write(name, nb.cells, asked)
    for cell, cell_id in zip(nb.cells, cell_ids(name, nb.cells), strict=True):
        cell.id = cell_id
    _write_header(name, nb, address)
    _write_start(name, nb, address)
    nb.nbformat, nb.nbformat_minor = 4, 5
    nb.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
        unrolled={"lesson": name, "version": unrolled.__version__},
    )
    return nb


def cell_ids(lesson: str, cells: list[NotebookNode]) -> list[str]:
    """Return an id for each cell that depends on the lesson's text alone.

    That is its grade_id, else a hash of its source and occurrence. Raises LessonError for a grade_id that stands twice
    or is no cell id.
    """
    seen, ids = Counter[str](), []
    for cell in cells:
        source = f"{cell.cell_type}\n{cell.source}"
        seen[source] += 1
        digest = hashlib.sha256(f"{source}\n{seen[source]}".encode()).hexdigest()[:12]
        ids.append(cell.metadata.get("nbgrader", {}).get("grade_id") or digest)
    for cell_id, count in Counter(ids).items():
        if count > 1:
            raise LessonError(f"{lesson}: {count} cells have the grade_id {cell_id!r}")
        if not CELL_ID.fullmatch(cell_id):
            raise LessonError(f"{lesson}: the grade_id {cell_id!r} must be 1-64 letters, digits, - or _")
    return ids


def _check_regions(lesson: str, cell: NotebookNode) -> None:
    """nbgrader drops an END without a BEGIN and keeps the lines above it, so that a typing error shows a solution."""
    markers = [BEGIN if BEGIN in line else END for line in cell.source.split("\n") if BEGIN in line or END in line]
    if markers != [BEGIN, END] * (len(markers) // 2):
        first = next(line for line in cell.source.split("\n") if line.strip())
        raise LessonError(f"{lesson}: {BEGIN} and {END} do not pair up in the cell that starts with {first!r}")


def _write_header(lesson: str, nb: NotebookNode, address: Address) -> None:
    """Put the badge below the title."""
    if not nb.cells or nb.cells[0].cell_type != "markdown" or not nb.cells[0].source.startswith("# "):
        raise LessonError(f"{lesson}: the first cell must be markdown and start with the title, '# …'")
    if badge := address.badge(lesson):
        title, _, rest = nb.cells[0].source.partition("\n")
        nb.cells[0].source = f"{title}\n\n{badge}\n{rest}".rstrip("\n")


def _write_start(lesson: str, nb: NotebookNode, address: Address) -> None:
    """Put the course's version and the way to install it into the first code cell."""
    cell = next((cell for cell in nb.cells if cell.cell_type == "code"), None)
    call = START.search(cell.source) if cell else None
    if cell is None or call is None or call["lesson"] != lesson:
        raise LessonError(f'{lesson}: the first code cell must call check.start("{lesson}")')
    source = START.sub(f'check.start("{lesson}", "{unrolled.__version__}")', cell.source)
    cell.source = f"{address.install()}\n{source}"


def nbgrader_config(root: Path) -> Any:
    """Return the traitlets configuration that nbgrader's commands read in `root`."""
    from traitlets.config.loader import PyFileConfigLoader

    return PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()


def generate(course: Path, config: Any, lessons: list[str]) -> None:
    """Have nbgrader make course/notebooks from course/solutions, without a database. Raises LessonError: its words."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.utils import capture_log

    config = copy.deepcopy(config)
    config.CourseDirectory.root = str(course)
    config.SaveCells.enabled = False
    log = logging.getLogger(__name__)  # captured below; on the screen it would be noise
    log.setLevel(logging.INFO)
    log.propagate = False
    for lesson in lessons:
        directory = CourseDirectory(config=config, assignment_id=lesson)
        converter = GenerateAssignment(coursedir=directory, config=config, log=log, no_database=True, force=True)
        result = capture_log(converter)
        if not result["success"]:
            errors = [line for line in result.get("log", "").splitlines() if line.startswith("[ERROR]")]
            raise LessonError(f"{lesson}: nbgrader refuses it: " + " ".join(errors or [result["error"]]))


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled build` command."""
    parser = subparsers.add_parser("build", help="make solutions/ and notebooks/ from lessons/")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if anything would be changed")
    parser.set_defaults(run=_command)


def _command(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    lessons = find_lessons(root)
    changes = check(root) if arguments.check else build(root)
    for change in changes:
        print(change if arguments.check else f"{'removed' if change.kind == 'stale' else 'made'} {change.path}")
    for name in lessons if not arguments.check else ():
        print(f"{name}: {minutes.of_lesson(root, name)}")
    if not lessons:
        print("lessons/ holds no lesson (NN_topic.py) yet")
    elif not changes:
        print(f"solutions/ and notebooks/ are what the {len(lessons)} lessons make of them")
    elif not arguments.check:
        print(f"lessons: {len(lessons)}, files changed: {len(changes)}")
    if arguments.check and changes:
        print("unrolled build: these are not what lessons/ makes of them; run `make build`", file=sys.stderr)
        return 1
    return 0
