"""Amdahl's law: the part that stays slow caps the whole."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from unrolled import ops
from unrolled.show.explorer import Explorer, Slider
from unrolled.show.sheet import Sheet
from unrolled.show.style import BLUE, INK, ORANGE, PALE, RED, SMALL
from unrolled.show.words import number, percent

FACTORS = (1, 2, 4, 8, 16, 64, 1024)
TICKS = (1, 10, 100, 1000)
LARGEST = 1024
PERCENTS = (*range(0, 100, 5), 99, 99.9, 100)
LEFT, RIGHT, TOP, BOTTOM = 0.75, 3.85, 0.45, 2.95  # inches: the frame of the curve
BARS, BAR_STEP, BAR_WIDTH = 4.75, 0.35, 2.6


def amdahl(fraction: float = 0.9) -> Explorer:
    """Draw the speedup of a whole of which `fraction` of the time (0 to 1) is made faster, and the time that is left.

    Source: G. Amdahl, 1967: speedup = 1 / ((1 - fraction) + fraction / factor). ValueError for another fraction.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be from 0 to 1, got {fraction}")
    values = sorted({*(value / 100 for value in PERCENTS), fraction})
    slider = Slider("share of the time that is made faster", values, values.index(fraction), percent)
    return Explorer(_draw, _alt, fraction=slider)


def _draw(fraction: float) -> Figure:
    sheet = Sheet(3.5)
    _draw_frame(sheet)
    _draw_curves(sheet, fraction)
    _draw_bars(sheet, fraction)
    return sheet.figure()


def _point(factor: float, speedup: float) -> tuple[float, float]:
    """Where a point of the curve lies: both axes logarithmic, from 1 to 1024."""
    x, y = (math.log(value) / math.log(LARGEST) for value in (factor, speedup))
    return LEFT + x * (RIGHT - LEFT), BOTTOM - y * (BOTTOM - TOP)


def _draw_frame(sheet: Sheet) -> None:
    for tick in TICKS:
        (x, _), (_, y) = _point(tick, 1), _point(1, tick)
        sheet.line((x, TOP), (x, BOTTOM), colour=PALE)
        sheet.line((LEFT, y), (RIGHT, y), colour=PALE)
        sheet.text((x, BOTTOM + 0.14), number(tick), size=SMALL, anchor="middle")
        sheet.text((LEFT - 0.08, y), number(tick), size=SMALL, anchor="right")
    sheet.line((LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM), width=0.8)
    sheet.text(((LEFT + RIGHT) / 2, BOTTOM + 0.38), "speedup of that part (times)", anchor="middle")
    sheet.text((0.1, 0.2), "speedup of the whole (times)")


def _draw_curves(sheet: Sheet, fraction: float) -> None:
    factors = np.geomspace(1, LARGEST, 60).tolist()
    sheet.line(_point(1, 1), _point(LARGEST, LARGEST), width=1.2, style=":")
    sheet.text(_point(9, 22), "all of it faster", "#555555", SMALL, "right")
    sheet.line(*(_point(factor, ops.amdahl_speedup(fraction, factor)) for factor in factors), colour=BLUE, width=2)
    if fraction < 1:
        limit = 1 / (1 - fraction)
        y = _point(1, min(limit, LARGEST))[1]
        sheet.line((LEFT, y), (RIGHT, y), colour=RED, width=1.4, style="--")
        below = limit > 300
        text = f"limit: {number(round(limit, 1))} times"
        sheet.text((RIGHT, y + (0.14 if below else -0.12)), text, RED, SMALL, "right", bold=True)


def _draw_bars(sheet: Sheet, fraction: float) -> None:
    sheet.text((BARS - 0.7, 0.2), "time left, hatched where it is unchanged")
    for i, factor in enumerate(FACTORS):
        top = TOP + 0.02 + i * BAR_STEP
        slow, fast = (1 - fraction) * BAR_WIDTH, fraction / factor * BAR_WIDTH
        sheet.fill((BARS, top, slow, 0.25), ORANGE)
        sheet.hatch([(BARS, top, slow, 0.25)] if slow else [], "//", INK)
        sheet.fill((BARS + slow, top, fast, 0.25), BLUE)
        sheet.text((BARS - 0.08, top + 0.125), f"{number(factor)} ×", size=SMALL, anchor="right")
        share = 1 / ops.amdahl_speedup(fraction, factor)
        end, middle = BARS + slow + fast, top + 0.125
        if share <= 0.8:
            sheet.text((end + 0.06, middle), percent(share), size=SMALL)
        elif fast >= 0.6:
            sheet.text((end - 0.06, middle), percent(share), "#FFFFFF", SMALL, "right")
    sheet.line((BARS, TOP), (BARS, BOTTOM), width=0.8)
    sheet.text((BARS + BAR_WIDTH / 2, BOTTOM + 0.38), "share of the time before", anchor="middle")


def _alt(fraction: float) -> str:
    limit = f"never more than {number(round(1 / (1 - fraction), 1))} times" if fraction < 1 else "without a limit"
    points = "; ".join(
        f"{factor} times gives {number(round(ops.amdahl_speedup(fraction, factor), 1))}" for factor in (2, 16, 1024)
    )
    return (
        f"Amdahl's law: {percent(fraction)} of the time is made faster, {percent(1 - fraction)} stays. The whole "
        f"becomes faster by less than the part: {points}; {limit}."
    )
