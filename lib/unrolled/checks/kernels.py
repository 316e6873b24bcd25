"""What a function's own kernels did on the simulated GPU: their faults, and traffic beyond a budget, in words.

Everything here is read from the machine's trace, so what the function says of its kernels has no part in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .gpu import PLACES, written_by_kernels
from .spec import Budget, Inputs

if TYPE_CHECKING:
    from unrolled.simgpu.kernel_report import LineReport
    from unrolled.simgpu.trace import Trace

SIDE_BY_SIDE = "a warp takes the fewest sectors where neighbouring threads touch neighbouring values"
PADDED = "threads of one warp meet in one bank: rows of a tile that are one value longer lie in other banks"
AGAIN = (
    "each value is to be read once: by one thread, which keeps it in a variable, or into shared memory if several "
    "threads need it"
)
ONCE = "each result is to be written once, by one thread"
OWN = (
    "{0:,} of {1:,} bytes of the result were not written by a kernel of your own: it has to write each value, and what "
    "it wrote is to be returned"
)
IDLE = (
    "all warps of a launch share the work: launch as many blocks as there is work for, and let each thread take a part"
)
NARROW = "its values are float32, of 4 bytes each: jit.shared_memory(cp.float32, ...), no larger than it is used"
IN_STEP = (
    "what goes into shared memory goes in once. A tree adds in pairs: in each round half as many threads, neighbours, "
    "take a partner's sum each. One thread that adds them all, or threads that lie apart, ask more often"
)
RACED = "two streams race"
STREAMS = "race between streams"  # a fault's kind, and the error where no trace is open; names: most checks need no GPU
RACE_ERROR = "StreamRaceError"
MEANINGS = {  # by the fault's kind
    "out of bounds": "where the last block has threads to spare, a guard such as `if i < n:` keeps them out, with a "
    "condition for each axis. blockIdx.x counts along the last axis, blockIdx.y along the one before. An index below 0 "
    "is outside, too: a GPU does not count from the end. One such as 4,294,967,295 is an unsigned number that went "
    "below 0: cast it, cp.int32(...)",
    "race": "jit.syncthreads() between the two orders the threads of a block; nothing orders blocks",
    "read before written": "each value of shared memory that is read needs a thread that writes it, and then a barrier",
    STREAMS: "a stream keeps its own order, and what stands outside of `with stream:` goes to the default "
    "stream. later.wait_event(earlier.record()) orders two of them. So a stream of a function's own waits at first for "
    "the stream that made the inputs, and at the end lets that one wait",
    "barrier": "every thread of a block has to come to its barrier: no `if`, loop or return on the way for some only",
}


def faults(trace: Trace | None) -> tuple[str, ...]:
    """Return what the first kernel that failed did wrong, and where; nothing if none did, or without a trace."""
    if trace is None or not trace.faults:
        return ()
    fault = trace.faults[0]
    means = [MEANINGS[fault.kind]] if fault.kind in MEANINGS else []
    if fault.kind != STREAMS:
        return ("a kernel failed", fault.finding, f"> {fault.code.strip()}", *means)
    return (RACED, fault.text, *fault.lines, *means)


def race(error: Exception) -> tuple[str, ...]:
    """Return what the function's streams did wrong that only shows where a result is looked at; or nothing."""
    return (RACED, *f"{error}".splitlines(), MEANINGS[STREAMS]) if type(error).__name__ == RACE_ERROR else ()


def beyond(trace: Trace, budget: Budget, inputs: Inputs, got: Any) -> Iterator[str]:
    """Yield what the kernels did beyond the budget of a case with these inputs and result, and in which lines."""
    if len(trace.kernels) < budget.own:
        yield f"{len(trace.kernels) or 'no'} launch of a kernel of your own, at least {budget.own} expected"
    elif budget.own and (written := written_by_kernels(got))[0] < written[1]:
        yield OWN.format(written[1] - written[0], written[1])
    lines = [line for kernel in trace.kernels for line in kernel.lines]

    def total(count: str) -> int:
        return int(sum(getattr(line, count) for line in lines))

    for does, most in (("read", budget.read_sectors), ("write", budget.written_sectors)):
        sectors, fewest = total(f"{does}_sectors"), total(f"{does}_ideal")
        if most is not None and sectors > most * fewest:
            yield (
                f"the kernels {does} {sectors:,} sectors, {sectors / fewest:.3g} times the {fewest:,} that would hold "
                f"the values: at most {most:g} times allowed"
            )
            yield from _places(lines, f"{does}_excess", "sectors too many")
            yield SIDE_BY_SIDE
    conflicts = total("bank_conflicts")
    if budget.bank_conflicts is not None and conflicts > budget.bank_conflicts:
        yield f"{conflicts:,} bank conflicts in shared memory, at most {budget.bank_conflicts:,} allowed"
        yield from _places(lines, "bank_conflicts", "bank conflicts")
        yield PADDED
    for does, bytes_in in (("read", budget.bytes_read), ("write", budget.bytes_written)):
        moved = total(f"{does}_bytes")
        if bytes_in is not None and moved > (allowed := bytes_in(inputs)):
            yield f"the kernels {does} {moved:,} bytes of global memory, at most {allowed:,.0f} allowed"
            yield from _places(lines, f"{does}_bytes", "bytes")
            yield AGAIN if does == "read" else ONCE
    passes = total("shared_passes")
    if budget.shared_passes is not None and passes > (allowed := budget.shared_passes(inputs)):
        yield f"the warps ask shared memory {passes:,} times, at most {allowed:,.0f} allowed"
        yield from _places(lines, "shared_passes", "times")
        yield IN_STEP
    warps, working = (sum(getattr(kernel, count) for kernel in trace.kernels) for count in ("warps", "working"))
    if working < budget.working * warps:
        yield f"{working:,} of {warps:,} warps read or write global memory, at least {budget.working:.0%} have to"
        yield IDLE
    most = max((kernel.shared_bytes / kernel.threads for kernel in trace.kernels), default=0.0)
    if budget.shared_bytes is not None and most > budget.shared_bytes:
        yield f"{most:.3g} bytes of shared memory for each thread of a block, at most {budget.shared_bytes:g} allowed"
        yield NARROW


def _places(lines: Sequence[LineReport], count: str, what: str) -> Iterator[str]:
    """The lines of the kernels with the most of it."""
    sums: Counter[tuple[int, str]] = Counter()
    for line in lines:
        sums[line.line, line.code] += getattr(line, count)
    for (number, code), most in sums.most_common(PLACES):
        if most:
            yield f"in line {number}: {code} ({most:,} {what})"
