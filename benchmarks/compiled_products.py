"""For compiled.py: our kernels of a dense layer beside cuBLAS, both captured in a CUDA graph, in one run.

The layer is the wide one of source A's network, 1960 to 100 with ReLU, forward and backward, as a compiled step has it.
CuPy's functions for cuBLAS raise in a capture, so PyTorch calls it, on the same memory and stream: in float32, without
TF32. Its bias, ReLUs and sum over the samples are kernels of one launch each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy as cp
import numpy as np
import torch

import common
import gpu_common
from common import Row
from unrolled import kernels, nn
from unrolled.nn.compiler.parts import DensePart
from unrolled.nn.compiler.stages import Dense

INPUTS, OUTPUTS = 1960, 100
BATCHES = (8, 128, 1024)
STEPS = 64  # of a graph, as a compiled step has
TOLERANCE = 1e-5  # of a result, relative to the largest value of float64's
ADD_AND_CUT = cp.ElementwiseKernel("raw T bias, int32 columns", "T y", "y = max(y + bias[i % columns], (T)0)", "cut")
CUT = cp.ElementwiseKernel("T x", "T grad", "grad = x > 0 ? grad : (T)0", "cut_back")


class Layer:
    """The layer at one batch: what comes in, what goes out, and the ways to compute it."""

    def __init__(self, batch: int) -> None:
        rng = np.random.default_rng(0)
        network = nn.Sequential(nn.Linear(OUTPUTS)).build((INPUTS,), cp)
        layer: Any = network.layers[0]
        self.weight, self.bias = layer.parameters["weight"], layer.parameters["bias"]
        self.bias[...] = cp.asarray(rng.standard_normal(OUTPUTS, dtype=np.float32))
        self.x = cp.asarray(np.maximum(rng.standard_normal((batch, INPUTS), dtype=np.float32), 0))  # of a ReLU
        self.grad = cp.asarray(rng.standard_normal((batch, OUTPUTS), dtype=np.float32))
        self.y, self.by_x = (cp.empty((batch, columns), "float32") for columns in (OUTPUTS, INPUTS))
        self.by_weight, self.by_bias = cp.empty((OUTPUTS, INPUTS), "float32"), cp.empty(OUTPUTS, "float32")
        arrays = self.x, self.weight, self.grad, self.y, self.by_x, self.by_weight
        self._tensors = [torch.from_dlpack(array) for array in arrays]
        self._gradients = layer.gradients
        stage = Dense(layer, relu=True, inputs=INPUTS, outputs=OUTPUTS)
        self._part = DensePart(cp, stage, batch, relu=True, inputs=True, masked=True)

    def ours(self) -> list[Any]:
        """Take a step by our kernels: two launches. Return y and the gradients by x, weight and bias."""
        self._part.forward(self.x)
        by_x = self._part.backward(self.x, self.grad)
        return [self._part.outputs, by_x, self._gradients["weight"], self._gradients["bias"]]

    def products(self) -> None:
        """Do the three products alone, by cuBLAS."""
        x, weight, grad, y, by_x, by_weight = self._tensors
        torch.mm(x, weight.T, out=y)
        torch.mm(grad, weight, out=by_x)
        torch.mm(grad.T, x, out=by_weight)

    def theirs(self) -> list[Any]:
        """Take a step by cuBLAS: three products, and three small kernels."""
        self.products()
        ADD_AND_CUT(self.bias, OUTPUTS, self.y)
        CUT(self.x, self.by_x)
        kernels.sum_first_axis((self.grad,), (self.by_bias,), kernels.constants(columns=OUTPUTS))
        return [self.y, self.by_x, self.by_weight, self.by_bias]

    def expected(self) -> list[Any]:
        """Return the same in float64, on the host."""
        x, grad, weight, bias = (cp.asnumpy(each).astype(float) for each in (self.x, self.grad, self.weight, self.bias))
        return [np.maximum(x @ weight.T + bias, 0), grad @ weight * (x > 0), grad.T @ x, grad.sum(axis=0)]


def captured(step: Callable[[], Any], steps: int = STEPS) -> Callable[[], None]:
    """Return the launch of a graph of so many steps. A first one runs as usual: it compiles and loads the kernels."""
    gpu_common.synchronize()
    stream = cp.cuda.Stream(non_blocking=True)
    with stream, torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
        step()
        stream.synchronize()
        stream.begin_capture()
        try:
            for _ in range(steps):
                step()
        finally:
            graph = stream.end_capture()
    return graph.launch  # type: ignore[no-any-return]


def check(side: str, found: list[Any], expected: list[Any]) -> None:
    """Raise ArithmeticError unless all results of a side are those of float64."""
    for name, values, true in zip(("y", "by x", "by weight", "by bias"), found, expected, strict=True):
        common.check(f"{side}: {name}", cp.asnumpy(values).reshape(true.shape), true, TOLERANCE)


def row(batch: int, quick: bool) -> Row:
    """Measure the seconds of a step of each way within a graph, in turn, once their results are seen to be right."""
    torch.backends.cuda.matmul.allow_tf32 = False
    layer = Layer(batch)
    ways = {"ours": layer.ours, "cublas": layer.theirs, "cublas_products": layer.products}
    graphs = {name: captured(way) for name, way in ways.items()}
    expected = layer.expected()
    for side, found in (("ours", layer.ours()), ("cublas", layer.theirs())):
        for array in found:
            array.fill(np.nan)
        graphs[side]()
        gpu_common.synchronize()
        check(f"{side}, batch {batch}", found, expected)
    times = gpu_common.side_by_side(graphs, calls=20, rounds=5 if quick else 15)
    whole, alone = (common.compared(times, "ours", peer) for peer in ("cublas", "cublas_products"))
    row = {"name": f"wide layer in a graph, batch {batch}", "ours_s": whole["ours_s"] / STEPS}
    row |= {"cublas_s": whole["peer_s"] / STEPS, "cublas_products_s": alone["peer_s"] / STEPS}
    return row | {"ratio": whole["ratio"], "ratio_products": alone["ratio"]}
