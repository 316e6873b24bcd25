"""One style for every picture: colours, sizes, and a context that leaves no trace in the learner's session.

The colours are those of Okabe and Ito (2008), chosen to stay apart under the common kinds of colour blindness.
A colour never carries meaning alone: each comes with a hatch, a marker, a label or a place of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import matplotlib.style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PINK, YELLOW = "#56B4E9", "#CC79A7", "#F0E442"
INK, GREY, PALE, PAPER = "#222222", "#767676", "#E6E6E6", "#FFFFFF"

# The n-th series, worker or contestant gets the n-th colour, hatch and marker together.
COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, RED, YELLOW, GREY)
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "++", "oo")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

# Pixels in [0, 1] are ink on paper; signed numbers are purple below zero and orange above.
PIXELS, SIGNED = "Greys", "PuOr_r"

WIDTH = 7.5  # inches: the width of a notebook's output at 96 pixels an inch
FONT_SIZE = 10.0
SMALL = 9.0

STYLE = {
    "font.size": FONT_SIZE,
    "font.family": "DejaVu Sans",  # Matplotlib carries it, so pictures look the same everywhere
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.labelsize": FONT_SIZE,
    "axes.titlesize": FONT_SIZE + 1,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.formatter.use_mathtext": True,
    "grid.color": PALE,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "lines.linewidth": 1.8,
    "hatch.linewidth": 0.6,
    "image.interpolation": "nearest",
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
}

STYLES = {"measured": "-", "recorded": "--", "modelled": ":", "published": "-."}
"""How a number may have come about, and the stroke of a line of such numbers."""


def mark(how: str, colour: str) -> dict[str, Any]:
    """Return the look of a marker by how its number came about: full if it was measured here, and half if modelled.

    how begins with one of STYLES, as in "modelled, T4"; what was recorded or published is hollow.
    """
    kind = next((kind for kind in STYLES if how.startswith(kind)), "recorded")
    look: dict[str, Any] = {"color": colour, "markeredgecolor": colour, "markerfacecoloralt": PAPER}
    look["fillstyle"] = "left" if kind == "modelled" else "full"
    return look | {"markerfacecolor": PAPER if kind in ("recorded", "published") else colour}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the course's style, whatever style the session has; its rcParams are untouched afterwards.

    Usable as `with styled():` and as a decorator, `@styled()`.
    """
    with matplotlib.style.context(["default", STYLE]):
        yield


def new_figure(height: float, width: float = WIDTH, layout: str | None = None) -> Figure:
    """Return a figure of width x height inches that pyplot does not know of, so nothing needs closing."""
    figure = Figure(figsize=(width, height), layout=layout)  # type: ignore[arg-type]
    FigureCanvasAgg(figure)
    return figure


def tint(colour: str, amount: float) -> tuple[float, float, float, float]:
    """Return the colour mixed with white, pale enough to write on, as RGBA; `amount` is its share, from 0 to 1."""
    red, green, blue = (1 - amount * (1 - channel) for channel in to_rgb(colour))
    return red, green, blue, 1.0
