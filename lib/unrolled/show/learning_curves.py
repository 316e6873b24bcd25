"""Loss and accuracy over the epochs: what you would have if you had stopped earlier, or while they still grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from unrolled.show.charts import word_ticks
from unrolled.show.explorer import Explorer, Slider, in_kernel
from unrolled.show.picture import Picture
from unrolled.show.style import BLUE, GREY, INK, ORANGE, SMALL, WIDTH, new_figure
from unrolled.show.words import percent, rounded

HEIGHT, TOP, BOTTOM, WIDE = 3.3, 0.95, 0.55, 2.95  # inches
LEFTS = (0.7, 4.45)
LATER = 0.22  # how strong the curves are after the epoch where training would have stopped


class Curves(Protocol):
    """What `fit` returns: lists by epoch. Those of validation may be empty."""

    @property
    def loss(self) -> Sequence[float]: ...
    @property
    def accuracy(self) -> Sequence[float]: ...
    @property
    def validation_loss(self) -> Sequence[float]: ...
    @property
    def validation_accuracy(self) -> Sequence[float]: ...


@dataclass(frozen=True)
class Curve:
    """One curve: what it is, its values, its look."""

    name: str
    values: Sequence[float]
    colour: str
    marker: str


def learning_curves(history: Curves, epochs: Sequence[int] | None = None, title: str = "") -> Explorer:
    """Draw loss and accuracy of training and validation; the slider says after which epoch training would have stopped.

    history: lists of losses and accuracies (0 to 1), one value for each epoch, as `fit` returns them. epochs: the
    numbers of these epochs, where they are not 1, 2, 3 ...; without them, an epoch that was interrupted before its
    validation is left out. ValueError for no epochs at all, or lists that do not fit `epochs`.
    """
    lists = [history.loss, history.validation_loss, history.accuracy, history.validation_accuracy]
    if epochs is None:
        done = min((len(values) for values in lists if len(values)), default=0)  # an interrupt may come between two
        numbers, lists = list(range(1, done + 1)), [values[:done] for values in lists]
    else:
        numbers = [int(epoch) for epoch in epochs]
    losses, accuracies = _lines(*lists[:2]), _lines(*lists[2:])
    for line in losses + accuracies:
        if not numbers or len(line.values) != len(numbers):
            raise ValueError(f"{line.name} has {len(line.values)} values for {len(numbers)} epochs; expected one each")
    slider = Slider("stop after epoch", range(len(numbers)), len(numbers) - 1, lambda at: str(numbers[at]))
    data = numbers, losses, accuracies, title
    return Explorer(partial(_draw, *data), partial(_alt, *data), stop=slider)


class Live:
    """A callback for `fit` that draws the learning curves after each epoch, always in the same place.

    Outside a notebook nothing is shown; `picture` holds the latest curves everywhere.
    """

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.picture: Picture | None = None
        self._handle: Any = None

    def __call__(self, network: Any, history: Curves) -> None:
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


def _lines(training: Sequence[float], validation: Sequence[float]) -> list[Curve]:
    lines = [Curve("training", training, BLUE, "o")]
    return [*lines, Curve("validation", validation, ORANGE, "s")] if len(validation) else lines


def _draw(numbers: list[int], losses: list[Curve], accuracies: list[Curve], title: str, stop: int) -> Figure:
    figure = new_figure(HEIGHT)
    figure.text(0.1 / WIDTH, 1 - 0.2 / HEIGHT, title, va="center", size=11)
    panels = (("loss", losses, _loss), ("accuracy", accuracies, percent))
    for left, (name, lines, words) in zip(LEFTS, panels, strict=True):
        axes = figure.add_axes((left / WIDTH, BOTTOM / HEIGHT, WIDE / WIDTH, (HEIGHT - TOP - BOTTOM) / HEIGHT))
        _panel(axes, numbers, lines, stop)
        axes.set_xlabel("epoch")
        word_ticks(axes, "y", words, log=False)
        axes.text(0, 1.22, f"{name} after epoch {numbers[stop]}", transform=axes.transAxes, size=SMALL)
        for i, line in enumerate(lines):
            x, y = 0.02 + 0.5 * i, 1.09
            axes.plot(x, y, line.marker, color=line.colour, transform=axes.transAxes, clip_on=False, markersize=6)
            text = f"{line.name} {words(line.values[stop])}"
            axes.text(x + 0.04, y, text, transform=axes.transAxes, va="center", size=SMALL, weight="bold")
    return figure


def _panel(axes: Axes, numbers: list[int], lines: list[Curve], stop: int) -> None:
    for line in lines:
        marker = line.marker if len(numbers) <= 30 else ""
        look: dict[str, Any] = {"color": line.colour, "marker": marker, "markersize": 4}
        axes.plot(numbers, line.values, alpha=LATER, **look)
        axes.plot(numbers[: stop + 1], line.values[: stop + 1], **look)
        axes.plot(numbers[stop], line.values[stop], line.marker, color=line.colour, markersize=8, markeredgecolor=INK)
    axes.axvline(numbers[stop], color=GREY, linewidth=1, linestyle="--")
    axes.margins(0.05, 0.08)
    axes.grid(True)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(5))


def _loss(value: float) -> str:
    """A loss in three digits, at most four of them behind the point: a smaller loss is as good as 0."""
    return rounded(value) if value >= 0.01 or value == 0 else f"{value:.4f}"


def _alt(numbers: list[int], losses: list[Curve], accuracies: list[Curve], title: str, stop: int) -> str:
    text = f"{title}: " if title else ""
    text += f"learning curves over epochs {numbers[0]} to {numbers[-1]}. After epoch {numbers[stop]}: "
    text += "; ".join(
        f"{loss.name} loss {_loss(loss.values[stop])}, accuracy {percent(accuracy.values[stop])}"
        for loss, accuracy in zip(losses, accuracies, strict=True)
    )
    if len(losses) > 1:
        values = losses[1].values
        lowest = min(range(len(values)), key=lambda at: values[at])
        text += f". The validation loss was lowest, {_loss(values[lowest])}, at epoch {numbers[lowest]}"
    return f"{text}."
