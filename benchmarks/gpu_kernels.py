"""The kernels of lesson 08 on a GPU: each rung beside the copy ceiling, CuPy's own function and the simulated time.

    python benchmarks/gpu_kernels.py [--quick] [--json lib/unrolled/records/gpu_kernels.json]

The kernels are those of gpu_kernel_sources.py, compiled by `cupyx.jit`. Results are compared with CuPy's first. Arrays
are float32 of 8192 x 8192 values, for matrix products of 2048 x 2048. `us` is the time on the device, by CUDA events
around calls in a row, after a warm-up: the median of some blocks. `gb_per_s` counts what the task must move, each value
once, whatever the kernel moves; `of_copy` is its share of what a plain copy reaches. `of_peer` is the peer's time over
the kernel's: above 1 the kernel is faster. `modelled_us` is the simulated GPU's time for the same kernel, on an H200:
it counts a few blocks, and as many of these as were launched here are priced. The library's own kernels stand below,
by their share of the copy, too.

Without a GPU, --quick runs all of it on the simulated one, with small arrays: a look at the program, not at times.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
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
AIMS = {
    "transpose, tiled": {"at_least_of_copy": 0.8},
    "row sum, tree": {"at_least_of_peer": 0.9},
    "bias, relu, pool: fused": {"at_least_of_peer": 2.0},
}
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
    us = microseconds(step, quick)
    speed = moved / us / 1e3
    return {"name": name, "us": us, "gb_per_s": speed} | ({"of_copy": speed / copy} if copy else {})


def microseconds(step: Step, quick: bool) -> float:
    """Return the microseconds of a call on the device."""
    return 1e6 * gpu_common.seconds(step, *((1, 2) if quick else (20, 7)))


def copy_row(cp: Any, quick: bool) -> Row:
    """Measure a copy as large as the arrays: the ceiling of all that moves as much as it computes."""
    a = cp.ones(4096 if quick else 8192 * 8192, "float32")
    b = cp.empty_like(a)
    return {"section": "ceiling", **moving("copy", lambda: b.__setitem__(Ellipsis, a), 2 * a.nbytes, None, quick)}


def rows(group: Group, cp: Any, compiler: Any, copy: float, quick: bool) -> list[Row]:
    """Measure the tasks of a group; `copy` is what a copy reaches in GB/s."""
    found, made = [], group.make(cp, group.quick if quick else group.full)
    small = group.make(simgpu, group.quick if quick else group.counted)
    for name, work in made.items():
        steps = steps_of(work, compiler, cp)
        check(name, work, steps, cp)
        row = {"section": "lesson 08", "name": name, "launches": len(steps)}
        row |= moving(name, partial(run, steps), work.bytes, copy, quick)
        ours, peer, model = row["us"], microseconds(work.peer, quick), 1e6 * modelled(small[name], work)
        row |= {"tflops": work.flops / ours / 1e6, "peer": work.peer_name, "peer_us": peer, "of_peer": peer / ours}
        found.append(row | {"modelled_us": model, "modelled_ratio": model / ours} | AIMS.get(name, {}))
    return found


def library_rows(cp: Any, copy: float, quick: bool) -> list[Row]:
    """Measure the library's own kernels, by their share of the copy."""
    calls = library(cp, 2**12 if quick else 2**26).items()
    return [{"section": "library", **moving(f"library: {name}", *call, copy, quick)} for name, call in calls]


def library(cp: Any, values: int) -> dict[str, Call]:
    """Return name -> (call, bytes): each kernel of ours on float32 arrays of about `values` values.

    Pooling has windows of 2 x 2; columns for a convolution of 3 x 3 with padding are nine times the values.
    """
    side, samples, images, few = isqrt(values), values // CLASSES, values // 1024, max(1, values // 16384)
    ones, one, right = partial(cp.ones, dtype="float32"), cp.empty((), "float32"), cp.empty((), "int64")
    x, y, z, u = (ones(values) for _ in range(4))
    row, square, scores, labels = ones(64), ones((side, side)), ones((samples, CLASSES)), cp.arange(samples) % CLASSES
    large, small, places = ones((images, 1, 32, 32)), ones((images, 1, 16, 16)), cp.zeros((images, 1, 16, 16), "int64")
    image, unrolled = ones((few, 1, 32, 32)), ones((few, 9, 1024))
    columns, classes = kernels.constants(columns=side), kernels.constants(m=CLASSES)
    pool, windows = Windows.over(32, 2, 2, 0).constants(), Windows.over(32, 3, 1, 1).constants(1)
    steps = {"rate": 1e-3, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0}
    return {
        "relu": _call(kernels.relu, (x,), (y,)),
        "relu_backward": _call(kernels.relu_backward, (x, z), (y,)),
        "add_row": _call(kernels.add_row, (row,), (x.reshape(-1, 64),), kernels.constants(columns=64)),
        "dropout": _call(kernels.dropout, (x, y), (z, u), rate=0.5),
        "sgd": _call(kernels.sgd, (x,), (y,), rate=1e-3, weight_decay=0.0),
        "adam": _call(kernels.adam, (x,), (y, z, u), **steps),
        "sum_first_axis": _call(kernels.sum_first_axis, (square,), (ones(side),), columns),
        "mean": _call(kernels.mean, (square,), (one,)),
        "softmax_cross_entropy": _call(
            kernels.softmax_cross_entropy, (scores, labels), (ones(samples), ones(scores.shape)), classes
        ),
        "count_right": _call(kernels.count_right, (scores, labels), (right,), classes),
        "max_pool": _call(kernels.max_pool, (large,), (small,), pool),
        "max_pool_with_indices": _call(kernels.max_pool_with_indices, (large,), (small, places), pool),
        "max_unpool": _call(kernels.max_unpool, (small, places), (large,), pool),
        "avg_pool": _call(kernels.avg_pool, (large,), (small,), pool),
        "avg_pool_backward": _call(kernels.avg_pool_backward, (small,), (large,), pool),
        "im2col": _call(kernels.im2col, (image,), (unrolled,), windows),
        "col2im": _call(kernels.col2im, (unrolled,), (image,), windows),
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
    return int(any("error" in row for row in found))


if __name__ == "__main__":
    sys.exit(main())
