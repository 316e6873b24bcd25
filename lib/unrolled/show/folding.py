"""col2im: each column, folded back into a window, is added where the window stood."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from unrolled.show.cells import Cells, Scale, on_host
from unrolled.show.explorer import Explorer, Slider
from unrolled.show.sheet import Sheet
from unrolled.show.style import BLUE, RED, WIDTH
from unrolled.show.windows import Pair, WindowSums, windows
from unrolled.show.words import number

Values = NDArray[np.float64]

FEW = 49  # so many pixels can be read out
TOP, BOTTOM, EDGE, GAP = 0.5, 0.35, 0.1, 0.55  # inches
MATRIX, WINDOW, IMAGE = (2.6, 2.7), (1.3, 1.3), (2.4, 2.7)  # largest sizes
CELL = 0.38


def col2im(
    columns: ArrayLike, size: Pair, kernel_size: int | Pair, stride: int | Pair = 1, padding: int | Pair = 0
) -> Explorer:
    """Draw how columns (KH·KW, OH·OW) are added into an image of `size` (H, W), one at a time.

    `ops.col2im` does so for all at once. ValueError where no window fits, or columns are not those of such an image.
    """
    seen = windows(np.zeros(size), kernel_size, stride, padding)
    matrix = on_host(columns, dtype=np.float64)
    (kh, kw), (oh, ow) = seen.kernel_size, seen.output_size
    if matrix.shape != (kh * kw, oh * ow):
        expected = f"expected {(kh * kw, oh * ow)} for an image of {tuple(size)}"
        raise ValueError(f"columns has shape {matrix.shape}; {expected}")
    slider = Slider("columns added", range(seen.count), seen.count // 2, lambda at: str(at + 1), play=True)
    return Explorer(partial(_draw, seen, matrix), partial(_alt, seen, matrix), column=slider)


def added(seen: WindowSums, matrix: Values, last: int) -> Values:
    """Return the padded image (H + 2 PH, W + 2 PW) once the columns 0 to `last` have been added."""
    image, (kh, kw) = np.zeros(seen.padded.shape[1:]), seen.kernel_size
    for column in range(last + 1):
        top, left = seen.corner(column)
        image[top : top + kh, left : left + kw] += matrix[:, column].reshape(kh, kw)
    return image


def _draw(seen: WindowSums, matrix: Values, column: int) -> Figure:
    shapes = (matrix.shape, MATRIX), (seen.kernel_size, WINDOW), (seen.padded.shape[1:], IMAGE)
    placed = [Cells.fitting(shape, *most, CELL) for shape, most in shapes]
    tall = max(cells.size[1] for cells in placed)
    left = max(EDGE, (WIDTH - sum(cells.size[0] for cells in placed) - 2 * GAP) / 2)
    for i, cells in enumerate(placed):
        placed[i] = cells.at(left, TOP + (tall - cells.size[1]) / 2)
        left = placed[i].right + GAP
    grid, small, image = placed
    sheet = Sheet(TOP + tall + BOTTOM)
    scale = Scale.of(np.append(added(seen, matrix, matrix.shape[1] - 1), matrix))
    sheet.matrix(grid, matrix, scale)
    sheet.outline(grid.box(0, column, grid.rows), BLUE)
    sheet.matrix(small, matrix[:, column].reshape(seen.kernel_size), scale)
    sheet.outline(small.frame, BLUE)
    seen.draw_image(sheet, image, added(seen, matrix, column), scale, column, RED)
    headings = "columns {} × {}".format(*matrix.shape), "folded", "the image so far"
    for cells, text in zip(placed, headings, strict=True):
        sheet.text_above(cells, text)
    sheet.sign(grid, small)
    sheet.sign(small, image, "+", colour=RED, size=14, bold=True)
    sheet.text((grid.centre(0, column)[0], grid.bottom + 0.16), str(column), BLUE, anchor="middle", bold=True)
    return sheet.figure()


def _alt(seen: WindowSums, matrix: Values, column: int) -> str:
    image = added(seen, matrix, column)
    rows = "; ".join(", ".join(map(number, row)) for row in image.tolist())
    so_far = f" The image so far, row by row: {rows}." if image.size <= FEW else ""
    shape, kernel = ("{} by {}".format(*pair) for pair in (matrix.shape, seen.kernel_size))
    return (
        f"Columns of a matrix of {shape}, each folded into a window of {kernel} "
        f"and added to an image where its window stood. Column {column} is added to {seen.in_words(column)}.{so_far}"
    )
