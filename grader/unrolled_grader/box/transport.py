"""The judge's side of a worker: gives orders, waits for each answer no longer than its limit, and trusts none."""

from __future__ import annotations

import copy
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np

from unrolled.checks.answers import AnswerUsedError, known_as
from unrolled.checks.crashes import MOST_LINES, ReportedError
from unrolled.checks.limits import TimeLimitError
from unrolled.checks.spec import Speed
from unrolled.simgpu.command import View
from unrolled.timing import BlockTime
from unrolled_grader.box import wire
from unrolled_grader.box.gpu import Facade, Guarded
from unrolled_grader.box.process import START_LIMIT, Baseline, Process
from unrolled_grader.box.wire import Array, Channel, WireError, text_of

GRACE = 1.0  # seconds that code has to end after an interrupt, before everything in its box is killed
DRAUGHTS = 16  # times that a stream is read in a row; some print faster than anybody can read
EVENTS = ("print", "display", "result", "error", "clear")
OTHER_KIND = "it sent an answer of another kind"
PREPARE_LIMIT = 5.0  # seconds to get ready for a block, which takes an honest worker milliseconds
ASK_BYTES = 2**20
"""Bytes of the arrays that come with a call of an object that the judge keeps, unless its class says otherwise."""
METHODS = ("__call__", "forward", "backward")
"""What student code may call of an object that the judge keeps, unless the `METHODS` of its class say otherwise.
Everything else of it stays out of reach."""
REFUSED = 2_000
"""Characters of an error that a worker is told. The compiler of kernels shows the source with the line."""
Event = Callable[[Mapping[str, Any]], None]
Print = Callable[[str, str], None]


class WorkerDiedError(Exception):
    """The worker ended, was killed at its deadline, or sent what no worker sends."""


class Worker(Process):
    """A worker process, and the judge's conversation with it."""

    def __init__(self, *, boxed: bool, baseline: Baseline = None, gpu: bool = False) -> None:
        super().__init__(boxed=boxed, baseline=baseline, gpu=gpu)

        self.on_event: Event = lambda event: None
        self.on_print: Print = lambda name, text: None
        self._channel = Channel(self.socket)
        self._inputs, self._replies = wire.Stack(wire.INPUTS), wire.Stack(wire.REPLIES)
        self._put, self._put_reply = partial(self._write, self._inputs), partial(self._write, self._replies)
        self._places: list[list[tuple[str, Array, int]]] = []
        self._room = 0
        self._kept: dict[int, Any] = {}
        self._asked, self._askable = 0, ASK_BYTES
        self._facade: Facade | None = None

    @contextmanager
    def using(self, machine: Guarded) -> Iterator[None]:
        """Let calls within the block take and return arrays that lie on this simulated GPU, and command it."""
        self._facade = Facade(machine)
        try:
            yield
        finally:
            self._facade = None

    def run_cell(self, source: str, limit: float) -> tuple[str, str, str] | None:
        """Run a cell; return its error's name and text, or None. Raises TimeLimitError at `limit`, WorkerDiedError.

        The third text is the line that raised, where what stands below it was run all the same.
        """
        ended = self._converse({"cell": source}, "ended", limit)
        is_error = isinstance(ended, list) and len(ended) == 3
        return (text_of(ended[0], 80), text_of(ended[1], 2000), text_of(ended[2], 200)) if is_error else None

    def settle(self) -> None:
        """Ask whether the worker still answers, and kill it if it does not."""
        with suppress(WorkerDiedError, TimeLimitError):
            self._converse({"settle": None}, "settled", START_LIMIT)

    def bind(self, expression: str, allows: Sequence[Any] = (), ranks: bool = False) -> Mapping[str, Any]:
        """Have `expression` be the judged function, a program of emulated ranks or not, and what it may call.

        Return {"unbound": …}, or {"bound": …} and what it is like.
        """
        order = {"expression": expression, "allows": [known_as(each) for each in allows], "ranks": ranks}
        return self._converse({"bind": order}, None, START_LIMIT)  # type: ignore[no-any-return]

    def ported(self) -> AbstractContextManager[None]:
        """Have the worker run the judged function on its real GPU during the block, with NumPy arrays in and out."""
        return self._during("port", True, False)

    def ranked(self, speed: Speed, ranks: int) -> AbstractContextManager[None]:
        """Have so many processes run the function in blocks, during this one: a baseline on one rank, too."""
        assert speed.share is not None
        share = {"module": speed.share.__module__, "name": speed.share.__qualname__}
        return self._during("rank", {"ranks": ranks, "share": share}, None)

    @contextmanager
    def _during(self, order: str, begin: Any, end: Any) -> Iterator[None]:
        """Give an order for the block, and take it back after it."""
        answer = self._converse({order: begin}, None, START_LIMIT)
        _raise(answer, START_LIMIT)
        if f"{order}ed" not in answer:
            raise self._died(OTHER_KIND)
        try:
            yield
        finally:
            with suppress(WorkerDiedError, TimeLimitError):
                self._converse({order: end}, f"{order}ed", START_LIMIT)

    def call(self, positional: Sequence[Any], named: Mapping[str, Any], limit: float) -> Any:
        """Call the function, for `limit` seconds at most; return its result as plain data.

        Changes that it made to its inputs are made to ours. Raises NotImplementedError, AnswerUsedError, ReportedError
        for what else the function raised, TimeLimitError, WorkerDiedError.
        """
        self._inputs.clear()
        self._kept.clear()
        places: list[tuple[Array, int]] = []
        order = {
            "args": {"list": [self._give(value, places) for value in positional]},
            "kwargs": {"dict": [[name, self._give(value, places)] for name, value in named.items()]},
            "gpu": None if self._facade is None else self._keep(self._facade),
        }
        answer = self._converse({"call": order}, None, limit)
        if self._facade is not None:
            self._facade.machine.check()
            self._facade.begin()
        _raise(answer, limit)
        for array, offset in places:
            now = self._array_at(offset, array)
            if now.tobytes() != array.tobytes():
                array[...] = now
        ours = {(offset, array.nbytes): array for array, offset in places}

        def read(offset: int, size: int) -> bytearray | memoryview:
            same = ours.get((offset, size))  # an argument that comes back
            return self._read(offset, size) if same is None else same.reshape(-1).view(np.uint8).data

        try:
            value = wire.decode(answer.get("value"), read, gpu=self._on_gpu)
            given = wire.decode(answer.get("given"), lambda offset, size: bytearray(size), gpu=lambda view: None)
        except WireError as error:
            raise self._died(f"it sent no result: {error}") from None
        _take_over(list(positional), named, given)
        return value

    def prepare(self, inputs: Sequence[Mapping[str, Any]], slot: int) -> None:
        """Put the inputs of a block in place, with room for a result of `slot` bytes for each."""
        self._inputs.clear()
        self._places, coded = [], []
        for arguments in inputs:
            put: dict[str, list[tuple[Array, int]]] = {name: [] for name in arguments}
            coded.append({"dict": [[name, self._give(value, put[name])] for name, value in arguments.items()]})
            self._places.append([(name, *place) for name, places in put.items() for place in places])
        room = slot * len(coded)
        if room > self._room and sys.platform == "linux":  # have the pages, so that the worker only has to map them
            os.posix_fallocate(self.arena, wire.RESULTS.start, room)
        self._room = max(room, self._room)
        self._converse({"prepare": {"inputs": coded, "slot": slot, "size": self._inputs.used}}, "ready", PREPARE_LIMIT)

    def go(self, calls: int, limit: float) -> BlockTime:
        """Run a block of so many calls, timed by this side's clock; return its times. Raises what `call` raises."""
        # What has been sent unasked would pass for the answer to what comes next.
        if any(key.data == "channel" for key, _ in self.selector.select(0)):
            raise self._died("it sent an answer before it was asked")
        if self._channel.pending:
            raise self._died("it sent more than it was asked for")
        nonce = secrets.token_hex(8)
        cpu, wall = self.cpu_seconds(), time.perf_counter()
        answer = self._converse({"go": {"calls": calls, "nonce": nonce}}, None, limit)
        wall, cpu = time.perf_counter() - wall, self.cpu_seconds() - cpu
        _raise(answer, limit)
        if answer.get("done") != nonce:
            raise self._died("it sent an answer to another question")
        return BlockTime(wall, cpu)

    def result(self, number: int, slot: int, like: Array) -> Array:
        """Return the result for the block's inputs with this number, as the shared file holds it now."""
        return self._array_at(wire.RESULTS.start + number * slot, like)

    def inputs_now(self, number: int) -> dict[str, Array]:
        """Return the arrays among the block's inputs with this number, as the shared file holds them now."""
        return {name: self._array_at(offset, array) for name, array, offset in self._places[number]}

    def _converse(self, message: Mapping[str, Any], key: str | None, limit: float) -> Any:
        """Send a message and wait for its answer, or for the value under `key` in it."""
        if self.dead:
            raise WorkerDiedError(self.dead)
        try:
            self.socket.settimeout(START_LIMIT)
            self._channel.send(message)
            answer = self._answer(time.monotonic() + limit, limit)
        except (OSError, EOFError) as error:
            raise self._died(f"it ended: {error}" if isinstance(error, OSError) else "it ended") from None
        except WireError as error:
            raise self._died(f"it sent {error}") from None
        if key is None:
            return answer
        if key not in answer:
            raise self._died(OTHER_KIND)
        return answer[key]

    def _answer(self, deadline: float, limit: float) -> dict[str, Any]:
        """The next message that is an answer. What is printed, shown and asked meanwhile is seen to."""
        interrupted = False
        while True:
            message = self._channel.next()
            if message is None:
                if not self._wait(deadline):
                    if interrupted:
                        raise self._overran(f"still busy {limit:g} s after its start, and after an interrupt", limit)
                    self.send_signal(signal.SIGINT)
                    interrupted, deadline = True, time.monotonic() + GRACE
            elif time.monotonic() > deadline + GRACE:
                raise self._overran("it went on sending after its time was over", limit)
            elif any(kind in message for kind in EVENTS):
                self._drain()
                if "print" in message:
                    name = "stderr" if message["print"] == "stderr" else "stdout"
                    self.on_print(name, text_of(message.get("text"), wire.MESSAGE_LIMIT))
                else:
                    self.on_event(message)
            elif "ask" in message:
                self.socket.settimeout(max(0.1, deadline + GRACE - time.monotonic()))  # it may ask and not listen
                self._channel.send(self._reply(message))
            else:
                self._drain()
                return message

    def _wait(self, deadline: float) -> bool:
        """Take in what arrives next; False if nothing came until the deadline."""
        ready = self.selector.select(max(0.0, deadline - time.monotonic()))
        for key, _ in ready:
            if key.data == "channel":
                self._channel.fill()
            else:
                self._read_stream(key.fd, key.data)
        return bool(ready) and time.monotonic() < deadline

    def _drain(self) -> None:
        """Take in what has been printed so far."""
        for key, _ in self.selector.select(0):
            for _ in range(0 if key.data == "channel" else DRAUGHTS):
                if not self._read_stream(key.fd, key.data):
                    break

    def _read_stream(self, descriptor: int, name: str) -> bool:
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return False
        if not data:
            self.selector.unregister(descriptor)
            os.close(descriptor)
            return False
        self.on_print(name, data.decode("utf-8", "replace"))
        return len(data) == 1 << 16

    def _reply(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Call a method of an object that the judge keeps, for the worker; the object is the judge's own code."""
        number, method = message["ask"], message.get("method")
        target = self._kept.get(number) if isinstance(number, int) else None
        allowed = getattr(type(target), "METHODS", METHODS)
        if not isinstance(method, str) or method not in allowed or not hasattr(target, method):
            return {"refused": f"there is no {text_of(method, 40)!r} to call"}
        self._asked, self._askable = 0, getattr(type(target), "ASK_BYTES", ASK_BYTES)
        if self._facade is not None:
            self._facade.begin()
        try:
            positional, named = wire.decode(message.get("with"), self._read_asked, gpu=self._on_gpu)
            if target is not self._facade and not all(map(_is_numeric, (*positional, *named.values()))):
                raise TypeError("takes numbers and arrays, and lists of them")
            value = getattr(target, method)(*positional, **named)
            self._replies.clear()
            value = copy.deepcopy(value) if self._facade is None else value
            return {"value": wire.encode(value, self._put_reply, self._view)}
        except (Exception, TimeLimitError) as error:
            return {"refused": f"{type(error).__name__}: {error}"[:REFUSED]}

    def _give(self, value: Any, places: list[tuple[Array, int]]) -> Any:
        """A value as JSON; arrays are put in place, objects stay here and a number goes in their stead."""
        if isinstance(value, (list, tuple)):
            return {"tuple" if isinstance(value, tuple) else "list": [self._give(item, places) for item in value]}
        if self._facade is not None and isinstance(value, dict):
            return {"dict": [[self._give(key, places), self._give(item, places)] for key, item in value.items()]}
        if isinstance(value, np.ndarray):
            coded = wire.encode(value, self._put)
            places.append((value, coded["array"][2]))
            return coded
        coded = wire.encode(value, self._put, self._view)
        if isinstance(coded, dict) and "object" in coded:
            return {"remote": self._keep(value)}
        return coded

    def _keep(self, value: Any) -> int:
        """The number under which the worker may ask for something of an object."""
        self._kept[len(self._kept)] = value
        return len(self._kept) - 1

    def _view(self, value: Any) -> View | None:
        """Where an array on the simulated GPU lies; from now on the worker may reach it."""
        if self._facade is None or not hasattr(value, "as_view"):
            return None
        return self._facade.give(value)

    def _on_gpu(self, view: View) -> Any:
        """The array at a place on the simulated GPU that the worker names. Raises WireError if that is none of its."""
        if self._facade is None:
            raise WireError("a place on a GPU, and there is none")
        try:
            return self._facade.array(view)
        except (ValueError, TypeError, OverflowError, MemoryError) as error:
            raise WireError(f"a place on the GPU: {error}") from None

    def _write(self, stack: wire.Stack, array: Array) -> int:
        offset = stack.take(array.nbytes)
        os.pwrite(self.arena, array.data, offset)
        return offset

    def _read(self, offset: int, size: int) -> bytearray:
        data = bytearray(size)
        read = os.preadv(self.arena, [data], offset) if size else 0
        if read != size:
            raise WireError(f"only {read:,} of {size:,} bytes at {offset:,}")
        return data

    def _read_asked(self, offset: int, size: int) -> bytearray:
        self._asked += size
        if self._asked > self._askable:
            raise ValueError(f"more than {self._askable:,} bytes in one call")
        return self._read(offset, size)

    def _array_at(self, offset: int, like: Array) -> Array:
        return np.frombuffer(self._read(offset, like.nbytes), like.dtype).reshape(like.shape)

    def _died(self, why: str) -> WorkerDiedError:
        self.give_up(why)
        return WorkerDiedError(why)

    def _overran(self, why: str, limit: float) -> TimeLimitError:
        self.give_up(why, overran=True)
        return TimeLimitError(f"ran longer than {limit:g} s")


def _raise(answer: Mapping[str, Any], limit: float) -> None:
    """Raise what the worker reports: that the function was stopped at its limit, or what it raised, if it did."""
    if "stopped" in answer:
        raise TimeLimitError(f"ran longer than {limit:g} s")
    if "raised" not in answer:
        return
    name, lines = text_of(answer["raised"], 80), answer.get("lines")
    texts = [text for line in lines[:MOST_LINES] if (text := text_of(line, 500))] if isinstance(lines, list) else []
    texts = texts or [f"raised {name}"]
    if name == "NotImplementedError":
        raise NotImplementedError
    if name == "AnswerUsedError":
        raise AnswerUsedError(texts[0].removeprefix("raised AnswerUsedError: "))
    raise ReportedError(texts)


def _take_over(positional: Sequence[Any], named: Mapping[str, Any], given: Any) -> None:
    """Make in our lists the changes that the function made in its own; arrays are looked at in the shared file."""
    if not (isinstance(given, list) and len(given) == 2 and isinstance(given[1], dict)):
        return
    for ours, theirs in ((positional, given[0]), (named.values(), given[1].values())):
        for value, now in zip(ours, theirs, strict=False):
            if isinstance(value, list) and isinstance(now, list) and all(map(_is_plain, value)):
                value[:] = now


def _is_plain(value: Any) -> bool:
    """Whether it is a Python number, or nested lists of them."""
    return all(map(_is_plain, value)) if isinstance(value, (list, tuple)) else isinstance(value, (int, float))


def _is_numeric(value: Any) -> bool:
    """Whether NumPy can take it for numbers. In an array of texts each would be as long as the longest."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_numeric, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufc"
    return value is None or isinstance(value, (int, float, np.number, np.bool_)) or hasattr(value, "as_view")
