# %% [markdown]
# ### Exercise: wavefront_backward
#
# **Core**, about 7 minutes.
#
# Gradients go the other way. On the way back cell (layer, step) needs (layer + 1, step) and (layer, step + 1), and the
# last layer at the last step comes first. Return a schedule of the way back: a list of slots, each a list of the cells
# (layer, step) that fire in it, counted from 0. Any valid schedule counts, if it has at most layers + steps - 1 slots.


# %% nbgrader={"grade": false, "grade_id": "wavefront_backward", "locked": false, "schema_version": 3, "solution": true, "task": false}
def wavefront_backward(layers, steps):
    """Return the cells (layer, step) that fire in each slot. About 5 lines."""
    ### BEGIN SOLUTION
    slots = [[] for _ in range(layers + steps - 1)]
    for layer in range(layers):
        for step in range(steps):
            slots[layers + steps - 2 - layer - step].append((layer, step))
    return slots
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_wavefront_backward", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.wavefront_backward(wavefront_backward)

# %% [markdown]
# The picture shows the way forward, with the library's schedule.
