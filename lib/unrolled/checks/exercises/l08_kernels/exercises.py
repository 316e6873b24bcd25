"""Lesson 08: kernels of one's own: guard, barrier, tiles, a tree of partial sums, and three operations in one pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unrolled import ops
from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l03_pooling.exercises import NEARLY, small_integers
from unrolled.checks.exercises.l03_pooling.pooling import last_maximum
from unrolled.checks.exercises.l08_kernels import maps, naive, products, vectors
from unrolled.checks.exercises.l08_kernels.products import TILE
from unrolled.checks.exercises.l08_kernels.vectors import THREADS
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Budget, Inputs, Spec, Speed, gpu_case, normal, normals, random_gpu_case
from unrolled.device import Array, array_module

SECTORS = 1.1  # times the fewest, or the bytes of all values: a few more than needed may be where a row begins or ends
WORKING = 0.25  # of the warps: some may have nothing to do at an edge
PASSES = 90.0  # of shared memory for a row: the tree of 256 sums takes 45; one thread that adds them all, 255


UNMADE = "this is a function still: @jit.rawkernel() above its def, with the brackets, makes a kernel of it"


FEW = 64  # threads of a block where the kernel may not count on THREADS
ADDING = Budget(
    launches=1,
    own=1,
    read_sectors=SECTORS,
    written_sectors=SECTORS,
    bytes_read=lambda inputs: 2.0 * inputs["x"].nbytes,
    bytes_written=lambda inputs: float(inputs["x"].nbytes),
)

add_kernel = Spec(
    reference=vectors.added,
    call=vectors.launched,
    on_real=False,
    crash_advice=lambda lines, inputs: (UNMADE,) if "positional argument" in lines[0] else (),
    cases=[
        gpu_case("six values", ADDING, x=np.arange(6, dtype=np.float32), y=np.full(6, 10, np.float32), threads=THREADS),
        gpu_case(
            "600 values in blocks of 64 threads",
            replace(ADDING, working=WORKING),
            x=normal(600),
            y=normal(600),
            threads=FEW,
        ),
        gpu_case("512 values: two whole blocks", ADDING, x=normal(512), y=normal(512), threads=THREADS),
    ],
    domain=random_gpu_case("any number of values, in blocks of any size", vectors.any_vectors, ADDING),
    points=2,
    hints=(
        "Every thread runs the same lines. What differs is its number, and with it the value that it takes care of.",
        "jit.grid(1) is the thread's number in the whole launch: block number times threads of a block, plus number in "
        "the block. There are more threads than values, so a thread beyond the last value has to do nothing.",
        "i = jit.grid(1)\nif i < n:\n    ... the sum, at place i of out",
    ),
    mistakes=(
        result(
            "the first block is done, the others are not: jit.threadIdx.x is the number in the block, and "
            "jit.grid(1) the one in the whole launch",
            lambda out: np.where(np.arange(out.size) < FEW, out, 0),
        ),
        result(
            "a block may have other than 256 threads, jit.blockDim.x of them: jit.grid(1) is the number in the "
            "whole launch",
            lambda out: np.where(np.arange(out.size) % THREADS < FEW, out, 0),
        ),
        result("the last value is missing: the guard is i < n", lambda out: np.r_[out[:-1], np.float32(0)]),
        given("y is missing: out[i] is the sum of both", y=lambda y: 0 * y),
        result("nothing was written: does the kernel assign to out[i]?", lambda out: 0 * out),
    ),
)


SHIFTING = replace(
    ADDING, bytes_read=lambda inputs: SECTORS * inputs["x"].nbytes, shared_bytes=8.0, bank_conflicts=0, working=WORKING
)

FEW_SHIFTED = replace(
    SHIFTING, working=0, read_sectors=None, written_sectors=None
)  # one value more is many times as many

shift_kernel = Spec(
    reference=vectors.shifted,
    call=vectors.launched,
    on_real=False,
    crash_advice=add_kernel.crash_advice,
    tolerance=0,  # values move, and nothing is computed
    cases=[
        gpu_case("two blocks", SHIFTING, x=np.arange(1, 513, dtype=np.float32)),
        gpu_case("1,200 values: five blocks, the last is not full", SHIFTING, x=normal(1200)),
    ],
    domain=random_gpu_case("any number of values", lambda rng: normals(rng, x=(edge_size(rng, 700),)), FEW_SHIFTED),
    points=1,
    hints=(
        "Two halves with a barrier between: first every thread puts its value where all can see it, then every thread "
        "takes the one that another has put there.",
        "Thread t writes place t and reads place t - 1; thread 0 has none to read, and writes 0. Both halves need the "
        "guard. The barrier stands outside of it, since threads without a value have to come to it, too.",
        "if i < n:\n    shared[t] = x[i]\njit.syncthreads()\nif i < n:\n    ... 0 for thread 0, else shared[t - 1]",
    ),
    mistakes=(
        result("nothing has moved: thread t takes what thread t - 1 has put into shared memory", lambda y, x: x),
        result(
            "the values moved the other way: thread t takes the value of thread t - 1, not of t + 1",
            lambda y, x: np.where(np.arange(1, x.size + 1) % THREADS, np.r_[x[1:], np.float32(0)], np.float32(0)),
        ),
        result(
            "the first value of a block is to be 0: the value before it lies in another block's shared memory",
            lambda y, x: np.r_[np.float32(0), x[:-1]],
        ),
        result(
            "a block begins with its own last value: thread 0 has nobody before it, and writes 0",
            lambda y, x: vectors.first_of_blocks(x, np.r_[x[THREADS - 1 :: THREADS], x[-1:]]),
        ),
        result(
            "a block begins with its own first value, so it is there twice: thread 0 writes 0",
            lambda y, x: vectors.first_of_blocks(x, x[::THREADS]),
        ),
        result("nothing was written: does the kernel assign to out[i]?", lambda y: 0 * y),
    ),
)


def transposed(x: Array) -> Array:
    """Return x (rows, columns) transposed, side by side in memory."""
    return array_module(x).ascontiguousarray(x.T)


def _once(inputs: Inputs) -> float:
    return SECTORS * float(inputs["x"].nbytes)


ODD = Budget(launches=1, own=1, bank_conflicts=0)  # rows begin inside of sectors, so these say little


TILED = replace(
    ODD,
    shared_passes=lambda inputs: 100.0 * products.tiles(*inputs["x"].shape),  # 64 for a tile, and 32 to clear it
    read_sectors=SECTORS,
    written_sectors=SECTORS,
    bytes_read=_once,
    bytes_written=_once,
    working=WORKING,
    shared_bytes=20.0,
)


def _by_tiles(x: Array, mirrored: bool) -> Array:
    """Transpose the tiles but not what is in them, or what is in them but not the tiles."""
    tiles = np.pad(x, [(0, -size % TILE) for size in x.shape]).reshape(-(-len(x) // TILE), TILE, -1, TILE)
    tiles = tiles.transpose((0, 3, 2, 1) if mirrored else (2, 1, 0, 3))
    moved = tiles.reshape(len(tiles) * TILE, -1)[: x.shape[1], : x.shape[0]]
    y = np.zeros(x.shape[::-1], x.dtype)
    y[: len(moved), : moved.shape[1]] = moved
    return y


transpose_tiled = Spec(
    reference=transposed,
    numbers={"sectors": SECTORS},
    cases=[
        gpu_case("one tile", TILED, x=np.arange(1024, dtype=np.float32).reshape(32, 32)),
        gpu_case("two tiles side by side", TILED, x=normal(32, 64)),
        gpu_case("200 x 104: tiles at the edges are not full", TILED, x=normal(200, 104)),
    ],
    domain=random_gpu_case("any size", lambda rng: normals(rng, x=(edge_size(rng, 70), edge_size(rng, 70))), ODD),
    points=4,
    hints=(
        "Both ways neighbouring threads touch neighbouring values: a tile is read row by row and written row by row. "
        "The turn happens in between, in shared memory, where no sectors are.",
        "Thread (i, j) puts x[top + j + k, left + i] at place (j + k, i) of the tile, for k = 0, 8, 16, 24. After the "
        "barrier it takes place (i, j + k), and that belongs to y[left + j + k, top + i]. A row of the tile is WIDTH "
        "values long; in banks, 33 is better than 32.",
        "for k in range(0, TILE, 8):\n"
        "    if top + j + k < rows and left + i < columns:\n"
        "        tile[(j + k) * WIDTH + i] = x[...]\n"
        "jit.syncthreads()\n"
        "... the same loop, with rows and columns changed: y[left + j + k, top + i] = tile[...]",
    ),
    mistakes=(
        Mistake(
            "each tile lies where it should, but it is not turned: read it down its columns",
            lambda x: _by_tiles(x, mirrored=False),
        ),
        Mistake(
            "each tile is turned, but lies where it came from, or its guard keeps it out: block (column, row) of x "
            "is block (row, column) of y",
            lambda x: _by_tiles(x, mirrored=True),
        ),
        result(
            "only the first 8 rows of each tile are copied: a block has 8 rows of threads, and its tile 32 of values",
            lambda y: np.ma.MaskedArray(y, np.broadcast_to(np.arange(len(y))[:, None] % TILE >= 8, y.shape)),
        ),
    ),
    speed=Speed(
        baseline=naive.transpose,
        inputs={"x": normal(4096, 4096)},
        at_least=1.5,
        against="a thread for each value and no shared memory, on 4096 x 4096",
        points=0,
        gpu=True,
        advice="a block of 32 x 8 threads and a tile of 32 rows of 33 values is a good size",
    ),
)


def row_sums(x: Array) -> Array:
    """Return the sum of each row of x (rows, columns), in x's dtype."""
    return x.sum(axis=1)


SUMMED = replace(
    ODD,
    read_sectors=SECTORS,
    bytes_read=_once,
    bytes_written=lambda inputs: 4.0 * len(inputs["x"]),
    shared_passes=lambda inputs: PASSES * len(inputs["x"]),
    working=WORKING,
    shared_bytes=6.0,
)


def any_rows(rng: np.random.Generator) -> Inputs:
    """Draw a few rows of any length, in which every value may be below 0."""
    x = normals(rng, x=(edge_size(rng, 4), edge_size(rng, 600)))["x"]
    return {"x": -abs(x) if rng.random() < 0.3 else x}


THREES = np.repeat(np.array([[1], [2], [3]], np.float32), THREADS, axis=1)

row_sum = Spec(
    reference=row_sums,
    cases=[
        gpu_case("rows as long as a block", SUMMED, x=THREES),
        gpu_case("rows shorter than a block: 40 values", replace(SUMMED, working=0), x=normal(5, 40)),
        gpu_case("rows longer than a block: 1,000 values", SUMMED, x=normal(3, 1000)),
        gpu_case("rows longer than eight blocks", SUMMED, x=normal(2, 2104)),
    ],
    domain=random_gpu_case("any size", any_rows, ODD),
    points=4,
    hints=(
        "A block takes a row. First each thread adds up what is its own, walking along the row in steps of a whole "
        "block; then the 256 partial sums become 128, 64, 32, and at last one.",
        "Thread t starts at column t and steps by THREADS, so neighbours read neighbours. Its sum goes to partial[t]. "
        "Then half = 128, 64, ..., 1: threads below half add partial[t + half] to partial[t]. Between two rounds "
        "every thread of the block waits, also those that have nothing to add.",
        "for column in range(t, columns, THREADS):\n"
        "    total += x[row, column]\n"
        "... partial[t] = total, and a barrier\n"
        "while half > 0:\n"
        "    if t < half:\n"
        "        partial[t] += ...\n"
        "    jit.syncthreads()        # outside of the if\n"
        "    half //= 2",
    ),
    mistakes=(
        Mistake(
            "only the first 256 values of a row are added: rows may be longer than a block",
            lambda x: x[:, :THREADS].sum(axis=1),
        ),
        Mistake(
            "these are the sums of the even partial sums: the last round, half = 1, is missing",
            lambda x: x[:, ::2].sum(axis=1),
        ),
        Mistake(
            "this is the first thread's own sum: the partial sums of the others have to be added to it",
            lambda x: x[:, ::THREADS].sum(axis=1),
        ),
    ),
    speed=Speed(
        baseline=naive.row_sum,
        inputs={"x": normal(4096, 4096)},
        at_least=3,
        against="a thread for each row, on 4096 x 4096",
        points=0,
        gpu=True,
        advice="neighbouring threads have to read neighbouring values of one row, in steps of a whole block",
    ),
)


FUSED = Budget(  # neighbours read every other pixel
    launches=1,
    own=1,
    read_sectors=3.0,
    written_sectors=1.5,
    bytes_read=maps.traffic,
    bytes_written=maps.results,
    working=WORKING,
)


fused_bias_relu_pool = Spec(
    reference=maps.bias_relu_pool,
    cases=[
        gpu_case("two windows", x=maps.TWO_WINDOWS, bias=np.array([-2], np.float32)),
        gpu_case("two images, three channels", FUSED, x=normal(2, 3, 14, 32), bias=normal(3)),
        gpu_case("28 x 28, as in the article", FUSED, x=normal(1, 4, 28, 28), bias=normal(4)),
        gpu_case("13 x 29: the last row and column are in no window", FUSED, x=normal(2, 2, 13, 29), bias=normal(2)),
        gpu_case("ties, as after a ReLU", FUSED, x=small_integers(3, 2, 10, 32), bias=np.array([-1, 1], np.float32)),
        gpu_case("nearly a tie", x=NEARLY, bias=np.zeros(1, np.float32)),
    ],
    domain=random_gpu_case("any size", maps.any_maps, ODD),
    points=4,
    hints=(
        "A thread for each window: it reads its four pixels once, keeps the largest in a variable of its own, and "
        "writes two numbers. What lies between the three operations never leaves the thread.",
        "Place k of the window is row 2 * row + k // 2, column 2 * column + k % 2. Begin with a largest below all that "
        "a ReLU can give, and take a pixel only if it is larger: then the first wins a tie. What each place gives is "
        "max(pixel + bias, 0).",
        "for k in range(4):\n"
        "    r, c = 2 * row + k // 2, 2 * column + k % 2\n"
        "    value = max(x[image, channel, r, c] + bias[channel], cp.float32(0))\n"
        "    if value > largest:\n"
        "        ... keep the value, and row * w + column of its pixel",
    ),
    mistakes=(
        Mistake(
            "the last of equal maxima wins: in lesson 03 it is the first, so take a pixel only if it is larger",
            lambda x, bias: last_maximum(ops.relu(x + bias.reshape(-1, 1, 1)), maps.POOLED),
        ),
        Mistake(
            "the ReLU comes before the bias: first the bias, then the ReLU",
            lambda x, bias: maps.pooled(ops.relu(x) + bias.reshape(-1, 1, 1)),
        ),
        Mistake(
            "the ReLU is missing: what is below 0 becomes 0", lambda x, bias: maps.pooled(x + bias.reshape(-1, 1, 1))
        ),
        result(
            "the places are those of the largest pixels before the ReLU: after it ties are common, and the first "
            "wins, so apply bias and ReLU before you compare",
            lambda y: (ops.relu(y[0]), y[1]),
            lambda x, bias: maps.pooled(x + bias.reshape(-1, 1, 1)),
        ),
        result(
            "a window of zeros takes no pixel: begin with a largest below 0, so that its first one is taken",
            lambda y: (y[0], y[1] * (y[0] > 0)),
        ),
        given("the bias is missing", bias=lambda bias: 0 * bias),
        *map(maps.placed, maps.PLACES),
    ),
)


def product(a: Array, b: Array) -> Array:
    """Return a @ b."""
    return a @ b


PRODUCT = replace(
    ODD,
    shared_passes=lambda inputs: 2400.0 * products.tiles(*inputs["a"].shape, inputs["b"].shape[1]),  # these take 2,176
    bytes_read=products.reads,
    bytes_written=lambda inputs: 4.0 * len(inputs["a"]) * inputs["b"].shape[1],
    working=WORKING,
    shared_bytes=10.0,
)

matmul_tiled = Spec(
    reference=product,
    cases=[
        gpu_case("one tile", PRODUCT, a=np.eye(32, dtype=np.float32)[::-1].copy(), b=normal(32, 32)),
        gpu_case("56 x 72 times 72 x 24: no size divides a tile", PRODUCT, a=normal(56, 72), b=normal(72, 24)),
        gpu_case("K is five tiles", PRODUCT, a=normal(32, 160), b=normal(160, 64)),
    ],
    domain=random_gpu_case("any size", products.any_product, ODD),
    points=3,
    hints=(
        "A block makes a tile of the result. It walks along K: at each step it fetches a tile of a and a tile of b for "
        "all its threads, and each thread uses 32 values of both.",
        "At step `start`, thread (i, j) fetches a[row, start + i] and b[start + j, column], and 0 where that lies "
        "outside. Then a barrier, 32 products, and another barrier: nobody may fetch the next tiles while somebody "
        "still multiplies these.",
        "for start in range(0, k, TILE):\n"
        "    ... left[j * TILE + i] and right[j * TILE + i], or 0 outside\n"
        "    jit.syncthreads()\n"
        "    for p in range(TILE):\n"
        "        total += left[j * TILE + p] * right[...]\n"
        "    jit.syncthreads()",
    ),
    mistakes=(
        products.part_of_k(
            "only the first 32 of K are multiplied: walk along K in steps of a tile", lambda k: slice(TILE)
        ),
        products.part_of_k(
            "only the last tile of K is in it: `total` begins once, before the loop",
            lambda k: slice((k - 1) // TILE * TILE, None),
        ),
        products.part_of_k(
            "only whole tiles of K are multiplied: the last one may be narrower", lambda k: slice(k // TILE * TILE)
        ),
    ),
)
