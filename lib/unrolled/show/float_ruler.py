"""How far the numbers of a float format reach, and how fine they are, by bits of exponent and fraction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp, inf, isinf, log10

from matplotlib.figure import Figure

from unrolled.show.picture import Explorer, Slider
from unrolled.show.sheet import Sheet
from unrolled.show.style import BLUE, GREY, INK, ORANGE, RED, SMALL
from unrolled.show.words import rounded

NAMES = {
    (5, 10): "float16",
    (8, 7): "bfloat16",
    (8, 23): "float32",
    (8, 10): "TF32",
    (4, 3): "FP8 E4M3",
    (5, 2): "FP8 E5M2",
}
LOW, HIGH = -46, 39  # powers of ten on the ruler: those of float32
SAMPLES = (1e-8, 1e-4, 1 / 3, 1000.5, 70000.0)
LEFT, RIGHT, RULER = 0.45, 7.1, 1.45  # inches


@dataclass(frozen=True)
class Format:
    """A sign, bits of exponent and of fraction, with infinities and subnormal numbers, as in IEEE 754."""

    exponent: int
    fraction: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.fraction

    @property
    def bias(self) -> int:
        return int(2 ** (self.exponent - 1) - 1)

    @property
    def largest(self) -> float:
        return float(2 - 2.0**-self.fraction) * 2.0**self.bias

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
        """Return the nearest number of the format, ties to even; beyond the largest it is infinite."""
        if value == 0 or isinf(value):
            return value
        power = max(frexp(abs(value))[1] - 1, 1 - self.bias)
        unit = 2.0 ** (power - self.fraction)
        found = round(abs(value) / unit) * unit
        return (1 if value > 0 else -1) * (inf if found > self.largest else found)


def float_ruler(exponent: int = 5, fraction: int = 10, samples: Sequence[float] = SAMPLES) -> Explorer:
    """Draw where the numbers of a float format lie, and what becomes of samples, with sliders for both kinds of bits.

    exponent: 2 to 8 bits to begin with; fraction: 1 to 23. ValueError for others.
    """
    if not (2 <= exponent <= 8 and 1 <= fraction <= 23):
        raise ValueError(f"exponent must be 2 to 8 and fraction 1 to 23, got {exponent} and {fraction}")
    return Explorer(
        _draw,
        _alt,
        tuple(samples),
        exponent=Slider("bits of exponent", range(2, 9), exponent - 2),
        fraction=Slider("bits of fraction", range(1, 24), fraction - 1),
    )


def _draw(samples: tuple[float, ...], exponent: int, fraction: int) -> Figure:
    kind = Format(exponent, fraction)
    sheet = Sheet(2.45 + 0.26 * len(samples))
    sheet.text((0.1, 0.2), _title(kind), size=11, bold=True)
    sheet.text((0.1, 0.5), f"1 bit of sign, {exponent} of exponent, {fraction} of fraction: {kind.bits} bits")
    sheet.line((LEFT, RULER), (RIGHT, RULER), colour=GREY, width=1)
    for power in range(-45, 39, 15):
        x = _place(10.0**power)
        sheet.line((x, RULER - 0.06), (x, RULER + 0.06), colour=GREY, width=1)
        sheet.text((x, RULER + 0.2), f"1e{power}", GREY, SMALL, "middle")
    low, normal, high = (_place(value) for value in (kind.smallest, kind.normal, kind.largest))
    sheet.fill((low, RULER - 0.14, normal - low, 0.28), "#F5C566")
    sheet.fill((normal, RULER - 0.14, high - normal, 0.28), "#9CD0EF")
    sheet.text((low, RULER - 0.3), f"from {rounded(kind.smallest)}", INK, SMALL, "middle" if low > 1 else "left")
    sheet.text((high, RULER - 0.3), f"to {kind.largest:.6g}", INK, SMALL, "middle" if high < 6.5 else "right")
    sheet.text((0.1, RULER + 0.45), "blue: all digits", BLUE, SMALL)
    sheet.text((1.35, RULER + 0.45), "yellow: ever fewer digits", "#8a5a00", SMALL)
    sheet.text(
        (3.3, RULER + 0.45), f"strokes: the samples; from 1 to the next number: {rounded(kind.step)}", INK, SMALL
    )
    for row, value in enumerate(samples):
        y, found = RULER + 0.78 + 0.26 * row, kind.stored(value)
        lost = found == 0 or isinf(found)
        sheet.text((0.1, y), f"{_number(value)}", INK, SMALL)
        sheet.text(
            (1.5, y), f"is stored as {_number(found)}{_off(value, found)}", RED if lost else INK, SMALL, bold=lost
        )
        if LOW <= log10(value) <= HIGH:
            sheet.line((_place(value), RULER - 0.14), (_place(value), RULER + 0.14), colour=ORANGE if lost else INK)
    return sheet.figure()


def _place(value: float) -> float:
    return LEFT + (RIGHT - LEFT) * (log10(value) - LOW) / (HIGH - LOW)


def _title(kind: Format) -> str:
    name = NAMES.get((kind.exponent, kind.fraction))
    return f"{name}" if name else f"A format of {kind.bits} bits"


def _number(value: float) -> str:
    return "infinity" if isinf(value) else f"{value:.7g}"


def _off(value: float, found: float) -> str:
    if found == value:
        return ""
    if found == 0:
        return ": gone"
    return ": too large" if isinf(found) else f", off by {rounded(abs(found / value - 1) * 100)} %"


def _alt(samples: tuple[float, ...], exponent: int, fraction: int) -> str:
    kind = Format(exponent, fraction)
    stored = "; ".join(f"{_number(value)} is stored as {_number(kind.stored(value))}" for value in samples)
    reach = f"from {rounded(kind.smallest)} (all digits from {rounded(kind.normal)}) to {kind.largest:.6g}"
    bits = f"{exponent} bits of exponent and {fraction} of fraction"
    return f"{_title(kind)}: {bits}. Numbers {reach}; from 1 to the next {rounded(kind.step)}. {stored}."
