# %% [markdown]
# ### Exercise: max_pool2d_average
#
# **Core**, about 12 minutes.
#
# Some networks pool by the **mean** of each window instead of its largest pixel. Pool a whole batch that way. The window
# moves by its own size; and here nothing is left out. Where the image is no multiple of the window, the rest at the right
# and lower edge makes smaller windows, and each mean is taken over the pixels that are there. With a window of 2:
#
# ```
# 1 3 | 5
# 5 7 | 9      (1 + 3 + 5 + 7) / 4 = 4      (5 + 9) / 2 = 7      output  4 7
# ----+--                                                               3 6
# 2 4 | 6      (2 + 4) / 2 = 3              6
# ```
#
# Loop over the outputs of one image, row by row, and treat all images and channels at once. `a.mean(axis=(2, 3))` takes
# the mean over two axes, and a slice that reaches over the edge ends at the edge by itself.


# %% nbgrader={"grade": false, "grade_id": "max_pool2d_average", "locked": false, "schema_version": 3, "solution": true, "task": false}
def max_pool2d_average(x, kernel_size):
    """The mean of each window of x (N, C, H, W), in a new array of its dtype; at the edge windows are smaller. 9 lines.

    kernel_size is a number, for both axes. The result is (N, C, OH, OW): H / kernel_size rounded up, and W alike.
    """
    ### BEGIN SOLUTION
    n, c, h, w = x.shape
    oh, ow = (h + kernel_size - 1) // kernel_size, (w + kernel_size - 1) // kernel_size
    y = np.empty((n, c, oh, ow), dtype=x.dtype)
    for row in range(oh):
        for column in range(ow):
            top, left = row * kernel_size, column * kernel_size
            window = x[:, :, top : top + kernel_size, left : left + kernel_size]
            y[:, :, row, column] = window.mean(axis=(2, 3))
    return y
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_max_pool2d_average", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.max_pool2d_average(max_pool2d_average)

# %% [markdown]
# The rest of the lesson is about max-pooling again. There the edge that no whole window covers is left out: 5 rows and a
# window of 2 make 2 rows. Replace the mean by the largest, and round down in place of up, and your loop does it.
