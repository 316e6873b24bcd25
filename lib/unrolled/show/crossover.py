"""Where one method overtakes another: a map over the size of the kernel and of the image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray

from unrolled.show.picture import Picture
from unrolled.show.sheet import Cells, Sheet
from unrolled.show.style import INK, SIGNED, SMALL, WIDTH
from unrolled.show.words import count_of, rounded

LEFT, TOP, GAP, BOTTOM = 0.75, 0.65, 0.8, 0.95  # inches
LARGEST = 0.75, 0.42  # inches of a cell
DEEPEST = 0.25  # of the colours, to either side: numbers are written on them
Row = Mapping[str, Any]
Map = tuple[list[int], list[int], NDArray[np.float64]]


def crossover(
    rows: Sequence[Row],
    recorded: tuple[str, Sequence[Row]] | None = None,
    label: str = "measured here",
    methods: tuple[str, str] = ("FFT", "one product"),
) -> Picture:
    """Draw how many times as fast the first method is as the second, by size of kernel and image; 1 is where they meet.

    rows: mappings with "kernel" and "size" in pixels, and "faster", above 0. recorded: a label and such rows, drawn
    beside them. A thick line runs where the faster one changes. ValueError for no rows, and for values not above 0.
    """
    panels = [(label, _mapped(rows))]
    if recorded is not None:
        panels.append((recorded[0], _mapped(recorded[1])))
    return _draw(panels, methods)


def _mapped(rows: Sequence[Row]) -> Map:
    """Sizes, kernels, and what was measured for each pair; NaN where nothing was."""
    if not rows or min(float(row["faster"]) for row in rows) <= 0:
        raise ValueError(f"rows must hold kernel, size and faster above 0, got {list(rows)!r:.80}")
    sizes, kernels = (sorted({int(row[key]) for row in rows}) for key in ("size", "kernel"))
    found = np.full((len(sizes), len(kernels)), np.nan)
    for row in rows:
        found[sizes.index(int(row["size"])), kernels.index(int(row["kernel"]))] = float(row["faster"])
    return sizes, kernels, found


def _draw(panels: Sequence[tuple[str, Map]], methods: tuple[str, str]) -> Picture:
    room = (WIDTH - 0.15 - LEFT * len(panels) - GAP * (len(panels) - 1)) / len(panels)
    height = max(len(found[0]) for _, found in panels) * LARGEST[1]
    sheet, alt = Sheet(TOP + height + BOTTOM), f"Times as fast {methods[0]} is as {methods[1]}."
    for number, (label, (sizes, kernels, values)) in enumerate(panels):
        width = min(LARGEST[0], room / len(kernels))
        cells = Cells(LEFT + number * (room + LEFT + GAP), TOP, len(sizes), len(kernels), width, LARGEST[1])
        shares = 0.5 + DEEPEST * np.clip(np.log2(values) / 3, -1, 1)
        sheet.paint(cells, np.asarray(colormaps[SIGNED](np.ma.masked_invalid(shares)), np.float64))
        sheet.rule(cells)
        sheet.numbers(cells, [rounded(value) if value == value else "" for value in values.ravel().tolist()])
        for (row, column), wins in np.ndenumerate(values > 1):  # a thick line where the neighbour's winner is another
            left, top, width, height = cells.box(row, column)
            if column and wins != (values[row, column - 1] > 1):
                sheet.line((left, top), (left, top + height), colour=INK, width=3)
            if row and wins != (values[row - 1, column] > 1):
                sheet.line((left, top), (left + width, top), colour=INK, width=3)
        sheet.text((cells.left, TOP - 0.42), label, size=11, bold=True)
        sheet.text((cells.left, cells.bottom + 0.4), "kernel (pixels a side)", size=SMALL)
        for column, kernel in enumerate(kernels):
            sheet.text((cells.centre(0, column)[0], cells.bottom + 0.16), str(kernel), size=SMALL, anchor="middle")
        won = []  # for each size of image, from which kernel on the first method wins
        for row, size in enumerate(sizes):
            fast = [str(kernel) for kernel, value in zip(kernels, values[row], strict=True) if value > 1]
            won.append(f"images of {size}: {'faster with kernels of ' + ', '.join(fast) if fast else 'never faster'}")
            sheet.text((cells.left - 0.1, cells.centre(row, 0)[1]), str(size), size=SMALL, anchor="right")
        sheet.text((cells.left - 0.1, TOP - 0.14), "image", size=SMALL, anchor="right")
        alt += f" {label}, {count_of(int(np.isfinite(values).sum()), 'pair')} of sizes: {'; '.join(won)}; "
        alt += f"at most {rounded(float(np.nanmax(values)))} times."
    said = f"times as fast {methods[0]} is as {methods[1]}; from the thick line on, {methods[0]} is faster"
    sheet.text((LEFT, sheet.height - 0.2), said, size=SMALL)
    return Picture(sheet.figure(), alt)
