"""Cases on the GPU: inputs are put there, what happened there is judged, results are fetched. Findings are in words.

Nothing here runs a learner's code. The simulated GPU of a case is one of its own, in this process or elsewhere.
"""

from __future__ import annotations

import functools
import itertools
import linecache
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import unrolled
from unrolled import device

from .spec import Budget, Function, Inputs

if TYPE_CHECKING:
    from unrolled.simgpu.command import Machine
    from unrolled.simgpu.trace import Allocation, Trace

PROFILE = "T4"  # the GPU that is simulated for a check, whatever the notebook uses
DEPTH = 4  # how deep lists, tuples and dictionaries are searched for arrays
PLACES = 3  # lines of code that a finding shows
ON_GPU = (
    "the result is a GPU array, but NumPy arrays came in: work with the module of the array that you are given, "
    "array_module(x)"
)
ELSEWHERE = (
    "the result lies on another GPU than the inputs, as what is kept from an earlier call does: make it from them, in "
    "the function, at every call"
)
WIDER = "name the dtype where an array is made: zeros, empty, ones and where(..., 1.0, 0.0) give float64 if you do not"
COPIES = (
    "float(), int(), .item(), .get(), asnumpy, device.to_host, x[x > 0] and an `if` copy from the GPU; asarray and "
    "device.to_device of a NumPy array, and one as an index, copy to it"
)
KEPT = "what is made in a loop and kept, as in a list, is there until the end: keep what is needed again, and no more"
MASKED = (
    "a boolean mask as an index makes the host wait: how many values it picks decides a shape, so that number is "
    "copied. where(mask, x, other) keeps the shape and waits for nothing"
)
MASKS = {"getitem", "setitem", "nonzero"}  # what copies nothing but the number of values that a mask picks


class Stray:
    """A stand-in for an array on a GPU that cannot be reached from here."""


@contextmanager
def connected(machine: Machine | None = None) -> Iterator[device.Module]:
    """Connect the simulated GPU to this machine, or to a fresh one in this process, for the block; yield its module."""
    from unrolled import simgpu
    from unrolled.simgpu.machine import LocalMachine

    simgpu.connect(machine or LocalMachine(PROFILE))
    try:
        yield simgpu
    finally:
        simgpu.disconnect()


def real() -> device.Module | None:
    """Return CuPy if it finds a working GPU, else None."""
    module = device.gpu()
    return None if device.is_simulated(module) else module


def ported(function: Function, module: device.Module | None) -> Function | None:
    """Return the function as one of NumPy arrays that runs on the module's GPU; None without a module."""
    if module is None:
        return None

    @functools.wraps(function)
    def on_gpu(*positional: Any, **named: Any) -> Any:
        positional, named = placed((positional, named), module)
        return fetched(function(*positional, **named))

    return on_gpu


def placed(value: Any, module: device.Module) -> Any:
    """Return the value with its NumPy arrays on the module's GPU; lists, tuples and dictionaries are new ones."""
    return each_leaf(value, lambda leaf: module.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf)


def fetched(value: Any) -> Any:
    """Return the value with its GPU arrays as NumPy arrays."""
    return each_leaf(value, lambda leaf: device.to_host(leaf) if _on_device(leaf) else leaf)


def each_leaf(value: Any, change: Callable[[Any], Any], depth: int = DEPTH) -> Any:
    """Return the value with `change(leaf)` for every leaf of nested lists, tuples and dictionaries."""
    if depth and type(value) in (list, tuple):
        return type(value)(each_leaf(item, change, depth - 1) for item in value)
    if depth and type(value) is dict:
        return {key: each_leaf(item, change, depth - 1) for key, item in value.items()}
    return change(value)


def functions_in(value: Any) -> bool:
    """Return whether there is something to be called in nested lists, tuples and dictionaries."""
    return any(map(callable, leaves(value)))


def traced(module: device.Module) -> AbstractContextManager[Trace | None]:
    """Return a block that gives the trace of what the simulated GPU does in it, complete at its end; None for NumPy."""
    return nullcontext() if module is np else module.trace()


def strayed(got: Any, module: device.Module) -> tuple[str, ...]:
    """Return why a result does not lie where it belongs (NumPy: the host; else the connected GPU), or nothing."""
    found = list(leaves(got))
    if module is np:
        return (ON_GPU,) if any(isinstance(leaf, Stray) or _on_device(leaf) for leaf in found) else ()
    if any(isinstance(leaf, np.ndarray) for leaf in found):
        return ("the result is a NumPy array: it left the GPU. Return it as it lies there",)
    strays = any(isinstance(leaf, Stray) or (_on_device(leaf) and not _reachable(leaf)) for leaf in found)
    return (ELSEWHERE,) if strays else ()


def written_by_kernels(got: Any) -> tuple[int, int]:
    """Return how many bytes of a result kernels of the program's own wrote last, and how many bytes it has."""
    arrays = [leaf for leaf in leaves(got) if _on_device(leaf)]
    return sum(x._memory.machine.own_bytes(x.as_view()) for x in arrays), sum(x.nbytes for x in arrays)


def overspent(trace: Trace, budget: Budget, function: Function, inputs: Inputs) -> tuple[str, ...]:
    """Return what a function did with these inputs beyond its budget, and in which lines; nothing if it kept to it."""
    products = [launch for launch in trace.launches if launch.is_product or launch.op == "sum"]
    wide = [launch for launch in trace.launches if launch.dtype == "float64"]
    launches = trace.host_launches if budget.graphs else trace.launches
    copies = MASKED if {copy.cause for copy in trace.transfers if copy.direction == "to host"} & MASKS else COPIES
    lines: list[str] = []
    for name, most, events, kinds, helps in (
        ("transfer", budget.transfers, trace.transfers, [copy.direction for copy in trace.transfers], copies),
        ("synchronization", budget.synchronizations, trace.synchronizations, [], ""),
        ("matrix product", budget.products, products, [launch.op for launch in products], ""),
        ("launch", budget.launches, launches, [getattr(launch, "op", "graph") for launch in launches], ""),
        ("float64 launch", budget.float64, wide, [launch.op for launch in wide], WIDER),
    ):
        if most is not None and len(events) > most:
            plural = "es" if name.endswith("ch") else "s"
            allowed = f"at most {most} allowed" if most else "none allowed"
            allowed += f" ({budget.because})" if budget.because and name == "launch" else ""
            summary = f"{len(events)} {name}{plural * (len(events) > 1)}, {allowed}{_listed(kinds)}"
            lines += [summary, *places(events, function), *([helps] if helps else [])]
    if budget.flops is not None and trace.flops > (most_flops := budget.flops(inputs)):
        worst = max(trace.launches, key=lambda launch: launch.flops)
        lines += [f"{trace.flops:,} operations, at most {most_flops:,.0f} allowed", *places([worst], function)]
    room, why = 2 if wide else 1, f" ({budget.because})" if budget.because else ""
    if budget.largest is not None and trace.allocations:
        largest, most_bytes = max(trace.allocations, key=lambda event: event.nbytes), room * budget.largest(inputs)
        if largest.nbytes > most_bytes:
            lines += [f"an array of {largest.nbytes:,} bytes, at most {most_bytes:,.0f} allowed{why}"]
            lines += places([largest], function)
    if budget.held is not None and (held := _held(trace.allocations)) > (most_bytes := room * budget.held(inputs)):
        lines += [f"arrays of {held:,} bytes at a time, at most {most_bytes:,.0f} allowed{why}", KEPT]
    return tuple(lines)


def _held(allocations: Sequence[Allocation]) -> int:
    """The most bytes that were there at a time, of those that were taken."""
    return max(itertools.accumulate(-each.nbytes if each.freed else each.nbytes for each in allocations), default=0)


def _listed(kinds: Sequence[str]) -> str:
    """Such as ": 4 x to host, 1 x to device": the most frequent first, five at most."""
    counts = Counter(kinds).most_common()
    texts = [f"{count} x {kind}" for kind, count in counts[:5]]
    return f": {', '.join([*texts, '...'] if len(counts) > 5 else texts)}" if texts else ""


def places(events: Sequence[Any], function: Function) -> Iterator[str]:
    """Yield the lines of code that did it, as far as they are known: those of a function in this process."""
    if not hasattr(function, "__code__"):
        return
    library = str(Path(unrolled.__file__).parent)
    counts = Counter(event.where for event in events if event.where and not event.where.startswith(library))
    for where, count in counts.most_common(PLACES):
        file, _, line = where.rpartition(":")
        times = f" ({count} times)" if count > 1 else ""
        code = linecache.getline(file, int(line)).strip()
        yield f"in line {line}{times}" + (f": {code}" if code else "")


def _on_device(value: Any) -> bool:
    try:
        return not isinstance(value, (np.ndarray, int, float)) and device.array_module(value) is not np
    except TypeError:  # no array
        return False


def _reachable(array: Any) -> bool:
    """Whether an array of the simulated GPU lies on the machine that is connected now."""
    from unrolled.simgpu import current

    memory = getattr(array, "_memory", None)
    return memory is None or memory.machine is current.machine()


def leaves(value: Any, depth: int = DEPTH) -> Iterator[Any]:
    """Yield what nested lists, tuples and dictionaries hold."""
    if depth and isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item, depth - 1)
    else:
        yield value
