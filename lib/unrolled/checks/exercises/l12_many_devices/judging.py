"""How programs of many ranks are called, and what the network saw of them."""

from __future__ import annotations

from typing import Any

from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.spec import Compare, Function, Inputs
from unrolled.parallel import Network


def on_network(function: Function, inputs: Inputs) -> Any:
    """Call a program of ranks on the case's network; return the results by rank."""
    return function(inputs["network"], inputs["arguments"])


def by_rank(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Say what is wrong with the first rank whose result is, and which rank it is."""
    for rank, (one, wanted) in enumerate(zip(got, expected, strict=True)):
        if found := mismatch(one, wanted, 1e-4, {}):
            return Mismatch((f"rank {rank}: {found.lines[0]}", *found.lines[1:]), found.got, found.expected)
    return None


def all_reduces(size: str, numbers: Any) -> Compare:
    """Return a comparison that asks for one all-reduce, too, of at most numbers(inputs) numbers, `size` in words."""

    def judge(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
        network: Network = inputs["network"]
        if found := by_rank(got, expected, inputs):
            return found
        called = network.collectives
        if len(called) != 1 or "all_reduce" not in called[0][0] or network.messages:
            names = ", ".join(name for name, _ in called) or "none"
            return Mismatch(
                (
                    "the values are right, but one all_reduce is asked for, and nothing else that is sent",
                    f"the network carried {len(network.messages)} messages and these collective operations: {names}",
                )
            )
        most, summed = 4 * numbers(inputs), called[0][1]
        if not most - 4 <= summed <= most:  # too few: the values came another way than over the network
            return Mismatch((f"the values are right, but {summed} bytes were summed: {size} are {most}",))
        return None

    return judge


def through_a_ring(step: int) -> Compare:
    """Return a comparison of an all-reduce by its sums, and by what went over which link, in how many rounds.

    Rank r sends to rank r + step only.
    """

    def judge(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
        network: Network = inputs["network"]
        if network.collectives:
            return Mismatch((f"{network.collectives[0][0]} was called: only send and receive are allowed here",))
        return by_rank(got, expected, inputs) or _of_the_ring(network, step, len(inputs["arguments"][0][0]))

    return judge


def _of_the_ring(network: Network, step: int, size: int) -> Mismatch | None:
    """What is wrong with the messages of an all-reduce of `size` float32."""
    ranks = network.size
    for source, to in sorted(network.link_bytes):
        if to != (source + step) % ranks:
            return Mismatch(
                (
                    f"the sums are right, but rank {source} sent to rank {to}",
                    f"in the ring it sends to rank {(source + step) % ranks} only",
                )
            )
    most = 4 * 2 * (ranks - 1) * -(-size // ranks)
    link, sent = max(network.link_bytes.items(), key=lambda item: item[1], default=((0, 0), 0))
    if sent > most:
        return Mismatch(
            (
                f"the sums are right, but the link from rank {link[0]} to rank {link[1]} carried {sent} bytes",
                f"2 (p - 1) chunks of a p-th of the array are at most {most}: send one chunk in each round",
            )
        )
    all_sent, needed = sum(network.link_bytes.values()), 4 * 2 * (ranks - 1) * size
    if all_sent < needed:  # all ranks share a process: what did not come over the network was read there
        return Mismatch((f"the sums are right, but only {all_sent} bytes were sent: they take {needed}",))
    if network.rounds > 2 * (ranks - 1):
        return Mismatch((f"the sums are right, but took {network.rounds} rounds: 2 (p - 1) are {2 * (ranks - 1)}",))
    return None


def overlapped(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Judge gradients by their values, and by the order and the waiting of the all-reduces that summed them."""
    network: Network = inputs["network"]
    if found := _each_layer(got, expected):
        return found
    sizes = [4 * gradient.size for gradient in reversed(expected[0])]
    if [size for _, size in network.collectives] != sizes or any(
        name != "start_all_reduce" for name, _ in network.collectives
    ):
        said = ", ".join(f"{name} of {size} bytes" for name, size in network.collectives) or "nothing"
        return Mismatch(
            (
                f"the gradients are right, but the network was asked for: {said}",
                "expected a start_all_reduce for each layer, the last layer first, as its gradient is ready",
            )
        )
    if network.rounds > 2 * (network.size - 1):
        return Mismatch(
            (
                "the gradients are right, but each all-reduce began after the one before had ended",
                "begin all of them before you wait for the first",
            )
        )
    return None


def _each_layer(got: Any, expected: Any) -> Mismatch | None:
    for rank, (one, wanted) in enumerate(zip(got, expected, strict=True)):
        if not isinstance(one, list | tuple) or len(one) != len(wanted):
            return Mismatch((f"rank {rank}: expected a list of {len(wanted)} gradients, one for each layer",))
        for layer, (gradient, right) in enumerate(zip(one, wanted, strict=True)):
            if found := mismatch(gradient, right, 1e-4, {}):
                return Mismatch((f"rank {rank}, layer {layer}: {found.lines[0]}", *found.lines[1:]))
    return None
