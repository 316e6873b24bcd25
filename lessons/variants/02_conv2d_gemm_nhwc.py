# %% [markdown]
# ### Exercise: conv2d_gemm_nhwc
#
# **Core**, about 15 minutes.
#
# Convolve with `ops.im2col` and a single `@`, but for images in NHWC, with weights to match, (KH, KW, C, O), and a result
# in NHWC as well. (TensorFlow keeps images and weights in this order.) One pixel with two channels, 3 and 4, and a kernel
# of 1 x 1 with two filters show how the numbers lie:
#
# ```
# weight[0, 0] = [[10, 1],      channel 0: filter 0, filter 1
#                 [100, 2]]     channel 1
# y[0, 0, 0]   = [3 · 10 + 4 · 100, 3 · 1 + 4 · 2] = [430, 11]
# ```
#
# The columns come from `ops.im2col`, which wants NCHW; `x.transpose(0, 3, 1, 2)` reads x so. Turned round, `.T`, the
# columns are rows, and rows times filters give (N·OH·OW, O): the order of NHWC already. Only the weight must be put into
# the order of the columns. The check asks for at least 7 times the speed of the loop over positions, here for 4 images
# of 56 x 56 and 8 filters of 3 x 3: 3,136 positions.


# %% nbgrader={"grade": false, "grade_id": "conv2d_gemm_nhwc", "locked": false, "schema_version": 3, "solution": true, "task": false}
def conv2d_gemm_nhwc(x, weight, bias=None, stride=1, padding=0):
    """Convolve x (N, H, W, C) with weight (KH, KW, C, O); return (N, OH, OW, O). About 8 lines.

    Use `ops.im2col(images, kernel_size, stride, padding)`, where images are NCHW, and a single `@`.
    """
    ### BEGIN SOLUTION
    n, (kh, kw, _, o) = len(x), weight.shape
    oh, ow = ops.conv2d_output_size(x.shape[1:3], (kh, kw), stride, padding)
    columns = ops.im2col(x.transpose(0, 3, 1, 2), (kh, kw), stride, padding)  # (C*KH*KW, N*OH*OW)
    table = weight.transpose(2, 0, 1, 3).reshape(-1, o)  # (C*KH*KW, O)
    y = columns.T @ table
    if bias is not None:
        y += bias
    return y.reshape(n, oh, ow, o)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_conv2d_gemm_nhwc", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.conv2d_gemm_nhwc(conv2d_gemm_nhwc)

# %% [markdown]
# From here on the arrays are NCHW again. Where the text speaks of your `conv2d_gemm`, it means your function in these
# clothes:


# %%
def conv2d_gemm(x, weight, bias=None, stride=1, padding=0):
    """Yours, for x (N, C, H, W) and weight (O, C, KH, KW): (N, O, OH, OW)."""
    y = conv2d_gemm_nhwc(x.transpose(0, 2, 3, 1), weight.transpose(2, 3, 1, 0), bias, stride, padding)
    return y.transpose(0, 3, 1, 2)
