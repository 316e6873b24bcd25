"""How long a kernel takes: a model of a few figures, from the shapes, strides and dtypes of what it reads and writes.

    seconds = shortest_kernel + max(bytes / bandwidth, flops / peak)

The shortest matrix product and the shortest draw of random numbers take longer than the shortest kernel of other kinds.

Bytes: each operand is read once and each output written once, whatever the kernel's own traffic is; a value that is
broadcast is read once, and windows that overlap are read as often as the memory that they cover. Memory comes in
sectors of 32 bytes. So an operand whose neighbours lie apart costs its sectors, up to eight times its float32 values; a
dense one that is read across its rows costs `transposed` times its bytes, since the cache finds part of each sector
again.

What index arrays name, unless it is whole rows, costs a sector a place, or two where it is written, since the rest of
the sector has to be kept. Of an array that fits in the L2 cache nothing is fetched twice: its sectors come at the
cache's bandwidth, others at `scattered`. A warp whose places lie within one sector touches one. And finding a place
takes whole-number operations, which set the pace where places are near. Several index arrays are first made into one,
by small kernels that are not counted as launches.

Flops: one a value for an addition, several for a division or an exponential (`FLOPS`). A Fourier transform of N values
counts 5 * N * log2 N, one of real values half of that, as benchFFT counts (M. Frigo and S. G. Johnson,
fftw.org/speed/method.html). A matrix product counts 2 * M * N * K. It is cut into tiles, which are spread over the
multiprocessors: a product with few tiles leaves most of them idle. So does a reduction to a few values, since CuPy
gives each value one block of threads. A kernel that finds its places by many divisions says how many whole-number
operations a value that takes; they are no flops.

How far this is from a real GPU is measured: `benchmarks/simgpu.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log2, prod
from typing import Any

from unrolled.simgpu import addressing, operations
from unrolled.simgpu.command import Inputs, InvalidCommandError, Options, View, Views
from unrolled.simgpu.profiles import GPUProfile

SECTOR = 32
"""Bytes that the memory gives at once."""
TILE = 64
"""Rows and columns of a product that one multiprocessor computes at a time."""
SPLIT = 512
"""Terms of a sum above which cuBLAS spreads one tile over several multiprocessors."""
BLOCK_SHARE = 2.0
"""Bandwidth that one multiprocessor can draw in a reduction, as a multiple of its fair share."""
WARP = 32
"""Threads that read or write at once."""
FINDING = 200
"""Whole-number operations with which CuPy finds a place that index arrays name (measured on an H200: 195 to 227, for
lesson 03's quadratic fill)."""
SORT_PASSES = 8
"""Digits of a radix sort: everything is read and written once for each."""

FLOPS: dict[str, int] = {
    **dict.fromkeys(("divide", "true_divide", "floor_divide", "remainder", "mod", "fmod", "divmod", "reciprocal"), 8),
    **dict.fromkeys(("sqrt", "cbrt", "hypot"), 8),
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "logaddexp2"), 16),
    **dict.fromkeys(("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2"), 20),
    **dict.fromkeys(("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"), 24),
    **dict.fromkeys(("power", "pow", "float_power"), 32),
    **dict.fromkeys(("var", "std", "nanvar", "nanstd"), 4),
    **dict.fromkeys(("copy", "fill", "getitem", "setitem", "concatenate", "random.seed"), 0),
    "random": 32,
}
"""Operations for one value; 1 for what is not listed."""

_KINDS = {name: name for name in ("matmul", "einsum", "copy", "concatenate", "kernel", "random")} | {"fused": "kernel"}
_KINDS |= dict.fromkeys(("getitem", "setitem", "nonzero"), "indexing")
_KINDS |= dict.fromkeys(("fill", "arange", "linspace", "eye"), "fill")
_KINDS |= dict.fromkeys(("sort", "argsort", "searchsorted", "median"), "sort")


@dataclass(frozen=True)
class Cost:
    """What one kernel moves and computes. `work` is its time if it had the whole GPU, without the launch."""

    bytes_read: int
    bytes_written: int
    flops: int
    elements: int
    seconds: float
    work: float


def of(op: str, inputs: Inputs, outputs: Views, options: Options, profile: GPUProfile) -> Cost:
    """Return the cost of a command. ValueError or TypeError where its parts do not go together."""
    views = [x for x in inputs if isinstance(x, View)]
    elements = _elements(op, inputs, outputs, options)
    read, written, traffic = _moved(op, views, outputs, options, elements, profile)
    flops = _flops(op, inputs, outputs, options, elements)
    product = op in ("matmul", "einsum") or _kernel_is("is_product", op, options)
    computed = views if product else (*views, *outputs)
    memory, compute = traffic / profile.bandwidth, flops / _peak(computed, product, op == "kernel", profile)
    if named := _named(op, views, outputs):
        memory += _places_seconds(named, elements, options, op != "getitem", profile)
        compute = max(compute, elements * FINDING / profile.integer)
    if op == "kernel" and outputs:
        found = operations.kernel(options.get("name")).addressing * outputs[0].size
        compute = max(compute, found / profile.integer)
    if op.endswith(".at"):
        compute = max(compute, elements / profile.atomics)
    slowed = max(memory / _blocks_share(op, outputs, profile), compute / _tiles_share(product, outputs, flops, profile))
    shortest = profile.shortest_product if product else profile.shortest_kernel
    if op == "random":
        shortest = profile.shortest_draw
    shortest += _joins(options) * profile.shortest_kernel
    return Cost(read, written, flops, elements, shortest + slowed, max(memory, compute))


def _moved(
    op: str, views: Views, outputs: Views, options: Options, elements: int, profile: GPUProfile
) -> tuple[int, int, float]:
    """Bytes read, bytes written, and what the memory moves for them besides what index arrays name."""
    named = _named(op, views, outputs)

    def nbytes(view: View) -> int:
        return elements * _itemsize(view) if view is named else _layout(view.shape, view.strides, view.dtype)[0]

    def fetched(view: View) -> float:
        _, sectors, transposed = _layout(view.shape, view.strides, view.dtype)
        return nbytes(view) * (profile.transposed if transposed else sectors)

    updates = op.endswith(".at") or _kernel_is("updates", op, options)
    read = [*views, *outputs] if updates else views
    traffic = sum(fetched(view) for view in (*read, *outputs) if view is not named)
    passes = SORT_PASSES if op in ("sort", "argsort") else 1
    return sum(map(nbytes, read)), sum(map(nbytes, outputs)), traffic * passes


def _named(op: str, views: Views, outputs: Views) -> View | None:
    """The array of which index arrays name places, if an op has one."""
    if op == "getitem":
        return views[0]
    return outputs[0] if op == "setitem" or op.endswith(".at") else None


def _places_seconds(view: View, elements: int, options: Options, writes: bool, profile: GPUProfile) -> float:
    """Seconds of cache and memory for the places of a view that index arrays name."""
    axes, itemsize = options["axes"], _itemsize(view)
    row = itemsize * prod(view.shape[max(axes, default=-1) + 1 :])  # bytes side by side, named by one index
    if row >= SECTOR or not elements:
        return elements * itemsize / profile.bandwidth
    sectors = elements * itemsize / row
    if min(axes, default=0) > 0:  # threads side by side stay within the axes that are named
        sectors = min(sectors, elements / WARP * ceil(itemsize * prod(view.shape[min(axes) :]) / SECTOR))
    cached = min(1.0, profile.l2 / (itemsize * view.size))
    seconds = sectors * SECTOR * (cached / profile.l2_bandwidth + (1 - cached) / profile.scattered)
    return seconds * (2 if writes else 1)


def _joins(options: Options) -> int:
    """How many small kernels make one index array of several: two an array, and a sum less than there are arrays."""
    arrays = len(options.get("axes", ()))
    return 3 * arrays - 3 if arrays > 1 else 0


def host_seconds(op: str, options: Options, profile: GPUProfile) -> float:
    """Return the seconds that the host takes for the call that launches an op."""
    return profile.host[kind(op, options)] + _joins(options) * profile.host["ufunc"]


def library_seconds(op: str, profile: GPUProfile) -> float:
    """Return the host's seconds in our own Python (layers, shapes, checks) before a kernel of ours; 0 for other ops."""
    return profile.host["library"] if op == "kernel" else 0.0


def kind(op: str, options: Options) -> str:
    """Return the kind of call: a key of `Profile.host`."""
    if _kernel_is("is_product", op, options):  # a call of cuBLAS
        return "matmul"
    if op in operations.REDUCTIONS or op in operations.SCANS:
        return "reduction"
    if op.endswith(".at"):
        return "scatter_add"
    return _KINDS.get(op, "ufunc")


def _elements(op: str, inputs: Inputs, outputs: Views, options: Options) -> int:
    """How many values the op handles: those that an index names, else those of its largest operand."""
    views = [x for x in inputs if isinstance(x, View)]
    if named := _named(op, views, outputs):
        indices = [x.shape if isinstance(x, View) else () for x in inputs[1:]]
        return addressing.addressed(named.shape, indices, options)
    return max((view.size for view in (*views, *outputs)), default=0)


def _kernel_is(what: str, op: str, options: Options) -> bool:
    """Whether a kernel of the library says so of itself: "updates" (it reads its outputs, too) or "is_product"."""
    return op == "kernel" and bool(getattr(operations.kernel(options.get("name")), what, False))


def _itemsize(view: View) -> int:
    return int(operations.dtype_of(view.dtype).itemsize)


@lru_cache(maxsize=4096)
def _layout(shape: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> tuple[int, float, bool]:
    """Bytes that hold the values, how many times these its sectors are, and whether neighbours lie rows apart.

    A broadcast value counts once, overlapping windows as far as they reach.
    """
    itemsize = int(operations.dtype_of(dtype).itemsize)
    axes = [(n, abs(stride)) for n, stride in zip(shape, strides, strict=True) if n > 1]
    moving = [(n, stride) for n, stride in axes if stride]
    reach = sum((n - 1) * stride for n, stride in moving) + itemsize
    nbytes = min(prod(n for n, _ in moving) * itemsize, reach) if prod(shape) else 0
    if not moving or axes[-1][1] <= itemsize:
        return nbytes, 1.0, False
    nearest = min(stride for _, stride in moving)
    return nbytes, max(1.0, min(nearest, SECTOR) / itemsize), nearest <= itemsize


def _flops(op: str, inputs: Inputs, outputs: Views, options: Options, elements: int) -> int:
    if op == "matmul":
        first = inputs[0]
        return 2 * outputs[0].size * (first.shape[-1] if isinstance(first, View) and first.shape else 1)
    if op == "einsum":
        return 2 * _index_space(options["subscripts"], inputs)
    if op == "fused":
        return elements * sum(FLOPS.get(str(step[0]), 1) for step in options["steps"])
    if op == "kernel":
        return int(operations.kernel(options["name"]).flops(inputs, outputs, operations.without_name(options)))
    if op in ("rfft2", "irfft2", "fft2", "ifft2"):
        pixels = prod(options["lengths"])
        spectrum = options["lengths"][0] * (options["lengths"][1] // 2 + 1)
        images = outputs[0].size // max(1, spectrum if op == "rfft2" else pixels)
        return int(images * 5 * pixels * log2(max(2, pixels)) / (2 if "r" in op else 1))
    if op in ("sort", "argsort", "median"):
        return int(elements * max(1, ceil(log2(max(2, elements)))))
    return elements * FLOPS.get(op, 1)


def _index_space(subscripts: Any, inputs: Inputs) -> int:
    """The product of all lengths that the letters of an einsum name."""
    if not isinstance(subscripts, str) or len(subscripts) > 200 or "." in subscripts:
        raise InvalidCommandError(f"subscripts are {subscripts!r:.80}; expected letters such as ij,jk->ik")
    terms = subscripts.replace(" ", "").partition("->")[0].split(",")
    shapes = [x.shape if isinstance(x, View) else () for x in inputs]
    if [len(term) for term in terms] != [len(shape) for shape in shapes]:
        raise InvalidCommandError(f"subscripts {subscripts!r:.80} do not fit shapes {shapes!r:.200}")
    lengths: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for letter, length in zip(term, shape, strict=True):
            lengths[letter] = max(length, lengths.get(letter, 1))
    return prod(lengths.values())


def _peak(views: Views, product: bool, ours: bool, profile: GPUProfile) -> float:
    """Operations a second of the dtype that an op computes in: the widest float, else integers.

    A product goes by what it multiplies. int8 reaches its own unit where the kernel is ours, which calls cuBLAS for it;
    CuPy's matmul of integers does not.
    """
    kinds = [operations.dtype_of(view.dtype) for view in views]
    widest = max((kind.itemsize // (2 if kind.kind == "c" else 1) for kind in kinds if kind.kind in "fc"), default=0)
    if product:
        if ours and all(kind == "int8" for kind in kinds):
            return profile.matmul_efficiency * profile.tensor_int8
        peaks = {2: profile.tensor_float16, 4: profile.float32, 8: profile.matmul_float64}
        return profile.matmul_efficiency * peaks.get(widest, profile.integer)
    return {2: profile.float16, 4: profile.float32, 8: profile.float64}.get(widest, profile.integer)


def _tiles_share(product: bool, outputs: Views, flops: int, profile: GPUProfile) -> float:
    """The part of the GPU's arithmetic that a matrix product keeps busy: its tiles, and what of them is filled."""
    if not product or not outputs[0].size:
        return 1.0
    *batch, rows, columns = (1, 1, *outputs[0].shape)
    inner = max(1, flops // (2 * outputs[0].size))
    tiles = ceil(rows / TILE) * ceil(columns / TILE)
    filled = rows * columns / (tiles * TILE**2)
    return min(1.0, prod(batch) * tiles * ceil(inner / SPLIT) / profile.multiprocessors) * filled


def _blocks_share(op: str, outputs: Views, profile: GPUProfile) -> float:
    """The part of the memory's bandwidth that a reduction can draw: each value is one block of threads.

    A reduction to one value is done in two steps, by many blocks.
    """
    if op not in operations.REDUCTIONS or outputs[0].size <= 1:
        return 1.0
    return min(1.0, BLOCK_SHARE * outputs[0].size / profile.multiprocessors)
