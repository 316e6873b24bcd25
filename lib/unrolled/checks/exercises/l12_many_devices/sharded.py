"""A step of momentum whose velocity is shared out among ranks: the program, usual wrong ones, and how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch
from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l12_many_devices.programs import by_rank, kept_network, same_numbers
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Inputs, normals
from unrolled.device import Array
from unrolled.parallel import Communicator, Network

Step = tuple[Array, Array]


def sharded_step(comm: Communicator, weight: Array, grad: Array, velocity: Array, rate: float, momentum: float) -> Step:
    """Return the new weight (n,), the same on each rank, and the new velocity (n / p,) of this rank's block of it."""
    size = len(velocity)
    velocity = momentum * velocity - rate * comm.reduce_scatter(grad)
    return comm.all_gather(weight[comm.rank * size :][:size] + velocity), velocity


def steps(rng: np.random.Generator, ranks: int, size: int) -> Inputs:
    """Draw a step on so many ranks, each of which has the velocity of `size` numbers."""
    weight = normals(rng, weight=(ranks * size,))["weight"]
    rate, momentum = float(rng.uniform(0.1, 0.9)), float(rng.uniform(0.5, 0.99))
    own = [normals(rng, grad=(ranks * size,), velocity=(size,)) for _ in range(ranks)]
    arguments = [(weight, *arrays.values(), rate, momentum) for arrays in own]
    return {"network": kept_network(ranks, rng), "arguments": arguments}


def any_step(rng: np.random.Generator) -> Inputs:
    """Draw a step on any ranks."""
    return steps(rng, edge_size(rng, 5), edge_size(rng, 6))


def _by(says: str, block: Callable[[Communicator, Array], Array], first: bool = False) -> Mistake:
    """Return the mistake of another gradient than the sum of this rank's block; or of the first block of the weight."""

    def program(comm: Communicator, weight: Array, grad: Array, velocity: Array, rate: float, momentum: float) -> Step:
        size = len(velocity)
        velocity = momentum * velocity - rate * block(comm, grad)
        return comm.all_gather(weight[0 if first else comm.rank * size :][:size] + velocity), velocity

    return Mistake(says, program)


def _pytorchs(comm: Communicator, weight: Array, grad: Array, velocity: Array, rate: float, momentum: float) -> Step:
    size = len(velocity)
    velocity = momentum * velocity + comm.reduce_scatter(grad)
    return comm.all_gather(weight[comm.rank * size :][:size] - rate * velocity), velocity


MISTAKES = (
    _by(
        "each rank steps by its own gradient: reduce_scatter gives this rank's block of the sum",
        lambda comm, grad: np.split(grad, comm.size)[comm.rank],
    ),
    _by(
        "all ranks take the first block of the weight: rank r's begins at r * n / p", Communicator.reduce_scatter, True
    ),
    given(
        "this is the mean of the ranks' gradients: the step goes by their sum", grad=lambda comm, grad: grad / comm.size
    ),
    given("the rate is missing: velocity = momentum * velocity - rate * gradient", rate=1.0),
    given("the old velocity is left out: velocity = momentum * velocity - rate * gradient", momentum=0.0),
    given("the step goes uphill: the gradient is subtracted", rate=lambda rate: -rate),
    given("these are the steps: the new weight is the old one and the step", weight=lambda weight: 0 * weight),
    Mistake("this is PyTorch's momentum: here the rate belongs into the velocity", _pytorchs),
    result(
        "the velocity has the other sign: the weight moves by + velocity",
        lambda y: (y[0], -y[1]),
        lambda comm, weight, grad, velocity, rate, momentum: sharded_step(
            comm, weight, grad, -velocity, rate, momentum
        ),
    ),
    result("the velocity that you return is the old one", lambda y, velocity: (y[0], velocity)),
)

ASKED = "expected one reduce_scatter of the gradients, then one all_gather of the ranks' blocks, and nothing else"
WHOLE = "all_reduce leaves the sum of all n numbers on each rank: a rank needs that of its own block"


def judge(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Judge a step by its values, by what was called, and by what each rank brought."""
    network: Network = inputs["network"]
    if found := by_rank(got, expected, inputs):
        return found
    called = [name for name, _ in network.collectives]
    if called != ["reduce_scatter", "all_gather"] or network.messages:
        names = ", ".join(called) or "nothing"
        more = (WHOLE,) if any("all_reduce" in name for name in called) else ()
        return Mismatch.of(
            f"the values are right, but these were called: {names}; and {len(network.messages)} messages sent",
            ASKED,
            *more,
        )
    for rank, (arguments, new) in enumerate(zip(inputs["arguments"], expected, strict=True)):
        own, gathered = (brought[rank] for brought in network.brought)
        if not any(same_numbers(own, term) for term in _summed(*arguments)):
            return Mismatch(
                (f"the values are right, but rank {rank} did not bring its own gradient to reduce_scatter",)
            )
        if not any(same_numbers(gathered, block) for block in _blocks(arguments[0], new, rank)):
            return Mismatch((f"the values are right, but rank {rank} did not bring its own block to all_gather",))
    return None


def _summed(weight: Array, grad: Array, velocity: Array, rate: float, momentum: float) -> Sequence[Array]:
    """What a rank may bring to the sum: its gradient, or the step by it alone."""
    return grad, -grad, rate * grad, -rate * grad


def _blocks(weight: Array, new: Step, rank: int) -> Sequence[Array]:
    """What a rank may bring to be gathered: its block of the new weight, or the step that leads there."""
    after, velocity = new
    return after[rank * len(velocity) :][: len(velocity)], velocity, -velocity


BLOCKS = "weight and grad have n numbers, velocity n / p: step with this rank's block of the weight and of the sum"


def blocks_besides(lines: Sequence[str], inputs: Inputs) -> tuple[str, ...]:
    """Return what to say of an error where a block met a whole array."""
    return (BLOCKS,) if any("broadcast" in line for line in lines) else ()
