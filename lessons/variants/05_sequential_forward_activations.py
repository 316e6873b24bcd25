# %% [markdown]
# ### Exercise: sequential_forward_activations
#
# **Core**, about 5 minutes.
#
# Send a batch through all layers, and keep everything on the way: x itself, then what each layer gives. Whoever wants
# to see what a network makes of an image needs that list; so does a way back that does not want each layer to keep its
# own.
#
# If the first layer doubles and the second adds 1, the batch [[1, 2]] gives [[[1, 2]], [[2, 4]], [[3, 5]]]: three items
# for two layers. The last one is what the network gives.
#
# The word `training` is passed on to each layer: in training a layer keeps what its way back will need, and some layers
# (dropout, which comes later) do something else than in use.


# %% nbgrader={"grade": false, "grade_id": "sequential_forward_activations", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sequential_forward_activations(layers, x, training=False):
    """Return a list: x, then what each layer gives, in order. About 4 lines.

    layers is a tuple; each has layer.forward(x, training).
    """
    ### BEGIN SOLUTION
    kept = [x]
    for layer in layers:
        kept.append(layer.forward(kept[-1], training))
    return kept
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_sequential_forward_activations", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.sequential_forward_activations(sequential_forward_activations)
