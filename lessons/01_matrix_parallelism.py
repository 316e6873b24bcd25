# %% [markdown]
# # Matrix parallelism
#
# Lesson 01, about 75 minutes.
#
# **Afterwards you can**
#
# - name the three levers that make software faster, and say which one a change pulls;
# - cut a matrix product into pieces that do not need each other, and hand whole pieces to the library;
# - say why the order in memory decides how fast numbers arrive;
# - turn a loop over samples into one product;
# - measure two ceilings of your machine, and calculate what a faster part is worth to the whole.
#
# **You need** Python functions and lists, and NumPy arrays (`shape`, indexing). No GPU. Lesson 00 shows how predictions
# and checks work.

# %%
from time import perf_counter

import numpy as np

from unrolled import check, journal, ops, show, timing

check.start("01_matrix_parallelism", "0.1.0")


def seconds(function, **inputs):
    """Median seconds of one call, on one thread."""
    return timing.measure(function, inputs, budget=0.15).seconds


# %% [markdown]
# ## Three levers, three questions
#
# | lever | what changes | the seminar's examples | here |
# | --- | --- | --- | --- |
# | constant factor | the same steps, each of them cheaper | fewer divisions, caches used well, compiler options | order in memory, float32, batches |
# | algorithm | fewer steps | quicksort instead of bubble sort | merge sort |
# | library | others did both for you | cuBLAS, cuDNN, MKL, TensorRT | `a @ b` |
#
# Before you pull a lever, ask three questions. **How fast** must it be? A camera in a car has to answer before the next
# picture; a training run may take a night. **How much power** is there? A phone has a battery, a data centre has a bill.
# **How much place** is there? Nothing new fits into the car, and what must not leave the building cannot go to a cloud.
# Speed, power and place together choose the hardware: a CPU, a GPU, a chip made for the task (FPGA, ASIC), or somebody
# else's computers. And before all that: measure. Only the slowest part is worth your evening.
#
# (Levers and questions come from a seminar that Fixstars held in July 2022, *Software acceleration and deep learning*,
# third in its series on CUDA.)

# %% [markdown]
# ## The algorithm: fewer steps
#
# Bubble sort compares neighbours and swaps them until nothing is left to swap: about n² / 2 comparisons for n numbers.
# Merge sort cuts the list in two, sorts each half in the same way, and **merges** the two sorted halves in a single
# pass. It cuts about log₂ n times, and each time all n numbers are merged once: about n · log₂ n comparisons.
#
# How many times faster is merge sort for 1,000 shuffled numbers? Put your guess in place of the dots.

# %%
journal.predict("merge_sort", ...)  # your guess: how many times faster?

# %% [markdown]
# ### Exercise: merge
#
# **More**, about 10 minutes. (Short of time? Read on. The measurement below has a merge of its own.)
#
# Merge two sorted lists into one new sorted list, in one pass over both. `merge([1, 4, 6], [2, 3, 9])` is
# `[1, 2, 3, 4, 6, 9]`. Do not change the lists that you are given. `sorted(a + b)` gives the right answer too, but then
# the sorting is somebody else's.


# %% nbgrader={"grade": false, "grade_id": "merge", "locked": false, "schema_version": 3, "solution": true, "task": false}
def merge(a, b):
    """Return all items of the sorted lists a and b as one new sorted list. About 10 lines."""
    ### BEGIN SOLUTION
    merged, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if b[j] < a[i]:
            merged.append(b[j])
            j += 1
        else:
            merged.append(a[i])
            i += 1
    return merged + a[i:] + b[j:]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_merge", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check.merge(merge)

# %% [markdown]
# Stuck? `check.merge.hint()` in a cell of your own gives a first hint, then a second, then nearly the code. Every check
# has three.
#
# Now the growth. The third line is Python's own `sorted`, which also merges, but is written in C.

# %%
sizes = [125, 250, 500, 1000]
shuffled = [np.random.default_rng(n).permutation(n).tolist() for n in sizes]
times = {
    "bubble sort": [seconds(ops.bubble_sort, values=values) for values in shuffled],
    "merge sort": [seconds(ops.merge_sort, values=values) for values in shuffled],
    "sorted, in C": [seconds(lambda values: sorted(values), values=values) for values in shuffled],
}
bubble, merged = times["bubble sort"], times["merge sort"]
journal.measured("merge_sort", bubble[-1] / merged[-1])
print("from 500 to 1,000 numbers:")
for name in ("bubble sort", "merge sort"):
    print(f"    {name} takes {times[name][-1] / times[name][-2]:.1f} times as long")
print("estimate for a million numbers:")
print(f"    bubble sort {bubble[-1] * 1000**2 / 3600:.0f} hours, merge sort {merged[-1] * 2000:.0f} seconds")
show.growth(sizes, times)

# %% [markdown]
# Read the slopes, not the heights. Twice as many numbers take bubble sort four times as long, and merge sort little more
# than twice. So the gap has no fixed size: it widens with every doubling. That is what an **algorithm** buys. (The
# million is an estimate. Compared with 1,000 numbers, bubble sort has 1,000² times as many comparisons. Merge sort has
# 1,000 times as many in each pass, and 20 passes in place of 10.)
#
# `sorted` runs parallel to merge sort, far below it. The steps grow in the same way, and each is cheaper. That is a
# **constant factor**, and because you did not have to write it, it is also a **library**.

# %% [markdown]
# ## A product is many dot products
#
# The product of `a` (N, K) and `b` (K, M) is a matrix (N, M). Its entry in row i and column j is the **dot product** of
# row i of `a` with column j of `b`: multiply them number by number and add up,
#
# y[i, j] = a[i, 0] · b[0, j] + a[i, 1] · b[1, j] + … + a[i, K−1] · b[K−1, j].

# %%
np.array([[1, 2, 3], [4, 5, 6]]) @ np.array([[1, 2], [0, 1], [3, 1]])

# %% [markdown]
# The 22 is 4·1 + 5·0 + 6·3. It needs the second row of the one and the first column of the other, and no other entry of
# the result. So the entries can be computed in any order, or all at once by as many workers as there are, and nobody
# waits for anybody. This is **matrix parallelism**, and it is why neural networks and graphics processors found each
# other. Move the sliders:

# %%
show.matmul_workers()

# %% [markdown]
# Here is the definition, written down as it stands. It works on plain Python lists; picking single numbers out of
# arrays would be slower still.


# %%
def triple_loops(a, b):
    dtype, a, b = a.dtype, a.tolist(), b.tolist()
    y = [[0.0] * len(b[0]) for _ in a]
    for i in range(len(a)):
        for j in range(len(b[0])):
            for k in range(len(b)):
                y[i][j] += a[i][k] * b[k][j]
    return np.array(y, dtype)


rng = np.random.default_rng(1)
a, b = (rng.standard_normal((64, 64), dtype=np.float32) for _ in range(2))
looped = seconds(triple_loops, a=a, b=b)
print(f"{64**3:,} multiplications in {looped * 1e3:.0f} ms: {looped / 64**3 * 1e9:.0f} ns each")

# %% [markdown]
# A processor multiplies two numbers in a nanosecond or so, and several pairs side by side. The rest of the time goes to
# Python: for each number it finds the list, finds the number, asks for its type, makes a new object.
#
# Suppose you keep one loop and let NumPy compute a whole row of the result at a time. How many times faster than three
# loops?

# %%
journal.predict("matmul_rows", ...)  # your guess

# %% [markdown]
# ### Exercise: matmul_rows
#
# **Core**, about 10 minutes.
#
# Compute `a @ b` row by row: one loop, and in it a vector times a matrix. Row i of the result needs only row i of `a`,
# and all of `b`. The dtype (the type of the numbers) stays that of `a`: float32 gives float32. The check asks for at least 50 times the speed of
# `triple_loops` on 64 x 64.


# %% nbgrader={"grade": false, "grade_id": "matmul_rows", "locked": false, "schema_version": 3, "solution": true, "task": false}
def matmul_rows(a, b):
    """Return a (N, K) times b (K, M) as an array (N, M), computed one row at a time. About 4 lines.

    `vector @ matrix` multiplies (K,) by (K, M). `np.empty(shape, dtype=...)` makes room for a result.
    """
    ### BEGIN SOLUTION
    y = np.empty((a.shape[0], b.shape[1]), dtype=a.dtype)
    for i in range(len(a)):
        y[i] = a[i] @ b
    return y
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_matmul_rows", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check.matmul_rows(matmul_rows)

# %% [markdown]
# Not one multiplication was saved: 262,144 before, 262,144 after. You did not use a second core either. What changed is
# who runs the two inner loops. Instead of 262,144 trips through the interpreter there are 64, and between them compiled
# code multiplies 4, 8 or 16 pairs of numbers with a single instruction, depending on the processor. That, too, is parallelism:
# inside one core.

# %% [markdown]
# ## The library: one call
#
# NumPy does not multiply matrices itself. It hands them to a **BLAS** (Basic Linear Algebra Subprograms), a set of
# functions of which every kind of hardware has its own, carefully tuned version: OpenBLAS and MKL on CPUs, cuBLAS on
# NVIDIA's GPUs. They come in three levels: vector with vector, matrix with vector, matrix with matrix. The last one is called **GEMM**, general
# matrix multiply. Most of the arithmetic of deep learning happens in it.
#
# Your loop calls level 2, once a row. `a @ b` calls level 3, once. How many times faster is `a @ b` than the loop over
# rows?

# %%
journal.predict("gemm", ...)  # your guess


# %%
def dot_by_dot(a, b):
    """Two loops, and a dot product for each entry (level 1)."""
    y = np.empty((a.shape[0], b.shape[1]), dtype=a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            y[i, j] = np.dot(a[i], b[:, j])
    return y


ways = {
    "three loops, elements of arrays": ops.matmul_loops,
    "three loops, Python lists": triple_loops,
    "dot by dot (level 1)": dot_by_dot,
    "row by row (level 2)": ops.matmul_rows,
    "one product (level 3)": np.matmul,
}
took = {name: seconds(lambda way=way: way(a, b)) for name, way in ways.items()}
journal.measured("gemm", took["row by row (level 2)"] / took["one product (level 3)"])
show.bars(took, "s", log=True, title="one product of 64 x 64 matrices")

# %% [markdown]
# The same product five times, on a logarithmic scale. Two steps deserve a second look.
#
# *From lists to single dot products* gains only a few times; the step after it gains far more. A NumPy call costs about a
# microsecond before it computes anything, and 64 multiplications hardly pay for it. "Vectorized" is no word of magic: what counts is how much work a call gets.
#
# *From rows to one product* gains much, though both are compiled. Here it is the calls again: one instead of 64. But
# then larger matrices, which give each call more work, should close the gap. Do they close it?

# %%
large = [rng.standard_normal((1024, 1024), dtype=np.float32) for _ in range(2)]
rows, whole = seconds(lambda: ops.matmul_rows(*large)), seconds(lambda: np.matmul(*large))
print("1024 x 1024:")
print(f"row by row {rows * 1e3:.0f} ms, one product {whole * 1e3:.0f} ms: {rows / whole:.0f} times faster")

# %% [markdown]
# Only in part: what the calls cost is gone, and a large factor stays. Row by row reads all of `b` again for each row, and
# uses each number once. GEMM cuts both matrices into tiles, brings a tile close to the arithmetic units, and uses each
# number many times while it is there. To see why that matters so much, we look at memory.

# %% [markdown]
# ## Memory is a strip
#
# Memory has no rows and columns; it is one long strip. An array is a piece of it, with a **shape** and with **strides**:
# how many bytes to step for the next row, and for the next column. float32 means 4 bytes a number;
# float64, which NumPy takes unless you say otherwise, means 8.

# %%
x = np.arange(12, dtype=np.float32).reshape(3, 4)
print("x   shape", x.shape, "strides", x.strides)
print("x.T shape", x.T.shape, "strides", x.T.strides)
print("the same memory, read in another order:", np.shares_memory(x, x.T))

# %% [markdown]
# The processor never fetches one number. It fetches a **cache line** of 64 bytes, 16 float32 that lie side by side, and
# keeps it in a small fast memory, the **cache**, until the room is needed for another. In the picture a line holds 8
# numbers, and the cache no more than 4 lines. Walk to the end and compare how many lines were loaded.

# %%
show.memory_walk()

# %% [markdown]
# Now with 16 million numbers. We add up all of them twice: once row by row, once column by column. Same numbers, same
# additions, same number of calls. How many times faster are the rows?

# %%
journal.predict("row_walk", ...)  # your guess


# %%
def add_up(lines):
    """Add up all lines, one after the other."""
    return sum(float(line.sum()) for line in lines)


slower = {}
for n in [500, 1000, 2000, 4000]:
    numbers = np.random.default_rng(n).random((n, n), dtype=np.float32)
    rows, columns = seconds(add_up, lines=numbers), seconds(add_up, lines=numbers.T)
    slower[f"{n:,} x {n:,}, {numbers.nbytes / 1e6:.0f} MB"] = columns / rows
    per_number = f"rows {rows / n**2 * 1e9:5.2f} ns, columns {columns / n**2 * 1e9:5.2f} ns"
    print(f"{n:5,} x {n:<5,} for each number: {per_number}")
journal.measured("row_walk", columns / rows)
show.bars(slower, "times", title="how much longer the columns take")

# %% [markdown]
# ### In your own words
#
# Look at the numbers you have just measured, and answer in four to six sentences:
#
# 1. Both walks add the same numbers. Why do the columns of the largest matrix take so much longer?
# 2. Why is the difference much smaller for 500 x 500?
# 3. Would it help the rows of the largest matrix to store the numbers as float64? Why (not)?

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_memory_walk", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** Memory arrives in lines of 64 bytes, which hold 16 neighbours of a row. The row walk uses all 16;
# the column walk uses one of each line and goes on to the next row. A column of the large matrix touches 4,000 lines,
# and before the next column comes back for their other numbers most of the lines have been thrown out of the cache, so
# each line is fetched up to 16 times. The 500 x 500 matrix has 1 MB and stays in the cache, where fetching again is
# cheap; besides, its lines are so short that the fixed cost of each call to `sum` hides the rest. float64 would make the
# rows slower, not faster: twice the bytes have to come through the same memory.
#
# **Rubric** (3 points). One point: only part of each fetched line is used by the column walk, and lines are fetched
# repeatedly. One point: the small matrix fits in the cache (the fixed cost of a call may be named as well, but alone
# earns half a point). One point: float64 doubles the bytes, so it does not help. Take half a point off if no measured
# number is named. A learner who also says that strided numbers cannot be loaded into one wide register is right.
# ### END SOLUTION

# %% [markdown]
# ## Batching
#
# A dense layer turns D numbers into M scores: `weight @ sample + bias`, with a `weight` of (M, D). For a single sample
# that is a matrix times a vector, level 2, and a small one: with 64 numbers and 10 scores, 640 multiplications. The
# call costs more than the work.
#
# A **batch** is many samples, each one a row of `x` (N, D). Then every score of every sample is one dot product of a row
# of `x` with a row of `weight`: a matrix product again, level 3, in one call.
#
# How many times faster is the batch, for 6,000 samples of 64 numbers and 10 scores?

# %%
journal.predict("batch_affine", ...)  # your guess

# %% [markdown]
# ### Exercise: batch_affine
#
# **Core**, about 10 minutes.
#
# Compute the dense layer for a whole batch, without a loop. Watch the shapes: `@` wants (N, D) times (D, M), and `weight`
# is (M, D). `weight.T` is `weight` with rows and columns exchanged, (D, M). A vector (M,) that you add to an array (N, M)
# is added to every row. The check asks for at least 10 times the speed of one sample at a time.


# %% nbgrader={"grade": false, "grade_id": "batch_affine", "locked": false, "schema_version": 3, "solution": true, "task": false}
def batch_affine(x, weight, bias):
    """Apply a dense layer to x (N, D) with weight (M, D) and bias (M,); return (N, M). About 1 line.

    Row n of the result is weight @ x[n] + bias.
    """
    ### BEGIN SOLUTION
    return x @ weight.T + bias
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_batch_affine", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check.batch_affine(batch_affine)

# %% [markdown]
# How large must a batch be? Here is the time for one sample, by the size of the batch it travels in.

# %%
batches = [1, 4, 16, 64, 256, 1024, 4096]
samples = rng.standard_normal((6000, 64), dtype=np.float32)
weight, bias = rng.standard_normal((10, 64), dtype=np.float32), np.zeros(10, np.float32)
per_sample = [seconds(ops.affine, x=samples[:n], weight=weight, bias=bias) / n for n in batches]
show.growth(batches, {"time for one sample": per_sample}, what="samples in the batch")

# %% [markdown]
# At first the line falls in proportion: the fixed cost of a call is shared by more and more samples. Then it levels off,
# and only the work is left. A larger batch would not be faster, and it needs more memory. In lesson 07 we shall see that
# it may also cost accuracy.

# %% [markdown]
# ## Two ceilings, and a second core
#
# However you write your code, two ceilings of the machine stay: how many bytes a second memory delivers (**bandwidth**)
# and how many multiplications and additions a second the core can do (**peak**, counted in flop/s: a flop is one
# multiplication or one addition). We measure both. A large copy shows the
# first, a large matrix product the second.
#
# All timing so far used one thread, so that the comparison was fair. A large product is the place to use more: BLAS
# gives each core its own part of the result. If two cores share it, how many times faster?

# %%
journal.predict("two_threads", ...)  # your guess

# %%
bandwidth, peak = timing.copy_bandwidth(), timing.matmul_peak()
peak64, peak_two = timing.matmul_peak(np.float64), timing.matmul_peak(threads=2)
journal.measured("two_threads", peak_two / peak)
print(f"bandwidth {bandwidth / 1e9:6.1f} GB/s     a large copy, bytes read and written")
print(f"peak      {peak / 1e9:6.1f} Gflop/s  product of 768 x 768, float32, one thread")
print(f"          {peak64 / 1e9:6.1f} Gflop/s  float64, one thread")
print(f"          {peak_two / 1e9:6.1f} Gflop/s  float32, two threads: {peak_two / peak:.1f} times")

# %% [markdown]
# float64 reaches about half of the peak: its numbers are twice as wide, so half as many fit into a register, a cache
# line, a second of bandwidth. Neural networks do not need the extra digits; that is why everything here is float32.
#
# Two threads come near to twice one thread if a second core is there and idle. Often it is not: other programs run, or
# the "second core" is half of the first one (hyper-threading). Then two threads may even be slower than one, because the
# one that is done waits for the other. Starting and meeting again costs time as well, so small products stay on one.
#
# Now divide peak by bandwidth: so many operations must each byte be worth, or the core waits for memory. Adding two
# vectors does 1 operation for 12 bytes; a product of n x n matrices 2n³ for 12n². The picture that shows this is called
# the **roofline**: to the left of its corner memory is the limit, to the right arithmetic.

# %%
n = 1024
long, other = rng.standard_normal((2, 4 * n * n), dtype=np.float32)
square, total = long[: n * n].reshape(n, n), np.empty_like(long)
measured = {  # operations, numbers read and written, seconds
    "add two vectors": (long.size, 3 * long.size, seconds(lambda: np.add(long, other, out=total))),
    "layer, 1 sample": (1280, 724, seconds(lambda: weight @ samples[0] + bias)),
    "layer, 6,000 samples": (6000 * 1280, 6000 * 74, seconds(lambda: samples @ weight.T + bias)),
    "product 1024 x 1024": (2 * n**3, 3 * n**2, seconds(lambda: square @ square)),
}
points = {name: (flops / (4 * moved), flops / time) for name, (flops, moved, time) in measured.items()}
show.roofline(peak, bandwidth, points)

# %% [markdown]
# On a quiet machine the large product comes close to what the core can do. The two vectors cannot, whoever writes the
# code: memory feeds them too slowly. And the single sample stays well below its roof: its limit is neither memory nor
# arithmetic, it is the cost of the calls. (A point can lie above the memory roof if its numbers wait in the cache.)
# Lesson 07 puts your own code on this picture.

# %% [markdown]
# ## Amdahl's law: what is it worth?
#
# You make a part of a program faster. What does the whole gain? Call the old time 1. The part takes a `fraction` of it
# and becomes `factor` times faster. The rest takes as long as before.

# %%
show.amdahl()

# %% [markdown]
# A program sorts 1,000 numbers with merge sort and multiplies two 64 x 64 matrices with three loops. You replace the
# loops by `a @ b`, more than a thousand times faster. How many times faster is the whole program?

# %%
journal.predict("whole_program", ...)  # your guess

# %% [markdown]
# ### Exercise: amdahl_speedup
#
# **Core**, about 5 minutes.
#
# Return the speedup of the whole: old time divided by new time. Half of the time, twice as fast, gives 1.333. Speedups
# can be neither added nor averaged; times can.


# %% nbgrader={"grade": false, "grade_id": "amdahl_speedup", "locked": false, "schema_version": 3, "solution": true, "task": false}
def amdahl_speedup(fraction, factor):
    """Return how many times faster the whole gets if `fraction` of its time gets `factor` times faster.

    0 <= fraction <= 1, factor > 0. About 2 lines.
    """
    ### BEGIN SOLUTION
    new_time = (1 - fraction) + fraction / factor
    return 1 / new_time
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_amdahl_speedup", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check.amdahl_speedup(amdahl_speedup)

# %% [markdown]
# Does the law hold? We measure the parts, calculate the whole, and then measure the whole.


# %%
def clock(step):
    start = perf_counter()
    step()
    return perf_counter() - start


numbers = shuffled[-1]
steps = [
    lambda: ops.merge_sort(numbers),
    lambda: triple_loops(a, b),
    lambda: a @ b,
    lambda: (ops.merge_sort(numbers), triple_loops(a, b)),
    lambda: (ops.merge_sort(numbers), a @ b),
]
sorting, loops, product, old, new = np.median([[clock(step) for step in steps] for _ in range(15)], axis=0)
fraction, factor = loops / (sorting + loops), loops / product
journal.measured("whole_program", old / new)
print(f"the product took {fraction:.0%} of the time and is now {factor:,.0f} times faster")
print(f"Amdahl's law for the whole: {ops.amdahl_speedup(fraction, factor):.1f} times")
print(f"measured: {old / new:.1f} times")
print(f"an infinitely fast product would give {1 / (1 - fraction):.1f} times")

# %% [markdown]
# The product became more than a thousand times faster, the whole program ten times or so, and no product in the world
# would bring much more. Sorting, which nobody had looked at, is now nearly all that is left. So the next thing to make faster is another one
# than before: measure again after each step.
#
# The law counts cores as well. If 95 % of a program can be shared among cores, a thousand of them make it less than 20
# times faster.

# %% [markdown]
# ## What you have
#
# The ladder shows the seconds that *your* functions need for one epoch of MNIST: here only a single dense layer, 784
# numbers to 10 scores, forward, for all 60,000 images. More rungs come with each lesson.

# %%
journal.ladder()

# %%
journal.guesses()

# %% [markdown]
# In three sentences: An algorithm changes how time grows, a constant factor only how high the curve lies, and a library
# gives you both for the price of one call. A matrix product is thousands of dot products that do not need each other, so
# the more of it you hand over in one call, the more workers, registers and caches can be put to use. What limits you in
# the end is the cost of calls, or arithmetic, or memory, or the part that you left alone, and you can measure which.
#
# ### Stretch: the third way to cut
#
# **More**, as long as you like.
#
# Rows are one way to cut a product into pieces, columns another. There is a third: along k. `np.outer(a[:, k], b[k])` is
# an (N, M) matrix, and the sum of these over all k is `a @ b`. Write `matmul_outer(a, b)` and measure it. Why is it
# slower than the rows, although it makes only about twice as many calls? And imagine a worker for each k: what must they share that
# the workers of rows or columns need not? (Lesson 08 calls the answer a reduction, lesson 12 an all-reduce.)

# %%
# Your stretch. When matmul_outer is written, take away the # of the lines below and run.
#
# print("largest difference:", np.abs(matmul_outer(a, b) - a @ b).max())
# print(f"row by row {seconds(ops.matmul_rows, a=a, b=b) * 1e6:.0f} µs")
# print(f"outer      {seconds(matmul_outer, a=a, b=b) * 1e6:.0f} µs")
