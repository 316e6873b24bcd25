"""Training steps on a GPU as CUDA kernels in one graph.

Every array of a step is made once. Each of the steps of a graph has a slot for its batch, its options and its loss.
So a launch needs nothing but full slots: one kernel gathers the batches, a small table has the options, then many steps
run without the host. The simulated GPU runs the same launches, one by one where it has no graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.nn.compiler.parts import parts
from unrolled.nn.compiler.stages import Stage
from unrolled.nn.network import Sequential
from unrolled.nn.optim import Optimizer

STEPS = 64  # of a graph, at most
BYTES = 64 * 2**20  # of the batches of a graph, at most
OPTIONS = 8  # of an optimizer, at most


class GraphProgram:
    """See `step.Program`."""

    def __init__(self, network: Sequential, optimizer: Optimizer, batch: int, read: Sequence[Stage]) -> None:
        self._network, self._optimizer, self._batch = network, optimizer, batch
        self._module = module = array_module(network.parameters)
        shape = network.input_shape or ()
        self._steps = max(1, min(STEPS, BYTES // (4 * batch * prod(shape))))
        self._images = module.empty((self._steps, batch, *shape), dtype=np.float32)
        self._labels = module.empty((self._steps, batch), dtype=np.int64)
        self._options = module.zeros((self._steps, OPTIONS), dtype=np.float32)
        self._numbers = module.zeros((self._steps, 1), dtype=np.int64)
        self._losses = module.empty((self._steps, 1), dtype=np.float32)
        self._values = kernels.constants(values=prod(shape))
        self._parts, self._head = parts(module, read, batch)
        self._rule: Any = None  # the optimizer's kernel and memory that the graphs have
        self._graphs: dict[int, Any] = {}
        self._compiled = False

    def run(self, images: Array, labels: Array, order: Array, rate: float) -> Array:
        module, batch = self._module, self._batch
        images, labels = module.ascontiguousarray(images, np.float32), module.ascontiguousarray(labels, np.int64)
        order = module.ascontiguousarray(order, np.int64)
        losses = module.empty(len(order) // batch, dtype=np.float32)
        for first in range(0, len(losses), self._steps):
            count = min(self._steps, len(losses) - first)
            self._take_options(count, rate)
            chosen = order[first * batch : (first + count) * batch]
            kernels.gather((images, labels, chosen), (self._images[:count], self._labels[:count]), self._values)
            self._launch(count)
            losses[first : first + count] = self._losses[:count, 0]
        return losses

    def _take_options(self, count: int, rate: float) -> None:
        """Count the optimizer's steps and bring their options to the device. Forget graphs of other memory or rules."""
        optimizer, rows = self._optimizer, np.zeros((count, OPTIONS), np.float32)
        optimizer._remember(self._network.parameters, self._module)
        for row in rows:
            optimizer.steps += 1
            kernel, options = optimizer._fused(float(rate * optimizer.learning_rate))
            numbers = (*options.values(), optimizer.weight_decay)
            row[: len(numbers)] = numbers
        self._options[:count] = self._module.asarray(rows)
        self._numbers[:count, 0] = self._module.arange(optimizer.steps - count, optimizer.steps)
        rule = (kernels.FROM_ROW[kernel.name], len(numbers), *optimizer._memory)
        if self._rule is None or any(a is not b for a, b in zip(rule, self._rule, strict=False)):
            self._rule, self._graphs, self._compiled = rule, {}, False

    def _launch(self, count: int) -> None:
        """Take the steps of the first slots. The first time compiles the kernels, which no capture can do."""
        if not self._compiled or not hasattr(self._module.cuda.Stream, "begin_capture"):
            for slot in range(count):
                self._step(slot)
            self._compiled = True
            return
        if count not in self._graphs:
            stream = self._module.cuda.Stream(non_blocking=True)
            with stream:
                stream.begin_capture()
                for slot in range(count):
                    self._step(slot)
                self._graphs[count] = stream.end_capture()
        self._graphs[count].launch()

    def _step(self, slot: int) -> None:
        """Launch all kernels of one step."""
        x = images = self._images[slot]
        number = self._numbers[slot]
        for part in self._parts:
            part.forward(x, number)
            x = part.outputs
        grad = self._head.run(x, self._labels[slot], self._losses[slot])
        befores = [images, *(part.outputs for part in self._parts)][:-1]
        for part, before in zip(reversed(self._parts), reversed(befores), strict=True):
            grad = part.backward(before, grad, number)
        kernel, options, *memory = self._rule
        row = self._options[slot, :options]
        kernel((self._network.gradients, row), (self._network.parameters, *memory))
