"""im2col: each window of an image is a column of the patch matrix."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from unrolled.show.cells import Cells, Scale
from unrolled.show.explorer import Explorer, Slider
from unrolled.show.sheet import Sheet
from unrolled.show.style import BLUE, WIDTH
from unrolled.show.windows import Pair, WindowSums, windows
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
    start = seen.telling(np.abs(matrix).sum(axis=0).reshape(seen.output_size))
    slider = Slider("column of the patch matrix", range(seen.count), start, play=True)
    return Explorer(partial(_draw, seen, matrix), partial(_alt, seen, matrix), column=slider)


def patch_matrix(seen: WindowSums) -> NDArray[np.float64]:
    """Return the patch matrix (C·KH·KW, OH·OW): column j is the j-th window, flattened by channels, then rows."""
    return np.asarray(seen.patches.reshape(seen.count, -1).T)


def _layout(seen: WindowSums, matrix: NDArray[np.float64]) -> tuple[list[Cells], Cells, Cells, float]:
    """The channels of the image, the column, the matrix, and the height of the sheet."""
    channels, (rows, columns) = len(seen.padded), matrix.shape
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
    return images, column, wide.at(column.right + gap, column.top), TOP + height + BOTTOM


def _draw(seen: WindowSums, matrix: NDArray[np.float64], column: int) -> Figure:
    images, flat, grid, tall = _layout(seen, matrix)
    sheet, scale = Sheet(tall), Scale.of(seen.padded)
    for channel, cells in enumerate(images):
        seen.draw_channel(sheet, cells, channel, column)
    sheet.matrix(flat, matrix[:, column : column + 1], scale)
    sheet.outline(flat.frame, BLUE)
    sheet.matrix(grid, matrix, scale)
    for cells in (flat, grid):
        for channel in range(1, len(seen.padded)):  # a bold line where the rows of the next channel begin
            y = cells.top + channel * cells.rows // len(seen.padded) * cells.height
            sheet.line((cells.left, y), (cells.right, y), colour=BLUE, width=1.4)
    _light(sheet, grid, column)
    padding = f"\npadding {max(seen.padding)}, hatched" if any(seen.padding) else ""
    sheet.text_above(images[0], "image {} × {}".format(*seen.size) + padding)
    sheet.text((flat.middle[0], flat.bottom + 0.15), f"column {column}", BLUE, anchor="middle", bold=True)
    for left, right in ((images[0], flat), (flat, grid)):
        if right.left - left.right > 0.2:
            sheet.sign(left, right)
    sheet.text_above(grid, "patch matrix {} × {}\n{}".format(*matrix.shape, _growth(seen, matrix)))
    return sheet.figure()


def _light(sheet: Sheet, cells: Cells, column: int) -> None:
    """Frame the column; where columns are hair-thin, with a frame wide enough to be seen."""
    left, top, width, height = cells.box(0, column, cells.rows)
    extra = max(0.0, 0.06 - width)
    sheet.outline((left - extra / 2, top, width + extra, height), BLUE)
    x = min(left + width / 2, WIDTH - 2 * EDGE)  # the last number of many must not leave the page
    sheet.text((x, cells.bottom + 0.15), str(column), BLUE, anchor="middle", bold=True)


def _growth(seen: WindowSums, matrix: NDArray[np.float64]) -> str:
    pixels = seen.size[0] * seen.size[1] * len(seen.padded)
    return f"{matrix.size:,} numbers from {pixels:,}: {times(matrix.size / pixels)} the memory"


def _alt(seen: WindowSums, matrix: NDArray[np.float64], column: int) -> str:
    values = [number(float(value)) for value in matrix[:, column]]
    flattened = f": {', '.join(values)}" if len(values) <= FEW else ""
    (height, width), (rows, columns) = seen.size, matrix.shape
    return (
        f"The windows of an image of {height} by {width}{seen.with_channels} as the columns of a patch matrix of "
        f"{rows} by {columns}. Column {column} is the window of output {seen.place(column)}: {seen.in_words(column)}, "
        f"flattened row by row{flattened}. The matrix holds {_growth(seen, matrix)}."
    )
