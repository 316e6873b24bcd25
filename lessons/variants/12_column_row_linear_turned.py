# %% [markdown]
# ### Exercise: column_row_linear_turned
#
# **Core**, about 5 minutes.
#
# Some libraries store a weight with a **row for each output**. Compute relu(x @ W1.T + b1) @ W2.T + b2. x and bias2 are
# the same on all ranks. weight1 (rows of W1), bias1 and weight2 (columns of W2) are this rank's parts. Call
# `comm.all_reduce` once.


# %% nbgrader={"grade": false, "grade_id": "column_row_linear_turned", "locked": false, "schema_version": 3, "solution": true, "task": false}
def column_row_linear_turned(comm, x, weight1, bias1, weight2, bias2):
    """Return (N, M) on each rank, for x (N, K), weight1 (H, K), bias1 (H,), weight2 (M, H), bias2 (M,). About 2 lines."""
    ### BEGIN SOLUTION
    hidden = np.maximum(x @ weight1.T + bias1, 0)
    return comm.all_reduce(hidden @ weight2.T) + bias2
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_column_row_linear_turned", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.column_row_linear_turned(column_row_linear_turned)

# %% [markdown]
# From here on a weight has a column for each output again.
