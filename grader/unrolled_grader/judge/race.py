"""Timing a student's function against its baseline: two workers, one transport, the judge's clock.

What is done so that a time means what it says:

- Every call of a block gets inputs that were never seen before, drawn from a secret seed, as far as they fit into the
  shared file; so a cache finds nothing in it, whether it goes by identity, by content, by shape or by the number of the
  call. Both sides of a pair get the same ones.
- A call counts when its result lies in the shared file. After each block the judge reads a secret sample of the results
  and compares them with the reference; inputs must be as they were.
- The student's box is frozen while the judge prepares and while the baseline runs. CPU time that it uses between two
  blocks counts as time of the next one, but for what it takes to get ready. So work cannot be moved there, whatever
  other blocks took.
- A block took the longer of wall time and the CPU time of all processes in the box: a second core buys nothing. Ranks
  have a core each, so for two of them half of the CPU time counts.

Where no control group counts CPU time, the worker alone is frozen and counted, in coarse steps; what it then gains by a
second core, or by work in the background, is refused as a whole.
"""

from __future__ import annotations

import hashlib
import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from unrolled.checks import Spec, Speed
from unrolled.checks.compare import mismatch
from unrolled.checks.crashes import ReportedError
from unrolled.checks.limits import TimeLimitError, UnableError, UnfairError
from unrolled.checks.run import SPEED_LIMIT
from unrolled.parallel.team import missing
from unrolled.timing import BlockTime, Pair, Verdict, compare_blocks, rule, where_able
from unrolled.timing.comparing import TIME_LIMIT
from unrolled_grader.box import wire
from unrolled_grader.box.transport import Worker, WorkerDiedError

DISTINCT = 512  # different inputs of a block, at most
DISTINCT_BYTES = 32 * 2**20  # bytes of a block's inputs, and of its results, at most
SAMPLE = 4  # results of a block that are verified
SHORTEST = 0.02  # seconds of a block, at least: long beside the message that starts it, which takes 0.1 to 0.2 ms
TRANSPORT = 0.02  # of a block's time: more than this must not go into the message that starts it
EMPTY_BLOCKS = 9  # blocks without a call, of the baseline's worker, that tell what the transport takes
OUTSIDE, PER_INPUT, PER_BYTE = 0.25, 20e-6, 0.6e-9
"""CPU time outside of a block that is allowed, for getting ready: a share of that inside, and seconds for each of its
inputs and for each byte that it is larger than any block before, whose pages have to be mapped. An honest worker takes
0.3 ms, 7 us for an input and 0.2 ns for a byte, and two to three times as much while a machine is busy. Pages buy
little: only the first block of a look at the pairs can be larger than those before."""
DAWDLING, PATIENCE = 3.0, 2.0
"""How many times as long as the baseline, and how many seconds more, a side may take when the time runs out."""
RANKS_LIMIT = 20.0  # seconds of a comparison: where other work fills the cores, ranks wait for one another besides
ALLOWANCE = 0.05  # seconds of CPU time outside of all blocks that are not yet refused

Inputs = Mapping[str, Any]


def time_against_baseline(
    worker: Worker,
    spec: Spec,
    seed: int,
    cores: frozenset[int] = frozenset(),
    alone: Callable[[], object] | None = None,
) -> Verdict:
    """Return the verdict on the bound function against its baseline, on these cores.

    `alone` waits until nothing else is judged on them; without it that is so already. A speed that is clearly enough
    beside other work is enough; who is not so fast may be held up by it, and begins anew. Ranks need all cores at once,
    and what a GPU does beside other work was never measured: there all pairs are timed alone.
    Raises as `go`, UnfairError, UnableError.
    """
    speed = spec.speed
    assert speed is not None
    if speed.ranks == 1:
        return _raced(worker, spec, seed, cores, alone)
    if alone is not None:
        alone()
    if why := missing(speed.ranks, len(cores)):
        raise UnableError(why)
    with worker.ranked(speed, speed.ranks):
        verdict = _raced(worker, spec, seed, cores)
    if verdict.outcome == "pass":
        return verdict
    with worker.frozen(), Worker(boxed=worker.boxed, baseline=spec.reference) as model:
        model.pin(cores)
        with _started(model, speed, speed.ranks):
            return where_able(verdict, _raced(model, spec, derived(seed, "model"), cores))


@contextmanager
def _started(worker: Worker, speed: Speed, ranks: int) -> Iterator[None]:
    """Have so many processes run the course's own code during the block.

    Raises WorkerDiedError where they do not start in time: that is no student's fault, and is tried again. It excuses
    nothing, since a student may be who keeps the machine busy.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(worker.ranked(speed, ranks))
        except (ReportedError, TimeLimitError) as error:
            raise WorkerDiedError(f"the ranks did not start: {error}") from None
        yield


def _raced(
    worker: Worker, spec: Spec, seed: int, cores: frozenset[int], alone: Callable[[], object] | None = None
) -> Verdict:
    """Return the verdict on what the worker runs."""
    speed = spec.speed
    assert speed is not None
    candidate = _Side(worker, stream := _Stream(spec, seed), worker.thawed, verified=True, cores=speed.ranks)
    with ExitStack() as stack:
        # Threads of the judge's BLAS spin for up to 0.1 s after a product, on a core that is a rank's by then.
        stack.enter_context(threadpool_limits(1))
        stack.enter_context(worker.frozen())
        other = stack.enter_context(Worker(boxed=worker.boxed, baseline=speed.baseline, gpu=speed.gpu))
        other.pin(cores)
        if speed.ranks > 1:
            stack.enter_context(_started(other, speed, 1))
        baseline = _Side(other, stream, nullcontext)
        transport = baseline.transport()
        if speed.gpu and alone is not None:
            baseline(1)  # compiles its kernels while others have the GPU; the candidate's were when it was checked
            alone()
            alone = None
        # What CPU time misses without a control group can only look too fast.
        counted: tuple[rule.Outcome, ...] = ("pass", "fail") if worker.counts_cpu and other.counts_cpu else ("fail",)
        verdict = compare_blocks(
            candidate,
            baseline,
            speed.at_least,
            seed=seed % 2**32,
            threads="1 thread",
            shortest=SHORTEST,
            time_limit=TIME_LIMIT if speed.ranks == 1 else RANKS_LIMIT,
            cpu_witness=() if speed.gpu else ("pass",) if speed.ranks > 1 else counted,
            quieten=alone,
        )
    candidate.settle()
    if verdict.outcome == "inconclusive":
        candidate.expect_haste(baseline, verdict.control)
    return _with_transport(verdict, transport)


def derived(seed: int, *what: object) -> int:
    """Return a seed for one use. Inputs that were drawn from it tell nothing of the seeds for others."""
    return int.from_bytes(hashlib.blake2b(repr((seed, *what)).encode(), digest_size=8).digest(), "big") >> 1


def _with_transport(verdict: Verdict, seconds: float) -> Verdict:
    """The verdict, unless the message that starts a block takes so large a part of the blocks that it may decide."""
    if not verdict.pairs:
        return verdict
    walls = zip(*((pair.baseline.wall, pair.candidate.wall) for pair in verdict.pairs), strict=True)
    shortest = min(map(statistics.median, walls))
    share = min(seconds / shortest, 0.99)
    settled = {
        "pass": verdict.low * (1 - share) >= verdict.at_least,
        "fail": verdict.high / (1 - share) < verdict.at_least / rule.SLACK,
    }
    if share <= TRANSPORT or settled.get(verdict.outcome, True):
        return verdict
    reason = f"the transport took {share:.1%} of a block, at most {TRANSPORT:.0%} is fair"
    return replace(verdict, outcome="inconclusive", reason=reason)


class _Stream:
    """Fresh inputs for every pair, and what a right result looks like."""

    def __init__(self, spec: Spec, seed: int) -> None:
        assert spec.speed is not None
        self.spec = spec
        self._draw = spec.speed.draw_inputs
        self._seed = seed
        self._pair, self._used_by = 1, set[int]()
        self._inputs: Sequence[Inputs] = ()
        example = self._draw(seed, 1)[0]
        self.like = self.expected(example)
        self.slot = wire.aligned(self.like.nbytes)
        given = sum(value.nbytes for value in example.values() if isinstance(value, np.ndarray))
        self.bytes = self.slot + given  # of one call: its inputs and its result
        self.distinct = max(16, min(DISTINCT, DISTINCT_BYTES // max(1, self.slot, given)))

    def expected(self, inputs: Inputs) -> wire.Array:
        return np.ascontiguousarray(self.spec.timed_result(inputs))

    def inputs(self, side: int, count: int) -> Sequence[Inputs]:
        """So many inputs: those of the latest pair of blocks, if the other side alone has used them; else new ones."""
        if side in self._used_by:
            self._pair, self._used_by, self._inputs = self._pair + 1, set(), ()
        self._used_by.add(side)
        if len(self._inputs) < count:
            self._inputs = self._draw(derived(self._seed, self._pair), count)
        return self._inputs[:count]


@dataclass(eq=False)
class _Side:
    """A block timer on a worker."""

    _worker: Worker
    _stream: _Stream
    _thawed: Callable[[], AbstractContextManager[None]]
    verified: bool = False
    cores: int = 1  # how many it may keep busy

    def __post_init__(self) -> None:
        self._inside = self._outside = self._allowed = self._wall = self._spent = 0.0
        self._counted = self._worker.cpu_seconds()
        self._room = 0

    def __call__(self, calls: int) -> BlockTime:
        """Time one block of so many calls."""
        inputs = self._stream.inputs(id(self), min(calls, self._stream.distinct))
        started = time.monotonic()
        with self._thawed():
            self._worker.prepare(inputs, self._stream.slot)
            took = self._worker.go(calls, SPEED_LIMIT)
            outside = self._since() - took.cpu
            results = self._sample(inputs) if self.verified else ()
        self._spent += time.monotonic() - started
        allowed = self._allow(took.cpu, len(inputs))
        self._inside += took.cpu
        self._outside += outside
        self._wall += took.wall
        for chosen, result, now in results:
            self._verify(inputs[chosen], result, now)
        if not self._worker.counts_cpu:
            return took
        late = max(0.0, outside - allowed) if self.verified else 0.0  # what was left over is no gain
        cpu = took.cpu / self.cores
        return BlockTime(max(took.wall, cpu) + late, cpu + late)

    def transport(self) -> float:
        """Median seconds of a block without a call."""
        self._worker.prepare(self._stream.inputs(id(self), 1), self._stream.slot)
        return statistics.median(self._worker.go(0, SPEED_LIMIT).wall for _ in range(EMPTY_BLOCKS))

    def settle(self) -> None:
        """Raise UnfairError if the worker worked outside of its blocks, or on more than one core and that unnoticed."""
        self._outside += self._since()
        if self._outside > self._allowed + ALLOWANCE:
            raise UnfairError(
                f"{self._outside:.2f} s of CPU time were used outside of the measured blocks, "
                f"{self._inside:.2f} s inside: are there threads or processes in the background?"
            )
        if self._inside > (1 + OUTSIDE) * self.cores * self._wall + ALLOWANCE:
            rule = "one core is the rule" if self.cores == 1 else f"a core for each of {self.cores} ranks is the rule"
            raise UnfairError(f"{self._inside:.2f} s of CPU time were used in {self._wall:.2f} s: {rule}")

    def expect_haste(self, other: _Side, control: Sequence[Pair]) -> None:
        """Raise UnfairError if time was lost on this side's account: blocks of both are planned equally long.

        The other side's time counts without the control, in which this one had no block.
        """
        theirs = other._spent - sum(pair.baseline.wall + pair.candidate.wall for pair in control)
        if self._spent > DAWDLING * theirs + PATIENCE:
            raise UnfairError(f"time was lost: its blocks took {self._spent:.1f} s, the baseline's {theirs:.1f} s")

    def _since(self) -> float:
        """Seconds of CPU time since this was asked last: none is left out, whether the box was frozen or not."""
        counted, self._counted = self._counted, self._worker.cpu_seconds()
        return self._counted - counted

    def _allow(self, inside: float, inputs: int) -> float:
        """Seconds of CPU time that a block of so many inputs, which took `inside` itself, may take to get ready."""
        grown = max(0, inputs * self._stream.bytes - self._room)
        self._room += grown
        allowed = OUTSIDE * inside + PER_INPUT * inputs + PER_BYTE * grown
        self._allowed += allowed
        return allowed

    def _sample(self, inputs: Sequence[Inputs]) -> list[tuple[int, wire.Array, dict[str, wire.Array]]]:
        """Some results, chosen now, and their inputs, as they lie in the shared file."""
        stream, worker = self._stream, self._worker
        chosen = [secrets.randbelow(len(inputs)) for _ in range(SAMPLE)]
        results = [worker.result(number, stream.slot, stream.like) for number in chosen]
        return [(n, result, worker.inputs_now(n)) for n, result in zip(chosen, results, strict=True)]

    def _verify(self, inputs: Inputs, result: wire.Array, now: Mapping[str, wire.Array]) -> None:
        for name, value in now.items():
            if value.tobytes() != inputs[name].tobytes():
                raise UnfairError(f"while it was timed, the function changed its input {name}")
        found = mismatch(result, self._stream.expected(inputs), self._stream.spec.tolerance)
        if found is not None:
            raise UnfairError(f"while it was timed, a result was wrong: {'; '.join(found.lines)}")
