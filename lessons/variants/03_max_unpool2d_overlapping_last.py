# %% [markdown]
# ### Exercise: max_unpool2d_overlapping_last
#
# **Core**, about 12 minutes.
#
# Put values back by masks, for any stride, so that values that meet add up. And break ties the other way round: of equal
# maxima in a window the **last** wins, row by row. With a window of 2 and stride 1, three windows lie side by side here:
#
# ```
# x   4 4 1 0      window 1: 4 4   window 2: 4 1   window 3: 1 0      values 1 10 100
#     4 0 1 0                4 0             0 1             1 0
#
# back to  0 10   0  0
#          1  0 100  0
# ```
#
# In window 1 three pixels are 4, and the last of them, at the lower left, gets 1. In window 3 it is the lower left again.
# Place i of all windows is `i : i + OH * stride : stride`. The order in which you go through the places is the rule. The
# check asks for 6 times the speed of plain loops. Your guess?

# %%
journal.predict("max_unpool2d_overlapping_last", ...)


# %% nbgrader={"grade": false, "grade_id": "max_unpool2d_overlapping_last", "locked": false, "schema_version": 3, "solution": true, "task": false}
def max_unpool2d_overlapping_last(values, x, kernel_size, stride):
    """Put values (N, C, OH, OW) where the maxima of x (N, C, H, W) are, and add them up there. About 12 lines.

    Of equal maxima in a window the last gets the value. Return (N, C, H, W) in values' dtype.
    `ops.max_pool2d(x, kernel_size, stride)` gives the maxima.
    """
    ### BEGIN SOLUTION
    largest = ops.max_pool2d(x, kernel_size, stride)
    oh, ow = values.shape[2:]
    result = np.zeros(x.shape, dtype=values.dtype)
    waiting = np.ones(values.shape, dtype=bool)
    for i in reversed(range(kernel_size)):
        for j in reversed(range(kernel_size)):
            rows = slice(i, i + oh * stride, stride)
            columns = slice(j, j + ow * stride, stride)
            here = waiting & (x[:, :, rows, columns] == largest)
            result[:, :, rows, columns] += here * values
            waiting = waiting & ~here
    return result
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_max_unpool2d_overlapping_last", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.max_unpool2d_overlapping_last(max_unpool2d_overlapping_last)

# %% [markdown]
# The library, and the rest of the lesson, let the first of equal maxima win, as the frameworks do. The rule costs nothing
# either way; but two programs can only be compared if both have the same.
