"""Attention block by block: the scores of some queries and keys at a time, and a softmax with running sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, inf, nan

import numpy as np
from numpy.typing import NDArray

from unrolled.show.picture import Explorer, Picture, Slider
from unrolled.show.sheet import Box, Cells, Scale, Sheet
from unrolled.show.style import BLUE, GREY, INK, ORANGE, SMALL
from unrolled.show.words import span

MOST, MOST_BLOCKS = 16, 7  # that there is room for
SQUARE, LEFT, TOP, LINE = 3.0, 0.85, 1.1, 0.24  # inches
TABLE = 4.2
COLUMNS = TABLE, 5.6, 6.15, 6.75, 7.35  # the left side of the first one, the right sides of the others
HELD, OUT = "#D3EAF8", "#F0F0F0"
SEED, SPREAD = 7, 1.5  # of the drawn numbers
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Sums:
    """What a query keeps: the largest score so far, and the sums of exp(score - m) and of exp(score - m) * value."""

    m: float
    total: float
    o: Values


@dataclass(frozen=True)
class Blocks:
    """T queries and T keys in blocks, of which one block of queries goes over those of keys; its values are (T, 2)."""

    t: int
    block: int
    causal: bool

    @cached_property
    def scores(self) -> Values:
        """All scores (T, T), to one decimal; -inf where a query may not look."""
        q, k = np.random.default_rng(SEED).normal(size=(2, MOST, 2))[:, : self.t]
        scores = np.round(SPREAD * q @ k.T, 1) + 0.0  # no -0
        return np.where(np.tri(self.t, dtype=bool) | (not self.causal), scores, -inf)

    @cached_property
    def values(self) -> Values:
        drawn: Values = np.random.default_rng(SEED + 1).normal(size=(MOST, 2))[: self.t]
        return np.round(drawn, 1)

    @property
    def parts(self) -> list[slice]:
        return [slice(start, min(start + self.block, self.t)) for start in range(0, self.t, self.block)]

    @property
    def at(self) -> int:
        """The block of queries that is followed, in the middle."""
        return len(self.parts) // 2

    @property
    def row(self) -> int:
        """The query whose sums are shown."""
        rows = self.parts[self.at]
        return int(rows.start + rows.stop) // 2

    @property
    def path(self) -> list[slice]:
        """The blocks of keys that its queries may look at."""
        return self.parts[: self.at + 1] if self.causal else self.parts

    @cached_property
    def sums(self) -> list[Sums]:
        """The sums of the query before the first block of keys, and after each."""
        found = [Sums(-inf, 0.0, np.zeros(2))]
        for keys in self.path:
            before, scores = found[-1], self.scores[self.row, keys]
            m = max(before.m, float(scores.max()))
            weights, fade = np.exp(scores - m), exp(before.m - m)
            found.append(
                Sums(m, fade * before.total + float(weights.sum()), fade * before.o + weights @ self.values[keys])
            )
        return found


def attention_blocks(t: int = 12, block: int = 4, causal: bool = False) -> Explorer:
    """Draw how a block of queries goes over the blocks of keys, with the running maximum and sums of one query.

    t: queries, and keys, 2 to 16; block: how many of them a block has, so that there are at most 7 blocks a side.
    `causal`: a query looks at no key after its own; blocks above the diagonal are left out. The scores are drawn at
    random, always the same. ValueError for sizes that there is no room for.
    """
    if not 2 <= t <= MOST or not 1 <= block <= t or -(-t // block) > MOST_BLOCKS:
        raise ValueError(f"t is {t} and block {block}; expected 2 to {MOST}, in at most {MOST_BLOCKS} blocks")
    blocks = Blocks(t, block, causal)
    last = len(blocks.path)
    slider = Slider("step", range(last + 1), last, lambda step: f"{step} of {last}: {_name(blocks, step)}", True)
    return Explorer(_draw, blocks, step=slider)


def _draw(blocks: Blocks, step: int) -> Picture:
    worked = _worked(blocks, step)
    sheet = Sheet(TOP + SQUARE + 0.22 + LINE * 4)
    rows = blocks.parts[blocks.at]
    who = f"Queries {_ends(rows)} go" if _size(rows) > 1 else f"Query {_ends(rows)} goes"
    path = f"{who} over the keys, one block of scores after the other"
    sheet.heading(f"Step {step}: {_name(blocks, step)}", path)
    _square(sheet, blocks, step)
    _table(sheet, blocks, step)
    for line, words in enumerate(worked):
        sheet.text((0.1, TOP + SQUARE + 0.28 + LINE * line), words, size=SMALL)
    return Picture(sheet.figure(), _alt(blocks, step, path, worked))


def _square(sheet: Sheet, blocks: Blocks, step: int) -> None:
    """The (T, T) scores in blocks, of which only the one at this step is there."""
    cells = Cells(LEFT, TOP, blocks.t, blocks.t, SQUARE / blocks.t, SQUARE / blocks.t)
    rows, keys = blocks.parts[blocks.at], blocks.path[step - 1] if step else None
    sheet.text((0.1, TOP - 0.36), "queries ↓", GREY, SMALL)
    sheet.text((LEFT, TOP - 0.36), "keys →", GREY, SMALL)
    for part in blocks.parts:
        label, middle = _ends(part).replace(" to ", "–"), cells.centre(*[(part.start + part.stop - 1) / 2] * 2)
        sheet.text((LEFT - 0.1, middle[1]), label, INK if part == rows else GREY, SMALL, "right", part == rows)
        sheet.text((middle[0], TOP - 0.13), label, INK if part == keys else GREY, SMALL, "middle", part == keys)
        for columns in blocks.parts:
            box = cells.box(part.start, columns.start, _size(part), _size(columns))
            if blocks.causal and columns.start > part.start:
                _leave_out(sheet, box)
            elif part == rows and keys and columns.start < keys.start:
                sheet.fill(box, HELD)
            sheet.edge(box)
    if keys:
        scores = blocks.scores[rows, keys]
        now = replace(cells.at(*cells.box(rows.start, keys.start)[:2]), rows=len(scores), columns=_size(keys))
        for box in now.runs(~np.isfinite(scores)):
            _leave_out(sheet, box)
        known = blocks.scores[np.isfinite(blocks.scores)]
        sheet.matrix(now, np.where(np.isfinite(scores), scores, np.nan), Scale.of(known))
        sheet.outline(now.frame, BLUE)
        sheet.outline(now.box(blocks.row - rows.start, 0, 1, now.columns), ORANGE)


def _leave_out(sheet: Sheet, box: Box) -> None:
    sheet.fill(box, OUT)
    sheet.hatch([box], "////", "#BBBBBB")


def _table(sheet: Sheet, blocks: Blocks, step: int) -> None:
    """What the query keeps, a line a step, and at the end its output; below it what the colours mean."""
    for left, name in zip(COLUMNS, (f"query {blocks.row} after", "m", "sum", "o[0]", "o[1]"), strict=True):
        sheet.text((left, TOP - 0.13), name, INK, SMALL, "right" if left > TABLE else "left", bold=True)
    sheet.line((TABLE, TOP), (COLUMNS[-1], TOP), colour=GREY)
    lines = [(_name(blocks, at), [sums.m, sums.total, *sums.o]) for at, sums in enumerate(blocks.sums)]
    lines.append(("y = o / sum", [nan, nan, *_output(blocks)]))
    last = len(blocks.path)
    for at, (name, numbers) in enumerate(lines):
        y, there = TOP + LINE * (at + 0.6), at <= step or step == last
        if at == step:
            sheet.fill((TABLE - 0.06, y - LINE / 2, COLUMNS[-1] - TABLE + 0.12, LINE), "#FBEBCB")
        sheet.text((TABLE, y), name, INK if there else GREY, SMALL, bold=at > last)
        for left, number in zip(COLUMNS[1:], numbers, strict=True):
            if there and number == number:
                sheet.text((left, y), _text(number), INK, SMALL, "right")
    y = TOP + SQUARE - 0.1
    if blocks.causal:
        _leave_out(sheet, sheet.swatch(TABLE, y, "left out: keys after the query"))
    sheet.swatch(TABLE + 1.55, y - LINE, f"query {blocks.row}", edge=ORANGE, width=2)
    sheet.swatch(TABLE, y - LINE, "there now", edge=BLUE, width=2)
    sheet.swatch(TABLE, y - 2 * LINE, "done: only the sums are kept", HELD)


def _worked(blocks: Blocks, step: int) -> list[str]:
    """What is computed for the query at this step, with its numbers."""
    if not step:
        return ["No score is there yet: m is −∞, and both sums are 0."]
    before, after, keys = blocks.sums[step - 1], blocks.sums[step], blocks.path[step - 1]
    scores = [score for score in blocks.scores[blocks.row, keys].tolist() if score > -inf]
    m, fade, added = _text(after.m), exp(before.m - after.m), float(np.exp(np.array(scores) - after.m).sum())
    less = f"({m})" if after.m < 0 else m
    once = _size(blocks.parts[blocks.at]) * _size(keys)
    last = step == len(blocks.path)
    return [
        f"Scores of query {blocks.row}: {', '.join(f'{score:.1f}' for score in scores).replace('-', '−')}.",
        f"m = max({_text(before.m)}, {_text(max(scores))}) = {m}. "
        f"Both sums so far are multiplied by exp({_text(before.m)} − {less}) = {_text(fade)}.",
        f"sum = {_text(fade)} × {_text(before.total)} + {_text(added)} = {_text(after.total)} "
        "adds up exp(score − m), and o exp(score − m) × value.",
        f"There at once: {once} of {blocks.t**2} scores.{' y is what softmax of the whole row gives.' * last}",
    ]


def _alt(blocks: Blocks, step: int, path: str, worked: list[str]) -> str:
    kept, above = blocks.sums[step], ""
    if left_out := len(blocks.parts) - 1 - blocks.at if blocks.causal else 0:
        above = f" Blocks above the diagonal are left out, {left_out} of them in these rows."
    numbers = f"m = {_text(kept.m)}, sum = {_text(kept.total)}, o = ({', '.join(map(_text, kept.o))})"
    if step == len(blocks.path):
        numbers += f", y = o / sum = ({', '.join(map(_text, _output(blocks)))})"
    return (
        f"The scores of {blocks.t} queries and {blocks.t} keys in blocks of {blocks.block} × {blocks.block}. {path}."
        f"{above} Step {step} of {len(blocks.path)}, {_name(blocks, step)}. {' '.join(worked)} "
        f"Query {blocks.row} keeps {numbers}."
    )


def _output(blocks: Blocks) -> list[float]:
    found: list[float] = (blocks.sums[-1].o / blocks.sums[-1].total).tolist()
    return found


def _name(blocks: Blocks, step: int) -> str:
    return span("key", (part := blocks.path[step - 1]).start, _size(part)) if step else "start"


def _ends(part: slice) -> str:
    return f"{part.start} to {part.stop - 1}" if _size(part) > 1 else str(part.start)


def _size(part: slice) -> int:
    return int(part.stop - part.start)


def _text(value: float) -> str:
    return f"{value:.2f}".replace("-", "−").replace("inf", "∞")
