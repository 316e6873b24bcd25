# %% [markdown]
# ### Exercise: conv2d_output_size_dilated
#
# **Core**, about 8 minutes.
#
# How many places does the window have, from top to bottom and from left to right? In this exercise there is a third
# setting: with **dilation** d, the numbers of the kernel lie on pixels that are d apart. Dilation 1 leaves no gaps.
# With dilation 2, the nine numbers of a 3 x 3 kernel lie like this:
#
# ```
# x . x . x
# . . . . .
# x . x . x
# . . . . .
# x . x . x
# ```
#
# Such a window sees further, and costs no more products. Sizes are pairs (height, width), since not every image is
# square. For a 7 x 7 image and a 3 x 3 kernel, dilation 1 gives `(5, 5)`, dilation 2 gives `(3, 3)` and dilation 3 gives
# `(1, 1)`. With dilation 2 and padding 2 the result is `(7, 7)`.
#
# If you are stuck: `check.conv2d_output_size_dilated.hint()`, in a cell of your own, gives the idea, then the shapes,
# then nearly the code. Every check has three such hints.


# %% nbgrader={"grade": false, "grade_id": "conv2d_output_size_dilated", "locked": false, "schema_version": 3, "solution": true, "task": false}
def conv2d_output_size_dilated(size, kernel_size, stride=1, padding=0, dilation=1):
    """Return (OH, OW), how many places the window has along each axis. About 5 lines.

    size and kernel_size are pairs (height, width); stride, padding and dilation are numbers for both axes.
    """
    ### BEGIN SOLUTION
    tall = dilation * (kernel_size[0] - 1) + 1
    wide = dilation * (kernel_size[1] - 1) + 1
    oh = (size[0] + 2 * padding - tall) // stride + 1
    ow = (size[1] + 2 * padding - wide) // stride + 1
    return oh, ow
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_conv2d_output_size_dilated", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.conv2d_output_size_dilated(conv2d_output_size_dilated)

# %% [markdown]
# The rest of this lesson has windows without gaps, dilation 1, unless an exercise says otherwise. The library's
# `ops.conv2d_output_size(size, kernel_size, stride, padding)` is for those.
