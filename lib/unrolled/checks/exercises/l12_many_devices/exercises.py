"""Lesson 12: one step shared among ranks, sums round a ring, a share of an optimizer, split layers, and pipelines."""

from unrolled import ops
from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l12_many_devices import overlap, programs, ring, schedules, sharded
from unrolled.checks.spec import Draw, Spec, Speed, case, normal, random_case
from unrolled.parallel import pipeline, shard

data_parallel_step = Spec(
    reference=programs.data_parallel_step,
    allows=(ops.softmax_cross_entropy,),
    cases=[
        random_case("two ranks with 6 samples and 2", programs.samples, 6, 2),
        random_case("a rank without samples", programs.samples, 3, 0, 4),
    ],
    domain=random_case("any ranks and samples", programs.any_samples),
    points=2,
    hints=(
        "The mean over all samples is the sum over all samples, divided by how many there are. A rank with few samples "
        "counts for few. So send sums, and not means.",
        "A rank's sum is its mean gradient times len(x). How many samples there are in all, no rank knows: send the "
        "count along, as one more number behind the gradient. A rank without samples sends zeros.",
        "total = np.zeros(weight.size + 1, np.float32)\n"
        "if len(x): ...\n"
        "total[-1] = len(x)\n"
        "total = comm.all_reduce(total)\n"
        "return (total[:-1] / ...).reshape(weight.shape)",
    ),
    mistakes=programs.STEP_MISTAKES,
    compare=programs.all_reduces(programs.MEAN_BROUGHT, programs.gradient_and_count, programs.appended),
    call=programs.on_network,
    expected=programs.all_samples,
    ranks=True,
    # Two ranks can be twice as fast at most. So there is no room for honest answers at 1.5 T, nor for half of what the
    # reference reaches: T is what was asked for, and a machine that cannot show it excuses.
    speed=Speed(
        baseline=programs.on_one_rank,
        inputs={
            "weight": normal(256, 256),
            "x": normal(8192, 256),
            "labels": Draw(lambda rng: rng.integers(0, 256, 8192)),
        },
        at_least=1.6,
        against="one rank with all samples, two ranks with half of them each",
        advice="each rank should compute with its own samples only, in whole arrays, and send one array",
        ranks=2,
        share=programs.rows_of_rank,
    ),
)

ring_allreduce = Spec(
    reference=ring.ring_allreduce,
    cases=[
        random_case("three ranks, six numbers", ring.arrays, 3, 6),
        random_case("four ranks, ten numbers: chunks of 3 and 2", ring.arrays, 4, 10),
        random_case("seven ranks, three numbers: some chunks are empty", ring.arrays, 7, 3),
    ],
    new=True,
    domain=random_case("any ranks and numbers", lambda rng: ring.arrays(rng, edge_size(rng, 5), edge_size(rng, 60))),
    points=4,
    hints=(
        "Go round twice. In the first half each rank adds what it gets to a chunk of its own and passes that on, so "
        "each chunk collects its sum on the way. In the second half the sums go round.",
        "Count rounds from 1, as the picture does. In round k, rank r sends chunk r - k to the right, and gets chunk "
        "r - k - 1 from the left. Before round p it adds what came to its own chunk. From then on it keeps what came, "
        "in place of its own. Numbers of chunks are modulo p. Send before you receive.",
        "y = x.copy()\n"
        "chunks = np.array_split(y, comm.size)  # views of y\n"
        "for k in range(1, 2 * comm.size - 1):\n"
        "    comm.send(chunks[(comm.rank - k) % comm.size], right)\n"
        "    mine = chunks[...]\n"
        "    came = comm.receive(np.empty_like(mine), left)\n"
        "    mine[...] = ... if k < comm.size else ...\n"
        "return y",
    ),
    mistakes=ring.MISTAKES,
    compare=ring.through_a_ring(1),
    call=programs.on_network,
    ranks=True,
)

sharded_step = Spec(
    reference=sharded.sharded_step,
    allows=(shard,),
    cases=[
        random_case("four ranks with two numbers each", sharded.steps, 4, 2),
        random_case("three ranks with five numbers each", sharded.steps, 3, 5),
    ],
    domain=random_case("any ranks and numbers", sharded.any_step),
    points=2,
    hints=(
        "A rank that has the summed gradient of its own block can step there by itself. Only then does it need "
        "anything of the others: what their blocks have become.",
        "comm.reduce_scatter(grad) takes (n,) and gives (n / p,): block r of the sum, on rank r. The velocity is that "
        "of the same block, and so are n / p numbers of the weight. comm.all_gather puts all ranks' blocks together.",
        "size = len(velocity)\n"
        "mine = weight[comm.rank * size : ...]\n"
        "velocity = momentum * velocity - rate * ...\n"
        "return comm.all_gather(...), velocity",
    ),
    mistakes=sharded.MISTAKES,
    compare=sharded.judge,
    call=programs.on_network,
    crash_advice=sharded.blocks_besides,
    ranks=True,
)

column_row_linear = Spec(
    reference=programs.column_row_linear,
    cases=[
        random_case("two ranks with 3 hidden units each", programs.two_layers, 3, 3),
    ],
    domain=random_case(
        "any layers", lambda rng: programs.two_layers(rng, *(edge_size(rng, 5) for _ in range(edge_size(rng, 9))))
    ),
    points=2,
    hints=(
        "A hidden unit needs all of x, and its own column of the first weight: nothing has to be sent for it. What the "
        "second layer makes of it is one term of a sum over hidden units.",
        "Compute this rank's hidden units, ReLU included, multiply by its rows of weight2, and sum over ranks. bias2 "
        "belongs to the sum, and not to each of its terms.",
        "hidden = np.maximum(..., 0)\nreturn comm.all_reduce(...) + ...",
    ),
    mistakes=programs.SPLIT_MISTAKES,
    compare=programs.all_reduces(programs.TERM_BROUGHT, programs.terms, programs.stay),
    call=programs.on_network,
    expected=programs.whole_layers,
    crash_advice=programs.stay_besides,
    ranks=True,
)


ANY_SIZES = random_case("any sizes", schedules.any_size)
SIZES = [
    case("two stages, three micro-batches", stages=2, micro_batches=3),
    case("one stage", stages=1, micro_batches=4),
    case("six stages, eight micro-batches", stages=6, micro_batches=8),
]

pipeline_schedule = Spec(
    reference=pipeline.gpipe,
    cases=SIZES,
    domain=ANY_SIZES,
    points=2,
    hints=(
        "Micro-batch i reaches stage s after s other stages. So when can its forward pass begin there? The way back is "
        "the same, from the last stage on.",
        "With all forward passes first, stage s does the one of micro-batch i in slot s + i. The last stage ends in "
        "slot m + p - 2. Backward passes begin in slot m + p - 1, in stage p - 1, and each stage before is one later.",
        "rows = [[None] * (2 * (m + p - 1)) for _ in range(p)]\n"
        "for s in range(p):\n"
        "    for i in range(m):\n"
        '        rows[s][...] = ("F", i)\n'
        '        rows[s][...] = ("B", i)\n'
        "return rows",
    ),
    mistakes=schedules.MISTAKES,
    compare=schedules.judge,
)

lean_schedule = Spec(
    reference=pipeline.one_forward_one_backward,
    cases=SIZES,
    domain=ANY_SIZES,
    points=2,
    hints=(
        "A micro-batch's activations are held from its forward pass to its backward pass. So do its backward pass as "
        "soon as it can be done. The first one is back in stage s when p - s forward passes have been done there, so "
        "begin no more than these before.",
        "Stage s first does p - s forward passes. Then it takes turns, one backward and one forward, until no forward "
        "pass is left. Simulate: in each slot, each stage does its next piece if what that needs was done in a slot "
        "before.",
        "order = ...  # of stage s: F 0 to F p - s - 1, then B 0, F p - s, B 1, and so on\n"
        "while any(orders):\n"
        "    begun = [s for s in range(p) if orders[s] and ready(s, orders[s][0])]\n"
        "    for s in range(p):\n"
        "        rows[s].append(orders[s].pop(0) if s in begun else None)\n"
        "    done.update(...)",
    ),
    mistakes=schedules.LEAN_MISTAKES,
    compare=schedules.judge_memory,
)

overlapped_gradients = Spec(
    reference=overlap.overlapped_gradients,
    cases=[
        random_case("a first layer that takes longest", overlap.layers, uneven=True),
    ],
    domain=random_case("any layers", overlap.layers),
    points=2,
    hints=(
        "The gradient of the last layer is there first. Its sum can travel while the layers before it are computed, so "
        "begin it at once, and wait at the very end.",
        "Go through the layers from the last to the first. backward gives two gradients: the sum of the one by the "
        "weight begins at once, the other one goes on to the layer before. Keep what start_all_reduce gives, and wait "
        "for all of them after the loop.",
        "pending = []\n"
        "for layer in reversed(layers):\n"
        "    by_weight, grad = ...\n"
        "    pending.append(comm.start_all_reduce(...))\n"
        "return ...  # each one's wait(), the first layer first",
    ),
    mistakes=overlap.MISTAKES,
    compare=overlap.judge,
    call=programs.on_network,
    expected=overlap.summed,
    crash_advice=overlap.one_shape,
    ranks=True,
)
