# %% [markdown]
# ### Exercise: softmax_cross_entropy_smoothing
#
# **Core**, about 20 minutes.
#
# Write the cured loss, and its gradient by the scores, with **label smoothing**. A network that is asked for
# probability 1 never has enough: it makes its scores larger and larger. So ask for a little less. Of each sample's
# target, the part `smoothing` is shared out evenly, smoothing / M to every class, and the rest, 1 - smoothing, goes to
# the label as well. The loss of a sample is the sum over the classes of target · -log(p); the gradient is (p - targets)
# / N.
#
# With two classes and smoothing 0.2, label 1 has the targets (0.1, 0.9). If p is (1/4, 3/4), the loss is 0.1 log(4) +
# 0.9 log(4/3) = 0.3975, and the gradient (0.15, -0.15).
#
# Now *every* class needs its logarithm, and still there is no log of a probability: -log(p_m) is log(sum) - s_m, for
# each class. `scores[np.arange(n), labels]` picks one score a row; `keepdims=True` keeps the axis that `max` would
# drop. The check tries scores of 1,000, scores of -1,000, no smoothing, and a network so sure and so wrong that the
# loss of a sample is nearly 200, and not infinity. scores must stay as they are.


# %% nbgrader={"grade": false, "grade_id": "softmax_cross_entropy_smoothing", "locked": false, "schema_version": 3, "solution": true, "task": false}
def softmax_cross_entropy_smoothing(scores, labels, smoothing=0.1):
    """The sum over the classes of target * -log of softmax(scores), mean over N. About 10 lines.

    scores is (N, M), labels (N,) integers from 0 to M - 1. A target is smoothing / M, and 1 - smoothing more at the
    label. Return loss, grad: a number, and its gradient (N, M).
    """
    ### BEGIN SOLUTION
    n, m = scores.shape
    rows = np.arange(n)
    shifted = scores - scores.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    sums = exponentials.sum(axis=1)
    wanted = (1 - smoothing) * shifted[rows, labels] + smoothing * shifted.mean(axis=1)
    loss = (np.log(sums) - wanted).mean()
    grad = exponentials / sums[:, None] - smoothing / m
    grad[rows, labels] -= 1 - smoothing
    return loss, grad / n
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_softmax_cross_entropy_smoothing", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.softmax_cross_entropy_smoothing(softmax_cross_entropy_smoothing)

# %% [markdown]
# With smoothing 0 it is the loss from above, which the rest of the lesson uses.
