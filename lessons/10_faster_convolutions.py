# %% [markdown]
# # Fewer multiplications
#
# Lesson 10, about 95 minutes. After the exercise `fft_conv2d` is a good place for a break.
#
# **Afterwards you can**
#
# - count the multiplications of a convolution, for three ways to compute it;
# - convolve through frequencies, and by Winograd's transforms;
# - say where fewer multiplications are less time, and where they are not;
# - choose a method for a shape by what was measured.
#
# **You need** convolution as one matrix product (lesson 02), and batches of matrices. No exercise needs an earlier one.
#
# Are you coming back after a restart? Choose *Run All Above* first: later cells use what earlier ones define.

# %%
from functools import partial

import numpy as np

from unrolled import check, data, device, journal, ops, records, show, timing

check.start("10_faster_convolutions")

rng = np.random.default_rng(0)
digits = data.digits()


def drawn(n, c, o, size, kernel):
    """Return random images x (N, C, size, size), filters (O, C, kernel, kernel) and a bias (O,), by name."""
    shapes = {"x": (n, c, size, size), "weight": (o, c, kernel, kernel), "bias": (o,)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


# %% [markdown]
# ## What a convolution costs
#
# So far each lesson did the same multiplications, in a better order. Now the multiplications themselves become fewer.
# Two ideas do that, and both are older than the networks that use them.
#
# The direct way multiplies each weight with each pixel that it meets. For one channel and one filter that is kernel²
# multiplications for each result. With n images, c channels and o filters it is n · c · o times as many.
#
# ## Idea 1: results that share
#
# Two neighbouring results of a filter with three weights read four pixels:
#
# - y0 = d0 · w0 + d1 · w1 + d2 · w2
# - y1 = d1 · w0 + d2 · w1 + d3 · w2
#
# Six multiplications. Shmuel Winograd found in 1980 how few are enough: four. First sums of pixels and sums of weights
# are made, then four products, then sums of these. Step through it, and check one of the results by hand.

# %%
show.winograd_1d(pixels=[1, 2, 4, 3], weights=[2, 1, -1])

# %% [markdown]
# This is **Winograd's minimal filtering**, here F(2, 3): two results, three weights. The products are
#
# - m0 = (d0 - d2) · w0
# - m1 = (d1 + d2) · (w0 + w1 + w2) / 2
# - m2 = (d2 - d1) · (w0 - w1 + w2) / 2
# - m3 = (d1 - d3) · w2
#
# The sums of weights are made once for all pixels of all images, so they hardly count.
#
# In two dimensions the trick is applied to rows and then to columns. A tile of 2 x 2 results then takes 4 · 4 = 16
# multiplications; the direct way takes 4 · 9 = 36. It reads 4 x 4 pixels, so tiles overlap. A tile of 4 x 4 results
# takes 6 · 6 = 36 in place of 16 · 9 = 144. Andrew Lavin and Scott Gray brought both to networks in 2015, and the 3 x 3
# kernel is what most networks use.
#
# ## Idea 2: frequencies
#
# A sequence can be written as a sum of waves. The **fast Fourier transform** (FFT) finds how much of each wave is in
# it, with few operations. And convolving two sequences is multiplying their waves, one frequency at a time. Each
# frequency costs one multiplication, however long the kernel is.

# %%
signal, kernel = np.array([1, 2, 4, 3, 0, 5]), np.array([2, 1, -1])
length = len(signal) + len(kernel) - 1
waves = np.fft.rfft(signal, length) * np.fft.rfft(kernel, length)
print("by sums:        ", np.convolve(signal, kernel))
print("by frequencies: ", np.fft.irfft(waves, length).round(6))
short = np.fft.rfft(signal) * np.fft.rfft(kernel, len(signal))
print("too short:      ", np.fft.irfft(short, len(signal)).round(6))

# %% [markdown]
# Mind the last line. The transform sees its sequence as a circle: what leaves at one end comes in at the other. With
# size + kernel - 1 numbers there is room for everything that leaves.
#
# Frequencies are complex numbers, and a complex multiplication takes 4 real ones, as it is written. (Gauss knew how to
# do with three, and more sums.) For real numbers only half of the frequencies are needed, since the others follow from
# them: `rfft2` gives an image of L x L pixels L · (L // 2 + 1) of them.
#
# ### Exercise: count_multiplications
#
# **Core**, about 8 minutes.
#
# Count the multiplications of pixels (or sums or waves of them) with weights. The transforms are left out: that is how
# these methods are usually advertised. A shape is (n, c, o, size, kernel): n images, c channels, o filters, size x size
# *results*, kernel x kernel weights. The methods:
#
# - `"direct"`: kernel² for each result;
# - `"winograd 2x2"` and `"winograd 4x4"`: 16 and 36 for each tile. A last tile that reaches beyond the results is
#   computed whole;
# - `"fft"`: 4 for each frequency of images with size + kernel - 1 rows and columns. (Padding keeps the size here, so an
#   image is as large as its results.)


# %% nbgrader={"grade": false, "grade_id": "count_multiplications", "locked": false, "schema_version": 3, "solution": true, "task": false}
def count_multiplications(method, shape):
    """Return the number of real multiplications, an int, for shape (n, c, o, size, kernel). About 9 lines."""
    n, c, o, size, kernel = shape
    ### BEGIN SOLUTION
    if method == "direct":
        pair = size**2 * kernel**2
    elif method == "fft":
        length = size + kernel - 1
        pair = 4 * length * (length // 2 + 1)
    else:
        tile = 2 if method == "winograd 2x2" else 4
        pair = (-(-size // tile)) ** 2 * (tile + 2) ** 2
    return n * c * o * pair
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_count_multiplications", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.count_multiplications(count_multiplications)

# %%
counted = journal.mine("count_multiplications")
SMALL, LARGE = (8, 64, 64, 28, 3), (1, 1, 1, 114, 15)
for shape, methods in ((SMALL, ("direct", "winograd 2x2", "winograd 4x4", "fft")), (LARGE, ("direct", "fft"))):
    print("images {}, channels {}, filters {}, results {} wide, kernel {}".format(*shape))
    for method in methods:
        number = counted(method, shape)
        fewer = f"{counted('direct', shape) / number:8.2f} times fewer" if method != "direct" else ""
        print(f"    {method:14}{number:>15,}{fewer}")

# %% [markdown]
# For 3 x 3 kernels Winograd promises 2.25 or 4 times fewer multiplications, and frequencies far more for a 15 x 15
# kernel. What becomes of the promises?
#
# ## Through frequencies
#
# Four things make a convolution of it.
#
# 1. The product of waves is the convolution of mathematics, which turns the kernel round. What deep learning calls
#    convolution does not. So flip the weight first: `weight[:, :, ::-1, ::-1]`.
# 2. Transform at size + kernel - 1, so that nothing comes in at the other end. (Without padding the image's own size
#    would do: only results that nobody asked for are spoiled.)
# 3. Sum over channels *before* the way back. For each frequency that is a matrix product, (N, C) with (C, O).
# 4. Back come more results than asked: those of windows that reach over the edge, too. The first that is asked lies at
#    row and column kernel - 1 - padding.
#
# ### Exercise: fft_conv2d
#
# **Core**, about 15 minutes.
#
# Write it. `xp.fft.rfft2(x, lengths)` transforms the last two axes and adds zeros up to the two lengths;
# `xp.fft.irfft2(waves, lengths)` is the way back. Padding is less than the kernel. The check wants the numbers of the
# direct way, counts on the simulated GPU that all operations, transforms included, are at most half of the direct
# way's, and asks for {T} times the speed of a loop over output positions.


# %% nbgrader={"grade": false, "grade_id": "fft_conv2d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fft_conv2d(x, weight, bias, padding=0):
    """Return (N, O, OH, OW) for x (N, C, H, W), weight (O, C, KH, KW) and bias (O,). About 8 lines."""
    xp = device.array_module(x)
    ### BEGIN SOLUTION
    (kh, kw), (h, w) = weight.shape[2:], x.shape[2:]
    lengths = h + kh - 1, w + kw - 1
    pixels = xp.fft.rfft2(x, lengths).transpose(2, 3, 0, 1)
    weights = xp.fft.rfft2(weight[:, :, ::-1, ::-1], lengths).transpose(2, 3, 1, 0)
    whole = xp.fft.irfft2((pixels @ weights).transpose(2, 3, 0, 1), lengths)
    top, left = kh - 1 - padding, kw - 1 - padding
    oh, ow = h + 2 * padding - kh + 1, w + 2 * padding - kw + 1
    return whole[:, :, top : top + oh, left : left + ow] + bias[:, None, None]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_fft_conv2d", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.fft_conv2d(fft_conv2d)

# %% [markdown]
# A loop over positions is an easy opponent. Here is the real one: `ops.conv2d`, one matrix product, as you know it from
# lesson 02 (blocked, so that it stays in the cache). The ways take turns, and each shows how many times as fast as the
# first it was: the middle of several turns, and between which factors half of them lie.

# %%
fast = journal.mine("fft_conv2d")


def in_turns(title, ways, turns=7, budget=0.03, **inputs):
    """Print each way's ms, and how many times as fast as the first it is. Return both, by way."""
    took = [[timing.measure(way, inputs, budget=budget).seconds * 1e3 for way in ways.values()] for _ in range(turns)]
    ms, factors = np.median(took, axis=0), np.quantile(np.array(took)[:, :1] / took, (0.25, 0.5, 0.75), axis=0)
    for name, time, (low, middle, high) in zip(ways, ms, factors.T, strict=True):
        beside = f", {middle:5.2f} times as fast ({low:.2f} to {high:.2f})" if name != next(iter(ways)) else ""
        if title:
            print(f"{title:14}{name:20}{time:8.2f} ms{beside}")
    return dict(zip(ways, zip(ms, factors[1], strict=True), strict=True))


for kernel in (3, 7, 15, 31):
    in_turns(f"{kernel} x {kernel}", {"one product": ops.conv2d, "frequencies": fast}, **drawn(2, 3, 8, 98, kernel))

# %% [markdown]
# The time of the frequencies depends little on the kernel; the time of the product grows with its area. Somewhere the
# lines cross. Transforms are not free, and for a small kernel they cost more than they save. <!-- why: transforms -->
# And each of the C · O kernels is transformed, too, with as many numbers as the image. With many channels and filters,
# and few images, that is most of the work. <!-- why: transforms of kernels -->
#
# ### Lengths that an FFT likes
#
# An FFT is fast since it splits a length into its factors, and works with these: 128 is 2 to the power of 7. 127 is
# prime, and 142 is 2 · 71. <!-- why: small factors --> More zeros at the end change no result that is asked. So take
# the next length that has no factor above 7; `ops.fft.fast_length` finds it. Does your `fft_conv2d` do so?

# %%
for length in (127, 142, 254):
    lengths = length, ops.fft.fast_length(length)
    ways = {str(n): lambda x, n=n: np.fft.irfft2(np.fft.rfft2(x, (n, n)), (n, n)) for n in lengths}
    in_turns("here", ways, x=rng.standard_normal((64, length, length), dtype=np.float32))
    row = records.convolutions().row("transform, {} beside {}".format(*lengths))
    print(f"recorded on a GPU: {row['ratio']:.2f} times as fast")

# %% [markdown]
# ## By Winograd's transforms
#
# Three small matrices hold the sums of F(2, 3): `B_T` for pixels, `G` for weights, `A_T` for results. Their rows are
# the lines of the first picture. From the left a matrix mixes rows, and its transpose from the right mixes columns. So
# a tile d of 4 x 4 pixels becomes B_T d B, a kernel g becomes G g Gᵀ, and what comes out of the product of the two,
# value by value, becomes a tile of results: A_T m A.

# %%
B_T = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], np.float32)
G = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], np.float32)
A_T = np.array([[1, 1, 1, 0], [0, 1, -1, -1]], np.float32)

# %% [markdown]
# ### Exercise: winograd_transforms
#
# **Core**, about 6 minutes.
#
# Write the three transforms, for any number of tiles, kernels or products at once. `@` works on the last two axes and
# lets the others come along. The check names the one that is wrong.


# %% nbgrader={"grade": false, "grade_id": "winograd_transforms", "locked": false, "schema_version": 3, "solution": true, "task": false}
def transformed_pixels(tiles):
    """Return tiles (..., 4, 4) of pixels, transformed: (..., 4, 4). About 1 line."""
    ### BEGIN SOLUTION
    return B_T @ tiles @ B_T.T
    ### END SOLUTION


def transformed_weights(weight):
    """Return kernels (..., 3, 3), transformed: (..., 4, 4). About 1 line."""
    ### BEGIN SOLUTION
    return G @ weight @ G.T
    ### END SOLUTION


def results_of(products):
    """Return the tiles of results, (..., 2, 2), of products (..., 4, 4). About 1 line."""
    ### BEGIN SOLUTION
    return A_T @ products @ A_T.T
    ### END SOLUTION


def winograd_transforms(tiles, weight, products):
    """Return all three."""
    return transformed_pixels(tiles), transformed_weights(weight), results_of(products)


# %% nbgrader={"grade": true, "grade_id": "check_winograd_transforms", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.winograd_transforms(winograd_transforms)

# %%
tile, one_kernel = digits.images[0, 0, 8:12, 8:12], rng.standard_normal((3, 3)).astype(np.float32)
pixels, weights, _ = journal.mine("winograd_transforms")(tile, one_kernel, np.zeros((4, 4), np.float32))
*_, results = journal.mine("winograd_transforms")(tile, one_kernel, pixels * weights)  # 16 multiplications
print(results)
print(ops.conv2d(tile[None, None], one_kernel[None, None])[0, 0])

# %% [markdown]
# One channel, one filter: the 16 products are made value by value. With many of both, the sum over channels comes in
# between, and it can be made before the way back, as with frequencies. Then each of the 16 places of a tile is a matrix
# product of its own: (O, C) with (C, number of tiles). Sixteen products, each small, and all together 2.25 times fewer
# multiplications than the one large product of lesson 02. How many times faster is it, for 8 images with 64 channels
# and 64 filters?

# %%
journal.predict("winograd_conv2d", ...)  # your guess; below 1 is slower

# %% [markdown]
# `cut` is given. It cuts images into tiles that overlap by two rows and two columns.


# %%
def cut(x, padding):
    """Return tiles (N, C, TH, TW, 4, 4) of x (N, C, H, W), two pixels apart; zeros beyond the edges."""
    xp = device.array_module(x)
    around = [(padding, padding + size % 2) for size in x.shape[2:]]
    padded = xp.pad(x, ((0, 0), (0, 0), *around))
    return xp.lib.stride_tricks.sliding_window_view(padded, (4, 4), axis=(2, 3))[:, :, ::2, ::2]


# %% [markdown]
# ### Exercise: winograd_conv2d
#
# **Core**, about 20 minutes.
#
# On a GPU the three matrices have to be there, too, which `xp.asarray` does. The check compares numbers, and counts
# operations on the simulated GPU: at most the direct way's / 2.25, and 15 % of the direct way's on top for the
# transforms. Time is not asked.


# %% nbgrader={"grade": false, "grade_id": "winograd_conv2d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def winograd_conv2d(x, weight, bias, padding=1):
    """Return (N, O, OH, OW) for x (N, C, H, W), weight (O, C, 3, 3) and bias (O,). About 7 more lines."""
    xp = device.array_module(x)
    b, g, a = xp.asarray(B_T), xp.asarray(G), xp.asarray(A_T)
    tiles = cut(x, padding)
    (n, c, th, tw), o = tiles.shape[:4], len(weight)
    oh, ow = x.shape[2] + 2 * padding - 2, x.shape[3] + 2 * padding - 2
    ### BEGIN SOLUTION
    pixels = (b @ tiles @ b.T).transpose(4, 5, 1, 0, 2, 3).reshape(16, c, n * th * tw)
    weights = (g @ weight @ g.T).transpose(2, 3, 0, 1).reshape(16, o, c)
    products = (weights @ pixels).reshape(4, 4, o, n, th, tw).transpose(3, 2, 4, 5, 0, 1)
    results = a @ products @ a.T
    y = results.transpose(0, 1, 2, 4, 3, 5).reshape(n, o, 2 * th, 2 * tw)
    return y[:, :, :oh, :ow] + bias[:, None, None]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_winograd_conv2d", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.winograd_conv2d(winograd_conv2d)

# %%
WHAT = "convolutions with 64 channels and 64 filters, 3 x 3, on 28 x 28"
filtered = journal.mine("winograd_conv2d")
arrays = drawn(8, 64, 64, 28, 3)
ways = {"one product": ops.conv2d, "frequencies": ops.fft_conv2d, "yours, 2x2 tiles": filtered}
ways |= {"library, 2x2 tiles": ops.winograd_conv2d, "library, 4x4 tiles": partial(ops.winograd_conv2d, tile=4)}
took = in_turns("64 channels", ways, **arrays, padding=1)
journal.measured("winograd_conv2d", took["yours, 2x2 tiles"][1])
journal.rung("convolution as one product", WHAT, took["one product"][0] / 8e3 * 60_000, batch=8)
journal.rung("by Winograd, 2x2", WHAT, took["yours, 2x2 tiles"][0] / 8e3 * 60_000, batch=8, made_of=(filtered,))

# %% [markdown]
# Fewer multiplications is not less time: written as the text says it, this takes longer than one product, and most
# likely several times as long. Let us take the parts of that way one by one, written with 16 matrix products. (If yours
# takes much longer than their sum, then its sum over channels is no matrix product.)

# %%
x, weight, bias = arrays.values()
tiles = cut(x, 1)
pixels = np.ascontiguousarray((B_T @ tiles @ B_T.T).transpose(4, 5, 1, 0, 2, 3)).reshape(16, 64, -1)
weights = np.ascontiguousarray((G @ weight @ G.T).transpose(2, 3, 0, 1)).reshape(16, 64, 64)
products = weights @ pixels
flat, columns = weight.reshape(64, -1), rng.standard_normal((64 * 9, 8 * 28 * 28)).astype(np.float32)
parts = {
    "transform pixels": (lambda: (B_T @ tiles @ B_T.T).transpose(4, 5, 1, 0, 2, 3).reshape(16, 64, -1)),
    "transform weights": (lambda: G @ weight @ G.T),
    "the 16 products": (lambda: weights @ pixels),
    "(the one product alone)": (lambda: flat @ columns),
    "transform back": (lambda: A_T @ products.reshape(4, 4, -1).transpose(2, 0, 1) @ A_T.T),
}
for name, function in parts.items():
    print(f"{name:26}{timing.measure(function, {}).seconds * 1e3:8.2f} ms")

# %% [markdown]
# The sixteen products are a small part of it, and they about keep the promise: compare them with *the one product
# alone*. What takes the time is everything around them. Each pixel lies in four tiles, so four times as many numbers
# are read, mixed by many tiny products of 4 x 4, and written in another order. None of that is a multiplication with a
# weight, so nobody counts it. <!-- why: around the products -->
#
# The library does better with the same multiplications: it transforms all tiles in one product, and keeps what belongs
# together side by side. (What each of these makes was not looked into.) <!-- why: side by side --> Whether that beats
# one product depends on the channels. The transforms of a tile cost the same for one filter and for a thousand; only
# the products grow with both. <!-- why: channels --> So a layer with few channels never repays them:

# %%
two = {"one product": ops.conv2d, "library, 2x2 tiles": ops.winograd_conv2d}
for channels in (4, 16, 64, 128, 256):
    in_turns(f"{channels} channels", two, turns=5, **drawn(4, channels, channels, 28, 3), padding=1)

# %% [markdown]
# ## What else it costs: digits
#
# Sums of pixels are larger than pixels, and differences of large numbers lose digits. The larger the tile, the larger
# the numbers in its matrices. Here is the largest error of each method against the same convolution in float64.

# %%
exact = ops.conv2d(*(array.astype(np.float64) for array in arrays.values()), padding=1)


def error(function, **options):
    """Return the largest error, in millionths of the largest result."""
    return float(np.abs(function(**arrays, padding=1, **options) - exact).max() / np.abs(exact).max()) * 1e6


errors = {
    "one product": error(ops.conv2d),
    "frequencies": error(ops.fft_conv2d),
    "Winograd, 2x2 tiles": error(ops.winograd_conv2d),
    "Winograd, 4x4 tiles": error(ops.winograd_conv2d, tile=4),
}
show.bars(errors, "ppm", log=True, title="Largest error, in parts per million of the largest result")

# %% [markdown]
# Larger tiles save more multiplications, and lose more digits. (Frequencies and small tiles lose about what one product
# loses.) For float32 and networks that is no harm yet. With float16, the next lesson's numbers, it is.
#
# **Approximate algorithms** ask for fewer digits: they compute something near a convolution, with filters that are
# products of a column and a row, for instance. Lesson 11 goes that way, with numbers of fewer bits.
#
# ## On a GPU
#
# Here is what was recorded for 32 images of 28 x 28 pixels, with 128 channels and 128 filters, in float32 without TF32.
# `gemm` is the one product. cuDNN is NVIDIA's own library, and PyTorch calls it, too. `host` is how long Python takes
# to issue a call, `GPU` what the device does if it need not wait for that.

# %%
recorded = records.convolutions()
for method in ("gemm", "fft", "winograd 2x2", "winograd 4x4", "cudnn", "PyTorch"):
    row = recorded.row(f"conv2d (32, 128, 28, 28) 128 filters 3x3 padding 1, {method}")
    host = f"host {row['host_us']:5.0f} µs, GPU {row['device_us']:4.0f} µs, {row.get('launches', '?'):>3} launches"
    print(f"{method:13}{row['ours_s'] * 1e6:6.0f} µs, {row['faster']:5.2f} times as fast as gemm; {host};", end=" ")
    print(f"error {row['error'] * 1e6:5.2f} ppm, of the gradients {row['backward_error'] * 1e6:5.2f} ppm")
print(recorded)

# %% [markdown]
# There the library's Winograd loses. Look where its time goes: the host has launch after launch to issue, and the GPU
# waits. <!-- why: Winograd's host --> Some copy pixels and results place by place, and many write a single number of
# the small matrices. Larger tiles have more of both. <!-- why: larger tiles --> Alone, without the host, the GPU still
# takes longer than for one product, though it multiplies less, and its bytes would fit into a fraction of that time;
# what holds it up was not looked into. <!-- why: Winograd's device --> PyTorch is the best peer: it calls cuDNN, too,
# and tries its ways on this very shape first. <!-- why: best peer --> Does cuDNN use Winograd? Its error is no larger
# than gemm's, so not by tiles of 4 x 4 here. The error of its gradients is about theirs, so there it may.
#
# ## Where the lines cross
#
# So there is no best method, only a best one for a shape. The left map shows, for your machine, how many times as fast
# the library's FFT is as one product: 4 images with 3 channels, 8 filters. The right one was recorded on a GPU, with 8
# images, 16 channels and 16 filters.

# %%
SIZES, KERNELS = (16, 32, 64, 128), (3, 5, 7, 11, 15)
crossings = []
two = {"one product": ops.conv2d, "frequencies": ops.fft_conv2d}
for size in SIZES:
    for kernel in KERNELS:
        both = in_turns("", two, turns=5, budget=0.01, **drawn(4, 3, 8, size, kernel), padding=kernel // 2)
        crossings.append({"kernel": kernel, "size": size, "faster": both["frequencies"][1]})
crossovers = [row for row in recorded.rows.values() if row["section"] == "crossovers"]
won = sum(row["ours_s"] < row["best_s"] for row in crossovers)
print(f"recorded: frequencies are faster than PyTorch's best way, too, on {won} of {len(crossovers)}")
show.crossover(crossings, (f"recorded, {recorded.machine['gpu'].removeprefix('NVIDIA ')}", crossovers))

# %% [markdown]
# Read a map from left to right. With 3 x 3 kernels one product wins, and large kernels go to the frequencies. Does the
# edge move with the size of the image? On the GPU (where the work differs, too) it does. There the frequencies' time is
# about the same for 16 and for 64 pixels, so it is not the work that takes it. What does was not looked into.
# <!-- why: small images --> The best peer wins nearly everywhere. A library that chooses for you has measured such maps
# (cuDNN tries out its methods on your own shapes if you let it). Now you do so.
#
# ### Exercise: choose_algorithm
#
# **Core**, about 8 minutes.
#
# Return `"gemm"` (one product), `"fft"` or `"winograd"` (3 x 3 kernels only) for a shape. The check draws shapes that
# you do not know: 3 x 3 kernels with one channel or many, and kernels up to 21 x 21. It runs the library's three
# methods on each, here and now. For none of them may the method that you chose take more than {most} times as long as
# the fastest. Two simple rules will do, but mind the channels: the map was drawn for few.


# %% nbgrader={"grade": false, "grade_id": "choose_algorithm", "locked": false, "schema_version": 3, "solution": true, "task": false}
def choose_algorithm(n, c, o, size, kernel):
    """Return a method for n images (c, size, size), o filters, kernel x kernel weights, padding kernel // 2.

    About 5 lines.
    """
    ### BEGIN SOLUTION
    if kernel == 3 and min(c, o) >= 128:
        return "winograd"
    if kernel >= 11 and min(c, o) < 32:
        return "fft"
    return "gemm"
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_choose_algorithm", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.choose_algorithm(choose_algorithm)

# %% [markdown]
# `ops.conv2d(..., method="auto")` is such a rule, with edges that were measured on one machine. Its default stays
# `"gemm"`: a method that changes with the shape changes the last digits of its results, too.
#
# ## A large image through a small transform
#
# A transform of a whole photograph is long, and its kernel small. So cut the image into tiles, and transform each one
# alone. A tile's full convolution is larger than the tile, by kernel - 1 rows and columns, and that margin lies where
# the neighbours' results lie. Convolution is a sum, so what falls on the same place is added: **overlap-add** (Thomas
# Stockham, 1966).
#
# ### Exercise: overlap_add
#
# **More**, about 10 minutes.
#
# Put the result of a large image together. `convolve(tile)` is given, and returns the full convolution of a tile: for
# (h, w) pixels (h + kernel - 1, w + kernel - 1) results. It takes tiles of at most step x step pixels.


# %% nbgrader={"grade": false, "grade_id": "overlap_add", "locked": false, "schema_version": 3, "solution": true, "task": false}
def overlap_add(image, kernel, step, convolve):
    """Return the full convolution (H + kernel - 1, W + kernel - 1) of image (H, W). About 6 lines."""
    ### BEGIN SOLUTION
    y = np.zeros((image.shape[0] + kernel - 1, image.shape[1] + kernel - 1), image.dtype)
    for top in range(0, image.shape[0], step):
        for left in range(0, image.shape[1], step):
            part = convolve(image[top : top + step, left : left + step])
            y[top : top + part.shape[0], left : left + part.shape[1]] += part
    return y
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_overlap_add", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.overlap_add(overlap_add)

# %% [markdown]
# ## In your own words
#
# Answer in five to eight sentences.
#
# 1. Winograd's way with 2 x 2 tiles takes 2.25 times fewer multiplications. How many times faster was yours than one
#    product, and which parts took the time? Give numbers from your notebook.
# 2. For which convolutions do frequencies gain, and why does the size of the kernel matter so little to them?
# 3. A colleague wants larger Winograd tiles, since they save more multiplications still. Name two prices.

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_the_crossing", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** The products did become 2.25 times fewer, and the cell with the parts shows that the 16 products
# are a small share of my time. But my whole convolution was slower than one product (the cell prints the factor, below
# 1): cutting overlapping tiles and transforming pixels and results took most of it, and the count leaves those out.
# Frequencies gain with large kernels: the map is above 1 from some kernel size on, and the table shows that their time
# changes little from 3 x 3 to 31 x 31, since each frequency takes one product whatever the kernel, while the direct way
# grows with its area. Larger tiles cost digits (the error of 4 x 4 tiles is several times that of 2 x 2), more
# transforms for each tile, and waste at the edges of small images, where a tile reaches beyond.
#
# **Rubric** (3 points). One point: slower (or hardly faster) in spite of fewer products, with a number, and transforms
# or the moving of data named as where the time goes. One point: large kernels, and one multiplication a frequency (or a
# time that hardly depends on the kernel) as the reason. One point: two prices of larger tiles, such as digits lost,
# larger transforms, memory, results beyond the edge that nobody wants.
# ### END SOLUTION

# %% [markdown]
# ## What you have
#
# The rungs of this lesson are one layer only. Compare them with each other, not with whole networks.

# %%
journal.ladder()

# %%
journal.guesses()

# %% [markdown]
# In three sentences: Winograd's transforms and the FFT compute the same convolution with fewer multiplications, and pay
# with transforms, with memory and with digits. Fewer multiplications are less time only where the rest is small beside
# them: many channels for the one, large kernels (and not too many) for the other. So the number of operations is a
# promise, and a measurement on your own shapes says whether it is kept.
#
# ### Stretch: larger tiles
#
# **More**, as long as you like.
#
# F(4x4, 3x3) reads tiles of 6 x 6 pixels, four pixels apart. `ops.winograd` is the library's module; its `PIXELS[4]`,
# `WEIGHTS[4]` and `RESULTS[4]` are the matrices. Make your function take any of the two sizes, and compare errors and
# times. Then transform all tiles by one product: the Kronecker product of B_T with itself, (36, 36), takes a flat tile.
# How far do you get down?

# %%
# Your stretch. When your function takes the matrices, take away the # of the lines below and run.
#
# from unrolled.ops import winograd
#
# B4, G4, A4 = (np.array(rows[4], np.float32) for rows in (winograd.PIXELS, winograd.WEIGHTS, winograd.RESULTS))
# arrays = drawn(2, 8, 8, 12, 3)
# y = larger_tiles(*arrays.values(), B4, G4, A4)
# print(np.abs(y - ops.conv2d(**arrays, padding=1)).max())
