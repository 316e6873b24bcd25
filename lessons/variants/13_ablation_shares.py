# %% [markdown]
# ### Exercise: ablation_shares
#
# **Core**, about 15 minutes.
#
# `run()` returns the seconds with everything on, `run(batch=False)` those without the cause "batch". Return by cause which
# **share** of the seconds without it the cause saves, all others on: 1 - everything / without. The check's first machines
# have a drift, a slow first run and disturbed ones. The last does real work, and is measured again after you.


# %% nbgrader={"grade": false, "grade_id": "ablation_shares", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ablation_shares(run, causes):
    """Return a dictionary from each of `causes` (a list of names) to its share. About 6 lines."""
    ### BEGIN SOLUTION
    found = {cause: [] for cause in causes}
    for _ in range(9):
        for cause in causes:
            everything = run()
            found[cause].append(1 - everything / run(**{cause: False}))
    return {cause: float(np.median(values)) for cause, values in found.items()}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_ablation_shares", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.ablation_shares(ablation_shares)

# %% [markdown]
# From here on the lesson speaks of factors: a cause that saves a share of s has the factor 1 / (1 - s).
