"""What a kernel is here: CUDA source, and a NumPy function that computes the same.

CuPy compiles the source once for each dtype and geometry and keeps it. The simulated GPU runs the NumPy function. Both
get the same arrays, and both write into arrays that are there already: a kernel gives nothing back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from unrolled.device import Array, Module, array_module

Arrays: TypeAlias = Sequence[Any]
Options: TypeAlias = Mapping[str, Any]
TYPES = {"float32": "float", "float64": "double"}
LARGEST_INT = 2**31 - 2**16  # the last block has threads beyond the last value
# Each line is (float's, double's): the compiler that CuPy calls knows C's names of these functions.
FUNCTIONS = {"EXP": ("expf", "exp"), "LOG": ("logf", "log"), "SQRT": ("sqrtf", "sqrt"), "MAX": ("fmaxf", "fmax")}


def output_size(inputs: Arrays, outputs: Arrays) -> int:
    """One thread for each value that is written: what most kernels want."""
    return int(outputs[0].size)


def input_size(inputs: Arrays, outputs: Arrays) -> int:
    """The size of what is read, for kernels that add up."""
    return int(inputs[0].size)


def one_each(size: int, options: Options) -> int:
    """As many threads as `size` says."""
    return size


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel that CuPy and the simulated GPU can launch: `kernel(inputs, outputs, **options)`.

    `source` is CUDA for a function `name(inputs..., outputs..., size, floats...)`. T is the type of the first input,
    Index is wide enough for every array. Options that are whole numbers or booleans are constants of the compiled code,
    in capitals: the geometry of windows changes rarely. Options that are floats travel with each launch, as doubles.

    `numpy(inputs, outputs, options)` computes the same, for NumPy arrays with any strides. It raises ValueError where
    shapes and options do not fit, and never reads beyond its arrays. `flops` looks at shapes only. `updates` says that
    outputs are read, too.
    """

    name: str
    source: str
    numpy: Callable[[Arrays, Arrays, Options], None]
    flops: Callable[[Arrays, Arrays, Options], int]
    updates: bool = False
    size: Callable[[Arrays, Arrays], int] = output_size
    threads: Callable[[int, Options], int] = one_each
    block: int = 256
    is_product: bool = False

    def __call__(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...], **options: Any) -> None:
        """Launch it, without waiting for the end. Inputs may have any strides; outputs lie in one piece, in C order."""
        module = array_module(*inputs, *outputs)
        inputs = tuple(contiguous(module, x) for x in inputs)
        if is_cupy(module):
            self.on_cupy(inputs, outputs, options)
        else:
            module.launch_kernel(self.name, inputs, outputs, options)

    def on_cupy(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...], options: Options) -> None:
        """Compile, unless that is done, and launch on CuPy's current stream."""
        size = self.size(inputs, outputs)
        if not size:
            return
        constants = tuple((name, int(value)) for name, value in options.items() if not isinstance(value, float))
        floats = [value for value in options.values() if isinstance(value, float)]
        wide = max(x.size for x in (*inputs, *outputs)) > LARGEST_INT
        launch, index = compiled(self, inputs[0].dtype.name, wide, constants)
        blocks = -(-self.threads(size, options) // self.block)
        launch((blocks,), (self.block,), (*inputs, *outputs, index(size), *floats))


def runs_on(module: Module) -> bool:
    """Whether arrays of this module can go through a kernel: CuPy's can, and the simulated GPU's."""
    return is_cupy(module) or hasattr(module, "launch_kernel")


def take(*arrays: Array | None) -> bool:
    """Whether these arrays can go through a kernel: on a GPU, and all float32 or all float64."""
    there = [x for x in arrays if x is not None]
    dtype = there[0].dtype
    return runs_on(array_module(*there)) and dtype.name in TYPES and all(x.dtype == dtype for x in there)


def is_cupy(module: Module) -> bool:
    return getattr(module, "__name__", None) == "cupy"


def contiguous(module: Module, x: Array) -> Array:
    """x in one piece, in C order: itself, or a copy."""
    return x if x.flags.c_contiguous else module.ascontiguousarray(x)


@cache
def compiled(kernel: Kernel, dtype: str, wide: bool, constants: tuple[tuple[str, int], ...]) -> tuple[Any, Any]:
    """(CuPy's kernel, the NumPy type of its `size`). CuPy compiles at the first launch, and keeps the code on disk."""
    import cupy

    return cupy.RawKernel(code(kernel, dtype, wide, constants), kernel.name), cupy.int64 if wide else cupy.int32


def code(kernel: Kernel, dtype: str, wide: bool, constants: tuple[tuple[str, int], ...]) -> str:
    """The whole of what is compiled."""
    double = dtype == "float64"
    lines = [f"typedef {TYPES[dtype]} T;", f"typedef {'long long' if wide else 'int'} Index;"]
    lines += [f"#define {name} {names[double]}" for name, names in FUNCTIONS.items()]
    lines += [f"constexpr int {name.upper()} = {value};" for name, value in constants]
    return "\n".join([*lines, kernel.source])
