"""Judging a repaired step: whose step it is, whether it computes the same, and how long it takes on a modelled T4."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from unrolled import device
from unrolled.checks import gpu
from unrolled.checks.compare import Mismatch, agree, mismatch
from unrolled.checks.exercises.l07_profiling import planted
from unrolled.checks.exercises.l07_profiling.planted import FACTORS, factor_of, made, source_of
from unrolled.checks.spec import Budget, Draw, Function, Inputs
from unrolled.device import Array

AT_LEAST = 5  # how many times as fast as the planted step the repaired one must be
BUDGET = Budget(transfers=0, synchronizations=0)
STAGES = {
    "fade": "the middle of each map should count more than its edge",
    "mirror": "every second map should be mirrored",
    "norm": "each channel should get mean 0 and width 1",
    "largest": "of each 16 neighbouring scores the largest should stay",
}
WITHOUT = {"fade": "    x = images.copy()\n", "largest": "    largest = scores.reshape(-1, 16)[:, 0]\n"}
"""What stands for a stage that is left out; else an empty line does."""

repaired = made(source_of({}, factor_of(0)), "")
"""The step without any bottleneck, of whoever has no id. Its source is not kept: nobody is shown it."""


def traced_call(function: Function, inputs: Inputs) -> tuple[Any, Any, Function]:
    """Return the result, the trace on the simulated GPU (elsewhere None), and the function."""
    module = device.array_module(inputs["images"])
    with gpu.traced(module if device.is_simulated(module) else np) as trace:
        result = function(**inputs)
    return result, trace, function


def maps_and_weight(*shapes: tuple[int, ...]) -> Inputs:
    """Return draws for feature maps and a weight of these shapes."""
    return {
        "images": Draw(lambda rng: planted.drawn(rng, *shapes)[0]),
        "weight": Draw(lambda rng: planted.drawn(rng, *shapes)[1]),
    }


SMALL = maps_and_weight((6, 3, planted.SIZE, planted.SIZE), (3 * planted.SIZE**2, 2 * planted.GROUP))
LARGE = maps_and_weight(*planted.SHAPES)


def same_and_faster(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Judge the result of a learner's step, and on the simulated GPU that nothing left it and it took a fifth."""
    result, trace, function = got
    clean = expected[0] / np.float32(factor_of(0))
    if (number := step_number(result, clean)) is None:
        if found := mismatch(result, clean, 1e-3):
            return Mismatch((*found.lines, *_advice(result, inputs)))
        return Mismatch(("the factor in the last line of your step is missing",))
    if found := mismatch(result, (factor_of(number) * clean).astype(clean.dtype), 1e-3):
        return found
    if trace is not None and (lines := gpu.overspent(trace, BUDGET, function)):
        return Mismatch(("the values are right, but not how they came about:", *lines))
    return None if trace is None else _too_slow(trace, number)


def step_number(result: Any, clean: Array) -> int | None:
    """Return which of the factors a result carries; None if it is not that of any learner's step."""
    if not isinstance(result, np.ndarray) or result.shape != clean.shape or result.dtype.kind != "f":
        return None
    large_enough = np.abs(clean) > 0.1 * np.abs(clean).max()
    factor = float(np.median(result[large_enough] / clean[large_enough]))
    number = round((factor - 1) * FACTORS) - 1 if np.isfinite(factor) and abs(factor) < 10 else -1
    return number if 0 <= number < FACTORS and agree(result, factor_of(number) * clean, 1e-3) else None


def _advice(result: Any, inputs: Inputs) -> tuple[str, ...]:
    """Say which stage was left out, if that is all that is wrong."""
    if result is None or isinstance(result, tuple):
        return ()
    for stage, says in STAGES.items():
        step = made(source_of({stage: WITHOUT.get(stage, "\n")}, 1.0), "<a step that lacks a stage>")
        if step_number(result, step(**inputs)) is not None:
            return (f"{says}: that stage is missing",)
    return ("compare, stage by stage, with the step that was planted for you: `received.step`",)


def _too_slow(trace: Any, number: int) -> Mismatch | None:
    """Say why this step is not fast enough; None if it is."""
    slow, seconds = planted_seconds(planted.kind_of(number)), warm_seconds(trace)
    if slow >= AT_LEAST * seconds:
        return None
    lines = [
        f"the values are right: this is the step with the factor {factor_of(number):.3f}. Now the time: as it came it "
        f"takes {slow * 1e6:,.0f} µs, yours {seconds * 1e6:,.0f} µs (modelled, {trace.profile})",
        f"that is {slow / seconds:.1f} times as fast; {AT_LEAST} times is asked",
    ]
    return Mismatch((*lines, *_longest(trace.launches, seconds)))


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
    """Return the seconds of a trace without waits and transfers, as if the pool had had all memory before.

    What the host spent on reserving memory is taken out, and the launches move up, one after the other.
    """
    from unrolled.simgpu.profiles import named

    host = named(trace.profile).host
    reserved = [event.time for event in trace.allocations if event.grew]
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
