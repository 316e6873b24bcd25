# %% [markdown]
# ### Exercise: online_softmax_joined
#
# **Core**, about 8 minutes.
#
# Two workers went through two parts of each row. What is left of each part are two numbers a row: the largest score, and
# the sum of exp(score - largest), made with the largest of that part. Return both numbers for the whole row. A worker that
# has seen nothing yet has a largest of -inf and a sum of 0; never do both.


# %% nbgrader={"grade": false, "grade_id": "online_softmax_joined", "locked": false, "schema_version": 3, "solution": true, "task": false}
def online_softmax_joined(largest, total, other_largest, other_total):
    """Return (largest, total) of both parts of each row; all are (T,). About 2 lines."""
    ### BEGIN SOLUTION
    new = np.maximum(largest, other_largest)
    return new, total * np.exp(largest - new) + other_total * np.exp(other_largest - new)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_online_softmax_joined", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.online_softmax_joined(online_softmax_joined)

# %% [markdown]
# A block of scores is a part, too: its largest, and the sum of its exponentials. From here on the library does both in
# one: it takes a block of scores, and what is left of those before it.
