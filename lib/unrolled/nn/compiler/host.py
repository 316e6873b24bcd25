"""Training steps on the CPU in buffers that are made once, a cache-sized block of samples at a time.

Values lie with the sample innermost: images (C, H, W, N), rows of a dense layer (D, N). So whatever a convolution, a
pooling or a product does is done on long runs of memory, and a dense layer's input is what pooling wrote, as it lies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unrolled.device import Array
from unrolled.nn.compiler.convolving import Convolver
from unrolled.nn.compiler.stages import Convolution, Dense, Stage
from unrolled.nn.network import Sequential
from unrolled.nn.optim import Optimizer


class HostProgram:
    """See `step.Program`."""

    def __init__(self, network: Sequential, optimizer: Optimizer, batch: int, read: Sequence[Stage]) -> None:
        convolutions = [stage for stage in read if isinstance(stage, Convolution)]  # they come first: no layer of ours
        dense = [stage for stage in read if isinstance(stage, Dense)]  # makes images of rows again
        self._network, self._optimizer, self._batch = network, optimizer, batch
        self._convolvers = [Convolver(stage, batch, first=not number) for number, stage in enumerate(convolutions)]
        self._denses = [_Dense(stage, batch, first=stage is read[0]) for stage in dense]
        self._scores = self._denses[-1].outputs
        self._row = np.empty(batch, np.float32)

    def run(self, images: Array, labels: Array, order: Array, rate: float) -> Array:
        """See `step.Program.run`. Raises ValueError for labels that are no classes, before anything changes."""
        least, most, classes = labels.min(), labels.max(), len(self._scores)
        if least < 0 or most >= classes:
            raise ValueError(f"labels holds {least if least < 0 else most}; expected 0 to {classes - 1}")
        losses = np.empty(len(order) // self._batch, np.float32)
        samples = np.arange(self._batch)
        with np.errstate(all="ignore"):
            for step in range(len(losses)):
                chosen = order[step * self._batch : (step + 1) * self._batch]
                losses[step] = self._gradients(images[chosen], labels[chosen], samples)
                self._optimizer.step(self._network.parameters, self._network.gradients, rate)
        return losses

    def _gradients(self, images: Array, labels: Array, samples: Array) -> float:
        """Fill the network's gradients for images (N, ...) and labels (N,); return the loss."""
        x = np.moveaxis(images, 0, -1)
        for convolver in self._convolvers:
            x = convolver.forward(x)
        x = x.reshape(-1, self._batch)  # a copy where there is no convolution
        for dense in self._denses:
            x = dense.forward(x)
        loss, grad = self._loss(labels, samples)
        for dense in reversed(self._denses):
            grad = dense.backward(grad)
        for convolver in reversed(self._convolvers):
            grad = convolver.backward(grad)
        return loss

    def _loss(self, labels: Array, samples: Array) -> tuple[float, Array]:
        """The mean cross entropy of the scores (M, N), and its gradient, which takes their place."""
        scores = self._scores
        scores -= np.max(scores, axis=0, out=self._row)
        chosen = scores[labels, samples]
        np.exp(scores, out=scores)
        np.sum(scores, axis=0, out=self._row)
        loss = float(np.mean(np.log(self._row) - chosen))
        self._row *= np.float32(len(samples))
        scores /= self._row
        scores[labels, samples] -= np.float32(1 / len(samples))
        return loss, scores


class _Dense:
    """A dense layer and the ReLU after it, where there is one: (D, N) to (M, N)."""

    def __init__(self, stage: Dense, batch: int, first: bool) -> None:
        self._layer, self._relu, self._first = stage.layer, stage.relu, first
        self.outputs = np.empty((stage.outputs, batch), np.float32)
        self._active = np.empty((stage.outputs, batch), bool)
        self._input_gradient = np.empty((stage.inputs, batch), np.float32)
        self._x = self.outputs  # what came in, until the backward pass

    def forward(self, x: Array) -> Array:
        """Return the outputs (M, N) for x (D, N), which stays as it is until `backward`."""
        self._x = x
        np.matmul(self._layer.parameters["weight"], x, out=self.outputs)
        self.outputs += self._layer.parameters["bias"][:, None]
        if self._relu:
            np.maximum(self.outputs, 0, out=self.outputs)
        return self.outputs

    def backward(self, grad: Array) -> Array:
        """Fill the layer's gradients from grad (M, N), which is overwritten; return that by x, of no use if first."""
        if self._relu:
            np.multiply(grad, np.greater(self.outputs, 0, out=self._active), out=grad)
        np.matmul(grad, self._x.T, out=self._layer.gradients["weight"])
        np.sum(grad, axis=1, out=self._layer.gradients["bias"])
        if self._first:
            return grad
        return np.matmul(self._layer.parameters["weight"].T, grad, out=self._input_gradient)
