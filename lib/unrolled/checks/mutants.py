"""Wrong answers made by machine: what a small slip makes of a right answer.

`unrolled prove` asks whether a check refuses them all, and a check finds by those of its reference what a learner may
have done. Each operator changes one place of the syntax tree of a source: a statement is left out, `<` becomes `<=`, an
axis becomes another. mutmut and cosmic-ray have operators such as these, but run a test suite in a process for each
mutant, where a check runs thousands of times in one; and they know no loops that do their first turn alone, no kernels
with more blocks, no waits that are missing. Of five solutions they made 782 mutants that are not among these, mostly
one arithmetic operator for another: the checks refused 767, 14 were equivalent, and one showed a hole.

Comments go, as `ast` knows none: an original and its mutant are compared as `ast.unparse` writes them.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Change = tuple[str, Any]  # what kind of slip it is, and what comes in a node's place: a node, or a list of statements


@dataclass(frozen=True)
class Mutant:
    """A source with one slip, its kind in words (a clause), and the line where it is."""

    kind: str
    source: str
    line: int


def plain(source: str) -> str:
    """Return a source as mutants of it are written: without comments, in one style."""
    return "\n".join(map(ast.unparse, ast.parse(source).body))


def mutants(source: str) -> list[Mutant]:
    """Return every mutant of a source, each once; none changes imports, docstrings, annotations or decorators."""
    statements = ast.parse(source).body
    texts, found = list(map(ast.unparse, statements)), list[Mutant]()
    for number, statement in enumerate(statements):
        seen = {texts[number]}
        for owner, name, index, node in list(_places(statement)):
            for kind, other in _changes(node):
                changed = _with(statement, owner, name, index, other)
                if changed is not None and changed not in seen:
                    seen.add(changed)
                    lines = "\n".join([*texts[:number], changed, *texts[number + 1 :]])
                    found.append(Mutant(kind, lines, getattr(node, "lineno", 0)))
    return found


def _places(tree: ast.stmt) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Every node inside of functions: what holds it, in which field, and at which place of a list."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    nested = {id(inner) for outer in functions for inner in ast.walk(outer) if inner is not outer}
    for function in functions:
        if id(function) not in nested:
            for index, default in enumerate(function.args.defaults):
                yield from _below(function.args, "defaults", index, default)
            for index, statement in enumerate(function.body):
                if not (index == 0 and ast.get_docstring(function) is not None):
                    yield from _below(function, "body", index, statement)


def _below(owner: ast.AST, name: str, index: int | None, node: ast.AST) -> Iterator[tuple[Any, str, int | None, Any]]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return
    yield owner, name, index, node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "ctx", "op", "ops"):
            continue
        for at, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.AST):
                yield from _below(node, field, at if isinstance(value, list) else None, child)


def _with(tree: ast.stmt, owner: ast.AST, name: str, index: int | None, other: Any) -> str | None:
    """The source of a statement with another node, or statements, at a place; None if Python does not take that."""
    before = getattr(owner, name)
    if index is None:
        setattr(owner, name, other)
    else:
        new = other if isinstance(other, list) else [other]
        setattr(owner, name, [*before[:index], *new, *before[index + 1 :]])
    try:
        changed = ast.unparse(tree)
        compile(changed, "<mutant>", "exec")
    except (SyntaxError, ValueError, TypeError, AttributeError):
        return None
    finally:
        setattr(owner, name, before)
    return changed


def _changes(node: ast.AST) -> Iterator[Change]:
    for kind, operator in OPERATORS:
        if isinstance(node, kind):
            yield from operator(node)


# Statements


def _left_out(node: ast.stmt) -> Iterator[Change]:
    if isinstance(node, ast.FunctionDef | ast.If | ast.For | ast.While | ast.With | ast.Pass):
        return
    waits = isinstance(node, ast.Expr) and any(word in ast.unparse(node) for word in WAITS)
    yield "a wait is left out" if waits else "a statement is left out", [ast.Pass()]
    if isinstance(node, ast.Expr | ast.AugAssign) and not waits:
        yield "a statement is done twice", [node, node]


WAITS = ("sync", "wait", "barrier", "receive")


def _guards(node: ast.If) -> Iterator[Change]:
    yield "a guard is left out", node.body
    yield "a branch is left out", node.orelse or [ast.Pass()]


def _turns(node: ast.For) -> Iterator[Change]:
    """Change over what a loop runs; `range` stays one, since kernels know no other."""

    def over(other: ast.expr) -> ast.For:
        loop = copy.copy(node)
        loop.iter = other
        return loop

    if isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "range":
        given = node.iter.args
        start, stop = given[:2] if len(given) > 1 else (ast.Constant(0), given[0])
        step, by = given[2:], given[2] if len(given) > 2 else ast.Constant(1)
        for kind, first, last in (
            ("a loop's last turn is missing", start, _plus(stop, by, ast.Sub())),
            ("a loop has a turn too many", start, _plus(stop, by)),
            ("a loop's first turn is missing", _plus(start, by), stop),
            ("a loop does its first turn alone", start, _plus(start, by)),
            ("a loop does its last turn alone", _plus(stop, by, ast.Sub()), stop),
        ):
            yield kind, over(ast.Call(node.iter.func, [first, last, *step], []))
        if step and isinstance(start, ast.Name):  # a thread's walk in steps of a block
            alone = over(ast.Call(node.iter.func, [start, stop, ast.Constant(32)], []))
            guard = ast.Compare(start, [ast.Lt()], [ast.Constant(32)])
            yield "one warp alone works", ast.If(guard, [alone], [])
    else:
        for kind, turns in _some_turns(node.iter):
            yield kind, over(turns)


def _some_turns(every: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    every = ast.Call(ast.Name("list", ast.Load()), [every], [])
    for kind, *bounds in (
        ("a loop's last turn is missing", None, -1, None),
        ("a loop's first turn is missing", 1, None, None),
        ("a loop does its first turn alone", None, 1, None),
        ("a loop does its last turn alone", -1, None, None),
        ("a loop runs backwards", None, None, -1),
    ):
        turns = ast.Slice(*(None if bound is None else ast.Constant(bound) for bound in bounds))
        yield kind, ast.Subscript(every, turns, ast.Load())


def _comprehended(node: ast.comprehension) -> Iterator[Change]:
    for kind, turns in _some_turns(node.iter):
        yield kind, ast.comprehension(node.target, turns, node.ifs, node.is_async)
    if node.ifs:
        yield "a condition is left out", ast.comprehension(node.target, node.iter, [], node.is_async)


def _never(node: ast.While) -> Iterator[Change]:
    yield "a loop does its first turn alone", [ast.If(node.test, node.body, [])]


def _unwrapped(node: ast.With) -> Iterator[Change]:
    yield "a block's `with` is left out", node.body


def _augmented(node: ast.AugAssign) -> Iterator[Change]:
    yield "a value is put where it is to be added", ast.Assign([node.target], node.value, lineno=0)
    for other in SIGNS.get(type(node.op), ()):
        yield f"{SYMBOLS[other]} stands for {SYMBOLS[type(node.op)]}", ast.AugAssign(node.target, other(), node.value)


def _one_less(node: ast.Return) -> Iterator[Change]:
    if isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1:
        for index in range(len(node.value.elts) - 1):
            yield "results are exchanged", ast.Return(_exchanged(node.value, "elts", index))


# Expressions


def _compared(node: ast.Compare) -> Iterator[Change]:
    for other in COMPARISONS.get(type(node.ops[0]), ()):
        yield (
            f"{SYMBOLS[other]} stands for {SYMBOLS[type(node.ops[0])]}",
            ast.Compare(node.left, [other(), *node.ops[1:]], node.comparators),
        )


def _computed(node: ast.BinOp) -> Iterator[Change]:
    for side in (node.left, node.right):
        yield "a term or factor is left out", side
    for other in SIGNS.get(type(node.op), ()):
        yield f"{SYMBOLS[other]} stands for {SYMBOLS[type(node.op)]}", ast.BinOp(node.left, other(), node.right)
    if not isinstance(node.op, ast.Add | ast.Mult):
        yield "operands are exchanged", ast.BinOp(node.right, node.op, node.left)


def _both(node: ast.BoolOp) -> Iterator[Change]:
    yield (
        "`and` and `or` are exchanged",
        ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values),
    )
    for value in node.values:
        yield "a condition is left out", value
        limit = value.comparators[0] if isinstance(value, ast.Compare) else None
        if isinstance(value, ast.Compare) and isinstance(limit, ast.Constant) and isinstance(limit.value, int):
            for number in (limit.value * 3 // 2, limit.value * 2 // 3):
                other = ast.Compare(value.left, value.ops, [ast.Constant(number)])
                yield "one condition, with another number, stands for all", other


def _sign(node: ast.UnaryOp) -> Iterator[Change]:
    yield "a sign is left out", node.operand


def _chosen(node: ast.IfExp) -> Iterator[Change]:
    yield "a branch is left out", node.body
    yield "a branch is left out", node.orelse


def _constant(node: ast.Constant) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool):
        yield "a number is another one", ast.Constant(not value)
    elif isinstance(value, int):
        yield "a number is another one", ast.Constant(value + 1)
        yield "a number is another one", ast.Constant(value - 1)
    elif isinstance(value, float):
        yield "a number is another one", ast.Constant(value * 2 if value else 1.0)


def _named(node: ast.Name) -> Iterator[Change]:
    if isinstance(node.ctx, ast.Load):
        for other in NAMES.get(node.id, ()):
            yield _kind_of(other), ast.Name(other, node.ctx)


def _attribute(node: ast.Attribute) -> Iterator[Change]:
    for other in NAMES.get(node.attr, ()):
        yield _kind_of(other), ast.Attribute(node.value, other, node.ctx)
    if node.attr == "T":
        yield "a transposition is left out", node.value


def _kind_of(name: str) -> str:
    return (
        "the dtype is another one"
        if any(name.startswith(kind) for kind in ("float", "int", "uint"))
        else "a function is another one, such as min for max"
    )


def _called(node: ast.Call) -> Iterator[Change]:
    if ast.unparse(node) == "jit.grid(1)":
        yield "blocks of 256 threads", ast.parse("jit.blockIdx.x * 256 + jit.threadIdx.x", mode="eval").body
    for index in range(len(node.args) - 1):
        yield "arguments are exchanged", _exchanged(node, "args", index)
    for index, keyword in enumerate(node.keywords):
        other = copy.copy(node)
        other.keywords = node.keywords[:index] + node.keywords[index + 1 :]
        yield f"{keyword.arg}= is left out", other
        if isinstance(keyword.value, ast.Tuple) and len(keyword.value.elts) > 1:
            other = copy.copy(node)
            swapped = ast.keyword(keyword.arg, _exchanged(keyword.value, "elts", 0))
            other.keywords = [*node.keywords[:index], swapped, *node.keywords[index + 1 :]]
            yield "axes are exchanged", other
    if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
        yield "a call is left out", node.func.value
    elif len(node.args) == 1 and not isinstance(node.args[0], ast.Starred):
        yield "a call is left out", node.args[0]
    if ast.unparse(node.func).rpartition(".")[2] in SORTS and (node.args or isinstance(node.func, ast.Attribute)):
        yield "nearly equal values count as equal", _rounded(node)
    if isinstance(node.func, ast.Subscript) and isinstance(node.func.slice, ast.Tuple):  # a kernel[blocks, threads]
        blocks, *rest = node.func.slice.elts
        many = "16 * {0} if isinstance({0}, int) else (16 * {0}[0], *{0}[1:])".format(ast.unparse(blocks))
        wide = ast.Tuple([ast.parse(many, mode="eval").body, *rest], ast.Load())
        yield "there are 16 times the blocks", ast.Call(ast.Subscript(node.func.value, wide, ast.Load()), node.args, [])


def _rounded(node: ast.Call) -> ast.Call:
    """A call that sorts, of values that are rounded before: of its first argument, or of that whose method it is."""
    if not node.args:
        assert isinstance(node.func, ast.Attribute)
        values = ast.Attribute(_in_steps(node.func.value), node.func.attr, ast.Load())
        return ast.Call(values, [], node.keywords)
    return ast.Call(node.func, [_in_steps(node.args[0]), *node.args[1:]], node.keywords)


def _in_steps(values: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(values, "round", ast.Load()), [ast.Constant(4)], [])


def _indexed(node: ast.Subscript) -> Iterator[Change]:
    if isinstance(node.slice, ast.Tuple):
        for index in range(len(node.slice.elts) - 1):
            yield "indices are exchanged", ast.Subscript(node.value, _exchanged(node.slice, "elts", index), node.ctx)
    elif not isinstance(node.slice, ast.Slice | ast.Constant) and not _is_text(node.slice):
        for sign in (ast.Add(), ast.Sub()):
            yield (
                "an index is off by one",
                ast.Subscript(node.value, _plus(node.slice, ast.Constant(1), sign), node.ctx),
            )


def _sliced(node: ast.Slice) -> Iterator[Change]:
    for side in ("lower", "upper", "step"):
        bound = getattr(node, side)
        if bound is None:
            continue
        yield "a bound is left out", _bounded(node, side, None)
        if not isinstance(bound, ast.Constant):
            for sign in (ast.Add(), ast.Sub()):
                yield "a bound is off by one", _bounded(node, side, _plus(bound, ast.Constant(1), sign))
    if node.lower is node.upper is node.step is None:
        yield "the first alone is taken", ast.Slice(None, ast.Constant(1), None)


def _bounded(node: ast.Slice, side: str, bound: ast.expr | None) -> ast.Slice:
    other = copy.copy(node)
    setattr(other, side, bound)
    return other


def _tuple(node: ast.Tuple) -> Iterator[Change]:
    if isinstance(node.ctx, ast.Load) and len(node.elts) == 2:
        yield "two values are in another order", _exchanged(node, "elts", 0)


def _plus(node: ast.expr, by: ast.expr, sign: ast.operator | None = None) -> ast.expr:
    return ast.BinOp(node, sign or ast.Add(), by)


def _exchanged(node: Any, name: str, index: int) -> Any:
    """The node with two neighbours of a list in the other order."""
    other, items = copy.copy(node), list(getattr(node, name))
    items[index], items[index + 1] = items[index + 1], items[index]
    setattr(other, name, items)
    return other


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


SIGNS: dict[type, tuple[type, ...]] = {
    **{ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult, ast.FloorDiv)},
    **{ast.FloorDiv: (ast.Div,), ast.Mod: (ast.FloorDiv,), ast.Pow: (ast.Mult,), ast.MatMult: (ast.Mult,)},
    **{ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.BitXor: (ast.BitOr,)},
    **{ast.LShift: (ast.RShift,), ast.RShift: (ast.LShift,)},
}
COMPARISONS: dict[type, tuple[type, ...]] = {
    **{ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt,), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt,)},
    **{ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,)},
}
SYMBOLS: dict[type, str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"},
    **{ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"},
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="},
    **{ast.Is: "is", ast.IsNot: "is not"},
}
PAIRS = (
    *(("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("sum", "mean"), ("any", "all")),
    *(("floor", "ceil"), ("zeros", "empty"), ("zeros_like", "empty_like"), ("float32", "float64")),
    *(("float32", "float16"), ("int32", "int64"), ("int8", "uint8"), ("rows", "columns"), ("height", "width")),
)
NAMES: dict[str, list[str]] = {}
for _one, _other in PAIRS:
    NAMES.setdefault(_one, []).append(_other)
    NAMES.setdefault(_other, []).append(_one)
SORTS = ("sort", "argsort", "partition", "argpartition", "argmax", "argmin")
CHANGES = ("astype", "copy", "transpose", "swapaxes", "reshape", "ravel", "clip", "round")

OPERATORS: tuple[tuple[type, Callable[[Any], Iterator[Change]]], ...] = (
    *((ast.stmt, _left_out), (ast.If, _guards), (ast.For, _turns), (ast.While, _never), (ast.With, _unwrapped)),
    *((ast.AugAssign, _augmented), (ast.Return, _one_less), (ast.Compare, _compared), (ast.BinOp, _computed)),
    *((ast.BoolOp, _both), (ast.UnaryOp, _sign), (ast.IfExp, _chosen), (ast.Constant, _constant), (ast.Name, _named)),
    *((ast.Attribute, _attribute), (ast.Call, _called), (ast.Subscript, _indexed), (ast.Slice, _sliced)),
    *((ast.Tuple, _tuple), (ast.comprehension, _comprehended)),
)
