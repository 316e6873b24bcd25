"""One step of an LSTM: four gates from the input and the last output, then the new cell state and output."""

from __future__ import annotations

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.ops.activation import sigmoid
from unrolled.ops.arguments import as_floats, check_arrays, check_axes, check_shape, rounds_once
from unrolled.ops.lstm.weights import check_layer


@rounds_once
def lstm_step(x: Array, h: Array, c: Array, weight_ih: Array, weight_hh: Array, bias: Array) -> tuple[Array, Array]:
    """Return (h, c), both (N, H), after one step on x (N, D), from h and c (N, H) before it.

    With sums x @ weight_ih.T + h @ weight_hh.T + bias, whose four blocks of H columns are those of i, f, g and o, the
    step is c = sigmoid(f) * c + sigmoid(i) * tanh(g), then h = sigmoid(o) * tanh(c), as in PyTorch's `nn.LSTMCell`.
    Raises ValueError for shapes that do not fit.
    """
    check_arrays(x=x, h=h, c=c, weight_ih=weight_ih, weight_hh=weight_hh, bias=bias)
    check_axes("x", x, "N, D")
    hidden = check_layer((weight_ih, weight_hh, bias), x.shape[1])
    for name, state in (("h", h), ("c", c)):
        check_shape(name, state, (len(x), hidden), f"x {x.shape} and weight_hh {weight_hh.shape}")
    x, h, c, weight_ih, weight_hh, bias = as_floats(x, h, c, weight_ih, weight_hh, bias)
    return states(*activated(*blocks(x @ weight_ih.T + h @ weight_hh.T + bias)), c)


@rounds_once
def lstm_step_backward(grad_h: Array, grad_c: Array, gates: Array, c: Array, c_before: Array) -> tuple[Array, Array]:
    """Return the gradients by the sums before the gates' functions (N, 4 * H) and by c_before (N, H).

    grad_h and grad_c (N, H) are those by the step's outputs; gates (N, 4 * H) are after their functions, c and c_before
    (N, H) the cell states after and before the step. Raises ValueError for shapes that do not fit.
    """
    check_arrays(grad_h=grad_h, grad_c=grad_c, gates=gates, c=c, c_before=c_before)
    check_axes("c", c, "N, H")
    check_shape("gates", gates, (len(c), 4 * c.shape[1]), f"c {c.shape}")
    for name, x in (("grad_h", grad_h), ("grad_c", grad_c), ("c_before", c_before)):
        check_shape(name, x, c.shape, f"c {c.shape}")
    grad_h, grad_c, gates, c, c_before = as_floats(grad_h, grad_c, gates, c, c_before)
    module = array_module(gates)
    (i, f, g, o), tanh_c = blocks(gates), module.tanh(c)
    grad_c = grad_c + grad_h * o * (1 - tanh_c * tanh_c)
    parts = [grad_c * g * i * (1 - i), grad_c * c_before * f * (1 - f), grad_c * i * (1 - g * g)]
    return module.concatenate((*parts, grad_h * tanh_c * o * (1 - o)), axis=1), grad_c * f


def blocks(gates: Array) -> list[Array]:
    """Return views of i, f, g and o, each (..., H), in gates (..., 4 * H)."""
    size = gates.shape[-1] // 4
    return [gates[..., k * size : (k + 1) * size] for k in range(4)]


def activated(i: Array, f: Array, g: Array, o: Array) -> tuple[Array, Array, Array, Array]:
    """Return the gates (N, H) after their functions, from their sums: tanh for g, sigmoid for the others."""
    return sigmoid(i), sigmoid(f), array_module(g).tanh(g), sigmoid(o)


def states(i: Array, f: Array, g: Array, o: Array, c: Array) -> tuple[Array, Array]:
    """Return the new (h, c) from the gates after their functions and the old c, all (N, H)."""
    c = f * c + i * g
    return o * array_module(c).tanh(c), c


def fused(sums_x: Array, sums_h: Array, bias: Array, c_before: Array, gates: Array, c: Array, h: Array) -> None:
    """Write gates (..., N, 4 * H), c and h (..., N, H): in one launch on a GPU, in place on the CPU.

    The sums may lie where the gates go. bias is (..., 4 * H).
    """
    if kernels.take(sums_x, sums_h, bias, c_before):
        sizes = kernels.constants(hidden=c.shape[-1], samples=c.shape[-2])
        kernels.lstm_cell((sums_x, sums_h, bias, c_before), (gates, c, h), sizes)
        return
    module, (i, f, g, o) = array_module(c), blocks(gates)
    module.add(sums_x, sums_h, out=gates)
    gates += bias.reshape((*bias.shape[:-1], 1, bias.shape[-1]))
    g += g  # sigmoid(x) is 0.5 + 0.5 * tanh(x / 2), and one tanh over all four blocks is cheaper than an exp for three
    gates *= 0.5
    module.tanh(gates, out=gates)
    for gate in (i, f, o):
        gate *= 0.5
        gate += 0.5
    module.multiply(f, c_before, out=c)
    c += i * g
    module.tanh(c, out=h)
    h *= o
