"""A training step that a graph can hold, in its wrong forms too, and an epoch of such steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled import kernels
from unrolled.checks import graphs
from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.spec import Draw, Function, Inputs, draw_all, normal
from unrolled.device import Array, array_module

MOMENTUM, FALLS, FIRST_RATE = 0.9, 0.99, 0.1
BUFFERS = ("x", "target", "weight", "velocity", "rate", "error", "grad")
RESULTS = ("weight", "velocity", "rate")
PLAIN_RATE = 0.05
"""The fixed rate of `descend`, which has no rate of its own."""


def step(
    x: Array, target: Array, weight: Array, velocity: Array, rate: Array, error: Array, grad: Array
) -> None:  # fmt: skip
    """Take one step with momentum on half the mean squared error, in place; the rate (1,) falls after it."""
    kernels.matmul(x, weight, out=error)
    error -= target
    kernels.matmul(x.T, error, out=grad)
    grad /= len(x)
    grad *= rate
    velocity *= MOMENTUM
    velocity -= grad
    weight += velocity
    rate *= FALLS


def wrong_step(
    frozen: float | None = None,
    mean: bool = True,
    momentum: float = MOMENTUM,
    falls: float = FALLS,
    sign: int = 1,
    early: bool = False,
    in_place: bool = True,
) -> Function:
    """Return the step with something wrong: a rate that never changes, a sum for the mean, another momentum."""

    def wrong(
        x: Array, target: Array, weight: Array, velocity: Array, rate: Array, error: Array, grad: Array
    ) -> None:  # fmt: skip
        kernels.matmul(x, weight, out=error)
        error -= target
        kernels.matmul(x.T, error, out=grad)
        if early:
            rate *= falls
        grad *= sign / (len(x) if mean else 1)
        grad *= rate if frozen is None else frozen
        velocity = velocity if in_place else velocity.copy()
        velocity *= momentum
        velocity -= grad
        weight += velocity
        if not early:
            rate *= falls

    return wrong


def without_momentum(
    x: Array, target: Array, weight: Array, velocity: Array, rate: Array, error: Array, grad: Array
) -> None:  # fmt: skip
    """Take a step along the gradient alone; the velocity stays as it is."""
    kernels.matmul(x, weight, out=error)
    error -= target
    kernels.matmul(x.T, error, out=grad)
    grad *= rate
    grad /= len(x)
    weight -= grad
    rate *= FALLS


def under_capture(function: Function, inputs: Inputs) -> Any:
    """Return what weight, velocity and rate are after each launch of the captured step."""
    return graphs.replayed(function, {name: inputs[name] for name in BUFFERS}, inputs["batches"], RESULTS)


def compare(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Compare launch by launch, and call the buffers by their names."""
    for launch, (parts, wanted) in enumerate(zip(got, expected, strict=True), 1):
        for name, part, value in zip(RESULTS, parts, wanted, strict=True):
            if found := mismatch(part, value, 1e-4):
                return Mismatch((f"{name} after launch {launch}: {found.lines[0]}", *found.lines[1:]))
    return None


def buffers(n: int, inputs: int, outputs: int, launches: int = 3, new_rate: bool = False) -> Inputs:
    """Return draws of the static buffers, and of the batches that are written into them before each launch.

    With `new_rate`, another rate is written before the last launch: the host changes its mind.
    """

    def batches(rng: np.random.Generator) -> list[dict[str, Array]]:
        drawn = [
            {
                name: rng.standard_normal((n, size)).astype(np.float32)
                for name, size in (("x", inputs), ("target", outputs))
            }
            for _ in range(launches)
        ]
        if new_rate:
            drawn[-1]["rate"] = np.array([rng.uniform(0.01, 0.05)], np.float32)
        return drawn

    return {
        "x": normal(n, inputs),
        "target": normal(n, outputs),
        "weight": normal(inputs, outputs),
        "velocity": normal(inputs, outputs),
        "rate": np.array([FIRST_RATE], np.float32),
        "error": np.full((n, outputs), 7, np.float32),
        "grad": np.full((inputs, outputs), 7, np.float32),
        "batches": Draw(batches),
    }


def any_buffers(rng: np.random.Generator) -> Inputs:
    """Draw buffers of any size, and a rate that changes."""
    n, inputs, outputs = (int(size) for size in rng.integers(2, 9, 3))
    return draw_all(buffers(n, inputs, outputs, launches=4, new_rate=True), rng)


def descend(x: Array, target: Array, weight: Array, error: Array, grad: Array) -> None:
    """Take one plain step on half the mean squared error, in place."""
    kernels.matmul(x, weight, out=error)
    error -= target
    kernels.matmul(x.T, error, out=grad)
    grad *= PLAIN_RATE / len(x)
    weight -= grad


def replayed(images: Array, targets: Array, order: Array, weight: Array) -> Array:
    """Return the weight (K, M) after a step on each row of order (S, N); on a GPU by one graph, launched S times."""
    xp, size = array_module(images), order.shape[1]
    if xp is np:
        return eager(images, targets, order, weight)
    stream = xp.cuda.Stream(non_blocking=True)
    stream.wait_event(xp.cuda.Stream.null.record())
    with stream:
        trained, place, rows = weight.copy(), xp.zeros(1, order.dtype), order[:1].copy()
        x, target = images[:size].copy(), targets[:size].copy()
        error, grad = xp.empty_like(target), xp.empty_like(weight)

        def one() -> None:
            xp.take(order, place, axis=0, out=rows)
            xp.take(images, rows[0], axis=0, out=x)
            xp.take(targets, rows[0], axis=0, out=target)
            descend(x, target, trained, error, grad)
            xp.add(place, 1, out=place)

        one()
        graph = graphs.captured(stream, one, {})
        trained[...] = weight
        place.fill(0)
        for _ in range(len(order)):
            graph.launch()
    xp.cuda.Stream.null.wait_event(stream.record())
    return trained


def eager(images: Array, targets: Array, order: Array, weight: Array) -> Array:
    """Return the same, with a trip through Python for each operation of each step."""
    weight = weight.copy()
    for rows in order:
        x = images[rows]
        error = x @ weight - targets[rows]
        weight -= x.T @ error * (PLAIN_RATE / len(x))
    return weight


def epoch(steps: int, batch: int, images: int, inputs: int, outputs: int) -> Inputs:
    """Return draws of images (M, K), targets, an order (S, N) of whole numbers and a weight."""
    return {
        "images": normal(images, inputs),
        "targets": normal(images, outputs),
        "order": Draw(lambda rng: rng.integers(0, images, (steps, batch))),
        "weight": normal(inputs, outputs),
    }


def any_epoch(rng: np.random.Generator) -> Inputs:
    """Draw an epoch of STEPS steps of any size."""
    batch, inputs, outputs = (int(size) for size in rng.integers(2, 7, 3))
    return draw_all(epoch(STEPS, batch, 30, inputs, outputs), rng)


STEPS = 40
