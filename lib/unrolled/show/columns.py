"""The patch matrix: im2col makes each window a column of it; col2im adds each column where its window stood."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unrolled.show.convolution import EDGE, Pair, Values, Windows, added, rows_in_words, windows
from unrolled.show.picture import Explorer, Picture, Slider
from unrolled.show.sheet import Cells, Scale, Sheet, in_a_row, on_host
from unrolled.show.style import BLUE, RED, WIDTH
from unrolled.show.words import number, times

FEW_ROWS, FEW_PIXELS = 9, 49  # so many numbers of a column, and of an image, can be read out
MATRIX_TOP, BOTTOM = 0.55, 0.3  # inches
IMAGE, MATRIX, COLUMN = (2.2, 2.4), (4.1, 4.2), 0.36  # largest sizes
WORDS = 3.2  # the width of the words over the matrix
FOLDED_TOP, FOLDED_GAP, FOLDED_CELL = 0.5, 0.55, 0.38  # inches, where columns are folded
FOLDED = (2.6, 2.7), (1.3, 1.3), (2.4, 2.7)  # largest sizes of matrix, window and image


def im2col(image: ArrayLike, kernel_size: int | Pair, stride: int | Pair = 1, padding: int | Pair = 0) -> Explorer:
    """Draw a window of the image (H, W) or (C, H, W) and its column of the patch matrix; a slider chooses which.

    The matrix is that of `ops.im2col` for one image: (C·KH·KW, OH·OW), a row for each place in the window.
    ValueError where no window fits.
    """
    seen = windows(image, kernel_size, stride, padding)
    matrix = patch_matrix(seen)
    start = seen.start_position(np.abs(matrix).sum(axis=0).reshape(seen.output_size))
    slider = Slider("column of the patch matrix", range(seen.count), start, play=True)
    return Explorer(_draw_matrix, seen, matrix, column=slider)


def col2im(
    columns: ArrayLike, size: Pair, kernel_size: int | Pair, stride: int | Pair = 1, padding: int | Pair = 0
) -> Explorer:
    """Draw how columns (KH·KW, OH·OW) are added into an image of `size` (H, W), one at a time.

    `ops.col2im` does so for all at once. ValueError where no window fits, or columns are not those of such an image.
    """
    seen, matrix = windows(np.zeros(size), kernel_size, stride, padding), on_host(columns, dtype=np.float64)
    if matrix.shape != (shape := patch_matrix(seen).shape):
        raise ValueError(f"columns has shape {matrix.shape}; expected {shape} for an image of {tuple(size)}")
    slider = Slider("columns added", range(seen.count), seen.count // 2, lambda at: str(at + 1), play=True)
    return Explorer(_draw_folded, seen, matrix, column=slider)


def patch_matrix(seen: Windows) -> Values:
    """Return the patch matrix (C·KH·KW, OH·OW): column j is the j-th window, flattened by channels, then rows."""
    return np.asarray(seen.patches.reshape(seen.count, -1).T)


def _layout_of_matrix(seen: Windows, matrix: Values) -> tuple[list[Cells], Cells, Cells, float]:
    """The channels of the image, the column, the matrix, and the height of the sheet."""
    channels, (rows, columns) = len(seen.padded), matrix.shape
    grid = Cells.fitting(seen.padded.shape[1:], IMAGE[0], IMAGE[1] if channels == 1 else 1.35, 0.44)
    tall = min(MATRIX[1], max(rows * 0.15, 2.4), rows * 0.34)
    cell = tall / rows
    wide = Cells(0, 0, rows, columns, min(MATRIX[0] / columns, 0.36), cell)
    free = WIDTH - 2 * EDGE - grid.size[0] - COLUMN - wide.size[0]
    gap, step = min(free / 2, 0.55), grid.size[1] + 0.3
    height = max(channels * step - 0.3, tall)
    top = MATRIX_TOP + (height - (channels * step - 0.3)) / 2
    heading_left = grid.size[0] + COLUMN + 2 * gap  # where the matrix and the words over it begin
    left = max(EDGE, min(EDGE + (free - 2 * gap) / 2, WIDTH - EDGE - WORDS - heading_left))
    images = [grid.at(left, top + channel * step) for channel in range(channels)]
    column = Cells(left + grid.size[0] + gap, MATRIX_TOP + (height - tall) / 2, rows, 1, COLUMN, cell)
    return images, column, wide.at(column.right + gap, column.top), MATRIX_TOP + height + BOTTOM


def _draw_matrix(seen: Windows, matrix: Values, column: int) -> Picture:
    images, flat, grid, tall = _layout_of_matrix(seen, matrix)
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
    frame, top, width, height = grid.box(0, column, grid.rows)
    extra = max(0.0, 0.06 - width)  # hair-thin columns have a frame wide enough to be seen
    sheet.outline((frame - extra / 2, top, width + extra, height), BLUE)
    x = min(frame + width / 2, WIDTH - 2 * EDGE)  # the last number of many must not leave the page
    sheet.text((x, grid.bottom + 0.15), str(column), BLUE, anchor="middle", bold=True)
    padding = f"\npadding {max(seen.padding)}, hatched" if any(seen.padding) else ""
    sheet.text_above(images[0], "image {} × {}".format(*seen.size) + padding)
    sheet.text((flat.middle[0], flat.bottom + 0.15), f"column {column}", BLUE, anchor="middle", bold=True)
    for left, right in ((images[0], flat), (flat, grid)):
        if right.left - left.right > 0.2:
            sheet.sign(left, right)
    sheet.text_above(grid, "patch matrix {} × {}\n{}".format(*matrix.shape, _growth(seen, matrix)))
    return Picture(sheet.figure(), _alt_matrix(seen, matrix, column))


def _growth(seen: Windows, matrix: Values) -> str:
    pixels = seen.size[0] * seen.size[1] * len(seen.padded)
    return f"{matrix.size:,} numbers from {pixels:,}: {times(matrix.size / pixels)} the memory"


def _alt_matrix(seen: Windows, matrix: Values, column: int) -> str:
    values = [number(float(value)) for value in matrix[:, column]]
    flattened = f": {', '.join(values)}" if len(values) <= FEW_ROWS else ""
    (height, width), (rows, columns) = seen.size, matrix.shape
    return (
        f"The windows of an image of {height} by {width}{seen.with_channels} as the columns of a patch matrix of "
        f"{rows} by {columns}. Column {column} is the window of output {seen.place(column)}: {seen.in_words(column)}, "
        f"flattened row by row{flattened}. The matrix holds {_growth(seen, matrix)}."
    )


def _draw_folded(seen: Windows, matrix: Values, column: int) -> Picture:
    shapes = matrix.shape, seen.kernel_size, seen.padded.shape[1:]
    grids = [Cells.fitting(shape, *most, FOLDED_CELL) for shape, most in zip(shapes, FOLDED, strict=True)]
    left = max(EDGE, (WIDTH - sum(cells.size[0] for cells in grids) - 2 * FOLDED_GAP) / 2)
    grid, small, image = placed = in_a_row(grids, left, FOLDED_TOP, FOLDED_GAP)
    sheet = Sheet(FOLDED_TOP + max(cells.size[1] for cells in grids) + 0.35)
    scale = Scale.of(np.append(added(seen, matrix, matrix.shape[1] - 1), matrix))
    sheet.matrix(grid, matrix, scale)
    sheet.outline(grid.box(0, column, grid.rows), BLUE)
    sheet.matrix(small, matrix[:, column].reshape(seen.kernel_size), scale)
    sheet.outline(small.frame, BLUE)
    pixels = added(seen, matrix, column)
    seen.draw_image(sheet, image, pixels, scale, column, RED)
    headings = "columns {} × {}".format(*matrix.shape), "folded", "the image so far"
    for cells, text in zip(placed, headings, strict=True):
        sheet.text_above(cells, text)
    sheet.sign(grid, small)
    sheet.sign(small, image, "+", colour=RED, size=14, bold=True)
    sheet.text((grid.centre(0, column)[0], grid.bottom + 0.16), str(column), BLUE, anchor="middle", bold=True)
    so_far = f" The image so far, row by row: {rows_in_words(pixels)}." if pixels.size <= FEW_PIXELS else ""
    shape, kernel = ("{} by {}".format(*pair) for pair in (matrix.shape, seen.kernel_size))
    alt = (
        f"Columns of a matrix of {shape}, each folded into a window of {kernel} "
        f"and added to an image where its window stood. Column {column} is added to {seen.in_words(column)}.{so_far}"
    )
    return Picture(sheet.figure(), alt)
