"""Learning curves: loss and accuracy over epochs, up to where you might have stopped; losses over steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from unrolled.show.charts import beside, chart, heights, word_ticks
from unrolled.show.picture import Explorer, Picture, Slider, in_kernel
from unrolled.show.sheet import on_host
from unrolled.show.style import BLUE, COLOURS, GREY, INK, ORANGE, SMALL, WIDTH, new_figure, styled
from unrolled.show.words import number, percent, rounded, titled

HEIGHT, TOP, BOTTOM, WIDE = 3.3, 0.95, 0.55, 2.95  # inches
LEFTS = (0.7, 4.45)
LATER = 0.22  # how strong the curves are after the epoch where training would have stopped
LOOKS = {"training": (BLUE, "o"), "validation": (ORANGE, "s")}  # colour and marker
LINES = ("-", "--", "-.", ":")
APART = 0.18  # of the height, between names at the right
SMOOTH = 10  # steps whose mean is drawn bold; a single batch may be easy or hard by chance
FAINT = 0.25
ROOM = 3.0  # times: how far single steps may reach below and above the bold lines

Lines = Mapping[str, Sequence[float]]  # "training" and perhaps "validation": values by epoch


def learning_curves(history: Any, epochs: Sequence[int] | None = None, title: str = "") -> Explorer:
    """Draw loss and accuracy of training and validation; the slider says after which epoch training would have stopped.

    history: what `fit` returns, of which `loss`, `accuracy` (0 to 1), `validation_loss` and `validation_accuracy` are
    drawn: lists with a value for each epoch, those of validation may be empty. epochs: the numbers of these epochs,
    where they are not 1, 2, 3 ...; without them, an epoch that was interrupted before its validation is left out.
    ValueError for no epochs at all, or lists that do not fit `epochs`.
    """
    lists = [history.loss, history.validation_loss, history.accuracy, history.validation_accuracy]
    if epochs is None:
        done = min((len(values) for values in lists if len(values)), default=0)  # an interrupt may come between two
        numbers, lists = list(range(1, done + 1)), [values[:done] for values in lists]
    else:
        numbers = [int(epoch) for epoch in epochs]
    losses, accuracies = _lines(*lists[:2]), _lines(*lists[2:])
    for name, values in (*losses.items(), *accuracies.items()):
        if not numbers or len(values) != len(numbers):
            raise ValueError(f"{name} has {len(values)} values for {len(numbers)} epochs; expected one each")
    slider = Slider("stop after epoch", range(len(numbers)), len(numbers) - 1, lambda at: str(numbers[at]))
    return Explorer(_draw, numbers, losses, accuracies, title, stop=slider)


class Live:
    """A callback for `fit` that draws the learning curves after each epoch, always in the same place.

    Outside a notebook nothing is shown; `picture` holds the latest curves everywhere.
    """

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.picture: Picture | None = None
        self._handle: Any = None

    def __call__(self, network: Any, history: Any) -> None:
        """Draw the epochs so far. Never asks `fit` to stop: interrupt the kernel for that."""
        self.picture = learning_curves(history, title=self.title).still()
        if self._handle is not None:
            self._handle.update(self.picture)
        elif in_kernel():
            from IPython.display import display

            self._handle = display(self.picture, display_id=True)  # type: ignore[no-untyped-call, unused-ignore]


def live(title: str = "") -> Live:
    """Return a callback that draws loss and accuracy while a network trains: `fit(..., callbacks=[show.live()])`."""
    return Live(title)


def _lines(training: Sequence[float], validation: Sequence[float]) -> Lines:
    return {"training": training, "validation": validation} if len(validation) else {"training": training}


def _draw(numbers: list[int], losses: Lines, accuracies: Lines, title: str, stop: int) -> Picture:
    figure = new_figure(HEIGHT)
    figure.text(0.1 / WIDTH, 1 - 0.2 / HEIGHT, title, va="center", size=11)
    panels = (("loss", losses, _loss), ("accuracy", accuracies, percent))
    for left, (name, lines, words) in zip(LEFTS, panels, strict=True):
        axes = figure.add_axes((left / WIDTH, BOTTOM / HEIGHT, WIDE / WIDTH, (HEIGHT - TOP - BOTTOM) / HEIGHT))
        _panel(axes, numbers, lines, stop)
        axes.set_xlabel("epoch")
        word_ticks(axes, "y", words, log=False)
        axes.text(0, 1.22, f"{name} after epoch {numbers[stop]}", transform=axes.transAxes, size=SMALL)
        for i, (which, values) in enumerate(lines.items()):
            x, y, (colour, marker) = 0.02 + 0.5 * i, 1.09, LOOKS[which]
            axes.plot(x, y, marker, color=colour, transform=axes.transAxes, clip_on=False, markersize=6)
            text = f"{which} {words(values[stop])}"
            axes.text(x + 0.04, y, text, transform=axes.transAxes, va="center", size=SMALL, weight="bold")
    ends = (f"{name} loss {_loss(losses[name][stop])}, accuracy {percent(accuracies[name][stop])}" for name in losses)
    span = f"learning curves over epochs {numbers[0]} to {numbers[-1]}. After epoch {numbers[stop]}"
    alt = titled(title, f"{span}: {'; '.join(ends)}", ":")
    if (validation := losses.get("validation")) is not None:
        lowest = min(range(len(validation)), key=validation.__getitem__)
        alt += f". The validation loss was lowest, {_loss(validation[lowest])}, at epoch {numbers[lowest]}"
    return Picture(figure, f"{alt}.")


def _panel(axes: Axes, numbers: list[int], lines: Lines, stop: int) -> None:
    for which, values in lines.items():
        colour, marker = LOOKS[which]
        look: dict[str, Any] = {"color": colour, "marker": marker if len(numbers) <= 30 else "", "markersize": 4}
        axes.plot(numbers, values, alpha=LATER, **look)
        axes.plot(numbers[: stop + 1], values[: stop + 1], **look)
        axes.plot(numbers[stop], values[stop], marker, color=colour, markersize=8, markeredgecolor=INK)
    axes.axvline(numbers[stop], color=GREY, linewidth=1, linestyle="--")
    axes.margins(0.05, 0.08)
    axes.grid(True)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(5))


def _loss(value: float) -> str:
    """A loss in three digits, at most four of them behind the point: a smaller loss is as good as 0."""
    return rounded(value) if value >= 0.01 or value == 0 else f"{value:.4f}"


@dataclass(frozen=True)
class Curve:
    """One way of training: the losses until the first that is not finite, and how many steps there were."""

    name: str
    losses: NDArray[np.float64]
    steps: int
    colour: str
    line: str

    @property
    def smooth(self) -> NDArray[np.float64]:
        """The mean of the last ten losses at each step, its own included."""
        sums, last = np.cumsum([0.0, *self.losses]), np.arange(1, len(self.losses) + 1)
        first = np.maximum(last - SMOOTH, 0)
        return np.asarray((sums[last] - sums[first]) / (last - first))

    @property
    def fate(self) -> str:
        """How the curve ends, in words."""
        if len(self.losses) < self.steps:
            return f"no number from step {len(self.losses)} on"
        return f"ends at {rounded(self.smooth[-1], 2)}"


@styled()
def losses(curves: Mapping[str, Sequence[float]], title: str = "", log: bool = True) -> Picture:
    """Draw loss against step, a curve for each name, named at its end; an infinite or NaN loss ends it with a cross.

    curves: name -> losses, one for each step, the first being step 0. The bold line is the mean of the last ten steps.
    ValueError where there is no curve, or one does not start with a number.
    """
    drawn = []
    for i, (name, given) in enumerate(curves.items()):
        values = on_host(given, np.float64)
        finite = np.isfinite(values)
        if not values.size or not finite[0]:
            raise ValueError(f"curve {name!r} does not start with a number")
        count = len(values) if finite.all() else int(finite.argmin())
        drawn.append(Curve(name, values[:count], len(values), COLOURS[i % len(COLOURS)], LINES[i % len(LINES)]))
    if not drawn:
        raise ValueError("curves is empty; expected at least one curve")
    figure, axes = chart(2.9, 0.7, 2.35)
    axes.set(xlabel="step", ylabel="loss", yscale="log" if log else "linear", title=title)
    for curve in drawn:
        axes.plot(curve.losses, color=curve.colour, alpha=FAINT, linewidth=0.9)
        axes.plot(curve.smooth, curve.line, color=curve.colour)
        if len(curve.losses) < curve.steps:
            at = len(curve.losses) - 1
            axes.plot(at, curve.smooth[-1], "X", color=curve.colour, markersize=10, markeredgecolor=INK, zorder=5)
    axes.margins(0.02, 0.08)
    if log:
        bold = np.concatenate([curve.smooth for curve in drawn])
        if (bold > 0).any():  # single steps, thin lines, must not press the bold ones together
            (low, high), bold = axes.get_ylim(), bold[bold > 0]
            axes.set_ylim(max(low, bold.min() / ROOM), min(high, bold.max() * ROOM))
        word_ticks(axes, "y", number)
    axes.grid(True)
    for curve, y in zip(drawn, heights(axes, (curve.smooth[-1] for curve in drawn), APART), strict=True):
        beside(axes, [1.01, 1.07], 1.09, y, f"{curve.name}\n{curve.fate}", curve.line, color=curve.colour)
    said = "; ".join(f"{curve.name}: from {rounded(curve.losses[0], 2)}, {curve.fate}" for curve in drawn)
    return Picture(figure, titled(title, f"loss over the steps of training. {said}.", ":"))
