# %% [markdown]
# # Train a CNN
#
# Lesson 05, about 125 minutes. A session of 90 minutes ends after the exercise `evaluate`.
#
# **Afterwards you can**
#
# - put layers in a row, and send a batch forward and its gradient back;
# - say what a mini-batch, an epoch, momentum, weight decay and Adam are, and write most of them yourself;
# - tell from the first loss, and from ten images, whether a network can learn at all;
# - train a convolutional network on real images, watch it, and stop in time;
# - evaluate on more images than fit into memory;
# - say what one epoch of MNIST costs on your machine.
#
# **You need** the gradients of lesson 04, as an idea. No exercise here needs one that you left out before: layers and
# losses come from the library.
#
# Are you coming back after a restart? Choose *Run All Above* first: later cells use what earlier ones define.

# %%
import tracemalloc
from itertools import islice
from time import perf_counter
from types import SimpleNamespace

import numpy as np
from threadpoolctl import threadpool_limits

from unrolled import check, data, journal, nn, ops, show, timing

check.start("05_train_a_cnn")
_ = threadpool_limits(1)  # matrices this small gain little from a second core, and lose much where others need it, too

# %% [markdown]
# ## The data
#
# Change one word below and the whole lesson runs on other images: `"mnist"`, `"fashion_mnist"` or `"cifar10"`. Those
# are downloaded once (12, 31 and 170 MB), and an epoch takes much longer. Begin with `"digits"`.
#
# We need three sets that share no image. The network learns from **training** images. While it learns, we look at its
# loss on **validation** images, and decide by them what to change and when to stop. The **test** images are for the
# end: a number that guided a decision is no longer an honest estimate.

# %%
DATA = "digits"

known, test = data.load(DATA)
train_set, validation = known.split(train=len(known) * 4 // 5)
shape = known.images.shape[1:]
print(f"{len(train_set):,} to train, {len(validation):,} to validate, {len(test):,} to test; each {shape}")

# %% [markdown]
# ## Layers in a row
#
# A layer has two methods. `layer.forward(x, training)` turns a **batch**, several images in one array, into another
# batch. `layer.backward(grad)` takes the gradient of the loss with respect to (*by*, for short) what left the layer,
# and returns the gradient by what came in. On the way it notes the gradient by its own weights. That is all a network
# needs to know of a layer.
#
# Here are the layers of the network from lesson 00's article, which took 30 minutes an epoch. Between the pictures and
# the ten scores lies a **hidden layer**: 100 values that are neither input nor output. `summary` pushes a shape through
# the network.


# %%
def new_network(seed=0, **options):
    """The article's network: 10 filters of 3 x 3, then a hidden layer of 100 values, then 10 scores."""
    return nn.Sequential(
        nn.Conv2d(10, 3, padding=1, **options),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(100, **options),
        nn.ReLU(),
        nn.Linear(10, **options),
        seed=seed,
    )


print(new_network().summary(shape))

# %% [markdown]
# Look at `parameters` and `multiply-adds` (for one image; `bytes` is the size of what a layer gives). The convolution
# has a hundred parameters and does about a quarter of the work; the first dense layer has nearly all the parameters.
# That is typical, and it matters later, when we ask what is slow.
#
# ### Exercise: sequential_forward
#
# **Core**, about 4 minutes.
#
# Send a batch through all layers. Pass the word `training` on to each of them: in training a layer keeps what its way
# back will need, and some layers (dropout, which comes later) behave differently than in use.


# %% nbgrader={"grade": false, "grade_id": "sequential_forward", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sequential_forward(layers, x, training=False):
    """Return what the last layer gives for the batch x. About 3 lines.

    layers is a tuple; each has layer.forward(x, training).
    """
    ### BEGIN SOLUTION
    # body of unrolled.checks.exercises.l05_train_a_cnn.exercises.forward
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_sequential_forward", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.sequential_forward(sequential_forward)

# %% [markdown]
# ### Exercise: sequential_backward
#
# **Core**, about 5 minutes.
#
# And back. `grad` is the gradient of the loss by the scores. Which layer gets it first?


# %% nbgrader={"grade": false, "grade_id": "sequential_backward", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sequential_backward(layers, grad):
    """Return what the first layer gives: the gradient of the loss by the network's input. About 3 lines.

    layers is a tuple; each has layer.backward(grad).
    """
    ### BEGIN SOLUTION
    # body of unrolled.checks.exercises.l05_train_a_cnn.exercises.backward
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_sequential_backward", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.sequential_backward(sequential_backward)

# %% [markdown]
# That is all of backpropagation through a network, once its layers know their own part. `nn.Sequential` does just this,
# with one saving: nobody asks for the gradient by the images, so its first layer leaves it out and returns None. And it
# does one thing more. It lays all weights out in one flat array, `network.parameters`, and all gradients in another,
# `network.gradients`, in the same order. An optimizer then needs a few array operations for the whole network, however
# many layers there are.

# %% [markdown]
# ## A mini-batch is a cheap opinion
#
# The gradient over all training images would be the right one to follow. But it costs a pass over all images, for a
# single step. A few images drawn at random are a **mini-batch**. Their gradient is another, but leans the same way, for
# a small part of the price. How far does it lean? The cosine of the angle between the two tells: 1 is the same direction,
# 0 a right angle.


# %%
def gradient_of(network, images, labels):
    """The gradient by all parameters: (P,)."""
    _, grad = ops.softmax_cross_entropy(network.forward(images, training=True), labels)
    network.backward(grad)
    return network.gradients.copy()


def cosine(a, b):
    """The cosine of the angle between a and b."""
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


fresh, some = new_network(), data.Dataset(train_set.images[:1200], train_set.labels[:1200])
full = gradient_of(fresh, some.images, some.labels)
for size in (1, 8, 32, 128):
    batches = islice(data.minibatches(some, size, seed=0), 20)
    agreement = np.median([cosine(gradient_of(fresh, *batch), full) for batch in batches])
    print(f"{size:4} images: cosine {agreement:.2f} with the gradient of all {len(some):,}")

# %% [markdown]
# A single image is a poor guide. Each line costs several times what the one above it costs, and agrees better; but it
# gains less each time. So we take small mini-batches, make a step after each, and call it an **epoch** when every image
# has been used once.
#
# Why shuffle? Data often comes sorted. A batch of nothing but zeros has a firm opinion: everything is a zero. The next
# batch, of ones, takes it back. And a new order in each epoch gives each image new company.
#
# ### Exercise: minibatches
#
# **Core**, about 10 minutes.
#
# Hand out every image once, with its label, in an order that `seed` decides. What is left over at the end makes a
# smaller last batch. With `yield` in place of `return`, a function hands out one batch, waits until it is asked for the
# next, and goes on: no second copy of all images is made.


# %% nbgrader={"grade": false, "grade_id": "minibatches", "locked": false, "schema_version": 3, "solution": true, "task": false}
def minibatches(images, labels, batch_size, seed):
    """Yield (images, labels) of each mini-batch; images (N, C, H, W), labels (N,). About 4 lines.

    np.random.default_rng(seed).permutation(n) holds each of 0 to n - 1 once, shuffled.
    """
    ### BEGIN SOLUTION
    order = np.random.default_rng(seed).permutation(len(images))
    for start in range(0, len(images), batch_size):
        chosen = order[start : start + batch_size]
        yield images[chosen], labels[chosen]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_minibatches", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.minibatches(minibatches)

# %% [markdown]
# ## Ways down
#
# A gradient says which way is up, here. It does not say how far to go. Take a network of only two weights, whose loss
# is a long, narrow valley: steep across, nearly flat along. Loss surfaces of real networks have many such valleys.


# %%
def valley(x, y):
    """A loss: steep across the line y = x / 3, flat along it. Its minimum is at (0, 0)."""
    return 0.05 * x**2 + 2 * (y - x / 3) ** 2


def slope(weights):
    """Its gradient."""
    x, y = weights
    return np.array([0.1 * x - 4 / 3 * (y - x / 3), 4 * (y - x / 3)])


def path(optimizer, steps=60):
    """Where an optimizer goes from (-8, 2): (steps + 1, 2)."""
    weights = np.array([-8.0, 2.0])
    points = [weights.copy()]
    for _ in range(steps):
        optimizer.step(weights, slope(weights))
        points.append(weights.copy())
    return np.array(points)


rates = (0.01, 0.03, 0.1, 0.3, 1.0)
paths = {
    "SGD": {rate: path(nn.SGD(rate)) for rate in rates},
    "SGD, momentum 0.7": {rate: path(nn.SGD(rate, momentum=0.7)) for rate in rates},
    "SGD, momentum 0.9": {rate: path(nn.SGD(rate, momentum=0.9)) for rate in rates},
    "Adam": {rate: path(nn.Adam(rate)) for rate in rates},
}
show.optimizer_paths(valley, paths, box=(-10, 6, -6, 4))

# %% [markdown]
# Move both sliders. **SGD** (stochastic gradient descent) is the plain rule: a step against the gradient, times a
# **learning rate**. At 0.3 it goes into the valley at once, and then creeps. At 1 each step overshoots by more than the
# one before: it runs away. The steep direction limits the rate, and the flat one pays for it.
#
# **Momentum** gathers gradients in a velocity, and forgets a part of it at each step. Across the valley the gradients
# change sign and cancel; along it they add up. With 0.9 the velocity keeps more than with 0.7, and rolls past the
# minimum like a ball. This valley has two weights and a simple form; for real networks 0.9 is usual.
#
# How many times fewer steps does momentum 0.7 need, at its best rate, than plain SGD at its own best, until the loss
# stays below 0.001? Guess, then run. (The journal calls it times faster; here it counts steps.)

# %%
journal.predict("momentum", ...)  # your guess: how many times fewer steps?


# %%
def steps_until(loss, make_optimizer):
    """(steps after which the loss stays below `loss`, rate), at the best of many rates."""
    found = []
    for rate in np.geomspace(0.01, 0.45, 30):
        losses = valley(*path(make_optimizer(rate), 200).T)
        found.append((int(np.flatnonzero(losses >= loss)[-1]) + 1, float(rate)))
    return min(found)


momenta = {
    momentum: steps_until(0.001, lambda rate, m=momentum: nn.SGD(rate, momentum=m)) for momentum in (0, 0.7, 0.9)
}
for momentum, (steps, rate) in momenta.items():
    print(f"momentum {momentum:3}: {steps:3} steps, at the rate {rate:.2f}")
journal.measured("momentum", momenta[0][0] / momenta[0.7][0])

# %% [markdown]
# And 0.9, the usual one? Here it hardly gains: its ball spends its steps on rolling past the minimum and back.

# %% [markdown]
# ### Exercise: momentum_step
#
# **Core**, about 10 minutes.
#
# Write one step, with **weight decay**: it pulls every weight towards 0, as if `weight_decay * parameters` were part of
# the gradient. Small weights make smoother functions. In this order:
#
# 1. the gradient gets the decay on top;
# 2. the velocity becomes `momentum` times the old one plus that gradient;
# 3. the parameters go against the new velocity, times the learning rate.
#
# Return new arrays and leave those that came in as they are.


# %% nbgrader={"grade": false, "grade_id": "momentum_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def momentum_step(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
    """Return (parameters, velocity) after one step; all arrays are (P,). About 3 lines."""
    ### BEGIN SOLUTION
    gradient = gradient + weight_decay * parameters
    velocity = momentum * velocity + gradient
    return parameters - learning_rate * velocity, velocity
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_momentum_step", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.momentum_step(momentum_step)

# %% [markdown]
# ### Exercise: adam_step
#
# **Core**, about 12 minutes.
#
# **Adam** keeps two running means for each weight: `m` of its gradient and `v` of its gradient squared. It steps along
# m / sqrt(v). While gradients agree, that is about 1 in size, whatever their scale; while they change sign, it is much
# less. So the steep direction no longer dictates the rate of the flat one. (D. Kingma and J. Ba, 2015.)
#
# Both means begin at 0, so they are too small at first. In step t, counted from 1, m is too small by the factor
# 1 - beta1^t. Adam divides by it, and v by its own, *for the step only*:
#
# - m becomes beta1 · m + (1 - beta1) · gradient, and v becomes beta2 · v + (1 - beta2) · gradient²;
# - the parameters lose learning_rate · m̂ / (sqrt(v̂) + epsilon), with m̂ = m / (1 - beta1^t) and v̂ = v / (1 - beta2^t).


# %% nbgrader={"grade": false, "grade_id": "adam_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def adam_step(parameters, gradient, m, v, t, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8):
    """Return (parameters, m, v) after step t; the first has t = 1. Arrays are (P,). About 5 lines."""
    ### BEGIN SOLUTION
    # body of unrolled.checks.exercises.l05_train_a_cnn.optimizer_steps.adam_update
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_adam_step", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.adam_step(adam_step)

# %% [markdown]
# Your function makes new arrays in each step. The library's `optimizer.step(parameters, gradients)` does the same sums
# in place. Does that matter? Here is one step of training with a batch of 8, and how much of it is Adam's.

# %%
update = journal.mine("adam_step")
timed, optimizer = new_network().build((1, 28, 28)), nn.Adam()
eight = data.digits().images[:8], data.digits().labels[:8]
whole = timing.measure(gradient_of, {"network": timed, "images": eight[0], "labels": eight[1]}).seconds
state = {"parameters": timed.parameters, "gradient": timed.gradients, "m": 0 * timed.parameters}
adams = {
    "adam_step, with new arrays": timing.measure(update, state | {"v": state["m"] + 0.1, "t": 1}).seconds,
    "nn.Adam, in place": timing.measure(lambda: optimizer.step(timed.parameters, timed.gradients), {}).seconds,
}
print(f"forward and back, 8 images:  {whole * 1e3:.2f} ms")
for name, seconds in adams.items():
    print(f"{name:28} {seconds * 1e3:.2f} ms, {seconds / (whole + seconds):.0%} of a step")

# %% [markdown]
# An optimizer touches all 200,000 weights in each step, however few images the batch has. So the smaller the batch, the
# larger its share.

# %% [markdown]
# ## The training loop
#
# Now you have all the parts. One step of training is four lines:
#
# ```python
# scores = network.forward(x, training=True)
# loss, grad = ops.softmax_cross_entropy(scores, y)
# network.backward(grad)                                   # fills network.gradients
# optimizer.step(network.parameters, network.gradients)    # changes network.parameters
# ```
#
# Two cheap questions come first. They can save you a long search.
#
# **What is the loss before the first step?** A network that knows nothing gives each of the ten classes the probability
# 1/10. The loss is minus the logarithm of that: ln 10 = 2.3026. A first loss far above says that the first weights are
# too large: the network is sure before it has seen anything, and mostly wrong. A loss that stays at 2.3026 says that
# nothing is learned.
#
# **Can it learn ten images by heart?** If it cannot, then something is broken (a gradient, the labels, the learning
# rate), and 60,000 images will not mend it. This takes the four lines and a loop.

# %%
ten, network, optimizer = slice(0, 10), new_network(), nn.Adam(0.002)
print(f"ln 10 = {np.log(10):.4f}")
for step in range(41):
    scores = network.forward(train_set.images[ten], training=True)
    loss, grad = ops.softmax_cross_entropy(scores, train_set.labels[ten])
    if step % 10 == 0:
        right = (scores.argmax(axis=1) == train_set.labels[ten]).sum()
        print(f"after {step:2} steps: loss {loss:.4f}, {right} of 10 right")
    network.backward(grad)
    optimizer.step(network.parameters, network.gradients)

# %% [markdown]
# ### The first weights
#
# Why did it not begin at exactly 2.3026? Because its first weights are not 0. If they were, then all filters would be
# equal, would get equal gradients, and would stay equal; and behind a ReLU the gradients would be 0 as well. So the
# first weights are random. How wide? That choice is called initialization. A value is a sum of many products. If the
# weights are too small, each layer shrinks the values, and the gradients with them; if too large, each layer blows them
# up. With width sqrt(2 / inputs) the values keep their size through layers of ReLU (K. He and others, 2015). The
# library does so unless told otherwise:

# %%
print("weights of width    values before the scores    first loss    right after an epoch")
for width in (0.0, 0.001, None, 1.0):
    fresh = new_network(weight_scale=width).build(shape)
    values, first = train_set.images[:100], fresh.evaluate(train_set).loss
    for layer in fresh.layers[:-1]:
        values = layer.forward(values)
    fresh.fit(train_set, epochs=1, progress=False)
    name = "sqrt(2 / inputs)" if width is None else width
    print(f"{name!s:16} {values.std():27.1e} {first:13.4f} {fresh.evaluate(validation).accuracy:23.1%}")

# %% [markdown]
# ### Exercise: train
#
# **Core**, about 15 minutes.
#
# Write the loop around the four lines: epochs, and mini-batches in each. Use `new_network(seed)` from above or layers of your
# choice, any optimizer of `nn`, and `data.minibatches((images, labels), batch_size, seed)`. Give each epoch an order
# of its own. You may use {allows}.
#
# The check trains your network three times, each time on 1,300 digits in another disguise: all of them shifted, perhaps
# with every pixel negative, and with the names of the ten classes exchanged. Of the other 497 it must know 93 %, in the
# median of the three. A network that was trained elsewhere will not do. This takes some seconds. The check sees only what your network
# names right, not how it came there: whether each epoch has an order of its own is up to you.
#
# The accuracy of such a network goes up and down from epoch to epoch. Leave some room.


# %% nbgrader={"grade": false, "grade_id": "train", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train(images, labels, test_images, seed):
    """Train on images (N, 1, 28, 28), labels (N,); return labels (M,) for test_images. About 10 lines.

    seed decides the first weights and the orders. `network.build(images.shape[1:])` draws the
    weights, and `network.predict(test_images)` gives whole numbers (M,).
    """
    ### BEGIN SOLUTION
    network, optimizer = new_network(seed), nn.Adam(0.002)
    network.build(images.shape[1:])
    for epoch in range(8):
        for x, y in data.minibatches((images, labels), 32, (seed, epoch)):
            scores = network.forward(x, training=True)
            _, grad = ops.softmax_cross_entropy(scores, y)
            network.backward(grad)
            optimizer.step(network.parameters, network.gradients)
    return network.predict(test_images)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_train", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.train(train)

# %% [markdown]
# ## Watch it, and stop it
#
# `network.fit` is that loop, with bookkeeping. `show.live()` draws loss and accuracy after each epoch, below the cell,
# while the network goes on learning. You can end it at any time with the notebook's stop button (■, *interrupt the
# kernel*): `fit` then finishes cleanly, keeps the weights of the last step, and the notebook goes on. Try it with 200
# epochs.

# %%
network = new_network()
history = network.fit(
    train_set,
    epochs=8,
    batch_size=32,
    optimizer=nn.Adam(0.002),
    validation=validation,
    callbacks=[show.live("while it learns")],
    progress=False,
)
print(history.stopped or "It ran to the end.")

# %% [markdown]
# Blue is measured during the epoch, on the very batches that the network learns from; orange after the epoch, on the
# validation images. And now, once, the test images:

# %%
print(f"{network.evaluate(test).accuracy:.1%} of {len(test):,} test images named correctly")
show.confusion(test.labels, network.predict(test.images))

# %% [markdown]
# A row is what the image is, a column what the network took it for. A single accuracy hides which mistakes the network
# makes; here they are. Next come the ten images about which the network was least sure, whether right or wrong: those
# whose best two scores are closest.

# %%
scores = network.scores(test.images)
second, best = np.sort(scores, axis=1)[:, -2:].T
doubtful = np.argsort(best - second)[:10]
show.images(test.images[doubtful].mean(axis=1), test.labels[doubtful], scores[doubtful].argmax(axis=1))

# %% [markdown]
# ### What the filters learned
#
# To see what training does to the filters, begin with next to nothing: weights of width 0.05, as in the article. Above,
# the first weights, and under each filter what it makes of one image. Below, the same filters after five epochs.

# %%
small = new_network(weight_scale=0.05).build(shape)
weight = small.layers[0].parameters["weight"]
show.filters(weight, test.images[0], padding=1, title="before")

# %%
small.fit(train_set, epochs=5, optimizer=nn.Adam(0.002), progress=False)
show.filters(weight, test.images[0], padding=1, title="after five epochs")

# %% [markdown]
# Nobody designed these. Some became brushes, which smooth the ink; some answer to an edge on one side. A filter that
# gives white everywhere (in the lower row) is dead for this image. If it is dead for all images, its ReLU lets no
# gradient through, and it never recovers.

# %% [markdown]
# ## When memory is short
#
# In 2015 the author of a blog, whose numbers we meet below, trained a network on 40,000 small colour images.¹ Training
# went well. Then the program evaluated all 40,000 in one call, and the GPU was out of memory. Count for the smallest of
# its networks: 16 filters, each at 28 x 28 positions, 4 bytes a number, make 50 kB an image and 2 GB for all images.
# And that is the output of a single layer. The cure was the same as in training: mini-batches.
#
# Here is the memory that our network needs, besides the images, to compute the scores of many of them:
#
# ¹ *takataka's diary* (in Japanese), July 2015: a convolutional network in Theano on CIFAR-10, on a CPU and on a Tesla
# K20c.

# %%
peaks = {}
for batch_size in (len(known), 256, 32):
    tracemalloc.start()
    network.scores(known.images[:5000], batch_size)
    peaks[f"{min(batch_size, 5000):,} at a time"] = float(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
show.bars(peaks, "B", title=f"memory to compute the scores of {len(known.images[:5000]):,} images")

# %% [markdown]
# ### Exercise: evaluate
#
# **Core**, about 12 minutes.
#
# Compute the mean loss and the accuracy over all images, with at most `batch_size` of them in the network at
# once, and in as few calls as that takes. The check's network counts what you give it, and takes images as they are,
# (n, C, H, W). Mind the last batch: it may be smaller, and then its mean must count for less.


# %% nbgrader={"grade": false, "grade_id": "evaluate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def evaluate(forward, images, labels, batch_size):
    """Return (loss, accuracy): the mean loss and the share named correctly, 0 to 1. About 7 lines.

    forward(images) gives scores (n, classes) for n images; the highest score names the class.
    `ops.softmax_cross_entropy(scores, labels)` gives the MEAN loss of these n, and a gradient.
    """
    ### BEGIN SOLUTION
    loss, correct = 0.0, 0
    for start in range(0, len(images), batch_size):
        scores, truth = forward(images[start : start + batch_size]), labels[start : start + batch_size]
        loss += float(ops.softmax_cross_entropy(scores, truth)[0]) * len(truth)
        correct += int((scores.argmax(axis=1) == truth).sum())
    return loss / len(images), correct / len(images)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_evaluate", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.evaluate(evaluate)

# %% [markdown]
# Memory now grows with the batch, no longer with the data. In training it was always so; only evaluation, an
# afterthought, went back to all at once.
#
# ## Your own parts
#
# Forward, backward, mini-batches, Adam, evaluation: these five are a whole training. The next cell trains on them
# alone, and then the library's `fit` trains an equal network on the same digits. The first line says whose the five
# parts are; a part whose check has not passed yet comes from the library.

# %%
parts = journal.mine("sequential_forward", "sequential_backward", "minibatches", "adam_step", "evaluate")
forward, backward, batches, update, evaluated = parts
learn, held = data.digits().split()  # 1 x 28 x 28, as MNIST, whatever DATA says

own, epochs, t, seconds = new_network().build((1, 28, 28)), 2, 0, []
m, v = np.zeros_like(own.parameters), np.zeros_like(own.parameters)
for epoch in range(epochs):
    start = perf_counter()
    for x, y in batches(learn.images, learn.labels, 32, epoch):
        _, grad = ops.softmax_cross_entropy(forward(own.layers, x, True), y)
        backward(own.layers, grad)
        t += 1
        own.parameters[:], m, v = update(own.parameters, own.gradients, m, v, t)
    seconds.append(perf_counter() - start)
_, accuracy = evaluated(lambda x: forward(own.layers, x), held.images, held.labels, 256)

other = new_network()
fitted = other.fit(learn, epochs=epochs, batch_size=32, optimizer=nn.Adam(), progress=False)
for name, fastest, right, made_of in (
    ("five parts", min(seconds), accuracy, parts),
    ("fit", min(fitted.seconds), other.evaluate(held).accuracy, []),
):
    projected = fastest / len(learn) * 60_000
    journal.rung(f"{name}, NumPy, batch 32", "an epoch of training", projected, batch=32, made_of=made_of)
    print(f"{name:10} {projected:5.1f} s for an epoch of 60,000 images, projected; {right:.1%} right after {epochs}")

# %% [markdown]
# These are the first whole epochs on your ladder. Both run on the library's layers. They differ in the loop around them,
# and in Adam: new arrays in each step, or in place. Compare with what Adam cost above.

# %% [markdown]
# ## Learning by heart
#
# Here is the log of that blog: a convolution with 16 filters, 40,000 images to train, 10,000 to validate, 50 epochs. It
# begins at 2.3026, the loss of knowing nothing. Move the slider. After which epoch would you have stopped?

# %%
log = SimpleNamespace(
    loss=[2.3026, 1.4223, 1.0853, 0.8889, 0.8075, 0.6671, 0.2392, 0.0036, 0.0021, 0.0018, 0.0017],
    accuracy=[0.0896, 0.5038, 0.6279, 0.6949, 0.7192, 0.7752, 0.9317, 1.0, 1.0, 1.0, 1.0],
    validation_loss=[2.3026, 1.4358, 1.1394, 0.9934, 0.9680, 0.8897, 0.9336, 1.3997, 1.4388, 1.4306, 1.4136],
    validation_accuracy=[0.0879, 0.4984, 0.6108, 0.6585, 0.6617, 0.6993, 0.7215, 0.7407, 0.7438, 0.7435, 0.7436],
)
show.learning_curves(log, epochs=[0, 1, 2, 3, 4, 5, 10, 20, 30, 40, 50], title="CIFAR-10, Theano, 2015")

# %% [markdown]
# By epoch 20 the network knows all 40,000 training images. Its loss on the others rises from 0.89, after epoch 5, to
# 1.41. That is **over-fitting**: it learns the training images by heart, noise and all. Look at the accuracy as well
# before you call it a disaster.
#
# See it happen. The fewer images there are, the easier it is to learn them by heart, so take a hundred. And since real
# data have mistakes in them, ten of the hundred get a wrong label. Can the network learn those as well?

# %%
labels = train_set.labels[:100].copy()
labels[:10] = (labels[:10] + 1) % 10  # a 3 is now called a 4
few = data.Dataset(train_set.images[:100], labels)


def fit_few(network, weight_decay=0.0):
    """The history of 40 epochs on the hundred images."""
    optimizer = nn.Adam(0.002, weight_decay=weight_decay)
    return network.fit(few, epochs=40, batch_size=20, optimizer=optimizer, validation=validation, progress=False)


by_heart = fit_few(new_network())
best = int(np.argmin(by_heart.validation_loss))
for epoch in (best, -1):
    print(
        f"after epoch {range(1, 41)[epoch]:2}: validation loss {by_heart.validation_loss[epoch]:.2f}, "
        f"validation accuracy {by_heart.validation_accuracy[epoch]:.1%}, training {by_heart.accuracy[epoch]:.1%}"
    )
show.learning_curves(by_heart, title="a hundred images, ten of them with a wrong label")

# %% [markdown]
# It can. In the end all hundred count as right, or nearly all, and for ten of them right is wrong. What the network
# learned there helps with no other image.
#
# What helps? More images, first of all: you have seen the same network with all of them. Stopping early
# (`fit(..., early_stop=nn.EarlyStop(patience=5))` keeps the weights of the best epoch). Weight decay. **Dropout**: in
# training, each value of a layer is set to 0 with some probability, so that no value may rely on another. Do not
# believe it; measure it.

# %%
dropping = nn.Sequential(*new_network().layers[:-1], nn.Dropout(0.5), nn.Linear(10))
attempts = {
    "nothing": by_heart,
    "weight decay 0.01": fit_few(new_network(), weight_decay=0.01),
    "dropout 0.5": fit_few(dropping),
}
print("validation loss   at the best epoch   at the end   accuracy at the end")
for name, tried in attempts.items():
    print(
        f"{name:17} {min(tried.validation_loss):17.2f} {tried.validation_loss[-1]:12.2f} "
        f"{tried.validation_accuracy[-1]:21.1%}"
    )

# %% [markdown]
# What helps most depends on the case. Take the wrong labels away, or take another seed (`new_network(seed=1)`), and see
# whether the order of the three stays. One of 300 validation images is a third of a percent, so small differences mean
# nothing here. Ask more images, or more seeds.

# %% [markdown]
# ## In your own words
#
# Look again at the log of 2015, and at your own hundred images, in five to seven sentences.
#
# 1. From epoch 5 to epoch 50 the validation loss of 2015 rises by more than half, and yet the validation accuracy
#    rises, too. How can both be?
# 2. After which epoch would you stop, and for what use of the network?
# 3. Which of the two, loss and accuracy, tells you something on your hundred images, and which does not? Name your
#    numbers. (There are 300 validation images, so one of them is a third of a percent.)

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_overfitting", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **A model answer.** Accuracy only asks which score is highest; the loss also asks how sure the network is. Once all
# training images are right, the training loss falls further only if the scores grow, so the network becomes ever surer
# of everything, also of the quarter of the validation images that it gets wrong, and a sure mistake costs much. Between
# epochs 5 and 50 it gains 4.4 points of accuracy (69.9 to 74.4 %) and its mistakes become expensive (0.89 to 1.41). If
# I only need the name of the class, I would stop at about epoch 20 to 30, where the accuracy no longer rises. If I need
# to know how sure it is, as a doctor does, I would stop at about epoch 5, where the loss is lowest. On my hundred images
# the loss speaks clearly (the two lines that the cell of *a hundred images* prints; I name both losses and both
# accuracies): it was well above its lowest value at the end, while nearly all training images were right. So there, too,
# the network became ever surer, also of its mistakes. The accuracy differed by a few of the 300 images only, and another
# seed might turn that round. So I cannot tell whether it became better or worse.
#
# **Rubric** (3 points). One point: accuracy counts the highest score only, the loss counts how sure it is, and mistakes
# become surer (over-fitting by name without this: half a point). One point: an epoch with a reason that fits the use.
# One point: own numbers, both losses at least, and that a difference of a few images in the accuracy decides nothing (or,
# where it was larger, how many images it was).
# ### END SOLUTION

# %% [markdown]
# ## What an epoch costs
#
# The article trained this network with batches of 8. So do we, and then with 128. The work on each image is the same.
# How many times faster is an epoch in batches of 128?

# %%
journal.predict("batch_128", ...)  # your guess

# %%
digits = data.digits().split()[0]  # 1 x 28 x 28, as MNIST, whatever DATA says
epoch, part = {}, digits.split(640)[0]
for batch_size in (8, 128):
    timed = new_network().fit(part, epochs=2, batch_size=batch_size, progress=False)
    epoch[batch_size] = min(timed.seconds) / len(part) * 60_000  # the faster of two, as above: the first warms up
    label = f"whole network, NumPy, batch {batch_size}"
    journal.rung(label, "an epoch of training", epoch[batch_size], batch=batch_size)
    print(f"batch {batch_size:3}: {epoch[batch_size]:5.1f} s for an epoch of 60,000 images, projected")
journal.measured("batch_128", epoch[8] / epoch[128])
print(f"{epoch[8] / epoch[128]:.1f} times faster. The article, with NumPy and batch 8: 1,800 s an epoch.")

# %% [markdown]
# Be fair to the article: between its 30 minutes and your number lie not only the code, but also your machine and its
# hosted one of 2020. And a larger batch has its price. It is faster per image, since each call has more to do;
# <!-- why: a larger batch --> but it
# also means 469 steps an epoch instead of 7,500, which is not the same training. Lesson 07 takes such causes apart.

# %%
journal.ladder()

# %%
journal.guesses()

# %% [markdown]
# In three sentences: A network is layers in a row, forward from first to last and back from last to first, and training
# is a loop over mini-batches, each followed by a step of the optimizer. Momentum and Adam differ from the plain step in
# what they remember, and weight decay, dropout and stopping early keep a network from learning its images by heart.
# Begin near ln 10 and with ten images, watch the loss on images the network never learned from, and keep the test
# images for the end.
#
# ### Exercise: batch_norm2d
#
# **More**, about 15 minutes.
#
# Good first weights keep the values at a sensible size, in the first step. In the thousandth step nothing does.
# **Batch normalization** keeps it in every step: it brings each channel of a batch to mean 0 and standard deviation 1.
# Then each channel gets a size and a place of its own, gamma and beta, which are learned like weights. (S. Ioffe and
# C. Szegedy, 2015.)
#
# 1. The mean of a channel is over all images and all positions: N · H · W values. So is the variance, the mean of the
#    squared distances from that mean.
# 2. x̂ is (x - mean) / sqrt(variance + epsilon). The small epsilon keeps a channel of equal values from a division by
#    0.
# 3. The result is gamma · x̂ + beta, with one gamma and one beta for each channel.
#
# For the values 1, 3, 5, 7 of one channel the mean is 4 and the variance 5; with epsilon 4, gamma 2 and beta 10, the
# 7 becomes 10 + 2 · 3 / 3 = 12.


# %% nbgrader={"grade": false, "grade_id": "batch_norm2d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def batch_norm2d(x, gamma, beta, epsilon=1e-5):
    """Normalize each channel of x (N, C, H, W) over the batch, as in training; x's shape. About 5 lines.

    gamma and beta are (C,). `x.mean(axis=(0, 2, 3))` is a mean for each channel; `keepdims=True` keeps the axes.
    """
    ### BEGIN SOLUTION
    mean = x.mean(axis=(0, 2, 3), keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=(0, 2, 3), keepdims=True)
    x_hat = (x - mean) / np.sqrt(variance + epsilon)
    return gamma[:, None, None] * x_hat + beta[:, None, None]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_batch_norm2d", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.batch_norm2d(batch_norm2d)

# %% [markdown]
# `nn.BatchNorm2d` is this as a layer, with its way back. In use there may be a single image, and what it is taken for
# must not depend on its neighbours. So in training the layer also keeps running averages of mean and variance, and in
# use it takes those.
#
# It stands between a convolution and its ReLU. Here the convolution begins with weights of several widths, some of them
# far too small or too large. What does the layer make of them?

# %%
print("first weights of width   right after an epoch   with batch normalization")
for width in (0.001, None, 10.0):
    found = []
    for norm in ([], [nn.BatchNorm2d()]):
        dense = nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(100), nn.ReLU(), nn.Linear(10)
        tried = nn.Sequential(nn.Conv2d(10, 3, padding=1, weight_scale=width), *norm, *dense)
        tried.fit(train_set, epochs=1, progress=False)
        found.append(tried.evaluate(validation).accuracy)
    print(f"{'sqrt(2 / inputs)' if width is None else width!s:16} {found[0]:28.1%} {found[1]:26.1%}")

# %% [markdown]
# It has a price: it goes through all values several times, forward and back, and makes only a few operations with each.
# Lesson 07 draws where such work stands on a roofline.
#
# ### More: a trap, and whitening
#
# **More**, as long as you like.
#
# Keras's own example for MNIST names AdaDelta as its optimizer. One version of that library changed AdaDelta's default
# rate from 1 to 0.001. So the article measured 83.56 % after 12 epochs of the example, where 99 % had been usual. That was
# another network, with two convolutions and dropout, on all of MNIST. Does the rate matter as much to ours? Here it is
# with AdaDelta at both rates, and with three other optimizers:

# %%
optimizers = {
    "SGD, rate 0.01": nn.SGD(0.01),
    "SGD, rate 0.01, momentum 0.9": nn.SGD(0.01, momentum=0.9),
    "AdaDelta, rate 1": nn.AdaDelta(1.0),
    "AdaDelta, rate 0.001": nn.AdaDelta(0.001),
    "Adam, rate 0.001": nn.Adam(0.001),
}
for name, optimizer in optimizers.items():
    tried = new_network()
    tried.fit(train_set, epochs=2, optimizer=optimizer, progress=False)
    print(f"{tried.evaluate(validation).accuracy:6.1%} after 2 epochs with {name}")

# %% [markdown]
# The blog of 2015 fed its network **whitened** images. Neighbouring pixels are nearly equal, so a network sees the same
# news many times. ZCA whitening turns and stretches the images until no pixel can be predicted from another, and stays
# as close to the original as that allows. What is left are edges:

# %%
learn, held = digits.split(1200)
white, white_held = data.zca_whiten(learn.images, held.images, epsilon=0.1)
for name, (images, held_images) in {
    "as they are": (learn.images, held.images),
    "whitened": (white, white_held),
}.items():
    tried = new_network()
    tried.fit(data.Dataset(images, learn.labels), epochs=1, progress=False)
    right = tried.evaluate(data.Dataset(held_images, held.labels)).accuracy
    print(f"{right:.1%} after an epoch on images {name}")
show.images(np.concatenate([learn.images[:10], white[:10]]), title="as they are, and whitened")

# %% [markdown]
# ### Stretch: as right as you can
#
# Push the accuracy. Try more filters, a second convolution, batch normalization, shifted copies of the images
# (`data.shifted(images, rng)`), a falling learning rate (`fit(..., schedule=nn.cosine_decay(20))`), and more images
# (`DATA = "mnist"`). Change one thing at a time, and decide by the validation images.

# %%
# Your stretch.
