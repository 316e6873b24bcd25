"""Max-pooling: a window, its largest pixel, and where a value goes when it is put back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from unrolled import ops
from unrolled.show.arrays import on_host
from unrolled.show.cells import Cells, Scale
from unrolled.show.explorer import Explorer, Slider
from unrolled.show.sheet import Sheet
from unrolled.show.style import BLUE, INK, RED, SMALL, WIDTH
from unrolled.show.windows import PADDING, Pair, WindowSums, windows
from unrolled.show.words import count_of, number

GAP = 0.42  # inches between panels, with room for an arrow
HEADING, EDGE, LINE = 0.42, 0.1, 0.19
LARGEST_CELL = 0.44
ROOM = {1: 2.7, 2: 1.7, 3: 1.45, 4: 1.25}  # inches for a channel, by their number
SHARES = {2: (0.6, 0.4), 4: (0.32, 0.18, 0.18, 0.32)}  # of the width, for each panel
TIE, EMPTY = "xxxx", "...."

Place = tuple[int, int]


def max_pool2d(
    image: ArrayLike, kernel_size: int | Pair, stride: int | Pair | None = None, values: ArrayLike | None = None
) -> Explorer:
    """Draw how a window steps over an image: the pixels that it covers, the largest, and the output filled so far.

    image (H, W) or (C, H, W); kernel_size and stride: int or pair, as in `ops.max_pool2d`, without padding. values: one
    for each output, (OH, OW) or (C, OH, OW); they are put back where the largest pixels are: of tied ones the first
    gets the value and the others are crossed, and values that meet on one pixel add up. ValueError where shapes do not
    fit.
    """
    pooling = PooledImage.of(image, kernel_size, stride, values)

    def words(position: int) -> str:
        return "row {}, column {}".format(*pooling.seen.position(position))

    slider = Slider("output position", range(pooling.count), pooling.telling(), words, play=True)
    return Explorer(
        lambda position: _draw(pooling, position), lambda position: _alt(pooling, position), position=slider
    )


@dataclass(frozen=True)
class PooledImage:
    """A max-pooling, position by position: largest (C, OH, OW), values (C, OH, OW) or None."""

    seen: WindowSums
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

    @property
    def count(self) -> int:
        """How many outputs a channel has."""
        return int(self.largest[0].size)

    def ties(self, channel: int, position: int) -> list[Place]:
        """Return row and column of the window's largest pixels, in row-major order: the first is the winner."""
        row, column = self.seen.position(position)
        top, left = self.seen.corner(position)
        equal = np.argwhere(self.seen.patches[row, column, channel] == self.largest[channel, row, column])
        return [(top + int(i), left + int(j)) for i, j in equal]

    def filled(self, array: NDArray[np.float64], position: int) -> NDArray[np.float64]:
        """Return array (C, OH, OW) up to and with this position; NaN after it."""
        return np.where(np.arange(self.count).reshape(array.shape[1:]) <= position, array, np.nan)

    def put_back(self, position: int) -> NDArray[np.float64]:
        """Return the image (C, H, W) once the values up to and with this position are back."""
        assert self.values is not None
        so_far = np.nan_to_num(self.filled(self.values, position))
        back: NDArray[np.float64] = ops.max_unpool2d_mask(
            so_far[None], self.seen.padded[None], self.seen.kernel_size, self.seen.stride
        )[0]
        return back

    def telling(self) -> int:
        """Return the position to start at.

        With values, it is the last one whose value meets another on a pixel, else the last with a tie. Where there is
        neither, it is one in the middle row.
        """
        places = [[self.ties(channel, p) for channel in range(len(self.largest))] for p in range(self.count)]
        tied = [p for p, channels in enumerate(places) if any(len(ties) > 1 for ties in channels)]
        winners = [channels[0][0] for channels in places]
        meets = [p for p, winner in enumerate(winners) if winner in winners[:p]]
        if self.values is not None and (meets or tied):
            return (meets or tied)[-1]
        rows, columns = self.seen.output_size
        middle = (rows - 1) // 2
        return middle * columns + int(self.largest[0, middle].argmax())


def _panels(pooling: PooledImage) -> list[list[Cells]]:
    """For each channel: image, output and, where values are put back, values and image."""
    channels, size, outputs = len(pooling.largest), pooling.seen.size, pooling.seen.output_size
    shapes = [size, outputs] if pooling.values is None else [size, outputs, outputs, size]
    width, room = WIDTH - 2 * EDGE - (len(shapes) - 1) * GAP, ROOM[channels]
    grids = [
        Cells.fitting(shape, share * width, room, LARGEST_CELL)
        for shape, share in zip(shapes, SHARES[len(shapes)], strict=True)
    ]
    tallest = max(grid.size[1] for grid in grids)
    lefts = np.cumsum([EDGE] + [grid.size[0] + GAP for grid in grids[:-1]]).tolist()
    return [
        [
            grid.at(left, HEADING + channel * (tallest + 0.28) + (tallest - grid.size[1]) / 2)
            for grid, left in zip(grids, lefts, strict=True)
        ]
        for channel in range(channels)
    ]


def _draw(pooling: PooledImage, position: int) -> Figure:
    panels, seen = _panels(pooling), pooling.seen
    bottom = max(cells.bottom for row in panels for cells in row)
    caption = _caption(pooling, position)
    sheet = Sheet(bottom + 0.33 + (1 if pooling.values is None else 2) * LINE)
    scale = Scale.of(seen.padded)
    for channel, grids in enumerate(panels):
        _draw_image(sheet, grids[0], seen.padded[channel], scale, pooling, channel, position)
        _draw_outputs(sheet, grids[1], pooling.filled(pooling.largest, position)[channel], scale, pooling, position)
        _arrow(sheet, grids[0], grids[1])
        if pooling.values is not None:
            own, back = Scale.of(pooling.values), pooling.put_back(pooling.count - 1)
            _draw_outputs(sheet, grids[2], pooling.filled(pooling.values, position)[channel], own, pooling, position)
            _draw_image(
                sheet, grids[3], pooling.put_back(position)[channel], Scale.of(back), pooling, channel, position
            )
            _arrow(sheet, grids[2], grids[3])
        if len(panels) > 1:
            sheet.text((grids[0].left, grids[0].bottom + 0.12), f"channel {channel}", size=SMALL)
    _headings(sheet, panels[0], seen)
    sheet.text((EDGE, bottom + 0.33), "\n".join(caption), INK)
    return sheet.figure()


def _draw_image(
    sheet: Sheet,
    cells: Cells,
    pixels: NDArray[np.float64],
    scale: Scale,
    pooling: PooledImage,
    channel: int,
    position: int,
) -> None:
    """An image with the window, the winner and the pixels that are tied with it."""
    winner, *tied = pooling.ties(channel, position)
    sheet.matrix(cells, pixels, scale)
    sheet.hatch([cells.box(*place) for place in tied], TIE, RED)
    sheet.outline(cells.box(*pooling.seen.corner(position), *pooling.seen.kernel_size), BLUE)
    sheet.outline(cells.box(*winner), RED)


def _draw_outputs(
    sheet: Sheet, cells: Cells, filled: NDArray[np.float64], scale: Scale, pooling: PooledImage, position: int
) -> None:
    sheet.matrix(cells, filled, scale)
    sheet.hatch(cells.runs(np.isnan(filled)), EMPTY, PADDING)
    sheet.outline(cells.box(*pooling.seen.position(position)), RED)


def _arrow(sheet: Sheet, left: Cells, right: Cells) -> None:
    sheet.text(((left.right + right.left) / 2, left.middle[1]), "→", size=12, anchor="middle")


def _headings(sheet: Sheet, grids: list[Cells], seen: WindowSums) -> None:
    texts = ["image {} × {}".format(*seen.size), "largest", "values", "put back"]
    top = min(cells.top for cells in grids)
    for cells, text in zip(grids, texts, strict=False):
        sheet.text_above(cells.at(cells.left, top), text)


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
        lines.append(_put_back_in_words(pooling, winner, row, column))
    return lines


def _put_back_in_words(pooling: PooledImage, winner: Place, row: int, column: int) -> str:
    assert pooling.values is not None
    value = float(pooling.values[0, row, column])
    total = float(pooling.put_back(row * pooling.values.shape[2] + column)[0][winner])
    if total == value:
        return f"The value {number(value)} goes there."
    return f"The value {number(value)} goes there, on top of {number(total - value)}: {number(total)}."


def _alt(pooling: PooledImage, position: int) -> str:
    seen = pooling.seen
    size, kernel, result = ("{} by {}".format(*pair) for pair in (seen.size, seen.kernel_size, seen.output_size))
    channels = f" with {len(pooling.largest)} channels" if len(pooling.largest) > 1 else ""
    stride = seen.stride[0] if seen.stride[0] == seen.stride[1] else seen.stride
    row, column = seen.position(position)
    return (
        f"Max-pooling of an image of {size}{channels} with a window of {kernel} (stride {stride}) to {result}. "
        f"For output row {row}, column {column} the window covers {seen.in_words(position)}. "
        + " ".join(_caption(pooling, position))
    )
