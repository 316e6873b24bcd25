"""Batch normalization: every channel gets mean beta and standard deviation gamma, whatever it had before.

x_hat = (x - mean) / sqrt(variance + epsilon) and y = gamma * x_hat + beta, with one mean and one variance a channel,
over all images and positions (Ioffe and Szegedy, 2015, arXiv:1502.03167).
"""

from __future__ import annotations

from unrolled.device import Array
from unrolled.ops.arguments import as_floats, check_array, check_arrays, check_axes, check_shape, rounds_once

OVER = (0, 2, 3)  # all axes of (N, C, H, W) but the channels'


@rounds_once
def batch_statistics(x: Array) -> tuple[Array, Array]:
    """Return mean and variance (C,) of each channel of x (N, C, H, W); the variance divides by N * H * W.

    float32 in, float32 out; integers count as float32. Raises ValueError for other axes and for no values.
    """
    check_array("x", x)
    check_axes("x", x, "N, C, H, W")
    (x,) = as_floats(x)
    if not len(x) * x.shape[2] * x.shape[3]:
        raise ValueError(f"x has shape {x.shape}: the mean of no values is undefined")
    mean = x.mean(axis=OVER)
    centred = x - _row(mean)
    return mean, (centred * centred).mean(axis=OVER)


@rounds_once
def batch_norm2d(
    x: Array,
    gamma: Array,
    beta: Array,
    mean: Array | None = None,
    variance: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> Array:
    """Return gamma * (x - mean) / sqrt(variance + epsilon) + beta for x (N, C, H, W); all others are (C,).

    Without mean and variance they are those of this batch, as in training; a network in use gives its running averages.
    float32 in, float32 out; integers count as float32. Raises ValueError for shapes that do not fit, for one of mean
    and variance without the other, and for a batch of no values that has to give its own.
    """
    if (mean is None) != (variance is None):
        raise ValueError(f"{'mean' if mean is None else 'variance'} is missing: give mean and variance, or neither")
    if mean is None:
        mean, variance = batch_statistics(x)
    module = check_arrays(x=x, gamma=gamma, beta=beta, mean=mean, variance=variance)
    _check(x, gamma=gamma, beta=beta, mean=mean, variance=variance)
    x, gamma, beta, mean, variance = as_floats(x, gamma, beta, mean, variance)
    y = x - _row(mean)
    y *= _row(gamma / module.sqrt(variance + epsilon))
    y += _row(beta)
    return y


@rounds_once
def batch_norm2d_backward(grad: Array, x: Array, gamma: Array, *, epsilon: float = 1e-5) -> tuple[Array, Array, Array]:
    """Return (grad_x, grad_gamma, grad_beta) from grad (N, C, H, W), the gradient of the loss by batch_norm2d's output.

    The output is that with the batch's own mean and variance. They depend on x too, so of each channel's gradient two
    parts are lost: its mean, and what it has in common with x_hat. Written out, with means over N, H and W:

        grad_x = gamma / sqrt(variance + epsilon) * (grad - mean(grad) - x_hat * mean(grad * x_hat))

    grad_gamma (C,) sums grad * x_hat, and grad_beta (C,) sums grad. Raises ValueError for shapes that do not fit.
    """
    module = check_arrays(grad=grad, x=x, gamma=gamma)
    check_axes("x", x, "N, C, H, W")
    check_shape("grad", grad, x.shape, f"x {x.shape}")
    _check(x, gamma=gamma)
    grad, x, gamma = as_floats(grad, x, gamma)
    mean, variance = batch_statistics(x)
    inverse = 1 / module.sqrt(variance + epsilon)
    x_hat = (x - _row(mean)) * _row(inverse)
    grad_gamma, grad_beta = (grad * x_hat).sum(axis=OVER), grad.sum(axis=OVER)
    count = len(x) * x.shape[2] * x.shape[3]
    x_hat *= _row(grad_gamma / count)
    grad_x = grad - _row(grad_beta / count)
    grad_x -= x_hat
    grad_x *= _row(gamma * inverse)
    return grad_x, grad_gamma, grad_beta


def _row(values: Array) -> Array:
    """Values (C,) as (C, 1, 1), which broadcast over images and positions."""
    return values.reshape(len(values), 1, 1)


def _check(x: Array, **values: Array) -> None:
    check_axes("x", x, "N, C, H, W")
    for name, value in values.items():
        check_shape(name, value, x.shape[1:2], f"x {x.shape}")
