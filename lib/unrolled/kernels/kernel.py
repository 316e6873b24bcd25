"""What a kernel is here: CUDA source, and a NumPy function that computes the same.

CuPy compiles the source once for each dtype and geometry and keeps it. The simulated GPU runs the NumPy function. Both
get the same arrays, and both write into arrays that are there already: a kernel returns nothing.

A training step is some 25 launches, and what the host does for each is what a small batch waits for. So everything that
can be found out once is kept: constants are one object for the same geometry, and compiled code is found by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

from unrolled.device import Array, Module, array_module

Arrays: TypeAlias = Sequence[Any]
Options: TypeAlias = Mapping[str, Any]
TYPES = {"f": "float", "d": "double"}  # by NumPy's character for the dtype: its name takes 100 times as long to get
HALF = r"""
struct T {  // 16 bits in memory, float32 wherever it is computed with
    unsigned short bits;
    T() = default;
    __device__ T(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
    __device__ operator float() const { float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); return x; }
    __device__ T& operator+=(float x) { return *this = T((float)*this + x); }
};
"""
PLACE = r"""
    Index at = blockIdx.x * (Index)blockDim.x + threadIdx.x;
    if (at >= size) return;"""
# How blocks add up what each of them found, in an order that never changes: each writes its part to memory and counts
# itself in, and the one that comes last adds all parts, from the first block's on. That costs no launch of its own.
# `counter` lies in device memory and is 0 before a launch.
LAST_BLOCK = r"""
__device__ bool is_last(int* counter, int blocks) {  // for all threads of a block, after their parts are written
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(counter, 1) == blocks - 1;
        if (last) *counter = 0;  // for the next launch
    }
    __syncthreads();
    if (last) __threadfence();
    return last;
}
"""
LARGEST_INT = 2**31 - 2**16  # the last block has threads beyond the last value
# Each line is (float's, double's): the compiler that CuPy calls knows C's names of these functions.
FUNCTIONS = {"EXP": ("expf", "exp"), "LOG": ("logf", "log"), "SQRT": ("sqrtf", "sqrt"), "MAX": ("fmaxf", "fmax")}
FUNCTIONS |= {"TANH": ("tanhf", "tanh")}


def source(name: str) -> str:
    """Return the CUDA source in `cuda/NAME.cu`, where the long ones lie."""
    return Path(__file__).with_name("cuda").joinpath(f"{name}.cu").read_text(encoding="utf-8")


class Constants(dict[str, int]):
    """Whole numbers that are known when a kernel is compiled, by name. Found by identity: see `constants`."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other


@lru_cache(maxsize=4096)
def constants(**values: int) -> Constants:
    """Return the values as Constants, one object for the same values, so that finding compiled code takes no time."""
    return Constants({name: int(value) for name, value in values.items()})


NONE = constants()


def of_blocks(size: int, options: Options) -> int:
    """Return the threads of as many blocks as the options say."""
    return int(options["blocks"] * options["block"])


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel that CuPy and the simulated GPU can launch: `kernel(inputs, outputs, constants, **floats)`.

    `source` is CUDA for a function `name(inputs..., outputs..., size, floats...)`. T is the type of the first input,
    Index is wide enough for every array. Constants stand in the compiled code, in capitals: the geometry of windows
    changes rarely. Floats travel with each launch, as doubles.

    `numpy(inputs, outputs, options)` computes the same, for NumPy arrays with any strides; options are constants and
    floats together. It raises ValueError where shapes and options do not fit, and never reads beyond its arrays.
    `flops` looks at shapes only. `updates` says that outputs are read, too. `block` is how many threads a block has,
    unless a constant of that name says so. `addressing` is how many whole-number operations a thread needs to find its
    places, where that takes longer than moving the values. `shared_bytes` is how much shared memory a block has besides
    what the source gives sizes.
    """

    name: str
    source: str
    numpy: Callable[[Arrays, Arrays, Options], None]
    flops: Callable[[Arrays, Arrays, Options], int]
    updates: bool = False
    size: Callable[[Arrays, Arrays], int] = lambda inputs, outputs: int(outputs[0].size)
    threads: Callable[[int, Options], int] = lambda size, options: size  # one for each value
    block: int = 256
    is_product: bool = False
    addressing: int = 0
    shared_bytes: Callable[[Options], int] | None = None
    _compiled: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __call__(self, inputs: Arrays, outputs: Arrays, constants: Constants = NONE, **floats: float) -> None:
        """Launch it, without waiting for the end. Inputs may have any strides; outputs lie in one piece, in C order."""
        module = array_module(outputs[0])
        inputs = [x if x.flags.c_contiguous else module.ascontiguousarray(x) for x in inputs]
        if is_cupy(module):
            self.on_cupy(inputs, outputs, constants, floats)
        else:
            module.launch_kernel(self.name, inputs, outputs, {**constants, **floats})

    def on_cupy(self, inputs: Arrays, outputs: Arrays, constants: Constants, floats: Options) -> None:
        """Compile, unless that is done, and launch on CuPy's current stream; nothing is launched for a size of 0."""
        size = self.size(inputs, outputs)
        if not size:
            return
        wide = inputs[0].size > LARGEST_INT or outputs[0].size > LARGEST_INT
        key = constants, inputs[0].dtype.char, wide
        launch, index = self._compiled.get(key) or self._compiled.setdefault(key, compiled(self, *key))
        block = constants.get("block", self.block)
        blocks = -(-self.threads(size, {**constants, **floats}) // block)
        launch((blocks,), (block,), (*inputs, *outputs, index(size), *floats.values()))


def per_value(
    name: str, parameters: str, body: str, numpy: Callable[..., None], flops: Callable[..., int], **options: Any
) -> Kernel:
    """Return a kernel with a thread for each value that is written: `at` is its place in the body, of `size`.

    parameters: "x, long long labels -> y; rate" are inputs, outputs and floats. An array is of T unless its type is
    named; what is written as a pointer stays as it is.
    """
    arrays, _, floats = parameters.partition("; ")
    inputs, outputs = (part.split(", ") for part in arrays.split(" -> "))
    declared = [*(_pointer(x, "const ") for x in inputs), *map(_pointer, outputs), "Index size"]
    declared += [f"double {x}" for x in floats.split(", ") if x]
    head = f'\nextern "C" __global__ void {name}({", ".join(declared)}) {{{PLACE}'
    return Kernel(name, f"{head}{body}}}\n", numpy, flops, **options)


def _pointer(parameter: str, const: str = "") -> str:
    *kind, name = parameter.split()
    return parameter if "*" in parameter else f"{const}{' '.join(kind) or 'T'}* __restrict__ {name}"


def runs_on(module: Module) -> bool:
    """Return whether arrays of this module can go through a kernel: CuPy's can, and the simulated GPU's."""
    return is_cupy(module) or hasattr(module, "launch_kernel")


def take(first: Array, *others: Array | None) -> bool:
    """Return whether these arrays, all of one module, can go through a kernel.

    They can if they lie on a GPU and are all float32 or all float64; None is skipped.
    """
    dtype = first.dtype
    if dtype.char not in TYPES or not runs_on(array_module(first)):
        return False
    return all(x is None or x.dtype is dtype or x.dtype == dtype for x in others)


def take_half(x: Array) -> bool:
    """Return whether x is float16 on a GPU: kernels that only move, compare or add once can take it."""
    return bool(x.dtype.char == "e") and runs_on(array_module(x))


def is_cupy(module: Module) -> bool:
    return getattr(module, "__name__", None) == "cupy"


def compiled(kernel: Kernel, constants: Constants, dtype: str, wide: bool) -> tuple[Any, Any]:
    """Return (CuPy's kernel, NumPy's type of its `size`). CuPy compiles at the first launch, and keeps code on disk."""
    import cupy

    launch: Any = cupy.RawKernel(code(kernel, constants, dtype, wide), kernel.name)
    if kernel.shared_bytes is not None:
        launch.max_dynamic_shared_size_bytes = shared = kernel.shared_bytes(constants)
        launch = partial(launch, shared_mem=shared)
    return launch, cupy.int64 if wide else cupy.int32


def code(kernel: Kernel, constants: Options, dtype: str, wide: bool) -> str:
    """Return all the source that is compiled: types, functions and constants, then the kernel's own."""
    lines = [HALF if dtype == "e" else f"typedef {TYPES[dtype]} T;", f"typedef {'long long' if wide else 'int'} Index;"]
    lines += [f"#define {name} {names[dtype == 'd']}" for name, names in FUNCTIONS.items()]
    lines += [f"constexpr int {name.upper()} = {value};" for name, value in constants.items()]
    return "\n".join([*lines, kernel.source])
