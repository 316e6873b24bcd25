"""col2im: each column, folded back into a window, is added where the window stood."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from unrolled.show.arrays import on_host
from unrolled.show.cells import Cells, Scale
from unrolled.show.explorer import Explorer, Slider
from unrolled.show.sheet import Sheet
from unrolled.show.style import BLUE, RED, WIDTH
from unrolled.show.windows import PADDING, Pair, WindowSums, windows
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
        raise ValueError(
            f"columns has shape {matrix.shape}; expected {(kh * kw, oh * ow)} for an image of {tuple(size)}"
        )
    slider = Slider("columns added", range(matrix.shape[1]), matrix.shape[1] // 2, lambda at: str(at + 1), play=True)
    return Explorer(
        lambda column: _draw(seen, matrix, column), lambda column: _alt(seen, matrix, column), column=slider
    )


def added(seen: WindowSums, matrix: Values, last: int) -> Values:
    """Return the padded image (H + 2 PH, W + 2 PW) once the columns 0 to `last` have been added."""
    image = np.zeros(seen.padded.shape[1:])
    for column in range(last + 1):
        top, left = seen.corner(column)
        kh, kw = seen.kernel_size
        image[top : top + kh, left : left + kw] += matrix[:, column].reshape(kh, kw)
    return image


def _draw(seen: WindowSums, matrix: Values, column: int) -> Figure:
    grid = Cells.fitting(matrix.shape, *MATRIX, CELL)
    small = Cells.fitting(seen.kernel_size, *WINDOW, CELL)
    image = Cells.fitting(seen.padded.shape[1:], *IMAGE, CELL)
    tall = max(cells.size[1] for cells in (grid, small, image))
    left = (WIDTH - grid.size[0] - small.size[0] - image.size[0] - 2 * GAP) / 2
    placed = []
    for cells in (grid, small, image):
        placed.append(cells.at(max(left, EDGE), TOP + (tall - cells.size[1]) / 2))
        left = placed[-1].right + GAP
    grid, small, image = placed
    sheet = Sheet(TOP + tall + BOTTOM)
    scale = Scale.of(np.append(added(seen, matrix, matrix.shape[1] - 1), matrix))
    sheet.matrix(grid, matrix, scale)
    sheet.outline(grid.box(0, column, grid.rows), BLUE)
    sheet.matrix(small, matrix[:, column].reshape(seen.kernel_size), scale)
    sheet.outline(small.frame, BLUE)
    sheet.matrix(image, added(seen, matrix, column), scale)
    sheet.hatch(image.runs(~seen.inside), "////", PADDING)
    sheet.outline(image.box(*seen.corner(column), *seen.kernel_size), RED)
    for cells, text in (
        (grid, "columns {} × {}".format(*matrix.shape)),
        (small, "folded"),
        (image, "the image so far"),
    ):
        sheet.text_above(cells, text)
    sheet.text((small.left - GAP / 2, small.middle[1]), "→", size=12, anchor="middle")
    sheet.text((image.left - GAP / 2, image.middle[1]), "+", RED, size=14, anchor="middle", bold=True)
    sheet.text(
        (grid.box(0, column)[0] + grid.width / 2, grid.bottom + 0.16), str(column), BLUE, anchor="middle", bold=True
    )
    return sheet.figure()


def _alt(seen: WindowSums, matrix: Values, column: int) -> str:
    image = added(seen, matrix, column)
    rows = "; ".join(", ".join(number(value) for value in row) for row in image.tolist())
    so_far = f" The image so far, row by row: {rows}." if image.size <= FEW else ""
    return (
        "Columns of a matrix of {} by {}, each folded into a window of {} by {} ".format(
            *matrix.shape, *seen.kernel_size
        )
        + f"and added to an image where its window stood. Column {column} is added to {seen.in_words(column)}.{so_far}"
    )
