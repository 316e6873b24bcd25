"""A function whose statements are spans: its source, rewritten."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

SPAN = "__unrolled_span__"
LONGEST = 36  # characters of a statement
UNTIMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Global, ast.Nonlocal, ast.Pass, ast.Import)


def spanned(function: Callable[..., Any], span: Callable[[str], Any]) -> Callable[..., Any]:
    """Return `function` with `with span("LINE: statement"):` around its statements, also in loops and branches.

    Definitions, `import NAME`, `global`, `nonlocal`, `pass` and docstrings stay without one. Its `def` is line 1.
    Decorators are left out. ValueError for what is no plain `def` in Python, and where the source cannot be found.
    """
    if isinstance(function, MethodType):
        return MethodType(spanned(function.__func__, span), function.__self__)
    if not isinstance(function, FunctionType):
        raise ValueError(f"function is {function!r}; expected one that is written in Python, with def")
    try:
        source = textwrap.dedent(inspect.getsource(function))
        definition = ast.parse(source).body[0]
    except (OSError, SyntaxError, IndexError) as error:
        raise ValueError(f"the source of {function.__name__} cannot be read: {error}") from None
    if not isinstance(definition, ast.FunctionDef) or definition.name != function.__name__:
        raise ValueError(f"{function.__name__} is not written with a plain def")
    definition.decorator_list = []
    timed = _Timed(definition.lineno - 1)
    definition.body = [timed.visit(statement) for statement in definition.body]
    return _compiled(definition, function, span)


class _Timed(ast.NodeTransformer):
    """Puts each statement into a span, also those inside loops and branches. `above`: lines before the `def`."""

    def __init__(self, above: int) -> None:
        self.above = above

    def visit(self, node: ast.AST) -> Any:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, (*UNTIMED, ast.expr)) or is_docstring:
            return node
        if not isinstance(node, ast.stmt):  # an `except` or a `case`, with statements inside
            return self.generic_visit(node)
        text = ast.unparse(node).split("\n")[0]
        text = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
        call = ast.Call(ast.Name(SPAN, ast.Load()), [ast.Constant(f"{node.lineno - self.above}: {text}")], [])
        self.generic_visit(node)
        return ast.With([ast.withitem(call, None)], [node])


def _compiled(definition: ast.FunctionDef, function: FunctionType, span: Callable[[str], Any]) -> Callable[..., Any]:
    """The new function with the defaults, the globals and the outer variables of the old one, as they are now."""
    outer = function.__code__.co_freevars
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    arguments = definition.args
    arguments.defaults, arguments.kw_defaults, definition.returns = [], [None] * len(arguments.kwonlyargs), None
    maker = ast.parse(f"def maker({', '.join(outer)}):\n    return {function.__name__}").body[0]
    assert isinstance(maker, ast.FunctionDef)
    maker.body.insert(0, definition)
    module = ast.fix_missing_locations(ast.Module([maker], []))
    space = {**function.__globals__, SPAN: span}
    exec(compile(module, f"<{function.__name__}, by statement>", "exec"), space)
    made: FunctionType = space["maker"](*cells)
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return made
