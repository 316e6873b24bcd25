"""All-reduce round a ring: the program, usual wrong ones, what went over which link, and what a rank can know."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch
from unrolled.checks.exercises.l12_many_devices.programs import by_rank, kept_network
from unrolled.checks.mistakes import given, result
from unrolled.checks.spec import Compare, Inputs
from unrolled.device import Array
from unrolled.parallel import Communicator, Network


def ring_allreduce(
    comm: Communicator,
    x: Array,
    *,
    step: int = 1,
    first: int = 1,
    off: int = 0,
    keeps: bool = True,
    same: bool = False,
    half: bool = False,
) -> Array:
    """Return the sum of all ranks' x (n,), by 2 (p - 1) rounds of chunks that go round a ring: to rank r + step.

    A number `first` of the first round other than 1 calls the chunks otherwise, and the sums stay the same. The second
    half begins `off` rounds too late, which is wrong unless it is 0. Wrong, too: the second half adds (not `keeps`) or
    is missing (`half`), or what comes goes to the chunk that was sent in the `same` round.
    """
    y = x.copy()
    chunks = np.array_split(y, comm.size)
    middle = first + comm.size - 1
    rounds = [(k, True) for k in range(first, middle)]
    if not half:
        rounds += [(k + off, not keeps) for k in range(middle, middle + comm.size - 1)]
    for k, adds in rounds:
        comm.send(chunks[(comm.rank - step * k) % comm.size], (comm.rank + step) % comm.size)
        mine = chunks[(comm.rank - step * (k + (not same))) % comm.size]
        came = comm.receive(np.empty_like(mine), (comm.rank - step) % comm.size)
        mine[...] = mine + came if adds else came
    return y


def arrays(rng: np.random.Generator, ranks: int, size: int) -> Inputs:
    """Draw an array (size,) on each rank."""
    arguments = [(rng.standard_normal(size).astype(np.float32),) for _ in range(ranks)]
    return {"network": kept_network(ranks, rng), "arguments": arguments}


def through_a_ring(step: int) -> Compare:
    """Return a comparison of an all-reduce by its sums, and by what went over which link, in how many rounds.

    Rank r sends to rank r + step only.
    """

    def judge(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
        network: Network = inputs["network"]
        if network.collectives:
            return Mismatch((f"{network.collectives[0][0]} was called: only send and receive are allowed here",))
        arrays = np.stack([x for (x,) in inputs["arguments"]])
        if (wrong := by_rank(got, expected, inputs)) is None:
            return _of_the_ring(network, step, arrays)
        guesses = tuple(_of_the_links(network, step, "") or _of_the_terms(got, expected, arrays))
        return replace(wrong, lines=(*wrong.lines, *guesses), guesses=guesses)

    return judge


def _of_the_links(network: Network, step: int, so: str = "the sums are right, but ") -> tuple[str, ...]:
    for source, to in sorted(network.link_bytes):
        if to != (source + step) % network.size:
            ring = f"in the ring it sends to rank {(source + step) % network.size} only"
            return f"{so}rank {source} sent to rank {to}", ring
    return ()


def _of_the_terms(got: Any, expected: Any, arrays: Array) -> tuple[str, ...]:
    """What the first wrong number of the ranks' results holds instead: how often each rank's own one, or what else."""
    for rank, (found, sums) in enumerate(zip(got, expected, strict=True)):
        if np.shape(found) != sums.shape or not (wrong := np.flatnonzero(~np.isclose(found, sums, 0, NEAR))).size:
            continue
        place = int(wrong[0])
        name = f"x[{place}] on rank {rank}"
        for times in itertools.product(range(MOST_TIMES), repeat=len(arrays)):
            if abs(found[place] - times @ arrays[:, place].astype(np.float64)) < NEAR:
                held = ", ".join(f"rank {other}'s {count} times" for other, count in enumerate(times) if count != 1)
                return (f"{name} holds {held}: each belongs into it once",)
        if (other := np.flatnonzero(np.abs(sums - found[place]) < NEAR)).size:
            return (f"{name} holds the sum of x[{other[0]}]: a chunk is put into another one's place",)
        return (f"{name} holds numbers of other places, too: what comes is added to another chunk",)
    return ()


def _of_the_ring(network: Network, step: int, arrays: Array) -> Mismatch | None:
    """What is wrong with the messages of an all-reduce of the ranks' arrays (p, n), float32."""
    ranks, size = arrays.shape
    if lines := _of_the_links(network, step):
        return Mismatch(lines)
    most = 4 * 2 * (ranks - 1) * -(-size // ranks)
    link, sent = max(network.link_bytes.items(), key=lambda item: item[1], default=((0, 0), 0))
    if sent > most:
        return Mismatch.of(
            f"the sums are right, but the link from rank {link[0]} to rank {link[1]} carried {sent} bytes",
            f"2 (p - 1) chunks of a p-th of the array are at most {most}: send one chunk in each round",
        )
    all_sent, needed = sum(network.link_bytes.values()), 4 * 2 * (ranks - 1) * size
    if all_sent < needed:  # all ranks share a process: what did not come over the network was read there
        return Mismatch((f"the sums are right, but only {all_sent} bytes were sent: they take {needed}",))
    if network.rounds > 2 * (ranks - 1):
        return Mismatch((f"the sums are right, but took {network.rounds} rounds: 2 (p - 1) are {2 * (ranks - 1)}",))
    for rank, known in enumerate(known_sums(network, arrays, step)):
        if not known.all():
            return Mismatch.of(
                f"the sums are right, but rank {rank} cannot know that of x[{known.argmin()}] from what was sent to it",
                "ranks share no memory: send on the sum of what came and of this rank's own chunk",
            )
    return None


NEAR, MOST_TIMES = 1e-4, 4  # how close two sums of some normal numbers are that are the same; how often one is counted
HALF = "only the first half is done: one chunk of each rank is a sum of all"
OFF = "the second half begins one chunk off: each rank first sends on the chunk whose sum it has"
ADDS = "the second half adds, too: there what comes is the sum of all, and takes the place of the rank's own chunk"
SAME = "a round sends and receives the same chunk: what comes from the neighbour belongs to another one"

MISTAKES = (  # some count the first round as 1, as the picture does, and some as 0: other chunks are wrong then
    *(given(HALF, first=first, half=True) for first in (1, 0)),
    *(given(OFF, first=first, off=off) for first in (1, 0) for off in (1, -1)),
    *(given(ADDS, first=first, keeps=False) for first in (1, 0)),
    *(given(SAME, first=first, same=True) for first in (2, 1, 0)),
    result(
        "each rank has its own x: nothing was summed, or the sums never reached the array that you return",
        lambda _, x: x.copy(),
    ),
    result("this is the mean over ranks: an all-reduce is their sum", lambda y, comm: y / np.float32(comm.size)),
    result(
        "the last numbers are a rank's own: chunks of n // p leave them out, and np.array_split does not",
        lambda y, comm, x: np.append(y[: len(x) // comm.size * comm.size], x[len(x) // comm.size * comm.size :]),
    ),
)


def known_sums(network: Network, arrays: Array, step: int) -> Array:
    """Return (p, n) bools: of which elements each rank can know the sum of `arrays` (p, n), from what was sent to it.

    A rank knows its own numbers. It learns a number that it receives if that is the sum of an element over ranks one
    behind the other, the sender last, and if the sender knew it; then it knows the sum with its own number, too. What
    else a message holds, such as zeros to fill it up, teaches nothing.
    """
    ranks = len(arrays)
    behind = np.stack([np.roll(arrays, step * back, axis=0) for back in range(ranks)], axis=1)
    sums = behind.cumsum(axis=1, dtype=np.float64)  # (rank, j, element): over j + 1 ranks that end with this one
    near = 1e-5 * max(1.0, float(np.abs(sums).max(initial=0)))
    known = np.zeros(sums.shape, bool)
    known[:, 0] = True
    for message, content in zip(network.messages, network.contents, strict=True):
        numbers = np.asarray(content, np.float64).reshape(-1, 1, 1)
        learnt = known[message.source] & (np.abs(sums[message.source] - numbers) <= near).any(axis=0)
        known[message.to, 1:] |= learnt[:-1]
        known[message.to, -1] |= learnt[-1]
    return np.asarray(known[:, -1])
