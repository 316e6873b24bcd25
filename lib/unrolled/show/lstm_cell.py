"""One step of an LSTM: four gates, gate after gate, then the new cell state and output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unrolled import ops
from unrolled.show.graph import Step, Values
from unrolled.show.picture import Explorer, Picture, Slider
from unrolled.show.sheet import Cells, Point, Scale, Sheet, cell_text
from unrolled.show.style import BLUE, GREY, INK, PALE, SMALL
from unrolled.show.words import count_of, listing

# Two units: the first keeps what it holds, the second forgets it and takes what is new.
X, H, C = np.array([1.0, -0.5]), np.array([0.5, 0.2]), np.array([0.8, -0.6])
WEIGHT_IH = np.array([[-2, 1], [2, 0], [2, -1], [-3, 1], [1, 0.5], [1.5, -1], [1, -1], [2, 0]])
WEIGHT_HH = np.array([[-1, 0], [1, 1], [1, 0], [0, -1], [0, 1], [1, 0], [1, 0], [0, 1]], np.float64)
BIAS = np.array([-0.5, 0.5, 1, 0, 0, 0, 0, 0])

CELL_SIZE = 0.5, 0.24  # inches
TOP, CELL_GAP = 1.28, 0.36
# Left sides of the columns: what comes in, sums, gates, f * c, i * g, the new c, the new h.
IN, SUMS, GATES, KEPT, ADDED, NEW_C, NEW_H = 0.12, 1.9, 3.35, 4.3, 5.05, 5.85, 6.88
BLOCKS = "ifgo"
LONGEST = 95  # characters of a sum that fits in a line


CELL_STEPS = (
    Step("start", ("x", "h before", "c before"), "x is this step's input; h and c come from the step before."),
    Step("sums", ("sums",), "sums = x @ weight_ih.T + h @ weight_hh.T + bias: four blocks, i, f, g and o"),
    Step("input gate", ("i",), "i = sigmoid(its sums): how much of what is new gets in, from 0 to 1"),
    Step("forget gate", ("f",), "f = sigmoid(its sums): how much of c stays, from 0 to 1"),
    Step("candidate", ("g",), "g = tanh(its sums): what is new, from −1 to 1"),
    Step("output gate", ("o",), "o = sigmoid(its sums): how much of c is shown, from 0 to 1"),
    Step("new cell state", ("f * c", "i * g", "c"), "c = f * c + i * g: what stays, and what gets in"),
    Step("new output", ("h",), "h = o * tanh(c): what the next step and the next layer see"),
)
LAST = len(CELL_STEPS) - 1


@dataclass(frozen=True)
class Cell:
    """One sample's step: x (D,), h and c (H,) before it, and the weights in four blocks of H rows: i, f, g, o."""

    x: Values
    h: Values
    c: Values
    weight_ih: Values
    weight_hh: Values
    bias: Values

    @property
    def units(self) -> int:
        return len(self.h)

    @cached_property
    def values(self) -> dict[str, Values]:
        """All values by name; "sums" is (4, H), the others are (D,) or (H,)."""
        sums = (self.x @ self.weight_ih.T + self.h @ self.weight_hh.T + self.bias).reshape(4, -1)
        i, f, g, o = ops.sigmoid(sums[0]), ops.sigmoid(sums[1]), np.tanh(sums[2]), ops.sigmoid(sums[3])
        c = f * self.c + i * g
        found = {"x": self.x, "h before": self.h, "c before": self.c, "sums": sums, "i": i, "f": f, "g": g, "o": o}
        return {**found, "f * c": f * self.c, "i * g": i * g, "c": c, "h": o * np.tanh(c)}


def lstm_cell() -> Explorer:
    """Draw one step of an LSTM for one sample as a graph with its numbers; a slider goes from gate to gate."""
    cell = Cell(X, H, C, WEIGHT_IH, WEIGHT_HH, BIAS)
    slider = Slider("step", range(LAST + 1), LAST, lambda at: f"{at} of {LAST}: {CELL_STEPS[at].name}", True)
    return Explorer(_draw_cell, cell, step=slider)


def places_of(cell: Cell) -> dict[str, Cells]:
    """Return where the values stand, by name: a column of cells each; the sums are one a gate, as "sums i"."""
    units, (width, height) = cell.units, CELL_SIZE
    pitch = units * height + CELL_GAP

    def column(left: float, row: float, count: int = units) -> Cells:
        return Cells(left, TOP + row * pitch, count, 1, width, height)

    found = {"c before": column(IN, 0), "c": column(NEW_C, 0), "f * c": column(KEPT, 0), "i * g": column(ADDED, 1)}
    for row, name in enumerate(BLOCKS, start=1):
        found[f"sums {name}"], found[name] = column(SUMS, row), column(GATES, row)
    found["h"] = column(NEW_H, 4)
    middle = found["i"].top + 0.5 * units * height
    x = column(IN, 1.4, len(cell.x))
    return {**found, "x": x.at(IN, middle + 0.7 * pitch - x.size[1] / 2), "h before": column(IN, 3.1)}


def _draw_cell(cell: Cell, step: int) -> Picture:
    places, at = places_of(cell), CELL_STEPS[step]
    sheet = Sheet(places["o"].bottom + 0.4)
    sheet.text((IN, 0.18), f"Step {step}: {at.name}", BLUE, 11, bold=True)
    sheet.text((IN, 0.43), at.formula)
    sheet.text((IN, 0.66), worked_cell(cell, step), size=SMALL)
    done = {name for each in CELL_STEPS[: step + 1] for name in each.makes}
    _edges(sheet, places, at.makes, done)
    values = cell.values
    shown = {f"sums {name}": values["sums"][row] for row, name in enumerate(BLOCKS)}
    shown |= {name: value for name, value in values.items() if name != "sums"}
    scale = Scale(max(1.0, *(float(np.abs(value).max()) for value in shown.values())), True)
    for name, cells in places.items():
        made = "sums" if name.startswith("sums") else name
        there = made in done
        sheet.fill(cells.frame, "#FFFFFF")
        sheet.matrix(cells, shown[name][:, None] if there else np.full((cells.rows, 1), np.nan), scale)
        if not there:
            sheet.hatch([cells.frame], "....", PALE)
        bold = name in (*BLOCKS, "c", "h")
        sheet.text((cells.left, cells.top - 0.12), name, INK if there else GREY, SMALL, bold=bold)
        if made in at.makes:
            sheet.outline(cells.frame, BLUE)
    return Picture(sheet.figure(), _alt_cell(cell, step))


def _edges(sheet: Sheet, places: dict[str, Cells], makes: Sequence[str], done: set[str]) -> None:
    """The lines from value to value; those into what is made now are thick."""

    def edge(*points: Point, into: str) -> None:
        now = into in makes
        sheet.arrow(*points, colour=BLUE if now else GREY if into in done else "#BBBBBB", width=1.8 if now else 0.9)

    def right(name: str) -> Point:
        return places[name].right, places[name].middle[1]

    def left(name: str, shift: float = 0.0) -> Point:
        return places[name].left - 0.03, places[name].middle[1] + shift

    for name in BLOCKS:
        for source, shift in (("x", -0.05), ("h before", 0.05)):
            edge(right(source), left(f"sums {name}", shift), into="sums")
        edge(right(f"sums {name}"), left(name), into=name)
        words = "tanh" if name == "g" else "sigmoid"
        sheet.text(
            ((SUMS + CELL_SIZE[0] + GATES) / 2, places[name].middle[1] - 0.1), words, size=SMALL, anchor="middle"
        )
    kept, added, new_c, new_h = (places[name] for name in ("f * c", "i * g", "c", "h"))
    edge(right("c before"), left("f * c"), into="f * c")
    edge(right("f"), (kept.middle[0], right("f")[1]), (kept.middle[0], kept.bottom + 0.03), into="f * c")
    edge(right("i"), left("i * g"), into="i * g")
    edge(right("g"), (added.middle[0], right("g")[1]), (added.middle[0], added.bottom + 0.03), into="i * g")
    edge(right("f * c"), left("c"), into="c")
    edge(right("i * g"), (new_c.middle[0], right("i * g")[1]), (new_c.middle[0], new_c.bottom + 0.03), into="c")
    edge(right("c"), (new_h.middle[0], right("c")[1]), (new_h.middle[0], new_h.top - 0.24), into="h")
    edge(right("o"), left("h"), into="h")
    sheet.text((new_h.middle[0] + 0.06, (right("c")[1] + new_h.top) / 2), "tanh", size=SMALL)
    sheet.text((new_c.middle[0] + 0.08, right("i * g")[1] - 0.25), "+", size=12)


def worked_cell(cell: Cell, step: int) -> str:
    """Return how the first number that a step makes is computed, in words."""
    values, at = cell.values, CELL_STEPS[step]
    first = {name: _signed_bare(value.flat[0]) for name, value in values.items()}
    if at.name == "start":
        return f"{count_of(len(cell.x), 'input')}, {count_of(cell.units, 'unit')}: {4 * cell.units} sums to compute."
    if at.name == "sums":
        pairs = [*zip(cell.x, cell.weight_ih[0], strict=True), *zip(cell.h, cell.weight_hh[0], strict=True)]
        terms = " + ".join([f"{_signed_bare(a)} × {_signed_bare(b)}" for a, b in pairs] + [_signed_bare(cell.bias[0])])
        how = terms if len(terms) < LONGEST else f"{len(pairs)} products and a bias"
    elif at.name == "new cell state":
        how = f"{first['f']} × {first['c before']} + {first['i']} × {first['g']}"
    elif at.name == "new output":
        how = f"{first['o']} × tanh({_bare(values['c'][0])})"
    else:
        sums = values["sums"][BLOCKS.index(at.makes[0]), 0]
        how = f"{'tanh' if at.makes[0] == 'g' else 'sigmoid'}({_bare(sums)})"
    return f"First value: {how} = {_bare(values[at.makes[-1]].flat[0])}"


def _bare(value: float) -> str:
    text = cell_text(float(value))
    return text.replace(".", "0.", 1) if text.lstrip("−").startswith(".") else text


def _signed_bare(value: float) -> str:
    return f"({_bare(value)})" if _bare(value).startswith("−") else _bare(value)


def _alt_cell(cell: Cell, step: int) -> str:
    at, values = CELL_STEPS[step], cell.values
    made = []
    for name in at.makes:
        rows = dict(zip(BLOCKS, values["sums"], strict=True)) if name == "sums" else {name: values[name]}
        made += [f"{row} ({', '.join(cell_text(value) for value in found.tolist())})" for row, found in rows.items()]
    return (
        f"One step of an LSTM with {count_of(cell.units, 'unit')} as a graph: x, h and c come in, four gates i, f, g "
        f"and o are made of x and h, c and h go out. Step {step} of {LAST}, {at.name}: {at.formula.rstrip('.')}. "
        f"{worked_cell(cell, step).rstrip('.')}. Made: {listing(made)}."
    )
