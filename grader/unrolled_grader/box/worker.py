"""The worker: it runs a student's notebook, and calls the student's functions when the judge says so.

It decides nothing and knows no expected result: arrays come in, arrays go out, times are taken at the other end.
Student code shares this process and may change anything in it. That is why nothing here is trusted: what a hostile
worker can say is no more than a wrong result, a slow one, or nonsense.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import inspect
import json
import mmap
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial, partialmethod
from typing import Any

import numpy as np
import threadpoolctl

from unrolled import checks, device, simgpu
from unrolled.checks import foreign
from unrolled.checks import gpu as on_gpu
from unrolled.checks.ambient import set_aside
from unrolled.checks.answers import OnRanks, known_as, library, withheld
from unrolled.checks.compare import shortened
from unrolled.checks.crashes import TEXT_LIMIT, crash_lines
from unrolled.parallel.emulation import on_ranks
from unrolled.parallel.team import Team, alone
from unrolled.simgpu.command import View
from unrolled.simgpu.process import FarMachine
from unrolled.simgpu.profiles import PROFILES
from unrolled_grader.box import wire
from unrolled_grader.box.shell import Printed, flush, new_shell, run_cell
from unrolled_grader.box.wire import Array, Channel

ALLOWED = {known_as(each): each for spec in checks.all_specs().values() for each in spec.allows}
"""What a check may allow of the library, by name. What inputs are made of stays with the judge."""
library()  # all of it is found before student code can change where to look
MADV_POPULATE_WRITE = 23  # of madvise(2): map the pages and make them writable. Python has no name for it yet.


def serve(descriptors: Sequence[int], baseline: Callable[..., Any] | None, *, gpu: bool = False) -> None:
    """Answer the judge until it closes the connection. With a `baseline` there is no notebook; every call goes to it.

    With `gpu` the baseline runs on the real GPU. `descriptors`: socket to the judge, shared file, and the pipes for
    standard output and standard error.
    """
    channel, arena, out, err = descriptors
    for source, target in ((out, 1), (err, 2)):
        os.dup2(source, target)
        os.close(source)
    connection = Channel(socket.socket(fileno=channel))
    sys.stdout, sys.stderr = Printed(connection.send, "stdout", 1), Printed(connection.send, "stderr", 2)
    if gpu and baseline is not None:
        baseline = on_gpu.ported(baseline, device.gpu())
    _Worker(connection, mmap.mmap(arena, wire.ARENA), baseline, arena).serve()


class _Worker:
    """What the worker keeps between messages."""

    def __init__(
        self, channel: Channel, memory: mmap.mmap, baseline: Callable[..., Any] | None, arena: int = -1
    ) -> None:
        self.channel = channel
        self.arena = arena
        self.memory = memory
        self.view = memoryview(memory)
        self.bytes = np.frombuffer(memory, np.uint8)
        self.results = wire.Stack(wire.RESULTS)
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.shell = new_shell(channel.send) if baseline is None else None
        self.function: Callable[..., Any] | None = baseline
        self.written: Callable[..., Any] | None = baseline
        """The function as it was written: to be found in a crash, while another one may run it."""
        self.machine: RemoteMachine | None = None
        self.team: Team | None = None
        self.allowed: Sequence[Any] = ()
        self.answers = ExitStack()
        self.pools = threadpoolctl.ThreadpoolController()
        self.block: list[dict[str, Any]] = []
        self.slot = 0
        self.asking = threading.Lock()
        self.touched: dict[int, int] = {}

    def serve(self) -> None:
        answer: dict[str, Callable[[Any], dict[str, Any]]] = {
            "cell": self.run_cell,
            "settle": lambda _: {"settled": True},
            "bind": self.bind,
            "port": self.port,
            "rank": self.rank,
            "call": self.call,
            "prepare": self.prepare,
            "go": self.go,
        }
        while True:
            try:
                message = self.channel.receive()
            except EOFError:
                return
            except KeyboardInterrupt:  # came too late: what it was to stop had ended
                continue
            ((kind, content),) = message.items()
            self.channel.send(answer[kind](content))

    def run_cell(self, source: str) -> dict[str, Any]:
        """Run a cell; its error, if it raised one. What it displayed was sent before."""
        assert self.shell is not None
        self.answers.close()
        error = run_cell(self.shell, source, self.loop)
        flush()
        return {"ended": None if error is None else list(error)}

    def bind(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Take what an expression of the notebook gives as the function that is judged, and describe it.

        From now on the library is withheld, but what the check allows, until the next cell runs: from timed calls, too.
        """
        assert self.shell is not None
        self.answers.close()
        try:
            found = eval(order["expression"], self.shell.user_ns)
        except Exception as error:
            return {"unbound": [type(error).__name__, shortened(error, TEXT_LIMIT)]}
        self.function = self.written = found
        if callable(found) and order["ranks"]:
            self.function = on_ranks(found)
        borrowed = foreign.used_by(found)
        can = callable(found)
        parameters = _parameters(found) if can else None
        self.allowed = [ALLOWED[name] for name in order["allows"] if name in ALLOWED]
        self.answers.enter_context(withheld(self.allowed))
        return {"bound": type(found).__name__, "parameters": parameters, "callable": can, "borrowed": borrowed}

    def port(self, real: bool) -> dict[str, Any]:
        """Run the function on the real GPU from now on, or no longer."""
        assert self.written is not None
        self.function = on_gpu.ported(self.written, device.gpu()) if real else self.written
        return {"ported": real}

    def rank(self, order: Mapping[str, Any] | None) -> dict[str, Any]:
        """Have ranks in processes of their own run the function in blocks from now on, or no longer."""
        if self.team is not None:
            self.team.close()
            self.team = None
        if order is not None:
            assert self.written is not None
            share = getattr(importlib.import_module(order["share"]["module"]), order["share"]["name"])
            try:
                written = OnRanks(self.allowed, share, self.written) if self.shell else self.written
                program = written if order["ranks"] > 1 else alone(written)
                self.team = Team(program, share, order["ranks"], shared=(self.arena, self.bytes))
            except Exception as error:
                return {"raised": type(error).__name__, "lines": crash_lines(error, self.written)}
        return {"ranked": order is not None}

    def call(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Call the function once, with inputs that lie in the shared file or on the judge's simulated GPU."""
        if order["gpu"] is None:
            return self._call(order)
        self.machine = RemoteMachine(self._request, order["gpu"], on_gpu.PROFILE)
        simgpu.connect(self.machine)
        try:
            return self._call(order)
        finally:
            self.machine = None
            simgpu.disconnect()

    def _call(self, order: Mapping[str, Any]) -> dict[str, Any]:
        assert self.function is not None
        self.results.clear()
        try:
            remote, arrays = partial(Remote, self._ask), simgpu.ndarray.from_view
            positional, named = (wire.decode(order[part], self._bytes, remote, arrays) for part in ("args", "kwargs"))
            with set_aside():
                value = self.function(*positional, **named)
                coded = wire.encode(value, self._put, self._view)
            given = wire.encode([positional, named], lambda array: 0, self._view)  # arrays lie in the judge's sight
            return {"value": coded, "given": given}
        except KeyboardInterrupt:
            return {"stopped": True}
        except BaseException as error:  # SystemExit and its like, too
            return {"raised": type(error).__name__, "lines": crash_lines(error, self.written or self._call)}

    def prepare(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Get ready for a block: its inputs as arrays on the shared file, one BLAS thread, no garbage."""
        self.block = [wire.decode(kwargs, self._bytes) for kwargs in order["inputs"]]
        self.slot = order["slot"]
        self.touch(wire.INPUTS.start, order["size"])
        self.touch(wire.RESULTS.start, self.slot * len(self.block))
        if self.team is not None:
            self.team.prepare(self.block, wire.RESULTS.start, self.slot)
        self.pools.limit(limits=1)
        gc.collect(0)
        return {"ready": len(self.block)}

    def touch(self, start: int, size: int) -> None:
        """Use every page that was never used, so that none is mapped while the clock runs."""
        used = self.touched.get(start, 0)
        if size > used:
            first = (start + used) // mmap.PAGESIZE * mmap.PAGESIZE
            try:  # all at once: page by page takes ten times as long, and that is CPU time outside of the blocks
                self.memory.madvise(MADV_POPULATE_WRITE, first, start + size - first)
            except OSError:  # Linux before 5.14, and other systems
                self.bytes[first : start + size : mmap.PAGESIZE] |= 0
            self.touched[start] = size

    def go(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Run the block. A call counts when its result lies in the shared file."""
        function, block, slot, memory = self.function, self.block, self.slot, self.bytes
        assert function is not None
        start, places = wire.RESULTS.start, len(block)
        gc.disable()
        try:
            if self.team is not None:
                self.team.run(order["calls"])
                return {"done": order["nonce"]}
            with set_aside():
                for number in range(order["calls"]):
                    place = number % places
                    result = np.ascontiguousarray(function(**block[place])).reshape(-1).view(np.uint8)
                    offset = start + place * slot
                    memory[offset : offset + min(slot, result.size)] = result[:slot]
            return {"done": order["nonce"]}
        except KeyboardInterrupt:
            return {"stopped": True}
        except BaseException as error:
            return {"raised": type(error).__name__, "lines": crash_lines(error, self.written or function)}
        finally:
            gc.enable()

    def _bytes(self, offset: int, size: int) -> memoryview:
        return self.view[offset : offset + size]

    def _copied(self, offset: int, size: int) -> bytearray:
        return bytearray(self.view[offset : offset + size])

    def _put(self, array: Array) -> int:
        if np.may_share_memory(array, self.bytes[wire.INPUTS]):  # an argument: the judge is to see that it is one
            return int(array.ctypes.data - self.bytes.ctypes.data)
        offset = self.results.take(array.nbytes)
        self.bytes[offset : offset + array.nbytes] = array.reshape(-1).view(np.uint8)
        return offset

    def _view(self, value: Any) -> View | on_gpu.Stray | None:
        """Where an array on a simulated GPU lies, if it is the judge's."""
        if not isinstance(value, simgpu.ndarray):
            return None
        return value.as_view() if value._memory.machine is self.machine else on_gpu.Stray()

    def _ask(self, number: int, method: str, positional: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Have the judge call a method of an object that it keeps."""
        answer = self._request(number, method, positional, named)
        if "refused" in answer:
            raise TypeError(answer["refused"])
        return answer["value"]

    def _request(self, number: int, method: str, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The judge's answer: {"value": what the method returned}, or {"refused": why not}."""
        with self.asking:  # several threads may ask at once
            self.results.clear()  # of what was asked before
            coded = wire.encode([list(positional), dict(named)], self._put, self._view)
            self.channel.send({"ask": number, "method": method, "with": coded})
            answer = self.channel.receive()
        if "value" in answer:
            answer["value"] = wire.decode(answer["value"], self._copied, None, simgpu.ndarray.from_view)
        return answer


class Remote:
    """Stands for an object that the judge keeps: a network to evaluate, a layer, a function to differentiate."""

    def __init__(self, ask: Callable[..., Any], number: int) -> None:
        self._ask, self._number = ask, number

    def _method(self, name: str, *positional: Any, **named: Any) -> Any:
        return self._ask(self._number, name, positional, named)

    __call__ = partialmethod(_method, "__call__")
    forward = partialmethod(_method, "forward")
    backward = partialmethod(_method, "backward")


class RemoteMachine(FarMachine):
    """A machine of the judge's: each message is a question to the judge about the object with this number."""

    def __init__(self, request: Callable[..., Mapping[str, Any]], number: int, profile: str) -> None:
        super().__init__()
        self.profile = PROFILES[profile]
        self._request, self._number = request, number

    def _exchange(self, message: Mapping[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
        text = json.dumps(message, default=_plain)
        answer = self._request(self._number, "do", [text, np.frombuffer(data, np.uint8)], {})
        if "refused" in answer:
            raise RuntimeError(answer["refused"])
        reply, content = answer["value"]
        return json.loads(reply), content.tobytes()


def _plain(value: Any) -> Any:
    """A number of NumPy's as a plain one."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a command to the GPU holds {type(value).__name__}")


def _parameters(function: Callable[..., Any]) -> list[list[Any]] | None:
    """Name, kind and whether there is a default, for each parameter; None for a builtin that does not tell."""
    try:
        found = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return None
    return [[parameter.name, int(parameter.kind), parameter.default is not parameter.empty] for parameter in found]
