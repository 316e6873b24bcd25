"""How long a command takes, from what it moves and computes and the figures of a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from unrolled.simgpu import operations
from unrolled.simgpu.command import Operand, Plain, View
from unrolled.simgpu.profiles import Profile


@dataclass(frozen=True)
class Cost:
    """What one kernel moves and computes, and how long it takes; `work` is the device's own time, without latency."""

    bytes_read: int
    bytes_written: int
    flops: int
    seconds: float
    work: float


def of(
    op: str, inputs: Sequence[Operand], outputs: Sequence[View], options: Mapping[str, Plain], profile: Profile
) -> Cost:
    """The cost of a command."""
    read = sum(_nbytes(x) for x in inputs if isinstance(x, View))
    written = sum(_nbytes(x) for x in outputs)
    flops = max((prod(x.shape) for x in (*inputs, *outputs) if isinstance(x, View)), default=0)
    if op == "matmul":
        a = inputs[0]
        flops = 2 * prod(outputs[0].shape) * (a.shape[-1] if isinstance(a, View) and a.shape else 1)
    work = max((read + written) / profile.bandwidth, flops / profile.float32)
    return Cost(read, written, flops, max(work, profile.shortest_kernel), work)


def seconds(
    op: str, inputs: Sequence[Operand], outputs: Sequence[View], options: Mapping[str, Plain], profile: Profile
) -> float:
    """The device's time for a command."""
    return of(op, inputs, outputs, options, profile).seconds


def host_seconds(op: str, profile: Profile) -> float:
    """The host's time for the call."""
    return profile.host[kind(op)]


def kind(op: str) -> str:
    """The kind of call that an op is."""
    if op in operations.REDUCTIONS or op in operations.SCANS:
        return "reduction"
    if op in ("matmul", "einsum"):
        return "matmul"
    if op in ("getitem", "setitem", "take", "nonzero", "sort", "argsort") or op.endswith(".at"):
        return "indexing"
    if op in ("copy", "fill", "kernel"):
        return "kernel" if op == "kernel" else "copy"
    return "ufunc"


def _nbytes(view: View) -> int:
    itemsize: Any = operations.dtype_of(view.dtype).itemsize
    return int(prod(n for n, s in zip(view.shape, view.strides, strict=True) if s) * itemsize)
