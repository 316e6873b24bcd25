# %% [markdown]
# ### Exercise: winograd_transforms_rows
#
# **Core**, about 6 minutes.
#
# Write the three transforms of **F(2, 3)**, for rows alone: of four pixels, of three weights, of four products. They
# lie on the last axis, and any number of them comes at once. The check names the one that is wrong.


# %% nbgrader={"grade": false, "grade_id": "winograd_transforms_rows", "locked": false, "schema_version": 3, "solution": true, "task": false}
def transformed_pixels(tiles):
    """Return rows (..., 4) of pixels, transformed: (..., 4). About 1 line."""
    ### BEGIN SOLUTION
    return tiles @ B_T.T
    ### END SOLUTION


def transformed_weights(weight):
    """Return kernels (..., 3), transformed: (..., 4). About 1 line."""
    ### BEGIN SOLUTION
    return weight @ G.T
    ### END SOLUTION


def results_of(products):
    """Return the two results, (..., 2), of products (..., 4). About 1 line."""
    ### BEGIN SOLUTION
    return products @ A_T.T
    ### END SOLUTION


def winograd_transforms_rows(tiles, weight, products):
    """Return all three."""
    return transformed_pixels(tiles), transformed_weights(weight), results_of(products)


# %% nbgrader={"grade": true, "grade_id": "check_winograd_transforms_rows", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.winograd_transforms_rows(winograd_transforms_rows)

# %% [markdown]
# From here on tiles have two dimensions, and the lesson takes the library's function for them.
