"""A convolution with its ReLU and max-pooling on the CPU, in buffers that are made once.

The places of a pooling window are an axis of their own, the phases: all outputs at the upper left of a window, then
all beside them, and so on. Pooling is a maximum of whole arrays then, and its gradient goes back to one phase of each
window, the first that has the maximum.

Each phase has columns of its own, and most of what they hold another phase holds too. With few filters, writing them
takes longer than the product. So the phases are filters then: the same ones again, each moved to its place in a kernel
that covers all a window sees. The zeros around it are multiplied too, in a product that is larger but faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from unrolled.device import Array
from unrolled.nn.compiler.stages import Convolution, NotCompilableError

BLOCK_BYTES = 2 << 20  # of what a block writes in a pass, most of it where the one before wrote
LEAST_SAMPLES = 16  # of a block: fewer would be short runs of memory
FEW = 16  # filters, at most, whose phases are filters


class Convolver:
    """The convolution of one stage, its ReLU and pooling: x (C, H, W, N) to `outputs` (O, PH, PW, N)."""

    def __init__(self, stage: Convolution, x: Array, first: bool) -> None:
        """Make the buffers for what will lie in x; `first`: nothing needs the gradient by x."""
        if stage.pool is not None and (stage.pool.stride != stage.pool.kernel_size or stage.pool.padding != (0, 0)):
            raise NotCompilableError("the windows of MaxPool2d overlap or are padded")
        self._own, self._own_gradients = stage.layer.parameters, stage.layer.gradients
        self.outputs = np.empty((*stage.outputs, x.shape[-1]), np.float32)
        self.input_gradient = np.empty((0, *x.shape[1:]) if first else x.shape, np.float32)
        unrolling = _Unrolling(stage)
        self._filters, self._gradient = unrolling.filters(), unrolling.filters()
        self._views, self._gradient_views = unrolling.views(self._filters), unrolling.views(self._gradient)
        self._image = unrolling.image(x)
        self._strips = unrolling.strips(self._image, x)
        self._gradient_strips = [] if first else unrolling.strips(self._image, self.input_gradient)
        parts = list(unrolling.parts(x.shape[-1]))
        self.multiplications = self._filters.size * parts[0].places  # of a product
        room = np.empty(unrolling.convolved * parts[0].places, np.float32)  # of one block at a time
        self._blocks = [_Block(unrolling, part, self._image, self.outputs, room) for part in parts]

    def forward(self) -> None:
        """Fill the outputs."""
        for strip, pixels in self._strips:
            np.copyto(strip, pixels)
        for name, view in self._views.items():
            np.copyto(view, self._own[name])
        for block in self._blocks:
            block.forward(self._filters)

    def backward(self, grad: Array) -> None:
        """Fill the layer's gradients, and that by x; grad is that by the outputs, in their order, of any shape."""
        grad = grad.reshape(self.outputs.shape)
        self._gradient.fill(0)
        if self._gradient_strips:
            self._image.fill(0)
        for block in self._blocks:
            block.backward(grad, self._gradient)
            if self._gradient_strips:
                block.backward_inputs(self._filters)
        for name, view in self._gradient_views.items():
            np.add.reduce(view, axis=(0, 1), out=self._own_gradients[name])
        for strip, pixels in self._gradient_strips:
            np.copyto(pixels, strip)
        if self._gradient_strips:
            self._image.fill(0)  # its padding


class _Part(NamedTuple):
    """What a block computes: rows of the outputs, of some samples, and how many places these are."""

    rows: range
    samples: slice
    places: int


class _Unrolling:
    """How images become columns. K is the channels times the places of the kernel, C * KH * KW.

    With few filters the phases are filters: M = phases * O, and the kernel covers all that a pooling window sees.
    Else each phase has columns of its own, and M = O.
    """

    def __init__(self, stage: Convolution) -> None:
        (kh, kw), (sh, sw), self._padding = stage.kernel
        ph, pw = (1, 1) if stage.pool is None else stage.pool.kernel_size
        few = stage.outputs[0] <= FEW
        self._weight, self._steps = stage.layer.weight_shape, (sh, sw)
        self.outputs, self.relu = stage.outputs, stage.relu
        self._filter_phases, self.column_phases = ((ph, pw), (1, 1)) if few else ((1, 1), (ph, pw))
        self.kernel = (kh + (ph - 1) * sh, kw + (pw - 1) * sw) if few else (kh, kw)
        self.stride = (sh * ph, sw * pw) if few else (sh, sw)
        self.convolved = ph * pw * stage.outputs[0]  # values of all phases at a place
        self.rows = stage.inputs[0] * self.kernel[0] * self.kernel[1] + 1  # of the columns, the last for the bias
        # Columns of the padded image by place modulo a step of pooling: then a shifted image is one run of memory.
        self.step = pw * sw

    def parts(self, batch: int) -> Iterator[_Part]:
        """Blocks of so many samples, the largest first: as many rows as fit into BLOCK_BYTES, or samples of one row."""
        _, height, width = self.outputs
        most = BLOCK_BYTES // 4 // (self.convolved + prod(self.column_phases) * self.rows)  # places of a block
        size = min(batch, max(LEAST_SAMPLES, most // width))
        rows = min(height, max(1, most // (width * size)))
        for first, top in product(range(0, batch, size), range(0, height, rows)):
            samples = slice(first, min(first + size, batch))
            part = range(top, min(top + rows, height))
            yield _Part(part, samples, len(part) * width * (samples.stop - first))

    def filters(self) -> Array:
        """An array (M, K + 1) of zeros for the filters and their bias, or for the gradient by them."""
        return np.zeros((prod(self._filter_phases) * self.outputs[0], self.rows), np.float32)

    def views(self, filters: Array) -> dict[str, Array]:
        """Where in filters (M, K + 1) the layer's parameters stand, by name: (PH, PW, ...), a copy for each phase."""
        o, c, kh, kw = self._weight
        (ph, pw), (down, right) = self._filter_phases, self._steps
        whole = filters[:, :-1].reshape(ph, pw, o, c, *self.kernel)
        a, b, *rest, i, j = whole.strides  # from phase to phase, the filters move by a step of the convolution
        weight = as_strided(whole, (ph, pw, o, c, kh, kw), (a + down * i, b + right * j, *rest, i, j))
        return {"weight": weight, "bias": filters[:, -1].reshape(ph, pw, o)}

    def image(self, x: Array) -> Array:
        """Zeros (C, height, step, width / step, N) for x (C, H, W, N) with its padding."""
        channels, height, width, batch = x.shape
        wide = -(-(width + 2 * self._padding[1]) // self.step)
        return np.zeros((channels, height + 2 * self._padding[0], self.step, wide, batch), np.float32)

    def strips(self, image: Array, x: Array) -> list[tuple[Array, Array]]:
        """Parts of the image, and those of x (C, H, W, N) that belong there."""
        (top, left), (_, height, width, _) = self._padding, x.shape
        found = []
        for place in range(self.step):
            first = (place - left) % self.step
            start, count = (first + left) // self.step, len(range(first, width, self.step))
            found.append((image[:, top : top + height, place, start : start + count], x[:, :, first :: self.step]))
        return found

    def shifts(self, image: Array, rows: range, columns: Array) -> Iterator[tuple[Array, Array]]:
        """Shifted images for these rows of the outputs, and where in the columns (phases, K + 1, ...) they belong.

        Both are (C, rows, places of a window's column, PW, n).
        """
        (kh, kw), (sh, sw), (ph, pw), wide = self.kernel, self.stride, self.column_phases, self.outputs[2]
        c, n = len(image), image.shape[-1]
        unrolled = columns[:, :-1].reshape(ph, pw, c, kh, kw, len(rows), wide, n)
        for i, j, b in product(range(kh), range(kw), range(pw)):
            start, place = divmod(b * sw + j, self.step)
            top = i + sh * ph * rows.start
            shifted = image[:, top : top + sh * ph * len(rows) : sh, place, start : start + wide]
            yield shifted.reshape(c, len(rows), ph, wide, n), unrolled[:, b, :, i, j].transpose(1, 2, 0, 3, 4)


class _Block:
    """Some rows of the outputs of some samples, and what is kept of them for the backward pass.

    All views that a step copies between are made once: at small batches, making them takes as long as the copies.
    """

    def __init__(self, unrolling: _Unrolling, part: _Part, image: Array, outputs: Array, room: Array) -> None:
        """Take a part of the outputs (O, PH, PW, N). `room` is for what the pooling reads, and for its gradient."""
        self._place = np.s_[:, part.rows.start : part.rows.stop, :, part.samples]
        self._outputs = outputs[self._place]
        self._relu, self._least = unrolling.relu, 0 if unrolling.relu else -np.inf
        groups = prod(unrolling.column_phases)
        self._columns = np.ones((groups, unrolling.rows, part.places), np.float32)  # the last row for the bias
        self._shifts = list(unrolling.shifts(image[..., part.samples], part.rows, self._columns))
        room = room[: unrolling.convolved * part.places]
        self._products = room.reshape(groups, -1, part.places)
        self._convolved = room.reshape(-1, *self._outputs.shape)  # by phase
        self._pooled = np.empty(self._outputs.shape, np.float32)  # which is one run of memory
        self._chosen = np.empty(self._convolved.shape, bool)  # in each window, the first phase with the maximum
        self._free = np.empty(self._outputs.shape, bool)  # no phase yet
        self._pairs = list(zip(self._convolved, self._chosen, strict=True))

    def forward(self, filters: Array) -> None:
        """Write the outputs, and keep the columns and what pooling chose."""
        for shifted, columns in self._shifts:
            np.copyto(columns, shifted)
        np.matmul(filters, self._columns, out=self._products)
        pooled, free = self._pooled, self._free
        np.maximum.reduce(self._convolved, axis=0, out=pooled, initial=self._least)
        np.copyto(self._outputs, pooled)
        if self._relu:
            np.greater(pooled, 0, out=free)
        else:
            free.fill(True)
        for y, chosen in self._pairs:
            np.equal(y, pooled, out=chosen)
            chosen &= free
            free ^= chosen

    def backward(self, grad: Array, total: Array) -> None:
        """Add the gradient by the filters to total (M, K + 1); grad (O, PH, PW, N) is that by the outputs."""
        np.multiply(grad[self._place], self._chosen, out=self._convolved)
        for each in np.matmul(self._products, self._columns.transpose(0, 2, 1)):
            total += each

    def backward_inputs(self, filters: Array) -> None:
        """Add the gradient by the image to it, after `backward`; the columns are lost."""
        np.matmul(filters[:, :-1].T, self._products, out=self._columns[:, :-1])
        for shifted, columns in self._shifts:
            shifted += columns
