"""An LSTM of PyTorch's with what went in and what came out, as NumPy arrays, for all forms of ours to repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from unrolled import ops
from unrolled.device import to_host

NAMES = ("weight_ih", "weight_hh", "bias_ih")


@dataclass(frozen=True)
class Case:
    """Inputs, weights, states, and PyTorch's results in float64: of the forward pass, and all gradients."""

    x: Any
    weights: list[ops.LSTMWeights]
    state: tuple[Any, Any]
    grad: Any
    results: list[Any]

    def on(self, array: Callable[[Any], Any]) -> Case:
        """Return the case with its inputs made arrays by `array`."""
        h, c = map(array, self.state)
        weights = [ops.LSTMWeights(*map(array, layer)) for layer in self.weights]
        return Case(array(self.x), weights, (h, c), array(self.grad), self.results)

    def run(self, form: str | None) -> list[Any]:
        """Return ours in the order of `results`."""
        kept, state = ops.lstm_with_gates(self.x, self.weights, self.state, form=form)
        y, again = ops.lstm(self.x, self.weights, self.state, form=form)
        for first, second in zip(state, again, strict=True):  # cuBLAS promises no bits where several streams are active
            np.testing.assert_allclose(to_host(second), to_host(first), rtol=1e-4, atol=1e-5)
        by_x, by_weights = ops.lstm_backward(self.grad, self.x, self.weights, kept, self.state, form=form)
        return [y, *state, by_x, *(array for layer in by_weights for array in layer)]

    def check(self, form: str | None, tolerance: float) -> None:
        """Fail unless a form gives PyTorch's numbers."""
        for found, expected in zip(self.run(form), self.results, strict=True):
            np.testing.assert_allclose(to_host(found), expected, rtol=tolerance, atol=tolerance)


def case(steps: int, n: int, inputs: int, hidden: int, layers: int, seed: int = 0) -> Case:
    """Return PyTorch's forward and backward pass over random numbers."""
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    torch.manual_seed(seed)
    network = torch.nn.LSTM(inputs, hidden, layers, dtype=torch.float64)
    x = torch.randn(steps, n, inputs, dtype=torch.float64, requires_grad=True)
    h, c = (torch.randn(layers, n, hidden, dtype=torch.float64) for _ in "hc")
    y, ends = network(x, (h, c))
    grad = torch.randn_like(y)
    torch.autograd.backward(y, grad)
    by_weights = [getattr(network, f"{name}_l{k}").grad for k in range(layers) for name in NAMES]
    results = [each.detach().numpy() for each in (y, *ends, x.grad, *by_weights)]
    return Case(x.detach().numpy(), weights_of(network), (h.numpy(), c.numpy()), grad.numpy(), results)


def weights_of(network: Any) -> list[ops.LSTMWeights]:
    """Return the weights of PyTorch's layers as ours."""
    found = []
    for k in range(network.num_layers):
        ih, hh, bias_ih = (getattr(network, f"{name}_l{k}").detach().numpy() for name in NAMES)
        found.append(ops.LSTMWeights(ih, hh, bias_ih + getattr(network, f"bias_hh_l{k}").detach().numpy()))
    return found
