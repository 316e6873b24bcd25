"""Schedules, slot by slot: which cells of layers and steps fire together, and what each stage of a pipeline does.

Neither need be valid: what comes before what it needs, or again, is marked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import Generic, TypeVar

from unrolled.parallel.pipeline import activations, bubble, gpipe, needs, one_forward_one_backward
from unrolled.show.picture import Explorer, Picture, Slider, counting
from unrolled.show.sheet import LEGIBLE, POINT, Box, Cells, Dashes, Sheet
from unrolled.show.style import BLUE, FONT_SIZE, GREY, INK, ORANGE, PALE, PAPER, RED, SMALL, WIDTH
from unrolled.show.words import count_of, listing, percent

EDGE, LABEL = 0.1, 0.72  # inches
WRONG = "#FAD9C8"
Piece = TypeVar("Piece")


@dataclass(frozen=True)
class Plan(Generic[Piece]):
    """Pieces of work by slot, of `count` that there are; `needs` gives those that have to be done before a piece."""

    slots: Sequence[Sequence[Piece]]
    count: int
    needs: Callable[[Piece], list[Piece]]

    @cached_property
    def first(self) -> dict[Piece, int]:
        """The slot in which a piece is done first; pieces that are never done are missing."""
        return {piece: slot for slot in reversed(range(len(self.slots))) for piece in self.slots[slot]}

    def missing(self, piece: Piece, slot: int) -> list[Piece]:
        """Return what a piece in this slot needs and what is not done before it."""
        return [need for need in self.needs(piece) if self.first.get(need, len(self.slots)) >= slot]

    def wrong(self, slot: int) -> list[Piece]:
        """Return the pieces of a slot that come before what they need, or that were done before, or are there twice."""
        pieces = self.slots[slot]
        return [
            piece
            for piece in dict.fromkeys(pieces)
            if self.missing(piece, slot) or self.first[piece] < slot or pieces.count(piece) > 1
        ]

    @property
    def never(self) -> int:
        """How many pieces no slot does."""
        return self.count - len(self.first)


def _says_wrong(wrong: list[str], more: str, never: str) -> list[str]:
    """One sentence or none: the first of what is wrong, how many more there are, and what is never done."""
    others = [count_of(len(wrong) - 1, more)] if len(wrong) > 1 else []
    parts = [*wrong[:1], *others, *filter(None, [never])]
    return [f"Wrong: {'; '.join(parts)}."] if parts else []


def _heading(sheet: Sheet, title: str, lines: Sequence[str], top: float) -> None:
    """The title, a sentence, and in red what is wrong."""
    sheet.text((EDGE, 0.2), title, size=11, bold=True)
    for line, words in enumerate(lines):
        sheet.text((EDGE, top + 0.22 * line), words, RED if line else INK, size=SMALL if line else FONT_SIZE)


def _mark(sheet: Sheet, box: Box, width: float = 1.4) -> None:
    """Mark a box as wrong."""
    sheet.hatch([box], "//", RED)
    sheet.outline(box, RED, width)


# Layers side by side

MOST_LAYERS, MOST_STEPS = 8, 16
TOP, GAP = 1.12, 0.34  # inches; GAP: between two cells, so that arrows have room
CELL_HEIGHT, WIDEST_CELL = 0.34, 0.62
DONE, FIRING = "#9CD0EF", "#F5C566"
LINES: tuple[tuple[str, str, Dashes], ...] = (("needed, done", BLUE, "-"), ("needed, not done", RED, "--"))

Cell = tuple[int, int]


@dataclass(frozen=True)
class Layers(Plan[Cell]):
    """Slots of cells (layer, step) that fire together, on a grid of layers and steps."""

    layers: int
    steps: int

    @classmethod
    def of(cls, schedule: Sequence[Sequence[Cell]], layers: int, steps: int) -> Layers:
        """Return the plan of a schedule. TypeError or ValueError, as `wavefront` says."""
        if not (1 <= layers <= MOST_LAYERS and 1 <= steps <= MOST_STEPS):
            given = f"got {layers} and {steps}"
            raise ValueError(f"layers must be 1 to {MOST_LAYERS} and steps 1 to {MOST_STEPS}, {given}")
        try:
            slots = [[(index(layer), index(step)) for layer, step in slot] for slot in schedule]
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
        return cls(slots, layers * steps, _cells_before, layers, steps)


def _cells_before(cell: Cell) -> list[Cell]:
    """The cells whose output this one reads: the layer below at this step, its own layer a step before."""
    layer, step = cell
    return [(a, b) for a, b in ((layer - 1, step), (layer, step - 1)) if a >= 0 and b >= 0]


def wavefront(schedule: Sequence[Sequence[Cell]], layers: int, steps: int) -> Explorer:
    """Draw a grid of layers and steps, and which of its cells fire in each slot; arrows show what they need.

    schedule: a list of slots, each a list of the (layer, step) that fire together, counted from 0. It need not be
    valid: a cell that fires before what it needs, or twice, is marked. ValueError for an empty schedule, a cell outside
    the grid, more than 8 layers or 16 steps; TypeError for slots that do not hold pairs of integers.
    """
    plan = Layers.of(schedule, layers, steps)
    last = len(plan.slots) - 1
    # First shown: what is wrong, or else the widest slot, where the diagonal is seen best.
    start = max(range(last + 1), key=lambda slot: (bool(plan.wrong(slot)), len(plan.slots[slot])))
    return Explorer(_draw_cells, plan, slot=counting("slot", last, start, "{}, the last is {}"))


def _draw_cells(plan: Layers, slot: int) -> Picture:
    pitch = (WIDTH - 2 * EDGE - LABEL) / plan.steps
    width = min(WIDEST_CELL, 0.66 * pitch)
    grid = Cells(EDGE + LABEL, TOP, plan.layers, plan.steps, min(pitch, width + GAP), CELL_HEIGHT + GAP)
    sheet = Sheet(grid.bottom + 0.78)
    _heading(sheet, f"Slot {slot}; the last is {len(plan.slots) - 1}", _summary_of_cells(plan, slot), 0.45)
    boxes: dict[Cell, Box] = {}
    for layer in range(plan.layers):
        for step in range(plan.steps):  # layer 0 stands at the bottom: its input comes from below
            box = boxes[layer, step] = (*grid.box(plan.layers - 1 - layer, step)[:2], width, CELL_HEIGHT)
            _draw_cell(sheet, plan, slot, (layer, step), box)
            if layer == 0 and (width > 0.3 or step % 2 == 0):
                sheet.text((box[0] + width / 2, grid.bottom + 0.02), str(step), size=SMALL, anchor="middle")
        sheet.text((EDGE, boxes[layer, 0][1] + CELL_HEIGHT / 2), f"layer {layer}", size=SMALL)
    sheet.text((EDGE, grid.bottom + 0.02), "step", size=SMALL)
    for cell in dict.fromkeys(plan.slots[slot]):
        late, (left, top, _, _) = plan.missing(cell, slot), boxes[cell]
        for need in plan.needs(cell):
            start, (_, colour, style) = boxes[need], LINES[need in late]
            x, y = start[0] + width / 2, start[1] + CELL_HEIGHT / 2
            below = (x, start[1] - 0.02), (x, top + CELL_HEIGHT + 0.04)
            beside = (start[0] + width + 0.02, y), (left - 0.04, y)
            sheet.arrow(*(below if start[0] == left else beside), colour=colour, width=1.6, style=style)
    _legend_of_cells(sheet, grid.bottom + 0.34)
    return Picture(sheet.figure(), _alt_cells(plan, slot))


def _draw_cell(sheet: Sheet, plan: Layers, slot: int, cell: Cell, box: Box) -> None:
    """A cell with the number of the slot in which it fires; one that is waiting is pale."""
    fires, first = cell in plan.slots[slot], plan.first.get(cell)
    reached = fires or (first is not None and first < slot)
    wrong = fires and cell in plan.wrong(slot)
    if reached:
        sheet.fill(box, WRONG if wrong else FIRING if fires else DONE)
    sheet.edge(box, GREY if reached else PALE, 0.8)
    if wrong:
        _mark(sheet, box, 2)
    elif fires:
        sheet.outline(box, INK, 2)
    number = slot if fires else "–" if first is None else first
    middle = box[0] + box[2] / 2, box[1] + box[3] / 2
    sheet.text(middle, str(number), INK if reached else GREY, SMALL, "middle", bold=fires)


def _legend_of_cells(sheet: Sheet, y: float) -> None:
    x = EDGE
    for words, colour in (("done", DONE), ("fires now", FIRING), ("not yet", ""), ("too early, or again", WRONG)):
        box = sheet.swatch(x, y, words, colour, GREY if colour else PALE, 0.8)
        if colour == WRONG:
            _mark(sheet, box)
        elif colour == FIRING:
            sheet.outline(box, INK, 1.4)
        x += 0.62 + 0.075 * len(words)
    x, y = EDGE, y + 0.25
    for words, colour, style in LINES:
        sheet.arrow((x, y), (x + 0.3, y), colour=colour, width=1.6, style=style)
        sheet.text((x + 0.38, y), words, size=SMALL)
        x += 0.68 + 0.075 * len(words)
    sheet.text((x, y), "number: the slot in which a cell fires", size=SMALL)


def _summary_of_cells(plan: Layers, slot: int) -> list[str]:
    """What fires, and how many slots there are; and what of it is wrong, or in the last slot never fires."""
    fire = len(plan.slots[slot])
    now = f"{count_of(fire, 'cell')} fire{'s' * (fire == 1)}." if fire else "No cell fires."
    cells, slots = count_of(plan.count, "cell"), count_of(len(plan.slots), "slot")
    all_of_it = f"{plan.count - plan.never} of {cells} fire in {slots}"
    never = f"{count_of(plan.never, 'cell')} never fire{'s' * (plan.never == 1)}" if plan.never else ""
    wrong = []
    for cell in plan.wrong(slot):
        late = listing([str(need) for need in plan.missing(cell, slot)])
        wrong.append(f"{cell} fires a second time" if late == "none" else f"{cell} needs {late}, not done yet")
    return [
        f"{now} In all, {all_of_it}; the fewest that can do it are {plan.layers + plan.steps - 1}.",
        *_says_wrong(wrong, "more cell", never if slot == len(plan.slots) - 1 else ""),
    ]


def _alt_cells(plan: Layers, slot: int) -> str:
    fire, done = dict.fromkeys(plan.slots[slot]), sum(first < slot for first in plan.first.values())
    wrong = [str(number) for number in range(len(plan.slots)) if plan.wrong(number)]
    whole = f" Slots with a wrong cell: {listing(wrong)}." if wrong else ""
    if not wrong and not plan.never:
        whole = " Every cell fires once, after what it needs."
    return (
        f"A grid of {count_of(plan.layers, 'layer')} and {count_of(plan.steps, 'step')}. "
        f"Slot {slot} of 0 to {len(plan.slots) - 1}: {listing([str(cell) for cell in fire])} "
        f"fire{'s' * (len(fire) == 1)}; {count_of(done, 'cell')} done before. "
        f"{' '.join(_summary_of_cells(plan, slot))}{whole}"
    )


# A pipeline of stages

MOST_STAGES, MOST_SLOTS, MOST_BATCHES = 8, 128, 16
HELD, PIPELINE_TOP = 1.0, 1.0  # inches; HELD: the column at the right
ROW, HEIGHT, WIDEST, STRIP = 0.46, 0.36, 0.42, 0.07
FORWARD, BACKWARD, STRIPE = "#9CD0EF", "#F9DFA8", ORANGE
NAMES = {"gpipe": ("GPipe", gpipe), "1f1b": ("1F1B", one_forward_one_backward)}

Work = tuple[str, int]
Slot = Work | None


@dataclass(frozen=True)
class Pipeline(Plan[tuple[int, Work]]):
    """What each stage does in each slot: ("F", i) is micro-batch i forward, ("B", i) backward, None nothing."""

    rows: Sequence[Sequence[Slot]]
    micro_batches: int
    passes: int
    """Forward and backward, 2; forward alone where nothing goes back, 1."""

    @classmethod
    def of(cls, schedule: Sequence[Sequence[Slot]]) -> Pipeline:
        """Return the plan of a schedule, its rows equally long. TypeError or ValueError, as `pipeline` says."""
        try:
            rows = [[None if slot is None else _work(*slot) for slot in row] for row in schedule]
        except TypeError:
            expected = 'expected for each stage a list of ("F", i), ("B", i) or None'
            raise TypeError(f"schedule is {schedule!r:.80}; {expected}") from None
        count, longest = len(rows), max(map(len, rows), default=0)
        if not 1 <= count <= MOST_STAGES or longest > MOST_SLOTS:
            given = f"got {count} and {longest}"
            raise ValueError(f"schedule must have 1 to {MOST_STAGES} stages and at most {MOST_SLOTS} slots, {given}")
        for stage, row in enumerate(rows):
            for slot, work in enumerate(row):
                if work is not None and (work[0] not in ("F", "B") or work[1] < 0):
                    where = f"slot {slot} of stage {stage} is {work}"
                    raise ValueError(
                        f'{where}; expected ("F", i), ("B", i) or None, i a number of a micro-batch from 0'
                    )
        rows = [row + [None] * (longest - len(row)) for row in rows]
        slots = [[(stage, work) for stage, work in enumerate(at) if work] for at in zip(*rows, strict=True)]
        done = [work for slot in slots for _, work in slot]
        if not done:
            raise ValueError("schedule holds no work; expected a micro-batch in one slot or more")
        batches, passes = 1 + max(number for _, number in done), 1 + any(kind == "B" for kind, _ in done)
        return cls(slots, count * batches * passes, lambda at: needs(*at, count), rows, batches, passes)

    @property
    def fewest(self) -> int:
        """The slots that it takes at least: the last stage waits for the first micro-batch, and the first for it."""
        return self.passes * (self.micro_batches + len(self.rows) - 1)


def _work(kind: str, number: int) -> Work:
    return kind, index(number)


def pipeline(schedule: str | Sequence[Sequence[Slot]] = "gpipe", stages: int = 4, micro_batches: int = 8) -> Explorer:
    """Draw what each stage of a pipeline does in each slot, where it is idle, and how many activations it holds.

    schedule: "gpipe" or "1f1b", with sliders for it, the stages and the micro-batches; or one's own: for each stage a
    list of slots: ("F", i) for micro-batch i forward, ("B", i) backward, None for nothing; a stage whose list is
    shorter does nothing in the end. One's own need not be valid: what comes before what it needs, or again, is marked;
    `stages` and `micro_batches` are then not used. ValueError for another name, stages outside 1 to 8 or micro-batches
    outside 1 to 16, no work at all, more than 128 slots, or another letter or a negative number; TypeError for slots
    that are no pairs.
    """
    if not isinstance(schedule, str):
        plan = Pipeline.of(schedule)
        return Explorer(_draw_pipeline, plan, "Your schedule")
    if schedule not in NAMES:
        raise ValueError(f"schedule is {schedule!r}; expected {', '.join(NAMES)}, or a list of slots for each stage")
    if not (1 <= stages <= MOST_STAGES and 1 <= micro_batches <= MOST_BATCHES):
        given = f"got {stages} and {micro_batches}"
        raise ValueError(f"stages must be 1 to {MOST_STAGES} and micro_batches 1 to {MOST_BATCHES}, {given}")
    return Explorer(
        _draw_named,
        schedule=Slider("schedule", [*NAMES], [*NAMES].index(schedule), lambda name: NAMES[name][0]),
        stages=Slider("stages", range(1, MOST_STAGES + 1), stages - 1),
        micro_batches=Slider("micro-batches", range(1, MOST_BATCHES + 1), micro_batches - 1),
    )


def _draw_named(schedule: str, stages: int, micro_batches: int) -> Picture:
    title, make = NAMES[schedule]
    return _draw_pipeline(Pipeline.of(make(stages, micro_batches)), title)


def _draw_pipeline(plan: Pipeline, title: str) -> Picture:
    says, slots, held = _summary_of_pipeline(plan), len(plan.slots), activations(plan.rows)
    width = min(WIDEST, (WIDTH - 2 * EDGE - LABEL - HELD) / slots)
    grid = Cells(EDGE + LABEL, PIPELINE_TOP + 0.22 * (len(says) - 1), len(plan.rows), slots, width, ROW)
    sheet = Sheet(grid.bottom + 0.75)
    _heading(sheet, _title(plan, title), says, 0.46)
    sheet.text((grid.right + 0.12, grid.top - 0.16), "holds at most", size=SMALL)
    size = min(FONT_SIZE, 0.86 * width / (0.62 * len(str(plan.micro_batches - 1))) / POINT)  # of all numbers
    for stage in range(len(plan.rows)):
        y = grid.top + stage * ROW + HEIGHT / 2
        sheet.text((EDGE, y), f"stage {stage}", size=SMALL)
        sheet.text((grid.right + 0.12, y), str(held[stage]), size=SMALL, bold=held[stage] == max(held))
    places = [(stage, slot, plan.rows[stage][slot]) for slot in range(slots) for stage in range(len(plan.rows))]
    for stage, slot, work in sorted(places, key=lambda place: place[2] is not None):  # idle ones lie below
        box = (*grid.box(stage, slot)[:2], width, HEIGHT)
        _draw_slot(sheet, box, work, work is not None and (stage, work) in plan.wrong(slot), size)
    apart = next(step for step in (1, 2, 5, 10, 20) if step * width >= 0.24)
    for slot in range(0, slots, apart):
        x = grid.left + (slot + 0.5) * width
        sheet.text((x, grid.bottom + 0.06), str(slot), size=SMALL, anchor="middle")
    sheet.text((EDGE, grid.bottom + 0.06), "slot", size=SMALL)
    _legend_of_pipeline(sheet, grid.bottom + 0.5, any(map(plan.wrong, range(slots))))
    rows = "; ".join(
        f"stage {stage}: {' '.join(_name(work) if work else '–' for work in row)} (holds at most {most})"
        for stage, (row, most) in enumerate(zip(plan.rows, held, strict=True))
    )
    alt = f"A pipeline, slot by slot. {_title(plan, title)}. {' '.join(says)} {rows}."
    return Picture(sheet.figure(), f"{alt} F: a micro-batch forward, B: backward, –: idle.")


def _draw_slot(sheet: Sheet, box: Box, work: Slot, wrong: bool, size: float) -> None:
    """A slot with the micro-batch's number where it can be read, and a strip for backward; an idle one is pale."""
    left, top, width, height = box
    kind, number = work or ("", "")
    strip = STRIP * (kind == "B")
    sheet.fill(box, WRONG if wrong else {"F": FORWARD, "B": BACKWARD, "": PALE}[kind])
    sheet.edge(box, GREY if work else PAPER, 0.8)
    if strip:
        sheet.fill((left, top + height - strip, width, strip), STRIPE)
    if wrong:
        _mark(sheet, box, 1.6)
    if size >= LEGIBLE:
        sheet.text((left + width / 2, top + (height - strip) / 2), str(number), size=size, anchor="middle")


def _legend_of_pipeline(sheet: Sheet, y: float, wrong: bool) -> None:
    x = EDGE
    looks = [("forward", FORWARD), ("backward", BACKWARD), ("bubble: idle", PALE)]
    for words, colour in [*looks, *[("too early, or again", WRONG)] * wrong]:
        box = (x, y - 0.08, 0.24, 0.16)
        sheet.fill(box, colour)
        if colour == BACKWARD:
            sheet.fill((x, y + 0.04, 0.24, 0.04), STRIPE)
        if colour == WRONG:
            _mark(sheet, box)
        sheet.text((x + 0.32, y), words, size=SMALL)
        x += 0.58 + 0.075 * len(words)
    sheet.text((x, y), "number: the micro-batch", size=SMALL)


def _title(plan: Pipeline, title: str) -> str:
    most = count_of(max(activations(plan.rows)), "micro-batch")
    return f"{title}: bubble {percent(bubble(plan.rows))}, activations of {most} at most"


def _summary_of_pipeline(plan: Pipeline) -> list[str]:
    """How many slots there are, what is wrong, and what is never done."""
    size = f"{count_of(len(plan.rows), 'stage')}, {count_of(plan.micro_batches, 'micro-batch')}"
    wrong = []
    for slot in range(len(plan.slots)):
        for stage, work in plan.wrong(slot):
            sooner = listing([f"{_name(need)} of stage {other}" for other, need in plan.missing((stage, work), slot)])
            here = f"stage {stage} does {_name(work)} in slot {slot}"
            wrong.append(f"{here} again" if sooner == "none" else f"{here}, before {sooner}")
    never = f"{count_of(plan.never, 'pass')} never done" if plan.never else ""
    return [
        f"{size}: {count_of(len(plan.slots), 'slot')}; the fewest that can do it are {plan.fewest}.",
        *_says_wrong(wrong, "more slot", never),
    ]


def _name(work: Work) -> str:
    return f"{work[0]}{work[1]}"
