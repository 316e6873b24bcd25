"""Random programs over all that the simulated GPU offers, as text: `twins_random.py` runs each on two modules.

A program is a few lines of Python in which `cp` and `jit` are free, so it can be shown, and pasted into a table of
tests. The grammar is twins.toml.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import common

GRAMMAR = common.table("twins")
CLOSE, POOLS, WORDS, KERNEL = (GRAMMAR[name] for name in ("close", "pools", "words", "kernel"))
ROWS: dict[str, tuple[str, list[str]]] = {}  # by operation: how close results are to be, and the ways to write it
for _key, (_close, *_rows) in GRAMMAR["operations"].items():
    _name, _, _signs = _key.partition(": ")
    for _op in _signs.split() or _name.split(", "):
        _filled = [row.replace("{op}", _op) for row in GRAMMAR["rows"].get(_rows[0], _rows)]
        ROWS[_name.replace("{op}", _op) if _signs else _op] = _close, _filled
_DTYPES = "float32 int32 bool float64 uint8 int64 float16 complex64 int8 uint32 int16 uint16 uint64 complex128"
DTYPES = _DTYPES.split()
REGISTERS = [name.replace("bool", "bool_") for name in DTYPES if "complex" not in name]
SHAPES = (3,), (), (2, 3), (1,), (0,), (4, 1), (2, 3, 4), (2, 0), (5, 5), (2, 1, 3, 2), (33,), (70, 9), (1500,)
VIEWS = "", "", "", "", ".T", "[::-1]", "[..., 1:]", "[None]", "[::2]", "[..., ::-2]", "[:1]"
LETTERS = "abcdfhklmnopqruvw"  # streams, events and graphs have the others
NAMES = {"np": np, "nan": np.nan, "inf": np.inf}
THREADS = 64


@dataclass(frozen=True)
class Line:
    """A statement, the operation that it tries, and how close two results are to be: see `CLOSE`."""

    text: str
    op: str = "input"
    close: str = "bits"


@dataclass(frozen=True)
class Palette:
    """What programs are drawn from: few, so that a GPU's compiler has less to do. Names of `ROWS`, and dtypes."""

    ops: Sequence[str]
    dtypes: Sequence[str]


Program = tuple[Line, ...]


def palette(chance: Random) -> Palette:
    """Draw the operations and dtypes of some programs; captures and streams take any of them."""
    return Palette([*chance.sample([*ROWS], 8), "capture", "streams"], chance.sample(DTYPES, 2))


def program(chance: Random, chosen: Palette) -> Program:
    """Draw a program: one to three operations on arrays that are made before they are used; a kernel without any."""
    if not chosen.ops:
        return Kernel(chance).program()
    drawing = Drawing(chance, chosen)
    for _ in range(chance.randint(1, 3)):
        drawing.operation(chance.choice(chosen.ops))
    return tuple(drawing.lines)


def text(lines: Program) -> str:
    """Return a program as it stands in a file."""
    return "\n".join(line.text for line in lines)


class Drawing:
    """A program that is being drawn. NumPy runs along, so that shapes are known; what it cannot do is not used again.

    {WORD} in a row becomes one of `WORDS`, or what `FILLS` gives. `x` is the array that was drawn last.
    """

    def __init__(self, chance: Random, chosen: Palette) -> None:
        self.chance, self.palette, self.lines = chance, chosen, list[Line]()
        self.known: dict[str, Any] = {"cp": np, **NAMES}
        self.letters = iter(LETTERS)
        self.text, self.x = "", np.zeros(0)

    def operation(self, op: str) -> None:
        """Add a line that does this operation."""
        self.result = self.inner = ""
        filled = self.row(op)
        filled = filled if self.result else f"{self.name_result()} = {filled}"
        self.add(Line(filled, f"{op} of {self.inner}" if self.inner else op, ROWS[self.inner or op][0]))

    def row(self, op: str) -> str:
        self.text = ""
        return self.filled(self.chance.choice(ROWS[op][1]))

    def filled(self, row: str) -> str:
        return re.sub(r"{(\w+)}", lambda word: self.word(word[1]), row)

    def word(self, word: str) -> str:
        if word in WORDS:
            return self.filled(self.chance.choice(WORDS[word]))
        return str(FILLS[word](self))

    def add(self, line: Line) -> None:
        self.lines.append(line)
        with np.errstate(all="ignore"), warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            exec(line.text, self.known)  # what it raises both modules are to raise, or it is theirs alone

    def array(self, shape: Sequence[int], dtype: str = "", pool: Sequence[str] = ()) -> str:
        """Add a new array of few values, again and again; return its name."""
        kind = np.dtype(dtype or self.chance.choice(self.palette.dtypes))
        values = [self.chance.choice(pool or POOLS[kind.kind]) for _ in range(self.chance.randint(1, 6))]
        values = [_figure(value, kind) for value in values[: max(1, int(np.prod(shape)))]]
        made, name = f"np.array([{', '.join(values)}], {kind.name!r})", next(self.letters)
        made = made if shape == (len(values),) else f"np.resize({made}, {tuple(shape)})"
        self.add(Line(f"{name} = cp.asarray({made})"))
        return name

    def arrays(self) -> list[str]:
        return [name for name, x in self.known.items() if name not in NAMES and isinstance(x, np.ndarray)]

    def see(self, shapes: Sequence[tuple[int, ...]], views: Sequence[str] = ("",), old: Sequence[str] = ()) -> str:
        """Choose an array, or a view of one: the same wherever a row has it again."""
        if not self.text:
            name = self.chance.choice(old) if old else self.array(self.chance.choice(shapes))
            view = self.chance.choice(views)
            self.text = name if "[" in view and not self.known[name].ndim else name + view
            self.x = eval(self.text, self.known)
        return self.text

    def name_result(self) -> str:
        self.result = self.result or next(self.letters)
        return self.result

    def broadcasting(self) -> str:
        """Return an array that broadcasts with x."""
        same = [name for name in self.arrays() if self.known[name].shape == self.x.shape]
        if same and self.chance.random() < 0.6:
            return self.chance.choice(same)
        thin = [self.chance.choice((n, n, 1)) for n in self.x.shape]
        return self.array(tuple(thin[self.chance.choice((0, 0, 0, 1)) :]))

    def factor(self) -> str:
        """Return a second factor of a matrix product."""
        inner = self.x.shape[-1] if self.x.ndim else 2
        return self.array(self.chance.choice(((inner, 2), (inner,), (inner, 1), (2, inner, 3), (inner + 1, 2))))

    def axis(self) -> int:
        return self.chance.randint(-self.x.ndim, max(0, self.x.ndim - 1))

    def order(self, most: int) -> tuple[int, ...]:
        return tuple(self.chance.sample(range(self.x.ndim), min(most, self.x.ndim)))

    def axes(self) -> Any:
        pair = self.order(2)
        return self.chance.choice((None, self.axis(), self.axis(), pair))

    def shape(self) -> Any:
        """Return another shape for the same values, now and then for others."""
        n = self.x.size
        return self.chance.choice(((-1,), self.x.shape[::-1], (n, 1), (1, n), (-1, 2), (n + 1,)))

    def places(self) -> str:
        """Return an array of places on the first axis."""
        n, kind = (self.x.shape or (1,))[0], self.chance.choice(("int64", "int32", "uint8", "int8"))
        n = min(n, 100)  # int8 holds no more
        places = [self.chance.randint(0 if kind == "uint8" else -n, max(0, n - 1)) for _ in range(3)]
        return f"cp.asarray(np.array({places}, {kind!r}))"

    def call(self) -> str:
        """Return an operation that is one expression: what a stream is given."""
        ops = [op for op in self.palette.ops if "host" not in op and not any("{r}" in row for row in ROWS[op][1])]
        self.inner = self.chance.choice(ops or ["add"])
        self.expression = self.row(self.inner)
        return self.expression


FULL = [shape for shape in SHAPES if shape and 0 not in shape]  # CuPy does not look where it writes
MATRICES = (2, 3), (3, 3), (1, 4), (4, 1), (0, 2), (16, 24)
FILLS: dict[str, Callable[[Drawing], Any]] = {
    "r": Drawing.name_result,
    "x": lambda d: d.see(SHAPES, VIEWS, () if d.chance.random() < 0.5 else d.arrays()),
    "full": lambda d: d.see(FULL),
    "m": lambda d: d.see(MATRICES, ("", "", ".T")),
    "v": lambda d: d.see(((3,), (1,), (40,))),
    "y": Drawing.broadcasting,
    "right": Drawing.factor,
    "axis": Drawing.axis,
    "axes": Drawing.axes,
    "order": lambda d: d.order(d.x.ndim),
    "dtype": lambda d: repr(d.chance.choice(d.palette.dtypes)),
    "shape": Drawing.shape,
    "dims": lambda d: d.chance.choice(SHAPES),
    "wide": lambda d: d.chance.choice(((2, *d.x.shape), d.x.shape, (*d.x.shape, 2))),
    "index": Drawing.places,
    "mask": lambda d: d.chance.choice((f"{d.text} > 0", f"{d.text} == {d.text}", f"{d.text} > 9")),
    "call": Drawing.call,
    "again": lambda d: d.expression,
}
"""What else stands for a word."""


def _figure(value: str, kind: np.dtype[Any]) -> str:
    """The number that a word of a pool stands for: max, tiny, ..."""
    if not value.isidentifier() or value in NAMES:
        return value
    return str(getattr(np.iinfo(kind) if kind.kind in "iu" else np.finfo(kind), value))


class Kernel:
    """A kernel that is being drawn: thread i reads x[i] and writes y[i]; to z it adds by atomic operations, each to
    cells of its own, so that no order matters. Floats stay exact up to the last step: a compiler may join a product
    and a sum.
    """

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.kinds = [chance.choice(REGISTERS) for _ in range(2)]  # of x and of y
        leaves = {"whole": ["i", "2", "-3", "7", "n", "cp.int32(x[i])"], "real": ["x[i]", "0.5", "2", "-1.25", "x[i]"]}
        self.leaves, self.old = leaves, ["n"]
        self.made: list[tuple[str, str]] = []  # by the statement that is being drawn
        self.count = 0

    def program(self) -> Program:
        """Draw the kernel and its launch."""
        lines = [self.chance.choice(KERNEL["index"])]
        for rows in ["statements"] * self.chance.randint(0, 4) + ["ends"]:
            lines += self.statement(rows)
        source = "\n".join(["@jit.rawkernel()", "def kernel(y, x, z, n):", *(f"    {line}" for line in lines)])
        source = (KERNEL["device"][0] if "twice(" in source else "") + source
        kinds = [name.rstrip("_") for name in self.kinds]
        drawing = Drawing(self.chance, Palette((), kinds))
        x = drawing.array((THREADS,), kinds[0], KERNEL.get(np.dtype(kinds[0]).kind, ("1", "0")))
        drawing.add(Line(f"y = cp.zeros({THREADS}, {kinds[1]!r}); z = cp.zeros(12, 'int32')"))
        launch = f"kernel[1, {THREADS}](y, {x}, z, {self.chance.choice(KERNEL['numbers'])})"
        return *drawing.lines, Line(f"{source}\n{launch}", "jit", "ulps")

    def statement(self, rows: str) -> list[str]:
        """Draw a statement; what it sets can be read by the next ones."""
        self.made = []
        found = self.filled(self.chance.choice(KERNEL[rows]), 0).split("\n")
        for kind, name in self.made:
            self.leaves[kind].append(name)
            self.old += [name] if kind == "whole" else []
        return found

    def filled(self, row: str, depth: int) -> str:
        return re.sub(r"{(\w+)}", lambda word: self.word(word[1], depth), row)

    def word(self, word: str, depth: int) -> str:
        """Return what stands for a word: a variable, a type, or an expression that is not too deep."""
        if word in ("new", "float"):
            self.count += 1
            self.made.append(("whole" if word == "new" else "real", f"v{self.count}"))
            return f"v{self.count}"
        if word == "it":  # the variable that this statement has made
            return self.made[-1][1]
        if word in self.leaves and (depth > 1 or self.chance.random() < 0.3):
            return self.chance.choice(self.leaves[word])
        words = {"old": self.old, "type": REGISTERS, "kind": self.kinds[1:], **KERNEL}
        return self.filled(self.chance.choice(words[word]), depth + (word in self.leaves or word == "test"))
