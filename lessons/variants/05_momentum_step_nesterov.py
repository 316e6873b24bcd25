# %% [markdown]
# ### Exercise: momentum_step_nesterov
#
# **Core**, about 10 minutes.
#
# One step with **Nesterov's momentum**. The ball knows that its velocity will carry it on, so the step already takes
# that into account: it goes along the gradient plus what the new velocity will add next time. It brakes earlier before
# a slope that rises again. (Y. Nesterov, 1983; in this form, for neural networks, I. Sutskever and others, 2013.)
#
# And with **weight decay**: a pull of every weight towards 0, as if `weight_decay * parameters` were part of the
# gradient. Small weights make smoother functions. In this order:
#
# 1. the gradient gets the decay on top;
# 2. the velocity becomes `momentum` times the old one plus that gradient;
# 3. the parameters go against *gradient plus `momentum` times the new velocity*, times the learning rate.
#
# From parameters 1 with gradient 2 and velocity 0, at rate 0.1, momentum 0.9 and no decay, the velocity becomes 2, and
# the parameters 1 - 0.1 · (2 + 0.9 · 2) = 0.62. Return new arrays and leave those that came in as they are.


# %% nbgrader={"grade": false, "grade_id": "momentum_step_nesterov", "locked": false, "schema_version": 3, "solution": true, "task": false}
def momentum_step_nesterov(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
    """Return (parameters, velocity) after one step; all arrays are (P,). About 4 lines."""
    ### BEGIN SOLUTION
    gradient = gradient + weight_decay * parameters
    velocity = momentum * velocity + gradient
    ahead = gradient + momentum * velocity
    return parameters - learning_rate * ahead, velocity
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_momentum_step_nesterov", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.momentum_step_nesterov(momentum_step_nesterov)

# %% [markdown]
# Does the ball brake in the valley of before? Add `"Nesterov": {rate: path(nn.SGD(rate, momentum=0.9, nesterov=True))
# for rate in rates}` to `paths` above, and compare it with plain momentum 0.9: at the rate 0.1, its loss after 60 steps
# is less than a tenth.
