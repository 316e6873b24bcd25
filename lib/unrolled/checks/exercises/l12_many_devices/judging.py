"""How programs of many ranks are called, and what the network saw of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, first_mismatch
from unrolled.checks.spec import Compare, Function, Inputs
from unrolled.device import Array
from unrolled.parallel import Network

Helps = Callable[[Any, Network], tuple[str, ...]]  # lines to say besides what is wrong, by results and network


def kept_network(ranks: int, rng: np.random.Generator) -> Network:
    """Return a network that keeps what is sent: ranks share a process, and a result may have come another way."""
    return Network(ranks, seed=int(rng.integers(2**31)), keep=True)


def on_network(function: Function, inputs: Inputs) -> Any:
    """Call a program of ranks on the case's network; return the results by rank."""
    return function(inputs["network"], inputs["arguments"])


def by_rank(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Say what is wrong with the first rank whose result is, and which rank it is."""
    return first_mismatch((f"rank {rank}", *both) for rank, both in enumerate(zip(got, expected, strict=True)))


def all_reduces(brings: str, terms: Callable[..., list[Array]], helps: Helps = lambda got, network: ()) -> Compare:
    """Return a comparison that asks for one all-reduce, too, of what each rank's own arguments give.

    terms(*arguments, ranks) are the arrays that a rank may bring, in any order of their numbers; `brings` says it.
    `helps` says more of what is wrong with the results or the calls.
    """

    def judge(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
        network: Network = inputs["network"]
        called = network.collectives
        if found := by_rank(got, expected, inputs):
            return replace(found, lines=(*found.lines, *helps(got, network)))
        if len(called) != 1 or "all_reduce" not in called[0][0] or network.messages:
            names = ", ".join(name for name, _ in called) or "none"
            return Mismatch.of(
                "the values are right, but one all_reduce is asked for, and nothing else that is sent",
                f"the network carried {len(network.messages)} messages and these collective operations: {names}",
                *helps(got, network),
            )
        for rank, brought in enumerate(network.brought[0]):
            own = terms(*inputs["arguments"][rank], network.size)
            if not any(same_numbers(brought, term) for term in own):
                return Mismatch.of(
                    f"the values are right, but not what rank {rank} brought to the sum: {brought.size} numbers",
                    f"expected {own[0].size}: {brings}",
                )
        return None

    return judge


def same_numbers(brought: Array, term: Array) -> bool:
    """Return whether two arrays hold the same numbers, to rounding and in any order."""
    if brought.size != term.size:
        return False
    one, other = (np.sort(np.asarray(array, np.float64), axis=None) for array in (brought, term))
    return bool(np.allclose(one, other, rtol=0, atol=1e-4 * max(1.0, float(np.abs(other).max(initial=0)))))
