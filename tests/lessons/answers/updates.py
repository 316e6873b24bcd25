"""Wrong steps of optimizers, in lesson 05."""

import numpy as np

# momentum_step


def momentum(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
    velocity = momentum * velocity + gradient + weight_decay * parameters
    return parameters - learning_rate * velocity, velocity


def momentum_in_place(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
    velocity *= momentum
    velocity += gradient + weight_decay * parameters
    parameters -= learning_rate * velocity
    return parameters, velocity


def momentum_without_its_velocity(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
    velocity = momentum * velocity + gradient + weight_decay * parameters
    return parameters - learning_rate * velocity


# adam_step


def adam(parameters, gradient, m, v, t, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, **change):
    """Adam with one thing changed."""
    weigh = change.get("weigh", lambda old, new, beta: beta * old + (1 - beta) * new)
    m, v = weigh(m, gradient, beta1), weigh(v, gradient if change.get("square") is False else gradient**2, beta2)
    if change.get("squared_weight"):
        v = v - beta2 * (1 - beta2) * gradient**2
    t = t + change.get("shift", 0)
    divisor = change.get("divisor", lambda beta, t: 1 - beta**t)
    m_hat, v_hat = m if change.get("raw_m") else m / divisor(beta1, t), v / divisor(beta2, t)
    if change.get("correct") is False:
        m_hat, v_hat = m, v
    if change.get("inside"):
        step = m_hat / np.sqrt(v_hat + epsilon)
    elif change.get("beside"):
        step = m_hat / np.sqrt(v_hat) + epsilon / learning_rate
    elif change.get("bare"):
        step = m_hat / np.sqrt(v_hat)
    elif change.get("root") is False:
        step = m_hat / (v_hat + epsilon)
    else:
        step = m_hat / (np.sqrt(v_hat) + epsilon)
    kept = (m_hat, v_hat) if change.get("keep_corrected") else (m, v)
    return parameters - change.get("sign", 1) * learning_rate * step, *kept


def adam_in_float64(parameters, gradient, m, v, t, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8):
    arrays = (array.astype(float) for array in (parameters, gradient, m, v))
    return adam(*arrays, t, learning_rate, beta1, beta2, epsilon)


def adam_in_place(parameters, gradient, m, v, t, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8):
    m *= beta1
    m += (1 - beta1) * gradient
    return adam(parameters, gradient, m, v, t, learning_rate, beta1, beta2, epsilon)


def adam_without_m_and_v(parameters, gradient, m, v, t, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8):
    return adam(parameters, gradient, m, v, t, learning_rate, beta1, beta2, epsilon)[0]
