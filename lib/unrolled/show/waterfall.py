"""Where the time of a whole goes: its parts one below the other, and what none of them accounts for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unrolled.show.picture import Explorer, Picture, Slider
from unrolled.show.sheet import Sheet
from unrolled.show.style import BLUE, GREY, INK, ORANGE, PALE, RED, SMALL, WIDTH, styled
from unrolled.show.words import count_of, seconds

NAMES, VALUES = 2.75, 1.45  # inches for names on the left and numbers on the right
LEFT, RIGHT = NAMES + 0.1, WIDTH - VALUES
TOP, ROW, BAR = 0.78, 0.3, 0.2
COLOURS = {"whole": GREY, "part": BLUE, "largest": ORANGE, "remainder": PALE}  # of bars, by their kind
LETTERS = 34  # of a name
MOST_PARTS = 12
NOTHING = 0.002  # of the whole: a remainder below that is none
IN_NONE, TOO_MUCH, OTHERS = "in none of these", "the parts make too much", "others"

Tree = Mapping[str, Any]


@dataclass(frozen=True)
class Bar:
    """A part of the whole at hand; `deeper`: it has parts of its own; `kind` says what is special about it."""

    name: str
    seconds: float
    deeper: bool = False
    kind: str = "part"  # or "largest", "remainder"


@dataclass(frozen=True)
class Level:
    """A node of the tree with its parts: `path` leads to it from the root."""

    path: tuple[str, ...]
    seconds: float
    bars: tuple[Bar, ...]

    @property
    def largest(self) -> Bar:
        return next(bar for bar in self.bars if bar.kind == "largest")

    @property
    def remainder(self) -> float:
        """Seconds that the parts do not account for; below 0 if they add up to more than the whole."""
        return self.seconds - sum(bar.seconds for bar in self.bars if bar.kind != "remainder")


def waterfall(profile: Any, path: Sequence[str] = ()) -> Explorer:
    """Draw the parts of a whole, each bar beginning where the one above ends, and the remainder.

    A slider chooses the whole; the still shows the way down from `path`, into the largest part each time. profile: of
    `unrolled.profile`, or a tree of plain data: {"name", "seconds", "parts": [such trees]}, its root with "where" (what
    gave the times). path: where to start, as in ("backward",).
    ValueError for a tree whose root has no parts, and for a path that leads nowhere.
    """
    tree: Tree = profile if isinstance(profile, Mapping) else profile.tree
    levels = list(levels_of(tree))
    if not levels:
        raise ValueError(f"{tree['name']!r} has no parts to show")
    paths = [level.path[1:] for level in levels]
    if tuple(path) not in paths:
        raise ValueError(f"path is {tuple(path)}; expected one of {', '.join(map(str, paths))}")
    where = str(tree.get("where", ""))
    slider = Slider("parts of", levels, paths.index(tuple(path)), lambda level: " / ".join(level.path))
    by_path, way_down = {level.path: level for level in levels}, [levels[slider.start]]
    while below := by_path.get((*way_down[-1].path, way_down[-1].largest.name)):
        way_down.append(below)
    return Explorer(lambda level: _draw([level], where), unfolded=lambda: _draw(way_down, where), level=slider)


def levels_of(tree: Tree, path: tuple[str, ...] = ()) -> Iterator[Level]:
    """Yield every node that has parts, each before the nodes below it, those of larger parts first.

    Its bars are the parts in their order, small ones together if there are many, and the remainder.
    """
    parts, whole = tree.get("parts", ()), float(tree["seconds"])
    if not parts:
        return
    path, by_size = (*path, str(tree["name"])), sorted(parts, key=lambda part: -part["seconds"])
    shown, bars, total = by_size[:MOST_PARTS], [], sum(part["seconds"] for part in parts)
    for part in parts:
        if any(part is one for one in shown):
            kind = "largest" if part is shown[0] else "part"
            bars.append(Bar(str(part["name"]), part["seconds"], bool(part.get("parts")), kind))
    if len(parts) > len(shown):
        bars.append(Bar(f"{len(parts) - len(shown)} {OTHERS}", total - sum(part["seconds"] for part in shown)))
    left = whole - total
    bars.append(Bar(IN_NONE if left >= -NOTHING * whole else TOO_MUCH, left, kind="remainder"))
    yield Level(path, whole, tuple(bars))
    for part in by_size:
        yield from levels_of(part, path)


@styled()
def _draw(levels: Sequence[Level], where: str) -> Picture:
    """One level below the other, each with its own scale."""
    sheet, top = Sheet(sum(map(_height, levels))), 0.0
    for level in levels:
        _level(sheet, level, where, top)
        top += _height(level)
    return Picture(sheet.figure(), " ".join(_alt(level, where) for level in levels))


def _height(level: Level) -> float:
    return TOP + ROW * (len(level.bars) + 1) + 0.12


def _level(sheet: Sheet, level: Level, where: str, top: float) -> None:
    sheet.text((0.1, top + 0.17), f"{' / '.join(level.path)}{f' ({where})' if where else ''}", bold=True)
    sheet.text((0.1, top + 0.43), _summary(level))
    first, scale = top + TOP, (RIGHT - LEFT) / (max(level.seconds, level.seconds - level.remainder) or 1.0)
    _row(sheet, first, level.path[-1], level.seconds, level.seconds, (LEFT, level.seconds * scale), "whole")
    start = 0.0
    for i, bar in enumerate(level.bars, 1):
        name = f"{bar.name} ▸" if bar.deeper else bar.name
        y, left = first + ROW * i, LEFT + scale * (start if bar.seconds >= 0 else start + bar.seconds)
        _row(sheet, y, name, bar.seconds, level.seconds, (left, abs(bar.seconds) * scale), bar.kind)
        start += bar.seconds
        if i < len(level.bars):
            x = LEFT + scale * start
            sheet.line((x, y + BAR), (x, y + ROW), width=0.8)
    sheet.line((LEFT, first - 0.03), (LEFT, first + ROW * (len(level.bars) + 1)), width=0.8)


def _row(sheet: Sheet, y: float, name: str, value: float, whole: float, extent: tuple[float, float], kind: str) -> None:
    box = (extent[0], y, max(extent[1], 0.012), BAR)
    sheet.fill(box, COLOURS[kind])
    if kind == "remainder":
        sheet.hatch([box], "////", RED)
    middle, bold = y + BAR / 2, kind in ("whole", "largest")
    sheet.text((NAMES, middle), _short(name), RED if kind == "remainder" else INK, SMALL, "right", bold)
    share, sign = value / whole if whole else 0.0, "−" if value < 0 else ""
    sheet.text((RIGHT + 0.1, middle), f"{sign}{seconds(abs(value))}", INK, SMALL, bold=bold)
    if kind != "whole":
        sheet.text((WIDTH - 0.1, middle), f"{sign}{percent(abs(share))}", INK, SMALL, "right", bold)


def percent(share: float) -> str:
    """Return a share of 1 in percent with one decimal, so that a column of them can be added up."""
    return f"{100 * share:.1f} %"


def _short(name: str) -> str:
    return name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"


def _summary(level: Level) -> str:
    largest = level.largest
    share = level.remainder / level.seconds if level.seconds else 0.0
    if share < -NOTHING:
        rest = f"The parts add up to {percent(-share)} more than the whole."
    elif share > NOTHING:
        rest = f"{percent(share)} is in none of the parts."
    else:
        rest = "The parts explain the whole."
    part = largest.seconds / level.seconds if level.seconds else 0.0
    return f"Most of it: {_short(largest.name)}, {percent(part)}. {rest}"


def _alt(level: Level, where: str) -> str:
    whole, bars = level.seconds or 1.0, [bar for bar in level.bars if bar.kind != "remainder"]
    parts = "; ".join(f"{bar.name} {seconds(bar.seconds)} ({percent(bar.seconds / whole)})" for bar in bars)
    return (
        f"{' / '.join(level.path)} takes {seconds(level.seconds)}{f' ({where})' if where else ''}, in "
        f"{count_of(len(bars), 'part')}: {parts}. {_summary(level)}"
    )
