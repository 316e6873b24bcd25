# %% [markdown]
# ### Exercise: numeric_gradient_directional
#
# **Core**, about 15 minutes.
#
# There is a cheaper question than the slope by each number: move *all* numbers at once, along a direction, and ask for
# the slope of that way. For a² + b² + c² at (1, -2, 3) the gradient is (2, -4, 6). Along (1, 0, 2), a grows by 1 while
# c grows by 2, and the slope is 1 · 2 + 0 · (-4) + 2 · 6 = 14: the gradient times the direction, added up. Twice the
# direction has twice the slope.
#
# `function` takes an array of x's shape and returns one number; `direction` has x's shape, too. Ask the function twice,
# no more, however large x is: once `step` times the direction ahead of x, once as far behind it. Work in float64, for
# the difference is small, and leave x as it is.
#
# The check hands you five functions whose gradient somebody derived by hand, right and with a planted error: a sign, a
# missing 1/N, a transposed square matrix, a ReLU that lets everything through, one number off by 1 %. It multiplies
# both gradients by a random direction and holds them against your slope. Yours must agree with the right one to a
# millionth, so that none of the five gets away.


# %% nbgrader={"grade": false, "grade_id": "numeric_gradient_directional", "locked": false, "schema_version": 3, "solution": true, "task": false}
def numeric_gradient_directional(function, x, direction, step=1e-5):
    """The slope of function at x along direction, by central differences: one number. About 3 lines.

    x and direction have one shape, and perhaps float32; function takes an array of that shape and returns a number.
    """
    ### BEGIN SOLUTION
    x = np.array(x, dtype=np.float64)
    way = step * np.array(direction, dtype=np.float64)
    return (function(x + way) - function(x - way)) / (2 * step)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_numeric_gradient_directional", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.numeric_gradient_directional(numeric_gradient_directional)

# %% [markdown]
# One direction tells whether *something* is wrong, and two questions are enough for a million weights. It does not tell
# where. For that, take a direction that is 1 at one number and 0 elsewhere: its slope is the gradient by that number.
# Go through all numbers like this and you have the whole gradient, which is what `ops.numeric_gradient` does. The rest
# of the lesson takes it as the judge.
