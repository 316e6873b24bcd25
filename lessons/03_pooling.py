# %% [markdown]
# # Pooling
#
# Lesson 03, about 100 minutes.
#
# **Afterwards you can**
#
# - pool an image by hand and in code, and say what that is good for;
# - put values back where the maxima came from, by index and by mask;
# - count the work of a line of NumPy before you believe that it is fast;
# - say what ties and overlapping windows change on the way back.
#
# **You need** slices with steps, boolean masks, and the axes of a batch of images (lesson 02). Stuck?
# `check.NAME.hint()`, with the name of the exercise, gives three hints. Cells in between use your own functions where
# their checks have passed (`journal.mine`), and those of `unrolled.ops` elsewhere; "library" in the printed lines means
# these. So you can leave any exercise out.
#
# Are you coming back after a restart? Choose *Run All Above* first: later cells use what earlier ones define.

# %%
import numpy as np

from unrolled import check, data, journal, ops, records, show, timing

check.start("03_pooling")

digits = data.digits().images


def seconds(function, **inputs):
    """Median seconds of one call, on one thread."""
    return timing.measure(function, inputs, budget=0.2).seconds


def windows_as_rows(x, k):
    """The windows of x (N, C, H, W) side by side, as rows: (N*C*OH*OW, k*k). H and W are multiples of k."""
    n, c, h, w = x.shape
    return x.reshape(n, c, h // k, k, w // k, k).swapaxes(3, 4).reshape(-1, k * k)


rng = np.random.default_rng(0)

# %% [markdown]
# ## The largest of each window
#
# Max-pooling, too, moves a window over an image, but there is no kernel, and nothing is multiplied. It keeps the largest
# pixel of each window and forgets the rest. Usually the window moves by its own size, so that windows lie side by side:
# a window of 2 x 2 halves height and width.
#
# Do the four windows by hand, then step through them.

# %%
image = np.array([[1, 1, 2, 0], [0, 2, 1, 3], [2, 0, 1, 2], [3, 2, 0, 1]])
show.max_pool2d(image, 2)

# %% [markdown]
# The result is `[[2, 3], [3, 2]]`. (The image is the one of lesson 02, from Fixstars' seminar of 2022; so are the
# three channels below.)
#
# A convolution adds up over all channels. Pooling leaves them apart: three channels go in, three come out, each with
# maxima of its own.

# %%
image_3 = np.array(
    [
        [[1, 2, 4, 2], [0, 1, 2, 3], [3, 0, 1, 0], [2, 4, 0, 2]],
        [[4, 0, 3, 1], [0, 1, 0, 3], [3, 0, 2, 0], [1, 3, 0, 1]],
        [[1, 1, 2, 0], [0, 2, 1, 3], [2, 0, 1, 2], [3, 2, 0, 1]],
    ]
)
show.max_pool2d(image_3, 2)

# %% [markdown]
# What is it good for? It makes the next layers cheaper: a window of 2 leaves a quarter of the numbers. And the question
# "does a stroke begin somewhere here?" gets much the same answer when the stroke moves a little. See for yourself: find
# where ink begins in 200 digits, move the digits by one pixel, and ask how much of the pooled result has changed.
#
# Between convolution and pooling stands a **ReLU** (rectified linear unit), as in most networks. It turns every number
# below 0 into 0 and leaves the others as they are. Here it keeps where ink begins, and drops where it ends.

# %%
conv2d = journal.mine("conv2d_gemm")
begins = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float32)[None, None]
strokes = ops.relu(conv2d(digits[:200], begins, padding=1))
moved = ops.relu(conv2d(np.roll(digits[:200], 1, axis=3), begins, padding=1))
for kernel_size in (1, 2, 4, 7):
    before, after = ops.max_pool2d(strokes, kernel_size), ops.max_pool2d(moved, kernel_size)
    change = np.abs(after - before).sum() / before.sum()
    print(f"window {kernel_size}: {before[0].size:3} numbers, {change:4.0%} changed by a shift of one pixel")

# %% [markdown]
# Larger windows forgive more, and they forget more: where in the window the stroke began is lost. How much to forget has
# to be tried. In an experiment of 2015, which we meet again below, windows of 4 got 75.9 % of the test photographs right
# and windows of 2 got 72.7 %. Its author thought that the smaller ones forgave too little.
#
# ### Exercise: max_pool2d
#
# **Core**, about 13 minutes.
#
# Pool a whole batch; the window moves by its own size. Where the image is not a multiple of the window, the rest at the
# right and lower edge belongs to no window and is left out: 5 rows and a window of 2 make 2 rows. Loop over the outputs
# of one image, row by row, and treat all images and channels at once. `a.max(axis=(2, 3))` takes the largest over two
# axes. You may use {allows}.


# %% nbgrader={"grade": false, "grade_id": "max_pool2d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def max_pool2d(x, kernel_size):
    """The largest pixel of each window of x (N, C, H, W), in a new array of its dtype. About 8 lines.

    kernel_size is a number, for both axes. The result is (N, C, H // kernel_size, W // kernel_size).
    """
    ### BEGIN SOLUTION
    n, c, h, w = x.shape
    y = np.empty((n, c, h // kernel_size, w // kernel_size), dtype=x.dtype)
    for row in range(y.shape[2]):
        for column in range(y.shape[3]):
            top, left = row * kernel_size, column * kernel_size
            window = x[:, :, top : top + kernel_size, left : left + kernel_size]
            y[:, :, row, column] = window.max(axis=(2, 3))
    return y
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_max_pool2d", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.max_pool2d(max_pool2d)

# %% [markdown]
# ## And back again
#
# In training, something travels through the network backwards: to each output comes a number that says in which
# direction it should change. That is lesson 04. Today we take the numbers as they come and ask only where they go. An
# output of max-pooling *is* one pixel of its window; the others had no say. So its number belongs to that pixel, and
# the others get 0. This is **unpooling**. Here the numbers 1 to 4 go back:

# %%
show.max_pool2d(image, 2, values=np.array([[1, 2], [3, 4]]))

# %% [markdown]
# To find the places, write each window as a row: `windows_as_rows` in the first cell does. Its reshape cuts height and
# width into windows and the places inside them; `swapaxes` brings the two axes of places together. `argmax` then says
# for each row at which place the largest number stands; of equal ones it names the first.

# %%
rows = windows_as_rows(image[None, None], 2)
winners = rows.argmax(axis=1)
print(rows)
print("winners:", winners)

# %% [markdown]
# ## A hunt
#
# The article of lesson 00, whose author moved a NumPy network to a GPU, tells of a hunt.¹ An epoch took about 100
# seconds; a finished framework needed 4. So the author measured a step of training, which takes one batch of 8 images
# (a **mini-batch**), then its parts, then the parts of the slowest part:
#
# | a step | its backward pass | its pooling | ms |
# | --- | --- | --- | --- |
# | forward | | | 1.32 |
# | **backward** | | | **10.3** |
# | | output layer | | 0.15 |
# | | hidden layer | | 0.22 |
# | | **pooling** | | **9.72** |
# | | | reorder | 0.02 |
# | | | zeros | 0.01 |
# | | | **fill** | **9.5** |
# | | | reshape, col2im | 0.11 |
# | | convolution | | 0.44 |
# | update | | | 1.64 |
#
# (The hidden layer is the one between pooling and output. `col2im`, the way back through `im2col`, comes in lesson 04.)
#
# The parts of the step add up to 13.26 ms, and 7,500 mini-batches to 99 seconds: nothing is missing. (Each line was
# measured on its own, so the parts of a line miss it by a few per cent.) That is how to hunt, and the trail ends at a
# single line. In our names it is
#
# ```python
# filled[:, winners] = values
# ```
#
# `filled` holds zeros, a row for each window. `values` are the numbers to put back, as a column: one for each row, which
# broadcasting repeats along it. The author concluded that a GPU is bad at scattered writes, and put a multiplication with
# a mask of zeros and ones in place of that line. Then the fill took 0.016 ms, and an epoch about 50 seconds. (The table
# with the new fill promises 28, and all parts timed anew promise 29. Lesson 07 comes back to that.)
#
# The line was the right one to blame. It is "vectorized", a single statement without a loop. Against it stands a plain
# Python loop that writes one number at a time. Take the 15,680 windows of a mini-batch of the article, and divide the
# loop's time by the statement's: what comes out on your CPU? (10 says that the statement is ten times as fast as the
# loop, 0.5 that it takes twice as long.)
#
# ¹ *Deep Learning Gaiden: GPU Programming*, Qiita, September 2020, in Japanese.

# %%
journal.predict("single_statement", ...)  # your guess: time of the loop / time of the statement

# %% [markdown]
# Now try the line on the four windows above. The values 10, 20, 30 and 40 go out. How many of the 16 numbers of `filled`
# will not be 0? Say it before you run the cell.

# %%
values = np.array([[10], [20], [30], [40]])
filled = np.zeros((4, 4), int)
filled[:, winners] = values
print(filled)

# %% [markdown]
# Four values went out and twelve came home. `[:, winners]` does not pair the first row with the first winner, the
# second row with the second winner. It takes *every* row, and in each of them *every* winner's place: 4 x 4 writes,
# some of them to the same pixels. So the line is **wrong**: whichever places win anywhere get the value everywhere. For
# 15,680 windows it writes 246 million numbers into an array of 62,720.
#
# It went unnoticed, since the network learned all the same: 97.58 % of the test digits right with the wrong line, 98.03 %
# with the mask. (One run each, so the difference may be chance.) That a network learns does not prove that its code
# is right.
#
# The cure takes a few more characters. Name both, the row and its winner; then NumPy pairs them, first with first, second
# with second.

# %%
filled = np.zeros((4, 4), int)
filled[np.arange(4), winners] = values[:, 0]
print(filled)

# %% [markdown]
# Your guess stands, or you may change it now. Then measure four ways to fill, for more and more windows.


# %%
def quadratic_fill(values, winners, mask):
    filled = np.zeros(mask.shape, values.dtype)
    filled[:, winners] = values
    return filled


def plain_loop(values, winners, mask):
    filled = np.zeros(mask.shape, values.dtype)
    for row, place in enumerate(winners):
        filled[row, place] = values[row, 0]
    return filled


def indexed_fill(values, winners, mask):
    filled = np.zeros(mask.shape, values.dtype)
    filled[np.arange(len(winners)), winners] = values[:, 0]
    return filled


def times_mask(values, winners, mask):
    return mask * values


ways = {
    "filled[:, winners]": quadratic_fill,
    "plain loop": plain_loop,
    "filled[np.arange(n), winners]": indexed_fill,
    "mask * values": times_mask,
}
sizes = [500, 1000, 2000, 4000, 8000, 15_680]
times = {name: [] for name in ways}
for n in sizes:
    rows = rng.standard_normal((n, 4), dtype=np.float32)
    inputs = {
        "values": rng.standard_normal((n, 1), dtype=np.float32),
        "winners": rows.argmax(axis=1),
        "mask": rows == rows.max(axis=1, keepdims=True),
    }
    for name, way in ways.items():
        times[name].append(seconds(way, **inputs))
loop_wins = times["filled[:, winners]"][-1] / times["plain loop"][-1]
journal.measured("single_statement", 1 / loop_wins)
print(f"15,680 windows: the plain loop is {loop_wins:.0f} times faster than the single statement")
show.growth(sizes, times, what="windows")

# %% [markdown]
# The plain loop wins. Not by being fast: each of its steps costs a trip through the interpreter, and with 500 windows
# it may still lose. But it makes n steps where the statement makes n².
# <!-- why: n steps --> (The slopes in the figure are near 1 and 2.
# What fits no cache lifts them, and so does a busy machine.) "Vectorized" says how a step is done and nothing about how
# many there are. First count the work, then make it cheap: lesson 01 called these algorithm and constant factor.
#
# Was the author wrong about GPUs, then? The same fills of 15,680 windows ran on an NVIDIA H200, and here is the record.
# It has two times for each. The *device's* is how long the GPU worked. The *host's* is what Python and the array library
# needed to hand the work over: they start it and do not wait. (More of that in lesson 06.)

# %%
fills = {kind: records.gpu().row(f"pooling fill, batch 8, {kind}") for kind in ("quadratic", "indexed", "mask")}
print(f"{'15,680 windows':32}{'H200: device':>14}{'host':>12}")
for (kind, row), way in zip(fills.items(), ("[:, winners]", "[np.arange(n), winners]", "mask * values"), strict=True):
    print(f"{kind:10}{way:25}{row['device_us']:8,.1f} µs{row['host_us']:9,.0f} µs")
on_device = [row["device_us"] for row in fills.values()]
less_work, by_mask = on_device[0] / on_device[1], on_device[1] / on_device[2]
print(f"on the device, n writes instead of n² gain {less_work:.0f} times, the mask {by_mask:.1f} times more")
print(records.gpu())
few, *_, many = (op["device_us"] for op in records.model().row("indexed fill")["operations"])
print(f"the indexed fill in another run, on such a device: 980 windows {few:.1f} µs, 15,680 windows {many:.1f} µs")

# %% [markdown]
# So the mask does suit a GPU better. But by far the larger gain comes from no longer doing n² work. And it is not
# scattered writes that the mask saves: in the last line, 16 times as many of them take little longer. The indexed fill
# has a fixed price: the array library makes several small operations of this one statement, and each has to be handed
# over. The mask is a single operation. <!-- why: one operation -->
#
# Look at the host's times, too. They do not follow the work at all. Where the host takes longer than the device, as for
# the indexed fill and the mask, the GPU waits for Python, and what counts is how many calls a way needs.
# <!-- why: host and device --> And your own
# two lowest lines say whether a CPU cares for the mask at all. (None of these times includes finding the winners.)
#
# ## Pairs in two dimensions
#
# Above, each row had one place. What if it has several? Below, two rows get three values each, at three places. The
# places have the shape (2, 3), so the names of the rows must fit that shape: a 0 for each of the first three, a 1 for
# each of the others. A column of shape (2, 1) is enough. NumPy repeats it three times, as it repeats a bias
# (broadcasting), and `[:, None]` makes one: it adds an axis of size 1 at the end.

# %%
places = np.array([[0, 3, 5], [1, 2, 4]])
three_each = np.array([[1, 2, 3], [4, 5, 6]])
two_rows = np.zeros((2, 6), int)
print("np.arange(2)[:, None] is", np.arange(2)[:, None].tolist(), "of shape", np.arange(2)[:, None].shape)
two_rows[np.arange(2)[:, None], places] = three_each
print(two_rows)
try:
    two_rows[np.arange(2), places] = three_each
except IndexError as error:
    print("without [:, None]:", error)

# %% [markdown]
# The error says that (2,) and (2, 3) do not fit: NumPy lines shapes up at their last axes, and 2 is neither 3 nor 1.
#
# ### Exercise: max_unpool2d
#
# **Core**, about 12 minutes.
#
# Put values back by index, in images now. Each index says where in its image and channel the value belongs, counted row
# by row: row * W + column. With windows side by side no index occurs twice in one image and channel. One assignment
# does it, without a loop, if you name both: which image and channel, and where in it. Make one long row of each image
# and channel first.


# %% nbgrader={"grade": false, "grade_id": "max_unpool2d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def max_unpool2d(values, indices, size):
    """Put values (N, C, OH, OW) at indices (the same shape) of images of size (H, W). About 6 lines.

    An index is row * W + column. Return (N, C, H, W) in values' dtype, 0 where no value came.
    """
    ### BEGIN SOLUTION
    n, c = values.shape[:2]
    h, w = size
    result = np.zeros((n * c, h * w), dtype=values.dtype)
    rows = np.arange(n * c)[:, None]
    result[rows, indices.reshape(n * c, -1)] = values.reshape(n * c, -1)
    return result.reshape(n, c, h, w)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_max_unpool2d", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.max_unpool2d(max_unpool2d)

# %% [markdown]
# ## Ties
#
# The mask of the article is 1 wherever a pixel equals the largest of its window. Does it do the same as the index?
# Here is a piece of a feature map (the image that a filter makes) after a ReLU. Step through the windows. The crossed
# pixels are as large as the winner.

# %%
after_relu = np.array([[0, 0, 2, 0], [0, 0, 1, 3], [0, 4, 0, 0], [1, 4, 0, 0]])
show.max_pool2d(after_relu, 2, values=np.array([[10, 20], [30, 40]]))

# %%
rows = windows_as_rows(after_relu[None, None], 2)
mask = rows == rows.max(axis=1, keepdims=True)
print(mask * values)

# %% [markdown]
# The mask gives the whole value to every tied pixel: 100 went out, and 280 came home. How often do windows tie? Ask a
# real layer: 8 digits, 10 filters, ReLU.

# %%
filters = rng.standard_normal((10, 1, 3, 3), dtype=np.float32)
features = ops.relu(conv2d(digits[:8], filters, padding=1))
rows = windows_as_rows(features, 2)
tied = (rows == rows.max(axis=1, keepdims=True)).sum(axis=1)
print(f"{len(rows):,} windows; {np.mean(tied > 1):.0%} of them tie")
print(f"for each value, {tied.mean():.1f} go back on average")

# %% [markdown]
# Some rule has to break the tie. All frameworks that you are likely to meet let one pixel win, and usually the
# **first**, row by row: the sum is kept, and two programs can be compared. `argmax` follows that rule already. The mask
# must be taught.
#
# (In the article's network the harm is limited: on its way back, the value meets the ReLU next, and that lets nothing
# through where its output was 0. You will see it in lesson 04. But a filter with a bias can turn all blank paper into
# the same positive number. Those windows tie, too, and no ReLU stops what they send back.)
#
# ### Exercise: max_unpool2d_mask
#
# **Core**, about 16 minutes.
#
# Put values back by masks, without indices and without a loop over windows. A loop over the *places inside* a window is
# fine; for a window of 2 these are four. Each place is a slice with steps: with windows of 2, `x[:, :, 0::2, 1::2]`
# holds the upper right pixel of all windows at once. Where an edge is left over, that is one too many:
# `i : i + OH * step : step` takes just OH of them. Remember which windows still wait for their winner; for boolean
# arrays `a & b` is "both" and `~a` is "not". The check asks for {T} times the speed of plain loops. What will you get?

# %%
journal.predict("max_unpool2d_mask", ...)  # your guess: how many times faster?


# %% nbgrader={"grade": false, "grade_id": "max_unpool2d_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def max_unpool2d_mask(values, x, kernel_size):
    """Put values (N, C, OH, OW) where the maxima of x (N, C, H, W) are; of equal maxima the first. About 12 lines.

    Windows lie side by side; pixels at the edge that belong to none stay 0. Return (N, C, H, W) in values' dtype.
    `ops.max_pool2d(x, kernel_size)` gives the maxima.
    """
    ### BEGIN SOLUTION
    largest = ops.max_pool2d(x, kernel_size)
    oh, ow = values.shape[2:]
    result = np.zeros(x.shape, dtype=values.dtype)
    waiting = np.ones(values.shape, dtype=bool)
    for i in range(kernel_size):
        for j in range(kernel_size):
            rows = slice(i, i + oh * kernel_size, kernel_size)
            columns = slice(j, j + ow * kernel_size, kernel_size)
            here = waiting & (x[:, :, rows, columns] == largest)
            result[:, :, rows, columns] = here * values
            waiting = waiting & ~here
    return result
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_max_unpool2d_mask", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.max_unpool2d_mask(max_unpool2d_mask)

# %% [markdown]
# You turned the loops inside out. Plain loops go through windows, and inside each window through its places. The masks
# go through the places, and NumPy goes through all windows at once: 4 trips instead of thousands. The cell below adds
# the plain loops and the way by index to your ladder, on the layer of the article: 10 channels of 28 x 28.

# %%
layer = {
    "values": rng.standard_normal((8, 10, 14, 14), dtype=np.float32),
    "x": features,
    "kernel_size": 2,
}
loops = seconds(ops.max_unpool2d_loops, **layer)
by_index, by_mask = journal.mine("max_unpool2d"), journal.mine("max_unpool2d_mask")
indices = ops.max_pool2d_indices(features, 2)
index_seconds = seconds(by_index, values=layer["values"], indices=indices, size=features.shape[2:])
mask_seconds = seconds(by_mask, **layer)
work = "values put back after max-pooling, x 60,000 images"
journal.rung("plain loops, back", work, loops / 8 * 60_000, batch=8)
journal.rung("by index, known", work, index_seconds / 8 * 60_000, batch=8, made_of=[by_index])
for name, took in {"plain loops": loops, "by index": index_seconds, "by masks": mask_seconds}.items():
    print(f"{name:12} {took * 1e3:8.2f} ms for 8 images, {took / 8 * 60_000:7,.1f} s for 60,000")
print(f"masks are {loops / mask_seconds:.0f} times faster than plain loops, on this layer")

# %% [markdown]
# By index, the places were known before the clock started; loops and masks had to find them. And the factor differs from
# the check's, which was measured on half as many images. On a busy machine it differs from run to run, too.

# %% [markdown]
# ## Windows that overlap
#
# Another experiment left a riddle behind. In 2015 somebody trained a network on small colour photographs with Theano, a
# framework of that time, on a graphics card.² Its pooling had a window of 4 and a stride of 4; 50 epochs took 13
# minutes. Then the window stayed 4 x 4 and the stride became 2, so that windows overlap. Now a single epoch took
# 30 minutes, with the card at nearly 0 %. The author gave it up as a mystery.
#
# Nothing about the idea is mysterious. The same window takes smaller steps, as in a convolution. What is new is the way
# back: **a pixel can win in several windows, and then their values add up.** Here the window has 3 x 3 pixels and
# stride 1; the 3 at the right edge wins two times.
#
# ² *Theano で GPU 使って Convolutional Neural Net*, in the blog *takataka's diary*, July 2015, in Japanese.

# %%
show.max_pool2d(image, 3, stride=1, values=np.array([[1, 2], [3, 4]]))

# %% [markdown]
# ### Exercise: max_pool2d_overlapping
#
# **More**, about 10 minutes.
#
# First forward, for any stride. The places inside the window will do again: 16 for a window of 4, each of them a slice
# `i : i + OH * stride : stride`. `np.maximum(a, b)` takes the larger of each pair. The check asks for {T} times the
# speed of plain loops, which a loop over single windows does not reach. How many will it be? You may use {allows}.

# %%
journal.predict("max_pool2d_overlapping", ...)  # your guess


# %% nbgrader={"grade": false, "grade_id": "max_pool2d_overlapping", "locked": false, "schema_version": 3, "solution": true, "task": false}
def max_pool2d_overlapping(x, kernel_size, stride):
    """The largest pixel of each window of x (N, C, H, W): (N, C, OH, OW), in x's dtype. About 9 lines.

    OH = (H - kernel_size) // stride + 1, and OW alike: what is left over at the edge is left out.
    """
    ### BEGIN SOLUTION
    h, w = x.shape[2:]
    oh, ow = (h - kernel_size) // stride + 1, (w - kernel_size) // stride + 1
    y = x[:, :, : oh * stride : stride, : ow * stride : stride]
    for i in range(kernel_size):
        for j in range(kernel_size):
            rows = slice(i, i + oh * stride, stride)
            columns = slice(j, j + ow * stride, stride)
            y = np.maximum(y, x[:, :, rows, columns])
    return y
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_max_pool2d_overlapping", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.max_pool2d_overlapping(max_pool2d_overlapping)

# %% [markdown]
# Now back. Adding has a trap of its own. Below, two values go to place 2 and one to place 0. What do you expect in each
# line?

# %%
places, three_values = np.array([2, 0, 2]), np.array([1, 10, 100])

assigned, added, added_at = np.zeros(3, int), np.zeros(3, int), np.zeros(3, int)
assigned[places] = three_values
added[places] += three_values
np.add.at(added_at, places, three_values)
print("=         ", assigned)
print("+=        ", added)
print("np.add.at ", added_at)

# %% [markdown]
# `a[places] += b` first reads all three places, then adds, then writes all three: the second write to place 2 wipes out
# the first. Only `np.add.at` adds one after the other. With slices you need not worry: within one slice, no pixel
# occurs twice.
#
# ### Exercise: max_unpool2d_overlapping
#
# **Core**, about 12 minutes.
#
# Put values back by masks, for any stride, so that values that meet add up. Place i of all windows is
# `i : i + OH * stride : stride`. Of equal maxima in a window the first still wins. You may use {allows}. The check asks
# for {T} times the speed of plain loops. Your guess?

# %%
journal.predict("max_unpool2d_overlapping", ...)


# %% nbgrader={"grade": false, "grade_id": "max_unpool2d_overlapping", "locked": false, "schema_version": 3, "solution": true, "task": false}
def max_unpool2d_overlapping(values, x, kernel_size, stride):
    """Put values (N, C, OH, OW) where the maxima of x (N, C, H, W) are, and add them up there. About 12 lines.

    Of equal maxima in a window the first gets the value. Return (N, C, H, W) in values' dtype.
    `ops.max_pool2d(x, kernel_size, stride)` gives the maxima.
    """
    ### BEGIN SOLUTION
    largest = ops.max_pool2d(x, kernel_size, stride)
    oh, ow = values.shape[2:]
    result = np.zeros(x.shape, dtype=values.dtype)
    waiting = np.ones(values.shape, dtype=bool)
    for i in range(kernel_size):
        for j in range(kernel_size):
            rows = slice(i, i + oh * stride, stride)
            columns = slice(j, j + ow * stride, stride)
            here = waiting & (x[:, :, rows, columns] == largest)
            result[:, :, rows, columns] += here * values
            waiting = waiting & ~here
    return result
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_max_unpool2d_overlapping", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.max_unpool2d_overlapping(max_unpool2d_overlapping)

# %% [markdown]
# ## The riddle of the 30 minutes
#
# The answer, very likely, stands in Theano's own records. Version 0.7 had just learned strides for pooling, on the CPU,
# and "with only python code", as its developers note.³ Where stride and window were equal, compiled code ran on the
# card. Where they differed, nothing compiled fitted, and Theano quietly took what it had: a Python loop over images,
# channels, rows and columns. No error, no warning, an idle card.
#
# So we can time it here. The layer has 64 channels of 28 x 28 and a batch of 100, and an epoch has 400 such batches.
# The function below goes window by window, as that loop did. How many times faster, there and back, will whole arrays
# be?
#
# ³ Issues 2196 and 2582 of Theano/Theano on GitHub, opened in 2014 and 2015; for the graphics card, issue 3542.

# %%
journal.predict("overlapping_epoch", ...)  # your guess


# %%
def window_by_window(x, kernel_size, stride):
    n, c, h, w = x.shape
    y = np.empty((n, c, (h - kernel_size) // stride + 1, (w - kernel_size) // stride + 1), dtype=x.dtype)
    for image, channel, row, column in np.ndindex(y.shape):
        top, left = row * stride, column * stride
        y[image, channel, row, column] = x[image, channel, top : top + kernel_size, left : left + kernel_size].max()
    return y


batch = rng.standard_normal((100, 64, 28, 28), dtype=np.float32)
returning = rng.standard_normal((100, 64, 13, 13), dtype=np.float32)
one, its = batch[:1], returning[:1]  # the loops are timed on one image, and taken 100 times
slow = 100 * seconds(window_by_window, x=one, kernel_size=4, stride=2)
slow_back = 100 * seconds(ops.max_unpool2d_loops, values=its, x=one, kernel_size=4, stride=2)
pool, unpool = journal.mine("max_pool2d_overlapping"), journal.mine("max_unpool2d_overlapping")
fast = seconds(pool, x=batch, kernel_size=4, stride=2)
masks_back = seconds(unpool, values=returning, x=batch, kernel_size=4, stride=2)
fast_back = seconds(ops.max_pool2d_backward, grad=returning, x=batch, kernel_size=4, stride=2)
journal.measured("overlapping_epoch", (slow + slow_back) / (fast + fast_back))

print("projected for an epoch of 400 batches, pooling alone:")
for name, there, back in [
    ("window by window", slow, slow_back),
    ("whole arrays, back by masks", fast, masks_back),
    ("whole arrays, back by index", fast, fast_back),
]:
    print(f"    {name:28} there {there * 400 / 60:5.2f} min, back {back * 400 / 60:5.2f} min")
print(f"{(slow + slow_back) / (fast + fast_back):.0f} times faster, on one core and without a graphics card")

# %% [markdown]
# Compare the first line with the 30 minutes of the riddle. Yours may be several times as long: it is the same kind of
# loop, but on another machine and with other parts around it. So it makes the answer likely and proves nothing. The
# overlap itself is cheap. It takes more than three times as many windows, and a plus sign.
#
# Look at the last two lines as well. With 16 places the masks walk through all windows 16 times. The way by index is
# `ops.max_pool2d_backward`, which finds the indices and then adds once. Which is faster depends on the size of
# the windows and on the machine. That is never a law. It is a measurement.

# %% [markdown]
# ## In your own words
#
# The article ends its hunt like this: a GPU is good at simple arithmetic, but bad at scattered writes, so replace the
# assignment with a multiplication. Is that right? Answer in four to six sentences, with numbers that you measured
# above.
#
# 1. Twice as many windows: what does the line `filled[:, winners] = values` cost, and why?
# 2. Which part of the gain is due to the mask itself? Compare indexed fill and mask, on your machine and on the H200's
#    device. What do the host's times tell you?
# 3. How could the author have found out, before any timing, that the line is wrong?

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_the_hunt", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** Half right. Each doubling of the windows made the line about four times as slow here, because `[:,
# winners]` writes every winner's place in every row, n times n numbers, where n were meant; a loop in plain Python
# overtook it and won by the factor that the cell of the four ways prints (N times here). With the pairs named, the
# indexed fill needs n writes and grows in proportion. Between it and the mask the chart shows hardly any difference on
# my CPU. On the H200's device, less work gained by far the most, and the mask gained a few times more (both factors
# stand below the record). But with 16 times the windows the indexed fill hardly takes longer, so that is a fixed price
# of the statement and not one of each scattered write. The author's gain came from doing less. The host's times are
# what it takes to hand the work over. They do not grow with it, and for the indexed fill and the mask they are longer
# than the device's. A test on one small window, by hand, would have shown more numbers coming back than went out; so
# would comparing the sums.
#
# **Rubric** (3 points). One point: n × n writes, seen as about four times the time for twice the windows. One point:
# separates the two gains, less work and fewer operations, by the two factors that the cell of the record prints, from
# device times (host times taken for the GPU's work: half a point), with an own observation for the CPU. ("Scattered
# writes cost a GPU something" is true of arrays beyond its cache, but this record does not show it.) One point: a check
# of values: a small example by hand, the sum, a loop or another implementation to compare with. Half a point off if no
# measured number is named.
# ### END SOLUTION

# %% [markdown]
# ## What you have
#
# The ladder compares rungs of one heading only. Those of this lesson put values back, for all 60,000 images of MNIST,
# and do nothing else. That is one part of a training step; the others' figures below them are of whole epochs.

# %%
journal.ladder()

# %%
journal.guesses()

# %% [markdown]
# In three sentences: Max-pooling keeps the largest pixel of each window, and on the way back a value goes to the pixel
# that won: the first one in a tie, and added to others where windows overlap. A statement without a loop can still do
# n × n work, and then a plain loop beats it; so count the work before you make it cheap. Looping over the places inside
# the window, and leaving all windows to NumPy, makes both ways fast.
#
# ### Stretch: fewer comparisons
#
# **More**, as long as you like.
#
# A window of k x k takes k² comparisons in your loop over places. But the largest of a window is the largest of its
# rows' largest. So first take the largest of k neighbours along each row, then of k neighbours down each column of
# *that*: k + k comparisons. Neighbouring windows share what the rows found. `ops.max_pool2d` does so. From a
# window of 2 to one of 8, k² grows 16 times, and k + k only 4 times. How many times as long does it take?

# %%
by_window = {}
for kernel_size in (2, 4, 8):
    took = seconds(ops.max_pool2d, x=batch[:10], kernel_size=kernel_size, stride=1)
    by_window[f"window {kernel_size}: {kernel_size**2} pixels each"] = took
first, *_, last = by_window.values()
print(f"a window of 8 takes {last / first:.1f} times as long as one of 2")
show.bars(by_window, "s", title="ops.max_pool2d, for 10 images of 64 channels, stride 1")

# %% [markdown]
# Nearer to 4 than to 16: the comparisons along rows and columns set the time. (It is not 4 itself. The first of k
# neighbours is compared with nothing, so the comparisons grow 7 times; and copying the images costs the same for all.)
#
# Write `max_pool2d_rows_first(x, kernel_size, stride)`, compare it with your `max_pool2d_overlapping` for windows of 2,
# 4 and 8, and see where it begins to pay. Then the way back: in which order do rows and columns have to be asked so
# that the first maximum is still the first? `unrolled.ops.maxima` has one answer; read it after you have yours.

# %%
# Your stretch. When max_pool2d_rows_first is written, take away the # of the lines below and run.
#
# for k in (2, 4, 8):
#     settings = {"x": batch[:10], "kernel_size": k, "stride": 1}
#     print("right:", np.array_equal(max_pool2d_rows_first(**settings), ops.max_pool2d(**settings)))
#     for function in (max_pool2d_overlapping, max_pool2d_rows_first, ops.max_pool2d):
#         print(f"window {k} {function.__name__:24}", timing.measure(function, settings))
