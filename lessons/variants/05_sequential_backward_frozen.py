# %% [markdown]
# ### Exercise: sequential_backward_frozen
#
# **Core**, about 6 minutes.
#
# And back, but not always all the way. Often the first layers come from a network that somebody else trained, on many
# more images, and are **frozen**: they stay as they are, and only the others learn. Nobody needs a gradient from a
# frozen layer, so do not ask it: a convolution in front is often most of the work.
#
# `grad` is the gradient of the loss by the scores, and the first `frozen` layers are frozen. With five layers and
# frozen = 2, layer 4 is asked first, then 3, then 2; what layer 2 returns is the result. With frozen = 0 you go all the
# way. If all are frozen, nobody is asked. The check's layers count how often you ask them.


# %% nbgrader={"grade": false, "grade_id": "sequential_backward_frozen", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sequential_backward_frozen(layers, grad, frozen):
    """Return the gradient of the loss by what comes into layer number `frozen`, counted from 0. About 3 lines.

    layers is a tuple; each has layer.backward(grad). The first `frozen` of them are not called.
    """
    ### BEGIN SOLUTION
    for layer in reversed(layers[frozen:]):
        grad = layer.backward(grad)
    return grad
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_sequential_backward_frozen", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.sequential_backward_frozen(sequential_backward_frozen)
