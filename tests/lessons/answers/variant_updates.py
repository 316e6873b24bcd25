"""Wrong steps of optimizers, in the variants of lesson 05."""

import numpy as np

# momentum_step_nesterov


def nesterov(step):
    """`step(p, g, v, rate, momentum)` with the decay in the gradient g and the new velocity v."""

    def variant(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
        gradient = gradient + weight_decay * parameters
        velocity = momentum * velocity + gradient
        return step(parameters, gradient, velocity, learning_rate, momentum)

    return variant


right_nesterov = nesterov(lambda p, g, v, r, m: (p - r * (g + m * v), v))


def nesterov_with_the_old_velocity(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
    gradient = gradient + weight_decay * parameters
    ahead = gradient + momentum * velocity
    return parameters - learning_rate * ahead, momentum * velocity + gradient


def nesterov_without_decay(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
    return right_nesterov(parameters, gradient, velocity, learning_rate, momentum)


def nesterov_decaying_beside(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
    stepped, velocity = right_nesterov(parameters, gradient, velocity, learning_rate, momentum)
    return stepped - learning_rate * weight_decay * parameters, velocity


def nesterov_with_the_rate_inside(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
    gradient = learning_rate * (gradient + weight_decay * parameters)
    velocity = momentum * velocity + gradient
    return parameters - (gradient + momentum * velocity), velocity


def nesterov_in_place(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
    gradient += weight_decay * parameters
    return right_nesterov(parameters, gradient, velocity, learning_rate, momentum)


# adam_step_decoupled


def decoupled(parameters, gradient, m, v, t, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, **change):
    """AdamW with one thing changed."""
    decay = change.pop("weight_decay", 0.01)
    if change.get("in_gradient"):
        gradient = gradient + decay * parameters
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    t = t + change.get("shift", 0)
    m_hat, v_hat = (m, v) if change.get("uncorrected") else (m / (1 - beta1**t), v / (1 - beta2**t))
    step = m_hat / change.get("by", lambda v, epsilon: np.sqrt(v) + epsilon)(v_hat, epsilon)
    if change.get("in_gradient") or change.get("no_decay"):
        moved = parameters - learning_rate * step
    elif change.get("after"):
        moved = (parameters - learning_rate * step) * (1 - learning_rate * decay)
    elif change.get("whole"):
        moved = parameters - learning_rate * step - decay * parameters
    else:
        moved = parameters - learning_rate * (change.get("sign", 1) * step + change.get("pull", 1) * decay * parameters)
    return moved, *((m_hat, v_hat) if change.get("keep_corrected") else (m, v))


def decoupled_with(**change):
    def variant(
        parameters,
        gradient,
        m,
        v,
        t,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
        weight_decay=0.01,
    ):
        given = (parameters, gradient, m, v, t, learning_rate, beta1, beta2, epsilon)
        return decoupled(*given, weight_decay=weight_decay, **change)

    return variant


def decoupled_in_float64(parameters, gradient, m, v, **options):
    return decoupled(*(array.astype(float) for array in (parameters, gradient, m, v)), **options)


def decoupled_in_place(parameters, gradient, m, v, **options):
    parameters *= 1 - options.get("learning_rate", 0.001) * options.get("weight_decay", 0.01)
    return decoupled(parameters, gradient, m, v, **options, no_decay=True)
