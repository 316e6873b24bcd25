# %% [markdown]
# ### Exercise: adam_step_decoupled
#
# **Core**, about 14 minutes.
#
# **Adam** keeps two running means for each weight: `m` of its gradient and `v` of its gradient squared. It steps along
# m / sqrt(v). While gradients agree, that is about 1 in size, whatever their scale; while they change sign, it is much
# less. So the steep direction no longer dictates the rate of the flat one. (D. Kingma and J. Ba, 2015.)
#
# Both means begin at 0, so they are too small at first. In step t, counted from 1, m is too small by the factor 1 -
# beta1^t. Adam divides by it, and v by its own, *for the step only*.
#
# Weight decay pulls every weight towards 0. As a part of the gradient it would be divided by sqrt(v) too, and weights
# with large gradients would hardly feel it. **AdamW** keeps it out of the means (I. Loshchilov and F. Hutter, 2019):
#
# - m becomes beta1 · m + (1 - beta1) · gradient, and v becomes beta2 · v + (1 - beta2) · gradient²;
# - the step is m̂ / (sqrt(v̂) + epsilon), with m̂ = m / (1 - beta1^t) and v̂ = v / (1 - beta2^t);
# - the parameters lose learning_rate · (step + weight_decay · parameters).
#
# In the first step, a weight of 1 with gradient 2 has the step 1. At rate 0.1 and decay 0.5 it becomes 1 - 0.1 · (1 +
# 0.5 · 1) = 0.85.


# %% nbgrader={"grade": false, "grade_id": "adam_step_decoupled", "locked": false, "schema_version": 3, "solution": true, "task": false}
def adam_step_decoupled(
    parameters, gradient, m, v, t, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01
):
    """Return (parameters, m, v) after step t; the first has t = 1. Arrays are (P,). About 6 lines."""
    ### BEGIN SOLUTION
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    m_hat = m / (1 - beta1**t)
    v_hat = v / (1 - beta2**t)
    step = m_hat / (np.sqrt(v_hat) + epsilon)
    return parameters - learning_rate * (step + weight_decay * parameters), m, v
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_adam_step_decoupled", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.adam_step_decoupled(adam_step_decoupled)

# %% [markdown]
# `nn.Adam` of the library does it the older way: its `weight_decay` is part of the gradient.
