"""Training steps on a GPU as CUDA kernels in one graph.

Every array of a step is made once. Each of the steps of a graph has a slot for its batch, its options and its loss.
So a launch needs nothing but full slots: one kernel gathers the batches, a small table has the options, then many steps
run without the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.nn.compiler.parts import parts_of
from unrolled.nn.compiler.stages import Stage
from unrolled.nn.network import Sequential
from unrolled.nn.optim import Optimizer

STEPS = 64  # of a graph, at most: a capture takes as long as so many steps from Python
BYTES = 64 * 2**20  # of the batches of a graph, at most


class GraphProgram:
    """Steps of a network on a GPU: up to STEPS of them are one launch of a graph, captured at the second launch.

    The optimizer is one that has a kernel. A graph stays for as long as the optimizer keeps its kernel and its memory.
    """

    def __init__(self, network: Sequential, optimizer: Optimizer, batch: int, stages: Sequence[Stage]) -> None:
        self._network, self._optimizer, self._batch = network, optimizer, batch
        self._module = module = array_module(network.parameters)
        shape = network.input_shape or ()
        self._steps = max(1, min(STEPS, BYTES // (4 * batch * prod(shape))))
        self._images = module.empty((self._steps, batch, *shape), dtype=np.float32)
        self._labels = module.empty((self._steps, batch), dtype=np.int64)
        self._options = module.zeros((self._steps, 1), dtype=np.float32)  # as wide as the optimizer's kernel asks
        self._numbers = module.zeros((self._steps, 1), dtype=np.int64)
        self._losses = module.empty((self._steps, 1), dtype=np.float32)
        self._values = kernels.constants(values=prod(shape))
        self._parts, self._head = parts_of(module, stages, batch)
        self._rule: tuple[Any, ...] = ()  # the optimizer's kernel and memory that the graphs have
        self._graphs: dict[int, Any] = {}  # by how many steps they take
        self._warm = False

    def run(self, images: Array, labels: Array, order: Array, rate: float) -> Array:
        """Take len(order) // batch steps, up to STEPS a launch; return the losses (S,), without waiting for them.

        A label that is no class gives a loss of NaN: to look at the labels would be to wait.
        """
        module, batch = self._module, self._batch
        images, labels = module.ascontiguousarray(images, np.float32), module.ascontiguousarray(labels, np.int64)
        order = module.ascontiguousarray(order, np.int64)
        losses = module.empty(len(order) // batch, dtype=np.float32)
        for first in range(0, len(losses), self._steps):
            count = min(self._steps, len(losses) - first)
            self._fill_options(count, rate)
            chosen = order[first * batch : (first + count) * batch]
            kernels.gather((images, labels, chosen), (self._images[:count], self._labels[:count]), self._values)
            self._launch(count)
            losses[first : first + count] = self._losses[:count, 0]
        return losses

    def _fill_options(self, count: int, rate: float) -> None:
        """Count the optimizer's steps and bring their options to the device. Forget graphs of another rule."""
        optimizer, rows = self._optimizer, []
        memory = optimizer.prepare(self._network.parameters)
        for _ in range(count):
            kernel, options = optimizer.next_launch(rate)
            rows.append(list(options.values()))
        rule = (kernels.FROM_ROW[kernel.name], *memory)
        if len(rule) != len(self._rule) or any(a is not b for a, b in zip(rule, self._rule, strict=True)):
            self._rule, self._graphs, self._warm = rule, {}, False
            self._options = self._module.zeros((self._steps, len(options)), dtype=np.float32)
        self._options[:count] = self._module.asarray(np.array(rows, np.float32))
        self._numbers[:count, 0] = self._module.arange(optimizer.steps - count, optimizer.steps)

    def _launch(self, count: int) -> None:
        """Take the steps of the first slots. The first time compiles the kernels, which no capture can do."""
        if not self._warm:
            for slot in range(count):
                self._step(slot)
            self._warm = True
            return
        if count not in self._graphs:
            stream = self._module.cuda.Stream(non_blocking=True)
            with stream:
                stream.begin_capture()
                try:
                    for slot in range(count):
                        self._step(slot)
                finally:  # a stream that goes on capturing would keep the whole device from working
                    graph = stream.end_capture()
            self._graphs[count] = graph
        self._graphs[count].launch()

    def _step(self, slot: int) -> None:
        """Launch all kernels of one step."""
        number, inputs = self._numbers[slot], [self._images[slot]]  # what goes into each part, and into the head
        for part in self._parts:
            part.forward(inputs[-1], number)
            inputs.append(part.outputs)
        grad = self._head.run(inputs.pop(), self._labels[slot], self._losses[slot])
        for part in reversed(self._parts):
            grad = part.backward(inputs.pop(), grad, number)
        kernel, *memory = self._rule
        kernel((self._network.gradients, self._options[slot]), (self._network.parameters, *memory))
