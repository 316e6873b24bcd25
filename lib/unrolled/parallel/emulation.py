"""Ranks as threads of this process, one at a time, over a modelled network: for one core, for widgets, for judging.

A rank runs until it asks the network for something; the network then says who goes on (`network.Network`). So every
run with the same seed takes the same turns, and a deadlock is known the moment nobody can go on.
"""

from __future__ import annotations

import copy
import ctypes
import linecache
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import copy_context
from textwrap import shorten
from types import NoneType
from typing import Any

import numpy as np

from unrolled.device import Array
from unrolled.ops.arguments import check_whole
from unrolled.parallel.calls import caller
from unrolled.parallel.communicator import Communicator, Pending
from unrolled.parallel.errors import DeadlockError, MismatchError, RankError
from unrolled.parallel.links import Link
from unrolled.parallel.network import COLLECTIVE, Call, Network, Outcome

TRIES, PATIENCE = 20, 1.0  # to end a thread, and seconds in which those that wait end by themselves
LINE_WIDTH, MOST_NAMED = 70, 4  # characters of a line of the program, ranks that are named for one line
Program = Callable[..., Any]


def emulate(
    program: Program,
    *arguments: Any,
    ranks: int = 2,
    link: str | Link = "NVLink 4",
    seed: int = 0,
    network: Network | None = None,
    **named: Any,
) -> list[Any]:
    """Call `program(communicator, *arguments, **named)` on `ranks` emulated ranks; return their results by rank.

    Each rank has its own copies of the arguments, as processes would. `network`, if given, is one that nothing has run
    on, and tells afterwards what was sent; then its size counts. Raises what a rank raises, MismatchError,
    DeadlockError with the line in which each rank waits, and RankError for a message that nobody receives.
    The network holds at most 512 MiB at a time, of all ranks together: an 80 MB array of each of 8 ranks is too much.
    """
    check_whole("ranks", ranks)
    if not isinstance(network, (Network, NoneType)):
        raise TypeError(f"network is {network!r}; expected a parallel.Network")
    return run_emulated(program, arguments, named, Network(ranks, link, seed) if network is None else network)


def run_emulated(program: Program, arguments: Sequence[Any], named: Mapping[str, Any], network: Network) -> list[Any]:
    """Call program(communicator, *arguments, **named) on each rank of a network; return the results by rank.

    Raises what `emulate` raises.
    """
    copies = [copy.deepcopy((arguments, named)) for _ in range(network.size)]
    return on_ranks(lambda comm, mine, options: program(comm, *mine, **options))(network, copies)


def on_ranks(program: Program) -> Callable[..., list[Any]]:
    """Return a function (network, arguments by rank) that runs the program once on each rank.

    The network may live in another process: it is called, and nothing else.
    """
    return lambda network, arguments: _Turns(network, program, arguments).run()


class EmulatedCommunicator(Communicator):
    """A rank's view of the modelled network."""

    engine = "emulation"

    def __init__(self, turns: _Turns, rank: int, size: int) -> None:
        self._turns, self.rank, self.size = turns, rank, size

    def _ask(self, call: Call, peer: int = -1, array: Array | None = None) -> Any:
        return self._turns.ask(self.rank, call, peer, array)

    def _filled(self, out: Array, values: Array) -> Array:
        out[...] = values.reshape(out.shape)
        return out

    def _collective(self, kind: str, x: Array, out: Array, root: int = -1) -> Array:
        return self._filled(out, self._ask(Call[kind.upper()], root, x))

    def _start_all_reduce(self, x: Array, out: Array) -> Pending:
        number = self._ask(Call.START_ALL_REDUCE, -1, x)
        return _Pending(lambda: self._filled(out, self._ask(Call.WAIT, number)))

    def _send(self, x: Array, to: int) -> None:
        self._ask(Call.SEND, to, x)

    def _receive(self, x: Array, source: int) -> None:
        self._filled(x, self._ask(Call.RECEIVE, source, x))

    def _barrier(self) -> None:
        self._ask(Call.BARRIER)


class _Pending(Pending):
    def __init__(self, end: Callable[[], Array]) -> None:
        self._end = end
        self._result: Array | None = None

    def wait(self) -> Array:
        if self._result is None:
            self._result = self._end()
        return self._result


class _StoppedError(BaseException):
    """Ends a rank's thread: another rank failed, or the run was interrupted."""


class _Turns:
    """The threads of a run. Only the one whose turn it is runs; the others wait for their semaphores."""

    def __init__(self, network: Callable[..., Any], program: Program, arguments: Sequence[Sequence[Any]]) -> None:
        self._network, self._program, self._arguments = network, program, arguments
        self.size = len(arguments)
        self._turn = [threading.Semaphore(0) for _ in arguments]
        self._answers: dict[int, tuple[Outcome, Any]] = {}
        self._places = [""] * self.size
        self._sent: dict[tuple[int, int], list[str]] = {}  # by link: where each message was sent
        self._results: list[Any] = [None] * self.size
        self._error: BaseException | None = None
        self._current = -1  # the rank whose turn it is
        self._stopped = False
        self._over = threading.Event()

    def run(self) -> list[Any]:
        """Start the threads, and wait until all have ended; raise the first error."""
        context = copy_context()
        threads = [
            threading.Thread(target=context.copy().run, args=(self._rank, rank), daemon=True, name=f"rank {rank}")
            for rank in range(self.size)
        ]
        for thread in threads:
            thread.start()
        try:
            self._pass_on(self._network(-1, int(Call.START)))
            self._over.wait()
        finally:  # after an error, or an interrupt that came here
            self._stop()
            _interrupt(threads, self._current)
        if self._error is not None:
            raise self._error
        return self._results

    def ask(self, rank: int, call: Call, peer: int, array: Array | None) -> Any:
        """Say what a rank wants, let others go on until it has it, and return it."""
        if self._stopped:
            raise _StoppedError
        self._places[rank] = _place()
        if call == Call.SEND:
            self._sent.setdefault((rank, peer), []).append(self._places[rank])
        self._pass_on(self._network(rank, int(call), peer, array))
        return self._await_turn(rank)

    def _await_turn(self, rank: int) -> Any:
        self._turn[rank].acquire()
        if self._stopped:
            raise _StoppedError
        outcome, value = self._answers.pop(rank)
        if outcome == Outcome.DEADLOCK:
            raise DeadlockError(_deadlock(value, self._places, self.size))
        if outcome == Outcome.MISMATCH:
            raise MismatchError(_mismatch(value, self._places))
        return value

    def _pass_on(self, answer: Sequence[Any]) -> None:
        """Give the turn to the rank that the network names, with its answer; -1: all are done."""
        rank, outcome, value = answer
        self._current = rank
        if rank < 0:
            if value:
                self._error = RankError(_lost(value, self._sent))
            self._over.set()
            return
        self._answers[rank] = Outcome(outcome), value
        self._turn[rank].release()

    def _rank(self, rank: int) -> None:
        """What a thread does."""
        try:
            self._await_turn(rank)
            communicator = EmulatedCommunicator(self, rank, self.size)
            self._results[rank] = self._program(communicator, *self._arguments[rank])
            self._pass_on(self._network(rank, int(Call.DONE)))
        except _StoppedError:
            return
        except BaseException as error:  # SystemExit, too: it goes on where the run was called
            self._current = -1
            if not self._stopped:
                self._error = error
                self._stop()
            self._over.set()

    def _stop(self) -> None:
        self._stopped = True
        for turn in self._turn:
            turn.release()


def _interrupt(threads: Sequence[threading.Thread], current: int) -> None:
    """End threads that compute on although the run is over: each gets an error raised at its next line of Python.

    One that swallows every error is left behind. All but `current` wait, and end by themselves.
    """
    for rank, thread in enumerate(threads):
        thread.join(0 if rank == current else PATIENCE)
        for _ in range(TRIES):
            thread.join(0.05)
            if not thread.is_alive() or thread.ident is None:
                break
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(_StoppedError))


def _place() -> str:
    """The line of the program that called the communicator, in words."""
    frame = caller()
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return f"line {frame.f_lineno} of {frame.f_code.co_name}" + (f", `{shorten(line, LINE_WIDTH)}`" if line else "")


_WORDS = {
    Call.SEND: "send(to={})",
    Call.RECEIVE: "receive(source={})",
    Call.BROADCAST: "broadcast(root={})",
    Call.WAIT: "wait()",
}


def _in_words(call: int, peer: int, array: Sequence[int] = ()) -> str:
    words = _WORDS.get(Call(call), f"{Call(call).name.lower()}()").format(peer)
    return f"{words} with {np.dtype(chr(array[0]))} {tuple(array[1:])}" if array else words


def _deadlock(waiting: Sequence[Sequence[int]], places: Sequence[str], size: int) -> str:
    """In words where each rank waits, one rank a line, and which have returned."""
    lines = ["deadlock, every rank that has not returned waits:"]
    for place in dict.fromkeys(places[rank] for rank, *_ in waiting):
        there = [f"rank {rank} in {_in_words(call, peer)}" for rank, call, peer, *_ in waiting if places[rank] == place]
        first, *others = there[:MOST_NAMED]
        lines += [f"{first}, at {place}", *(f"{other}, there as well" for other in others)]
        if len(there) > MOST_NAMED:
            lines.append(f"{len(there) - MOST_NAMED} more, there as well")
    if gone := sorted(set(range(size)) - {rank for rank, *_ in waiting}):
        lines.append(_returned(gone, {Call(call) for _, call, *_ in waiting}))
    return "\n".join(lines)


def _returned(gone: Sequence[int], calls: Collection[Call]) -> str:
    who = f"rank{'s' * (len(gone) > 1)} {', '.join(map(str, gone))} returned"
    only = next(iter(calls))
    if len(calls) > 1 or only not in COLLECTIVE:
        return who
    return f"{who} without this {only.name.lower()}: every rank must call it"


def _lost(messages: Sequence[Sequence[int]], sent: Mapping[tuple[int, int], Sequence[str]]) -> str:
    """In words, the first of the messages that nobody has received: they are the last ones of their links."""
    source, call, to, *array = messages[0]
    count = sum((message[0], message[2]) == (source, to) for message in messages)
    return f"rank {source}'s {_in_words(call, to, array)} was never received, at {sent[source, to][-count]}"


def _mismatch(pair: Sequence[Sequence[int]], places: Sequence[str]) -> str:
    lines = ["ranks disagree:"]
    for rank, call, peer, *array in pair:
        lines.append(f"rank {rank} calls {_in_words(call, peer, array)} at {places[rank]}")
    return "\n".join(lines)
