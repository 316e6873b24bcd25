"""The simulated GPU in a process of its own, that owns the arrays: `serve` there, a `Link` here.

A command is a message, plain data and bytes: {"call": "download", "arguments": [...], "free": [...]}. So is its answer:
{"value": ...} or {"error": ..., "message": ...}. A `FarMachine` makes the first of the second, and `answer` the second
of the first, however they travel. Between Link and `serve` that is eight bytes, the lengths of both parts, and then
these: JSON, and plain bytes (an upload's, a download's).

Nothing is pickled. The serving side trusts nothing: sizes are checked before a byte is read, a command that cannot be
is answered with an error, and after what is no message at all it ends. It asks for a machine's methods by name, from a
list; a program that may only be trusted with some of them is kept from the others by whoever holds the Link.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Mapping
from typing import Any

from unrolled.simgpu.command import (
    RAISED,
    Inputs,
    InvalidCommandError,
    KernelOrder,
    Machine,
    Options,
    View,
    Views,
    outcome_of,
    result_of,
)
from unrolled.simgpu.kernel_report import KernelReport
from unrolled.simgpu.limits import MachineLimits
from unrolled.simgpu.lockstep.state import RunLimits
from unrolled.simgpu.machine import LocalMachine
from unrolled.simgpu.profiles import GPUProfile, named
from unrolled.simgpu.trace import Trace

MESSAGE_LIMIT = 4_000_000
"""Bytes of JSON in one message; a trace comes as bytes."""
DATA_LIMIT = 2**31
"""Bytes of one transfer."""
DIGITS_LIMIT = 1000
"""Digits of a whole number: reading one takes time that grows with the square of them."""
_LENGTHS = struct.Struct("!II")
CALLS = {"allocate", "launch", "upload", "download", "synchronize", "record", "wait", "elapsed", "clock"}
CALLS |= {"begin_capture", "end_capture", "is_capturing", "launch_graph", "upload_graph"}
CALLS |= {"run_kernel", "own_bytes", "start_trace", "stop_trace", "memory", "free_all"}
"""The methods of a machine that a message may call."""
_LIMITS = MachineLimits(kernels=RunLimits(cells=2**24), lines=False)
"""Of a machine that serves: what it keeps of the arrays that a kernel writes takes less than 1 GB."""


class LinkError(ConnectionError):
    """The other side is gone, or what it says is no message."""


class FarMachine(Machine):
    """A machine elsewhere: every call is a message, which waits for its answer. Raises what that machine raises."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._freed: deque[int] = deque()

    @abstractmethod
    def _exchange(self, message: Mapping[str, Any], data: bytes) -> tuple[Mapping[str, Any], bytes | bytearray]:
        """Return the answer to a message with these bytes, and the answer's bytes."""

    def free(self, buffer: int) -> None:
        """Free a buffer with the next call: a finalizer may come here at any time, even in a call, in any thread."""
        self._freed.append(buffer)

    def launch(self, op: str, inputs: Inputs, outputs: Views, options: Options | None = None, stream: int = 0) -> None:
        operands = [_encode(x) for x in inputs]
        self._call("launch", op, operands, [_encode(x) for x in outputs], dict(options or {}), stream)

    def run_kernel(self, order: KernelOrder, stream: int = 0) -> KernelReport | None:
        arguments = [_encode(x) for x in order.arguments]
        sizes = order.grid, order.block, order.shared
        report: KernelReport | None = result_of(self._call("run_kernel", order.program, arguments, *sizes, stream))
        return report

    def upload(self, view: View, data: bytes, stream: int = 0, blocking: bool = True) -> None:
        self._ask("upload", _encode(view), stream, blocking, data=data)

    def download(self, view: View, stream: int = 0) -> bytes:
        return bytes(self._ask("download", _encode(view), stream)[1])

    def own_bytes(self, view: View) -> int:
        return int(self._call("own_bytes", _encode(view)))

    def stop_trace(self, number: int) -> Trace:
        return Trace.from_json(self._ask("stop_trace", number)[1].decode())

    def _call(self, name: str, *arguments: Any) -> Any:
        return self._ask(name, *arguments)[0]

    def _ask(self, name: str, *arguments: Any, data: bytes = b"") -> tuple[Any, bytes | bytearray]:
        with self._lock:
            freed = [self._freed.popleft() for _ in range(len(self._freed))]
            answer, content = self._exchange({"call": name, "arguments": arguments, "free": freed}, data)
        if "error" in answer:
            raise RAISED.get(str(answer["error"]), ValueError)(str(answer.get("message")))
        return answer.get("value"), content


class Link(FarMachine):
    """A machine at the other end of a socket.

    Raises LinkError, from then on always, once the other side is gone or was too slow for the socket's timeout (the
    first time TimeoutError).
    """

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._socket = connection
        self._dead = False
        self.profile = named(self._call("use", None))

    def use(self, name: str, seed: int = 0) -> GPUProfile:
        """Replace the machine by a new one of this profile and seed; return the profile. No arrays, clock at 0."""
        self.profile = named(self._call("use", name, seed))
        return self.profile

    def close(self) -> None:
        """End the connection, and with it the serving process."""
        self._dead = True
        self._socket.close()

    def _exchange(self, message: Mapping[str, Any], data: bytes) -> tuple[dict[str, Any], bytearray]:
        try:
            packed = _pack(message, data)
        except MachineWireError as error:
            raise InvalidCommandError(f"{message['call']}: {error}") from None
        if self._dead:
            raise LinkError("the simulated GPU is gone: the connection to its process has ended")
        self._dead = True  # unless all of the answer comes: what comes later is not for the next call
        try:
            self._socket.sendall(packed)
            self._socket.sendall(data)
            answer, content = _receive(self._socket, DATA_LIMIT)
        except TimeoutError:
            raise
        except (EOFError, OSError, MachineWireError) as error:
            raise LinkError(f"the simulated GPU is gone: {error}") from None
        self._dead = False
        return answer, content


class MachineWireError(Exception):
    """What arrived is no message of this protocol."""


def serve(connection: socket.socket, profile: str | GPUProfile = "T4", memory_limit: int | None = None) -> None:
    """Answer a Link until it closes the connection, or says what is no message. Needs nothing but the socket."""
    machine = LocalMachine(profile, memory_limit, _LIMITS)
    with contextlib.suppress(EOFError, OSError, MachineWireError):
        while True:
            message, data = _receive(connection, min(DATA_LIMIT, machine.memory()["capacity"]))
            content = b""
            try:
                match message:
                    case {"call": "use", "arguments": [None]}:
                        value = machine.profile.name
                    case {"call": "use", "arguments": [str(value), int(seed)]}:
                        machine = LocalMachine(value, memory_limit, _LIMITS, seed)
                    case {"call": "use"}:
                        raise InvalidCommandError("use takes the name of a profile, and a seed")
                    case _:
                        value, content = answer(machine, message, data)
                packed = _pack({"value": value}, content)
            except Exception as error:  # whatever a bad command leads to, the next one is served
                content = b""
                packed = _pack(failure(error), content)
            connection.sendall(packed)
            connection.sendall(content)


def answer(machine: Machine, message: Mapping[str, Any], data: bytes | bytearray) -> tuple[Any, bytes]:
    """Return what a machine answers to a message with these bytes: plain data, and bytes.

    Raises what the machine does, InvalidCommandError and TypeError for a message that no FarMachine sends.
    """
    name, arguments, freed = message.get("call"), message.get("arguments"), message.get("free")
    if not isinstance(name, str) or name not in CALLS or not isinstance(arguments, list):
        raise InvalidCommandError(f"call is {name!r:.40}; the simulated GPU has none of that name")
    for buffer in freed if isinstance(freed, list) else []:
        if type(buffer) is int:
            machine.free(buffer)
    match name, arguments:
        case "launch", [str(op), list(inputs), list(outputs), dict(options), stream]:
            arguments = [op, list(map(_decode, inputs)), list(map(_decode, outputs)), options, stream]
        case "launch", [_, list(), list(), _, _]:
            raise InvalidCommandError("a launch's op is a text, its options are named")
        case "launch", _:
            raise InvalidCommandError("a launch has an op, inputs, outputs, options and a stream")
        case "run_kernel", _:
            order, stream = _order(arguments)
            return outcome_of(lambda: machine.run_kernel(order, stream)), b""
        case "launch_graph", _:
            launched: list[Any] = arguments
            return outcome_of(lambda: machine.launch_graph(*launched)), b""
        case (("upload" | "download" | "own_bytes"), _):
            arguments = [_decode(arguments[0]) if arguments else None, *arguments[1:]]
    if name == "upload":
        arguments.insert(1, bytes(data))
    found = getattr(machine, name)(*arguments)
    if isinstance(found, Trace):
        found = found.to_json().encode()
    return (None, found) if isinstance(found, bytes) else (found, b"")


def _order(arguments: list[Any]) -> tuple[KernelOrder, Any]:
    """A kernel's order and its stream. Raises InvalidCommandError for what is none; its program may be anything."""
    match arguments:
        case [program, list(given), list(grid), list(block), int(shared), stream] if len(grid) == len(block) == 3:
            if all(type(n) is int and abs(n) < 2**62 for n in (*grid, *block, shared)):
                decoded = [_argument(x) for x in given]
                return KernelOrder(program, decoded, tuple(grid), tuple(block), shared), stream
    raise InvalidCommandError("a kernel has a program, arguments, a grid and a block of three whole numbers each")


def _argument(coded: Any) -> Any:
    """An argument of a kernel: an array, or a number with its dtype."""
    match coded:
        case {"view": _}:
            return _decode(coded)
        case [str(dtype), bool() | int() | float() as number]:
            return dtype, number
    raise InvalidCommandError(f"an argument {coded!r:.80} that is no array and no number with a dtype")


def failure(error: Exception) -> dict[str, str]:
    """Return the answer where a command raised this: the nearest kind of error that the other side knows, and text."""
    kinds = (kind.__name__ for kind in type(error).__mro__ if kind.__name__ in RAISED)
    return {"error": next(kinds, "InvalidCommandError"), "message": f"{error}"[:2000]}


def _encode(x: Any) -> Any:
    """An operand as JSON: an array as {"view": [...]}, a number as it is."""
    if isinstance(x, View):
        return {"view": [x.buffer, x.offset, list(x.shape), list(x.strides), x.dtype]}
    return {"complex": [x.real, x.imag]} if isinstance(x, complex) else x


def _decode(coded: Any) -> Any:
    """What `_encode` made JSON of. Raises InvalidCommandError for what it does not write."""
    if not isinstance(coded, dict):
        return coded
    match coded:
        case {"view": [buffer, offset, list(shape), list(strides), str(dtype)]}:
            return View(buffer, offset, tuple(shape), tuple(strides), dtype)
        case {"complex": [float(real), float(imaginary)]}:
            return complex(real, imaginary)
    raise InvalidCommandError(f"an operand {coded!r:.80} that is no array and no number")


def _pack(message: Mapping[str, Any], data: bytes) -> bytes:
    """The lengths and the JSON of a message; its bytes follow. Raises MachineWireError where it is too long."""
    text = json.dumps(message, separators=(",", ":")).encode()
    if len(text) > MESSAGE_LIMIT or len(data) > DATA_LIMIT:
        raise MachineWireError(f"a message of {len(text):,} + {len(data):,} bytes is too long")
    return _LENGTHS.pack(len(text), len(data)) + text


def _receive(connection: socket.socket, data_limit: int) -> tuple[dict[str, Any], bytearray]:
    """The next message. Raises EOFError when the other side is gone, MachineWireError for what is none."""
    size, data_size = _LENGTHS.unpack(_exactly(connection, _LENGTHS.size))
    if size > MESSAGE_LIMIT or data_size > data_limit:
        raise MachineWireError(f"a message of {size:,} + {data_size:,} bytes is too long")
    text, data = _exactly(connection, size), _exactly(connection, data_size)
    try:
        message = json.loads(text, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise MachineWireError(f"a message that is no JSON: {error!r:.80}") from None
    if not isinstance(message, dict):
        raise MachineWireError("a message that is no object")
    return message, data


def _exactly(connection: socket.socket, size: int) -> bytearray:
    """So many bytes. Memory grows with what arrives, not with what is announced."""
    received = bytearray()
    while len(received) < size:
        part = connection.recv(min(size - len(received), 1 << 20))
        if not part:
            raise EOFError("the other side has closed the connection")
        received += part
    return received


def _whole(digits: str) -> int:
    if len(digits) > DIGITS_LIMIT:
        raise ValueError(f"a whole number of {len(digits):,} digits")
    return int(digits)
