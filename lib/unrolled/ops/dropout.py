"""Dropout: forget some values at random while training, so that no neuron can rely on one other alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled import kernels
from unrolled.device import Array
from unrolled.ops.arguments import as_floats, check_arrays, check_shape, rounds_once


@rounds_once
def dropout(x: Array, rate: float, rng: Any) -> tuple[Array, Array]:
    """Return x * mask, and the mask: 0 with probability `rate`, else 1 / (1 - rate), in x's dtype. 0 <= rate < 1.

    Dividing by 1 - rate keeps the mean, so that nothing need be done when the network is used (inverted dropout;
    Srivastava et al., 2014, Journal of Machine Learning Research 15). `rng` is a generator of x's array library, as
    of numpy.random.default_rng(seed); the same seed gives the same mask for any dtype.
    Raises ValueError for another rate, TypeError for an rng that is none.
    """
    if not 0 <= rate < 1:
        raise ValueError(f"rate is {rate}; expected 0 or more and below 1")
    if not callable(getattr(rng, "random", None)):
        raise TypeError(f"rng is {rng!r}; expected a random generator, as of numpy.random.default_rng(seed)")
    module = check_arrays(x=x)
    (x,) = as_floats(x)
    chance = rng.random(x.shape, dtype=np.float32)
    if kernels.take(x):
        y, mask = (module.empty(x.shape, dtype=x.dtype) for _ in range(2))
        kernels.dropout((x, chance), (y, mask), rate=float(rate))
        return y, mask
    keep = chance >= float(rate)
    mask = keep.astype(x.dtype)
    mask *= 1 / (1 - float(rate))
    return x * mask, mask


@rounds_once
def dropout_backward(grad: Array, mask: Array) -> Array:
    """Return grad * mask, for the mask that `dropout` returned. Raises ValueError if the shapes differ."""
    check_arrays(grad=grad, mask=mask)
    check_shape("grad", grad, mask.shape, f"mask {mask.shape}")
    grad, mask = as_floats(grad, mask)
    return grad * mask
