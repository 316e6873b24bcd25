"""Convolution by NVIDIA's library: what `conv2d(..., method="cudnn")` calls on a GPU.

CuPy 14 has no door to cuDNN of its own. This one is the package nvidia-cudnn-frontend: an operation is described as a
graph of one node, cuDNN names the ways that it knows for it, the best of them by its own guess is compiled, and run on
the arrays' addresses. What was compiled is kept for the next call of the same shapes. The package is asked for here and
nowhere else, so that without it all but this method works.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.device import Array, array_module
from unrolled.ops.windows import Windows

Shape = tuple[int, ...]
INSTALL = "pip install nvidia-cudnn-frontend nvidia-cudnn-cu12 (or nvidia-cudnn-cu13, as the CUDA of your CuPy)"
LIBRARY = "nvidia/cudnn/lib/libcudnn.so.9"  # where the package of the library puts it, below site-packages
KEPT = 256  # compiled operations


class Operation(NamedTuple):
    """What cuDNN compiles for: a kind of pass, the shapes of x, weight and y, how windows lie, and the precision."""

    kind: str
    x: Shape
    weight: Shape
    y: Shape
    stride: Shape
    padding: Shape
    tf32: bool


class Compiled(NamedTuple):
    """A graph that is ready to run, its tensors (two that are read, one that is written), bytes of scratch memory."""

    graph: Any
    tensors: tuple[Any, Any, Any]
    workspace: int


def check(x: Array) -> None:
    """Raise ValueError unless x is float32 on a real GPU, ImportError where cuDNN or its front end is missing."""
    if array_module(x).__name__ != "cupy":
        raise ValueError(
            f"x is an array of {array_module(x).__name__}; method 'cudnn' expects CuPy's, on an NVIDIA GPU: "
            "the methods gemm, fft and winograd take any"
        )
    if x.dtype.name != "float32":
        raise ValueError(f"x is {x.dtype}; expected float32 for method 'cudnn'")
    frontend()


def forward(x: Array, weight: Array, bias: Array | None, windows: Windows, tf32: bool = False) -> Array:
    """Return the result of `conv2d` for arguments that are checked and share one dtype.

    tf32: let tensor cores round factors to 10 bits behind the binary point, which is faster and less exact.
    """
    check(x)
    y = array_module(x).zeros((len(x), len(weight), *windows.output_size), dtype=x.dtype)
    _run("fprop", (x, weight), y, (x.shape, weight.shape, y.shape), windows, tf32)
    if bias is not None:
        y += bias[:, None, None]
    return y


def backward(
    grad: Array, x: Array, weight: Array, windows: Windows, input_gradient: bool, tf32: bool = False
) -> tuple[Array | None, Array, Array]:
    """Return the result of `conv2d_backward` for arguments that are checked and share one dtype."""
    check(x)
    module, shapes = array_module(x), (x.shape, weight.shape, grad.shape)
    grad_weight = module.zeros(weight.shape, dtype=x.dtype)
    _run("wgrad", (x, grad), grad_weight, shapes, windows, tf32)
    grad_x = None
    if input_gradient:
        grad_x = module.zeros(x.shape, dtype=x.dtype)
        _run("dgrad", (grad, weight), grad_x, shapes, windows, tf32)
    return grad_x, grad_weight, grad.sum(axis=(0, 2, 3))


@lru_cache(maxsize=1)
def frontend() -> Any:
    """Return the package of cuDNN's front end, with the library loaded.

    Raises ImportError, which says what to install, where one of them is missing.
    """
    for folder in map(Path, sys.path):
        if (folder / LIBRARY).exists():
            ctypes.CDLL(str(folder / LIBRARY))  # the front end looks into one site-packages only
            break
    try:
        package = import_module("cudnn")
        package.backend_version()
    except (ImportError, OSError, RuntimeError) as error:
        raise ImportError(f"method 'cudnn' needs cuDNN and its front end: {INSTALL} ({error})") from error
    return package


def _run(
    kind: str,
    read: tuple[Array, Array],
    written: Array,
    shapes: tuple[Shape, Shape, Shape],
    windows: Windows,
    tf32: bool,
) -> None:
    """Run one operation on the current stream; nothing without elements, whose results are zeros already."""
    if not all(prod(array.shape) for array in (*read, written)):
        return
    module = array_module(written)
    number = module.cuda.Device().id
    compiled = _compiled(Operation(kind, *shapes, windows.stride, windows.padding, tf32), number)
    read = module.ascontiguousarray(read[0]), module.ascontiguousarray(read[1])
    scratch = module.empty(max(1, compiled.workspace), dtype="uint8")
    frontend().set_stream(_handle(number), module.cuda.get_current_stream().ptr)
    addresses = (array.data.ptr for array in (*read, written))
    arrays = dict(zip(compiled.tensors, addresses, strict=True))
    compiled.graph.execute(arrays, scratch.data.ptr, handle=_handle(number))


@lru_cache(maxsize=16)
def _handle(number: int) -> Any:
    """cuDNN's handle of this device, which is the current one."""
    return frontend().create_handle()


@lru_cache(maxsize=KEPT)
def _compiled(operation: Operation, number: int) -> Compiled:
    """Let cuDNN choose and compile a way to do this operation on this device."""
    package = frontend()
    graph = package.pygraph(
        io_data_type=package.data_type.FLOAT,
        intermediate_data_type=package.data_type.FLOAT,
        compute_data_type=package.data_type.FLOAT,
        handle=_handle(number),
    )
    tensors = _describe(graph, operation)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([package.heur_mode.A, package.heur_mode.FALLBACK])
    if not operation.tf32:
        note = package.numerical_note
        graph.deselect_numeric_notes([note.TENSOR_CORE, note.DOWN_CONVERT_INPUTS])
    graph.check_support()
    graph.build_plans()
    return Compiled(graph, tensors, graph.get_workspace_size())


def _describe(graph: Any, operation: Operation) -> tuple[Any, Any, Any]:
    """Add the operation to the graph; return what it reads and what it writes."""

    def tensor(name: str, shape: Shape) -> Any:
        return graph.tensor(name=name, dim=list(shape), stride=_strides(shape))

    stride, padding = list(operation.stride), list(operation.padding)
    windows = {"stride": stride, "padding": padding, "dilation": [1, 1]}
    if operation.kind == "fprop":
        first, second = tensor("x", operation.x), tensor("weight", operation.weight)
        written, shape = graph.conv_fprop(image=first, weight=second, **windows), operation.y
    elif operation.kind == "wgrad":
        first, second = tensor("x", operation.x), tensor("grad", operation.y)
        written, shape = graph.conv_wgrad(image=first, loss=second, **windows), operation.weight
    else:
        first, second = tensor("grad", operation.y), tensor("weight", operation.weight)
        written, shape = graph.conv_dgrad(loss=first, filter=second, **windows), operation.x
    written.set_output(True).set_dim(list(shape)).set_stride(_strides(shape))
    return first, second, written


def _strides(shape: Shape) -> list[int]:
    """From one element to the next of each axis, in elements, of an array in C order."""
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]
