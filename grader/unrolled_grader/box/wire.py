"""What judge and worker say to each other: messages of JSON over a socket, and arrays as plain bytes in a shared file.

Nothing that arrives is ever executed or unpickled, and the judge believes none of it: sizes, types and shapes are
checked before a byte is read. Both sides use this module, so it knows neither of them.

A value travels as JSON. None, booleans, texts and whole numbers stand for themselves; everything else is an object with
one key that says what it is: {"float": "nan"}, {"tuple": [...]}, {"array": [dtype, shape, offset]} with the bytes at
that offset of the shared file, in C order. An array on the simulated GPU travels as the place where it lies there:
{"gpu": [buffer, offset, shape, strides, dtype]}.
"""

from __future__ import annotations

import itertools
import json
import math
import numbers
import os
import re
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.checks.gpu import Stray
from unrolled.simgpu.command import View

Array = NDArray[Any]

MESSAGE_LIMIT = 16_000_000  # bytes of one message
DIGITS_LIMIT = 1000  # of a whole number: to read one takes time that grows with the square of its digits
ITEMS_LIMIT = 10_000  # items that are taken from an iterator; some never end
VALUES_LIMIT = 100_000
"""Values within a value. Each takes far more memory than its JSON; numbers in such amounts come as arrays."""
ENTRIES_LIMIT = 10_000  # entries of all dictionaries in a value
KEY_LIMIT = 2**61 - 1
"""A whole number that is a key is smaller. Others, and tuples, can be made to have all the same hash: then the time for
a dictionary grows with the square of its entries."""
ALIENS_LIMIT = 100  # types in a value that are told apart by their names: each becomes a class, which takes 3 kB
ARENA = 512 * 2**20  # bytes of the shared file, of which only what is used takes memory
INPUTS, REPLIES, RESULTS = slice(0, 7 * 2**25), slice(7 * 2**25, 2**28), slice(2**28, ARENA)
"""What the judge gives with a call, what it replies during one, and what the worker writes."""
ALIGNMENT = 64
DIMENSIONS_LIMIT = 64
PLAIN_DTYPE = re.compile(r"[<>|=][biufc][0-9]{1,2}")
TOO_MANY = f"more than {VALUES_LIMIT:,} values in lists, tuples and dictionaries: numbers belong in an array"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_HEADER = struct.Struct("!I")


class WireError(Exception):
    """What arrived or was to be sent is no message, or no value, of this protocol."""


class Channel:
    """One end of the socket between judge and worker."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._received = bytearray()
        self._sending = threading.Lock()  # a notebook's threads may display things, too

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message. Raises OSError if nobody is there, TimeoutError if nobody reads, WireError for a long one."""
        data = json.dumps(message, separators=(",", ":")).encode()
        if len(data) > MESSAGE_LIMIT:
            raise WireError(f"a message of {len(data):,} bytes, at most {MESSAGE_LIMIT:,} are taken")
        with self._sending:
            self.socket.sendall(_HEADER.pack(len(data)) + data)

    def receive(self) -> dict[str, Any]:
        """Wait for the next message. Raises EOFError if the other end is gone, WireError for what is no message."""
        while (message := self.next()) is None:
            self.fill()
        return message

    def fill(self) -> None:
        """Take in what has arrived, and wait for it if the socket does. Raises EOFError if the other end is gone."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError("the other end is gone")
        self._received += data

    def next(self) -> dict[str, Any] | None:
        """Return the next message, None until all of it has arrived. Raises WireError for what is no message."""
        if len(self._received) < _HEADER.size:
            return None
        size: int = _HEADER.unpack_from(self._received)[0]
        if size > MESSAGE_LIMIT:
            raise WireError(f"a message of {size:,} bytes, at most {MESSAGE_LIMIT:,} are taken")
        end = _HEADER.size + size
        if len(self._received) < end:
            return None
        data = bytes(self._received[_HEADER.size : end])
        del self._received[:end]
        try:
            message = parsed(data.decode())
        except (ValueError, RecursionError) as error:
            raise WireError(f"a message that is no JSON: {error}") from None
        if not isinstance(message, dict):
            raise WireError(f"a message of type {type(message).__name__}, expected an object")
        return message

    @property
    def pending(self) -> bool:
        """Whether anything was received that nobody has read."""
        return bool(self._received)


def new_arena() -> int:
    """Return a file descriptor of a new shared file. The file has no name, and is gone once nobody holds it open."""
    if sys.platform != "linux":
        with tempfile.TemporaryFile() as file:
            os.ftruncate(file.fileno(), ARENA)
            return os.dup(file.fileno())
    import fcntl

    descriptor = os.memfd_create("unrolled-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, ARENA)
    # From now on nobody can change its size, so that what was read once can be read again.
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return descriptor


class Stack:
    """Places in one part of the shared file, given out one after the other."""

    def __init__(self, part: slice) -> None:
        self._start: int = part.start
        self._stop: int = part.stop
        self.clear()

    def clear(self) -> None:
        """Forget what was given out."""
        self._top = self._start

    @property
    def used(self) -> int:
        """Bytes from the beginning that were given out."""
        return self._top - self._start

    def take(self, size: int) -> int:
        """Return the offset of `size` free bytes, and take them. Raises MemoryError if there is no room."""
        offset, self._top = self._top, self._top + aligned(size)
        if self._top > self._stop:
            raise MemoryError(f"{size:,} bytes more than the {self._stop - self._start:,} there is room for")
        return offset


def aligned(size: int) -> int:
    """Return the size, rounded up so that the next array begins on a cache line (64 bytes)."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class Alien:
    """Stands for an object that cannot travel: only the name of its type is known."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def alien(name: str) -> Alien:
    """Return an object whose type has this name, cut to 80 characters, or "object" where it is no name."""
    made: Alien = type(name[:80] if name.isidentifier() else "object", (Alien,), {})()
    return made


def encode(value: Any, put: Callable[[Array], int], view: Callable[[Any], View | Stray | None] | None = None) -> Any:
    """Return a value as JSON. `put(array)` writes a contiguous array's bytes and returns their offset.

    `view(value)` tells where an array on the simulated GPU lies, Stray for one on another GPU, None for no such array.
    What is nested too deeply travels as an object of its type. Raises WireError for more than VALUES_LIMIT values.
    """
    try:
        return _Encoder(put, view).encode(value)
    except RecursionError:
        return {"object": type(value).__name__}


@dataclass
class _Encoder:
    """Encodes one value, and counts what is in it."""

    put: Callable[[Array], int]
    view: Callable[[Any], View | Stray | None] | None
    values: int = VALUES_LIMIT  # that are left

    def encode(self, value: Any) -> Any:
        self.values -= 1
        if self.values < 0:
            raise WireError(TOO_MANY)
        if value is None or value is True or value is False:
            return value
        if isinstance(value, (np.ndarray, np.generic)):
            plain = np.asarray(value).view(np.ndarray)
            if not PLAIN_DTYPE.fullmatch(plain.dtype.str):
                return {"foreign": str(plain.dtype)[:80]}
            kind = "array" if isinstance(value, np.ndarray) else "scalar"
            return {kind: [plain.dtype.str, list(plain.shape), self.put(np.ascontiguousarray(plain))]}
        if isinstance(value, str):
            return str.__str__(value)
        place = value if isinstance(value, View) else self.view and self.view(value)
        if isinstance(place, Stray):
            return {"stray": None}
        if place is not None:
            return {"gpu": [place.buffer, place.offset, list(place.shape), list(place.strides), place.dtype]}
        if isinstance(value, numbers.Integral):
            whole = int(value)
            return whole if whole.bit_length() < DIGITS_LIMIT * math.log2(10) else {"object": "int"}
        if isinstance(value, numbers.Real):
            number = float(value)
            return {"float": number if math.isfinite(number) else str(number)}
        if isinstance(value, (list, tuple)):
            return {"tuple" if isinstance(value, tuple) else "list": [self.encode(item) for item in value]}
        if isinstance(value, dict):
            return {"dict": [[self.encode(key), self.encode(item)] for key, item in value.items()]}
        if isinstance(value, Iterator):
            return {"iterator": [self.encode(item) for item in itertools.islice(value, ITEMS_LIMIT)]}
        return {"object": type(value).__name__}


Get = Callable[[int, int], "bytearray | memoryview"]


def decode(
    coded: Any, get: Get, remote: Callable[[int], Any] | None = None, gpu: Callable[[View], Any] | None = None
) -> Any:
    """Return the value that `encode` made JSON of. `get(offset, size)` gives bytes of the shared file.

    `remote(number)` gives what stands for an object that stayed with the judge, `gpu(view)` the array that lies there
    on the simulated GPU. Raises WireError for anything that `encode` does not write, for more bytes of arrays than the
    shared file has, and for more than VALUES_LIMIT values. Time and memory grow with the JSON, and no faster.
    """
    try:
        return _Decoder(get, remote, gpu).decode(coded)
    except RecursionError:
        raise WireError("a value that is nested too deeply") from None


@dataclass
class _Decoder:
    """Decodes one value, and keeps count of what is left: many arrays may claim the same bytes."""

    get: Get
    remote: Callable[[int], Any] | None
    gpu: Callable[[View], Any] | None
    bytes: int = ARENA
    entries: int = ENTRIES_LIMIT
    values: int = VALUES_LIMIT
    aliens: dict[str, Alien] = field(default_factory=dict)

    def decode(self, coded: Any) -> Any:
        self.values -= 1
        if self.values < 0:
            raise WireError(TOO_MANY)
        if coded is None or isinstance(coded, (bool, str, int)):
            return coded
        if not isinstance(coded, dict) or len(coded) != 1:
            raise WireError(f"a value of type {type(coded).__name__}, expected an object with one key")
        ((kind, content),) = coded.items()
        if kind in ("list", "tuple", "iterator") and isinstance(content, list):
            items = [self.decode(item) for item in content]
            return items if kind == "list" else tuple(items) if kind == "tuple" else (item for item in items)
        if kind == "dict" and isinstance(content, list):
            return self._dict(content)
        if kind == "float" and (isinstance(content, float) or content in ("nan", "inf", "-inf")):
            return float(content)
        if kind in ("array", "scalar"):
            array = self._array(content)
            return array if kind == "array" else array[()]
        if kind == "foreign":
            return np.empty(0, object)
        if kind == "object":
            return self._alien(content if isinstance(content, str) else "")
        if kind == "remote" and self.remote is not None and isinstance(content, int):
            return self.remote(content)
        if kind == "gpu" and self.gpu is not None:
            return self.gpu(_place(content))
        if kind == "stray" and content is None:
            return Stray()
        raise WireError(f"a value of the unknown kind {kind!r:.40}")

    def _dict(self, pairs: list[Any]) -> Any:
        self.entries -= len(pairs)
        if self.entries < 0 or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise WireError(f"a dictionary that is none, or more than {ENTRIES_LIMIT:,} entries")
        decoded = [(self.decode(key), self.decode(item)) for key, item in pairs]
        return dict(decoded) if all(_is_key(key) for key, _ in decoded) else self._alien("dict")

    def _alien(self, name: str) -> Alien:
        """One for each name will do."""
        name = name if name in self.aliens or len(self.aliens) < ALIENS_LIMIT else "object"
        if name not in self.aliens:
            self.aliens[name] = alien(name)
        return self.aliens[name]

    def _array(self, content: Any) -> Array:
        if not (isinstance(content, list) and len(content) == 3 and isinstance(content[1], list)):
            raise WireError("an array without dtype, shape and offset")
        text, shape, offset = content
        if not (isinstance(text, str) and PLAIN_DTYPE.fullmatch(text)):
            raise WireError(f"an array of dtype {text!r:.40}")
        if not all(type(n) is int and 0 <= n <= ARENA for n in (*shape, offset)) or len(shape) > DIMENSIONS_LIMIT:
            raise WireError(f"an array of shape {shape!r:.80} at {offset!r:.40}")
        try:
            dtype = np.dtype(text)
            size = math.prod(shape) * dtype.itemsize
            self.bytes -= size
            if self.bytes < 0 or offset + size > ARENA:
                raise WireError(f"an array of shape {shape!r:.80} at {offset:,}: more than the shared file holds")
            array: Array = np.frombuffer(self.get(offset, size), dtype).reshape(shape)
        except (TypeError, ValueError) as error:  # no such dtype; no such shape, although it is empty
            raise WireError(f"an array of dtype {text}: {error}") from None
        return array


def text_of(value: Any, length: int | None = None) -> str:
    """Return what should be a text, cut; empty if it is none."""
    return value[:length] if isinstance(value, str) else ""


def _is_key(key: Any) -> bool:
    """Whether a dictionary may have such a key: a text, or a number that has its hash nearly for itself."""
    return key is None or isinstance(key, (str, float)) or (isinstance(key, int) and abs(key) < KEY_LIMIT)


def _place(content: Any) -> View:
    """Where an array lies on the simulated GPU. Whether there is such a place is for the machine to say."""
    if not (isinstance(content, list) and len(content) == 5):
        raise WireError("a place without buffer, offset, shape, strides and dtype")
    buffer, offset, shape, strides, dtype = content
    if not (isinstance(shape, list) and isinstance(strides, list) and len(shape) == len(strides) <= DIMENSIONS_LIMIT):
        raise WireError("a place without shape and strides")
    if not all(type(n) is int and abs(n) < 2**62 for n in (buffer, offset, *shape, *strides)):
        raise WireError("a place that is not made of whole numbers")
    if not (isinstance(dtype, str) and len(dtype) <= 20):
        raise WireError(f"a place of dtype {dtype!r:.40}")
    return View(buffer, offset, tuple(shape), tuple(strides), dtype)


def parsed(text: str) -> Any:
    """Return what a JSON text holds, without halves of characters: they could not be written to any file.

    Raises ValueError or RecursionError for what is no JSON, or holds a whole number of too many digits.
    """
    message = json.loads(text, parse_int=whole)
    if _SURROGATE.search(text):
        plain = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
        del message  # it may take half a GB, and so may its like
        message = json.loads(plain, parse_int=whole)
    return message


def whole(digits: str) -> int:
    """Return the whole number in a JSON text. Raises ValueError for more than DIGITS_LIMIT digits."""
    if len(digits) > DIGITS_LIMIT:
        raise ValueError(f"a whole number of {len(digits):,} digits, at most {DIGITS_LIMIT:,} are taken")
    return int(digits)
