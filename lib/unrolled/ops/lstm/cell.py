"""One step of an LSTM: four gates from the input and the last output, then the new cell state and output."""

from __future__ import annotations

from unrolled.device import Array, array_module
from unrolled.ops.activation import sigmoid


def lstm_step(x: Array, h: Array, c: Array, weight_ih: Array, weight_hh: Array, bias: Array) -> tuple[Array, Array]:
    """Return (h, c), both (N, H), after one step on x (N, D), from h and c (N, H) before it.

    With gates i, f, g, o = x @ weight_ih.T + h @ weight_hh.T + bias, four blocks of H columns, the step is
    c = sigmoid(f) * c + sigmoid(i) * tanh(g) and h = sigmoid(o) * tanh(c), as in PyTorch's `nn.LSTMCell`.
    Raises ValueError for shapes that do not fit.
    """
    gates = activated(x @ weight_ih.T + h @ weight_hh.T + bias)
    return states(gates, c)


def activated(sums: Array) -> Array:
    """Return the gates (N, 4 * H) after their functions: tanh for the third block, sigmoid for the others."""
    module, size = array_module(sums), sums.shape[1] // 4
    i, f, g, o = (sums[:, k * size : (k + 1) * size] for k in range(4))
    return module.concatenate([sigmoid(i), sigmoid(f), module.tanh(g), sigmoid(o)], axis=1)


def states(gates: Array, c: Array) -> tuple[Array, Array]:
    """Return the new (h, c) from the gates after their functions (N, 4 * H) and the old c (N, H)."""
    i, f, g, o = blocks(gates)
    c = f * c + i * g
    return o * array_module(c).tanh(c), c


def blocks(gates: Array) -> list[Array]:
    """Return views of i, f, g and o, each (N, H), in gates (N, 4 * H)."""
    size = gates.shape[-1] // 4
    return [gates[..., k * size : (k + 1) * size] for k in range(4)]


def lstm_step_backward(grad_h: Array, grad_c: Array, gates: Array, c: Array, c_before: Array) -> tuple[Array, Array]:
    """Return the gradients by the sums before the gates' functions (N, 4 * H) and by c_before (N, H).

    grad_h and grad_c (N, H) are those by the step's outputs; gates (N, 4 * H) are after their functions.
    """
    module = array_module(gates)
    i, f, g, o = blocks(gates)
    tanh_c = module.tanh(c)
    grad_c = grad_c + grad_h * o * (1 - tanh_c * tanh_c)
    parts = [grad_c * g * i * (1 - i), grad_c * c_before * f * (1 - f), grad_c * i * (1 - g * g)]
    parts.append(grad_h * tanh_c * o * (1 - o))
    return module.concatenate(parts, axis=1), grad_c * f
