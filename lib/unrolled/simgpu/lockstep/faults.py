"""What a kernel does wrong while it runs, and what the compiler refuses: each with the kernel's line."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# What `Fault.kind` may be. Two are values that C leaves undefined: of a lane that takes no part in a shuffle, and of a
# variable that this thread has not set. The last is one of two kernels or copies, on two streams.
OUT_OF_BOUNDS = "out of bounds"
RACE = "race"
NOT_WRITTEN = "read before written"
BARRIER = "barrier"
SHARED = "shared memory"
THREADS = "threads"
ENDLESS = "endless loop"
SHUFFLE = "shuffle"
UNSET = "unset variable"
STREAMS = "race between streams"

Place = tuple[int, int, int]


@dataclass(frozen=True)
class Fault:
    """One finding: its kind, the line in its file or cell and the line's text, where, and what happened there.

    thread and block are (x, y, z) as in `threadIdx` and `blockIdx`; index is that of the array, where there is one. The
    line is 0 where it is not known. Where two streams race, `other_line` and `other_code` are the earlier access's.
    """

    kind: str
    line: int
    code: str
    text: str
    thread: Place | None = None
    block: Place | None = None
    index: tuple[int, ...] | None = None
    other_line: int = 0
    other_code: str = ""

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Fault:
        """Return the fault of which `dataclasses.asdict` made plain data. Raises TypeError, KeyError, ValueError."""
        names = ("thread", "block", "index")
        places = {name: None if data[name] is None else tuple(map(int, data[name])) for name in names}
        return cls(**{**data, **places})

    @property
    def finding(self) -> str:
        """All but the line's text, in one line."""
        where = "" if self.thread is None else f"thread {self.thread} of block {self.block} "
        return f"line {self.line}: {self.kind}: {where}{self.text}"

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of two accesses that race, the later one first, as far as they are known."""
        lines = (self.line, self.code), (self.other_line, self.other_code)
        return tuple(f"in line {line}" + f": {code}" * bool(code) for line, code in lines if line)

    def __str__(self) -> str:
        if self.kind == STREAMS:
            return "\n".join((self.text, *self.lines))
        return f"{self.finding}\n\n> {self.code.strip()}"


class KernelFault(RuntimeError):  # noqa: N818 (it holds a Fault)
    """A kernel did what it must not do: `fault` says what and where. A GPU would go on, with any values."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault

    def __reduce__(self) -> tuple[type[KernelFault], tuple[Fault]]:
        return type(self), (self.fault,)


class CUDADriverError(KernelFault):
    """A launch that CUDA refuses: too many threads, none, too much shared memory. CuPy calls it so."""

    def __str__(self) -> str:
        return f"CUDA_ERROR_INVALID_VALUE: invalid argument: {self.fault}"


class UnsupportedError(NotImplementedError):
    """What CuPy refuses by NotImplementedError. A check takes that itself for a function that nobody has written."""


class CompileException(Exception):  # noqa: N818 (CuPy's name)
    """What CUDA's compiler refuses in the C++ that CuPy makes of a kernel: `cupy.cuda.compiler` has its like."""


class OperatorError(KeyError):
    """An operator that has no meaning in a kernel. CuPy raises KeyError, whose text nobody can read."""

    def __str__(self) -> str:
        return str(self.args[0])


class RefusedError(Exception):
    """What the compiler refuses at a node of the source: `kind` is the type of exception that CuPy raises."""

    def __init__(self, kind: type[Exception], text: str, node: ast.AST | None = None) -> None:
        super().__init__(text)
        self.kind = UnsupportedError if kind is NotImplementedError else kind
        self.text, self.node = text, node

    def at(self, node: ast.AST) -> RefusedError:
        """Return this error at the node, unless it has one that is nearer."""
        if self.node is None:
            self.node = node
        return self
