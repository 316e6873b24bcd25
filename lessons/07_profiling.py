# %% [markdown]
# # Profiling
#
# Lesson 07, about 130 minutes, in two parts with a break between them: *Hunt* and *Bounds*.
#
# **Afterwards you can**
#
# - drill down from an epoch to a single statement, and know at each level that nothing is missing;
# - time layers on a device that works on while your program goes ahead;
# - read a trace: what costs most, what waits, what leaves the GPU;
# - say whether launches, memory or arithmetic set the pace of a step, and what a larger batch buys and costs;
# - tell which published figures to believe.
#
# **You need** to know where an array lives and what a synchronization is (lesson 06), and the layers of lesson 05. No
# exercise needs an earlier one.
#
# Are you coming back after a restart? Choose *Run All Above* first: later cells use what earlier ones define.

# %%
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from unrolled import check, data, device, journal, nn, profile, records, show, simgpu, timing
from unrolled.checks.exercises.l07_profiling.planted import assign
from unrolled.checks.exercises.l07_profiling.repairs import costs

check.start("07_profiling")
_ = threadpool_limits(1)

cp = device.gpu()
print("the GPU is", "simulated: its times are modelled" if device.is_simulated(cp) else "real: its times are measured")

RECORD = records.gpu().rows
print(records.gpu())

digits = data.digits()


def batch_of(size, module):
    """So many digits and their labels, in the module's memory; some come twice if there are not enough."""
    chosen = np.arange(size) % len(digits)
    return module.asarray(digits.images[chosen]), module.asarray(digits.labels[chosen])


# %% [markdown]
# ## Whose times are these?
#
# Without a GPU you will read modelled times. The model counts what a program asks for: its launches, its transfers, and
# their bytes and operations. Then it turns these into seconds, with the figures of a GPU and of a host. The GPU is a T4,
# a small one that free notebooks in the cloud often have. The record is of an H200, one of the largest. How good are the
# modelled times? Before any conclusion, look at what was checked, and what was not.

# %%
honesty = records.model()
every = honesty.row("all")
print(
    f"checked: the kernels of the model H200, beside a real one: {every['within_2x']:.0%} of {every['count']} within 2x"
)
sources = simgpu.profile().sources
assumed = [name for name, source in sources.items() if source.startswith("assumed")]
print(f"not checked: the model {simgpu.profile().name}; {len(assumed)} of its {len(sources)} figures are assumed")
print(f"its host, for instance, is {sources['host.ufunc']}")

# %% [markdown]
# So when this lesson speaks of a modelled T4, it speaks of a program's counts and of a likely GPU. Nobody has put a real
# T4 beside it. Where it speaks of hardware, a time recorded on a real H200 stands beside the model's. There the host's
# time and the GPU's are two columns: how long Python takes to ask, and how long the GPU takes to do it.

# %% [markdown]
# ## Part 1: Hunt
#
# About 95 minutes.
#
# ## The parts add up to the whole
#
# The article that you know from lesson 00 moved a NumPy network to a GPU.¹ An epoch of MNIST then took about 100
# seconds. Keras needed 4, on the same kind of GPU. Something was wrong, and the author set out to find it.
#
# It is tempting to guess at the slow line and rewrite it. The author took the whole, split it into parts, timed each
# part, and added them up. Only then did the hunt go on, into the largest part:
#
# 1. an epoch is 7,500 steps and some evaluation; evaluation takes 1 %, so it is not that;
# 2. a step is forward, backward and update: backward;
# 3. backward is four layers: pooling;
# 4. pooling is five statements: one of them.
#
# Here are the author's times, for a whole epoch. Slide through the levels. (Where there is no slider, the levels stand
# one below the other.) Each bar begins where the one above ends. The last bar is what none of the parts accounts for.
#
# ¹ *Deep Learning Gaiden: GPU Programming*, Qiita, September 2020, in Japanese.


# %%
def part(name, seconds, *parts):
    """A part of a whole, as plain data."""
    return {"name": name, "seconds": seconds, "parts": list(parts)}


STEPS = 60_000 // 8  # in an epoch
pooling = part(
    "pooling",
    9.72e-3 * STEPS,
    part("reorder", 17.1e-6 * STEPS),
    part("zeros", 7.89e-6 * STEPS),
    part("fill", 9.5e-3 * STEPS),
    part("reshape", 1.86e-6 * STEPS),
    part("col2im", 112e-6 * STEPS),
)
backward = part(
    "backward",
    10.3e-3 * STEPS,
    part("output", 152e-6 * STEPS),
    part("hidden", 224e-6 * STEPS),
    pooling,
    part("convolution", 442e-6 * STEPS),
)
article = part(
    "an epoch",
    100,
    part("forward", 1.32e-3 * STEPS),
    backward,
    part("update", 1.64e-3 * STEPS),
    part("evaluation", 0.957 + 0.160),
)
show.waterfall(article | {"where": "the article, 2020"})

# %% [markdown]
# At each level the parts make the whole, to within about two per cent. (Within *backward* they make a little too
# much: each was timed on its own.) That is the point of adding up. A part that you forgot would show as a gap, and a
# gap of half the time means: you have not looked at the right thing yet.
#
# This is the rule of the lesson: **split, time, add up, and go into the largest part.** As long as the parts are timed
# one after the other and their sum is right, the culprit is in one of them.

# %% [markdown]
# ## The same hunt, with your own eyes
#
# Here is the article's network, with a pooling layer that does what the author's did. `forward` remembers which of
# the four pixels of each window won; `backward` puts the gradient there. You have seen the marked line in lesson 03.


# %%
class ArticlePool(nn.MaxPool2d):
    """Max-pooling with windows of 2, as in the article."""

    def forward(self, x, training=False):
        n, c, h, w = self.shape = x.shape
        rows = x.reshape(n, c, h // 2, 2, w // 2, 2).swapaxes(3, 4).reshape(-1, 4)
        self.winners = rows.argmax(axis=1)
        return rows.max(axis=1).reshape(n, c, h // 2, w // 2)

    def backward(self, grad):
        xp = device.array_module(grad)
        n, c, h, w = self.shape
        values = grad.reshape(-1, 1)
        filled = xp.zeros((len(values), 4), grad.dtype)
        filled[:, self.winners] = values  # the line
        return filled.reshape(n, c, h // 2, w // 2, 2, 2).swapaxes(3, 4).reshape(self.shape)


def new_network(pool=None, seed=0):
    """The article's network: 10 filters of 3 x 3, then 100 hidden values, then 10 scores."""
    pool = pool or nn.MaxPool2d(2)
    return nn.Sequential(
        nn.Conv2d(10, 3, padding=1),
        nn.ReLU(),
        pool,
        nn.Flatten(),
        nn.Linear(100),
        nn.ReLU(),
        nn.Linear(10),
        seed=seed,
    )


# %% [markdown]
# A step on 8 digits is forward, loss, backward and update. How many times as long as the forward pass will the
# backward pass take, with this pooling layer? (The article's figures above make 8 times. But its forward pass was
# not the library's, and its GPU was another one.)

# %%
journal.predict("backward_pass", ...)  # your guess

# %%
images, labels = batch_of(8, cp)
slow_step = profile.step(new_network(ArticlePool(2)), images, labels, repeats=1)
longer = slow_step.at("backward").seconds / slow_step.at("forward").seconds
journal.measured("backward_pass", longer, where=slow_step.where)
print(f"backward takes {longer:.0f} times as long as forward; in the article, {10.3 / 1.32:.1f} times")
print(slow_step.table(depth=1))
show.waterfall(slow_step, path=("backward",))

# %% [markdown]
# `profile.step` put a **span** around each part: a mark where it begins and one where it ends. Spans lie inside
# spans, so they make a tree. `calls` is how often it was entered. `ms` is the time between its two marks in the GPU's
# queue, pauses included in which the GPU has nothing to do. `self` is what a span keeps after its parts are taken off: the
# remainder, which should be small. `host` is how long Python took to hand the part's work to the GPU.
#
# The factor is not the article's, for three reasons. This course's forward pass has fewer and larger pieces than the
# article's. The slow part depends on the GPU, as you will see when we stand before the line itself. And without a GPU the
# factor is the model's.
#
# Read the last line of the table as well. Marks take time of their own, so a profile is a little slower than the
# program without it. Good profilers say by how much.

# %% [markdown]
# ### Why not simply read the clock?
#
# Because the GPU works on while your program goes ahead (lesson 06). The same forward pass on 1,024 digits, timed by
# two clocks:

# %%
many, _ = batch_of(1024, cp)
network = new_network().build(many.shape[1:], cp)
network.forward(many)  # once before: the first time, memory is reserved and kernels are compiled


def reading(before_the_clock):
    """Seconds of a forward pass; `before_the_clock` is called before the clock is read."""
    device.synchronize(cp)
    start = device.clock(cp)
    network.forward(many)
    before_the_clock()
    return device.clock(cp) - start


careless, honest = reading(lambda: None), reading(lambda: device.synchronize(cp))
print(f"read at once: {careless * 1e6:,.0f} µs; after a synchronization: {honest * 1e6:,.0f} µs ({slow_step.where})")

# %% [markdown]
# The first clock measures how fast Python can hand out work. With parts it is worse than that. Time them without
# waiting, and each shows what the host needs. Then comes a part that happens to wait, because it asks for a number or
# fetches an array, and it pays for all before it.
#
# ### Exercise: time_layers
#
# **Core**, about 20 minutes.
#
# Send a batch through all layers and its gradient back, and time each layer in both directions. `synchronize()` waits
# until the device has done all that it was given; on a CPU there is nothing to wait for, and the same code is right.
# Where must you call it so that the parts add up?


# %% nbgrader={"grade": false, "grade_id": "time_layers", "locked": false, "schema_version": 3, "solution": true, "task": false}
def time_layers(layers, x, grad, clock, synchronize):
    """Return a list of pairs (forward, backward): the seconds of each layer, in the order of layers. About 14 lines.

    layers is a tuple; each has layer.forward(x, training), to be called with training=True, and layer.backward(grad).
    clock() gives the host's time in seconds. x enters the first layer, grad is the gradient of what leaves the last.
    """
    ### BEGIN SOLUTION
    forward, backward = [], []
    synchronize()
    start = clock()
    for layer in layers:
        x = layer.forward(x, True)
        synchronize()
        end = clock()
        forward.append(end - start)
        start = end
    for layer in reversed(layers):
        grad = layer.backward(grad)
        synchronize()
        end = clock()
        backward.append(end - start)
        start = end
    return list(zip(forward, reversed(backward), strict=True))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_time_layers", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.time_layers(time_layers)

# %% [markdown]
# Now your function times the article's network on 128 digits, with the library's pooling. (`journal.mine` takes your
# function once its check has passed, the library's until then, and says which.) Then the same work is done in one go,
# with one wait at its end. Try `np` in place of `cp` in the first line.

# %%
module = cp


def there_and_back(layers, x, grad):
    """Seconds of all layers, forward and backward, without a wait in between."""
    device.synchronize(module)
    start = device.clock(module)
    for layer in layers:
        x = layer.forward(x, True)
    for layer in reversed(layers):
        grad = layer.backward(grad)
    device.synchronize(module)
    return device.clock(module) - start


timer = journal.mine("time_layers")
network = new_network().build((1, 28, 28), module)
layers, (x, _) = network.layers, batch_of(128, module)
grad = module.ones((128, 10), module.float32)
for _ in range(3):  # the first times warm up
    times = timer(layers, x, grad, lambda: device.clock(module), lambda: device.synchronize(module))
    whole = there_and_back(layers, x, grad)
for layer, (forward, backward) in zip(layers, times, strict=True):
    print(f"{layer!r:26} forward {forward * 1e6:6.0f} µs, backward {backward * 1e6:6.0f} µs")
where = "measured on the CPU" if module is np else slow_step.where
print(f"the sum of these: {sum(map(sum, times)) * 1e6:,.0f} µs; in one go: {whole * 1e6:,.0f} µs ({where})")

# %% [markdown]
# Waiting is honest, and it has a price: after each layer the GPU runs empty while the host hands out the next piece
# of work. For parts of milliseconds nobody minds. For parts of microseconds the sum of the parts becomes larger than
# the whole ever was. `profile` does not wait on a GPU: its marks are **events** in the GPU's own queue. The GPU notes the
# time when it comes to one. That costs less than a wait, and it is not free: the last line under a profile says how much
# the marks add.

# %% [markdown]
# ## Down to the statement
#
# *Backward*, and in it the pooling layer. One more level: the statements of its `backward`. `profile.statements` puts
# a span around each.

# %%
pool = ArticlePool(2)
features = cp.asarray(np.random.default_rng(0).standard_normal((8, 10, 28, 28), dtype=np.float32))
returning = cp.asarray(np.random.default_rng(1).standard_normal((8, 10, 14, 14), dtype=np.float32))
pool.forward(features, training=True)
profile.statements(pool.backward, returning, repeats=1)

# %% [markdown]
# There it is. What next? The article's author saw the same line, concluded that GPUs dislike scattered writes, and
# multiplied by a mask of zeros and ones. You know from lesson 03 what the line does: `[:, winners]` pairs *every* row
# with *every* winner. For n windows it writes n x n numbers where n were meant, and the result is wrong besides.
# `[np.arange(n), winners]` names both, the row and the place.
#
# To tell a bad habit from a bad algorithm, change n. For 15,680 windows, as in the article: how many times as long as
# the indexed fill will the quadratic one take?

# %%
journal.predict("quadratic_fill", ...)  # your guess


# %%
def quadratic_fill(values, winners, mask):
    filled = device.array_module(values).zeros(mask.shape, values.dtype)
    filled[:, winners] = values
    return filled


def indexed_fill(values, winners, mask):
    xp = device.array_module(values)
    filled = xp.zeros(mask.shape, values.dtype)
    filled[xp.arange(len(winners)), winners] = values[:, 0]
    return filled


def times_mask(values, winners, mask):
    return mask * values


ways = {
    "filled[:, winners]": quadratic_fill,
    "filled[arange(n), winners]": indexed_fill,
    "mask * values": times_mask,
}
sizes = [980, 1960, 3920, 7840, 15_680]
times = {name: [] for name in ways}
for n in sizes:
    rows = np.random.default_rng(n).standard_normal((n, 4), dtype=np.float32)
    inputs = {
        "values": cp.asarray(rows[:, :1]),
        "winners": cp.asarray(rows.argmax(axis=1)),
        "mask": cp.asarray(rows == rows.max(axis=1, keepdims=True)),
    }
    for name, way in ways.items():
        times[name].append(timing.measure(way, inputs, budget=0.1).seconds)
longer = times["filled[:, winners]"][-1] / times["filled[arange(n), winners]"][-1]
journal.measured("quadratic_fill", longer, where=slow_step.where)
print(f"{'15,680 windows':28}{slow_step.where:>16}{'recorded, H200: host':>24}{'GPU':>12}")
fills = [RECORD[f"pooling fill, batch 8, {kind}"] for kind in ("quadratic", "indexed", "mask")]
for (name, seconds), row in zip(times.items(), fills, strict=True):
    print(f"{name:28}{seconds[-1] * 1e6:13,.0f} µs{row['host_us']:21,.0f} µs{row['device_us']:9,.0f} µs")
quadratic, indexed, masked = (row["device_us"] for row in fills)
print(
    f"on the H200's GPU: n instead of n² gains {quadratic / indexed:.0f} times, the mask {indexed / masked:.1f} times more"
)
quadratic, indexed, masked = (max(row["host_us"], row["device_us"]) for row in fills)
print(f"with its host, whichever takes longer: {quadratic / indexed:.0f} times, and {indexed / masked:.1f} times more")
show.growth(sizes, times, what="windows")

# %% [markdown]
# Twice the windows, and the quadratic fill takes about four times as long. (The H200's record is in the next table: three
# to five times.) The others hardly notice: they are so small that their time is that of the calls.
# <!-- why: small fills -->
#
# Now the record. Two columns, two stories. For the GPU the indexed fill is a trifle, and so is the mask. But the host
# needs longer to ask for the indexed fill than the GPU needs to do it, because indexing with two arrays is several
# calls. <!-- why: indexing --> In a program that waits for its host, the gain is the smaller of the two.
#
# ### Count the work, then believe
#
# Why does the quadratic fill take so long? "Scattered writes", says the article. Memory is written in sectors of 32
# bytes, so each number may cost 32 bytes instead of 4. That sounds right. Let us count, for the recorded H200.

# %%
n, card = sizes[-1], simgpu.profiles.H200
copying = RECORD["copy on the device, 2,000,000,000 bytes"]["gb_per_s"] * 1e9
series = honesty.row("quadratic fill")["operations"]
print(f"all of `filled` is {n * 4 * 4 / 1e3:.0f} kB; the L2 cache holds {card.l2 / 1e6:.0f} MB")
print(f"n² = {n**2:,} places, 32 bytes each: {n**2 * 32 / 1e9:.1f} GB")
for run, microseconds in (("the time above", fills[0]["device_us"]), ("the table below", series[-1]["device_us"])):
    print(f"    by {run}, {microseconds:,.0f} µs: {n**2 * 32 / microseconds / 1e6:.1f} TB/s")
print(f"    a large copy on this GPU: {copying / 1e12:.1f} TB/s")
print("\nIf whole-number arithmetic sets the pace: operations for a place, on the recorded H200")
for op in series:
    rows = int(op["name"].split("(")[1].split(",")[0])
    operations = op["device_us"] * 1e-6 * card.integer / rows**2  # card.integer: how many a second it can do
    print(f"{rows:8,} windows {op['device_us']:9,.1f} µs {operations:8.0f} operations")

# %% [markdown]
# The target is so small that it lies in the **L2 cache**, the fast store that all of the GPU's units share. So the writes
# need not reach the memory at all, and 32 neighbouring threads write into the same row, whose numbers share a sector. If
# each write did cost 32 bytes of memory, both runs would have moved more than a copy can. The explanation is false,
# however plausible it sounded. (The two times are of the same line on the same kind of GPU. See how far they are apart.)
#
# What sets the pace, then? Once n is so large that starting the kernel no longer counts, each of the n² places costs
# about the same. That would fit the search for the places: for each, CuPy's kernel works out row and column from a
# running number, with divisions of whole numbers. But it would fit anything else that is paid place by place, such as
# the writes into the cache. A constant price does not tell what it pays for, and that was not looked into.
# <!-- why: a price a place -->
#
# Our model has been told this price, so its agreement with the H200 proves nothing. The article's own time for the line
# is from a third GPU, and we do not know which. So believe no time without its GPU, and no factor either. What holds on
# each of them is the count: the line asks for n² writes.
#
# The author was half right, then. Nearly all of the gain on the GPU came from writing n numbers in place of n². The
# mask gains a few times more, there and on the host, because it is one plain kernel where indexing takes several.
# <!-- why: the mask --> And it
# has a price of its own: where two pixels of a window tie, which after a ReLU is common, it gives the whole gradient
# to both.
#
# Which line is slow, a profiler can tell. Why it is slow, you have to find out by counting the work.

# %% [markdown]
# ## The repair, profiled again
#
# A repair is done when the next profile says so. Did the step gain what the line had cost? And where is the time now?


# %%
class RepairedPool(ArticlePool):
    """The article's pooling with one line repaired."""

    def backward(self, grad):
        xp = device.array_module(grad)
        n, c, h, w = self.shape
        values = grad.reshape(-1)
        filled = xp.zeros((len(values), 4), grad.dtype)
        filled[xp.arange(len(values)), self.winners] = values  # the line
        return filled.reshape(n, c, h // 2, w // 2, 2, 2).swapaxes(3, 4).reshape(self.shape)


repaired = profile.step(new_network(RepairedPool(2)), images, labels)
for label, step in (("the article's pooling", slow_step), ("that line repaired", repaired)):
    # step.bare: its seconds without spans inside
    journal.rung(f"GPU, {label}", "an epoch of training", step.bare * STEPS, batch=8, hardware=step.where)
    print(f"{label:22} {step.bare * 1e3:6.2f} ms a step, {step.bare * STEPS:6.1f} s an epoch ({step.where})")
shares = {
    "here": slow_step.at("backward", "2: ArticlePool(2)").seconds / slow_step.seconds,
    "in the article": pooling["seconds"] / article["seconds"],
}
print(f"{slow_step.bare / repaired.bare:.0f} times as fast ({repaired.where})")
print("the article: 100 s to about 50 (it has three figures for that: 29, 45 and 57 s)")
for where, share in shares.items():
    print(
        f"{where}, this layer's backward was {share:.0%} of the whole: without it, {1 / (1 - share):.1f} times at most"
    )
print(repaired.table(depth=1))
show.waterfall(repaired, path=("backward",))

# %% [markdown]
# The bound is Amdahl's, from lesson 01: what a repair can gain depends on how much of the whole it touches. In the
# article the line was a smaller part of the step. But without a GPU the share *here* is a modelled one, so do not compare
# the two cards by it. The record has the last word, below.
#
# And where is the time now? Nowhere in particular. Each layer takes its share, and none is worth a hunt of its own.
# But compare the columns `ms` and `host`: but for the short update they are nearly equal. The GPU does not set the pace
# any more. It waits for Python. Such a program is **launch-bound**: a faster GPU would hardly help, fewer launches would.
# The last lines of the table say so, and split the host's time: how long it launched, waited and copied, and what is
# left, which is Python itself and reserving memory. They split the step without marks, so they add up to the last line.
#
# Is that only our model? Here is the same network on a real GPU, with this course's pooling. In this table *GPU* is the
# time at work alone, without the pauses that `ms` includes.

# %%
STEP = "mnist step, batch 8"
layers = [name.split(": ")[1].removesuffix(" forward") for name in RECORD if name.startswith(f"{STEP}: ")]
print(f"{'recorded, H200':16}{'forward: host':>16}{'GPU':>9}{'backward: host':>20}{'GPU':>9}")
for layer in layers[: layers.index("loss")]:
    ways = [RECORD[f"{STEP}: {layer} {way}"] for way in ("forward", "backward")]
    columns = [f"{ways[0]['host_us']:13.0f} µs", f"{ways[0]['device_us']:6.0f} µs"]
    columns += [f"{ways[1]['host_us']:17.0f} µs", f"{ways[1]['device_us']:6.0f} µs"]
    print(f"{layer:16}{''.join(columns)}")
for part in ("loss", "update"):
    row = RECORD[f"{STEP}: {part}"]
    print(f"{part:16}{row['host_us']:13.0f} µs{row['device_us']:6.0f} µs")
spans, bare = RECORD[f"{STEP}: whole step"], RECORD[STEP]
print(f"the whole step, with spans: host {spans['host_us']:,.0f} µs, GPU {spans['device_us']:,.0f} µs")
print(f"the same without spans, in another part of the run: host {bare['host_us']:,.0f} µs")
library, added = RECORD[f"{STEP}: 2 MaxPool2d backward"], {}
for kind in ("quadratic", "indexed"):  # in place of the library's way back
    fill = RECORD[f"pooling fill, batch 8, {kind}"]
    added[kind] = max(bare[side] - library[side] + fill[side] for side in ("host_us", "device_us"))
    print(f"added up, with the {kind} fill: {added[kind]:,.0f} µs, by the slower of host and GPU")
print(
    f"so the repair would gain {added['quadratic'] / added['indexed']:.1f} times on the H200 (added up, not measured)"
)

# %% [markdown]
# The same picture: nearly every layer that computes costs the host two to eight times what it costs the GPU. (One
# *Linear* is the exception; we come back to it. And both figures for the host are right. Spans cost something, and the
# host of that machine was quicker in one minute than in the next. Keep that in mind when somebody shows you a single
# measurement.)
#
# The last line puts the two fills into that step. That gain is of the size of the article's, and far from what the
# modelled T4 makes of the same repair. On the H200, too, the line is most of the GPU's work. But once it is gone the host
# sets the pace, and the host was there all along. Same line, same repair, another GPU, another factor.
#
# To see what the host and the GPU do at each moment, we need more than sums.

# %% [markdown]
# ## Read a trace
#
# A profile sums up. A **trace** keeps every event: when the host asked for it, when the GPU began, when it was done.
# Here is a training step, 8 digits, with this course's pooling. Move the slider to see what a clock that stops there
# would tell. (The trace comes from the simulated GPU, even if you have a real one. At the end of the lesson you will
# see which tool makes it for a real one.)


# %%
def traced_step(size):
    """The trace of a training step on so many digits, on the simulated GPU."""
    x, y = batch_of(size, simgpu)
    network, optimizer = new_network().build(x.shape[1:], simgpu), nn.Adam()
    for _ in range(3):  # twice before: reserving memory comes first, and only once
        with simgpu.trace() as trace:
            network.loss_and_scores(x, y)
            optimizer.step(network.parameters, network.gradients)
    return trace


small, large = traced_step(8), traced_step(1024)
for name, trace in (("8 digits", small), ("1,024 digits", large)):
    busy = trace.device_seconds / trace.seconds
    print(f"{name:13} {trace.seconds * 1e6:6,.0f} µs (modelled, {trace.profile}), the GPU is busy {busy:.0%} of them")
show.timeline(small, title="a training step, 8 digits")

# %% [markdown]
# With 8 digits most of the GPU's row is white: there is nothing to do. Most kernels are done before the host has managed
# to ask for the next one. The white in the host's row is Python, between the calls. That is what launch-bound looks like,
# by the model of a T4; the table of layers above says it of the recorded H200. Compare the 1,024:

# %%
show.timeline(large, title="a training step, 1,024 digits")

# %% [markdown]
# Now the host runs ahead, and the GPU's row is full. The time is that of the kernels, on the modelled T4. (The recorded
# H200 does even this step faster than its host can ask for it: Part 2 has both times.)
#
# The host cannot run ahead for ever. The queue has room for so many launches. Once it is full, the host has to wait for
# the GPU, even if your program never asked it to.
#
# ### Exercise: find_bottleneck
#
# **Core**, about 20 minutes.
#
# Which line of a program costs most? If the GPU's work were all, you would add it up line by line. But a GPU that has
# nothing to do costs time as well, and some line is to blame for that, too. A trace holds its events in any order, as
# dictionaries:
#
# ```python
# {"line": 12, "what": "add", "issued": 0.0031, "start": 0.0042, "end": 0.0049, "waits": False}
# ```
#
# Line 12 asked for an addition after 3.1 ms, the GPU began it after 4.2 and was done after 4.9. One event follows the
# other, and time starts at 0. Give every moment until the last event's end to one line:
#
# - while the GPU works, to the line whose event it is;
# - in a gap after an event that `waits`, to the line of that event: it made the host stop, so nothing was handed out;
# - in any other gap, and before the first event, to the line of the event that comes next: the host was late with it.


# %% nbgrader={"grade": false, "grade_id": "find_bottleneck", "locked": false, "schema_version": 3, "solution": true, "task": false}
def find_bottleneck(trace):
    """Return (line, seconds): the line to which most time is due, work and gaps, and how much. About 10 lines."""
    ### BEGIN SOLUTION
    seconds, done, waited = {}, 0.0, None
    for event in sorted(trace, key=lambda event: event["start"]):
        line = event["line"]
        cause = line if waited is None else waited
        seconds[cause] = seconds.get(cause, 0.0) + event["start"] - done
        seconds[line] = seconds.get(line, 0.0) + event["end"] - event["start"]
        done, waited = event["end"], line if event["waits"] else None
    line = max(seconds, key=seconds.get)
    return line, seconds[line]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_find_bottleneck", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.find_bottleneck(find_bottleneck)

# %% [markdown]
# In total, not per call. A line that takes a microsecond and runs a million times costs more than one that takes half
# a second, once; and it is the easier one to overlook. And because every moment went to some line, the parts add up to
# the whole.

# %% [markdown]
# ## What does not look like work
#
# A trace also shows what no line of your program asked for. Three of these are common.
#
# - **A hidden synchronization.** `float(loss)`, `if x.max() > 1`, `print(x)`: each needs a number on the host, so the
#   host waits until the GPU has done everything before it. `x[x > 0]` as well: nobody knows how large the result is
#   before the GPU has counted.
# - **A hidden transfer.** What Python needs to know crosses the **bus**, the connection between the host's memory and
#   the GPU's. `x.get()`, `cp.asnumpy(x)` and this course's `device.to_host(x)` are three names for the same copy;
#   `cp.asarray(host)` and `device.to_device(host, cp)` go the other way. So does a list or a NumPy array that you hand
#   to the GPU.
# - **Reserving memory.** The first arrays of a program come from the **driver**, the system's program that runs the
#   GPU, and it is slow. CuPy keeps freed memory in a **pool** and gives it out again for next to nothing. So the first
#   step of a program is no measure of the second.
#
# Two lines that do nearly the same, on a million numbers: `x[x > 0]` picks the positive ones, `where(x > 0, x, 0)`
# keeps the shape and writes zeros for the others. How many times as long does the first one take?

# %%
journal.predict("boolean_index", ...)  # your guess

# %%
host = np.random.default_rng(0).standard_normal((1000, 1000), dtype=np.float32)
x = simgpu.asarray(host)
habits = {
    "y = x + 1": lambda: x + 1,
    "total = x.sum()": lambda: x.sum(),
    "float(x.sum())": lambda: float(x.sum()),
    "if x.max() > 1: ...": lambda: bool(x.max() > 1),
    "x[x > 0]": lambda: x[x > 0],
    "where(x > 0, x, 0)": lambda: simgpu.where(x > 0, x, 0),
    "x.get()": lambda: x.get(),
    "asarray(host)": lambda: simgpu.asarray(host),
}
simgpu.get_default_memory_pool().free_all_blocks()
took = {}
print(
    f"{'':22}{'first time':>11}{'after that':>12}{'host waits':>12}{'transfers':>11}  (modelled, {simgpu.profile().name})"
)
for habit, run in habits.items():
    traces = []
    for _ in range(2):
        with simgpu.trace() as trace:
            run()
        traces.append(trace)
    took[habit] = traces[1].seconds
    blocked = sum(transfer.blocking for transfer in traces[1].transfers) + len(traces[1].synchronizations[:-1])
    print(
        f"{habit:22}{traces[0].seconds * 1e6:8,.0f} µs{traces[1].seconds * 1e6:9,.0f} µs"
        f"{blocked:9} x {len(traces[1].transfers):9} x"
    )
longer = took["x[x > 0]"] / took["where(x > 0, x, 0)"]
journal.measured("boolean_index", longer, where=f"modelled, {simgpu.profile().name}")

# %% [markdown]
# The time of a wait is not the worst of it. While the host waits it hands out nothing, so afterwards the GPU has
# nothing to do either;
# <!-- why: after a wait --> a table of single lines cannot show that. One `float(loss)` in each step, for a progress bar, is
# such a wait, and can turn a program that kept the GPU full into one that waits for its host. Keep the losses on the GPU and fetch them once in a while.

# %% [markdown]
# ## A bottleneck of your own
#
# Somebody wrote a step of a network, and it is slow. Which of several bottlenecks was planted in yours follows from
# your id. So does the factor in the last line: it tells whose step a result comes from. Put your id (student number,
# mail address or name, as your course says) into the cell below and run it. With `...` you get a step as well. The
# check takes the repair of any step, so you can try others. What you hand in has your own factor in it.

# %%
LEARNER = ...  # for example LEARNER = "noor"

received = assign(LEARNER)
print(f"# the factor of {received.learner or 'whoever gives no id'} is {received.factor:.3f}")
print(received.source)

# %% [markdown]
# Profile before you read on. `profile.statements` is the place to begin. Then ask of the slow line what the trace
# knows: how many launches, of what dtype, how many bytes, and does anything wait or leave the GPU?

# %%
maps, weight = received.inputs(simgpu)
profile.statements(received.step, maps, weight, repeats=1)

# %%
with simgpu.trace() as trace:
    received.step(maps, weight)
print(
    f"{trace.seconds * 1e6:,.0f} µs (modelled, {trace.profile}), {len(trace.launches)} launches, "
    f"{len(trace.transfers)} transfers; the GPU is at work for {trace.device_seconds * 1e6:,.0f} µs"
)
print("the host:", ", ".join(f"{name} {seconds * 1e6:,.0f} µs" for name, seconds in trace.host_parts.items()))
for op, sums in list(trace.by_op().items())[:5]:
    dtypes = ", ".join(sorted({launch.dtype for launch in trace.launches if launch.op == op}))
    print(f"    {op:12} {sums.launches:4} launches {sums.seconds * 1e6:8,.0f} µs {sums.bytes / 1e6:8,.1f} MB  {dtypes}")

# %% [markdown]
# Your `find_bottleneck` can read this trace as well. A place is a file and a line in it.

# %%
costliest = journal.mine("find_bottleneck")
events = [
    {
        "line": event.where,
        "what": getattr(event, "op", "copy"),
        **{time: getattr(event, time) - trace.start for time in ("issued", "start", "end")},
        "waits": getattr(event, "blocking", False),
    }
    for event in [*trace.launches, *trace.transfers]
]
place, seconds = costliest(events)
print(f"{place}: {seconds * 1e6:,.0f} of {trace.seconds * 1e6:,.0f} µs, work and gaps")

# %% [markdown]
# Does one line explain the whole? If not, which lines belong together, in one loop for instance? And if the GPU was at
# work for a small part of the time only, ask what the host did with the rest: it handed out launches one by one, it
# waited, or it copied. (Its parts add up to nearly all of the trace. At the end the GPU finishes what it was given last.)
#
# ### Exercise: repaired_step
#
# **Core**, about 25 minutes.
#
# Copy your step's source into the cell below, and repair what is slow. The result must stay the same, to the rounding
# of float32, and nothing may leave the GPU or wait for it: a small constant is best made there, with `xp.arange`. The
# check runs your step on NumPy arrays and on a modelled T4, and asks for {times} times the speed of the whole planted
# step.


# %% nbgrader={"grade": false, "grade_id": "repaired_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def repaired_step(images, weight):
    """What your step computes, faster: images (N, C, 5, 5), weight (C * 25, F), result (N, F // 16). About 12 lines."""
    ### BEGIN SOLUTION
    xp = device.array_module(images)
    n = len(images)
    middle = 1 - 0.2 * xp.abs(xp.arange(5, dtype=xp.float32) - 2)
    x = images * middle * middle[:, None]
    x[1::2] = x[1::2, :, :, ::-1].copy()
    x = x - x.mean(axis=(0, 2, 3), keepdims=True)
    x = x / x.std(axis=(0, 2, 3), keepdims=True)
    scores = xp.maximum(x.reshape(n, -1) @ weight, 0)
    rows = scores.reshape(-1, 16)
    largest = rows[xp.arange(len(rows)), rows.argmax(axis=1)]
    return 1.001 * largest.reshape(n, -1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_repaired_step", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.repaired_step(repaired_step)

# %% [markdown]
# One of six bottlenecks was planted in your step. Here is the whole step with each of them, and with none. Each is a line
# or two. Which one was yours?

# %%
show.bars(costs(), "s", title="the whole step (modelled, T4)")

# %% [markdown]
# The hunt is over. Split, time, add up, go into the largest part, count the work, repair, profile again. **This is a
# good place for a break.**

# %% [markdown]
# ## Part 2: Bounds
#
# About 35 minutes. Are you coming back? Choose *Run All Above* first.
#
# %% [markdown]
# ## How fast could it be?
#
# A profile says where the time goes. It does not say whether the time is well spent. For that you need a bound: what
# could this GPU do at best?
#
# A kernel moves bytes and computes. Divide its flops, the operations on floating-point numbers, by its bytes: that is its
# **intensity**. Memory delivers so many
# bytes a second, so it allows intensity times bandwidth flop/s. Arithmetic allows the peak. The lower of the two is
# the **roofline** of lesson 01. In seconds it reads: bytes / bandwidth or flops / peak, whichever is longer.
#
# A step is more than one kernel. While one of them waits for memory, the arithmetic that another will need lies idle.
# And the host has to hand out each of them. It goes ahead while the GPU works.
#
# ### Exercise: roofline_bound
#
# **Core**, about 10 minutes.
#
# Return the least time that a whole step can take, and what sets it. The GPU needs the sum of its kernels' bounds, the
# host `launch` seconds for each kernel, and whoever takes longer sets the pace. If that is the host, the answer is
# "launches". Else it is "memory" or "arithmetic": each kernel's seconds count for the one that takes longer in it, and
# the larger of these two sums decides.


# %% nbgrader={"grade": false, "grade_id": "roofline_bound", "locked": false, "schema_version": 3, "solution": true, "task": false}
def roofline_bound(kernels, peak, bandwidth, launch):
    """Return (seconds, "launches", "memory" or "arithmetic"): a step's least time and what sets it. About 12 lines.

    kernels is a list of pairs (flops, bytes): how many additions and multiplications of floating-point numbers each
    does, and how many bytes it moves. peak is in flops a second, bandwidth in bytes a second, launch in seconds.
    """
    ### BEGIN SOLUTION
    memory = arithmetic = 0.0
    for flops, nbytes in kernels:
        if nbytes / bandwidth > flops / peak:
            memory += nbytes / bandwidth
        else:
            arithmetic += flops / peak
    host = len(kernels) * launch
    if host > memory + arithmetic:
        return host, "launches"
    return memory + arithmetic, "memory" if memory > arithmetic else "arithmetic"
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_roofline_bound", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.roofline_bound(roofline_bound)

# %% [markdown]
# Your bound for the training step, beside what was recorded on the H200. Peak and copying speed are that card's. The
# counts are of our calls, from the simulated GPU: the host pays for calls, however many kernels the library makes of
# one. `launch` is the recorded time of the host for one call of a kernel.

# %%
bound = journal.mine("roofline_bound")
launch = RECORD["call: kernel of ours (RawKernel)"]["host_us"] * 1e-6
for size in (8, 128, 1024):
    kernels = [(launched.flops, launched.nbytes) for launched in traced_step(size).launches]
    least, limit = bound(kernels, card.float32, copying, launch)
    work, _ = bound(kernels, card.float32, copying, 0)
    row = RECORD[f"mnist step, batch {size}"]
    print(
        f"batch {size:4}: at least {least * 1e6:4.0f} µs ({limit}); recorded {row['ours_s'] * 1e6:4.0f} µs. The GPU: at "
        f"least {work * 1e6:5.1f} µs; recorded {row['device_us']:4.0f} µs, while the host needed {row['host_us']:4.0f} µs"
    )

# %% [markdown]
# The bound says "launches" for each batch, on a GPU that is this fast. The record agrees: each time the host needed
# longer than the GPU. What it needed beyond its launches is Python between them, and dearer calls, such as those of
# products. (On 128 digits the host's figure is even above the step's: they come from two parts of the run.) The GPU, too,
# is far above its own bound: most of its kernels are short, so that much of their time is the start.
# <!-- why: short kernels --> But as long as the
# host sets the pace, nobody would notice better ones.
#
# Where do single kernels stand? Here are those of a training step as recorded on the H200. It is the Keras example with
# which the article compares itself, on 128 digits. Each hollow mark is a recorded time, the half one of its shape is
# what the model of that GPU says. Bytes and flops are counted as before. (For the modelled T4 such a picture would say
# nothing: the model makes a kernel's time by dividing its bytes by the bandwidth.)

# %%
recorded, modelled = {}, {}
for row in honesty.rows.values():
    for op in row.get("operations", ()):
        if count := op["steps"].get("keras example step, batch 128"):
            flops, nbytes, seconds = recorded.get(row["name"], (0, 0, 0))
            recorded[row["name"]] = (
                flops + count * op["flops"],
                nbytes + count * op["bytes"],
                seconds + count * op["device_us"] * 1e-6,
            )
            modelled[row["name"]] = modelled.get(row["name"], 0) + count * op["modelled_us"] * 1e-6
for name, (flops, nbytes, seconds) in recorded.items():
    share = max(flops / card.float32, nbytes / copying) / seconds
    if share > 1:
        print(
            f"beyond the roof: {name}, {share:.0%} of it. It moves {nbytes / 1e6:.0f} MB; L2 holds {card.l2 / 1e6:.0f} MB"
        )
show.roofline(card.float32, copying, kernels=recorded, modelled=modelled, where="recorded, H200; 128 digits")

# %% [markdown]
# The picture shows the six that take longest. Of these `relu`, `relu_backward` and `col2im` reach more than half of the
# roof, as measured. Better arithmetic would hardly help these, but fewer bytes would, for instance by doing two of them
# in one pass. That is called fusion, and it is in lesson 08. Products stand further right, because each number that is
# fetched is used many times. Where they stay below the roof there may be something left to gain; perhaps some of their
# matrices have a side too short to keep thousands of units busy. `random`, which draws numbers for dropout, lies far below
# the roof. It works with whole numbers, of which this roof knows nothing.
#
# And one kernel lies *beyond* the roof: AdaDelta's, which is too short to be drawn. The roof is that of memory. What
# fits into L2 need not come from there, and its arrays do fit. A bound is as good as what it assumes.
#
# And your own step, as it came and repaired?

# %%
gpu, repaired_one = simgpu.profile(), journal.mine("repaired_step")
for name, step in (("as it came", received.step), ("repaired", repaired_one)):
    for _ in range(2):  # the first time reserves memory
        with simgpu.trace() as trace:
            step(maps, weight)
    kernels = [(launched.flops, launched.nbytes) for launched in trace.launches]
    least, limit = bound(kernels, gpu.float32, gpu.bandwidth, gpu.host["ufunc"])
    print(
        f"{name:10} {trace.seconds * 1e6:7,.0f} µs, {len(kernels):4} launches; at least {least * 1e6:6,.0f} µs ({limit}; "
        f"all modelled, {gpu.name})"
    )
show.roofline(gpu.float32, gpu.bandwidth, kernels=trace, where=f"modelled, {gpu.name}; your step, repaired")

# %% [markdown]
# Both bounds and this roof are the model's, so take them for a list of what to look at, and not for a finding. On a
# measured roofline, what lies on the roof cannot be made quicker as it is, only be left out or done together with
# something else. What lies far below it and takes long is worth a second look.

# %% [markdown]
# ## From 8 to 128
#
# The article trained with batches of 8, the Keras example with 128. Our step on 8 digits is launch-bound. So with
# 128 it should take hardly longer, and an epoch has 469 steps in place of 7,500. How many times faster is an epoch?

# %%
journal.predict("gpu_batch_128", ...)  # your guess

# %%
epoch, table = {}, []
for size in (8, 32, 128, 1024):
    step = profile.step(new_network(), *batch_of(size, cp), repeats=None if size < 1024 else 1)
    steps = int(np.ceil(60_000 / size))
    epoch[size] = step.bare * steps
    label = f"whole network, GPU, batch {size}"
    journal.rung(label, "an epoch of training", epoch[size], batch=size, hardware=step.where)
    columns = f"batch {size:4}{step.bare * 1e6:13,.0f} µs{epoch[size]:9.2f} s"
    if row := RECORD.get(f"mnist step, batch {size}"):
        columns += f"{row['ours_s'] * 1e6:22,.0f} µs{row['ours_s'] * steps:9.2f} s"
    table.append(columns)
print(f"{step.where + ': a step':>25}{'an epoch':>11}{'recorded, H200: a step':>25}{'an epoch':>11}")
print(*table, sep="\n")
journal.measured("gpu_batch_128", epoch[8] / epoch[128], where=step.where)
print(f"{epoch[8] / epoch[128]:.1f} times faster with 128 ({step.where})")
few, many = (RECORD[f"mnist step, batch {size}"]["ours_s"] * np.ceil(60_000 / size) for size in (8, 128))
print(f"{few / many:.1f} times by the H200's recorded steps")
for size in (8, 128):
    moods = honesty.row(f"host of a mnist step, batch {size}")
    print(
        f"batch {size}, the host's part of a step on the H200: {moods['lowest_us']:,.0f} to {moods['highest_us']:,.0f} µs"
    )

# %% [markdown]
# Compare the rows of a column, not the columns: the model's T4 is driven by a host that is assumed to be slower than the
# recorded one. In the model, a step on 128 hardly takes longer than one on 8. In the record it does, and by the bounds
# above it is the host that took longer, not the GPU. Was it the batch, or the mood of the host? Look at its range: one
# and the same step on 128 took it, at another time, no longer than one on 8. The record does not separate the two.

# %% [markdown]
# Is a batch of 128 nearly free, then? Ask what the network has learned meanwhile. The next cell trains it on 1,400
# digits: three times for the same number of epochs, so that each has seen every image equally often, and once for more.

# %%
train_set, held = digits.split(1400)
for size, rate, epochs in ((8, 0.001, 3), (128, 0.001, 3), (128, 0.004, 3), (128, 0.001, 10)):
    tried = new_network()
    tried.fit(train_set, epochs=epochs, batch_size=size, optimizer=nn.Adam(rate), progress=False)
    updates = epochs * int(np.ceil(len(train_set) / size))
    right = tried.evaluate(held).accuracy
    print(f"batch {size:4}, rate {rate:.3f}, {epochs:2} epochs: {updates:4} updates, {right:6.1%} of {len(held)} right")

# %% [markdown]
# A sixteenth of the updates, and the network has learned less. A larger learning rate makes up for a part, more
# epochs for another, and then the epoch is no longer the same unit. So "seconds an epoch" is a fair measure of a
# *program*, at one batch size. What one wants from a *training* is the time until it is good enough. Lesson 13
# measures that.

# %% [markdown]
# ## How good is the model?
#
# At the beginning you saw one line about that. Here is the whole of it. We replayed each operation of the course's
# training steps, and index arrays near and far, on an H200, and let the simulated H200 say how long it would take.

# %%
kinds = {"kernel": "kernels of the library", "matmul": "products"}
groups = {"kernels of the library": {}, "products": {}, "CuPy's own": {}, "whole steps": {}}
for name, row in honesty.rows.items():
    if "modelled_us" in row and "us" in row:
        groups["whole steps"][name] = (row["us"] * 1e-6, row["modelled_us"] * 1e-6)
    for op in row.get("operations", ()):
        group = groups[kinds.get(op["kind"], "CuPy's own")]
        group[op["name"]] = (op["device_us"] * 1e-6, op["modelled_us"] * 1e-6)
print(f"{every['within_2x']:.0%} of {every['count']} operations within 2 times; the farthest off:")
far = sorted((pair, name) for group in groups.values() for name, pair in group.items())
far.sort(key=lambda found: -abs(np.log(found[0][1] / found[0][0])))
for (measured, modelled), name in far[:4]:
    print(f"    measured {measured * 1e6:5.1f} µs, modelled {modelled * 1e6:5.1f} µs: {name}")
for size in (8, 128, 1024):
    name = f"mnist step, batch {size}"
    seen = RECORD[name]["launches"]
    print(
        f"{name}: the model counts {honesty.row(name)['launches']} launches, a profiler on the H200 saw {seen} kernels"
    )
show.agreement(groups, title="simulated H200 beside a real one")

# %% [markdown]
# It is off where a matrix of a product has a short side. For some such shapes NVIDIA's library takes several times as long
# as the model says (the lines above), and no simple formula knows which. (One of them is in the table of layers above: look for the layer whose GPU time
# stands out.) And a whole step is no better than its host: the model's is always the same, the real one had moods, as
# you have seen.
#
# One more thing you should ask: who set the model's constants, and on what? Ours for the H200 were partly fitted to
# these very operations, so the picture shows it at its best. For the T4 they come from its data sheet and from what we
# saw on the H200, and nobody has checked them. So trust a modelled time to its order of magnitude. Trust the counts of
# what a program asks for: its launches and transfers, and what these must move. (Behind one call the library may start
# several kernels, and how many depends on the batch: see the lines above.) And trust what follows from the counts:
# which line, and how it grows.

# %% [markdown]
# ## In your own words
#
# From 30 minutes to 4 seconds: the article's figures, once more.
#
# | what | time of an epoch |
# | --- | --- |
# | NumPy, batch 8, a hosted notebook's CPU | 30 min |
# | CuPy, batch 8, its GPU | about 100 s |
# | after the repair: forward 1.32, backward 0.86, update 1.64 ms, added up and taken 7,500 times | 29 s |
# | after the repair: a step timed as a whole, about 6 ms, taken 7,500 times | 45 s |
# | after the repair: five epochs in 287 s, perhaps on another GPU | 57 s |
# | Keras, batch 128, the same class of GPU | 4 s |
#
# The small times, such as 7.89 µs for `zeros`, came from `%%timeit`, without a synchronization. And at first the article
# said that 7,500 steps of 1.32, 10.3 and 1.64 ms make 23.92 s. They make 99.45 s.
#
# Which of these can you trust, and for what? Answer in six to eight sentences, and use your own measurements: what
# did the repair gain here, what the batch of 128?
#
# 1. What changes from 30 min to 100 s, and from there to 4 s? For which causes can you name a factor, and for which
#    not?
# 2. After the repair there are three figures for one thing. Which would you believe, and how would you find out where
#    the others go wrong?
# 3. What does `%%timeit` without a synchronization measure for `zeros`, and why may it still be right for the fill? (It
#    repeats its line many times, and the queue has an end.)

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_the_figures", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** From 30 minutes to 100 seconds hardware and library change together, CPU and NumPy against GPU and
# CuPy, so 18 is the factor of both together. From 100 to about 50 only the fill changes, and there the parts before the
# repair add up to the whole (99.5 of 100 s), so this factor I trust. (Below "The repair, profiled again", the modelled T4
# gains far more, because there the line has a larger share of the step; by the H200's record it would be a few times,
# since there the host soon sets the pace.) From 50 to 4 both the library and the batch change: 128 in place of 8 makes
# 469 updates of 7,500. Below "From 8 to 128", the H200's recorded steps gain nearly as much by the batch alone, and my
# modelled ones more. So nearly all of it can be the batch, and it is not the same training. Of 29, 45 and 57 I believe 57
# for what an epoch costs, because it is a whole, measured to its end; 29 is a sum of parts that were timed alone and
# without waiting, 45 has a step but not what lies between steps, and perhaps the GPU was another one. I would time one
# epoch and its parts in the same run, and look at the remainder. For `zeros` the clock measures how long the host takes
# to hand out the work. But `%%timeit` repeats its line many times; once the queue is full the host has to wait, so for a
# long kernel such as the fill the mean comes close to the true 9.5 ms.
#
# **Rubric** (3 points). One point: names at least three of the causes (hardware, library, code, batch) and says where
# two change at once; batch 128 is not the same training. One point: chooses among 29, 45 and 57 with a reason (the
# whole, measured to the end, against parts timed alone or another GPU) and a way to check it. One point: without a
# synchronization the host's time is measured; a full queue, or any similar reason, for the fill. Half a point off if
# no own number is named.
# ### END SOLUTION

# %% [markdown]
# ## Tools of the trade
#
# A profile can be looked at on a time line, too. This records one and writes it beside your notebook, as `07_step.json` in
# Chrome's trace format. Open
# [ui.perfetto.dev](https://ui.perfetto.dev) and drag it there: spans on top, and below them every kernel of
# the simulated GPU. The file stays in your browser. W and S zoom, A and D move, a click on a box tells its time.

# %%
x, y = batch_of(8, simgpu)
network, optimizer = new_network().build(x.shape[1:], simgpu), nn.Adam()
for _ in range(2):
    with simgpu.trace() as trace, profile.recording(simgpu, "a step") as spans, profile.by_layer(network, optimizer):
        network.loss_and_scores(x, y)
        optimizer.step(network.parameters, network.gradients)
file = spans.chrome_trace(Path("07_step.json"), trace=trace)
print(f"{file}: {file.stat().st_size / 1e3:.0f} kB")

# %% [markdown]
# On a real GPU three tools go further.
#
# - `cupyx.profiler.benchmark` times a function with events, and gives host and GPU apart. Its GPU time is that between two
#   events, pauses included. So if the two are equal, the program is launch-bound.
# - **NVTX ranges** are spans that NVIDIA's tools can see. All of `profile`'s spans are such ranges where CuPy runs;
#   `cupyx.profiler.time_range("name")` makes your own.
# - **Nsight Systems** draws host, GPU, transfers and ranges on one time line. In a terminal,
#   `nsys profile -t cuda,nvtx -o step python step.py` writes `step.nsys-rep`; open it in the Nsight Systems program
#   (File, Open), on any computer. Begin with the row *CUDA HW*: gaps there are what you are looking for.

# %%
if device.is_simulated(cp):
    print("No GPU here, so nothing to benchmark. The host's share of a step, modelled, is in the tables above.")
else:
    from cupyx.profiler import benchmark, time_range

    x, y = batch_of(8, cp)
    network = new_network().build(x.shape[1:], cp)
    with time_range("a step"):  # a range that Nsight Systems shows
        network.loss_and_scores(x, y)
    print(benchmark(network.loss_and_scores, (x, y), n_repeat=50))

# %% [markdown]
# ## What you have
#
# The rungs have different batches. A part of the factor between the slowest and the fastest is due to that alone.

# %%
journal.ladder()

# %%
journal.guesses()

# %% [markdown]
# In three sentences: Split a whole into parts, time them with a clock that waits (or with events, which need not),
# add them up, and go into the largest, until you stand at one statement; repair it, and profile again. What a line
# costs is its total over all calls, with the gaps that its launches, transfers and waits leave behind; and a bound says
# how much less it could be. A published time is worth as much as what you know of its batch, its hardware, its code
# and its clock, and an explanation as much as the count behind it.
#
# ### Stretch: find the next one
#
# **More**, as long as you like.
#
# The step on 8 digits is launch-bound: a few dozen short launches. Which of them could be left
# out, or done together with a neighbour? Look at the launches in order, and write down your three favourites with
# what each would save. Then open `unrolled.nn.layers` and `unrolled.kernels` and try one. Lesson 08 shows how a
# kernel of your own is written, and in lesson 09 fewer and larger launches carry a recurrent network a good part of
# the way.

# %%
print(f"{len(small.launches)} launches, {small.device_seconds * 1e6:.0f} µs of work in {small.seconds * 1e6:.0f} µs")
for launch in small.launches:
    print(f"{launch.op:24} {launch.seconds * 1e6:6.1f} µs   {launch.shape} {launch.dtype}")
