"""Functions that stand in the library and in a lesson: written once, in the library.

In a cell of code the line `# body of unrolled.MODULE.FUNCTION` stands for what that function does, below its docstring.
So an exercise's solution can be the reference of its spec, and a function that a lesson shows a speed's baseline.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

from unrolled_grader.authoring.variants import LessonError

LINE = re.compile(r"^(?P<indent> *)# body of (?P<module>unrolled[\w.]*)\.(?P<name>\w+)$", re.MULTILINE)


def write(lesson: str, source: str) -> str:
    """Return a cell's source with bodies in place of the lines that name them. LessonError for unknown ones."""

    def body(found: re.Match[str]) -> str:
        try:
            function = getattr(importlib.import_module(found["module"]), found["name"])
        except (ImportError, AttributeError) as error:
            raise LessonError(f"{lesson}: {found[0].strip()!r}: {error}") from error
        return textwrap.indent(_body(function), found["indent"])

    return LINE.sub(body, source)


def _body(function: Callable[..., Any]) -> str:
    """What stands below a function's signature and docstring, without indentation."""
    source = textwrap.dedent(inspect.getsource(function))
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    first = definition.body[1] if ast.get_docstring(definition) is not None else definition.body[0]
    lines = source.splitlines()[first.lineno - 1 :]
    return textwrap.dedent("\n".join(lines))
