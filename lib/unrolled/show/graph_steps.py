"""A small network forward and backward, number by number, and what becomes of training when a gradient is broken.

The network: x (N, D) -> affine 1 -> ReLU -> affine 2 -> softmax and cross entropy, mean over N.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unrolled import ops
from unrolled.show.cells import on_host

Values = NDArray[np.float64]
Named = dict[str, Values]
Arrays = tuple[ArrayLike, ...]

PARAMETERS = ("weight 1", "bias 1", "weight 2", "bias 2")


@dataclass(frozen=True)
class Break:
    """One wrong line in the backward pass: `change(right, passed)` is what it gives for `name`.

    right is the right gradient (given what came before), passed the gradient that arrived.
    """

    name: str
    short: str
    words: str
    change: Callable[[Values, Values], Values]


def _one_percent(right: Values, _: Values) -> Values:
    wrong: Values = right.copy()
    wrong.flat[np.abs(wrong).argmax()] *= 1.01
    return wrong


BREAKS = (
    None,
    Break("bias 1", "sign of bias 1", "bias 1 has the wrong sign", lambda right, *_: -right),
    Break("affine 1", "ReLU leaks", "the ReLU lets every gradient through", lambda _, passed: passed),
    Break("scores", "1/N forgotten", "the loss forgets the 1/N of its mean", lambda right, *_: right * len(right)),
    Break("weight 2", "1 % too large", "one number of weight 2 is 1 % too large", _one_percent),
    Break("scores", "every sign", "the loss turns the sign of all", lambda right, *_: -right),
)


@dataclass(frozen=True)
class Network:
    """Inputs (N, D), labels (N,), and the parameters by name: weights (M, D), biases (M,)."""

    x: Values
    labels: NDArray[np.int64]
    parameters: Named

    @classmethod
    def of(cls, x: ArrayLike, labels: ArrayLike, weights: Arrays, biases: Arrays) -> Network:
        arrays = [on_host(array, np.float64) for pair in zip(weights, biases, strict=True) for array in pair]
        if len(arrays) != len(PARAMETERS):
            raise ValueError(f"weights holds {len(weights)} arrays; expected 2, one for each affine node")
        network = cls(on_host(x, np.float64), on_host(labels), dict(zip(PARAMETERS, arrays, strict=True)))
        forward(network)  # raises ValueError where shapes do not fit
        return network


def forward(network: Network) -> Named:
    """Return all values on the way to the loss by name; the loss is (1, 1)."""
    at = network.parameters
    values = {"x": network.x, "affine 1": ops.affine(network.x, at["weight 1"], at["bias 1"])}
    values["ReLU"] = ops.relu(values["affine 1"])
    values["scores"] = ops.affine(values["ReLU"], at["weight 2"], at["bias 2"])
    values["softmax"] = ops.softmax(values["scores"])
    loss, _ = ops.softmax_cross_entropy(values["scores"], network.labels)
    return values | {"loss": np.array([[loss]])}


def backward(network: Network, values: Named, broken: Break | None = None) -> Named:
    """Return the gradient of the loss with respect to the values and parameters, by name, in the order of computation.

    Softmax and loss go backward in one step, so "softmax" has none. `broken` replaces one gradient by a wrong one.
    """
    grads: Named = {"loss": np.ones((1, 1))}

    def keep(name: str, right: Values, passed: Values) -> None:
        grads[name] = broken.change(right, passed) if broken and broken.name == name else right

    keep("scores", ops.softmax_cross_entropy(values["scores"], network.labels)[1], values["softmax"])
    for affine, out, into in (("2", "scores", "ReLU"), ("1", "affine 1", "x")):
        if affine == "1":
            keep(out, ops.relu_backward(grads["ReLU"], values[out]), grads["ReLU"])
        found = ops.affine_backward(grads[out], values[into], network.parameters[f"weight {affine}"])
        for name, grad in zip((into, f"weight {affine}", f"bias {affine}"), found, strict=True):
            keep(name, grad, grads[out])
    return grads


def losses(network: Network, broken: Break | None, steps: int, learning_rate: float) -> list[float]:
    """Return the loss before each step of gradient descent and after the last, with the right or a broken gradient."""
    parameters = dict(network.parameters)
    curve = []
    for _ in range(steps + 1):
        now = Network(network.x, network.labels, parameters)
        values = forward(now)
        curve.append(float(values["loss"][0, 0]))
        grads = backward(now, values, broken)
        parameters = {name: value - learning_rate * grads[name] for name, value in parameters.items()}
    return curve
