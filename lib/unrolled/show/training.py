"""Training: loss and accuracy over epochs, losses over steps, and optimizers as paths on one surface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from unrolled.show.charts import beside, chart, heights, word_ticks
from unrolled.show.picture import Explorer, Picture, Slider, in_kernel
from unrolled.show.sheet import on_host
from unrolled.show.style import BLUE, COLOURS, GREY, INK, ORANGE, PALE, RED, SMALL, WIDTH, new_figure, styled
from unrolled.show.words import number, percent, rounded, titled

# Loss and accuracy over epochs, up to where you might have stopped; losses over steps

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
    ValueError where one does not start with a number.
    """
    drawn = []
    for i, (name, given) in enumerate(curves.items()):
        values = on_host(given, np.float64)
        finite = np.isfinite(values)
        if not values.size or not finite[0]:
            raise ValueError(f"curve {name!r} does not start with a number")
        count = len(values) if finite.all() else int(finite.argmin())
        drawn.append(Curve(name, values[:count], len(values), COLOURS[i % len(COLOURS)], LINES[i % len(LINES)]))
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
    summary = "; ".join(f"{curve.name}: from {rounded(curve.losses[0], 2)}, {curve.fate}" for curve in drawn)
    return Picture(figure, titled(title, f"loss over the steps of training. {summary}.", ":"))


# Optimizers as paths on one surface

PATHS_HEIGHT, PATHS_TOP, PATHS_BOTTOM = 3.4, 0.4, 0.55  # inches
MAP, CURVE = (0.65, 3.6), (5.0, 2.35)  # left and width
FINE = 81  # points of the surface along each axis
LEVELS = 14
FLOOR = 1e-4  # the curve shows no loss below
FAR = 3  # times the size of the map: from there on, a path that runs away is not drawn

Path = NDArray[np.float64]
Points = Mapping[str, Mapping[float, Path]]
Surface = Callable[[Any, Any], Any]
Box = tuple[float, float, float, float]


def optimizer_paths(surface: Surface, paths: Mapping[str, Mapping[float, ArrayLike]], box: Box) -> Explorer:
    """Draw the path of an optimizer down a surface; sliders choose the optimizer and its learning rate.

    surface: `surface(x, y)` is the loss, for arrays. paths: optimizer -> learning rate -> points (steps + 1, 2), the
    start first; every optimizer with the same rates. box: the part of the plane that is drawn, (x from, to, y from,
    to).
    """
    names = list(paths)
    rates = list(paths[names[0]])
    points = {name: {rate: np.asarray(path, dtype=np.float64) for rate, path in paths[name].items()} for name in names}
    rate_slider = Slider("learning rate", rates, len(rates) // 2, lambda rate: f"{rate:g}")
    return Explorer(_draw_paths, surface, points, box, optimizer=Slider("optimizer", names), rate=rate_slider)


def losses_along(surface: Surface, path: Path) -> Path:
    """Return the loss at each point of a path; infinity where it is not finite."""
    with np.errstate(all="ignore"):
        values = np.asarray(surface(path[:, 0], path[:, 1]), dtype=np.float64)
    return np.where(np.isfinite(values), values, np.inf)


def _draw_paths(surface: Surface, points: Points, box: Box, optimizer: str, rate: float) -> Picture:
    figure, path = new_figure(PATHS_HEIGHT), points[optimizer][rate]
    low, tall = PATHS_BOTTOM / PATHS_HEIGHT, (PATHS_HEIGHT - PATHS_TOP - PATHS_BOTTOM) / PATHS_HEIGHT
    axes, curve = (figure.add_axes((left / WIDTH, low, width / WIDTH, tall)) for left, width in (MAP, CURVE))
    colour = COLOURS[list(points).index(optimizer) % 8]
    _map(axes, surface, path, colour, box)
    axes.set_title(f"{optimizer}, learning rate {rate:g}: {len(path) - 1} steps")
    for name, paths in points.items():
        values = np.clip(losses_along(surface, paths[rate]), FLOOR, 1e9)
        look = {"color": colour, "linewidth": 2} if name == optimizer else {"color": GREY, "linewidth": 1, "alpha": 0.5}
        curve.semilogy(values, **look)
    curve.set(ylim=(FLOOR, float(surface(*path[0])) * 30), xlabel="step", title="loss (others in grey)")
    curve.grid(True)
    mine = losses_along(surface, path)
    alt = f"{optimizer} with learning rate {rate:g} on a surface of two weights: from loss {rounded(mine[0])} "
    alt += f"to {rounded(mine[-1])} in {len(path) - 1} steps"
    outside = ((path < box[::2]) | (path > box[1::2])).any(axis=1)
    if outside.any():
        alt += f"; it leaves the picture at step {int(outside.argmax())}"
    return Picture(figure, f"{alt}.")


def _map(axes: Axes, surface: Surface, path: Path, colour: str, box: Box) -> None:
    x, y = np.meshgrid(np.linspace(*box[:2], FINE), np.linspace(*box[2:], FINE))
    heights = np.asarray(surface(x, y), dtype=np.float64)
    levels = np.geomspace(max(float(heights.max()) / 3000, 1e-12), float(heights.max()), LEVELS)
    axes.contour(x, y, heights, levels=levels, colors=PALE, linewidths=1.0)
    lowest = np.unravel_index(heights.argmin(), heights.shape)
    axes.plot(x[lowest], y[lowest], "*", color=INK, markersize=11)
    far = np.abs(path - np.mean([box[:2], box[2:]], axis=1)) > FAR * np.ptp([box[:2], box[2:]], axis=1)
    away = np.flatnonzero(far.any(axis=1) | ~np.isfinite(path).all(axis=1))
    seen = path[: away[0]] if away.size else path
    axes.plot(seen[:, 0], seen[:, 1], marker="o", markersize=3.5, linewidth=1.2, color=colour)
    axes.plot(*seen[0], "o", markersize=9, color="white", markeredgecolor=colour, markeredgewidth=2)
    if away.size:
        axes.text(0.98, 0.03, "it runs away", transform=axes.transAxes, ha="right", color=RED, weight="bold")
    axes.annotate("start", seen[0], (9, 6), textcoords="offset points", size=SMALL)
    axes.set(xlim=box[:2], ylim=box[2:], xlabel="weight 1", ylabel="weight 2")
