"""For compiled.py: our kernels of a dense layer beside cuBLAS, both captured in a CUDA graph, in one run.

The layer is the wide one of source A's network, 1960 to 100 with ReLU, forward and backward, as a compiled step has it.
CuPy's functions for cuBLAS raise in a capture, so cuBLAS is called by itself: with a handle and a workspace of its own,
in float32, its default mode without TF32. Its bias, ReLUs and sum over the samples are kernels of one launch each.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np

import common
import gpu_common
from common import Row
from unrolled import kernels, nn
from unrolled.nn.compiler.parts import DensePart
from unrolled.nn.compiler.stages import Dense

INPUTS, OUTPUTS = 1960, 100
BATCHES = (8, 128, 1024)
STEPS = 64  # of a graph, as a compiled step has
WORKSPACE = 32 * 2**20  # bytes: what NVIDIA recommends for Hopper
TOLERANCE = 1e-5  # of a result, relative to the largest value of float64's
ADD_AND_CUT = cp.ElementwiseKernel("raw T bias, int32 columns", "T y", "y = max(y + bias[i % columns], (T)0)", "cut")
CUT = cp.ElementwiseKernel("T x", "T grad", "grad = x > 0 ? grad : (T)0", "cut_back")


class Library:
    """cuBLAS with a handle of its own, for one stream: nothing that it needs is made while the stream captures."""

    def __init__(self, stream: Any) -> None:
        cp.cuda.get_cublas_handle()  # loads the library that CuPy was built for
        self._library = ctypes.CDLL(loaded("libcublas.so"))
        self._workspace, self._handle = cp.empty(WORKSPACE, "uint8"), ctypes.c_void_p()
        self._one, self._zero = ctypes.c_float(1), ctypes.c_float(0)
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        self._call("cublasSetStream_v2", self._handle, ctypes.c_void_p(stream.ptr))  # before: it resets the workspace
        where = ctypes.c_void_p(self._workspace.data.ptr)
        self._call("cublasSetWorkspace_v2", self._handle, where, ctypes.c_size_t(WORKSPACE))

    def product(self, a: Any, b: Any, out: Any, turn_a: bool = False, turn_b: bool = False) -> None:
        """Write a @ b to out, all of two axes in C order; turned ones are transposed first.

        cuBLAS counts down the columns. Row by row, its matrices are ours transposed: out.T = b.T @ a.T.
        """
        rows, columns = out.shape
        sizes = (columns, rows, a.shape[0] if turn_a else a.shape[1])
        of_a, of_b = (ctypes.c_void_p(a.data.ptr), a.shape[1]), (ctypes.c_void_p(b.data.ptr), b.shape[1])
        ends = (ctypes.byref(self._zero), ctypes.c_void_p(out.data.ptr), columns)
        turns = int(turn_b), int(turn_a)
        self._call("cublasSgemm_v2", self._handle, *turns, *sizes, ctypes.byref(self._one), *of_b, *of_a, *ends)

    def close(self) -> None:
        """Give the handle back, once nothing runs any more."""
        self._call("cublasDestroy_v2", self._handle)

    def _call(self, name: str, *arguments: Any) -> None:
        """Raises RuntimeError with the function's name and its status, unless that is 0."""
        status = getattr(self._library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} returned {status}, see cublasStatus_t")


def loaded(name: str) -> str:
    """Return the file of a shared library that this process has loaded. Raises OSError where it has none such."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    paths = [line.split(maxsplit=5)[-1] for line in lines if "/" in line]
    found = [path for path in paths if Path(path).name.startswith(name)]
    if not found:
        raise OSError(f"{name} is not loaded: CuPy found no cuBLAS")
    return found[0]


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
        self._gradients = layer.gradients
        stage = Dense(layer, relu=True, inputs=INPUTS, outputs=OUTPUTS)
        self._part = DensePart(cp, stage, batch, relu=True, inputs=True, masked=True)

    def ours(self) -> list[Any]:
        """Take a step by our kernels: two launches. Return y and the gradients by x, weight and bias."""
        self._part.forward(self.x)
        by_x = self._part.backward(self.x, self.grad)
        return [self._part.outputs, by_x, self._gradients["weight"], self._gradients["bias"]]

    def products(self, cublas: Library) -> None:
        """Do the three products alone."""
        cublas.product(self.x, self.weight, self.y, turn_b=True)
        cublas.product(self.grad, self.weight, self.by_x)
        cublas.product(self.grad, self.x, self.by_weight, turn_a=True)

    def theirs(self, cublas: Library) -> list[Any]:
        """Take a step by cuBLAS: three products, and three small kernels."""
        self.products(cublas)
        ADD_AND_CUT(self.bias, OUTPUTS, self.y)
        CUT(self.x, self.by_x)
        kernels.sum_first_axis((self.grad,), (self.by_bias,), kernels.constants(columns=OUTPUTS))
        return [self.y, self.by_x, self.by_weight, self.by_bias]

    def expected(self) -> list[Any]:
        """Return the same in float64, on the host."""
        x, grad, weight, bias = (cp.asnumpy(each).astype(float) for each in (self.x, self.grad, self.weight, self.bias))
        return [np.maximum(x @ weight.T + bias, 0), grad @ weight * (x > 0), grad.T @ x, grad.sum(axis=0)]


def captured(stream: Any, step: Callable[[], Any]) -> Callable[[], None]:
    """Return the launch of a graph of STEPS steps. A first one runs as usual: kernels are compiled and loaded then."""
    gpu_common.synchronize()
    with stream:
        step()
        stream.synchronize()
        stream.begin_capture()
        try:
            for _ in range(STEPS):
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
    stream, layer = cp.cuda.Stream(non_blocking=True), Layer(batch)
    cublas = Library(stream)
    try:
        graphs = {
            "ours": captured(stream, layer.ours),
            "cublas": captured(stream, lambda: layer.theirs(cublas)),
            "cublas_products": captured(stream, lambda: layer.products(cublas)),
        }
        expected = layer.expected()
        results = {"ours": layer.ours(), "cublas": [layer.y, layer.by_x, layer.by_weight, layer.by_bias]}
        for side, found in results.items():
            for array in found:
                array.fill(np.nan)
            graphs[side]()
            gpu_common.synchronize()
            check(f"{side}, batch {batch}", found, expected)
        times = gpu_common.side_by_side(graphs, calls=20, rounds=5 if quick else 15)
        gpu_common.synchronize()
    finally:
        cublas.close()
    found = common.compared(times, "ours", "cublas"), common.compared(times, "ours", "cublas_products")
    return {
        "section": "products",
        "name": f"wide layer in a graph, batch {batch}",
        "ours_s": found[0]["ours_s"] / STEPS,
        "cublas_s": found[0]["peer_s"] / STEPS,
        "cublas_products_s": found[1]["peer_s"] / STEPS,
        "ratio": found[0]["ratio"],
        "ratio_products": found[1]["ratio"],
    }
