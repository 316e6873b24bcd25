"""A network of the learner's own, before its repair and after: both are trained here, on digits of the check's."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unrolled.checks.compare import Mismatch, Remark, agree
from unrolled.checks.exercises.l05_train_a_cnn.training import disguised_digits
from unrolled.checks.limits import cpu_clock
from unrolled.checks.spec import Function, Inputs
from unrolled.device import Array
from unrolled.timing.blocks import blas_threads

TRAIN, TEST, CLASSES = 256, 200, 10
TURNS = 6  # timed ones: each with digits that neither version has seen
SHORTEST = 0.005  # seconds of CPU time that training takes before its repair: with less, a clock says little about it
FASTER = 1.1  # times as fast, at least: less is no repair
LEARNED = 0.2  # of the test images that are right, at least, on average: a guess finds a tenth
TOLERANCE = 1e-2  # how far scores may be apart in most turns, relative to the largest one before the repair
ROUNDING = 0.05  # up to which they may be so by rounding, in any turn
VERSIONS = ("after", "before")
"""In the order of a turn: so what is kept of the repaired version's work can only make the other one faster."""


class Run(NamedTuple):
    """One training: of which version, in which turn, the scores of the test images, and CPU seconds."""

    version: str
    turn: int
    scores: Any
    seconds: float


def turns(rng: np.random.Generator) -> Inputs:
    """Draw digits in disguise for each turn, those of the first one for runs that are not timed."""
    return {"turns": [disguised_digits(rng, TRAIN, TEST) for _ in range(1 + TURNS)]}


def in_turns(function: Function, inputs: Inputs) -> list[Run]:
    """Return all runs: the first three of "after" alone, the last of these with another seed; then both, in turns."""
    clock, runs = cpu_clock(function), list[Run]()

    def run(version: str, turn: int, other: int = 0) -> None:
        given = inputs["turns"][turn]
        start = clock()
        scores = function(version, given["images"], given["labels"], given["test_images"], given["seeds"][other])
        runs.append(Run(version, turn, scores, clock() - start))

    with blas_threads(1):
        for other in (0, 0, 1):
            run("after", 0, other)
        for turn in range(1, 1 + TURNS):
            for version in VERSIONS:
                run(version, turn)
    return runs


def stand_in(version: str, images: Array, labels: Array, test_images: Array, seed: int) -> Array:
    """Stand for a network: one layer, and before its repair image by image."""
    x, tests = (each.reshape(len(each), -1) for each in (images, test_images))
    weight = np.random.default_rng(seed).standard_normal((x.shape[1], CLASSES)).astype(np.float32) / 100
    wanted = np.eye(CLASSES, dtype=np.float32)[labels]
    for _ in range(12):
        gradient = np.zeros_like(weight)
        for rows in np.array_split(np.arange(len(x)), 8 if version == "after" else len(x)):
            odds = np.exp(x[rows] @ weight)
            gradient += x[rows].T @ (wanted[rows] - odds / odds.sum(axis=1, keepdims=True))
        weight += gradient * np.float32(0.1 / len(x))
    return np.asarray(tests @ weight)


def compare(got: Sequence[Run], expected: Any, inputs: Inputs) -> Mismatch | Remark:
    """Ask for training, and for a repair that takes time away and changes nothing else; tell both times."""
    for run in got:
        if says := _strange(run.scores):
            return Mismatch((f'own_network("{run.version}", …) {says}',))
    first, again, other, *timed = got
    if not agree(again.scores, first.scores, TOLERANCE):
        return Mismatch(("the same call gives something else each time: draw everything from the seed, start anew",))
    if agree(other.scores, first.scores, 0):
        return Mismatch(("another seed gives the same: the network's weights come from the seed",))
    pairs = list(zip(timed[::2], timed[1::2], strict=True))
    if lines := _different(pairs):
        return Mismatch(lines)
    labels = {turn: given["test_labels"] for turn, given in enumerate(inputs["turns"])}
    right = float(np.mean([(run.scores.argmax(axis=1) == labels[run.turn]).mean() for run in timed]))
    if right < LEARNED:
        return Mismatch(
            (f"{right:.0%} of the test images are right, at least {LEARNED:.0%} are asked: train, or train longer",)
        )
    return _times([before.seconds for _, before in pairs], [after.seconds for after, _ in pairs], right)


def _times(before: Sequence[float], after: Sequence[float], right: float) -> Mismatch | Remark:
    """Judge the seconds of both versions, turn by turn: one of the turns may be disturbed."""
    slow, quick = statistics.median(before), statistics.median(after)
    if slow < SHORTEST:
        line = f"before takes {slow * 1e3:.2f} ms, which says little: train for {SHORTEST * 1e3:g} ms or longer"
        return Mismatch((line,))
    ratios = [one / max(other, 1e-9) for one, other in zip(before, after, strict=True)]
    gain = f"{statistics.median(ratios):.2g} times as fast"
    seconds = f"CPU time, medians: before {slow:.4f} s, after {quick:.4f} s, {gain}"
    if sorted(ratios)[1] < FASTER:
        line = f"{seconds}; at least {FASTER:g} times are asked, in every turn but one"
        return Mismatch((line, "sleeping takes no CPU time: repair what computes"))
    return Remark((f"{seconds}; {right:.0%} of the test images are right",))


def _different(pairs: Sequence[tuple[Run, Run]]) -> tuple[str, ...]:
    """Say where the scores of both versions are apart by more than is allowed, and by how much.

    The median of the turns counts: now and then, rounding moves a unit across 0, and the gradient of ReLU jumps.
    """
    apart = []
    for after, before in pairs:
        scale = max(float(abs(before.scores).max()), np.finfo(np.float32).tiny)
        apart.append(float(abs(after.scores.astype(np.float64) - before.scores).max()) / scale)
    if statistics.median(apart) <= TOLERANCE and max(apart) < ROUNDING:
        return ()
    line = (
        f"before and after give different scores, apart by {max(apart):.3%} of the largest; {TOLERANCE:.1%} is allowed"
    )
    if max(apart) < ROUNDING:
        return (line, "a different order of sums, or another precision? Rounding grows: train fewer steps")
    return (line, "a repair changes the time, and nothing else: the same batches, in the same order")


def _strange(scores: Any) -> str:
    """Say why these are no scores."""
    if not isinstance(scores, np.ndarray) or scores.dtype.kind != "f" or scores.shape != (TEST, CLASSES):
        what = "None" if scores is None else type(scores).__name__
        what += f" of shape {scores.shape}" if isinstance(scores, np.ndarray) else ""
        return f"gives {what}; return the scores of test_images, an array ({TEST}, {CLASSES}) of floats"
    return "" if np.isfinite(scores).all() else "gives NaN or infinity: what is timed has to be right"
