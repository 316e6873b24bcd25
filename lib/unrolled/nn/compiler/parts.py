"""The stages of a network on a GPU: each has its arrays, launches its kernels, and knows nothing of the others.

What each is made with: `batch`, how many samples x has; `inputs`, whether anyone asks for the gradient by x, which is
not so for a first stage; `masked`, whether x came out of a ReLU: the gradient by x is then the one by what went in
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from unrolled import kernels
from unrolled.device import Array, Module
from unrolled.kernels import Constants
from unrolled.nn.compiler import plans
from unrolled.nn.compiler.stages import Convolution, Dense, Stage
from unrolled.nn.layers import Dropout


class Part(Protocol):
    """A stage that has a stage after it. `step` (1,) is the number of the step, for what is random."""

    outputs: Array

    def forward(self, x: Array, step: Array) -> None:
        """Fill `outputs` (batch, ...) from x (batch, ...)."""
        ...

    def backward(self, x: Array, grad: Array, step: Array) -> Array | None:
        """Fill the layer's gradients from grad, that by `outputs`; return that by x, None for a first stage."""
        ...


class Head(Protocol):
    """The last stage, with the loss."""

    def run(self, x: Array, labels: Array, loss: Array) -> Array | None:
        """Write the mean loss (1,) of scores for x, and the layer's gradients; return the gradient by x."""
        ...


def parts_of(module: Module, stages: Sequence[Stage], batch: int) -> tuple[list[Part], Head]:
    """Return the parts of a network, and its head. Raises NotCompilableError for what is too large for the kernels."""
    found: list[Part] = []
    inputs = masked = False
    for stage in stages[:-1]:
        if isinstance(stage, Convolution):
            found.append(ConvolutionPart(module, stage, batch, inputs, masked))
        else:
            found.append(DensePart(module, stage, batch, stage.relu, inputs, masked))
        inputs, masked = True, stage.relu
        if stage.dropout is not None:
            found.append(DropoutPart(module, stage.dropout, found[-1].outputs, masked))
            masked = False
    last = stages[-1]
    if not isinstance(last, Dense):
        raise TypeError(f"the last stage is {last!r}; expected a dense layer")
    plan = plans.head(last, batch, inputs, masked)
    if plan is not None:
        return found, FusedHead(module, last, batch, plan)
    return found, PlainHead(module, DensePart(module, last, batch, False, inputs, masked), batch)


class ConvolutionPart:
    """Convolution, bias, ReLU and pooling."""

    def __init__(self, module: Module, stage: Convolution, batch: int, inputs: bool, masked: bool) -> None:
        self._layer, self._inputs = stage.layer, (batch, *stage.inputs)
        self._forward = plans.convolution(stage, batch)
        self._weights = plans.convolution_weights(stage, batch)
        self._back = plans.convolution_inputs(stage, masked)
        self.outputs = _numbers(module, (batch, *stage.outputs))
        self._routes = module.empty((batch, *stage.outputs), dtype=np.uint8)
        self._scratch = _scratch(module, *plans.convolution_sums(self._weights))
        self._map = _numbers(module, (batch, *stage.convolved)) if inputs else None
        self._grad = _numbers(module, self._inputs) if inputs else None

    def forward(self, x: Array, step: Array) -> None:
        """Fill the pooled map, and where in its window each value was."""
        inputs = x.reshape(self._inputs), self._layer.parameters["weight"], self._layer.parameters["bias"]
        kernels.pooled_convolution(inputs, (self.outputs, self._routes), self._forward)

    def backward(self, x: Array, grad: Array, step: Array) -> Array | None:
        """Fill the gradients of weight and bias; bring grad back through the pooling only where x has a gradient."""
        x, grad, gradients = x.reshape(self._inputs), grad.reshape(self.outputs.shape), self._layer.gradients
        outputs = gradients["weight"], gradients["bias"], *self._scratch
        kernels.convolution_weights((grad, self._routes, x), outputs, self._weights)
        if self._grad is None:
            return None
        kernels.unroute((grad, self._routes), (self._map,), self._back)
        kernels.convolution_inputs((self._map, self._layer.parameters["weight"], x), (self._grad,), self._back)
        return self._grad


class DensePart:
    """A dense layer, with a ReLU or without. Nothing in it is random, so it needs no number of a step."""

    def __init__(self, module: Module, stage: Dense, batch: int, relu: bool, inputs: bool, masked: bool) -> None:
        self._layer, self._inputs = stage.layer, (batch, stage.inputs)
        self._forward = plans.dense(stage, batch, relu)
        self._back = plans.dense_backward(stage, batch, inputs, masked)
        self.outputs = _numbers(module, (batch, stage.outputs))
        self._wants, self._grad = inputs, _numbers(module, self._inputs if inputs else (1, 1))
        self._tiled = "rows" in self._forward
        self._scratch = _scratch(module, *map(max, plans.dense_parts(self._forward), plans.dense_parts(self._back)))

    def forward(self, x: Array, step: Array | None = None) -> None:
        """Fill `outputs`: by tiles for a larger batch, else by a block for each output."""
        inputs = x.reshape(self._inputs), self._layer.parameters["weight"], self._layer.parameters["bias"]
        if self._tiled:
            kernels.dense_tiles(inputs, (self.outputs, *self._scratch), self._forward)
        else:
            kernels.dense(inputs, (self.outputs,), self._forward)

    def backward(self, x: Array, grad: Array, step: Array | None = None) -> Array | None:
        """Fill all gradients of the layer in one launch."""
        inputs = grad.reshape(self.outputs.shape), x.reshape(self._inputs), self._layer.parameters["weight"]
        outputs = self._grad, self._layer.gradients["weight"], self._layer.gradients["bias"]
        if self._tiled:
            kernels.dense_tiles_backward(inputs, (*outputs, *self._scratch), self._back)
        else:
            kernels.dense_backward(inputs, outputs, self._back)
        return self._grad if self._wants else None


class DropoutPart:
    """A dropout after a stage. Its numbers follow from the layer's seed and the step: not those of the eager path."""

    def __init__(self, module: Module, layer: Dropout, x: Array, masked: bool) -> None:
        self._floats = {"rate": float(layer.rate), "seed": float(layer.seed)}
        self._forward, self._back = kernels.constants(masked=False), kernels.constants(masked=masked)
        self.outputs, self._grad = _numbers(module, x.shape), _numbers(module, x.shape)

    def forward(self, x: Array, step: Array) -> None:
        """Fill `outputs`: x where it is kept, over 1 - rate, else 0."""
        kernels.dropout_of_step((x, x, step), (self.outputs,), self._forward, **self._floats)

    def backward(self, x: Array, grad: Array, step: Array) -> Array | None:
        """Return the gradient of what was kept: the same function of seed, step and place says so once more."""
        grad = grad.reshape(x.shape)
        kernels.dropout_of_step((grad, x, step), (self._grad,), self._back, **self._floats)
        return self._grad


class FusedHead:
    """The last dense layer and the loss in one launch, or two for more samples."""

    def __init__(self, module: Module, stage: Dense, batch: int, plan: Constants) -> None:
        self._layer, self._plan, self._inputs = stage.layer, plan, (batch, stage.inputs)
        self._sums = plans.head_weights(stage, batch) if plan["blocks"] > 1 else None
        self._wants, self._grad = plan["inputs"], _numbers(module, self._inputs if plan["inputs"] else (1, 1))
        self._losses, self._scores = _numbers(module, (batch,)), _numbers(module, (batch, stage.outputs))

    def run(self, x: Array, labels: Array, loss: Array) -> Array | None:
        """Do what `Head` says. Where one block cannot see all samples, a second launch adds up over them."""
        layer, x = self._layer, x.reshape(self._inputs)
        inputs = x, layer.parameters["weight"], layer.parameters["bias"], labels
        weight, bias = layer.gradients["weight"], layer.gradients["bias"]
        kernels.head(inputs, (self._losses, self._scores, self._grad, loss, weight, bias), self._plan)
        if self._sums is not None:
            kernels.head_weights((self._scores, x, self._losses), (weight, bias, loss), self._sums)
        return self._grad if self._wants else None


class PlainHead:
    """The last dense layer, then the loss, for more classes or inputs than fit into shared memory."""

    def __init__(self, module: Module, dense: DensePart, batch: int) -> None:
        self._dense = dense
        self._classes = kernels.constants(m=dense.outputs.shape[1])
        self._losses, self._grad = _numbers(module, (batch,)), _numbers(module, dense.outputs.shape)

    def run(self, x: Array, labels: Array, loss: Array) -> Array | None:
        """Do what `Head` says, in four launches."""
        self._dense.forward(x)
        inputs, outputs = (self._dense.outputs, labels), (self._losses, self._grad)
        kernels.softmax_cross_entropy(inputs, outputs, self._classes)
        kernels.mean((self._losses,), (loss,))
        return self._dense.backward(x, self._grad)


def _numbers(module: Module, shape: Sequence[int]) -> Array:
    return module.empty(tuple(shape), dtype=np.float32)


def _scratch(module: Module, values: int, counters: int) -> tuple[Any, Any]:
    return module.empty(max(1, values), dtype=np.float32), module.zeros(max(1, counters), dtype=np.int32)
