"""A pipeline of stages: which micro-batch each stage works on, slot by slot, and where it stands idle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index

from matplotlib.figure import Figure

from unrolled.parallel.pipeline import activations, bubble, gpipe, needs, one_forward_one_backward
from unrolled.show.picture import Explorer, Slider
from unrolled.show.sheet import LEGIBLE, POINT, Box, Cells, Sheet
from unrolled.show.style import FONT_SIZE, GREY, INK, ORANGE, PALE, PAPER, RED, SMALL, WIDTH
from unrolled.show.words import count_of, listing, percent

MOST_STAGES, MOST_SLOTS = 8, 128
EDGE, LABEL, HELD, TOP, LINE = 0.1, 0.72, 1.0, 1.0, 0.22  # inches; HELD: the column at the right
ROW, HEIGHT, WIDEST, STRIP = 0.46, 0.36, 0.42, 0.07
FORWARD, BACKWARD, STRIPE, WRONG = "#9CD0EF", "#F9DFA8", ORANGE, "#FAD9C8"
MOST_BATCHES = 16
NAMES = {"gpipe": ("GPipe", gpipe), "1f1b": ("1F1B", one_forward_one_backward)}
NAMED = 1  # wrong slots that the sentence names

Work = tuple[str, int]
Slot = Work | None
Place = tuple[int, int]  # stage, slot


@dataclass(frozen=True)
class Plan:
    """What each stage does in each slot: ("F", i) is micro-batch i forward, ("B", i) backward, None nothing."""

    rows: tuple[tuple[Slot, ...], ...]

    @property
    def stages(self) -> int:
        return len(self.rows)

    @property
    def slots(self) -> int:
        return len(self.rows[0])

    @cached_property
    def busy(self) -> dict[Place, Work]:
        """What is done where, slot by slot."""
        return {
            (stage, slot): work
            for slot in range(self.slots)
            for stage, row in enumerate(self.rows)
            if (work := row[slot]) is not None
        }

    @cached_property
    def first(self) -> dict[tuple[int, Work], int]:
        """The slot in which a stage does a piece of work first."""
        return {(stage, work): slot for (stage, slot), work in reversed(self.busy.items())}

    @property
    def micro_batches(self) -> int:
        return 1 + max(number for _, number in self.busy.values())

    @property
    def bubble(self) -> float:
        """The share of all slots of all stages in which nothing is done."""
        return bubble(self.rows)

    @property
    def most_activations(self) -> list[int]:
        """For each stage, of how many micro-batches it holds activations at most: forward done, backward not."""
        return activations(self.rows)

    @property
    def passes(self) -> tuple[str, ...]:
        """Forward and backward; forward alone where nothing goes back."""
        return ("F", "B") if any(kind == "B" for kind, _ in self.busy.values()) else ("F",)

    @property
    def fewest(self) -> int:
        """The slots that it takes at least: the last stage waits for the first micro-batch, and the first for it."""
        return len(self.passes) * (self.micro_batches + self.stages - 1)

    @property
    def never(self) -> int:
        """How many pieces of work no slot does."""
        return self.stages * self.micro_batches * len(self.passes) - len(self.first)

    def missing(self, place: Place) -> list[tuple[int, Work]]:
        """Return what a place needs and what is not done before it."""
        stage, slot = place
        before = needs(stage, self.busy[place], self.stages)
        return [need for need in before if self.first.get(need, self.slots) >= slot]

    @cached_property
    def wrong(self) -> list[Place]:
        """The places where something is done before what it needs, or again."""
        return [
            (stage, slot)
            for (stage, slot), work in self.busy.items()
            if self.first[stage, work] < slot or self.missing((stage, slot))
        ]


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
        plan = plan_of(schedule)
        return Explorer(lambda: _draw(plan, "Your schedule"), lambda: _alt(plan, "Your schedule"))
    if schedule not in NAMES:
        raise ValueError(f"schedule is {schedule!r}; expected {', '.join(NAMES)}, or a list of slots for each stage")
    if not (1 <= stages <= MOST_STAGES and 1 <= micro_batches <= MOST_BATCHES):
        given = f"got {stages} and {micro_batches}"
        raise ValueError(f"stages must be 1 to {MOST_STAGES} and micro_batches 1 to {MOST_BATCHES}, {given}")
    return Explorer(
        lambda **values: _draw(*_named(**values)),
        lambda **values: _alt(*_named(**values)),
        schedule=Slider("schedule", [*NAMES], [*NAMES].index(schedule), lambda name: NAMES[name][0]),
        stages=Slider("stages", range(1, MOST_STAGES + 1), stages - 1),
        micro_batches=Slider("micro-batches", range(1, MOST_BATCHES + 1), micro_batches - 1),
    )


def _named(schedule: str, stages: int, micro_batches: int) -> tuple[Plan, str]:
    title, make = NAMES[schedule]
    return plan_of(make(stages, micro_batches)), title


def plan_of(schedule: Sequence[Sequence[Slot]]) -> Plan:
    """Return the schedule as a plan, its rows equally long. TypeError or ValueError, as `pipeline` says."""
    try:
        rows = [[None if slot is None else _work(*slot) for slot in row] for row in schedule]
    except TypeError:
        expected = 'expected for each stage a list of ("F", i), ("B", i) or None'
        raise TypeError(f"schedule is {schedule!r:.80}; {expected}") from None
    slots = max(map(len, rows), default=0)
    if not 1 <= len(rows) <= MOST_STAGES or slots > MOST_SLOTS:
        given = f"got {len(rows)} and {slots}"
        raise ValueError(f"schedule must have 1 to {MOST_STAGES} stages and at most {MOST_SLOTS} slots, {given}")
    for stage, row in enumerate(rows):
        for slot, work in enumerate(row):
            if work is not None and (work[0] not in ("F", "B") or work[1] < 0):
                where = f"slot {slot} of stage {stage} is {work}"
                raise ValueError(f'{where}; expected ("F", i), ("B", i) or None, i a number of a micro-batch from 0')
    if not any(work for row in rows for work in row):
        raise ValueError("schedule holds no work; expected a micro-batch in one slot or more")
    return Plan(tuple((*row, *[None] * (slots - len(row))) for row in rows))


def _work(kind: str, number: int) -> Work:
    return kind, index(number)


def _draw(plan: Plan, title: str) -> Figure:
    width, says = min(WIDEST, (WIDTH - 2 * EDGE - LABEL - HELD) / plan.slots), _summary(plan)
    grid = Cells(EDGE + LABEL, TOP + LINE * (len(says) - 1), plan.stages, plan.slots, width, ROW)
    sheet = Sheet(grid.bottom + 0.75)
    sheet.text((EDGE, 0.2), _title(plan, title), size=11, bold=True)
    for line, words in enumerate(says):
        sheet.text((EDGE, 0.46 + LINE * line), words, RED if line else INK, size=SMALL if line else FONT_SIZE)
    sheet.text((grid.right + 0.12, grid.top - 0.16), "holds at most", size=SMALL)
    for stage, held in enumerate(plan.most_activations):
        y = grid.top + stage * ROW + HEIGHT / 2
        sheet.text((EDGE, y), f"stage {stage}", size=SMALL)
        sheet.text((grid.right + 0.12, y), str(held), size=SMALL, bold=held == max(plan.most_activations))
        for slot in range(plan.slots):
            if (stage, slot) not in plan.busy:
                _cell(sheet, _box(grid, (stage, slot)), PALE, PAPER)
    _work_done(sheet, plan, grid)
    _slots_axis(sheet, grid)
    _legend(sheet, grid.bottom + 0.5, bool(plan.wrong))
    return sheet.figure()


def _box(grid: Cells, place: Place) -> Box:
    left, top = grid.box(*place)[:2]
    return left, top, grid.width, HEIGHT


def _cell(sheet: Sheet, box: Box, colour: str, edge: str) -> None:
    sheet.fill(box, colour)
    sheet.edge(box, edge, 0.8)


def _work_done(sheet: Sheet, plan: Plan, grid: Cells) -> None:
    """The busy slots, with the micro-batch's number where it can be read, all equally large; a strip for backward."""
    longest = len(str(plan.micro_batches - 1))
    size = min(FONT_SIZE, 0.86 * grid.width / (0.62 * longest) / POINT)
    for place, (kind, number) in plan.busy.items():
        left, top, width, height = box = _box(grid, place)
        wrong, strip = place in plan.wrong, STRIP * (kind == "B")
        _cell(sheet, box, WRONG if wrong else FORWARD if kind == "F" else BACKWARD, GREY)
        if strip:
            sheet.fill((left, top + height - strip, width, strip), STRIPE)
        if wrong:
            sheet.hatch([box], "//", RED)
            sheet.outline(box, RED, 1.6)
        if size >= LEGIBLE:
            sheet.text((left + width / 2, top + (height - strip) / 2), str(number), size=size, anchor="middle")


def _slots_axis(sheet: Sheet, grid: Cells) -> None:
    """The numbers of the slots, as many as there is room for."""
    apart = next(step for step in (1, 2, 5, 10, 20) if step * grid.width >= 0.24)
    y = grid.bottom + 0.06
    for slot in range(0, grid.columns, apart):
        sheet.text((grid.left + (slot + 0.5) * grid.width, y), str(slot), size=SMALL, anchor="middle")
    sheet.text((EDGE, y), "slot", size=SMALL)


def _legend(sheet: Sheet, y: float, wrong: bool) -> None:
    x = EDGE
    looks = [("forward", FORWARD), ("backward", BACKWARD), ("bubble: idle", PALE)]
    for words, colour in [*looks, *[("too early, or again", WRONG)] * wrong]:
        box = (x, y - 0.08, 0.24, 0.16)
        sheet.fill(box, colour)
        if colour == BACKWARD:
            sheet.fill((x, y + 0.04, 0.24, 0.04), STRIPE)
        if colour == WRONG:
            sheet.hatch([box], "//", RED)
            sheet.outline(box, RED, 1.4)
        sheet.text((x + 0.32, y), words, size=SMALL)
        x += 0.58 + 0.075 * len(words)
    sheet.text((x, y), "number: the micro-batch", size=SMALL)


def _title(plan: Plan, title: str) -> str:
    return f"{title}: bubble {percent(plan.bubble)}, activations of {_batches(max(plan.most_activations))} at most"


def _batches(count: int) -> str:
    return f"{count} micro-batch{'es' * (count != 1)}"


def _summary(plan: Plan) -> list[str]:
    """How many slots there are, and what is wrong."""
    size = f"{count_of(plan.stages, 'stage')}, {_batches(plan.micro_batches)}"
    slots = f"{count_of(plan.slots, 'slot')}; the fewest that can do it are {plan.fewest}"
    return [f"{size}: {slots}.", *_wrong(plan)]


def _wrong(plan: Plan) -> list[str]:
    """What is wrong, and what is never done; one sentence or none."""
    parts = []
    for stage, slot in plan.wrong[:NAMED]:
        work, late = plan.busy[stage, slot], plan.missing((stage, slot))
        here = f"stage {stage} does {_name(work)} in slot {slot}"
        sooner = listing([f"{_name(need)} of stage {other}" for other, need in late])
        parts.append(f"{here}, before {sooner}" if late else f"{here} again")
    if len(plan.wrong) > NAMED:
        parts.append(f"{count_of(len(plan.wrong) - NAMED, 'more slot')}")
    if plan.never:
        parts.append(f"{count_of(plan.never, 'pass')} never done".replace("passs", "passes"))
    return [f"Wrong: {'; '.join(parts)}."] if parts else []


def _name(work: Work) -> str:
    return f"{work[0]}{work[1]}"


def _alt(plan: Plan, title: str) -> str:
    rows = "; ".join(
        f"stage {stage}: {' '.join(_name(work) if work else '–' for work in row)} (holds at most {held})"
        for stage, (row, held) in enumerate(zip(plan.rows, plan.most_activations, strict=True))
    )
    key = "F: a micro-batch forward, B: backward, –: idle."
    return f"A pipeline, slot by slot. {_title(plan, title)}. {' '.join(_summary(plan))} {rows}. {key}"
