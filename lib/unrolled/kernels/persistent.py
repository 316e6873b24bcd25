"""An LSTM layer's whole way through time in one launch: the recurrent weights never leave the multiprocessors.

A step's product is small, and between two launches the weights would have to be read again. So the kernel stays: each
block keeps the weights of 16 hidden units in its registers, for 16 samples, and goes from step to step. Before a step
it waits until the other blocks of its samples have written their part of the step before: a counter in the GPU's memory
tells. The samples of a block are worked on in two halves, so that one half's numbers travel while the other is
computed. The idea is that of persistent RNNs (Diamos and others, 2016); the kernels are ours.

All blocks of a launch have to be at work at the same time, or they would wait for ever. A cooperative launch is one
that CUDA refuses unless that is so. Both kernels are for float32 alone, and need 64 * k <= 512 hidden units.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any

import numpy as np

from unrolled.device import Array, Module, array_module
from unrolled.kernels.kernel import Arrays, Constants, Kernel, Options, code, is_cupy, runs_on, source
from unrolled.kernels.lstm import gated, gated_backward

UNITS = SAMPLES = 16  # of a block
HALVES, THREADS = 2, 256
STATIC = 4096  # bytes of shared memory that are not counted by hidden units, rounded up
MOST_HIDDEN = 512  # 128 weights a thread: with more they would not fit in its registers


@dataclass(frozen=True, eq=False)
class Persistent(Kernel):
    """A kernel whose blocks wait for each other. `inputs[0]` is (T, N, ...); constants are {"hidden": H}.

    `shared` is how many floats of shared memory a block needs for each sample and hidden unit.
    """

    shared: int = 1

    def on_cupy(self, inputs: Arrays, outputs: Arrays, constants: Constants, floats: Options) -> None:
        """Launch it, more than once if there are more samples than the GPU has room for at a time."""
        import cupy

        hidden, (steps, n) = constants["hidden"], inputs[0].shape[:2]
        blocks, bytes_shared = hidden // UNITS, SAMPLES // HALVES * hidden * 4 * self.shared
        if (launch := self._compiled.get(hidden)) is None:
            source = code(self, constants, "f", wide=False)
            launch = cupy.RawKernel(source, self.name, ("--std=c++17",), enable_cooperative_groups=True)
            launch.max_dynamic_shared_size_bytes = bytes_shared
            self._compiled[hidden] = launch
        room = SAMPLES * (_room_on_cupy()[0] // blocks)
        for first in range(0, n, room):
            groups = -(-min(room, n - first) // SAMPLES)
            arrived = cupy.zeros(groups * HALVES, dtype=cupy.uint32)
            sizes = cupy.int32(steps), cupy.int32(n), cupy.int32(first)
            launch((blocks, groups), (THREADS,), (*inputs, *outputs, arrived, *sizes), shared_mem=bytes_shared)


def persists(x: Array, hidden: int) -> bool:
    """Return whether an LSTM of this hidden size can stay on the GPU of x from its first step to its last."""
    module = array_module(x)
    if x.dtype.char != "f" or not runs_on(module) or hidden % 64 or not 0 < hidden <= MOST_HIDDEN:
        return False
    multiprocessors, shared = room(module)
    return hidden // UNITS <= multiprocessors and SAMPLES // HALVES * hidden * 4 * 4 + STATIC <= shared


def room(module: Module) -> tuple[int, float]:
    """Return (multiprocessors, bytes of shared memory that a block may have) of the module's GPU."""
    return _room_on_cupy() if is_cupy(module) else _read_room(module)


@cache
def _room_on_cupy() -> tuple[int, float]:
    """Kept: CUDA takes long to tell."""
    import cupy

    return _read_room(cupy)


def _read_room(module: Module) -> tuple[int, float]:
    runtime: Any = getattr(getattr(module, "cuda", None), "runtime", None)
    properties = runtime.getDeviceProperties(0) if hasattr(runtime, "getDeviceProperties") else {}
    return int(properties.get("multiProcessorCount", 0)), properties.get("sharedMemPerBlockOptin", inf)


def _forward(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (sums_x, weight, bias, h, c), (y, cells, gates) = inputs, outputs
    for t in range(len(y)):
        c, h = gated(np.add(sums_x[t] + bias, h @ weight.T, out=gates[t]), c)
        cells[t], y[t] = c, h


def _backward(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (grad, cells, gates, weight, c_first, grad_h, grad_c), (grad_sums, grad_h_first, grad_c_first) = inputs, outputs
    for t in reversed(range(len(grad))):
        c_before = cells[t - 1] if t else c_first
        grad_c = gated_backward((grad_h + grad[t], grad_c), gates[t], cells[t], c_before, grad_sums[t])
        grad_h = grad_sums[t] @ weight
    grad_h_first[...], grad_c_first[...] = grad_h, grad_c


def _flops(inputs: Arrays, outputs: Arrays, options: Options) -> int:
    steps, n = inputs[0].shape[:2]
    return int(8 * steps * n * options["hidden"] ** 2)


lstm_persistent = Persistent(
    "lstm_persistent", source("lstm_persistent_common") + source("lstm_persistent"), _forward, _flops, is_product=True
)
"""(sums_x (T, N, 4 * H), weight_hh, bias, h, c) to (y, c, gates) of all steps, as in `ops.LSTMGates`."""
lstm_persistent_backward = Persistent(
    "lstm_persistent_backward",
    source("lstm_persistent_common") + source("lstm_persistent_backward"),
    _backward,
    _flops,
    is_product=True,
    shared=4,
)
"""(grad (T, N, H), c, gates, weight_hh, c before the first step, gradients by the last h and c) to the gradients by the
sums (T, N, 4 * H), and by h and c before the first step."""
