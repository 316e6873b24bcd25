"""A step of each optimizer in one launch: every value is read once and written once.

Rules and names are those of `unrolled.nn.optim`. Memory holds sums, not means, as there: the factor 1 - decay goes into
the rate and into epsilon. Outputs are (parameters, memory...), and are updated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unrolled.kernels.kernel import Arrays, Kernel, Options, per_value

HEAD = "\n    T g = gradients[at] + (T)weight_decay * p[at];\n    "
ROWS = "_from_row"  # ends the name of a kernel that finds its options in an array


def _update(rule: Callable[..., Any], row: Sequence[str] = ()) -> Callable[[Arrays, Arrays, Options], None]:
    """The NumPy function of a rule(g, memory..., options) that updates the memory and gives what to subtract.

    row: the names of options that lie in an array, an input more.
    """

    def numpy(inputs: Arrays, outputs: Arrays, options: Options) -> None:
        (gradients, *rows), (p, *memory) = inputs, outputs
        for values in rows:
            options = dict(zip(row, values, strict=True))
        others = {name: value for name, value in options.items() if name not in ("weight_decay", "name")}
        g = gradients + options["weight_decay"] * p if options["weight_decay"] else gradients
        with np.errstate(all="ignore"):
            p -= rule(g, *memory, **others)

    return numpy


def _sgd(g: Any, rate: float) -> Any:
    return rate * g


def _momentum(g: Any, v: Any, rate: float, momentum: float) -> Any:
    v *= momentum
    v += g
    return rate * v


def _nesterov(g: Any, v: Any, rate: float, momentum: float) -> Any:
    v *= momentum
    v += g
    return rate * (g + momentum * v)


def _scaled(g: Any, s: Any, rate: float, decay: float, epsilon: float) -> Any:
    s *= decay
    s += g * g
    return rate * g / (np.sqrt(s) + epsilon)


def _adam(g: Any, m: Any, s: Any, rate: float, beta1: float, beta2: float, epsilon: float) -> Any:
    m *= beta1
    m += g
    s *= beta2
    s += g * g
    return rate * m / (np.sqrt(s) + epsilon)


def _adadelta(g: Any, s: Any, u: Any, rate: float, decay: float, epsilon: float) -> Any:
    s *= decay
    s += g * g
    d = np.sqrt((u + epsilon) / (s + epsilon)) * g
    u *= decay
    u += d * d
    return rate * d


def _kernel(name: str, memory: str, options: str, body: str, rule: Callable[..., Any], flops: int) -> Kernel:
    """A kernel that gets gradients and parameters, arrays of memory and options by name, and the decay of weights."""
    names, body = (*options.split(), "weight_decay"), f"{HEAD}{body}\n"
    arrays = ", ".join(["p", *memory.split()])
    read = "".join(f"\n    T {each} = row[{at}];" for at, each in enumerate(names))

    def count(inputs: Arrays, *_: Any) -> int:
        return flops * int(inputs[0].size)

    FROM_ROW[name] = per_value(
        f"{name}{ROWS}", f"gradients, row -> {arrays}", read + body, _update(rule, names), count, updates=True
    )
    return per_value(name, f"gradients -> {arrays}; {', '.join(names)}", body, _update(rule), count, updates=True)


FROM_ROW: dict[str, Kernel] = {}
"""By an optimizer's kernel: the same step with options from an array, (options..., weight_decay), an input more."""


VELOCITY = "T speed = v[at] = (T)momentum * v[at] + g;\n    "
MOMENTUM = VELOCITY + "p[at] -= (T)rate * speed;"
NESTEROV = VELOCITY + "p[at] -= (T)rate * (g + (T)momentum * speed);"
SQUARES = "T squares = s[at] = (T)decay * s[at] + g * g;\n    "
SCALED = SQUARES + "p[at] -= (T)rate * g / (SQRT(squares) + (T)epsilon);"
ADAM = """T mean = m[at] = (T)beta1 * m[at] + g;
    T squares = s[at] = (T)beta2 * s[at] + g * g;
    p[at] -= (T)rate * mean / (SQRT(squares) + (T)epsilon);"""
ADADELTA = f"""{SQUARES}T d = SQRT((u[at] + (T)epsilon) / (squares + (T)epsilon)) * g;
    u[at] = (T)decay * u[at] + d * d;
    p[at] -= (T)rate * d;"""

sgd = _kernel("sgd", "", "rate", "p[at] -= (T)rate * g;", _sgd, 4)
momentum = _kernel("momentum", "v", "rate momentum", MOMENTUM, _momentum, 6)
nesterov = _kernel("nesterov", "v", "rate momentum", NESTEROV, _nesterov, 8)
scaled = _kernel("scaled", "s", "rate decay epsilon", SCALED, _scaled, 10)
"""AdaGrad (a decay of 1) and RMSProp."""
adam = _kernel("adam", "m s", "rate beta1 beta2 epsilon", ADAM, _adam, 12)
adadelta = _kernel("adadelta", "s u", "rate decay epsilon", ADADELTA, _adadelta, 15)
