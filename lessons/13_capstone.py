# %% [markdown]
# # Remove Python, then compare honestly
#
# Lesson 13, about 150 minutes; 120 without the exercise marked *more*. It is the capstone, for two sittings. Before
# *Time to accuracy* is a good place for a break.
#
# **Afterwards you can**
#
# - write a training step that a GPU repeats by itself, with no Python between its kernels;
# - train against the clock, and say when an epoch has stopped paying;
# - say what each cause gained, by turning the causes off one at a time;
# - state the bound of a network of your own, profile it, repair it, and profile it again.
#
# **You need** training (lesson 05), the port to a GPU (lesson 06) and profiling (lesson 07). No exercise needs your
# code from there, and none needs a GPU.
#
# Are you coming back after a restart? Choose *Run All Above* first: later cells use what earlier ones define.

# %%
import time

import numpy as np
from threadpoolctl import threadpool_limits

from unrolled import check, data, device, journal, kernels, nn, profile, records, show, simgpu, timing

check.start("13_capstone")

_ = threadpool_limits(1)  # as the checks measure
cp = device.gpu()
SIMULATED = device.is_simulated(cp)
print("the GPU is", "simulated: its times are modelled" if SIMULATED else "real")
digits = data.digits()
rng = np.random.default_rng(0)

# %% [markdown]
# ## Who keeps the GPU waiting?
#
# An epoch of the article's network took 30 minutes in NumPy, and 50 seconds on a GPU after a repair (*Deep Learning
# Gaiden: GPU Programming*, 2020). You have repaired nearly all that was slow in it. What is left? Here is a training
# step of that network from Python, as recorded on a GPU for data centres. All times of a step in this lesson come from
# that record; launches, and how long GPU and host work for them, from another one, of another day and for a batch that
# lies ready.

# %%
compared, counted = records.compiled(), records.gpu()
GPU = compared.machine["gpu"].removeprefix("NVIDIA ")
for size in (8, 128, 1024):
    row = counted.row(f"mnist step, batch {size}")
    eager = compared.figure(f"compiled step, batch {size}", "eager_s", 1e6)
    line = f"batch {size:4}: {eager:4.0f} us a step from Python; {row['launches']} launches, for which the GPU works"
    print(f"{line} {row['device_us']:.0f} us, and the host {row['host_us']:.0f} us")
print(compared)

# %% [markdown]
# The host works for longer than the GPU, so the GPU waits. <!-- why: the GPU waits --> What the host works at is
# Python: it looks up a function, checks shapes, makes an array, and hands over one kernel after the other. A **CUDA
# graph** ends that. The host records once what it would launch, and the GPU gets the whole list in a single call, again
# and again.
#
# Three guesses. A step of one dense layer is seven launches from Python here, and nine short kernels in a graph. How
# many times faster is the replayed graph than Python, on batches of 8 samples? And on batches of 1,024? Last, the whole
# network: how many times faster is its step at batch 8 as a graph of kernels that each do the work of several?

# %%
journal.predict("graph_at_8", ...)  # your guess
journal.predict("graph_at_1024", ...)  # your guess
journal.predict("network_at_8", ...)  # your guess

# %% [markdown]
# ## What a graph can hold
#
# While a stream is **capturing**, a launch is written down and not carried out. So three things change.
#
# - **Memory stays where it is.** The graph keeps addresses. A new array has no place in it: all arrays are made before,
#   and called **static buffers**. Results go into them with `out=` or in place.
# - **Nothing can be read.** No value exists yet. `float(x[0])`, `if x.max() > 1` and a wait raise an error. (Since CUDA
#   12.4 a graph can ask a value on the GPU what comes next. We do without.)
# - **Python's numbers are frozen.** Python runs once, in the capture. A number that it computes then stays as it was.
#
# And CuPy refuses to call cuBLAS in a capture, so `x @ weight` raises. The library has its own kernel for products of
# small matrices: `kernels.matmul(a, b, out)`. Here is a step of one layer with it, and a function that captures.

# %%
matmul = kernels.matmul


def descend(x, target, weight, error, grad):
    """One step of x @ weight towards target, by half the mean squared error. All arrays are there already."""
    matmul(x, weight, out=error)
    error -= target
    matmul(x.T, error, out=grad)
    grad *= 0.05 / len(x)
    weight -= grad


def captured(program, stream):
    """Run program() once, so that its kernels are compiled. Then capture it on the stream in use: return the graph."""
    program()
    stream.begin_capture()
    program()
    return stream.end_capture()


# %% [markdown]
# What is frozen? This graph adds a number that Python counts up, and one that lies on the GPU.

# %%
stream = cp.cuda.Stream(non_blocking=True)
stream.wait_event(cp.cuda.Stream.null.record())  # the stream starts when the work before it is done
with stream:
    by_python, by_gpu, ones, count = cp.zeros(1, "f4"), cp.zeros(1, "f4"), 0, cp.zeros(1, "f4")

    def count_up():
        global ones
        ones += 1
        cp.add(by_python, ones, out=by_python)
        cp.add(count, 1, out=count)
        cp.add(by_gpu, count, out=by_gpu)

    graph = captured(count_up, stream)
    for array in (by_python, by_gpu, count):
        array.fill(0)
    for _ in range(4):
        graph.launch()
stream.synchronize()
print(f"after four launches: {float(by_python[0]):.0f} with Python's number, {float(by_gpu[0]):.0f} with the GPU's")

# %% [markdown]
# 1 + 2 + 3 + 4 is 10. The graph added 2 each time: Python had counted to 2, once in the run that compiles and once in
# the capture. A learning rate that falls, or the step number in Adam, goes wrong in the same way, and nothing raises an
# error. The network just learns less well.
#
# ### Exercise: capturable_step
#
# **Core**, about 15 minutes.
#
# `eager_step` below is descent with momentum, and a rate that falls after each step. It makes arrays, it reads the rate
# and it calls cuBLAS. Write the same so that it can be captured: `error` and `grad` are buffers for you, and `rate` is
# an array (1,) that has to change on the GPU. The check captures your function once, and launches it on new batches.


# %%
def eager_step(x, target, weight, velocity, rate):
    error = x @ weight - target
    grad = x.T @ error / len(x)
    velocity[...] = 0.9 * velocity - float(rate[0]) * grad
    weight += velocity
    rate *= 0.99


# %% nbgrader={"grade": false, "grade_id": "capturable_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def capturable_step(x, target, weight, velocity, rate, error, grad):
    """Do what eager_step does to weight (K, M), velocity (K, M) and rate (1,). About 9 lines.

    x (N, K), target (N, M); error (N, M) and grad (K, M) hold anything, and may be overwritten. Returns nothing.
    """
    ### BEGIN SOLUTION
    matmul(x, weight, out=error)
    error -= target
    matmul(x.T, error, out=grad)
    grad /= len(x)
    grad *= rate
    velocity *= 0.9
    velocity -= grad
    weight += velocity
    rate *= 0.99
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_capturable_step", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.capturable_step(capturable_step)

# %% [markdown]
# The judge's graph runs without your Python. Whatever it still needs lies in the buffers: that is what *static* means.
#
# ## An epoch of launches
#
# The graph reads its batch from `x` and `target`. Who puts the next batch there? If Python does, it is back between the
# steps. So let the GPU count the steps, in an array `place` of one number. `xp.take(order, place, axis=0, out=rows)`
# fetches the row of `order` with that number. With that in the graph, all that is left for Python is to say *again*.
#
# ### Exercise: replayed_epoch
#
# **Core**, about 25 minutes.
#
# Take a step of `descend` on each row of `order`, by one graph. The buffers are there; write the program, capture it
# with `captured`, and launch it. Mind that `captured` runs the program once. At most {launches} launches a step are
# allowed, and the graph is one. (`place += 1` in a function makes a new local name. Use `xp.add(place, 1, out=place)`.)
#
# Launch it inside of `with stream:`. Outside, it goes to the default stream, which does not wait for yours: they
# **race**. The simulated GPU names both lines.


# %% nbgrader={"grade": false, "grade_id": "replayed_epoch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def replayed_epoch(images, targets, order, weight):
    """Return the trained weight (K, M): images (I, K), targets (I, M), order (S, N) of whole numbers. About 11 more lines.

    All arrays lie on the GPU. Leave `weight` as it is.
    """
    xp, size = device.array_module(images), order.shape[1]
    stream = xp.cuda.Stream(non_blocking=True)
    stream.wait_event(xp.cuda.Stream.null.record())
    with stream:
        trained, place = weight.copy(), xp.zeros(1, order.dtype)
        rows = order[:1].copy()  # (1, N): the batch is rows[0]
        x, target = images[:size].copy(), targets[:size].copy()
        error, grad = xp.empty_like(target), xp.empty_like(weight)
        ### BEGIN SOLUTION

        def program():
            xp.take(order, place, axis=0, out=rows)
            xp.take(images, rows[0], axis=0, out=x)
            xp.take(targets, rows[0], axis=0, out=target)
            descend(x, target, trained, error, grad)
            xp.add(place, 1, out=place)

        graph = captured(program, stream)
        trained[...] = weight
        place.fill(0)
        for _ in range(len(order)):
            graph.launch()
        ### END SOLUTION
    xp.cuda.Stream.null.wait_event(stream.record())
    return trained


# %% nbgrader={"grade": true, "grade_id": "check_replayed_epoch", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.replayed_epoch(replayed_epoch)

# %% [markdown]
# Speed needs a real GPU: at batch 8, the graph has to be at least {T} times as fast as Python. Without a GPU its points
# are deferred, not lost. Now look at both, with few steps. Move the first slider from Python to the graph. Before the
# gap in its row are the copies into the buffers and the run that compiles; the gap is the capture. Both are paid once,
# so six steps hardly gain by them. <!-- why: paid once --> Then come the steps, one close behind the other: the second
# slider shows *the last quarter*. A graph counts as one launch, and its kernels are drawn one by one; our own product
# is one of the "other" kernels.


# %%
def eager_epoch(images, targets, order, weight):
    """The same steps from Python."""
    weight = weight.copy()
    for rows in order:
        x = images[rows]
        error = x @ weight - targets[rows]
        weight -= x.T @ error * (0.05 / len(x))
    return weight


small = digits.images[:, 0].reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(digits), -1)
one_hot = np.eye(10, dtype=np.float32)[digits.labels]
images, targets, weight = cp.asarray(small), cp.asarray(one_hot), cp.zeros((small.shape[1], 10), "f4")
replay = journal.mine("replayed_epoch")
traces, order = {}, cp.asarray(rng.integers(0, len(small), (6, 8)))
if SIMULATED:
    for name, epoch in (("from Python", eager_epoch), ("one graph", replay)):
        epoch(images, targets, order, weight)  # the first time reserves memory
        with simgpu.trace() as trace:
            epoch(images, targets, order, weight)
        traces[name] = trace
show.launches(traces, "Six steps at batch 8") if traces else "a real GPU keeps no such trace"

# %%
for size in (8, 1024):
    order, seconds = cp.asarray(rng.integers(0, len(small), (200, size))), {}
    for epoch in (eager_epoch, replay):
        first = epoch(images, targets, order, weight)
        device.synchronize(first)
        start = device.clock(first)
        device.synchronize(epoch(images, targets, order, weight))
        seconds[epoch] = (device.clock(first) - start) / len(order)
    by_python, by_graph = seconds[eager_epoch], seconds[replay]
    gain, where = by_python / by_graph, f"modelled, {simgpu.profile().name}" if SIMULATED else None
    line = f"batch {size:4}: {by_python * 1e6:3.0f} us a step from Python, {by_graph * 1e6:3.0f} us by a graph"
    print(f"{line}: {gain:.1f} times as fast ({where or 'measured'})")
    journal.measured(f"graph_at_{size}", gain, where=where)

# %% [markdown]
# A modelled gain is a claim about a model. So look at a recorded one: steps of the article's network from Python, and
# as graphs of the library's own kernels.

# %%
for size in (8, 128, 1024):
    row = compared.row(f"compiled step, batch {size}")
    eager_us, graph_us = row["eager_s"] * 1e6, row["ours_s"] * 1e6
    most = eager_us / counted.row(f"mnist step, batch {size}")["device_us"]
    print(f"batch {size:4}: {eager_us:4.0f} us a step from Python, {graph_us:3.0f} us compiled:", end=" ")
    print(f"{eager_us / graph_us:.0f} times; {most:.1f} times without waiting")
    if size == 8:
        journal.measured("network_at_8", eager_us / graph_us, where=f"recorded, {GPU}")

# %% [markdown]
# With a larger batch the GPU works longer for each launch, and less is gained. <!-- why: longer launches --> But a
# graph makes no kernel faster, so it can gain no more than the last number of a line: a step that takes as long as the
# GPU works. Here much more was gained. Two causes act together: the graph, and kernels that do the work of several
# (fused, lesson 08). How much each of them gained was not looked into. <!-- why: graph and kernels -->
#
# ## The whole step, compiled
#
# `nn.compiled(network, optimizer, batch)` does for a whole network what you did for a layer. On a GPU it is one graph
# of the library's own kernels, which gathers its batches as yours does. On a CPU it works in buffers that are made
# once. It runs from Python what it cannot compile, and `reason` says why.


# %%
def article_network(dtype=np.float32):
    """Return the article's network, built for 28 x 28 pixels."""
    layers = nn.Conv2d(10, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(100), nn.ReLU()
    return nn.Sequential(*layers, nn.Linear(10), seed=0, dtype=dtype).build((1, 28, 28))


steps = nn.compiled(article_network(), nn.Adam(), 8)
losses = steps.epoch(digits.images, digits.labels, rng.permutation(len(digits)))
print(f"{len(losses)} steps, loss {losses[:20].mean():.2f} at first and {losses[-20:].mean():.2f} at last")
print("compiled" if steps.reason is None else f"from Python: {steps.reason}")

# %% [markdown]
# Faster than our own Python is an easy race. An honest comparison takes the best that others have: the same network,
# batch and precision, on the same GPU in the same run, and it first looks whether all find the same losses. JAX
# compiles an epoch into one program (`lax.scan`). PyTorch can replay a step as a CUDA graph, with its usual kernels or
# with those of `torch.compile`.

# %%
print("us a step                    ours     JAX   PyTorch, graph   torch.compile, graph   ours / JAX")
for name, row in compared.rows.items():
    if "peer_s" in row:
        ours, jax, graph, both = (row[side] * 1e6 for side in ("ours_s", "peer_s", "torch_graph_s", "torch_compiled_s"))
        print(f"{name:25}{ours:8.0f}{jax:8.0f}{graph:17.0f}{both:23.0f}{row['ratio']:13.2f}")

# %% [markdown]
# What does the table not say? It is one kind of GPU, and two networks. The others compile nearly any program; ours
# knows a few layers. And look for the row with the smallest lead: source B is the network of *takataka's diary* (2015)
# for CIFAR-10, with many more channels. None of the four has Python in a step, so what is compared are kernels and the
# gaps between them. Which of the two makes a lead was not looked into. <!-- why: a lead -->
#
# ## What was it that helped?
#
# Thirty minutes became 50 seconds, and Keras, with batches of 128, took 4 seconds. The article's table mixes hardware,
# code, batch and library. Whoever wants to know what a cause gained turns off **that cause alone**, with all the others
# on. That is called an **ablation**.
#
# Why not one after the other? Because causes interact. If everything waits for the host, a faster kernel gains nothing;
# once the host is out of the way, it shortens the step. So say what else was on. And **refactor** before you speed up,
# says the seminar on fast software (Fixstars, 2022): a part that can be turned off alone has to be a part first.
#
# And a machine's times wander: the first run of a setting is slow, some are disturbed, and a laptop that gets warm
# slows down. So take the ratio of two runs that follow each other, do it several times, and take the median.
#
# ### Exercise: ablation
#
# **Core**, about 15 minutes.
#
# `run()` returns the seconds with everything on, `run(batch=False)` those without the cause "batch". Return by cause
# how many times longer a run takes without it. The check's first machines have a drift, a slow first run and disturbed
# ones. The last does real work, and is measured again after you.


# %% nbgrader={"grade": false, "grade_id": "ablation", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ablation(run, causes):
    """Return a dictionary from each of `causes` (a list of names) to its factor. About 6 lines."""
    ### BEGIN SOLUTION
    ratios = {cause: [] for cause in causes}
    for _ in range(9):
        for cause in causes:
            everything = run()
            ratios[cause].append(run(**{cause: False}) / everything)
    return {cause: float(np.median(found)) for cause, found in ratios.items()}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_ablation", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.ablation(ablation)

# %% [markdown]
# Now a real machine, this one: an epoch of the article's network on digits. The causes are a compiled step ("code"), a
# batch of 128 in place of 8 ("batch"), and float32 in place of float64 ("precision").


# %%
def seconds_of_epoch(code=True, batch=True, precision=True, count=512):
    """Return the seconds of 60,000 images with these causes on or off, from some of them."""
    dtype, size = np.float32 if precision else np.float64, 128 if batch else 8
    network, optimizer = article_network(dtype), nn.Adam()
    images, labels = digits.images[:count].astype(dtype), digits.labels[:count]
    start = time.perf_counter()
    if code:
        nn.compiled(network, optimizer, size).epoch(images, labels, np.arange(count))
    else:
        for at in range(0, count, size):
            network.loss_and_scores(images[at : at + size], labels[at : at + size])
            optimizer.step(network.parameters, network.gradients)
    return (time.perf_counter() - start) / count * 60_000


# %% [markdown]
# With all else on, how many times faster is an epoch with batches of 128 than with batches of 8, on this machine?

# %%
journal.predict("batch_on_this_machine", ...)  # your guess

# %%
turned_off = journal.mine("ablation")
found = turned_off(seconds_of_epoch, ["code", "batch", "precision"])
here, plain = np.median([(seconds_of_epoch(), seconds_of_epoch(False, False, False)) for _ in range(3)], axis=0)
for cause, factor in found.items():
    print(f"without {cause:9} an epoch takes {factor:.2f} times as long")
product = np.prod(list(found.values()))
print(f"the product of the three is {product:.2f}; all three off take {plain / here:.2f} times as long")
journal.measured("batch_on_this_machine", found["batch"])
journal.rung("everything on, projected", "an epoch of training", here, 128)

# %% [markdown]
# A factor below 1 means that the machine was busy, or that the cause does harm. Run the cell again before you believe
# it.
#
# If causes did not interact, the product of the factors would be the factor of all three. A compiled step is for
# float32 only: with float64 it runs from Python, so the two cannot be told apart there. A batch of 128 is another
# training, too: fewer updates, and perhaps less accuracy. So a batch never counts as speed without the accuracy beside
# it.
#
# Here is the finished ladder, split by cause. The first three rungs are the article's, published. The next two are this
# machine's, measured on some images and projected, and the last ones were recorded, batches of 128 and 1,024 as a step
# and projected. Where a rung differs from the one before in more than one thing, the picture says "several".

# %%
pairs = [[seconds_of_epoch(False, False, precision) for precision in (False, True)] for _ in range(5)]  # in turns
plain, narrow = np.median(pairs, axis=0)
at_8 = compared.row("compiled epoch, batch 8")
at_128, at_1024 = (compared.row(f"compiled step, batch {size}")["ours_s"] * -(-60_000 // size) for size in (128, 1024))
article = {"batch": 8, "hardware": "hosted GPU", "how": "published"}
here = {"batch": 8, "hardware": "this CPU", "how": "measured, projected"}
there = {"batch": 8, "hardware": GPU, "how": "recorded"}
ladder = [
    {**article, "label": "the article, NumPy", "seconds": 1800, "hardware": "hosted notebook"},
    {**article, "label": "the article, CuPy", "seconds": 100, "cause": "several"},
    {**article, "label": "the article, repaired", "seconds": 50, "cause": "code"},
    {**here, "label": "ours, float64", "seconds": plain, "cause": "several"},
    {**here, "label": "ours, float32", "seconds": narrow, "cause": "precision"},
    {**there, "label": "ours, on a GPU", "seconds": at_8["eager_s"], "cause": "hardware"},
    {**there, "label": "ours, compiled", "seconds": at_8["ours_s"], "cause": "code"},
    {**there, "label": "batch of 128", "seconds": at_128, "batch": 128, "cause": "batch"},
    {**there, "label": "batch of 1,024", "seconds": at_1024, "batch": 1024, "cause": "batch"},
]
show.causes(ladder, "An epoch of MNIST, split by cause")

# %%
eager = at_8["eager_s"]
print(f"at batch 8, from Python: this CPU {narrow:.1f} s (projected), the GPU {eager:.1f} s (recorded)", end="")
print(f": {narrow / eager:.1f} times; then compiled {eager / at_8['ours_s']:.0f} times")
trained = {f"batch {size}": counted.figure(f"mnist epoch, batch {size}", "accuracy") for size in (8, 128)}
for name, correct in (trained | {"batch 8, compiled": at_8["accuracy"]}).items():
    interval = 1.96 * (correct * (1 - correct) / 10_000) ** 0.5  # of 10,000 test images
    print(f"after five epochs, {name}: {correct:.2%} right, give or take {interval:.2%}")

# %% [markdown]
# Look at the bar of "hardware", and at the bar of "code" after it. With a batch of 8, and Python between the kernels, a
# GPU for data centres is hardly faster than this CPU, or a few times. Compile the step, to a graph of fused kernels,
# and the same GPU gains far more. <!-- why: hardware --> That is what *causes interact* means.
#
# And the larger batch learned less in the same five epochs, at the same learning rate. For the batch of 1,024 there is
# no accuracy at all, so its rung is no claim. What people want is a network that is right.
#
# ## Time to accuracy
#
# So measure that: the seconds until a given accuracy is reached. Now a larger batch has to pay for its fewer updates,
# and a trick that learns faster counts as much as a faster kernel.
#
# ### Exercise: time_to_accuracy
#
# **More**, about 30 minutes.
#
# Train `digits_network(seed)` on images of 14 x 14 pixels, and return its parameters. The judge puts them into its own
# network and asks for {accuracy} % on 400 digits that you never see, with each of three seeds. Each time the digits are
# disguised in another way: all shifted alike, perhaps inverted, and with the labels permuted. The judge feeds its
# images as they are, with values from 0 to 1, as those that you get.
#
# One percentage point is forgiven for luck, and more where the digits are so hard that even the judge's own recipe does
# worse than usual. The grader draws others than your check, so aim a little higher than you must.
#
# Your slowest run is compared with the slowest of the recipe, which runs right after yours, in CPU time: what else your
# machine does hardly counts. The recipe takes 30 epochs in batches of 64, by compiled steps. Four times its seconds are
# still enough: that is **bronze**. As fast as the recipe is **silver**, and a third of its seconds or less is **gold**.
# All three earn the same points. Can you beat it?
#
# Use any idea of the course, with one rule: in each call the weights start from the seed, and nothing that was trained
# in another call or another cell takes part. `nn.compiled(...).epoch(images, labels, order, rate)` takes a factor for
# the rate, as a schedule needs it. `np.roll` shifts images without leaving a border. You may use {allows}. You get
# 1,397 images; to try things out, `try_it` below trains on as many, and tests on the other 400.


# %%
def digits_network(seed):
    """Return the network that is judged: for images (N, 1, 14, 14)."""
    layers = nn.Conv2d(16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(100), nn.ReLU()
    return nn.Sequential(*layers, nn.Linear(10), seed=seed).build((1, 14, 14))


def try_it(function, seeds=(0, 1, 2)):
    """Print what a function like `time_to_accuracy` reaches on 400 digits that it does not see, and its seconds."""
    images, labels = small.reshape(-1, 1, 14, 14), digits.labels
    for seed in seeds:
        rows = np.random.default_rng(seed).permutation(len(images))
        network, start = digits_network(seed), time.perf_counter()
        network.parameters[...] = function(images[rows[400:]], labels[rows[400:]], seed)
        seconds = time.perf_counter() - start
        right = np.mean(network.predict(images[rows[:400]]) == labels[rows[:400]])
        print(f"seed {seed}: {right:.2%} right after {seconds:.2f} s")


# %% nbgrader={"grade": false, "grade_id": "time_to_accuracy", "locked": false, "schema_version": 3, "solution": true, "task": false}
def time_to_accuracy(images, labels, seed):
    """Return the parameters (P,) of a trained digits_network, for images (N, 1, 14, 14), labels (N,). About 12 lines."""
    ### BEGIN SOLUTION
    network, rng, n, parts = digits_network(seed), np.random.default_rng(seed), len(images), 14
    steps, found = nn.compiled(network, nn.Adam(0.014), 32), []
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    x = np.concatenate([np.roll(images, shift, (2, 3)) for shift in shifts])  # nine copies of all images
    order = [rng.permutation(n) + n * rng.integers(9, size=n) for _ in range(parts // 2)]  # an epoch: one copy of each
    for k, rows in enumerate(np.array_split(np.concatenate(order), parts)):
        done = (k + 0.5) / parts
        steps.epoch(x, np.tile(labels, 9), rows, min(5 * done, 1.25 * (1 - done)))  # a rate that rises, then falls
        found.append(network.parameters.copy())
    return np.mean(found[-4:], axis=0)
    ### END SOLUTION


# %%
# try_it(time_to_accuracy)

# %% nbgrader={"grade": true, "grade_id": "check_time_to_accuracy", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.time_to_accuracy(time_to_accuracy)

# %% [markdown]
# The line below the tick says how your time compares with the recipe's. Three runs are a small sample: the same code
# may do a little better or worse the next time.
#
# Do you like a race? Take away the `#` below, and choose a name. Once your notebook is graded, your class sees it, and
# how many times as fast as the recipe you were in the grader's run; without the line nobody sees you there. A result
# that is many times as fast appears only after a person has read the code.

# %%
# journal.leaderboard("a name of your choice")

# %% [markdown]
# ## A network of your own
#
# Now you are on your own. Take any network for digits that you like, or that of the next cells. Make its training
# faster without changing what it computes. Do it in this order, and keep what you find: the last question asks for it.
#
# 1. **State the bound.** How many operations does a step need, and how many bytes? The roofline (lesson 07) turns them
#    into the least seconds on your machine.
# 2. **Profile.** `profile.step` says where the seconds go.
# 3. **Repair** one thing: the largest that you can change. Take a batch at once, or in another order (pooling before
#    ReLU), another `method=` of Conv2d, float32 where float64 came in; or compile the step.
# 4. **Profile again**, and compare with the bound.
#
# Here are steps 1 and 2 for the article's network and 32 digits: put your own in its place. A layer with weights is a
# product, computed three times: forward, and backward for the gradients of its weights and of what came in. No gradient
# of the images is needed. Its operations take so long at the peak; its values take so long if each goes through memory
# once. The longer of the two is the bound if nothing stays in a cache. If all does, the operations alone are. What is
# left out, such as pooling, takes time as well.

# %%
peak, bandwidth, size = timing.matmul_peak(), timing.copy_bandwidth(), 32
print(f"one core of this machine: {peak / 1e9:.0f} Gflop/s in float32, {bandwidth / 1e9:.1f} GB/s")
parameters = article_network().parameters.size
work = {  # how often, operations, values of four bytes that are read or written
    "convolution": (2, 2 * size * 28 * 28 * 9 * 10, size * 28 * 28 * (1 + 10) + 9 * 10),
    "1,960 to 100": (3, 2 * size * 1960 * 100, size * (1960 + 100) + 1960 * 100),
    "100 to 10": (3, 2 * size * 100 * 10, size * (100 + 10) + 100 * 10),
    "Adam": (1, 10 * parameters, 7 * parameters),  # reads four arrays of that size, and writes three
}
in_cache = from_memory = 0.0
for name, (times, flops, values) in work.items():
    arithmetic, memory = times * flops / peak, times * 4 * values / bandwidth
    in_cache, from_memory = in_cache + arithmetic, from_memory + max(arithmetic, memory)
    print(f"{name:12} operations {arithmetic * 1e3:.3f} ms, values {memory * 1e3:.3f} ms")
print(f"bound of a step: {in_cache * 1e3:.2f} ms with all in a cache, {from_memory * 1e3:.2f} ms with nothing in it")

# %% [markdown]
# The peak is what this machine gave just now. If others keep it busy, it comes out too low, and a layer may then seem
# to be faster than its bound: run the cell again.

# %%
profile.step(article_network(), digits.images[:size], digits.labels[:size])

# %% [markdown]
# ### Exercise: own_network
#
# **Core**, about 30 minutes.
#
# `own_network` trains your network for some steps on digits that the check hands out, in the version "before" or
# "after" your repair, and returns its scores for other ones. The weights come from the seed. The check trains both
# versions in turns, each time on fresh digits in disguise. It asks for a network that learns, for the same scores after
# the repair, for training that lasts long enough to be timed, and for a repair that makes it at least {faster} times as
# fast, in CPU time. The check's points are for this; what you found out is graded by hand.
#
# The same sums in another order round differently, and training makes such differences grow: with another method of a
# convolution, train fewer steps. A compiled step is one piece: `profile.step` cannot look inside. If that is your
# repair, time whole steps before and after it, and compare those with the bound. You may use {allows}.


# %% nbgrader={"grade": false, "grade_id": "own_network", "locked": false, "schema_version": 3, "solution": true, "task": false}
def own_network(version, images, labels, test_images, seed):
    """Train, version "before" or "after"; return the scores (T, 10) of test_images, float32. About 14 lines.

    images (N, 1, 28, 28), labels (N,) from 0 to 9, test_images (T, 1, 28, 28); draw weights and all else from the seed.
    """
    ### BEGIN SOLUTION
    network = nn.Sequential(nn.Conv2d(8, 5), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(), nn.Linear(10), seed=seed)
    network.build(images.shape[1:])
    optimizer = nn.SGD(0.1)
    for at in [*range(0, len(images), 32)] * 3:
        x, wanted = images[at : at + 32], labels[at : at + 32]
        if version == "before":  # image by image
            gradients = []
            for i in range(len(x)):
                network.loss_and_scores(x[i : i + 1], wanted[i : i + 1])
                gradients.append(network.gradients.copy())
            network.gradients[...] = np.mean(gradients, axis=0)
        else:
            network.loss_and_scores(x, wanted)
        optimizer.step(network.parameters, network.gradients)
    return network.forward(test_images)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_own_network", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.own_network(own_network)

# %% [markdown]
# ## In your own words
#
# Answer in six to ten sentences, with numbers from your own runs.
#
# 1. Your network: what do its two bounds say, and which part has the most operations?
# 2. What did the first profile show, what did you change, and why that?
# 3. What did the second profile show? How far from the bound are you now, and what is in the way?
# 4. Somebody says: *we made training 450 times faster.* Which causes would you ask to have turned off, one at a time?

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_the_repair", "locked": false, "points": 6, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** My network has one convolution and one dense layer. A step on 32 digits needs about 2 · 32 · 8 ·
# 25 · 576 operations forward in the convolution, the same backward for its weights, and little else; divided by the
# peak that was measured here, that is its bound in seconds. Its arrays fit into the cache, so the operations alone are
# its bound, and not memory. The first profile showed that nearly all the time went to calls for a single image each,
# thirty-two times as many as needed, so I took the batch at once. The scores are the same, and the check printed the
# two times. The second profile shows the convolution on top. It is still some way above the bound, which leaves out
# that im2col copies each pixel up to 25 times; whether the product reaches the peak I did not look into. To the claim:
# I would ask for hardware, code, batch, precision and library, each turned off alone with the others on, for the
# accuracy that was reached, and for what was measured: seconds an epoch or to an accuracy.
#
# **Rubric** (6 points). One point: bounds in seconds, from operations and bytes, and what has most of them. One point:
# a first profile with numbers that add up. One point: a repair that follows from that profile, and not from a hunch.
# One point: a second profile, compared with the first. One point: the distance from the bound, and a reason for it. One
# point: at least three causes, turned off one at a time, and accuracy or the unit of the claim.
# ### END SOLUTION

# %% [markdown]
# ## What you have

# %%
journal.ladder()

# %%
journal.guesses()

# %% [markdown]
# In three sentences: A graph takes Python out of a step, and helps as long as the GPU waits for the host. What a cause
# gained is what is lost when it alone is turned off, and it depends on what else is on. State the bound, measure,
# repair the largest thing, measure again, and always say how right the result is.
#
# ### Stretch: several steps a graph
#
# **More**, as long as you like.
#
# One launch a step is still a launch a step. Capture ten steps in one graph. What does that gain at batch 8, or lose?
# `captured` runs the program twice, ten steps each: over how many steps is that spread? Try 200 and 6,000. And what
# must happen to the last steps of an epoch whose number of steps is no multiple of ten? (If the GPU is busy from one
# launch to the next, there is nothing left to gain.)

# %%
# Your stretch. Write `ten_steps_a_graph(images, targets, order, weight)`, then take away the # of the lines and run.
#
# order = cp.asarray(rng.integers(0, len(small), (200, 8)))  # then with 6,000
# for epoch in (replayed_epoch, ten_steps_a_graph):
#     first = epoch(images, targets, order, weight)
#     device.synchronize(first)
#     start = device.clock(first)
#     device.synchronize(epoch(images, targets, order, weight))
#     print(f"{epoch.__name__:18} {(device.clock(first) - start) / len(order) * 1e6:.0f} us a step")
