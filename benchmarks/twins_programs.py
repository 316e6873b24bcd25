"""Random programs over all that the simulated GPU offers, as text: `twins_random.py` runs each on two modules.

A program is a few lines of Python in which `cp` and `jit` are free, so it can be shown, and pasted into a table of
tests. A chance that Hypothesis makes has them shrunk: what stands first in a tuple here is the simplest.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from twins_rows import KERNEL, NUMBERS, POOLS, ROWS

_DTYPES = "float32 int32 bool float64 uint8 int64 float16 complex64 int8 uint32 int16 uint16 uint64 complex128"
DTYPES = _DTYPES.split()
REGISTERS = [name for name in DTYPES if "complex" not in name]
SHAPES = (3,), (), (2, 3), (1,), (0,), (4, 1), (2, 3, 4), (2, 0), (5, 5), (2, 1, 3, 2), (33,), (70, 9), (1500,)
VIEWS = "", "", "", "", ".T", "[::-1]", "[..., 1:]", "[None]", "[::2]", "[..., ::-2]", "[:1]"
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
    """Draw the operations and dtypes of some programs."""
    return Palette(chance.sample([*ROWS], 10), chance.sample(DTYPES, 3))


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

    `fill_WORD` gives what stands for {WORD} in a row; `x` is the array that was drawn last.
    """

    def __init__(self, chance: Random, chosen: Palette) -> None:
        self.chance, self.palette, self.lines = chance, chosen, list[Line]()
        self.known: dict[str, Any] = {"cp": np, **NAMES}
        self.text, self.x = "", np.zeros(0)
        self.count = 0

    def operation(self, op: str) -> None:
        """Add a line that does this operation."""
        self.result = self.inner = ""
        filled = self.filled(op)
        filled = filled if self.result else f"{self.fill_r()} = {filled}"
        self.add(Line(filled, f"{op} of {self.inner}" if self.inner else op, ROWS[self.inner or op][0]))

    def filled(self, op: str) -> str:
        """Return one of the operation's rows with its words filled."""
        row, self.text = self.chance.choice(ROWS[op][1]).replace("{op}", op), ""
        return re.sub(r"{(\w+)}", lambda word: str(getattr(self, f"fill_{word[1]}")()), row)

    def add(self, line: Line) -> None:
        self.lines.append(line)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(line.text, self.known)
        except Exception:  # both modules are to raise it, too; or it is theirs alone
            return

    def name(self) -> str:
        self.count += 1
        return "abcdefghklmnopqrstuvw"[self.count - 1]

    def array(self, shape: Sequence[int], dtype: str = "", pool: Sequence[str] = ()) -> str:
        """Add a new array of few values, again and again; return its name."""
        kind = np.dtype(dtype or self.chance.choice(self.palette.dtypes))
        values = [self.chance.choice(pool or POOLS[kind.kind]) for _ in range(self.chance.randint(1, 6))]
        ends: Any = np.iinfo(kind) if kind.kind in "iu" else np.finfo(kind) if kind.kind in "fc" else None
        if ends is not None:
            figures = {name: str(getattr(ends, name, "")) for name in ("min", "max", "tiny", "smallest_subnormal")}
            values = [figures.get(value, value) for value in values]
        name = self.name()
        values = values[: max(1, int(np.prod(shape)))]
        made = f"np.resize(np.array([{', '.join(values)}], {kind.name!r}), {tuple(shape)})"
        if shape == (len(values),):
            made = f"np.array([{', '.join(values)}], {kind.name!r})"
        self.add(Line(f"{name} = cp.asarray({made})"))
        return name

    def chosen(self, fits: Any = lambda x: True) -> str:
        """Return the name of an array that fits, "" if there is none."""
        found = [name for name, x in self.known.items() if name not in NAMES and isinstance(x, np.ndarray) and fits(x)]
        return self.chance.choice(found) if found else ""

    # what stands in a row

    def fill_r(self) -> str:
        self.result = self.result or self.name()
        return self.result

    def fill_x(self) -> str:
        """An array, or a view of one; the same wherever the row has it again."""
        if not self.text:
            name = "" if self.chance.random() < 0.5 else self.chosen()
            self.see((name or self.array(self.chance.choice(SHAPES))) + self.chance.choice(VIEWS))
        return self.text

    def fill_full(self) -> str:
        """An array of at least one axis, none of them empty: CuPy does not look where it writes."""
        if not self.text:
            self.see(self.array(self.chance.choice([shape for shape in SHAPES if shape and 0 not in shape])))
        return self.text

    def fill_m(self) -> str:
        """A matrix."""
        if not self.text:
            shape = self.chance.choice(((2, 3), (3, 3), (1, 4), (4, 1), (0, 2), (16, 24)))
            self.see(self.array(shape) + self.chance.choice(("", "", ".T")))
        return self.text

    def fill_v(self) -> str:
        """An array of one axis."""
        if not self.text:
            self.see(self.array(self.chance.choice(((3,), (1,), (40,)))))
        return self.text

    def see(self, text: str) -> None:
        if not self.known[text[0]].ndim and "[" in text:
            text = text[0]
        self.text, self.x = text, eval(text, self.known)

    def fill_y(self) -> str:
        """An array that broadcasts with x; sometimes of x's memory."""
        thin = [self.chance.choice((n, n, 1)) for n in self.x.shape][self.chance.choice((0, 0, 0, 1)) :]
        if self.chance.random() < 0.6 and (name := self.chosen(lambda y: y.shape == self.x.shape)):
            return name
        return self.array(tuple(thin))

    def fill_right(self) -> str:
        """A second factor of a matrix product."""
        inner = self.x.shape[-1] if self.x.ndim else 2
        return self.array(self.chance.choice(((inner, 2), (inner,), (inner, 1), (2, inner, 3), (inner + 1, 2))))

    def fill_n(self) -> str:
        return self.chance.choice(NUMBERS)

    def fill_other(self) -> str:
        return self.fill_n() if self.chance.random() < 0.4 else self.fill_y()

    def fill_axis(self) -> int:
        return self.chance.randint(-self.x.ndim, max(0, self.x.ndim - 1))

    def fill_axes(self) -> Any:
        pair = tuple(self.chance.sample(range(self.x.ndim), min(2, self.x.ndim)))
        return self.chance.choice((None, self.fill_axis(), self.fill_axis(), pair))

    def fill_order(self) -> Any:
        return tuple(self.chance.sample(range(self.x.ndim), self.x.ndim))

    def fill_dtype(self) -> str:
        return repr(self.chance.choice(self.palette.dtypes))

    def fill_small(self) -> int:
        return self.chance.choice((1, 0, 2, -1, 3))

    def fill_reduce(self) -> str:
        """The further words of a reduction."""
        return self.chance.choice(("", "", ", keepdims=True"))

    def fill_shape(self) -> Any:
        """Another shape for the same values, now and then for others."""
        n = self.x.size
        return self.chance.choice(((-1,), self.x.shape[::-1], (n, 1), (1, n), (-1, 2), (n + 1,)))

    def fill_dims(self) -> Any:
        return self.chance.choice(SHAPES)

    def fill_wide(self) -> Any:
        return self.chance.choice(((2, *self.x.shape), self.x.shape, (*self.x.shape, 2)))

    def fill_key(self) -> str:
        """A key without arrays."""
        return self.chance.choice(("...", "1:", "::2", "::-1", "None", "..., 0", "..., 1:", "0", "-1", ":0", "5"))

    def fill_index(self) -> str:
        """An array of places on the first axis, or a list of them."""
        n = self.x.shape[0] if self.x.ndim else 1
        places = [self.chance.randint(-n, max(0, n - 1)) for _ in range(self.chance.randint(1, 4))]
        kind = self.chance.choice(("int64", "int32", "uint8", "int8"))
        return f"cp.asarray(np.array({[abs(p) for p in places] if kind == 'uint8' else places}, {kind!r}))"

    def fill_mask(self) -> str:
        return self.chance.choice((f"{self.text} > 0", f"{self.text} == {self.text}", f"{self.text} > 9"))

    def fill_call(self) -> str:
        """An operation that is one expression: what a stream is given."""
        ops = [op for op in self.palette.ops if not any("{r}" in row or "host" in op for row in ROWS[op][1])] or ["add"]
        self.inner = self.chance.choice(ops)
        self.expression = self.filled(self.inner)
        return self.expression

    def fill_again(self) -> str:
        return self.expression


class Kernel:
    """A kernel that is being drawn: thread i reads x[i] and writes y[i]; to z it adds by atomic operations, each to
    cells of its own, so that no order matters. Floats stay exact up to the last step: a compiler may join a product
    and a sum.
    """

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.kinds = [chance.choice(REGISTERS) for _ in range(2)]  # of x and of y
        self.variables: dict[str, list[str]] = {"whole": [], "real": []}
        self.made: list[tuple[str, str]] = []  # by the statement that is being drawn

    def program(self) -> Program:
        """Draw the kernel and its launch."""
        lines = [self.chance.choice(KERNEL["index"])]
        for _ in range(self.chance.randint(0, 4)):
            lines += self.statement("statements")
        lines += self.statement("ends")
        source = "\n".join(["@jit.rawkernel()", "def kernel(y, x, z, n):", *(f"    {line}" for line in lines)])
        source = (KERNEL["device"][0] if "twice(" in source else "") + source
        drawing = Drawing(self.chance, Palette((), self.kinds))
        x = drawing.array((THREADS,), self.kinds[0], KERNEL.get(np.dtype(self.kinds[0]).kind, ("1", "0")))
        y = drawing.name()
        drawing.lines.append(Line(f"{y} = cp.zeros({THREADS}, {self.kinds[1]!r}); z = cp.zeros(12, 'int32')"))
        number = self.chance.choice(("4", "-1", "np.int64(3)", "np.uint8(200)", "True", "0.5"))
        launch = f"kernel[1, {THREADS}]({y}, {x}, z, {number})"
        return *drawing.lines, Line(f"{source}\n{launch}", "jit", "ulps")

    def statement(self, rows: str) -> list[str]:
        self.made = []
        found = self.filled(self.chance.choice(KERNEL[rows]), 0).split("\n")
        for kind, name in self.made:
            self.variables[kind].append(name)
        return found

    def filled(self, row: str, depth: int) -> str:
        return re.sub(r"{(\w+)}", lambda word: str(getattr(self, f"fill_{word[1]}")(depth)), row)

    def tree(self, rows: str, leaves: Sequence[str], depth: int) -> str:
        if depth > 1 or self.chance.random() < 0.3:
            return self.chance.choice(leaves)
        return self.filled(self.chance.choice(KERNEL[rows]), depth + 1)

    def fill_whole(self, depth: int) -> str:
        leaves = ("i", "2", "-3", "7", "n", "cp.int32(x[i])", "x.shape[0]", *self.variables["whole"])
        return self.tree("whole", leaves, depth)

    def fill_real(self, depth: int) -> str:
        return self.tree("real", ("x[i]", "0.5", "2", "-1.25", "x[i]", *self.variables["real"]), depth)

    def fill_number(self, depth: int) -> str:
        return self.fill_whole(depth) if self.chance.random() < 0.5 else self.fill_real(depth)

    def fill_test(self, depth: int) -> str:
        return self.filled(self.chance.choice(KERNEL["test"]), depth + 1)

    def fill_last(self, depth: int) -> str:
        return self.filled(self.chance.choice(KERNEL["last"]), depth)

    def fill_new(self, depth: int, kind: str = "whole") -> str:
        count = sum(map(len, self.variables.values())) + len(self.made)
        self.made.append((kind, f"v{count}"))
        return f"v{count}"

    def fill_float(self, depth: int) -> str:
        return self.fill_new(depth, "real")

    def fill_it(self, depth: int) -> str:
        """The variable that this statement has made."""
        return self.made[-1][1]

    def fill_old(self, depth: int) -> str:
        """Any whole number that may be changed, which is never the thread's own place."""
        return self.chance.choice(self.variables["whole"] or ["n"])

    def fill_type(self, depth: int) -> str:
        return self.chance.choice(REGISTERS).replace("bool", "bool_")

    def fill_kind(self, depth: int) -> str:
        return self.kinds[1].replace("bool", "bool_")

    def fill_function(self, depth: int) -> str:
        return self.chance.choice(KERNEL["functions"])

    def fill_shift(self, depth: int) -> int:
        return self.chance.randint(0, 6)
