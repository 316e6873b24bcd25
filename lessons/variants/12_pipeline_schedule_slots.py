# %% [markdown]
# ### Exercise: pipeline_schedule_slots
#
# **Core**, about 8 minutes.
#
# Return any valid schedule of at most 2(m + p - 1) slots: **a list for each slot**, with an entry for each stage. That is
# `("F", i)` for the forward pass of micro-batch i, `("B", i)` for its backward pass, and None for nothing.


# %% nbgrader={"grade": false, "grade_id": "pipeline_schedule_slots", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pipeline_schedule_slots(stages, micro_batches):
    """Return a list of entries, one for each stage, for each slot. About 7 lines."""
    ### BEGIN SOLUTION
    half = micro_batches + stages - 1
    slots = [[None] * stages for _ in range(2 * half)]
    for stage in range(stages):
        for i in range(micro_batches):
            slots[stage + i][stage] = ("F", i)
            slots[half + (stages - 1 - stage) + i][stage] = ("B", i)
    return slots
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_pipeline_schedule_slots", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.pipeline_schedule_slots(pipeline_schedule_slots)

# %% [markdown]
# From here on a schedule is a list for each stage.
