"""The modelled network between emulated ranks: it carries their messages, counts them, and says whose turn it is.

Plain data in, plain data out, and no thread: so a judge can keep it in a process of its own, out of reach of the ranks.
A rank says what it wants (`__call__`) and is told who goes on, and with what. One rank runs at a time; among those that
can go on, a seed draws the next, so that a mistake in the order of messages shows, and shows again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from unrolled.device import Array, array_module
from unrolled.ops.arguments import check_whole
from unrolled.parallel.links import Link, named

MOST_MESSAGES = 100_000
"""That one network carries: an endless loop ends there."""
MOST_BYTES = 2**29
"""That may be on their way at a time, or in all where they are kept."""


class Call(IntEnum):
    """What a rank wants."""

    START = 0
    DONE = 1
    SEND = 2
    RECEIVE = 3
    BARRIER = 4
    ALL_REDUCE = 5
    REDUCE_SCATTER = 6
    ALL_GATHER = 7
    BROADCAST = 8
    START_ALL_REDUCE = 9
    WAIT = 10


class Outcome(IntEnum):
    """How what a rank wanted came out."""

    GO_ON = 0
    DEADLOCK = 1
    MISMATCH = 2
    ENDED = 3


RING = {
    Call.BARRIER: (2, True),
    Call.ALL_REDUCE: (2, True),
    Call.START_ALL_REDUCE: (2, True),
    Call.REDUCE_SCATTER: (1, True),
    Call.ALL_GATHER: (1, False),
    Call.BROADCAST: (1, True),
}
"""By collective: rounds of a ring for each rank but one, and whether a message is a share of the array, one of p."""
COLLECTIVE = frozenset(RING)


@dataclass(frozen=True)
class Message:
    """A message as the model saw it; times in modelled seconds since the start of the run."""

    source: int
    to: int
    bytes: int
    start: float
    arrival: float
    round: int
    """How many messages, this one included, had to wait for one another."""


@dataclass(frozen=True)
class _Ask:
    call: Call
    peer: int  # another rank, the root, or the number of an all-reduce under way; -1: none
    array: Array | None

    def plain(self) -> list[int]:
        """The call, its peer, and of its array the character of the dtype and the shape."""
        return [int(self.call), self.peer, *([] if self.array is None else _plain(self.array))]


@dataclass
class _Collective:
    """A collective operation: what each rank came with, when, and once all have come, what each one gets."""

    asks: dict[int, _Ask] = field(default_factory=dict)
    start: float = 0.0
    round: int = 0
    end: float = 0.0
    results: dict[int, Array | None] | None = None


class Network:
    """The network of `size` ranks, each pair joined by a link of its own in either direction; a collective is a ring's.

    It serves one run. `seconds` (modelled, to the last rank's end), `rounds`, `link_bytes`, `messages` and
    `collectives` then say what happened; with `keep` also `contents` and `brought`, the arrays.
    """

    METHODS = ("__call__",)  # what a judge lets a rank call
    ASK_BYTES = 2**28  # of one message

    def __init__(self, size: int, link: str | Link = "NVLink 4", seed: int = 0, keep: bool = False) -> None:
        check_whole("size", size)
        self.size, self.link, self._keep = size, named(link), keep
        self.messages: list[Message] = []
        self.contents: list[Array] = []
        """Of the messages, in their order."""
        self.brought: list[list[Array]] = []
        """To each of the collectives, in their order: the array of each rank."""
        self.collectives: list[tuple[str, int]] = []
        """Name and bytes of each rank's array, in their order."""
        self._rng = np.random.default_rng(seed)
        self._clocks, self._rounds = [0.0] * size, [0] * size
        self._busy: dict[tuple[int, int], float] = {}  # until when each link is
        self._mail: dict[tuple[int, int], deque[tuple[Message, Array]]] = {}
        self._waiting: dict[int, _Ask] = {}
        self._ready: dict[int, tuple[Outcome, Any]] = {}
        self._open: dict[int, _Collective] = {}  # by number, until each rank has its result
        self._ring_busy = 0.0
        self._entered = [0] * size  # collectives that each rank has begun
        self._done: set[int] = set()
        self._held = 0  # bytes on their way, or kept
        self._begun = False

    @property
    def seconds(self) -> float:
        """Modelled seconds until the last rank had what it waited for."""
        return max(self._clocks)

    @property
    def rounds(self) -> int:
        """The longest chain of messages that had to wait for one another, those of collectives included."""
        return max(self._rounds)

    @property
    def link_bytes(self) -> dict[tuple[int, int], int]:
        """Bytes by link, (source, to): those of `send`, not of collectives."""
        found: Counter[tuple[int, int]] = Counter()
        for message in self.messages:
            found[message.source, message.to] += message.bytes
        return dict(found)

    def compute(self, rank: int, seconds: float) -> None:
        """Let a rank compute for so many modelled seconds: what has begun goes on in the meantime."""
        if not (0 <= rank < self.size and seconds >= 0):
            raise ValueError(f"rank {rank} for {seconds} s: expected a rank below {self.size}, and at least 0 s")
        self._clocks[rank] += seconds

    def __call__(self, rank: int, call: int, peer: int = -1, array: Array | None = None) -> list[Any]:
        """Take what a rank wants; return [the rank that goes on, how what it wanted came out, the value].

        START comes once, from nobody (rank -1), DONE from each rank at its end. The rank is -1 when all are done. With
        DEADLOCK or MISMATCH the value lists [rank, call, peer, dtype, *shape] of those concerned, with ENDED of the
        messages that nobody has received.
        """
        if call == Call.START:
            if self._begun:
                raise ValueError("this network has carried a run already; expected a new parallel.Network")
            self._begun = True
            self._ready = dict.fromkeys(range(self.size), (Outcome.GO_ON, None))
            return self._next()
        if not 0 <= rank < self.size or rank in self._waiting or rank in self._ready or rank in self._done:
            raise ValueError(f"rank {rank} is not the one that runs")
        size = 0 if array is None else int(array.nbytes)
        if self._held + size > MOST_BYTES or len(self.messages) >= MOST_MESSAGES:
            raise ValueError(f"more than {MOST_BYTES:,} bytes on their way or kept, or than {MOST_MESSAGES:,} messages")
        self._take(rank, _Ask(Call(call), int(peer), array))
        return self._next()

    def _take(self, rank: int, ask: _Ask) -> None:
        if ask.call == Call.DONE:
            self._done.add(rank)
        elif ask.call == Call.SEND:
            self._send(rank, ask)
        else:
            self._waiting[rank] = ask
            if ask.call in COLLECTIVE:
                self._enter(rank, ask)
        self._settle()

    def _next(self) -> list[Any]:
        """Draw who goes on. Nobody can: then all that wait are told so."""
        if not self._ready and self._waiting:
            value = [[rank, *ask.plain()] for rank, ask in sorted(self._waiting.items())]
            self._ready = dict.fromkeys(self._waiting, (Outcome.DEADLOCK, value))
            self._waiting.clear()
        if not self._ready:
            mails = self._mail.items()
            lost = [[source, Call.SEND, to, *_plain(array)] for (source, to), mail in mails for _, array in mail]
            return [-1, int(Outcome.ENDED), lost]
        rank = int(self._rng.choice(sorted(self._ready)))
        outcome, value = self._ready.pop(rank)
        return [rank, int(outcome), value]

    # messages

    def _send(self, rank: int, ask: _Ask) -> None:
        if ask.array is None or not 0 <= ask.peer < self.size:
            raise ValueError(f"a message from {rank} to {ask.peer}: expected an array, and a rank below {self.size}")
        link, size = (rank, ask.peer), int(ask.array.nbytes)
        start = max(self._clocks[rank], self._busy.get(link, 0.0))
        self._busy[link] = start + self.link.beta * size
        message = Message(rank, ask.peer, size, start, start + self.link.seconds(size), self._rounds[rank] + 1)
        self.messages.append(message)
        array = ask.array.copy()
        self._mail.setdefault(link, deque()).append((message, array))
        self._held += size
        if self._keep:
            self.contents.append(array)
        self._go_on(rank)

    def _settle(self) -> None:
        """Let go on whoever has what it waits for."""
        for rank, ask in list(self._waiting.items()):
            if ask.call == Call.RECEIVE and (mail := self._mail.get((ask.peer, rank))):
                self._deliver(rank, ask, *mail.popleft())
            elif ask.call in COLLECTIVE | {Call.WAIT} and self._group(rank, ask).results is not None:
                self._end(rank, self._group(rank, ask))

    def _deliver(self, rank: int, ask: _Ask, message: Message, array: Array) -> None:
        self._let_go(message.bytes)
        expected = ask.array
        if expected is None or expected.shape != array.shape or expected.dtype != array.dtype:
            sent = _Ask(Call.SEND, rank, array)
            value = [[message.source, *sent.plain()], [rank, *ask.plain()]]
            self._go_on(rank, value, Outcome.MISMATCH)
            return
        self._clocks[rank] = max(self._clocks[rank], message.arrival)
        self._rounds[rank] = max(self._rounds[rank], message.round)
        self._go_on(rank, array)

    # collectives

    def _group(self, rank: int, ask: _Ask) -> _Collective:
        """The collective that a rank waits for: its latest, or the one whose number it names."""
        number = ask.peer if ask.call == Call.WAIT else self._entered[rank] - 1
        if number not in self._open:
            raise ValueError(f"rank {rank} waits for all-reduce {number}, which is not under way")
        return self._open[number]

    def _enter(self, rank: int, ask: _Ask) -> None:
        """Add a rank to the collective that is its next; the last one to come completes it."""
        number = self._entered[rank]
        self._entered[rank] += 1
        group = self._open.setdefault(number, _Collective())
        for other, theirs in group.asks.items():
            if theirs.plain() != ask.plain():
                self._differ(rank, ask, other, theirs)
                return
        if ask.array is not None:
            self._held += int(ask.array.nbytes)
            ask = _Ask(ask.call, ask.peer, ask.array.copy())
        group.asks[rank] = ask
        group.start, group.round = max(group.start, self._clocks[rank]), max(group.round, self._rounds[rank])
        if ask.call == Call.START_ALL_REDUCE:
            self._go_on(rank, number)
        if len(group.asks) == self.size:
            self._complete(group, ask.call)

    def _differ(self, rank: int, ask: _Ask, other: int, theirs: _Ask) -> None:
        """Tell both that they disagree; the others go on waiting, and are told once nobody can go on."""
        value = [[other, *theirs.plain()], [rank, *ask.plain()]]
        for one in {rank, other} & self._waiting.keys():
            self._go_on(one, value, Outcome.MISMATCH)

    def _complete(self, group: _Collective, call: Call) -> None:
        """Compute what each rank gets, and when a ring has it; what began earlier on the ring goes first."""
        asks = [group.asks[rank] for rank in range(self.size)]
        size = 0 if asks[0].array is None else int(asks[0].array.nbytes)
        rounds, share = RING[call]
        rounds *= self.size - 1
        group.end = max(group.start, self._ring_busy) + rounds * self.link.seconds(size / self.size if share else size)
        group.round += rounds
        group.results = _results(call, asks)
        group.asks.clear()
        self._let_go(self.size * size)
        self._ring_busy = group.end
        self.collectives.append((call.name.lower(), size))
        if self._keep:
            self.brought.append([ask.array for ask in asks if ask.array is not None])

    def _end(self, rank: int, group: _Collective) -> None:
        assert group.results is not None
        self._clocks[rank] = max(self._clocks[rank], group.end)
        self._rounds[rank] = max(self._rounds[rank], group.round)
        self._go_on(rank, group.results.pop(rank))
        if not group.results:
            self._open = {number: other for number, other in self._open.items() if other is not group}

    def _let_go(self, size: int) -> None:
        """Count bytes as no longer held: they have arrived."""
        self._held -= 0 if self._keep else size

    def _go_on(self, rank: int, value: Any = None, outcome: Outcome = Outcome.GO_ON) -> None:
        self._waiting.pop(rank, None)
        self._ready[rank] = outcome, value


def _plain(array: Array) -> list[int]:
    return [ord(array.dtype.char), *array.shape]


def _results(call: Call, asks: Sequence[_Ask]) -> dict[int, Array | None]:
    """What each rank gets. Sums go in the order of ranks: the same bits in every run."""
    ranks, arrays = range(len(asks)), [ask.array for ask in asks]
    if call == Call.BARRIER or arrays[0] is None:
        return dict.fromkeys(ranks)
    if call == Call.BROADCAST:
        return dict.fromkeys(ranks, arrays[asks[0].peer])
    if call == Call.ALL_GATHER:
        return dict.fromkeys(ranks, array_module(arrays[0]).concatenate(arrays))
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return dict(enumerate(total.reshape(len(asks), -1))) if call == Call.REDUCE_SCATTER else dict.fromkeys(ranks, total)
