"""How the work of a stage is shared out among blocks and threads of a GPU: constants for the kernels of a program.

The aim is one block or two for each multiprocessor, and as much work for a thread as that leaves. Figures are those of
an H200 with its 132 multiprocessors; on another GPU the results are the same.
"""

from __future__ import annotations

from unrolled.kernels import Constants, constants
from unrolled.nn.compiler.stages import Convolution, Dense, NotCompilableError

BLOCKS = 132  # at least, where the work can be shared out so far
SHARED = 44 * 1024 // 4  # values that a block keeps in shared memory
NARROW = 16  # samples up to which a thread holds a sum for each
SUMS = 40  # that a thread of the convolution keeps in registers
MOST_SPLIT = 64  # parts that the last block of a launch adds up
TILE = {"rows": 64, "columns": 64, "strip": 16, "down": 4, "along": 4}


def geometry(stage: Convolution) -> dict[str, int]:
    """Return sizes by the names that kernels have for them: see `kernels.pooled_convolution`."""
    (c, h, w), (o, oh, ow), (_, yh, yw) = stage.inputs, stage.convolved, stage.outputs
    kernel, stride, padding = stage.kernel
    pool = stage.pool
    windows = (pool.kernel_size, pool.stride, pool.padding) if pool else ((1, 1), (1, 1), (0, 0))
    places = zip(
        "kh kw sh sw ph pw qh qw th tw rh rw".split(), (*kernel, *stride, *padding, *sum(windows, ())), strict=True
    )
    return {"c": c, "h": h, "w": w, "o": o, "oh": oh, "ow": ow, "yh": yh, "yw": yw, **dict(places)}


def convolution(stage: Convolution, batch: int) -> Constants:
    """Return the constants of `kernels.pooled_convolution`. Raises NotCompilableError for maps that are too large."""
    sizes = geometry(stage)
    o, windows = sizes["o"], sizes["yh"] * sizes["yw"]
    if sizes["qh"] * sizes["qw"] > 255:
        raise NotCompilableError(f"{stage.layer!r} is pooled by windows of more than 255 places")
    slices = _over(windows, 256)
    places = _over(windows, slices)
    room = max(1, SUMS // (sizes["qh"] * sizes["qw"]))
    each = _most(o, room, lambda each: batch * slices * (o // each) >= BLOCKS)
    groups = _most(o // each, 256 // places, lambda groups: batch * slices * (o // (each * groups)) >= BLOCKS)
    tall = (sizes["yh"] - 1) * sizes["th"] * sizes["sh"] + (sizes["qh"] - 1) * sizes["sh"] + sizes["kh"]
    wide = (sizes["yw"] - 1) * sizes["tw"] * sizes["sw"] + (sizes["qw"] - 1) * sizes["sw"] + sizes["kw"] + 6
    part = _part(stage, tall * wide + groups * each * sizes["kh"] * sizes["kw"])
    shares = o // (each * groups)
    split = {"each": each, "groups": groups, "slices": slices, "shares": shares, "part": part}
    block = 32 * _over(places * groups, 32)
    return constants(**sizes, **split, relu=stage.relu, block=block, blocks=batch * slices * shares)


def convolution_weights(stage: Convolution, batch: int) -> Constants:
    """Return the constants of `kernels.convolution_weights`. Raises NotCompilableError for maps that are too large."""
    sizes = geometry(stage)
    o, windows = sizes["o"], sizes["yh"] * sizes["yw"]
    tall, wide = (sizes["oh"] - 1) * sizes["sh"] + sizes["kh"], (sizes["ow"] - 1) * sizes["sw"] + sizes["kw"]
    part = _part(stage, tall * wide, 8)
    warps = o if o <= 10 else 8
    others = _over(o, warps) * (sizes["c"] // part)
    slices = max(1, min(_over(BLOCKS, batch * others), windows // 64))
    split = max(1, min(batch * slices, MOST_SPLIT, 2 * BLOCKS // others))
    return constants(**sizes, part=part, slices=slices, split=split, block=32 * warps, blocks=others * split)


def convolution_sums(plan: Constants) -> tuple[int, int]:
    """Return how much scratch `kernels.convolution_weights` needs: values, and counters."""
    o, warps = plan["o"], plan["block"] // 32
    return plan["split"] * o * (plan["c"] * plan["kh"] * plan["kw"] + 1), _over(o, warps)


def convolution_inputs(stage: Convolution, masked: bool) -> Constants:
    """Return the constants of `kernels.unroute` and `kernels.convolution_inputs`."""
    each = next(each for each in (4, 2, 1) if stage.inputs[0] % each == 0)
    return constants(**geometry(stage), each=each, masked=masked)


def dense(stage: Dense, batch: int, relu: bool) -> Constants:
    """Return the constants of `kernels.dense`, or of `kernels.dense_tiles` for larger batches."""
    sizes = {"batch": batch, "d": stage.inputs, "o": stage.outputs, "relu": relu}
    if batch <= NARROW:
        return constants(**sizes, block=256)
    tiles = _tiles(batch, stage.outputs)
    split = _split(tiles, stage.inputs)
    return constants(**sizes, **TILE, split=split, blocks=tiles * split, block=_threads())


def dense_backward(stage: Dense, batch: int, inputs: bool, masked: bool) -> Constants:
    """Return the constants of `kernels.dense_backward`, or of `kernels.dense_tiles_backward` for larger batches."""
    sizes = {"batch": batch, "d": stage.inputs, "o": stage.outputs, "inputs": inputs, "masked": masked}
    if batch <= NARROW:
        return constants(**sizes, block=256)
    weights, samples = _tiles(stage.outputs, stage.inputs), _tiles(batch, stage.inputs) if inputs else 0
    split, split_x = _split(weights + samples, batch), _split(weights + samples, stage.outputs)
    blocks = weights * split + samples * split_x + _over(stage.outputs, 32)
    return constants(**sizes, **TILE, split=split, split_x=split_x, blocks=blocks, block=_threads())


def dense_parts(plan: Constants) -> tuple[int, int]:
    """Return how much scratch the products of a plan need: values, and counters."""
    if "rows" not in plan:
        return 0, 0
    return plan["blocks"] * plan["rows"] * plan["columns"], plan["blocks"]


def head(stage: Dense, batch: int, inputs: bool, masked: bool) -> Constants | None:
    """Return the constants of `kernels.head`, or None for a layer that is too large for it."""
    if stage.outputs > 32 or stage.outputs * 32 * _over(stage.inputs, 32) > SHARED - 2048:
        return None
    samples = 8 if batch <= 256 else 32
    sizes = {"batch": batch, "d": stage.inputs, "m": stage.outputs, "samples": samples, "block": 32 * samples}
    return constants(**sizes, inputs=inputs, masked=masked, blocks=_over(batch, samples))


def _over(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def _most(whole: int, most: int, enough: object) -> int:
    """The largest divisor of `whole`, at most `most`, that leaves enough blocks; 1 if none does."""
    return max(n for n in range(1, whole + 1) if whole % n == 0 and (n == 1 or (n <= most and enough(n))))  # type: ignore[operator]


def _part(stage: Convolution, values: int, most: int = 64) -> int:
    """How many channels a block takes to shared memory at a time, if each needs so many values."""
    if values > SHARED:
        raise NotCompilableError(f"{stage.layer!r} has images of {stage.inputs[1:]}: too large for shared memory")
    channels = stage.inputs[0]
    return max(n for n in range(1, channels + 1) if channels % n == 0 and n <= most and n * values <= SHARED)


def _tiles(rows: int, columns: int) -> int:
    return _over(rows, TILE["rows"]) * _over(columns, TILE["columns"])


def _threads() -> int:
    return TILE["rows"] * TILE["columns"] // (TILE["down"] * TILE["along"])


def _split(tiles: int, inner: int) -> int:
    """How many blocks share the inner sum of a tile: enough for the GPU, each with four strips or more."""
    return max(1, min(2 * BLOCKS // tiles, inner // (4 * TILE["strip"])))
