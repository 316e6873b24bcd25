"""Two layers that are split among ranks: the right program, and usual wrong ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.checks.exercises.l12_many_devices.judging import kept_network
from unrolled.checks.mistakes import Mistake, given
from unrolled.checks.spec import Inputs, normals
from unrolled.device import Array
from unrolled.parallel import Communicator, Network

BROUGHT = "what this rank's hidden units add to the result"
STAY = "hidden units stay where they are: call one all_reduce, of what the second layer gives"


def column_row_linear(
    comm: Communicator, x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array
) -> Array:
    """Return relu(x @ W1 + b1) @ W2 + b2 (N, M); this rank has columns of W1, b1's share, and rows of W2."""
    hidden = np.maximum(x @ weight1 + bias1, 0)
    return comm.all_reduce(hidden @ weight2) + bias2


def _layers(says: str, relu: bool = True, before: bool = False, after: bool = False, again: bool = True) -> Mistake:
    """Return the mistake of no ReLU, of a sum of hidden units over ranks before or after it, or of none at the end."""

    def program(comm: Communicator, x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array) -> Array:
        hidden = x @ weight1 + bias1
        hidden = comm.all_reduce(hidden) if before else hidden
        hidden = np.maximum(hidden, 0) if relu else hidden
        hidden = comm.all_reduce(hidden) if after else hidden
        y = hidden @ weight2
        return (comm.all_reduce(y) if again else y) + bias2

    return Mistake(says, program)


SUMMED = f"hidden units of different ranks are summed: {STAY}"

MISTAKES = (
    given("bias2 is in it once for each rank: add it after the sum", bias2=lambda comm, bias2: comm.size * bias2),
    _layers("each rank has its own terms only: sum over ranks", again=False),
    _layers("the ReLU between the layers is missing", relu=False),
    given("bias2 is missing: add it once, after the sum", bias2=lambda bias2: 0 * bias2),
    given(
        "the sum is divided by comm.size: the ranks' terms add up to the result",
        weight2=lambda comm, weight2: weight2 / np.float32(comm.size),
    ),
    _layers(SUMMED, before=True),
    _layers(SUMMED, before=True, again=False),
    _layers(SUMMED, after=True),
    _layers(SUMMED, after=True, again=False),
)


def stay(got: Any, network: Network) -> tuple[str, ...]:
    """Return what to say where something was gathered."""
    return (STAY,) if any(name == "all_gather" for name, _ in network.collectives) else ()


def stay_besides(lines: Sequence[str], inputs: Inputs) -> tuple[str, ...]:
    """Return what to say of an error where something was gathered: before, or in the line that raised it."""
    return (STAY,) if any("all_gather" in line for line in lines) else stay(None, inputs["network"])


def two_layers(rng: np.random.Generator, *widths: int) -> Inputs:
    """Draw two layers whose hidden units are shared out so."""
    n, k, m = rng.integers(2, 6, 3).tolist()
    shared = normals(rng, x=(n, k), bias2=(m,))
    own = [normals(rng, weight1=(k, w), bias1=(w,), weight2=(w, m)) for w in widths]
    arguments = [(shared["x"], *arrays.values(), shared["bias2"]) for arrays in own]
    return {"network": kept_network(len(widths), rng), "arguments": arguments}


def terms(x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array, ranks: int) -> list[Array]:
    """Return what a rank may bring to the sum: its term, with bias2 or its share of it or not."""
    term = np.maximum(x @ weight1 + bias1, 0) @ weight2
    return [term, term + bias2, term + bias2 / ranks]
