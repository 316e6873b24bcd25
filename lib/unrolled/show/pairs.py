"""The pairs behind a timing verdict."""

from __future__ import annotations

from unrolled.show.charts import word_ticks
from unrolled.show.picture import Picture
from unrolled.show.style import new_figure, styled
from unrolled.show.words import count_of, number
from unrolled.timing import Verdict


@styled()
def pairs(verdict: Verdict) -> Picture:
    """Draw every measured pair of a verdict, the interval of the median, and what was asked."""
    figure = new_figure(3.0, layout="constrained")
    axes = figure.subplots()
    verdict.draw(axes)
    if axes.get_yscale() == "log":
        word_ticks(axes, "y", number)
    return Picture(figure, f"{count_of(len(verdict.pairs), 'measured pair')}: {verdict}")
