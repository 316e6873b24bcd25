# %% [markdown]
# ### Exercise: inputs_at_once_samples_first
#
# **Core**, about 8 minutes.
#
# Data often has the samples first: x is (N, T, D), and the outputs are (N, T, H). Let one product handle the inputs of
# all steps. The check counts T + 1 products and asks for 1.5 times the speed of two products a step.


# %% nbgrader={"grade": false, "grade_id": "inputs_at_once_samples_first", "locked": false, "schema_version": 3, "solution": true, "task": false}
def inputs_at_once_samples_first(x, weight_ih, weight_hh, bias):
    """Return the outputs (N, T, H) of x (N, T, D), with T + 1 products. About 12 lines."""
    ### BEGIN SOLUTION
    xp, (n, steps, inputs), size = device.array_module(x), x.shape, weight_hh.shape[1]
    from_x = (x.reshape(n * steps, inputs) @ weight_ih.T + bias).reshape(n, steps, 4 * size)
    y = xp.empty((n, steps, size), x.dtype)
    h = c = xp.zeros((n, size), x.dtype)
    for t in range(steps):
        sums = from_x[:, t] + h @ weight_hh.T
        gates, g = ops.sigmoid(sums), ops.tanh(sums[:, 2 * size : 3 * size])
        c = gates[:, size : 2 * size] * c + gates[:, :size] * g
        h = gates[:, 3 * size :] * ops.tanh(c)
        y[:, t] = h
    return y
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_inputs_at_once_samples_first", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.inputs_at_once_samples_first(inputs_at_once_samples_first)

# %% [markdown]
# From here on the steps come first again, and the lesson takes the library's function. With samples first, what a step
# needs does not lie in one piece.
