# %% [markdown]
# ### Exercise: conv2d_backward_nhwc
#
# **Core**, about 20 minutes.
#
# Write it for the other layout, and without columns. Images are (N, H, W, C), `grad` is (N, OH, OW, O) and `weight`
# (KH, KW, C, O): channels last. Take one place (i, j) of the kernel. The pixels that it met, over all windows, are a
# grid (N, OH, OW, C), every `stride` pixels from (i, j) on. Forward, each of these pixels went through a dense layer
# with the weight `weight[i, j]` (C, O), and the results of all places were added up. So the way back is that of a dense
# layer, once for each place:
#
# - grad_weight[i, j] is pixels.T @ grad, both as tables with a row for each output;
# - grad @ weight[i, j].T is added back onto the grid.
#
# With channels last, the tables are plain reshapes: (N, OH, OW, O) becomes (N·OH·OW, O), and no axes are swapped.
#
# One image of 2 x 2 pixels, one channel, one filter of 2 x 2: the only output saw each pixel at one place. With grad 3,
# grad_weight is 3 times the image, grad_x 3 times the filter, and grad_bias 3.


# %% nbgrader={"grade": false, "grade_id": "conv2d_backward_nhwc", "locked": false, "schema_version": 3, "solution": true, "task": false}
def conv2d_backward_nhwc(grad, x, weight, stride=1, padding=0):
    """The way back through a convolution in NHWC: grad_x, grad_weight, grad_bias. About 12 lines.

    grad is (N, OH, OW, O), x (N, H, W, C), weight (KH, KW, C, O). Each gradient has the shape of its own; bias is (O,).
    """
    ### BEGIN SOLUTION
    (n, oh, ow, o), (kh, kw, c, _) = grad.shape, weight.shape
    padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    grad_padded, grad_weight = np.zeros_like(padded), np.empty_like(weight)
    rows = grad.reshape(n * oh * ow, o)
    for i in range(kh):
        for j in range(kw):
            grid = slice(None), slice(i, i + stride * oh, stride), slice(j, j + stride * ow, stride)
            grad_weight[i, j] = padded[grid].reshape(n * oh * ow, c).T @ rows
            grad_padded[grid] += grad @ weight[i, j].T
    grad_x = grad_padded[:, padding : padding + x.shape[1], padding : padding + x.shape[2]]
    return grad_x, grad_weight, rows.sum(axis=0)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_conv2d_backward_nhwc", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.conv2d_backward_nhwc(conv2d_backward_nhwc)

# %% [markdown]
# Same sums, another order: nine small products in place of one large one, and no columns, which for a 3 x 3 kernel are
# nine times as large as the images. The measurements below use the library's way, by columns and in NCHW.
