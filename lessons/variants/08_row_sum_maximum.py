# %% [markdown]
# ### Exercise: row_sum_maximum
#
# **Core**, about 12 minutes.
#
# The tree works for every operation that may be done in any order. Find the largest value of each row: one block a row.
# Rows may be shorter than a block, or longer, and all values of a row may be below 0. Where do the barriers go?


# %% nbgrader={"grade": false, "grade_id": "row_sum_maximum", "locked": false, "schema_version": 3, "solution": true, "task": false}
@jit.rawkernel()
def row_max_kernel(x, y, columns):
    # y[row] is the largest value of row `row` of x. About 13 more lines.
    partial = jit.shared_memory(cp.float32, THREADS)
    t, row = cp.int32(jit.threadIdx.x), cp.int32(jit.blockIdx.x)
    ### BEGIN SOLUTION
    largest = x[row, 0]
    for column in range(t, columns, THREADS):
        largest = max(largest, x[row, column])
    partial[t] = largest
    jit.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            partial[t] = max(partial[t], partial[t + half])
        jit.syncthreads()
        half //= 2
    if t == 0:
        y[row] = partial[0]
    ### END SOLUTION


def row_sum_maximum(x):
    """Return the largest value of each row of x (rows, columns), float32, on the GPU."""
    y = device.array_module(x).empty(len(x), x.dtype)
    row_max_kernel[len(x), THREADS](x, y, x.shape[1])
    return y


# %% nbgrader={"grade": true, "grade_id": "check_row_sum_maximum", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.row_sum_maximum(row_sum_maximum)

# %% [markdown]
# A maximum is the same in any order. A sum is nearly so, because floats round.
