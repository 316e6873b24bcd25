# %% [markdown]
# ### Exercise: binary_matmul_agreement
#
# **Core**, about 15 minutes.
#
# Count how many signs **agree** (the product of the signs follows from it: twice that, less k). a and b hold signs, 64 in
# a word, the first one in the lowest bit. If k is no multiple of 64, the last word has bits left over. They can be
# anything, so leave them out. The check asks for 3 times the speed of a product with an int32 for each sign.


# %% nbgrader={"grade": false, "grade_id": "binary_matmul_agreement", "locked": false, "schema_version": 3, "solution": true, "task": false}
def binary_matmul_agreement(a, b, k):
    """Return how many of k signs agree, (N, M) in int32, for uint64 a (N, W) and b (M, W). About 7 lines."""
    ### BEGIN SOLUTION
    words = np.full(a.shape[1], 2**64 - 1, np.uint64)
    if k % 64:
        words[-1] = (1 << k % 64) - 1
    y = np.empty((len(a), len(b)), np.int32)
    for row in range(len(a)):
        y[row] = k - np.bitwise_count((a[row] ^ b) & words).sum(axis=1, dtype=np.int32)
    return y
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_binary_matmul_agreement", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.binary_matmul_agreement(binary_matmul_agreement)

# %% [markdown]
# From here on the products of the signs are meant, and the lesson takes the library's function for them.
