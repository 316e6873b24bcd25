"""im2col: each window of an image is a column of the patch matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from unrolled.show.cells import Cells, Scale
from unrolled.show.explorer import Explorer, Slider
from unrolled.show.sheet import Sheet
from unrolled.show.style import BLUE, SMALL, WIDTH
from unrolled.show.windows import PADDING, Pair, WindowSums, windows
from unrolled.show.words import number, times

FEW = 9  # so many numbers can be read out
TOP, BOTTOM, EDGE = 0.55, 0.3, 0.1  # inches
IMAGE, MATRIX, COLUMN = (2.2, 2.4), (4.1, 4.2), 0.36  # largest sizes

HEADING = 3.2  # the width of the words over the matrix


def im2col(image: ArrayLike, kernel_size: int | Pair, stride: int | Pair = 1, padding: int | Pair = 0) -> Explorer:
    """Draw a window of the image (H, W) or (C, H, W) and its column of the patch matrix; a slider chooses which.

    The matrix is that of `ops.im2col` for one image: (C·KH·KW, OH·OW), a row for each place in the window.
    ValueError where no window fits.
    """
    seen = windows(image, kernel_size, stride, padding)
    matrix = patch_matrix(seen)
    slider = Slider("column of the patch matrix", range(matrix.shape[1]), _telling(matrix, seen), play=True)
    return Explorer(
        lambda column: _draw(seen, matrix, column), lambda column: _alt(seen, matrix, column), column=slider
    )


def patch_matrix(seen: WindowSums) -> NDArray[np.float64]:
    """Return the patch matrix (C·KH·KW, OH·OW): column j is the j-th window, flattened by channels, then rows."""
    rows, columns = seen.output_size
    matrix: NDArray[np.float64] = seen.patches.reshape(rows * columns, -1).T
    return matrix


def _telling(matrix: NDArray[np.float64], seen: WindowSums) -> int:
    """The fullest window of the middle row of windows."""
    rows, columns = seen.output_size
    first = (rows - 1) // 2 * columns
    return first + int(np.abs(matrix[:, first : first + columns]).sum(axis=0).argmax())


@dataclass(frozen=True)
class _ColumnsLayout:
    images: list[Cells]
    column: Cells
    matrix: Cells
    height: float


def _layout(seen: WindowSums, matrix: NDArray[np.float64]) -> _ColumnsLayout:
    channels = len(seen.padded)
    rows, columns = matrix.shape
    grid = Cells.fitting(seen.padded.shape[1:], IMAGE[0], IMAGE[1] if channels == 1 else 1.35, 0.44)
    tall = min(MATRIX[1], max(rows * 0.15, 2.4), rows * 0.34)
    cell = tall / rows
    wide = Cells(0, 0, rows, columns, min(MATRIX[0] / columns, 0.36), cell)
    free = WIDTH - 2 * EDGE - grid.size[0] - COLUMN - wide.size[0]
    gap = min(free / 2, 0.55)
    step = grid.size[1] + 0.3
    height = max(channels * step - 0.3, tall)
    top = TOP + (height - (channels * step - 0.3)) / 2
    heading_left = grid.size[0] + COLUMN + 2 * gap  # where the matrix and the words over it begin
    left = max(EDGE, min(EDGE + (free - 2 * gap) / 2, WIDTH - EDGE - HEADING - heading_left))
    images = [grid.at(left, top + channel * step) for channel in range(channels)]
    column = Cells(left + grid.size[0] + gap, TOP + (height - tall) / 2, rows, 1, COLUMN, cell)
    return _ColumnsLayout(images, column, wide.at(column.right + gap, column.top), TOP + height + BOTTOM)


def _draw(seen: WindowSums, matrix: NDArray[np.float64], column: int) -> Figure:
    layout = _layout(seen, matrix)
    sheet = Sheet(layout.height)
    scale = Scale.of(seen.padded)
    for channel, cells in enumerate(layout.images):
        sheet.matrix(cells, seen.padded[channel], scale)
        sheet.hatch(cells.runs(~seen.inside), "////", PADDING)
        sheet.outline(cells.box(*seen.corner(column), *seen.kernel_size), BLUE)
        if len(layout.images) > 1:
            sheet.text((cells.left, cells.bottom + 0.12), f"channel {channel}", size=SMALL)
    sheet.matrix(layout.column, matrix[:, column : column + 1], scale)
    sheet.outline(layout.column.frame, BLUE)
    sheet.matrix(layout.matrix, matrix, scale)
    _part_channels(sheet, layout, len(seen.padded))
    _light(sheet, layout.matrix, column)
    _words(sheet, layout, seen, matrix, column)
    return sheet.figure()


def _part_channels(sheet: Sheet, layout: _ColumnsLayout, channels: int) -> None:
    """A bold line where the rows of the next channel begin."""
    for cells in (layout.column, layout.matrix):
        for channel in range(1, channels):
            y = cells.top + channel * cells.rows // channels * cells.height
            sheet.line((cells.left, y), (cells.right, y), colour=BLUE, width=1.4)


def _light(sheet: Sheet, cells: Cells, column: int) -> None:
    """Frame the column; where columns are hair-thin, with a frame wide enough to be seen."""
    left, top, width, height = cells.box(0, column, cells.rows)
    extra = max(0.0, 0.06 - width)
    sheet.outline((left - extra / 2, top, width + extra, height), BLUE)
    x = min(left + width / 2, WIDTH - 2 * EDGE)  # the last number of many must not leave the page
    sheet.text((x, cells.bottom + 0.15), str(column), BLUE, anchor="middle", bold=True)


def _words(sheet: Sheet, layout: _ColumnsLayout, seen: WindowSums, matrix: NDArray[np.float64], column: int) -> None:
    padding = f"\npadding {max(seen.padding)}, hatched" if any(seen.padding) else ""
    sheet.text_above(layout.images[0], "image {} × {}".format(*seen.size) + padding)
    middle = layout.column.middle[0]
    sheet.text((middle, layout.column.bottom + 0.15), f"column {column}", BLUE, anchor="middle", bold=True)
    for left, right in ((layout.images[0].right, layout.column.left), (layout.column.right, layout.matrix.left)):
        if right - left > 0.2:
            sheet.text(((left + right) / 2, layout.column.middle[1]), "→", size=12, anchor="middle")
    text = "patch matrix {} × {}".format(*matrix.shape) + f"\n{_growth(seen, matrix)}"
    sheet.text_above(layout.matrix, text)


def _growth(seen: WindowSums, matrix: NDArray[np.float64]) -> str:
    pixels = seen.size[0] * seen.size[1] * len(seen.padded)
    return f"{matrix.size:,} numbers from {pixels:,}: {times(matrix.size / pixels)} the memory"


def _alt(seen: WindowSums, matrix: NDArray[np.float64], column: int) -> str:
    row, place = seen.position(column)
    values = [number(float(value)) for value in matrix[:, column]]
    flattened = f": {', '.join(values)}" if len(values) <= FEW else ""
    channels = f" with {len(seen.padded)} channels" if len(seen.padded) > 1 else ""
    return (
        "The windows of an image of {} by {}{} as the columns of a patch matrix of {} by {}. ".format(
            *seen.size, channels, *matrix.shape
        )
        + f"Column {column} is the window of output row {row}, column {place}: {seen.in_words(column)}, "
        + f"flattened row by row{flattened}. The matrix holds {_growth(seen, matrix)}."
    )
