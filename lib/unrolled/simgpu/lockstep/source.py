"""A kernel's source: text within limits, parsed; its parameters; and where in it an error lies."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from unrolled.simgpu.lockstep.faults import CompileException, RefusedError


@dataclass(frozen=True)
class SourceLimits:
    """What the compiler refuses, so that no source takes unbounded time or memory."""

    characters: int = 20_000
    nodes: int = 5_000
    depth: int = 100
    """Nodes of the syntax tree within each other."""
    constants: int = 200
    variables: int = 200
    """Values that variables hold; each takes memory for all threads."""
    parts: int = 64
    """Values in a tuple, those of tuples in it included."""
    functions: int = 50
    """Calls of other kernels, those in these included. What is called counts at each call, in nodes and variables."""
    first_line: int = 10**6
    shown: int = 200
    """Characters of a line, or of the kernel's name, that a finding or a report shows."""


LIMITS = SourceLimits()
_WORDS = """
    alignas alignof asm auto bool case catch char const constexpr const_cast decltype default delete
    do double dynamic_cast enum explicit export extern false float friend goto inline int long mutable namespace new
    noexcept nullptr operator private protected public register reinterpret_cast short signed sizeof static
    static_assert static_cast struct switch template this thread_local throw true typedef typeid typename union unsigned
    using virtual void volatile wchar_t
"""
RESERVED = frozenset([*_WORDS.split(), "NULL"])
"""Words of C++17 that Python takes as names. CuPy writes a kernel's names into C++ as they are."""
_DECLARED = """
    abs acos asin atan atan2 cbrt ceil complex cos cosh dim3 erf exp exp2 expm1 fabs floor fmax fmin fmod half hypot log
    log10 log1p log2 main max min pow printf rint round sin sinh size_t sqrt std tan tanh threadIdx trunc
"""
DECLARED = frozenset(_DECLARED.split())
"""What CUDA's headers declare: a kernel of such a name would be a second declaration."""


@dataclass(frozen=True)
class Source:
    """The text of one function, the line of its file or cell at which it begins, and what its free names stand for."""

    text: str
    first_line: int
    constants: Mapping[str, Any]

    @classmethod
    def of(cls, program: Any) -> Source:
        """Return the source that a program's plain data describes. Raises RefusedError (ValueError) for other data."""
        match program:
            case {"source": str(text), "first_line": int(line), "constants": dict(constants)} if (
                0 < line <= LIMITS.first_line
            ):
                if len(text) > LIMITS.characters or len(constants) > LIMITS.constants:
                    raise RefusedError(
                        ValueError,
                        f"a kernel of {len(text):,} characters and {len(constants):,} names from outside; at most "
                        f"{LIMITS.characters:,} and {LIMITS.constants:,} are taken",
                    )
                return cls(text, line, constants)
        raise RefusedError(ValueError, "no kernel: expected its source, its first line and its constants")

    def line(self, node: ast.AST | None) -> int:
        """Return the node's line in the file or cell."""
        return self.first_line + getattr(node, "lineno", 1) - 1

    def code(self, line: int) -> str:
        """Return the text of a line, given as `line` counts; cut if it is long."""
        place = line - self.first_line
        return self._lines[place][: LIMITS.shown] if 0 <= place < len(self._lines) else ""

    @staticmethod
    def code_in(sources: Sequence[Source], line: int) -> str:
        """Return the text of a line in the first of these sources that has it."""
        return next(filter(None, (source.code(line) for source in sources)), "")

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.splitlines()

    def marked(self, node: ast.AST | None) -> str:
        """Return the text with `>` before the node's lines."""
        first = getattr(node, "lineno", 0)
        last = getattr(node, "end_lineno", None) or first
        lines = enumerate(self._lines, 1)
        return "\n".join(f"{'>' if first <= number <= last else ' '} {line}".rstrip() for number, line in lines)

    def error(self, error: RefusedError) -> Exception:
        """Return the exception that the program gets: of CuPy's kind, with the line and the marked source."""
        text = f"line {self.line(error.node)}: {error.text}" if error.node is not None else error.text
        return error.kind(f"{text}\n\n{self.marked(error.node)}")


def parse(source: Source, nodes: int = 0) -> tuple[ast.FunctionDef, int]:
    """Return the function that the text defines, and its nodes, with those that were there before added.

    Raises RefusedError for anything else, and beyond the limits.
    """
    try:
        tree = ast.parse(source.text)
    except SyntaxError as error:
        raise RefusedError(SyntaxError, f"line {source.first_line + (error.lineno or 1) - 1}: {error.msg}") from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise RefusedError(ValueError, f"a kernel that Python cannot parse: {error}") from None
    nodes = _counted(tree, nodes)
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        raise RefusedError(NotImplementedError, "a kernel is one function, made by def")
    return tree.body[0], nodes


def parameters(function: ast.FunctionDef) -> list[str]:
    """Return the names of the parameters. Raises RefusedError for those that CuPy or CUDA's compiler refuses."""
    arguments = function.args
    refused = {
        "*args": arguments.vararg,
        "**kwargs": arguments.kwarg,
        "keyword only arguments": arguments.kwonlyargs,
        "positional only arguments": arguments.posonlyargs,
        "default values": arguments.defaults,
    }
    for what, found in refused.items():
        if found:
            raise RefusedError(NotImplementedError, f"{what} are not supported in a kernel", function)
    names = [argument.arg for argument in arguments.args]
    for name in (function.name, *names):
        allowed(name, function)
    if function.name in DECLARED:
        text = f"CUDA's headers declare `{function.name}` already: give the kernel another name"
        raise RefusedError(CompileException, text, function)
    return names


def allowed(name: str, node: ast.AST | None = None) -> None:
    """Raise RefusedError (CompileException) for a name that is a word of C++."""
    if name in RESERVED:
        raise RefusedError(
            CompileException, f"`{name}` is a word of C++, into which a kernel is translated: choose another name", node
        )


def _counted(tree: ast.AST, count: int) -> int:
    """Return the count with the tree's nodes added. Raises RefusedError for too many, or too deep a tree.

    Without recursion, which could be too deep itself: a chain of additions is as deep as it is long.
    """
    level, depth = [tree], 0
    while level:
        count, depth = count + len(level), depth + 1
        if count > LIMITS.nodes or depth > LIMITS.depth:
            raise RefusedError(
                ValueError,
                f"a kernel with more than {LIMITS.nodes:,} parts, or more than {LIMITS.depth} within each other",
                next((node for node in level if hasattr(node, "lineno")), None),
            )
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return count
