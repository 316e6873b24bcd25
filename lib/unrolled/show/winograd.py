"""Winograd's F(2, 3) step by step: two results of three weights from four multiplications."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unrolled.ops.winograd import PIXELS, RESULTS, WEIGHTS
from unrolled.show.picture import Explorer, Picture, Slider
from unrolled.show.sheet import Cells, Dashes, Sheet, cell_text, cells_text, on_host
from unrolled.show.style import BLUE, GREY, INK, PALE, RED, SMALL

CELL = 0.62, 0.3  # inches
TOP, PITCH = 1.75, 0.5
STEPS = ("the direct way", "sums of pixels", "sums of weights", "four products", "two results")
COLUMNS = (
    ("pixels d", 0.35),
    ("sums of pixels", 1.85),
    ("sums of weights", 3.55),
    ("products m", 5.1),
    ("results y", 6.55),
)
PIXEL, SUM, WEIGHT, PRODUCT, RESULT = (left for _, left in COLUMNS)
SIGNS: tuple[tuple[str, str, Dashes], ...] = (("added", BLUE, "-"), ("subtracted", RED, "--"))
Values = NDArray[np.float64]
Rows = Sequence[Sequence[float]]


def filtered(pixels: Values, weights: Values) -> dict[str, Values]:
    """Return what F(2, 3) makes of four pixels and three weights, by name, in the order of its steps."""
    sums, mixed = np.array(PIXELS[2]) @ pixels, np.array(WEIGHTS[2]) @ weights
    made = {"pixels": pixels, "sums of pixels": sums, "sums of weights": mixed, "products": sums * mixed}
    return {**made, "results": np.array(RESULTS[2]) @ made["products"]}


def winograd_1d(pixels: ArrayLike, weights: ArrayLike) -> Explorer:
    """Draw how F(2, 3) makes two results of four pixels and three weights with four multiplications, step by step.

    pixels: 4 numbers; weights: 3.
    """
    given = on_host(pixels, np.float64), on_host(weights, np.float64)
    slider = Slider("step", range(len(STEPS)), len(STEPS) - 1, lambda step: f"{step}: {STEPS[step]}", play=True)
    return Explorer(_draw, filtered(*given), given[1], step=slider)


def _draw(made: dict[str, Values], weights: Values, step: int) -> Picture:
    sheet = Sheet(TOP + 4 * PITCH + 0.5)
    summary = _summary(made, weights, step)
    sheet.heading(f"Step {step}: {STEPS[step]}", *summary, first=0.48, apart=0.24, left=PIXEL)
    _joined(sheet, PIXELS[2], PIXEL, SUM, step >= 1)
    _joined(sheet, RESULTS[2], PRODUCT, RESULT, step >= 4)
    for first, (values, (name, left)) in enumerate(zip(made.values(), COLUMNS, strict=True)):
        sheet.text((left, TOP - 0.22), name, INK if step >= first else GREY, SMALL, bold=step == first)
        for row, value in enumerate(values.tolist()):
            cell = Cells(left, _place(row, len(values)) - CELL[1] / 2, 1, 1, *CELL)
            sheet.fill(cell.frame, "#FBEBCB" if step == first else "#FFFFFF")
            sheet.rule(cell)
            sheet.numbers(cell, [cell_text(value) if step >= first else ""])
    for row in range(4):
        for x, sign in (((SUM + CELL[0] + WEIGHT) / 2, "×"), ((WEIGHT + CELL[0] + PRODUCT) / 2, "=")):
            sheet.text((x, _place(row, 4)), sign, INK if step >= 3 else PALE, 12, "middle")
    x, y = PIXEL, TOP + 4 * PITCH + 0.28
    for words, colour, style in SIGNS:
        sheet.line((x, y), (x + 0.35, y), colour=colour, width=1.4, style=style)
        sheet.text((x + 0.43, y), words, size=SMALL)
        x += 1.5
    numbers = "; ".join(f"{name} {cells_text(values)}" for name, values in [*made.items()][: step + 1])
    sentences = " ".join(text if text.endswith(".") else f"{text}." for text in summary)
    return Picture(sheet.figure(), f"F(2, 3), step {step}: {STEPS[step]}. {sentences} {numbers}.")


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


def _summary(made: dict[str, Values], weights: Values, step: int) -> list[str]:
    """What is computed in this step, with its numbers."""
    d, w = (
        [f"({cell_text(value)})" if value < 0 else cell_text(value) for value in values]
        for values in (made["pixels"], weights)
    )
    listed, y = cells_text(weights), [cell_text(value) for value in made["results"]]
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
