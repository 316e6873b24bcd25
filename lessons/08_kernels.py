# %% [markdown]
# # Your own kernels
#
# Lesson 08, about 115 minutes. A session of 90 minutes ends after the exercise `row_sum`.
#
# **Afterwards you can**
#
# - write a kernel: what one thread does, and which threads have nothing to do;
# - count the sectors that a warp reads, and arrange threads so that they are few;
# - let the threads of a block work together, without a race and without a bank conflict;
# - put several operations into one pass over memory, and say what that gains.
#
# **You need** to know what a launch is and where an array lives (lesson 06), and what it means to be bound by memory
# (lesson 07). No exercise needs an earlier one.
#
# Are you coming back after a restart? Choose *Run All Above* first: later cells use what earlier ones define.

# %%
import numpy as np

from unrolled import check, data, device, journal, nn, ops, records, show, simgpu

check.start("08_kernels")

cp, jit = device.gpu(), device.jit()
SIMULATED = device.is_simulated(cp)
print("the GPU is", "simulated: it counts what a kernel does" if SIMULATED else "real")

THREADS = 256  # of a block
TILE, WIDTH = 32, 33  # rows of a tile, and values of one row in shared memory
rng = np.random.default_rng(0)


def print_counts(kernel):
    """Print what the simulated GPU counted in the kernel's last launch."""
    print(getattr(kernel, "report", None) or f"{kernel.__name__} ran on a real GPU, which does not count")


# %% [markdown]
# ## Where the work is done
#
# Since lesson 06 you call functions, and somebody else's kernels run. Today you write the kernels. For that you have to
# know what the GPU looks like from inside. Here it is, with one figure on each way; the table says which were measured.

# %%
show.hardware(simgpu.profiles.PROFILES["H200"], simgpu.profile(), inside=True)

# %% [markdown]
# At the right are the **multiprocessors**, SM for short; below, one of them is enlarged. Each SM has arithmetic units,
# and a small memory of its own, the **shared memory**. Look at the ways: arithmetic is plenty, no way to the left is
# wider than the one before, and the bus is by far the narrowest. (The way to shared memory has another unit: each SM
# has its own.) So a kernel is mostly judged by what it carries. <!-- why: carried bytes -->
#
# Work reaches an SM in three sizes.
#
# - A **thread** runs your function once, with variables of its own.
# - 32 threads are a **warp**. They are handed the same line together, as long as they go the same way. After a branch
#   each may go on by itself: since 2017 (Volta) nobody promises when they meet again. CUDA has `__syncwarp` for that.
# - A **block** is a number of warps, 256 threads for instance. It stays on one SM from start to end. Its threads share
#   that SM's shared memory, and they can wait for one another.
#
# A launch is a **grid** of blocks. Nobody says in which order blocks run, so in a launch like yours none may wait for
# another, which may not have begun. (A *cooperative* launch begins all at once: lesson 09 has one.) How much of an SM's
# room for threads is filled is called the **occupancy**. While one warp waits for memory, another can work, so a well
# filled SM waits less. <!-- why: occupancy -->
#
# ## One thread's view
#
# In NumPy you say what happens to a whole array. In a kernel you say what *one thread* does. Its number tells it which
# value is its own. This kernel doubles:


# %%
@jit.rawkernel()
def doubled(x, out, n):
    i = jit.grid(1)  # this thread's number in the whole launch
    if i < n:  # the guard
        out[i] = 2 * x[i]


x = cp.arange(1000, dtype=cp.float32)
out = cp.empty_like(x)
blocks = (len(x) + THREADS - 1) // THREADS  # rounded up
doubled[blocks, THREADS](x, out, len(x))
print(f"{blocks} blocks of {THREADS} threads for {len(x)} values; the last value: {out[-1]}")
print_counts(doubled)

# %% [markdown]
# In the square brackets stands the launch: how many blocks, and how many threads each. 1,000 values need four blocks,
# and four blocks have 1,024 threads. The **guard** keeps 24 of them out. Without it they would read and write beyond
# the end. A real GPU may do so without a word, and overwrite somebody else's array. The simulated one stops, and names
# the line, the thread and the index. If yours is simulated, take the `if` away, run the cell, read what it says, and
# put the `if` back.
#
# The report has words that you do not know yet; each gets its section. One is easy: a branch is **divergent** if the
# threads of one warp part there. The warp then goes both ways, one after the other, with some of its threads idle.
#
# Some things to know before you write one:
#
# - The source is read and compiled, never run as Python. So a kernel knows a part of the language: numbers, indices,
#   `if`, `for` over `range`, `while`. It has no lists, no strings, and no NumPy functions of arrays.
# - A variable keeps the type of its first value, as in C. `total = cp.float32(0)` begins a sum of floats. After
#   `total = 0`, a float is refused with *Cannot cast from 'float32' to int32*.
# - A bare `return` ends the thread.
# - `jit.threadIdx.x` is a thread's number in its block, and `jit.blockIdx.x` the block's number in the launch. These
#   and `jit.grid` are **unsigned**. A name that begins as one stays one: after `i = jit.grid(1)`, the line
#   `i = i + 256` is refused with *Cannot cast from 'int32' to uint32*. And for thread 0, `i - 1` is 4,294,967,295. Cast
#   once, at the top: `t = cp.int32(jit.threadIdx.x)`.
# - `//` rounds down, as in Python, and `/` makes a float.
# - No name in it may be a word of C++, such as `double` or `new`.
# - A kernel sees the numbers of the notebook, such as `TILE`. If the notebook has an *array* of some name, give no
#   variable of the kernel that name: on a real GPU that is refused.
#
# ### Exercise: add_kernel
#
# **Core**, about 8 minutes.
#
# Write the kernel that adds two arrays: thread i takes care of value i, and a thread beyond the last value does
# nothing. The check launches it, with sizes that do not divide a block, and with blocks of several sizes.


# %% nbgrader={"grade": false, "grade_id": "add_kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
@jit.rawkernel()
def add_kernel(x, y, out, n):
    # out = x + y, all with n values of float32. About 3 lines.
    ### BEGIN SOLUTION
    i = jit.grid(1)
    if i < n:
        out[i] = x[i] + y[i]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_add_kernel", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.add_kernel(add_kernel)

# %% [markdown]
# What becomes of your Python? On a real GPU, CuPy translates it into CUDA C++, and NVIDIA's compiler does the rest.
# There, after a launch, `add_kernel.cached_code` is the translation. This is what CuPy 14.2 made of the model answer:
#
# ```c
# extern "C" __global__ void add_kernel(
#     CArray<float, 1, true, true> x, CArray<float, 1, true, true> y,
#     CArray<float, 1, true, true> out, int n) {
#   unsigned int i = threadIdx.x + blockIdx.x * blockDim.x;
#   if (((long long)(i) < (long long)(n))) {
#     out[i] = (x[i] + y[i]);
#   }
#   else {
#   }
# }
# ```
#
# Line by line it is what you wrote, with types. There is the `unsigned int` that was promised, and what `jit.grid(1)`
# stands for. (The first line was broken for the page, and an `#include` left out.)
#
# ## Warps and sectors
#
# The 32 threads of a warp come to a read together. Memory answers in **sectors** of 32 bytes, eight values of float32,
# and always whole ones. If 32 neighbours read 32 neighbouring values, they need four sectors, and every byte is used.
# That is called **coalescing**.
#
# Now let thread i read value 2 * i. How many times as many sectors does the warp need?

# %%
journal.predict("stride_2", ...)  # your guess


# %%
@jit.rawkernel()
def strided(x, out, stride):
    i = cp.int32(jit.grid(1))
    out[i] = x[stride * i]


source, out = cp.ones(32 * 1024, cp.float32), cp.empty(1024, cp.float32)
sectors = {}
if SIMULATED:
    for stride in (1, 2, 4, 8, 16, 32):
        strided[4, THREADS](source, out, stride)
        sectors[stride] = strided.report.total.read_sectors
        print(f"stride {stride:2}: {sectors[stride]:5} sectors for 1,024 values, × {sectors[stride] / sectors[1]:.0f}")
    journal.measured("stride_2", sectors[2] / sectors[1], where="counted")

# %% [markdown]
# Twice the stride, twice the sectors. From a stride of 8 on, each value has a sector to itself, and it gets no worse:
# seven of eight values are thrown away already. <!-- why: stride --> Choose what the threads read and one of the warps,
# and its sectors light up.

# %%
show.warps(start="x[2 * i]")

# %% [markdown]
# The rule is short: **neighbouring threads touch neighbouring values.** It is about neighbours in a warp. What one
# thread does in its next step matters much less.
#
# ## Tiles and barriers
#
# A transposition is the smallest problem in which good intentions cannot keep the rule. Read along the rows of x, and
# you write down the columns of y.
#
# For a matrix, blocks and grid can have two directions. The first is the one in which threads of a warp are neighbours:
# in a block of 32 x 8 threads, each of the 8 rows is a warp. So `jit.grid(2)` gives two numbers, and the **column comes
# first**.


# %%
@jit.rawkernel()
def transpose_naive(x, y, rows, columns):
    column, row = jit.grid(2)
    if row < rows and column < columns:
        y[column, row] = x[row, column]


x = cp.asarray(rng.standard_normal((104, 200), dtype=np.float32))
y = cp.empty((200, 104), cp.float32)
transpose_naive[(7, 13), (32, 8)](x, y, 104, 200)
print_counts(transpose_naive)

# %% [markdown]
# The reads are ideal, and each write takes a sector for a single value. <!-- why: naive transposition --> Exchange the
# roles of the two numbers, and it is the other way round.
#
# The cure is a detour. A block fetches a **tile** of 32 x 32 values, row by row, into shared memory. Then it writes the
# tile, again row by row, but takes the values from the tile's *columns*. Shared memory has no sectors.
# `jit.shared_memory(cp.float32, 64)` gives a block 64 places that all its threads see. Two new things come with it.
#
# **The barrier.** A thread writes values that *others* have put into the tile. Have they? Warps run as they like.
# `jit.syncthreads()` is a **barrier**: no thread of the block passes until all have come to it. Without it, a thread
# may read a place before it is written. That is a **data race**: the result depends on who comes first, and may be
# right a thousand times. The simulated GPU finds a race by what *could* happen, in whatever order threads ran. Here is
# one, planted:


# %%
@jit.rawkernel()
def turned_round(x, out):
    tile = jit.shared_memory(cp.float32, 64)
    t = cp.int32(jit.threadIdx.x)
    tile[t] = x[t]
    # here a barrier is missing
    out[t] = tile[63 - t]


if SIMULATED:
    try:
        turned_round[1, 64](cp.arange(64, dtype=cp.float32), cp.empty(64, cp.float32))
    except jit.KernelFault as fault:
        print(fault)

# %% [markdown]
# And a barrier is for all. If it stands inside an `if` that some threads of the block do not enter, the others wait for
# them forever.
#
# ### Exercise: shift_kernel
#
# **Core**, about 5 minutes.
#
# Move each value one place on, within its block: thread t writes what thread t - 1 has read. Thread 0 has nobody before
# it, since no block sees the shared memory of another; it writes 0. Each value is read from global memory once. The
# last block may not be full.


# %% nbgrader={"grade": false, "grade_id": "shift_kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
@jit.rawkernel()
def shift_kernel(x, out, n):
    # out[i] = x[i - 1] within each block of THREADS values, 0 where it begins. About 8 more lines.
    shared = jit.shared_memory(cp.float32, THREADS)
    t, i = cp.int32(jit.threadIdx.x), cp.int32(jit.grid(1))
    ### BEGIN SOLUTION
    if i < n:
        shared[t] = x[i]
    jit.syncthreads()
    if i < n:
        if t == 0:
            out[i] = 0
        else:
            out[i] = shared[t - 1]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_shift_kernel", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.shift_kernel(shift_kernel)

# %% [markdown]
# **Banks.** Shared memory lies in 32 **banks**, and value number i lies in bank i % 32. A warp gets 32 values in one
# pass if they lie in 32 banks, or if they want the same value. If several different ones lie in one bank, they come one
# after the other: a *bank conflict*. A column of a tile whose rows are 32 values long lies in a single bank. A row of
# 33 values costs a little memory, and every column then goes through all banks. <!-- why: banks -->

# %%
show.banks(start="a column of 32 × 32")

# %% [markdown]
# ### Exercise: transpose_tiled
#
# **Core**, about 22 minutes.
#
# Write the kernel; how it is launched is given. A block has 32 x 8 threads and takes a tile of 32 x 32, so each thread
# moves four values: rows j, j + 8, j + 16 and j + 24 of the tile. The check allows {sectors} times the fewest sectors,
# each way, and no bank conflict. Both the reading and the writing need a guard, and the two are not the same.


# %% nbgrader={"grade": false, "grade_id": "transpose_tiled", "locked": false, "schema_version": 3, "solution": true, "task": false}
@jit.rawkernel()
def transpose_kernel(x, y, rows, columns):
    # y (columns, rows) is x (rows, columns) transposed. About 8 more lines.
    tile = jit.shared_memory(cp.float32, TILE * WIDTH)  # place (a, b) is tile[a * WIDTH + b]
    i, j = cp.int32(jit.threadIdx.x), cp.int32(jit.threadIdx.y)
    top, left = cp.int32(jit.blockIdx.y) * TILE, cp.int32(jit.blockIdx.x) * TILE  # the tile's place in x
    ### BEGIN SOLUTION
    for k in range(0, TILE, 8):
        if top + j + k < rows and left + i < columns:
            tile[(j + k) * WIDTH + i] = x[top + j + k, left + i]
    jit.syncthreads()
    for k in range(0, TILE, 8):
        if left + j + k < columns and top + i < rows:
            y[left + j + k, top + i] = tile[i * WIDTH + j + k]
    ### END SOLUTION


def transpose_tiled(x):
    """Transpose x (rows, columns), float32, on the GPU."""
    rows, columns = x.shape
    y = device.array_module(x).empty((columns, rows), x.dtype)
    blocks = (columns + TILE - 1) // TILE, (rows + TILE - 1) // TILE
    transpose_kernel[blocks, (TILE, 8)](x, y, rows, columns)
    return y


# %% nbgrader={"grade": true, "grade_id": "check_transpose_tiled", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.transpose_tiled(transpose_tiled)

# %% [markdown]
# On a real GPU the check times your kernel, too: it asks for at least {T} times the speed of the naive one, and gives no
# points for it. What can be said without a GPU is what both carry:

# %%
if SIMULATED:
    naive = transpose_naive.report.total
    with simgpu.trace() as trace:
        journal.mine("transpose_tiled")(x)
    print(f"naive: {naive.read_sectors + naive.write_sectors:,} sectors; fewest: {2 * x.nbytes // 32:,}")
    for report in trace.kernels:
        total = report.total
        print(f"yours: {total.read_sectors + total.write_sectors:,} sectors, {total.bank_conflicts} bank conflicts")

# %% [markdown]
# ## A tree of partial sums
#
# To add up a row of a matrix, one thread could walk along it. But then neighbouring threads stand in neighbouring
# *rows*, far apart in memory. So let a whole block take one row. Its threads walk along it side by side: thread t adds
# columns t, t + 256, t + 512, and so on. Each read of a warp is coalesced.
#
# Now 256 threads hold 256 partial sums. Who adds these? Not one thread, since that would be 255 steps for it while all
# others wait. In pairs: 128 threads add one partner each, then 64, then 32. After eight rounds one sum is left. That is
# a **tree**. <!-- why: tree -->
#
# In a round, thread t adds to its own place what lies `half` places further, with `half` = 128, 64, ..., 1. So the
# threads that work are neighbours, and no two of a warp meet in a bank. After each round comes a barrier, because the
# next round reads what others have just written.
#
# Step through the tree of a small block. At the right are the same threads without barriers, in one possible order.

# %%
show.barriers()

# %% [markdown]
# ### Exercise: row_sum
#
# **Core**, about 16 minutes.
#
# Write the kernel: one block a row. Rows may be shorter than a block, or longer. Where do the barriers go?


# %% nbgrader={"grade": false, "grade_id": "row_sum", "locked": false, "schema_version": 3, "solution": true, "task": false}
@jit.rawkernel()
def row_sum_kernel(x, y, columns):
    # y[row] is the sum of row `row` of x. About 13 more lines.
    partial = jit.shared_memory(cp.float32, THREADS)
    t, row = cp.int32(jit.threadIdx.x), cp.int32(jit.blockIdx.x)
    ### BEGIN SOLUTION
    total = cp.float32(0)
    for column in range(t, columns, THREADS):
        total += x[row, column]
    partial[t] = total
    jit.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            partial[t] += partial[t + half]
        jit.syncthreads()
        half //= 2
    if t == 0:
        y[row] = partial[0]
    ### END SOLUTION


def row_sum(x):
    """Return the sum of each row of x (rows, columns), float32, on the GPU."""
    y = device.array_module(x).empty(len(x), x.dtype)
    row_sum_kernel[len(x), THREADS](x, y, x.shape[1])
    return y


# %% nbgrader={"grade": true, "grade_id": "check_row_sum", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.row_sum(row_sum)

# %% [markdown]
# Again speed waits for a real GPU, and gives no points: the check asks for at least {T} times the speed of one thread a
# row. Do not look to the model for that factor. It counts sectors, and it does not know how long a single thread waits for a single read. A
# kernel with few threads looks better there than it is. <!-- why: few threads -->
#
# Does the order of additions matter? The tree adds in another order than NumPy, and floats round. So compare with a
# tolerance, and never with `==`.
#
# ## Fusion
#
# Look at the beginning of the article's network: a convolution, its bias, a ReLU, a pooling. As functions of arrays,
# the last three are three launches. The bias reads the image and writes it, the ReLU reads it and writes it, the
# pooling reads it and writes a quarter. The numbers travel to memory and back, for an addition and a comparison.
#
# One kernel can do the three in one pass. A thread fetches its four pixels, adds the bias, applies the ReLU, keeps the
# largest, and writes that. Nothing else leaves it. This is **fusion**: not less arithmetic, but fewer trips.
#
# Count the numbers that travel. With P pixels, the separate ones move 2 P, 2 P and 1.25 P, and the places of the
# maxima. The fused one moves 1.25 P and the places. How many times fewer bytes are that? Mind that a place is an int64,
# as large as two pixels.

# %%
journal.predict("fusion", ...)  # your guess

# %% [markdown]
# ### Exercise: fused_bias_relu_pool
#
# **Core**, about 18 minutes.
#
# One thread an output. Windows are 2 x 2, side by side; an edge that is left over belongs to none. Of equal values the
# first in the window wins, as in lesson 03. After a ReLU ties are common: many windows hold nothing but zeros. The
# place that you write is that of the pixel in its image, row * w + column. Read each pixel once. Neighbours leave every
# other pixel to the next read, which finds its sectors in a small cache of the SM, called L1. (That it still has them
# is a rule of the simulated GPU; on a real one something else may have needed the room.)


# %% nbgrader={"grade": false, "grade_id": "fused_bias_relu_pool", "locked": false, "schema_version": 3, "solution": true, "task": false}
@jit.rawkernel()
def fused_kernel(x, bias, y, places, size, channels, oh, ow, w):
    # y and places (N, C, oh, ow) hold `size` values each; x (N, C, H, w). About 8 more lines.
    i = cp.int32(jit.grid(1))
    if i < size:
        image, channel = i // (channels * oh * ow), i // (oh * ow) % channels
        row, column = i // ow % oh, i % ow
        ### BEGIN SOLUTION
        largest, place = cp.float32(-1), 0
        for k in range(4):
            r, c = 2 * row + k // 2, 2 * column + k % 2
            value = max(x[image, channel, r, c] + bias[channel], cp.float32(0))
            if value > largest:
                largest, place = value, r * w + c
        y[image, channel, row, column] = largest
        places[image, channel, row, column] = place
        ### END SOLUTION


def fused_bias_relu_pool(x, bias):
    """Return (largest, places) of windows of 2 x 2 of relu(x + bias), for x (N, C, H, W) and bias (C,), on the GPU."""
    n, channels, h, w = x.shape
    oh, ow = h // 2, w // 2
    xp = device.array_module(x)
    y, places = xp.empty((n, channels, oh, ow), x.dtype), xp.empty((n, channels, oh, ow), xp.int64)
    blocks = (y.size + THREADS - 1) // THREADS
    fused_kernel[blocks, THREADS](x, bias, y, places, y.size, channels, oh, ow, w)
    return y, places


# %% nbgrader={"grade": true, "grade_id": "check_fused_bias_relu_pool", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.fused_bias_relu_pool(fused_bias_relu_pool)

# %% [markdown]
# Now beside the three separate operations, on the article's maps with a batch of 128.

# %%
fused = journal.mine("fused_bias_relu_pool")
maps = cp.asarray(rng.standard_normal((128, 10, 28, 28), dtype=np.float32))
bias = cp.asarray(rng.standard_normal(10, dtype=np.float32))


def separate(x, bias):
    return ops.max_pool2d_with_indices(ops.relu(x + bias.reshape(-1, 1, 1)), 2)


if SIMULATED:
    moved = {}
    for name, function in (("separate", separate), ("fused", fused)):
        function(maps, bias)  # the first time reserves memory
        with simgpu.trace() as trace:
            function(maps, bias)
        moved[name] = sum(launch.nbytes for launch in trace.launches)
        where = f"{trace.device_seconds * 1e6:6.1f} µs on the device (modelled)"
        print(f"{name:9} {len(trace.launches)} launches, {moved[name] / 1e6:6.1f} MB, {where}")
    if moved["fused"] < moved["separate"]:
        journal.measured("fusion", moved["separate"] / moved["fused"], where="counted")
    else:
        print("These are the library's functions both times: write your kernel, and run this cell again.")

# %% [markdown]
# Three launches became one. The separate ones move the bytes of the count above. The fused one moves more than its
# count, so the factor is smaller: rows of 28 values do not end at a sector, and a sector in which two warps meet is
# fetched by both. <!-- why: fusion -->
#
# ### In its place
#
# Lesson 07 ended with the step on 8 digits, some 25 short launches, and the question which of them could be left out.
# Here is a layer that does convolution, bias, ReLU and pooling, with your kernel (or the library's functions, until the
# check has passed). On the way back the value goes to its place, if it was above 0; `max_unpool2d` puts it there.


# %%
class FusedBlock(nn.Conv2d):
    """A convolution, and bias, ReLU and pooling by windows of 2 in one kernel."""

    def build(self, shape):
        filters, height, width = super().build(shape)
        self.windows = ops.pool.pooling_windows((1, filters, height, width), 2, None, 0)
        return filters, height // 2, width // 2

    def forward(self, x, training=False):
        y = ops.conv2d(x, self.parameters["weight"], None, self.stride, self.padding)
        largest, places = fused(y, self.parameters["bias"])
        self._kept = (x, y.shape[2:], largest, places) if training else None
        return largest

    def backward(self, grad):
        x, size, largest, places = self.kept()
        grad = ops.max_unpool2d(ops.relu_backward(grad, largest), places, size, self.windows)
        out = self.gradients["weight"], self.gradients["bias"]
        weight, wanted = self.parameters["weight"], not self.is_first
        return ops.conv2d_backward(grad, x, weight, self.stride, self.padding, input_gradient=wanted, out=out)[0]


def network_of(*first):
    return nn.Sequential(*first, nn.Flatten(), nn.Linear(100), nn.ReLU(), nn.Linear(10), seed=0)


digits = data.digits()
images, labels = cp.asarray(digits.images[:8]), cp.asarray(digits.labels[:8])
before = network_of(nn.Conv2d(10, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)).build((1, 28, 28), cp)
after = network_of(FusedBlock(10, 3, padding=1)).build((1, 28, 28), cp)
for name, network in (("before", before), ("after", after)):
    optimizer = nn.Adam()
    for _ in range(3):  # the first times reserve memory
        with simgpu.trace() as trace:
            loss, _ = network.loss_and_scores(images, labels)
            optimizer.step(network.parameters, network.gradients)
    if SIMULATED:
        print(f"{name:7} {len(trace.launches):3} launches, {trace.seconds * 1e6:6.0f} µs a step (modelled T4)")
same = np.allclose(device.to_host(before.gradients), device.to_host(after.gradients), atol=1e-5)
print("the gradients are the same:", same)

# %% [markdown]
# Fewer launches, and less time in the model. On 8 digits the step is launch-bound, so what counts is the launches that
# are gone; with large batches it is the bytes. <!-- why: launch-bound --> The counts are true on any GPU. The seconds
# are modelled: a real host needs another time for each launch.
#
# Why is that not the usual layer? Kernels for a ReLU and for a pooling can be combined freely; a fused one fits one
# sequence only, and is one more kernel to write and to test. So compilers write them. NVIDIA's TensorRT fuses across
# the layers of a trained network; in lesson 13 `nn.compiled` does so here.
#
# ### Exercise: matmul_tiled
#
# **More**, about 15 minutes.
#
# A product of matrices reads each number of a and b many times: K values of each for every output. With a tile of 32 x
# 32 threads, what one thread fetches serves 32. So a block walks along K. At each step it fetches a tile of a and a
# tile of b into shared memory, and every thread multiplies 32 pairs. The check allows 2 K / 32 reads an output. Where a
# tile reaches beyond the matrix, put 0 there; and think about *two* barriers.


# %% nbgrader={"grade": false, "grade_id": "matmul_tiled", "locked": false, "schema_version": 3, "solution": true, "task": false}
@jit.rawkernel()
def matmul_kernel(a, b, c, m, n, k):
    # c (m, n) is a (m, k) times b (k, n). About 14 more lines.
    left = jit.shared_memory(cp.float32, TILE * TILE)
    right = jit.shared_memory(cp.float32, TILE * TILE)
    i, j = cp.int32(jit.threadIdx.x), cp.int32(jit.threadIdx.y)
    row, column = cp.int32(jit.blockIdx.y) * TILE + j, cp.int32(jit.blockIdx.x) * TILE + i
    ### BEGIN SOLUTION
    total = cp.float32(0)
    for start in range(0, k, TILE):
        left[j * TILE + i] = 0
        right[j * TILE + i] = 0
        if row < m and start + i < k:
            left[j * TILE + i] = a[row, start + i]
        if start + j < k and column < n:
            right[j * TILE + i] = b[start + j, column]
        jit.syncthreads()
        for p in range(TILE):
            total += left[j * TILE + p] * right[p * TILE + i]
        jit.syncthreads()
    if row < m and column < n:
        c[row, column] = total
    ### END SOLUTION


def matmul_tiled(a, b):
    """Return a (M, K) times b (K, N), float32, on the GPU."""
    (m, k), n = a.shape, b.shape[1]
    c = device.array_module(a).empty((m, n), a.dtype)
    blocks = (n + TILE - 1) // TILE, (m + TILE - 1) // TILE
    matmul_kernel[blocks, (TILE, TILE)](a, b, c, m, n, k)
    return c


# %% nbgrader={"grade": true, "grade_id": "check_matmul_tiled", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.matmul_tiled(matmul_tiled)

# %% [markdown]
# ## On a real GPU
#
# Kernels like yours were timed on an H200, with large arrays. Beside them are a copy of as many bytes, and what CuPy
# itself offers for the same result.

# %%
RUNGS = "transpose, naive", "transpose, tiled", "row sum, one thread a row", "row sum, tree"
RUNGS += "bias, relu, pool: three kernels", "bias, relu, pool: fused"
recorded = records.gpu_kernels()
print(f"{'':31}   GB/s  of a copy  of CuPy's speed  modelled / measured time")
for name in RUNGS:
    row = recorded.row(name)
    rates = f"{row['gb_per_s']:7,.0f} {row['of_copy']:10.0%} {row['of_peer']:16.0%}"
    print(f"{name:31}{rates} {row['modelled_ratio']:25.2f}")
row = recorded.row("matmul, tiled")
rates = f"{row['tflops']:7.1f} Tflop/s, {row['of_peer']:9.0%} of cuBLAS's"
print(f"{'matmul, tiled':31}{rates} {row['modelled_ratio']:20.2f}\n")
for name in ("sum_first_axis", "max_pool_with_indices", "im2col", "mean"):
    print(f"{name + ' of this library':36}{recorded.row(f'library: {name}')['of_copy']:13.0%} of a copy")
print(recorded)

# %% [markdown]
# A transposition by tiles leaves CuPy's own behind. That one is twice as fast as *naive*, by what means was not looked
# into. <!-- why: CuPy's transposition --> The tree of sums is as fast as a copy, and CuPy's sum a little faster; why
# was not looked into. <!-- why: sums and copy --> The fused kernel is as far ahead of three kernels of the same kind as
# its bytes say, <!-- why: fused on a GPU --> and further ahead of three calls, two of CuPy's and one of this library.
# With a product of matrices it is the other way round: fast ones keep several outputs of a thread in variables, so that
# what lies in shared memory serves more than once as well. <!-- why: cuBLAS -->
#
# Below are kernels of the library that you import here. It sums by the same tree. `im2col` reads and writes side by
# side, but divides a lot to find each place. <!-- why: im2col --> `mean` is one block: right for the losses of a batch,
# hopeless on a large array. Your `row_sum`, called twice, would beat it there. <!-- why: mean -->
#
# The last column comes from a model of that H200. For most rows it is less than half off; a product it makes half as
# long again, and with a thread for each row it promises a small part of what was measured. It counts bytes and
# launches. It does not know that each of these threads waits for one read after the other, and that there are too few
# to keep the memory busy meanwhile. <!-- why: few threads, measured --> A model is as good as what it counts.
#
# ## The same kernel elsewhere
#
# To read, not to do. In **Triton**, `add_kernel` is this. It is written for a whole block: `i` holds all its places,
# and `mask` is the guard. Threads, shared memory and barriers are the compiler's.
#
# ```python
# @triton.jit
# def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
#     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
#     tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)
# ```
#
# `torch.compile` writes such kernels. Of bias, ReLU and pooling version 2.11 made two, the first of them around
# `tl.store(out + i, maximum(0, tl.load(x + i) + tl.load(bias + i // 784 % 10)))`. And how does a kernel of your own get
# into PyTorch? As an **operation**. CuPy's arrays and tensors share memory, so nothing is copied. PyTorch wants to know
# the shape of the result, and how gradients go back.
#
# ```python
# @torch.library.custom_op("course::add", mutates_args=())
# def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
#     out = torch.empty_like(x)
#     add_kernel[blocks, 256](*(cp.from_dlpack(each.detach()) for each in (x, y, out)), x.numel())
#     return out
#
# add.register_fake(lambda x, y: torch.empty_like(x))
# add.register_autograd(lambda context, grad: (grad, grad))
# ```
#
# ## Read this kernel
#
# Most kernels of the world are written in CUDA C. You can read it now. With CuPy such a text becomes a kernel by
# `cp.RawKernel(text, "softmax")`. This one turns each row into probabilities, one block a row, 256 threads. Its author
# says that it was checked on two GPUs. Its users say that once in a while a row is wrong.
#
# ```c
# extern "C" __global__ void softmax(const float* x, float* y, int columns) {
#     __shared__ float partial[256];
#     int t = threadIdx.x;
#     const float* row = x + (long long)blockIdx.x * columns;
#
#     float largest = -INFINITY;
#     for (int c = t; c < columns; c += 256) largest = fmaxf(largest, row[c]);
#     partial[t] = largest;
#     __syncthreads();
#     for (int half = 128; half > 0; half /= 2) {
#         if (t < half) partial[t] = fmaxf(partial[t], partial[t + half]);
#         __syncthreads();
#     }
#     largest = partial[0];
#
#     float total = 0;
#     for (int c = t; c < columns; c += 256) total += expf(row[c] - largest);
#     partial[t] = total;
#     __syncthreads();
#     for (int half = 128; half > 0; half /= 2) {
#         if (t < half) partial[t] += partial[t + half];
#         __syncthreads();
#     }
#     total = partial[0];
#
#     for (int c = t; c < columns; c += 256)
#         y[(long long)blockIdx.x * columns + c] = expf(row[c] - largest) / total;
# }
# ```
#
# ## In your own words
#
# Answer in five to eight sentences.
#
# 1. Where is the race in `softmax`? Name the two lines, and two threads that meet there. Why are most rows right, and
#    what repairs it?
# 2. The fused kernel does the same arithmetic as three kernels. What did it gain in the cells above, in launches and in
#    bytes, and which of the two counts for 8 digits?
# 3. Somebody reports that a kernel became 3 times faster in the modelled time. What would you believe of that, and what
#    not?

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_the_kernels", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** Between `largest = partial[0]` and `partial[t] = total` there is no barrier. Thread 0 may have
# finished its sum and write `partial[0]` while a thread of another warp, say thread 200, has not read the maximum yet;
# it then takes a sum for the maximum. Warps are seldom so far apart, since the loop between the lines takes each about
# as long; so most rows are right. A `__syncthreads()` after `largest = partial[0]` repairs it. The fused kernel saved
# launches, one in place of several (the cells "fused" and "after" print how many), and a few times the bytes (the
# factor beside my guess), because nothing between the operations travels to memory. On 8 digits the step is
# launch-bound, so the launches count; for large batches the bytes. Of a modelled time I believe what it is counted
# from: launches, sectors and bytes. I do not believe the factor: the model leaves out how long a single read takes, so
# I would ask for a run on a GPU.
#
# **Rubric** (3 points). One point: the pair of lines (reading `partial[0]`, writing `partial[t]`), two threads of which
# one is thread 0, and a barrier between as the repair. (A race of another pair: none. The right pair without threads or
# without a repair: half a point.) One point: fewer launches *and* fewer bytes, each with a number from the notebook,
# and launches as what counts for 8 digits. One point: counts can be trusted, modelled seconds cannot be taken for
# measured ones, with a reason such as latency, registers or an unmeasured card.
# ### END SOLUTION

# %% [markdown]
# When your answer stands, let the machine read the kernel. This is the same in Python, for rows of 256 values and
# shortened to the lines that matter. Then put the missing barrier in, and run it again.


# %%
@jit.rawkernel()
def softmax_terms(x, y):
    partial = jit.shared_memory(cp.float32, THREADS)
    t, row = cp.int32(jit.threadIdx.x), cp.int32(jit.blockIdx.x)
    partial[t] = x[row, t]
    jit.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            partial[t] = max(partial[t], partial[t + half])
        jit.syncthreads()
        half //= 2
    largest = partial[0]
    partial[t] = cp.exp(x[row, t] - largest)
    jit.syncthreads()
    y[row, t] = partial[t]


if SIMULATED:
    try:
        softmax_terms[2, THREADS](cp.ones((2, THREADS), cp.float32), cp.empty((2, THREADS), cp.float32))
    except jit.KernelFault as fault:
        print(fault)

# %% [markdown]
# ## What you have

# %%
journal.ladder()

# %%
journal.guesses()

# %% [markdown]
# In three sentences: A kernel says what one thread does, a guard keeps out threads without work, and neighbouring
# threads touch neighbouring values. Threads of a block share a fast memory, and between what one writes and another
# reads there has to be a barrier. Fusion leaves the arithmetic as it is and saves the trips between the operations.
#
# ### Stretch: sums without a barrier
#
# **More**, as long as you like.
#
# The last five rounds of the tree happen within a warp, and the threads of a warp can hand values over without any
# memory: `jit.shfl_down_sync(0xffffffff, value, cp.uint32(k))` gives the value of the lane that is k further. Write
# `row_sum` with a shuffle in each warp, eight partial sums in shared memory, and one barrier. What does the report say
# about shared memory now?

# %%
# Your stretch. When your kernel is written, take away the # of the lines below and run.
#
# x, sums = cp.asarray(rng.standard_normal((104, 200), dtype=np.float32)), cp.empty(104, cp.float32)
# my_kernel[len(x), THREADS](x, sums, x.shape[1])
# print("right:", np.allclose(device.to_host(sums), device.to_host(x).sum(axis=1), atol=1e-4))
# print_counts(my_kernel)
# row_sum(x)
# print_counts(row_sum_kernel)
