# %% [markdown]
# # Smaller numbers
#
# Lesson 11, about 90 minutes. After the exercise `quantize_int8` is a good place for a break.
#
# **Afterwards you can**
#
# - say what a number of 16 bits cannot hold, and train with it all the same;
# - turn weights into whole numbers of 8 bits, and multiply those without losing a digit;
# - leave out most weights of a network, and multiply with one bit for each;
# - tell where fewer bits gain speed, and where they gain memory only.
#
# **You need** training (lesson 05) and matrix products (lesson 01). No exercise needs an earlier one.
#
# Are you coming back after a restart? Choose *Run All Above* first: later cells use what earlier ones define.

# %%
import importlib.util

import numpy as np

from unrolled import check, data, journal, nn, ops, records, show, simgpu, timing

check.start("11_smaller_numbers", "0.1.0")

rng = np.random.default_rng(0)
learn, held = data.digits().split()

# %% [markdown]
# ## A machine made of multipliers
#
# Lesson 10 made multiplications fewer. This lesson makes the numbers smaller, and that starts with a picture of a
# chip.
#
# A processor that does nothing but matrix products needs no cache and no program. It needs cells that multiply and
# add, and that hand their numbers on to their neighbours. H. T. Kung described such a **systolic array** in 1982,
# named after the heart, which pumps in beats. Each number is read from memory once, and used by a whole row or column
# of cells. Google's TPU is built around such an array. The tensor cores of NVIDIA's GPUs are small units for products,
# too.
#
# Step through a product of 3 x 3 matrices. How many steps does it take, and how many products of numbers?

# %%
show.systolic_array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[1, 0, 2], [0, 1, 1], [1, 1, 0]])

# %% [markdown]
# The smaller the numbers, the smaller a cell that multiplies them, and the more cells fit on a chip. That is why
# makers of chips want small numbers. But mind the order: somebody has to build the unit first. A CPU without one does
# not become faster because your numbers have fewer bits. **Bits buy speed only where a unit exists for them.** Memory
# they always save.
#
# Here is the network for this lesson. It learns the digits in float32, and we shall make it smaller in four ways.

# %%
network = nn.Sequential(
    *(nn.Conv2d(8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Conv2d(16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Linear(64), nn.ReLU(), nn.Linear(10)),
    seed=0,
)
network.fit(learn, epochs=5, batch_size=32, optimizer=nn.Adam(0.002), progress=False)


def right(network):
    """The share of held digits that a network gets right."""
    return network.evaluate(held).accuracy


print(f"float32: {right(network):.1%} of {len(held)} digits that it never saw are right")

# %% [markdown]
# ## Sixteen bits
#
# A float has a sign, some bits of exponent, which say how far it reaches, and some bits of fraction, which say how
# fine it is. Move the sliders from float16 (5 and 10) to bfloat16 (8 and 7) and float32 (8 and 23). Which of the
# samples get lost, and to which side?

# %%
show.float_ruler(exponent=5, fraction=10)

# %% [markdown]
# float16 ends at 65,504. The smallest number that it holds is about 6e-8, and what is below half of that becomes 0.
# For weights that is enough. Let us take the network as it is, with weights and everything between layers in float16,
# and sums in float32.

# %%
print(f"float16: {right(network.half()):.1%} right")

# %% [markdown]
# To *use* a network float16 is harmless. To *train* it is another matter. Our small network would get away with it. In
# large networks many gradients are smaller than what float16 holds.

# %%
gradients = (rng.standard_normal(10_000) * 1e-7).astype(np.float32)  # made up, as small as those of large networks
lost = np.mean(gradients.astype(np.float16) == 0)
still_lost = np.mean((gradients * 4096).astype(np.float16) == 0)
print(f"{lost:.0%} of these gradients are 0 in float16; times 4,096, {still_lost:.1%} are")

# %% [markdown]
# So multiply the loss by a **scale** before the way back. By the chain rule all gradients carry it, and none of them
# is lost. Divide by it before the update, in float32. The best scale is as large as possible, but too large a scale
# lets some gradient overflow, and become infinite. Nobody knows the right one beforehand. So it is found on the way,
# which is called **dynamic loss scaling** (Paulius Micikevicius and others, 2018):
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

# %%
step = journal.mine("loss_scale_step")
scale, good, path = 2.0**20, 0, []
for _ in range(24):
    with np.errstate(over="ignore"):
        scaled = (rng.standard_normal(1000) * 0.3 * scale).astype(np.float16)
    _, scale, good = step(scaled, scale, good, every=4)
    path.append(int(np.log2(scale)))
print("the scale, as a power of two:", *path)

# %% [markdown]
# It falls until nothing overflows, and then keeps trying the next power. That is all there is to it. The library does
# the same with `fit(..., precision="float16")`. What that gave on MNIST, from three seeds, was recorded. (bfloat16 has
# the range of float32, and needs no scale. It pays with its fraction.)

# %%
row = records.precision().row("trained in float16, mean of 3 seeds")
print(f"float16: {row['accuracy']:.2%} right, float32: {row['peer_accuracy']:.2%}")

# %% [markdown]
#
# ### What it gains
#
# Is a product faster in float16? On your CPU first, and then on an H200, whose tensor cores are made for it. How many
# times faster is a product of 8,192 x 8,192 matrices there in float16 than in float32?

# %%
journal.predict("half_on_tensor_cores", ...)  # your guess

# %%
a, b = (rng.standard_normal((128, 128)).astype(np.float32) for _ in range(2))
single = timing.measure(lambda a, b: a @ b, {"a": a, "b": b}).seconds
half = timing.measure(lambda a, b: a @ b, {"a": a.astype(np.float16), "b": b.astype(np.float16)}).seconds
print(f"your CPU, 128 x 128: float16 takes {half / single:.0f} times as long as float32")

recorded = records.gpu()
times = recorded.figure("matmul float32 8192", "us") / recorded.figure("matmul float16 8192", "us")
print(f"an H200, 8,192 x 8,192: float16 is {times:.1f} times as fast as float32")
journal.measured("half_on_tensor_cores", times, where="recorded, H200")
print(recorded)

# %% [markdown]
# The same bits, and opposite answers. (The sizes differ, too, but that is not why.) NumPy has no fast product for
# float16. A plain loop multiplies number by number, and turns each into float32 and back every time. The H200 has a
# unit. That is the lesson in two lines. (`network.half()` did better than this loop: it stores float16, and multiplies
# in float32.)
#
# ## Eight bits
#
# Whole numbers are simpler still: a multiplier for 8 bits is tiny. The idea is to write each weight as a whole number
# from -127 to 127, multiplied by a **scale**: w ≈ scale · q. That is **quantization**. With zero at zero the format is
# called *symmetric*. Each filter has a scale of its own (**per channel**), since some filters are ten times as large as
# others.
#
# What is the right scale? If the largest magnitude becomes 127, nothing is lost at the top. But then one outlier makes
# the steps coarse for all. So one may **clip**: set a limit below the largest value, and let 127 stand for all beyond.
# These are the weights of the second convolution with a few outliers put in. Move the limit. Which error grows?

# %%
second = network.layers[3].parameters["weight"]
with_outliers = np.concatenate([second.ravel(), np.float32([12, -11, 10]) * second.std()])
show.clipping(with_outliers, bits=4)  # then try bits=8

# %% [markdown]
# With 4 bits the best limit lies far below the largest value. With 8 there are so many steps that clipping hardly ever
# pays for weights. For what passes between layers it may: there, a limit is chosen by **calibration**, from a few
# images.
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
# Why clip before the cast? C does not say what becomes of a float that does not fit, and machines differ. A GPU takes the
# nearest number of 32 bits that fits, then its last bits, and so does Arm. x86 takes other bits. The same program can be
# right on a GPU and wrong on your PC.

# %%
small, large = np.float32([300, -1]), np.float32([1e10, -1e10])
with np.errstate(invalid="ignore"):
    print("your CPU:     ", small.astype("uint8"), large.astype("int32"))
print("simulated GPU:", simgpu.asarray(small).astype("uint8"), simgpu.asarray(large).astype("int32"))

# %%
whole, scales = journal.mine("quantize_int8")(second, np.abs(second).max(axis=(1, 2, 3)))
off = np.abs(whole * scales[:, None, None, None] - second) / scales[:, None, None, None]
print(f"{second.nbytes} bytes became {whole.nbytes}; at most {off.max():.2f} steps off")

# %% [markdown]
# Never more than half a step. Now the product of two such matrices. Products of whole numbers are exact, if the sums
# have room. Try what NumPy does.

# %%
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

# %%
eight = network.quantize(learn.images[:200])
print(f"int8: {right(eight):.1%} right")
q = rng.integers(-127, 128, (128, 128)).astype(np.int8)
exact = timing.measure(journal.mine("int8_matmul"), {"a": q, "b": q}).seconds
print(f"your CPU, 128 x 128: int8 with sums of int32 takes {exact / single:.1f} times as long as float32")

# %% [markdown]
# The sums count steps. Times the scale of the filter and the scale of what came in, they are the layer's output again.
# That is what `network.quantize` makes of each layer, after calibrating with some images. It is as good as before, in
# a quarter of the memory. Is it faster? Not with NumPy, which has no fast product for whole numbers at all. (The
# library gets along by a trick: float32 holds whole numbers exactly up to 2 to the power of 24, so it lets BLAS sum
# short blocks of them.) Many CPUs and all newer GPUs have instructions for int8, and libraries that use them.
#
# ## Weights that are not there
#
# The smallest number is none. Many weights of a trained network are near 0, and can be left out: **pruning** by
# magnitude (Song Han and others, 2015). Leave out too many at once and the network forgets. So it trains on for a
# little, while the weights that went stay away. Which weights go is decided once, before the first update.
#
# ### Exercise: prune
#
# **Core**, about 9 minutes.
#
# Set the smallest magnitudes of `weight` to 0, `int(fraction * weight.size)` of them, whichever of equal ones. Then
# fine-tune: subtract each of `updates` in turn, and see to it that what was pruned stays 0.


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
pruned = network.prune(0.9)
print(f"90 % of the weights are gone: {right(pruned):.1%} right")
pruned.fit(learn, epochs=3, batch_size=32, optimizer=nn.Adam(0.002), progress=False)
print(f"trained on, without them:     {right(pruned):.1%} right")

# %% [markdown]
# Nine weights of ten are not needed. In a dense layer that is nine multiplications of ten. (Here the smallest of the
# *whole* network went, most of them from the dense layer. A weight of a filter is used at every place of the image, so
# a good part of the network's multiplications remains.)
#
# A **sparse matrix** stores only what is not 0, with its place. How many times faster is the product of a batch with a
# matrix of 90 % zeros, than with a full one?

# %%
journal.predict("ninety_percent_zeros", ...)  # your guess; below 1 is slower

# %%
if importlib.util.find_spec("scipy"):
    x, full = (rng.standard_normal(shape).astype(np.float32) for shape in ((64, 1024), (1024, 1024)))
    few = ops.precision.sparse(full * ops.precision.magnitude_mask(full, 0.9))
    dense = timing.measure(lambda x: x @ full.T, {"x": x}).seconds
    sparse = timing.measure(lambda x: ops.precision.sparse_matmul(x, few), {"x": x}).seconds
    print(f"full {dense * 1e3:.2f} ms, 90 % zeros {sparse * 1e3:.2f} ms: {dense / sparse:.2f} times as fast")
    journal.measured("ninety_percent_zeros", dense / sparse)
else:
    print("SciPy is not installed here: pip install scipy, and run this cell again")

# %% [markdown]
# A tenth of the work, and not a tenth of the time. Compare the two times above: a full product runs through memory in
# order, with all the units for products that the processor has. A sparse one has to look up where each number belongs.
# Again a unit is missing. (NVIDIA's newer GPUs have one for a special case, two zeros in each four weights.)
#
# ## One bit
#
# The last step: only the signs, -1 and 1. A product of signs is 1 where they agree. Let a bit be 1 for a positive
# sign. Then **xor** says which of 64 pairs differ, in one instruction, and **popcount** counts them; in NumPy these
# are `^` and `np.bitwise_count`. For k pairs, of which d differ, the sum is (k - d) - d = k - 2d. (Mohammad Rastegari
# and others, 2016.)
#
# ### Exercise: binary_matmul
#
# **Core**, about 15 minutes.
#
# a and b hold signs, 64 in a word, the first one in the lowest bit. If k is no multiple of 64, the last word has bits
# left over. They can be anything, so leave them out. NumPy's counts are unsigned: sum them in int32 before you subtract.
# The check asks for {T} times the speed of a product with an int32 for each sign.


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
# Here a CPU does have a unit: xor and popcount work on 64 signs at once. Does that beat the float32 product of a good
# BLAS, which has had forty years of care? The same size, measured here:

# %%
words = [rng.integers(0, 2**64, (72, 64), dtype=np.uint64) for _ in range(2)]
numbers = [np.where(rng.random((72, 4096)) < 0.5, np.float32(1), np.float32(-1)) for _ in range(2)]
bits = timing.measure(journal.mine("binary_matmul"), {"a": words[0], "b": words[1], "k": 4096}).seconds
floats = timing.measure(lambda a, b: a @ b.T, {"a": numbers[0], "b": numbers[1]}).seconds
print(f"one bit a sign: {bits * 1e3:.2f} ms; float32, a product of BLAS: {floats * 1e3:.2f} ms")

# %% [markdown]
# They are not far apart: a thirty-second of the bits, and no more than that in time. NumPy passes over the words once
# for xor, once for counting and once for the sum, and BLAS does all it does in one go.
#
# A network has to be trained for signs. `network.binarize()` makes the inner dense layer binary, and leaves the first
# and the last one.

# %%
signs = network.binarize()
print(f"signs in the inner dense layer: {right(signs):.1%} right")
signs.fit(learn, epochs=3, batch_size=32, optimizer=nn.Adam(0.002), progress=False)
print(f"trained on:                     {right(signs):.1%} right")

# %% [markdown]
# How does a layer of signs learn? A sign does not change if its value changes a little. So its derivative is 0, and
# nothing would ever move. The way out is a lie that works: keep real weights, use their signs on the way forward, and
# on the way back pretend that the sign was not there, wherever the value lies between -1 and 1. That is called
# **straight-through** (Yoshua Bengio and others, 2013).
#
# ### Exercise: straight_through
#
# **More**, about 10 minutes.
#
# A binary layer computed y = sign(x) @ sign(weight).T. From the gradient by y, return those by x and by weight. A
# value of 0 counts as negative.


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
# One network in five forms: how many digits it gets right, the bytes of its weights, and the time for all held digits
# on your CPU. A pruned weight takes 8 bytes, 4 for its value and 4 for its place. The last two forms trained for three
# more epochs, from which float32 would have gained as well. And mind the axis: it does not begin at 0.

# %%
sizes = {number: layer.parameters["weight"].size for number, layer in enumerate(network.layers) if layer.parameters}
total, inner = sum(sizes.values()), sizes[7]
forms = {
    "float32": (network, 4 * total),
    "float16": (network.half(), 2 * total),
    "int8": (eight, total),
    "90 % pruned": (pruned, 8 * total // 10),
    "binary dense layer": (signs, 4 * (total - inner) + inner // 8),
}
rows = []
for name, (form, size) in forms.items():
    seconds = timing.measure(form.predict, {"images": held.images}).seconds
    rows.append({"name": name, "accuracy": right(form), "bytes": size, "seconds": seconds})
show.precision_front(rows, "One network, five forms, held digits")

# %% [markdown]
# And the same, recorded for a larger network that learned MNIST. The last three trained for one more epoch.

# %%
mnist = records.precision()
print(mnist)
networks = [row for row in mnist.rows.values() if row["section"] == "networks" and "percentile" not in row["name"]]
show.precision_front(networks, "MNIST, recorded, on a CPU", like=rows)

# %% [markdown]
# Read a picture from right to left: less and less memory. Down to int8 and pruning, hardly a digit is lost. Signs cost
# something: look at how many more are wrong. Then read the seconds. With NumPy, not one of the small forms is much
# faster than float32, and some are slower. (Small differences are noise: run it again.) What you gained is memory,
# which is a gain of its own: a network that fits into a phone, or into a cache.
#
# ## In your own words
#
# Answer in five to eight sentences.
#
# 1. float16 was slower than float32 on your CPU, and much faster on the H200. What is different? Give both numbers.
# 2. Why does training in float16 need a loss scale, and using a network not?
# 3. Nine weights of ten are 0. Why is the product not ten times as fast? Give a number from your notebook.

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_the_bits", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** NumPy has no product for float16: each number is turned into float32 and back, so it takes many
# times as long (the cell prints how many). The H200 has tensor cores, which multiply float16 directly and add in
# float32, so there it is several times faster (the cell prints the recorded factor). Bits buy speed only where a unit
# exists for them. Gradients are often below what float16 can hold and become 0, and then nothing is learned; the scale
# lifts them into its range. Weights and the values between layers are larger, so using the network needs no scale. The
# sparse product reads for each number where it belongs and jumps about in memory, while the full product runs in order
# through vector units; so with 90 % zeros it was only (the factor of my cell) times as fast.
#
# **Rubric** (3 points). One point: a unit that is there or not, with both numbers. One point: gradients become 0
# (underflow), while weights and activations do not. One point: looking up places, irregular access or missing units as
# the reason, with a number.
# ### END SOLUTION

# %% [markdown]
# ## What you have

# %%
journal.guesses()

# %% [markdown]
# In three sentences: A network needs far fewer bits than float32 gives it, if what it loses is watched: a loss scale
# for gradients, a scale for each channel, a little more training after pruning and for signs. A finished network with
# fewer bits always takes less memory. It takes less time only where somebody has built a unit for them and a library
# uses it, so measure before you promise.
#
# ### Stretch: FP8
#
# **More**, as long as you like.
#
# The newest units multiply floats of 8 bits. There are two formats: 4 bits of exponent and 3 of fraction for weights,
# 5 and 2 for gradients. Write `stored(x, exponent, fraction)` for arrays, which rounds to such a format. (Mind the
# subnormal numbers, and let the largest exponent hold infinity, as in float16.) Round the weights of the network to
# both formats. Which one loses less, in the mean error? Does a scale for each channel help as much as with int8?

# %%
# Your stretch. When your function is written, take away the # of the lines below and run.
#
# import copy
#
# for exponent, fraction in ((4, 3), (5, 2)):
#     small = copy.deepcopy(network)
#     small.parameters[...] = stored(small.parameters, exponent, fraction)
#     error = np.abs(small.parameters - network.parameters).mean()
#     print(exponent, fraction, f"mean error {error:.5f}, {right(small):.1%} right")
