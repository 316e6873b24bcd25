# %% [markdown]
# # To the GPU
#
# Lesson 06, about 135 minutes; 120 without what is marked *more*. A session of 90 minutes ends after the exercise
# `gpu_time`.
#
# **Afterwards you can**
#
# - say where an array lives, what it costs to move one, and from which size on that pays;
# - write one function that runs wherever its arrays are;
# - keep float64 out of a program that should compute in float32;
# - time a GPU without being fooled by its clock;
# - take a training step that never leaves the GPU, and say why small batches gain little there.
#
# **You need** im2col (lesson 02), pooling by places (lesson 03) and the training loop (lesson 05), as ideas. You do not
# need a GPU.
#
# Are you coming back after a restart? Choose *Run All Above* first: later cells use what earlier ones define.

# %%
import numpy as np
from threadpoolctl import threadpool_limits

from unrolled import check, data, device, journal, nn, ops, records, show, simgpu, timing

check.start("06_gpu_port")
_ = threadpool_limits(1)  # one core of the CPU against one GPU, as in the lessons before

cp = device.gpu()
MODEL = f"modelled, {simgpu.profile().name}"
GPU = MODEL if device.is_simulated(cp) else f"measured, {device.describe()['gpu']}"
recorded = records.gpu().figure  # a figure of the recorded run on an H200
digits = data.digits()
train_set = digits.split()[0]
rng = np.random.default_rng(0)


def seconds(function, **inputs):
    """Seconds of one call, by a clock that fits where the arrays are."""
    return timing.measure(function, inputs, budget=0.2).seconds


# %% [markdown]
# ## Why go there?
#
# Your ladder first. It ends in lesson 05: the whole network, in NumPy, on your processor. The hollow rungs are those of
# the article that you know from lesson 00. Its author took the same network to a GPU.¹
#
# ¹ *Deep Learning Gaiden: GPU Programming*, Qiita, September 2020, in Japanese.


# %%
def article_network():
    return nn.Sequential(
        nn.Conv2d(10, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(100),
        nn.ReLU(),
        nn.Linear(10),
    )


some = data.Dataset(train_set.images[:240], train_set.labels[:240])
some_took = min(article_network().fit(some, epochs=2, batch_size=8, progress=False).seconds)
yours = some_took / len(some) * 60_000
print(f"An epoch in batches of 8, on one core here: {yours:.0f} s, projected from {len(some)} images.")
print(f"The article's, on a GPU: 100 s, which is {100 / yours:.1f} times as long.")
print("A training step on a computer with an H200, recorded:")
for filters in (16, 256):
    both = [recorded(f"cifar step, {filters} channels, CPU beside GPU", who, 1e3) for who in ("cpu_s", "gpu_s")]
    print(f"{filters:5} filters: CPU {both[0]:6.1f} ms, GPU {both[1]:.2f} ms: {both[0] / both[1]:.0f} times faster")
journal.ladder()

# %% [markdown]
# If the second line says more than 1, your own CPU already beats the article's GPU. Then why go? The last two lines say
# why: with more work in a step, the GPU gains more.
# <!-- why: more work --> (How many of its cores that processor used was not recorded.)
#
# What kept the article's GPU so long? One half you know, the fill of lesson 03. What the other half waited for, nobody
# measured. So in this lesson we count what a GPU can wait for, and what each wait costs. Here is where it happens:

# %%
show.hardware(simgpu.profiles.PROFILES["H200"], simgpu.profile())

# %% [markdown]
# The **host** is your computer: a processor that runs Python, and its memory. The **device** is the GPU, with a memory of
# its own and many multiprocessors, each of which computes on its own. Between them lies a **bus**, a road with a narrow
# gate: compare its figure with that of the GPU's memory. The **L2** is a small cache that all multiprocessors share.
# And all that the GPU does, the host has to ask for, by way of the **driver**, the program that talks to the GPU.
#
# ## Two ways to take this lesson
#
# `device.gpu()` gives CuPy where an NVIDIA GPU works. CuPy is NumPy for GPUs: the same names, other hardware. Where
# there is none, it gives the **simulated GPU**. That is a program of this course which behaves like CuPy. Its results
# are exact: NumPy computes them, on your processor. Its errors are CuPy's. In one point it is stricter; we come to it.
#
# Its *times* come from a model, and are called modelled wherever you meet one. How far can you trust it? The model was
# compared with a real H200, operation by operation and for whole training steps. It models an NVIDIA T4 for you, which
# Colab lends for free, and **no T4 was ever measured for this course**. Its arithmetic comes from the data sheet. Its
# bandwidths and the times of its calls are assumed, as the picture says; above all, its host is assumed to be slower than
# the H200's.

# %%
model, t4, h200 = records.model(), simgpu.profiles.T4, simgpu.profiles.H200
everything = model.row("all")
tried = [row["ratio"] for row in model.rows.values() if "step" in row["name"] and "ratio" in row]
print(f"cp is {cp.__name__}. Times on the GPU are {GPU}.\n")
print(f"The model of an H200 beside a real one: {everything['count']} operations,")
print(f"{everything['within_2x']:.0%} of their device times within a factor of 2;")
print(f"{len(tried)} whole training steps, modelled at {min(tried):.2f} to {max(tried):.2f} times what they took.")
print("The model of a T4 beside a real one: not tried.")
print(
    f"Its host is assumed to take {t4.host['kernel'] / h200.host['kernel']:.1f} times as long for a call as the H200's."
)
print(f"\nThe H200: {records.gpu()}")

# %% [markdown]
# So believe its **counts**: calls, bytes, transfers and waits are those of your program, on any GPU. Its **times** rest on
# assumptions, and so does the answer to who waits for whom, host or GPU. Believe that where the H200, recorded beside it,
# says the same. Do not believe a second digit, and do not compare it with a GPU of your own.

# %% [markdown]
# ## np becomes cp
#
# A GPU has thousands of simple cores and a memory of its own. `cp.arange` makes an array in that memory. What you do to
# it, the GPU does, and the result stays there.

# %%
x = cp.arange(6, dtype=cp.float32).reshape(2, 3)
print(type(x))
print(x @ x.T)
print(cp.exp(-x).sum(axis=1))

# %% [markdown]
# So a port is easy? The article's author chose CuPy for that reason: replace `np` by `cp`, and it runs. An epoch of 30
# minutes became one of 100 seconds. Then came the hunt that you met in lesson 03, for the rest of the way. This lesson is
# about what lies between "it runs" and "it is fast".
#
# ## Where an array lives
#
# There are two memories now. An array lives in one of them. Nothing moves by itself.

# %%
on_host = np.ones((2, 3), np.float32)
for what, attempt in {
    "x + on_host": lambda: x + on_host,
    "on_host + x": lambda: on_host + x,
    "np.asarray(x)": lambda: np.asarray(x),
}.items():
    try:
        attempt()
    except TypeError as error:
        print(f"{what}\n    TypeError: {error}")

# %% [markdown]
# That is strict, and it is a kindness: a program that copied without a word would be slow without a word. You say when
# something moves. `cp.asarray(on_host)` copies to the GPU, `cp.asnumpy(x)` or `x.get()` copies back.
#
# Here is the one difference: CuPy takes `np.exp(x)` of a GPU array as well, and hands it on to `cp.exp`. The simulated
# GPU refuses it, and so do the checks. Say `cp.exp(x)`, which is right everywhere.
#
# Some copies are hard to see. `print(x)` needs the numbers here, so it copies. So do `float(x.sum())`, `x.sum().item()`,
# and `if x.max() > 1:`, since Python must know which way to go. Each of them also **waits** until the GPU has finished
# everything that it was given before.
#
# One copy hides in an index. `x[x > 1]` picks values by a **boolean mask**. How many will it pick? The result needs a
# shape, and the host must know it. So the GPU counts the values, the host waits for their number, and only then it can
# go on. `cp.where(x > 1, x, 0)` has the shape of x, whatever the values are, and waits for nothing.

# %%
with simgpu.trace() as trace:  # the simulated GPU, with or without a real one
    moved_ones = simgpu.asarray(on_host)
    total = (moved_ones * 2).sum()
    if total > 10:
        print("more than ten")
    moved_ones[moved_ones > 1]
print(f"{len(trace.launches)} launches, {len(trace.transfers)} transfers:")
for transfer in trace.transfers:
    print(f"    {transfer.nbytes} bytes {transfer.direction}, by {transfer.cause}")
waits = [recorded(f"call: {what}", "waits_us") for what in ("get of one value", "boolean mask (x[mask])")]
print(f"recorded on the H200: the host waits {waits[0]:.0f} µs for one value, {waits[1]:.0f} µs for a boolean mask")

# %% [markdown]
# The trace of the simulated GPU counts for us. A **launch** is one piece of work that the host hands to the GPU: here a
# product, a sum and a comparison, and four for the mask. (The program that the GPU then runs is called a kernel. It has
# nothing to do with that of a convolution.) The second **transfer** is the `if`, the third the mask.
#
# ## What a transfer costs
#
# Copy 4 kilobytes to the GPU, and then 16 megabytes: four thousand times as much. How many times as long will it take?

# %%
journal.predict("transfer_4000_times", ...)  # your guess: how many times as long?

# %%
took = {}
print(f"In microseconds: {GPU}; and recorded on the H200")
print("       bytes   to the GPU   to the host      H200: to the GPU   to the host")
for size in (4_000, 64_000, 1_000_000, 16_000_000):
    host_array = np.ones(size // 4, np.float32)
    took[size] = seconds(cp.asarray, a=host_array)
    back = seconds(cp.asnumpy, a=cp.asarray(host_array))
    theirs = [recorded(f"transfer {way}, pageable, {size:,} bytes", "us") for way in ("to device", "to host")]
    print(f"{size:12,} {took[size] * 1e6:12,.0f} {back * 1e6:13,.0f} {theirs[0]:21,.0f} {theirs[1]:13,.0f}")
journal.measured("transfer_4000_times", took[16_000_000] / took[4_000], where=GPU)

large = cp.ones(4_000_000, cp.float32)
copied = seconds(lambda a: a.copy(), a=large)
print(f"{large.nbytes:,} bytes from one place on the GPU to another: {copied * 1e6:,.0f} microseconds ({GPU})")
inside = recorded("copy on the device, 64,000,000 bytes", "gb_per_s")  # read and written, both counted
ways = [recorded(f"transfer to device, {kind}, 16,000,000 bytes", "gb_per_s") for kind in ("pageable", "pinned")]
by_bus = f"by the bus {ways[0]:.0f} (pageable) or {ways[1]:.0f} (pinned)"
print(f"recorded on the H200, GB in a second: {by_bus}, on the GPU {inside:,.0f}")

# %% [markdown]
# Two things cost time. Each transfer has a **latency**, however small it is:
# <!-- why: latency --> the second line moves 16 times the bytes of
# the first, and does not take even twice as long. And each byte has a price: from the third line to the last, again 16
# times the bytes, the time grows many times over.
#
# The price is higher than it need be. An operating system may move ordinary memory about, page by page: it is
# **pageable**. The bus cannot read what may move. So the driver first copies each piece into memory that stays where it
# is, which is called **page-locked** or pinned. A program can ask for such memory itself. The last line above shows what
# that gains. <!-- why: page-locked memory -->
#
# It shows, too, that the GPU's own memory is many times as fast as the bus. So the rule is short: **move everything once,
# before you begin, and leave it there.** All of MNIST in float32 is 188 MB, little for the memory of a GPU.
#
# ### Exercise: break_even
#
# **Core**, about 10 minutes.
#
# An array lies on the host. Its result is wanted there, and is as large. Does it pay to go to the GPU and back? That
# takes two transfers. Each use of the array there is one launch, which costs the host `launch` seconds and the GPU `gpu`
# seconds a byte. Add all of these up, as if one thing came after the other and nothing overlapped. From how many bytes on
# is the sum no more than what the CPU takes, `cpu` seconds a byte for each use? That size is the break-even. If it never
# pays, the answer is `float("inf")`.


# %% nbgrader={"grade": false, "grade_id": "break_even", "locked": false, "schema_version": 3, "solution": true, "task": false}
def break_even(cpu, gpu, launch, latency, bandwidth, uses=1):
    """Bytes from which on the GPU is no slower than the CPU, both ways included; inf if it never is. About 4 lines.

    cpu, gpu: seconds a byte for one use. launch: seconds. A transfer takes latency + bytes / bandwidth seconds. The
    array is moved once, used so many times in a row, and fetched once.
    """
    ### BEGIN SOLUTION
    fixed = 2 * latency + uses * launch
    saved = uses * (cpu - gpu) - 2 / bandwidth
    return fixed / saved if saved > 0 else float("inf")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_break_even", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.break_even(break_even)

# %% [markdown]
# Now with figures that were measured. A digit has 3,136 bytes. You use an array ten times in a row on the GPU, each time
# for a ReLU. How many times as large as a digit must it be, before the way there and back has paid?

# %%
journal.predict("digits_to_break_even", ...)  # your guess: how many times as large as a digit?

# %%
fewest_bytes = journal.mine("break_even")
million = np.ones(1_000_000, np.float32)
figures = {
    "cpu": seconds(lambda x: np.maximum(x, 0), x=million) / million.nbytes,
    "gpu": recorded("call: ufunc, 1,000,000 values", "device_us", 1e-6) / million.nbytes,
    "launch": recorded("call: ufunc with a number", "host_us", 1e-6),
    "latency": recorded("transfer to device, pageable, 4,000 bytes", "us", 1e-6),
}
figures["bandwidth"] = 16_000_000 / recorded("transfer to device, pageable, 16,000,000 bytes", "us", 1e-6)
print("Your CPU, measured, and an H200 with its bus, recorded. Going there and back pays")
for uses in (1, 2, 5, 10, 100):
    digits_needed = fewest_bytes(**figures, uses=uses) / 3136
    print(
        f"    with {uses:3} uses in a row"
        + (f" from {digits_needed:,.0f} digits on" if digits_needed < 1e9 else " never")
    )
needed = fewest_bytes(**figures, uses=10) / 3136
by_cpu = 8 * 3136 * figures["cpu"]
print(f"One ReLU of 8 digits: {by_cpu * 1e6:.0f} µs on your CPU; the launch alone {figures['launch'] * 1e6:.0f} µs")
if needed < 1e9:
    journal.measured("digits_to_break_even", needed, where="your CPU beside a recorded H200")

# %% [markdown]
# A fast GPU does not shorten the way. What helps is to stay there, and to bring much at a time. For a batch of 8 digits
# compare the two times of the last line: the launch, before the GPU has done anything, and the whole work on your CPU. A
# training epoch uses the images in thousands of launches, and moves them once.
#
# ## float64 by accident
#
# A CPU needs about twice as long for float64, since the numbers are twice as large. How many times as long does this GPU
# need for a matrix product?

# %%
journal.predict("float64", ...)  # your guess: how many times as long as float32?

# %%
for name, module in {"CPU": np, "GPU": cp}.items():
    squares = [module.ones((768, 768), dtype=dtype) for dtype in ("float32", "float64")]
    tries = [[seconds(lambda a: a @ a, a=square) for square in squares] for _ in range(3)]  # in turns
    single, double = np.min(tries, axis=0)  # the best of three: other programs disturb a CPU
    ratio = double / single
    print(f"{name}: a product in float64 takes {ratio:.1f} times as long as in float32")
journal.measured("float64", ratio, where=GPU)
print(f"(GPU: {GPU})")
print("Tflop/s of matrix products, recorded on the H200, by the number of rows:")
for dtype, rows in (("float32", 2048), ("float32", 8192), ("float64", 4096)):
    print(f"    {dtype}, {rows}: {recorded(f'matmul {dtype} {rows}', 'tflops'):.0f}")

# %% [markdown]
# By its data sheet a T4 has one unit for float64 to every 32 for float32. The H200 was made for scientific computing, too,
# and has one to two. For matrix products it even has units of another kind, **tensor cores**, which take float64: there
# its float64 is no slower than its float32. (A teraflop a second, Tflop/s, is 10¹² operations a second.) So what an
# accident with float64 costs depends on the card. Neural networks need float64 nowhere. But it creeps in:

# %%
x = cp.ones(4, cp.float32)
for what, result in {
    "x * 0.5": x * 0.5,
    "x / len(x)": x / len(x),
    "x * np.sqrt(2)": x * np.sqrt(2),
    "x + cp.zeros(4)": x + cp.zeros(4),
    "cp.where(x > 0, 1.0, 0.0)": cp.where(x > 0, 1.0, 0.0),
    "cp.arange(4) * 0.5": cp.arange(4) * 0.5,
    "x.mean()": x.mean(),
}.items():
    print(f"{what:26} {result.dtype}")

# %% [markdown]
# A Python number takes over the array's dtype. But `np.sqrt(2)` is no Python number. It is an `np.float64`, and under
# the rules of NumPy 2 it makes everything float64. `zeros`, `ones` and `empty` make float64 unless you name a dtype. So
# does `where` between two numbers, and `array` of a list of numbers, since they have no dtype to take over. And one
# float64 array is enough: whatever it touches becomes float64, all the way through the network.
#
# (CuPy follows these rules from version 14 on. Version 13 has older ones: `np.sqrt(2)` passes there, and `x / 123456`, a
# large whole number, makes float64. Count on neither. `float(...)` around the number is always right.)
#
# ## One function for every array
#
# The article's author wrote each function twice. In every class stood a `cpu_forward`, which says `np`, and a
# `gpu_forward`, which says `cp`, and a string `mode="gpu"` chose between them. Is there no smarter way, the author asks?
#
# There is. The array knows where it lives. Ask it:

# %%
for array in (on_host, x):
    print(device.array_module(array).__name__)

# %% [markdown]
# ### Exercise: activation
#
# **Core**, about 8 minutes.
#
# Four activations in one function, for NumPy arrays and GPU arrays: `step` (1 where x > 0, else 0), `relu`,
# `leaky_relu` (0.01 · x below zero) and `sigmoid`. x holds floats. The result lives where x lives and has x's dtype. On
# the GPU the check counts: no transfer, and at most {launches} launches, since a loop over values would be a launch for
# each.


# %% nbgrader={"grade": false, "grade_id": "activation", "locked": false, "schema_version": 3, "solution": true, "task": false}
def activation(kind, x):
    """step, relu, leaky_relu or sigmoid of x: any shape, on the host or on the GPU. About 9 lines.

    `xp = device.array_module(x)` is NumPy or the GPU's module.
    """
    ### BEGIN SOLUTION
    xp = device.array_module(x)
    if kind == "step":
        return (x > 0).astype(x.dtype)
    if kind == "relu":
        return xp.maximum(x, 0)
    if kind == "leaky_relu":
        return xp.maximum(x, 0.01 * x)
    return 1 / (1 + xp.exp(-x))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_activation", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.activation(activation)

# %% [markdown]
# The article's step function was `np.where(x > 0, 1, 0)`. That makes whole numbers, int64, twice the bytes of float32;
# the next layer then turns them into float64. On a CPU nobody notices.
#
# ## Port a convolution
#
# Here is a convolution for NumPy, with im2col and one product, as in lesson 02. It works. Its author was careful: the
# input might be a list, so `np.asarray` makes sure.


# %%
def conv2d_numpy(x, weight, bias, padding=0):
    """x (N, C, H, W), weight (O, C, KH, KW), bias (O,), stride 1: (N, O, OH, OW)."""
    x = np.asarray(x)
    (n, c, h, w), (o, _, kh, kw) = x.shape, weight.shape
    oh, ow = h + 2 * padding - kh + 1, w + 2 * padding - kw + 1
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    columns = np.zeros((c, kh, kw, n, oh, ow))
    for i in range(kh):
        for j in range(kw):
            columns[:, i, j] = padded[:, :, i : i + oh, j : j + ow].swapaxes(0, 1)
    y = weight.reshape(o, -1) @ columns.reshape(c * kh * kw, -1) + bias[:, None]
    return y.reshape(o, n, oh, ow).swapaxes(0, 1)


weight, bias = rng.standard_normal((10, 1, 3, 3), dtype=np.float32), np.zeros(10, np.float32)
print(conv2d_numpy(digits.images[:8], weight, bias, padding=1).dtype)

# %% [markdown]
# float32 went in. What came out, and which line did it?
#
# ### Exercise: conv2d_port
#
# **Core**, about 12 minutes.
#
# Port it: one function for every array, in the dtype of x, without a transfer. Most lines can stay as they are. The
# check allows one launch for each place inside the kernel and {besides} besides; so a loop over images would not pass.
# And it looks inside: what is computed in float64 and made float32 at the end is as slow as float64.
#
# There is **more** for speed on a real GPU: {T} times that of a convolution image by image. Without a GPU the check
# says *deferred*. The points are then neither lost nor given; a machine that has one measures it later.


# %% nbgrader={"grade": false, "grade_id": "conv2d_port", "locked": false, "schema_version": 3, "solution": true, "task": false}
def conv2d_port(x, weight, bias, padding=0):
    """x (N, C, H, W), weight (O, C, KH, KW), bias (O,), stride 1: (N, O, OH, OW), wherever x lies. About 11 lines."""
    ### BEGIN SOLUTION
    xp = device.array_module(x)
    (n, c, h, w), (o, _, kh, kw) = x.shape, weight.shape
    oh, ow = h + 2 * padding - kh + 1, w + 2 * padding - kw + 1
    padded = xp.zeros((n, c, h + 2 * padding, w + 2 * padding), dtype=x.dtype)
    padded[:, :, padding : padding + h, padding : padding + w] = x
    columns = xp.empty((c, kh, kw, n, oh, ow), dtype=x.dtype)
    for i in range(kh):
        for j in range(kw):
            columns[:, i, j] = padded[:, :, i : i + oh, j : j + ow].swapaxes(0, 1)
    y = weight.reshape(o, -1) @ columns.reshape(c * kh * kw, -1) + bias[:, None]
    return y.reshape(o, n, oh, ow).swapaxes(0, 1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_conv2d_port", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.conv2d_port(conv2d_port)

# %% [markdown]
# ## A loop that the GPU waits for
#
# Next, pooling. In lesson 03 you wrote a loop over the outputs of an image, row by row, which treats all images and
# channels at once. With `xp` in place of `np` it runs on the GPU as it is. For 8 digits and 10 channels: how many times
# faster? (Below 1 means slower.)

# %%
journal.predict("pooling_loop_on_gpu", ...)  # your guess


# %%
def max_pool2d_loop(x, kernel_size):
    """The largest pixel of each window, one window after the other."""
    n, c, h, w = x.shape
    y = device.array_module(x).empty((n, c, h // kernel_size, w // kernel_size), dtype=x.dtype)
    for row in range(y.shape[2]):
        for column in range(y.shape[3]):
            top, left = row * kernel_size, column * kernel_size
            y[:, :, row, column] = x[:, :, top : top + kernel_size, left : left + kernel_size].max(axis=(2, 3))
    return y


feature_maps = rng.standard_normal((8, 10, 28, 28), dtype=np.float32)
loop_on_cpu = seconds(max_pool2d_loop, x=feature_maps, kernel_size=2)
loop_on_gpu = seconds(max_pool2d_loop, x=cp.asarray(feature_maps), kernel_size=2)
journal.measured("pooling_loop_on_gpu", loop_on_cpu / loop_on_gpu, where=GPU)
print(f"CPU: {loop_on_cpu * 1e3:.2f} ms; GPU: {loop_on_gpu * 1e3:.2f} ms ({GPU})")
print(f"{loop_on_cpu / loop_on_gpu:.2f} times as fast, or {loop_on_gpu / loop_on_cpu:.1f} times as long")

with simgpu.trace() as trace:
    max_pool2d_loop(simgpu.asarray(feature_maps), 2)
busy, each = trace.device_seconds / trace.seconds, trace.seconds / len(trace.launches)
print(f"{len(trace.launches)} launches, {each * 1e6:.0f} µs each; the GPU is busy for {busy:.0%} of the time ({MODEL})")
host, kernel = (recorded("call: max over axis 1", side) for side in ("host_us", "device_us"))
print(f"recorded on the H200, for one small maximum: {host:.0f} µs of the host, {kernel:.1f} µs of the GPU")

# %% [markdown]
# Slower, or hardly faster? The recorded maximum says why. For each position there is a maximum and a copy into its
# place: two launches, for 80 windows of four pixels. Handing over a launch costs the host about the same, whatever its
# size, and the GPU is done with such a small one before the next arrives. It spends its time waiting.
#
# A GPU wants **few, large** launches. That is why the checks of this lesson count them.
#
# ### Exercise: max_pool2d_port
#
# **Core**, about 18 minutes.
#
# Turn the loops inside out: over the places inside the window, all windows at once. Return the largest pixels, and where
# each lies in its image, as row · W + column; the way back needs that. Of equal maxima the first wins. At most
# {launches} launches for each place inside the window, {besides} besides, and no transfer.


# %% nbgrader={"grade": false, "grade_id": "max_pool2d_port", "locked": false, "schema_version": 3, "solution": true, "task": false}
def max_pool2d_port(x, kernel_size):
    """x (N, C, H, W) to (largest, indices), both (N, C, H // kernel_size, W // kernel_size). About 13 lines.

    indices are int64, row * W + column. Pixels at the edge that no whole window covers are left out.
    """
    ### BEGIN SOLUTION
    xp, k = device.array_module(x), kernel_size
    n, c, h, w = x.shape
    oh, ow = h // k, w // k
    corner = (xp.arange(oh)[:, None] * w + xp.arange(ow)) * k
    largest = x[:, :, : oh * k : k, : ow * k : k]
    indices = xp.zeros((n, c, 1, 1), dtype=corner.dtype) + corner
    for i in range(k):
        for j in range(k):
            pixel = x[:, :, i : i + oh * k : k, j : j + ow * k : k]
            leads = pixel > largest
            indices = xp.where(leads, corner + (i * w + j), indices)
            largest = xp.where(leads, pixel, largest)
    return largest, indices
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_max_pool2d_port", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.max_pool2d_port(max_pool2d_port)

# %% [markdown]
# ## The clock that lies
#
# How fast is a GPU, then? Time a large matrix product on both, the way one times anything: read the clock, call, read
# the clock. How many times faster will the GPU be?

# %%
journal.predict("large_product", ...)  # your guess

# %%
size = 2048
host_matrix = np.ones((size, size), np.float32)
product_on_cpu = seconds(lambda a: a @ a, a=host_matrix)

gpu_matrix = cp.asarray(host_matrix)
gpu_matrix @ gpu_matrix  # the first call of anything is slow: memory, and compiling
device.synchronize(cp)
start = device.clock(cp)  # time.perf_counter(); for the simulated GPU, the clock of its modelled host
gpu_matrix @ gpu_matrix
stopped = device.clock(cp) - start
print(f"CPU {product_on_cpu * 1e3:.0f} ms, GPU {stopped * 1e6:.0f} µs ({GPU})")
print(f"{product_on_cpu / stopped:,.0f} times faster!")
print(f"2 x {size}³ operations in this time: {2 * size**3 / stopped / 1e12:,.0f} Tflop/s")
for name, card in simgpu.profiles.PROFILES.items():
    yours_too = "  <- yours" if name in GPU.replace("-", " ").split() else ""
    print(f"By its data sheet {name:4} can do {card.float32 / 1e12:3.0f}, in float32{yours_too}")

# %% [markdown]
# That cannot be. (If your card is not in the list, look into its data sheet.) The last lines are a habit worth keeping:
# count the work, and ask whether the machine could have done it. A good course on GPU programming stages the same moment:
# 98 µs for a convolution on a T4, 24,439 times faster than its CPU.² Timed right, it was 116 times faster.
#
# What happened? **A call only hands the work over.** The host writes it onto a list, the GPU's *stream*, and goes on at
# once. The GPU works through its list in order. So our clock was stopped when the order had been placed, not when the
# dish was served.
#
# Here are four smaller products: above what the host does, below what the GPU does. The red line is where the clock
# stops. Move it with the first slider, from call to call. With the second you let the host wait first. Where the host's
# row is white, Python goes from one call to the next.
#
# ² *GPU Programming*, The Carpentries Incubator. They measured on Colab, and then had CuPy's own `benchmark` measure.

# %%
matrix = simgpu.ones((768, 768), dtype=simgpu.float32)
for _ in range(2):  # once to warm up
    with simgpu.trace() as trace:
        for _ in range(4):
            matrix @ matrix
show.timeline(trace)

# %% [markdown]
# An honest clock needs three things.
#
# 1. **Wait before you stop it.** `device.synchronize(x)` lets the host wait until the GPU has done all that it was
#    given. (In CuPy it is `cp.cuda.Device().synchronize()`.)
# 2. **Wait before you start it, too,** or work from before is in your measurement.
# 3. **Leave the first call out.** It may compile kernels and fetch memory: milliseconds to seconds, once.
#
# And do not wait after *every* call if the program that you care about does not. Host and GPU work side by side: while
# one is computed, the next is handed over. Make many calls, wait once, and divide. The check can tell: a clock that waits
# each time is as wrong here as one that never waits.
#
# ### Exercise: gpu_time
#
# **Core**, about 10 minutes.
#
# Seconds of one call of `function(x)` among many. The check gives you work whose seconds it knows from the GPU itself.


# %% nbgrader={"grade": false, "grade_id": "gpu_time", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gpu_time(function, x, calls=20):
    """Honest seconds of one call of function(x), where x lies on a device. About 7 lines.

    device.synchronize(x) waits for the device; device.clock(x) reads the clock that goes with x, in seconds.
    """
    ### BEGIN SOLUTION
    function(x)
    device.synchronize(x)
    start = device.clock(x)
    for _ in range(calls):
        function(x)
    device.synchronize(x)
    return (device.clock(x) - start) / calls
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_gpu_time", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.gpu_time(gpu_time)

# %% [markdown]
# Now the product again, by an honest clock (`seconds` does what you just wrote, on any device):

# %%
honest = seconds(lambda a: a @ a, a=gpu_matrix)
journal.measured("large_product", product_on_cpu / honest, where=GPU)
print(f"GPU {honest * 1e3:.2f} ms ({GPU}): {product_on_cpu / honest:.0f} times faster than the CPU")
print(f"the first clock showed 1/{honest / stopped:.0f} of the truth")
print(f"recorded on the H200: {recorded('matmul float32 2048', 'us', 1e-3):.2f} ms")

# %% [markdown]
# Still a large factor. The article's hunt, too, was timed by `%%timeit` without a wait, call after call. That shows what
# the host needs, not the GPU; only when the stream has taken as many calls as it can hold, the host must wait for it.
# Keep that in mind for lesson 07, where we weigh the article's figures.
#
# ## A step that never looks back
#
# Here is an epoch of training, in NumPy: a single dense layer, softmax, cross entropy. `ops.affine` and
# `ops.softmax_cross_entropy` run on any array. So the port is done, is it not?


# %%
def train_epoch_numpy(images, labels, weight, bias, batch_size, rate):
    losses = []
    for start in range(0, len(images), batch_size):
        x = images[start : start + batch_size].reshape(-1, weight.shape[1])
        y = np.asarray(labels[start : start + batch_size])
        loss, grad = ops.softmax_cross_entropy(ops.affine(x, weight, bias), y)
        if loss > 1000:
            raise ValueError(f"the loss is {loss} in step {len(losses)}")
        weight = weight - rate * (grad.T @ x)
        bias = bias - rate * grad.sum(axis=0)
        losses.append(float(loss))
    return weight, bias, np.array(losses)


untrained = np.zeros((10, 28 * 28), np.float32), np.zeros(10, np.float32)
*_, losses = train_epoch_numpy(train_set.images, train_set.labels, *untrained, batch_size=8, rate=0.1)
print(f"{len(losses)} steps; the loss falls from {losses[:10].mean():.2f} to {losses[-10:].mean():.2f}")

# %% [markdown]
# One line stops with an error when the arrays lie on the GPU. Two others are worse: they run. Each asks for a value, so
# the host waits until all is done and the value is here. Then the GPU waits until the host has handed over more.
# Neither works while the other does. Here is a step with such a line, and without. How many times faster is it without?

# %%
journal.predict("no_look_at_the_loss", ...)  # your guess

# %%
batch = simgpu.asarray(digits.images[:64].reshape(64, -1))
batch_labels = simgpu.asarray(digits.labels[:64])
first = simgpu.zeros((10, batch.shape[1]), dtype=simgpu.float32), simgpu.zeros(10, dtype=simgpu.float32)


def twenty_steps(looks):
    """The trace of 20 steps on the same batch."""
    with simgpu.trace() as trace:
        for _ in range(20):
            loss, grad = ops.softmax_cross_entropy(ops.affine(batch, *first), batch_labels)
            if looks:
                float(loss)
            grad.T @ batch
    return trace


twenty_steps(looks=True)  # once to warm up
by_look = {}
for looks, what in ((True, "a look at the loss"), (False, "no look at all")):
    trace = twenty_steps(looks)
    by_look[looks] = trace.seconds
    each = f"{trace.seconds / 20 * 1e6:6.0f} µs a step, transfers in each: {len(trace.transfers) // 20}"
    print(f"{what:20} {each} ({MODEL})")
journal.measured("no_look_at_the_loss", by_look[True] / by_look[False], where=MODEL)
print(
    f"recorded on the H200: fetching one value keeps the host {waits[0]:.0f} µs, even when nothing else is to be done"
)

# %% [markdown]
# That was a single look in each step. The program above looks twice.
#
# ### Exercise: train_epoch
#
# **Core**, about 12 minutes.
#
# Port it: no transfer and no wait inside. The losses come back as one array, as many as there are steps, in weight's
# dtype. It lies where the images lie; whoever wants to see them can copy it once, at the end. Then it is early enough to
# find out that one of them is too large. Leave the arrays that come in as they are. You may use {allows}.


# %% nbgrader={"grade": false, "grade_id": "train_epoch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train_epoch(images, labels, weight, bias, batch_size, rate):
    """Return (weight, bias, losses) after an epoch; all arrays stay where images (N, ...) lie. About 10 lines.

    labels (N,), weight (M, D), bias (M,). The last batch may be smaller.
    """
    ### BEGIN SOLUTION
    starts = range(0, len(images), batch_size)
    losses = device.array_module(images).zeros(len(starts), dtype=weight.dtype)
    for step, start in enumerate(starts):
        x = images[start : start + batch_size].reshape(-1, weight.shape[1])
        loss, grad = ops.softmax_cross_entropy(ops.affine(x, weight, bias), labels[start : start + batch_size])
        weight = weight - rate * (grad.T @ x)
        bias = bias - rate * grad.sum(axis=0)
        losses[step] = loss
    return weight, bias, losses
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_train_epoch", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.train_epoch(train_epoch)

# %% [markdown]
# ## Your own port, end to end
#
# You now have all the parts of a program that stays on the GPU. Let us join them. Your convolution, your activation and
# your pooling turn each digit into features, with random filters that never learn. Your `train_epoch` trains a dense
# layer on the features. The images go to the GPU once, at the beginning; one number comes back, at the end.

# %%
activate, convolve, pool, train = journal.mine("activation", "conv2d_port", "max_pool2d_port", "train_epoch")
test_set = digits.split()[1]


def features_of(x, filters, bias):
    """x (N, 1, 28, 28) to (N, 10, 14, 14), wherever it lies."""
    return pool(activate("relu", convolve(x, filters, bias, 1)), 2)[0]


def own_port(module, batch_size=8):
    """Train the dense layer for an epoch where the module's arrays lie: (share of test digits right, seconds)."""
    arrays = (train_set.images, train_set.labels, test_set.images, test_set.labels, weight / 3, bias)
    x, labels, unseen, truth, filters, its_bias = map(module.asarray, arrays)
    dense = module.zeros((10, 1960), dtype=module.float32), module.zeros(10, dtype=module.float32)
    device.synchronize(x)
    start = device.clock(x)
    *dense, _ = train(features_of(x, filters, its_bias), labels, *dense, batch_size, 0.1)
    device.synchronize(x)
    took = device.clock(x) - start
    scores = ops.affine(features_of(unseen, filters, its_bias).reshape(len(unseen), -1), *dense)
    return float((scores.argmax(axis=1) == truth).mean()), took


for name, module in {"CPU, measured": np, f"GPU, {GPU}": cp}.items():
    right, own_seconds = own_port(module)
    print(
        f"{name}: {own_seconds * 1e3:.0f} ms for {len(train_set)} digits; {right:.1%} of {len(test_set)} others right"
    )
with simgpu.trace() as trace:
    own_port(simgpu)
by_op = {op: sums.launches for op, sums in trace.by_op().items()}
print(f"{-(-len(train_set) // 8)} steps, {len(trace.launches)} launches, {len(trace.transfers)} transfers")
print(f"the GPU is busy for {trace.device_seconds / trace.seconds:.0%} of the time ({MODEL})")
print(f"the most frequent: {dict(sorted(by_op.items(), key=lambda item: -item[1])[:5])}")
epoch = own_seconds * 60_000 / len(train_set)
what = "random filters, a dense layer trained: an epoch"
journal.rung("your port, GPU", what, epoch, 8, hardware=GPU, made_of=[activate, convolve, pool, train])

# %% [markdown]
# Six transfers there, one back: that is what "move everything once" looks like in a trace. The filters are random, and
# most digits are right all the same. The features are made in few large launches. Training makes small ones, and again
# in each step: divide the launches by the steps, and you see that nearly all of them are there. That is where the next
# gain lies.
#
# ## The whole network moves
#
# `unrolled.nn` is written as you just did it: it looks at the arrays. Give `fit` images that lie on the GPU, and the
# network is built there. Nothing else changes. This is the network of the article, with its batches of 8. On a CPU you
# timed it in lesson 05.
#
# How many times faster is a step on the GPU?

# %%
journal.predict("network_batch_8", ...)  # your guess

# %%
journal.predict("network_batch_128", ...)  # and with batches of 128?


# %%
def step_seconds(network, images, labels, steps=2):
    """Seconds of a training step on this batch: the mean of some, after two that warm up."""
    optimizer = nn.Adam()
    for step in range(-2, steps):
        if step == 0:
            device.synchronize(images)
            start = device.clock(images)
        network.loss_and_scores(images, labels)
        optimizer.step(network.parameters, network.gradients)
    device.synchronize(images)
    return (device.clock(images) - start) / steps


epochs = {}
print(f"Milliseconds for a step: CPU, measured; GPU, {GPU}; recorded on the H200, ours and PyTorch")
print("               CPU     GPU   H200   PyTorch     GPU against CPU     an epoch of 60,000 on the GPU")
for batch_size in (8, 128, 1024):
    images, labels = train_set.images[:batch_size], train_set.labels[:batch_size]
    repeats = max(2, 800 // batch_size)
    cpu = step_seconds(article_network(), images, labels, repeats)
    gpu = step_seconds(article_network(), cp.asarray(images), cp.asarray(labels), min(repeats, 20))
    epochs[batch_size] = gpu * 60_000 / batch_size
    theirs = [recorded(f"mnist step, batch {batch_size}", field, 1e3) for field in ("ours_s", "peer_s")]
    print(
        f"batch {batch_size:4} {cpu * 1e3:8.2f} {gpu * 1e3:7.2f} {theirs[0]:6.2f} {theirs[1]:9.2f} "
        f"{cpu / gpu:9.1f} times faster {epochs[batch_size]:17.2f} s"
    )
    journal.measured(f"network_batch_{batch_size}", cpu / gpu, where=GPU)
print("Kernels in a step, as PyTorch's profiler counted them on the H200:")
for batch_size in (8, 128, 1024):
    ours, theirs = (recorded(f"mnist step, batch {batch_size}", f"launches{who}") for who in ("", "_peer"))
    print(f"batch {batch_size:4}: ours {ours:.0f}, PyTorch {theirs:.0f}")

# %% [markdown]
# At 8 images a step, the GPU disappoints: the large product had another factor. From 8 to 128 a step has 16 times the
# work, and on a GPU it takes nowhere near 16 times as long, modelled or recorded.
#
# (Do not read too much into PyTorch's column. This is plain PyTorch, and it launches a few kernels more than we do. That
# explains a part of the difference. Where the rest of its time went, the record does not say.)
#
# Where was the time, then, at 8? Count launches, and look at the timeline. It shows forward and backward at batch 8.
# White on the host's row is Python again: layers, shapes and checks between two calls.

# %%
for batch_size in (128, 8):
    network = article_network()
    images, labels = simgpu.asarray(train_set.images[:batch_size]), simgpu.asarray(train_set.labels[:batch_size])
    step_seconds(network, images, labels)
    with simgpu.trace() as trace:
        network.loss_and_scores(images, labels)
    print(
        f"batch {batch_size:3}: forward and backward are {len(trace.launches)} launches, {len(trace.transfers)} "
        f"transfers; the GPU is busy for {trace.device_seconds / trace.seconds:.0%} of the time ({MODEL})"
    )
    row = f"mnist step, batch {batch_size}"
    theirs = recorded(row, "device_us"), recorded(row, "ours_s", 1e6)
    print(f"    a whole step, recorded on the H200: the GPU computes for {theirs[0]:.0f} µs of {theirs[1]:.0f}")
    lowest, highest = (records.model().figure(f"host of a {row}", f"{which}_us") for which in ("lowest", "highest"))
    print(f"    its host, from run to run: {lowest:.0f} to {highest:.0f} µs")
show.timeline(trace)

# %% [markdown]
# The number of calls does not depend on the batch, and the simulated GPU counts one launch for each. (A real library may
# answer a call with more than one kernel. On the H200 the larger batches had two or three kernels more, as the table
# above says.) At batch 8 the kernels are so short that the GPU is done before the host has handed over the next one. The
# step takes as long as the host needs to hand it over: it is **launch-bound**.
# <!-- why: launch-bound --> A GPU that computes faster would change
# nothing. Larger batches would, or fewer launches. A larger batch is not the same training, though: 469 updates an epoch
# in place of 7,500 (lesson 05).
#
# And yet the recorded step took longer with 128 images than with 8. The GPU explains little of that: compare its two
# times. It is the host that differs. It makes the same calls, but it wavers: from run to run, its time for a step with
# 128 differed by a factor of two. So do not compare two launch-bound steps more closely than that.
#
# The article's program needed 100 seconds for its epoch with batches of 8, on a GPU. Where were they, if a step can be
# as short as this? That is lesson 07.

# %% [markdown]
# ### A race
#
# The same network names the same digits, on both.

# %%
network = article_network()
network.fit(train_set, epochs=2, progress=False)
guesses = network.predict(digits.images[-40:])
moved = article_network().build(train_set.images.shape[1:], cp)
moved.parameters = cp.asarray(network.parameters)
forty_on_gpu = cp.asarray(digits.images[-40:])
same = cp.asnumpy(moved.predict(forty_on_gpu))
print(f"The same answers: {np.array_equal(guesses, same)}")
show.race(
    digits.images[-40:],
    digits.labels[-40:],
    {
        "NumPy (measured)": (seconds(network.predict, images=digits.images[-40:]) / 40, guesses),
        f"GPU ({GPU})": (seconds(moved.predict, images=forty_on_gpu) / 40, same),
    },
)

# %% [markdown]
# ## Channels, layers, windows
#
# In 2015 the blog that you know from lessons 03 and 05 trained a network on 40,000 colour images: an hour and two
# minutes on a CPU, ten minutes on a Tesla K20c.³ The comparison was unfair to the CPU. In that hour its cores worked for
# 712 minutes, and 572 of them went to the operating system, not to the network. <!-- why: unfair CPU -->
# With 16 times the filters the GPU took twice as
# long. A second dense layer cost it little. Pooling windows of 2 in place of 4 took it a fifth longer, and windows that
# overlap half an hour an epoch, while it was idle. The rest of this part asks why.
#
# **More**, about 15 minutes.
#
# The network had 16 filters of 5 x 5, pooling with windows of 4, a dense layer of 1,000, batches of 100, 50 epochs. Let
# us vary it as its author did.
#
# First the filters: 16, 64, 256. From the first to the last, the step has about 16 times the work. How many times as
# long does it take on the GPU?
#
# ³ *takataka's diary* (in Japanese), July 2015.

# %%
journal.predict("channels_on_gpu", ...)  # your guess: how many times as long?


# %%
def blog_network(filters=16, window=4, stride=None, dense=1):
    """The network of the blog, for images of 3 x 32 x 32."""
    hidden = [layer for _ in range(dense) for layer in (nn.Linear(1000), nn.ReLU())]
    return nn.Sequential(
        nn.Conv2d(filters, 5), nn.MaxPool2d(window, stride), nn.ReLU(), nn.Flatten(), *hidden, nn.Linear(10)
    )


count = 20 if device.is_simulated(cp) else 100  # a fifth of the blog's batch, where NumPy must compute what we model
colour, its_labels = rng.standard_normal((count, 3, 32, 32), dtype=np.float32), rng.integers(0, 10, count)
colour_on_gpu = cp.asarray(colour), cp.asarray(its_labels)
gpu_steps = 1 if device.is_simulated(cp) else 20
minutes = {16: "10:19", 64: "13:01", 256: "20:53"}
by_filters = {}
print(f"Milliseconds for a step of {count} images: CPU, measured; GPU, {GPU}.")
print("Recorded for 100 images: a step on the H200, and how long the GPU computes in it.")
print("             CPU      GPU      H200    GPU computing   the blog's 50 epochs on a K20c")
for filters in minutes:
    cpu = step_seconds(blog_network(filters), colour, its_labels)
    gpu = step_seconds(blog_network(filters), *colour_on_gpu, steps=gpu_steps)
    by_filters[filters] = cpu, gpu
    row = f"cifar step, {filters} channels"
    theirs = f"{recorded(row, 'ours_s', 1e3):9.3f} {recorded(row, 'device_us', 1e-3):17.3f}"
    print(f"{filters:3} filters {cpu * 1e3:6.1f} {gpu * 1e3:8.2f} {theirs} {minutes[filters]:>20} minutes")
more = [after / before for before, after in zip(by_filters[16], by_filters[256], strict=True)]
journal.measured("channels_on_gpu", more[1], where=GPU)
published = {16: 619, 64: 781, 256: 1253}  # seconds
on_h200 = [recorded(f"cifar step, {filters} channels", "ours_s", 1 / 100) for filters in minutes]
print("16 to 256 filters, times as long:")
print(f"    here: CPU {more[0]:.1f}, GPU {more[1]:.1f}")
print(f"    the blog's K20c {published[256] / published[16]:.1f}, the H200 {on_h200[-1] / on_h200[0]:.1f}")

lines = {
    f"CPU, batch {count}": (list(by_filters), [cpu / count for cpu, _ in by_filters.values()], "measured, one core"),
    f"GPU, batch {count}": (list(by_filters), [gpu / count for _, gpu in by_filters.values()], GPU),
    "K20c, batch 100": (list(published), [took / 50 / 40_000 for took in published.values()], "published, 2015"),
    "H200, batch 100": (list(minutes), on_h200, "recorded"),
}
show.scaling(lines, what="filters", title="training, time for each image of a batch")

# %% [markdown]
# About 16 times the work, and the K20c took only twice as long, the recorded H200 even less. (Of its CPU the blog says
# that the time grew with the channels.) More channels make larger products, not more calls.
#
# The H200's line is nearly flat, and the table says why. With 16 filters its GPU computes for a part of the step only: the
# rest is waiting for launches, and more filters fill it. With 256 the GPU computes nearly all the time. From there on the
# line must rise. The blog's accuracy rose from 73.9 to 75.9 % with 64 filters, and to 76.0 % with 256.
#
# Its other variations, all with 64 filters:

# %%
variations = {
    "as it is": ("", {}, "13:01 minutes"),
    "a second dense layer": (", second dense layer", {"dense": 2}, "13:39 minutes"),
    "windows of 2": (", window 2", {"window": 2}, "15:55 minutes"),
    "windows of 4, stride 2": (", window 4 stride 2", {"stride": 2}, "30 minutes an epoch"),
}
print(f"Milliseconds for a step of {count} images: CPU, measured; GPU, {GPU}.")
print("The H200: recorded for 100 images. Multiply-adds: counted for an image, forward.")
print("                      multiply-adds      CPU      GPU      H200, device   the blog's 50 epochs on a K20c")
usual = recorded("cifar step, 64 channels", "device_us")
for name, (row, options, took) in variations.items():
    cpu, gpu = by_filters[64]
    if options:
        cpu = step_seconds(blog_network(64, **options), colour, its_labels)
        gpu = step_seconds(blog_network(64, **options), *colour_on_gpu, steps=gpu_steps)
    work = blog_network(64, **options).summary((3, 32, 32)).multiply_adds
    theirs = recorded(f"cifar step, 64 channels{row}", "device_us")
    there = f"{theirs / 1e3:.3f}, {theirs / usual - 1:+4.0%}"
    print(f"{name:24} {work:10,} {cpu * 1e3:8.1f} {gpu * 1e3:8.2f} {there:>17} {took:>32}")

# %% [markdown]
# The H200's column is the time that its GPU computes. That of a whole step holds its host as well, which wavers from run
# to run by more than these rows differ. A second dense layer adds the least work, and costs the least; but it is not
# free. Windows of 2 leave four times as many values for the layers behind them, and more than double the multiply-adds.
# Overlapping windows leave nearly as many, and on the H200 they cost nearly as much.
#
# For the author that last line was a mystery: half an hour an epoch, with the GPU idle. Lesson 03 found the likely
# reason. That version of Theano did it in a Python loop, window by window, on the host. Would it have helped to run the
# loop on the GPU? How many times as long as our whole step would the loop take, forward alone?

# %%
journal.predict("overlapping_loop_on_gpu", ...)  # your guess: how many times as long?


# %%
def window_by_window(x):
    """The maxima of all windows of 4, stride 2, of x (28, 28), one by one."""
    return [x[row : row + 4, column : column + 4].max() for row in range(0, 25, 2) for column in range(0, 25, 2)]


feature_map = rng.standard_normal((28, 28), dtype=np.float32)
loop = seconds(window_by_window, x=cp.asarray(feature_map)) * count * 64
whole_step = step_seconds(blog_network(64, stride=2), *colour_on_gpu, steps=gpu_steps)
journal.measured("overlapping_loop_on_gpu", loop / whole_step, where=GPU)
print(f"{count} images and 64 channels: {count * 64 * 13 * 13:,} launches, {loop:.1f} s ({GPU})")
print(f"{loop / whole_step:,.0f} times as long as the whole step with whole arrays")
print(f"an epoch of 40,000 images: {loop / count * 40_000 / 60:.0f} minutes")
with simgpu.trace() as trace:
    window_by_window(simgpu.asarray(feature_map))
print(f"the GPU would be busy for {trace.device_seconds / trace.seconds:.0%} of that time ({MODEL})")
host, kernel = (recorded("call: max over axis 1", side) for side in ("host_us", "device_us"))
at_pace = host * 1e-6 * 40_000 * 64 * 13 * 13 / 60
print(
    f"recorded on the H200, for one maximum: {host:.0f} µs of the host, {kernel:.1f} of the GPU; {at_pace:.0f} minutes an epoch"
)

# %% [markdown]
# It would have been slower still, and the GPU just as idle. A GPU does not make a loop fast. It makes large array
# operations fast.

# %% [markdown]
# ## In your own words
#
# A colleague ported a network to a GPU, in a day. She says: "With batches of 8 it is hardly faster than my CPU. I need a
# better GPU." Answer her in five to seven sentences.
#
# 1. Is she right? Use your own numbers for batches of 8 and of 128, and say what a launch is.
# 2. She also reports a matrix product that is thousands of times faster than on the CPU. What would you ask her?
# 3. Name two more things in her program that you would look for, and how to find each.

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_launch_bound", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** A better GPU would not help. Each array operation is a launch, which costs the host about the same
# whatever its size, and a step makes as many calls for 8 images as for 128. With 8 the GPU is done with each kernel
# before the next one comes, so a step takes as long as the host needs to hand it over: in my table under *The whole
# network moves* (modelled T4) a step takes nearly as long with 8 images as with 128, so against my CPU the factor with
# 128 is several times that with 8; nor does the recorded H200 need 16 times as long. She should try larger batches,
# knowing that this is other training, or fewer launches. Of the product I would ask when she stopped the clock: a call
# only hands over the work, and without a wait she has timed the order, not the product; *The clock that lies* printed
# how small a part of the truth my own first clock showed. I would look for hidden transfers, such as float(loss), a
# boolean mask or an `if` on a GPU value in each step, with a trace; and for float64, by printing the dtype of each
# layer's output, since one np.zeros without a dtype makes everything after it float64, which a T4's data sheet gives a
# 32nd of the units.
#
# **Rubric** (3 points). One point: launch-bound, with own numbers for both batch sizes; the number of calls does not
# depend on the batch. One point: the clock was stopped before the device was done (a synchronization is missing). One
# point: two of hidden transfer or synchronization, float64, loops of small launches, data copied in each step; each with
# a way to find it. Half a point off if no measured number is named.
# ### END SOLUTION

# %% [markdown]
# ## What you have
#
# Your network has new rungs, on the GPU. Those in NumPy stay as lesson 05 measured them. A modelled rung says so: it is no
# measurement.

# %%
for batch_size in (8, 128):
    label = f"whole network, GPU, batch {batch_size}"
    journal.rung(label, "an epoch of training", epochs[batch_size], batch_size, hardware=GPU)
journal.ladder()

# %%
journal.guesses()

# %% [markdown]
# In three sentences: An array lives on the host or on the GPU, nothing moves by itself, and what you move you should move
# once; one function can serve both if it asks the array. A call only hands work over, so an honest clock waits for the
# device before it starts and before it stops. Each launch costs the host about the same, large or small: few large
# operations make a GPU fast, and loops, looks at a value and small batches keep it waiting.
#
# ### Stretch: your own network on the GPU
#
# **More**, as long as you like.
#
# Your port trains a dense layer on features that stay random. Count its launches by operation, as above, and find out how
# many of them you can spare. `xp.empty` instead of `xp.zeros` is one; a convolution without padding needs no copy. Then
# make the filters learn, too, with the gradients of lesson 04, and compare your launches with those of `unrolled.nn`.

# %%
# Your stretch.
