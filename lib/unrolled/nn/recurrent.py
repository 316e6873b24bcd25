"""A recurrent layer: it reads a sequence step by step, and keeps a state between the steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from unrolled import ops
from unrolled.device import Array, array_module
from unrolled.nn.habits import answering
from unrolled.nn.layers import Layer, Shape
from unrolled.ops.arguments import check_whole

NAMES = "weight_ih", "weight_hh", "bias_ih", "bias_hh"  # of a layer's parameters, before its number
MOST_LAYERS = 16  # more is somebody's hidden size


@answering(
    "sizes of inputs follow from the first batch, so nn.LSTM(28, 64, 2) of PyTorch is nn.LSTM(64, 2) here; "
    "return_sequences needs its name"
)
@dataclass(eq=False, repr=False)
class LSTM(Layer):
    """Long short-term memory: sequences (N, T, D) to the output of the last step (N, H), or with `return_sequences`
    to those of all steps (N, T, H).

    Names and layout of the parameters, for layer 0 `weight_ih_l0` (4 * H, D), `weight_hh_l0` (4 * H, H), `bias_ih_l0`
    and `bias_hh_l0` (4 * H,), are PyTorch's: four blocks of rows for the gates i, f, g, o. The two biases are added, so
    one would do; both are kept, so that files and training agree with PyTorch's. First values are uniform between
    -1 / sqrt(H) and 1 / sqrt(H), as there. Each batch starts from states of zero.
    """

    hidden_size: int
    num_layers: int = 1
    return_sequences: bool = field(default=False, kw_only=True)
    inputs: int = field(default=0, init=False)

    def build(self, shape: Shape) -> Shape:
        if len(shape) != 2:
            rows = ": images[:, 0] reads each image row by row" if len(shape) == 3 and shape[0] == 1 else ""
            raise ValueError(f"{self!r} takes sequences (T, D), got samples of shape {shape}{rows}")
        check_whole("hidden_size", self.hidden_size)
        check_whole("num_layers", self.num_layers)
        if self.num_layers > MOST_LAYERS:
            peer = f"nn.LSTM({self.hidden_size}, {self.num_layers}) of PyTorch is nn.LSTM({self.num_layers}) here"
            raise ValueError(f"num_layers is {self.num_layers}; expected at most {MOST_LAYERS}: {peer}")
        if not isinstance(self.return_sequences, bool):
            raise TypeError(f"return_sequences is {self.return_sequences!r}; expected True or False")
        steps, self.inputs = shape
        weights = sum(4 * self.hidden_size * (inputs + self.hidden_size) for inputs in self._inputs())
        self.multiply_adds = steps * weights
        return (steps, self.hidden_size) if self.return_sequences else (self.hidden_size,)

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        shapes: dict[str, Shape] = {}
        rows = 4 * self.hidden_size
        for number, inputs in enumerate(self._inputs()):
            sizes = ((rows, inputs), (rows, self.hidden_size), (rows,), (rows,))
            shapes |= {f"{name}_l{number}": shape for name, shape in zip(NAMES, sizes, strict=True)}
        return shapes

    def initial(self, rng: np.random.Generator) -> dict[str, Array]:
        most = 1 / sqrt(self.hidden_size)
        return {name: rng.uniform(-most, most, shape) for name, shape in self.parameter_shapes.items()}

    def forward(self, x: Array, training: bool = False) -> Array:
        sequence, weights = x.transpose(1, 0, 2).copy(), self._weights()  # ops has the steps first
        if training:
            kept, _ = ops.lstm_with_gates(sequence, weights)
            self._kept, y = (sequence, weights, kept), kept[-1].y
        else:
            self._kept, (y, _) = None, ops.lstm(sequence, weights)
        return y.transpose(1, 0, 2) if self.return_sequences else y[-1]

    def backward(self, grad: Array) -> Array | None:
        sequence, weights, kept = self.kept()
        if self.return_sequences:
            by_y = grad.transpose(1, 0, 2).copy()
        else:
            by_y = array_module(grad).zeros(kept[-1].y.shape, dtype=grad.dtype)
            by_y[-1] = grad
        by_x, by_weights = ops.lstm_backward(by_y, sequence, weights, kept, input_gradient=not self.is_first)
        for number, layer in enumerate(by_weights):
            for name, gradient in zip(NAMES, (*layer, layer.bias), strict=True):
                self.gradients[f"{name}_l{number}"][...] = gradient
        return None if by_x is None else by_x.transpose(1, 0, 2)

    def _inputs(self) -> list[int]:
        """How many values a step of each layer gets."""
        return [self.inputs, *[self.hidden_size] * (self.num_layers - 1)]

    def _weights(self) -> list[ops.LSTMWeights]:
        found = []
        for number in range(self.num_layers):
            ih, hh, *biases = (self.parameters[f"{name}_l{number}"] for name in NAMES)
            found.append(ops.LSTMWeights(ih, hh, biases[0] + biases[1]))
        return found
