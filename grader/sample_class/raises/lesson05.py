"""Functions that raise: layers called like functions, a name that does not exist."""


def sequential_forward(layers, x, training=False):
    for layer in layers:
        x = layer(x)
    return x


def momentum_step(parameters, gradient, velocity, learning_rate, momentum=0.9, weight_decay=0.0):
    velocity = momentum * velocity + gradients  # noqa: F821  the mistake
    return parameters - learning_rate * velocity, velocity
