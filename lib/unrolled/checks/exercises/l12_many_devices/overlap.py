"""Sums that travel while a backward pass goes on: layers that take modelled time, and when the ranks could be done."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, first_mismatch
from unrolled.checks.exercises.l12_many_devices.programs import kept_network, same_numbers
from unrolled.checks.mistakes import result
from unrolled.checks.spec import Inputs
from unrolled.device import Array
from unrolled.parallel import Communicator, Network


class Layer:
    """A rank's layer y = x @ weight, whose backward pass takes modelled time."""

    METHODS = ("backward",)  # what a judge lets a rank call

    def __init__(self, network: Network, rank: int, x: Array, weight: Array, seconds: float) -> None:
        self._network, self._rank, self._x, self._weight, self.seconds = network, rank, x, weight, seconds
        self.done = 0  # calls of `backward`
        self.number = 0  # its place among the rank's layers
        self.after: Layer | None = None  # the layer behind it, where there is one
        self._given: Array | None = None  # what `backward` got and gave, once it was called
        self._by_weight: Array | None = None

    def backward(self, grad: Array) -> tuple[Array, Array]:
        """Return the gradients by the weight (K, M) and by x (N, K), for the gradient by y (N, M)."""
        if np.shape(grad) != (len(self._x), self._weight.shape[1]):
            wanted = len(self._x), self._weight.shape[1]
            takes = f"layer {self.number} takes the gradient by its output y = x @ weight, {wanted}"
            raise ValueError(f"grad has shape {np.shape(grad)}; {takes}{self._why(grad)}")
        self._network.compute(self._rank, self.seconds)
        self.done += 1
        by_weight, by_x = self.gradients(grad)
        self._given, self._by_weight = grad.copy(), by_weight.copy()
        return by_weight, by_x

    def _why(self, grad: Array) -> str:
        """What may have gone wrong with a gradient that does not fit, by what the layer behind got and gave."""
        if self.after is None:
            return ""
        behind = f"layer {self.after.number}"
        given, by_weight = self.after._given, self.after._by_weight
        if given is None or by_weight is None:
            return f". {behind.capitalize()} has to come before it: go from the last layer to the first"
        if np.array_equal(grad, given):
            return f". {behind.capitalize()} got this one: pass on the gradient by x that it gave"
        if np.array_equal(grad, by_weight):
            return f". This is the gradient by the weight of {behind}: backward gives it first, and the one by x second"
        return ""

    def gradients(self, grad: Array) -> tuple[Array, Array]:
        """Return what `backward` does, in no time."""
        return self._x.T @ grad, grad @ self._weight.T


def overlapped_gradients(comm: Communicator, grad: Array, layers: Sequence[Layer]) -> list[Array]:
    """Return each layer's gradient, summed over ranks, for the gradient by the last layer's y."""
    pending = []
    for layer in reversed(layers):
        by_weight, grad = layer.backward(grad)
        pending.append(comm.start_all_reduce(by_weight))
    return [one.wait() for one in pending][::-1]


def layers(rng: np.random.Generator, uneven: bool = False) -> Inputs:
    """Draw layers of different widths, on two to seven ranks with samples of their own."""
    widths = rng.permutation(np.arange(2, 9))[: int(rng.integers(3 + uneven, 6))]
    weights = [rng.standard_normal(shape).astype(np.float32) for shape in pairwise(widths)]
    network = kept_network(int(rng.choice([2, 2, 2, 3, 7])), rng)
    arguments = []
    for rank in range(network.size):
        n = rng.integers(1, 6)
        given = [rng.standard_normal((n, width)).astype(np.float32) for width in widths]
        seconds = rng.uniform(10e-6, 30e-6, len(weights))  # about what a sum takes
        if uneven:  # who waits for a sum before the first layer's pass is late
            seconds[1:] /= 10
            seconds[0] += 200e-6
        own = [Layer(network, rank, *each) for each in zip(given[:-1], weights, map(float, seconds), strict=True)]
        for number, (layer, after) in enumerate(zip(own, [*own[1:], None], strict=True)):
            layer.number, layer.after = number, after
        arguments.append((given[-1], own))
    return {"network": network, "arguments": arguments}


def own_gradients(grad: Array, layers: Sequence[Layer]) -> list[Array]:
    """Return each layer's gradient for a rank's own samples, in no modelled time."""
    found = []
    for layer in reversed(layers):
        by_weight, grad = layer.gradients(grad)
        found.append(by_weight)
    return found[::-1]


def summed(inputs: Inputs) -> list[list[Array]]:
    """Return what each rank should have: each layer's gradients, summed over the ranks."""
    by_rank = (own_gradients(*arguments) for arguments in inputs["arguments"])
    return [[sum(own) for own in zip(*by_rank, strict=True)]] * len(inputs["arguments"])


TURNED = "layers.reverse() turns the list of who called round, too: reversed(layers) leaves it as it is"
NOT_CALLED = "the gradients are right, but not by one call of backward for each layer of each rank: that takes the time"

MISTAKES = (
    result(
        "these are the gradients of a rank's own samples: sum over ranks",
        lambda _, grad, layers: own_gradients(grad, layers),
    ),
    result("the list begins with the last layer: turn it round", lambda y: y[::-1]),
)


def judge(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Judge gradients by their values, what was summed for them, and the modelled time until the last rank had them."""
    network: Network = inputs["network"]
    for _, own in inputs["arguments"]:
        if [layer.number for layer in own] != list(range(len(own))):
            return Mismatch((TURNED,))
    if found := _each_layer(got, expected):
        return found
    by_layer = list(zip(*(own_gradients(*arguments) for arguments in inputs["arguments"]), strict=True))
    as_asked = (any(all(map(same_numbers, brought, own)) for own in by_layer) for brought in network.brought)
    if network.messages or len(network.brought) != len(by_layer) or not all(as_asked):
        said = ", ".join(f"{name} of {size} bytes" for name, size in network.collectives) or "nothing"
        return Mismatch.of(
            f"the gradients are right, but the network was asked for: {said}",
            "expected a start_all_reduce of each layer's own gradient, and nothing else that is sent",
        )
    if any(layer.done != 1 for _, own in inputs["arguments"] for layer in own):
        return Mismatch((NOT_CALLED,))
    needed = least_seconds(network, [arguments[1] for arguments in inputs["arguments"]], expected[0])
    if network.seconds > needed * (1 + 1e-9):
        return Mismatch.of(
            f"the gradients are right, but the ranks took {network.seconds * 1e6:.1f} us, modelled",
            f"{needed * 1e6:.1f} us are enough: begin each sum as soon as its layer's gradient is there, and wait for "
            "none before all have begun",
        )
    return None


def one_shape(lines: Sequence[str], inputs: Inputs) -> tuple[str, ...]:
    """Return what to say where ranks begin sums of different shapes: as those of gradients by x are."""
    begun = sum("calls start_all_reduce" in line for line in lines)
    return ("sum the gradient by the weight: it has one shape on all ranks, and backward gives it first",) * (begun > 1)


def least_seconds(network: Network, layers: Sequence[Sequence[Layer]], gradients: Sequence[Array]) -> float:
    """Return when the last sum can be done at the earliest, for the layers by rank: sums go one after another."""
    ready = [list(accumulate(layer.seconds for layer in reversed(own))) for own in layers]
    end = 0.0
    for number, gradient in enumerate(reversed(gradients)):
        begin = max(end, *(times[number] for times in ready))
        end = begin + network.link.all_reduce_seconds(gradient.nbytes, network.size)
    return end


def _each_layer(got: Any, expected: Any) -> Mismatch | None:
    for rank, (one, wanted) in enumerate(zip(got, expected, strict=True)):
        if not isinstance(one, list | tuple) or len(one) != len(wanted):
            return Mismatch((f"rank {rank}: expected a list of {len(wanted)} gradients, one for each layer",))
        both = enumerate(zip(one, wanted, strict=True))
        if found := first_mismatch((f"rank {rank}, layer {layer}", *gradients) for layer, gradients in both):
            helps = ("a sum that was begun: call .wait() on it",) if "_Pending" in found.lines[0] else ()
            return Mismatch.of(*found.lines, *helps)
    return None
