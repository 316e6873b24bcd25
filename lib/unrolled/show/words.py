"""Numbers as people say them: for labels and text alternatives."""

from __future__ import annotations

import math
from collections.abc import Sequence

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def number(value: float) -> str:
    """Return a number as text, thousands separated: "1,797" or "0.0123".

    From 0.001 to 10^15 there is no exponent; integers are written in full, other numbers to three significant digits or
    to the whole number, whichever is more.
    """
    if not math.isfinite(value):
        return "infinity" if value > 0 else "-infinity" if value < 0 else "not a number"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if 1e-3 <= abs(value) < 1e15:
        digits = max(0, 2 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{digits}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.2e}"


def rounded(value: float, digits: int = 3) -> str:
    """Return a number as text, in so many significant digits."""
    return number(float(f"{value:.{digits}g}"))


def seconds(value: float) -> str:
    """Return a duration in seconds as text: "3.2 ms", "24 s", "30 min", "2.5 h"."""
    if value >= 7200:
        return f"{number(value / 3600)} h"
    if value >= 600:
        return f"{number(value / 60)} min"
    if value < 1e-12:  # what a difference of times leaves
        return "0 s"
    size, unit = next(((size, unit) for size, unit in _TIMES if value >= 0.9995 * size), _TIMES[-1])
    return f"{rounded(value / size)} {unit}"


def amount(value: float, unit: str) -> str:
    """Return a quantity with an SI prefix, which counts in thousands: amount(2.5e9, "flop/s") is "2.5 Gflop/s"."""
    size, prefix = next(((size, prefix) for size, prefix in _PREFIXES if abs(value) >= 0.9995 * size), _PREFIXES[-1])
    return f"{rounded(value / size)} {prefix}{unit}"


def times(ratio: float) -> str:
    """Return a factor as text: "412 times", "1.7 times"."""
    return f"{rounded(ratio, 3 if ratio >= 10 else 2)} times"


def percent(share: float) -> str:
    """Return a share of 1 as a percentage: "90 %", "99.9 %"."""
    return f"{rounded(share * 100)} %"


def count_of(count: int, noun: str) -> str:
    """Return a count with its noun: "1 cell", "12 cells", "12 launches", "12 copies"."""
    plural = f"{noun}es" if noun.endswith(("ch", "ss")) else f"{noun}s".replace("ys", "ies")
    return f"{count:,} {noun if count == 1 else plural}"


def titled(title: str, text: str, mark: str = ".") -> str:
    """Return a text after its title, if it has one."""
    return f"{title}{mark} {text}" if title else text


def listing(items: Sequence[str]) -> str:
    """Return items as they stand in a sentence: "a, b and c"; "none" if there are none."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else "none"


def span(noun: str, first: int, count: int) -> str:
    """Return neighbours by their indices: "row 3", "rows 3 to 5"."""
    return f"{noun} {first}" if count == 1 else f"{noun}s {first} to {first + count - 1}"
