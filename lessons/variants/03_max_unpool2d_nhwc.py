# %% [markdown]
# ### Exercise: max_unpool2d_nhwc
#
# **Core**, about 10 minutes.
#
# Put values back by index, in images now, and in NHWC: the channel is the last axis, so that the channels of a pixel are
# neighbours. Each index says where in its image the value belongs, in its own channel, counted pixel by pixel: row * W +
# column. One image of 2 x 2 pixels has two channels. Value 10 of channel 0 has index 3, value 20 of channel 1 has index 0,
# and so
#
# ```
# pixels   (0, 20)  (0, 0)
#          (0, 0)  (10, 0)
# ```
#
# With windows side by side no index occurs twice in one image and channel. One assignment does it, without a loop, if you
# name all three: which image, where in it, and which channel. First make the two axes of places one, so that indices are
# (N, OH·OW, C). The names of images and channels need not have that shape. Where one has a 1, or no such axis in front,
# NumPy repeats it: `np.arange(n)[:, None, None]` is (N, 1, 1).


# %% nbgrader={"grade": false, "grade_id": "max_unpool2d_nhwc", "locked": false, "schema_version": 3, "solution": true, "task": false}
def max_unpool2d_nhwc(values, indices, size):
    """Put values (N, OH, OW, C) at indices (the same shape) of images of size (H, W). About 6 lines.

    An index is row * W + column. Return (N, H, W, C) in values' dtype, 0 where no value came.
    """
    ### BEGIN SOLUTION
    n, c = len(values), values.shape[3]
    h, w = size
    result = np.zeros((n, h * w, c), dtype=values.dtype)
    image, channel = np.arange(n)[:, None, None], np.arange(c)
    result[image, indices.reshape(n, -1, c), channel] = values.reshape(n, -1, c)
    return result.reshape(n, h, w, c)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_max_unpool2d_nhwc", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.max_unpool2d_nhwc(max_unpool2d_nhwc)

# %% [markdown]
# From here on the images are NCHW again. There two numbers are enough: image and channel make one row, (N·C, H·W), and the
# index says where in it.
