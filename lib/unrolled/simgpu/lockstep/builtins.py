"""The functions of the jit module: each takes what the compiler made of its arguments, and gives an expression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unrolled.simgpu.lockstep import access, expressions, types, warps
from unrolled.simgpu.lockstep.arithmetic import FUNCTIONS
from unrolled.simgpu.lockstep.arrays import Region
from unrolled.simgpu.lockstep.constants import Constant, TypeName
from unrolled.simgpu.lockstep.expressions import Element, Expr, Operand
from unrolled.simgpu.lockstep.faults import RefusedError
from unrolled.simgpu.lockstep.lanes import WARP
from unrolled.simgpu.lockstep.source import Source
from unrolled.simgpu.lockstep.types import INT32, INT64, UINT32, Array, Pointer, Tuple

ALIGNMENT = 8


@dataclass(eq=False)
class Declared:
    """One array in shared memory; `size` is None where the launch gives it."""

    number: int
    code: str
    size: int | None
    line: int
    name: str = "shared memory"

    @property
    def itemsize(self) -> int:
        return np.dtype(self.code).itemsize

    @property
    def nbytes(self) -> int:
        return -(-(self.size or 0) * self.itemsize // ALIGNMENT) * ALIGNMENT


@dataclass(eq=False)
class Needs:
    """What a kernel needs to run: shared memory, what it does with its arrays, whether blocks take turns."""

    shared: list[Declared] = field(default_factory=list)
    uses: dict[str, set[str]] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    """Those of the kernel and of what it calls."""
    calls: int = 0
    """Calls of other kernels, each compiled by itself."""
    nodes: int = 0
    variables: int = 0
    """Values that variables hold, in all that was compiled."""
    one_by_one: bool = False
    """Blocks must not run side by side: one may wait for another, or take turns with it."""

    def use(self, root: str, what: str) -> None:
        self.uses.setdefault(root, set()).add(what)


@dataclass(frozen=True, eq=False)
class Call:
    """A call in the source: where, what for, and whether anybody looks at its result."""

    line: int
    needs: Needs
    used: bool


Builtin = Callable[..., Operand]


def _constants(*values: Operand) -> list[Any]:
    found = [value.value for value in values if isinstance(value, Constant)]
    if len(found) < len(values):
        raise RefusedError(TypeError, "it takes only what is known before the kernel runs")
    return found


def _axes(first: str, second: str, third: str) -> Builtin:
    """`grid` and `gridsize`: first + second * third, or second * third, for 1 to 3 axes."""

    def grid(call: Call, ndim: Operand) -> Expr:
        (count,) = _constants(ndim)
        if type(count) is not int:
            raise RefusedError(TypeError, f"ndim is {count!r:.40}; expected 1, 2 or 3")
        if count not in (1, 2, 3):
            raise RefusedError(ValueError, f"ndim is {count}; expected 1, 2 or 3")

        def run(frame: Any, mask: Any) -> Any:
            indices = frame.run.batch.indices
            found = [indices[second][axis] * indices[third][axis] for axis in range(count)]
            if first:
                found = [x + indices[first][axis] for axis, x in enumerate(found)]
            return tuple(found) if count > 1 else found[0]

        return Expr(Tuple((UINT32,) * count) if count > 1 else UINT32, run)

    return grid


def _range(call: Call, *values: Operand, unroll: Operand | None = None) -> Expr:
    """The counter has the type of the end; start and step become it, without asking (as in C)."""
    if not 1 <= len(values) <= 3:
        raise RefusedError(TypeError, f"range takes one to three numbers, got {len(values)}")
    if unroll is not None:
        _constants(*values, unroll)
    start = values[0] if len(values) > 1 else Constant(0)
    stop = values[1] if len(values) > 1 else values[0]
    step = values[2] if len(values) > 2 else Constant(1)
    if any(expressions.scalar_of(x).kind not in "iu" for x in (start, stop, step)):
        raise RefusedError(TypeError, "range counts whole numbers only")
    counter = expressions.scalar_of(stop)
    parts = [expressions.cast(expressions.lift(x), counter, "unsafe").run for x in (start, stop, step)]
    unsigned = isinstance(step, Expr) and expressions.scalar_of(step).kind == "u"
    down = isinstance(step, Constant) and step.value < 0

    def run(frame: Any, mask: Any) -> Any:
        first, last, by = (part(frame, mask) for part in parts)
        return first, last, by, np.bool_(True) if unsigned else np.bool_(False) if down else by >= 0

    return Expr(types.Range(counter), run)


def _len(call: Call, array: Operand) -> Expr:
    if isinstance(array, Constant) or not isinstance(array.type, Array):
        raise RefusedError(TypeError, "len takes an array")
    if not array.type.ndim:
        raise RefusedError(TypeError, "an array without axes has no length")
    run = array.run
    return Expr(INT64, lambda frame, mask: np.int64(run(frame, mask).shape[0]))


def _extreme(name: str) -> Builtin:
    def extreme(call: Call, *values: Operand) -> Operand:
        if len(values) < 2:
            raise RefusedError(TypeError, f"{name} takes two numbers or more, got {len(values)}")
        found = values[0]
        for value in values[1:]:
            found = expressions.apply(FUNCTIONS[f"{name}imum"], [found, value], call.line)
        return found

    return extreme


def _syncthreads(call: Call) -> Expr:
    return Expr(types.VOID, lambda frame, mask: warps.barrier(frame.run, mask, call.line))


def _syncwarp(call: Call, *, mask: Operand | None = None) -> Expr:
    lanes = 2**WARP - 1
    if mask is not None:
        (lanes,) = _constants(mask)
        expressions.constant(lanes, INT32)  # CuPy casts it so: 0xffffffff does not fit
    return Expr(types.VOID, lambda frame, mask: warps.warp_barrier(frame.run, mask, int(lanes), call.line))


def _shared_memory(call: Call, dtype: Operand, size: Operand, alignment: Operand | None = None) -> Expr:
    kind, count, *_ = _constants(dtype, size, *([] if alignment is None else [alignment]))
    if not isinstance(kind, TypeName):
        raise RefusedError(TypeError, "dtype is no type; expected one such as cp.float32")
    if isinstance(count, np.integer):
        count = int(count)
    if count is not None and type(count) is not int:
        raise RefusedError(TypeError, f"size of shared_memory is {count!r:.40}; expected a whole number, or None")
    if count is not None and not 0 < count < 2**31:
        raise RefusedError(ValueError, f"size of shared_memory is {count}; expected 1 or more")
    code, number = types.scalar_type(kind.dtype).code, len(call.needs.shared)
    call.needs.shared.append(Declared(number, code, count, call.line))
    return Expr(Pointer(code, number), lambda frame, mask: Region.of(frame.run.shared[number]))


def _shuffle(kind: str) -> Builtin:
    def shuffle(call: Call, mask: Operand, var: Operand, val_id: Operand, *, width: Operand | None = None) -> Expr:
        value = expressions.lift(var)
        given = expressions.scalar_of(value)
        if str(given) not in ("int32", "uint32", "int64", "float32", "float64", "uint64", "float16"):
            raise RefusedError(TypeError, f"shfl_{kind}sync takes no {given}")
        if not isinstance(mask, Constant) or type(mask.value) is not int:
            raise RefusedError(TypeError, "mask is no whole number that is known before the kernel runs")
        if not 0 <= mask.value < 2**WARP:
            raise RefusedError(ValueError, f"mask is {mask.value}; expected 0 to 0xffffffff")
        size = WARP
        if width is not None:
            (size,) = _constants(width)
            if size not in (2, 4, 8, 16, 32):
                raise RefusedError(ValueError, f"width is {size}; expected 2, 4, 8, 16 or 32")
        other = expressions.cast(val_id, UINT32 if kind in ("up_", "down_") else INT32).run
        source, lanes = value.run, mask.value

        def run(frame: Any, mask: Any) -> Any:
            x, by = source(frame, mask), other(frame, mask)
            return warps.shuffle(frame.run, mask, kind, x, by, size, lanes, call.line)

        return Expr(given, run)

    return shuffle


def _atomic(name: str) -> Builtin:
    operation = access.ATOMICS[name]

    def atomic(call: Call, array: Operand, key: Operand, value: Operand, alt_value: Operand | None = None) -> Expr:
        if isinstance(array, Constant) or not isinstance(array.type, (Array, Pointer)):
            raise RefusedError(TypeError, f"atomic_{name} changes a value of an array, its first argument")
        element = expressions.index(array, key, call.line)
        if not isinstance(element, Element):
            raise RefusedError(TypeError, "an atomic operation changes one value: give all indices")
        if str(element.type) not in operation.types:
            raise RefusedError(TypeError, f"atomic_{name} takes no {element.type}")
        if (alt_value is not None) != (name == "cas"):
            raise RefusedError(TypeError, f"atomic_{name} takes {4 if name == 'cas' else 3} arguments")
        runs = [expressions.cast(x, element.type).run for x in (value, alt_value) if x is not None]
        call.needs.use(element.root, "atomic")
        call.needs.one_by_one |= call.used

        def run(frame: Any, mask: Any) -> Any:
            place, values = element.part(frame, mask, "atomic"), [run(frame, mask) for run in runs]
            return access.change(frame.run, place, operation, values, mask, call.line, call.used)

        return Expr(element.type, run)

    return atomic


BUILTINS: dict[str, Builtin] = {
    "jit.grid": _axes("threadIdx", "blockIdx", "blockDim"),
    "jit.gridsize": _axes("", "gridDim", "blockDim"),
    "jit.range": _range,
    "jit.syncthreads": _syncthreads,
    "jit.syncwarp": _syncwarp,
    "jit.shared_memory": _shared_memory,
    "jit.laneid": lambda call: Expr(UINT32, lambda frame, mask: (frame.run.batch.thread % WARP).astype(np.uint32)),
    **{f"jit.shfl_{kind}sync": _shuffle(kind) for kind in ("", "up_", "down_", "xor_")},
    **{f"jit.atomic_{name}": _atomic(name) for name in access.ATOMICS},
    "builtins.range": _range,
    "builtins.len": _len,
    "builtins.min": _extreme("min"),
    "builtins.max": _extreme("max"),
}
"""Functions by the names that `constants.Name` gives them."""
INDICES: dict[str, Expr] = {
    name: Expr(types.DIM3, lambda frame, mask, name=name: frame.run.batch.indices[name])  # type: ignore[misc]
    for name in ("threadIdx", "blockIdx", "blockDim", "gridDim")
}
INDICES["warpsize"] = Expr(INT32, lambda frame, mask: np.int32(WARP))
KNOWN = frozenset(name.removeprefix("jit.") for name in BUILTINS if name.startswith("jit.")) | frozenset(INDICES)
"""Names of the jit module that may stand in a kernel."""
