"""Which work on a GPU comes before which, and who touched which bytes when: races between streams.

As data-race detectors do, each stream and each event has a vector clock (Fidge 1988 and Mattern 1989, after Lamport
1978), and each access is told by one entry of it, its stream and a count, as in FastTrack (Flanagan and Freund, PLDI
2009). Here one count serves all streams. It goes up wherever another stream or the host may learn how far a stream is,
so accesses of one stream with the same count are before, or after, the same things.

An order comes from a stream itself, from events, from a host that waits, and from the default stream: by CUDA's rules
it waits for each blocking stream, and each of these for it. Two accesses of which one writes, to a byte that both
touch, need an order between. Atomic operations need none among themselves.
"""

from __future__ import annotations

import linecache
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from unrolled.simgpu.lockstep.faults import STREAMS, Fault
from unrolled.simgpu.timeline import LANES, NON_BLOCKING

Clock: TypeAlias = dict[int, int]
"""For each stream, up to which count its work comes before. A stream that is not there: none of it."""
Line: TypeAlias = tuple[str, int]
"""A file, or a cell of a notebook, and the number of a line in it."""
Touches: TypeAlias = "Callable[[], Iterable[Touch]] | Sequence[Touch]"
"""What some work touches. What is called is called only if it matters; what may be large comes as a sequence."""
READ, WRITE, ATOMIC = "read", "write", "atomic"
_DOES = {READ: "reads", WRITE: "writes", ATOMIC: "changes"}
MOST = 32
"""How many accesses of one piece of memory are kept. The oldest are forgotten, and races with them are not found."""
LONGEST = 2**12
"""How many notes are kept of a stream that works alone; the oldest are forgotten, too."""
SEVERAL = -1


@dataclass
class Order:
    """The clocks of a machine. `host` is what the host has waited for; so it comes before all that is issued later.

    Where only one stream has work that the host has not waited for, nothing can race. What that one does is noted, and
    looked at once another one gets work.
    """

    count: int = 1
    host: Clock = field(default_factory=dict)
    streams: dict[int, Clock] = field(default_factory=lambda: {0: {}})
    newest: Clock = field(default_factory=dict)
    """At which count each stream was last given something."""
    only: int | None = None
    """The only stream with work that the host has not waited for; None for no stream, `SEVERAL` for more."""
    notes: deque[Note] = field(default_factory=lambda: deque(maxlen=LONGEST))
    """What that one did."""


def follow(order: Order, stream: int) -> Clock:
    """Return the clock of what a stream is given now, behind all that it has to wait for."""
    clock = order.streams.setdefault(stream, {})
    if stream < NON_BLOCKING and len(order.streams) > 1:
        others = [other for other in list(order.streams) if 0 < other < NON_BLOCKING] if stream == 0 else [0]
        new = [other for other in others if order.newest.get(other, 0) > clock.get(other, 0)]
        for other in new:
            merge(clock, order.streams[other])
            clock[other] = order.count
        order.count += bool(new)
    order.newest[stream] = order.count
    return clock


def record(order: Order, stream: int) -> Clock:
    """Return the clock of an event at this place of a stream."""
    known = follow(order, stream).items()
    found = {other: count for other, count in known if count > order.host.get(other, 0)} | {stream: order.count}
    order.count += 1
    return found


def wait(order: Order, event: Mapping[int, int], stream: int | None) -> None:
    """Let a stream wait for an event; None: the host."""
    if stream is not None:
        merge(follow(order, stream), event)
        return
    merge(order.host, event)
    if all(count <= order.host.get(other, 0) for other, count in list(order.newest.items())):
        order.streams, order.newest, order.only = {0: {}}, {}, None
        order.notes.clear()


def wait_for_all(order: Order) -> None:
    """Let the host wait for all streams."""
    wait(order, dict.fromkeys(order.newest, order.count), None)
    order.count += 1


def merge(clock: Clock, other: Mapping[int, int]) -> None:
    """Let a clock come after another one, too."""
    for stream, count in other.items():
        if count > clock.get(stream, 0):
            clock[stream] = count


@dataclass(eq=False)
class History:
    """One piece of memory, which arrays get one after another: those accesses that others may still race with."""

    accesses: list[Access] = field(default_factory=list)


class Touch(NamedTuple):
    """What a kernel or a copy does to memory: bytes from `low` to `high`, read, written or changed."""

    history: History
    buffer: int
    """Number of the array's buffer. Another one with the same history is of an array that came later, or before."""
    kind: str
    low: int
    high: int
    cells: Callable[[], Any] | None = None
    """Return which of these bytes, as an array of bool; None: all of them."""


class Note(NamedTuple):
    """Work on a stream: at which count, of which name, in which line of the program, and what it touches."""

    stream: int
    moment: int
    name: str
    line: Line | None
    touches: Touches


class Access(NamedTuple):
    """A touch, and the work that did it."""

    touch: Touch
    by: Note


def enter(order: Order, stream: int, touches: Touches, name: str, line: Line | None) -> tuple[Access, Access] | None:
    """Note what a stream does to memory now. Return (earlier, this) for a race with what was done earlier, if any."""
    clock = follow(order, stream)
    now = Note(stream, order.count, name, line, touches)
    if order.only is None or order.only == stream:
        order.only = stream
        order.notes.append(now)
        if callable(touches):
            return None
    if order.notes:
        notes = list(order.notes)  # at once: a program's other thread may add to them
        order.notes.clear()
        for note in notes:
            _enter(note, {}, order.host)
    if order.only == stream:
        return None
    order.only = SEVERAL
    return _enter(now, clock, order.host)


def _enter(now: Note, clock: Clock, host: Clock) -> tuple[Access, Access] | None:
    for touch in now.touches() if callable(now.touches) else now.touches:
        kept, access = [], Access(touch, now)
        for old in touch.history.accesses:
            stream, moment, _, line, _ = old.by
            if moment <= host.get(stream, 0):
                continue
            if stream != now.stream and moment > clock.get(stream, 0):
                if conflict(old.touch, touch):
                    return old, access
                kept.append(old)
            elif line == now.line and moment == now.moment and stream == now.stream and _goes_on(old.touch, touch):
                low, high = min(old.touch.low, access.touch.low), max(old.touch.high, access.touch.high)
                access = Access(touch._replace(low=low, high=high), now)
            elif not _covers(touch, old.touch):
                kept.append(old)
        kept.append(access)
        touch.history.accesses = kept[-MOST:]
    return None


def conflict(one: Touch, other: Touch) -> bool:
    """Return whether two touches of one block need an order: both reach a byte, and do not only read or only change."""
    low, high = max(one.low, other.low), min(one.high, other.high)
    if low >= high or (one.kind == other.kind and one.kind != WRITE):
        return False
    reached = [touch.cells()[low - touch.low : high - touch.low] for touch in (one, other) if touch.cells]
    return all(part.any() for part in reached) and (len(reached) < 2 or bool((reached[0] & reached[1]).any()))


def _covers(new: Touch, old: Touch) -> bool:
    """Whether whatever races with the old touch races with the new one, which comes after it."""
    if new.kind not in (WRITE, old.kind):
        return False
    if new.cells is None:
        return new.low <= old.low and old.high <= new.high
    return (new.low, new.high, new.cells) == (old.low, old.high, old.cells)


def _goes_on(old: Touch, new: Touch) -> bool:
    """Whether the new touch is one more of a row, as those of a loop over neighbouring parts."""
    apart = old.cells or new.cells or old.high < new.low or new.high < old.low
    return not apart and old.kind == new.kind and old.buffer == new.buffer


def fault(earlier: Access, now: Access) -> Fault:
    """Return the finding for two accesses that race."""
    first, second = _stream(earlier.by.stream), _stream(now.by.stream)
    done = f"{_name(earlier.by)} on {first} {_DOES[earlier.touch.kind]}"
    if earlier.touch.buffer != now.touch.buffer:
        done += ", of an array that is gone: its memory was given out again"
    missing = f"a wait_event on {second}, for an event that {first} records after that"
    does = f"{_name(now.by)} on {second} {_DOES[now.touch.kind]} what"
    (line, code), (other_line, other_code) = _code(now.by.line), _code(earlier.by.line)
    text = f"{does} {done}. Nothing orders the two: {missing}, is missing"
    return Fault(STREAMS, line, code, text, other_line=other_line, other_code=other_code)


def _code(line: Line | None) -> tuple[int, str]:
    """The number of a line, and its text."""
    return (0, "") if line is None else (line[1], linecache.getline(*line).strip())


def _name(by: Note) -> str:
    return by.name if " " in by.name else f"`{by.name}`"


def _stream(number: int) -> str:
    if number >= LANES:
        return "a side stream of a graph"
    return f"stream {number}" if number else "the default stream"
