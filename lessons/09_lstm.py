# %% [markdown]
# # A network with a memory
#
# Lesson 09, about 90 minutes. After the exercise `inputs_at_once` is a good place for a break.
#
# **Afterwards you can**
#
# - write the step of an LSTM, and read a sequence with it;
# - do the same multiplications in fewer and larger products, and say what each change gains, and where;
# - put all the rest of a step into one kernel;
# - order the steps of many layers so that those which need not wait do not wait.
#
# **You need** products of matrices (lesson 01), launches and arrays on a GPU (lesson 06), and a kernel that you wrote
# yourself (lesson 08). No exercise needs an earlier one.
#
# Are you coming back after a restart? Choose *Run All Above* first: later cells use what earlier ones define.

# %%
from itertools import pairwise

import numpy as np

from unrolled import check, data, device, journal, nn, ops, records, show, simgpu, timing

check.start("09_lstm")

cp, jit = device.gpu(), device.jit()
SIMULATED = device.is_simulated(cp)
if SIMULATED:
    simgpu.use("H200")  # the GPU of the recorded runs below
print("the GPU is", "simulated: it counts launches, and models their times" if SIMULATED else "real")

rng = np.random.default_rng(0)

# %% [markdown]
# ## A digit, row by row
#
# So far a network saw all pixels of a digit at once. Now it reads: first row of 28 pixels, second row, and so on to the
# last. Speech, text and prices come like that, and nobody knows how many pieces there will be. So the network needs a
# memory: what it has made of the rows so far, in as many numbers after row 20 as after row 2.
#
# A network whose output goes back into itself is called **recurrent**. Here is one, in ten lines. A `step` takes a row
# of pixels, and the two arrays in which the network keeps its memory, `h` and `c`. It returns both, renewed.


# %%
def read(images, step, weights, last_weight, last_bias):
    """Return a score for each class: images (N, 28, 28), read from the top row to the bottom one."""
    x = images.transpose(1, 0, 2)  # steps first: (T, N, D)
    hidden = weights[1].shape[1]
    h = c = np.zeros((len(images), hidden), np.float32)
    for row in x:
        h, c = step(row, h, c, *weights)
    return h @ last_weight.T + last_bias


# %% [markdown]
# The last `h` has seen all rows, and a dense layer makes ten scores of it. `nn.LSTM` is such a loop as a layer. Let it
# learn the digits, with 64 numbers of memory. (A gradient that goes back through 28 steps occasionally becomes very
# large. `clip_norm` shortens it then.)

# %%
digits = data.digits()
learn, held = (data.Dataset(part.images[:, 0], part.labels) for part in digits.split())
reader = nn.Sequential(nn.LSTM(64), nn.Linear(10), seed=0)
way = {"optimizer": nn.Adam(0.005), "schedule": nn.cosine_decay(8), "clip_norm": 1.0}
history = reader.fit(learn, epochs=8, batch_size=16, **way, validation=held, progress=False)
print(f"{history.validation_accuracy[-1]:.1%} of {len(held)} digits that it never saw are right")

# %% [markdown]
# It works, with rows for words. Do the ten lines give the same? They need the weights that were learned, and a step:
# the library's, for the moment.


# %%
layer, dense = reader.layers
weight_ih, weight_hh, bias_ih, bias_hh = layer.parameters.values()
weights = weight_ih, weight_hh, bias_ih + bias_hh
last = dense.parameters["weight"], dense.parameters["bias"]
for name, array in zip(("weight_ih", "weight_hh", "bias"), weights, strict=True):
    print(f"{name:10}{array.shape}")


def right_with(step):
    """The share of held digits that the ten lines get right with this step."""
    return np.mean(read(held.images, step, weights, *last).argmax(axis=1) == held.labels)


print(f"the ten lines: {right_with(ops.lstm_step):.1%} right")

# %% [markdown]
# ## The cell
#
# What does the step do? The name says it: *long short-term memory*, published by Hochreiter and Schmidhuber in 1997.
# `c` is the memory, a number for each of H **units**. Three **gates** decide about it. A gate is a number between 0 and
# 1, one for each unit, and each is made from the row x and the previous output h:
#
# - **i**, the input gate: how much of what is new gets in;
# - **f**, the forget gate: how much of the memory stays (by Gers, Schmidhuber and Cummins, 2000; before, all stayed);
# - **o**, the output gate: how much of the memory is shown.
#
# What is new has a letter, too: **g**, between -1 and 1. It is no gate, but it is made in the same way, so people say
# *four gates* for all four; from here on we do so, too. Step through an example with two units. The first keeps what it
# holds. The second forgets, and takes what is new.

# %%
show.lstm_cell()

# %% [markdown]
# As formulas, with a dot for the product value by value:
#
# - sums = x @ weight_ih.T + h @ weight_hh.T + bias
# - i = sigmoid(first block), f = sigmoid(second), g = tanh(third), o = sigmoid(fourth)
# - c = f · c + i · g
# - h = o · tanh(c)
#
# The weights of the four stand below each other: rows 0 to H - 1 of `weight_ih` belong to i, the next H to f, then g,
# then o. So the sums lie side by side, (N, 4 · H). PyTorch has the same order. Other libraries have others, and no
# shape tells you which.
#
# ### Exercise: lstm_step
#
# **Core**, about 10 minutes.
#
# Write the step. It works where its arrays are, on the host or on the GPU: `@`, `ops.sigmoid` and `ops.tanh` do. The
# check compares values, and their derivatives: how fast they change if all arguments move a little. T, N, D and H are
# the numbers of steps, samples, inputs and units.


# %% nbgrader={"grade": false, "grade_id": "lstm_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def lstm_step(x, h, c, weight_ih, weight_hh, bias):
    """Return the new (h, c), (N, H) each, for x (N, D), weight_ih (4 * H, D), weight_hh (4 * H, H). About 6 lines."""
    ### BEGIN SOLUTION
    size = weight_hh.shape[1]
    sums = x @ weight_ih.T + h @ weight_hh.T + bias
    i, f, g, o = (sums[:, k * size : (k + 1) * size] for k in range(4))
    c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
    h = ops.sigmoid(o) * ops.tanh(c)
    return h, c
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_lstm_step", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.lstm_step(lstm_step)

# %%
print(f"the ten lines with this step: {right_with(journal.mine('lstm_step')):.1%} right")

# %% [markdown]
# ## The formulas as they are written
#
# In books each gate has weights of its own. Programmed like that, a step has eight products, two for each gate. That is
# where the makers of cuDNN, NVIDIA's library for networks, began in 2016, when they made an LSTM faster in six changes
# and without leaving out a single multiplication. (It went on: version 7 was three times as fast as version 6, by an
# article of 2017.) Three of the changes you will program, of a fourth you will write the schedule, and two you will
# watch. Which of them still count?


# %%
def by_gate(x, weight_ih, weight_hh, bias):
    """Return the outputs (T, N, H) of x (T, N, D), from a memory of zeros: two products for each gate."""
    # body of unrolled.checks.exercises.l09_lstm.sequences.by_gate


STEPS, BATCH = 28, 32
images = digits.images[:BATCH, 0].transpose(1, 0, 2).copy()  # 28 steps of 32 digits
on_gpu = [cp.asarray(array) for array in (images, *weights)]


def counted(name, function):
    """Print what a function launches for a step of 32 digits, and return its launches."""
    function(*on_gpu)  # the first time reserves memory
    with simgpu.trace() as trace:
        function(*on_gpu)
    products = sum(launch.is_product for launch in trace.launches)
    launched = f"{len(trace.launches) / STEPS:6.1f} launches a step, {products / STEPS:.2f} of them products"
    print(f"{name:23}{launched}; {trace.seconds / STEPS * 1e6:.0f} µs a step (modelled)")
    return len(trace.launches)


launches = {"by gate": counted("by gate", by_gate)} if SIMULATED else {}

# %% [markdown]
# Three dozen launches a step. Each product is small, since it multiplies 32 rows. So a launch costs more than what it
# launches, and a step takes as long as its launches. <!-- why: launches of a step --> Lesson 06 called that
# launch-bound, and what helps is the same: fewer launches, and more work in each.
#
# ## Four gates in one product
#
# Both products of a gate take the same x and the same h. Only the weights differ, and those stand below each other. So
# one product with all of `weight_ih` gives the sums of four gates, side by side: eight products become two. (Perhaps
# your `lstm_step` does that already.)
#
# On a CPU there are no launches, but there are calls, and each costs time of its own. How many times faster is a
# sequence of 400 steps on your CPU, with one sample and 64 units?

# %%
journal.predict("combined_gates", ...)  # your guess

# %% [markdown]
# ### Exercise: combined_gates
#
# **Core**, about 10 minutes.
#
# Read a whole sequence with two products a step: all outputs, (T, N, H), from a memory of zeros. The check counts
# products and launches on the simulated GPU, and at most {launches} launches a step are allowed. Then it asks for {T}
# times the speed of `by_gate` on the CPU. With products this small, all other calls count as well. Do you need three
# sigmoids? You may use {allows}.


# %% nbgrader={"grade": false, "grade_id": "combined_gates", "locked": false, "schema_version": 3, "solution": true, "task": false}
def combined_gates(x, weight_ih, weight_hh, bias):
    """Return the outputs (T, N, H) of x (T, N, D), with two products a step. About 11 lines."""
    ### BEGIN SOLUTION
    # body of unrolled.checks.exercises.l09_lstm.sequences.two_products
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_combined_gates", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.combined_gates(combined_gates)

# %%
WHAT = "an LSTM reads the digits"
combined = journal.mine("combined_gates")
sequence = dict(zip(("x", "weight_ih", "weight_hh", "bias"), (images, *weights), strict=True))


def rung(label, function, *made_of):
    """Time a form on 32 digits, put it on the ladder, and return the seconds."""
    seconds = timing.measure(function, sequence).seconds
    epoch = seconds / BATCH * 60_000
    journal.rung(label, WHAT, epoch, batch=BATCH, made_of=made_of)
    print(f"{label:25}{epoch:6.2f} s to read 60,000 digits")
    return seconds


took = {"by gate": rung("eight products a step", by_gate)}
took["combined"] = rung("two products a step", combined, combined)
if SIMULATED:
    launches["combined"] = counted("combined", combined)

# %% [markdown]
# The multiplications are the same. What went away is calls. <!-- why: calls --> (A part of the gain comes from the
# sigmoids: one over all sums, in place of three.) With 32 digits a call has more to do than with one sample. That is
# the rule of this lesson: what a change gains depends on how much work one call has.
#
# ## The inputs of all steps at once
#
# Look at the two products that are left. `h @ weight_hh.T` has to wait for the step before. `x[t] @ weight_ih.T` waits
# for nothing: all rows of the digit are there from the beginning. So let one product do it for all steps. It has T · N
# rows in place of N, and reads `weight_ih` once, not T times. T + 1 products are left of 2 · T.
#
# How many times faster is that on your CPU, for 60 steps of 2 samples with 2,048 inputs and 64 units?

# %%
journal.predict("inputs_at_once", ...)  # your guess

# %% [markdown]
# ### Exercise: inputs_at_once
#
# **Core**, about 8 minutes.
#
# Take your `combined_gates`, and let one product handle the inputs of all steps. The check counts T + 1 products and
# asks for {T} times the speed of two products a step. You may use {allows}.


# %% nbgrader={"grade": false, "grade_id": "inputs_at_once", "locked": false, "schema_version": 3, "solution": true, "task": false}
def inputs_at_once(x, weight_ih, weight_hh, bias):
    """Return the outputs (T, N, H) of x (T, N, D), with T + 1 products. About 12 lines."""
    ### BEGIN SOLUTION
    xp, (steps, n, inputs), size = device.array_module(x), x.shape, weight_hh.shape[1]
    from_x = (x.reshape(steps * n, inputs) @ weight_ih.T + bias).reshape(steps, n, 4 * size)
    y = xp.empty((steps, n, size), x.dtype)
    h = c = xp.zeros((n, size), x.dtype)
    for t in range(steps):
        sums = from_x[t] + h @ weight_hh.T
        gates, g = ops.sigmoid(sums), ops.tanh(sums[:, 2 * size : 3 * size])
        c = gates[:, size : 2 * size] * c + gates[:, :size] * g
        h = gates[:, 3 * size :] * ops.tanh(c)
        y[t] = h
    return y
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_inputs_at_once", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.inputs_at_once(inputs_at_once)

# %%
at_once = journal.mine("inputs_at_once")
took["at once"] = rung("inputs at once", at_once, at_once)
if SIMULATED:
    launches["inputs at once"] = counted("inputs at once", at_once)

# %% [markdown]
# Compare that with what combining gained. Digits have 28 inputs a step, and half of the calls for products are gone. In
# the check there were 2,048, so fewer products gain more there. <!-- why: inputs at once --> There is a price, too. The
# sums of all steps lie in memory together. Sequences of a batch differ in length: what stands beyond an end is
# multiplied for nothing, so inputs are combined as far as lengths allow. And who translates while you speak does not
# have all steps yet.
#
# ## One launch for all the rest
#
# Two products became one, and still there are more than a dozen launches a step: the product and the addition of its
# result, a sigmoid in four parts, two tanh, three products value by value, one more addition, and the copy into `y`.
# Each reads arrays and writes arrays, for a single operation on each number.
#
# Lesson 08 has the means: a thread for each unit of each sample. It fetches the four sums of its unit, and its c. It
# does all in variables of its own, and writes two numbers. How many launches a step are left then?
#
# ### Exercise: fused_cell
#
# **Core**, about 13 minutes.
#
# Write the kernel: all of a step but its products. The two sums come apart, as the two products leave them, and each of
# the four sums of a unit has a bias of its own. The check asks for one launch, and counts what is read and written:
# each sum once. A sigmoid is `ONE / (ONE + cp.exp(-z))`. With a plain 1, an integer, the result may become float64 on
# the way.


# %% nbgrader={"grade": false, "grade_id": "fused_cell", "locked": false, "schema_version": 3, "solution": true, "task": false}
THREADS, ONE = 256, np.float32(1)


@jit.rawkernel()
def cell_kernel(from_x, from_h, bias, c, h_new, c_new, size, hidden):
    # from_x, from_h (N, 4 * hidden); bias (4 * hidden,); c, h_new, c_new (N, hidden), `size` values. About 7 more lines.
    at = cp.int32(jit.grid(1))
    if at < size:
        row, unit = at // hidden, at % hidden
        ### BEGIN SOLUTION
        i = from_x[row, unit] + from_h[row, unit] + bias[unit]
        f = from_x[row, unit + hidden] + from_h[row, unit + hidden] + bias[unit + hidden]
        g = from_x[row, unit + 2 * hidden] + from_h[row, unit + 2 * hidden] + bias[unit + 2 * hidden]
        o = from_x[row, unit + 3 * hidden] + from_h[row, unit + 3 * hidden] + bias[unit + 3 * hidden]
        now = c[row, unit] / (ONE + cp.exp(-f)) + cp.tanh(g) / (ONE + cp.exp(-i))
        c_new[row, unit] = now
        h_new[row, unit] = cp.tanh(now) / (ONE + cp.exp(-o))
        ### END SOLUTION


def fused_cell(from_x, from_h, bias, c):
    """Return the new (h, c), (N, H) each, from the sums of the inputs and of the outputs before, on the GPU."""
    xp = device.array_module(c)
    h_new, c_new = xp.empty(c.shape, c.dtype), xp.empty(c.shape, c.dtype)
    blocks = (c.size + THREADS - 1) // THREADS
    cell_kernel[blocks, THREADS](from_x, from_h, bias, c, h_new, c_new, c.size, c.shape[1])
    return h_new, c_new


# %% nbgrader={"grade": true, "grade_id": "check_fused_cell", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.fused_cell(fused_cell)

# %% [markdown]
# Speed needs a real GPU. There your kernel has to be at least {T} times as fast as a launch for each operation. That is
# much less than the launches it saves: to hand out a kernel of `jit` takes the host longer than one of CuPy's own.
# <!-- why: kernels of jit --> Without a GPU its points are deferred, not lost. This puts your kernel into the loop,
# where launches can be counted:


# %%
cell = journal.mine("fused_cell")


def fused(x, weight_ih, weight_hh, bias):
    """Return the outputs (T, N, H): one product for all inputs, then a product and a kernel a step."""
    xp, (steps, n, inputs), size = device.array_module(x), x.shape, weight_hh.shape[1]
    from_x = (x.reshape(steps * n, inputs) @ weight_ih.T).reshape(steps, n, 4 * size)
    y = xp.empty((steps, n, size), x.dtype)
    h = c = xp.zeros((n, size), x.dtype)
    for t in range(steps):
        h, c = cell(from_x[t], h @ weight_hh.T, bias, c)
        y[t] = h
    return y


if SIMULATED:
    launches["fused"] = counted("inputs at once, fused", fused)
    print(f"{launches['by gate'] / launches['fused']:.0f} times fewer launches than by gate")

# %% [markdown]
# A product, your kernel, and the copy into `y`: that is a step now. (Until your check has passed, these are the
# library's functions, so the number is larger.) The copy could go as well, if the kernel wrote to its place in `y`.
#
# ## Rung by rung
#
# `ops.lstm` has all forms, also three that you did not write:
#
# - **streams**: a stream is a queue of launches. Two queues run side by side, if the GPU has room. So the product with
#   the inputs goes to a stream of its own, beside the product with the previous output. Nothing orders two queues but
#   events: `stream.wait_event(other.record())`. Where one is forgotten, two launches **race** for the same values. The
#   simulated GPU names both lines.
# - **transposed**: both weights are turned once before the first step, so that no product has to turn them.
# - **persistent**: one launch for all steps, and a few before it. The recurrent weights stay in the registers of the
#   GPU from the first step to the last, and the blocks exchange the outputs of each step: a cooperative launch, in
#   which blocks may wait for one another. The idea is of Diamos and others, 2016; the kernel is ours, and none of the
#   published changes.
#
# Move the slider from form to form. The ladder takes the changes in the order of 2016: *naive* has eight products a
# step, as `by_gate`, *fused* still two, and all inputs at once come after it. (The library copies the gates for the way
# back, and up to *streams* it has a sigmoid for each of three gates, so it has more launches a step.) Your last form
# stands near its *inputs_at_once*. The multiplications are always the same; in *persistent* those with h are inside of
# the one kernel. Watch the gaps, for 8 steps, in modelled time.

# %%
*stepping, diagonals, persistent = ops.LSTM_FORMS
FORMS = [*stepping, persistent]  # diagonals need several layers


def traced(form, layers=1):
    """Return what the simulated GPU does in 8 steps of 32 samples, 64 inputs and 64 units."""
    shapes = [(256, 64), (256, 64), (256,)]
    stack = [ops.LSTMWeights(*(simgpu.zeros(shape, simgpu.float32) for shape in shapes)) for _ in range(layers)]
    x = simgpu.zeros((8, 32, 64), simgpu.float32)
    for _ in range(2):  # the first time reserves memory
        with simgpu.trace() as trace:
            ops.lstm(x, stack, form=form)
    return trace


show.launches({form: traced(form) for form in FORMS}, "One layer, 8 steps", start="naive")

# %% [markdown]
# Which of these changes gains most today, on a recent GPU and with CuPy to hand out the work? Not over the first form,
# but over the form before it: how many times faster does the *best single change* make it, among the published ones? In
# 2016 no change gained more than combining the gates did: a factor of 2.1. The model's hint may be wrong.

# %%
journal.predict("best_change_today", ...)  # your guess

# %% [markdown]
# Here are three ladders. The left one is yours, from this machine's CPU. The middle one was recorded on a GPU, with 512
# units, 64 samples and 100 steps, in float32 without TF32: whole calls, from the first launch on. The right one is what
# was published in 2016. All start at eight products a step.

# %%
recorded = records.lstm()
rows = [recorded.row(f"lstm, {form}") for form in FORMS]
many = {**recorded.row("lstm, four layers, wavefront"), "name": "lstm, wavefront", "workload": "four layers"}
own = dict(zip((FORMS[0], FORMS[1], FORMS[5]), took.values(), strict=True))
GPU = recorded.machine["gpu"].removeprefix("NVIDIA ")
show.rungs({"yours, CPU": own, f"recorded, {GPU}": [*rows, many]})

# %% [markdown]
# Did the GPU's work become faster, or the host's? For the record each form was captured in a CUDA **graph**, too, which
# the host hands out at once: what is left is the GPU. (Lesson 13 is about graphs. CuPy captures no call of cuBLAS, so
# PyTorch made these.)

# %%
print("                launches   host ms   call ms            in a graph, ms        of peak")
gains = {}
for before, form in pairwise((FORMS[0], *FORMS)):
    row, other = recorded.row(f"lstm, {form}"), recorded.row(f"lstm, {before}")
    gains[form], alone = other["ours_s"] / row["ours_s"], other["device_s"] / row["device_s"]
    host, call, gpu = (1e3 * row[key] for key in ("host_s", "ours_s", "device_s"))
    counts = f"{form:15} {row['launches']:8,} {host:9.1f} {call:9.1f} {gains[form]:5.2f} times"
    print(f"{counts} {gpu:9.2f} {alone:5.2f} times {row['device_of_peak']:8.1%}")
journal.measured("best_change_today", max(gains[form] for form in stepping), where=f"recorded, {GPU}")
print(f"the first form, called: {recorded.figure('lstm, naive', 'gflops'):.0f} GFLOPS; 349 were published")
before, after = (recorded.figure(f"lstm, {form}", "ours_s") for form in ("at once, not fused", "inputs_at_once"))
print(f"fusing after the inputs at once: {before / after:.2f} times")
print(recorded)

# %% [markdown]
# Fusing gains most, by far, and not combining as in 2016. Look at the first form to see why: its call takes as long as
# the host takes to issue it, and the GPU works for a sixth of that. So what saves launches saves time, and a second
# stream does not help a host that is too slow for one. <!-- why: the host's launches --> Its rate is about that of
# 2016.
#
# In a graph only the GPU's time counts. Combining gains more there, streams gain a little, and fusing gains most again:
# dozens of short kernels are dozens of short kernels, whoever issues them. <!-- why: fusing in a graph --> Turning the
# weights loses there; why was not looked into. <!-- why: transposed in a graph --> And the order counts: called, fusing
# gains more where the inputs are done already, since more of what is left is what it saves. <!-- why: order --> A
# factor belongs to a change and to what was there before it.
#
# The persistent form is a single launch for all steps, at a third of the peak. What its blocks lose where they wait for
# one another was not looked into. <!-- why: persistent -->
#
# Mind the last rung of the published ladder. It has four layers, which is another workload: more work that can be done
# side by side. It says that four layers use the GPU better, and not that one layer became faster.
#
# ## Many layers: a wavefront
#
# Stack layers, and each reads the outputs of the one below. Layer 2 need not wait until layer 1 has read everything.
# Call one step of one layer, with all its units, the cell (layer, step). It needs two others, (layer - 1, step) and
# (layer, step - 1). As soon as both are done, it can fire.
#
# Say that each cell takes one slot of time, and that a slot has room for any number of cells. Layer by layer, 4 layers
# of 100 steps take 400 slots. How few can it be?
#
# ### Exercise: wavefront
#
# **Core**, about 7 minutes.
#
# Return a schedule: a list of slots, each a list of the cells (layer, step) that fire in it, counted from 0. Any valid
# schedule counts, if it has at most layers + steps - 1 slots.


# %% nbgrader={"grade": false, "grade_id": "wavefront", "locked": false, "schema_version": 3, "solution": true, "task": false}
def wavefront(layers, steps):
    """Return the cells (layer, step) that fire in each slot. About 5 lines."""
    ### BEGIN SOLUTION
    slots = [[] for _ in range(layers + steps - 1)]
    for layer in range(layers):
        for step in range(steps):
            slots[layer + step].append((layer, step))
    return slots
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_wavefront", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.wavefront(wavefront)

# %%
show.wavefront(journal.mine("wavefront")(4, 8), layers=4, steps=8)

# %% [markdown]
# The cells that fire together lie on a diagonal. On a GPU a diagonal is one kernel for all its cells and one batched
# product, which is many products of the same size in one launch. In the record, four layers:

# %%
for form in (FORMS[0], FORMS[5], diagonals, persistent):
    row = recorded.row(f"lstm, four layers, {form}")
    line = f"{form:15}{row['ours_s'] * 1e3:7.1f} ms, in a graph {row['device_s'] * 1e3:5.2f}"
    print(f"{line}; {row['speedup']:5.1f} times the first, {row['of_peak']:.1%} of peak")
PEERS = persistent, "PyTorch", "PyTorch, TF32"
for name in ("lstm", "lstm, four layers", "lstm, training step"):
    for row in (recorded.row(f"{name}, {side}") for side in PEERS):
        alone = f", in a graph {1e3 * row['device_s']:5.2f} ms, error {row['error']:.0e}" if "device_s" in row else ""
        print(f"{row['name']:35} {1e3 * row['ours_s']:5.2f} ms{alone}")

# %% [markdown]
# Diagonals halve the launches, and the call gains by that. In a graph they gain less: four cells fill the GPU better
# than one, and the gain would end where a single layer fills it already. <!-- why: diagonals -->
#
# And cuDNN, as PyTorch calls it? A call of the persistent form is shorter, on that GPU and for these sizes. Without the
# host cuDNN is ahead for four layers, and in the next precision for one layer, too: unless it is told otherwise,
# PyTorch's LSTM computes in **TF32**: factors are rounded to 10 bits behind the point, for which tensor cores have
# faster units. <!-- why: TF32 --> The errors say what that costs.
#
# ## Back through time
#
# To learn, gradients go back, from the last step to the first. Lesson 04 has all that this needs: the step is a graph,
# and each of its parts sends back what it gets. Two gradients travel from step to step, by h and by c, and each step
# adds to the gradient of the same weights.
#
# That is also why an LSTM learns what lies long ago. On the way back through c there is one product a step, with f. (In
# the cell of 1997, with none.) Where the forget gate is open, f is near 1, and the gradient stays what it is. A plain
# recurrent network multiplies by its weights at each step, a hundred times, and the gradient vanishes or explodes.
#
# ### Exercise: backward_through_time
#
# **More**, about 15 minutes.
#
# Write the way back of the combined form, for one layer that began with zeros.
# `ops.lstm_step_backward(grad_h, grad_c, gates, c, c_before)` is given: it returns the gradient by a step's sums, (N, 4
# · H), and by the c before it. What remains is yours: what goes to the weights, and what goes to the step before.


# %% nbgrader={"grade": false, "grade_id": "backward_through_time", "locked": false, "schema_version": 3, "solution": true, "task": false}
def backward_through_time(grad_y, x, weight_hh, y, c, gates):
    """Return the gradients by weight_ih (4 * H, D), weight_hh (4 * H, H) and bias (4 * H,). About 13 lines.

    grad_y (T, N, H) is the gradient by each output y[t]; x (T, N, D) went in. y and c (T, N, H) and gates (T, N, 4 * H)
    came out: gates are those after sigmoid and tanh.
    """
    ### BEGIN SOLUTION
    zeros = np.zeros_like(y[0])
    grad_h = grad_c = zeros
    grad_ih = np.zeros((weight_hh.shape[0], x.shape[2]), x.dtype)
    grad_hh = np.zeros_like(weight_hh)
    grad_bias = np.zeros(len(weight_hh), x.dtype)
    for t in reversed(range(len(x))):
        y_before, c_before = (y[t - 1], c[t - 1]) if t else (zeros, zeros)
        by_sums, grad_c = ops.lstm_step_backward(grad_y[t] + grad_h, grad_c, gates[t], c[t], c_before)
        grad_h = by_sums @ weight_hh
        grad_ih += by_sums.T @ x[t]
        grad_hh += by_sums.T @ y_before
        grad_bias += by_sums.sum(axis=0)
    return grad_ih, grad_hh, grad_bias
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_backward_through_time", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.backward_through_time(backward_through_time)

# %% [markdown]
# Four products a step: by the inputs' weights, by the recurrent ones, by the previous output, and (not asked here) by
# the inputs. Only the third has to wait for the next step back. The others can be done for all steps at once, at the
# end.
#
# ## In your own words
#
# Answer in five to eight sentences.
#
# 1. All forms do the same multiplications. What became less, from eight products a step to the fused form? Give two
#    numbers from your notebook.
# 2. Which published change gained most in 2016, and which in the recorded run? Why did that change?
# 3. Somebody says: "cuDNN made my one-layer LSTM 11 times faster, since the published ladder ends there." What do you
#    answer?

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_the_rungs", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** The launches became fewer and each did more: the cells print three dozen a step by gate and a few
# when fused, and the products went from eight a step to a little more than one. The bytes that travel became fewer,
# too. In 2016 the largest single gain was to combine the gates; in the record it is to fuse the point-wise operations
# (the cell prints its factor, and that streams gain nothing). Called, the first form uses less than a hundredth of the
# GPU: the host hands out launches, and the GPU waits, as the time in a graph shows. So what saves launches gains most,
# until so few are left that the products count. To the claim I answer that the last rung has four layers in a
# wavefront, so it is another workload. Its factor says that four layers use the GPU better; the same layer became about
# six times faster up to the rung before.
#
# **Rubric** (3 points). One point: fewer launches (or calls, or trips to memory) for the same multiplications, with two
# numbers of the notebook. One point: combine then, fuse today, *and* the reason, that the host's launches are what
# takes the time there, and not the arithmetic. (Both changes without a reason: half a point.) One point: four layers
# are another workload, so the last factor is not that of one layer.
# ### END SOLUTION

# %% [markdown]
# ## What you have
#
# Your three forms read digits, and do not learn. So compare them with each other, not with the rungs of training.

# %%
journal.ladder()

# %%
journal.guesses()

# %% [markdown]
# In three sentences: An LSTM keeps a memory in c, and three gates decide what stays, what gets in and what is shown.
# Its multiplications can be cut into many small calls or into few large ones, and where calls cost more than work, that
# is all the difference. Which change gains most depends on the machine, so measure again on each new one.
#
# ### Stretch: a GRU
#
# **More**, as long as you like.
#
# A gated recurrent unit has three blocks in place of four, and no c. (The article of 2017 lists the weights of Keras's
# layer on cuDNN, which is an LSTM, under r, z and h: a GRU's names. That layer ran on a GPU only, and had no dropout.)
#
# - r = sigmoid(x @ W_r.T + h @ U_r.T + b_r), and z the same with weights of its own;
# - n = tanh(x @ W_n.T + b_n + r · (h @ U_n.T + d_n));
# - h = (1 - z) · n + z · h.
#
# Write its step, and read the digits with it. Then go up the ladder once more. Can the three products with h be
# combined? Can all inputs be done at once? What changes in the fused kernel? (Mind where r stands. With `r · h` inside
# the product, as the first GRU had it, one rung is gone. Which?)
#
# With the blocks in the order r, z, n, the lines below print 0.4424 if your step is right.

# %%
# Your stretch. When your step is written, take away the # of the lines below and run.
#
# size = 64
# draw = np.random.default_rng(9)
# W, U = (draw.uniform(-0.1, 0.1, (3 * size, n)).astype(np.float32) for n in (28, size))
# b, d = (np.zeros(3 * size, np.float32) for _ in range(2))
# h = np.zeros((BATCH, size), np.float32)
# for row in images:
#     h = gru_step(row, h, W, U, b, d)
# print(f"{np.abs(h).max():.4f}")
