"""The function of one exercise's cell, without the rest of its notebook."""

from __future__ import annotations

import ast
import itertools
import linecache
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unrolled.notebook.cells import grade_id

if TYPE_CHECKING:
    from nbformat import NotebookNode

_numbers = itertools.count()


def function(cells: Sequence[NotebookNode], name: str) -> Any:
    """Return what the cell with the grade_id `name` defines by that name.

    Of the cells above it only those statements run that bind what it needs: nothing is measured or drawn.
    """
    source, names = read(cells, name)
    return define(source, names)[name]


def read(cells: Sequence[NotebookNode], name: str, source: str | None = None) -> tuple[str, dict[str, Any]]:
    """Return the source of the cell with the grade_id `name`, and the names that it needs from those above it.

    Another `source` may stand for its own.
    """
    at = next(index for index, cell in enumerate(cells) if grade_id(cell) == name)
    above = [cell.source for cell in cells[:at] if cell.cell_type == "code"]
    source = cells[at].source if source is None else source
    return source, define("\n".join(needed(above, source)), {})


def define(source: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return these names with those that a source binds."""
    file, found = f"<a cell, {next(_numbers)}>", dict(names)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # a kernel reads its own
    exec(compile(source, file, "exec"), found)
    return found


def needed(above: Sequence[str], cell: str) -> list[str]:
    """Return the statements above a cell, in order, that bind names which it reads, or which they read in turn."""
    wanted, kept = _read(ast.parse(cell)), []
    for source in reversed(above):
        for statement in reversed(ast.parse(source).body):
            if wanted & _bound(statement):
                kept.append(ast.unparse(statement))
                wanted |= _read(statement)
    return kept[::-1]


def _read(tree: ast.AST) -> set[str]:
    """The names that a tree reads, without those that are a function's own."""
    found = {tree.id} if isinstance(tree, ast.Name) and isinstance(tree.ctx, ast.Load) else set()
    found = found.union(*map(_read, ast.iter_child_nodes(tree)))
    if isinstance(tree, ast.FunctionDef):
        nodes = list(ast.walk(tree))
        found -= {node.arg for node in nodes if isinstance(node, ast.arg)}
        found -= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return found


def _bound(statement: ast.stmt) -> set[str]:
    """The names that an import, a definition or an assignment binds; none for other statements."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Assign):
        return {node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    return set()
