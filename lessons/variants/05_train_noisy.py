# %% [markdown]
# ### Exercise: train_noisy
#
# **Core**, about 20 minutes.
#
# Write the loop around the four lines: epochs, and mini-batches in each. Use `new_network(seed)` from above or layers
# of your choice, any optimizer of `nn`, and `data.minibatches((images, labels), batch_size, seed)`. Give each epoch an
# order of its own.
#
# And know when to stop, for three of ten labels are wrong. Large data sets are labelled in a hurry, and real ones have
# such mistakes in them. The right labels agree with each other, so a network learns them first. The wrong ones have to
# be learned by heart, one by one; given time, it does that as well, and then repeats the mistakes.
#
# The check trains your network three times, on 1,300 digits in disguise: all of them shifted, perhaps with every pixel
# negative, and with the names of the ten classes exchanged. On top of that, 390 of the 1,300 have a wrong name. Of the
# other 497, whose names are right, it must know 88 %, in the median of the three. A network that was trained elsewhere
# will not do. This takes some seconds. The check sees only what your network names right: whether each epoch has an
# order of its own is up to you.
#
# The accuracy goes up and down by several points from epoch to epoch. Leave some room.


# %% nbgrader={"grade": false, "grade_id": "train_noisy", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train_noisy(images, labels, test_images, seed):
    """Train on images (N, 1, 28, 28), labels (N,), 30 % wrong; return labels (M,) for test_images. About 10 lines.

    seed decides the first weights and the orders. `network.build(images.shape[1:])` draws the
    weights, and `network.predict(test_images)` gives whole numbers (M,).
    """
    ### BEGIN SOLUTION
    network, optimizer = new_network(seed), nn.Adam(0.002)
    network.build(images.shape[1:])
    for epoch in range(8):  # 40 would learn the wrong labels, too
        for x, y in data.minibatches((images, labels), 32, (seed, epoch)):
            scores = network.forward(x, training=True)
            _, grad = ops.softmax_cross_entropy(scores, y)
            network.backward(grad)
            optimizer.step(network.parameters, network.gradients)
    return network.predict(test_images)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_train_noisy", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.train_noisy(train_noisy)

# %% [markdown]
# With right labels, as below, the same network may learn for longer, and knows more of the digits. But not for ever:
# there is more to come about learning by heart.
