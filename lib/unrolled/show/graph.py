"""A computation graph, step by step: a small network forward and back, with broken gradients.

The network: x (N, D) -> affine 1 -> ReLU -> affine 2 -> softmax and cross entropy, mean over N.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from unrolled import ops
from unrolled.show.picture import Explorer, Picture, Slider, counting
from unrolled.show.sheet import Cells, Scale, Sheet, cells_text, on_host
from unrolled.show.style import BLUE, GREY, INK, RED, SMALL, WIDTH
from unrolled.show.words import count_of, number

LEARNING_RATE, TRAINING = 0.2, 40  # of the curves below the graph
EDGE, GAP, CELL = 0.1, 0.44, (0.38, 0.26)  # inches
WORDS, TITLE, BAND = 0.7, 0.36, 0.42  # inches for the sentence, a heading, and from parameters to values
CURVES, MARGIN = 1.15, 0.62
LONG = 1e7  # a loss from here on is too long for the line beside the curves
FLOW = ("x", "affine 1", "ReLU", "scores", "softmax", "loss")
TITLES = {"scores": "affine 2"}
PARAMETERS = ("weight 1", "bias 1", "weight 2", "bias 2")

Grids = dict[str, Cells]
Values = NDArray[np.float64]
Named = dict[str, Values]
Arrays = tuple[ArrayLike, ...]


@dataclass(frozen=True)
class Step:
    """One step: the names of the values or gradients that it `makes`, and how, in words."""

    name: str
    makes: tuple[str, ...]
    formula: str

    @property
    def back(self) -> bool:
        return self.name.endswith("backward")


START = "The inputs are there: one sample a row. So are the parameters, and the labels at the end."
AFFINE_BACK = "weight: grad.T @ inputs; bias: sum of grad over the samples; inputs: grad @ weight"
STEPS = (
    Step("start", ("x",), START),
    Step("affine 1, forward", ("affine 1",), "x @ weight.T + bias"),
    Step("ReLU, forward", ("ReLU",), "what is below 0 becomes 0"),
    Step("affine 2, forward", ("scores",), "its inputs @ weight.T + bias: a score for each class"),
    Step("softmax, forward", ("softmax",), "exp(score) / sum of exp(scores): the probabilities of the classes"),
    Step("loss, forward", ("loss",), "-log of the probability of the right class, mean over the samples"),
    Step("loss and softmax, backward", ("loss", "scores"), "(probabilities - 1 at the right class) / N"),
    Step("affine 2, backward", ("weight 2", "bias 2", "ReLU"), AFFINE_BACK),
    Step("ReLU, backward", ("affine 1",), "grad passes where the input was above 0; elsewhere it ends"),
    Step("affine 1, backward", ("weight 1", "bias 1", "x"), "as in affine 2, with its own weight and inputs"),
)
FIRST_BACK = next(i for i, step in enumerate(STEPS) if step.back)


@dataclass(frozen=True)
class Break:
    """One wrong line in the backward pass: `change(right, passed)` is what it gives for `name`.

    right is the right gradient (given what came before), passed the gradient that arrived.
    """

    name: str
    short: str
    words: str
    change: Callable[[Values, Values], Values]


def _one_percent(right: Values, _: Values) -> Values:
    wrong: Values = right.copy()
    wrong.flat[np.abs(wrong).argmax()] *= 1.01
    return wrong


BREAKS = (
    None,
    Break("bias 1", "sign of bias 1", "bias 1 has the wrong sign", lambda right, *_: -right),
    Break("affine 1", "ReLU leaks", "the ReLU lets every gradient through", lambda _, passed: passed),
    Break("scores", "1/N forgotten", "the loss forgets the 1/N of its mean", lambda right, *_: right * len(right)),
    Break("weight 2", "1 % too large", "one number of weight 2 is 1 % too large", _one_percent),
    Break("scores", "every sign", "the loss turns the sign of all", lambda right, *_: -right),
)


def computation_graph(
    x: ArrayLike, labels: ArrayLike, weights: Arrays, biases: Arrays, step: int = FIRST_BACK, broken: int = 0
) -> Explorer:
    """Draw a small network step by step, forward and then backward, and how training goes when a gradient is broken.

    The network is x (N, D) -> affine -> ReLU -> affine -> softmax and cross entropy; labels (N,) are integers; weights
    are two arrays (M, D), biases two arrays (M,), as in `ops.affine`. The curves below the graph are the losses of
    gradient descent from these parameters, with the right gradients and with the broken ones. step (0 to 9) and broken
    (0: nothing, to 5) say where the sliders stand first. ValueError where shapes do not fit.
    """
    graph, names = Graph(Network.of(x, labels, weights, biases)), ["nothing", *(each.short for each in BREAKS if each)]
    steps = counting("step", len(STEPS) - 1, step)
    breaks = Slider("break", range(len(BREAKS)), broken, names.__getitem__)
    return Explorer(_draw, graph, step=steps, broken=breaks)


@dataclass(frozen=True)
class Network:
    """Inputs (N, D), labels (N,), and the parameters by name: weights (M, D), biases (M,)."""

    x: Values
    labels: NDArray[np.int64]
    parameters: Named

    @classmethod
    def of(cls, x: ArrayLike, labels: ArrayLike, weights: Arrays, biases: Arrays) -> Network:
        arrays = [on_host(array, np.float64) for pair in zip(weights, biases, strict=True) for array in pair]
        if len(arrays) != len(PARAMETERS):
            raise ValueError(f"weights holds {len(weights)} arrays; expected 2, one for each affine node")
        network = cls(on_host(x, np.float64), on_host(labels), dict(zip(PARAMETERS, arrays, strict=True)))
        forward(network)  # raises ValueError where shapes do not fit
        return network


def forward(network: Network) -> Named:
    """Return all values on the way to the loss by name; the loss is (1, 1)."""
    at = network.parameters
    values = {"x": network.x, "affine 1": ops.affine(network.x, at["weight 1"], at["bias 1"])}
    values["ReLU"] = ops.relu(values["affine 1"])
    values["scores"] = ops.affine(values["ReLU"], at["weight 2"], at["bias 2"])
    values["softmax"] = ops.softmax(values["scores"])
    loss, _ = ops.softmax_cross_entropy(values["scores"], network.labels)
    return values | {"loss": np.array([[loss]])}


def backward(network: Network, values: Named, broken: Break | None = None) -> Named:
    """Return the gradient of the loss with respect to the values and parameters, by name, in the order of computation.

    Softmax and loss go backward in one step, so "softmax" has none. `broken` replaces one gradient by a wrong one.
    """
    grads: Named = {"loss": np.ones((1, 1))}

    def keep(name: str, right: Values, passed: Values) -> None:
        grads[name] = broken.change(right, passed) if broken and broken.name == name else right

    keep("scores", ops.softmax_cross_entropy(values["scores"], network.labels)[1], values["softmax"])
    for affine, out, into in (("2", "scores", "ReLU"), ("1", "affine 1", "x")):
        if affine == "1":
            keep(out, ops.relu_backward(grads["ReLU"], values[out]), grads["ReLU"])
        found = ops.affine_backward(grads[out], values[into], network.parameters[f"weight {affine}"])
        for name, grad in zip((into, f"weight {affine}", f"bias {affine}"), found, strict=True):
            keep(name, grad, grads[out])
    return grads


def losses(network: Network, broken: Break | None, steps: int, learning_rate: float) -> list[float]:
    """Return the loss before each step of gradient descent and after the last, with the right or a broken gradient."""
    parameters = dict(network.parameters)
    curve = []
    for _ in range(steps + 1):
        now = Network(network.x, network.labels, parameters)
        values = forward(now)
        curve.append(float(values["loss"][0, 0]))
        grads = backward(now, values, broken)
        parameters = {name: value - learning_rate * grads[name] for name, value in parameters.items()}
    return curve


class Graph:
    """A network with its values, its right gradients and, for each break, the wrong ones and the losses."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.values = forward(network)
        self.right = backward(network, self.values)
        self.grads = lru_cache(maxsize=None)(lambda broken: backward(network, self.values, broken))
        self.losses = lru_cache(maxsize=None)(lambda broken: losses(network, broken, TRAINING, LEARNING_RATE))

    def shape(self, name: str) -> tuple[int, int]:
        """Return rows and columns of these values in the picture; a bias is a column, beside the rows of its weight."""
        rows, *columns = {**self.values, **self.network.parameters}[name].shape
        return rows, columns[0] if columns else 1

    def wrong(self, name: str, broken: Break | None) -> NDArray[np.bool_]:
        """Return a mask, in the shape of the picture, of the values of this gradient that `broken` makes wrong."""
        return np.asarray(np.abs(self.grads(broken)[name] - self.right[name]) > 1e-9).reshape(self.shape(name))

    def wrong_count(self, broken: Break | None) -> tuple[int, int]:
        """Return how many gradient values `broken` makes wrong, and how many there are."""
        return sum(int(self.wrong(name, broken).sum()) for name in self.right), sum(g.size for g in self.right.values())


def _layout(graph: Graph) -> tuple[Grids, Grids, float]:
    """Where values and gradients stand, by name, and the height of the sheet."""
    width = (WIDTH - 2 * EDGE - (len(FLOW) - 1) * GAP) / sum(graph.shape(name)[1] for name in FLOW)

    def grid(name: str, left: float, top: float) -> Cells:
        return Cells(left, top, *graph.shape(name), min(CELL[0], width), CELL[1])

    values: Grids = {}
    grads: Grids = {}
    top, left = WORDS + TITLE + 0.2, EDGE
    for weight, bias in (PARAMETERS[:2], PARAMETERS[2:]):
        for found in (values, grads):
            found[weight] = grid(weight, left, top)
            found[bias] = grid(bias, found[weight].right + 0.1, top)
            left = found[bias].right + 0.2
        left += 0.35
    top = max(cells.bottom for cells in values.values()) + BAND + TITLE
    left, rows = EDGE, len(graph.network.x) * CELL[1]
    for name in FLOW:
        values[name] = grid(name, left, top + (rows - graph.shape(name)[0] * CELL[1]) / 2)
        grads[name] = values[name].at(left, values[name].top + rows + TITLE)
        left = values[name].right + GAP
    return values, grads, grads["x"].top + rows + 0.62 + CURVES + 0.45


def _draw(graph: Graph, step: int, broken: int) -> Picture:
    at, wrong = STEPS[step], BREAKS[broken]
    value_grids, grad_grids, height = _layout(graph)
    sheet = Sheet(height)
    values = {**graph.values, **graph.network.parameters}
    done = {name for each in STEPS[: step + 1] if not each.back for name in each.makes} | set(PARAMETERS)
    back = {name for each in STEPS[: step + 1] if each.back for name in each.makes}
    for name, cells in value_grids.items():
        _matrix(sheet, cells, values[name], name in done, Scale.of(values[name]))
    grads = graph.grads(wrong)
    for name, cells in grad_grids.items():
        if name != "softmax":  # softmax and loss go backward in one step
            _matrix(sheet, cells, grads[name], name in back, Scale(max(np.abs(grads[name]).max(), 1e-9), True))
            if name in back:
                sheet.hatch([cells.box(*place) for place in np.argwhere(graph.wrong(name, wrong)).tolist()], "//", RED)
    for name in at.makes:
        sheet.outline((grad_grids if at.back else value_grids)[name].frame, RED if at.back else BLUE)
    _names(sheet, value_grids, grad_grids, graph.network.labels)
    sheet.text((EDGE, 0.17), at.name, RED if at.back else BLUE, bold=True)
    sheet.text((EDGE, 0.38), at.formula, size=SMALL)
    if wrong:
        spoiled, count = graph.wrong_count(wrong)
        text = f"broken: {wrong.words}. {spoiled} of {count} gradient values come out wrong (hatched)"
        sheet.text((EDGE, 0.59), text, RED, SMALL, bold=True)
    else:
        sheet.text((EDGE, 0.59), worked(graph, step), size=SMALL)
    figure = sheet.figure()
    _curves(figure, height, graph, wrong)
    return Picture(figure, _alt(graph, step, broken))


def _matrix(sheet: Sheet, cells: Cells, values: Values, there: bool, scale: Scale) -> None:
    shown = values.reshape(cells.rows, cells.columns) if there else np.full((cells.rows, cells.columns), np.nan)
    sheet.matrix(cells, shown, scale)
    if not there:
        sheet.hatch([cells.frame], "....", GREY)


def _names(sheet: Sheet, values: Grids, grads: Grids, labels: NDArray[np.int64]) -> None:
    for name in PARAMETERS:
        sheet.text_above(values[name], name if "weight" in name else "bias", size=SMALL)
        sheet.text_above(grads[name], "grad" if "weight" in name else "", colour=RED, size=SMALL)
    for name in FLOW:
        cells = values[name]
        sheet.text_above(cells.at(cells.left, values["x"].top), TITLES.get(name, name), size=SMALL)
        if name != FLOW[-1]:
            x = cells.right + GAP / 2
            sheet.text((x, values["x"].middle[1]), "→", BLUE, 13, "middle")
            sheet.text((x, grads["x"].middle[1]), "←", RED, 13, "middle")
    sheet.text_above(grads["x"], "grad: how much the loss grows with each value", colour=RED, size=SMALL)
    for number_, name in (("1", "x"), ("2", "ReLU")):
        x, band = values[name].right + GAP / 2, values[f"weight {number_}"]
        sheet.line((x, band.top + 3 * CELL[1] + 0.06), (x, values["x"].middle[1] - 0.14), width=1.0)
    middle, below = grads["softmax"].middle[0], grads["x"].middle[1]
    sheet.text((middle, below), "in one", GREY, SMALL, "middle")
    text = "labels " + ", ".join(str(int(label)) for label in labels)
    sheet.text((values["loss"].right, values["x"].top - 0.34), text, size=SMALL, anchor="right")


def worked(graph: Graph, at: int) -> str:
    """Return how the first number that a step makes is computed, in words; "" for a step without such words."""
    values, grads, at_first = graph.values, graph.right, (0, 0)
    parameters, samples = graph.network.parameters, len(graph.network.x)
    match STEPS[at].name:
        case "affine 1, forward":
            terms = zip(values["x"][0], parameters["weight 1"][0], strict=True)
            products = " + ".join(f"{_signed(a)} × {_signed(b)}" for a, b in terms)
            total = _text(values["affine 1"][at_first])
            return f"first value: {products} + {_signed(parameters['bias 1'][0])} = {total}"
        case "ReLU, forward":
            return f"first value: {_text(values['affine 1'][at_first])} becomes {_text(values['ReLU'][at_first])}"
        case "loss, forward":
            p = [row[label] for row, label in zip(values["softmax"], graph.network.labels, strict=True)]
            logs = " + ".join(f"−log {_text(value)}" for value in p)
            return f"({logs}) / {samples} = {_text(values['loss'][at_first])}"
        case "loss and softmax, backward":
            hot, p = int(graph.network.labels[0] == 0), values["softmax"][at_first]
            return f"first value: ({_text(p)} − {hot}) / {samples} = {_text(grads['scores'][at_first])}"
        case "affine 2, backward" | "affine 1, backward":
            out, bias = ("scores", "bias 2") if "2" in STEPS[at].name else ("affine 1", "bias 1")
            return f"first bias: {' + '.join(map(_signed, grads[out][:, 0]))} = {_text(grads[bias][0])}"
        case "ReLU, backward":
            value, grad = values["affine 1"][at_first], grads["ReLU"][at_first]
            passed = _text(grads["affine 1"][at_first])
            return f"first value: the input was {_text(value)}, so {_text(grad)} becomes {passed}"
    return ""


def _text(value: float) -> str:
    return number(round(float(value), 2)).replace("-", "−")


def _signed(value: float) -> str:
    return f"({_text(value)})" if value < 0 else _text(value)


def _curves(figure: Figure, height: float, graph: Graph, broken: Break | None) -> None:
    axes = figure.add_axes((MARGIN / WIDTH, 0.45 / height, (WIDTH - MARGIN - 1.6) / WIDTH, CURVES / height))
    right = graph.losses(None)
    axes.plot(right, color=BLUE)
    ends: list[tuple[float, str, str]] = [(right[-1], f"right: {number(round(right[-1], 3))}", BLUE)]
    top = 1.5 * max(right)
    if broken:
        wrong = graph.losses(broken)
        axes.plot(wrong, color=RED, linestyle="--")
        apart = " " if wrong[-1] < LONG else "\n"  # there is room for so long a number in a line of its own
        ends.append((wrong[-1], f"broken:{apart}{_end(wrong[-1])}", RED))
    axes.set(xlim=(0, TRAINING), ylim=(0, top), xlabel="step of gradient descent", ylabel="loss")
    axes.grid(True)
    for line, (_, text, colour) in enumerate(sorted(ends, reverse=True)):
        y = 1.0 - 0.2 * line if ends[0][0] < top / 4 else 0.5
        axes.text(1.03, y - 0.4, text, color=colour, transform=axes.transAxes, weight="bold", size=SMALL)
    axes.set_title("training with these gradients", size=SMALL, color=INK)


def _end(value: float) -> str:
    return number(round(value, 3) if value < 100 else float(f"{value:.1g}"))


def _alt(graph: Graph, step: int, broken: int) -> str:
    at, wrong = STEPS[step], BREAKS[broken]
    kind, values = ("gradients", graph.grads(wrong)) if at.back else ("values", graph.values)
    rows = {name: ", ".join(f"({cells_text(row)})" for row in np.atleast_2d(values[name])) for name in at.makes}
    made = "; ".join(f"{name} {numbers}" for name, numbers in rows.items())
    start, *_, end = (number(round(loss, 3)) for loss in graph.losses(None))
    text = (
        "A computation graph: x, affine 1, ReLU, affine 2, softmax, loss, "
        f"for {count_of(len(graph.network.x), 'sample')}. "
        f"Step {step} of {len(STEPS) - 1}, {at.name}: {at.formula.rstrip('.')}. The {kind} it makes: {made}. "
        f"Training with the right gradients takes the loss from {start} to {end}"
    )
    if wrong:
        spoiled, count = graph.wrong_count(wrong)
        text += f"; broken ({wrong.words}), with {spoiled} of {count} gradient values wrong, to "
        text += _end(graph.losses(wrong)[-1])
    return f"{text} in {TRAINING} steps."
