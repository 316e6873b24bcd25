# %% [markdown]
# # Convolution
#
# Lesson 02, about 110 minutes. A session of 90 minutes ends after the exercise `conv2d_gemm`; the rest is for home.
#
# **Afterwards you can**
#
# - slide a window over an image, by hand and in code, with stride, padding, channels and bias;
# - name the four axes of a batch of images, and say in which order they lie in memory;
# - unroll all windows into one matrix (`im2col`), and say what that costs;
# - compute a whole convolution as one matrix product, and say where its speed comes from.
#
# **You need** slices and shapes of NumPy arrays, and the matrix product (lesson 01). No exercise here needs one that
# you left out before: where a later one builds on an earlier one, it uses the library's version.
#
# Are you coming back after a restart? Choose *Run All Above* first: later cells use what earlier ones define.

# %%
import numpy as np

from unrolled import check, data, journal, ops, show, timing

check.start("02_convolution")

digits = data.digits().images

# %% [markdown]
# ## A window slides over an image
#
# Put a small grid of numbers, the **kernel**, on the top left corner of an image. Multiply each pixel with the number
# that lies on it, and add up the products: the sum is one number of the output. Move the kernel one pixel to the
# right and do it again. At the end of the row, go back to the left and one pixel down.
#
# Do the first one by hand before you run the cell; it takes nine products. Then move the slider, or press play.

# %%
image = np.array([[1, 1, 2, 0], [0, 2, 1, 3], [2, 0, 1, 2], [3, 2, 0, 1]])
kernel = np.array([[2, 0, 1], [0, 2, 1], [1, 0, 1]])
show.convolution(image, kernel)

# %% [markdown]
# The output is `[[12, 9], [5, 14]]`. (These numbers, and those of the next examples, come from a seminar that
# Fixstars held in July 2022, *Software acceleration and deep learning*.)
#
# A word about the word: in mathematics, a convolution first turns the kernel by 180 degrees, and what we do here is
# called cross-correlation. Deep learning leaves out the turn and says convolution all the same, and so do we. A
# network learns its kernels; with the turn it would learn them turned.
#
# What is it good for? The kernel below counts ink on the right as plus and ink on the left as minus. Where the output is
# orange, ink begins; where it is purple, ink ends. Nobody has to design such kernels: training finds them. What comes out
# is an image again, and is called a **feature map**: it says where the feature is that the kernel looks for.

# %%
ink_begins = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
show.convolution(digits[0], ink_begins, padding=1)

# %% [markdown]
# ## How large is the output?
#
# A window of 3 x 3 has only two places side by side in four pixels, so the output is smaller than the image. Two
# settings change that.
#
# - **Padding** p puts p rows or columns of zeros on *each* of the four sides, so that the window can stand on the
#   edge of the image.
# - **Stride** s moves the window s pixels at a time, to the right and down. Where no whole step is left, it stops.

# %%
show.convolution(image, kernel, stride=2, padding=1)

# %% [markdown]
# ### Exercise: conv2d_output_size
#
# **Core**, about 8 minutes.
#
# How many places does the window have, from top to bottom and from left to right? Sizes are pairs (height, width),
# since not every image is square. A 4 x 4 image and a 3 x 3 kernel give `(2, 2)`, with padding 1 they give `(4, 4)`,
# and with padding 1 and stride 2 they give `(2, 2)` again.
#
# If you are stuck: `check.conv2d_output_size.hint()`, in a cell of your own, gives the idea, then the shapes, then
# nearly the code. Every check has three such hints.


# %% nbgrader={"grade": false, "grade_id": "conv2d_output_size", "locked": false, "schema_version": 3, "solution": true, "task": false}
def conv2d_output_size(size, kernel_size, stride=1, padding=0):
    """Return (OH, OW), how many places the window has along each axis. About 3 lines.

    size and kernel_size are pairs (height, width); stride and padding are numbers for both axes.
    """
    ### BEGIN SOLUTION
    oh = (size[0] + 2 * padding - kernel_size[0]) // stride + 1
    ow = (size[1] + 2 * padding - kernel_size[1]) // stride + 1
    return oh, ow
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_conv2d_output_size", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.conv2d_output_size(conv2d_output_size)

# %% [markdown]
# With an odd kernel k, padding (k - 1) / 2 and stride 1, the output is as large as the image. Most networks use just
# that, so that sizes change only where they are meant to.

# %% [markdown]
# ## Channels, filters, images
#
# A colour image has three **channels**: red, green, blue. The kernel then has three grids as well, one for each
# channel, and all 27 products go into *one* sum. Channels in the middle of a network have no colours, but the rule is
# the same.

# %%
image_3 = np.array(
    [
        [[1, 2, 4, 2], [0, 1, 2, 3], [3, 0, 1, 0], [2, 4, 0, 2]],
        [[4, 0, 3, 1], [0, 1, 0, 3], [3, 0, 2, 0], [1, 3, 0, 1]],
        [[1, 1, 2, 0], [0, 2, 1, 3], [2, 0, 1, 2], [3, 2, 0, 1]],
    ]
)
kernel_3 = np.array(
    [
        [[2, 0, 1], [0, 3, 0], [1, 0, 2]],
        [[0, 1, 3], [0, 1, 2], [1, 0, 0]],
        [[2, 0, 1], [0, 1, 2], [1, 0, 2]],
    ]
)
show.convolution(image_3, kernel_3)

# %% [markdown]
# Step through all four outputs: 39, 37, 16, 46. The seminar's slide prints 39, 33, 15, 44 beside these very arrays.
# Anybody can slip, and a slide cannot be run. Code can, so run it.
#
# A layer has many kernels, and each of them is called a **filter**. Each filter makes one channel of the output. To
# all its outputs it adds a number of its own, the **bias**, once. And we never feed one image alone, but a batch.
# That makes four axes:
#
# | array | shape | axes |
# | --- | --- | --- |
# | `x` | (N, C, H, W) | image, channel, row, column |
# | `weight` | (O, C, KH, KW) | filter, channel, row, column |
# | `bias` | (O,) | filter |
# | `y` | (N, O, OH, OW) | image, filter, row, column |
#
# NCHW is also the order in memory. The last axis changes fastest: the pixels of a row are neighbours, rows follow
# each other, then channels, then images.

# %%
x = np.zeros((8, 3, 28, 28), np.float32)
print("shape  ", x.shape, "  image, channel, row, column")
print("strides", x.strides, "  bytes from one to the next along each axis; a float32 takes 4")

# %% [markdown]
# (Another order in use is NHWC, where the channels of a pixel are neighbours. Same numbers, another walk through
# memory. When you load images from elsewhere, look at the shape first.)
#
# ### Exercise: conv2d_loops
#
# **Core**, about 25 minutes.
#
# Write down the definition, in plain loops, without a thought for speed. There are seven axes to walk: image, filter,
# row and column of the output, and for each of them channel, row i and column j of the window. Two things help:
#
# - `np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))` puts zeros around every image, in a new
#   array.
# - `for image, filter_, row, column in np.ndindex(y.shape):` visits all outputs of y: four loops in one line. (The
#   underscore is there because Python has a `filter` of its own.)
#
# float32 goes in, float32 comes out. NumPy makes float64 unless you say `dtype=x.dtype`.


# %% nbgrader={"grade": false, "grade_id": "conv2d_loops", "locked": false, "schema_version": 3, "solution": true, "task": false}
def conv2d_loops(x, weight, bias=None, stride=1, padding=0):
    """Convolve x (N, C, H, W) with weight (O, C, KH, KW): (N, O, OH, OW) in x's dtype. About 13 lines.

    bias is (O,) or None; stride and padding are whole numbers.
    `ops.conv2d_output_size(size, kernel_size, stride, padding)` gives (OH, OW); sizes are pairs.
    """
    ### BEGIN SOLUTION
    o, c, kh, kw = weight.shape
    oh, ow = ops.conv2d_output_size(x.shape[2:], (kh, kw), stride, padding)
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    y = np.zeros((len(x), o, oh, ow), dtype=x.dtype)
    for image, filter_, row, column in np.ndindex(y.shape):
        total = 0 if bias is None else bias[filter_]
        for channel in range(c):
            for i in range(kh):
                for j in range(kw):
                    pixel = x[image, channel, row * stride + i, column * stride + j]
                    total += pixel * weight[filter_, channel, i, j]
        y[image, filter_, row, column] = total
    return y
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_conv2d_loops", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.conv2d_loops(conv2d_loops)

# %% [markdown]
# Once it is right, the check also measures your function on a layer that stays with us for the rest of the course: 10
# filters of 3 x 3, padding 1, on digits of 28 x 28, in batches of 8. It comes from the blog article of lesson 00,
# whose network took 30 minutes an epoch. Your time for MNIST's 60,000 images becomes a rung of your ladder.
#
# From now on your own functions go along. `journal.mine("conv2d_loops")` is yours if its check passed, and the library's
# if not; it says which. Cells that compare speeds use it, here and in later lessons, so that what they print is about
# your code.

# %% [markdown]
# ## Give NumPy more to do at once
#
# How much work is that layer? Each digit has 10 x 28 x 28 outputs of 9 products each: 70,560 multiplications. Lesson 01
# measured how many a core does in a second, and these take it no time worth naming. The loops spend theirs on something
# else: for each product they find an index, take a number out of an array and wrap it in an object.
#
# So stop at each output *position* only, and let NumPy do there all images and all filters at once. The windows of
# all images at that place, flattened, are a matrix (N, C·KH·KW). The filters, flattened, are another, (O, C·KH·KW).
# One small product gives (N, O) outputs:


# %%
def conv2d_positions(x, weight, bias=None, stride=1, padding=0):
    """A loop over output positions, with one small matrix product at each."""
    (n, c), (o, _, kh, kw) = x.shape[:2], weight.shape
    oh, ow = ops.conv2d_output_size(x.shape[2:], (kh, kw), stride, padding)
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    filters = weight.reshape(o, c * kh * kw).T
    y = np.zeros((n, o, oh, ow), dtype=x.dtype)
    for row in range(oh):
        for column in range(ow):
            top, left = row * stride, column * stride
            windows = x[:, :, top : top + kh, left : left + kw].reshape(n, c * kh * kw)
            y[:, :, row, column] = windows @ filters
    return y if bias is None else y + bias[:, None, None]


# %% [markdown]
# It still makes 784 trips through the interpreter for a digit of 28 x 28, but the same 784 for 8 digits and 10
# filters. How many times faster than the plain loops will it be?

# %%
journal.predict("conv2d_positions", ...)  # your guess: how many times faster?

# %%
rng = np.random.default_rng(0)
layer = {
    "x": digits[:8],
    "weight": rng.standard_normal((10, 1, 3, 3), dtype=np.float32),
    "bias": rng.standard_normal(10, dtype=np.float32),
    "padding": 1,
}
plain_loops = journal.mine("conv2d_loops")
digit = layer | {"x": digits[:1]}
assert np.allclose(conv2d_positions(**digit), plain_loops(**digit), atol=1e-4)

loops = 8 * timing.measure(plain_loops, digit).seconds  # in plain loops each digit takes the same
positions = timing.measure(conv2d_positions, layer).seconds
journal.measured("conv2d_positions", loops / positions)
epoch = positions / 8 * 60_000
journal.rung("one product a position", "convolution forward only, x 60,000 images", epoch, batch=8)
for name, seconds in {"plain loops": loops, "positions": positions}.items():
    print(f"{name:12} {seconds / 8 * 1e3:7.2f} ms a digit, {seconds / 8 * 60_000:7,.0f} s for 60,000")
print(f"{loops / positions:.0f} times faster")

# %% [markdown]
# ## Every window becomes a column
#
# The rest of the time is in those 784 trips: each of them multiplies matrices so small that the call costs more than
# the work. <!-- why: 784 trips --> We want a single call. For that, all windows must lie in one matrix.
#
# That matrix is what `im2col` (*image to column*) makes. Each window, flattened, becomes a column. The rows then run
# over (C, KH, KW), the places inside the window; the columns run over (N, OH, OW), the places of the window. We call it
# the **columns**; others call it the patch matrix, since a window cuts a patch out of the image. Move the slider.

# %%
show.im2col(image, kernel_size=2)

# %% [markdown]
# And a real digit. A row of this matrix is the whole image again, seen through one place inside the window. So the bands
# of the picture look alike; each is shifted by a pixel or by a row of pixels.

# %%
show.im2col(digits[0], kernel_size=3, padding=1)

# %% [markdown]
# The price is memory. Windows overlap, so a pixel stands in as many columns as there are windows that see it: up to
# KH·KW.

# %%
columns = ops.im2col(digits[:32], kernel_size=3, padding=1)
for name, array in {"32 digits": digits[:32], "their columns": columns}.items():
    print(f"{name:14} {array.shape!s:16} {array.nbytes:9,} bytes")
print(f"{columns.nbytes / digits[:32].nbytes:.0f} times as many")

# %% [markdown]
# ### Exercise: im2col
#
# **Core**, about 20 minutes.
#
# Build the matrix. Only the order matters here, not the speed, so loops over the windows are fine.
# `ops.conv2d_output_size(size, kernel_size, stride, padding)` says how many there are. The first case of the check is
# the seminar's. Its matrix happens to be symmetric: it looks the same with rows and columns exchanged. That is why it is
# not the only case.


# %% nbgrader={"grade": false, "grade_id": "im2col", "locked": false, "schema_version": 3, "solution": true, "task": false}
def im2col(x, kernel_size, stride=1, padding=0):
    """Return every window of x (N, C, H, W) as a column: (C*KH*KW, N*OH*OW), x's dtype. About 10 lines.

    kernel_size is a pair (KH, KW). A window is flattened channel by channel, row by row.
    The columns come image by image, and within an image row by row.
    """
    ### BEGIN SOLUTION
    # body of unrolled.checks.exercises.l02_convolution.windows.im2col_loops
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_im2col", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.im2col(im2col)

# %% [markdown]
# A loop over windows makes one trip through the interpreter for each column. Now turn it round. The picture of the digit
# says how: each *row* of the matrix is the whole image, shifted. For a kernel of 3 x 3 these are nine trips, however
# many digits there are. How many times faster is that, for 4 images of 56 x 56?

# %%
journal.predict("im2col_fast", ...)  # your guess

# %% [markdown]
# ### Exercise: im2col_fast
#
# **More**, about 12 minutes.
#
# Build the same matrix with a loop over the places (i, j) inside the window, and none over images, channels or windows.
# A slice with steps takes the pixel that all windows have at one place: `x[:, :, i : i + OH * stride : stride]` takes
# the rows, and the columns go alike. It helps to give the matrix six axes, (C, KH, KW, N, OH, OW), and to reshape it at
# the end. The check asks for at least {T} times the speed of a loop over windows. You may use {allows}.


# %% nbgrader={"grade": false, "grade_id": "im2col_fast", "locked": false, "schema_version": 3, "solution": true, "task": false}
def im2col_fast(x, kernel_size, stride=1, padding=0):
    """Return every window of x (N, C, H, W) as a column: (C*KH*KW, N*OH*OW), x's dtype. About 9 lines.

    kernel_size is a pair (KH, KW). Rows and columns are in the order of `im2col`.
    """
    ### BEGIN SOLUTION
    (n, c), (kh, kw) = x.shape[:2], kernel_size
    oh, ow = ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding)
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    columns = np.empty((c, kh, kw, n, oh, ow), dtype=x.dtype)
    for i in range(kh):
        for j in range(kw):
            shifted = x[:, :, i : i + oh * stride : stride, j : j + ow * stride : stride]
            columns[:, i, j] = shifted.swapaxes(0, 1)
    return columns.reshape(c * kh * kw, n * oh * ow)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_im2col_fast", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.im2col_fast(im2col_fast)

# %% [markdown]
# Both loops copy the same numbers to the same places. The order of the loops decides how many numbers each trip moves:
# 9 at a time, or all pixels of all images. The library's `ops.im2col` makes nine trips, too.

# %% [markdown]
# ## Convolution is one matrix product
#
# Flatten each filter into a row, and the whole convolution is one product: (O, C·KH·KW) times (C·KH·KW, N·OH·OW). The
# loops are not gone. They moved into BLAS, which knows the caches better than we do.
#
# The loop over positions is already decent. How many times faster than that is one large product, for 100 images of
# 32 x 32 and 2 filters of 2 x 2?

# %%
journal.predict("conv2d_gemm", ...)  # your guess

# %% [markdown]
# ### Exercise: conv2d_gemm
#
# **Core**, about 15 minutes.
#
# Convolve with `ops.im2col` and a single `@`. Note the order of the axes: the product has the filters first, and the
# result wants the images first. Three tools: `a.reshape(o, -1)` lets NumPy work out the last size, `a.swapaxes(0, 1)`
# exchanges two axes, and `bias[:, None]` turns (O,) into (O, 1), which is added to every column. The check asks for at
# least {T} times the speed of the loop over positions, which columns and a product for each image do not reach. You may
# use {allows}.


# %% nbgrader={"grade": false, "grade_id": "conv2d_gemm", "locked": false, "schema_version": 3, "solution": true, "task": false}
def conv2d_gemm(x, weight, bias=None, stride=1, padding=0):
    """Convolve x (N, C, H, W) with weight (O, C, KH, KW); return (N, O, OH, OW). About 7 lines.

    Use `ops.im2col(x, kernel_size, stride, padding)` and a single `@`.
    """
    ### BEGIN SOLUTION
    n, (o, _, kh, kw) = len(x), weight.shape
    oh, ow = ops.conv2d_output_size(x.shape[2:], (kh, kw), stride, padding)
    columns = ops.im2col(x, (kh, kw), stride, padding)  # (C*KH*KW, N*OH*OW)
    y = weight.reshape(o, -1) @ columns
    if bias is not None:
        y += bias[:, None]
    return y.reshape(o, n, oh, ow).swapaxes(0, 1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_conv2d_gemm", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.conv2d_gemm(conv2d_gemm)

# %% [markdown]
# None of this is done by more cores: a check times both sides on one. One call replaced 961 trips through the
# interpreter, and BLAS has enough work to keep its tiles in the cache and its wide registers full.
#
# Now the whole way, from plain loops to one product, on the layer from above: the two functions whose rungs stand on your
# ladder, if both are yours.

# %%
one_product = journal.mine("conv2d_gemm")
product = timing.measure(one_product, layer).seconds
print(f"9 times the memory buys {loops / product:,.0f} times the speed of plain loops,")
print(f"and {positions / product:.0f} times that of the loop over positions, on this machine")

# %% [markdown]
# Be fair to the loops, though. Much of the large factor is not the loops but Python: in a compiled language the same
# seven loops would run far faster. The smaller factor, between two programs that both let compiled code multiply, is
# the better measure of the idea. (It is not your check's ratio: that was measured on more images, which are larger, and
# with a smaller kernel.)

# %% [markdown]
# ## In your own words
#
# Your `conv2d_gemm` and the loop over positions do exactly the same multiplications, on one core each. Explain the
# ratio that your check measured, in four to six sentences. (If you have none yet, take the two ratios from the cell
# above.)
#
# 1. What does the faster one save?
# 2. What does it pay, and how much for a kernel of 5 x 5 with stride 1?
# 3. For which inputs would you hesitate to pay it?

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_gemm", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** The check of `conv2d_gemm` printed my ratio: N times faster. The loop over positions goes through the interpreter 961 times,
# once for each of the 31 x 31 positions in a 32 x 32 image, and each time it cuts out windows and calls a product so small that the
# fixed cost of the calls outweighs the arithmetic. One product makes a handful of calls, and BLAS can work through a
# large matrix in tiles that stay in the cache. It pays in memory: each pixel is copied into up to KH·KW columns, 9
# times the input for 3 x 3 and about 25 times for 5 x 5, and the copying takes time as well. I would hesitate for large
# kernels, large images or large batches, where the columns no longer fit into the cache or even into memory, and on a
# small device.
#
# **Rubric** (3 points). One point: far fewer calls or trips through the interpreter, each with more work (tiles or
# caches alone: half a point). One point: memory, and about 25 times for 5 x 5. One point: at least one kind of input
# for which the columns become too large, with the reason. Half a point off if no measured number is named (that of the
# check, or one of the two ratios of the cell above).
# ### END SOLUTION

# %% [markdown]
# ## What you have
#
# Compare rungs of one heading only. Yours here are a single layer, forward. Those of the article are whole epochs of
# training, forward and backward through all layers, and they change the hardware from one to the next.

# %%
journal.ladder()

# %%
journal.guesses()

# %% [markdown]
# In three sentences: A convolution slides a window over an image and adds up products, and size, padding and stride
# say where the window may stand. `im2col` writes every window into a column, and then one matrix product computes all
# outputs: the same multiplications, but hardly a trip through Python. The price is memory, up to KH·KW times the
# input, and the last part is about getting some of it back.
#
# ### Stretch: columns that stay in the cache
#
# **More**, as long as you like.
#
# A larger batch should be faster per image: more work for each call. Measure columns and product together, from 1
# image at a time to 256:

# %%
filters = layer["weight"].reshape(10, 9)
unroll = journal.mine("im2col_fast")


def columns_and_product(x):
    """The two heavy steps: ten filters of 3 x 3, padding 1."""
    return filters @ unroll(x, (3, 3), padding=1)


per_image = {}
for n in (1, 2, 4, 8, 16, 32, 64, 128, 256):
    seconds = timing.measure(columns_and_product, {"x": digits[:n]}, budget=0.2).seconds
    per_image[f"{n} at a time, columns {n * 784 * 9 * 4 / 1e6:.2f} MB"] = seconds / n
show.bars(per_image, "s", title="time for one digit")

# %% [markdown]
# At first the bars shrink, as expected: more images share the fixed cost of the calls. Then, on many machines, they
# grow again, and two reasons are likely. Large arrays come fresh from the operating system in each call, and it hands
# them over page by page. And what no longer fits into the cache goes out to memory and comes back, only to be
# multiplied once. The chart says how large the columns are.
#
# So the library never builds all the columns. `ops.conv2d` takes a few images at a time, writes their columns into a
# small piece of memory that stays in the cache, multiplies, and goes on with the same piece. The batch can be as
# large as you like, and the price of memory is paid for one block only.
#
# Write that yourself: `conv2d_blocks`, which calls your `conv2d_gemm` for 8 images at a time. Look at the chart before
# you measure. If its last bars are taller than the one for 8, blocks can win the difference back. If they are not,
# blocks save memory and add calls, and may well be slower. Which of the two is your machine? If you like, go one step
# further: write an `im2col_fast` that fills a given array, and use one array of columns for all blocks. The columns of
# 8 digits are small, so this saves little: measure how little. `ops.blocks??` in a cell shows how the library does it.

# %%
# Your stretch. When conv2d_blocks is written, take away the # of the lines below and run.
#
# batch = {"x": digits[:256], "weight": layer["weight"], "bias": layer["bias"], "padding": 1}
# print("right:", np.allclose(conv2d_blocks(**batch), ops.conv2d(**batch), atol=1e-4))
# for function in (conv2d_gemm, conv2d_blocks, ops.conv2d):
#     print(f"{function.__name__:15}", timing.measure(function, batch))
