"""Predictions against measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unrolled.show.charts import beside, chart, equals, word_ticks
from unrolled.show.picture import Picture
from unrolled.show.style import COLOURS, GREY, INK, MARKERS, SMALL, styled
from unrolled.show.words import count_of, number, rounded, times

CLOSE = 2.0  # a guess within this factor is close


@styled()
def guesses(rows: Sequence[Mapping[str, Any]]) -> Picture:
    """Draw guesses against measurements, both as a number of times, on log axes with the line of perfect guesses.

    rows: mappings with "name", "guess" and "measured", both above 0, and perhaps "where", as in "modelled, T4": such a
    mark is hollow. ValueError for no rows or values not above 0.
    """
    if not rows or min(min(float(row["guess"]), float(row["measured"])) for row in rows) <= 0:
        raise ValueError("rows must hold at least one guess, with guess and measured above 0")
    figure, axes = chart(max(3.6, 0.42 * len(rows) + 1.0), 0.75, 3.6, top=0.15)
    values = [float(row[key]) for row in rows for key in ("guess", "measured")]
    equals(axes, min(values) / 2.2, max(values) * 2.2, CLOSE, color=GREY, linewidth=1.2)
    found = "modelled or measured" if any(row.get("where") for row in rows) else "measured"
    axes.set(xlabel="guess (times)", ylabel=f"{found} (times)")
    word_ticks(axes, "x", number)
    word_ticks(axes, "y", number)
    axes.text(0.03, 0.96, "more than guessed", transform=axes.transAxes, va="top", size=SMALL, color=GREY)
    axes.text(0.97, 0.04, "less than guessed", transform=axes.transAxes, ha="right", size=SMALL, color=GREY)
    for i, row in enumerate(rows):
        look: dict[str, Any] = {"color": COLOURS[(i + i // 8) % 8], "markeredgecolor": INK, "markersize": 9}
        look |= {"markerfacecolor": "white", "markeredgecolor": look["color"]} if row.get("where") else {}
        marker, y = MARKERS[i % 8], 0.97 - i * 0.97 / max(len(rows), 7)
        axes.plot(float(row["guess"]), float(row["measured"]), marker, zorder=3, **look)
        beside(axes, [1.07], 1.12, y, f"{row['name']}\n{verdict(row)}", marker, **look)
    return Picture(figure, _alt(rows))


def verdict(row: Mapping[str, Any]) -> str:
    """Return how far off a guess was, as in "guessed 40, measured 9: 4.4 times too high"."""
    guess, measured = float(row["guess"]), float(row["measured"])
    factor = max(guess, measured) / min(guess, measured)
    off = "just right" if factor < 1.1 else f"{times(factor)} too {'high' if guess > measured else 'low'}"
    seen = f"{rounded(measured)} ({row['where']})" if row.get("where") else f"measured {rounded(measured)}"
    return f"guessed {rounded(guess)}, {seen}: {off}"


def _alt(rows: Sequence[Mapping[str, Any]]) -> str:
    close = sum(1 / CLOSE <= float(row["guess"]) / float(row["measured"]) <= CLOSE for row in rows)
    lines = "; ".join(f"{row['name']}: {verdict(row)}" for row in rows)
    count = count_of(len(rows), "prediction")
    return f"{count} against measurements, in times: {lines}. {close} within a factor of 2."
