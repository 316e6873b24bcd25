"""A sheet of paper for diagrams, grids of cells and their colours; its unit is the inch, y goes down from the top.

A slider redraws its picture at every step, so a sheet gathers what is drawn on it and hands Matplotlib a few large
collections instead of hundreds of small artists: a frame takes a third of the time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from numpy.typing import DTypeLike, NDArray

from unrolled.device import to_host
from unrolled.show.style import FONT_SIZE, GREY, INK, PAPER, PIXELS, SIGNED, SMALL, WIDTH, new_figure

LEGIBLE = 5.5  # points: smaller numbers are left out
POINT = 1 / 72  # inches
MANY = 400  # cells: from here on an image is quicker than single boxes
FINE = 0.1  # inches: smaller cells have no lines between them
NUMBER_LIGHTNESS = 1.9  # shades behind numbers
LINE_SPACING = 1.25
HEAD = 0.08  # inches: of an arrow

Anchor = Literal["left", "middle", "right"]
Dashes = Literal["-", "--", ":"]
Box = tuple[float, float, float, float]  # left, top, width, height
Point = tuple[float, float]
RGBA = tuple[float, float, float, float]


@dataclass(frozen=True)
class Cells:
    """A grid of cells: its upper left corner and the size of a cell."""

    left: float
    top: float
    rows: int
    columns: int
    width: float
    height: float

    @classmethod
    def fitting(cls, shape: Sequence[int], width: float, height: float, largest: float) -> Cells:
        """Return square cells for a matrix of this shape, as large as width x height inches and `largest` allow."""
        rows, columns = shape
        size = min(width / columns, height / rows, largest)
        return cls(0.0, 0.0, rows, columns, size, size)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the whole grid."""
        return self.columns * self.width, self.rows * self.height

    @property
    def right(self) -> float:
        return self.left + self.columns * self.width

    @property
    def bottom(self) -> float:
        return self.top + self.rows * self.height

    @property
    def middle(self) -> tuple[float, float]:
        """The point in the middle."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    @property
    def frame(self) -> Box:
        """The box around all cells."""
        return self.box(0, 0, self.rows, self.columns)

    def at(self, left: float, top: float) -> Cells:
        """Return the same grid with its upper left corner at (left, top), in inches."""
        return replace(self, left=left, top=top)

    def centre(self, row: int, column: int) -> tuple[float, float]:
        """Return the middle of a cell as (x, y), in inches."""
        return self.left + (column + 0.5) * self.width, self.top + (row + 0.5) * self.height

    def box(self, row: int, column: int, rows: int = 1, columns: int = 1) -> Box:
        """Return the box around a block of cells whose upper left one is at (row, column)."""
        left, top = self.left + column * self.width, self.top + row * self.height
        return left, top, columns * self.width, rows * self.height

    def runs(self, mask: NDArray[np.bool_]) -> list[Box]:
        """Return the boxes of the cells where mask (rows, columns) is true, neighbours in a row joined."""
        edges = np.diff(np.pad(mask.astype(np.int8), ((0, 0), (1, 1))), axis=1)
        starts, ends = np.argwhere(edges > 0).tolist(), np.argwhere(edges < 0).tolist()
        return [self.box(row, first, 1, last - first) for (row, first), (_, last) in zip(starts, ends, strict=True)]


def in_a_row(grids: Sequence[Cells], left: float, top: float, gap: float) -> list[Cells]:
    """Return the grids side by side from (left, top) on, their middles at one height."""
    tall, placed = max(cells.size[1] for cells in grids), []
    for cells in grids:
        placed.append(cells.at(left, top + (tall - cells.size[1]) / 2))
        left = placed[-1].right + gap
    return placed


@dataclass(frozen=True)
class Scale:
    """A colour scale: greys for values from 0 on, purple and orange around 0 where some are negative."""

    limit: float
    signed: bool

    @classmethod
    def of(cls, values: NDArray[Any]) -> Scale:
        """Return the colour scale that covers all finite values."""
        finite = values[np.isfinite(values)]
        limit = float(np.abs(finite).max()) if finite.size else 0.0
        return cls(limit or 1.0, bool((finite < 0).any()))

    def colours(self, values: NDArray[Any], lightness: float = 1.0) -> NDArray[np.float64]:
        """Return the colours of the values as RGBA (..., 4). What is not finite is transparent.

        lightness: above 1 it makes the colours pale enough to write numbers on.
        """
        limit = self.limit * lightness
        share = (values + limit) / (2 * limit) if self.signed else values / limit
        return np.asarray(colormaps[SIGNED if self.signed else PIXELS](np.ma.masked_invalid(share)), dtype=np.float64)


class Sheet:
    """Gathers images, boxes, hatches, lines, outlines and texts; `figure()` draws them in this order, texts on top.

    sharp: boxes begin and end at whole pixels, so that thinner ones than a pixel become one or vanish.
    """

    def __init__(self, height: float, width: float = WIDTH, sharp: bool = True) -> None:
        self.height, self.width = height, width
        self._snap = None if sharp else False  # None: Matplotlib decides
        self._images: list[tuple[Box, NDArray[np.float64]]] = []
        self._fills: list[tuple[Box, Sequence[float]]] = []
        self._lines: list[tuple[Sequence[Point], RGBA, float, str]] = []
        self._outlines: list[tuple[Box, RGBA, float]] = []
        self._hatches: dict[tuple[str, str], list[Box]] = defaultdict(list)
        self._texts: dict[str, list[Path]] = defaultdict(list)

    def fill(self, box: Box, colour: str) -> None:
        """Fill a box."""
        self._fills.append((box, to_rgba(colour)))

    def fill_runs(self, cells: Cells, mask: NDArray[np.bool_], colour: str) -> list[Box]:
        """Fill the cells where mask (rows, columns) is true; return their boxes, neighbours in a row joined."""
        boxes = cells.runs(mask)
        for box in boxes:
            self.fill(box, colour)
        return boxes

    def paint(self, cells: Cells, colours: NDArray[np.float64]) -> None:
        """Fill each cell with a colour of its own: (rows, columns, 4) RGBA."""
        if cells.rows * cells.columns > MANY:
            self._images.append((cells.frame, colours))
        else:
            boxes = [cells.box(*place) for place in np.ndindex(cells.rows, cells.columns)]
            self._fills.extend(zip(boxes, colours.reshape(-1, 4).tolist(), strict=True))

    def image(self, box: Box, colours: NDArray[np.float64]) -> None:
        """Draw an RGBA image (H, W, 4) in a box."""
        self._images.append((box, colours))

    def tile(self, box: Box, colours: NDArray[np.float64]) -> None:
        """Draw an RGBA image (H, W, 4) with a frame."""
        self.image(box, colours)
        self.edge(box)

    def line(self, *points: Point, colour: str = GREY, width: float = 0.6, style: Dashes = "-") -> None:
        """Draw a line through points, `width` in points of type."""
        self._lines.append((points, to_rgba(colour), width, style))

    def arrow(self, *points: Point, colour: str = GREY, width: float = 1.2, style: Dashes = "-") -> None:
        """Draw a line through points with a head at the last one."""
        self.line(*points, colour=colour, width=width, style=style)
        (x0, y0), (x, y) = points[-2:]
        length = float(np.hypot(x - x0, y - y0))
        along, across = (HEAD * (x - x0) / length, HEAD * (y - y0) / length), HEAD / 2.2 / length
        sides = [(x - along[0] - way * (y - y0), y - along[1] + way * (x - x0)) for way in (across, -across)]
        self.line(sides[0], (x, y), sides[1], colour=colour, width=width)

    def rule(self, cells: Cells, colour: str = GREY, width: float = 0.6) -> None:
        """Draw the lines between cells, or only their frame where cells are too small for lines."""
        (left, top), (right, bottom) = (cells.left, cells.top), (cells.right, cells.bottom)
        for i in range(cells.columns + 1) if cells.width >= FINE else (0, cells.columns):
            x = left + i * cells.width
            self.line((x, top), (x, bottom), colour=colour, width=width)
        for i in range(cells.rows + 1) if cells.height >= FINE else (0, cells.rows):
            y = top + i * cells.height
            self.line((left, y), (right, y), colour=colour, width=width)

    def edge(self, box: Box, colour: str = GREY, width: float = 0.6) -> None:
        """Draw the lines around a box."""
        self.rule(Cells(*box[:2], 1, 1, *box[2:]), colour, width)

    def swatch(self, left: float, y: float, words: str, colour: str = "", edge: str = GREY, width: float = 0.6) -> Box:
        """Draw an entry of a legend, a small box (filled, if a colour is given) and its words; return the box."""
        box = (left, y - 0.07, 0.24, 0.14)
        if colour:
            self.fill(box, colour)
        self.edge(box, edge, width)
        self.text((left + 0.32, y), words, size=SMALL)
        return box

    def hatch(self, boxes: Iterable[Box], pattern: str, colour: str = GREY) -> None:
        """Hatch boxes."""
        self._hatches[pattern, colour].extend(boxes)

    def outline(self, box: Box, colour: str, width: float = 2.2) -> None:
        """Frame a box in a colour, with a white edge that keeps the frame visible on dark shades."""
        self._outlines += [(box, to_rgba(PAPER), width + 1.8), (box, to_rgba(colour), width)]

    def text(
        self,
        point: Point,
        text: str,
        colour: str = INK,
        size: float = FONT_SIZE,
        anchor: Anchor = "left",
        bold: bool = False,
    ) -> None:
        """Write lines of text, the middle of the first one at the height of the point; `size` in points of type."""
        x, y = point
        scale = size * POINT / 100
        for number, line in enumerate(text.split("\n")):
            if not line.strip():
                continue
            glyphs, start, end = _glyphs(line, bold)
            shift = {"left": start, "middle": (start + end) / 2, "right": end}[anchor] * scale
            base = y + 36 * scale + number * LINE_SPACING * size * POINT  # 36: half the height of a capital
            vertices = np.asarray(glyphs.vertices) * (scale, -scale) + (x - shift, base)
            self._texts[colour].append(Path(vertices, glyphs.codes))

    def heading(
        self, title: str, *lines: str, first: float = 0.46, apart: float = 0.22, left: float = 0.1, **look: Any
    ) -> None:
        """Write a title and lines below it, the first of them so many inches from the top."""
        self.text((left, 0.2), title, size=11, bold=True)
        for line, words in enumerate(lines):
            self.text((left, first + apart * line), words, **look)

    def text_above(self, cells: Cells, text: str, **options: Any) -> None:
        """Write lines of text over a grid, flush with its left side."""
        lines = text.count("\n") * LINE_SPACING * options.get("size", FONT_SIZE) * POINT
        self.text((cells.left, cells.top - 0.13 - lines), text, **options)

    def sign(self, left: Cells, right: Cells, sign: str = "→", **options: Any) -> None:
        """Write a sign between two grids, at the height of the right one."""
        self.text(((left.right + right.left) / 2, right.middle[1]), sign, **{"size": 12, "anchor": "middle", **options})

    def numbers(self, cells: Cells, texts: Sequence[str], colour: str = INK) -> bool:
        """Write a text into every cell, row by row; if they would be too small to read, write none and return False."""
        longest = max((len(text) for text in texts), default=1)
        room = min(0.62 * cells.height, 0.86 * cells.width / (0.62 * max(longest, 1)))
        size = min(FONT_SIZE, room / POINT)
        if size < LEGIBLE:
            return False
        for place, text in zip(np.ndindex(cells.rows, cells.columns), texts, strict=True):
            self.text(cells.centre(*place), text, colour, size, "middle")
        return True

    def matrix(self, cells: Cells, values: NDArray[Any], scale: Scale) -> bool:
        """Draw a matrix: shades, lines, and its numbers where they can be read; NaN is an empty cell.

        Return whether the numbers were written.
        """
        written = self.numbers(cells, [cell_text(value) for value in values.ravel().tolist()])
        self.paint(cells, scale.colours(values, NUMBER_LIGHTNESS if written else 1.0))
        self.rule(cells)
        return written

    def figure(self) -> Figure:
        """Return the sheet as a figure."""
        figure = new_figure(self.height, self.width)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set(xlim=(0, self.width), ylim=(self.height, 0), autoscale_on=False)
        for (left, top, width, height), pixels in self._images:
            axes.imshow(pixels, extent=(left, left + width, top + height, top), aspect="auto", zorder=1)
        # add_artist: add_patch would spend most of a frame on limits that never change.
        for artist in self._artists():
            axes.add_artist(artist)
        return figure

    def _artists(self) -> Iterator[Artist]:
        if self._fills:
            corners = [_corners(box) for box, _ in self._fills]
            yield PolyCollection(corners, facecolors=[colour for _, colour in self._fills], snap=self._snap, zorder=1.1)
        for (pattern, colour), boxes in self._hatches.items():
            path = Path.make_compound_path(*(Path(_corners(box), closed=True) for box in boxes))
            yield PathPatch(path, hatch=pattern, edgecolor=colour, facecolor="none", linewidth=0, zorder=1.2)
        if self._lines:
            points, colours, widths, styles = zip(*self._lines, strict=True)
            yield LineCollection(points, colors=colours, linewidths=widths, linestyles=list(styles), zorder=1.3)
        if self._outlines:
            frames, edges, widths = zip(*self._outlines, strict=True)
            corners = [_corners(box) for box in frames]
            yield PolyCollection(corners, facecolors="none", edgecolors=edges, linewidths=widths, zorder=1.4)
        for colour, glyphs in self._texts.items():
            path = Path.make_compound_path(*glyphs)
            yield PathPatch(path, facecolor=colour, edgecolor="none", linewidth=0, zorder=1.5)


def _corners(box: Box) -> list[tuple[float, float]]:
    left, top, width, height = box
    corners = [(left, top), (left + width, top), (left + width, top + height), (left, top + height)]
    return [*corners, corners[0]]


@lru_cache(maxsize=4096)
def _glyphs(text: str, bold: bool) -> tuple[Path, float, float]:
    """The outline of a line of text at 100 points, and where it starts and ends."""
    font = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    path = TextPath((0, 0), text, size=100, prop=font)
    vertices, codes = np.asarray(path.vertices), np.asarray(path.codes)
    # Curves of this font reach as far as their control points. get_extents() computes that: nine tenths of the time.
    drawn = vertices[codes != Path.CLOSEPOLY, 0]
    return Path(vertices, codes), float(drawn.min()), float(drawn.max())


def on_host(values: Any, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Return nested lists, a number or an array of any library as a NumPy array; one on a GPU is copied to the host.

    Raises TypeError for what is no array.
    """
    return np.asarray(values if isinstance(values, (list, tuple, range)) else to_host(values), dtype=dtype)


def cell_text(value: float) -> str:
    """Return a number as text for a cell: no decimals for integers or from 100 on, else at most two; "" for NaN."""
    if value != value:
        return ""
    whole = abs(value) >= 100 or float(value).is_integer()
    text = f"{abs(value):.0f}" if whole else f"{abs(value):.2f}".rstrip("0").rstrip(".")
    sign = "−" if value < 0 and text != "0" else ""
    return sign + (text[1:] if text.startswith("0.") else text)


def cells_text(values: Iterable[float]) -> str:
    """Return numbers as they read in cells, in a list."""
    return ", ".join(map(cell_text, values))
