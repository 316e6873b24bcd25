"""What judge and worker say to each other: values come back as they were, and nothing else gets through."""

import collections
import enum
import functools
import itertools
import json
import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import hypothesis.extra.numpy as np_strategies
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from characters import CHARACTERS, JSON
from unrolled_grader.box import wire
from unrolled_grader.box.wire import Channel, WireError

KINDS = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "g"]
DTYPES = st.builds(lambda order, kind: np.dtype(order + kind), st.sampled_from("<>"), st.sampled_from(KINDS))
ARRAYS = DTYPES.flatmap(
    lambda dtype: np_strategies.arrays(dtype, np_strategies.array_shapes(min_dims=0, min_side=0, max_side=4))
)
LEAVES = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(CHARACTERS) | ARRAYS
KEYS = st.text(CHARACTERS) | st.integers(-(2**60), 2**60) | st.booleans() | st.none() | st.floats()
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple) | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)
WORDS = ["list", "tuple", "iterator", "dict", "float", "array", "scalar", "foreign", "object", "remote"]
NEAR = st.recursive(
    JSON
    | st.tuples(
        st.sampled_from(["<f4", "|b1", ">i8", "|O8", "<f3", "|V8", "<U4", "<M8[ns]", "<f99", "f4", "<c16"]) | JSON,
        st.lists(st.integers(-3, 2**70), max_size=4) | JSON,
        st.integers(-3, 2**70) | JSON,
    ).map(list),
    lambda inner: (
        st.dictionaries(st.sampled_from(WORDS), inner, min_size=1, max_size=1)
        | st.lists(inner, max_size=3)
        | st.lists(st.tuples(inner, inner).map(list), max_size=3)
    ),
    max_leaves=15,
)
"""JSON that looks much like a value."""


class Memory:
    """Stands for the shared file; counts what is read."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.read = 0

    def put(self, array: wire.Array) -> int:
        assert array.flags.c_contiguous
        self.data += bytes(-len(self.data) % wire.ALIGNMENT)
        self.data += array.tobytes()
        return len(self.data) - array.nbytes

    def get(self, offset: int, size: int) -> bytearray:
        self.read += size
        return bytearray(self.data[offset : offset + size].ljust(size, b"\0"))


def there_and_back(value: Any) -> Any:
    memory = Memory()
    coded = json.loads(json.dumps(wire.encode(value, memory.put)))
    return wire.decode(coded, memory.get)


def same(a: Any, b: Any) -> bool:
    """Equal in type and content, to the last bit of every float."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, float):
        return a.hex() == b.hex()
    return bool(a == b)


@settings(deadline=None)
@given(VALUES)
def test_values_come_back_as_they_were(value: Any) -> None:
    assert same(there_and_back(value), value)


@settings(deadline=None)
@given(ARRAYS)
def test_arrays_of_any_layout_come_back_in_c_order(array: wire.Array) -> None:
    for view in (np.asfortranarray(array), array.T, array[..., ::-1] if array.ndim else array):
        back = there_and_back(view)
        assert same(back, np.array(view, order="C"))
        assert back.flags.c_contiguous
        assert back.flags.writeable


@settings(deadline=None)
@given(DTYPES, st.integers(0, 100))
def test_scalars_of_numpy_stay_scalars(dtype: np.dtype[Any], number: int) -> None:
    scalar = np.array(number).astype(dtype)[()]
    back = there_and_back(scalar)
    assert type(back) is type(scalar)
    assert back == scalar


class Text(str):
    def __str__(self) -> str:
        return "another text"


class Colour(enum.IntEnum):
    RED = 3


class Precise(float):
    pass


class Own(np.ndarray):
    pass


Pair = collections.namedtuple("Pair", "x y")


@pytest.mark.parametrize(
    ("given", "back"),
    [
        (Text("a text"), "a text"),
        (Colour.RED, 3),
        (Precise(0.5), 0.5),
        (Pair(1, 2.0), (1, 2.0)),
        (collections.OrderedDict(a=1), {"a": 1}),
        (np.arange(3).view(Own), np.arange(3)),
        (np.ma.masked_array([1, 2], [True, False]), np.array([1, 2])),
        (np.array("text"), np.empty(0, object)),
        (np.array([object()]), np.empty(0, object)),
        (np.datetime64("2020-01-01"), np.empty(0, object)),
        (np.zeros(2, [("a", "f4")]), np.empty(0, object)),
    ],
)
def test_subclasses_lose_their_class_and_keep_their_content(given: Any, back: Any) -> None:
    assert same(there_and_back(given), back)


@pytest.mark.parametrize("thing", [object(), {1, 2}, b"bytes", 1j, range(3), len, Memory(), int])
def test_of_what_cannot_travel_the_name_of_its_type_arrives(thing: Any) -> None:
    back = there_and_back([thing])[0]
    assert isinstance(back, wire.Alien)
    assert type(back).__name__ == type(thing).__name__
    assert repr(back) == f"<{type(thing).__name__}>"


def test_iterators_arrive_as_iterators_and_endless_ones_end() -> None:
    back = there_and_back(i * i for i in range(4))
    assert isinstance(back, Iterator)
    assert list(back) == [0, 1, 4, 9]
    assert sum(1 for _ in there_and_back(itertools.count())) == wire.ITEMS_LIMIT


@settings(max_examples=300, deadline=None)
@given(NEAR)
def test_of_whatever_arrives_nothing_but_a_wire_error_comes(coded: Any) -> None:
    memory = Memory()
    with suppress(WireError):
        wire.decode(coded, memory.get)
    assert memory.read <= wire.ARENA


HUGE = 10**900


@pytest.mark.parametrize(
    "coded",
    [
        [1],
        1.5,
        {},
        {"list": 3},
        {"float": "1"},
        {"dict": [["key"]]},
        {"dict": [[1, 2]] * (wire.ENTRIES_LIMIT + 1)},
        {"list": [{"dict": [[1, 2]]}] * (wire.ENTRIES_LIMIT + 1)},
        {"array": None},
        {"array": ["<f4", [1]]},
        {"array": ["|O8", [1], 0]},
        {"array": ["|V8", [1], 0]},
        {"array": ["<U4", [1], 0]},
        {"array": ["<f3", [1], 0]},
        {"array": ["<f4,<f4", [1], 0]},
        {"array": ["<f4", [-1], 0]},
        {"array": ["<f4", [True], 0]},
        {"array": ["<f4", [1], -4]},
        {"array": ["<f4", [1], True]},
        {"array": ["<f4", [1], wire.ARENA - 3]},
        {"array": ["<f4", [wire.ARENA // 4 + 1], 0]},
        {"array": ["<f4", [2**40, 2**40, 0], 0]},
        {"array": ["<f4", [HUGE] * 60, 0]},
        {"array": ["<f4", [1] * 65, 0]},
        {"list": [{"array": ["|u1", [wire.ARENA // 2], 0]}] * 3},
        functools.reduce(lambda inner, _: {"list": [inner]}, range(20_000), 1),
    ],
)
def test_what_no_worker_sends_is_refused_before_anything_is_read(coded: Any) -> None:
    memory = Memory()
    with pytest.raises(WireError):
        wire.decode(coded, lambda offset, size: memory.get(offset, min(size, 1)) if size > 2**29 else bytearray(size))
    assert memory.read == 0


@pytest.mark.parametrize("name", ["a\0b", "", "two words", "\ud800", "x" * 1000, None, ["list"]])
def test_an_alien_of_any_name_is_an_object(name: Any) -> None:
    made = wire.decode({"object": name}, Memory().get)
    assert isinstance(made, wire.Alien)
    assert len(repr(made)) <= 82


@pytest.mark.parametrize("key", [{"list": []}, {"tuple": [-1, -2]}, 2**61 - 1, -(10**30), {"array": ["<f4", [], 0]}])
def test_a_key_that_cannot_be_one_or_has_no_hash_of_its_own_makes_no_dictionary(key: Any) -> None:
    assert isinstance(wire.decode({"dict": [[key, 1]]}, Memory().get), wire.Alien)


def test_many_aliens_are_of_few_classes() -> None:
    made = wire.decode({"list": [{"object": f"a{n}"} for n in range(1000)] * 2}, Memory().get)
    assert len(made) == 2000
    assert len({type(one) for one in made}) <= wire.ALIENS_LIMIT + 1
    assert type(made[0]).__name__ == type(made[1000]).__name__ == "a0"


@pytest.mark.parametrize("kind", ["list", "tuple", "iterator"])
def test_the_values_in_a_value_are_limited_and_that_is_said_where_it_is_sent(kind: str) -> None:
    with pytest.raises(WireError, match="numbers belong in an array"):
        wire.decode({kind: [None] * wire.VALUES_LIMIT}, Memory().get)
    with pytest.raises(WireError, match="numbers belong in an array"):
        wire.encode([[0.0] * 1000] * (wire.VALUES_LIMIT // 1000), Memory().put)
    assert len(there_and_back([0] * (wire.VALUES_LIMIT - 1))) == wire.VALUES_LIMIT - 1


# The channel


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(60)
        theirs.settimeout(60)
        yield Channel(ours), theirs


def frame(data: bytes) -> bytes:
    return struct.pack("!I", len(data)) + data


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.text(CHARACTERS, max_size=5), JSON, max_size=2), max_size=4), st.integers(1, 7))
def test_messages_arrive_however_they_are_cut(messages: list[dict[str, Any]], size: int) -> None:
    sent = b"".join(frame(json.dumps(message).encode()) for message in messages)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        receiver, arrived = Channel(theirs), []
        for start in range(0, len(sent), size):
            ours.sendall(sent[start : start + size])
            receiver.fill()
            while (message := receiver.next()) is not None:
                arrived.append(message)
        assert same(arrived, messages)
        assert not receiver.pending


def test_the_end_of_the_other_side_is_told_also_within_a_message(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    other.sendall(frame(b'{"a": 1}')[:-1])
    other.close()
    with pytest.raises(EOFError):
        channel.receive()
    assert channel.pending


def test_a_message_that_is_too_long_is_not_sent(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    with pytest.raises(WireError, match="at most 16,000,000"):
        channel.send({"text": "x" * wire.MESSAGE_LIMIT})
    other.setblocking(False)
    with pytest.raises(BlockingIOError):
        other.recv(1)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no JSON",
        b'{"a": 1',
        b"[1]",
        b"\xff\xfe{}",
        '{"a": 1}'.encode("utf-16"),
        b'{"a": "\xed\xa0\x80"}',
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a": ' + b"1" * (wire.DIGITS_LIMIT + 1) + b"}",
        b'{"a": ' + b"9" * 5_000_000 + b"}",
    ],
)
def test_what_is_no_message_is_refused(data: bytes, ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    sender = threading.Thread(target=other.sendall, args=(frame(data),))
    sender.start()
    with pytest.raises(WireError) as raised:
        channel.receive()
    sender.join()
    assert len(str(raised.value)) < 200


def test_texts_that_no_file_can_hold_are_mended(ends: tuple[Channel, socket.socket]) -> None:
    """Half a character, as `"\\ud800"` in Python, could be written to no notebook and no database."""
    channel, other = ends
    other.sendall(frame(b'{"\\udfff": ["\\uD800x", "\\ud83d\\ude00", "\\\\ud800"]}'))
    assert channel.receive() == {"?": ["?x", "\U0001f600", "\\ud800"]}
    Channel(other).send({"said": "\ud800"})
    assert channel.receive() == {"said": "?"}


def test_threads_do_not_mix_their_messages(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    sender = Channel(other)
    threads = [threading.Thread(target=sender.send, args=({str(n): "x" * 3_000_000},)) for n in range(4)]
    for thread in threads:
        thread.start()
    arrived = [channel.receive() for _ in threads]
    for thread in threads:
        thread.join()
    assert {key for message in arrived for key in message} == {"0", "1", "2", "3"}


def test_a_worker_that_does_not_read_costs_no_more_than_the_time_limit(ends: tuple[Channel, socket.socket]) -> None:
    channel, _ = ends
    channel.socket.settimeout(0.05)
    with pytest.raises(TimeoutError):
        channel.send({"text": "x" * 10_000_000})


# The shared file


def test_the_shared_file_keeps_its_size() -> None:
    descriptor = wire.new_arena()
    try:
        for size in (0, 2 * wire.ARENA):
            with pytest.raises(PermissionError):
                os.ftruncate(descriptor, size)
        assert os.fstat(descriptor).st_size == wire.ARENA
        assert os.fstat(descriptor).st_blocks == 0
        assert not os.get_inheritable(descriptor)
    finally:
        os.close(descriptor)


def test_places_are_aligned_apart_and_within_their_part() -> None:
    stack = wire.Stack(slice(128, 128 + 256))
    assert [stack.take(size) for size in (1, 64, 0, 65)] == [128, 192, 256, 256]
    assert stack.used == 256
    with pytest.raises(MemoryError, match="1 bytes more than the 256 there is room for"):
        stack.take(1)
    stack.clear()
    assert stack.take(256) == 128
