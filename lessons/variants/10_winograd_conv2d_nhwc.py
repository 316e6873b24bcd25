# %% [markdown]
# ### Exercise: winograd_conv2d_nhwc
#
# **Core**, about 20 minutes.
#
# Write it for images with their **channels last**: x is (N, H, W, C), weight (O, 3, 3, C), the result (N, OH, OW, O).
# `cut` is given, above, and takes images (N, C, H, W). On a GPU the three matrices have to be there,
# too, which `xp.asarray` does. The check compares numbers, and counts operations on the simulated GPU: at most the
# direct way's / 2.25, and 15 % of the direct way's on top for the transforms. Time is not asked.


# %% nbgrader={"grade": false, "grade_id": "winograd_conv2d_nhwc", "locked": false, "schema_version": 3, "solution": true, "task": false}
def winograd_conv2d_nhwc(x, weight, bias, padding=1):
    """Return (N, OH, OW, O) for x (N, H, W, C), weight (O, 3, 3, C) and bias (O,). About 9 more lines."""
    xp = device.array_module(x)
    b, g, a = xp.asarray(B_T), xp.asarray(G), xp.asarray(A_T)
    oh, ow = x.shape[1] + 2 * padding - 2, x.shape[2] + 2 * padding - 2
    ### BEGIN SOLUTION
    tiles = cut(x.transpose(0, 3, 1, 2), padding)
    (n, c, th, tw), o = tiles.shape[:4], len(weight)
    pixels = (b @ tiles @ b.T).transpose(4, 5, 1, 0, 2, 3).reshape(16, c, n * th * tw)
    weights = (g @ weight.transpose(0, 3, 1, 2) @ g.T).transpose(2, 3, 0, 1).reshape(16, o, c)
    products = (weights @ pixels).reshape(4, 4, o, n, th, tw).transpose(3, 2, 4, 5, 0, 1)
    results = a @ products @ a.T
    y = results.transpose(0, 2, 4, 3, 5, 1).reshape(n, 2 * th, 2 * tw, o)
    return y[:, :oh, :ow] + bias
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_winograd_conv2d_nhwc", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.winograd_conv2d_nhwc(winograd_conv2d_nhwc)

# %% [markdown]
# From here on the channels stand before the pixels again, and the lesson takes the library's function for it.
