"""Random programs over all that the simulated GPU offers, as text: `twins_random.py` runs each on two modules.

A program is a few lines of Python in which `cp` and `jit` are free, so it can be shown, and pasted into a table of
tests. A chance that Hypothesis makes has them shrunk: what stands first in a tuple here is the simplest.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from twins_rows import KERNEL, POOLS, ROWS, WORDS

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
    """A statement, the operation that it tries, and how close two results are to be: see `twins_rows.CLOSE`."""

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

    {WORD} in a row becomes one of `WORDS`, or what the method `fill_WORD` gives. `x` is the array that was drawn last.
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
        filled = filled if self.result else f"{self.fill_r()} = {filled}"
        self.add(Line(filled, f"{op} of {self.inner}" if self.inner else op, ROWS[self.inner or op][0]))

    def row(self, op: str) -> str:
        self.text = ""
        return self.filled(self.chance.choice(ROWS[op][1]).replace("{op}", op))

    def filled(self, row: str) -> str:
        return re.sub(r"{(\w+)}", lambda word: self.word(word[1]), row)

    def word(self, word: str) -> str:
        if word in WORDS:
            return self.filled(self.chance.choice(WORDS[word]))
        return str(getattr(self, f"fill_{word}")())

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

    def fill_r(self) -> str:
        self.result = self.result or next(self.letters)
        return self.result

    def fill_x(self) -> str:
        return self.see(SHAPES, VIEWS, () if self.chance.random() < 0.5 else self.arrays())

    def fill_full(self) -> str:
        """An array of at least one axis, none of them empty: CuPy does not look where it writes."""
        return self.see([shape for shape in SHAPES if shape and 0 not in shape])

    def fill_m(self) -> str:
        return self.see(((2, 3), (3, 3), (1, 4), (4, 1), (0, 2), (16, 24)), ("", "", ".T"))

    def fill_v(self) -> str:
        return self.see(((3,), (1,), (40,)))

    def fill_y(self) -> str:
        """An array that broadcasts with x."""
        same = [name for name in self.arrays() if self.known[name].shape == self.x.shape]
        if same and self.chance.random() < 0.6:
            return self.chance.choice(same)
        thin = [self.chance.choice((n, n, 1)) for n in self.x.shape]
        return self.array(tuple(thin[self.chance.choice((0, 0, 0, 1)) :]))

    def fill_right(self) -> str:
        """A second factor of a matrix product."""
        inner = self.x.shape[-1] if self.x.ndim else 2
        return self.array(self.chance.choice(((inner, 2), (inner,), (inner, 1), (2, inner, 3), (inner + 1, 2))))

    def fill_axis(self) -> int:
        return self.chance.randint(-self.x.ndim, max(0, self.x.ndim - 1))

    def fill_axes(self) -> Any:
        pair = tuple(self.chance.sample(range(self.x.ndim), min(2, self.x.ndim)))
        return self.chance.choice((None, self.fill_axis(), self.fill_axis(), pair))

    def fill_order(self) -> Any:
        return tuple(self.chance.sample(range(self.x.ndim), self.x.ndim))

    def fill_dtype(self) -> str:
        return repr(self.chance.choice(self.palette.dtypes))

    def fill_shape(self) -> Any:
        """Another shape for the same values, now and then for others."""
        n = self.x.size
        return self.chance.choice(((-1,), self.x.shape[::-1], (n, 1), (1, n), (-1, 2), (n + 1,)))

    def fill_dims(self) -> Any:
        return self.chance.choice(SHAPES)

    def fill_wide(self) -> Any:
        return self.chance.choice(((2, *self.x.shape), self.x.shape, (*self.x.shape, 2)))

    def fill_index(self) -> str:
        """An array of places on the first axis."""
        n, kind = (self.x.shape or (1,))[0], self.chance.choice(("int64", "int32", "uint8", "int8"))
        n = min(n, 100)  # int8 holds no more
        places = [self.chance.randint(0 if kind == "uint8" else -n, max(0, n - 1)) for _ in range(3)]
        return f"cp.asarray(np.array({places}, {kind!r}))"

    def fill_mask(self) -> str:
        return self.chance.choice((f"{self.text} > 0", f"{self.text} == {self.text}", f"{self.text} > 9"))

    def fill_call(self) -> str:
        """An operation that is one expression: what a stream is given."""
        ops = [op for op in self.palette.ops if "host" not in op and not any("{r}" in row for row in ROWS[op][1])]
        self.inner = self.chance.choice(ops or ["add"])
        self.expression = self.row(self.inner)
        return self.expression

    def fill_again(self) -> str:
        return self.expression


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
