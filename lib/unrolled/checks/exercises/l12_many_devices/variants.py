"""The variant of lesson 12: a ring whose chunks go to the left."""

from functools import partial

from unrolled.checks.exercises.l12_many_devices import exercises, ring
from unrolled.checks.spec import variant

ring_allreduce_left = variant(
    exercises.ring_allreduce,
    reference=partial(ring.ring_allreduce, step=-1),
    hints=(
        exercises.ring_allreduce.hints[0],
        "Count rounds from 1. In round k, rank r sends chunk r + k to the left, and gets chunk r + k + 1 from the "
        "right. Before round p it adds what came to its own chunk. From then on it keeps what came, in place of its "
        "own. Numbers of chunks are modulo p. Send before you receive.",
        "y = x.copy()\n"
        "chunks = np.array_split(y, comm.size)  # views of y\n"
        "for k in range(1, 2 * comm.size - 1):\n"
        "    comm.send(chunks[(comm.rank + k) % comm.size], left)\n"
        "    mine = chunks[...]\n"
        "    came = comm.receive(np.empty_like(mine), right)\n"
        "    mine[...] = ... if k < comm.size else ...\n"
        "return y",
    ),
    compare=ring.through_a_ring(-1),
)
