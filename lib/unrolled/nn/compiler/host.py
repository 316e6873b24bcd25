"""Training steps on the CPU in buffers that are made once.

Values lie with the sample innermost: images (C, H, W, N), rows of a dense layer (D, N). So whatever a convolution, a
pooling or a product does is done on long runs of memory, and a dense layer's input is what pooling wrote, as it lies.
A convolution takes a cache-sized block of rows at a time. A dense layer takes all samples: its weight may fill the
cache, and would be read again for each block.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np

from unrolled.device import Array
from unrolled.nn.compiler.convolving import Convolver
from unrolled.nn.compiler.stages import Convolution, Dense, Stage
from unrolled.nn.network import Sequential
from unrolled.nn.optim import Optimizer
from unrolled.ops import threads

SMALL = 2e6  # multiplications of a product, at most, that takes less time than to wake a thread


class HostProgram:
    """Steps on the CPU: a `step.Program`. Each stage has the array that it reads and the one that it fills."""

    def __init__(self, network: Sequential, optimizer: Optimizer, batch: int, stages: Sequence[Stage]) -> None:
        self._network, self._optimizer, self._batch = network, optimizer, batch
        self._convolvers: list[Convolver] = []
        self._denses: list[_Dense] = []
        self._images = x = np.empty((*(network.input_shape or ()), batch), np.float32)
        for stage in stages:  # convolutions come first: no layer of ours makes images of rows again
            if isinstance(stage, Convolution):
                self._convolvers.append(Convolver(stage, x, first=stage is stages[0]))
                x = self._convolvers[-1].outputs
            else:
                self._denses.append(_Dense(stage, x.reshape(-1, batch), first=stage is stages[0]))
                x = self._denses[-1].outputs
        parts: list[Convolver | _Dense] = [*self._convolvers, *self._denses]
        self._alone = threads.alone if max(each.multiplications for each in parts) <= SMALL else nullcontext
        self._scores = x
        self._flat_scores = x.reshape(-1)
        self._row = np.empty(batch, np.float32)

    def run(self, images: Array, labels: Array, order: Array, rate: float) -> Array:
        """Take the steps, as `step.Program.run` says.

        Raises ValueError for labels that are no classes, before anything changes.
        """
        labels = labels[order].astype(np.int64)  # in which places in the scores can be counted
        least, most, classes = labels.min(), labels.max(), len(self._scores)
        if least < 0 or most >= classes:
            raise ValueError(f"labels holds {least if least < 0 else most}; expected 0 to {classes - 1}")
        places = labels * self._batch + np.arange(len(order)) % self._batch  # in the scores of a batch, flat
        losses, samples_last = np.empty(len(order) // self._batch, np.float32), (*range(1, images.ndim), 0)
        with np.errstate(all="ignore"), self._alone():
            for step in range(len(losses)):
                part = slice(step * self._batch, (step + 1) * self._batch)
                np.copyto(self._images, images[order[part]].transpose(samples_last), casting="same_kind")
                losses[step] = self._gradients(places[part])
                self._optimizer.step(self._network.parameters, self._network.gradients, rate)
        return losses

    def _gradients(self, places: Array) -> float:
        """Fill the network's gradients for the images that were gathered, whose labels' scores are at places (N,).

        Returns the loss.
        """
        for convolver in self._convolvers:
            convolver.forward()
        for dense in self._denses:
            dense.forward()
        loss, grad = self._loss(places)
        for dense in reversed(self._denses):
            dense.backward(grad)
            grad = dense.input_gradient
        for convolver in reversed(self._convolvers):
            convolver.backward(grad)
            grad = convolver.input_gradient
        return loss

    def _loss(self, places: Array) -> tuple[float, Array]:
        """The mean cross entropy of the scores (M, N), and its gradient, which takes their place."""
        scores, row, count = self._scores, self._row, self._batch
        scores -= np.maximum.reduce(scores, axis=0, out=row)
        chosen = self._flat_scores[places]
        np.exp(scores, out=scores)
        np.add.reduce(scores, axis=0, out=row)
        loss = float(np.add.reduce(np.log(row) - chosen)) / count
        row *= np.float32(count)
        scores /= row
        self._flat_scores[places] -= np.float32(1 / count)
        return loss, scores


class _Dense:
    """A dense layer and the ReLU after it, where there is one: x (D, N) to `outputs` (M, N)."""

    def __init__(self, stage: Dense, x: Array, first: bool) -> None:
        self._relu, self._x = stage.relu, x
        own, gradients = stage.layer.parameters, stage.layer.gradients
        self.multiplications = x.size * stage.outputs  # of a product
        self._weight, self._bias = own["weight"], own["bias"][:, None]
        self._weight_gradient, self._bias_gradient = gradients["weight"], gradients["bias"]
        self.outputs = np.empty((stage.outputs, x.shape[1]), np.float32)
        self._active = np.empty(self.outputs.shape, bool)
        self.input_gradient = np.empty((0, 0) if first else x.shape, np.float32)

    def forward(self) -> None:
        """Fill the outputs."""
        np.matmul(self._weight, self._x, out=self.outputs)
        self.outputs += self._bias
        if self._relu:
            np.maximum(self.outputs, 0, out=self.outputs)

    def backward(self, grad: Array) -> None:
        """Fill the layer's gradients from grad (M, N), which is overwritten, and that by x unless it is the first."""
        if self._relu:
            np.multiply(grad, np.greater(self.outputs, 0, out=self._active), out=grad)
        np.matmul(grad, self._x.T, out=self._weight_gradient)
        np.add.reduce(grad, axis=1, out=self._bias_gradient)
        if self.input_gradient.size:
            np.matmul(self._weight.T, grad, out=self.input_gradient)
