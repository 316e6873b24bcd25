# %% [markdown]
# ### Exercise: prune_filters
#
# **Core**, about 9 minutes.
#
# Leave out **whole filters**, so that the matrix really becomes smaller. `weight` is (O, K), a row for each filter. Set
# the rows with the smallest sums of magnitudes to 0, `int(fraction * O)` of them, whichever of equal ones. Then
# fine-tune: subtract each of `updates` in turn, and see to it that what was pruned stays 0. `fraction` may be 0 or 1.


# %% nbgrader={"grade": false, "grade_id": "prune_filters", "locked": false, "schema_version": 3, "solution": true, "task": false}
def prune_filters(weight, fraction, updates):
    """Return the weights after all updates, in a new array of their shape. About 6 lines."""
    ### BEGIN SOLUTION
    mask = np.ones((len(weight), 1), weight.dtype)
    mask[np.argsort(np.abs(weight).sum(axis=1))[: int(fraction * len(weight))]] = 0
    weight = weight * mask
    for update in updates:
        weight = (weight - update) * mask
    return weight
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_prune_filters", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.prune_filters(prune_filters)

# %% [markdown]
# From here on single weights go, and the lesson takes the library's function for it.
