# %% [markdown]
# # Smaller numbers
#
# Lesson 11, about 90 minutes. After the exercise `quantize_int8` is a good place for a break.
#
# **Afterwards you can**
#
# - tell the two ways in which fewer bits gain time, and which of them a product can hope for;
# - say what a number of 16, 8 or 4 bits cannot hold, and train with 16 all the same;
# - turn a layer into whole numbers of 8 bits: calibrate it, scale it, multiply, and say what it lost;
# - leave out most weights of a network, or keep one bit of each, and judge that fairly.
#
# **You need** training (lesson 05), the roofline (lesson 07), and for one cell a kernel's threads (lesson 08). No
# exercise needs an earlier one.
#
# Are you coming back after a restart? Choose *Run All Above* first: later cells use what earlier ones define.

# %%
import copy
import importlib.util

import numpy as np

from unrolled import check, data, device, journal, nn, ops, records, show, simgpu, timing

check.start("11_smaller_numbers")

rng = np.random.default_rng(0)
learn, held = data.digits().split()

# %% [markdown]
# ## A machine made of multipliers
#
# Lesson 10 made multiplications fewer. This lesson makes the numbers smaller, and that starts with a chip. A processor
# that does nothing but matrix products needs cells that multiply and add, and that hand their numbers on to their
# neighbours. H. T. Kung described such a **systolic array** in 1982, named after the heart, which pumps in beats. Each
# number is read from memory once, and used by a whole row or column of cells. <!-- why: systolic array -->
#
# Chips have room for them: Gordon Moore foresaw in 1965 that their transistors would go on doubling, and since about
# 2005 these no longer go into faster clocks (Herb Sutter, *The free lunch is over*). Google's TPU has 256 x 256 cells
# for 8 bits (Norman Jouppi and others, 2017). On four TPUs AlphaGo Zero played Go, which it had learned by playing
# against itself (David Silver and others, 2017). NVIDIA's tensor cores are small units for products, too.
#
# Step through a product of 3 x 3 matrices. How many steps does it take, and how many products of numbers?

# %%
show.systolic_array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[1, 0, 2], [0, 1, 1], [1, 1, 0]])

# %% [markdown]
# The smaller the numbers, the smaller a cell that multiplies them: by the school's method, bit by bit, it has 24 x 24
# parts for the fractions of float32, and 8 x 8 for 8 bits. And the less energy: 3.7 and 0.2 picojoules on a chip of 45
# nm (Mark Horowitz, 2014). <!-- why: smaller cells -->
#
# ## Two ways in which bits gain
#
# The roofline of lesson 07 has two parts:
#
# - Left of its edge **memory** is the limit. There fewer **bytes** gain time, without any unit for them, as long as
#   unpacking them takes less time than they save. <!-- why: bytes -->
# - Right of its edge **arithmetic** is the limit. There fewer bits gain only where a **unit** exists for them.
#   <!-- why: units -->
#
# A matrix times a vector, as for one image alone, uses each weight once: 2 operations for its 4 bytes. A product of two
# large matrices uses it thousands of times. Here are both on an H200, below one roof for each unit, from its data
# sheet.

# %%
recorded, h200 = records.gpu_precision(), simgpu.profiles.H200
shown = [f"matvec {kind} 16384" for kind in ("float32", "float16", "int8", "int4")]
shown += [f"matmul {kind} 8192" for kind in ("float32", "TF32", "bfloat16", "FP8")]
points = {row["name"]: (row["flops"] / row["bytes"], row["flops"] / row["ours_s"]) for row in map(recorded.row, shown)}
units = {"float32": h200.float32, "TF32": h200.tensor_float16 / 2, "bfloat16": h200.tensor_float16}
show.roofline(h200.tensor_int8, h200.bandwidth, points, units=units, where="recorded, H200")

# %% [markdown]
# With a vector (`matvec`) float16 moves up along the slope: half of the bytes, half of the time, and no unit had to
# help. Matrices (`matmul`) jump to other roofs.
#
# Now your CPU. NumPy has no product of int8 and float32; it would turn the whole matrix into float32 first, in memory.
# So **unpack** a few rows at a time, into a piece that stays in the cache. How many times as fast is that?

# %%
journal.predict("int8_times_a_vector", ...)  # your guess; below 1 is slower


# %%
def in_pieces(whole, x, unpack=True, multiply=True):
    """Return whole (N, K) in int8 times x (K,), 16 rows at a time, or do only one of the two steps."""
    piece, y = np.ones((16, len(x)), np.float32), np.empty(len(whole), np.float32)
    for at in range(0, len(whole), 16):
        if unpack:
            np.copyto(piece, whole[at : at + 16])
        if multiply:
            np.dot(piece, x, out=y[at : at + 16])
    return y


whole, x = rng.integers(-127, 128, (4096, 4096), np.int8), rng.standard_normal(4096).astype(np.float32)
full = whole.astype(np.float32)
ways = {
    "float32 times a vector": lambda: full @ x,
    "int8 times a vector": lambda: in_pieces(whole, x),
    "    unpacking alone": lambda: in_pieces(whole, x, multiply=False),
    "    products in the cache alone": lambda: in_pieces(whole, x, unpack=False),
    "the largest weight, float32": full.max,
    "the largest weight, int8": whole.max,
}
took = {name: timing.measure(way, {}).seconds * 1e3 for name, way in ways.items()}
print(f"weights: {full.nbytes / 1e6:.0f} MB in float32, {whole.nbytes / 1e6:.0f} MB in int8")
print(*(f"{name:32}{milliseconds:6.2f} ms" for name, milliseconds in took.items()), sep="\n")
journal.measured("int8_times_a_vector", took["float32 times a vector"] / took["int8 times a vector"])

# %% [markdown]
# `max` takes int8 as it is. Its time falls with the bytes, or more where a cache holds the smaller array; a register
# also holds four times as many of them. <!-- why: the largest weight --> The product has to unpack, and NumPy writes
# each number into the cache and reads it again. <!-- why: unpacking --> Compare these two parts with float32: what did
# your machine say?
#
# A kernel can unpack where it multiplies, and write nothing down. Here each row has a warp. A word of 32 bits holds
# four weights; two shifts cut one out, with its sign. The simulated GPU counts what it reads.

# %%
cp, jit, BITS = device.gpu(), device.jit(), 8


@jit.rawkernel()
def matvec_kernel(words, x, scale, y, width):
    row = cp.int32(jit.grid(1)) // 32
    lane = cp.int32(jit.threadIdx.x) % 32
    total = cp.float32(0)
    for at in range(lane, width, 32):
        word = words[row * width + at]
        for part in range(32 // BITS):
            up = cp.int32(word << cp.int32(32 - BITS - BITS * part))
            total += cp.float32(up >> cp.int32(32 - BITS)) * x[cp.int32(part) * width + at]
    for k in range(5):  # the warp adds up the sums of its threads
        total += jit.shfl_xor_sync(0xFFFFFFFF, total, 1 << k)
    if lane == 0:
        y[row] = total * scale[row]


words = whole[:16, :1024].copy().view(np.int32)  # four neighbours each
inputs = words.ravel(), x[:1024].reshape(-1, 4).T.ravel(), np.ones(16, np.float32), np.empty(16, np.float32)
matvec_kernel((2,), (256,), (*map(simgpu.asarray, inputs), np.int32(256)))
read = sum(32 * line.read_sectors for line in matvec_kernel.report.lines if "words[" in line.code)
print(f"counted: {read:,} bytes for {words.nbytes:,} weights")
for bits in (8, 4):
    print(f"recorded, {bits} bits: {recorded.figure(f'matvec int{bits} 16384', 'ratio'):.1f} times as fast as float32")
print(recorded)

# %% [markdown]
# Both gain on float32, but hardly on float16: from 8 bits on memory is no longer the limit of this kernel.
# <!-- why: four bits --> (What is, was not looked into. Both do the same operations for each weight.)
# <!-- why: four bits, the limit -->
#
# Here is the network for this lesson. It learns the digits in float32, and we shall make it smaller in four ways. What
# does it lose? A few hundred digits cannot tell exactly, so look at the **interval**: for 95 networks of 100 it holds
# the share of all such digits that they get right (Edwin Wilson, 1927).

# %%
network = nn.Sequential(
    *(nn.Conv2d(8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Conv2d(16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Linear(64), nn.ReLU(), nn.Linear(10)),
    seed=0,
)
network.fit(learn, epochs=5, batch_size=32, optimizer=nn.Adam(0.002), progress=False)


def interval(share, of, z=1.96):
    """Return low and high of the share that so many digits were drawn from."""
    middle, width = share + z**2 / (2 * of), z * np.sqrt(share * (1 - share) / of + (z / (2 * of)) ** 2)
    return (middle - width) / (1 + z**2 / of), (middle + width) / (1 + z**2 / of)


def right(network):
    """The share of held digits that a network gets right, in words."""
    share = network.evaluate(held).accuracy
    low, high = interval(share, len(held))
    return f"{share:.1%} right ({low:.1%} to {high:.1%})"


print(f"float32: {right(network)}, of {len(held)} digits that it never saw")

# %% [markdown]
# ## Sixteen bits
#
# A float has a sign, bits of exponent, which say how far it reaches, and bits of fraction, which say how fine it is.
# Move the sliders from float16 (5 and 10) to the others. Which of the samples get lost, and to which side?
#
# | format | bits of exponent and fraction | largest | note |
# | --- | --- | --- | --- |
# | TF32 | 8, 10 | 3.4e38 | float32 in memory; tensor cores read 19 of its bits |
# | bfloat16 | 8, 7 | 3.4e38 | the upper half of a float32 |
# | FP8 E5M2 | 5, 2 | 57,344 | with infinity, as float16; for gradients |
# | FP8 E4M3 | 4, 3 | 448 | has NaN, but no infinity; for weights and values |
# | FP4 E2M1 | 2, 1 | 6 | neither; blocks of 32 share a scale |
#
# (The last three: Open Compute Project, 2023. NVIDIA's Hopper multiplies FP8, Blackwell FP4 as well.)

# %%
show.float_ruler(exponent=5, fraction=10)

# %% [markdown]
# float16 ends at 65,504. The smallest number that it holds is about 6e-8, and what is below half of that becomes 0. To
# *use* this network that is enough, as you will see. To *train* is another matter: in large networks many gradients are
# smaller than that.
#
# So multiply the loss by a **scale** before the way back. By the chain rule all gradients carry it. Divide by it before
# the update, in float32. The best scale is as large as possible, but too large a scale lets some gradient overflow, and
# become infinite. So it is found on the way (**dynamic loss scaling**, Paulius Micikevicius and others, 2018):
#
# - If any gradient is infinite or NaN, skip this update, and halve the scale.
# - After so many good steps in a row, double it.
#
# ### Exercise: loss_scale_step
#
# **Core**, about 10 minutes.
#
# `gradients` come in float16, with the scale in them. Return three things: the gradients in float32 without the scale
# (or None, if the step is to be skipped), the scale for the next step, and how many good steps there were in a row
# since the scale changed.


# %% nbgrader={"grade": false, "grade_id": "loss_scale_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def loss_scale_step(gradients, scale, good_steps, every):
    """Return (gradients, scale, good_steps): after `every` good steps in a row the scale doubles. About 6 lines."""
    ### BEGIN SOLUTION
    if not np.isfinite(gradients).all():
        return None, scale / 2, 0
    found = gradients.astype(np.float32) / np.float32(scale)
    if good_steps + 1 == every:
        return found, scale * 2, 0
    return found, scale, good_steps + 1
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_loss_scale_step", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.loss_scale_step(loss_scale_step)

# %% [markdown]
# Now train with it, and without. Where a network labels every pixel, the loss is a mean over all pixels of a batch. So
# let each digit here count as little as one pixel in a million. (Adam makes the same steps of smaller gradients, if its
# epsilon is smaller still.)

# %%
step = journal.mine("loss_scale_step")


def trained(kind, scale, every):
    """Train with gradients in float32 or float16; return the network, and the scale's powers of two."""
    layers = nn.Flatten(), nn.Linear(64), nn.ReLU(), nn.Linear(10)
    small, adam, good, path = nn.Sequential(*layers).build((1, 28, 28)), nn.Adam(0.002, epsilon=1e-14), 0, []
    for images, labels in (batch for epoch in range(3) for batch in data.minibatches(learn, 64, epoch)):
        _, grad = ops.softmax_cross_entropy(small.forward(images, training=True), labels)
        with np.errstate(over="ignore"):
            small.backward((grad * 1e-6 * scale).astype(kind).astype(np.float32))
            gradients, scale, good = step(small.gradients.astype(kind), scale, good, every)
        if gradients is not None:
            adam.step(small.parameters, gradients)
        path.append(int(np.log2(scale)))
    return small, path


print("float32, no scale:", right(trained(np.float32, 1.0, 10**9)[0]))
print("float16, no scale:", right(trained(np.float16, 1.0, 10**9)[0]))
small, path = trained(np.float16, 2.0**40, 20)
print("float16, a scale: ", right(small))
print("the scale after every second step, as a power of two:", *path[::2])
row = records.precision().row("trained in float16, mean of 3 seeds")
print(f"MNIST, recorded: {row['accuracy']:.2%} by float16 with a scale, {row['peer_accuracy']:.2%} by float32")

# %% [markdown]
# Without a scale nearly all gradients are 0, and little is learned. The scale falls until nothing overflows, and then
# keeps trying the next power; `fit(..., precision="float16")` does so, too. (bfloat16 has the range of float32, needs
# no scale, and pays with its fraction.)
#
# ### What a unit gains
#
# Is a product of matrices faster in float16? On your CPU first, then on an H200, whose tensor cores are made for it.
# How many times faster is a product of 8,192 x 8,192 matrices there in float16 than in float32?

# %%
journal.predict("half_on_tensor_cores", ...)  # your guess

# %%
a, b = (rng.standard_normal((128, 128)).astype(np.float32) for _ in range(2))
single = timing.measure(lambda a, b: a @ b, {"a": a, "b": b}).seconds
half = timing.measure(lambda a, b: a @ b, {"a": a.astype(np.float16), "b": b.astype(np.float16)}).seconds
print(f"your CPU, 128 x 128: float16 takes {half / single:.0f} times as long as float32")

for kind in ("TF32", "float16", "bfloat16", "FP8", "int8"):
    times = recorded.figure(f"matmul {kind} 8192", "ratio")
    print(f"an H200, 8,192 x 8,192: {kind} is {times:.1f} times as fast as float32")
journal.measured("half_on_tensor_cores", recorded.figure("matmul float16 8192", "ratio"), where="recorded, H200")

# %% [markdown]
# The same bits, and opposite answers. NumPy has no BLAS for float16: its own loop turns two numbers into float32 for
# each multiplication (`HALF_matmul_inner_noblas`). <!-- why: float16 on a CPU --> The H200 has units.
# <!-- why: float16 on a GPU --> (`network.half()` multiplies in float32, by BLAS.)
#
# ## Eight bits
#
# **Quantization** writes each weight as a whole number from -127 to 127, multiplied by a **scale**: w ≈ scale · q. Each
# filter has a scale of its own (**per channel**), since some filters are ten times as large as others.
#
# Which scale is right? If the largest magnitude becomes 127, nothing is lost at the top, but one outlier makes the
# steps coarse for all. So one may **clip**: let 127 stand for all beyond a limit. These are weights of the second
# convolution, with a few outliers put in. Move the limit. Which error grows?

# %%
second = network.layers[3].parameters["weight"]
with_outliers = np.concatenate([second.ravel(), np.float32([12, -11, 10]) * second.std()])
show.clipping(with_outliers, bits=4)  # then try bits=8

# %% [markdown]
# With 4 bits the best limit lies far below the largest value. With 8 clipping hardly ever pays for weights. For what
# passes between layers it may: there, a limit is chosen by **calibration**, from a few images.
#
# ### Exercise: quantize_int8
#
# **Core**, about 10 minutes.
#
# `x` has one channel in each row of its first axis, and any number of axes after it. `limit` holds the largest
# magnitude that each channel is to represent. Return the whole numbers, and the scale of each channel: limit / 127, or
# 1 where limit is 0, as of a channel of zeros. What lies beyond the limit is clipped. Round to the nearest. (-128 stays
# unused, so that q and -q are both there.)


# %% nbgrader={"grade": false, "grade_id": "quantize_int8", "locked": false, "schema_version": 3, "solution": true, "task": false}
def quantize_int8(x, limit):
    """Return (q, scale): q of x's shape in int8, scale (C,) in float32, for x (C, ...), limit (C,). About 4 lines."""
    ### BEGIN SOLUTION
    scale = np.where(limit > 0, limit / np.float32(127), 1).astype(np.float32)
    steps = np.rint(x / scale.reshape(-1, *[1] * (x.ndim - 1)))
    return np.clip(steps, -127, 127).astype(np.int8), scale
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_quantize_int8", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.quantize_int8(quantize_int8)

# %% [markdown]
# Why clip before the cast? C does not say what becomes of a float that does not fit, and machines differ. A GPU takes
# the nearest number of 32 bits that fits, then its last bits, and so does Arm. x86 takes other bits. How far off are
# your own numbers? And what does NumPy make of a product of two int8 matrices?

# %%
small, large = np.float32([300, -1]), np.float32([1e10, -1e10])
with np.errstate(invalid="ignore"):
    print("your CPU:     ", small.astype("uint8"), large.astype("int32"))
print("simulated GPU:", simgpu.asarray(small).astype("uint8"), simgpu.asarray(large).astype("int32"))
q, scales = journal.mine("quantize_int8")(second, np.abs(second).max(axis=(1, 2, 3)))
off = np.abs(q * scales[:, None, None, None] - second) / scales[:, None, None, None]
print(f"{second.nbytes} bytes became {q.nbytes}; at most {off.max():.2f} steps off")
print(np.array([[100, 100]], np.int8) @ np.array([[100], [100]], np.int8), "and 20,000 is right")

# %% [markdown]
# ### Exercise: int8_matmul
#
# **Core**, about 4 minutes.
#
# Multiply two int8 matrices, with sums that do not wrap round. Every bit has to be right. int32 has room for more than
# 100,000 terms.


# %% nbgrader={"grade": false, "grade_id": "int8_matmul", "locked": false, "schema_version": 3, "solution": true, "task": false}
def int8_matmul(a, b):
    """Return a (N, K) @ b (K, M) in int32, for int8 a and b. About 1 line."""
    ### BEGIN SOLUTION
    return a.astype(np.int32) @ b.astype(np.int32)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_int8_matmul", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.int8_matmul(int8_matmul)

# %% [markdown]
# ### A layer of int8
#
# Now the dense layer and its ReLU become int8, inside and out. **Calibrate**: 200 images tell how large what comes in
# gets, and what goes out. Sums count steps; times the scale of the row and the scale of what came in they are the
# layer's output, and that by the scale of what goes out gives int8 again. The **ReLU is fused**: it is the 0 in
# `np.clip`. (Benoit Jacob and others, 2018, who need no float at all.)

# %%
quantize, multiply = journal.mine("quantize_int8", "int8_matmul")
inner, last = network.layers[7], network.layers[9]  # Linear(64), which a ReLU follows, and Linear(10)
weight, bias = inner.parameters["weight"], inner.parameters["bias"]


def before(images):
    for layer in network.layers[:7]:
        images = layer.forward(images)
    return images


seen = before(learn.images[:200])
most_in, step_out = np.array([seen.max()]), inner.forward(seen).max() / 127  # what comes in is not below 0
small_weight, row_scales = quantize(weight, np.abs(weight).max(axis=1))  # a scale for each row


def int8_layer(x):
    """Return the output (N, M) of the layer and its ReLU in int8, in steps of step_out, for x (N, K)."""
    q, scale = quantize(x[None], most_in)
    sums = multiply(q[0], small_weight.T) * (scale * row_scales) + bias
    return np.clip(np.rint(sums / step_out), 0, 127).astype(np.int8)


answers = last.forward(int8_layer(before(held.images)) * step_out).argmax(axis=1)
share, others = (answers == held.labels).mean(), (answers != network.predict(held.images)).sum()
print("one layer in int8: {:.1%} right ({:.1%} to {:.1%})".format(share, *interval(share, len(held))))
print(f"in float32:        {right(network)}; another answer for {others} of {len(held)} digits")
eight = network.quantize(learn.images[:200])
print(f"all in int8:       {right(eight)}, by the library")
square = rng.integers(-127, 128, (128, 128)).astype(np.int8)
exact = timing.measure(multiply, {"a": square, "b": square}).seconds
print(f"your CPU, 128 x 128: int8 with sums of int32 takes {exact / single:.1f} times as long as float32")

# %% [markdown]
# A quarter of the memory, and as good as these digits can tell. Is it faster? Not with NumPy, which has no BLAS for
# whole numbers either. <!-- why: int8 on a CPU --> (The library lets BLAS sum short blocks in float32, which holds
# whole numbers exactly up to 2 to the power of 24.) CPUs with AVX-512 VNNI or Arm's `sdot`, and newer GPUs, have units
# for int8.
#
# ## Weights that are not there
#
# The smallest number is none. Many weights of a trained network are near 0, and can be left out: **pruning** by
# magnitude (Song Han and others, 2015). A network that lost many trains on for a little, while they stay away. Which
# weights go is decided once, before the first update.
#
# ### Exercise: prune
#
# **Core**, about 9 minutes.
#
# Set the smallest magnitudes of `weight` to 0, `int(fraction * weight.size)` of them, whichever of equal ones. Then
# fine-tune: subtract each of `updates` in turn, and see to it that what was pruned stays 0. `fraction` may be 0 or 1.


# %% nbgrader={"grade": false, "grade_id": "prune", "locked": false, "schema_version": 3, "solution": true, "task": false}
def prune(weight, fraction, updates):
    """Return the weights after all updates, in a new array of their shape. About 6 lines."""
    ### BEGIN SOLUTION
    mask = np.ones(weight.size, weight.dtype)
    mask[np.argsort(np.abs(weight), axis=None)[: int(fraction * weight.size)]] = 0
    mask = mask.reshape(weight.shape)
    weight = weight * mask
    for update in updates:
        weight = (weight - update) * mask
    return weight
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_prune", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.prune(prune)

# %%
pruned, more = network.prune(0.9), copy.deepcopy(network)
print(f"90 % of the weights are gone: {right(pruned)}")
for each in (pruned, more):
    each.fit(learn, epochs=3, batch_size=32, optimizer=nn.Adam(0.002), progress=False)
print(f"trained on, without them:     {right(pruned)}")
print(f"trained on, with all of them: {right(more)}")

# %% [markdown]
# The last line is the **fair baseline**: what trained on is to be compared with what trained on. Nine weights of ten
# were hardly needed. In a dense layer that is nine multiplications of ten.
#
# A **sparse matrix** stores only what is not 0, with its place. How many times faster is the product of a batch with a
# matrix of 90 % zeros, than with a full one?

# %%
journal.predict("ninety_percent_zeros", ...)  # your guess; below 1 is slower

# %%
if importlib.util.find_spec("scipy"):
    x, filled = (rng.standard_normal(shape).astype(np.float32) for shape in ((64, 1024), (1024, 1024)))
    few = ops.precision.sparse(filled * ops.precision.magnitude_mask(filled, 0.9))
    dense = timing.measure(lambda x: x @ filled.T, {"x": x}).seconds
    sparse = timing.measure(lambda x: ops.precision.sparse_matmul(x, few), {"x": x}).seconds
    print(f"full {dense * 1e3:.2f} ms, 90 % zeros {sparse * 1e3:.2f} ms: {dense / sparse:.2f} times as fast")
    journal.measured("ninety_percent_zeros", dense / sparse)
else:
    print("SciPy is not installed here: pip install scipy, and run this cell again")

# %% [markdown]
# A tenth of the multiplications, and not a tenth of the time. SciPy's loop (`csr_matvecs`) goes from weight to weight,
# each with its place, and adds its products to a row of sums in memory. BLAS keeps blocks of sums in registers
# (Kazushige Goto and Robert van de Geijn, 2008). <!-- why: zeros --> How much each of these makes was not looked into.
# <!-- why: zeros, each cause --> (NVIDIA's newer GPUs have a unit for two zeros in each four weights.)
#
# ## One bit
#
# The last step: only the signs, -1 and 1. Let a bit be 1 for a positive sign. Then **xor** says which of 64 pairs
# differ, in one instruction, and **popcount** counts them; in NumPy these are `^` and `np.bitwise_count`. For k pairs,
# of which d differ, the sum is (k - d) - d = k - 2d. (Matthieu Courbariaux, Itay Hubara and others, 2016; Mohammad
# Rastegari and others, 2016, who give each filter a scale.)
#
# ### Exercise: binary_matmul
#
# **Core**, about 15 minutes.
#
# a and b hold signs, 64 in a word, the first one in the lowest bit. If k is no multiple of 64, the last word has bits
# left over. They can be anything, so leave them out. NumPy's counts are unsigned: sum them in int32 before you
# subtract. The check asks for {T} times the speed of a product with an int32 for each sign.


# %% nbgrader={"grade": false, "grade_id": "binary_matmul", "locked": false, "schema_version": 3, "solution": true, "task": false}
def binary_matmul(a, b, k):
    """Return (N, M) in int32 for uint64 a (N, W) and b (M, W), with k signs in each row. About 7 lines."""
    ### BEGIN SOLUTION
    words = np.full(a.shape[1], 2**64 - 1, np.uint64)
    if k % 64:
        words[-1] = (1 << k % 64) - 1
    y = np.empty((len(a), len(b)), np.int32)
    for row in range(len(a)):
        y[row] = k - 2 * np.bitwise_count((a[row] ^ b) & words).sum(axis=1, dtype=np.int32)
    return y
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_binary_matmul", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.binary_matmul(binary_matmul)

# %% [markdown]
# Here a CPU does have a unit: xor and popcount work on 64 signs at once. Does that beat float32 by a good BLAS? First
# with two matrices, right of the roofline's edge, then with the large matrix from above and one vector, left of it.

# %%
one_bit, signs = journal.mine("binary_matmul"), np.where(rng.random((72, 4096)) < 0.5, np.float32(1), np.float32(-1))
for rows, matrix in ((signs, signs), (signs[:1], full)):
    words = {"a": ops.precision.pack_signs(rows), "b": ops.precision.pack_signs(matrix), "k": 4096}
    bits = timing.measure(one_bit, words).seconds
    floats = timing.measure(lambda rows, matrix: rows @ matrix.T, {"rows": rows, "matrix": matrix}).seconds
    print(f"{len(rows)} x 4,096 by 4,096 x {len(matrix):,}: one bit is {floats / bits:.1f} times as fast as float32")
alone = records.precision().figure("binary, bitwise_count alone, 4096", "ratio")
print(f"recorded, 4,096 x 4,096 by 4,096 x 4,096: counting bits alone takes {alone:.0%} of float32's time")

# %% [markdown]
# With two matrices one bit gains little or nothing. NumPy passes over the words once each for xor, for the mask, to
# count and to sum, and the record tells what counting alone takes. <!-- why: one bit, matrices --> With one vector a
# thirty-second of the bytes shows. <!-- why: one bit, a vector -->
#
# A network has to be trained for signs. `network.binarize()` makes the inner dense layer binary.

# %%
binary = network.binarize()
print(f"signs in the inner dense layer: {right(binary)}")
binary.fit(learn, epochs=3, batch_size=32, optimizer=nn.Adam(0.002), progress=False)
print(f"trained on:                     {right(binary)}")

# %% [markdown]
# How does a layer of signs learn? A sign does not change if its value changes a little, so its derivative is 0. The way
# out is an approximation that works: keep real weights, use their signs on the way forward, and on the way back pretend
# that the sign was not there (**straight-through**, Yoshua Bengio and others, 2013), wherever the value lies between -1
# and 1 (Courbariaux, Hubara and others, 2016).
#
# ### Exercise: straight_through
#
# **More**, about 10 minutes.
#
# A binary layer computed y = sign(x) @ sign(weight).T. From the gradient by y, return those by x and by weight. A value
# of 0 counts as negative.


# %% nbgrader={"grade": false, "grade_id": "straight_through", "locked": false, "schema_version": 3, "solution": true, "task": false}
def straight_through(grad, x, weight):
    """Return gradients by x (N, K) and by weight (M, K), for grad (N, M), the gradient by y. About 3 lines."""
    ### BEGIN SOLUTION
    x_signs, weight_signs = (np.where(values > 0, np.float32(1), np.float32(-1)) for values in (x, weight))
    by_x, by_weight = grad @ weight_signs, grad.T @ x_signs
    return by_x * (np.abs(x) <= 1), by_weight * (np.abs(weight) <= 1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_straight_through", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.straight_through(straight_through)

# %% [markdown]
# ## All of them side by side
#
# How many digits each form gets right, with its interval, the bytes of its weights, and the time for all held digits on
# your CPU. A pruned weight takes 8 bytes, 4 for its value and 4 for its place. The last three trained for three more
# epochs: compare them with each other. Mind the axis: it does not begin at 0.

# %%
sizes = {number: layer.parameters["weight"].size for number, layer in enumerate(network.layers) if layer.parameters}
total, inner = sum(sizes.values()), sizes[7]
forms = {
    "float32": (network, 4 * total),
    "float16": (network.half(), 2 * total),
    "int8": (eight, total),
    "float32, trained on": (more, 4 * total),
    "90 % pruned, trained on": (pruned, 8 * total // 10),
    "binary dense layer, trained on": (binary, 4 * (total - inner) + inner // 8),
}
rows = []
for name, (form, size) in forms.items():
    seconds, share = timing.measure(form.predict, {"images": held.images}).seconds, form.evaluate(held).accuracy
    row = {"name": name, "accuracy": share, "interval": interval(share, len(held)), "bytes": size, "seconds": seconds}
    rows.append(row)
show.precision_front(rows, "One network, six forms, held digits, measured")

# %% [markdown]
# And the same, recorded for a larger network and the 10,000 test digits of MNIST. The last three trained for one epoch
# more.

# %%
mnist = records.precision()
print(mnist)
networks = [row for row in mnist.rows.values() if row["section"] == "networks" and "percentile" not in row["name"]]
for place, row in enumerate(networks):
    name = row["name"].replace("one more epoch", "trained on")
    networks[place] = row | {"name": name, "interval": interval(row["accuracy"], 10_000)}
for name in ("90 % pruned", "binary dense layer"):
    fewer = -100 * mnist.figure(f"{name}, one more epoch", "points")
    print(f"{name}: {fewer:.0f} digits of 10,000 fewer are right than by float32 that trained on")
show.precision_front(networks, "MNIST, recorded, on a CPU", like=rows)

# %% [markdown]
# Read a picture from right to left: less and less memory. float16 and int8 lose nothing that these digits show. Pruning
# loses a little against its fair baseline, which the first picture is too small to tell, and signs lose more. Then read
# the seconds: with NumPy hardly a small form is faster than float32. What you gained is memory.
#
# Who wants which? Fixstars' seminar of 2022 weighs speed, power and place. In a **data centre** one copy of the weights
# serves many at once; batches move its work right of the edge, so it buys *units*. <!-- why: data centre --> On the
# **edge**, in a camera or a car, images come one by one, on the left of the roofline: there *bytes* gain time.
# <!-- why: edge --> A **phone** also pays in battery: fetching 32 bits from memory takes 640 picojoules on a chip of 45
# nm, and a multiplication in float32 takes 3.7 (Song Han and others, 2015). The seminar also names FPGAs, computers for
# science, and quantum computers, which are not ready.
#
# ## In your own words
#
# Answer in five to eight sentences.
#
# 1. Two matrices in float16 were slower on your CPU, and much faster on the H200. One vector gained a factor of two
#    there, and something else in int8 on your CPU. Which limit stands behind each? Give numbers.
# 2. Why does training in float16 need a loss scale, and using a network not?
# 3. Nine weights of ten are 0. Why is the product not ten times as fast? Give a number from your notebook.

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_the_bits", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** With two matrices arithmetic is the limit, so only a unit gains. NumPy has no BLAS for float16 and
# takes many times as long (the cell prints how many); the H200's tensor cores make it several times faster (the
# recorded factor). With one vector memory is the limit: half of the bytes took half of the time on the H200. On my CPU
# int8 needed a quarter of the bytes, but unpacking and the products in the cache took (my two times), so it was (my
# factor) times as fast. Gradients are often below what float16 can hold and become 0; the scale lifts them into its
# range. Weights and the values between layers are larger, so using the network needs no scale. The sparse product takes
# a place with each weight and keeps its sums in memory (how much each of these makes was not looked into), and was only
# (my factor) times as fast.
#
# **Rubric** (3 points). One point: arithmetic or units with matrices, memory or bytes with a vector, with numbers. One
# point: gradients become 0 (underflow), while weights and activations do not. One point: places, sums in memory or a
# missing unit, or that it was not looked into, with a number.
# ### END SOLUTION

# %% [markdown]
# ## What you have

# %%
journal.guesses()

# %% [markdown]
# In three sentences: A network needs far fewer bits than float32 gives it, if what it loses is watched: a loss scale
# for gradients, a scale for each channel, more training after pruning and for signs, beside a fair baseline. Where
# memory is the limit fewer bytes gain time, if unpacking takes less than they save; where arithmetic is, only a unit
# gains. Memory they always save, so find the limit first, and measure before you promise.
#
# ### Stretch: FP8
#
# **More**, as long as you like.
#
# Write `stored(x, exponent, fraction)` for arrays, which rounds to E4M3 or E5M2. Mind the subnormal numbers, and the
# largest ones: E5M2 goes on to infinity after 57,344, E4M3 uses the largest exponent for numbers up to 448, and has NaN
# beyond. Round the weights of the network to both formats. Which one loses less, in the mean error? Does a scale for
# each channel help as much as with int8?

# %%
# Your stretch. When your function is written, take away the # of the lines below and run.
#
# for exponent, fraction in ((4, 3), (5, 2)):
#     small = copy.deepcopy(network)
#     small.parameters[...] = stored(small.parameters, exponent, fraction)
#     error = np.abs(small.parameters - network.parameters).mean()
#     print(exponent, fraction, f"mean error {error:.5f}, {right(small)}")
