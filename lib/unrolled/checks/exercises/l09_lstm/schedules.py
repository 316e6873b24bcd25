"""When each step of each layer is computed: what is a valid schedule, and how many slots the shortest one has."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from unrolled.checks.compare import Mismatch
from unrolled.checks.spec import Inputs

Cell = tuple[int, int]
Schedule = list[list[Cell]]
NEEDED = {(-1, 0): "the layer below", (0, -1): "the step before"}
"""What a cell needs, as the way there."""
SHAPE = "expected a list of slots, each a list of cells (layer, step)"


def diagonals(layers: int, steps: int) -> Schedule:
    """Return the cells (layer, step) of each slot: in slot d those with layer + step = d."""
    return [
        [(layer, d - layer) for layer in range(layers) if 0 <= d - layer < steps] for d in range(layers + steps - 1)
    ]


def judge(got: Any, expected: Schedule, inputs: Inputs) -> Mismatch | None:
    """Say what is wrong with a schedule: its form, a cell that is missing or doubled, too early, or too many slots."""
    try:
        slots = [[_cell(cell) for cell in slot] for slot in got]
    except (TypeError, ValueError) as error:
        said = f"{error}" if str(error).startswith("a cell") else f"this is no schedule, but {type(got).__name__}"
        return Mismatch((said, SHAPE))
    layers, steps = inputs["layers"], inputs["steps"]
    wrong = _counted(slots, layers, steps) or _ordered(slots)
    if wrong is None and len(slots) > len(expected):
        wrong = (
            f"valid, and {len(slots)} slots long; {len(expected)} are enough for {layers} layers and {steps} steps: "
            "let all cells fire as soon as what they need is done"
        )
    return None if wrong is None else Mismatch((wrong,))


def _cell(cell: Any) -> Cell:
    layer, step = cell
    if isinstance(layer, bool) or isinstance(step, bool):
        raise TypeError(f"a cell is {cell!r:.60}: whole numbers (layer, step) are expected")
    return index(layer), index(step)


def _counted(slots: Sequence[Sequence[Cell]], layers: int, steps: int) -> str | None:
    """What is wrong with which cells there are."""
    cells = [cell for slot in slots for cell in slot]
    for layer, step in cells:
        if not (0 <= layer < layers and 0 <= step < steps):
            return (
                f"cell ({layer}, {step}) is not among {layers} layers and {steps} steps, counted from 0: a cell is "
                "(layer, step)"
            )
    if twice := [cell for cell in dict.fromkeys(cells) if cells.count(cell) > 1]:
        return f"cell {twice[0]} fires {cells.count(twice[0])} times: once is enough"
    missing = [(layer, step) for layer in range(layers) for step in range(steps) if (layer, step) not in cells]
    if missing:
        return f"{len(missing)} of {layers * steps} cells never fire, the first is {missing[0]}"
    return None


def _ordered(slots: Sequence[Sequence[Cell]]) -> str | None:
    """Which cell fires before what it needs."""
    when = {cell: number for number, slot in enumerate(slots) for cell in slot}
    for (layer, step), slot in when.items():
        for (up, on), what in NEEDED.items():
            needed = layer + up, step + on
            if when.get(needed, -1) >= slot:
                return (
                    f"cell ({layer}, {step}) fires in slot {slot}, and needs {what}, {needed}, which fires in slot "
                    f"{when[needed]}: it has to be done in an earlier slot"
                )
    return None
