# %% [markdown]
# # Many devices
#
# Lesson 12, about 90 minutes; 75 without the exercises marked *more*. After the exercise `ring_allreduce` is a good
# place for a break.
#
# **Afterwards you can**
#
# - write one program that runs on many ranks, whatever carries their messages;
# - say what a message costs, and when a second device makes a step slower;
# - share one step of training among ranks, and the optimizer's memory, so that they compute what one rank would;
# - split a layer, or a whole network, among devices that each hold a part of it.
#
# **You need** training (lesson 05): batch, gradient, step. No exercise needs an earlier one, or a second device.
#
# Are you coming back after a restart? Choose *Run All Above* first: later cells use what earlier ones define.

# %%
import time

import numpy as np

from unrolled import check, data, journal, nn, parallel, records, show

check.start("12_many_devices")

rng = np.random.default_rng(0)
digits = data.digits()

# %% [markdown]
# ## One program, many ranks
#
# A seminar on fast software (Fixstars, 2022) names two ways to use many devices. Either each device has the whole
# network and some of the data: **data parallel**. Or each has a part of the network: **model parallel**.
#
# Either way all devices run the *same program*: **SPMD**, single program, multiple data. Each copy of it is a **rank**,
# and has a number. Ranks share no memory: they send arrays to one another, by means of `comm`.
#
# Here is such a program. Each rank brings its number, and an **all-reduce** gives the sum to all of them.


# %%
def hello(comm):
    mine = comm.module.full(1, comm.rank, dtype=np.float32)  # one number, on this rank's device
    total = comm.all_reduce(mine)
    return f"rank {comm.rank} of {comm.size}, {comm.engine}: the sum of all ranks is {float(total[0]):.0f}"


for line in parallel.emulate(hello, ranks=4):
    print(line)

# %% [markdown]
# What carries the messages is the **engine**. Here it is an emulation: four threads of one Python process, which take
# turns on one core. The links between them are only **modelled**.
#
# The same function can run in processes of their own, on a core each. Then the engine is MPI, the standard of
# supercomputers. Between GPUs it is NVIDIA's library NCCL, and `comm.module` is CuPy, in place of NumPy. What NCCL
# costs was recorded on GPUs for data centres, several in one machine.

# %%
lines = parallel.run(hello, ranks=2)
print(*lines, sep="\n")
if "mpi" not in lines[0]:
    print("These were threads again. For processes: pip install mpi4py mpich cloudpickle, and two cores.")
try:
    print(*parallel.run(hello, ranks=2, engine="nccl"), sep="\n")
except parallel.NoEngineError as error:
    print("No two GPUs here:", error)

# %% [markdown]
# ## What a message costs
#
# A message of n bytes takes **alpha + beta · n** seconds. Alpha is what even an empty one costs, and beta the time for
# one more byte. Here rank 0 sends three messages at once, one to each of the others.


# %%
def three_messages(comm):
    sizes = 1_000, 100_000, 1_000_000
    if comm.rank == 0:
        for to, size in enumerate(sizes, 1):
            comm.send(np.zeros(size, np.uint8), to)
    else:
        comm.receive(np.empty(sizes[comm.rank - 1], np.uint8), 0)


links = parallel.Network(4, link="100 Gb/s network")
print(f"alpha {links.link.alpha * 1e6:.0f} us; beta {links.link.beta * 1e12:.0f} us for a megabyte")
parallel.emulate(three_messages, network=links)
show.messages(links.messages, "1 kB to rank 1, 100 kB to rank 2, 1 MB to rank 3")

# %% [markdown]
# The smallest message is nearly all alpha, and the largest mostly beta.
#
# An all-reduce is several messages, one after another. Here are recorded ones. The smallest is nearly all alpha, and
# the last column compares its time with that of each. Up to which size does alpha count?

# %%
recorded = records.parallel()
sums = [row for row in recorded.rows.values() if row["section"] == "all_reduce" and "2 GPUs" in row["name"]]
least = min(row["peer_s"] for row in sums)
for row in sums:  # peer_s: seconds of NCCL by itself
    us, rate = row["peer_s"] * 1e6, row["bytes"] / row["peer_s"] / 1e9
    print(f"{row['name']:62} {us:6.1f} us, {rate:5.1f} GB/s, the smallest takes {least / row['peer_s']:4.0%} of it")
print(recorded)

# %% [markdown]
# Where the last column is near 100 %, alpha counts; near 0, beta does. That is why programs put all gradients into one
# array before they sum it: as many small messages, each would cost its alpha. <!-- why: small messages -->
#
# Now a guess. Source A's network trains on MNIST with batches of 8 (*Deep Learning Gaiden: GPU Programming*, 2020).
# Share each batch among 2 GPUs, then among 4. How many times as fast as on one GPU is a step? Below 1 is slower.

# %%
journal.predict("batch_8_on_two_gpus", ...)  # your guess
journal.predict("batch_8_on_four_gpus", ...)  # your guess


# %%
def article_network():
    """Return source A's network, built for 28 x 28 pixels."""
    layers = nn.Conv2d(10, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(100), nn.ReLU()
    return nn.Sequential(*layers, nn.Linear(10), seed=0).build((1, 28, 28))


GPU = recorded.machine["gpu"].removeprefix("NVIDIA ")
steps = {  # recorded seconds of a step by batch and GPUs, with this course's library; peer_s would be PyTorch's
    (batch, row["gpus"]): row["ours_s"]
    for batch in (8, 1024)
    for row in recorded.rows.values()
    if row["name"].startswith(f"strong scaling, source A, batch {batch} in all")
}
network = article_network()
size = network.parameters.nbytes
alone = recorded.row("all_reduce, 1 MiB, 2 GPUs")
one, two, four, many = steps[8, 1], steps[8, 2], steps[8, 4], steps[1024, 1]
print(f"1 GPU:  a step of batch 1024, 128 times the work, takes {many / one:.2f} times as long as one of batch 8")
print(f"2 GPUs: a step of batch 8 takes {two * 1e6:.0f} us, {(two - one) * 1e6:.0f} us more than with 1")
issued = f"and {alone['host_s'] * 1e6:.0f} us of the host to start (the gradient has {size / 2**20:.2f} MiB)"
print(f"        a sum of 1 MiB takes {alone['peer_s'] * 1e6:.0f} us, {issued}")
journal.measured("batch_8_on_two_gpus", one / two, where=f"recorded, {GPU}")
journal.measured("batch_8_on_four_gpus", one / four, where=f"recorded, {GPU}")
print(f"times as fast as one GPU, recorded: two {one / two:.2f}, four {one / four:.2f}")
of_gpus = (f"strong scaling, source A, batch 8 in all, {gpus}" for gpus in ("1 GPU", "2 GPUs", "4 GPUs"))
peers = [recorded.figure(name, "peer_s") for name in of_gpus]
print(f"PyTorch's DistributedDataParallel:  two {peers[0] / peers[1]:.2f}, four {peers[0] / peers[2]:.2f}")

# %% [markdown]
# With 128 times as much to compute, a step takes about the same time. So it is not computing that takes it.
# <!-- why: not computing --> (Lesson 13 prints how long the GPU works in such a step, and how many launches it takes.
# Its own steps are of another record: with Adam, with batches to gather, on another host.) Half of a batch needs as
# many launches as all of it, so nothing is gained by sharing it. <!-- why: as many launches --> And the second GPU
# costs far more than the sum. What the rest of it is was not looked into: ranks also wait for one another.
# <!-- why: the second GPU -->
#
# ## The same step on all ranks
#
# Data parallel training keeps all ranks' weights equal. Each rank computes the gradient of its own samples, one
# all-reduce makes of them the gradient of the whole batch, and all take the same step. So n ranks learn what one rank
# would, but for rounding.
#
# There is a trap in it. If one rank has six samples and the other has two, the mean of the two means is not the mean of
# the eight.
#
# ### Exercise: data_parallel_step
#
# **Core**, about 10 minutes.
#
# The network is one layer: scores are x @ weight. Return the gradient by weight of the mean loss over **all** ranks'
# samples, the same on each rank. Call `comm.all_reduce` once, on every rank. `gradient_of_mean` below gives the
# gradient for one rank's samples. You may use {allows}.


# %%
def gradient_of_mean(weight, x, labels):
    """Return the gradient (K, M) by weight of the mean loss over x (N, K) with labels (N,), N above 0."""
    # body of unrolled.checks.exercises.l12_many_devices.programs.on_one_rank


# %% nbgrader={"grade": false, "grade_id": "data_parallel_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def data_parallel_step(comm, weight, x, labels):
    """Return the gradient (K, M) over all ranks, for this rank's x (N, K) and labels (N,). About 7 lines.

    One array may carry both the gradient and a count. A rank without samples (N is 0) sends zeros.
    """
    ### BEGIN SOLUTION
    total = np.zeros(weight.size + 1, np.float32)
    if len(x):
        total[:-1] = gradient_of_mean(weight, x, labels).ravel() * len(x)
    total[-1] = len(x)
    total = comm.all_reduce(total)
    return (total[:-1] / total[-1]).reshape(weight.shape)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_data_parallel_step", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.data_parallel_step(data_parallel_step)

# %%
images = digits.images[:50].reshape(50, -1)
weight = (rng.standard_normal((images.shape[1], 10)) * 0.05).astype(np.float32)
step = journal.mine("data_parallel_step")


def shared(comm, weight, images, labels):
    mine = parallel.shard(len(images), comm.rank, comm.size)  # this rank's rows
    return step(comm, weight, images[mine], labels[mine])


whole = parallel.emulate(shared, weight, images, digits.labels[:50], ranks=1)[0]
for ranks in (2, 3, 7):
    parts = parallel.emulate(shared, weight, images, digits.labels[:50], ranks=ranks)
    print(f"{ranks} ranks: at most {max(np.abs(part - whole).max() for part in parts):.1e} from one rank's gradient")

# %% [markdown]
# Does it save time? The check has timed your function, where two cores are there. Here is a step of a larger batch and
# network. How many times as fast are two ranks?

# %%
journal.predict("two_ranks", ...)  # your guess


# %%
def seconds_a_step(comm, images, labels):
    mine = parallel.shard(len(images), comm.rank, comm.size)
    network = article_network()
    times = []
    for _ in range(8):
        comm.barrier()
        start = time.perf_counter()
        parallel.gradients(comm, network, images[mine], labels[mine], len(images))
        times.append(time.perf_counter() - start)
    return comm.engine, float(np.median(times[2:]))


batch = digits.images[:1024], digits.labels[:1024]
together = parallel.run(seconds_a_step, *batch, ranks=2)
if together[0][0] == "mpi":
    alone = parallel.run(seconds_a_step, *batch, ranks=1, engine="mpi")[0][1]
    pair = max(seconds for _, seconds in together)
    print(f"one rank {alone * 1e3:.0f} ms, two ranks {pair * 1e3:.0f} ms: {alone / pair:.2f} times as fast")
    journal.measured("two_ranks", alone / pair)
else:
    print("These two ranks were threads that took turns, so there is no gain to measure here.")

# %% [markdown]
# Two ranks on two cores can be about twice as fast at best. The sum takes time, the faster rank waits for the slower
# one, and the cores share memory; how much each of these takes was not looked into. <!-- why: two ranks -->
#
# ## Round the ring
#
# How does an all-reduce work inside? The first idea is that rank 0 collects everything, and sends the sum back. Then
# all bytes go through rank 0.
#
# In a **ring** each rank sends to the next one only. The array is cut into as many chunks as there are ranks. First
# each chunk goes round and collects its sum (**reduce-scatter**). Then the sums go round (**all-gather**). Step on from
# the first round: what does each rank hold after half of the rounds?

# %%
show.ring_allreduce(4)

# %% [markdown]
# After half of the rounds each rank holds the sum of one chunk. With p ranks there are 2(p - 1) rounds. Each link
# carries 2(p - 1)/p · n bytes: never more than twice the array, however many ranks there are. But the rounds grow, and
# each costs an alpha. (Pitch Patarasuk and Xin Yuan, 2009.)
#
# ### Exercise: ring_allreduce
#
# **Core**, about 15 minutes.
#
# Sum all ranks' x over the ring, with `comm.send(x, to)` and `comm.receive(x, source)` alone. Receiving waits until
# something is there, and fills and returns the array that you give. Sending copies: it never waits, and you may change
# the array at once. (MPI's own `Send` promises only the second.) `np.array_split` makes chunks of about the same size,
# some perhaps empty. They are views: what you write into one is in y.


# %% nbgrader={"grade": false, "grade_id": "ring_allreduce", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ring_allreduce(comm, x):
    """Return the sum (n,) of all ranks' x (n,), in a new array on each rank. About 6 more lines."""
    y = x.copy()
    chunks = np.array_split(y, comm.size)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    ### BEGIN SOLUTION
    for k in range(1, 2 * comm.size - 1):
        comm.send(chunks[(comm.rank - k) % comm.size], right)
        mine = chunks[(comm.rank - k - 1) % comm.size]
        came = comm.receive(np.empty_like(mine), left)
        mine[...] = mine + came if k < comm.size else came
    return y
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_ring_allreduce", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.ring_allreduce(ring_allreduce)


# %%
def through_rank_0(comm, x):
    """The first idea: rank 0 sums, and sends back."""
    if comm.rank:
        comm.send(x, 0)
        return comm.receive(np.empty_like(x), 0)
    total = x + sum(comm.receive(np.empty_like(x), other) for other in range(1, comm.size))
    for other in range(1, comm.size):
        comm.send(total, other)
    return total


ring = journal.mine("ring_allreduce")
print("modelled seconds, and the bytes that rank 0 receives:")
for size in (10, 4_000_000):
    for ranks in (2, 4, 8):
        shown = []
        for name, program in (("through rank 0", through_rank_0), ("ring", ring)):
            links = parallel.Network(ranks, link="100 Gb/s network")
            parallel.emulate(program, np.ones(size, np.float32), network=links)
            received = sum(message.bytes for message in links.messages if message.to == 0)
            shown.append(f"{name} {links.seconds * 1e6:4.0f} us {received:11,}")
        print(f"{size:9,} numbers, {ranks} ranks:", "   ".join(shown))

# %% [markdown]
# With ten numbers alpha counts, and each further rank costs the ring two of them. With millions beta counts, and the
# ring is better, though with eight ranks it hardly is by the seconds alone. But the model is kind to rank 0, which has
# a link of its own to every rank. Where all of them share one, as on a network card, the bytes that rank 0 gets decide.
# In the first program they grow with the ranks, in the ring they stay below twice the array. <!-- why: ring -->
#
# Here two ranks want to receive before anything is sent.

# %%
try:
    parallel.emulate(lambda comm: comm.receive(np.empty(1), 1 - comm.rank), ranks=2)
except parallel.DeadlockError as error:
    print(error)

# %% [markdown]
# Each waits for the other: a **deadlock**. The emulation says where each rank waits. On a real cluster such a program
# just hangs.
#
# ## A share of the optimizer
#
# Each rank of a data parallel training keeps all weights, all gradients, and what the optimizer remembers: with Adam
# two more numbers a weight. But after half of the rounds a rank has the sum of its own chunk. It could update that
# chunk of the weights alone, and remember nothing of the others. Then weights go round, in place of sums. That is the
# first stage of **ZeRO** (Samyam Rajbhandari and others, 2019). The two halves are `comm.reduce_scatter(x)`, from (n,)
# to this rank's block (n/p,) of the sum, and `comm.all_gather(x)`, from (n/p,) to all blocks (n,) in the order of
# ranks.
#
# ### Exercise: sharded_step
#
# **Core**, about 5 minutes.
#
# Take a step of momentum: `velocity = momentum * velocity - rate * gradient`, and the weight moves by the velocity. The
# gradient is the sum of all ranks' `grad`. This rank has the velocity of its own block. Use each half once, and leave
# what comes in as it is. You may use {allows}: `weight[parallel.shard(n, comm.rank, comm.size)]` is this rank's block.


# %% nbgrader={"grade": false, "grade_id": "sharded_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sharded_step(comm, weight, grad, velocity, rate, momentum):
    """Return the new weight (n,), the same on each rank, and the new velocity (n/p,). About 3 lines.

    weight (n,) is the same on each of the p ranks; grad (n,) and velocity (n/p,) are this rank's. p divides n.
    """
    ### BEGIN SOLUTION
    # body of unrolled.checks.exercises.l12_many_devices.sharded.sharded_step
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_sharded_step", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.sharded_step(sharded_step)

# %%
remembers = sum(array.nbytes for array in nn.Adam().prepare(network.parameters))
ways = lambda comm, x: comm.all_reduce(x), lambda comm, x: comm.all_gather(comm.reduce_scatter(x))
print("            kB on each rank                         us, modelled")
print("ranks   weights and gradient   Adam   its share   all-reduce   the two halves")
for ranks in (1, 2, 4, 8):
    took = []
    for way in ways:
        links = parallel.Network(ranks, link="100 Gb/s network")
        parallel.emulate(way, np.ones(network.parameters.size // 8 * 8, np.float32), network=links)
        took.append(links.seconds * 1e6)
    line = f"{ranks:5}{2 * network.parameters.nbytes / 1e3:23.0f}{remembers / 1e3:7.0f}{remembers / ranks / 1e3:12.0f}"
    print(f"{line}{took[0]:13.0f}{took[1]:17.0f}")

# %% [markdown]
# The optimizer's memory shrinks with the ranks, and nothing more is sent: the two halves are the all-reduce.
# <!-- why: two halves --> ZeRO's later stages share out gradients and weights as well. The last one sends half as many
# bytes again, by the paper's count.
#
# ## Layers that are split
#
# If a network is too large for one device, data parallel does not help: each rank has all of it. But two dense layers
# can be split. Of the first weight each rank has some **columns**, which make some of the hidden units, and of the
# second the **rows** for those units. (Mohammad Shoeybi and others, Megatron-LM, 2019.) How often do the ranks have to
# talk on the way forward?
#
# ### Exercise: column_row_linear
#
# **Core**, about 5 minutes.
#
# Compute relu(x @ W1 + b1) @ W2 + b2. x and bias2 are the same on all ranks. weight1, bias1 and weight2 are this rank's
# parts. Call `comm.all_reduce` once.


# %% nbgrader={"grade": false, "grade_id": "column_row_linear", "locked": false, "schema_version": 3, "solution": true, "task": false}
def column_row_linear(comm, x, weight1, bias1, weight2, bias2):
    """Return (N, M) on each rank, for x (N, K), weight1 (K, H), bias1 (H,), weight2 (H, M), bias2 (M,). About 2 lines."""
    ### BEGIN SOLUTION
    # body of unrolled.checks.exercises.l12_many_devices.programs.column_row_linear
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_column_row_linear", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.column_row_linear(column_row_linear)

# %% [markdown]
# ReLU works on each hidden unit by itself. That is why nothing has to be sent between the layers.
#
# ## A pipeline
#
# Or each device has some of the layers, one **stage**. A batch goes through one stage after another, and all others
# wait. So the batch is cut into **micro-batches**, which follow one another. In a **slot** of time a stage does one
# pass, forward or backward, for one of them. Move the sliders. How many micro-batches do four stages need so that less
# than a fifth of the slots is empty?

# %%
show.pipeline("gpipe", stages=4, micro_batches=8)

# %% [markdown]
# The empty slots are the **bubble**. With m micro-batches and p stages, m + p - 1 slots are enough for each direction,
# and a share of (p - 1)/(m + p - 1) is empty. A forward pass can begin in the slot after the stage before has done it.
# A backward pass comes from the stage after, and in the last stage it needs the forward pass there.
#
# The picture draws both directions alike. But a backward pass is about twice a forward pass: a dense layer has one
# product on the way forward, and on the way back two of the same size, by the weight and by the input. Its slots are
# then twice as long, and the share of the bubble is the same. <!-- why: twice forward -->
#
# ### Exercise: pipeline_schedule
#
# **Core**, about 8 minutes.
#
# Return any valid schedule of at most 2(m + p - 1) slots: a list for each stage, with `("F", i)` for the forward pass
# of micro-batch i, `("B", i)` for its backward pass, and None for an empty slot.


# %% nbgrader={"grade": false, "grade_id": "pipeline_schedule", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pipeline_schedule(stages, micro_batches):
    """Return a list of slots for each stage. About 5 more lines."""
    half = micro_batches + stages - 1
    rows = [[None] * (2 * half) for _ in range(stages)]
    ### BEGIN SOLUTION
    for stage, row in enumerate(rows):
        for i in range(micro_batches):
            row[stage + i] = ("F", i)
            row[half + (stages - 1 - stage) + i] = ("B", i)
    return rows
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_pipeline_schedule", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.pipeline_schedule(pipeline_schedule)

# %% [markdown]
# Thirteen micro-batches, by the way: with twelve, exactly a fifth of the slots is empty.
#
# Each stage keeps what it needs for the way back, from a micro-batch's forward pass to its backward pass. With all
# forward passes first, as in **GPipe** (Yanping Huang and others, 2018), that is all of the micro-batches. **1F1B**
# takes turns instead, one forward and one backward. It needs no more slots, and holds less. PipeDream brought it
# (Deepak Narayanan and others, 2019), which never waits between batches, and so trains with weights of different ages.
# With a **flush** after each batch, as drawn here, it computes what one device would (Narayanan and others, 2020).

# %%
show.pipeline("1f1b", stages=4, micro_batches=8)

# %% [markdown]
# ### Exercise: lean_schedule
#
# **More**, about 10 minutes.
#
# The same, but stage s holds at most p - s micro-batches at a time. (Stages count from 0.)


# %% nbgrader={"grade": false, "grade_id": "lean_schedule", "locked": false, "schema_version": 3, "solution": true, "task": false}
def lean_schedule(stages, micro_batches):
    """Return a list of slots for each stage, where stage s holds at most `stages - s` micro-batches. About 5 more lines."""
    rows = [[None] * 2 * (micro_batches + stages - 1) for _ in range(stages)]
    ### BEGIN SOLUTION
    for stage, row in enumerate(rows):
        for i in range(micro_batches):
            row[stage + 2 * i] = ("F", i)
            row[2 * stages - 1 - stage + 2 * i] = ("B", i)
    return rows
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_lean_schedule", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.lean_schedule(lean_schedule)

# %% [markdown]
# ## Sums that travel while you compute
#
# Back to data parallel. The backward pass finds the last layer's gradient first. Its sum can travel while the layers
# before it are still computing. But above, all gradients went into one array, for the sake of alpha, and that is full
# only at the end. Between the two lie **buckets**: as soon as there are enough gradients for a message, its sum begins.
# PyTorch's take 25 MB (Shen Li and others, 2020); `parallel.fit` has `buckets=`.
#
# Here each layer is a bucket. `comm.start_all_reduce(x)` begins a sum and returns at once; `.wait()` on what it
# returned gives it.
#
# ### Exercise: overlapped_gradients
#
# **More**, about 5 minutes.
#
# `layers` are a chain, and `grad` is the gradient by the last layer's output. `layer.backward(grad)` returns two
# gradients: by the layer's weight, and by its input. It takes modelled time. Return each layer's gradient by its
# weight, summed over ranks, in as little modelled time as can be.


# %% nbgrader={"grade": false, "grade_id": "overlapped_gradients", "locked": false, "schema_version": 3, "solution": true, "task": false}
def overlapped_gradients(comm, grad, layers):
    """Return a list of gradients by the weights, the first layer's first. About 5 lines."""
    ### BEGIN SOLUTION
    # body of unrolled.checks.exercises.l12_many_devices.overlap.overlapped_gradients
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_overlapped_gradients", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.overlapped_gradients(overlapped_gradients)

# %% [markdown]
# ## How far does it go?
#
# **Strong scaling** shares one batch among more and more ranks. **Weak scaling** gives each rank a batch of its own.
# **Efficiency** is the speedup on p ranks, divided by p.
#
# The lines below are modelled, the hollow points were recorded. At first the lines are for the step of source B's
# network (*takataka's diary*, 2015; 256 channels, 512 images a GPU), whose points are on the right. Set the compute to
# source A's step, which the cell prints, and the gradient to a megabyte. Now the lines are for source A, whose points
# have their colour. What does the left line promise that the record does not keep?

# %%
points = {
    section: [
        (row["gpus"], row["ours_s"], name)
        for row in recorded.rows.values()
        if row["section"] == section and ("batch 8 " in row["name"] or section == "weak")
    ]
    for section, name in (("strong", "source A, batch 8"), ("weak", "source B, 512 a GPU"))
}
for batch in (8, 1024):
    alone, gains = steps[batch, 1], [f"{steps[batch, 1] / steps[batch, gpus]:.2f}" for gpus in (2, 4)]
    print(f"source A, batch {batch:4} in all: {alone * 1e6:.0f} us on one GPU; two and four:", *gains, "times as fast")
(_, alone, _), *others = points["weak"]
gains = [f"{gpus * alone / seconds:.2f}" for gpus, seconds, _ in others]
print(f"source B, 512 a GPU: {alone * 1e6:.0f} us on one GPU; two and four do", *gains, "times as much")
more, travel = others[0][1] - alone, sums[-1]["peer_s"]
print(f"    two take {more * 1e6:.0f} us more for a step than one; a sum of B's gradient takes {travel * 1e6:.0f} us")
row = recorded.row("weak scaling, source B, 256 channels, batch 512 a GPU, 2 GPUs")
print(f"    two with a sum beside the backward pass do {2 * alone / row['overlapped_s']:.2f} times as much")
link = parallel.LINKS["NVLink 4"]  # what joins these GPUs
show.scaling_curves(
    compute=points["weak"][0][1], gradient=sums[-1]["bytes"], alpha=link.alpha, beta=link.beta, **points
)

# %% [markdown]
# The same GPUs, and opposite answers. Is it the number of images? No: source A's network is slower on two GPUs with 4
# images on each, and with 512 on each. Computing is not what its time goes to, so sharing it gains nothing.
# <!-- why: none to share --> The left line promises that half of a batch takes half of the time. Source B's step takes
# longer on two GPUs by about what its sum takes, and that is a small part of it; a sum beside the backward pass takes
# less. <!-- why: about its sum -->
#
# ## In your own words
#
# Answer in five to eight sentences.
#
# 1. Two GPUs were slower than one with source A, also with 512 images on each, and did more with source B. Why? Give
#    both numbers.
# 2. Rank 0 has six samples and rank 1 has two. Why is the mean of their two gradients wrong, and what does one send
#    instead?
# 3. Which of the numbers in this lesson were modelled, and what did the model leave out?

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_the_ranks", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** Source A's step takes about as long with 8 images as with 1,024, so computing is not what it waits
# for, and sharing the images makes nothing shorter; the sum and the waiting for the other rank come on top. So two GPUs
# are slower (the cell prints the factor). Source B's step takes longer on two GPUs by about its sum, a small part of
# it, so two do nearly twice as much (the cell prints the factor). The mean of the means gives each of rank 1's two
# samples three times the weight of one of rank 0's. So each rank sends its sum and its count, and all divide by the
# count of all. Modelled were the times of the emulated links and the lines of the scaling curves. The model has only
# alpha and beta; it leaves out that ranks wait for one another, and what the host does.
#
# **Rubric** (3 points). One point: computing against messages (or launches), with both numbers. One point: sums and
# counts, since samples count equally. One point: names what was modelled, and something that the model leaves out.
# ### END SOLUTION

# %% [markdown]
# ## What you have

# %%
journal.guesses()

# %% [markdown]
# In three sentences: All ranks run one program, and each message that they send costs alpha + beta · bytes. Data
# parallel sums gradients, split layers sum activations, pipelines pass them on, and the result is that of one device.
# More devices help as long as each has enough to compute between two messages, so measure before you buy.
#
# ### Stretch: fewer rounds
#
# **More**, as long as you like.
#
# For ten numbers the ring has too many rounds. If the number of ranks is a power of two, they can sum in log2(p)
# rounds: in round k, each rank exchanges its whole array with the one whose number differs in bit k (**recursive
# doubling**). Write it. From how many numbers on is the ring better, on a modelled link of your choice?

# %%
# Your stretch. When your function is written, take away the # of the lines below and run.
#
# for size in (10, 1_000, 100_000, 1_000_000):
#     for program in (doubling, ring_allreduce):
#         links = parallel.Network(8, link="1 Gb/s Ethernet")
#         parallel.emulate(program, np.ones(size, np.float32), network=links)
#         print(f"{size:9,} {program.__name__:15} {links.seconds * 1e6:8.0f} us, {links.rounds} rounds, modelled")
