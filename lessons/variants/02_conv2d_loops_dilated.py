# %% [markdown]
# ### Exercise: conv2d_loops_dilated
#
# **Core**, about 20 minutes.
#
# Write down the definition, in plain loops, without a thought for speed, for windows with gaps. With **dilation** d, the
# numbers of the kernel lie on pixels that are d apart; dilation 1 is the convolution of the pictures. Here dilation is 2,
# and the digits of each output are the four pixels under the kernel, the last one first:
#
# ```
# image  1 2 3 4      kernel    1   10      output  2931 3142
#        5 6 7 8              100 1000              6475 7586
#        9 1 2 3
#        4 5 6 7      1 · 1 + 10 · 3 + 100 · 9 + 1000 · 2 = 2931
# ```
#
# There are seven axes to walk: image, filter, row and column of the output, and for each of them channel, row i and
# column j of the kernel. Three things help:
#
# - `np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))` puts zeros around every image, in a new
#   array.
# - `for image, filter_, row, column in np.ndindex(y.shape):` visits all outputs of y: four loops in one line. (The
#   underscore is there because Python has a `filter` of its own.)
# - From its first pixel to its last, a window of k pixels reaches over `dilation * (k - 1) + 1` pixels of the image. For
#   the size of the output, that is how large it is.
#
# float32 goes in, float32 comes out. NumPy makes float64 unless you say `dtype=x.dtype`.


# %% nbgrader={"grade": false, "grade_id": "conv2d_loops_dilated", "locked": false, "schema_version": 3, "solution": true, "task": false}
def conv2d_loops_dilated(x, weight, bias=None, stride=1, padding=0, dilation=1):
    """Convolve x (N, C, H, W) with weight (O, C, KH, KW): (N, O, OH, OW) in x's dtype. About 14 lines.

    bias is (O,) or None; stride, padding and dilation are whole numbers.
    `ops.conv2d_output_size(size, kernel_size, stride, padding)` gives (OH, OW); sizes are pairs.
    """
    ### BEGIN SOLUTION
    o, c, kh, kw = weight.shape
    reach = dilation * (kh - 1) + 1, dilation * (kw - 1) + 1
    oh, ow = ops.conv2d_output_size(x.shape[2:], reach, stride, padding)
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    y = np.zeros((len(x), o, oh, ow), dtype=x.dtype)
    for image, filter_, row, column in np.ndindex(y.shape):
        total = 0 if bias is None else bias[filter_]
        for channel in range(c):
            for i in range(kh):
                for j in range(kw):
                    pixel = x[image, channel, row * stride + i * dilation, column * stride + j * dilation]
                    total += pixel * weight[filter_, channel, i, j]
        y[image, filter_, row, column] = total
    return y
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_conv2d_loops_dilated", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.conv2d_loops_dilated(conv2d_loops_dilated)

# %% [markdown]
# From here on, the windows have no gaps unless an exercise says otherwise. For the clock, too, your function runs with
# dilation 1. What makes it fast is the same with gaps: they change which pixels meet, not how many.
