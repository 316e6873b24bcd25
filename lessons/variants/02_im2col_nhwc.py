# %% [markdown]
# ### Exercise: im2col_nhwc
#
# **Core**, about 20 minutes.
#
# Build the matrix, but for images in the other order: NHWC, so `x[image, row, column, channel]`. The channels of a pixel
# are neighbours there. Cut out of `x`, a window is (KH, KW, C), and flattened it goes pixel by pixel, each with all its
# channels.
#
# There is a second difference from the pictures above: here each window becomes a *row*. Two by two pixels of two
# channels, and a window one pixel high and two wide:
#
# | the image | | the matrix | | | |
# | --- | --- | --- | --- | --- | --- |
# | (1, 10) | (2, 20) | 1 | 10 | 2 | 20 |
# | (3, 30) | (4, 40) | 3 | 30 | 4 | 40 |
#
# Only the order matters, not the speed, so loops over the windows are fine. Mind which axes `np.pad` has to pad.


# %% nbgrader={"grade": false, "grade_id": "im2col_nhwc", "locked": false, "schema_version": 3, "solution": true, "task": false}
def im2col_nhwc(x, kernel_size, stride=1, padding=0):
    """Return every window of x (N, H, W, C) as a row: (N*OH*OW, KH*KW*C), x's dtype. About 10 lines.

    kernel_size is a pair (KH, KW). A window is flattened row by row, pixel by pixel, channel by channel.
    The rows come image by image, and within an image row by row.
    """
    ### BEGIN SOLUTION
    (n, h, w, c), (kh, kw) = x.shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    rows = np.empty((n * oh * ow, kh * kw * c), dtype=x.dtype)
    for at, (image, row, column) in enumerate(np.ndindex(n, oh, ow)):
        top, left = row * stride, column * stride
        rows[at] = x[image, top : top + kh, left : left + kw].reshape(-1)
    return rows
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_im2col_nhwc", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.im2col_nhwc(im2col_nhwc)

# %% [markdown]
# From here on the images lie in NCHW again, and the windows stand in columns, as in the pictures: rows (C, KH, KW),
# columns (N, OH, OW). It is your matrix, turned, with the channels first.
