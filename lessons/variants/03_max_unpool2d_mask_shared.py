# %% [markdown]
# ### Exercise: max_unpool2d_mask_shared
#
# **Core**, about 15 minutes.
#
# There is another fair rule: equal maxima **share** the value, each an equal part. It keeps the sum as well.
# (Pooling layers seldom do it. The gradient of `torch.amax` in PyTorch does.) For the windows of the picture above, and the values 10, 20, 30 and 40,
# it gives
#
# ```
# 2.5 2.5 |  0   0
# 2.5 2.5 |  0  20
# --------+-------
#   0  15 | 10  10
#   0  15 | 10  10
# ```
#
# Put values back by masks and by this rule, without indices and without a loop over windows. A loop over the *places
# inside* a window is fine; for a window of 2 these are four. Each place is a slice with steps: with windows of 2,
# `x[:, :, 0::2, 1::2]` holds the upper right pixel of all windows at once. Where an edge is left over, that is one too
# many: `i : i + OH * step : step` takes just OH of them. How many share must be known before the first part is given
# out. The check asks for 8 times the speed of plain loops. What will you get?

# %%
journal.predict("max_unpool2d_mask_shared", ...)  # your guess: how many times faster?


# %% nbgrader={"grade": false, "grade_id": "max_unpool2d_mask_shared", "locked": false, "schema_version": 3, "solution": true, "task": false}
def max_unpool2d_mask_shared(values, x, kernel_size):
    """Put values (N, C, OH, OW) where the maxima of x (N, C, H, W) are; equal maxima share equally. About 14 lines.

    Windows lie side by side; pixels at the edge that belong to none stay 0. Return (N, C, H, W) in values' dtype.
    `ops.max_pool2d(x, kernel_size)` gives the maxima.
    """
    ### BEGIN SOLUTION
    largest = ops.max_pool2d(x, kernel_size)
    oh, ow = values.shape[2:]
    rows = [slice(i, i + oh * kernel_size, kernel_size) for i in range(kernel_size)]
    columns = [slice(j, j + ow * kernel_size, kernel_size) for j in range(kernel_size)]
    count = np.zeros(values.shape, dtype=values.dtype)
    for i in rows:
        for j in columns:
            count += x[:, :, i, j] == largest
    part = values / count
    result = np.zeros(x.shape, dtype=values.dtype)
    for i in rows:
        for j in columns:
            result[:, :, i, j] = (x[:, :, i, j] == largest) * part
    return result
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_max_unpool2d_mask_shared", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.max_unpool2d_mask_shared(max_unpool2d_mask_shared)

# %% [markdown]
# You went through the places twice. The rest of the lesson, and the library, follow the first rule again, and for that
# once is enough: of equal maxima the first gets the value. A mask remembers which windows still *wait* for their winner:
# `here = waiting & (pixel == largest)`, and after each place `waiting = waiting & ~here`.
