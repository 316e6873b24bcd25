"""Amdahl's law: what speeding up a part does to the whole."""

from __future__ import annotations

from math import inf


def amdahl_speedup(fraction: float, factor: float) -> float:
    """Return the speedup of a whole of which `fraction` runs `factor` times faster.

    It is 1 / ((1 - fraction) + fraction / factor). Source: G. Amdahl, "Validity of the single processor approach to
    achieving large scale computing capabilities", AFIPS 1967.
    Raises ValueError unless 0 <= fraction <= 1 and factor > 0.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction is {fraction}; expected a number from 0 to 1")
    if not factor > 0:
        raise ValueError(f"factor is {factor}; expected a number above 0")
    time_left = (1 - fraction) + fraction / factor
    return 1 / time_left if time_left else inf
