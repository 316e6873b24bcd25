"""What was said beforehand, by a model or by a learner, against what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from unrolled.show.charts import beside, chart, spread, word_ticks
from unrolled.show.picture import Picture
from unrolled.show.style import COLOURS, GREY, INK, MARKERS, PALE, SMALL, styled
from unrolled.show.words import count_of, number, rounded, seconds, times, titled

MOST_NAMED = 3  # of those farthest off, in the words
CLOSE = 2.0  # a guess within this factor is close
Figures = Mapping[str, tuple[float, float]]


@styled()
def agreement(groups: Mapping[str, Figures], within: float = 2.0, title: str = "") -> Picture:
    """Draw modelled against measured times on log axes, with the line where they are equal and a band around it.

    groups: group -> name -> (measured, modelled), in seconds. within: the factor by which a modelled time may be too
    long or too short and still lie in the band. ValueError for times not above 0, no times, and `within` not above 1.
    """
    lasting = [time for figures in groups.values() for pair in figures.values() for time in pair]
    if min(lasting, default=0) <= 0:
        raise ValueError(f"groups must hold (measured, modelled) seconds above 0, got {dict(groups)!r:.100}")
    if within <= 1:
        raise ValueError(f"within must be above 1, got {within}")
    figure, axes = chart(3.9, 0.8, 2.6, top=0.35 if title else 0.1)
    _equals(axes, min(lasting) / 2, max(lasting) * 2, within, seconds, color=INK, linewidth=1)
    axes.text(0.04, 0.94, "modelled too long", transform=axes.transAxes, size=SMALL, style="italic")
    axes.text(0.96, 0.04, "modelled too short", transform=axes.transAxes, ha="right", size=SMALL, style="italic")
    axes.set(xlabel="measured", ylabel="modelled", title=title)
    *places, last = spread([0.9 - 0.8 * i / max(1, len(groups)) for i in range(len(groups) + 1)], 0.14)
    for i, ((name, figures), place) in enumerate(zip(groups.items(), places, strict=True)):
        measured, modelled = zip(*figures.values(), strict=True) if figures else ((), ())
        marker = MARKERS[i % 8]
        look: dict[str, Any] = {"color": COLOURS[i % 8], "markeredgecolor": INK}
        axes.plot(measured, modelled, marker, markeredgewidth=0.5, **look)
        words = f"{name}\n{_count(figures.values(), within)}"
        beside(axes, [1.06], 1.11, place, words, marker, markersize=8, **look)
    words = f"grey: at most {times(within)}\ntoo long or too short"
    axes.annotate(words, (1.04, last), xycoords="axes fraction", va="center", size=SMALL, style="italic")
    texts = [f"{name}: {_count(figures.values(), within)}" for name, figures in groups.items()]
    everything = {name: pair for figures in groups.values() for name, pair in figures.items()}
    far = [name for name, pair in everything.items() if off(pair) > within]
    for name in sorted(far, key=lambda name: -off(everything[name]))[:MOST_NAMED]:
        was, said = (seconds(time) for time in everything[name])
        texts.append(f"Far off: {name}, measured {was}, modelled {said}")
    return Picture(figure, titled(title, f"Modelled against measured times, log axes. {'. '.join(texts)}."))


@styled()
def guesses(rows: Sequence[Mapping[str, Any]]) -> Picture:
    """Draw guesses against measurements, both as a number of times, on log axes with the line of perfect guesses.

    rows: mappings with "name", "guess" and "measured", both above 0, and perhaps "where", as in "modelled, T4": such a
    mark is hollow. ValueError for no rows or values not above 0.
    """
    values = [float(row[key]) for row in rows for key in ("guess", "measured")]
    if min(values, default=0) <= 0:
        raise ValueError("rows must hold at least one guess, with guess and measured above 0")
    figure, axes = chart(max(3.6, 0.42 * len(rows) + 1.0), 0.75, 3.6, top=0.15)
    _equals(axes, min(values) / 2.2, max(values) * 2.2, CLOSE, number, color=GREY, linewidth=1.2)
    found = "modelled or measured" if any(row.get("where") for row in rows) else "measured"
    axes.set(xlabel="guess (times)", ylabel=f"{found} (times)")
    axes.text(0.03, 0.96, "more than guessed", transform=axes.transAxes, va="top", size=SMALL, color=GREY)
    axes.text(0.97, 0.04, "less than guessed", transform=axes.transAxes, ha="right", size=SMALL, color=GREY)
    for i, row in enumerate(rows):
        look: dict[str, Any] = {"color": COLOURS[(i + i // 8) % 8], "markeredgecolor": INK, "markersize": 9}
        look |= {"markerfacecolor": "white", "markeredgecolor": look["color"]} if row.get("where") else {}
        marker, y = MARKERS[i % 8], 0.97 - i * 0.97 / max(len(rows), 7)
        axes.plot(float(row["guess"]), float(row["measured"]), marker, zorder=3, **look)
        seen, far = verdict(row).rsplit(": ", 1)
        beside(axes, [1.07], 1.12, y, f"{row['name']}: {far}\n{seen}", marker, **look)
    close = sum(off((float(row["measured"]), float(row["guess"]))) <= CLOSE for row in rows)
    lines = "; ".join(f"{row['name']}: {verdict(row)}" for row in rows)
    said = f"{count_of(len(rows), 'prediction')} against measurements, in times: {lines}."
    return Picture(figure, f"{said} {close} within a factor of 2.")


def off(pair: tuple[float, float]) -> float:
    """Return how many times too high or too low what was said of (measured, said) is: 1 or more."""
    measured, said = pair
    return max(said / measured, measured / said)


def verdict(row: Mapping[str, Any]) -> str:
    """Return how far off a guess was, as in "guessed 40, measured 9: 4.4 times too high"."""
    guess, measured = float(row["guess"]), float(row["measured"])
    factor = off((measured, guess))
    far = "just right" if factor < 1.1 else f"{times(factor)} too {'high' if guess > measured else 'low'}"
    seen = f"{rounded(measured)} ({row['where']})" if row.get("where") else f"measured {rounded(measured)}"
    return f"guessed {rounded(guess)}, {seen}: {far}"


def _equals(axes: Axes, low: float, high: float, within: float, words: Callable[[float], str], **look: Any) -> None:
    """Draw the line of equal values, both axes logarithmic from low to high, and a band a factor `within` around it."""
    ends = np.array([low, high])
    axes.fill_between(ends, ends / within, ends * within, color=PALE, linewidth=0)
    axes.loglog(ends, ends, **look)
    axes.set(xlim=(low, high), ylim=(low, high))
    for which in ("x", "y"):
        word_ticks(axes, which, words)


def _count(pairs: Iterable[tuple[float, float]], within: float) -> str:
    offs = [off(pair) for pair in pairs]
    return f"{sum(each <= within for each in offs)} of {number(len(offs))} within {times(within)}"
