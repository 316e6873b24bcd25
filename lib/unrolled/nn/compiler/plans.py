"""How the work of a stage is shared out among blocks and threads of a GPU: constants for the kernels of a program.

The aim is one block or two for each multiprocessor, and as much work for a thread as that leaves. Figures are those of
an H200 with its 132 multiprocessors; on another GPU the results are the same.
"""

from __future__ import annotations

from collections.abc import Callable

from unrolled.kernels import Constants, constants
from unrolled.nn.compiler.stages import Convolution, Dense, NotCompilableError

BLOCKS = 132  # at least, where the work can be shared out so far
SHARED = 44 * 1024 // 4  # values that a block keeps in shared memory
NARROW = 16  # samples up to which a thread holds a sum for each
SUMS = 32  # that a thread of the convolution keeps in registers
GROUP = 32  # parts that the last block of a group adds up
SMALL = {"rows": 32, "columns": 32, "strip": 32, "down": 4, "along": 4, "teams": 4}
LARGE = {"rows": 64, "columns": 64, "strip": 16, "down": 8, "along": 4, "teams": 2}
FEW = 40e6  # multiplications of a launch, below which small tiles are faster
INNER = 120  # that a block adds up at least, where the inner sum of a product is shared out


def geometry(stage: Convolution) -> dict[str, int]:
    """Return sizes by the names that kernels have for them: see `kernels.pooled_convolution`."""
    (c, h, w), (o, oh, ow), (_, yh, yw) = stage.inputs, stage.convolved, stage.outputs
    pool = stage.pool
    windows = (pool.kernel_size, pool.stride, pool.padding) if pool else ((1, 1), (1, 1), (0, 0))
    pairs = zip("kspqtr", (*stage.kernel, *windows), strict=True)
    places = {f"{name}{axis}": size for name, both in pairs for axis, size in zip("hw", both, strict=True)}
    return {"c": c, "h": h, "w": w, "o": o, "oh": oh, "ow": ow, "yh": yh, "yw": yw, **places}


def convolution(stage: Convolution, batch: int) -> Constants:
    """Return the constants of `kernels.pooled_convolution`. Raises NotCompilableError for maps that are too large."""
    sizes = geometry(stage)
    o, windows = sizes["o"], sizes["yh"] * sizes["yw"]
    if sizes["qh"] * sizes["qw"] > 255:
        raise NotCompilableError(f"{stage.layer!r} is pooled by windows of more than 255 places")
    slices = _ceil_div(windows, 256)
    places = _ceil_div(windows, slices)
    room = max(1, SUMS // (sizes["qh"] * sizes["qw"]))
    each = _divisor(o, room, lambda each: batch * slices * (o // each) >= BLOCKS)
    groups = _divisor(
        o // each, max(1, 128 // places), lambda groups: batch * slices * (o // (each * groups)) >= BLOCKS
    )
    tall = (sizes["yh"] - 1) * sizes["th"] * sizes["sh"] + (sizes["qh"] - 1) * sizes["sh"] + sizes["kh"]
    wide = (sizes["yw"] - 1) * sizes["tw"] * sizes["sw"] + (sizes["qw"] - 1) * sizes["sw"] + sizes["kw"] + 6
    part = _channels_at_once(stage, tall * wide + groups * each * sizes["kh"] * sizes["kw"])
    shares = o // (each * groups)
    split = {"each": each, "groups": groups, "slices": slices, "shares": shares, "part": part}
    block = 32 * _ceil_div(places * groups, 32)
    return constants(**sizes, **split, relu=stage.relu, block=block, blocks=batch * slices * shares)


def convolution_weights(stage: Convolution, batch: int) -> Constants:
    """Return the constants of `kernels.convolution_weights`. Raises NotCompilableError for maps that are too large."""
    sizes = geometry(stage)
    o, windows = sizes["o"], sizes["yh"] * sizes["yw"]
    tall, wide = (sizes["oh"] - 1) * sizes["sh"] + sizes["kh"], (sizes["ow"] - 1) * sizes["sw"] + sizes["kw"] + 31
    warps = o if o <= 10 else 16
    part = _channels_at_once(stage, tall * wide, 128 * warps, 8)
    others = _ceil_div(o, warps) * (sizes["c"] // part)
    slices = max(1, min(_ceil_div(BLOCKS, batch * others), windows // 64))
    split = max(1, min(batch * slices, 4 * BLOCKS // others))
    shares = {"part": part, "slices": slices, "split": split, "group": GROUP}
    return constants(**sizes, **shares, block=32 * warps, blocks=others * split)


def convolution_sums(plan: Constants) -> tuple[int, int]:
    """Return how much scratch `kernels.convolution_weights` needs: values, and counters."""
    o, groups = plan["o"], _ceil_div(plan["split"], plan["group"])
    values = o * (plan["c"] * plan["kh"] * plan["kw"] + 1)
    return (plan["split"] + groups) * values, _ceil_div(o, plan["block"] // 32) * (1 + groups)


def convolution_inputs(stage: Convolution, masked: bool) -> Constants:
    """Return the constants of `kernels.unroute` and `kernels.convolution_inputs`."""
    each = next(each for each in (4, 2, 1) if stage.inputs[0] % each == 0)
    return constants(**geometry(stage), each=each, masked=masked)


def dense(stage: Dense, batch: int, relu: bool) -> Constants:
    """Return the constants of `kernels.dense`, or of `kernels.dense_tiles` for larger batches."""
    sizes = {"batch": batch, "d": stage.inputs, "o": stage.outputs, "relu": relu}
    if batch <= NARROW:
        return constants(**sizes, block=256)
    tile = _tile(batch * stage.outputs * stage.inputs)
    tiles = _tiles(tile, batch, stage.outputs)
    split = _split(tiles, stage.inputs)
    return constants(**sizes, **tile, split=split, blocks=tiles * split, block=_threads(tile))


def dense_backward(stage: Dense, batch: int, inputs: bool, masked: bool) -> Constants:
    """Return the constants of `kernels.dense_backward`, or of `kernels.dense_tiles_backward` for larger batches."""
    sizes = {"batch": batch, "d": stage.inputs, "o": stage.outputs, "inputs": inputs, "masked": masked}
    if batch <= NARROW:
        return constants(**sizes, block=256)
    tile = _tile(batch * stage.outputs * stage.inputs * (1 + inputs))
    weights = _tiles(tile, stage.outputs, stage.inputs)
    samples = _tiles(tile, batch, stage.inputs) if inputs else 0
    split, split_x = _split(weights, batch), _split(max(1, samples), stage.outputs)
    blocks = weights * split + samples * split_x + _ceil_div(stage.outputs, 32)
    return constants(**sizes, **tile, split=split, split_x=split_x, blocks=blocks, block=_threads(tile))


def dense_parts(plan: Constants) -> tuple[int, int]:
    """Return how much scratch the products of a plan need: values, and counters."""
    if "rows" not in plan:
        return 0, 0
    return plan["blocks"] * plan["rows"] * plan["columns"], plan["blocks"]


def head(stage: Dense, batch: int, inputs: bool, masked: bool) -> Constants | None:
    """Return the constants of `kernels.head`, or None for a layer that is too large for it."""
    if stage.outputs > 32 or stage.outputs * 32 * _ceil_div(stage.inputs, 32) > SHARED:
        return None
    samples = batch if batch <= 32 else 8
    sizes = {"batch": batch, "d": stage.inputs, "m": stage.outputs, "samples": samples, "block": 32 * samples}
    return constants(**sizes, inputs=inputs, masked=masked, blocks=_ceil_div(batch, samples))


def head_weights(stage: Dense, batch: int) -> Constants:
    """Return the constants of `kernels.head_weights`."""
    block = 32 * min(32, _ceil_div(batch, 4))
    return constants(batch=batch, d=stage.inputs, m=stage.outputs, block=block)


def _ceil_div(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def _divisor(whole: int, most: int, enough: Callable[[int], bool]) -> int:
    """The largest divisor of `whole`, at most `most`, that leaves enough blocks; 1 if none does."""
    return max(n for n in range(1, whole + 1) if whole % n == 0 and (n == 1 or (n <= most and enough(n))))


def _channels_at_once(stage: Convolution, values: int, besides: int = 0, most: int = 64) -> int:
    """How many channels a block takes to shared memory at a time: each needs so many values, all some besides."""
    channels, room = stage.inputs[0], SHARED - besides
    if values > room:
        raise NotCompilableError(f"{stage.layer!r} has images of {stage.inputs[1:]}: too large for shared memory")
    return max(n for n in range(1, channels + 1) if channels % n == 0 and n <= most and n * values <= room)


def _tile(products: int) -> dict[str, int]:
    """The tile for so many multiplications: small ones, so that there are more blocks, where there are few."""
    return SMALL if products < FEW else LARGE


def _tiles(tile: dict[str, int], rows: int, columns: int) -> int:
    """How many tiles cover so many rows and columns."""
    return _ceil_div(rows, tile["rows"]) * _ceil_div(columns, tile["columns"])


def _threads(tile: dict[str, int]) -> int:
    """How many threads a block has for a tile: each holds some sums, and teams share the inner sum."""
    return tile["rows"] * tile["columns"] // (tile["down"] * tile["along"]) * tile["teams"]


def _split(tiles: int, inner: int) -> int:
    """How many blocks share the inner sum of a tile: enough for the GPU, each with INNER of it or more."""
    return max(1, min(2 * BLOCKS // tiles, inner // INNER))
