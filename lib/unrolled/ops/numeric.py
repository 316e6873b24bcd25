"""A gradient by finite differences: slow, simple, and the reference for every gradient that was derived by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP = float(np.finfo(np.float64).eps) ** (1 / 3)  # about 6e-6


def numeric_gradient(function: Callable[[NDArray[np.float64]], Any], x: Any, step: float = STEP) -> NDArray[np.float64]:
    """Return the gradient of a function of one array, by central differences: (f(x + h) - f(x - h)) / 2h.

    `function` takes an array of x's shape and returns one number. It is called twice for each value, with a new float64
    array each time (integers and float32 are converted), so that x never changes. The gradient is float64, shaped as x.

    h is `step * max(1, |value|)`. A formula's error grows with h^2 and rounding's with eps / h, where eps = 2.2e-16 is
    float64's precision; their sum is least near h = cube root of eps, the default, and about eps^(2/3) = 4e-11 then
    (Press et al., Numerical Recipes, 5.7). A function that computes in float32 needs a step near 5e-3.

    Raises ValueError for a step that is not positive and for a function that returns more than one number.
    """
    if not 0 < step < np.inf:
        raise ValueError(f"step is {step}; expected a positive number")
    point = np.array(x, dtype=np.float64)
    gradient = np.empty_like(point)
    for index in np.ndindex(point.shape):
        h = step * max(1.0, float(abs(point[index])))
        up, down = point.copy(), point.copy()
        up[index] += h
        down[index] -= h
        distance = up[index] - down[index]  # not quite 2h: x + h and x - h are rounded
        gradient[index] = (_number(function(up)) - _number(function(down))) / distance
    return gradient


def _number(value: Any) -> float:
    if np.ndim(value):
        raise ValueError(f"function gave an array of shape {np.shape(value)}; expected one number")
    return float(value)
