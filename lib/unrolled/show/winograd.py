"""Winograd's F(2, 3) step by step: two results of three weights from four multiplications."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from unrolled.ops.winograd import PIXELS, RESULTS, WEIGHTS
from unrolled.show.picture import Explorer, Slider
from unrolled.show.sheet import Cells, Dashes, Sheet, cell_text, on_host
from unrolled.show.style import BLUE, GREY, INK, PALE, RED, SMALL

CELL = 0.62, 0.3  # inches
TOP, PITCH = 1.75, 0.5
PIXEL, SUM, WEIGHT, PRODUCT, RESULT = 0.35, 1.85, 3.55, 5.1, 6.55  # inches from the left
STEPS = ("the direct way", "sums of pixels", "sums of weights", "four products", "two results")
SIGNS: tuple[tuple[str, str, Dashes], ...] = (("added", BLUE, "-"), ("subtracted", RED, "--"))
Rows = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Filtering:
    """Four pixels and three weights, and what F(2, 3) makes of them."""

    pixels: NDArray[np.float64]
    weights: NDArray[np.float64]

    @cached_property
    def sums(self) -> NDArray[np.float64]:
        """Of pixels: (4,)."""
        return np.array(PIXELS[2]) @ self.pixels

    @cached_property
    def mixed(self) -> NDArray[np.float64]:
        """Sums of weights: (4,)."""
        return np.array(WEIGHTS[2]) @ self.weights

    @property
    def products(self) -> NDArray[np.float64]:
        return self.sums * self.mixed

    @property
    def results(self) -> NDArray[np.float64]:
        return np.array(RESULTS[2]) @ self.products


def winograd_1d(pixels: ArrayLike, weights: ArrayLike) -> Explorer:
    """Draw how F(2, 3) makes two results of four pixels and three weights with four multiplications, step by step.

    pixels: 4 numbers; weights: 3. ValueError for other shapes, and for what is not finite.
    """
    found = Filtering(on_host(pixels, np.float64), on_host(weights, np.float64))
    for name, values, size in (("pixels", found.pixels, 4), ("weights", found.weights, 3)):
        if values.shape != (size,) or not np.isfinite(values).all():
            raise ValueError(f"{name} must be {size} finite numbers, got {values.tolist()!r:.60}")
    slider = Slider("step", range(len(STEPS)), len(STEPS) - 1, lambda step: f"{step}: {STEPS[step]}", play=True)
    return Explorer(_draw, _alt, found, step=slider)


def _draw(found: Filtering, step: int) -> Figure:
    sheet = Sheet(TOP + 4 * PITCH + 0.5)
    sheet.heading(f"Step {step}: {STEPS[step]}", *_summary(found, step), first=0.48, apart=0.24, left=PIXEL)
    _joined(sheet, PIXELS[2], PIXEL, SUM, step >= 1)
    _joined(sheet, RESULTS[2], PRODUCT, RESULT, step >= 4)
    columns = (
        ("pixels d", PIXEL, found.pixels, 0),
        ("sums of pixels", SUM, found.sums, 1),
        ("sums of weights", WEIGHT, found.mixed, 2),
        ("products m", PRODUCT, found.products, 3),
        ("results y", RESULT, found.results, 4),
    )
    for name, left, values, first in columns:
        shown = values if step >= first else np.full(len(values), np.nan)
        sheet.text((left, TOP - 0.22), name, INK if step >= first else GREY, SMALL, bold=step == first)
        for row, value in enumerate(shown):
            cell = Cells(left, _place(row, len(values)) - CELL[1] / 2, 1, 1, *CELL)
            sheet.fill(cell.frame, "#FBEBCB" if step == first else "#FFFFFF")
            sheet.rule(cell)
            sheet.numbers(cell, [cell_text(value)])
    for row in range(4):
        y = _place(row, 4)
        sheet.text(((SUM + CELL[0] + WEIGHT) / 2, y), "×", INK if step >= 3 else PALE, 12, "middle")
        sheet.text(((WEIGHT + CELL[0] + PRODUCT) / 2, y), "=", INK if step >= 3 else PALE, 12, "middle")
    x, y = PIXEL, TOP + 4 * PITCH + 0.28
    for words, colour, style in SIGNS:
        sheet.line((x, y), (x + 0.35, y), colour=colour, width=1.4, style=style)
        sheet.text((x + 0.43, y), words, size=SMALL)
        x += 1.5
    return sheet.figure()


def _place(row: int, rows: int) -> float:
    """The height of the middle of a cell: fewer than four stand in the middle."""
    return TOP + (row + (4 - rows) / 2 + 0.5) * PITCH


def _joined(sheet: Sheet, matrix: Rows, start: float, end: float, now: bool) -> None:
    """Lines from what is added or subtracted to each sum."""
    for row, factors in enumerate(matrix):
        for column, factor in enumerate(factors):
            if factor:
                _, colour, style = SIGNS[factor < 0]
                places = (start + CELL[0], _place(column, 4)), (end, _place(row, len(matrix)))
                sheet.line(*places, colour=colour if now else PALE, width=1.4, style=style)


def _summary(found: Filtering, step: int) -> list[str]:
    """What is computed in this step, with its numbers."""
    d, w = ([_signed(value) for value in values] for values in (found.pixels, found.weights))
    listed = ", ".join(cell_text(value) for value in found.weights)
    y = [cell_text(value) for value in found.results]
    if step == 0:
        terms = [" + ".join(f"{d[at + k]} · {w[k]}" for k in range(3)) for at in range(2)]
        return [f"weights w = {listed}", f"y0 = {terms[0]} = {y[0]}", f"y1 = {terms[1]} = {y[1]}: 6 products"]
    if step == 1:
        return ["d0 − d2, d1 + d2, d2 − d1 and d1 − d3: no multiplication yet"]
    if step == 2:
        sums = "w0, (w0 + w1 + w2) / 2, (w0 − w1 + w2) / 2 and w2"
        return [f"of w = {listed}: {sums}", "once for all pixels of all images"]
    if step == 3:
        return ["each sum of pixels times its sum of weights: 4 multiplications"]
    return [
        f"y0 = m0 + m1 + m2 = {y[0]} and y1 = m1 − m2 − m3 = {y[1]}",
        "The same as the direct way, with 4 multiplications in place of 6.",
    ]


def _signed(value: float) -> str:
    return f"({cell_text(value)})" if value < 0 else cell_text(value)


def _alt(found: Filtering, step: int) -> str:
    kept = (("pixels", found.pixels), ("sums of pixels", found.sums), ("sums of weights", found.mixed))
    shown = [*kept[: 1 + min(step, 2)], *([("products", found.products)] if step >= 3 else [])]
    shown += [("results", found.results)] if step == 4 else []
    values = "; ".join(f"{name} {', '.join(cell_text(value) for value in values)}" for name, values in shown)
    said = [text if text.endswith(".") else f"{text}." for text in _summary(found, step)]
    return f"F(2, 3), step {step}: {STEPS[step]}. {' '.join(said)} {values}."
