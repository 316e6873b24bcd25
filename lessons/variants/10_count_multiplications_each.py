# %% [markdown]
# ### Exercise: count_multiplications_each
#
# **Core**, about 8 minutes.
#
# Count the multiplications of pixels (or sums or waves of them) with weights, **for each result on average**: a number
# that need not be whole. The transforms are left out: that is how these methods are usually advertised. A shape is
# (n, c, o, size, kernel): n images, c channels, o filters, size x size *results*, kernel x kernel weights. The methods:
#
# - `"direct"`: kernel² for each result, and each channel;
# - `"winograd 2x2"` and `"winograd 4x4"`: 16 and 36 for each tile. A last tile that reaches beyond the results is
#   computed whole;
# - `"fft"`: 4 for each frequency of images with size + kernel - 1 rows and columns.


# %% nbgrader={"grade": false, "grade_id": "count_multiplications_each", "locked": false, "schema_version": 3, "solution": true, "task": false}
def count_multiplications_each(method, shape):
    """Return the real multiplications that a result takes, for shape (n, c, o, size, kernel). About 9 lines."""
    _, c, _, size, kernel = shape
    ### BEGIN SOLUTION
    if method == "direct":
        plane = size**2 * kernel**2
    elif method == "fft":
        length = size + kernel - 1
        plane = 4 * length * (length // 2 + 1)
    else:
        tile = 2 if method == "winograd 2x2" else 4
        plane = (-(-size // tile)) ** 2 * (tile + 2) ** 2
    return c * plane / size**2
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_count_multiplications_each", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.count_multiplications_each(count_multiplications_each)

# %% [markdown]
# From here on the lesson counts for all results together, with the library's function.
