"""A launch: blocks in an order drawn from a seed, as many side by side as fit, and the report of what they did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, TypeAlias

import numpy as np

from unrolled.simgpu.command import KernelOrder
from unrolled.simgpu.kernel_report import KernelReport
from unrolled.simgpu.lockstep import faults, price, types
from unrolled.simgpu.lockstep.arrays import GlobalArray, Region, Shared
from unrolled.simgpu.lockstep.builtins import Declared
from unrolled.simgpu.lockstep.compiler import Program, compile_kernel
from unrolled.simgpu.lockstep.faults import CUDADriverError, Fault, RefusedError
from unrolled.simgpu.lockstep.lanes import WARP, Batch
from unrolled.simgpu.lockstep.races import Clock, Shadow
from unrolled.simgpu.lockstep.source import Source
from unrolled.simgpu.lockstep.state import Counts, Frame, Run, RunLimits
from unrolled.simgpu.profiles import GPUProfile

Plan: TypeAlias = tuple[Program, list[Declared], int]
GRID_LIMIT = (2**31 - 1, 65535, 65535)
BLOCK_LIMIT = (1024, 1024, 64)


def launch(
    order: KernelOrder, arguments: Sequence[Any], profile: GPUProfile, limits: RunLimits | None = None, seed: int = 0
) -> KernelReport:
    """Compile a kernel, run it on its arguments (arrays and NumPy numbers), and return what was counted.

    seed: that of the order of blocks. Raises what the compiler refuses (TypeError and others, as CuPy), CUDADriverError
    for sizes that no GPU takes, ValueError beyond the limits, and KernelFault for what the kernel does wrong.
    """
    bounds = limits or RunLimits()
    program, _, nbytes = planned = _planned(order, arguments, bounds)
    values = dict(zip(program.parameters, arguments, strict=True))
    arrays = {name: x for name, x in values.items() if isinstance(x, GlobalArray)}
    for name, array in arrays.items():
        array.name = name
    _watch(arrays, program, bounds)
    counts = _execute(order, planned, values, bounds, seed)
    return _report(order, program, counts, nbytes, profile, seed)


def check(order: KernelOrder, arguments: Sequence[Any], limits: RunLimits | None = None) -> str:
    """Compile a kernel and return its name. Raises what `launch` raises before anything runs."""
    return _planned(order, arguments, limits or RunLimits())[0].name


def _planned(order: KernelOrder, arguments: Sequence[Any], limits: RunLimits) -> Plan:
    """The compiled kernel, its shared memory with sizes, and the bytes of that."""
    program = compile_kernel(order.program, [_type(x) for x in arguments])
    _check_sizes(order, program, limits)
    shared = [
        declared if declared.size is not None else replace(declared, size=order.shared // declared.itemsize)
        for declared in program.needs.shared
    ]
    return program, shared, _check_shared(shared, order, program)


def _type(x: Any) -> types.Type:
    """What an argument is in a kernel. Raises TypeError for dtypes that the compiler does not know."""
    try:
        if isinstance(x, np.generic):
            return types.scalar_type(x.dtype)
        return types.Array(types.scalar_type(x.data.dtype).code, len(x.shape))
    except RefusedError as error:
        raise error.kind(error.text) from None


def _check_sizes(order: KernelOrder, program: Program, limits: RunLimits) -> None:
    blocks, threads = prod(order.grid), prod(order.block)
    if threads > price.THREADS_LIMIT:
        text = f"a block of {order.block} has {threads:,} threads; at most {price.THREADS_LIMIT:,} are allowed"
        raise _refused(faults.THREADS, program, text)
    for name, size, most in (("grid", order.grid, GRID_LIMIT), ("block", order.block, BLOCK_LIMIT)):
        if not all(1 <= n <= limit for n, limit in zip(size, most, strict=True)):
            raise _refused(faults.THREADS, program, f"{name} is {size}; expected 1 to {most} along (x, y, z)")
    if blocks * -(-threads // WARP) * WARP > limits.threads:
        raise ValueError(f"{blocks * threads:,} threads in one launch; the simulated GPU takes {limits.threads:,}")


def _check_shared(shared: Sequence[Declared], order: KernelOrder, program: Program) -> int:
    """Return a block's bytes of shared memory. Raises CUDADriverError if it may not have so many."""
    fixed = [declared.nbytes for declared, known in zip(shared, program.needs.shared, strict=True) if known.size]
    nbytes = sum(fixed) + order.shared
    if order.shared < 0 or nbytes > price.SHARED_LIMIT:
        line = max((declared.line for declared in shared), default=program.line)
        text = f"a block asks for {nbytes:,} bytes of shared memory; at most {price.SHARED_LIMIT:,} are allowed"
        raise _refused(faults.SHARED, program, text, line)
    return nbytes


def _refused(kind: str, program: Program, text: str, line: int = 0) -> CUDADriverError:
    line = line or program.line
    return CUDADriverError(Fault(kind, line, Source.code_in(program.needs.sources, line), text))


def _watch(arrays: dict[str, GlobalArray], program: Program, limits: RunLimits) -> None:
    """Give a shadow to the memory that the kernel writes; arrays that lie in one buffer share it."""
    cells = 0
    groups: dict[int, list[GlobalArray]] = {}
    for array in arrays.values():
        groups.setdefault(array.buffer, []).append(array)
    for group in groups.values():
        uses = set().union(*(program.needs.uses.get(array.name, set()) for array in group))
        if uses & {"write", "atomic"}:
            unit = min(array.data.itemsize for array in group)
            shadow = Shadow(max(array.data.nbytes for array in group) // unit)
            cells += shadow.cells
            if cells > limits.cells:
                raise ValueError(f"a kernel that writes {cells:,} values of arrays; at most {limits.cells:,} are taken")
            for array in group:
                array.shadow, array.unit = shadow, array.data.itemsize // unit
        for array in group:
            array.fetched = None if array.shadow else np.zeros(len(array.data), bool)


def _execute(order: KernelOrder, planned: Plan, arguments: dict[str, Any], limits: RunLimits, seed: int) -> Counts:
    """Run all blocks."""
    program, shared, nbytes = planned
    rng, counts, tick = np.random.default_rng(seed), Counts(), 1
    blocks = rng.permutation(prod(order.grid))
    width = -(-prod(order.block) // 32) * 32
    many = min(limits.lanes // width, limits.shared // max(1, nbytes))
    many = 1 if program.needs.one_by_one else max(1, many)
    values = {name: _value(x) for name, x in arguments.items()}
    with np.errstate(all="ignore"):  # a GPU does not warn
        for first in range(0, len(blocks), many):
            batch = Batch(np.sort(blocks[first : first + many]), order.grid, order.block)
            run = Run(batch, program.needs.sources, counts, Clock(batch, tick), limits, rng)
            for number, declared in enumerate(shared):
                dtype = np.dtype(declared.code)
                run.shared[number] = Shared.of(declared.name, dtype, declared.size or 0, batch)
            run.kernel = Frame(run, dict(values), batch.all)
            run.step(program.line, 1, batch.all)
            try:
                program.body(run.kernel, batch.all)
            except RecursionError:
                raise ValueError("a kernel with too many parts within each other") from None
            tick = run.clock.tick + 1
            counts.working += int(np.sum(run.working)) * (batch.blocks // len(np.atleast_2d(run.working)))
    return counts


def _value(argument: Any) -> Any:
    """An argument as lanes know it: a number in its register."""
    if isinstance(argument, GlobalArray):
        return Region.of(argument)
    return argument.astype(types.scalar_type(argument.dtype).dtype)


def _report(
    order: KernelOrder, program: Program, counts: Counts, nbytes: int, profile: GPUProfile, seed: int
) -> KernelReport:
    lines = [counts.lines[number] for number in sorted(counts.lines) if number]
    for line in lines:
        line.code = Source.code_in(program.needs.sources, line.line).strip()
    share, limit = price.occupancy(prod(order.block), nbytes, profile)
    launched = program.name, profile.name, order.grid, order.block
    report = KernelReport(*launched, nbytes, share, limit, counts.barriers, 0.0, seed, tuple(lines), counts.working)
    return replace(report, seconds=price.seconds(report.total, report.blocks, profile)[0])
