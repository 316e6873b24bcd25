# %% [markdown]
# # Many devices
#
# Lesson 12, about 90 minutes; 73 without the exercises marked *more*. After the exercise `ring_allreduce` is a good place
# for a break.
#
# **Afterwards you can**
#
# - write one program that runs on many ranks, whatever carries their messages;
# - say what a message costs, and when a second device makes a step slower;
# - share one step of training among ranks, so that they compute what one rank would;
# - split a layer, or a whole network, among devices that each hold a part of it.
#
# **You need** training (lesson 05): batch, gradient, step. No exercise needs an earlier one, or a second device.
#
# Are you coming back after a restart? Choose *Run All Above* first: later cells use what earlier ones define.

# %%
import time

import numpy as np

from unrolled import check, data, journal, nn, parallel, records, show

check.start("12_many_devices", "0.1.0")

rng = np.random.default_rng(0)
digits = data.digits()

# %% [markdown]
# ## One program, many ranks
#
# A seminar on fast software (Fixstars, 2022) names two ways to use many devices. Either each device has the whole
# network and some of the data: **data parallel**. Or each has a part of the network: **model parallel**.
#
# Either way all devices run the *same program*: **SPMD**, single program, multiple data. Each copy of it is a **rank**,
# and has a number. Ranks share no memory. They send arrays to one another, by means of `comm`.
#
# Here is such a program. Each rank brings its number, and an **all-reduce** gives the sum to all of them.


# %%
def hello(comm):
    mine = comm.module.full(1, comm.rank, dtype=np.float32)  # one number, on this rank's device
    total = comm.all_reduce(mine)
    return f"rank {comm.rank} of {comm.size}, {comm.engine}: the sum of all ranks is {float(total[0]):.0f}"


for said in parallel.emulate(hello, ranks=4):
    print(said)

# %% [markdown]
# What carries the messages is the **engine**. Here it is an emulation: four threads of one Python process, which take
# turns on one core. The links between them are only **modelled**.
#
# The same function can run in two processes, which are programs of their own, on a core each. Then the engine is MPI,
# the standard of supercomputers. Without MPI or a second core the next cell takes threads again, and says so.

# %%
said = parallel.run(hello, ranks=2)
print(*said, sep="\n")
if "mpi" not in said[0]:
    print("These were threads again. For processes: pip install mpi4py mpich cloudpickle, and two cores.")

# %% [markdown]
# Between GPUs the engine is NVIDIA's library NCCL. It carries arrays that lie on GPUs. `comm.module` is the library of
# such arrays: CuPy there, and NumPy with the other engines. So the same program runs on two GPUs, where there are two.

# %%
try:
    print(*parallel.run(hello, ranks=2, engine="nccl"), sep="\n")
except parallel.NoEngineError as error:
    print("No two GPUs here:", error)

# %% [markdown]
# What NCCL costs was recorded on two H200s, which are GPUs for data centres, in one machine.
#
# ## What a message costs
#
# A message of n bytes takes **alpha + beta · n** seconds. Alpha is what even an empty one costs. Beta is the time for
# one more byte. Here rank 0 sends three messages at once. The others receive them, each into an array of the same size.


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
# An all-reduce is several messages. In a ring of p ranks it is 2(p - 1), one after another, each a p-th of the array:
# two for two GPUs. Here are recorded all-reduces. Up to which size is it alpha that counts?

# %%
recorded = records.parallel()
sums = [row for row in recorded.rows.values() if row["section"] == "all_reduce" and "2 GPUs" in row["name"]]
for row in sums:  # peer_s: seconds of NCCL by itself
    print(f"{row['name']:62} {row['peer_s'] * 1e6:6.0f} us, {row['bytes'] / row['peer_s'] / 1e9:5.1f} GB/s")
print(recorded)

# %% [markdown]
# Up to 64 KiB the time hardly grows, and at 1 MiB alpha is still half of it. From there on beta counts. That is why
# programs put all gradients into one array before they sum it: as many small messages, each would cost its alpha.
#
# Now a guess. Source A's network trains on MNIST with batches of 8 (*Deep Learning Gaiden: GPU Programming*, 2020).
# Share each batch among 2 GPUs, then among 4. How many times as fast as on one GPU is a step? Below 1 is slower.

# %%
journal.predict("batch_8_on_two_gpus", ...)  # your guess
journal.predict("batch_8_on_four_gpus", ...)  # your guess

# %% [markdown]
# Two GPUs could be had for the record, and four could not. For four, a **model** has to do: no step is shorter than with
# two GPUs, and the all-reduce takes longer by what the links need for its further messages.

# %%


def seconds_of_a_step(batch, gpus, side="ours_s"):  # ours_s: with this course's library; peer_s: with PyTorch
    return recorded.figure(f"strong scaling, source A, batch {batch} in all, {gpus}", side)


eight, many, both = seconds_of_a_step(8, "1 GPU"), seconds_of_a_step(1024, "1 GPU"), seconds_of_a_step(8, "2 GPUs")
print(f"recorded, 1 GPU:  batch 8 takes {eight * 1e6:.0f} us a step, batch 1024 {many * 1e6:.0f} us")

network = nn.Sequential(
    *(nn.Conv2d(10, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Linear(100), nn.ReLU(), nn.Linear(10)),
    seed=0,
)
network.predict(digits.images[:1])  # builds it
size = network.parameters.nbytes
alone = recorded.figure("all_reduce, 1 MiB, 2 GPUs", "peer_s")
print(f"recorded, 2 GPUs: batch 8 takes {both * 1e6:.0f} us, which is {(both - eight) * 1e6:.0f} us more")
print(f"                  an all-reduce of 1 MiB takes {alone * 1e6:.0f} us (the gradient has {size / 2**20:.2f} MiB)")
link = parallel.LINKS["NVLink 4"]  # what joins H200s
further = link.all_reduce_seconds(size, ranks=4) - link.all_reduce_seconds(size, ranks=2)
print(f"modelled, 4 GPUs: the all-reduce takes {further * 1e6:.0f} us more than with 2")
four = both + further
journal.measured("batch_8_on_two_gpus", eight / both, where="recorded, 2 H200s")
journal.measured("batch_8_on_four_gpus", eight / four, where="modelled, 4 H200s, at best")
print(f"times as fast as one: two GPUs {eight / both:.2f}, recorded; four {eight / four:.2f} at best, modelled")
peers = [seconds_of_a_step(8, gpus, "peer_s") * 1e6 for gpus in ("1 GPU", "2 GPUs")]
print(f"PyTorch's DistributedDataParallel: {peers[0]:.0f} us on one GPU, {peers[1]:.0f} us on two, recorded")

# %% [markdown]
# On one GPU, 1024 images take no longer than 8. (In this record even less. Nobody has looked into why.) The GPU is not
# busy: it waits for its host to start one small piece of work after another. So a part of the batch takes as long as
# all of it, and nothing is gained by sharing it.
#
# And the second GPU costs hundreds of microseconds, where the sum itself takes some ten. Ranks also wait for one another,
# and for Python to start the sum. How much each of these takes was not recorded. PyTorch's own tool, in the last line,
# loses as much.
#
# ## The same step on all ranks
#
# Data parallel training keeps all ranks' weights equal. Each rank computes the gradient of its own samples, and one
# all-reduce makes of them the gradient of the whole batch. Then all take the same step. So n ranks learn what one rank
# would, but for rounding.
#
# There is a trap in it. Say one rank has six samples and the other has two. The mean of the two means is not the mean
# of the eight.
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
# Does it save time? The check has timed your function: two MPI ranks beside one, each with one BLAS thread, where two
# cores are there. Here is a step of a larger batch and a larger network. How many times as fast are two ranks?

# %%
journal.predict("two_ranks", ...)  # your guess


# %%
def seconds_a_step(comm, images, labels):
    mine = parallel.shard(len(images), comm.rank, comm.size)
    network = nn.Sequential(
        *(nn.Conv2d(10, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(100), nn.ReLU(), nn.Linear(10)),
        seed=0,
    )
    network.predict(images[:1])
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
# Two ranks on two cores can be about twice as fast at best. What is missing went into the sum, and into waiting for the
# slower rank. Where another program keeps a core busy, both ranks wait for it, and there may be no gain at all.
#
# ## Round the ring
#
# How does an all-reduce work inside? The first idea is that rank 0 collects everything, and sends the sum back. Then
# all bytes go through rank 0.
#
# In a **ring** each rank sends to the next one only. The array is cut into as many chunks as there are ranks. First
# each chunk goes round and collects its sum (**reduce-scatter**). Then the sums go round (**all-gather**). Here is the
# first round. Step on from it: what does each rank hold after half of the rounds?

# %%
show.ring_allreduce(4)

# %% [markdown]
# After half of the rounds each rank holds the sum of one chunk. With p ranks there are 2(p - 1) rounds. Each link
# carries 2(p - 1)/p · n bytes: never more than twice the array, however many ranks there are. But the rounds grow, and
# each costs an alpha. (Pitch Patarasuk and Xin Yuan, 2009.)
#
# ### Exercise: ring_allreduce
#
# **Core**, about 18 minutes.
#
# Sum all ranks' x over the ring, with `comm.send(x, to)` and `comm.receive(x, source)` alone. Receiving waits
# until something is there, and fills and returns the array that you give; sending never waits. The number of ranks
# need not divide the size of x: `np.array_split` makes chunks of about the same size, some perhaps empty. Leave x as
# it is.


# %% nbgrader={"grade": false, "grade_id": "ring_allreduce", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ring_allreduce(comm, x):
    """Return the sum (n,) of all ranks' x (n,), in a new array on each rank. About 9 lines."""
    ### BEGIN SOLUTION
    y = x.copy()
    chunks = np.array_split(y, comm.size)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
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
        told = []
        for name, program in (("through rank 0", through_rank_0), ("ring", ring)):
            links = parallel.Network(ranks, link="100 Gb/s network")
            parallel.emulate(program, np.ones(size, np.float32), network=links)
            received = sum(message.bytes for message in links.messages if message.to == 0)
            told.append(f"{name} {links.seconds * 1e6:4.0f} us {received:11,}")
        print(f"{size:9,} numbers, {ranks} ranks:", "   ".join(told))

# %% [markdown]
# With ten numbers alpha counts, and each further rank costs the ring two of them. With millions beta counts, and the
# ring is better. By the seconds alone, it hardly is so with eight ranks. But the model is kind to rank 0, which has a
# link of its own to every rank. Where all of them share one, as on a network card, the bytes that rank 0 gets decide:
# they grow with the ranks in the first program, and in the ring they stay below twice the array.
#
# Here two ranks want to receive before anything is sent.

# %%
try:
    parallel.emulate(lambda comm: comm.receive(np.empty(1), 1 - comm.rank), ranks=2)
except parallel.DeadlockError as error:
    print(error)

# %% [markdown]
# Each waits for the other: a **deadlock**. The emulation knows that nobody can go on, and says where each rank waits.
# On a real cluster such a program just hangs.
#
# ## Layers that are split
#
# If a network is too large for one device, data parallel does not help: each rank has all of it. Two dense layers can
# be split instead. Of the first weight, each rank has some **columns**, which make some of the hidden units. Of the
# second it has the **rows** for those units. (Mohammad Shoeybi and others, Megatron-LM, 2019.) How often do the ranks
# have to talk on the way forward?
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
# Or each device has some of the layers, one **stage**. Then a batch goes through one stage after another, and all
# others wait. So the batch is cut into **micro-batches**, which follow one another. In a **slot** of time a stage does
# one pass, forward or backward, for one of them. Move the sliders. How many micro-batches do four stages need so that
# less than a fifth of the slots is empty?

# %%
show.pipeline("gpipe", stages=4, micro_batches=8)

# %% [markdown]
# The empty slots are the **bubble**. With m micro-batches and p stages, m + p - 1 slots are enough for each direction,
# and a share of (p - 1)/(m + p - 1) is empty. A forward pass can begin in the slot after the stage before has done it.
# A backward pass comes from the stage after, and in the last stage it needs the forward pass there.
#
# ### Exercise: pipeline_schedule
#
# **Core**, about 10 minutes.
#
# Return any valid schedule of at most 2(m + p - 1) slots: a list for each stage, with `("F", i)` for the forward pass
# of micro-batch i, `("B", i)` for its backward pass, and None for an empty slot.


# %% nbgrader={"grade": false, "grade_id": "pipeline_schedule", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pipeline_schedule(stages, micro_batches):
    """Return a list of slots for each stage. About 7 lines."""
    ### BEGIN SOLUTION
    half = micro_batches + stages - 1
    rows = [[None] * (2 * half) for _ in range(stages)]
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
# takes turns instead, one forward and one backward. It needs no more slots, and holds less (Deepak Narayanan and
# others, PipeDream, 2019).

# %%
show.pipeline("1f1b", stages=4, micro_batches=8)

# %% [markdown]
# ### Exercise: lean_schedule
#
# **More**, about 12 minutes.
#
# The same, but stage s holds at most p - s micro-batches at a time. (Stages count from 0.)


# %% nbgrader={"grade": false, "grade_id": "lean_schedule", "locked": false, "schema_version": 3, "solution": true, "task": false}
def lean_schedule(stages, micro_batches):
    """Return a list of slots for each stage, where stage s holds at most `stages - s` micro-batches. About 6 lines."""
    ### BEGIN SOLUTION
    rows = [[None] * 2 * (micro_batches + stages - 1) for _ in range(stages)]
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
# before it are still computing. `comm.start_all_reduce(x)` begins one and returns at once; `.wait()` on what it
# returned gives the sum.
#
# ### Exercise: overlapped_gradients
#
# **More**, about 5 minutes.
#
# `layers` are a chain, and `grad` is the gradient by the last layer's output. `layer.backward(grad)` returns two
# gradients: by the layer's weight, and by its input. It takes modelled time. Return each layer's gradient by its weight,
# summed over ranks, in as little modelled time as can be.


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
# The lines below are modelled, the points were recorded. At first the lines are for the step of source B's network
# (*takataka's diary*, 2015; 256 channels, 512 images a GPU), whose points are on the right. Move alpha and beta. Then
# set the compute to source A's step, which the cell prints, and the gradient to a megabyte. Now the lines are for
# source A, and its points are filled. What does the left line promise that the record does not keep?

# %%
points = {
    section: [
        (row["gpus"], row["ours_s"], name)
        for row in recorded.rows.values()
        if row["section"] == section and ("batch 8 " in row["name"] or section == "weak")
    ]
    for section, name in (("strong", "source A, batch 8"), ("weak", "source B, 512 a GPU"))
}
for kind, rows in points.items():
    one = next(seconds for gpus, seconds, _ in rows if gpus == 1)
    for gpus, seconds, name in rows[1:]:
        gain = one / seconds * (gpus if kind == "weak" else 1)
        print(f"{kind:6} scaling, {name}: a step takes {one * 1e6:.0f} us on one GPU, recorded;")
        print(f"        {gpus} GPUs do {gain:.2f} times as much in the same time")
show.scaling_curves(
    compute=points["weak"][0][1], gradient=sums[-1]["bytes"], alpha=link.alpha, beta=link.beta, **points
)

# %% [markdown]
# The same two GPUs, and opposite answers. With 512 images for each, there is enough to compute between two messages.
# With four images for each, there is not. The left line promises that half of a batch takes half of the time.
#
# ## In your own words
#
# Answer in five to eight sentences.
#
# 1. Two GPUs were slower than one with batch 8, and faster with 512 images each. Why? Give both numbers.
# 2. Rank 0 has six samples and rank 1 has two. Why is the mean of their two gradients wrong, and what does one send
#    instead?
# 3. Which of the numbers in this lesson were modelled, and what did the model leave out?

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_the_ranks", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** With batch 8 a step on one GPU is mostly waiting for launches, which half of a batch does not make
# shorter, and the all-reduce and the waiting for the other rank come on top. So two GPUs are slower (the cell prints
# the factor). With 512 images each, computing takes much longer than the all-reduce, so two do nearly twice as much
# (the cell prints the factor). The mean of the means gives each of rank 1's two samples three times the weight of one
# of rank 0's. Each rank sends its sum and its count, and all divide by the count of all. Modelled were the four GPUs,
# the times of the emulated links and the lines of the scaling curves. The model of a link has only alpha and beta; it
# leaves out that ranks wait for one another, and what the host does.
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
