"""The kernels of lesson 08 on a GPU: each rung beside the copy ceiling, CuPy's own function and the simulated time.

    python benchmarks/gpu_kernels.py [--quick] [--json lib/unrolled/records/gpu_kernels.json]

The kernels are those of gpu_kernel_sources.py, compiled by `cupyx.jit`. Results are compared with CuPy's first. Arrays
are float32 of 8192 x 8192 values, for matrix products of 2048 x 2048. `us` is the time on the device, by CUDA events
around calls in a row, after a warm-up: the median of some blocks. `gb_per_s` counts what the task must move, each value
once, whatever the kernel moves; `of_copy` is its share of what a plain copy reaches. `of_peer` is the peer's time over
the kernel's: above 1 the kernel is faster. `modelled_us` is the simulated GPU's time for the same kernel, on an H200:
it counts a few blocks, and as many of these as were launched here are priced. The library's own kernels stand below,
by their share of the copy, too.

What misses the aims of lesson 08 is printed at the end (`faults`).

Without a GPU, --quick runs all of it on the simulated one, with small arrays: a look at the program, not at times.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isqrt, prod
from typing import Any

import numpy as np

import common
import gpu_common
import gpu_kernel_sources as sources
from common import Row, Step
from unrolled import device, kernels, simgpu
from unrolled.ops.windows import Windows
from unrolled.simgpu import jit as simulated_jit
from unrolled.simgpu.lockstep import price
from unrolled.simgpu.profiles import H200

Call = tuple[Step, float]
Size = tuple[int, ...]
MODEL, SHARE = 2.0, 0.9  # modelled times too long or too short, and the share of kernels that keep within it
CLASSES = 10
FLAT, TILED, SQUARE = (sources.THREADS,), (sources.TILE, sources.ROWS), (sources.TILE, sources.TILE)


@dataclass(frozen=True)
class Launch:
    """A launch of one kernel."""

    function: Callable[..., Any]
    grid: Size
    block: Size
    arguments: tuple[Any, ...]
    constants: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """Launches that do one task, beside what else does it: the peer, which writes into arrays or returns them."""

    launches: tuple[Launch, ...]
    outputs: tuple[Any, ...]
    peer: Callable[[], tuple[Any, ...]]
    peer_name: str
    bytes: float
    flops: float = 0.0


@dataclass(frozen=True)
class Group:
    """Tasks for arrays of one size: as measured, as counted for the model, and for a quick look."""

    make: Callable[[Any, Size], Mapping[str, Work]]
    full: Size
    counted: Size
    quick: Size


def adding(cp: Any, size: Size) -> dict[str, Work]:
    (n,) = size
    x, y, mine, theirs = _drawn(cp, n), _drawn(cp, n), cp.empty(n, "float32"), cp.empty(n, "float32")
    launch = Launch(sources.add, (_blocks(n, 256),), FLAT, (x, y, mine, np.int32(n)))
    return {"add": Work((launch,), (mine,), lambda: (cp.add(x, y, out=theirs),), "cp.add", 12 * n)}


def transposing(cp: Any, size: Size) -> dict[str, Work]:
    rows, columns = size
    x, mine = _drawn(cp, rows, columns), cp.empty((columns, rows), "float32")
    arguments = x, mine, *map(np.int32, size)
    wide = _blocks(columns, 32)
    tiled = Launch(sources.transpose_tiled, (wide, _blocks(rows, 32)), TILED, arguments)
    ways = {
        "naive": Launch(sources.transpose_naive, (wide, _blocks(rows, 8)), TILED, arguments),
        "tiled": tiled,
        "tiled without padding": replace(tiled, constants={"WIDTH": sources.TILE}),
    }
    work = partial(Work, peer=lambda: (cp.ascontiguousarray(x.T),), peer_name="cp.ascontiguousarray(x.T)")
    return {f"transpose, {way}": work((one,), (mine,), bytes=8 * x.size) for way, one in ways.items()}


def summing(cp: Any, size: Size) -> dict[str, Work]:
    rows, columns = size
    x, mine = _drawn(cp, rows, columns), cp.empty(rows, "float32")
    ways = {
        "one thread a row": Launch(sources.row_sum_thread, (_blocks(rows, 256),), FLAT, (x, mine)),
        "tree": Launch(sources.row_sum_tree, (rows,), FLAT, (x, mine, np.int32(columns))),
        "warp shuffles": Launch(sources.row_sum_shuffles, (rows,), FLAT, (x, mine)),
    }
    work = partial(Work, peer=lambda: (x.sum(axis=1),), peer_name="x.sum(axis=1)", bytes=4 * (x.size + rows))
    return {f"row sum, {way}": work((one,), (mine,), flops=x.size) for way, one in ways.items()}


def pooling(cp: Any, size: Size) -> dict[str, Work]:
    """Bias, ReLU and 2 x 2 max-pooling with routing, in one kernel and in three; the peer takes three launches, too."""
    n, c, h, w = size
    x, bias = _drawn(cp, *size), _drawn(cp, c)
    count, windows = x.size // 4, Windows.over((h, w), 2, 2, 0)
    y, places = cp.empty((n, c, h // 2, w // 2), "float32"), cp.empty((n, c, h // 2, w // 2), "int64")
    their_y, their_places, first, second = cp.empty_like(y), cp.empty_like(places), cp.empty_like(x), cp.empty_like(x)
    flat = {name: a.ravel() for name, a in {"x": x, "y": y, "places": places, "1": first, "2": second}.items()}
    counts, sizes = np.int32(count), (np.int32(h), np.int32(w))

    def peer() -> tuple[Any, ...]:
        cp.add(x, bias.reshape(-1, 1, 1), out=first)
        cp.maximum(first, np.float32(0), out=second)
        kernels.max_pool_with_indices((second,), (their_y, their_places), windows.constants())
        return their_y, their_places

    grid, whole = (_blocks(count, 256),), (_blocks(x.size, 256),)
    ends = flat["y"], flat["places"], counts
    fused = Launch(sources.bias_relu_pool, grid, FLAT, (flat["x"], bias, *ends, np.int32(c), *sizes))
    area = np.int32(h * w)
    steps = (
        Launch(sources.bias_alone, whole, FLAT, (flat["x"], bias, flat["1"], np.int32(x.size), np.int32(c), area)),
        Launch(sources.relu_alone, whole, FLAT, (flat["1"], flat["2"], np.int32(x.size))),
        Launch(sources.pool_alone, grid, FLAT, (flat["2"], *ends, *sizes)),
    )
    words = "cp.add, cp.maximum, the library's max_pool_with_indices"
    return {
        name: Work(launches, (y, places), peer, words, 4 * x.size + 12 * count, 2 * x.size)
        for name, launches in (("bias, relu, pool: fused", (fused,)), ("bias, relu, pool: three kernels", steps))
    }


def multiplying(cp: Any, size: Size) -> dict[str, Work]:
    m, k, n = size
    a, b = _drawn(cp, m, k), _drawn(cp, k, n)
    mine, theirs = cp.empty((m, n), "float32"), cp.empty((m, n), "float32")
    tiled = a, b, mine, *map(np.int32, (m, n, k))
    ways = {
        "naive": Launch(sources.matmul_naive, (_blocks(n, 32), _blocks(m, 8)), TILED, (a, b, mine)),
        "tiled": Launch(sources.matmul_tiled, (_blocks(n, 32), _blocks(m, 32)), SQUARE, tiled),
    }
    work = partial(Work, peer=lambda: (cp.matmul(a, b, out=theirs),), peer_name="cp.matmul", flops=2 * m * n * k)
    return {f"matmul, {way}": work((one,), (mine,), bytes=4 * (a.size + b.size + m * n)) for way, one in ways.items()}


GROUPS = (
    Group(adding, (8192 * 8192,), (2**18,), (5000,)),
    Group(transposing, (8192, 8192), (512, 512), (96, 200)),
    Group(summing, (8192, 8192), (256, 8192), (40, 300)),
    Group(pooling, (64, 16, 256, 256), (1, 16, 64, 256), (2, 3, 14, 32)),
    Group(multiplying, (2048, 2048, 2048), (64, 2048, 64), (72, 40, 56)),
)


def _drawn(cp: Any, *shape: int) -> Any:
    return cp.asarray(np.random.default_rng(sum(shape)).random(shape, dtype=np.float32) - np.float32(0.5))


def _blocks(values: int, of: int) -> int:
    return -(-values // of)


def steps_of(work: Work, compiler: Any, cp: Any) -> list[tuple[Any, Launch]]:
    """Return (kernel, launch) for each launch of a task, compiled."""
    return [(sources.compiled(one.function, compiler, cp, one.constants), one) for one in work.launches]


def run(steps: list[tuple[Any, Launch]]) -> None:
    for kernel, launch in steps:
        kernel(launch.grid, launch.block, launch.arguments)


def check(name: str, work: Work, steps: list[tuple[Any, Launch]], cp: Any) -> None:
    """Raise ArithmeticError unless a task's result is the peer's; float32 sums differ by their order."""
    for output in work.outputs:
        output.fill(7)
    run(steps)
    for mine, theirs in zip(work.outputs, work.peer(), strict=True):
        left, right = cp.asnumpy(mine).astype(np.float64), cp.asnumpy(theirs).astype(np.float64)
        if not np.allclose(left, right, rtol=1e-4, atol=1e-3):
            raise ArithmeticError(f"{name}: off by up to {abs(left - right).max():.3g} from {work.peer_name}")


def modelled(counted: Work, launched: Work) -> float:
    """Return the simulated GPU's seconds for a task that launched more blocks than those that are counted here."""
    total = 0.0
    for (kernel, small), large in zip(steps_of(counted, simulated_jit, simgpu), launched.launches, strict=True):
        kernel(small.grid, small.block, small.arguments)
        times = prod(large.grid) / prod(small.grid)
        found = kernel.report.total
        counts = {name: value * times for name, value in vars(found).items() if name not in ("line", "code")}
        total += price.seconds(replace(found, **counts), prod(large.grid), H200)[0]
    return total


def moving(name: str, step: Step, moved: float, copy: float | None, quick: bool) -> Row:
    """Measure a step that moves so many bytes; `copy` is what a copy reaches in GB/s."""
    time = gpu_common.seconds(step, *_often(quick))
    speed = moved / time / 1e9
    row = {"name": name, "us": 1e6 * time, "gb_per_s": speed}
    return row | ({"of_copy": speed / copy} if copy else {})


def copy_row(cp: Any, quick: bool) -> Row:
    """Measure a copy as large as the arrays: the ceiling of all that moves as much as it computes."""
    a = cp.ones(4096 if quick else 8192 * 8192, "float32")
    b = cp.empty_like(a)
    return {"section": "ceiling", **moving("copy", lambda: b.__setitem__(Ellipsis, a), 2 * a.nbytes, None, quick)}


def _often(quick: bool) -> tuple[int, int]:
    return (1, 2) if quick else (20, 7)


def rows(group: Group, cp: Any, compiler: Any, copy: float, quick: bool) -> list[Row]:
    """Measure the tasks of a group; `copy` is what a copy reaches in GB/s."""
    found, made = [], group.make(cp, group.quick if quick else group.full)
    small = group.make(simgpu, group.quick if quick else group.counted)
    for name, work in made.items():
        steps = steps_of(work, compiler, cp)
        check(name, work, steps, cp)
        row = {"section": "lesson 08", "name": name, "launches": len(steps)}
        row |= moving(name, partial(run, steps), work.bytes, copy, quick)
        ours, peer = row["us"], 1e6 * gpu_common.seconds(work.peer, *_often(quick))
        model = 1e6 * modelled(small[name], work)
        row |= {"tflops": work.flops / ours / 1e6, "peer": work.peer_name, "peer_us": peer, "of_peer": peer / ours}
        found.append(row | {"modelled_us": model, "modelled_ratio": model / ours})
    return found


def library_rows(cp: Any, copy: float, quick: bool) -> list[Row]:
    """Measure the library's own kernels, by their share of the copy."""
    calls = library(cp, 2**12 if quick else 2**26)
    return [
        {"section": "library", **moving(f"library: {name}", step, moved, copy, quick)}
        for name, (step, moved) in calls.items()
    ]


def faults(found: Sequence[Row]) -> list[str]:
    """Return in words which of the aims are missed: the tiled transpose near the copy, sums near CuPy's, fusion, model.

    Nothing is said of a rung that has no row.
    """
    by_name = {row["name"]: row for row in found}
    aims = (
        ("transpose, tiled", "of_copy", 0.8, "of the copy's bandwidth"),
        ("row sum, tree", "of_peer", 1 / 1.1, "of the speed of x.sum(axis=1)"),
        ("bias, relu, pool: fused", "of_peer", 2.0, "times the speed of the separate steps"),
    )
    words = [
        f"{name}: {by_name[name][key]:.2f} {what}, expected {least:.2f}"
        for name, key, least, what in aims
        if name in by_name and by_name[name][key] < least
    ]
    ratios = {row["name"]: row["modelled_ratio"] for row in found if "modelled_ratio" in row}
    off = [name for name, ratio in ratios.items() if not 1 / MODEL <= ratio <= MODEL]
    if len(ratios) - len(off) < SHARE * len(ratios):
        words.append(f"modelled times more than {MODEL:g} times off: {', '.join(off)}; expected 1 in 10 at most")
    return words


def library(cp: Any, values: int) -> dict[str, Call]:
    """Return name -> (call, bytes): each kernel of ours on float32 arrays of about `values` values."""
    return {**of_values(cp, values), **of_sums(cp, values), **of_windows(cp, values)}


def of_values(cp: Any, values: int) -> dict[str, Call]:
    """One thread a value."""
    x, y, z, u = (cp.ones(values, "float32") for _ in range(4))
    row, rows = cp.ones(64, "float32"), x.reshape(-1, 64)
    steps = {"rate": 1e-3, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0}
    return {
        "relu": _call(kernels.relu, (x,), (y,)),
        "relu_backward": _call(kernels.relu_backward, (x, z), (y,)),
        "add_row": _call(kernels.add_row, (row,), (rows,), kernels.constants(columns=64)),
        "dropout": _call(kernels.dropout, (x, y), (z, u), rate=0.5),
        "sgd": _call(kernels.sgd, (x,), (y,), rate=1e-3, weight_decay=0.0),
        "adam": _call(kernels.adam, (x,), (y, z, u), **steps),
    }


def of_sums(cp: Any, values: int) -> dict[str, Call]:
    """Trees of partial sums, and a warp a sample."""
    side, samples = isqrt(values), values // CLASSES
    x, scores, labels = cp.ones((side, side), "float32"), cp.ones((samples, CLASSES), "float32"), cp.arange(samples)
    labels = labels % CLASSES
    losses, grad, one = cp.empty(samples, "float32"), cp.empty_like(scores), cp.empty((), "float32")
    columns, classes = kernels.constants(columns=side), kernels.constants(m=CLASSES)
    right = cp.empty((), "int64")
    return {
        "sum_first_axis": _call(kernels.sum_first_axis, (x,), (cp.empty(side, "float32"),), columns),
        "mean": _call(kernels.mean, (x,), (one,)),
        "softmax_cross_entropy": _call(kernels.softmax_cross_entropy, (scores, labels), (losses, grad), classes),
        "count_right": _call(kernels.count_right, (scores, labels), (right,), classes),
    }


def of_windows(cp: Any, values: int) -> dict[str, Call]:
    """Pooling in windows of 2 x 2, and columns for a convolution of 3 x 3 with padding: nine times the values."""
    shape, few = (values // 1024, 1, 32, 32), (max(1, values // 16384), 1, 32, 32)
    x, pool, columns = cp.ones(shape, "float32"), Windows.over(32, 2, 2, 0), Windows.over(32, 3, 1, 1)
    small = (*shape[:2], 16, 16)
    y, places = cp.empty(small, "float32"), cp.zeros(small, "int64")
    image, unrolled = cp.ones(few, "float32"), cp.ones((few[0], 9, 1024), "float32")
    constants, unrolling = pool.constants(), columns.constants(1)
    return {
        "max_pool": _call(kernels.max_pool, (x,), (y,), constants),
        "max_pool_with_indices": _call(kernels.max_pool_with_indices, (x,), (y, places), constants),
        "max_unpool": _call(kernels.max_unpool, (y, places), (x,), constants),
        "avg_pool": _call(kernels.avg_pool, (x,), (y,), constants),
        "avg_pool_backward": _call(kernels.avg_pool_backward, (y,), (x,), constants),
        "im2col": _call(kernels.im2col, (image,), (unrolled,), unrolling),
        "col2im": _call(kernels.col2im, (unrolled,), (image,), unrolling),
    }


def _call(kernel: Any, inputs: Any, outputs: Any, constants: Any = kernels.NONE, **floats: float) -> Call:
    """A call, and its bytes: each array once, outputs that are read as well twice."""
    moved = sum(x.nbytes for x in inputs) + (1 + kernel.updates) * sum(x.nbytes for x in outputs)
    return lambda: kernel(inputs, outputs, constants, **floats), float(moved)


def main() -> int:
    """Measure all kernels; without a GPU, only --quick and without a record. Exit with 1 if one fails."""
    chosen = common.parser(__doc__).parse_args()
    cp, compiler = device.gpu(), device.jit()
    simgpu.use("H200")
    if device.is_simulated(cp) and (chosen.json or not chosen.quick):
        print("no GPU works here: what runs without one is --quick, and no record is made of it", file=sys.stderr)
        return 1
    found = [copy_row(cp, chosen.quick)]
    copy = found[0]["gb_per_s"]
    for group in GROUPS:
        found += gpu_common.guarded(group.make.__name__, partial(rows, group, cp, compiler, copy, chosen.quick))
    found += gpu_common.guarded("library", partial(library_rows, cp, copy, chosen.quick))
    common.finish(chosen, found, **gpu_common.machine())
    for fault in [] if chosen.quick else faults(found):
        print(fault, file=sys.stderr)
    return int(any("error" in row for row in found))


if __name__ == "__main__":
    sys.exit(main())
