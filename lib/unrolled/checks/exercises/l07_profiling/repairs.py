"""Judging a repaired step: whose step it is, whether it computes the same, and how long it takes on a modelled T4."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from unrolled import device
from unrolled.checks import gpu
from unrolled.checks.compare import Mismatch, Remark, agree, mismatch
from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l07_profiling import planted
from unrolled.checks.exercises.l07_profiling.planted import FACTORS, factor_of, made, source_of
from unrolled.checks.spec import Budget, Draw, Function, Inputs
from unrolled.device import Array

AT_LEAST = 5  # how many times as fast as the planted step the repaired one must be
MIDDLE = "middle = 1 - 0.2 * xp.abs(xp.arange(5, dtype=xp.float32) - 2)"
BUDGET = Budget(transfers=0, synchronizations=0)


def _normed(axes: str, width: str | None = "std") -> str:
    """Return a line that takes the mean and divides by the width over these axes."""
    line = f"x = x - x.mean(axis={axes}, keepdims=True)"
    return f"{line}; x = x / x.{width}(axis={axes}, keepdims=True)" if width else line


USUAL = (
    ("fade", "x = images.copy()", "the middle of each map should count more than its edge: that is missing"),
    ("fade", f"{MIDDLE}; x = images * middle", "the middle should count more in both directions, down a map as well"),
    ("mirror", "", "every second map should be mirrored: that is missing"),
    ("mirror", "x[::2] = x[::2, :, :, ::-1].copy()", "the other maps are mirrored: the second, the fourth, … should"),
    ("mirror", "x = x[:, :, :, ::-1].copy()", "all maps are mirrored: only the second, the fourth, … should"),
    ("mirror", "x[1::2] = x[1::2, :, ::-1].copy()", "mirrored the other way: left and right change places, axis 3"),
    ("mirror", "x[:, 1::2] = x[:, 1::2, :, ::-1].copy()", "every second channel is mirrored: every second map should"),
    ("norm", "", "each channel should get mean 0 and width 1: that is missing"),
    ("norm", _normed("(2, 3)"), "each map has its own mean and width in yours: they are of a channel, over all maps"),
    ("norm", _normed("(0, 1, 2, 3)"), "there is one mean and width for all in yours: each channel has its own"),
    ("norm", _normed("0"), "each place has its own mean and width in yours: they are of a whole channel"),
    ("norm", _normed("(0, 2, 3)", width=None), "the width is missing: divide by std"),
    ("norm", _normed("(0, 2, 3)", width="var"), "the width is std, the root of the variance, not var"),
    ("dense", "scores = x.reshape(n, -1) @ weight", "negative scores should become 0 (ReLU): that is missing"),
    ("largest", "largest = scores.reshape(-1, 16)[:, 0]", "of each 16 neighbouring scores the largest should stay"),
    ("largest", "largest = scores.reshape(-1, 16).mean(axis=1)", "the mean of each 16 scores: the largest should stay"),
)
"""A stage of the step, what may stand there instead of it, and what is said to whoever did the like."""

repaired = made(source_of({}, factor_of(0)), "")
"""The step without any bottleneck, of whoever has no id. Its source is not kept: nobody is shown it."""


def traced_call(function: Function, inputs: Inputs) -> tuple[Any, Any, Function]:
    """Return the result, the trace on the simulated GPU (elsewhere None), and the function."""
    module = device.array_module(inputs["images"])
    with gpu.traced(module if device.is_simulated(module) else np) as trace:
        result = function(**inputs)
    return result, trace, function


def _weight_of_both_signs(rng: np.random.Generator) -> Array:
    """Draw a weight with which, of two groups of scores, all of one are negative: a missing ReLU must show."""
    weight = planted.drawn(rng, (1,), (3 * planted.SIZE**2, planted.GROUP))[1]
    alike = weight[:, :1] * np.linspace(1, 2, planted.GROUP, dtype=np.float32)
    return np.hstack([weight, alike, -alike])


def any_maps(rng: np.random.Generator) -> Inputs:
    """Draw any number of maps and channels, and scores in some groups: with fewer, a factor can hide what is added."""
    maps, channels, groups = edge_size(rng, 7), edge_size(rng, 4), edge_size(rng, 5, 3)
    shape, rows = (maps, channels, planted.SIZE, planted.SIZE), channels * planted.SIZE**2
    return dict(zip(("images", "weight"), planted.drawn(rng, shape, (rows, groups * planted.GROUP)), strict=True))


SMALL: Inputs = {
    "images": Draw(lambda rng: planted.drawn(rng, (6, 3, planted.SIZE, planted.SIZE), (1,))[0]),
    "weight": Draw(_weight_of_both_signs),
}
LARGE: Inputs = {
    "images": Draw(lambda rng: planted.drawn(rng, *planted.SHAPES)[0]),
    "weight": Draw(lambda rng: planted.drawn(rng, *planted.SHAPES)[1]),
}


def same_and_faster(got: Any, expected: Any, inputs: Inputs) -> Mismatch | Remark | None:
    """Judge the result of a learner's step, and on the simulated GPU that nothing left it and it took a fifth."""
    result, trace, function = got
    clean = expected[0] / np.float32(factor_of(0))
    if (number := step_number(result, clean)) is None:
        if found := mismatch(result, clean, 1e-3):
            return Mismatch((*found.lines, *_advice(result, inputs)))
        return Mismatch(("the factor in the last line of your step is missing",))
    if found := mismatch(result, (factor_of(number) * clean).astype(clean.dtype), 1e-3):
        return found
    if trace is not None and (lines := gpu.overspent(trace, BUDGET, function, inputs)):
        return Mismatch(("the values are right, but not how they came about:", *lines, _times(trace, number)))
    return None if trace is None else _in_time(trace, number)


def step_number(result: Any, clean: Array) -> int | None:
    """Return which of the factors a result carries; None if it is not that of any learner's step."""
    if not isinstance(result, np.ndarray) or result.shape != clean.shape or result.dtype.kind != "f":
        return None
    large_enough = np.abs(clean) > 0.1 * np.abs(clean).max()
    factor = float(np.median(result[large_enough] / clean[large_enough]))
    number = round((factor - 1) * FACTORS) - 1 if np.isfinite(factor) and abs(factor) < 10 else -1
    return number if 0 <= number < FACTORS and agree(result, factor_of(number) * clean, 1e-3) else None


def _advice(result: Any, inputs: Inputs) -> tuple[str, ...]:
    """Say what was left out or done in another way, if that is all that is wrong."""
    if result is None or isinstance(result, tuple):
        return ()
    for stage, instead, says in USUAL:
        step = made(source_of({stage: f"    {instead}\n"}, 1.0), "<a step with a slip in it>")
        if step_number(result, step(**inputs)) is not None:
            return (says,)
    return ("compare it, comment by comment, with the step that you received: print(received.source)",)


def _times(trace: Any, number: int) -> str:
    """Say how long the step with this number took as it came, and how long this one does."""
    slow, seconds = planted_seconds(planted.kind_of(number)), warm_seconds(trace)
    return (
        f"as it came, the step with the factor {factor_of(number):.3f} takes {slow * 1e6:,.0f} µs, yours "
        f"{seconds * 1e6:,.0f} µs (modelled, {trace.profile}): {slow / seconds:.1f} times as fast (asked: "
        f"{AT_LEAST})"
    )


def _in_time(trace: Any, number: int) -> Mismatch | Remark:
    """Say how fast this step is; a mismatch if that is not enough."""
    seconds = warm_seconds(trace)
    if planted_seconds(planted.kind_of(number)) >= AT_LEAST * seconds:
        return Remark((_times(trace, number),))
    return Mismatch(("the values are right. Now the time:", _times(trace, number), *_longest(trace.launches, seconds)))


def _longest(launches: Sequence[Any], seconds: float) -> Iterator[str]:
    """Say what keeps the GPU busy longest, or that the host hands out too many launches in these seconds."""
    busy = sum(launch.seconds for launch in launches)
    if busy < seconds / 2:
        yield (
            f"{len(launches)} launches; the GPU is at work for {busy * 1e6:,.0f} µs of that time. The rest of it, it "
            "waits for the host, which hands out one launch after another: ask for fewer"
        )
        return
    calls: dict[tuple[str, str], list[float]] = defaultdict(list)
    for launch in launches:
        calls[launch.op, launch.dtype].append(launch.seconds)
    op, dtype = longest = max(calls, key=lambda each: sum(calls[each]))
    took = f"{sum(calls[longest]) * 1e6:,.0f} µs in {len(calls[longest])}"
    yield f"{len(launches)} launches; `{op}` in {dtype} keeps the GPU busy longest, {took}"


def warm_seconds(trace: Any) -> float:
    """Return the seconds of a trace as if the pool had had all memory before.

    What the host spent on reserving memory is taken out, and the launches move up, one after the other. (Where the host
    waits or copies they cannot all move up; then it is about right.)
    """
    from unrolled.simgpu.profiles import named

    host = named(trace.profile).host
    reserved = [event.time for event in trace.allocations if event.grew]
    if trace.transfers or trace.synchronizations:
        return float(trace.seconds - len(reserved) * (host["reserve"] - host["allocate"]))
    done = trace.start
    for launch in sorted(trace.launches, key=lambda launch: launch.issued):
        saved = sum(time < launch.issued for time in reserved) * (host["reserve"] - host["allocate"])
        done = max(done, launch.issued + launch.call - saved) + launch.seconds
    return float(done - trace.start)


@functools.cache
def planted_seconds(kind: str) -> float:
    """Return modelled seconds of the step with this bottleneck planted ("": none), on a T4; only shapes matter."""
    step = made(source_of(planted.PLANTED.get(kind, {}), 1.0), f"<the step with {kind}>" if kind else "")
    with gpu.connected() as module:
        images, weight = (module.asarray(x) for x in planted.drawn(np.random.default_rng(0), *planted.SHAPES))
        step(images, weight)  # so that the pool has its memory
        return float(traced_call(step, {"images": images, "weight": weight})[1].seconds)


def costs() -> dict[str, float]:
    """Return modelled seconds of the whole step, on a T4, with each of the bottlenecks and without any."""
    return {"none of them": planted_seconds("")} | {kind: planted_seconds(kind) for kind in planted.KINDS}
