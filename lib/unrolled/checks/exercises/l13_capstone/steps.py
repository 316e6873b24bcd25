"""A training step that a graph can hold, and an epoch of such steps; usual mistakes in both."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from unrolled import kernels
from unrolled.checks import graphs
from unrolled.checks.compare import Mismatch, agree, first_mismatch, mismatch
from unrolled.checks.domain import edge_size
from unrolled.checks.mistakes import given
from unrolled.checks.spec import Draw, Function, Inputs, draw_all, normal, normals
from unrolled.device import Array, array_module

MOMENTUM, FALLS, FIRST_RATE = 0.9, 0.99, 0.1
STEPS = 8  # of an epoch
MOST = 4  # of an epoch that is drawn
RESULTS = ("weight", "velocity", "rate")
KEPT = ("x", "target")
PLAIN_RATE = 0.05  # the fixed rate of `descend`, which has no rate of its own


def step(
    x: Array,
    target: Array,
    weight: Array,
    velocity: Array,
    rate: Array,
    error: Array,
    grad: Array,
    decayed: Array | None = None,
    *,
    frozen: float | None = None,
    mean: bool = True,
    decay: float = 0.01,
    momentum: float = MOMENTUM,
    falls: float = FALLS,
    sign: int = 1,
    early: bool = False,
    in_place: bool = True,
    stays: bool = False,
    torch: bool = False,
) -> None:
    """Take one step with momentum on half the mean squared error, in place; the rate (1,) falls after it.

    With a buffer for it, `decayed`, weight decay belongs to the gradient. Mistakes have a rate that never changes or
    falls too `early`, a sum for the mean, another momentum, another sign, a velocity that is not changed in place, a
    weight that `stays`, or PyTorch's momentum, which multiplies the velocity by the rate.
    """
    kernels.matmul(x, weight, out=error)
    error -= target
    kernels.matmul(x.T, error, out=grad)
    grad /= sign * (len(x) if mean else 1)
    if early:
        rate *= falls
    if decayed is not None:
        array_module(x).multiply(weight, decay, out=decayed)
        grad += decayed
    if not torch:
        grad *= rate if frozen is None else frozen
    velocity = velocity if in_place else velocity.copy()
    velocity *= momentum
    velocity -= -grad if torch else grad
    weight = weight.copy() if stays else weight
    weight += -rate * velocity if torch else velocity
    if not early:
        rate *= falls


FROZEN = given(
    "the rate is frozen at its first value: the graph keeps a Python number as it was when it was captured. "
    "Multiply by the array rate",
    frozen=FIRST_RATE,
)
FROZEN_IN_CAPTURE = given(
    "the rate is frozen at what it was in the capture, after one call: a counter of Python does not count "
    "launches. Keep what changes in an array",
    frozen=FIRST_RATE * FALLS,
)
A_SUM = given("the gradient is a sum over the samples: divide by len(x)", mean=False)
RATE_STAYS = given(
    "your rate did not change: it has to become 0.99 times as large after each step, in place (`rate = ...` makes a "
    "new local name)",
    falls=1,
)

STEP_MISTAKES = (
    FROZEN,
    FROZEN_IN_CAPTURE,
    A_SUM,
    given("velocity did not change: `velocity = ...` makes a new local name; write in place", in_place=False),
    given("the velocity keeps nothing of itself: 0.9 times the old one stays", momentum=0),
    given("the velocity keeps all of itself: 0.9 times the old one", momentum=1),
    given(
        "the momentum is missing: velocity becomes 0.9 times itself, less the rate times the gradient, and the "
        "weight moves by velocity",
        momentum=0,
        in_place=False,
    ),
    RATE_STAYS,
    given("weight did not change: `weight = ...` makes a new local name; write in place", stays=True),
    given(
        "this is PyTorch's momentum, whose velocity is a sum of gradients: here the rate is in the velocity, as in "
        "eager_step",
        torch=True,
    ),
    given("uphill: the gradient is subtracted from the velocity", sign=-1),
    given("the rate falls before the step: first the step, then the rate", early=True),
)


def under_capture(function: Function, inputs: Inputs) -> Any:
    """Return what weight, velocity and rate are after each launch of the captured step."""
    buffers = {name: value for name, value in inputs.items() if name != "batches"}
    return graphs.replayed(function, buffers, inputs["batches"], (*RESULTS, *KEPT))


def compare(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Compare launch by launch, and call the buffers by their names."""
    before = inputs["weight"]
    for launch, (own, wanted) in enumerate(zip(got, expected, strict=True), 1):
        for name, one, other in zip(KEPT, own[-2:], wanted[-2:], strict=True):
            if mismatch(one, other, 0):
                return Mismatch((f"your step changes {name}: it may write into error and grad, and read the batch",))
        names = (f"{name} after launch {launch}" for name in RESULTS)
        if found := first_mismatch(zip(names, own[:3], wanted[:3], strict=True)):
            moves = agree(own[0], before + own[1], 1e-4)
            guess = VELOCITY_OFF if moves else WEIGHT_OFF
            return Mismatch((*found.lines, guess), guesses=(guess,))
        before = own[0]
    return None


VELOCITY_OFF = "the weight moves by your velocity, as it should: look at what velocity (or the rate) becomes"
WEIGHT_OFF = "the weight does not move by what velocity is afterwards, once"


def any_buffers(rng: np.random.Generator) -> Inputs:
    """Draw buffers of any sizes, with batches for two launches and a rate that changes."""
    return draw_all(buffers(edge_size(rng, 8), edge_size(rng, 6), edge_size(rng, 5), launches=2, new_rate=True), rng)


def buffers(n: int, inputs: int, outputs: int, launches: int = 3, new_rate: bool = False) -> Inputs:
    """Return draws of the static buffers, and of the batches that are written into them before each launch.

    With `new_rate`, another rate is written before the last launch: the host changes its mind.
    """

    def batches(rng: np.random.Generator) -> list[dict[str, Array]]:
        drawn = [normals(rng, x=(n, inputs), target=(n, outputs)) for _ in range(launches)]
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


def descend(
    x: Array, target: Array, weight: Array, error: Array, grad: Array, rate: float | Array = PLAIN_RATE
) -> None:  # fmt: skip
    """Take one plain step on half the mean squared error, in place."""
    kernels.matmul(x, weight, out=error)
    error -= target
    kernels.matmul(x.T, error, out=grad)
    grad *= rate
    grad /= len(x)
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


def epoch(batch: int, inputs: int, outputs: int, *, steps: int = STEPS, images: int = 30) -> Inputs:
    """Return draws of images (M, K), targets, an order (S, N) of whole numbers and a weight."""
    return {
        "images": normal(images, inputs),
        "targets": normal(images, outputs),
        "order": Draw(lambda rng: rng.integers(0, images, (steps, batch))),
        "weight": normal(inputs, outputs),
    }


def any_epoch(rng: np.random.Generator) -> Inputs:
    """Draw an epoch of any sizes and 2 to `MOST` steps: so few that a graph may hold two."""
    batch, steps = edge_size(rng, 6), edge_size(rng, MOST, low=2)
    images = batch + int(rng.integers(6, 20))
    return draw_all(epoch(batch, edge_size(rng, 6), edge_size(rng, 6, low=4), steps=steps, images=images), rng)


def _stale(images: Array, targets: Array, order: Array, weight: Array, x: bool) -> Array:
    """Return the weight where of each batch either x or the targets are still those of the first rows."""
    weight, n = weight.copy(), order.shape[1]
    for rows in order:
        batch, wanted = (images[:n], targets[rows]) if x else (images[rows], targets[:n])
        weight -= batch.T @ (batch @ weight - wanted) * (PLAIN_RATE / n)
    return weight


TWICE = (
    "two steps are taken for each row of order: `captured` runs the program once itself, each time it is called. "
    "Capture once, before the loop"
)

EPOCH_MISTAKES = (
    given(
        "all steps are taken on the first batch: which rows come next has to be an array that the graph changes",
        order=lambda order: np.repeat(order[:1], len(order), axis=0),
    ),
    given(
        "the step of the run that warms up is in it, too: put the weight back before the first launch",
        weight=lambda images, targets, order, weight: eager(images, targets, order[:1], weight),
    ),
    given("the run that warms up moved the place on: put it back, too", order=lambda order: np.roll(order, -1, axis=0)),
    given(
        "a step too many is taken, on the first row again: a launch too many, or the weight and the place are both not "
        "put back after the run that warms up",
        order=lambda order: np.append(order, order[:1], 0),
    ),
    given("the images of a batch never reach x: take(images, rows[0], axis=0, out=x)", partial(_stale, x=True)),
    given("the targets never reach target: take(targets, rows[0], axis=0, out=target)", partial(_stale, x=False)),
    given("the place begins a row too early: fill it with 0", order=lambda order: np.roll(order, 1, axis=0)),
    given(
        "the place moves by two rows a step: add 1",
        order=lambda order: order[2 * np.arange(len(order)) % len(order)],
    ),
    given(
        "this is the weight before the first step. The graph writes into the array that it saw: after the capture "
        "use trained[...] = weight, as `trained = ...` makes another one. And launch the graph",
        order=lambda order: order[:0],
    ),
    given(TWICE, order=lambda order: np.concatenate([order, order])),
    given(TWICE, order=lambda order: np.repeat(order, 2, axis=0)),
    given(
        "only the first step is left: put the weight and the place back once, between the capture and the first launch",
        order=lambda order: order[:1],
    ),
    given(
        "the last step of an odd epoch is missing: a launch for each row of order",
        order=lambda order: order[: len(order) // 2 * 2],
    ),
    given(
        "always eight steps are taken, whatever order has: a launch for each of its rows",
        order=lambda order: order[np.arange(STEPS) % len(order)],
    ),
    given("the last step is missing: a launch for each row of order", order=lambda order: order[:-1]),
    given(
        "there is a step too many: a launch for each row of order", order=lambda order: np.append(order, order[-1:], 0)
    ),
)
