"""Max-pooling: the largest pixel of each window, and where a value goes when it is put back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unrolled import ops
from unrolled.show.convolution import EDGE, Pair, Windows, one_or_pair, windows
from unrolled.show.picture import Explorer, Picture, Slider
from unrolled.show.sheet import Cells, Scale, Sheet, in_a_row, on_host
from unrolled.show.style import RED, WIDTH
from unrolled.show.words import count_of, number

POOLING_GAP = 0.42  # inches between panels, with room for an arrow
POOLING_TOP, LINE = 0.42, 0.19
LARGEST_CELL = 0.44
ROOM = {1: 2.7, 2: 1.7, 3: 1.45, 4: 1.25}  # inches for a channel, by their number
SHARES = {2: (0.6, 0.4), 4: (0.32, 0.18, 0.18, 0.32)}  # of the width, for each panel


def max_pool2d(
    image: ArrayLike, kernel_size: int | Pair, stride: int | Pair | None = None, values: ArrayLike | None = None
) -> Explorer:
    """Draw how a window steps over an image: the pixels that it covers, the largest, and the output filled so far.

    image (H, W) or (C, H, W); kernel_size and stride: int or pair, as in `ops.max_pool2d`, without padding. values: one
    for each output, (OH, OW) or (C, OH, OW); they are put back where the largest pixels are: of tied ones the first
    gets the value, the others are crossed, and values that meet on one pixel add up. ValueError for shapes that differ.
    """
    pooling = PooledImage.of(image, kernel_size, stride, values)
    seen = pooling.seen
    slider = Slider("output position", range(seen.count), pooling.start_position(), seen.place, play=True)
    return Explorer(_draw_pooling, pooling, position=slider)


@dataclass(frozen=True)
class PooledImage:
    """A max-pooling, position by position: largest (C, OH, OW), values (C, OH, OW) or None."""

    seen: Windows
    largest: NDArray[np.float64]
    values: NDArray[np.float64] | None

    @classmethod
    def of(cls, image: ArrayLike, kernel_size: Any, stride: Any, values: ArrayLike | None) -> PooledImage:
        seen = windows(image, kernel_size, kernel_size if stride is None else stride)
        largest = seen.patches.max(axis=(3, 4)).transpose(2, 0, 1)
        if values is None:
            return cls(seen, largest, None)
        given = on_host(values, dtype=np.float64)
        if given.shape not in (largest.shape, largest.shape[1:]):
            raise ValueError(f"values have shape {given.shape}; expected {largest.shape}, one for each output")
        return cls(seen, largest, np.broadcast_to(given, largest.shape))

    def ties(self, channel: int, position: int) -> list[Pair]:
        """Return row and column of the window's largest pixels, in row-major order: the first is the winner."""
        (row, column), (top, left) = self.seen.position(position), self.seen.corner(position)
        equal = np.argwhere(self.seen.patches[row, column, channel] == self.largest[channel, row, column])
        return [(top + int(i), left + int(j)) for i, j in equal]

    def put_back(self, position: int) -> NDArray[np.float64]:
        """Return the image (C, H, W) once the values up to and with this position are back."""
        assert self.values is not None
        seen, so_far = self.seen, np.nan_to_num(self.seen.filled(self.values, position))
        return np.asarray(ops.max_unpool2d_mask(so_far[None], seen.padded[None], seen.kernel_size, seen.stride)[0])

    def start_position(self) -> int:
        """Return the position to start at.

        With values, it is the last one whose value meets another on a pixel, else the last with a tie. Where there is
        neither, it is one in the middle row.
        """
        places = [[self.ties(channel, p) for channel in range(len(self.largest))] for p in range(self.seen.count)]
        tied = [p for p, channels in enumerate(places) if any(len(ties) > 1 for ties in channels)]
        winners = [channels[0][0] for channels in places]
        meets = [p for p, winner in enumerate(winners) if winner in winners[:p]]
        if self.values is not None and (meets or tied):
            return (meets or tied)[-1]
        return self.seen.start_position(self.largest[0])


def _panels(pooling: PooledImage) -> list[list[Cells]]:
    """For each channel: image, output and, where values are put back, values and image."""
    size, outputs = pooling.seen.size, pooling.seen.output_size
    shapes = [size, outputs] if pooling.values is None else [size, outputs, outputs, size]
    width, room = WIDTH - 2 * EDGE - (len(shapes) - 1) * POOLING_GAP, ROOM[len(pooling.largest)]
    widths = [share * width for share in SHARES[len(shapes)]]
    grids = [Cells.fitting(shape, most, room, LARGEST_CELL) for shape, most in zip(shapes, widths, strict=True)]
    pitch = max(grid.size[1] for grid in grids) + 0.28
    tops = [POOLING_TOP + channel * pitch for channel in range(len(pooling.largest))]
    return [in_a_row(grids, EDGE, top, POOLING_GAP) for top in tops]


def _draw_pooling(pooling: PooledImage, position: int) -> Picture:
    panels, seen = _panels(pooling), pooling.seen
    bottom, scale = max(cells.bottom for row in panels for cells in row), Scale.of(seen.padded)
    sheet = Sheet(bottom + 0.33 + (1 if pooling.values is None else 2) * LINE)
    for channel, grids in enumerate(panels):
        seen.draw_channel(sheet, grids[0], channel, position)
        seen.draw_outputs(sheet, grids[1], pooling.largest[channel], scale, position)
        sheet.sign(grids[0], grids[1])
        if pooling.values is not None:
            own, back = Scale.of(pooling.values), Scale.of(pooling.put_back(seen.count - 1))
            seen.draw_outputs(sheet, grids[2], pooling.values[channel], own, position)
            seen.draw_image(sheet, grids[3], pooling.put_back(position)[channel], back, position)
            sheet.sign(grids[2], grids[3])
        winner, *tied = pooling.ties(channel, position)
        for cells in grids[::3]:  # the images
            sheet.hatch([cells.box(*place) for place in tied], "xxxx", RED)
            sheet.outline(cells.box(*winner), RED)
    headings = ["image {} × {}".format(*seen.size), "largest", "values", "put back"]
    for cells, text in zip(panels[0], headings, strict=False):
        sheet.text_above(cells.at(cells.left, min(cells.top for cells in panels[0])), text)
    caption = _caption(pooling, position)
    sheet.text((EDGE, bottom + 0.33), "\n".join(caption))
    size, kernel, result = ("{} by {}".format(*pair) for pair in (seen.size, seen.kernel_size, seen.output_size))
    alt = (
        f"Max-pooling of an image of {size}{seen.with_channels} with a window of {kernel} (stride "
        f"{one_or_pair(seen.stride)}) to {result}. For output {seen.place(position)} the window covers "
        f"{seen.in_words(position)}. {' '.join(caption)}"
    )
    return Picture(sheet.figure(), alt)


def _caption(pooling: PooledImage, position: int) -> list[str]:
    """Two lines at most: what wins, and where the value goes."""
    row, column = pooling.seen.position(position)
    if len(pooling.largest) > 1:
        largest = ", ".join(number(float(value)) for value in pooling.largest[:, row, column])
        return [f"The largest of each channel: {largest}."]
    (winner, *tied), largest = pooling.ties(0, position), number(float(pooling.largest[0, row, column]))
    lines = [f"The largest is {largest}, at row {winner[0]}, column {winner[1]}."]
    if tied:
        is_are = "is" if len(tied) == 1 else "are"
        lines[0] += f" {count_of(len(tied), 'other')} (crossed) {is_are} as large; the first wins."
    if pooling.values is not None:
        value, total = float(pooling.values[0, row, column]), float(pooling.put_back(position)[0][winner])
        more = f", on top of {number(total - value)}: {number(total)}" if total != value else ""
        lines.append(f"The value {number(value)} goes there{more}.")
    return lines
