# %% [markdown]
# ### Exercise: capturable_step_decay
#
# **Core**, about 15 minutes.
#
# `eager_step` below is descent with momentum, weight decay, and a rate that falls after each step. It makes arrays, it
# reads the rate and it calls cuBLAS. Write the same so that it can be captured: `error`, `grad` and `decayed` are buffers
# for you, and `rate` is an array (1,) that has to change on the GPU. The check captures your function once, and launches
# it on new batches.


# %%
def eager_step(x, target, weight, velocity, rate):
    error = x @ weight - target
    grad = x.T @ error / len(x) + 0.01 * weight
    velocity[...] = 0.9 * velocity - float(rate[0]) * grad
    weight += velocity
    rate *= 0.99


# %% nbgrader={"grade": false, "grade_id": "capturable_step_decay", "locked": false, "schema_version": 3, "solution": true, "task": false}
def capturable_step_decay(x, target, weight, velocity, rate, error, grad, decayed):
    """Do what eager_step does to weight (K, M), velocity (K, M) and rate (1,). About 11 lines.

    x (N, K), target (N, M); error (N, M), grad and decayed (K, M) hold anything, and may be overwritten.
    """
    ### BEGIN SOLUTION
    matmul(x, weight, out=error)
    error -= target
    matmul(x.T, error, out=grad)
    grad /= len(x)
    device.array_module(x).multiply(weight, 0.01, out=decayed)
    grad += decayed
    grad *= rate
    velocity *= 0.9
    velocity -= grad
    weight += velocity
    rate *= 0.99
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_capturable_step_decay", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.capturable_step_decay(capturable_step_decay)

# %% [markdown]
# From here on the steps have no weight decay.
