"""A convolution with its ReLU and max-pooling on the CPU, in buffers that are made once.

The places of a pooling window are an axis of their own, the phases: all outputs at the upper left of a window, then
all beside them, and so on. Pooling is a maximum of whole arrays then, and its gradient goes back to one phase of each
window, the first that has the maximum.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from unrolled.device import Array
from unrolled.nn.compiler.stages import Convolution, NotCompilableError

BLOCK = 16  # samples that are unrolled, multiplied and pooled at a time: what they take fits in a core's cache


class Convolver:
    """The convolution of one stage, its ReLU and pooling: (C, H, W, N) to (O, PH, PW, N)."""

    def __init__(self, stage: Convolution, batch: int, first: bool) -> None:
        self._stage, self._first = stage, first
        pool = stage.pool
        if pool is not None and (pool.stride != pool.kernel_size or pool.padding != (0, 0)):
            raise NotCompilableError("the windows of MaxPool2d overlap or are padded")
        self.outputs = np.empty((*stage.outputs, batch), np.float32)
        kernel = stage.kernel[0]
        self._filters = np.empty((stage.convolved[0], stage.inputs[0] * kernel[0] * kernel[1] + 1), np.float32)
        self._gradient = np.empty_like(self._filters)
        self._input_gradient = np.empty((0 if first else stage.inputs[0], *stage.inputs[1:], batch), np.float32)
        sizes = [min(BLOCK, batch - at) for at in range(0, batch, BLOCK)]
        self._blocks = [_Block(stage, size) for size in sizes]

    def forward(self, x: Array) -> Array:
        """Return the outputs (O, PH, PW, N) for x (C, H, W, N), of any strides."""
        layer = self._stage.layer
        self._filters[:, :-1] = layer.parameters["weight"].reshape(len(self._filters), -1)
        self._filters[:, -1] = layer.parameters["bias"]
        for block, at in self._parts():
            block.forward(x[..., at], self._filters, self.outputs[..., at])
        return self.outputs

    def backward(self, grad: Array) -> Array:
        """Fill the layer's gradients; return that by x (C, H, W, N), empty if first.

        grad is that by the outputs, in their order; its shape may be a dense layer's, (O * PH * PW, N).
        """
        grad = grad.reshape(self.outputs.shape)
        layer = self._stage.layer
        self._gradient[...] = 0
        for block, at in self._parts():
            self._gradient += block.backward(grad[..., at])
            if not self._first:
                block.input_gradient(self._filters, self._input_gradient[..., at])
        layer.gradients["weight"] = self._gradient[:, :-1].reshape(layer.weight_shape)
        layer.gradients["bias"] = self._gradient[:, -1]
        return self._input_gradient

    def _parts(self) -> Iterator[tuple[_Block, slice]]:
        """The blocks, each with its samples."""
        at = 0
        for block in self._blocks:
            yield block, slice(at, at + block.size)
            at += block.size


class _Block:
    """The buffers of some samples. K below is the channels times the places of a filter, P the places of a window."""

    def __init__(self, stage: Convolution, size: int) -> None:
        self.size = size
        self._kernel, self._stride, self._padding = stage.kernel
        self._pool = (1, 1) if stage.pool is None else stage.pool.kernel_size
        self._relu = stage.relu
        (channels, height, width), (filters, *places) = stage.inputs, stage.outputs
        self._places = places
        # Columns of the padded image by place modulo a step of pooling: then a shifted image is one run of memory.
        self._step = self._pool[1] * self._stride[1]
        wide = -(-(width + 2 * self._padding[1]) // self._step)
        self._image = np.zeros((channels, height + 2 * self._padding[0], self._step, wide, size), np.float32)
        phases, each = self._pool[0] * self._pool[1], places[0] * places[1] * size
        inputs = channels * self._kernel[0] * self._kernel[1]
        self._columns = np.ones((inputs + 1, phases, each), np.float32)  # (K + 1, P, each), the last row for the bias
        self._convolved = np.empty((filters, phases, each), np.float32)
        self._pooled = np.empty((filters, each), np.float32)
        self._chosen = np.empty((filters, each), bool)  # by one phase
        self._taken = np.empty((filters, each), bool)  # by a phase before, or by the ReLU
        self._gradient = np.empty((filters, inputs + 1), np.float32)

    def forward(self, x: Array, filters: Array, outputs: Array) -> None:
        """Write the outputs (O, PH, PW, n) for x (C, H, W, n), and keep what the backward pass needs."""
        for strip, pixels in self._strips(x):
            strip[...] = pixels
        for shifted, columns in self._shifts():
            columns[...] = shifted
        y, pooled = self._convolved, self._pooled
        np.matmul(filters, _flat(self._columns), out=_flat(y))
        np.maximum(y[:, 0], y[:, -1], out=pooled)
        for phase in range(1, y.shape[1] - 1):
            np.maximum(pooled, y[:, phase], out=pooled)
        shaped = pooled.reshape(outputs.shape)
        if self._relu:
            np.maximum(shaped, 0, out=outputs)
        else:
            outputs[...] = shaped

    def backward(self, grad: Array) -> Array:
        """Return the gradient (O, K + 1) by the filters, the bias last; grad (O, PH, PW, n) is that by the outputs."""
        y, chosen, taken = self._convolved, self._chosen, self._taken
        if self._relu:
            np.less_equal(self._pooled, 0, out=taken)
        else:
            taken.fill(False)
        flat = np.ascontiguousarray(grad).reshape(taken.shape)
        for phase in range(y.shape[1]):
            np.equal(y[:, phase], self._pooled, out=chosen)
            np.greater(chosen, taken, out=chosen)
            np.logical_or(taken, chosen, out=taken)
            np.multiply(flat, chosen, out=y[:, phase])
        return np.matmul(_flat(y), _flat(self._columns).T, out=self._gradient)

    def input_gradient(self, filters: Array, to: Array) -> None:
        """Write the gradient by x to `to` (C, H, W, n), after `backward`; the columns are lost."""
        np.matmul(filters[:, :-1].T, _flat(self._convolved), out=_flat(self._columns[:-1]))
        self._image.fill(0)
        for shifted, columns in self._shifts():
            shifted += columns
        for strip, pixels in self._strips(to):
            pixels[...] = strip
        self._image.fill(0)  # its padding

    def _strips(self, x: Array) -> Iterator[tuple[Array, Array]]:
        """Parts of the padded image, columns by place modulo the step, and of x (C, H, W, n) that belong there."""
        (top, left), (_, height, width, _) = self._padding, x.shape
        for place in range(self._step):
            first = (place - left) % self._step
            start, count = (first + left) // self._step, len(range(first, width, self._step))
            yield self._image[:, top : top + height, place, start : start + count], x[:, :, first :: self._step]

    def _shifts(self) -> Iterator[tuple[Array, Array]]:
        """The shifted image for each place in the filter and each phase of pooling, and its part of the columns."""
        (kh, kw), (sh, sw), (ph, pw), (rows, wide) = self._kernel, self._stride, self._pool, self._places
        unrolled = self._columns[:-1].reshape(len(self._image), kh, kw, ph, pw, rows, wide, self.size)
        for i, j, a, b in product(range(kh), range(kw), range(ph), range(pw)):
            top, left = a * sh + i, b * sw + j
            start = left // self._step
            shifted = self._image[:, top :: ph * sh, left % self._step, start : start + wide]
            yield shifted[:, :rows], unrolled[:, i, j, a, b]


def _flat(x: Array) -> Array:
    """A matrix of the rows of x (rows, P, each)."""
    return x.reshape(len(x), -1)
