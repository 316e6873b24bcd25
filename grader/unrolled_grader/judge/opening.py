"""Opening a submitted notebook: from bytes to a valid notebook of the current format, or to the reason why not.

What grading has no use for is dropped before the format is checked: outputs, execution counts, widgets, and what
Colab and others write beside the cells. So nothing that a learner cannot see costs points. What is left is source,
grade_ids, pictures pasted into answers, the claimed lesson and the claimed kernel.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import symtable
import warnings
from collections.abc import Collection, Iterator
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.corpus.words import generate_corpus_id
from nbformat.v4 import nbformat_minor

from unrolled.notebook.cells import SHARED_MAGICS, grade_id
from unrolled_grader.box.wire import whole
from unrolled_grader.judge.evidence import CELL

MAX_CELLS = 1000
KINDS = ("code", "markdown", "raw")
START = re.compile(r"""^[ \t]*check\.start\(\s*["']([^"']*)["'](?:\s*,\s*["']([^"']*)["'])?""", re.MULTILINE)
ESCAPE = re.compile(r"^(?P<indent>[ \t]*)(?:\w[\w, ]*=[ \t]*)?(?:[%!?].*|[\w.]+\?{1,2})$", re.MULTILINE)
"""A line that only IPython understands: a magic, a shell command, a question.

No two parts that repeat may begin with the same character: the time would grow with the square of a line's length.
"""
PARSED = 200_000  # characters of a cell that are parsed at most


class RefusedError(ValueError):
    """A submission cannot be graded: the reason, in words for an instructor and the student."""


def opened(data: bytes, lesson: str, checks: Collection[str]) -> NotebookNode:
    """Return the notebook of `lesson` (with these checks) in a file's bytes, clean and valid. Raises RefusedError."""
    bound.cache_clear()  # the cells of one notebook at a time: all of a class may be large
    try:
        content = _parsed(data)
        nb = _clean(content)
        nbformat.validate(nb)
        _refuse_other_lessons(content, nb, lesson, checks)
        if version := _plain(_claimed(content, nb)[1]):
            nb.metadata.unrolled = {**nb.metadata.get("unrolled", {}), "version": version}
    except RecursionError:
        raise RefusedError("the file is not a notebook: it is nested too deeply") from None
    except nbformat.ValidationError as error:
        raise RefusedError(f"the notebook is not valid: {error.message[:200]}") from None
    return nb


def claimed(data: bytes) -> tuple[str, str]:
    """Return the lesson and version that the notebook in a file's bytes claims to be of; empty where it does not say.

    It claims them by what the build wrote into its metadata, else by what its `check.start` says. Raises RefusedError.
    """
    try:
        content = _parsed(data)
        lesson, version = _claimed(content, _clean(content))
        return _plain(lesson), _plain(version)
    except RecursionError:
        raise RefusedError("the file is not a notebook: it is nested too deeply") from None


def new_cell(kind: str, source: str) -> NotebookNode:
    """Return a new cell as nbformat makes one, not validated: to validate all of them together takes less time."""
    cell = NotebookNode(id=generate_corpus_id(), cell_type=kind, metadata=NotebookNode(), source=source)
    if kind == "code":
        cell.execution_count, cell.outputs = None, []
    return cell


@functools.lru_cache(MAX_CELLS)  # it is asked of each cell for every exercise
def bound(source: str) -> frozenset[str]:
    """Return the names that a cell binds, or stores into, when it runs: functions, classes, imports and assignments.

    Magics and shell commands are passed over. A cell that is no Python binds nothing.
    """
    statements = _statements(_tree(source[:PARSED]).body)
    return frozenset(name for statement in statements for name in _names(statement))


def used(source: str) -> frozenset[str]:
    """Return the names that a cell may need of others: all that are not local to a function, and each word of a string.

    A string that stands alone, as a docstring does, needs nothing. With a magic, or in no Python, each word counts.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tables = [symtable.symtable(source[:PARSED], "cell", "exec")]
            nodes = [*ast.walk(ast.parse(source[:PARSED]))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset(re.findall(r"\w+", source))
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    strings = [node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in alone]
    names = set(re.findall(r"\w+", " ".join(map(str, strings))))
    for table in tables:
        tables += table.get_children()
        names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() or table is tables[0]}
    return frozenset(names)


def is_words(source: str) -> bool:
    """Return whether a code cell is words alone: comments, texts, such as `print` shows, or what is no Python."""
    body = _tree(source[:PARSED]).body
    names = {node.id for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return names <= {"print"} and all(isinstance(statement, ast.Expr) for statement in body)


def _parsed(data: bytes) -> dict[str, Any]:
    """The JSON of a notebook of format 4. Raises RefusedError."""
    if b"\0" in data:
        raise RefusedError("the file holds null bytes: it is no notebook, or it was damaged on the way")
    try:
        content = json.loads(data.decode("utf-8-sig"), parse_int=whole)
    except UnicodeDecodeError as error:
        raise RefusedError(f"the file is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except ValueError as error:
        raise RefusedError(f"the file is not valid JSON: {error}") from None
    if not isinstance(content, dict) or "nbformat" not in content:
        raise RefusedError("the file is not a notebook: expected a list of cells with type, source and metadata")
    if content["nbformat"] != 4:
        hint = "open it in Jupyter and save it again" if content["nbformat"] in (1, 2, 3) else "it cannot be read"
        raise RefusedError(f"the notebook has format {content['nbformat']!r:.20}, expected 4: {hint}")
    return content


def _clean(content: dict[str, Any]) -> NotebookNode:
    """What grading needs of a notebook, in the current minor format. Raises RefusedError."""
    cells, metadata = content.get("cells"), content.get("metadata")
    if not isinstance(cells, list) or not isinstance(metadata, dict):
        raise RefusedError("the file is not a notebook: expected a list of cells with type, source and metadata")
    if len(cells) > MAX_CELLS:
        raise RefusedError(f"the notebook has {len(cells)} cells, at most {MAX_CELLS} are taken")
    clean = [_clean_cell(index, cell) for index, cell in enumerate(cells)]
    nb = NotebookNode(nbformat=4, nbformat_minor=nbformat_minor, metadata=NotebookNode(), cells=clean)
    seen: set[str] = set()
    for cell, given in zip(nb.cells, cells, strict=True):
        name = given.get("id")
        if isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) and name not in seen:
            cell.id = name
        seen.add(cell.id)
    about = metadata.get("unrolled")
    if isinstance(about, dict):
        nb.metadata.unrolled = {key: about[key] for key in ("lesson", "version") if _is_text(about.get(key))}
    kernel, language = _kernel(metadata)
    nb.metadata.kernelspec = {"name": kernel, "display_name": kernel, "language": language}
    return nb


def _clean_cell(index: int, cell: Any) -> NotebookNode:
    if not isinstance(cell, dict) or cell.get("cell_type") not in KINDS:
        kind = cell.get("cell_type") if isinstance(cell, dict) else cell
        raise RefusedError(f"the file is not a notebook: cell {index} has the type {kind!r:.40}")
    source = cell.get("source")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise RefusedError(f"the file is not a notebook: cell {index} has no text as its source")
    if not _is_text(source):
        raise RefusedError(f"the notebook is not valid: cell {index} holds half of a character (a lone surrogate)")
    made = new_cell(cell["cell_type"], source)
    if (name := grade_id(cell)) is not None:
        made.metadata.nbgrader = {"grade_id": name}
    if made.cell_type == "markdown" and _are_pictures(cell.get("attachments")):
        made.attachments = NotebookNode(cell["attachments"])
    return made


def _are_pictures(value: Any) -> bool:
    """Whether these are a cell's attachments: file name -> media type -> text."""
    return isinstance(value, dict) and all(
        isinstance(bundle, dict) and all(_is_text(text) for text in (name, *bundle, *bundle.values()))
        for name, bundle in value.items()
    )


def _is_text(value: Any) -> bool:
    """Whether this is text that can be written to a file: JSON can hold halves of characters."""
    return isinstance(value, str) and _plain(value) == value


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _kernel(metadata: dict[str, Any]) -> tuple[str, str]:
    """Name and language of the kernel that the notebook asks for; python3 if it does not say."""
    spec, info = (metadata.get(key) for key in ("kernelspec", "language_info"))
    named = [table.get(key) for table, key in ((spec, "language"), (info, "name")) if isinstance(table, dict)]
    name = spec.get("name") if isinstance(spec, dict) else None
    kernel = name[:60] if isinstance(name, str) and name else "python3"
    language = next((word[:60].lower() for word in named if isinstance(word, str) and word), "")
    if not language:
        language = "r" if kernel == "ir" else "julia" if kernel.startswith("julia") else "python"
    return _plain(kernel), _plain(language)


def _refuse_other_lessons(content: dict[str, Any], nb: NotebookNode, lesson: str, checks: Collection[str]) -> None:
    """By the lesson that the build wrote into the notebook, else by what its cells start, carry or define."""
    claim, _ = _claimed(content, nb)
    if claim == lesson:
        return
    if claim:
        raise RefusedError(f"the notebook is of another lesson: {_plain(claim[:60])}")
    code = [cell.source for cell in nb.cells if cell.cell_type == "code"]
    known = {*checks, *(CELL + check for check in checks)}
    if not known & set(map(grade_id, nb.cells)) and not any(bound(source) & set(checks) for source in code):
        raise RefusedError(f"the notebook holds none of the exercises of {lesson}")


def _claimed(content: dict[str, Any], nb: NotebookNode) -> tuple[str, str]:
    """Lesson and version, each from the metadata or else from the first `check.start`."""
    started = next(
        (found for cell in nb.cells if cell.cell_type == "code" and (found := START.search(cell.source))), None
    )
    lesson, version = (started[1], started[2] or "") if started else ("", "")
    about = content["metadata"].get("unrolled")
    if isinstance(about, dict):
        named = about.get("lesson")
        lesson = named if isinstance(named, str) else lesson
        version = nb.metadata.get("unrolled", {}).get("version", version)
    return lesson, version


def _tree(source: str) -> ast.Module:
    """The syntax of a cell; of an empty one if it cannot be parsed."""
    if source.lstrip().startswith("%%"):
        magic, _, body = source.lstrip().partition("\n")
        source = body if magic.split()[0] in SHARED_MAGICS else ""
    for text in (source, ESCAPE.sub(r"\g<indent>pass", source)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # such as "invalid escape sequence": the learner's own business
                tree: ast.Module = compile(text, "cell", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                return tree
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return ast.Module([], [])


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run in the cell's own namespace, in blocks too. No recursion: chains of `elif` are deep."""
    waiting = list(body)
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            for field in ("body", "orelse", "finalbody"):
                waiting += getattr(statement, field, [])
            for handler in getattr(statement, "handlers", []):
                waiting += handler.body


def _names(statement: ast.stmt) -> Iterator[str]:
    """The names that one statement binds or stores into."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name for alias in statement.names)
    else:
        targets = [*getattr(statement, "targets", []), getattr(statement, "target", None)]
        targets += [item.optional_vars for item in getattr(statement, "items", [])]
        for node in (node for target in targets if target for node in ast.walk(target)):
            if isinstance(getattr(node, "ctx", None), ast.Store):
                while isinstance(node, (ast.Attribute, ast.Subscript)):
                    node = node.value
                if isinstance(node, ast.Name):
                    yield node.id
