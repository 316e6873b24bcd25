"""How well a model's figures agree with measured ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from matplotlib.axes import Axes

from unrolled.show.charts import beside, chart, equals, spread, word_ticks
from unrolled.show.picture import Picture
from unrolled.show.style import COLOURS, INK, MARKERS, SMALL, styled
from unrolled.show.words import number, seconds, times

MOST_NAMED = 3  # of those farthest off, in the words
Figures = Mapping[str, tuple[float, float]]


@styled()
def agreement(groups: Mapping[str, Figures], within: float = 2.0, title: str = "") -> Picture:
    """Draw modelled against measured times on log axes, with the line where they are equal and a band around it.

    groups: group -> name -> (measured, modelled), in seconds. within: the factor by which a modelled time may be too
    long or too short and still lie in the band. ValueError for times not above 0, for no times at all, and for `within`
    not above 1.
    """
    lasting = [time for figures in groups.values() for pair in figures.values() for time in pair]
    if min(lasting, default=0) <= 0:
        raise ValueError(f"groups must hold (measured, modelled) seconds above 0, got {dict(groups)!r:.100}")
    if within <= 1:
        raise ValueError(f"within must be above 1, got {within}")
    figure, axes = chart(3.9, 0.8, 2.6, top=0.35 if title else 0.1)
    equals(axes, min(lasting) / 2, max(lasting) * 2, within, color=INK, linewidth=1)
    axes.text(0.04, 0.94, "modelled too long", transform=axes.transAxes, size=SMALL, style="italic")
    axes.text(0.96, 0.04, "modelled too short", transform=axes.transAxes, ha="right", size=SMALL, style="italic")
    for i, figures in enumerate(groups.values()):
        measured, modelled = zip(*figures.values(), strict=True) if figures else ((), ())
        axes.plot(measured, modelled, MARKERS[i % 8], color=COLOURS[i % 8], markeredgecolor=INK, markeredgewidth=0.5)
    axes.set(xlabel="measured", ylabel="modelled", title=title)
    word_ticks(axes, "x", seconds)
    word_ticks(axes, "y", seconds)
    _labels(axes, groups, within)
    return Picture(figure, _alt(groups, within, title))


def off(pair: tuple[float, float]) -> float:
    """Return how many times too long or too short the modelled time of (measured, modelled) is: 1 or more."""
    measured, modelled = pair
    return max(modelled / measured, measured / modelled)


def _labels(axes: Axes, groups: Mapping[str, Figures], within: float) -> None:
    """Beside the chart: each group's marker, and how many of it lie in the band."""
    places = spread([0.9 - 0.8 * i / max(1, len(groups)) for i in range(len(groups) + 1)], 0.14)
    for i, ((name, figures), place) in enumerate(zip(groups.items(), places, strict=False)):
        text, colour = f"{name}\n{_count(figures.values(), within)}", COLOURS[i % 8]
        beside(axes, [1.06], 1.11, place, text, MARKERS[i % 8], color=colour, markeredgecolor=INK, markersize=8)
    words = f"grey: at most {times(within)}\ntoo long or too short"
    axes.annotate(words, (1.04, places[-1]), xycoords="axes fraction", va="center", size=SMALL, style="italic")


def _count(pairs: Iterable[tuple[float, float]], within: float) -> str:
    offs = [off(pair) for pair in pairs]
    return f"{sum(each <= within for each in offs)} of {number(len(offs))} within {times(within)}"


def _alt(groups: Mapping[str, Figures], within: float, title: str) -> str:
    texts = [f"{name}: {_count(figures.values(), within)}" for name, figures in groups.items()]
    everything = {name: pair for figures in groups.values() for name, pair in figures.items()}
    far = [name for name, pair in everything.items() if off(pair) > within]
    for name in sorted(far, key=lambda name: -off(everything[name]))[:MOST_NAMED]:
        measured, modelled = everything[name]
        texts.append(f"Far off: {name}, measured {seconds(measured)}, modelled {seconds(modelled)}")
    return f"{title + '. ' if title else ''}Modelled against measured times, log axes. {'. '.join(texts)}."
