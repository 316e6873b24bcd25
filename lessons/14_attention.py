# %% [markdown]
# # Attention
#
# Lesson 14, about 90 minutes.
#
# **Afterwards you can**
#
# - take an operation that nobody has told you about from loops to a kernel of your own;
# - count its bytes and operations before you measure;
# - compute a softmax in one pass, and so attention without its largest array;
# - say what that gains on a CPU, on a GPU, and in memory.
#
# **You need** matrix products (lesson 01), softmax (lesson 04), the roofline (07), and for the kernel lesson 08. No
# exercise needs an earlier one.
#
# Are you coming back after a restart? Choose *Run All Above* first: later cells use what earlier ones define.

# %%
import tracemalloc
from math import exp, log2, sqrt

import numpy as np

from unrolled import check, device, journal, records, show, simgpu, timing

check.start("14_attention")

cp, jit = device.gpu(), device.jit()
SIMULATED = device.is_simulated(cp)
print("the GPU is", "simulated: it counts what a kernel does" if SIMULATED else "real")

rng = np.random.default_rng(0)


def drawn(*shape):
    """Return random queries, keys and values of this shape, by name."""
    return {name: rng.standard_normal(shape).astype(np.float32) for name in ("q", "k", "v")}


def peak_bytes(function, **arguments):
    """Return the bytes that a call of the function needs at most, besides its arguments."""
    tracemalloc.start()
    function(**arguments)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


# %% [markdown]
# ## The operation
#
# A sequence has T places: words of a sentence, rows of an image. Three rows of D numbers belong to each place:
#
# - its **query** q: what it looks for;
# - its **key** k: what it can be found by;
# - its **value** v: what it gives.
#
# The product of a query and a key, divided by the square root of D, is a **score**. A softmax makes weights of the
# scores of one query: they add up to 1. And the result for that query is the sum of all values, each times its weight.
#
# y = softmax(q kᵀ / √D) v, the softmax along each row
#
# That is **attention** (Vaswani and others, *Attention Is All You Need*, 2017). Usually there are several **attention
# heads**, which do the same with other q, k and v. Where a sequence is written from left to right, a place must not see
# what comes after it: query t may look at keys 0 to t alone. That is called causal, and what hides the rest is a
# **causal mask**. Count first, as with any new operation.
#
# ### Exercise: attention_counts
#
# **Core**, about 4 minutes.
#
# For n samples, with heads of T queries and T keys of D numbers: how many operations do the two products take, and how
# many bytes do the matrices between them hold, one T x T for each head of a sample, in float32? An addition and a
# multiplication are two operations. Leave the softmax out.


# %% nbgrader={"grade": false, "grade_id": "attention_counts", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention_counts(n, heads, t, d):
    """Return (operations of both products, bytes of all matrices of T x T in float32). About 2 lines."""
    ### BEGIN SOLUTION
    # body of unrolled.checks.exercises.l14_attention.forms.counts
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_attention_counts", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.attention_counts(attention_counts)

# %% [markdown]
# Guess: for T = 2,048 and D = 64, how many times as large as q is the matrix of weights?

# %%
journal.predict("attention_matrix", ...)  # your guess

# %%
count = journal.mine("attention_counts")
operations, matrix = count(1, 8, 2048, 64)
own = 4 * 8 * 2048 * 64
print(f"q has {own / 1e6:.1f} MB, all matrices {matrix / 1e6:.0f} MB; {operations / 1e9:.1f} billion operations")
print(f"operations for each byte of q, k, v and y: {operations / (4 * own):.0f}")
print(f"operations for each byte, if the matrix is written and read once: {operations / (4 * own + 2 * matrix):.0f}")
journal.measured("attention_matrix", matrix / own, where="counted")

# %% [markdown]
# The operation itself reads little, and computes a lot. But there is a large array in the middle, which nobody asked
# for. It grows with T², and everything else with T.
#
# ## By loops
#
# ### Exercise: attention_loops
#
# **Core**, about 6 minutes.
#
# Write the definition down with loops, for one head: q, k and v are (T, D). Subtract the largest score of a query
# before you take exponentials. `exp` and `sqrt` of `math` are imported.


# %% nbgrader={"grade": false, "grade_id": "attention_loops", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention_loops(q, k, v, causal=False):
    """Return y (T, D) for q, k, v (T, D); causal: query t looks at keys 0 to t. About 10 lines."""
    ### BEGIN SOLUTION
    # body of unrolled.checks.exercises.l14_attention.forms.loops
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_attention_loops", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.attention_loops(attention_loops)

# %% [markdown]
# ## Two products and a softmax
#
# ### Exercise: attention_plain
#
# **Core**, about 7 minutes.
#
# Now without loops, and with heads: q, k and v are (H, T, D). `@` multiplies the last two axes, and heads come along as
# a batch. For causal, with `places = np.arange(T)`, `places <= places[:, None]` is True where a query may look. Scores
# may be large.


# %% nbgrader={"grade": false, "grade_id": "attention_plain", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention_plain(q, k, v, causal=False):
    """Return y (H, T, D) for q, k, v (H, T, D). About 7 lines, and no loop."""
    ### BEGIN SOLUTION
    # body of unrolled.checks.exercises.l14_attention.forms.plain
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_attention_plain", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.attention_plain(attention_plain)

# %% [markdown]
# What did that gain, and what does it need? Each of the 784 pixels of a digit looks at all pixels here, with 16 numbers
# each: a T as in real networks. (The loops do 48 places, and are projected by T².)

# %%
WHAT = "attention over the pixels of the digits, one head of 16"
looped, plain = journal.mine("attention_loops", "attention_plain")
pixels = drawn(1, 784, 16)
few = {name: x[0, :48] for name, x in pixels.items()}
took = {
    "loops": timing.measure(looped, few).seconds * (784 / 48) ** 2,
    "plain": timing.measure(plain, pixels).seconds,
}
journal.rung("attention by loops", WHAT, took["loops"] * 60_000, batch=1, made_of=[looped])
journal.rung("attention, two products", WHAT, took["plain"] * 60_000, batch=1, made_of=[plain])
print(f"{took['loops'] / took['plain']:,.0f} times faster than loops")
for t in (784, 1568):
    print(f"T = {t:4}: {peak_bytes(plain, **drawn(1, t, 16)) / 1e6:5.1f} MB, matrix {4 * t * t / 1e6:4.1f} MB")

# %% [markdown]
# It needs the matrix more than once, as every step of the softmax makes another. And twice the T is four times
# the memory: a text of 16,384 words takes a gigabyte a head for the matrix alone. Does it have to be there?
#
# ## A softmax in one pass
#
# The products could go block by block, some keys at a time. In the way is the softmax: it divides by the sum of the
# whole row, and subtracts the largest score of the whole row. Could one leave that subtraction out?

# %%
row = np.array([90, 91, 89], np.float32)
with np.errstate(over="ignore", invalid="ignore"):
    print(f"exp(90) is {exp(90):.1e}; in float32 {np.exp(row[0])}")
    print("without it: ", np.exp(row) / np.exp(row).sum())
print("with it:    ", np.exp(row - row.max()) / np.exp(row - row.max()).sum())

# %% [markdown]
# exp(90) is beyond float32, and infinite divided by infinite is no number. So the largest is needed, and is known only
# at the end of the row. Suppose that a sum of exponentials was made with 3 subtracted, and then a score of 5
# comes. Each term should have had 5 subtracted. But exp(x - 5) is exp(x - 3) · exp(3 - 5): the same factor for all terms,
# so the *sum* can be corrected, and the terms need not be there any more.
#
# ### Exercise: online_softmax
#
# **Core**, about 8 minutes.
#
# Some scores of each row went by. What is left of them are two numbers a row: the largest, and the sum of exp(score -
# largest). Now comes the next block of scores. Return both numbers with the block counted in. Before the first block the
# largest is -inf and the sum 0.


# %% nbgrader={"grade": false, "grade_id": "online_softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
def online_softmax(scores, largest, total):
    """Return the new (largest, total), both (T,), with a block of scores (T, B) counted in. About 3 lines."""
    ### BEGIN SOLUTION
    # body of unrolled.checks.exercises.l14_attention.forms.next_sums
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_online_softmax", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.online_softmax(online_softmax)

# %%
step = journal.mine("online_softmax")
scores = 3 * rng.standard_normal((1, 12)).astype(np.float32)
largest, total = np.full(1, -np.inf, np.float32), np.zeros(1, np.float32)
for start in range(0, 12, 3):
    largest, total = step(scores[:, start : start + 3], largest, total)
    print(f"after {start + 3:2} scores: largest {largest[0]:7.2f}, sum {total[0]:.4f}")
print(f"all at once:     largest {scores.max():7.2f}, sum {np.exp(scores - scores.max()).sum():.4f}")

# %% [markdown]
# This is the **online softmax** (Maxim Milakov and Natalia Gimelshein, 2018). The result of attention is such a sum, too:
# of exponentials times values. So it can be corrected by the same factor.
#
# ## Blocks
#
# A block of queries goes along the keys, a block at a time. For each query it keeps three things: the largest score so
# far, the sum of exponentials, and the sum of exponentials times values; in the picture m, sum and o.

# %%
show.attention_blocks(12, 4, causal=True)

# %% [markdown]
# On a CPU, causal, for T = 2,048: how many times as fast as the plain form is that? And how many times less memory does
# it need?

# %%
journal.predict("attention_blocks", ...)  # your guess
journal.predict("attention_memory", ...)  # your guess

# %% [markdown]
# ### Exercise: attention_blocks
#
# **Core**, about 17 minutes.
#
# The same result, and no array that grows like T x T. The check makes every array on the simulated GPU: make yours
# with `xp = device.array_module(q)`. It looks at the largest one, and at all that are there at a time. Causal, it counts
# launches and operations: take blocks as large as `block`, and do not compute what no query may look at. Blocks need not
# divide T. Then it asks for {T} times the speed of the plain form on a CPU, causal, for {queries} queries.


# %% nbgrader={"grade": false, "grade_id": "attention_blocks", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention_blocks(q, k, v, block, causal=False):
    """Return y (H, T, D) for q, k, v (H, T, D), with blocks of `block` keys. About 20 lines."""
    ### BEGIN SOLUTION
    # body of unrolled.checks.exercises.l14_attention.forms.blocks
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_attention_blocks", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.attention_blocks(attention_blocks)

# %%
blocked = journal.mine("attention_blocks")
long = drawn(1, 2048, 32)
for causal in (False, True):
    slow = timing.measure(plain, {**long, "causal": causal}).seconds
    fast = timing.measure(blocked, {**long, "causal": causal, "block": 256}).seconds
    print(
        f"{'causal' if causal else 'all keys':9} plain {slow * 1e3:6.1f} ms, blocks {fast * 1e3:6.1f} ms, × {slow / fast:.1f}"
    )
needed = [peak_bytes(plain, **long, causal=True), peak_bytes(blocked, **long, causal=True, block=256)]
print(f"memory: {needed[0] / 1e6:.1f} and {needed[1] / 1e6:.1f} MB")
journal.measured("attention_memory", needed[0] / needed[1])
took["blocks"] = timing.measure(blocked, {**pixels, "block": 256}).seconds
journal.rung("attention, blocks of 256", WHAT, took["blocks"] * 60_000, batch=1, made_of=[blocked])

# %% [markdown]
# The causal form leaves out nearly half of the products, since the blocks above the diagonal hold nothing.
# <!-- why: above the diagonal --> Without a mask both forms do the same products; what blocks gain there was not looked
# into. <!-- why: blocks without a mask --> And memory grows with another power of T.

# %%
sizes = [512, 1024, 2048, 4096]
memory = {"plain": [], "blocks of 256": []}
for t in sizes:
    long = drawn(1, t, 32)
    memory["plain"].append(peak_bytes(plain, **long))
    memory["blocks of 256"].append(peak_bytes(blocked, **long, block=256))
for name, values in memory.items():
    slope = log2(values[-1] / values[0]) / log2(sizes[-1] / sizes[0])
    print(f"{name:14}" + "".join(f"{value / 1e6:8.1f} MB" for value in values) + f"   like T to the power {slope:.1f}")
show.growth(sizes, memory, what="queries", unit="B")

# %% [markdown]
# Now the roofline of this machine, with each form on it. Bytes are counted: for blocks what comes in and goes out, keys
# and values once for each block of queries; for the plain form q, k, v, y and twelve trips of the matrix, one for
# each argument and each result of NumPy's operations; for loops two numbers for each multiplication.

# %%
big, line = rng.standard_normal((1024, 1024), dtype=np.float32), np.ones(2**24, np.float32)
room = np.empty_like(line)
peak = 2 * 1024**3 / timing.measure(lambda: big @ big, {}).seconds
bandwidth = 12 * line.size / timing.measure(lambda: np.add(line, line, out=room), {}).seconds
operations, matrix = count(1, 1, 784, 16)
array = 4 * 784 * 16
moved = {"loops": 4 * operations, "plain": 4 * array + 12 * matrix, "blocks": 2 * array + 2 * array * -(-784 // 256)}
show.roofline(peak, bandwidth, {name: (operations / moved[name], operations / took[name]) for name in took})

# %% [markdown]
# Blocks stand far to the right of the plain form: the operations are the same, and most of the bytes are gone. Neither
# reaches its roof, which knows nothing of exponentials.
#
# ## A kernel of your own
#
# In NumPy the scores of a block are an array. In a kernel they need not leave the multiprocessor: a block of threads has
# some queries, keys and values come in tiles through shared memory, and sums stay in variables. Tri Dao and others
# called this FlashAttention (2022).
#
# ### Exercise: attention_kernel
#
# **Core**, about 14 minutes.
#
# One head, D = 32, as many numbers as a warp has threads. A block has 32 x 8 threads and 8 queries, and takes 32 keys at
# a time. Queries and tiles are fetched already. Thread (i, j) makes the score of query j with key i of the tile, and then
# brings its sums up to date: `mixed` is column i of the result of query j. The check allows no bank conflict, and keys
# and values once for each block of queries. Mind the last tile, rows from n on, and three barriers. Speed needs a
# real GPU: there it has to be {T} times as fast as a kernel with nothing shared. Without a GPU its points are deferred,
# not lost.


# %% nbgrader={"grade": false, "grade_id": "attention_kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
WIDE, ROWS, TILE, WIDTH, LOW = 32, 8, 32, 33, -1e30  # D, queries and keys of a block, a key's room in shared memory


@jit.rawkernel()
def kernel(q, k, v, y, n, scale):
    # y (n, WIDE) is softmax(q kᵀ * scale) v. About 15 more lines.
    queries = jit.shared_memory(cp.float32, ROWS * WIDE)
    keys = jit.shared_memory(cp.float32, TILE * WIDTH)
    values = jit.shared_memory(cp.float32, TILE * WIDE)
    scores = jit.shared_memory(cp.float32, ROWS * TILE)
    i, j = cp.int32(jit.threadIdx.x), cp.int32(jit.threadIdx.y)
    row = cp.int32(jit.blockIdx.x) * ROWS + j
    largest, total, mixed = cp.float32(LOW), cp.float32(0), cp.float32(0)
    if row < n:
        queries[j * WIDE + i] = q[row, i]
    for start in range(0, n, TILE):
        for r in range(j, TILE, ROWS):
            if start + r < n:
                keys[r * WIDTH + i] = k[start + r, i]
                values[r * WIDE + i] = v[start + r, i]
        ### BEGIN SOLUTION
        jit.syncthreads()
        if row < n and start + i < n:
            score = cp.float32(0)
            for p in range(WIDE):
                score += queries[j * WIDE + p] * keys[i * WIDTH + p]
            scores[j * TILE + i] = score * scale
        jit.syncthreads()
        if row < n:
            there, before = min(TILE, n - start), largest
            for p in range(there):
                largest = max(largest, scores[j * TILE + p])
            faded = cp.exp(before - largest)
            total *= faded
            mixed *= faded
            for p in range(there):
                weight = cp.exp(scores[j * TILE + p] - largest)
                total += weight
                mixed += weight * values[p * WIDE + i]
        jit.syncthreads()
        ### END SOLUTION
    if row < n:
        y[row, i] = mixed / total


def attention_kernel(q, k, v):
    """Return y (T, 32) for q, k, v (T, 32), float32, on the GPU."""
    n, y = len(q), device.array_module(q).empty_like(q)
    kernel[-(-n // ROWS), (WIDE, ROWS)](q, k, v, y, n, cp.float32(1 / sqrt(WIDE)))
    return y


# %% nbgrader={"grade": true, "grade_id": "check_attention_kernel", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.attention_kernel(attention_kernel)

# %% [markdown]
# What does it carry, beside NumPy's operations with a launch each? (Until yours passes, "yours" are
# the library's blocks.)

# %%
own_kernel = journal.mine("attention_kernel")


def plain_on_gpu(q, k, v):
    scores = q @ k.T / cp.float32(sqrt(32))
    weights = cp.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ v


if SIMULATED:
    carried = {}
    for name, function in (("plain", plain_on_gpu), ("yours", own_kernel)):
        arrays = [cp.asarray(x[0]) for x in drawn(1, 256, 32).values()]
        with simgpu.trace() as trace:
            function(*arrays)
        carried[name] = sum(launch.nbytes for launch in trace.launches)
        print(f"{name:6} {len(trace.launches):2} launches, {carried[name] / 1e6:.2f} MB")

# %% [markdown]
# The scores are gone, and still it is not little: every block of queries fetches all keys and values once more.
# <!-- why: keys once more --> With 32 queries a block it would be a quarter of that.
#
# ## On a real GPU
#
# The library's kernel has 128 queries in a block, and 8 x 8 scores in the variables of a thread. Here it was timed with
# the plain form and each backend of PyTorch's `scaled_dot_product_attention`: 64 heads of 64 numbers, T = 2,048.

# %%
recorded = records.attention()
print(f"{'':36}   time  memory   error")
for name, row in sorted(recorded.rows.items(), key=lambda item: "float16" in item[0]):
    _, dtype, t, *side = name.split(", ")
    if t == "T = 2,048" and side[0] not in ("causal", "both passes"):
        label = ", ".join((dtype, *side)).replace("blocks", "the library's kernel")
        print(f"{label:32}{row['ours_s'] * 1e3:8.2f} ms{row['memory_mb']:6,.0f} MB{row['error']:8.0e}")
print(recorded)

# %% [markdown]
# In float32 the library's kernel is a little ahead of PyTorch's fastest, and neither needs the plain form's memory. In
# float16 flash and cuDNN are far ahead of it. They multiply on tensor cores, which our kernel leaves idle: it reads
# float16, and computes in float32. <!-- why: tensor cores -->
#
# ## The way back
#
# In training the backward pass needs the weights, and the forward pass has kept none. It need not: with the largest and
# the sum of a row, a weight is exp(score - largest) / sum. Both go into one number, **logsumexp** = largest + log(sum).
# Then the weight is exp(score - logsumexp), in any order of blocks. The scores are computed a second time: more
# operations, and no matrix to keep.
#
# ### Exercise: attention_backward
#
# **More**, about 10 minutes.
#
# Given is `grad`, the gradient of the loss by y. Let P be the weights of a block of keys, and inner the sum of grad · y
# along D, a number for each query. Then the gradient by v is Pᵀ grad, and that by the products q kᵀ is
# S = P · (grad vᵀ - inner) / √D. By k it is Sᵀ q; by q it is S k, added up over the blocks. The check looks at
# arrays and launches again.


# %% nbgrader={"grade": false, "grade_id": "attention_backward", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention_backward(grad, q, k, v, y, logsumexp, block):
    """Return the gradients by q, k and v, all (H, T, D), in blocks of keys; logsumexp is (H, T). About 12 lines."""
    ### BEGIN SOLUTION
    # body of unrolled.checks.exercises.l14_attention.forms.backward
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_attention_backward", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.attention_backward(attention_backward)

# %% [markdown]
# ## In your own words
#
# Answer in five to eight sentences, with numbers from your own runs.
#
# 1. Which array does the plain form keep that blocks do not, how does it grow, and what did you measure of it?
# 2. Why can a sum of exponentials be corrected when a larger score comes, and why would it overflow without?
# 3. Where was time gained on this CPU, where not, and by what count do you know?

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_attention", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** The plain form keeps the matrix of scores, (T, T) for each head, and for a moment more than one of
# them; twice the T took four times the memory in the table, and hardly more in blocks. A sum of exponentials was made
# with the old largest subtracted. Each of its terms is too large by the same factor, exp(new - old), so the sum is
# multiplied by exp(old - new) once. Without subtracting, exp of a score of 90 is infinite in float32, and the division
# gives no number. On this CPU time was gained in the causal form, where blocks above the diagonal are left out: that is
# nearly half of the products. Without a mask the operations are the same, and the two times lie much closer.
#
# **Rubric** (3 points). One point: the matrix of (T, T), its growth as T², and both memories from the notebook. One
# point: one factor for all terms, exp(old - new), and overflow named. (Only "for stability": half a point.) One point:
# causal against all keys with measured times, and skipped blocks as the count behind it.
# ### END SOLUTION

# %% [markdown]
# ## What you have

# %%
journal.ladder()

# %%
journal.guesses()

# %% [markdown]
# In three sentences: Count before you measure; the count of attention says that its largest array is one that nobody
# asked for. A softmax can be corrected while it goes, so scores need not be kept, neither in memory nor for the way back.
# What that gains depends on where the bytes would have gone.
#
# ### Stretch: one word at a time
#
# **More**, as long as you like.
#
# A network that writes adds one query at a time. The keys and values of all earlier places stay as they are, so they are
# kept: a **key/value cache**. Write a step that takes one q, k and v (H, D), puts k and v into arrays with room for T,
# and returns y (H, D). How many operations does it take for each byte that it reads?

# %%
# Your stretch. Write `next_place(q, k, v, keys, values, t)`, then take away the # of the lines below and run.
#
# text, keys, values = drawn(2, 40, 16), np.empty((2, 40, 16), np.float32), np.empty((2, 40, 16), np.float32)
# rows = [next_place(*(x[:, t] for x in text.values()), keys, values, t) for t in range(40)]
# print("right:", np.allclose(np.stack(rows, axis=1), attention_plain(**text, causal=True), atol=1e-5))
