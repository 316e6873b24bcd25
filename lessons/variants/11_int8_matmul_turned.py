# %% [markdown]
# ### Exercise: int8_matmul_turned
#
# **Core**, about 4 minutes.
#
# Many units want both factors row by row. Multiply two int8 matrices, a (N, K) and **b (M, K)**, each row of a with each
# row of b, with sums that do not wrap round. Every bit has to be right. int32 has room for more than 100,000 terms.


# %% nbgrader={"grade": false, "grade_id": "int8_matmul_turned", "locked": false, "schema_version": 3, "solution": true, "task": false}
def int8_matmul_turned(a, b):
    """Return the products (N, M) in int32 of rows of a (N, K) with rows of b (M, K), both int8. About 1 line."""
    ### BEGIN SOLUTION
    return a.astype(np.int32) @ b.T.astype(np.int32)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_int8_matmul_turned", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.int8_matmul_turned(int8_matmul_turned)

# %% [markdown]
# From here on the second factor stands as usual, and the lesson takes the library's function for it.
