# %% [markdown]
# # Backprop
#
# Lesson 04, about 130 minutes. A session of 90 minutes ends after the exercise `col2im`.
#
# **Afterwards you can**
#
# - walk a small network forward to its loss and backward to every gradient, by hand and in code;
# - tell a right gradient from a wrong one, even where the loss falls with both;
# - write a loss that never becomes NaN, and say why the obvious one does;
# - send gradients back through dense layers, convolutions and pooling, as fast as you went forward.
#
# **You need** the matrix product (lesson 01), `im2col` and the convolution as one product (lesson 02), and where a
# maximum came from (lesson 03). From school: the slope of a curve. Checks test one function alone. So an exercise that
# you left out stops you nowhere: where later cells need your function and you have none, they take the library's.
#
# Are you coming back after a restart? Choose *Run All Above* first: later cells use what earlier ones define.

# %%
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from unrolled import check, data, journal, ops, show, timing

check.start("04_backprop")
_ = threadpool_limits(1)  # matrices this small gain little from a second core, and lose much where others need it, too

digits = data.digits()
pixels, labels = digits.images.reshape(-1, 784), digits.labels

# %% [markdown]
# ## One number to make small
#
# A network turns an image into scores, one for each class. The **loss** says in one number how wrong these scores are.
# Training makes it smaller, step by step. For that we ask of every weight: if it grows a little, how much does the loss
# grow? The answer is the gradient of the loss **with respect to** that weight. We say the gradient *by* that weight for
# short. Then each weight moves a little against its gradient; how far, in
# proportion to it, is the **learning rate**.
#
# There may be a million weights, and we want the answer for all of them. The trick is to cut the computation from the
# weights to the loss into small steps, the nodes of a **computation graph**:
#
# - **Forward**, each node computes its output from its inputs.
# - **Backward**, each node is told how much the loss grows with its *output*. From that it works out how much the loss
#   grows with each of its *inputs*, and tells the nodes before it. That is all. This is the chain rule; in this order
#   it is called **backpropagation**.
#
# Below is such a graph with two samples of two numbers. An **affine** node is a dense layer: weights times inputs, plus
# a bias. A **ReLU** keeps a value above 0 and turns every other into 0. (The seminar of lesson 02 taught with such
# graphs, too.) Go to the first step, and then through all of them with the arrow keys. Compute the first number of each
# step yourself before you look at the third line.

# %%
small = {
    "x": [[1, 2], [2, -1]],
    "labels": [0, 1],
    "weights": ([[1, -1], [0.5, 1], [-1, 0.5]], [[0, 0.5, -1], [0.5, 1, 0.5]]),
    "biases": ([0.5, -0.5, 0.25], [0, 0]),
}
show.computation_graph(**small)

# %% [markdown]
# Three things to see.
#
# - A gradient always has the shape of what it belongs to.
# - Where the ReLU cut a value to 0, the gradient ends. Nothing that came before had any influence there.
# - A weight or bias takes part in *every* sample, so its gradient is a sum over samples. The loss is a mean over the N
#   samples. Its 1/N comes in once, at the very end of the graph, and is passed back from there to all other nodes.

# %% [markdown]
# ## Break a gradient
#
# The second slider breaks one line of the way back. Below, the gradient by bias 1 has the wrong sign, so each of these
# biases moves the wrong way in every step of training. What does the curve say? Then try the other breaks. Which of
# them would you have noticed?

# %%
show.computation_graph(**small, step=9, broken=1)

# %% [markdown]
# Only the last one, which turns *every* sign, sends the loss up. With all the others it falls as if nothing had
# happened. Where one sign is wrong, the weights that are right make up for it. Where 1/N is missing, each step is only
# twice as long, and the curve looks even better.
#
# Does the same hold for a real network? Here is one for digits: 784 pixels, a dense layer of 32, ReLU, 10 scores. The
# 32 values in between are a **hidden layer**: neither input nor output. We train it three times: with the right
# gradients, with the wrong sign in bias 1, and with the wrong sign in half of weight 1, so that 12,544 of its 25,088
# weights move uphill in every step. The code is the graph from above, node by node; you need not study it now.


# %%
def scores_of(parameters, x):
    """The scores (N, 10), and what the dense layers and the ReLU had on the way."""
    before = ops.affine(x, parameters["weight 1"], parameters["bias 1"])
    after = ops.relu(before)
    return ops.affine(after, parameters["weight 2"], parameters["bias 2"]), before, after


def loss_and_gradients(parameters, x, targets, loss_of=ops.softmax_cross_entropy):
    """Forward and backward through the network, node by node."""
    scores, before, after = scores_of(parameters, x)
    loss, grad = loss_of(scores, targets)
    grad, weight_2, bias_2 = ops.affine_backward(grad, after, parameters["weight 2"])
    grad = ops.relu_backward(grad, before)
    _, weight_1, bias_1 = ops.affine_backward(grad, x, parameters["weight 1"])
    return loss, {"weight 1": weight_1, "bias 1": bias_1, "weight 2": weight_2, "bias 2": bias_2}


def new_parameters(rng):
    """Small random weights, biases of 0."""
    shapes = {"weight 1": (32, 784), "bias 1": (32,), "weight 2": (10, 32), "bias 2": (10,)}
    return {name: (0.05 * rng.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}


# %%
def train(spoil=None, steps=300, learning_rate=0.1):
    """Train on mini-batches, 100 of 1,500 digits at a time; `spoil(gradients)` may break them: losses, accuracy."""
    rng = np.random.default_rng(0)
    parameters, losses = new_parameters(rng), []
    for _ in range(steps):
        batch = rng.integers(0, 1500, 100)
        loss, gradients = loss_and_gradients(parameters, pixels[batch], labels[batch])
        if spoil is not None:
            spoil(gradients)
        for name, gradient in gradients.items():
            parameters[name] -= learning_rate * gradient
        losses.append(float(loss))
    found = scores_of(parameters, pixels[1500:])[0].argmax(axis=1)
    return losses, (found == labels[1500:]).mean()


def wrong_bias(gradients):
    gradients["bias 1"] *= -1


def half_wrong(gradients):
    gradients["weight 1"][:16] *= -1


ways = {"right gradients": None, "wrong sign in bias 1": wrong_bias, "wrong sign in half of weight 1": half_wrong}
curves = {}
for name, spoil in ways.items():
    curves[name], accuracy = train(spoil)
    last = np.mean(curves[name][-10:])
    print(f"{name:31} the loss falls to {last:.2f}, and {accuracy:.1%} of 297 other digits are right")
show.losses(curves, title="784 pixels, 32, ReLU, 10 classes")

# %% [markdown]
# (Thin lines are single steps, bold ones the mean of ten.)
#
# Would you have found the error in the third curve? Nothing crashes, the loss falls, and the network reads most digits.
# You might publish it, or spend a week on learning rates. So a falling loss proves nothing. We need a judge that looks
# at the gradient itself.

# %% [markdown]
# ## The judge: try it
#
# The gradient by one number w is a slope. So try it: move w a little up and ask for the loss, then move it a little
# down and ask again. The difference between the losses, divided by the distance between the two points, is the slope.
# This needs no calculus, and it knows nothing of the code that it judges.
#
# ### Exercise: numeric_gradient
#
# **Core**, about 15 minutes.
#
# Do that for every number of an array. `function` takes an array of x's shape and returns one number. Two rules: move
# *one* number at a time, with all others where they were; and work on a copy, in float64, because the differences are
# small. `np.ndindex(x.shape)` visits every index, however many axes there are.
#
# The check hands you five functions whose gradients somebody derived by hand: once right, and once with a planted
# error. The errors are a sign, a missing 1/N, a transposed square matrix, a ReLU that lets everything through, and one
# number off by 1 %. The check compares both gradients with yours. Yours must agree with the right one to a millionth,
# so that none of the five errors gets away.


# %% nbgrader={"grade": false, "grade_id": "numeric_gradient", "locked": false, "schema_version": 3, "solution": true, "task": false}
def numeric_gradient(function, x, step=1e-5):
    """The gradient of function at x by central differences: float64, x's shape. About 7 lines.

    For each index: (function(x + step there) - function(x - step there)) / (2 * step). x stays as it is.
    """
    ### BEGIN SOLUTION
    x = np.array(x, dtype=np.float64)
    gradient = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += step
        down[index] -= step
        gradient[index] = (function(up) - function(down)) / (2 * step)
    return gradient
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_numeric_gradient", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.numeric_gradient(numeric_gradient)

# %% [markdown]
# Why step to both sides, and how large a step? Take exp at 1, whose slope is known, and look at the error. A step to
# one side only is wrong by about h/2 times the curvature, by which the slope itself changes. With a step to both sides
# that part cancels, and what is left shrinks with the square of h. But below some h, rounding takes over: we subtract
# two nearly equal numbers, and keep only the few digits in which they differ.

# %%
print("h        one side   both sides   both sides, float32")
for h in 10.0 ** -np.arange(1, 12, 2):
    one = (np.exp(1 + h) - np.exp(1)) / h
    both = (np.exp(1 + h) - np.exp(1 - h)) / (2 * h)
    up, down, h32 = np.float32(1 + h), np.float32(1 - h), np.float32(h)
    in_float32 = (np.exp(up) - np.exp(down)) / (2 * h32)
    print(f"{h:.0e}", *(f"{abs(slope - np.exp(1)) / np.exp(1):12.0e}" for slope in (one, both, in_float32)))

# %% [markdown]
# Near h = 0.00001 a slope to both sides has about ten right digits in float64, and hardly two in float32. So judge in
# float64, even if you train in float32. Differences below a millionth are fine. Above a thousandth, there is an error.
# In between, look closer: perhaps a ReLU has its kink, the place where its slope jumps from 0 to 1, between the two
# points.
#
# Now the wrong sign from before. Your own function is the judge, if its check has passed:


# %%
def distance(gradient, judge):
    """The largest difference, relative to the judge's largest value."""
    return np.abs(gradient - judge).max() / np.abs(judge).max()


judge_by_trying = journal.mine("numeric_gradient")
exact = {name: values.astype(np.float64) for name, values in new_parameters(np.random.default_rng(1)).items()}
few = pixels[:20].astype(np.float64), labels[:20]
_, gradients = loss_and_gradients(exact, *few)
wrong_bias(gradients)
for name in ("bias 1", "weight 2", "bias 2"):

    def loss(values, name=name):
        return loss_and_gradients(exact | {name: values}, *few)[0]

    off = distance(gradients[name], judge_by_trying(loss, exact[name]))
    print(f"{name:9} {off:.0e} {'wrong!' if off > 1e-3 else 'right'}")

# %% [markdown]
# If trying is so simple, why derive gradients at all? Because trying asks for the loss twice for *each* weight. We left
# weight 1 out just now, because it has 25,088 of them. Backprop gets all gradients in one walk back. How many times
# faster is that, for the 25,450 parameters of this small network?

# %%
journal.predict("backprop", ...)  # your guess: how many times faster than trying every weight?

# %%
parameters = new_parameters(np.random.default_rng(1))
batch = {"parameters": parameters, "x": pixels[:100]}
forward = timing.measure(scores_of, batch).seconds
both_ways = timing.measure(loss_and_gradients, batch | {"targets": labels[:100]}).seconds
count = sum(values.size for values in parameters.values())
trying = 2 * count * forward
journal.measured("backprop", trying / both_ways)
print(f"one step with backprop: {both_ways * 1e3:.2f} ms")
print(f"one step by trying {count:,} parameters twice: {trying:.1f} s, {trying / both_ways:,.0f} times as long")

# %% [markdown]
# So the work is divided for the rest of the course: backprop trains, and the numeric gradient judges backprop, on a few
# numbers of a tiny network.

# %% [markdown]
# ## Back through a dense layer
#
# Forward, y = x @ weight.T + bias. One output of one sample, y[n, m], is a sum: x[n, 0] weight[m, 0] + x[n, 1]
# weight[m, 1] + … + bias[m]. So y[n, m] grows with x[n, d] as much as weight[m, d] says, with weight[m, d] as much as
# x[n, d] says, and with bias[m] one to one. Multiply each by how much the loss grows with y[n, m], which is grad[n, m].
# Where a value takes part in several outputs, its shares add up.
#
# ### Exercise: affine_backward
#
# **Core**, about 12 minutes.
#
# Write the three gradients as two products and a sum. Let the shapes lead you: each gradient has the shape of what it
# belongs to, and often only one product fits. (One case has all sizes 4, where every product fits.)


# %% nbgrader={"grade": false, "grade_id": "affine_backward", "locked": false, "schema_version": 3, "solution": true, "task": false}
def affine_backward(grad, x, weight):
    """The way back through y = x @ weight.T + bias. About 4 lines.

    grad (N, M) is the gradient by y; x is (N, D), weight (M, D).
    Return grad_x (N, D), grad_weight (M, D), grad_bias (M,).
    """
    ### BEGIN SOLUTION
    grad_x = grad @ weight
    grad_weight = grad.T @ x
    grad_bias = grad.sum(axis=0)
    return grad_x, grad_weight, grad_bias
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_affine_backward", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.affine_backward(affine_backward)

# %% [markdown]
# Forward was one matrix product, and backward is two of the same size. That holds for convolutions as well. So a step
# of training takes about three times the multiplications of using the network.
#
# The ReLU is shorter still: `grad * (x > 0)`. It needs its input x once more, and so do the dense layers. This is why
# training needs so much memory: what came in on the way forward must be kept for the way back.

# %% [markdown]
# ## A loss that turns into NaN
#
# **Softmax** turns scores into probabilities: exp(score), divided by the sum of all exp in the row. The **cross
# entropy** is minus the logarithm of the probability of the right class: 0 if the network is sure and right, large if
# it is sure and wrong.
#
# Some write the right class as a row of floats, **one-hot**: 1 in its place, 0 elsewhere. Then the loss is
# -(one_hot * log(p)).sum(), which looks harmless. Here it is, with its way back by the chain rule, in the network from
# before. The learning rate is bold, and the pixels are ten times as large, so that the network becomes sure of itself
# after a few hundred steps. (Momentum adds up steps, as a ball gathers speed. Lesson 05 says more about it.)


# %%
def one_hot_cross_entropy(scores, one_hot):
    """The obvious way. one_hot is (N, 10), floats."""
    p = ops.softmax(scores)
    loss = -(one_hot * np.log(p)).sum() / len(p)
    grad_p = -one_hot / p / len(p)
    return loss, ops.softmax_backward(grad_p, p)


def train_boldly(loss_of, targets, steps=500, learning_rate=0.02, momentum=0.9):
    """Losses of training with large steps, and the share of right answers in each batch."""
    rng = np.random.default_rng(6)
    parameters, losses, correct = new_parameters(rng), [], []
    speed = {name: np.zeros_like(values) for name, values in parameters.items()}
    for _ in range(steps):
        batch = rng.integers(0, 1500, 100)
        with np.errstate(all="ignore"):  # NumPy would warn of what is about to happen
            loss, gradients = loss_and_gradients(parameters, 10 * pixels[batch], targets[batch], loss_of)
            found = scores_of(parameters, 10 * pixels[batch])[0].argmax(axis=1)
            for name, gradient in gradients.items():
                speed[name] = momentum * speed[name] - learning_rate * gradient
                parameters[name] += speed[name]
        losses.append(float(loss))
        correct.append((found == labels[batch]).mean())
    return losses, correct


# %%
one_hot = np.eye(10, dtype=np.float32)[labels]
trapped, correct = train_boldly(one_hot_cross_entropy, one_hot)
died = int(np.argmin(np.isfinite(trapped)))
print(f"right in the ten batches before step {died}: {np.mean(correct[died - 10 : died]):.0%}")
print(f"the loss in step {died}: {trapped[died]}")
print(f"right in the last ten batches: {np.mean(correct[-10:]):.0%}")
show.losses({"one-hot floats": trapped}, title="sure of itself, and then gone")

# %% [markdown]
# It learned well, and then everything was NaN, all weights included. (`argmax` takes the first NaN of a row for its
# largest value. So every digit is read as a 0, and what is right by then are the zeros among the digits.)
#
# The author of an article on a CNN for CIFAR-10 (with Theano, 2015) met this trap late in training; integer labels
# cured it. Here is the whole accident in one row. The network is right, and so sure that the two other
# classes have probability 0: exp(-117) is too small for float32.

# %%
sure = np.array([[120, 3, 0]], np.float32)
with np.errstate(all="ignore"):
    p = ops.softmax(sure)
    print("p                ", p)
    print("log(p)           ", np.log(p))
    print("one_hot * log(p) ", np.array([[1, 0, 0]]) * np.log(p), "  since 0 * -inf is not a number")

# %% [markdown]
# The cure has two parts.
#
# 1. **Labels are integers.** We need one logarithm of each row, that of the right class. With its number we pick it,
#    and never touch the others: no 0 times anything.
# 2. **Log-sum-exp.** The right class, too, can have probability 0. So never take the logarithm of a probability. Write
#    the formula out before you compute: log(exp(s) / sum) = s - log(sum). What is left is the logarithm of a sum.
#    Before that, subtract the largest score of the row from all of its scores, which changes no probability. Then the
#    largest exp is 1: nothing overflows, the sum is at least 1, and its logarithm is never -inf.

# %%
cured, correct = train_boldly(ops.softmax_cross_entropy, labels)
print(f"right in the last ten batches: {np.mean(correct[-10:]):.0%}")
show.losses({"one-hot floats": trapped, "integer labels": cured}, title="the same network, the same steps")

# %% [markdown]
# The way back is short as well, if we go through both nodes at once. Take one sample whose right class is k, and
# write p for its probabilities:
#
# 1. The loss is -log(p[k]) = log(Σ exp(s[j])) - s[k].
# 2. The slope of log(u) is 1/u, and the slope of Σ exp(s[j]) by the score s[i] is exp(s[i]).
# 3. So the first part has, by the chain rule, the slope exp(s[i]) / Σ exp(s[j]), which is p[i] again.
# 4. The second part has the slope -1 where i is k, and 0 elsewhere. Together: p[i] - one_hot[i].
#
# The loss is the mean over N samples, so the gradient is (p - one_hot) / N. Nothing is divided by p. Do not believe the
# four lines; ask the judge:

# %%
rng = np.random.default_rng(0)
some_scores, right = 3 * rng.standard_normal((4, 10)), np.array([3, 0, 9, 3])
derived = (ops.softmax(some_scores) - np.eye(10)[right]) / len(some_scores)
tried = judge_by_trying(lambda scores: ops.softmax_cross_entropy(scores, right)[0], some_scores)
print(f"derived and tried differ by {distance(derived, tried):.0e} of the largest value")

# %% [markdown]
# ### Exercise: softmax_cross_entropy
#
# **Core**, about 20 minutes.
#
# Write the cured loss, and its gradient by the scores. `scores[np.arange(n), labels]` picks one score from each row;
# `keepdims=True` keeps the axis that `max` would drop. Mind the shapes in the loss: (N, 1) minus (N,) is (N, N), with
# the right mean and N times the work. The check tries scores of 1,000, scores of -1,000, and a network so sure and so
# wrong that the loss of a sample is 200, and not infinity. `scores` must stay as it is.


# %% nbgrader={"grade": false, "grade_id": "softmax_cross_entropy", "locked": false, "schema_version": 3, "solution": true, "task": false}
def softmax_cross_entropy(scores, labels):
    """-log of the probability that softmax(scores) gives to the labels, mean over N. About 8 lines.

    scores is (N, M), labels (N,) integers from 0 to M - 1. Return loss, grad: a number, and its gradient (N, M).
    """
    ### BEGIN SOLUTION
    rows = np.arange(len(scores))
    shifted = scores - scores.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    sums = exponentials.sum(axis=1)
    loss = (np.log(sums) - shifted[rows, labels]).mean()
    grad = exponentials / sums[:, None]
    grad[rows, labels] -= 1
    return loss, grad / len(scores)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_softmax_cross_entropy", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.softmax_cross_entropy(softmax_cross_entropy)

# %% [markdown]
# ## Columns back into an image
#
# Lesson 02 made a convolution of two steps: `im2col` copies every window into a column, and then comes a dense layer
# on the columns. We know the way back through a dense layer. What is the way back through a copy?
#
# A pixel that was copied into four columns acts in four places. So its gradient is the sum of the four. To go back
# through `im2col`, put each column back where its window stood, and *add*. This is called `col2im`, columns to image.
# Step through it: each column here holds ones, so in the end each pixel says in how many windows it lies.

# %%
show.col2im(np.ones((9, 9)), size=(5, 5), kernel_size=3)

# %% [markdown]
# So `col2im` is not the inverse of `im2col`. There and back again multiplies each pixel by the number of its windows.
#
# Written window by window, as in the picture, this is a loop of 6,272 trips for 8 digits. How many times faster will it
# be without a loop over windows? (The check takes 16 images of two channels.)

# %%
journal.predict("col2im", ...)  # your guess

# %% [markdown]
# ### Exercise: col2im
#
# **Core**, about 20 minutes.
#
# Add every column back. The check asks for at least {T} times the speed of the loop over windows. Go by the places
# *inside* the window, as `ops.im2col` does: for a 3 x 3 kernel there are only nine. All the values of place (i, j)
# together are a grid, one value a window, and it belongs onto the image shifted by (i, j), every `stride` pixels.
#
# Rows of `columns` run over (C, KH, KW), its columns over (N, OH, OW). Padding was put around the image before
# `im2col` took it apart, so add into a padded image, and cut the border off at the end. A grid comes as (C, N, OH, OW),
# and the image has N first: swap these two axes. You may use {allows}.


# %% nbgrader={"grade": false, "grade_id": "col2im", "locked": false, "schema_version": 3, "solution": true, "task": false}
def col2im(columns, x_shape, kernel_size, stride=1, padding=0):
    """Add every column back where im2col took it from: an array of x_shape, columns' dtype. About 10 lines.

    columns is (C*KH*KW, N*OH*OW), x_shape (N, C, H, W), kernel_size (KH, KW).
    `ops.conv2d_output_size(size, kernel_size, stride, padding)` gives (OH, OW).
    """
    ### BEGIN SOLUTION
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    columns = columns.reshape(c, kh, kw, n, oh, ow)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), dtype=columns.dtype)
    for i in range(kh):
        for j in range(kw):
            rows, places = slice(i, i + stride * oh, stride), slice(j, j + stride * ow, stride)
            x[:, :, rows, places] += columns[:, i, j].swapaxes(0, 1)
    return x[:, :, padding : padding + h, padding : padding + w]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_col2im", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.col2im(col2im)

# %% [markdown]
# These are the same additions, in nine large steps instead of thousands of small ones. As in lesson 03: with an array
# of indices, `x[places] += columns` writes a pixel once even if it comes twice. What adds up is a slice, in which no
# pixel comes twice, or `np.add.at`.

# %%
pixel = np.zeros(3)
pixel[[0, 1, 1]] += 1
print("three times += 1 :", pixel)
pixel = np.zeros(3)
np.add.at(pixel, [0, 1, 1], 1)
print("with np.add.at   :", pixel)

# %% [markdown]
# ## Back through a convolution
#
# Each output was its window times the kernel, added up. So the gradient g by that output goes two ways: g times the
# kernel to the pixels of the window, and g times the window to the kernel. Whatever meets in one place adds up. Step
# through it, with the image and kernel of lesson 02's seminar, and check one number of each sum yourself:

# %%
seminar = [[1, 1, 2, 0], [0, 2, 1, 3], [2, 0, 1, 2], [3, 2, 0, 1]]
show.conv2d_backward(seminar, [[2, 0, 1], [0, 2, 1], [1, 0, 1]], grad=[[1, -2], [0, 3]])

# %% [markdown]
# All outputs at once are again two products and a `col2im`. Forward, with the filters as rows W (O, C·KH·KW):
#
# | forward | backward |
# | --- | --- |
# | columns = im2col(x) | grad_x = col2im(grad_columns) |
# | y = W @ columns | grad_W = grad @ columns.T, grad_columns = W.T @ grad |
# | y + bias, a number for each filter | grad_bias = the sum of grad over all its outputs |
# | (O, N, OH, OW) becomes (N, O, OH, OW) | (N, O, OH, OW) becomes (O, N, OH, OW) |
#
# Read the left side from top to bottom, and the right side from bottom to top.
#
# ### Exercise: conv2d_backward
#
# **Core**, about 15 minutes.
#
# `grad` comes as (N, O, OH, OW), and the products want rows (O, N·OH·OW). A `reshape` alone would mix up images and
# filters: swap the first two axes before it.


# %% nbgrader={"grade": false, "grade_id": "conv2d_backward", "locked": false, "schema_version": 3, "solution": true, "task": false}
def conv2d_backward(grad, x, weight, stride=1, padding=0):
    """The way back through conv2d: grad_x, grad_weight, grad_bias. About 8 lines.

    grad is (N, O, OH, OW), x (N, C, H, W), weight (O, C, KH, KW). Each gradient has the shape of its own; bias is (O,).
    Use `ops.im2col(x, kernel_size, stride, padding)` and `ops.col2im(columns, x_shape, kernel_size, stride, padding)`.
    """
    ### BEGIN SOLUTION
    o, kernel_size = len(weight), weight.shape[2:]
    rows = grad.swapaxes(0, 1).reshape(o, -1)  # (O, N*OH*OW)
    columns = ops.im2col(x, kernel_size, stride, padding)  # (C*KH*KW, N*OH*OW)
    grad_weight = (rows @ columns.T).reshape(weight.shape)
    grad_columns = weight.reshape(o, -1).T @ rows
    grad_x = ops.col2im(grad_columns, x.shape, kernel_size, stride, padding)
    return grad_x, grad_weight, rows.sum(axis=1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_conv2d_backward", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.conv2d_backward(conv2d_backward)

# %% [markdown]
# Once it is right, it becomes a rung of your ladder: the way back through the layer of lesson 02, for MNIST's 60,000
# images. The next cell adds a rung to compare it with, whose `col2im` goes window by window. We need not write that
# one: take the time of the whole, subtract the fast `col2im`, and add the slow one.

# %%
rng = np.random.default_rng(0)
layer = {"x": digits.images[:8], "weight": rng.standard_normal((10, 1, 3, 3), dtype=np.float32), "padding": 1}
back = layer | {"grad": rng.standard_normal((8, 10, 28, 28), dtype=np.float32)}
fold = {"columns": rng.standard_normal((9, 6272), dtype=np.float32), "x_shape": (8, 1, 28, 28), "kernel_size": 3}
fold["padding"] = 1

backward = timing.measure(ops.conv2d_backward, back).seconds
slower_by = timing.measure(ops.col2im_loops, fold).seconds - timing.measure(ops.col2im, fold).seconds
times = {
    "forward": timing.measure(ops.conv2d, layer).seconds,
    "backward": backward,
    "backward, window by window": backward + slower_by,
}
work = "convolution backward only, x 60,000 images"
journal.rung("backward, window by window", work, (backward + slower_by) / 8 * 60_000, batch=8)
show.bars({name: seconds / 8 for name, seconds in times.items()}, "s", title="one digit through one layer")

# %% [markdown]
# ## Back through pooling
#
# Max-pooling kept the largest pixel of each window. The others do not matter: if one of them were a little larger, the
# output would be the same. So the whole gradient by an output goes to the pixel that its maximum came from, and all the
# others get 0.
#
# You have done that before. Lesson 03 put values back where the maxima came from, and did not say what for.
#
# ### Exercise: max_pool2d_backward
#
# **More**, about 8 minutes.
#
# Send the gradient back, with two calls of the library. Of equal maxima the first one gets all of it (after a ReLU,
# ties at 0 are everywhere). Where windows overlap, what meets on a pixel adds up.


# %% nbgrader={"grade": false, "grade_id": "max_pool2d_backward", "locked": false, "schema_version": 3, "solution": true, "task": false}
def max_pool2d_backward(grad, x, kernel_size, stride=None, padding=0):
    """The way back through max_pool2d: grad_x (N, C, H, W). About 2 lines.

    grad is (N, C, OH, OW), x (N, C, H, W). `ops.max_pool2d_indices(x, kernel_size, stride, padding)` says where the
    maxima are; `ops.max_unpool2d(values, indices, size)` puts values there, with size (H, W).
    """
    ### BEGIN SOLUTION
    indices = ops.max_pool2d_indices(x, kernel_size, stride, padding)
    return ops.max_unpool2d(grad, indices, x.shape[2:])
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_max_pool2d_backward", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.max_pool2d_backward(max_pool2d_backward)

# %% [markdown]
# ## All of it, once
#
# These are all the parts of a convolutional network: convolution, ReLU, pooling, dense layer, loss. The lines of the
# way back mirror those of the way forward. Every part that you have written, here or in lessons 01 to 03, is your own
# code, if its check passed; the printed lines say whose each is. ReLU is the library's, and so is what the parts call
# inside: `im2col`, `col2im`, unpooling. First the judge looks at the whole, in float64 and on two images; then it
# trains.

# %%
conv2d, max_pool2d, affine = journal.mine("conv2d_gemm", "max_pool2d", "batch_affine")
loss_of_scores, affine_back = journal.mine("softmax_cross_entropy", "affine_backward")
conv2d_back, max_pool2d_back = journal.mine("conv2d_backward", "max_pool2d_backward")


def cnn(filters, weight, bias, x, labels):
    """Forward and backward through a small CNN: the loss, and the gradients by filters, weight and bias."""
    convolved = conv2d(x, filters, padding=1)
    active = ops.relu(convolved)
    pooled = max_pool2d(active, 2)
    flat = pooled.reshape(len(x), -1)
    loss, grad = loss_of_scores(affine(flat, weight, bias), labels)

    grad, grad_weight, grad_bias = affine_back(grad, flat, weight)
    grad = max_pool2d_back(grad.reshape(pooled.shape), active, 2)
    grad = ops.relu_backward(grad, convolved)
    _, grad_filters, _ = conv2d_back(grad, x, filters, padding=1)
    return loss, grad_filters, grad_weight, grad_bias


# %%
rng = np.random.default_rng(0)
filters = 0.3 * rng.standard_normal((8, 1, 3, 3), dtype=np.float32)
weight, bias = 0.02 * rng.standard_normal((10, 8 * 14 * 14), dtype=np.float32), np.zeros(10, np.float32)

wide = [array.astype(np.float64) for array in (weight, bias, digits.images[:2])]
tried = judge_by_trying(lambda values: cnn(values, *wide, labels[:2])[0], filters)
print(f"the judge: {distance(cnn(filters.astype(np.float64), *wide, labels[:2])[1], tried):.0e}")

losses, start = [], perf_counter()
while len(losses) < 200 and perf_counter() < start + 20:  # a pooling that visits every window alone takes long
    batch = rng.integers(0, 1500, 64)
    loss, *gradients = cnn(filters, weight, bias, digits.images[batch], labels[batch])
    for parameter, gradient in zip((filters, weight, bias), gradients, strict=True):
        parameter -= 0.05 * gradient
    losses.append(float(loss))
seconds = perf_counter() - start
print(
    f"{len(losses)} steps of 64 digits: {seconds:.1f} s; the loss fell from {losses[0]:.2f} to {np.mean(losses[-10:]):.2f}"
)
show.losses({"a CNN of these parts": losses}, title="8 filters of 3 x 3, pooling, 10 classes")

# %% [markdown]
# A few lines, a loop, and it learns to read digits. Lesson 05 turns these lines into layers, so that you can build any
# network from them, and asks how good it gets.

# %% [markdown]
# ## In your own words
#
# A colleague says: "I need no gradient check. The loss went down, so the gradients are right." Answer in four to six
# sentences, with the numbers that you measured in this lesson.
#
# 1. What did the loss and the accuracy do with wrong signs, and why did training work all the same?
# 2. What does the numeric gradient see that the loss curve does not?
# 3. Why not train with it, then? Say how many times longer a step would take, and how that grows with the network.

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_gradient_check", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** With the sign of half of weight 1 turned, my loss fell almost as far as with the right gradients,
# and nearly as many of the 297 other digits were right; with the sign of bias 1 turned I saw hardly any difference (the
# three lines printed by the cell of *Break a gradient*; I name both numbers of each). Training works all the same
# because the rest of the gradient is right. A step still goes downhill as long as the wrong gradient points roughly
# along the right one, and the layer above learns to make do with what it gets. The numeric gradient looks at each
# number by itself, so a wrong one cannot hide behind the others: bias 1 was off by twice the largest value, while the
# right gradients agreed to about eight digits, and an error of 1 % in one number would show as well. But it needs two
# forward passes for each parameter. For the 25,450 of this small network a step took as many times longer than backprop
# as my cell *one step by trying* printed, and with twice the parameters the factor doubles. So I check a tiny network
# once, and train with backprop.
#
# **Rubric** (3 points). One point: the loss fell all the same, with a measured number, and the reason (most of the
# gradient was still right, so the step still went downhill). One point: the check compares each gradient value by
# itself, so a wrong one cannot hide behind the others. One point: two forward passes for each parameter, with the
# measured factor, which grows with the number of parameters. Half a point off if no measured number is named; the
# learner's own cells print theirs, so compare with those.
# ### END SOLUTION

# %% [markdown]
# ## What you have
#
# Compare rungs of one heading only.

# %%
journal.ladder()

# %%
journal.guesses()

# %% [markdown]
# In three sentences: Each node of a graph turns the gradient by its output into the gradients by its inputs, so one
# walk back gives them all, for about twice the multiplications of a walk forward. A falling loss does not prove a
# gradient right; trying does, in float64 and to both sides. Where forward copies, backward adds up, and where forward
# chooses, backward goes to the chosen one: that is all of `col2im` and of pooling.
#
# ### Stretch: a tape
#
# **More**, as long as you like.
#
# You wrote the way back by hand, in the reverse order of the way forward. A **tape** does that by itself: each
# operation notes what it was made of and how to go back, and `backward` reads the notes from the end. Below are thirty
# lines of it, for + and * of numbers or arrays of one shape. PyTorch is, at heart, the same idea.


# %%
class Value:
    """An array that remembers what it was made of."""

    def __init__(self, data, parents=(), back=lambda grad: ()):
        self.data = np.asarray(data, np.float64)
        self.parents, self.back = parents, back  # back(grad) gives a gradient for each parent
        self.grad = np.zeros_like(self.data)

    def __add__(self, other):
        return Value(self.data + other.data, (self, other), lambda grad: (grad, grad))

    def __mul__(self, other):
        return Value(self.data * other.data, (self, other), lambda grad: (grad * other.data, grad * self.data))

    def backward(self):
        """Fill .grad of everything that this value was made of."""
        order, seen = [], set()

        def visit(value):  # parents first
            if id(value) not in seen:
                seen.add(id(value))
                for parent in value.parents:
                    visit(parent)
                order.append(value)

        visit(self)
        self.grad = np.ones_like(self.data)
        for value in reversed(order):
            for parent, grad in zip(value.parents, value.back(value.grad), strict=True):
                parent.grad = parent.grad + grad  # a value used twice gets both shares


a, b = Value(3.0), Value(4.0)
y = a * b + a * a
y.backward()
print(f"y = ab + a²: by a {a.grad:g}, and 2a + b is {2 * 3 + 4}; by b {b.grad:g}, and a is 3")

# %% [markdown]
# Teach it what a network needs: `affine(x, weight, bias)`, `relu(x)` and `cross_entropy(scores, labels)`, each a
# function of some three lines that returns a Value. You have all the ways back already. The test below is the judge.
# With what stands there already it is about 60 lines. Then go on: `conv2d` and `max_pool2d` are two more.

# %%
# Your stretch. When the three functions are written, take away the # of the lines below and run.
#
# rng = np.random.default_rng(0)
# start = {"weight 1": rng.standard_normal((5, 6)), "bias 1": rng.standard_normal(5)}
# start |= {"weight 2": rng.standard_normal((3, 5)), "bias 2": rng.standard_normal(3)}
# samples, classes = rng.standard_normal((4, 6)), np.array([0, 2, 1, 2])
#
# def tape_loss(values):
#     hidden = relu(affine(Value(samples), values["weight 1"], values["bias 1"]))
#     return cross_entropy(affine(hidden, values["weight 2"], values["bias 2"]), classes)
#
# values = {name: Value(array) for name, array in start.items()}
# tape_loss(values).backward()
# for name in start:
#     def loss(array, name=name):
#         return tape_loss({other: Value(start[other]) for other in start} | {name: Value(array)}).data
#     off = distance(values[name].grad, ops.numeric_gradient(loss, start[name]))
#     print(f"{name:9} {off:.0e} {'right' if off < 1e-6 else 'wrong!'}")
