# %% [markdown]
# # Matrix parallelism
#
# Lesson 01, about 85 minutes.
#
# **Afterwards you can**
#
# - name the three levers that make software faster, and say which one a change pulls;
# - cut a matrix product into independent pieces, and hand whole pieces to the library;
# - count the cache lines that a walk through memory touches, and say why the order matters;
# - turn a loop over samples into one product;
# - measure two ceilings of your machine, and calculate what a faster part is worth to the whole.
#
# **You need** Python functions and lists, and NumPy arrays (`shape`, indexing). No GPU. Lesson 00 shows how predictions
# and checks work.
#
# The first cell holds what the later ones share. If you restart the kernel in the middle of the lesson, click the cell
# that you want to go on with and choose *Run*, *Run All Above Selected Cell*.

# %%
import mmap
from time import perf_counter

import numpy as np

from unrolled import check, journal, ops, show, timing

check.start("01_matrix_parallelism")

rng = np.random.default_rng(1)
a, b = rng.standard_normal((2, 64, 64), dtype=np.float32)  # two matrices
large_a, large_b = rng.standard_normal((2, 1024, 1024), dtype=np.float32)
samples = rng.standard_normal((6000, 64), dtype=np.float32)
weight, bias = rng.standard_normal((10, 64), dtype=np.float32), np.zeros(10, np.float32)
sizes = [125, 250, 500, 1000]
shuffled = [np.random.default_rng(n).permutation(n).tolist() for n in sizes]  # lists of numbers


def seconds(function, **inputs):
    """Median seconds of one call, on one thread: one line of work, for one core of the processor."""
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
# picture; a training run may take all night. **How much power** is there? A phone has a battery, a data centre has a
# bill. **How much room** is there? A car may have no space for another computer, and data that must stay in the building
# cannot go to a cloud. Speed, power and room together choose the hardware: a CPU, a GPU, a chip made for the task (FPGA,
# ASIC), or somebody else's computers.
#
# And before any of that, measure. Only the slowest part is worth your evening.
#
# (Levers and questions come from a seminar that Fixstars held in July 2022, *Software acceleration and deep learning*,
# third in its series on CUDA.)

# %% [markdown]
# ## The algorithm: fewer steps
#
# Bubble sort compares neighbours and swaps them until nothing is left to swap: about n² / 2 comparisons for n numbers.
#
# Merge sort cuts the list in two, sorts each half in the same way, and **merges** the two sorted halves in one pass. It
# cuts about log₂ n times, and after each cut all n numbers are merged once: about n · log₂ n comparisons.
#
# How many times faster is merge sort for 1,000 shuffled numbers? Put your guess in place of the dots.

# %%
journal.predict("merge_sort", ...)  # your guess: how many times faster?

# %% [markdown]
# ### Exercise: merge
#
# **More**, about 10 minutes. (Short of time? Read on. The measurement below then takes the library's merge.)
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


# %% nbgrader={"grade": true, "grade_id": "check_merge", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.merge(merge)

# %% [markdown]
# Stuck? `check.merge.hint()` in a cell of your own gives a first hint, then a second, then nearly the code. Every check
# has three.
#
# Now the growth. What you write does not end with its check: `journal.mine("merge")` gives your own function if its
# check passed, and the library's if not, and says which. Here merge sort is built on it. The third line in the picture is
# Python's own `sorted`, which also merges, but is written in C.

# %%
merge_two = journal.mine("merge")


def merge_sort(values):
    """Sort each half, then merge the two."""
    if len(values) < 2:
        return values
    middle = len(values) // 2
    return merge_two(merge_sort(values[:middle]), merge_sort(values[middle:]))


times = {
    "bubble sort": [seconds(ops.bubble_sort, values=values) for values in shuffled],
    "merge sort": [seconds(merge_sort, values=values) for values in shuffled],
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
# Read the slopes, not the heights. On both axes equal distances are equal factors (they are *logarithmic*), so what
# grows as n² climbs twice as steeply as what grows as n. By the count of comparisons, twice as many numbers take bubble
# sort four times as long, and merge sort little more than twice. So the gap has no fixed size: it widens with every
# doubling. That is what an **algorithm** buys.
#
# (The million is an estimate. Compared with 1,000 numbers, bubble sort has 1,000² times as many comparisons. Merge sort
# has 1,000 times as many in each pass, and 20 passes instead of 10.)
#
# `sorted` runs roughly parallel to merge sort, far below it. The number of steps grows in the same way, and each step is
# cheaper. That is a **constant factor**. And because somebody else wrote it, it is also a **library**.

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
# The 22 is 4·1 + 5·0 + 6·3. It needs the second row of the first matrix, the first column of the second, and no other
# entry of the result. So the entries can be computed in any order, or all at once by as many workers as there are, and no
# worker waits for another. This is **matrix parallelism**. It is why neural networks and graphics processors found each
# other. Move the sliders:

# %%
show.matmul_workers()

# %% [markdown]
# Here is the definition as code. It works on plain Python lists, because picking single numbers out of arrays would be
# slower still.


# %%
def triple_loops(a, b):
    """Return a (N, K) times b (K, M), number by number."""
    # body of unrolled.checks.exercises.l01_matrix_parallelism.exercises.triple_loops


looped = seconds(triple_loops, a=a, b=b)
print(f"{64**3:,} multiplications in {looped * 1e3:.0f} ms: {looped / 64**3 * 1e9:.0f} ns each")

# %% [markdown]
# The multiplication itself is a small part of that time. The rest goes to Python's **interpreter**, the program that
# runs your code step by step: for each number it finds the list, finds the number, asks for its type, and makes a new
# object for the result. <!-- why: interpreter -->
#
# Suppose you keep one loop and let NumPy compute a whole row of the result at a time. How many times faster is that than
# three loops?

# %%
journal.predict("matmul_rows", ...)  # your guess

# %% [markdown]
# ### Exercise: matmul_rows
#
# **Core**, about 10 minutes.
#
# Compute `a @ b` row by row: one loop, and in it a vector times a matrix. Row i of the result needs only row i of `a`,
# and all of `b`. The result has the dtype (the type of the numbers) of `a`: float32 gives float32. The check asks for at
# least {T} times the speed of `triple_loops` on 64 x 64.


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


# %% nbgrader={"grade": true, "grade_id": "check_matmul_rows", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.matmul_rows(matmul_rows)

# %% [markdown]
# Not one multiplication was saved: 262,144 before, 262,144 after. You did not use a second **core** either (a processor
# has several, and each can run a program of its own). What changed is who runs the two inner loops. There were 262,144
# trips through the interpreter, and now there are 64. Each of them calls compiled code, which multiplies 4, 8 or 16 pairs
# of numbers with a single instruction, because a core has wide **registers** that hold several numbers at once. That,
# too, is parallelism, inside one core.

# %% [markdown]
# ## The library: one call
#
# NumPy does not multiply matrices itself. It hands them to a **BLAS** (Basic Linear Algebra Subprograms). That is a set
# of functions, and every kind of hardware has its own, carefully tuned version: OpenBLAS and MKL on CPUs, cuBLAS on
# NVIDIA's GPUs. The functions come in three levels: vector with vector, matrix with vector, matrix with matrix. The last
# one is called **GEMM**, general matrix multiply. Most of the arithmetic of deep learning happens in it.
#
# Your loop calls level 2, once for each row. `a @ b` calls level 3, once. How many times faster is `a @ b` than the loop
# over rows?

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


by_rows = journal.mine("matmul_rows")
ways = {
    "three loops, elements of arrays": ops.matmul_loops,
    "three loops, Python lists": triple_loops,
    "dot by dot (level 1)": dot_by_dot,
    "row by row (level 2)": by_rows,
    "one product (level 3)": np.matmul,
}
took = {name: seconds(lambda way=way: way(a, b)) for name, way in ways.items()}
journal.measured("gemm", took["row by row (level 2)"] / took["one product (level 3)"])
print(
    f"dot by dot: {64**2:,} calls, {took['dot by dot (level 1)'] / 64**2 * 1e6:.1f} µs each, 64 multiplications in each"
)
show.bars(took, "s", log=True, title="one product of 64 x 64 matrices")

# %% [markdown]
# The same product, computed in five ways, on a logarithmic scale. Two of the steps deserve a second look.
#
# *From lists to single dot products* is a small step; the step after it is a far larger one. Look at the line above the
# picture. Before a NumPy call computes anything, it has to look at its arguments, and 64 multiplications hardly pay for
# that. So it is not enough that code is "vectorized", written without a loop over single numbers. What counts is how
# much work each call gets.
#
# *From rows to one product* is a large step too, though both are compiled. Here it is the calls again: one instead of 64.
# But then larger matrices, which give each call more work, should close the gap. Do they?

# %%
rows, whole = seconds(by_rows, a=large_a, b=large_b), seconds(lambda: large_a @ large_b)
print("1024 x 1024:")
print(f"row by row {rows * 1e3:.0f} ms, one product {whole * 1e3:.0f} ms: {rows / whole:.0f} times faster")

# %% [markdown]
# Only in part. The cost of the calls hardly counts any more, and a large factor stays. Row by row reads all of `b`
# again for each row, and uses each number once on the way. GEMM cuts both matrices into **tiles**, small blocks of rows
# and columns, brings a tile close to the arithmetic units, and uses each number many times while it is there.
# <!-- why: tiles of GEMM --> To see
# why that matters so much, we look at memory.

# %% [markdown]
# ## Memory is a strip
#
# Memory has no rows and columns; it is one long strip. An array is a piece of it, with a **shape** and with **strides**:
# how many bytes lead to the next row, and how many to the next column. A float32 takes 4 bytes. A float64, which NumPy
# uses unless you say otherwise, takes 8.

# %%
x = np.arange(12, dtype=np.float32).reshape(3, 4)
print("x   shape", x.shape, "strides", x.strides)
print("x.T shape", x.T.shape, "strides", x.T.strides)
print("the same memory, read in another order:", np.shares_memory(x, x.T))

# %% [markdown]
# `x.T`, the transpose, is `x` with rows and columns exchanged. No number has moved: only the shape and the strides have
# been turned round. Another look at the same memory is called a **view**.
#
# The processor never fetches a single number. It fetches a **cache line**, on most processors 64 bytes, and keeps it in
# a small fast memory, the **cache**, until the room is needed for another line. A line holds 16 float32 that lie side
# by side. In the picture it holds 8 numbers, and the cache has room for only 4 lines. Walk to the end and compare how
# many lines were loaded.

# %%
show.memory_walk()

# %% [markdown]
# ### Exercise: lines_touched
#
# **More**, about 10 minutes.
#
# How many cache lines does a walk along one axis of an array touch? The walk begins at the first number of the array,
# which stands at the start of a line. It visits `shape[axis]` numbers, and each step leads `strides[axis]` bytes on. A
# line holds 64 bytes. It counts once, however many of its numbers are visited, and not at all if none is.


# %% nbgrader={"grade": false, "grade_id": "lines_touched", "locked": false, "schema_version": 3, "solution": true, "task": false}
def lines_touched(shape, strides, axis):
    """Return how many cache lines of 64 bytes a walk along `axis` touches, as a whole number. About 2 lines.

    shape and strides are those of an array: a tuple of lengths, a tuple of bytes.
    """
    ### BEGIN SOLUTION
    addresses = [step * strides[axis] for step in range(shape[axis])]
    return len({address // 64 for address in addresses})
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_lines_touched", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.lines_touched(lines_touched)

# %% [markdown]
# The picture leaves three things out.
#
# - **Levels.** There are several caches. L1, the fastest, holds hundreds of lines, L2 thousands or tens of thousands, L3
#   more still. A line that L1 has lost may still be in L2.
# - **Prefetching.** The processor watches the addresses. Where they run on evenly to the next line, it fetches lines
#   before they are asked for.
# - **Memory pages.** The addresses that a program uses have to be translated, one memory page at a time. The latest
#   translations are kept in a small table, the **TLB** (translation lookaside buffer). A walk that enters another page at
#   each step may need more of them than the table holds, and prefetching mostly ends at the border of a page. Some
#   systems give large arrays larger pages, which helps.
#
# Now 16 million numbers. We add up all of them twice: once row by row, once column by column. Same numbers, same
# additions, same number of calls. How many times faster are the rows?

# %%
journal.predict("row_walk", ...)  # your guess


# %%
def add_up(lines):
    """Add up all lines, one after the other."""
    return sum(float(line.sum()) for line in lines)


def walk(n, m):
    """Add up an (n, m) matrix both ways, and print what a number takes; return its size and the two times."""
    numbers = np.random.default_rng(n).random((n, m), dtype=np.float32)
    rows, columns = seconds(add_up, lines=numbers), seconds(add_up, lines=numbers.T)
    in_row, in_column = (count_lines(numbers.shape, numbers.strides, axis) for axis in (1, 0))
    print(
        f"{n:,} x {m:,}, lines touched: {in_row:,} by a row, {in_column:,} by a column ({in_column * 64 / 1e3:.0f} kB)"
    )
    print(
        f"    for each number: rows {rows / numbers.size * 1e9:.2f} ns, columns {columns / numbers.size * 1e9:.2f} ns"
    )
    return f"{n:,} x {m:,}, {numbers.nbytes / 1e6:.0f} MB", rows, columns


count_lines = journal.mine("lines_touched")
slower = {}
for n in [500, 1000, 2000, 4000]:
    size, rows, columns = walk(n, n)
    slower[size] = columns / rows
journal.measured("row_walk", columns / rows)
print(f"    a step down a column leads {4 * n:,} bytes on; a memory page has {mmap.PAGESIZE:,}")
walk(4000, 16)
show.bars(slower, "times", title="how much longer the columns take")

# %% [markdown]
# Count the work first, then believe the times. A row of the largest matrix touches one line for 16 numbers, a column
# one line for each number. If no line stayed in a cache until it was needed again, the columns would have to fetch 16
# times much. <!-- why: lines of a column -->
#
# Compare the two walks of one size, and not one size with another. Each row is a call of `sum`, and short rows pay
# mostly for the calls: that is why a number in a row of 500 seems to cost more than one in a row of 4,000.
# <!-- why: short rows -->
#
# The last matrix is narrow: 4,000 rows of 16 numbers, one line each. Its rows are so short that the calls cost more than
# the sums, so look at its columns only. Each touches as many lines as a column of the largest matrix, but here these
# lines are neighbours.

# %% [markdown]
# ### In your own words
#
# Look at the numbers you have just measured, and answer in five to eight sentences:
#
# 1. Both walks add the same numbers. Why do the columns of the largest matrix take so much longer?
# 2. Why is the difference much smaller for 500 x 500? And why are the columns of the narrow matrix cheaper than those of
#    the largest one, though each of them touches as many lines?
# 3. Would it help the rows of the largest matrix to store the numbers as float64? Why (not)?

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_memory_walk", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.**
#
# 1. Memory arrives in lines of 64 bytes, and each holds 16 neighbours of a row. The row walk uses all 16 at once. The
#    column walk uses one of each line and goes on to the next row. One column touches 4,000 lines. L1 does not hold so
#    many, so when the next column comes back for the neighbour of a number, its line has at best stayed in L2, and at
#    worst is fetched from memory once more. Each step also leads to another memory page: the processor has more
#    translations to look up than its TLB may hold, and prefetching, which runs ahead of the rows, cannot. In my
#    measurement the columns took N times as long (the last bar of the walk). If N is less than 16, many lines were still
#    in L2 or L3 when they were needed again, and the rows had other costs than fetching.
# 2. All of the 500 x 500 matrix stays in L2 or L3, and one of its columns touches so few lines that L1 can hold most of
#    them until the next column comes; besides, its lines are so short that the fixed cost of each call to `sum` hides
#    much of the rest. The columns of the narrow matrix touch neighbouring lines on few pages, so prefetching and TLB
#    work, and the whole matrix fits in most L2 caches.
# 3. No. A float64 takes 8 bytes, so a line holds 8 of them, and a row touches 500 lines in place of 250, for the same
#    additions. More has to come through the same memory, and nothing is saved in return. (I have counted this, not
#    measured it.)
#
# **Rubric** (3 points).
#
# - One point: the column walk uses only part of each line, so lines are asked for again and again, and one column
#   touches more of them than L1 holds. Pages (TLB) and prefetching are right as further reasons, or in place of L1. Half
#   a point for "the lines of a column fit in no cache": 4,000 lines do fit in the L2 of many processors.
# - One point: half for the small matrix, which stays in a cache (the fixed cost of a call may be named as well, but is
#   not enough alone); half for the narrow one, whose lines are neighbours (prefetching, few pages), or which fits in L2 as
#   a whole.
# - One point: float64 doubles the bytes, so it does not help.
#
# Take half a point off if no measured number is named. A learner who also says that strided numbers cannot be loaded
# into one wide register is right.
# ### END SOLUTION

# %% [markdown]
# ## Batching
#
# A **dense layer** turns the D numbers of a sample into M scores, such as one for each digit: `weight @ sample + bias`.
# Here `weight` is (M, D), and `bias` is one more number for each score. (A product plus a bias is called *affine*.) For a
# single sample that is a matrix times a vector, level 2, and a small one: with 64 numbers and 10 scores, 640
# multiplications. The call costs more than the work.
#
# A **batch** is many samples, each of them a row of `x` (N, D). Could one call compute the scores of them all?
#
# How many times faster would that be, for 6,000 samples of 64 numbers and 10 scores?

# %%
journal.predict("batch_affine", ...)  # your guess

# %% [markdown]
# ### Exercise: batch_affine
#
# **Core**, about 10 minutes.
#
# Compute the dense layer for a whole batch, without a loop. Before you write, put the shapes side by side: `x` (N, D),
# `weight` (M, D), `bias` (M,), and a result (N, M). (A vector of length M that you add to an array (N, M) is added to each
# row.) The check asks for at least {T} times the speed of one sample at a time.


# %% nbgrader={"grade": false, "grade_id": "batch_affine", "locked": false, "schema_version": 3, "solution": true, "task": false}
def batch_affine(x, weight, bias):
    """Apply a dense layer to x (N, D) with weight (M, D) and bias (M,); return (N, M). About 1 line.

    Row n of the result is weight @ x[n] + bias.
    """
    ### BEGIN SOLUTION
    return x @ weight.T + bias
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_batch_affine", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.batch_affine(batch_affine)

# %% [markdown]
# How large must a batch be? Here is the time for one sample, by the size of the batch it travels in.

# %%
layer = journal.mine("batch_affine")
batches = [1, 4, 16, 64, 256, 1024, 4096]
per_sample = [seconds(layer, x=samples[:n], weight=weight, bias=bias) / n for n in batches]
show.growth(batches, {"time for one sample": per_sample}, what="samples in the batch")

# %% [markdown]
# At first the line falls in proportion: more and more samples share the fixed cost of a call. Then it levels off, and
# only the work is left. From there on a larger batch gains little, and it needs more memory. In lesson 07 you will see
# that it may also cost accuracy.

# %% [markdown]
# ## Two ceilings, and a second core
#
# However you write your code, two ceilings of the machine stay. **Bandwidth** is how many bytes a second memory delivers.
# **Peak** is how many operations a second the core can do; it is counted in flop/s, where a flop is one multiplication
# or one addition. We measure both: a large copy shows the first, a large matrix product the second.
#
# All times so far were those of one **thread**, one line of work that a core follows. A large product is the place to
# use more: BLAS gives each core its own part of the result. If two cores share the work, how many times faster is it?

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
print(f"peak / bandwidth: {peak / bandwidth:.1f} operations for each byte")

# %% [markdown]
# On a quiet machine float64 reaches about half of the peak. Its numbers are twice as wide, so half as many fit into a
# register, into a cache line and into a second of bandwidth.
# <!-- why: float64 --> Neural networks do not need the extra digits, which is why
# everything here is float32.
#
# Two threads come close to twice the speed of one if a second core is there and idle. Often it is not: other programs
# run, or the "second core" is half of the first one (hyper-threading). Then two threads may even be slower than one.
# (Likely the one that is done waits for the other; that was not looked into.)
# <!-- why: two threads --> Starting them and meeting again costs time as well, so small products
# stay on one thread.
#
# The last line is a yardstick. Each byte that comes from memory must be worth that many operations, or the core waits.
# Adding two vectors reads two numbers and writes one for each operation: 12 bytes. A product of n x n matrices does 2n³
# operations, and if each of its 3n² numbers moved once, they would be 12n² bytes.
#
# **Now you.** What about your rows? For each row of the result, `matmul_rows` reads one row of `a` and all of `b`, and it
# writes one row of the result. How many numbers are read and written for n = 1024, if nothing stays in a cache? Put the
# expression in place of the dots. The next picture checks it.

# %%
n = 1024
moved_by_rows = ...  # numbers read and written, as an expression with n

# %% [markdown]
# And a guess: how many times more operations a second does the product of two large matrices reach than the addition of
# two long vectors?

# %%
journal.predict("product_over_sum", ...)  # your guess

# %%
counted = n * (n + n * n + n)
if moved_by_rows is ...:
    print("No count of the numbers that move row by row yet: put an expression in place of the dots above.")
elif moved_by_rows == counted:
    print(f"Your count is right: {counted:,} numbers move.")
else:
    print(f"You counted {moved_by_rows:,}. It is n rows times (n of a + n² of b + n of the result): {counted:,}.")
long, other = rng.standard_normal((2, 4 * n * n), dtype=np.float32)
total = np.empty_like(long)
measured = {  # operations, numbers read and written, seconds
    "add two vectors": (long.size, 3 * long.size, seconds(lambda: np.add(long, other, out=total))),
    "layer, 1 sample": (1280, 724, seconds(lambda: weight @ samples[0] + bias)),
    "layer, 6,000 samples": (6000 * 1280, 6000 * 74, seconds(layer, x=samples, weight=weight, bias=bias)),
    "by rows, 1024 x 1024": (2 * n**3, counted, seconds(by_rows, a=large_a, b=large_b)),
    "product 1024 x 1024": (2 * n**3, 3 * n**2, seconds(lambda: large_a @ large_b)),
}
speed = {name: flops / time for name, (flops, _, time) in measured.items()}
points = {name: (flops / (4 * moved), speed[name]) for name, (flops, moved, _) in measured.items()}
journal.measured("product_over_sum", speed["product 1024 x 1024"] / speed["add two vectors"])
show.roofline(peak, bandwidth, points)

# %% [markdown]
# This picture is called the **roofline**. To the left of its corner, memory is the limit; to the right, arithmetic.
#
# On a quiet machine the large product comes close to what the core can do. The two vectors cannot, whoever writes the
# code: memory feeds them too slowly. (Often they stay below the roof, too. Most processors fetch a line before they write
# to it, which our count leaves out and a large copy avoids.) The single sample stays well below its roof. Its limit is
# neither memory nor arithmetic, it is the cost of the calls.
#
# The rows stand far to the left of the one product, though both do the same operations. By the count a byte is worth only
# half an operation, because all of `b` passes by for each row. A point can lie above the memory roof if its numbers wait
# in a cache, and `b` may well do so here; or if the machine was busier when the roof was measured. Lesson 07 puts more of
# your own code on this picture.

# %% [markdown]
# ## Amdahl's law: what is it worth?
#
# You make a part of a program faster. What does the whole gain? Call the old time 1. The part takes a `fraction` of it
# and becomes `factor` times faster. The rest takes as long as before.

# %%
show.amdahl()

# %% [markdown]
# A program sorts 1,000 numbers with merge sort and multiplies two 64 x 64 matrices with three loops. You replace the
# loops by your `matmul_rows`. You have measured how many times faster that is. How many times faster is the whole program?

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


# %% nbgrader={"grade": true, "grade_id": "check_amdahl_speedup", "locked": true, "schema_version": 3, "solution": false, "task": false}
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
    lambda: merge_sort(numbers),
    lambda: triple_loops(a, b),
    lambda: by_rows(a, b),
    lambda: a @ b,
    lambda: (merge_sort(numbers), triple_loops(a, b)),
    lambda: (merge_sort(numbers), by_rows(a, b)),
    lambda: (merge_sort(numbers), a @ b),
]
sorting, loops, *products, old, new, newer = np.median([[clock(step) for step in steps] for _ in range(15)], axis=0)
fraction = loops / (sorting + loops)
journal.measured("whole_program", old / new)
print(f"three loops take {fraction:.0%} of the program's time")
for name, product, whole in zip(("row by row", "one product"), products, (new, newer), strict=True):
    law = ops.amdahl_speedup(fraction, loops / product)
    print(f"{name}: the product is {loops / product:,.0f} times faster.", end=" ")
    print(f"The whole program, by Amdahl's law: {law:.1f} times; measured: {old / whole:.1f} times")
print(f"an infinitely fast product would give {1 / (1 - fraction):.1f} times")

# %% [markdown]
# On a quiet machine the law and the measurement agree closely. On a busy one the measured factor may even lie above the
# limit: law and limit are calculated from parts that were timed alone, at other moments than the whole. Now compare the two lines. One product is many times
# faster than the rows, and the whole program hardly notices. Even an infinitely fast product would not bring much more.
# Sorting, which you left alone, now takes nearly all of the time. So the next thing to make faster is the sorting: measure
# again after each step.
#
# The law counts cores as well. If 95 % of a program can be shared among cores, a thousand of them make it less than 20
# times faster.

# %% [markdown]
# ## What you have
#
# The ladder shows the seconds for one **epoch** of MNIST, one pass over all its 60,000 images. Here that is only a single dense layer, 784 numbers to 10 scores,
# and forward only. The checks have put your `matmul_rows` and your `batch_affine` on it. The next cell adds
# the three loops, measured on four images, and `batch_affine` with a batch of one. More rungs come with each lesson.

# %%
dense = "a dense layer 784 to 10, forward only"
weight784 = rng.standard_normal((10, 784), dtype=np.float32)
images = rng.standard_normal((4, 784), dtype=np.float32)
looped = seconds(triple_loops, a=images, b=weight784.T)
journal.rung("dense layer, three loops", dense, looped * 60000 / 4, batch=4)
single = seconds(layer, x=images[:1], weight=weight784, bias=bias)
journal.rung("dense layer, one sample a call", dense, single * 60000, batch=1, made_of=[layer])
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
# an (N, M) matrix, and the sum of these over all k is `a @ b`. Write `matmul_outer(a, b)` and measure it. It makes only
# about twice as many calls as the rows do: why is it slower? And imagine a worker for each k. What must these workers
# share that the workers of rows or columns need not? (Lesson 08 calls the answer a reduction, lesson 12 an all-reduce.)

# %%
# Your stretch. When matmul_outer is written, take away the # of the lines below and run.
#
# print("largest difference:", np.abs(matmul_outer(a, b) - a @ b).max())
# print(f"row by row {seconds(by_rows, a=a, b=b) * 1e6:.0f} µs")
# print(f"outer      {seconds(matmul_outer, a=a, b=b) * 1e6:.0f} µs")
