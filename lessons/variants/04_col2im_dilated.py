# %% [markdown]
# ### Exercise: col2im_dilated
#
# **Core**, about 20 minutes.
#
# Add every column back, at least 10 times as fast as the loop over windows, and for windows with gaps. With
# **dilation** d, the pixels of a window lie d rows and d columns apart: three pixels then see five. Dilation 1 has no
# gaps. In a single row of six pixels, a window of two with dilation 3 stands at three places; each column holds its
# first pixel above its last:
#
# ```
# columns  1  2  3       row  1  2  3  10  20  30
#         10 20 30
# ```
#
# With dilation 2 there are four places, and two pixels lie in two windows:
#
# ```
# columns  1  2  3  4    row  1  2  13  24  30  40
#         10 20 30 40
# ```
#
# Go by the places *inside* the window, as `ops.im2col` does: for a 3 x 3 kernel there are only nine. All the values of
# place (i, j) together are a grid, one value a window, and it belongs onto the image shifted by dilation · (i, j),
# every `stride` pixels. A window of k pixels reaches over dilation · (k - 1) + 1; with that, `ops.conv2d_output_size`
# says how many windows there are.
#
# Rows of `columns` run over (C, KH, KW), its columns over (N, OH, OW). Add into a padded image, and cut the border off
# at the end. A grid comes as (C, N, OH, OW), an image wants (N, C, OH, OW).


# %% nbgrader={"grade": false, "grade_id": "col2im_dilated", "locked": false, "schema_version": 3, "solution": true, "task": false}
def col2im_dilated(columns, x_shape, kernel_size, stride=1, padding=0, dilation=1):
    """Add every column back where its window took it from: an array of x_shape, columns' dtype. About 12 lines.

    columns is (C*KH*KW, N*OH*OW), x_shape (N, C, H, W), kernel_size (KH, KW).
    `ops.conv2d_output_size(size, reach, stride, padding)` gives (OH, OW).
    """
    ### BEGIN SOLUTION
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    reach = dilation * (kh - 1) + 1, dilation * (kw - 1) + 1
    oh, ow = ops.conv2d_output_size((h, w), reach, stride, padding)
    columns = columns.reshape(c, kh, kw, n, oh, ow)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), dtype=columns.dtype)
    for i in range(kh):
        for j in range(kw):
            top, left = i * dilation, j * dilation
            rows, places = slice(top, top + stride * oh, stride), slice(left, left + stride * ow, stride)
            x[:, :, rows, places] += columns[:, i, j].swapaxes(0, 1)
    return x[:, :, padding : padding + h, padding : padding + w]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_col2im_dilated", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.col2im_dilated(col2im_dilated)

# %% [markdown]
# From here on, windows have no gaps.
