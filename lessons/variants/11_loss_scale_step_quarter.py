# %% [markdown]
# ### Exercise: loss_scale_step_quarter
#
# **Core**, about 10 minutes.
#
# This version is bolder: after an overflow **a quarter** of the scale is left. `gradients` come in float16, with the
# scale in them. Return three things: the gradients in float32 without the scale (or None, if the step is to be skipped),
# the scale for the next step, and how many good steps there were in a row since the scale changed.


# %% nbgrader={"grade": false, "grade_id": "loss_scale_step_quarter", "locked": false, "schema_version": 3, "solution": true, "task": false}
def loss_scale_step_quarter(gradients, scale, good_steps, every):
    """Return (gradients, scale, good_steps): after `every` good steps in a row the scale doubles. About 6 lines."""
    ### BEGIN SOLUTION
    if not np.isfinite(gradients).all():
        return None, scale / 4, 0
    found = gradients.astype(np.float32) / np.float32(scale)
    if good_steps + 1 == every:
        return found, scale * 2, 0
    return found, scale, good_steps + 1
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_loss_scale_step_quarter", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.loss_scale_step_quarter(loss_scale_step_quarter)

# %% [markdown]
# From here on the lesson takes the library's function, which halves.
