# %% [markdown]
# ### Exercise: minibatches_balanced
#
# **Core**, about 14 minutes.
#
# Some classes are rare. Of a thousand X-rays ten may show the illness, and a network that always says "healthy" is
# right 99 % of the time. One remedy is batches that are **balanced**: each holds `per_class` images of every class. An
# epoch ends when the rarest class has too few left for another batch. What is left of the others waits for the next
# epoch, whose shuffle brings others to the front.
#
# With the labels 7 7 7 7 7 3 3 3 and per_class = 1, an epoch has three batches, each of one 7 and one 3. With per_class
# = 2 it is one batch of two 7s and two 3s.
#
# Shuffle each class by itself, by `seed`, so that no image comes twice in an epoch. Within a batch any order will do.
# With `yield` in place of `return`, a function hands out one batch, waits until it is asked, and goes on: no second
# copy of all images is made.


# %% nbgrader={"grade": false, "grade_id": "minibatches_balanced", "locked": false, "schema_version": 3, "solution": true, "task": false}
def minibatches_balanced(images, labels, per_class, seed):
    """Yield (images, labels) of batches with per_class images of each class. About 6 lines.

    images is (N, C, H, W), labels (N,). np.unique(labels) are the classes, np.flatnonzero(labels == label) the places
    of one; np.random.default_rng(seed).permutation(places) shuffles them.
    """
    ### BEGIN SOLUTION
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
    for batch in range(min(len(order) for order in orders) // per_class):
        piece = slice(batch * per_class, (batch + 1) * per_class)
        chosen = np.concatenate([order[piece] for order in orders])
        yield images[chosen], labels[chosen]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_minibatches_balanced", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.minibatches_balanced(minibatches_balanced)

# %% [markdown]
# A network that learned from balanced batches expects all classes to be equally frequent, and sees a rare one a little
# too often. Where that matters, its probabilities are corrected afterwards. Our digits are nearly balanced as they are,
# so the rest of the lesson takes ordinary mini-batches: every image once an epoch, and what is left over at the end
# makes a smaller last batch.
