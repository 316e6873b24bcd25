"""Smaller numbers: how far a float format reaches and how fine it is, where to clip, and what a network gets right.

A network in several precisions is drawn over the bytes that its weights take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import frexp, inf, isinf, isnan, log10, nan
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator
from numpy.typing import ArrayLike, NDArray

from unrolled.show.charts import beside, chart, word_ticks
from unrolled.show.picture import Explorer, Picture, Slider
from unrolled.show.sheet import Sheet, on_host
from unrolled.show.style import BLUE, COLOURS, GREEN, GREY, INK, MARKERS, ORANGE, RED, SMALL, styled
from unrolled.show.words import amount, percent, rounded, seconds, titled

# The ruler of a format

NAMES = {(5, 10): "float16", (8, 7): "bfloat16", (8, 23): "float32", (8, 10): "TF32"}
NAMES |= {(4, 3): "FP8 E4M3", (5, 2): "FP8 E5M2", (3, 2): "FP6 E3M2", (2, 3): "FP6 E2M3", (2, 1): "FP4 E2M1"}
LARGEST = {(4, 3): 448.0, (3, 2): 28.0, (2, 3): 7.5, (2, 1): 6.0}
"""Formats without infinity. E4M3 has NaN in its place, the smaller ones end at the largest number (OCP 8-bit floating
point and OCP microscaling formats, 2023)."""
LOW, HIGH = -46, 39  # powers of ten on the ruler: those of float32
SAMPLES = (1e-8, 1e-4, 1 / 3, 1000.5, 70000.0)
LEFT, RIGHT, RULER = 0.45, 7.1, 1.45  # inches
NARROW = 1.1  # inches, below which words at both ends of the numbers would touch


@dataclass(frozen=True)
class Format:
    """A sign, bits of exponent and of fraction, with subnormal numbers as in IEEE 754; small formats lack infinity."""

    exponent: int
    fraction: int

    @property
    def name(self) -> str:
        return NAMES.get((self.exponent, self.fraction), f"A format of {self.bits} bits")

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.fraction

    @property
    def bias(self) -> int:
        return int(2 ** (self.exponent - 1) - 1)

    @property
    def largest(self) -> float:
        ieee = float(2 - 2.0**-self.fraction) * 2.0**self.bias
        return LARGEST.get((self.exponent, self.fraction), ieee)

    @property
    def beyond(self) -> float:
        """What becomes of a larger number."""
        endless = (self.exponent, self.fraction) not in LARGEST
        return inf if endless else nan if self.exponent == 4 else self.largest

    @property
    def normal(self) -> float:
        """The smallest number with all digits."""
        return 2.0 ** (1 - self.bias)

    @property
    def smallest(self) -> float:
        """The smallest number above 0."""
        return self.normal * 2.0**-self.fraction

    @property
    def step(self) -> float:
        """From 1 to the next number."""
        return 2.0**-self.fraction

    def stored(self, value: float) -> float:
        """Return the nearest number of the format, ties to even, or what stands for all beyond the largest."""
        if value == 0 or isinf(value):
            return value
        power = max(frexp(abs(value))[1] - 1, 1 - self.bias)
        unit = 2.0 ** (power - self.fraction)
        found = round(abs(value) / unit) * unit
        return (1 if value > 0 else -1) * (self.beyond if found > self.largest else found)


def float_ruler(exponent: int = 5, fraction: int = 10) -> Explorer:
    """Draw where the numbers of a float format lie, and what becomes of samples, with sliders for both kinds of bits.

    exponent: 2 to 8 bits to begin with; fraction: 1 to 23.
    """
    bits = Slider("bits of exponent", range(2, 9), exponent - 2)
    digits = Slider("bits of fraction", range(1, 24), fraction - 1)
    return Explorer(_draw_ruler, exponent=bits, fraction=digits)


def _draw_ruler(exponent: int, fraction: int) -> Picture:
    kind = Format(exponent, fraction)
    sheet = Sheet(2.45 + 0.26 * len(SAMPLES))
    bits = f"1 bit of sign, {exponent} of exponent, {fraction} of fraction: {kind.bits} bits"
    sheet.heading(kind.name, bits, first=0.5)
    sheet.line((LEFT, RULER), (RIGHT, RULER), colour=GREY, width=1)
    for power in range(-45, 39, 15):
        x = _place(10.0**power)
        sheet.line((x, RULER - 0.06), (x, RULER + 0.06), colour=GREY, width=1)
        sheet.text((x, RULER + 0.2), f"1e{power}", GREY, SMALL, "middle")
    low, normal, high = (_place(value) for value in (kind.smallest, kind.normal, kind.largest))
    sheet.fill((low, RULER - 0.14, normal - low, 0.28), "#F5C566")
    sheet.fill((normal, RULER - 0.14, high - normal, 0.28), "#9CD0EF")
    first, last = f"from {rounded(kind.smallest)}", f"to {kind.largest:.6g}"
    if high - low < NARROW:
        sheet.text(((low + high) / 2, RULER - 0.3), f"{first} {last}", INK, SMALL, "middle")
    else:
        sheet.text((low, RULER - 0.3), first, INK, SMALL, "middle" if low > 1 else "left")
        sheet.text((high, RULER - 0.3), last, INK, SMALL, "middle" if high < 6.5 else "right")
    sheet.text((0.1, RULER + 0.45), "blue: all digits", BLUE, SMALL)
    sheet.text((1.35, RULER + 0.45), "yellow: ever fewer digits", "#8a5a00", SMALL)
    strokes = f"strokes: the samples; from 1 to the next number: {rounded(kind.step)}"
    sheet.text((3.3, RULER + 0.45), strokes, INK, SMALL)
    stored = []
    for row, value in enumerate(SAMPLES):
        y, found = RULER + 0.78 + 0.26 * row, kind.stored(value)
        lost, off = found == 0 or value > kind.largest, ""
        if found != value:
            percentage = f", off by {rounded(abs(found / value - 1) * 100)} %"
            off = ": gone" if found == 0 else ": too large" if lost else percentage
        words = f"is stored as {_number(found)}"
        stored.append(f"{_number(value)} {words}")
        sheet.text((0.1, y), _number(value), INK, SMALL)
        sheet.text((1.5, y), f"{words}{off}", RED if lost else INK, SMALL, bold=lost)
        if LOW <= log10(value) <= HIGH:
            sheet.line((_place(value), RULER - 0.14), (_place(value), RULER + 0.14), colour=ORANGE if lost else INK)
    reach = f"from {rounded(kind.smallest)} (all digits from {rounded(kind.normal)}) to {kind.largest:.6g}"
    bits = f"{exponent} bits of exponent and {fraction} of fraction"
    alt = f"{kind.name}: {bits}. Numbers {reach}; from 1 to the next {rounded(kind.step)}. {'; '.join(stored)}."
    return Picture(sheet.figure(), alt)


def _place(value: float) -> float:
    return LEFT + (RIGHT - LEFT) * (log10(value) - LOW) / (HIGH - LOW)


def _number(value: float) -> str:
    return "infinity" if isinf(value) else "NaN" if isnan(value) else f"{value:.7g}"


# Where to clip

LIMITS = 20  # stops of the slider, from a fifth of the largest magnitude on


@dataclass(frozen=True)
class Values:
    """Values that become whole numbers from -levels to levels."""

    values: NDArray[np.float64]
    levels: int

    @cached_property
    def limits(self) -> list[float]:
        """Where the slider can stand."""
        return [float(limit) for limit in np.abs(self.values).max() * np.linspace(0.05, 1, LIMITS)]

    def errors(self, limit: float) -> tuple[float, float]:
        """Return the mean squared errors of rounding, where nothing is clipped, and of clipping, over all values."""
        scale = limit / self.levels
        clipped = np.clip(self.values, -limit, limit)
        stored = np.rint(clipped / scale) * scale
        off, beyond = (self.values - stored) ** 2, np.abs(self.values) > limit
        return float(off[~beyond].sum() / off.size), float(off[beyond].sum() / off.size)

    @cached_property
    def best(self) -> float:
        """The limit with the smallest error of those that the slider has."""
        return min(self.limits, key=lambda limit: sum(self.errors(limit)))


def clipping(values: ArrayLike, bits: int = 8) -> Explorer:
    """Draw a histogram of values with a slider for the limit beyond which they are clipped, and the error by kind.

    values: at least two different finite numbers, any shape. bits: 2 to 8, of the whole numbers.
    """
    found = on_host(values, np.float64).ravel()
    known = Values(found, 2 ** (bits - 1) - 1)
    return Explorer(_draw_clipping, known, limit=Slider("limit", known.limits, LIMITS - 1, rounded))


def _draw_clipping(known: Values, limit: float) -> Picture:
    figure, axes = chart(3.6, 0.9, 2.75, top=0.35)
    most = known.limits[-1]
    axes.hist(known.values, bins=80, range=(-most, most), color=BLUE, log=True)
    for side in (-limit, limit):
        axes.axvline(side, color=RED, linewidth=2)
    for side in (-known.best, known.best):
        axes.axvline(side, color=GREEN, linewidth=1.2, linestyle="--")
    axes.set(xlabel="value", ylabel="how many (log scale)", title=f"Clipped at ±{rounded(limit)}")
    inner = figure.add_axes((0.74, 0.24, 0.22, 0.56))
    rounding, clipped = known.errors(limit)
    found = [sum(known.errors(each)) for each in known.limits]
    low, high = min(found) / 300, max(found) * 2
    inner.set(yscale="log", ylim=(low, high), xlim=(-0.6, 1.6), title="mean squared error")
    for place, (error, colour, marker) in enumerate(((rounding, BLUE, "o"), (clipped, ORANGE, "s"))):
        at = (place, max(error, low))
        inner.plot(*at, marker, color=colour, markeredgecolor=INK, markersize=9, clip_on=False)
        inner.annotate(rounded(error), at, (0, 9), textcoords="offset points", ha="center", size=SMALL)
    inner.set_xticks([0, 1], ["rounding", "clipping"])
    figure.text(0.7, 0.05, f"dashed: the best limit, ±{rounded(known.best)}", size=SMALL, color=INK)
    beyond = float((np.abs(known.values) > limit).mean())
    alt = (
        f"Histogram of {known.values.size:,} values from {rounded(float(known.values.min()))} to "
        f"{rounded(float(known.values.max()))}, clipped at {rounded(limit)}: {percent(beyond)} lie beyond. "
        f"Mean squared error {rounded(rounding)} by rounding and {rounded(clipped)} by clipping. "
        f"The best limit is {rounded(known.best)}."
    )
    return Picture(figure, alt)


# A network in several precisions

Row = Mapping[str, Any]


@styled()
def precision_front(rows: Sequence[Row], title: str = "", like: Sequence[Row] = ()) -> Picture:
    """Draw accuracy over bytes for each row, and say the seconds beside its name.

    rows: mappings with "name", "accuracy" from 0 to 1, "bytes" and "seconds" above 0, and, if known, "interval": low
    and high of the accuracy. like: the rows of an earlier picture, whose marks the same forms keep here.
    """
    figure, axes = chart(max(3.2, 0.5 * len(rows) + 1.2), 0.8, 2.9, top=0.35 if title else 0.15)
    accuracies = [float(share) for row in rows for share in row.get("interval", (row["accuracy"],))]
    margin = max(0.004, 0.15 * (max(accuracies) - min(accuracies)))
    known = any("interval" in row for row in rows)
    axes.set(xscale="log", xlabel="bytes of all weights (log scale)", title=title)
    axes.set_ylabel("images right; lines: 95 % intervals" if known else "images right")
    axes.set(xlim=(min(row["bytes"] for row in rows) / 1.6, max(row["bytes"] for row in rows) * 1.6))
    axes.set(ylim=(min(accuracies) - margin, min(1.0, max(accuracies)) + margin))
    summaries = []
    for place, (number, row) in enumerate(zip(marks_of(rows, like), rows, strict=True)):
        mark = number % len(MARKERS)
        look: dict[str, Any] = {"color": COLOURS[mark], "markeredgecolor": INK}
        x = row["bytes"] * 1.06 ** sum(other["bytes"] == row["bytes"] for other in rows[:place])  # side by side
        axes.plot(x, row["accuracy"], MARKERS[mark], clip_on=False, zorder=3, markersize=9, **look)
        between = ""
        if "interval" in row:
            axes.plot([x, x], row["interval"], color=COLOURS[mark], linewidth=1.5, zorder=2)
            between = f" ({' to '.join(map(percent, row['interval']))})"
        right, took = percent(float(row["accuracy"])), seconds(float(row["seconds"]))
        words, y = f"{row['name']}\n{right}, {took}", 0.96 - 0.96 * place / max(len(rows), 6)
        beside(axes, [1.07], 1.12, y, words, MARKERS[mark], markersize=8, **look)
        summaries.append(f"{row['name']}: {right} right{between}, {amount(float(row['bytes']), 'B')}, {took}")
    word_ticks(axes, "x", lambda value: amount(value, "B"))
    axes.xaxis.set_major_locator(LogLocator(10, subs=(1.0, 3.0)))  # all forms lie within a factor of 10 to 40
    word_ticks(axes, "y", percent, log=False)
    axes.grid(True, axis="y")
    return Picture(figure, titled(title, f"{'; '.join(summaries)}."))


def marks_of(rows: Sequence[Row], like: Sequence[Row] = ()) -> list[int]:
    """Return a number for each row: the place in `like` of a name that its own begins with, else the next one free."""
    names = [str(row["name"]) for row in like]
    marks: list[int] = []
    for row in rows:
        known = (place for place, name in enumerate(names) if str(row["name"]).startswith(name) and place not in marks)
        free = (place for place in range(len(names), len(names) + len(rows)) if place not in marks)
        marks.append(next(chain(known, free)))
    return marks
