# %% [markdown]
# ### Exercise: choose_algorithm_backward
#
# **Core**, about 8 minutes.
#
# Choose for the way **back**, the gradients of x, weight and bias: return `"gemm"` (one product), `"fft"` or
# `"winograd"` (3 x 3 kernels only) for a shape. The check draws shapes that you do not know: 3 x 3 kernels with one
# channel or many, and kernels up to 21 x 21. It runs the library's `ops.conv2d_backward` by all three methods on each,
# here and now. For none of them may the method that you chose take more than {most} times as long as the fastest.
# Two simple rules will do; are they the same as for the way forward?


# %% nbgrader={"grade": false, "grade_id": "choose_algorithm_backward", "locked": false, "schema_version": 3, "solution": true, "task": false}
def choose_algorithm_backward(n, c, o, size, kernel):
    """Return a method for n images (c, size, size), o filters, kernel x kernel weights, padding kernel // 2.

    About 5 lines.
    """
    ### BEGIN SOLUTION
    if kernel == 3 and min(c, o) >= 128:
        return "winograd"
    if kernel >= 11 and min(c, o) < 32:
        return "fft"
    return "gemm"
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_choose_algorithm_backward", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.choose_algorithm_backward(choose_algorithm_backward)
