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
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


def spanned(function: Callable[..., Any], span: Callable[[str], Any]) -> Callable[..., Any]:
    """Return `function` with `with span("LINE: statement"):` around its statements, also in loops and branches.

    Definitions, `import NAME`, `global`, `nonlocal`, `pass` and docstrings stay without one. Lines are counted from its
    `def`, which is line 1. Decorators are left out. ValueError for what is not written as a plain `def` in Python, and
    where the source cannot be found.
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
    definition.body = _wrapped(definition.body, definition.lineno - 1)
    return _compiled(definition, function, span)


def _wrapped(body: list[ast.stmt], above: int) -> list[ast.stmt]:
    return [_timed(statement, above) for statement in body]


def _timed(statement: ast.stmt, above: int) -> ast.stmt:
    if isinstance(statement, UNTIMED) or _is_docstring(statement):
        return statement
    name = f"{statement.lineno - above}: {_in_short(statement)}"
    for field in BODIES:
        _wrap_inside(statement, field, above)
    call = ast.Call(ast.Name(SPAN, ast.Load()), [ast.Constant(name)], [])
    return ast.With([ast.withitem(call, None)], [statement])


def _wrap_inside(node: ast.AST, field: str, above: int) -> None:
    """Wrap the statements of a loop or a branch; those of an `except` or a `case` lie one level deeper."""
    inner = getattr(node, field, None)
    if not isinstance(inner, list) or not inner:
        return
    if field in ("handlers", "cases"):
        for part in inner:
            _wrap_inside(part, "body", above)
    else:
        setattr(node, field, _wrapped(inner, above))


def _in_short(statement: ast.stmt) -> str:
    text = ast.unparse(statement).split("\n")[0]
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _compiled(definition: ast.FunctionDef, function: FunctionType, span: Callable[[str], Any]) -> Callable[..., Any]:
    """The new function with the defaults, the globals and the outer variables of the old one, as they are now."""
    outer = function.__code__.co_freevars
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    definition.args.defaults, definition.args.kw_defaults, definition.returns = (
        [],
        [None] * len(definition.args.kwonlyargs),
        None,
    )
    maker = ast.parse(f"def maker({', '.join(outer)}):\n    return {function.__name__}").body[0]
    assert isinstance(maker, ast.FunctionDef)
    maker.body.insert(0, definition)
    module = ast.fix_missing_locations(ast.Module([maker], []))
    space = {**function.__globals__, SPAN: span}
    exec(compile(module, f"<{function.__name__}, by statement>", "exec"), space)
    made: FunctionType = space["maker"](*cells)
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return made
