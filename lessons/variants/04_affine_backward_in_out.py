# %% [markdown]
# ### Exercise: affine_backward_in_out
#
# **Core**, about 12 minutes.
#
# Write the three gradients as two products and a sum, for a layer that keeps its weight the other way round: (D, M),
# inputs first, so that y = x @ weight + bias. Keras keeps it so, PyTorch as above. In the sums above, weight[m, d]
# becomes weight[d, m], and nothing else changes.
#
# One sample: x = (2, 3), grad = (1, 10), and the rows of weight are (1, 0) and (4, 1). Then grad_x is (1 · 1 + 10 · 0,
# 1 · 4 + 10 · 1) = (1, 14), grad_weight has the rows (2, 20) and (3, 30), and grad_bias is (1, 10).
#
# Let the shapes lead you: each gradient has the shape of what it belongs to, and often only one product fits. (One case
# has all sizes 4, where every product fits.)


# %% nbgrader={"grade": false, "grade_id": "affine_backward_in_out", "locked": false, "schema_version": 3, "solution": true, "task": false}
def affine_backward_in_out(grad, x, weight):
    """The way back through y = x @ weight + bias. About 4 lines.

    grad (N, M) is the gradient by y; x is (N, D), weight (D, M).
    Return grad_x (N, D), grad_weight (D, M), grad_bias (M,).
    """
    ### BEGIN SOLUTION
    grad_x = grad @ weight.T
    grad_weight = x.T @ grad
    grad_bias = grad.sum(axis=0)
    return grad_x, grad_weight, grad_bias
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_affine_backward_in_out", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.affine_backward_in_out(affine_backward_in_out)

# %% [markdown]
# From here on, weights of dense layers are (M, D) again, as above.
