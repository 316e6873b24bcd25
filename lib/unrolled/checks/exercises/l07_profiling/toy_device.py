"""A device that can be timed without one: a host clock, a queue, and layers that say how long they take.

The clock only moves when a layer is called or somebody waits, so every time is exact. A judge can keep the layers, the
clock and the waiting out of a function's reach: it calls them, and cannot bend them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, as_numbers
from unrolled.checks.domain import edge_size
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Function, Inputs
from unrolled.device import Array

ISSUE = 20e-6  # seconds that the host takes to give a layer's order to a GPU
Times = list[tuple[float, float]]


@dataclass
class ToyDevice:
    """`queued`: it is a GPU, which works on while the host goes ahead. Else the host does the work."""

    queued: bool
    host: float = 0.0
    done: float = 0.0
    readings: int = 0

    def work(self, seconds: float) -> None:
        """Do what a layer does when it is called."""
        self.host += ISSUE if self.queued else seconds
        if self.queued:
            self.done = max(self.done, self.host) + seconds

    def clock(self) -> float:
        """Read the host's clock, in seconds."""
        self.readings += 1
        return self.host

    def synchronize(self) -> None:
        """Let the host wait for the device."""
        self.host = max(self.host, self.done)


class ToyLayer:
    """A layer from x to y that computes nothing: it has its results, and takes so many seconds each way.

    It takes only what it is owed: forward `x`, which the layer before gave, backward the gradient that the one after
    gave. All values are drawn, so they tell in which order a batch went through the layers.
    """

    def __init__(self, device: ToyDevice, ways: Sequence[tuple[Array, Array]], seconds: tuple[float, float]) -> None:
        """Make a layer of what it takes and gives, forward and then backward, in `seconds` each way."""
        self._device, self._ways, self._seconds = device, ways, seconds
        self._trained = False

    def forward(self, x: Array, training: bool = False) -> Array:
        takes, gives = self._ways[0]
        if not _equal(x, takes):
            raise ValueError(
                f"this layer takes what the one before it gave, {takes.shape}, the first one x; got {_got(x, takes)}"
            )
        self._trained = bool(training)
        self._device.work(self._seconds[0])
        return gives.copy()

    def backward(self, grad: Array) -> Array:
        takes, gives = self._ways[1]
        if not self._trained:
            raise ValueError("backward needs a forward pass with training=True before it")
        if not _equal(grad, takes):
            raise ValueError(
                f"this layer's backward takes what the backward of the one after it gave, {takes.shape}, the last one "
                f"grad; got {_got(grad, takes, self._ways[0][1])}. First send x through all layers, then go from the "
                "last to the first, and pass on what each returns"
            )
        self._device.work(self._seconds[1])
        return gives.copy()


def _equal(got: Any, owed: Array) -> bool:
    return np.shape(got) == owed.shape and np.array_equal(got, owed)


def _got(got: Any, owed: Array, output: Array | None = None) -> str:
    """Say what a layer was given in place of what it is owed."""
    if output is not None and _equal(got, output):
        return "its own output"
    return "other values" if np.shape(got) == owed.shape else f"{np.shape(got)}"


def on_toy(
    rng: np.random.Generator, queued: bool, seconds: Sequence[tuple[float, float]] = (), waiting: float = 0.0
) -> Inputs:
    """Draw arguments of `time_layers`: layers that take these seconds, or any, for a batch of 4 rows.

    waiting: seconds of work that the device still has from before.
    """
    device = ToyDevice(queued, done=waiting)
    count = len(seconds) or edge_size(rng, 6)
    each = seconds or [(float(a), float(b)) for a, b in rng.uniform(1e-3, 9e-3, (count, 2))]
    widths = rng.permutation(np.arange(3, 30))[: count + 1]
    values, grads = ([rng.standard_normal((4, width), dtype=np.float32) for width in widths] for _ in range(2))
    layers = tuple(
        ToyLayer(device, ((values[i], values[i + 1]), (grads[i + 1], grads[i])), each[i]) for i in range(count)
    )
    arrays = {"x": values[0].copy(), "grad": grads[-1].copy()}
    return {"layers": layers, **arrays, "clock": device.clock, "synchronize": device.synchronize}


def any_toy(rng: np.random.Generator) -> Inputs:
    """Draw any number of layers, on a device that may still be at work."""
    return on_toy(rng, bool(rng.integers(0, 2)), waiting=float(rng.choice([0.0, 0.002])))


def timed(
    layers: Sequence[Any],
    x: Array,
    grad: Array,
    clock: Function,
    synchronize: Function,
    *,
    first: bool = True,
    after: bool = True,
    each: bool = True,
    before: bool = False,
) -> Times:
    """Return seconds (forward, backward) of each layer: what `time_layers` must give. Options are for mistakes.

    Waits: `first` before all, `after` each call, or `before` it with the clock running. `each`: the start is read anew.
    """
    if first:
        synchronize()
    start = clock()
    times: list[float] = []
    for layer in (*layers, *reversed(layers)):
        if before:
            synchronize()
        if len(times) < len(layers):
            x = layer.forward(x, True)
        else:
            grad = layer.backward(grad)
        if after:
            synchronize()
        now = clock()
        times.append(now - start)
        start = now if each else start
    return list(zip(times[: len(layers)], reversed(times[len(layers) :]), strict=True))


def _careless(way: int) -> Function:
    """Return what times the layers without a wait on their way forward (0) or backward (1) alone."""

    def wrong(**inputs: Any) -> Times:
        pairs = zip(timed(**inputs, after=False), timed(**inputs), strict=True)
        return [(unwaited[0], right[1]) if way == 0 else (right[0], unwaited[1]) for unwaited, right in pairs]

    return wrong


def _each_way(**inputs: Any) -> Times:
    """Count each time from the beginning of its way."""
    forward, backward = zip(*timed(**inputs), strict=True)
    back = list(accumulate(reversed(backward)))
    return list(zip(accumulate(forward), reversed(back), strict=True))


TIMING_MISTAKES = (
    given(
        "the clock was read without a wait: this is how long the host took to give the orders, not how long the GPU "
        "took. Call synchronize(), with its brackets, after each layer's work, before the clock is read again",
        after=False,
    ),
    given(
        "each layer pays for the one before it: you wait when the clock runs already, before the layer works. Call "
        "synchronize() after its work, before the clock is read again",
        after=False,
        before=True,
    ),
    given(
        "the first layer pays for work that was still going on before: call synchronize() before the first reading, "
        "too",
        first=False,
    ),
    Mistake("the forward times are read without a wait: call synchronize() after each layer's forward", _careless(0)),
    Mistake("the backward times are read without a wait: call synchronize() after each layer's backward", _careless(1)),
    given("all seconds are counted from the very beginning: read the clock anew before each layer", each=False),
    result(
        "the backward times are in the order in which they were measured: the last layer came first, so turn them "
        "round",
        lambda y: [(forward, backward) for (forward, _), (_, backward) in zip(y, reversed(y), strict=True)],
    ),
    Mistake("the seconds of one direction all count from its first layer: read the clock anew", _each_way),
    result("the last layer stands first: the order is that of `layers`", lambda y: y[::-1]),
    result(
        "yours are all forward times, then all backward ones: zip(forward, backward) makes a pair for each layer",
        lambda y: list(zip(*y, strict=True)),
    ),
    result("the backward times are 0: send grad back through the layers, too", lambda y: [(f, 0.0) for f, _ in y]),
    result("the times are negative: the end comes before the minus", lambda y: [(-f, -b) for f, b in y]),
    result("these are microseconds; seconds are asked", lambda y: [(1e6 * f, 1e6 * b) for f, b in y]),
    result("forward and backward are exchanged", lambda y: [(backward, forward) for forward, backward in y]),
    result("these are milliseconds; seconds are asked", lambda y: [(1e3 * f, 1e3 * b) for f, b in y]),
)

UNREAD = "clock() was never called: the time is told by the clock that you are given, not by the time module's"


def same_times(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Judge whether there is a pair of seconds for each layer, right within a thousandth of the whole."""
    count = len(expected)
    found = as_numbers(got, 1000)
    times = np.empty(0) if found is None else found.astype(np.float64)
    if times.shape != (count, 2):
        wrong = f"shape {times.shape}" if times.size else f"an object of type {type(got).__name__}"
        wrong = "None: is the return statement missing?" if got is None else wrong
        wrong += ": list(zip(...)) makes one of it" if isinstance(got, zip) else ""
        return Mismatch((f"expected a list of {count} pairs (forward, backward), one for each layer, got {wrong}",))
    if not inputs["clock"].__self__.readings:
        return Mismatch((UNREAD,))
    right = np.asarray(expected)
    wrong_at = np.argwhere(~(np.abs(times - right) <= 1e-3 * right.sum()))
    if not len(wrong_at):
        return None
    layer, way = wrong_at[0]
    lines = (
        f"layer {layer}, {('forward', 'backward')[way]}: got {times[layer, way] * 1e3:.3f} ms, expected "
        f"{right[layer, way] * 1e3:.3f} ms",
        f"your parts add up to {times.sum() * 1e3:.3f} ms, the whole takes {right.sum() * 1e3:.3f} ms",
    )
    return Mismatch(lines)
