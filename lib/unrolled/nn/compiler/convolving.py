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
    """The convolution of one stage, its ReLU and pooling: x (C, H, W, N) to `outputs` (O, PH, PW, N)."""

    def __init__(self, stage: Convolution, x: Array, first: bool) -> None:
        """Make the buffers for what will lie in x; `first`: nothing needs the gradient by x."""
        pool = stage.pool
        if pool is not None and (pool.stride != pool.kernel_size or pool.padding != (0, 0)):
            raise NotCompilableError("the windows of MaxPool2d overlap or are padded")
        batch, kernel = x.shape[-1], stage.kernel[0]
        self._layer = stage.layer
        self.outputs = np.empty((*stage.outputs, batch), np.float32)
        self._filters = np.empty((stage.convolved[0], stage.inputs[0] * kernel[0] * kernel[1] + 1), np.float32)
        self._gradient = np.empty_like(self._filters)
        self.input_gradient = np.empty((0, *x.shape[1:]) if first else x.shape, np.float32)
        self._blocks = []
        for at in range(0, batch, BLOCK):
            block = _Block(stage, min(BLOCK, batch - at))
            part = slice(at, at + block.size)
            block.read(x[..., part], self.input_gradient[..., part])
            self._blocks.append((block, part))

    def forward(self) -> None:
        """Fill the outputs."""
        self._filters[:, :-1] = self._layer.parameters["weight"].reshape(len(self._filters), -1)
        self._filters[:, -1] = self._layer.parameters["bias"]
        for block, part in self._blocks:
            block.forward(self._filters, self.outputs[..., part])

    def backward(self, grad: Array) -> None:
        """Fill the layer's gradients, and that by x; grad is that by the outputs, in their order, of any shape."""
        grad = grad.reshape(self.outputs.shape)
        self._gradient.fill(0)
        for block, part in self._blocks:
            self._gradient += block.backward(grad[..., part])
            if self.input_gradient.size:
                block.backward_inputs(self._filters)
        self._layer.gradients["weight"][...] = self._gradient[:, :-1].reshape(self._layer.weight_shape)
        self._layer.gradients["bias"][...] = self._gradient[:, -1]


class _Block:
    """The buffers of some samples. K below is the channels times the places of a filter, P the places of a window.

    All views that a step copies between are made once: at small batches, making them takes as long as the copies.
    """

    def __init__(self, stage: Convolution, size: int) -> None:
        self.size = size
        self._kernel, self._stride, self._padding = stage.kernel
        self._pool = (1, 1) if stage.pool is None else stage.pool.kernel_size
        self._relu = stage.relu
        (channels, height, width), (filters, *places) = stage.inputs, stage.outputs
        # Columns of the padded image by place modulo a step of pooling: then a shifted image is one run of memory.
        self._step = self._pool[1] * self._stride[1]
        wide = -(-(width + 2 * self._padding[1]) // self._step)
        self._image = np.zeros((channels, height + 2 * self._padding[0], self._step, wide, size), np.float32)
        phases, each = self._pool[0] * self._pool[1], places[0] * places[1] * size
        inputs = channels * self._kernel[0] * self._kernel[1]
        self._columns = np.ones((phases, inputs + 1, each), np.float32)  # the last row for the bias
        self._unrolled = self._columns[:, :-1]
        self._convolved = np.empty((phases, filters, each), np.float32)
        self._pooled = np.empty((filters, each), np.float32)
        self._chosen = np.empty((filters, each), bool)  # by one phase
        self._taken = np.empty((filters, each), bool)  # by a phase before, or by the ReLU
        self._gradients = np.empty((phases, filters, inputs + 1), np.float32)
        self._shifts = list(self._shifted(places))
        self._strips: list[tuple[Array, Array]] = []
        self._gradient_strips: list[tuple[Array, Array]] = []

    def read(self, x: Array, gradient: Array) -> None:
        """Take x (C, H, W, n) for what comes in from now on, and `gradient` for where its gradient goes."""
        self._strips = list(self._stripped(x))
        self._gradient_strips = list(self._stripped(gradient)) if gradient.size else []

    def forward(self, filters: Array, outputs: Array) -> None:
        """Write the outputs (O, PH, PW, n), and keep what the backward pass needs."""
        for strip, pixels in self._strips:
            np.copyto(strip, pixels)
        for shifted, columns in self._shifts:
            np.copyto(columns, shifted)
        np.matmul(filters, self._columns, out=self._convolved)
        shaped = np.maximum.reduce(self._convolved, axis=0, out=self._pooled).reshape(outputs.shape)
        if self._relu:
            np.maximum(shaped, 0, out=outputs)
        else:
            np.copyto(outputs, shaped)

    def backward(self, grad: Array) -> Array:
        """Return the gradient (O, K + 1) by the filters, the bias last; grad (O, PH, PW, n) is that by the outputs."""
        chosen, taken = self._chosen, self._taken
        if self._relu:
            np.less_equal(self._pooled, 0, out=taken)
        else:
            taken.fill(False)
        flat = grad.reshape(taken.shape)
        for y in self._convolved:
            np.equal(y, self._pooled, out=chosen)
            np.greater(chosen, taken, out=chosen)
            np.logical_or(taken, chosen, out=taken)
            np.multiply(flat, chosen, out=y)
        np.matmul(self._convolved, self._columns.transpose(0, 2, 1), out=self._gradients)
        return np.add.reduce(self._gradients, axis=0)

    def backward_inputs(self, filters: Array) -> None:
        """Write the gradient by x, after `backward`; the columns are lost."""
        np.matmul(filters[:, :-1].T, self._convolved, out=self._unrolled)
        self._image.fill(0)
        for shifted, columns in self._shifts:
            shifted += columns
        for strip, pixels in self._gradient_strips:
            np.copyto(pixels, strip)
        self._image.fill(0)  # its padding

    def _stripped(self, x: Array) -> Iterator[tuple[Array, Array]]:
        """Parts of the padded image, columns by place modulo the step, and of x (C, H, W, n) that belong there."""
        (top, left), (_, height, width, _) = self._padding, x.shape
        for place in range(self._step):
            first = (place - left) % self._step
            start, count = (first + left) // self._step, len(range(first, width, self._step))
            yield self._image[:, top : top + height, place, start : start + count], x[:, :, first :: self._step]

    def _shifted(self, places: list[int]) -> Iterator[tuple[Array, Array]]:
        """The shifted image for each place in the filter and each column of a window, and its part of the columns.

        Both are (C, PH, places of a window's column, PW, n).
        """
        (kh, kw), (sh, sw), (ph, pw), (rows, wide) = self._kernel, self._stride, self._pool, places
        unrolled = self._unrolled.reshape(ph, pw, len(self._image), kh, kw, rows, wide, self.size)
        for i, j, b in product(range(kh), range(kw), range(pw)):
            start, place = divmod(b * sw + j, self._step)
            shifted = self._image[:, i : i + sh * ph * rows : sh, place, start : start + wide]
            shifted = shifted.reshape(len(shifted), rows, ph, wide, self.size)
            yield shifted, unrolled[:, b, :, i, j].transpose(1, 2, 0, 3, 4)
