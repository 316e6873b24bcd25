"""Windows as columns of one matrix for each image, and back. `unrolled.ops.windows.Windows` says where a window falls.

Columns are (N, C * KH * KW, OH * OW): image first, so that a batch of products gives (N, O, OH * OW), which is NCHW.
Each thread of `im2col` writes one value. Each thread of `col2im` gathers what belongs to one pixel: no two threads
write to one place, so nothing has to be added atomically, and the sum is the same every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from unrolled.kernels.kernel import Arrays, Options, per_value

IM2COL = r"""
    int column = at % OW, row = at / OW % OH;
    int place = at / (OH * OW) % (C * KH * KW + ONES);
    Index image = at / (OH * OW) / (C * KH * KW + ONES);
    if (ONES && place == C * KH * KW) {  // a last row of ones: the bias is its weight
        columns[at] = 1;
        return;
    }
    int j = place % KW, i = place / KW % KH, channel = place / (KH * KW);
    int y = row * SH - PH + i, z = column * SW - PW + j;
    bool inside = y >= 0 && y < H && z >= 0 && z < W;
    columns[at] = inside ? x[((image * C + channel) * H + y) * W + z] : (T)0;
"""

COL2IM = r"""
    int z = at % W + PW, y = at / W % H + PH;
    Index plane = at / (H * W);  // image and channel
    T total = 0;
    for (int i = 0; i < KH; ++i) {
        int row = (y - i) / SH;
        if (y < i || (y - i) % SH || row >= OH) continue;
        for (int j = 0; j < KW; ++j) {
            int column = (z - j) / SW;
            if (z < j || (z - j) % SW || column >= OW) continue;
            total += columns[(((plane * KH + i) * KW + j) * OH + row) * OW + column];
        }
    }
    x[at] = total;
"""


ADDRESSING = 90  # as measured: benchmarks/gpu_ops.py, 2.7 ps a value on an H200 with 33.5e12 operations a second
MOST_PLACES = 100_000  # in a window: each is a turn of the loops below, whatever the size of the arrays


def meetings(options: Options) -> Iterator[tuple[int, int, Any, Any]]:
    """Yield (i, j, outputs, inputs) for every place inside the window, as `Windows.offsets`, from plain numbers."""
    for i in range(options["kh"]):
        out_rows, in_rows = meet(options["h"], options["oh"], options["sh"], i - options["ph"])
        for j in range(options["kw"]):
            out_columns, in_columns = meet(options["w"], options["ow"], options["sw"], j - options["pw"])
            yield i, j, (..., out_rows, out_columns), (..., in_rows, in_columns)


def meet(size: int, outputs: int, stride: int, shift: int) -> tuple[slice, slice]:
    """Return the outputs for which output * stride + shift is one of `size` pixels, and those pixels."""
    first, stop = max(0, -(shift // stride)), min(outputs, (size - 1 - shift) // stride + 1)
    if stop <= first:
        return slice(0, 0), slice(0, 0)
    return slice(first, stop), slice(first * stride + shift, (stop - 1) * stride + shift + 1, stride)


def check_windows(options: Options, image: Any, places: Any | None = None) -> None:
    """Raise ValueError unless these are windows over images (..., H, W), with values (..., OH, OW) if there are any."""
    fits = all(options[name] >= 1 for name in ("kh", "kw", "sh", "sw")) and options["kh"] * options["kw"] <= MOST_PLACES
    fits = fits and tuple(image.shape[-2:]) == (options["h"], options["w"])
    for axis in "hw":
        padding, stride = options[f"p{axis}"], options[f"s{axis}"]
        room = options[axis] + 2 * padding - options[f"k{axis}"]
        fits = fits and padding >= 0 and room >= 0 and options[f"o{axis}"] == room // stride + 1
    if not fits or (places is not None and tuple(places.shape[-2:]) != (options["oh"], options["ow"])):
        raise ValueError(f"windows {dict(options)} do not fit images of shape {image.shape}")


def _six_axes(columns: Any, n: int, options: Options) -> Any:
    """Columns as (N, C, KH, KW, OH, OW). Raises ValueError if they are no such columns."""
    shape = [options[name] for name in ("c", "kh", "kw", "oh", "ow")]
    if columns.shape != (n, prod(shape[:3]), prod(shape[3:])):
        raise ValueError(f"columns of shape {columns.shape} do not fit windows {dict(options)}")
    return columns.reshape(n, *shape)  # splits axes: a view, whatever the strides


def _im2col(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (x,), (columns,) = inputs, outputs
    check_windows(options, x)
    if columns.ndim != 3:
        raise ValueError(f"columns of shape {columns.shape} are not (N, C * KH * KW, OH * OW)")
    if options["ones"]:
        columns[:, -1] = 1
        columns = columns[:, :-1]
    unrolled = _six_axes(columns, len(x), options)
    unrolled[...] = 0
    if x.size:
        for i, j, to, of in meetings(options):
            unrolled[:, :, i, j][to] = x[of]


def _col2im(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (columns,), (x,) = inputs, outputs
    check_windows(options, x)
    folded = _six_axes(columns, len(x), options)
    x[...] = 0
    if x.size:
        for i, j, of, to in meetings(options):
            x[to] += folded[:, :, i, j][of]


im2col = per_value("im2col", "x -> columns", IM2COL, _im2col, lambda *_: 0, addressing=ADDRESSING)
col2im = per_value("col2im", "columns -> x", COL2IM, _col2im, lambda inputs, *_: inputs[0].size)
