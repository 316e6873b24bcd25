"""Layers side by side: which cells of the grid of layers and steps fire together, slot by slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index

from matplotlib.figure import Figure

from unrolled.show.picture import Explorer, counting
from unrolled.show.sheet import Box, Cells, Dashes, Sheet
from unrolled.show.style import BLUE, FONT_SIZE, GREY, INK, PALE, RED, SMALL, WIDTH
from unrolled.show.words import count_of, listing

MOST_LAYERS, MOST_STEPS = 8, 16
EDGE, LABEL, TOP, GAP = 0.1, 0.72, 1.12, 0.34  # inches; GAP: between two cells, so that arrows have room
HEIGHT, WIDEST = 0.34, 0.62
DONE, FIRING, WRONG = "#9CD0EF", "#F5C566", "#FAD9C8"
LINES: tuple[tuple[str, str, Dashes], ...] = (("needed, done", BLUE, "-"), ("needed, not done", RED, "--"))
NAMED = 1  # wrong cells that the sentence names: what two of them need is too long for a line

Cell = tuple[int, int]


@dataclass(frozen=True)
class Plan:
    """Slots of cells (layer, step) that fire together, on a grid of layers and steps."""

    slots: tuple[tuple[Cell, ...], ...]
    layers: int
    steps: int

    @cached_property
    def first(self) -> dict[Cell, int]:
        """The slot in which a cell fires first; cells that never fire are missing."""
        return {cell: slot for slot in reversed(range(len(self.slots))) for cell in self.slots[slot]}

    def needs(self, cell: Cell) -> list[Cell]:
        """Return the cells whose output this one reads: the layer below at this step, its own layer a step before."""
        layer, step = cell
        return [(a, b) for a, b in ((layer - 1, step), (layer, step - 1)) if a >= 0 and b >= 0]

    def missing(self, cell: Cell, slot: int) -> list[Cell]:
        """Return what a cell that fires in this slot needs and what is not done before it."""
        return [need for need in self.needs(cell) if self.first.get(need, len(self.slots)) >= slot]

    def wrong(self, slot: int) -> list[Cell]:
        """Return the cells of a slot that fire before what they need, or that fired before, or twice in the slot."""
        cells = self.slots[slot]
        return [
            cell
            for cell in dict.fromkeys(cells)
            if self.missing(cell, slot) or self.first[cell] < slot or cells.count(cell) > 1
        ]

    def done(self, slot: int) -> set[Cell]:
        """Return the cells that fired before this slot."""
        return {cell for cell, fired in self.first.items() if fired < slot}

    @property
    def never(self) -> int:
        """How many cells fire in no slot."""
        return self.layers * self.steps - len(self.first)


def wavefront(schedule: Sequence[Sequence[Cell]], layers: int, steps: int) -> Explorer:
    """Draw a grid of layers and steps, and which of its cells fire in each slot; arrows show what they need.

    schedule: a list of slots, each a list of the (layer, step) that fire together, counted from 0. It need not be
    valid: a cell that fires before what it needs, or twice, is marked. ValueError for an empty schedule, a cell outside
    the grid, more than 8 layers or 16 steps; TypeError for slots that do not hold pairs of integers.
    """
    if not (1 <= layers <= MOST_LAYERS and 1 <= steps <= MOST_STEPS):
        given = f"got {layers} and {steps}"
        raise ValueError(f"layers must be 1 to {MOST_LAYERS} and steps 1 to {MOST_STEPS}, {given}")
    found = Plan(slots_of(schedule, layers, steps), layers, steps)
    last = len(found.slots) - 1
    # First shown: what is wrong, or else the widest slot, where the diagonal is seen best.
    start = max(range(last + 1), key=lambda slot: (bool(found.wrong(slot)), len(found.slots[slot])))
    slider = counting("slot", last, start, "{}, the last is {}")
    return Explorer(_draw, _alt, found, slot=slider)


def slots_of(schedule: Sequence[Sequence[Cell]], layers: int, steps: int) -> tuple[tuple[Cell, ...], ...]:
    """Return the schedule as tuples of integers. TypeError or ValueError, as `wavefront` says."""
    try:
        slots = tuple(tuple((index(layer), index(step)) for layer, step in slot) for slot in schedule)
    except (TypeError, ValueError):
        expected = "expected a list of slots, each a list of (layer, step)"
        raise TypeError(f"schedule is {schedule!r:.80}; {expected}") from None
    if not slots:
        raise ValueError("schedule is empty; expected one slot or more")
    for number, slot in enumerate(slots):
        for layer, step in slot:
            if not (0 <= layer < layers and 0 <= step < steps):
                where = f"slot {number} of schedule holds ({layer}, {step})"
                raise ValueError(f"{where}; expected layers 0 to {layers - 1} and steps 0 to {steps - 1}")
    return slots


def _draw(schedule: Plan, slot: int) -> Figure:
    pitch = (WIDTH - 2 * EDGE - LABEL) / schedule.steps
    width = min(WIDEST, 0.66 * pitch)
    pitch = min(pitch, width + GAP)
    grid = Cells(EDGE + LABEL, TOP, schedule.layers, schedule.steps, pitch, HEIGHT + GAP)
    sheet = Sheet(grid.bottom + 0.78)
    sheet.text((EDGE, 0.2), f"Slot {slot}; the last is {len(schedule.slots) - 1}", size=11, bold=True)
    for line, words in enumerate(_summary(schedule, slot)):
        sheet.text((EDGE, 0.45 + 0.22 * line), words, RED if line else INK, size=SMALL if line else FONT_SIZE)
    for layer in range(schedule.layers):
        sheet.text((EDGE, _box(grid, (layer, 0), width)[1] + HEIGHT / 2), f"layer {layer}", size=SMALL)
        for step in range(schedule.steps):
            _cell(sheet, schedule, slot, (layer, step), _box(grid, (layer, step), width))
    for step in range(schedule.steps):
        if width > 0.3 or step % 2 == 0:
            x = _box(grid, (0, step), width)[0] + width / 2
            sheet.text((x, grid.bottom + 0.02), str(step), size=SMALL, anchor="middle")
    sheet.text((EDGE, grid.bottom + 0.02), "step", size=SMALL)
    for cell in dict.fromkeys(schedule.slots[slot]):
        late = schedule.missing(cell, slot)
        for need in schedule.needs(cell):
            _needed(sheet, _box(grid, need, width), _box(grid, cell, width), need in late)
    _legend(sheet, grid.bottom + 0.34)
    return sheet.figure()


def _box(grid: Cells, cell: Cell, width: float) -> Box:
    """Where a cell stands: layer 0 at the bottom, its input comes from below."""
    layer, step = cell
    return grid.left + step * grid.width, grid.top + (grid.rows - 1 - layer) * grid.height, width, HEIGHT


def _cell(sheet: Sheet, schedule: Plan, slot: int, cell: Cell, box: Box) -> None:
    """A cell with the number of the slot in which it fires; one that is waiting is pale."""
    fires, done = cell in schedule.slots[slot], cell in schedule.done(slot)
    wrong = fires and cell in schedule.wrong(slot)
    if fires or done:
        sheet.fill(box, WRONG if wrong else FIRING if fires else DONE)
    sheet.edge(box, GREY if fires or done else PALE, 0.8)
    if wrong:
        sheet.hatch([box], "//", RED)
    if fires:
        sheet.outline(box, RED if wrong else INK, 2)
    middle = box[0] + box[2] / 2, box[1] + box[3] / 2
    number = slot if fires else schedule.first.get(cell)
    colour = INK if fires or done else GREY
    sheet.text(middle, "–" if number is None else str(number), colour, SMALL, "middle", bold=fires)


def _needed(sheet: Sheet, start: Box, end: Box, late: bool) -> None:
    """An arrow from what a cell needs to the cell; dashed red where that is not done yet."""
    _, colour, style = LINES[late]
    if start[0] == end[0]:  # from the layer below
        x = start[0] + start[2] / 2
        sheet.arrow((x, start[1] - 0.02), (x, end[1] + HEIGHT + 0.04), colour=colour, width=1.6, style=style)
    else:
        y = start[1] + HEIGHT / 2
        sheet.arrow((start[0] + start[2] + 0.02, y), (end[0] - 0.04, y), colour=colour, width=1.6, style=style)


def _legend(sheet: Sheet, y: float) -> None:
    x = EDGE
    for words, colour in (("done", DONE), ("fires now", FIRING), ("not yet", ""), ("too early, or again", WRONG)):
        box = sheet.swatch(x, y, words, colour, GREY if colour else PALE, 0.8)
        if colour == WRONG:
            sheet.hatch([box], "//", RED)
            sheet.outline(box, RED, 1.4)
        elif colour == FIRING:
            sheet.outline(box, INK, 1.4)
        x += 0.62 + 0.075 * len(words)
    x, y = EDGE, y + 0.25
    for words, colour, style in LINES:
        sheet.arrow((x, y), (x + 0.3, y), colour=colour, width=1.6, style=style)
        sheet.text((x + 0.38, y), words, size=SMALL)
        x += 0.68 + 0.075 * len(words)
    sheet.text((x, y), "number: the slot in which a cell fires", size=SMALL)


def _summary(schedule: Plan, slot: int) -> list[str]:
    """What fires, and how many slots there are; and what of it is wrong."""
    fire = len(schedule.slots[slot])
    now = f"{count_of(fire, 'cell')} fire{'s' * (fire == 1)}." if fire else "No cell fires."
    cells = schedule.layers * schedule.steps
    fired = f"{cells - schedule.never} of {count_of(cells, 'cell')} fire in {count_of(len(schedule.slots), 'slot')}"
    fewest = schedule.layers + schedule.steps - 1
    return [f"{now} In all, {fired}; the fewest that can do it are {fewest}.", *_wrong(schedule, slot)]


def _wrong(schedule: Plan, slot: int) -> list[str]:
    """What is wrong in this slot and, in the last one, what never fires; one sentence or none."""
    parts = []
    for cell in schedule.wrong(slot):
        late = schedule.missing(cell, slot)
        if late:
            parts.append(f"{cell} needs {listing([str(need) for need in late])}, not done yet")
        else:
            parts.append(f"{cell} fires a second time")
    more = len(parts) - NAMED
    if more > 0:
        parts = [*parts[:NAMED], f"{count_of(more, 'more cell')}"]
    if slot == len(schedule.slots) - 1 and schedule.never:
        parts.append(f"{count_of(schedule.never, 'cell')} never fire{'s' * (schedule.never == 1)}")
    return [f"Wrong: {'; '.join(parts)}."] if parts else []


def _alt(schedule: Plan, slot: int) -> str:
    fire, done = dict.fromkeys(schedule.slots[slot]), schedule.done(slot)
    wrong = [number for number in range(len(schedule.slots)) if schedule.wrong(number)]
    whole = f"Slots with a wrong cell: {listing([str(number) for number in wrong])}." if wrong else ""
    if not wrong and not schedule.never:
        whole = "Every cell fires once, after what it needs."
    return (
        f"A grid of {count_of(schedule.layers, 'layer')} and {count_of(schedule.steps, 'step')}. "
        f"Slot {slot} of 0 to {len(schedule.slots) - 1}: {listing([str(cell) for cell in fire])} "
        f"fire{'s' * (len(fire) == 1)}; {count_of(len(done), 'cell')} done before. "
        f"{' '.join(_summary(schedule, slot))} {whole}"
    ).rstrip()
