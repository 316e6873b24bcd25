# %% [markdown]
# ### Exercise: lstm_step_coupled
#
# **Core**, about 10 minutes.
#
# A cheaper cell has no input gate: what is forgotten makes room for what is new, so **i is 1 - f**. The weights have
# three blocks of H rows, in the order f, g, o. Write its step. It works where its arrays are, on the host or on the
# GPU: `@`, `ops.sigmoid` and `ops.tanh` do. The check compares values, and how fast they change if all arguments move
# a little.


# %% nbgrader={"grade": false, "grade_id": "lstm_step_coupled", "locked": false, "schema_version": 3, "solution": true, "task": false}
def lstm_step_coupled(x, h, c, weight_ih, weight_hh, bias):
    """Return the new (h, c), (N, H) each, for x (N, D), weight_ih (3 * H, D), weight_hh (3 * H, H). About 7 lines."""
    ### BEGIN SOLUTION
    size = weight_hh.shape[1]
    sums = x @ weight_ih.T + h @ weight_hh.T + bias
    f, g, o = (sums[:, k * size : (k + 1) * size] for k in range(3))
    f = ops.sigmoid(f)
    c = f * c + (1 - f) * ops.tanh(g)
    h = ops.sigmoid(o) * ops.tanh(c)
    return h, c
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_lstm_step_coupled", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.lstm_step_coupled(lstm_step_coupled)

# %% [markdown]
# The network above was trained with four gates, so from here on the lesson takes the library's step, with i.
